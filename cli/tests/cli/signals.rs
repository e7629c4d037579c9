//! Signals and kills: what was printed is remembered, and no temporary file stays behind.

use crate::common::{Bench, bloomline, clean, fed, number, numbers, tells, text};
use crate::corpus::decoded;
use crate::live::{Live, wait_for};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, symlink};
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread::{self, sleep};
use std::time::Duration;

/// The signals that ask to end, and the exit codes.
const ASKING: [(&str, i32); 3] = [("INT", 130), ("TERM", 143), ("HUP", 129)];

const SIGXFSZ: i32 = 25;

/// The flag of a file on which no call waits.
const O_NONBLOCK: i32 = if cfg!(target_os = "linux") { 0o4000 } else { 4 };

/// A filter of 62 MB, whose save takes a while.
const LARGE: &str = "-n 12000000 -p .000001";

/// The command after a piece of shell script. No other signal is ignored, however the tests were started.
fn shell(bench: &Bench, script: &str, line: &str) -> Command {
    let mut command = Command::new("env");
    command.args(["--default-signal=INT,TERM,HUP,XFSZ", "sh", "-c", &format!("{script} exec \"$0\" \"$@\"")]);
    command.arg(bloomline().get_program()).args(line.split(' ')).current_dir(bench.0.path());
    command
}

fn live(bench: &Bench, line: &str) -> Live {
    Live::new(shell(bench, "", line))
}

/// So many lines that whoever takes them in is awake.
fn many() -> Vec<u8> {
    b"many\n".repeat(1 << 16)
}

/// The temporary files and locks in the folder.
fn leftovers(bench: &Bench) -> Vec<String> {
    let names = fs::read_dir(bench.0.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| name.ends_with(".tmp") || name.ends_with(".lock")).collect();
    names.sort();
    names
}

/// A command that is stopped while it saves a large filter, long before it is done. It may be started several times, until a busy
/// machine lets it be stopped in time.
fn stopped_in_save(bench: &Bench, start: impl Fn() -> Live) -> Live {
    let saved = || leftovers(bench).iter().map(|name| bench.path(name).metadata().map_or(0, |file| file.len())).max();
    for _ in 0..100 {
        let mut live = start();
        // Another temporary file may come first, and is small.
        live.stop_when(|| saved().is_some_and(|bytes| bytes > 1 << 20));
        if saved().is_some_and(|bytes| (1 << 20..20 << 20).contains(&bytes)) {
            return live;
        }
        drop(live);
        leftovers(bench).iter().for_each(|name| fs::remove_file(bench.path(name)).unwrap());
    }
    panic!("saves are over too soon");
}

/// Removes files that a run may have left.
fn forget(bench: &Bench, names: &[&str]) {
    names.iter().for_each(|name| _ = fs::remove_file(bench.path(name)));
}

#[test]
fn signals_save_what_was_printed() {
    for (signal, code) in ASKING {
        for options in ["", "-n 100 ", "--checkpoint 1h "] {
            let bench = Bench::new(&[]);
            let mut live = live(&bench, &format!("dedup {options}--state s -"));
            live.say(b"a\nb\na\npart of a line");
            assert_eq!((live.line(), live.line()), ("a".to_owned(), "b".to_owned()));
            live.signal(signal);
            let (ended, lines, said) = live.end();
            assert_eq!((ended, lines, said.as_str()), (Some(code), vec![], ""), "{options}");
            let again = fed(bench.command(&format!("dedup {options}--state s -")), b"c\nb\na\n");
            assert_eq!(clean(again), b"c\n", "{options}");
        }
        // An output that is compressed has its end.
        let bench = Bench::new(&[]);
        let mut live = live(&bench, "dedup -n 10 --checkpoint 10ms --state s -o o.gz --dupes d -");
        live.say(b"a\nb\na\n");
        // Only its state tells that the lines have come.
        wait_for(|| bench.path("s").exists() && fed(bench.command("check --total -s s"), b"a\nb\n").stdout == b"2\n");
        live.signal(signal);
        assert_eq!(live.end().0, Some(code));
        assert_eq!((text(&decoded(&bench, "o.gz")), text(&bench.read("d"))), ("a\nb\n".to_owned(), "a\n".to_owned()));
    }
}

/// As `nohup` ignores one. Only there the command can tell.
#[test]
#[cfg(target_os = "linux")]
fn a_signal_that_was_ignored_stays_so() {
    for (signal, _) in ASKING {
        for (line, printed) in [("dedup --total --state s -", "2"), ("check --total -s f", "1")] {
            let bench = Bench::new(&[("a", b"a\n")]);
            bench.clean("build -o f a");
            let mut live = Live::new(shell(&bench, &format!("trap '' {signal};"), line));
            live.say(&many());
            live.signal(signal);
            live.say(&many());
            live.say(b"a\n");
            live.hang_up();
            assert_eq!(live.end(), (Some(0), vec![printed.to_owned()], String::new()), "{signal} {line}");
        }
    }
}

#[test]
fn other_commands_end_at_once() {
    let bench = Bench::new(&[("a", b"a\n")]);
    bench.clean("build -n 10 --no-shrink -o f a");
    let before = bench.read("f");
    for (signal, code) in ASKING {
        for line in ["build -n 10 -o new -", "build --append -o f -", "check --total -s f -"] {
            let mut live = live(&bench, line);
            live.say(&many());
            live.signal(signal);
            assert_eq!(live.end(), (Some(code), vec![], String::new()), "{line}");
            assert!(!bench.path("new").exists() && bench.read("f") == before, "{line}");
        }
    }
}

#[test]
fn a_signal_removes_what_was_half_saved() {
    let bench = Bench::new(&[("a", b"a\n"), ("b", b"b\n")]);
    bench.clean(&format!("build {LARGE} --no-shrink -o before a"));
    let new = format!("build {LARGE} --no-shrink -o new a");
    for ((signal, code), line) in ASKING.iter().zip(["build --append -o first b", "merge before -o merged", &new]) {
        let live = stopped_in_save(&bench, || {
            forget(&bench, &["first", "merged", "new"]);
            fs::hard_link(bench.path("before"), bench.path("first")).unwrap();
            live(&bench, line)
        });
        live.signal(signal);
        live.signal("CONT");
        assert_eq!(live.end(), (Some(*code), vec![], String::new()), "{line}");
        assert_eq!(leftovers(&bench), [""; 0], "{line}");
        assert!(!bench.path("new").exists() && !bench.path("merged").exists());
        assert_eq!(bench.run("check --total -s first b").stdout, b"0\n", "{line}");
    }
}

/// The first signal lets the state be saved, the second does not wait for that.
#[test]
fn a_second_signal_ends_a_save() {
    for signals in [1, 2] {
        let bench = Bench::new(&[]);
        let live = stopped_in_save(&bench, || {
            forget(&bench, &["s", "s.resume"]);
            let mut live = live(&bench, &format!("dedup {LARGE} --state s -"));
            live.say(b"a\n");
            assert_eq!(live.line(), "a");
            live.signal("INT");
            live
        });
        if signals == 2 {
            live.signal("HUP");
        }
        live.signal("CONT");
        let (code, _, said) = live.end();
        assert_eq!((code, leftovers(&bench)), (Some(if signals == 2 { 129 } else { 130 }), vec![]));
        if signals == 2 {
            tells(&said, &["\"s\"", "last checkpoint"]);
        } else {
            assert_eq!(said, "");
        }
        // It is saved once at the start.
        assert_eq!(fed(bench.command("check --total -s s"), b"a\n").stdout, if signals == 2 { b"0\n" } else { b"1\n" });
    }
}

/// Those that are nobody else's.
#[test]
fn the_next_run_removes_what_a_kill_left() {
    let bench = Bench::new(&[("a", b"a\n")]);
    let long = "l".repeat(250);
    // The kernel kills each run in the middle of a save, at the write with which a file becomes longer than 256 KiB.
    const SIZE: &str = "-n 100000 -p .000001";
    for line in [
        format!("build {SIZE} --no-shrink -o target a"),
        format!("dedup {SIZE} --state target a"),
        "merge target -o merged".to_owned(),
        format!("build {SIZE} --no-shrink -o {long} a"),
    ] {
        let killed = shell(&bench, "ulimit -c 0; ulimit -f 512;", &line).output().unwrap();
        assert_eq!(killed.status.signal(), Some(SIGXFSZ), "{line}");
        // It and the lock.
        assert_eq!(leftovers(&bench).len(), 2, "{line}");
        assert_eq!(bench.run(&line).status.code(), Some(0), "{line}");
        assert_eq!(leftovers(&bench), [""; 0], "{line}");
    }
    // Of the checkpoints too, and of a target that is named by a link.
    symlink("target", bench.path("link")).unwrap();
    bench.write(".bloomline-target-a1B2c3.tmp", b"");
    bench.write(".bloomline-link.resume-a1B2c3.tmp", b"");
    let others = [
        ".bloomline-target-a1B2c.tmp",
        ".bloomline-target-a1B2c3-d4E5f6.tmp",
        ".bloomline-target-a1B2c3.tmp.tmp",
        ".bloomline-target.resume-a1B2c3.tmp",
        ".bloomline-targeta1B2c3.tmp",
        ".bloomline-targets-a1B2c3.tmp",
        "bloomline-target-a1B2c3.tmp",
    ];
    others.iter().for_each(|name| bench.write(name, b""));
    bench.clean("dedup --state link a");
    assert_eq!(leftovers(&bench), others);
}

/// Nobody reads on: what is not printed is not remembered.
#[test]
fn a_signal_ends_a_run_whose_output_is_blocked() {
    let bench = Bench::new(&[]);
    bench.write("lines", &numbers(0..300_000));
    // A command that has printed its first line, and who reads it. The pipe is new: one of another run may still be open in a
    // process that another test starts.
    let begun = |options: &str, pipe: &str| {
        let pipe = bench.fifo(pipe);
        let live = live(&bench, &format!("dedup {options}"));
        let mut reader = BufReader::new(File::open(&pipe).unwrap());
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        assert_eq!(line, "https://example.org/0\n", "{options}");
        (live, reader)
    };
    let cases = [("--state s -o PIPE", Some("s")), ("--state t -o out --dupes PIPE", Some("t")), ("-o PIPE", None)];
    let mut runs = Vec::new();
    for ((signal, code), (options, state)) in ASKING.into_iter().zip(cases) {
        let (live, reader) = begun(&format!("{options} lines lines").replace("PIPE", signal), signal);
        live.signal(signal);
        runs.push((live, reader, code, state));
    }
    // Each waits for its reader for a second, and all do so at once.
    for (live, _reader, code, state) in runs {
        let (ended, _, said) = live.end();
        assert_eq!(ended, Some(code), "{said}");
        if let Some(state) = state {
            tells(&said, &[&format!("{state:?}"), "last checkpoint"]);
            // It is that of the start.
            assert_eq!(bench.run(&format!("check --total -s {state} lines")).stdout, b"0\n", "{state}");
        }
        assert_eq!(said.matches('\n').count(), usize::from(state.is_some()), "{said}");
    }
    assert_eq!(leftovers(&bench), [""; 0]);
    // One who reads on gets all that was printed. On a busy machine even such a reader may let a second pass.
    let read_on = |pipe: &str| {
        forget(&bench, &["u", "u.resume"]);
        let (live, reader) = begun(&format!("--state u -o {pipe} lines"), pipe);
        live.signal("TERM");
        (1 + reader.lines().count(), live.end())
    };
    let in_time = |(_, (_, _, said)): &(usize, (Option<i32>, Vec<String>, String))| !said.contains("last checkpoint");
    let (printed, ended) = (0..10).map(|i| read_on(&format!("pipe{i}"))).find(in_time).expect("a reader in time");
    assert_eq!(ended, (Some(143), vec![], String::new()));
    assert_eq!(bench.clean("dedup --total --state u lines"), format!("{}\n", 300_000 - printed));
}

/// The output that waits is not hidden by another that goes on.
#[test]
fn a_signal_ends_a_run_of_which_one_output_is_blocked() {
    let bench = Bench::new(&[]);
    let lines: Vec<u8> = (0..300_000).flat_map(|i| numbers(i..i + 1).repeat(2)).collect();
    bench.write("lines", &lines);
    let [blocked, drained] = ["blocked", "drained"].map(|name| bench.fifo(name));
    let live = live(&bench, "dedup -j 4 --compress gzip:1 -o blocked --dupes drained lines");
    let mut blocked = File::options().read(true).write(true).custom_flags(O_NONBLOCK).open(blocked).unwrap();
    let read = AtomicUsize::new(0);
    thread::scope(|scope| {
        scope.spawn(|| {
            let (mut drained, mut piece) = (File::open(drained).unwrap(), vec![0; 1 << 16]);
            while let count @ 1.. = drained.read(&mut piece).unwrap() {
                read.fetch_add(count, Relaxed);
            }
        });
        // One pipe takes nothing more, and what goes to the other has come.
        while blocked.write(b"\n").is_ok() {
            sleep(Duration::from_millis(10));
        }
        let mut before = usize::MAX;
        while before != read.load(Relaxed) {
            before = read.load(Relaxed);
            sleep(Duration::from_millis(500));
        }
        live.signal("INT");
        assert_eq!(live.end().0, Some(130));
    });
}

/// Nothing is printed then, so nothing is put in order, however long a report is.
#[test]
fn a_signal_ends_what_comes_between_the_readings_and_after_them() {
    let document = format!("{{\"text\":\"{}\"}}\n", "word ".repeat(9));
    let bench = Bench::new(&[("lines", &b"line\n".repeat(60_000)), ("texts", document.repeat(10_000).as_bytes())]);
    bench.write("test", document.as_bytes());
    let lines = [
        ("dedup --pairs PIPE lines", " -s a"),
        ("dedup --clusters PIPE lines", " -s b"),
        ("corpus --near 0.8 --pairs PIPE texts", " -s c"),
        ("corpus --against test --report PIPE texts", ""),
    ];
    for ((line, state), (signal, code)) in lines.into_iter().zip(ASKING.into_iter().cycle()) {
        bench.clean(&format!("{} -o /dev/null", line.replace("PIPE", "report")));
        let whole = bench.read("report").len();
        let pipe = bench.fifo("pipe");
        let live = live(&bench, &format!("{}{state} -o out", line.replace("PIPE", "pipe")));
        let mut reader = File::open(pipe).unwrap();
        // What comes between is under way, and waits for the pipe.
        reader.read_exact(&mut [0]).unwrap();
        live.signal(signal);
        // Somebody reads on, so the run does not end for want of a reader.
        let (mut read, mut piece) = (1, vec![0; 1 << 16]);
        while let count @ 1.. = reader.read(&mut piece).unwrap() {
            read += count;
            sleep(Duration::from_millis(200));
        }
        assert_eq!(live.end(), (Some(code), vec![], String::new()), "{line}");
        assert!(read < whole, "{line}: {read} of {whole}");
        assert_eq!(bench.read("out"), b"");
        fs::remove_file(bench.path("pipe")).unwrap();
    }
    assert_eq!(leftovers(&bench), [""; 0]);
}

#[test]
fn a_signal_ends_the_measurement() {
    let bench = Bench::new(&[("a", b"a\nb\na\n")]);
    for (signal, code) in ASKING {
        let live = live(&bench, "dedup --state s --stats=json --verify 1000000000000000 a");
        assert_eq!((live.line(), live.line()), ("a".to_owned(), "b".to_owned()));
        wait_for(|| bench.run("check --total -s s a").stdout == b"3\n");
        live.signal(signal);
        let (ended, lines, said) = live.end();
        assert_eq!((ended, lines), (Some(code), vec![]));
        let figures: serde_json::Value = serde_json::from_str(&said).unwrap();
        assert_eq!(number(&figures, "unique"), 2.0);
        // Of what was looked up; nothing, if the signal came first.
        let rate = figures.get("measured_fpr");
        assert!(rate.is_none_or(|rate| rate.as_f64().unwrap() < 1e-3), "{said}");
        fs::remove_file(bench.path("s")).unwrap();
    }
}

#[test]
fn checkpoints_outlive_a_kill() {
    let bench = Bench::new(&[]);
    let mut live = Live::new(bench.command("dedup --state s --checkpoint 20ms -"));
    live.say(b"a\nb\n");
    wait_for(|| bench.path("s").exists() && fed(bench.command("check --total -s s"), b"a\nb\n").stdout == b"2\n");
    live.signal("KILL");
    // What the state holds was printed.
    assert_eq!(live.end().1, ["a", "b"]);
    assert_eq!(clean(fed(bench.command("dedup --state s"), b"b\nc\na\n")), b"c\n");
    for (line, parts) in
        [("--checkpoint 1m a", ["without", "--state"]), ("--checkpoint 0s --state s a", ["--checkpoint", "'0s'"])]
    {
        tells(&bench.refused(&format!("dedup {line}")), &parts);
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
