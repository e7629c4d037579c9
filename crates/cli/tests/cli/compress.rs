//! Compressed outputs: pieces that all threads compress, and `--compress`.

use crate::common::random::Random;
use crate::common::{
    Bench, assert_contains_all, expect_failure, expect_success, report_skipped, run_with_stdin, text, url_lines,
    with_ulimit,
};
use crate::corpus::{count, decode, gunzip, gzip, read_decoded, unzstd};
use crate::live::{RunningCommand, wait_for};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

/// Enough lines for several pieces in each format, and in most formats for more pieces than two threads have in flight.
const LINES: u32 = 160_000;

const QUICK: [(&str, &str, &str); 5] = [
    ("gzip:1", "o.gz", "gzip"),
    ("zstd:1", "o.zst", "zstd"),
    ("xz:0", "o.xz", "xz"),
    ("bzip2:1", "o.bz2", "bzip2"),
    ("lz4", "o.lz4", "lz4"),
];

/// Decompresses bytes with the format's reference program, if it is installed.
#[track_caller]
fn decompress_with(program: &str, bytes: &[u8]) -> Option<Vec<u8>> {
    let mut version = Command::new(program);
    version.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if version.status().is_err() {
        report_skipped(&format!("no {program} here"));
        return None;
    }
    let mut command = Command::new(program);
    command.arg("-dc");
    Some(expect_success(run_with_stdin(command, bytes)))
}

#[test]
fn an_output_has_the_same_bytes_for_any_number_of_threads() {
    let (first, repeats) = (url_lines(0..LINES), url_lines(0..LINES / 2));
    let bench = Bench::new(&[("in", &[&first[..], &repeats].concat())]);
    for (kind, name, program) in QUICK {
        let line = |threads: u32| format!("dedup -n 250000 -p 1e-9 -j {threads} --compress {kind} --dupes d");
        let run = |threads| {
            assert_eq!(bench.run_ok(&format!("{} -o {name} in", line(threads))), "");
            (bench.read(name), bench.read("d"))
        };
        let one = run(1);
        assert!(run(8) == one, "{kind}");
        // The names of standard output and of the file of repeats do not indicate the format.
        assert!(expect_success(bench.run(&format!("{} in", line(2)))) == one.0 && bench.read("d") == one.1, "{kind}");
        for (bytes, expected) in [(&one.0, &first), (&one.1, &repeats)] {
            assert!(bytes.len() < expected.len() / 3, "{kind}: {}", bytes.len());
            assert!(decode(name, bytes).0 == *expected, "{kind}");
            assert!(decompress_with(program, bytes).is_none_or(|read| read == *expected), "{kind}");
        }
        assert!(expect_success(bench.run(&format!("dedup -n 250000 -p 1e-9 {name}"))) == first, "{kind}");
    }
}

/// Pipes too have a member.
#[test]
fn empty_outputs_have_one_member() {
    let bench = Bench::new(&[("empty", b"")]);
    for (kind, name, program) in QUICK {
        for options in ["-j 1", "-j 2", "--total --dupes d"] {
            let output = expect_success(bench.run(&format!("dedup {options} --compress {kind} empty")));
            let expected = if options.contains("total") { &b"0\n"[..] } else { b"" };
            assert!(!output.is_empty() && decode(name, &output).0 == expected, "{kind} {options}");
            assert!(decompress_with(program, &output).is_none_or(|read| read == expected), "{kind} {options}");
        }
        assert!(decode(name, &bench.read("d")).0.is_empty() && !bench.read("d").is_empty());
    }
    for whole in ["zstd:20", "zstd:1:long=20", "xz:7"] {
        let output = expect_success(bench.run(&format!("dedup --compress {whole} empty")));
        assert_eq!(expect_success(run_with_stdin(bench.command("dedup"), &output)), b"", "{whole}");
        assert!(!output.is_empty());
    }
}

#[test]
fn slow_and_closed_readers_are_handled() {
    let lines = url_lines(0..LINES);
    let bench = Bench::new(&[("in", &lines)]);
    for threads in [1, 2, 3] {
        let run = |to: &str| {
            let mut command = bench.command(&format!("dedup -n 250000 -p 1e-9 -j {threads} --compress gzip:1 {to}in"));
            let mut child = command.spawn().unwrap();
            let stdout = child.stdout.take().unwrap();
            (child, stdout)
        };
        let (child, mut stdout) = run("");
        let mut bytes = Vec::new();
        while (&mut stdout).take(1 << 17).read_to_end(&mut bytes).unwrap() > 0 {
            thread::sleep(Duration::from_millis(20));
        }
        expect_success(child.wait_with_output().unwrap());
        assert!(gunzip(&bytes) == lines);

        let (child, mut stdout) = run("");
        stdout.read_exact(&mut [0; 10]).unwrap();
        drop(stdout);
        expect_success(child.wait_with_output().unwrap());
    }
}

#[cfg(unix)]
#[test]
fn a_full_output_ends_the_run() {
    if !Path::new("/dev/full").exists() {
        report_skipped("no /dev/full here");
        return;
    }
    let bench = Bench::new(&[("in", &url_lines(0..LINES))]);
    for (kind, threads) in [("gzip:1", 1), ("gzip:1", 2), ("zstd:1", 8), ("zstd:1:long=20", 2)] {
        let message = bench.run_err(&format!("dedup -j {threads} --compress {kind} -o /dev/full in"));
        assert_contains_all(&message, &["cannot write to \"/dev/full\"", "No space left"]);
        let message = bench.run_err(&format!("dedup -j {threads} --compress {kind} -o o --dupes /dev/full in"));
        assert_contains_all(&message, &["cannot write to \"/dev/full\"", "No space left"]);
    }
}

/// The disk is full in the middle of the run, and has space again.
#[cfg(unix)]
#[test]
fn a_resumed_run_continues_compressed_outputs() {
    let lines: Vec<u8> = (0..LINES).flat_map(|i| format!("{}\t{i}\n", i % 200_000).into_bytes()).collect();
    for (kind, output, dupes) in [("gzip:1", "o.gz", "d"), ("zstd:1", "o.zst", "d"), ("zstd:1:long=20", "o", "d.zst")] {
        let bench = Bench::new(&[("in", &lines)]);
        let line = format!(
            "dedup --field 1 -n 250000 --when-full warn -p 0.01 -j 2 --compress {kind} -o {output} --dupes {dupes} in"
        );
        let ending = if kind == "gzip:1" { "o.gz" } else { "o.zst" };
        let outputs = || [output, dupes].map(|name| decode(ending, &bench.read(name)).0);
        bench.run_ok(&line);
        let (expected, size) = (outputs(), bench.read(output).len());
        [output, dupes].iter().for_each(|name| fs::remove_file(bench.path(name)).unwrap());

        let stateful = line.replace("dedup", "dedup --state s --checkpoint 5ms --force");
        // The limit exceeds the size of the state, 320 kB.
        let limit = format!("-f {}", size * 3 / 4 / 512);
        let message = expect_failure(&with_ulimit(&limit, &bench.command(&stateful)).output().unwrap());
        assert_contains_all(&message, &[&format!("write to \"{output}\": File too large")]);
        assert!(bench.read(output).len() < size && bench.path("s").exists());

        for other in ["gzip:2", "zstd:2", "zstd:1:long=21"] {
            if other.starts_with(&kind[..4]) {
                let message = bench.run_err(&format!("{stateful} --resume").replace(kind, other));
                assert_contains_all(&message, &["cannot resume", "with the options \"field 1", "compressed as"]);
            }
        }
        assert_eq!(bench.run_ok(&format!("{stateful} --resume")), "", "{kind}");
        assert!(outputs() == expected, "{kind}");
    }
}

#[test]
fn a_resumed_run_without_further_lines_adds_no_member() {
    for (kind, name, _) in QUICK.into_iter().chain([("zstd:1:long=20", "o.zst", "zstd")]) {
        let bench = Bench::new(&[("in", b"1\ta\n2 a\n")]);
        let line = format!("dedup --field 2 --compress {kind} --state s -o {name} in");
        assert_contains_all(&bench.run_err(&line), &["\"in\", line 2:"]);
        let before = bench.read(name);
        assert_eq!(decode(name, &before).0, b"1\ta\n", "{kind}");
        bench.rewrite("in", b"1\ta\n2\ta\n");
        assert_eq!(bench.run_ok(&format!("{line} --resume")), "", "{kind}");
        assert!(bench.read(name) == before, "{kind}");
    }
}

#[cfg(unix)]
#[test]
fn signals_leave_complete_members() {
    for (kind, name) in [("gzip:1", "o.gz"), ("zstd:3", "o.zst"), ("zstd:1:long", "o.zst"), ("xz:6", "o.xz")] {
        let bench = Bench::new(&[]);
        let lines = url_lines(0..LINES);
        bench.write("in", &lines);
        let fifo = bench.fifo("fifo");
        // At the signal, two threads may have up to six chunks that are not printed yet.
        let options = "-n 250000 -p 1e-9 -j 2 --chunk-size 100000";
        let line = format!("dedup {options} --compress {kind} --state s -o {name} fifo");
        let running = RunningCommand::new(bench.command(&line));
        let mut writer = File::options().write(true).open(fifo).unwrap();
        // The write returns when only the capacity of the pipe is unread, at most 1 MiB.
        writer.write_all(&lines).unwrap();
        running.signal("TERM");
        let (code, ..) = running.end();
        assert_eq!(code, Some(143));
        let printed = read_decoded(&bench, name);
        assert!(lines.starts_with(&printed) && printed.len() > 2 << 20, "{kind}: {}", printed.len());
        // All lines in the state were printed.
        let known = bench.run_ok("check --total -s s in").trim().parse::<u64>().unwrap();
        assert_eq!(known, count(&printed), "{kind}");
        // Compressing the last piece at this level would take seconds, so the command stores it.
        let stored = |line: &[u8]| memchr::memmem::find(&bench.read(name), line).is_some();
        assert_eq!(stored(b"https://example.org/159\n"), kind == "xz:6", "{kind}");
    }
}

#[cfg(unix)]
#[test]
fn a_run_ended_by_a_signal_continues_slow_compression() {
    let lines = url_lines(0..60_000);
    for (kind, name) in [("xz:6", "o.xz"), ("xz:9", "o.xz"), ("zstd:19", "o.zst"), ("zstd:22", "o.zst")] {
        let bench = Bench::new(&[("in", &lines)]);
        let line = format!("dedup -n 60000 -j 2 --chunk-size 50000 --compress {kind} --state s -o {name} in");
        let running = RunningCommand::new(bench.command(&line));
        wait_for(|| bench.path("s").exists());
        running.signal("INT");
        let (code, ..) = running.end();
        assert!(lines.starts_with(&read_decoded(&bench, name)), "{kind}");
        assert_eq!(bench.run(&format!("{line} --resume")).status.code(), Some(0), "{kind}, after {code:?}");
        assert!(read_decoded(&bench, name) == lines, "{kind}");
    }
}

/// The option is the number of threads that read, hash or compress.
#[cfg(unix)]
#[test]
#[cfg(target_os = "linux")]
fn thread_count_matches_the_option() {
    for options in ["-j 3", "-j 1 --compress gzip", "-j 3 --compress gzip -o o", "-j 2 -o o.gz --dupes d.zst"] {
        let bench = Bench::new(&[("a.gz", &gzip(b"a\n")), ("b.gz", &gzip(b"b\n"))]);
        let script = format!("dedup {options} --state s --checkpoint 5ms - a.gz b.gz");
        let mut command = bench.command(&script);
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        let tasks = format!("/proc/{}/task", child.id());
        let named = |name: &str| {
            let tasks = fs::read_dir(&tasks).unwrap().map(|task| fs::read_to_string(task.unwrap().path().join("comm")));
            tasks.filter(|comm| comm.as_ref().is_ok_and(|comm| comm.trim() == name)).count()
        };
        let workers = options[3..4].parse::<usize>().unwrap();
        wait_for(|| named("worker") == workers);
        // The other threads receive signals, wait for the next checkpoint, and reorder results.
        assert!(named("bloomline") <= 3, "{options}: {}", named("bloomline"));
        drop(child.stdin.take());
        expect_success(child.wait_with_output().unwrap());
    }
}

#[test]
fn compress_option_sets_kind_and_level() {
    // Each word occurs twice, far apart and after another letter, so that only a long window contains both.
    let mut random = Random(1);
    let mut word = || format!("{:011x}", random.next() >> 20);
    let words: Vec<String> = (0..10_000).map(|_| (0..20).map(|_| word()).collect()).collect();
    let lines =
        ["a", "b"].map(|letter| words.iter().map(|word| format!("{letter}{word}\n")).collect::<String>()).concat();
    let bench = Bench::new(&[("in", lines.as_bytes())]);
    let compressed = |kind: &str| {
        let output = expect_success(bench.run(&format!("dedup -n 20000 -p 1e-9 --compress {kind} in")));
        assert!(
            expect_success(run_with_stdin(bench.command("dedup -n 20000 -p 1e-9"), &output)) == lines.as_bytes(),
            "{kind}"
        );
        output
    };
    let long = compressed("zstd:1:long");
    assert!(long.len() < compressed("zstd:1").len() * 6 / 10);
    assert!(compressed("zstd:long").len() < compressed("zstd").len() * 6 / 10);
    assert!(decompress_with("zstd", &long).is_none_or(|read| read == lines.as_bytes()));
    // A window of 2^10 bytes contains no repetition.
    assert!(compressed("zstd:1:long=10").len() > compressed("zstd:1:long=23").len() * 3 / 2);
    assert!(compressed("gzip:9").len() < compressed("gzip:1").len());
    assert!(compressed("gzip") == compressed("gz:6") && compressed("zst") == compressed("zstd:3"));
    assert!(compressed("none") == lines.as_bytes());

    // The option has the same effect as the name.
    bench.run_ok("dedup -n 20000 -p 1e-9 -o o.gz in");
    let named = bench.read("o.gz");
    bench.run_ok("dedup -n 20000 -p 1e-9 --compress gzip:6 -o o.gz in");
    assert!(bench.read("o.gz") == named);
    bench.run_ok("dedup -n 20000 -p 1e-9 --compress zstd -o any.txt in");
    assert!(unzstd(&bench.read("any.txt")) == lines.as_bytes());
}

#[cfg(unix)]
#[test]
fn invalid_compression_options_are_refused() {
    let bench = Bench::new(&[("a", b"a\n"), ("there.gz", b"what was there")]);
    for (value, parts) in [
        ("zip", &["not a kind of compression", "none, gzip, zstd, xz, bzip2 or lz4"][..]),
        ("", &["not a kind of compression"]),
        ("GZIP", &["not a kind of compression"]),
        ("gzip:0", &["gzip has levels from 1 to 9"]),
        ("gz:10", &["gz has levels from 1 to 9"]),
        ("bzip2:0", &["bzip2 has levels from 1 to 9"]),
        ("xz:10", &["xz has levels from 0 to 9"]),
        ("zstd:0", &["zstd has levels from 1 to 22"]),
        ("zstd:23", &["zstd has levels from 1 to 22"]),
        ("zstd:-1", &["zstd has levels from 1 to 22"]),
        ("zstd:", &["zstd has levels from 1 to 22"]),
        ("zstd:x", &["zstd has levels from 1 to 22"]),
        ("none:1", &["none has no level"]),
        ("zstd:3:long=9", &["from 10 to 31"]),
        ("zstd:3:long=32", &["from 10 to 31"]),
        ("zstd:3:long27", &["long=N"]),
        ("zstd:3:19", &["long=N"]),
        ("gzip:3:long", &["only zstd"]),
        ("none:long", &["only zstd"]),
        ("zstd:3:long:4", &["zstd:19:long=27"]),
    ] {
        let message = bench.run_err(&format!("dedup --compress={value} -o new a"));
        assert_contains_all(&message, &["--compress", &format!("'{value}'")]);
        assert_contains_all(&message, parts);
    }
    for (options, parts) in [
        ("--compress zstd -o there.gz", ["\"there.gz\"", "--compress zstd:3", ".gz file"]),
        ("--compress none -o there.gz", ["\"there.gz\"", "--compress none", ".gz file"]),
        ("--compress gzip -o new --dupes new.BZ2", ["\"new.BZ2\"", "--compress gzip:6", ".bz2 file"]),
        ("--compress gzip -o new.zip", ["\"new.zip\"", "format of .zip", "not supported"]),
        ("--compress gzip -o /dev/ptmx", ["\"/dev/ptmx\"", "it is a terminal", "leave out --compress"]),
    ] {
        assert_contains_all(&bench.run_err(&format!("dedup {options} a")), &parts);
    }
    assert_eq!(text(&bench.read("there.gz")), "what was there");
    assert!(["new", "new.BZ2", "new.zip"].iter().all(|name| !bench.path(name).exists()));
}
