//! Signals and kills: printed lines are saved in the state, and no temporary file remains.

use crate::common::{
    Bench, assert_contains_all, bloomline, expect_success, run_with_stdin, text, url_lines, with_default_signals,
};
use crate::corpus::read_decoded;
use crate::live::{RunningCommand, wait_for};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, symlink};
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread::{self, sleep};
use std::time::Duration;

/// The signals that end a run, and the exit codes.
const ENDING: [(&str, i32); 3] = [("INT", 130), ("TERM", 143), ("HUP", 129)];

const SIGXFSZ: i32 = 25;

/// The flag of a file for non-blocking calls.
const O_NONBLOCK: i32 = if cfg!(target_os = "linux") { 0o4000 } else { 4 };

/// Options for a filter of 62 MB, which takes some time to save.
const LARGE: &str = "-n 12000000 -p .000001";

/// Returns the command as the last one of a shell script. Signals that the test process ignores are reset.
fn shell(bench: &Bench, script: &str, line: &str) -> Command {
    let mut command = with_default_signals("INT,TERM,HUP,XFSZ");
    command.args(["sh", "-c", &format!("{script} exec \"$0\" \"$@\"")]);
    command.arg(bloomline().get_program()).args(line.split(' ')).current_dir(bench.0.path());
    command
}

fn start_run(bench: &Bench, line: &str) -> RunningCommand {
    RunningCommand::new(shell(bench, "", line))
}

/// Returns lines that exceed the capacity of a pipe, so that a write of them returns while the command is running.
fn many_lines() -> Vec<u8> {
    b"many\n".repeat(1 << 16)
}

/// Returns the temporary files and locks in the folder.
fn leftovers(bench: &Bench) -> Vec<String> {
    let names = fs::read_dir(bench.0.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| name.ends_with(".tmp") || name.ends_with(".lock")).collect();
    names.sort();
    names
}

/// Starts a command and stops it while it saves a large filter. On a busy machine, several attempts may be necessary.
fn stopped_in_save(bench: &Bench, start: impl Fn() -> RunningCommand) -> RunningCommand {
    let saved = || leftovers(bench).iter().map(|name| bench.path(name).metadata().map_or(0, |file| file.len())).max();
    for _ in 0..100 {
        let mut running = start();
        // Another temporary file, which is small, may precede the filter.
        running.stop_when(|| saved().is_some_and(|bytes| bytes > 1 << 20));
        if saved().is_some_and(|bytes| (1 << 20..20 << 20).contains(&bytes)) {
            return running;
        }
        drop(running);
        leftovers(bench).iter().for_each(|name| fs::remove_file(bench.path(name)).unwrap());
    }
    panic!("saves are over too soon");
}

/// Removes files that may exist.
fn remove_files(bench: &Bench, names: &[&str]) {
    names.iter().for_each(|name| _ = fs::remove_file(bench.path(name)));
}

#[test]
fn signals_save_the_printed_lines() {
    for (signal, code) in ENDING {
        for options in ["", "-n 100 ", "--checkpoint 1h "] {
            let bench = Bench::new(&[]);
            let mut running = start_run(&bench, &format!("dedup {options}--state s -"));
            running.write_input(b"a\nb\na\npart of a line");
            assert_eq!((running.line(), running.line()), ("a".to_owned(), "b".to_owned()));
            running.signal(signal);
            let (ended, lines, stderr) = running.end();
            assert_eq!((ended, lines, stderr.as_str()), (Some(code), vec![], ""), "{options}");
            let again = run_with_stdin(bench.command(&format!("dedup {options}--state s -")), b"c\nb\na\n");
            assert_eq!(expect_success(again), b"c\n", "{options}");
        }
        // A compressed output is complete.
        let bench = Bench::new(&[]);
        let mut running = start_run(&bench, "dedup -n 10 --checkpoint 10ms --state s -o o.gz --dupes d -");
        running.write_input(b"a\nb\na\n");
        // The state shows when the lines are processed.
        wait_for(|| {
            bench.path("s").exists() && run_with_stdin(bench.command("check --total -s s"), b"a\nb\n").stdout == b"2\n"
        });
        running.signal(signal);
        assert_eq!(running.end().0, Some(code));
        assert_eq!(
            (text(&read_decoded(&bench, "o.gz")), text(&bench.read("d"))),
            ("a\nb\n".to_owned(), "a\n".to_owned())
        );
    }
}

/// `nohup` ignores signals in the same way.
#[test]
#[cfg(target_os = "linux")]
fn ignored_signals_remain_ignored() {
    for (signal, _) in ENDING {
        for (line, printed) in [("dedup --total --state s -", "2"), ("check --total -s f", "1")] {
            let bench = Bench::new(&[("a", b"a\n")]);
            bench.run_ok("build -o f a");
            let mut running = RunningCommand::new(shell(&bench, &format!("trap '' {signal};"), line));
            running.write_input(&many_lines());
            running.signal(signal);
            running.write_input(&many_lines());
            running.write_input(b"a\n");
            running.close_input();
            assert_eq!(running.end(), (Some(0), vec![printed.to_owned()], String::new()), "{signal} {line}");
        }
    }
}

#[test]
fn signals_end_other_commands_immediately() {
    let bench = Bench::new(&[("a", b"a\n")]);
    bench.run_ok("build -n 10 --no-shrink -o f a");
    let before = bench.read("f");
    for (signal, code) in ENDING {
        for line in ["build -n 10 -o new -", "build --append -o f -", "check --total -s f -"] {
            let mut running = start_run(&bench, line);
            running.write_input(&many_lines());
            running.signal(signal);
            assert_eq!(running.end(), (Some(code), vec![], String::new()), "{line}");
            assert!(!bench.path("new").exists() && bench.read("f") == before, "{line}");
        }
    }
}

#[test]
fn signals_remove_incomplete_saves() {
    let bench = Bench::new(&[("a", b"a\n"), ("b", b"b\n")]);
    bench.run_ok(&format!("build {LARGE} --no-shrink -o before a"));
    let new = format!("build {LARGE} --no-shrink -o new a");
    for ((signal, code), line) in ENDING.iter().zip(["build --append -o first b", "merge before -o merged", &new]) {
        let running = stopped_in_save(&bench, || {
            remove_files(&bench, &["first", "merged", "new"]);
            fs::copy(bench.path("before"), bench.path("first")).unwrap();
            start_run(&bench, line)
        });
        running.signal(signal);
        running.signal("CONT");
        assert_eq!(running.end(), (Some(*code), vec![], String::new()), "{line}");
        assert_eq!(leftovers(&bench), [""; 0], "{line}");
        assert!(!bench.path("new").exists() && !bench.path("merged").exists());
        assert_eq!(bench.run("check --total -s first b").stdout, b"0\n", "{line}");
    }
}

/// After the first signal, the state is saved. The second signal ends the run without waiting for the save.
#[test]
fn a_second_signal_ends_a_save() {
    for signals in [1, 2] {
        let bench = Bench::new(&[]);
        let running = stopped_in_save(&bench, || {
            remove_files(&bench, &["s", "s.resume"]);
            let mut running = start_run(&bench, &format!("dedup {LARGE} --state s -"));
            running.write_input(b"a\n");
            assert_eq!(running.line(), "a");
            running.signal("INT");
            running
        });
        if signals == 2 {
            running.signal("HUP");
        }
        running.signal("CONT");
        let (code, _, stderr) = running.end();
        assert_eq!((code, leftovers(&bench)), (Some(if signals == 2 { 129 } else { 130 }), vec![]));
        if signals == 2 {
            assert_contains_all(&stderr, &["\"s\"", "last checkpoint"]);
        } else {
            assert_eq!(stderr, "");
        }
        // The state is also saved at the start.
        assert_eq!(
            run_with_stdin(bench.command("check --total -s s"), b"a\n").stdout,
            if signals == 2 { b"0\n" } else { b"1\n" }
        );
    }
}

/// Files that may belong to another process are kept.
#[test]
fn leftovers_of_a_kill_are_removed_by_the_next_run() {
    let bench = Bench::new(&[("a", b"a\n")]);
    let long = "l".repeat(250);
    // The kernel kills each run in the middle of a save, at the write that exceeds 256 KiB.
    const SIZE: &str = "-n 100000 -p .000001";
    for line in [
        format!("build {SIZE} --no-shrink -o target a"),
        format!("dedup {SIZE} --state target a"),
        "merge target -o merged".to_owned(),
        format!("build {SIZE} --no-shrink -o {long} a"),
    ] {
        let killed = shell(&bench, "ulimit -c 0; ulimit -f 512;", &line).output().unwrap();
        assert_eq!(killed.status.signal(), Some(SIGXFSZ), "{line}");
        // The temporary file and the lock are left.
        assert_eq!(leftovers(&bench).len(), 2, "{line}");
        assert_eq!(bench.run(&line).status.code(), Some(0), "{line}");
        assert_eq!(leftovers(&bench), [""; 0], "{line}");
    }
    // Temporary files of the checkpoints are removed too. A link has its target's temporary files, not those of its own name.
    symlink("target", bench.path("link")).unwrap();
    bench.write(".bloomline-target-a1B2c3.tmp", b"");
    bench.write(".bloomline-target.resume-a1B2c3.tmp", b"");
    let others = [
        ".bloomline-link.resume-a1B2c3.tmp",
        ".bloomline-target-a1B2c.tmp",
        ".bloomline-target-a1B2c3-d4E5f6.tmp",
        ".bloomline-target-a1B2c3.tmp.tmp",
        ".bloomline-targeta1B2c3.tmp",
        ".bloomline-targets-a1B2c3.tmp",
        "bloomline-target-a1B2c3.tmp",
    ];
    others.iter().for_each(|name| bench.write(name, b""));
    bench.run_ok("dedup --state link a");
    assert_eq!(leftovers(&bench), others);
}

/// If the reader stops, unprinted lines are not saved in the state.
#[test]
fn signals_end_a_run_with_a_blocked_output() {
    let bench = Bench::new(&[]);
    bench.write("lines", &url_lines(0..300_000));
    // Returns a command that has printed its first line, and its reader. Each run has a new pipe, because a process of another
    // test may still have the pipe of an earlier run open.
    let start_blocked = |options: &str, pipe: &str| {
        let pipe = bench.fifo(pipe);
        let running = start_run(&bench, &format!("dedup {options}"));
        let mut reader = BufReader::new(File::open(&pipe).unwrap());
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        assert_eq!(line, "https://example.org/0\n", "{options}");
        (running, reader)
    };
    let cases = [("--state s -o PIPE", Some("s")), ("--state t -o out --dupes PIPE", Some("t")), ("-o PIPE", None)];
    let mut runs = Vec::new();
    for ((signal, code), (options, state)) in ENDING.into_iter().zip(cases) {
        let (running, reader) = start_blocked(&format!("{options} lines lines").replace("PIPE", signal), signal);
        running.signal(signal);
        runs.push((running, reader, code, state));
    }
    // All runs wait for their readers at the same time, for a second.
    for (running, _reader, code, state) in runs {
        let (ended, _, stderr) = running.end();
        assert_eq!(ended, Some(code), "{stderr}");
        if let Some(state) = state {
            assert_contains_all(&stderr, &[&format!("{state:?}"), "last checkpoint"]);
            // The state is the one saved at the start.
            assert_eq!(bench.run(&format!("check --total -s {state} lines")).stdout, b"0\n", "{state}");
        }
        assert_eq!(stderr.matches('\n').count(), usize::from(state.is_some()), "{stderr}");
    }
    assert_eq!(leftovers(&bench), [""; 0]);
    // A reader that continues gets all printed lines. On a busy machine, even such a reader may need more than a second.
    let read_on = |pipe: &str| {
        remove_files(&bench, &["u", "u.resume"]);
        let (running, reader) = start_blocked(&format!("--state u -o {pipe} lines"), pipe);
        running.signal("TERM");
        (1 + reader.lines().count(), running.end())
    };
    let in_time =
        |(_, (_, _, stderr)): &(usize, (Option<i32>, Vec<String>, String))| !stderr.contains("last checkpoint");
    let (printed, ended) = (0..10).map(|i| read_on(&format!("pipe{i}"))).find(in_time).expect("a reader in time");
    assert_eq!(ended, (Some(143), vec![], String::new()));
    assert_eq!(bench.run_ok("dedup --total --state u lines"), format!("{}\n", 300_000 - printed));
}

/// One output is blocked while another continues.
#[test]
fn signals_end_a_run_with_one_blocked_output() {
    let bench = Bench::new(&[]);
    let lines: Vec<u8> = (0..300_000).flat_map(|i| url_lines(i..i + 1).repeat(2)).collect();
    bench.write("lines", &lines);
    let [blocked, drained] = ["blocked", "drained"].map(|name| bench.fifo(name));
    let running = start_run(&bench, "dedup -j 4 --compress gzip:1 -o blocked --dupes drained lines");
    let mut blocked = File::options().read(true).write(true).custom_flags(O_NONBLOCK).open(blocked).unwrap();
    let read = AtomicUsize::new(0);
    thread::scope(|scope| {
        scope.spawn(|| {
            let (mut drained, mut piece) = (File::open(drained).unwrap(), vec![0; 1 << 16]);
            while let count @ 1.. = drained.read(&mut piece).unwrap() {
                read.fetch_add(count, Relaxed);
            }
        });
        // One pipe is full, and all bytes for the other pipe are read.
        while blocked.write(b"\n").is_ok() {
            sleep(Duration::from_millis(10));
        }
        let mut before = usize::MAX;
        while before != read.load(Relaxed) {
            before = read.load(Relaxed);
            sleep(Duration::from_millis(500));
        }
        running.signal("INT");
        assert_eq!(running.end().0, Some(130));
    });
}

/// At that time, no output is written, and a long report does not delay the end.
#[test]
fn signals_end_work_between_and_after_passes() {
    let document = format!("{{\"text\":\"{}\"}}\n", "word ".repeat(15));
    let bench = Bench::new(&[("lines", &b"line\n".repeat(60_000)), ("texts", document.repeat(10_000).as_bytes())]);
    bench.write("test", document.as_bytes());
    let lines = [
        ("dedup --pairs PIPE lines", " -s a"),
        ("dedup --clusters PIPE lines", " -s b"),
        ("corpus --near 0.8 --pairs PIPE texts", " -s c"),
        ("corpus --against test --report PIPE texts", ""),
    ];
    for ((line, state), (signal, code)) in lines.into_iter().zip(ENDING.into_iter().cycle()) {
        bench.run_ok(&format!("{} -o /dev/null", line.replace("PIPE", "report")));
        let whole = bench.read("report").len();
        let pipe = bench.fifo("pipe");
        let running = start_run(&bench, &format!("{}{state} -o out", line.replace("PIPE", "pipe")));
        let mut reader = File::open(pipe).unwrap();
        // The run is between two passes and waits for the pipe.
        reader.read_exact(&mut [0]).unwrap();
        running.signal(signal);
        // The reader continues, so the run does not end because of a blocked output.
        let (mut read, mut piece) = (1, vec![0; 1 << 16]);
        while let count @ 1.. = reader.read(&mut piece).unwrap() {
            read += count;
            sleep(Duration::from_millis(200));
        }
        assert_eq!(running.end(), (Some(code), vec![], String::new()), "{line}");
        assert!(read < whole, "{line}: {read} of {whole}");
        assert_eq!(bench.read("out"), b"");
        fs::remove_file(bench.path("pipe")).unwrap();
    }
    assert_eq!(leftovers(&bench), [""; 0]);
}

#[test]
fn a_signal_ends_a_measurement() {
    let bench = Bench::new(&[("a", b"a\nb\na\n")]);
    bench.run_ok("build -o f a");
    let (pipe, filter) = (bench.fifo("pipe"), bench.read("f"));
    for (signal, code) in ENDING {
        let running = start_run(&bench, "check --verify 1000000000000000 -s pipe");
        // The command opens the pipe after it has installed its signal handlers.
        fs::write(&pipe, &filter).unwrap();
        running.signal(signal);
        assert_eq!(running.end(), (Some(code), vec![], String::new()));
    }
}

#[test]
fn checkpoints_survive_a_kill() {
    let bench = Bench::new(&[]);
    let mut running = RunningCommand::new(bench.command("dedup --state s --checkpoint 20ms -"));
    running.write_input(b"a\nb\n");
    wait_for(|| {
        bench.path("s").exists() && run_with_stdin(bench.command("check --total -s s"), b"a\nb\n").stdout == b"2\n"
    });
    running.signal("KILL");
    // The lines in the state were printed.
    assert_eq!(running.end().1, ["a", "b"]);
    assert_eq!(expect_success(run_with_stdin(bench.command("dedup --state s"), b"b\nc\na\n")), b"c\n");
    for (line, parts) in
        [("--checkpoint 1m a", ["without", "--state"]), ("--checkpoint 0s --state s a", ["--checkpoint", "'0s'"])]
    {
        assert_contains_all(&bench.run_err(&format!("dedup {line}")), &parts);
    }
}

#[test]
fn files_of_one_run_have_one_mode() {
    let bench = Bench::new(&[("a", b"a\n")]);
    let run = shell(&bench, "umask 027;", "dedup --state s -o o --dupes d --checkpoint 1h a").status().unwrap();
    assert!(run.success());
    for name in ["s", "o", "d"] {
        assert_eq!(bench.path(name).metadata().unwrap().permissions().mode() & 0o777, 0o640, "{name}");
    }
}
