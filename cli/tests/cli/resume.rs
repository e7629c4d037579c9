//! `bloomline dedup --resume`: no line is lost, and a resumed run ends as if nothing had happened.

use crate::common::{Bench, blocks, bloomline, fed, number, refused, stats, tells, text};
use crate::corpus::{count, decode, decoded, stored};
use crate::interrupted::check_whole;
use crate::interrupted::job::*;
use crate::interrupted::rows::*;
use crate::live::{Live, wait_for};
use bloomline::BloomFilter;
use serde_json::Value;
use std::collections::HashSet;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::Command;

/// A job that was killed in the middle, after a checkpoint, and the results that it would have had.
fn crashed(job: Job) -> (Job, Whole) {
    let whole = job.whole();
    crash(&job, &whole);
    (job, whole)
}

fn crash(job: &Job, whole: &Whole) {
    // On a slow disk the first checkpoints may come late.
    for _ in 0..100 {
        job.clear();
        job.kill_half_way(&job.command(&ALWAYS), whole);
        let checkpoint = job.checkpoint();
        if checkpoint["offset"].as_u64() > Some(0) && checkpoint["output"].as_u64() > Some(0) {
            return;
        }
    }
    panic!("{}: killed before its second checkpoint, always", job.name);
}

/// Puts the file of checkpoints in the place of one that is there, as a run leaves it that is cut off at its very end. The newest
/// checkpoint is that of the end, as this run has it, and the other that of `earlier`.
fn cut_off_at_the_end(job: &Job, left: &[u8], earlier: &Value, ones: u64) {
    let line: Value = serde_json::from_slice(left.split(|&byte| byte == b'\n').next().unwrap()).unwrap();
    let memory: usize = stages(&job.path(STATE)).iter().map(BloomFilter::memory_bytes).sum();
    let mut end = earlier.clone();
    end["ones"] = ones.into();
    end["memory"] = memory.into();
    end["input"] = line["job"]["inputs"].as_array().unwrap().len().into();
    (end["offset"], end["lines"]) = (0.into(), 0.into());
    end["output"] = job.path("out.txt").metadata().unwrap().len().into();
    let text = format!("{{\"job\":{},\"checkpoints\":[{end},{earlier}],\"finished\":true}}", line["job"]);
    fs::write(job.path(CHECKPOINTS), sealed(&text)).unwrap();
}

/// A text with its checksum, as the file of checkpoints has it.
fn sealed(text: &str) -> String {
    format!("{text}\n{:016x}\n", bloomline::KeyHasher::new(0).bytes(text.as_bytes()))
}

#[track_caller]
fn succeed(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
}

/// The contents of a file, decompressed as its name tells, up to where that fails.
fn contents(path: &Path) -> Vec<u8> {
    decode(path.to_str().unwrap(), &fs::read(path).unwrap()).0
}

/// The same command with other arguments.
fn bloomline_like<'a>(command: &'a Command, change: impl Fn(&'a str) -> &'a str) -> Command {
    let mut other = bloomline();
    other.current_dir(command.get_current_dir().unwrap());
    other.args(command.get_args().map(|argument| change(argument.to_str().unwrap())));
    other
}

#[test]
fn a_run_that_failed_goes_on_where_it_ended() {
    let mut whole = Vec::new();
    (0..2000).for_each(|i| writeln!(whole, "{i:04}\t{}", i % 1500).unwrap());
    // A line without a second field, of the same length: files that changed their sizes or times are not resumed.
    let tab = whole.iter().rposition(|&byte| byte == b'\t').unwrap();
    let tab = whole[..tab - 4000].iter().rposition(|&byte| byte == b'\t').unwrap();
    let mut bad = whole.clone();
    bad[tab] = b' ';
    let bad_line = count(&whole[..tab]) + 1;
    for (output, dupes) in [("o", "d"), ("o.gz", "d.zst"), ("o.xz", "d.bz2"), ("o.bz2", "d.xz")] {
        for code in [<[u8]>::to_vec, stored] {
            let bench = Bench::new(&[("before", b"x\t1\n"), ("a", &code(&whole))]);
            let line = format!("dedup -n 2000 --field 2 --state s -o {output} --dupes {dupes} before a");
            assert_eq!(bench.clean(&line), "");
            let outputs = || [decoded(&bench, output), decoded(&bench, dupes)];
            let (expected, state) = (outputs(), bench.read("s"));
            // The 1500 keys, the first one of them in the file before; and the 500 that come again, and that one.
            assert_eq!([count(&expected[0]), count(&expected[1])], [1500, 501]);

            ["s", output, dupes].iter().for_each(|name| fs::remove_file(bench.path(name)).unwrap());
            bench.write("a", &code(&bad));
            let message = bench.refused(&line);
            assert!(message.contains(&format!("\"a\", line {bad_line}:")), "{message}");
            let [first, repeats] = outputs();
            assert_eq!(count(&first) + count(&repeats), bad_line);
            let time = fs::metadata(bench.path("a")).unwrap().modified().unwrap();
            bench.write("a", &code(&whole));
            tells(&bench.refused(&format!("{line} --resume")), &["the input ", "/a\" has changed"]);
            fs::File::options().write(true).open(bench.path("a")).unwrap().set_modified(time).unwrap();
            assert_eq!(bench.clean(&format!("{line} --resume")), "");
            assert!(outputs() == expected, "{output}");
            assert!(bench.read("s") == state && !bench.goes_on("s"));
        }
    }
    let bench = Bench::new(&[("a", b"a\na\nb\n")]);
    // Without a state it begins.
    bench.clean("dedup --state s -o o --resume a");
    assert_eq!(text(&bench.read("o")), "a\nb\n");
    tells(&bench.refused("dedup --state s --resume a"), &["without", "--output"]);
    tells(&bench.refused("dedup -o o --resume a"), &["without", "--state"]);
    let message = refused(fed(bench.command("dedup --state s -o o --resume -"), b"c\n"));
    tells(&message, &["resume", "files", "-o"]);
    assert_eq!(text(&bench.read("o")), "a\nb\n");
}

#[test]
fn with_nothing_there_resuming_is_starting() {
    let job = several();
    let job = Job { before: None, ..job };
    let expected = job.whole();
    job.clear();
    job.complete(true);
    check_whole(&job, &expected);
}

#[test]
fn other_inputs_are_not_resumed() {
    let (job, expected) = crashed(plain());
    let input = fs::read(job.path("in.txt")).unwrap();
    let time = fs::metadata(job.path("in.txt")).unwrap().modified().unwrap();
    for changed in [&input[..input.len() - 1], &[&input[..], b"more\n"].concat()] {
        fs::write(job.path("in.txt"), changed).unwrap();
        let message = job.refused(&mut job.command(&["--resume"]));
        let sizes = format!(" has changed since that run, from {} to {} bytes; ", input.len(), changed.len());
        tells(&message, &["cannot resume", "/in.txt\"", &sizes]);
    }
    // One of the same size has another time.
    let mut rotated = input.clone();
    rotated.rotate_left(1);
    fs::write(job.path("in.txt"), rotated).unwrap();
    let message = job.refused(&mut job.command(&["--resume"]));
    tells(&message, &["cannot resume from \"state.resume\"", "/in.txt\" has changed since that run; "]);
    fs::write(job.path("in.txt"), &input).unwrap();
    File::options().write(true).open(job.path("in.txt")).unwrap().set_modified(time).unwrap();
    fs::write(job.path("more"), "more\n").unwrap();
    fs::write(job.path("renamed"), &input).unwrap();
    let rename = |argument| if argument == "in.txt" { "renamed" } else { argument };
    let mut renamed = bloomline_like(&job.command(&["--resume"]), rename);
    let message = job.refused(job.command(&["--resume"]).arg("more"));
    tells(&message, &["cannot resume", "a run with a number of inputs of 1, not 2"]);
    tells(&job.refused(&mut renamed), &["cannot resume", "with the input ", "/in.txt\", not ", "/renamed\""]);
    // None of that spoiled anything.
    ["more", "renamed"].iter().for_each(|name| fs::remove_file(job.path(name)).unwrap());
    job.complete(true);
    check_whole(&job, &expected);
}

#[test]
fn the_order_of_the_inputs_counts() {
    let (job, expected) = crashed(several());
    let mut swapped = bloomline_like(&job.command(&["--resume"]), |argument| match argument {
        "a.txt" => "c.txt",
        "c.txt" => "a.txt",
        other => other,
    });
    tells(&job.refused(&mut swapped), &["cannot resume", "with the input ", "/a.txt\", not ", "/c.txt\""]);
    job.complete(true);
    check_whole(&job, &expected);
}

#[test]
fn other_options_are_not_resumed() {
    let (job, expected) = crashed(plain());
    let other_job = ["cannot resume from \"state.resume\"", "it belongs to a run with the "];
    for (more, difference) in [
        (&["--invert"][..], "options \"line\", not \"line, inverted\""),
        (&["--annotate"], "options \"line\", not \"line, annotated\""),
        (&["--dupes", "dupes.txt"], "/dupes.txt"),
        (&["-z"], "options \"line\", not \"line, NUL-terminated\""),
    ] {
        let message = job.refused(&mut job.command(&[&["--resume"], more].concat()));
        tells(&message, &other_job);
        tells(&message, &[difference]);
    }
    // Other keys are not those of the state. Where it does not tell its keys, those of the job count.
    let state = fs::read(job.path(STATE)).unwrap();
    let filter = BloomFilter::load(job.path(STATE)).unwrap();
    let mut nameless = BloomFilter::builder().memory(filter.memory_bytes()).probes(filter.probes()).build().unwrap();
    nameless.union(&filter).unwrap();
    for (more, key) in [
        (&["--trim"][..], "line, trimmed"),
        (&["--ignore-case"], "line, case ignored"),
        (&["--field", "1"], "field 1 of lines split at tab"),
        (&["--field", "1", "--delimiter", "/"], "field 1 of lines split at '/'"),
        (&["--json-pointer", "/a"], "/a of JSON lines"),
        (&["--normalize", "url"], "line, normal form of a URL"),
    ] {
        let resume = || job.refused(&mut job.command(&[&["--resume"], more].concat()));
        tells(&resume(), &["cannot use the filter \"state\"", "keys are \"line\"", &format!("\"{key}\"")]);
        nameless.save(job.path(STATE)).unwrap();
        let message = resume();
        tells(&message, &other_job);
        tells(&message, &[&format!("options \"line\", not \"{key}\"")]);
        fs::write(job.path(STATE), &state).unwrap();
    }
    tells(&job.refused(&mut job.command(&["--resume", "--seed", "1"])), &["\"state\"", "seed is 0", " 1"]);
    let swap = |from: &'static str, to: &'static str| {
        let command = job.command(&["--resume"]);
        job.refused(&mut bloomline_like(&command, |argument| if argument == from { to } else { argument }))
    };
    let size = |options: &str| job.bench.json(&format!("plan --json {options}"))[0]["memory_bytes"].to_string();
    let [had, more] = ["-n 30000 -p 1e-9", "-n 40000 -p 1e-9"].map(size);
    tells(&swap("1e-9", "1e-3"), &["\"state\"", "rate of 0.000000001", " 0.001"]);
    tells(&swap("30000", "40000"), &["\"state\"", "-n", &more, &had]);
    tells(&swap("out.txt", "other.txt"), &["cannot resume", "the outputs ", "/out.txt\", not ", "/other.txt\""]);
    assert!(!job.path("other.txt").exists());
    job.complete(true);
    check_whole(&job, &expected);
}

#[test]
fn a_state_that_another_run_changed_is_not_resumed() {
    let changes = [
        ("changed by another run", "build --append -o state"),
        // One that could be resumed itself, and one that could not.
        ("no run with this state was interrupted", "dedup --state state -o out2"),
        ("no run with this state was interrupted", "dedup --state state"),
    ];
    for (reason, arguments) in changes {
        let (job, _) = crashed(plain());
        fs::write(job.path("other"), "not in the input\n").unwrap();
        succeed(job.bench.command(arguments).arg("other"));
        let message = job.refused(&mut job.command(&["--resume"]));
        tells(&message, &[reason]);
    }
}

/// Keys that the state has already set no bit: it is the same state.
#[test]
fn a_state_to_which_nothing_new_was_added_is_resumed() {
    let (job, expected) = crashed(plain());
    let known = contents(&job.path("out.txt"))[..job.checkpoint()["output"].as_u64().unwrap() as usize].to_vec();
    fs::write(job.path("known"), known).unwrap();
    succeed(&mut job.bench.command("build --append -o state known"));
    fs::remove_file(job.path("known")).unwrap();
    job.complete(true);
    check_whole(&job, &expected);
}

#[test]
fn an_older_state_than_the_last_two_is_not_resumed() {
    let (job, _) = crashed(plain());
    let old = fs::read(job.path(STATE)).unwrap();
    let left = fs::read(job.path(CHECKPOINTS)).unwrap();
    job.complete(true);
    let newest = ones(&job.path(STATE));
    let mut checkpoint = serde_json::from_slice::<Value>(left.split(|&byte| byte == b'\n').next().unwrap()).unwrap();
    let mut checkpoint = checkpoint["checkpoints"][0].take();
    checkpoint["ones"] = (newest - 1).into();
    cut_off_at_the_end(&job, &left, &checkpoint, newest);
    fs::write(job.path(STATE), old).unwrap();
    let message = job.refused(&mut job.command(&["--resume"]));
    assert!(message.contains("the state was changed"), "{message}");
}

#[test]
fn an_output_shorter_than_at_the_checkpoint_is_not_gone_on_with() {
    let (job, expected) = crashed(several());
    for (name, key) in [("out.txt", "output"), ("dupes.txt", "dupes")] {
        let whole = fs::read(job.path(name)).unwrap();
        let length = job.checkpoint()[key].as_u64().unwrap() as usize;
        assert!(length > 0);
        for shorter in [0, length - 1] {
            fs::write(job.path(name), &whole[..shorter]).unwrap();
            let message = refused(job.command(&["--resume"]).output().unwrap());
            let (is, was) = (format!(" {shorter} bytes"), format!(" {length} "));
            tells(&message, &["cannot resume", &format!("\"{name}\""), &is, &was, "remove the state"]);
        }
        // What came after the checkpoint is not needed.
        fs::write(job.path(name), &whole[..length]).unwrap();
    }
    job.complete(true);
    check_whole(&job, &expected);
}

#[test]
fn checkpoints_that_are_missing_or_damaged_are_not_resumed() {
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
        (sealed(&line[..line.len() - 1]).as_bytes(), "EOF"),
        (sealed(&line.replace("\"checkpoints\":[{", "\"checkpoints\":[],\"other\":[{")).as_bytes(), "no checkpoint"),
    ] {
        fs::write(job.path(CHECKPOINTS), damaged).unwrap();
        for options in [&["--resume"][..], &[], &["--force"]] {
            tells(&job.refused(&mut job.command(options)), &["checkpoints in \"state.resume\"", why]);
        }
    }
    fs::remove_file(job.path(CHECKPOINTS)).unwrap();
    let message = job.refused(&mut job.command(&["--resume"]));
    tells(&message, &["no run with this state was interrupted", "refusing to overwrite \"out.txt\""]);
    fs::write(job.path(CHECKPOINTS), text).unwrap();
    job.complete(true);
    check_whole(&job, &expected);
}

#[test]
fn without_the_state_its_checkpoints_count_for_nothing() {
    let (job, expected) = crashed(plain());
    fs::remove_file(job.path(STATE)).unwrap();
    // The name of the state may be wrong, and the output holds lines.
    let message = job.refused(&mut job.command(&["--resume"]));
    tells(&message, &["there is no state \"state\"", "\"out.txt\" holds lines", "--force"]);
    succeed(&mut job.command(&["--resume", "--force"]));
    check_whole(&job, &expected);
}

#[test]
fn only_a_run_from_files_to_files_is_resumed() {
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
        tells(&job.refused(&mut command), &["from files to files", "resume", "-o", "--dupes"]);
    }
    tells(&job.refused(&mut dedup(&["in.txt"])), &["without", "--output"]);
    let message = job.refused(&mut dedup(&["-o", "out.txt", "--total", "in.txt"]));
    tells(&message, &["--total", "cannot be used with", "--resume"]);
    job.complete(true);
    check_whole(&job, &expected);
}

/// A run that cannot be resumed leaves nothing behind from which an older one could be.
#[test]
fn a_stream_ends_what_could_be_resumed() {
    for arguments in [&["in.txt"][..], &["-o", "/dev/null", "in.txt"], &["--total", "in.txt"]] {
        let (job, _) = crashed(plain());
        succeed(job.bench.command("dedup --state state").args(arguments));
        let message = job.refused(&mut job.command(&["--resume"]));
        tells(&message, &["no run with this state was interrupted", "refusing to overwrite \"out.txt\""]);
    }
}

/// Without `--resume`, a run begins anew with the state that is there, but not over lines that this state has seen; it is
/// then the one to be resumed.
#[test]
fn of_two_killed_runs_the_second_is_resumed() {
    let (mut job, _) = crashed(several());
    let state = fs::read(job.path(STATE)).unwrap();
    let left = job.files();
    job.before = Some(state);
    let expected = job.whole();
    job.clear();
    // The inputs keep their times.
    left.iter().filter(|(name, _)| !job.path(name).exists()).for_each(|(name, bytes)| job.bench.write(name, bytes));
    tells(&job.refused(&mut job.command(&[])), &["out.txt", "--resume", "another file"]);
    fs::remove_file(job.path("out.txt")).unwrap();
    tells(&job.refused(&mut job.command(&[])), &["dupes.txt", "--resume", "another file"]);
    fs::remove_file(job.path("dupes.txt")).unwrap();
    job.kill_half_way(&job.command(&["--checkpoint", "1h"]), &expected);
    let checkpoint = job.checkpoint();
    assert_eq!((checkpoint["input"].as_u64(), checkpoint["offset"].as_u64()), (Some(0), Some(0)));
    job.complete(true);
    check_whole(&job, &expected);
}

#[test]
fn beginning_anew_as_a_refusal_advises_loses_no_line() {
    let (job, expected) = crashed(plain());
    File::create(job.path("out.txt")).unwrap();
    tells(&job.refused(&mut job.command(&["--resume"])), &["remove the state"]);
    fs::remove_file(job.path(STATE)).unwrap();
    job.complete(false);
    check_whole(&job, &expected);
}

#[test]
fn a_limit_is_the_same_when_resumed() {
    let lines = lines(1, 60_000);
    let mut seen = HashSet::new();
    let one_too_many = 1 + lines.iter().position(|line| seen.insert(line) && seen.len() > 25_000).unwrap();
    for when in ["warn", "stop"] {
        let line = format!("dedup -s state -n 25000 --when-full {when} -o out.txt");
        let mut job = Job::new("limited", &[("in.txt", ended(&lines, b'\n'))], &line, Kind::Same);
        let stopped = &*format!("stopped at \"in.txt\", line {one_too_many}:").leak();
        job.failure = (when == "stop").then_some(stopped);
        let (job, expected) = crashed(job);
        let message = text(&job.loud(&["--resume"]).output().unwrap().stderr);
        assert_eq!(message.matches('\n').count(), 1, "{message}");
        // The run may have been killed with more keys than planned, which another warning tells.
        let said = if when == "stop" { [stopped, "full"] } else { ["warning", " 25000"] };
        tells(&message, &said);
        check_whole(&job, &expected);
    }
}

#[test]
fn another_way_with_errors_is_not_resumed() {
    let (job, _) = crashed(faulty());
    let skip = |argument| if argument == "keep" { "skip" } else { argument };
    let message = job.refused(&mut bloomline_like(&job.command(&["--resume"]), skip));
    tells(&message, &["cannot resume from \"state.resume\"", "--on-error keep, not skip"]);
}

/// The last checkpoint says that it is of the end, and is written before the state.
#[test]
fn an_output_whose_last_state_was_not_saved_is_not_begun_anew() {
    let (job, expected) = crashed(plain());
    let (state, left) = (fs::read(job.path(STATE)).unwrap(), fs::read(job.path(CHECKPOINTS)).unwrap());
    let checkpoint = job.checkpoint();
    job.complete(true);
    cut_off_at_the_end(&job, &left, &checkpoint, ones(&job.path(STATE)));
    fs::write(job.path(STATE), state).unwrap();
    tells(&job.refused(&mut job.command(&[])), &["out.txt", "--resume", "another file"]);
    job.complete(true);
    check_whole(&job, &expected);
    // At the end of the last state nothing is left to continue, and the lines are still nowhere else.
    let message = job.refused(&mut job.command(&[]));
    tells(&message, &["refusing to overwrite \"out.txt\"", "the state \"state\"", "--force"]);
    assert!(!message.contains("--resume"), "{message}");
    succeed(&mut job.command(&["--force"]));
    assert_eq!(contents(&job.path("out.txt")), b"");
}

#[test]
fn a_state_is_shrunk_at_the_end_alone() {
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
    // Another run would need the planned size.
    let message = job.refused(&mut job.command(&[]));
    tells(&message, &["\"state\"", &format!("-n asks for {planned} bytes, but it has {small}")]);

    // The last checkpoint is written before the state, and belongs to the one that is shrunk. So it does even if as many bits
    // are set in the other.
    for bits in [ones(&job.path(STATE)), checkpoint["ones"].as_u64().unwrap()] {
        cut_off_at_the_end(&job, &left, &checkpoint, bits);
        fs::write(job.path(STATE), &state).unwrap();
        tells(&job.refused(&mut job.command(&[])), &["out.txt", "--resume", "another file"]);
        job.complete(true);
        check_whole(&job, &expected);
    }

    // A run that failed may go on, so its state has the planned size.
    let bench = Bench::new(&[("a", b"1\ta\nno tab\n")]);
    bench.refused("dedup -n 100000 --when-full warn --shrink --field 2 --state s -o o a");
    assert_eq!(blocks(&bench.read("s")).len(), planned);
    // A smaller state of another run is not resumed.
    bench.write("b", b"1\tb\n1\tc\n");
    bench.clean("dedup -n 100000 --when-full warn --shrink --field 2 --state t -o p b");
    fs::copy(bench.path("t"), bench.path("s")).unwrap();
    let line = "dedup -n 100000 --shrink --field 2 --on-error skip --state s -o o --resume a";
    tells(&bench.refused(line), &["cannot resume", "the state was changed by another run"]);
}

/// A run that is resumed once more changes nothing, whatever it wrote to, also after others with its state.
#[test]
fn a_run_that_is_whole_is_not_begun_again() {
    let documents: String = (0..3).map(|i| format!("{{\"text\":\"{i}\",\"score\":{i}}}\n")).collect();
    let bench = Bench::new(&[("a", b"1\n1\n2\n"), ("b", b"2\n3\n"), ("c", documents.as_bytes())]);
    let whole = "corpus --by document --ngram 0";
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
        format!("{whole} -s v --keep max:/score --pairs p9 -o o9 c"),
        format!("{whole} -s v --count --output-dir o10 --manifest m10 c"),
        "corpus -s w --near 0.8 --exact --clusters q11 -o o11 c".to_owned(),
    ];
    for line in &lines {
        bench.clean(line);
    }
    // One that cannot be resumed forgets none of them.
    assert_eq!(bench.clean("dedup -s s b"), "");
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
        tells(&message, &["nothing is left to do", "already complete"]);
        assert_eq!(bench.clean(&format!("{line} --resume -q")), "");
        assert!(files() == before, "{line}");
    }
    // Nor is one that left something out any better.
    let line = "dedup -q -s x --on-error skip -o o12 a missing";
    assert_eq!(["", " --resume"].map(|more| bench.run(&format!("{line}{more}")).status.code()), [Some(1); 2]);
    // An output of another length than the run left is told, because the state knows its lines.
    for (line, output) in
        [(&lines[0], "o"), (&lines[1], "d2"), (&lines[4], "o3/c"), (&lines[5], "p5"), (&lines[8], "o8/c")]
    {
        let whole = bench.read(output);
        for changed in [&whole[..whole.len() / 2], b"", &[&whole[..], b"more\n"].concat()] {
            bench.write(output, changed);
            let told = bench.refused(&format!("{line} --resume -q"));
            tells(&told, &["this run is complete", "was changed since", "another state"]);
            assert_eq!(bench.read(output), changed);
        }
        bench.write(output, &whole);
        bench.clean(&format!("{line} --resume -q"));
    }
    // What it wrote may be moved away.
    fs::rename(bench.path("o"), bench.path("moved")).unwrap();
    let output = bench.run(&format!("{} --resume", lines[0]));
    tells(&text(&output.stderr), &["already complete", "\"o\" no longer exists"]);
    assert!(output.status.success() && !bench.path("o").exists());
    // Another run that writes there makes it another matter, and so does a state that is gone.
    bench.clean("dedup -s s --force -o o2 c");
    tells(&bench.refused(&format!("{} --resume", lines[1])), &["refusing to overwrite", "nothing is left to do"]);
    fs::remove_file(bench.path("t")).unwrap();
    tells(&bench.refused(&format!("{} --resume", lines[5])), &["there is no state \"t\"", "\"o5\" holds lines"]);
    assert_eq!(text(&bench.read("o5")), "1\n2\n3\n");
    // Other inputs are those of the next day.
    bench.write("a", b"4\n");
    bench.clean("dedup -s s --resume -o o a");
    assert_eq!(text(&bench.read("o")), "4\n");
}

/// A run is whole only with a state that has its lines: the one that it or a later run left.
#[test]
fn a_run_that_is_whole_is_so_with_its_state_alone() {
    for (size, target, output) in
        [("", "-o o", "o"), ("-n 100 --when-full warn ", "--output-dir f", "f/b"), ("", "--pairs p -o o", "o")]
    {
        let bench = Bench::new(&[("a", b"1\n"), ("b", b"2\n"), ("c", b"3\n"), ("d", b"4\n")]);
        let copy = |from: &str, to: &str| _ = fs::copy(bench.path(from), bench.path(to)).unwrap();
        let [first, second] =
            ["-o first a".to_owned(), format!("{target} b")].map(|end| format!("dedup {size}-s s {end}"));
        bench.clean(&first);
        copy("s", "before");
        bench.clean(&second);
        copy("s", "after");
        // A copy from before it, and one that was built with as many other keys.
        bench.clean(&format!("dedup {size}-s other -o other-1 c"));
        bench.clean(&format!("dedup {size}-s other -o other-2 d"));
        for state in ["before", "other"] {
            copy(state, "s");
            let told = bench.refused(&format!("{second} --resume"));
            tells(&told, &["this run is complete", "\"s\" was not saved by it", "restore the state", "--force"]);
            assert_eq!(text(&bench.read(output)), "2\n");
        }
        // The first run left that copy, so it is whole with it, and with what a later one left.
        for state in ["before", "after"] {
            copy(state, "s");
            tells(&text(&bench.run(&format!("{first} --resume")).stderr), &["already complete"]);
        }
        tells(&text(&bench.run(&format!("{second} --resume")).stderr), &["already complete"]);
        // Its lines would not be printed again.
        tells(
            &bench.refused(&format!("{second} --resume --force")),
            &["nothing is left to do", "already complete", "remove the state"],
        );
        assert_eq!(text(&bench.read(output)), "2\n");
        // Another run with the copy makes it no better.
        copy("before", "s");
        bench.clean(&format!("dedup {size}-s s c"));
        tells(&text(&bench.run(&format!("{first} --resume")).stderr), &["already complete"]);
        tells(&bench.refused(&format!("{second} --resume")), &["refusing to", "--force"]);
        copy("after", "s");
        tells(&bench.refused(&format!("{second} --resume")), &["refusing to", "--force"]);
        // By force it begins anew.
        copy("before", "s");
        bench.write(output, b"");
        bench.clean(&format!("{second} --resume --force"));
        assert_eq!(text(&bench.read(output)), "2\n");
        tells(&text(&bench.run(&format!("{second} --resume")).stderr), &["already complete"]);
    }
    // A later run that failed left a state of its own.
    let bench = Bench::new(&[("a", b"1\t1\n"), ("b", b"2\t2\nbad\n")]);
    let [first, second] = ["o a", "p b"].map(|end| format!("dedup --field 2 -s s -o {end}"));
    bench.clean(&first);
    let before = bench.read("s");
    tells(&bench.refused(&second), &["line 2"]);
    assert!(bench.read("s") != before && bench.goes_on("s"));
    tells(&text(&bench.run(&format!("{first} --resume")).stderr), &["already complete"]);
    bench.write("s", b"none");
    tells(&bench.refused(&format!("{first} --resume")), &["\"s\" was not saved by it"]);
}

/// Each step of a script is resumed, whether it is whole, was killed, or never began.
#[test]
fn a_script_that_died_is_started_again_as_it_is() {
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
            // The third is killed when an output grows beyond the limit.
            assert_eq!((bench.path("grams.bloom").exists(), bench.path("4.jsonl").exists()), (true, limit.is_none()));
        }
        ["1/a.jsonl", "1/b.jsonl", "3/a.jsonl", "3/b.jsonl", "3.jsonl", "4.jsonl", "pairs.jsonl"]
            .map(|name| bench.read(name))
    };
    let expected = run(&[None]);
    assert!(run(&[Some("250"), None, None]) == expected);
}

/// When a signal comes, all is saved, and the run has not ended.
#[test]
fn a_signal_after_the_end_leaves_a_run_that_can_be_resumed() {
    for target in ["-o o", "--output-dir o --manifest m"] {
        let bench = Bench::new(&[("a", b"a\nb\na\n")]);
        let line = format!("dedup -s s {target} --stats --verify 1000000000000000 a");
        let live = Live::new(bench.command(&line));
        wait_for(|| bench.path("s.resume").exists() && !bench.goes_on("s"));
        live.signal("TERM");
        assert_eq!(live.end().0, Some(143));
        let output = bench.run(&format!("{line} --resume"));
        tells(&text(&output.stderr), &["already complete"]);
        assert!(output.status.success());
    }
}

#[test]
fn figures_say_whether_a_run_was_resumed() {
    let (job, whole) = crashed(plain());
    let output = job.command(&["--resume", "--stats=json"]).output().unwrap();
    let figures = stats(&output);
    assert!(figures["resumed"] == true && number(&figures, "lines") < 30_000.0, "{figures}");
    crash(&job, &whole);
    let output = job.command(&["--resume", "--stats"]).output().unwrap();
    tells(&text(&output.stderr), &["resumed ", "since the checkpoint"]);
    // One that began has none.
    job.clear();
    let output = job.command(&["--resume", "--stats=json"]).output().unwrap();
    assert!(stats(&output).get("resumed").is_none() && number(&stats(&output), "lines") == 30_000.0);
}

/// Files that stay are of runs that were cut off. So the same command runs every day, and may be tried again.
#[test]
fn a_run_that_is_whole_leaves_nothing_to_go_on_with() {
    let bench = Bench::new(&[("first", b"a\n"), ("second", b"a\nb\n"), ("third", b"b\nc\n")]);
    bench.clean("dedup --state s --checkpoint 1m -o o1 first");
    assert!(!bench.goes_on("s"));
    // Nothing of it was begun.
    bench.clean("dedup --state s --checkpoint 1m -o o2 --resume second");
    bench.clean("dedup --state s --checkpoint 1m --output-dir o3 --resume third");
    assert_eq!(["o1", "o2", "o3/third"].map(|name| text(&bench.read(name))), ["a\n", "b\n", "c\n"]);
    assert!(!bench.goes_on("s"));
    // A run that is cut off between its last two steps leaves the file.
    let (job, _) = crashed(plain());
    let (left, checkpoint) = (fs::read(job.path(CHECKPOINTS)).unwrap(), job.checkpoint());
    job.complete(true);
    cut_off_at_the_end(&job, &left, &checkpoint, ones(&job.path(STATE)));
    fs::write(job.path("more.txt"), "not in the input\n").unwrap();
    succeed(job.bench.command("dedup --state state -o out2 --resume more.txt").arg("--quiet"));
    assert_eq!(fs::read(job.path("out2")).unwrap(), b"not in the input\n");
}

#[test]
fn a_checkpoint_that_no_run_can_reach_is_refused() {
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
        // With what follows it, for the other checkpoint may have a number that begins like this one.
        let damaged = line.replace(&format!("\"{name}\":{},", at(name)), &format!("\"{name}\":{value},"));
        fs::write(job.path(CHECKPOINTS), sealed(&damaged)).unwrap();
        let message = job.refused(&mut job.command(&["--resume"]));
        tells(&message, &["checkpoints in \"state.resume\"", &format!("is {value}, but can be {most} at most")]);
    }
    fs::write(job.path(CHECKPOINTS), file).unwrap();
    job.complete(true);
    check_whole(&job, &expected);

    // How long compressed contents are is known when they are read.
    let (job, _) = crashed(gzipped());
    let file = fs::read_to_string(job.path(CHECKPOINTS)).unwrap();
    let offset = job.checkpoint()["offset"].to_string();
    let far = file.lines().next().unwrap().replace(&format!("\"offset\":{offset},"), "\"offset\":1000000000000000,");
    fs::write(job.path(CHECKPOINTS), sealed(&far)).unwrap();
    let message = refused(job.command(&["--resume"]).output().unwrap());
    tells(&message, &["cannot read \"in\"", "the checkpoint is at byte 1000000000000000"]);
}
