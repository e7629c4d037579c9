//! `bloomline dedup --resume`: no line is lost, and a resumed run has the result of an uninterrupted one.

use crate::common::{
    Bench, assert_contains_all, blocks, bloomline, expect_refusal, number, run_with_stdin, signal, stats, text,
};
use crate::corpus::{count, decode, gzip, gzip_stored, read_decoded};
use crate::interrupted::check_whole;
use crate::interrupted::job::*;
use crate::interrupted::rows::*;
use crate::live::wait_for;
use bloomline::BloomFilter;
use serde_json::Value;
use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::process::Command;

/// Returns a job that was killed after a checkpoint, and the files of an uninterrupted run.
fn crashed(job: Job) -> (Job, Uninterrupted) {
    let uninterrupted = job.uninterrupted();
    crash(&job, &uninterrupted);
    (job, uninterrupted)
}

fn crash(job: &Job, uninterrupted: &Uninterrupted) {
    // On a slow disk, the run may be killed before its first checkpoints.
    for _ in 0..100 {
        job.clear();
        job.kill_half_way(job.command(&ALWAYS), uninterrupted);
        let checkpoint = job.checkpoint();
        if checkpoint["offset"].as_u64() > Some(0) && checkpoint["output"].as_u64() > Some(0) {
            return;
        }
    }
    panic!("{}: killed before its second checkpoint, always", job.name);
}

/// Replaces the file of checkpoints by the file of a run that was interrupted right before its end. Its newest checkpoint is at
/// the end, and the other one is `earlier`.
fn interrupt_at_the_end(job: &Job, left: &[u8], earlier: &Value, ones: u64) {
    let line: Value = serde_json::from_slice(left.split(|&byte| byte == b'\n').next().unwrap()).unwrap();
    let memory: usize = stages(&job.path(STATE)).iter().map(BloomFilter::memory_bytes).sum();
    let mut end = earlier.clone();
    end["ones"] = ones.into();
    end["memory"] = memory.into();
    end["input"] = line["job"]["inputs"].as_array().unwrap().len().into();
    (end["offset"], end["lines"]) = (0.into(), 0.into());
    end["output"] = job.path("out.txt").metadata().unwrap().len().into();
    let text = format!("{{\"job\":{},\"checkpoints\":[{end},{earlier}],\"finished\":true}}", line["job"]);
    fs::write(job.path(CHECKPOINTS), with_checksum(&text)).unwrap();
}

/// Returns a text with its checksum, as in the file of checkpoints.
fn with_checksum(text: &str) -> String {
    format!("{text}\n{:016x}\n", bloomline::KeyHasher::new(0).bytes(text.as_bytes()))
}

#[track_caller]
fn succeed(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
}

/// Returns the contents of a file, decompressed as its name indicates, up to the first error.
fn contents(path: &Path) -> Vec<u8> {
    decode(path.to_str().unwrap(), &fs::read(path).unwrap()).0
}

/// Returns a copy of the command with changed arguments.
fn bloomline_like<'a>(command: &'a Command, change: impl Fn(&'a str) -> &'a str) -> Command {
    let mut other = bloomline();
    other.current_dir(command.get_current_dir().unwrap());
    other.args(command.get_args().map(|argument| change(argument.to_str().unwrap())));
    other
}

#[test]
fn failed_runs_are_resumed_where_they_ended() {
    let mut uninterrupted = Vec::new();
    (0..2000).for_each(|i| writeln!(uninterrupted, "{i:04}\t{}", i % 1500).unwrap());
    // The line without a second field has the same length, because a run is not resumed if the size or time of an input
    // changed.
    let tab = uninterrupted.iter().rposition(|&byte| byte == b'\t').unwrap();
    let tab = uninterrupted[..tab - 4000].iter().rposition(|&byte| byte == b'\t').unwrap();
    let mut bad = uninterrupted.clone();
    bad[tab] = b' ';
    let bad_line = count(&uninterrupted[..tab]) + 1;
    for (output, dupes) in [("o", "d"), ("o.gz", "d.zst"), ("o.xz", "d.bz2"), ("o.bz2", "d.xz")] {
        for code in [<[u8]>::to_vec, gzip_stored] {
            let bench = Bench::new(&[("before", b"x\t1\n"), ("a", &code(&uninterrupted))]);
            let line = format!("dedup -n 2000 --field 2 --state s -o {output} --dupes {dupes} before a");
            assert_eq!(bench.run_ok(&line), "");
            let outputs = || [read_decoded(&bench, output), read_decoded(&bench, dupes)];
            let (expected, state) = (outputs(), bench.read("s"));
            // Of 1500 distinct keys, 500 are repeated in the second file, and one is in both files.
            assert_eq!([count(&expected[0]), count(&expected[1])], [1500, 501]);

            ["s", output, dupes].iter().for_each(|name| fs::remove_file(bench.path(name)).unwrap());
            bench.write("a", &code(&bad));
            let message = bench.run_err(&line);
            assert!(message.contains(&format!("\"a\", line {bad_line}:")), "{message}");
            let [first, repeats] = outputs();
            assert_eq!(count(&first) + count(&repeats), bad_line);
            let time = fs::metadata(bench.path("a")).unwrap().modified().unwrap();
            bench.write("a", &code(&uninterrupted));
            assert_contains_all(&bench.run_err(&format!("{line} --resume")), &["the input ", "/a\" has changed"]);
            fs::File::options().write(true).open(bench.path("a")).unwrap().set_modified(time).unwrap();
            assert_eq!(bench.run_ok(&format!("{line} --resume")), "");
            assert!(outputs() == expected, "{output}");
            assert!(bench.read("s") == state && !bench.is_resumable("s"));
        }
    }
    let bench = Bench::new(&[("a", b"a\na\nb\n")]);
    // Without a state, the run starts from the beginning.
    bench.run_ok("dedup --state s -o o --resume a");
    assert_eq!(text(&bench.read("o")), "a\nb\n");
    assert_contains_all(&bench.run_err("dedup --state s --resume a"), &["without", "--output"]);
    assert_contains_all(&bench.run_err("dedup -o o --resume a"), &["without", "--state"]);
    let message = expect_refusal(run_with_stdin(bench.command("dedup --state s -o o --resume -"), b"c\n"));
    assert_contains_all(&message, &["resume", "files", "-o"]);
    assert_eq!(text(&bench.read("o")), "a\nb\n");
}

/// A compressed output has bytes before its first line.
#[test]
fn headers_and_byte_order_marks_precede_the_first_line_of_a_resumed_run() {
    let table = gzip(b"no\turl\n1\ta\n2\tb\n3\ta\n");
    let mut broken = table.clone();
    broken[10..].fill(0xFF);
    let mark = "\u{FEFF}";
    let marked = format!("{mark}1\ta\n2\tb\n1\ta\n");
    for (options, input, fails, expected) in [
        ("--header -f url", table, broken, ["no\turl\n1\ta\n2\tb\n", "no\turl\n3\ta\n"].map(str::to_owned)),
        (
            "-f 2",
            marked.clone().into_bytes(),
            marked.replacen('\t', " ", 1).into_bytes(),
            // The byte order mark precedes the first line.
            [format!("{mark}1\ta\n2\tb\n"), "1\ta\n".to_owned()],
        ),
    ] {
        // Checkpoints of an earlier version do not record whether a line was printed.
        for (output, dupes, is_recorded) in
            [("o.gz", "d.zst", true), ("o.xz", "d.bz2", true), ("o.lz4", "d.gz", false), ("o", "d", false)]
        {
            let bench = Bench::new(&[("in", &fails)]);
            let line = format!("dedup {options} -s s -o {output} --dupes {dupes} in");
            bench.run_err(&line);
            if !is_recorded {
                let checkpoints = text(&bench.read("s.resume")).lines().next().unwrap().to_owned();
                let older = [",\"output_begun\":false", ",\"dupes_begun\":false"];
                let older = older.iter().fold(checkpoints, |text, member| text.replace(member, ""));
                assert!(!older.contains("begun"), "{older}");
                bench.write("s.resume", with_checksum(&older).as_bytes());
            }
            bench.rewrite("in", &input);
            bench.run_ok(&format!("{line} --resume"));
            assert_eq!([output, dupes].map(|name| text(&read_decoded(&bench, name))), expected, "{output}");
        }
    }
}

#[test]
fn resume_without_a_state_starts_a_run() {
    let job = several();
    let job = Job { before: None, ..job };
    let expected = job.uninterrupted();
    job.clear();
    job.complete(true);
    check_whole(&job, &expected);
}

#[test]
fn runs_with_changed_inputs_are_not_resumed() {
    let (job, expected) = crashed(plain());
    let input = fs::read(job.path("in.txt")).unwrap();
    let time = fs::metadata(job.path("in.txt")).unwrap().modified().unwrap();
    for changed in [&input[..input.len() - 1], &[&input[..], b"more\n"].concat()] {
        fs::write(job.path("in.txt"), changed).unwrap();
        let message = job.expect_refusal(&mut job.command(&["--resume"]));
        let sizes = format!(" has changed since that run, from {} to {} bytes; ", input.len(), changed.len());
        assert_contains_all(&message, &["cannot resume", "/in.txt\"", &sizes]);
    }
    // A changed file of the same size has another time.
    let mut rotated = input.clone();
    rotated.rotate_left(1);
    fs::write(job.path("in.txt"), rotated).unwrap();
    let message = job.expect_refusal(&mut job.command(&["--resume"]));
    assert_contains_all(&message, &["cannot resume from \"state.resume\"", "/in.txt\" has changed since that run; "]);
    fs::write(job.path("in.txt"), &input).unwrap();
    File::options().write(true).open(job.path("in.txt")).unwrap().set_modified(time).unwrap();
    fs::write(job.path("more"), "more\n").unwrap();
    fs::write(job.path("renamed"), &input).unwrap();
    let rename = |argument| if argument == "in.txt" { "renamed" } else { argument };
    let mut renamed = bloomline_like(&job.command(&["--resume"]), rename);
    let message = job.expect_refusal(job.command(&["--resume"]).arg("more"));
    assert_contains_all(&message, &["cannot resume", "a run with a number of inputs of 1, not 2"]);
    assert_contains_all(
        &job.expect_refusal(&mut renamed),
        &["cannot resume", "with the input ", "/in.txt\", not ", "/renamed\""],
    );
    // The refused commands had no effect.
    ["more", "renamed"].iter().for_each(|name| fs::remove_file(job.path(name)).unwrap());
    job.complete(true);
    check_whole(&job, &expected);
}

#[test]
fn inputs_in_another_order_are_not_resumed() {
    let (job, expected) = crashed(several());
    let mut swapped = bloomline_like(&job.command(&["--resume"]), |argument| match argument {
        "a.txt" => "c.txt",
        "c.txt" => "a.txt",
        other => other,
    });
    assert_contains_all(
        &job.expect_refusal(&mut swapped),
        &["cannot resume", "with the input ", "/a.txt\", not ", "/c.txt\""],
    );
    job.complete(true);
    check_whole(&job, &expected);
}

#[test]
fn runs_with_other_options_are_not_resumed() {
    let (job, expected) = crashed(plain());
    let other_job = ["cannot resume from \"state.resume\"", "it belongs to a run with the "];
    for (more, difference) in [
        (&["--invert"][..], "options \"line\", not \"line, inverted\""),
        (&["--annotate"], "options \"line\", not \"line, annotated\""),
        (&["--dupes", "dupes.txt"], "/dupes.txt"),
        (&["-z"], "options \"line\", not \"line, NUL-terminated\""),
    ] {
        let message = job.expect_refusal(&mut job.command(&[&["--resume"], more].concat()));
        assert_contains_all(&message, &other_job);
        assert_contains_all(&message, &[difference]);
    }
    // The keys are compared with those of the state, or, if it records none, with those of the interrupted run.
    let state = fs::read(job.path(STATE)).unwrap();
    let filter = BloomFilter::load(job.path(STATE)).unwrap();
    let mut nameless = BloomFilter::builder().memory(filter.memory_bytes()).probes(filter.probes()).build().unwrap();
    nameless.union(&filter).unwrap();
    for (more, key) in [
        (&["--trim"][..], "line, trimmed"),
        (&["--ignore-case"], "line, case ignored"),
        (&["--field", "1"], "field 1 of lines split at tab"),
        (&["--field", "1", "--delimiter", "/"], "field 1 of lines split at '/'"),
        (&["--json-pointer", "/a"], "a"),
        (&["--normalize", "url"], "line, normal form of a URL"),
    ] {
        let resume = || job.expect_refusal(&mut job.command(&[&["--resume"], more].concat()));
        assert_contains_all(
            &resume(),
            &["cannot use the filter \"state\"", "keys are \"line\"", &format!("\"{key}\"")],
        );
        nameless.save(job.path(STATE)).unwrap();
        let message = resume();
        assert_contains_all(&message, &other_job);
        assert_contains_all(&message, &[&format!("options \"line\", not \"{key}\"")]);
        fs::write(job.path(STATE), &state).unwrap();
    }
    assert_contains_all(
        &job.expect_refusal(&mut job.command(&["--resume", "--seed", "1"])),
        &["\"state\"", "seed is 0", " 1"],
    );
    let swap = |from: &'static str, to: &'static str| {
        let command = job.command(&["--resume"]);
        job.expect_refusal(&mut bloomline_like(&command, |argument| if argument == from { to } else { argument }))
    };
    let size = |options: &str| job.bench.json(&format!("plan --json {options}"))[0]["memory_bytes"].to_string();
    let [had, more] = ["-n 30000 -p 1e-9", "-n 40000 -p 1e-9"].map(size);
    assert_contains_all(&swap("1e-9", "1e-3"), &["\"state\"", "rate of 0.000000001", " 0.001"]);
    assert_contains_all(&swap("30000", "40000"), &["\"state\"", "-n", &more, &had]);
    assert_contains_all(
        &swap("out.txt", "other.txt"),
        &["cannot resume", "the outputs ", "/out.txt\", not ", "/other.txt\""],
    );
    assert!(!job.path("other.txt").exists());
    job.complete(true);
    check_whole(&job, &expected);
}

#[test]
fn states_changed_by_another_run_are_not_resumed() {
    let changes = [
        ("changed by another run", "build --append -o state"),
        // A run that could be resumed itself, and a run that could not.
        ("no run with this state was interrupted", "dedup --state state -o out2"),
        ("no run with this state was interrupted", "dedup --state state"),
    ];
    for (reason, arguments) in changes {
        let (job, _) = crashed(plain());
        fs::write(job.path("other"), "not in the input\n").unwrap();
        succeed(job.bench.command(arguments).arg("other"));
        let message = job.expect_refusal(&mut job.command(&["--resume"]));
        assert_contains_all(&message, &[reason]);
    }
}

/// Inserting known keys sets no bit, so the state is the same.
#[test]
fn states_without_new_keys_are_resumed() {
    let (job, expected) = crashed(plain());
    let known = contents(&job.path("out.txt"))[..job.checkpoint()["output"].as_u64().unwrap() as usize].to_vec();
    fs::write(job.path("known"), known).unwrap();
    succeed(&mut job.bench.command("build --append -o state known"));
    fs::remove_file(job.path("known")).unwrap();
    job.complete(true);
    check_whole(&job, &expected);
}

#[test]
fn states_older_than_the_last_two_are_not_resumed() {
    let (job, _) = crashed(plain());
    let old = fs::read(job.path(STATE)).unwrap();
    let left = fs::read(job.path(CHECKPOINTS)).unwrap();
    job.complete(true);
    let newest = count_state_bits(&job.path(STATE));
    let mut checkpoint = serde_json::from_slice::<Value>(left.split(|&byte| byte == b'\n').next().unwrap()).unwrap();
    let mut checkpoint = checkpoint["checkpoints"][0].take();
    checkpoint["ones"] = (newest - 1).into();
    interrupt_at_the_end(&job, &left, &checkpoint, newest);
    fs::write(job.path(STATE), old).unwrap();
    let message = job.expect_refusal(&mut job.command(&["--resume"]));
    assert!(message.contains("the state was changed"), "{message}");
}

#[test]
fn outputs_shorter_than_at_the_checkpoint_are_not_resumed() {
    let (job, expected) = crashed(several());
    for (name, key) in [("out.txt", "output"), ("dupes.txt", "dupes")] {
        let uninterrupted = fs::read(job.path(name)).unwrap();
        let length = job.checkpoint()[key].as_u64().unwrap() as usize;
        assert!(length > 0);
        for shorter in [0, length - 1] {
            fs::write(job.path(name), &uninterrupted[..shorter]).unwrap();
            let message = expect_refusal(job.command(&["--resume"]).output().unwrap());
            let (is, was) = (format!(" {shorter} bytes"), format!(" {length} "));
            assert_contains_all(&message, &["cannot resume", &format!("\"{name}\""), &is, &was, "another state"]);
        }
        // Bytes after the checkpoint are not needed.
        fs::write(job.path(name), &uninterrupted[..length]).unwrap();
    }
    job.complete(true);
    check_whole(&job, &expected);
}

#[test]
fn missing_or_damaged_checkpoints_are_not_resumed() {
    let (job, expected) = crashed(plain());
    let text = fs::read(job.path(CHECKPOINTS)).unwrap();
    let line = std::str::from_utf8(&text).unwrap().lines().next().unwrap();
    let (length, place) = (text.len(), job.checkpoint()["offset"].to_string());
    let digit = place.as_bytes()[0];
    let other = if digit == b'9' { b'8' } else { b'9' };
    let moved = text.iter().map(|&byte| if byte == digit { other } else { byte }).collect::<Vec<_>>();
    for (damaged, why) in [
        (&b""[..], "something else"),
        (b"{}", "something else"),
        (b"null", "something else"),
        (&text[..length - 1], "its checksum is wrong"),
        (&text[..length / 2], "its checksum is wrong"),
        (line.as_bytes(), "its checksum is wrong"),
        (&moved, "its checksum is wrong"),
        (with_checksum(&line[..line.len() - 1]).as_bytes(), "EOF"),
        (
            with_checksum(&line.replace("\"checkpoints\":[{", "\"checkpoints\":[],\"other\":[{")).as_bytes(),
            "no checkpoint",
        ),
    ] {
        fs::write(job.path(CHECKPOINTS), damaged).unwrap();
        for options in [&["--resume"][..], &[], &["--force"]] {
            assert_contains_all(
                &job.expect_refusal(&mut job.command(options)),
                &["checkpoints in \"state.resume\"", why],
            );
        }
    }
    fs::remove_file(job.path(CHECKPOINTS)).unwrap();
    let message = job.expect_refusal(&mut job.command(&["--resume"]));
    assert_contains_all(&message, &["no run with this state was interrupted", "refusing to overwrite \"out.txt\""]);
    fs::write(job.path(CHECKPOINTS), text).unwrap();
    job.complete(true);
    check_whole(&job, &expected);
}

#[test]
fn checkpoints_without_a_state_are_ignored() {
    let (job, expected) = crashed(plain());
    fs::remove_file(job.path(STATE)).unwrap();
    // The name of the state may be mistyped, and the output contains lines.
    let message = job.expect_refusal(&mut job.command(&["--resume"]));
    assert_contains_all(&message, &["there is no state \"state\"", "\"out.txt\" holds lines", "--force"]);
    succeed(&mut job.command(&["--resume", "--force"]));
    check_whole(&job, &expected);
}

#[cfg(unix)]
#[test]
fn only_runs_from_files_to_files_are_resumed() {
    let (job, expected) = crashed(plain());
    let dedup = |arguments: &[&str]| {
        let mut command = job.bench.command("dedup -n 30000 -p 1e-9 --state state --resume");
        command.args(arguments);
        command
    };
    let from_file = |mut command: Command| {
        command.stdin(File::open(job.path("in.txt")).unwrap());
        command
    };
    for mut command in [
        dedup(&["-o", "out.txt"]),
        dedup(&["-o", "out.txt", "-"]),
        dedup(&["-o", "out.txt", "in.txt", "-"]),
        from_file(dedup(&["-o", "out.txt"])),
        from_file(dedup(&["-o", "out.txt", "-"])),
        dedup(&["-o", "/dev/null", "in.txt"]),
        dedup(&["-o", "out.txt", "--dupes", "/dev/null", "in.txt"]),
    ] {
        assert_contains_all(&job.expect_refusal(&mut command), &["from files to files", "resume", "-o", "--dupes"]);
    }
    assert_contains_all(&job.expect_refusal(&mut dedup(&["in.txt"])), &["without", "--output"]);
    let message = job.expect_refusal(&mut dedup(&["-o", "out.txt", "--total", "in.txt"]));
    assert_contains_all(&message, &["--total", "cannot be used with", "--resume"]);
    job.complete(true);
    check_whole(&job, &expected);
}

/// A run that cannot be resumed removes the checkpoints of an earlier run.
#[cfg(unix)]
#[test]
fn runs_that_cannot_be_resumed_remove_checkpoints() {
    for arguments in [&["in.txt"][..], &["-o", "/dev/null", "in.txt"], &["--total", "in.txt"]] {
        let (job, _) = crashed(plain());
        succeed(job.bench.command("dedup --state state").args(arguments));
        let message = job.expect_refusal(&mut job.command(&["--resume"]));
        assert_contains_all(&message, &["no run with this state was interrupted", "refusing to overwrite \"out.txt\""]);
    }
}

/// Without `--resume`, a run with an existing state starts from the beginning, but does not overwrite outputs whose lines are
/// in the state. After that, the second run is the one that can be resumed.
#[test]
fn the_second_of_two_killed_runs_is_resumed() {
    let (mut job, _) = crashed(several());
    let state = fs::read(job.path(STATE)).unwrap();
    let left = job.files();
    job.before = Some(state);
    let expected = job.uninterrupted();
    job.clear();
    // Existing inputs are not written again, so that they keep their times.
    left.iter().filter(|(name, _)| !job.path(name).exists()).for_each(|(name, bytes)| job.bench.write(name, bytes));
    assert_contains_all(&job.expect_refusal(&mut job.command(&[])), &["out.txt", "--resume", "another file"]);
    fs::remove_file(job.path("out.txt")).unwrap();
    assert_contains_all(&job.expect_refusal(&mut job.command(&[])), &["dupes.txt", "--resume", "another file"]);
    fs::remove_file(job.path("dupes.txt")).unwrap();
    job.kill_half_way(job.command(&["--checkpoint", "1h"]), &expected);
    let checkpoint = job.checkpoint();
    assert_eq!((checkpoint["input"].as_u64(), checkpoint["offset"].as_u64()), (Some(0), Some(0)));
    job.complete(true);
    check_whole(&job, &expected);
}

#[test]
fn restarting_as_advised_loses_no_line() {
    let (job, expected) = crashed(plain());
    File::create(job.path("out.txt")).unwrap();
    let message = job.expect_refusal(&mut job.command(&["--resume"]));
    assert_contains_all(&message, &["start over with another state, and write to another file"]);
    let other = |argument| match argument {
        STATE => "other",
        "out.txt" => "other.txt",
        argument => argument,
    };
    succeed(&mut bloomline_like(&job.command(&[]), other));
    assert!(fs::read(job.path("other.txt")).unwrap() == expected.files["out.txt"]);
}

#[test]
fn limits_are_unchanged_when_resumed() {
    let lines = lines(1, 60_000);
    let mut seen = HashSet::new();
    let one_too_many = 1 + lines.iter().position(|line| seen.insert(line) && seen.len() > 25_000).unwrap();
    for when in ["warn", "stop"] {
        let line = format!("dedup -s state -n 25000 --when-full {when} -o out.txt");
        let mut job = Job::new("limited", &[("in.txt", join_lines(&lines, b'\n'))], &line, Kind::Same);
        let stopped = &*format!("stopped at \"in.txt\", line {one_too_many}:").leak();
        job.failure = (when == "stop").then_some(stopped);
        let (job, expected) = crashed(job);
        let message = text(&job.command_with_warnings(&["--resume"]).output().unwrap().stderr);
        assert_eq!(message.matches('\n').count(), 1, "{message}");
        // If the run was killed with more keys than planned, it prints another warning.
        let parts = if when == "stop" { [stopped, "full"] } else { ["warning", " 25000"] };
        assert_contains_all(&message, &parts);
        check_whole(&job, &expected);
    }
}

#[test]
fn runs_with_another_on_error_option_are_not_resumed() {
    let (job, _) = crashed(faulty());
    let skip = |argument| if argument == "keep" { "skip" } else { argument };
    let message = job.expect_refusal(&mut bloomline_like(&job.command(&["--resume"]), skip));
    assert_contains_all(&message, &["cannot resume from \"state.resume\"", "--on-error keep, not skip"]);
}

/// The last checkpoint marks the end of the run and is written before the state.
#[test]
fn outputs_with_an_unsaved_state_are_not_restarted() {
    let (job, expected) = crashed(plain());
    let (state, left) = (fs::read(job.path(STATE)).unwrap(), fs::read(job.path(CHECKPOINTS)).unwrap());
    let checkpoint = job.checkpoint();
    job.complete(true);
    interrupt_at_the_end(&job, &left, &checkpoint, count_state_bits(&job.path(STATE)));
    fs::write(job.path(STATE), state).unwrap();
    assert_contains_all(&job.expect_refusal(&mut job.command(&[])), &["out.txt", "--resume", "another file"]);
    job.complete(true);
    check_whole(&job, &expected);
    // The run is complete, and the output has the only copy of its lines.
    let message = job.expect_refusal(&mut job.command(&[]));
    assert_contains_all(&message, &["refusing to overwrite \"out.txt\"", "the state \"state\"", "--force"]);
    assert!(!message.contains("--resume"), "{message}");
    succeed(&mut job.command(&["--force"]));
    assert_eq!(contents(&job.path("out.txt")), b"");
}

#[test]
fn states_are_shrunk_only_at_the_end() {
    let (job, expected) = crashed(shrunk());
    let size = |name: &str| blocks(&fs::read(job.path(name)).unwrap()).len();
    let planned = size(STATE);
    assert_eq!(job.bench.json("plan --json -n 100000 -p 1e-6")[0]["memory_bytes"], planned);
    let (state, left) = (fs::read(job.path(STATE)).unwrap(), fs::read(job.path(CHECKPOINTS)).unwrap());
    let checkpoint = job.checkpoint();
    job.complete(true);
    check_whole(&job, &expected);
    let small = size(STATE);
    assert!(2 * small <= planned && planned.is_multiple_of(small), "{small} of {planned}");
    // A shrunk state is accepted with the options that created it, but not with others.
    assert_contains_all(&job.expect_refusal(&mut job.command(&[])), &["refusing to overwrite \"out.txt\""]);
    let more = bloomline_like(&job.command(&[]), |argument| if argument == "100000" { "300000" } else { argument });
    let message = job.expect_refusal(&mut { more });
    assert_contains_all(&message, &["\"state\"", "-n asks for ", &format!(" bytes, but it has {small}")]);

    // The last checkpoint is written before the state and belongs to the shrunk one, even if the planned state has the same
    // number of set bits.
    for bits in [count_state_bits(&job.path(STATE)), checkpoint["ones"].as_u64().unwrap()] {
        interrupt_at_the_end(&job, &left, &checkpoint, bits);
        fs::write(job.path(STATE), &state).unwrap();
        assert_contains_all(&job.expect_refusal(&mut job.command(&[])), &["out.txt", "--resume", "another file"]);
        job.complete(true);
        check_whole(&job, &expected);
    }

    // A failed run may be resumed, so its state keeps the planned size.
    let bench = Bench::new(&[("a", b"1\ta\nno tab\n")]);
    bench.run_err("dedup -n 100000 --when-full warn --shrink --field 2 --state s -o o a");
    assert_eq!(blocks(&bench.read("s")).len(), planned);
    // A smaller state of another run is not resumed.
    bench.write("b", b"1\tb\n1\tc\n");
    bench.run_ok("dedup -n 100000 --when-full warn --shrink --field 2 --state t -o p b");
    fs::copy(bench.path("t"), bench.path("s")).unwrap();
    let line = "dedup -n 100000 --shrink --field 2 --on-error skip --state s -o o --resume a";
    assert_contains_all(&bench.run_err(line), &["cannot resume", "the state was changed by another run"]);
}

/// Resuming a complete run changes nothing, whatever its outputs are, and even if other runs used its state.
#[test]
fn complete_runs_are_not_restarted() {
    let documents: String = (0..3).map(|i| format!("{{\"text\":\"{i}\",\"score\":{i}}}\n")).collect();
    let bench = Bench::new(&[("a", b"1\n1\n2\n"), ("b", b"2\n3\n"), ("c", documents.as_bytes())]);
    let uninterrupted = "corpus --by document --ngram 0";
    let lines = [
        "dedup -s s -o o a".to_owned(),
        "dedup -s s -o o2 --dupes d2 a b".to_owned(),
        "dedup -s s --output-dir o3 a b".to_owned(),
        "dedup -s s --output-dir o4 --manifest m4 a b".to_owned(),
        "dedup -s s --output-dir o3 c".to_owned(),
        "dedup -s t --pairs p5 --clusters q5 -o o5 a b".to_owned(),
        "dedup -s t --pairs p6 --output-dir o6 b".to_owned(),
        "corpus -s u --shrink -o o7 c".to_owned(),
        "corpus -s u --output-dir o8 c".to_owned(),
        format!("{uninterrupted} -s v --keep max:/score --pairs p9 -o o9 c"),
        format!("{uninterrupted} -s v --count --output-dir o10 --manifest m10 c"),
        "corpus -s w --near 0.8 --clusters q11 -o o11 c".to_owned(),
    ];
    for line in &lines {
        bench.run_ok(line);
    }
    // A run without outputs keeps the records of the others.
    assert_eq!(bench.run_ok("dedup -s s b"), "");
    let files = || {
        let entries = walkdir::WalkDir::new(bench.0.path()).sort_by_file_name().into_iter().map(Result::unwrap);
        let files = entries.filter(|entry| entry.file_type().is_file()).map(|entry| entry.into_path());
        files.map(|path| (path.clone(), fs::read(path).unwrap())).collect::<Vec<_>>()
    };
    let before = files();
    for line in &lines {
        let output = bench.run(&format!("{line} --resume"));
        let message = text(&output.stderr);
        assert_eq!((output.status.code(), &*output.stdout), (Some(0), &b""[..]), "{line}: {message}");
        assert_eq!(message.lines().count(), 1, "{line}: {message}");
        assert_contains_all(&message, &["nothing is left to do", "already complete"]);
        assert_eq!(bench.run_ok(&format!("{line} --resume -q")), "");
        assert!(files() == before, "{line}");
    }
    // Resuming a run with skipped inputs has the same exit code.
    let line = "dedup -q -s x --on-error skip -o o12 a missing";
    assert_eq!(["", " --resume"].map(|more| bench.run(&format!("{line}{more}")).status.code()), [Some(1); 2]);
    // A changed length of an output is an error, because the state contains its lines.
    for (line, output) in
        [(&lines[0], "o"), (&lines[1], "d2"), (&lines[4], "o3/c"), (&lines[5], "p5"), (&lines[8], "o8/c")]
    {
        let uninterrupted = bench.read(output);
        for changed in [&uninterrupted[..uninterrupted.len() / 2], b"", &[&uninterrupted[..], b"more\n"].concat()] {
            bench.write(output, changed);
            let message = bench.run_err(&format!("{line} --resume -q"));
            assert_contains_all(&message, &["this run is complete", "was changed since", "another state"]);
            assert_eq!(bench.read(output), changed);
        }
        bench.write(output, &uninterrupted);
        bench.run_ok(&format!("{line} --resume -q"));
    }
    // An output may be moved away.
    fs::rename(bench.path("o"), bench.path("moved")).unwrap();
    let output = bench.run(&format!("{} --resume", lines[0]));
    assert_contains_all(&text(&output.stderr), &["already complete", "\"o\" no longer exists"]);
    assert!(output.status.success() && !bench.path("o").exists());
    // The run is no longer complete if another run overwrites its output or if its state is removed.
    bench.run_ok("dedup -s s --force -o o2 c");
    assert_contains_all(
        &bench.run_err(&format!("{} --resume", lines[1])),
        &["refusing to overwrite", "no run with this state was interrupted", "leave out --resume"],
    );
    fs::remove_file(bench.path("t")).unwrap();
    assert_contains_all(
        &bench.run_err(&format!("{} --resume", lines[5])),
        &["there is no state \"t\"", "\"o5\" holds lines"],
    );
    assert_eq!(text(&bench.read("o5")), "1\n2\n3\n");
    // A changed input with a free output starts a run, as on the next day.
    bench.write("a", b"4\n");
    bench.run_ok("dedup -s s --resume -o o a");
    assert_eq!(text(&bench.read("o")), "4\n");
}

/// The state contains the earlier lines of the inputs, so their new lines need another output.
#[test]
fn changed_inputs_of_complete_runs_are_named() {
    let bench = Bench::new(&[("a", b"1\n2\n"), ("b", b"3\n"), ("c", b"4\n")]);
    let lines =
        ["dedup -s s -o o a", "dedup -s s -o o2 b c", "dedup -s s --output-dir f b", "dedup -s s -o o3 --dupes d3 c a"];
    lines.iter().for_each(|line| _ = bench.run_ok(line));
    let before = ["o", "o2", "f/b", "o3", "d3"].map(|name| bench.read(name));
    let changed = "has changed since that run";
    let refused = |line: &str, parts: &[&str]| {
        let message = bench.run_err(&format!("{line} --resume"));
        assert_contains_all(
            &message,
            &["a run of this command is complete", "so leave out --resume, and ", "write to another "],
        );
        assert_contains_all(&message, parts);
        assert!(["o", "o2", "f/b", "o3", "d3"].map(|name| bench.read(name)) == before, "{line}");
    };
    // The input grows, shrinks, or is replaced by a file of the same size.
    bench.write("a", b"1\n2\n5\n");
    // The sizes of inputs are recorded for the last run, and an earlier run with one input can name it.
    refused(lines[3], &[&format!("/a\" {changed}, from 4 to 6 bytes")]);
    refused(lines[0], &[&format!("/a\" {changed}")]);
    bench.write("a", b"1\n");
    refused(lines[3], &[&format!("/a\" {changed}, from 4 to 2 bytes")]);
    bench.write("a", b"1\n6\n");
    let time = fs::metadata(bench.path("a")).unwrap().modified().unwrap() + std::time::Duration::from_secs(2);
    File::options().write(true).open(bench.path("a")).unwrap().set_modified(time).unwrap();
    refused(lines[3], &[&format!("/a\" {changed}, so")]);
    bench.write("b", b"3\n7\n");
    refused(lines[1], &[&format!("an input {changed}")]);
    refused(lines[2], &["refusing to overwrite \"f/b\"", &format!("/b\" {changed}")]);
    // The advice works.
    bench.run_ok("dedup -s s -o new a");
    bench.run_ok("dedup -s s --output-dir new-f b");
    assert_eq!(["new", "new-f/b"].map(|name| text(&bench.read(name))), ["6\n", "7\n"]);
}

/// A run is complete only if the state is the one that it or a later run saved.
#[test]
fn complete_runs_need_their_state() {
    for (size, target, output) in
        [("", "-o o", "o"), ("-n 100 --when-full warn ", "--output-dir f", "f/b"), ("", "--pairs p -o o", "o")]
    {
        let bench = Bench::new(&[("a", b"1\n"), ("b", b"2\n"), ("c", b"3\n"), ("d", b"4\n")]);
        let copy = |from: &str, to: &str| _ = fs::copy(bench.path(from), bench.path(to)).unwrap();
        let [first, second] =
            ["-o first a".to_owned(), format!("{target} b")].map(|end| format!("dedup {size}-s s {end}"));
        bench.run_ok(&first);
        copy("s", "before");
        bench.run_ok(&second);
        copy("s", "after");
        // An earlier copy of the state, and another state with the same number of keys.
        bench.run_ok(&format!("dedup {size}-s other -o other-1 c"));
        bench.run_ok(&format!("dedup {size}-s other -o other-2 d"));
        for state in ["before", "other"] {
            copy(state, "s");
            let message = bench.run_err(&format!("{second} --resume"));
            assert_contains_all(
                &message,
                &["this run is complete", "\"s\" was not saved by it", "restore the state", "--force"],
            );
            assert_eq!(text(&bench.read(output)), "2\n");
        }
        // The first run saved the copy, so it is complete with the copy and with later states.
        for state in ["before", "after"] {
            copy(state, "s");
            assert_contains_all(&text(&bench.run(&format!("{first} --resume")).stderr), &["already complete"]);
        }
        assert_contains_all(&text(&bench.run(&format!("{second} --resume")).stderr), &["already complete"]);
        // Running again would print no line.
        assert_contains_all(
            &bench.run_err(&format!("{second} --resume --force")),
            &["nothing is left to do", "already complete", "another state"],
        );
        assert_eq!(text(&bench.read(output)), "2\n");
        // Another run with the copy does not complete the second run.
        copy("before", "s");
        bench.run_ok(&format!("dedup {size}-s s c"));
        assert_contains_all(&text(&bench.run(&format!("{first} --resume")).stderr), &["already complete"]);
        assert_contains_all(&bench.run_err(&format!("{second} --resume")), &["refusing to", "--force"]);
        copy("after", "s");
        assert_contains_all(&bench.run_err(&format!("{second} --resume")), &["refusing to", "--force"]);
        // With --force, the run starts from the beginning.
        copy("before", "s");
        bench.write(output, b"");
        bench.run_ok(&format!("{second} --resume --force"));
        assert_eq!(text(&bench.read(output)), "2\n");
        assert_contains_all(&text(&bench.run(&format!("{second} --resume")).stderr), &["already complete"]);
    }
    // A later run that fails saves a state too.
    let bench = Bench::new(&[("a", b"1\t1\n"), ("b", b"2\t2\nbad\n")]);
    let [first, second] = ["o a", "p b"].map(|end| format!("dedup --field 2 -s s -o {end}"));
    bench.run_ok(&first);
    let before = bench.read("s");
    assert_contains_all(&bench.run_err(&second), &["line 2"]);
    assert!(bench.read("s") != before && bench.is_resumable("s"));
    assert_contains_all(&text(&bench.run(&format!("{first} --resume")).stderr), &["already complete"]);
    bench.write("s", b"none");
    assert_contains_all(&bench.run_err(&format!("{first} --resume")), &["\"s\" was not saved by it"]);
}

/// Each step of a script can be resumed, whether it was complete, was killed, or was not started.
#[cfg(unix)]
#[test]
fn scripts_can_be_rerun_unchanged_after_a_crash() {
    const SCRIPT: &str = "set -e
        bloomline dedup -q --resume -s lines.bloom -o 1/a.jsonl raw/a.jsonl
        bloomline dedup -q --resume -s lines.bloom -o 1/b.jsonl raw/b.jsonl
        (
            ulimit -c 0 -f ${LIMIT:-unlimited}
            bloomline corpus -q --resume -s grams.bloom -n 100000 --in-order --chunk-size 2000 --checkpoint 1ms \
                --output-dir 3 --manifest 3.jsonl 1
        )
        bloomline corpus -q --resume -s whole.bloom --by document --ngram 0 --pairs pairs.jsonl -o 4.jsonl 3";
    let documents = |seed| -> String {
        let text = |line: &String| line.replace('\t', " ");
        lines(seed, 4000).iter().map(|line| format!("{{\"text\":\"{0}\\n{0} more\"}}\n", text(line))).collect()
    };
    let run = |limits: &[Option<&str>]| {
        let bench = Bench::new(&[]);
        ["raw", "1"].iter().for_each(|folder| fs::create_dir(bench.path(folder)).unwrap());
        bench.write("raw/a.jsonl", documents(1).as_bytes());
        bench.write("raw/b.jsonl", documents(2).as_bytes());
        for limit in limits {
            let output = bench.bash(SCRIPT).envs(limit.map(|limit| ("LIMIT", limit))).output().unwrap();
            assert_eq!(output.status.success(), limit.is_none(), "{}", text(&output.stderr));
            // The third step is killed when an output exceeds the limit.
            assert_eq!((bench.path("grams.bloom").exists(), bench.path("4.jsonl").exists()), (true, limit.is_none()));
        }
        ["1/a.jsonl", "1/b.jsonl", "3/a.jsonl", "3/b.jsonl", "3.jsonl", "4.jsonl", "pairs.jsonl"]
            .map(|name| bench.read(name))
    };
    let expected = run(&[None]);
    assert!(run(&[Some("250"), None, None]) == expected);
}

/// The signal arrives after everything is saved, while the statistics wait for a reader.
#[cfg(unix)]
#[test]
fn signals_during_statistics_leave_a_complete_run() {
    for target in ["-o o", "--output-dir o --manifest m"] {
        let bench = Bench::new(&[("a", b"a\nb\na\n")]);
        let line = format!("dedup -s s {target} --stats a");
        let (reader, mut writer) = io::pipe().unwrap();
        // The bytes fill the pipe.
        writer.write_all(&[b'\n'; 1 << 16]).unwrap();
        let mut command = bench.command(&line);
        let mut child = command.stderr(writer).spawn().unwrap();
        drop(command);
        wait_for(|| bench.path("s.resume").exists() && !bench.is_resumable("s"));
        signal(&child, "TERM");
        assert_eq!(child.wait().unwrap().code(), Some(143));
        drop(reader);
        let output = bench.run(&format!("{line} --resume"));
        assert_contains_all(&text(&output.stderr), &["already complete"]);
        assert!(output.status.success());
    }
}

#[test]
fn statistics_report_whether_a_run_was_resumed() {
    let (job, uninterrupted) = crashed(plain());
    let output = job.command(&["--resume", "--stats=json"]).output().unwrap();
    let figures = stats(&output);
    assert!(figures["resumed"] == true && number(&figures, "lines") < 30_000.0, "{figures}");
    crash(&job, &uninterrupted);
    let output = job.command(&["--resume", "--stats"]).output().unwrap();
    assert_contains_all(&text(&output.stderr), &["resumed ", "since the checkpoint"]);
    // The statistics of a new run do not have this member.
    job.clear();
    let output = job.command(&["--resume", "--stats=json"]).output().unwrap();
    assert!(stats(&output).get("resumed").is_none() && number(&stats(&output), "lines") == 30_000.0);
}

/// The next run can use the same command, with or without `--resume`.
#[test]
fn complete_runs_leave_nothing_to_resume() {
    let bench = Bench::new(&[("first", b"a\n"), ("second", b"a\nb\n"), ("third", b"b\nc\n")]);
    bench.run_ok("dedup --state s --checkpoint 1m -o o1 first");
    assert!(!bench.is_resumable("s"));
    // These runs start from the beginning.
    bench.run_ok("dedup --state s --checkpoint 1m -o o2 --resume second");
    bench.run_ok("dedup --state s --checkpoint 1m --output-dir o3 --resume third");
    assert_eq!(["o1", "o2", "o3/third"].map(|name| text(&bench.read(name))), ["a\n", "b\n", "c\n"]);
    assert!(!bench.is_resumable("s"));
    // A run that is interrupted between its last two steps leaves the file of checkpoints.
    let (job, _) = crashed(plain());
    let (left, checkpoint) = (fs::read(job.path(CHECKPOINTS)).unwrap(), job.checkpoint());
    job.complete(true);
    interrupt_at_the_end(&job, &left, &checkpoint, count_state_bits(&job.path(STATE)));
    fs::write(job.path("more.txt"), "not in the input\n").unwrap();
    succeed(job.bench.command("dedup --state state -o out2 --resume more.txt").arg("--quiet"));
    assert_eq!(fs::read(job.path("out2")).unwrap(), b"not in the input\n");
}

#[test]
fn impossible_checkpoints_are_refused() {
    let (job, expected) = crashed(plain());
    let file = fs::read_to_string(job.path(CHECKPOINTS)).unwrap();
    let line = file.lines().next().unwrap();
    let size = fs::metadata(job.path("in.txt")).unwrap().len();
    let checkpoint = job.checkpoint();
    let at = |name: &str| checkpoint[name].as_u64().unwrap();
    for (name, value, most) in [
        ("offset", 1_000_000_000_000_000, size + 1),
        ("offset", size + 2, size + 1),
        ("lines", at("offset") + 1, at("offset")),
        ("input", 2, 1),
    ] {
        // The comma prevents a match of a longer number in the other checkpoint.
        let damaged = line.replace(&format!("\"{name}\":{},", at(name)), &format!("\"{name}\":{value},"));
        fs::write(job.path(CHECKPOINTS), with_checksum(&damaged)).unwrap();
        let message = job.expect_refusal(&mut job.command(&["--resume"]));
        assert_contains_all(
            &message,
            &["checkpoints in \"state.resume\"", &format!("is {value}, but can be {most} at most")],
        );
    }
    fs::write(job.path(CHECKPOINTS), file).unwrap();
    job.complete(true);
    check_whole(&job, &expected);

    // The length of compressed contents is not known before they are read.
    let (job, _) = crashed(gzipped());
    let file = fs::read_to_string(job.path(CHECKPOINTS)).unwrap();
    let offset = job.checkpoint()["offset"].to_string();
    let far = file.lines().next().unwrap().replace(&format!("\"offset\":{offset},"), "\"offset\":1000000000000000,");
    fs::write(job.path(CHECKPOINTS), with_checksum(&far)).unwrap();
    let message = expect_refusal(job.command(&["--resume"]).output().unwrap());
    assert_contains_all(&message, &["cannot read \"in\"", "the checkpoint is at byte 1000000000000000"]);
}
