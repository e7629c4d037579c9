//! Every option of `bloomline dedup`, and of `build` and `check` the common ones, on files as they come: the real binary.
#![cfg(unix)]

mod common;

use bloomline::BloomFilter;
use common::{Bench, clean, ended, failed, fed, numbers, refused};
use flate2::Compression;
use flate2::read::{GzDecoder, MultiGzDecoder};
use flate2::write::GzEncoder;
use proptest::prelude::*;
use serde_json::Value;
use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

/// More than anything here takes, and less than anyone would wait.
const PATIENCE: Duration = Duration::from_secs(20);

fn gzip(contents: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(contents).unwrap();
    encoder.finish().unwrap()
}

fn zstd(contents: &[u8]) -> Vec<u8> {
    zstd::encode_all(contents, 0).unwrap()
}

/// What stands in the one gzip member that the bytes are.
fn gunzip(bytes: &[u8]) -> Vec<u8> {
    let mut contents = Vec::new();
    GzDecoder::new(bytes).read_to_end(&mut contents).unwrap();
    contents
}

fn unzstd(bytes: &[u8]) -> Vec<u8> {
    assert!(!bytes.is_empty(), "not even a frame");
    zstd::decode_all(bytes).unwrap()
}

/// A file without the compression that its name tells, of any number of members.
fn decoded(bench: &Bench, name: &str) -> Vec<u8> {
    let bytes = bench.read(name);
    match name.rsplit_once('.') {
        Some((_, "gz")) => {
            let mut contents = Vec::new();
            MultiGzDecoder::new(&bytes[..]).read_to_end(&mut contents).unwrap();
            contents
        }
        Some((_, "zst")) => unzstd(&bytes),
        _ => bytes,
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn count(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|&&byte| byte == b'\n').count() as u64
}

/// The distinct ones of lines with their ends.
fn distinct(lines: &[u8]) -> Vec<u8> {
    let mut seen = HashSet::new();
    lines.split_inclusive(|&byte| byte == b'\n').filter(|&line| seen.insert(line)).collect::<Vec<_>>().concat()
}

/// What `--stats=json` says, after any warnings.
#[track_caller]
fn stats(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stderr);
    let line = text.lines().find(|line| line.starts_with('{'));
    serde_json::from_str(line.unwrap_or_else(|| panic!("no statistics: {text}"))).unwrap()
}

#[track_caller]
fn number(stats: &Value, name: &str) -> f64 {
    stats[name].as_f64().unwrap_or_else(|| panic!("{name} is missing: {stats}"))
}

/// A command that waits for more on standard input. It is killed at the end, if it is still there.
struct Live {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl Live {
    fn new(mut command: Command) -> Self {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take().unwrap());
        let (send, lines) = mpsc::channel();
        thread::spawn(move || {
            BufReader::new(stdout).lines().map_while(Result::ok).try_for_each(|line| send.send(line))
        });
        Self { child, stdin, lines }
    }

    fn say(&mut self, bytes: &[u8]) {
        self.stdin.as_mut().unwrap().write_all(bytes).unwrap();
    }

    /// The next line it prints.
    #[track_caller]
    fn line(&self) -> String {
        self.lines.recv_timeout(PATIENCE).expect("no line came")
    }

    /// Sends a signal while standard input stays silent.
    fn signal(&self, name: &str) {
        assert!(Command::new("kill").args(["-s", name, &self.child.id().to_string()]).status().unwrap().success());
    }

    /// Its exit code, once it ended by itself, the other lines it printed, and what it said.
    #[track_caller]
    fn end(mut self) -> (Option<i32>, Vec<String>, String) {
        let start = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(start.elapsed() < PATIENCE, "it does not end");
            thread::sleep(Duration::from_millis(5));
        };
        let mut said = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        (status.code(), self.lines.iter().collect(), said)
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        // Fails if it is gone.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn compressed_inputs_are_known_by_their_contents() {
    let skippable = |magic: u8| [&[magic, 0x2A, 0x4D, 0x18, 3, 0, 0, 0][..], b"a\nx"].concat();
    let members = [gzip(b"a\nb"), gzip(b"\nc\n"), gzip(b""), gzip(b"a\nd")].concat();
    let frames = [skippable(0x50), zstd(b"a\nb"), zstd(b"\nc\n"), skippable(0x5F), zstd(b""), zstd(b"a\nd")].concat();
    let bench = Bench::new(&[
        ("members.txt", &members),
        ("frames.gz", &frames),
        ("plain.zst", b"a\nb\nc\na\nd"),
        ("empty.gz", &gzip(b"")),
        ("empty.zst", &zstd(b"")),
    ]);
    for name in ["members.txt", "frames.gz", "plain.zst"] {
        for options in ["", "-j 1 --chunk-size 1 ", "-j 3 --chunk-size 4 "] {
            assert_eq!(bench.clean(&format!("dedup {options}{name}")), "a\nb\nc\nd\n", "{options}{name}");
            assert_eq!(ended(bench.run_with(&format!("dedup {options}-"), name), 0), "a\nb\nc\nd\n");
        }
        assert_eq!(clean(fed(bench.command("dedup"), &bench.read(name))), b"a\nb\nc\nd\n");
    }
    assert_eq!(bench.clean("dedup members.txt empty.gz frames.gz empty.zst plain.zst"), "a\nb\nc\nd\n");
    assert_eq!(bench.clean("dedup empty.gz"), "");
}

#[test]
fn lines_may_end_with_nul() {
    let bench = Bench::new(&[("a", b"x\ny\0z\0x\ny\0\n\0\0z"), ("b", b"z\0new\0")]);
    for option in ["-z", "--zero-terminated"] {
        assert_eq!(bench.clean(&format!("dedup {option} a b")), "x\ny\0z\0\n\0\0new\0");
    }
    assert_eq!(bench.clean("dedup -z --annotate a"), "new\tx\ny\0new\tz\0dup\tx\ny\0new\t\n\0new\t\0dup\tz\0");
}

#[test]
fn keys_are_what_the_options_say() {
    for (options, input, expected) in [
        ("--field 2", "1\ta\n2\tb\tx\n3\ta\ty\n", "1\ta\n2\tb\tx\n"),
        ("--field 2 --delimiter \\t", "1\ta,b\n2\ta,c\n1\ta,b\n", "1\ta,b\n2\ta,c\n"),
        ("--field 1 --delimiter ,", "a,1\na,2\nb\nb,\n", "a,1\nb\n"),
        ("--field 3 --delimiter ::", "a::b::c\nx::y::c::z\na:b:::c::d\n", "a::b::c\na:b:::c::d\n"),
        (
            "--json-pointer /a",
            "{\"a\":\"x\"}\n{\"b\":1,\"a\":\"\\u0078\"}\n{\"a\":\"y\"}\n",
            "{\"a\":\"x\"}\n{\"a\":\"y\"}\n",
        ),
        ("--json-pointer /a/1", "{\"a\":[1,2]}\n{\"a\":[3,2]}\n{\"a\":[2,1]}\n", "{\"a\":[1,2]}\n{\"a\":[2,1]}\n"),
        ("--json-pointer /~1~0", "{\"/~\":1}\n{\"/~\": 1 }\n{\"/~\":2}\n", "{\"/~\":1}\n{\"/~\":2}\n"),
        ("--ignore-case", "Abc\naBC\nabd\n\u{c4}\n\u{e4}\n", "Abc\nabd\n\u{c4}\n"),
        ("--trim", " a\na\t\r\n a b \na  b\n\n \n", " a\n a b \na  b\n\n"),
        ("--trim --ignore-case --field 2 --delimiter ;", "1; A\n2;a ;3\n", "1; A\n"),
        (
            "--normalize url",
            "http://a.example\nHTTP://A.Example.:80/#top\nhttps://a.example/\nhttp://a.example/%c3\nhttp://a.example/%C3\n",
            "http://a.example\nhttps://a.example/\nhttp://a.example/%c3\n",
        ),
    ] {
        let bench = Bench::new(&[("a", input.as_bytes())]);
        assert_eq!(bench.clean(&format!("dedup {options} a")), expected, "{options}");
    }
    let bench = Bench::new(&[("a", b"a b\n")]);
    for (line, part) in [
        ("dedup --field 0 a", "--field"),
        ("dedup --field 1 --json-pointer /a a", "--json-pointer"),
        ("dedup --delimiter ; a", "--field"),
        ("dedup --json-pointer a a", "/"),
        ("dedup --json-pointer /~ a", "~0"),
        ("dedup --normalize path a", "url"),
    ] {
        let message = bench.refused(line);
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn build_and_check_take_the_same_keys_and_inputs() {
    let json: &[u8] = b"{\"k\":\"x\"}\n";
    for (options, known, asked, found) in [
        ("--field 2 --delimiter ,", &b"1,a\n2,b\n"[..], &b"3,b\n4,c\n5,a,6\n"[..], "3,b\n5,a,6\n"),
        ("--json-pointer /k", json, b"{\"k\":\"y\"}\n{\"i\":1,\"k\":\"x\"}\n", "{\"i\":1,\"k\":\"x\"}\n"),
        (
            "--normalize url",
            b"http://a.example\n",
            b"http://b.example\nhttp://A.example:80/#b\n",
            "http://A.example:80/#b\n",
        ),
        ("--ignore-case", b"abc\n", b"ABD\nABC\n", "ABC\n"),
        ("--trim", b"abc\n", b"ab\n abc\t\n", " abc\t\n"),
        ("-z", b"a\nb\0c\0", b"c\0a\0a\nb", "c\0a\nb\0"),
    ] {
        for code in [<[u8]>::to_vec, gzip, zstd] {
            let bench = Bench::new(&[("known", &code(known)), ("asked", &code(asked))]);
            bench.clean(&format!("build -n 100 {options} -o f known"));
            assert_eq!(bench.clean(&format!("check {options} -f f asked")), found, "{options}");
            let missing = bench.clean(&format!("check -v {options} -f f asked"));
            assert_eq!(missing.len() + found.len(), asked.len() + usize::from(options == "-z"), "{options}");
        }
    }
}

#[test]
fn every_line_goes_where_the_options_say() {
    let bench =
        Bench::new(&[("a", b"x\ny\nx\n\nx\ny\n"), ("b", b"z\n\n"), ("d", b"what was there, and longer than that\n")]);
    assert_eq!(bench.clean("dedup --dupes d a b"), "x\ny\n\nz\n");
    assert_eq!(text(&bench.read("d")), "x\nx\ny\n\n");
    assert_eq!(bench.clean("dedup --invert a b"), "x\nx\ny\n\n");
    assert_eq!(bench.clean("dedup --annotate a b"), "new\tx\nnew\ty\ndup\tx\nnew\t\ndup\tx\ndup\ty\nnew\tz\ndup\t\n");
    for (options, expected) in [("--count", "4\n"), ("-c", "4\n"), ("-c --invert", "4\n"), ("-c --dupes d", "4\n")] {
        assert_eq!(bench.clean(&format!("dedup {options} a b")), expected, "{options}");
    }
    assert_eq!(bench.clean("dedup --count a"), "3\n");
    assert_eq!(text(&bench.read("d")), "x\nx\ny\n\n");
    assert_eq!(bench.clean("dedup --count --output o a"), "");
    assert_eq!(text(&bench.read("o")), "3\n");

    for line in ["--dupes e --invert", "--dupes e --annotate", "--invert --annotate", "--count --annotate"] {
        bench.refused(&format!("dedup {line} a"));
    }
    for line in ["--dupes a a", "--dupes o -o o a", "--dupes new -o new a", "--dupes . a", "-o . a"] {
        bench.refused(&format!("dedup {line}"));
    }
    assert_eq!(text(&bench.read("a")), "x\ny\nx\n\nx\ny\n");
}

#[test]
fn outputs_are_compressed_by_their_names() {
    let input = [numbers(0..20_000), numbers(10_000..30_000)].concat();
    let bench = Bench::new(&[("a", &input), ("empty", b""), ("o.gz", &[b'x'; 1 << 20]), ("o.zst", &[b'x'; 1 << 20])]);
    let (first, repeats) = (numbers(0..30_000), numbers(10_000..20_000));
    assert_eq!(bench.clean("dedup -o o.gz --dupes d.zst a"), "");
    assert!(gunzip(&bench.read("o.gz")) == first && unzstd(&bench.read("d.zst")) == repeats);
    assert_eq!(bench.clean("dedup --output o.zst --dupes d.gz a"), "");
    assert!(unzstd(&bench.read("o.zst")) == first && gunzip(&bench.read("d.gz")) == repeats);
    assert!(bench.read("o.gz").len() < first.len() / 2 && bench.read("o.zst").len() < first.len() / 2);
    // What it wrote, it reads.
    assert!(clean(bench.run("dedup o.gz d.zst o.zst")) == first);

    bench.clean("dedup -o o.gz --dupes d.zst empty");
    assert!(gunzip(&bench.read("o.gz")).is_empty() && unzstd(&bench.read("d.zst")).is_empty());
    bench.clean("dedup -o o.zst --dupes d.gz empty");
    assert!(unzstd(&bench.read("o.zst")).is_empty() && gunzip(&bench.read("d.gz")).is_empty());
    bench.clean("dedup --count -o o.gz a");
    assert_eq!(gunzip(&bench.read("o.gz")), b"30000\n");
}

/// The plan for a filter, which the tests of `plan` hold against the exact model.
fn plan(bench: &Bench, options: &str) -> Value {
    bench.json(&format!("plan --json {options}"))[0].clone()
}

#[test]
fn memory_is_used_at_the_best_rate() {
    // A file of less than a mebibyte: its lines are counted and not estimated.
    let bench = Bench::new(&[("a", &numbers(0..30_000))]);
    let output = bench.run("dedup --memory 64K --stats=json a");
    assert_eq!(output.status.code(), Some(0));
    let figures = stats(&output);
    let planned = plan(&bench, "-n 30000 --memory 64K")["rates"][1]["fpr"].as_f64().unwrap();
    assert_eq!(number(&figures, "memory_bytes"), 65536.0);
    assert!((number(&figures, "fpr") / planned - 1.0).abs() < 0.05, "{figures}, and {planned} planned");
    let told = text(&output.stderr);
    assert!(told.starts_with("bloomline: a filter of 64.00 KiB: up to 30000 distinct lines"), "{told}");

    // At a rate that is given, it takes as many lines as the plan says, from a file or from a pipe.
    let room = plan(&bench, "-p 1e-4 --memory 64K")["keys"].as_u64().unwrap();
    let line = "dedup -m 64K -p 1e-4 --when-full stop";
    for output in [bench.run(&format!("{line} a")), fed(bench.command(line), &bench.read("a"))] {
        assert_eq!((output.status.code(), count(&output.stdout)), (Some(2), room));
        let told = text(&output.stderr);
        assert!(told.contains(&format!("up to {room} distinct lines at a false-positive rate of 1.00e-4\n")), "{told}");
    }
    // From a pipe, without a rate: that of -p.
    let room = plan(&bench, "-p 1e-6 --memory 64K")["keys"].as_u64().unwrap();
    let output = fed(bench.command("dedup -m 64K --when-full stop"), &bench.read("a"));
    assert_eq!((output.status.code(), count(&output.stdout)), (Some(2), room));

    assert_eq!(clean(bench.run("dedup -q --memory 1M -p 1e-6 a")), numbers(0..30_000));
    for (line, part) in [
        ("dedup --memory 64K -n 5 a", "--expected-keys"),
        ("dedup --memory 64K --when-full grow a", "--memory"),
        ("dedup --memory 63 a", "--memory"),
    ] {
        let message = bench.refused(line);
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn stop_ends_at_the_line_after_the_last_that_fits() {
    // 100 fit: the last is the 40th line of the second file.
    let repeats = numbers(0..30);
    let bench = Bench::new(&[
        ("first", &[numbers(0..60), repeats.clone()].concat()),
        ("second", &numbers(60..120)),
        ("fits", &[numbers(0..90), numbers(0..40), numbers(90..100)].concat()),
    ]);
    for options in ["", "-j 1 --chunk-size 1 ", "-j 3 --chunk-size 100 ", "--exact "] {
        let output = bench.run(&format!("dedup -n 100 --when-full stop --dupes d {options}first second"));
        assert!(output.stdout == numbers(0..100), "{options}");
        assert!(bench.read("d") == repeats, "{options}");
        let message = failed(&output);
        assert!(message.contains("stopped at \"second\", line 41:") && message.contains(" 100 new lines"), "{message}");
        assert!(message.contains("-n") && message.contains("--when-full grow"), "{message}");
    }
    assert!(clean(bench.run("dedup -n 100 --when-full stop fits")) == numbers(0..100));
}

#[test]
fn full_is_where_the_rate_is_reached() {
    let bench = Bench::new(&[("a", &numbers(0..100_000))]);
    let output = bench.run("dedup -n 20000 -p 0.001 --max-fpr 0.01 --when-full stop --stats=json a");
    assert_eq!(output.status.code(), Some(2));
    let figures = stats(&output);
    assert!((number(&figures, "fpr") / 0.01 - 1.0).abs() < 0.05, "{figures}");
    assert_eq!(number(&figures, "unique") as u64, count(&output.stdout));
    assert!(count(&output.stdout) > 20_000);

    let output = bench.run("dedup -n 20000 -p 0.001 --max-fpr 0.01 --when-full warn a");
    assert_eq!(output.status.code(), Some(0));
    let warning = text(&output.stderr);
    let room = number(&figures, "unique").to_string();
    assert_eq!((warning.matches('\n').count(), warning.matches("warning").count()), (1, 1), "{warning}");
    assert!(warning.contains(&room), "{warning}");
    assert!(clean(bench.run("dedup -q -n 20000 -p 0.001 --max-fpr 0.01 --when-full warn a")) == output.stdout);

    // With room for all there is nothing to say.
    clean(bench.run("dedup -n 100000 -p 0.001 --when-full warn a"));
    // What grows stays below the rate, however many lines come.
    for options in ["-p 0.01", "-p 0.5 --max-fpr 0.01"] {
        let output = bench.run(&format!("dedup -n 1000 {options} --when-full grow --stats=json a"));
        assert_eq!(output.status.code(), Some(0));
        let figures = stats(&output);
        assert!(number(&figures, "filters") >= 2.0 && number(&figures, "fpr") <= 0.01, "{figures}");
        // At most one line in a hundred is lost; five standard deviations of the 1000 that may be.
        assert!(count(&output.stdout) > 99_000 - 5 * 32, "{figures}");
    }
}

#[test]
fn a_pipe_of_any_length_fits_a_filter_that_grows() {
    let lines: Vec<u8> = (0..1_500_000).flat_map(|i| format!("{i}\n").into_bytes()).collect();
    let bench = Bench::new(&[]);
    // At this rate one of 1.5 million is lost once in 700 times.
    let output = fed(bench.command("dedup -p 1e-9 --stats=json"), &[&lines[..], b"7\n1499999\n"].concat());
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stdout == lines);
    let figures = stats(&output);
    assert!(number(&figures, "filters") >= 2.0 && number(&figures, "fpr") <= 1e-9, "{figures}");
    assert_eq!(number(&figures, "dropped"), 2.0);
}

#[test]
fn exact_loses_no_line_and_prints_none_twice() {
    // More than are remembered in memory, in an order that mixes old and new.
    let mut input = Vec::new();
    for i in 0..900_000u64 {
        writeln!(input, "{i}").unwrap();
        if i % 3 == 0 {
            writeln!(input, "{}", i * 0x9E37_79B9 % (i + 1)).unwrap();
        }
    }
    let bench = Bench::new(&[("a", &input)]);
    let lossy = bench.run("dedup -n 900000 -p 0.3 --stats=json a");
    let lost = 900_000 - count(&lossy.stdout);
    assert!(lost > 1000);
    for options in ["-j 1", "-j 3 --chunk-size 10000"] {
        let output = bench.run(&format!("dedup -n 900000 -p 0.3 --exact --stats=json {options} a"));
        assert_eq!(output.status.code(), Some(0));
        assert!(output.stdout == distinct(&input), "{options}");
        let figures = stats(&output);
        assert_eq!((number(&figures, "unique"), number(&figures, "dropped")), (900_000.0, 300_000.0));
        // A line that the filter takes for a repeat changes nothing in it, so it errs on the same ones.
        assert_eq!(number(&figures, "taken_back") as u64, lost);
        assert!(number(&figures, "disk_bytes") > 0.0);
    }
    let nowhere = bench.command("dedup -n 900000 --exact -o o a").env("TMPDIR", "/nowhere").output().unwrap();
    let message = refused(nowhere);
    assert!(message.contains("temporary file") && message.contains("TMPDIR"), "{message}");
    assert!(bench.refused("dedup --exact --state s a").contains("--state"));
}

#[test]
fn a_state_makes_two_runs_one() {
    let (first, second) = (numbers(0..3000), [numbers(2000..4000), numbers(2500..3500)].concat());
    for (options, again) in [
        ("-n 10000 ", "-n 10000 "),
        ("-n 10000 -p 1e-7 --when-full warn ", ""),
        ("-q --memory 1M ", "-q --memory 1M "),
        ("", ""),
        ("-p 1e-7 ", "-p 1e-7 --when-full grow "),
        ("-n 100 --when-full grow --seed 5 ", "--seed 5 "),
    ] {
        let bench = Bench::new(&[("a", &first), ("b", &second)]);
        assert!(clean(bench.run(&format!("dedup {options}--state s a"))) == first, "{options}");
        let both = clean(fed(bench.command(&format!("dedup {again}--state s --dupes d -")), &second));
        assert!(both == numbers(3000..4000), "{options}");
        assert!(bench.read("d") == [numbers(2000..3000), numbers(2500..3500)].concat(), "{options}");
        assert_eq!(bench.clean(&format!("dedup {again}--count --state s a b")), "0\n");
        bench.clean("info s");
        assert_eq!(bench.clean("check -c -f s a b"), "a:3000\nb:3000\n");
    }
    // The filter of `build` is a state as well.
    let bench = Bench::new(&[("a", &first), ("b", &second)]);
    bench.clean("build -n 10000 -o s a");
    assert!(clean(bench.run("dedup --state s b")) == numbers(3000..4000));
}

#[test]
fn a_state_of_another_filter_is_refused_before_any_output() {
    let bench = Bench::new(&[("a", b"a\n"), ("out", b"precious\n"), ("text", b"plain text\n")]);
    bench.clean("dedup -q -n 1000 -p 0.01 --seed 3 --state sized a");
    bench.clean("dedup -q -p 0.01 --seed 3 --state growing a");
    bench.write("short", &bench.read("sized")[..100]);
    for (state, options, part) in [
        ("sized", "-n 1000 -p 0.01", "seed"),
        ("sized", "-n 1000 -p 0.01 --seed 4", "seed"),
        ("sized", "-n 5000 -p 0.01 --seed 3", "bytes"),
        ("sized", "-n 1000 -p 0.0001 --seed 3", "bytes"),
        ("sized", "--memory 1M --seed 3", "bytes"),
        ("sized", "--when-full grow --seed 3", "grow"),
        ("growing", "", "seed"),
        ("growing", "-n 1000 --seed 3", "grows"),
        ("growing", "--memory 1M --seed 3", "grows"),
        ("growing", "--when-full stop --seed 3", "grows"),
        ("growing", "--when-full warn --seed 3", "grows"),
        ("growing", "-p 0.001 --seed 3", "rate"),
        ("growing", "--max-fpr 0.001 --seed 3", "rate"),
        ("text", "", "not a bloomline file"),
        ("short", "", "truncated"),
    ] {
        let before = bench.read(state);
        let options = if options.is_empty() { String::new() } else { format!("{options} ") };
        for output in ["", "-o out "] {
            let message = bench.refused(&format!("dedup {options}{output}--state {state} a"));
            assert!(message.contains(&format!("\"{state}\"")) && message.contains(part), "{options}: {message}");
        }
        assert!(bench.read(state) == before && bench.read("out") == b"precious\n");
    }
}

#[test]
fn a_state_that_cannot_be_saved_is_refused_before_any_output() {
    let bench = Bench::new(&[("a", b"a\na\n"), ("out", b"precious\n")]);
    fs::create_dir(bench.0.path().join("folder")).unwrap();
    fs::hard_link(bench.0.path().join("a"), bench.0.path().join("link")).unwrap();
    fs::create_dir(bench.0.path().join("locked")).unwrap();
    fs::set_permissions(bench.0.path().join("locked"), fs::Permissions::from_mode(0o500)).unwrap();
    let mut states = vec!["nowhere/s", "folder", "a", "link", "/dev/null", "out"];
    // Root may write to it all the same.
    if tempfile::tempfile_in(bench.0.path().join("locked")).is_err() {
        states.push("locked/s");
    }
    for state in states {
        let message = bench.refused(&format!("dedup -o out --state {state} a"));
        assert!(message.contains(&format!("\"{state}\"")), "{message}");
    }
    assert_eq!(text(&bench.read("a")), "a\na\n");
    assert_eq!(text(&bench.read("out")), "precious\n");
    // A state that is there is no output.
    bench.clean("dedup -q --state s a");
    let before = bench.read("s");
    bench.refused("dedup -o s --state s a");
    bench.refused("dedup --dupes s --state s a");
    assert!(bench.read("s") == before);
}

#[test]
fn a_new_state_that_is_also_an_output_is_refused() {
    for line in ["-o new --state new", "--dupes new --state new", "-o new.resume --state new"] {
        let bench = Bench::new(&[("a", b"a\na\n")]);
        let message = bench.refused(&format!("dedup {line} a"));
        assert!(message.contains("new"), "{message}");
    }
}

#[test]
fn an_input_beside_the_state_outlives_the_run() {
    for line in ["dedup --state s -o o s.resume", "dedup --state s s.resume"] {
        let bench = Bench::new(&[("s.resume", b"precious\n")]);
        assert_eq!(bench.run(line).status.code(), Some(2), "{line}");
        assert_eq!(bench.read("s.resume"), b"precious\n", "{line}");
    }
}

#[test]
fn the_same_command_with_a_state_runs_every_day() {
    for options in ["-n 1000 --when-full stop", "-n 1000 --when-full warn", "-q --memory 64K --when-full stop"] {
        let bench = Bench::new(&[("a", b"a\n"), ("b", b"a\nb\n")]);
        assert_eq!(bench.clean(&format!("dedup {options} --state s a")), "a\n");
        assert_eq!(bench.clean(&format!("dedup {options} --state s b")), "b\n", "{options}");
    }
}

#[test]
fn a_second_run_warns_of_a_full_filter_as_the_first_does() {
    let bench = Bench::new(&[("a", &numbers(0..10)), ("b", &numbers(10..3000))]);
    bench.clean("dedup -n 1000 --state s a");
    let output = bench.run("dedup -n 1000 --state s b");
    assert_eq!(text(&output.stderr).matches("warning").count(), 1);
}

#[test]
fn lines_that_could_not_be_printed_are_not_remembered() {
    if !Path::new("/dev/full").exists() {
        eprintln!("SKIPPED: no /dev/full here");
        return;
    }
    let bench = Bench::new(&[("a", &numbers(0..1000))]);
    let full = || File::options().write(true).open("/dev/full").unwrap();
    let remembered = || text(&bench.run("check -c -f s a").stdout) != "0\n";
    let message = refused(bench.command("dedup --state s a").stdout(full()).output().unwrap());
    assert!(message.contains("cannot write to standard output"), "{message}");
    bench.refused("dedup -o /dev/full --state s a");
    assert!(!remembered());
    failed(&bench.run("dedup --dupes /dev/full --state s -o o a a"));
    assert!(!remembered());
    for options in ["--count ", "--annotate ", "--exact ", "-j 1 --chunk-size 10 "] {
        refused(bench.command(&format!("dedup {options}a")).stdout(full()).output().unwrap());
    }
}

#[test]
fn a_disk_that_fills_up_leaves_a_state_of_what_is_on_it() {
    let bench = Bench::new(&[("a", &numbers(0..5000))]);
    // Files of at most 64 KiB, in units of 512 bytes: half of the output, and more than the state.
    let script = r#"ulimit -f 128; trap '' XFSZ; exec "$0" dedup -n 10000 -p 0.001 --state s -o o a"#;
    let mut limited = Command::new("sh");
    limited.args(["-c", script, env!("CARGO_BIN_EXE_bloomline")]).current_dir(bench.0.path());
    let message = refused(limited.output().unwrap());
    assert!(message.contains("cannot write to \"o\""), "{message}");
    // No checkpoint was due but the first one.
    assert_eq!(ended(bench.run("check -c -f s a"), 1), "0\n");
    bench.clean("dedup -n 10000 -p 0.001 --state s -o o --resume a");
    assert!(bench.read("o") == numbers(0..5000));
}

#[test]
fn statistics_are_those_of_the_run() {
    // 4000 lines, 3000 of them different and 10 without a second field.
    let mut input = Vec::new();
    for i in 0..4000 {
        writeln!(input, "{i}{}", if i < 10 { String::new() } else { format!("\t{}", i.min(3009)) }).unwrap();
    }
    let bench = Bench::new(&[("a", &input)]);
    let mut filter = BloomFilter::builder().expected_keys(5000).false_positive_rate(1e-7).build().unwrap();
    assert_eq!((10..3010).filter(|i| filter.insert(&*format!("{i}"))).count(), 3000);
    let line = "dedup -q --field 2 --on-error skip -n 5000 -p 1e-7 --verify 1000";
    let output = bench.run(&format!("{line} --stats=json a"));
    assert_eq!((output.status.code(), count(&output.stdout)), (Some(0), 3000));
    let figures = stats(&output);
    for (name, expected) in [
        ("lines", 4000),
        ("unique", 3000),
        ("dropped", 990),
        ("without_key", 10),
        ("bytes", input.len()),
        ("memory_bytes", filter.memory_bytes()),
    ] {
        assert_eq!(number(&figures, name), expected as f64, "{name}");
    }
    for (name, expected) in [("fill", filter.fill_ratio()), ("fpr", filter.current_fpr())] {
        assert!((number(&figures, name) / expected - 1.0).abs() < 1e-9, "{name} {expected}: {figures}");
    }
    assert!(number(&figures, "expected_wrongly_dropped") < 3000.0 * 1e-7);
    assert!(number(&figures, "seconds") > 0.0 && number(&figures, "mb_per_second") > 0.0);
    assert_eq!(number(&figures, "measured_fpr"), 0.0);

    for option in ["--stats", "--stats=text"] {
        let told = text(&bench.run(&format!("{line} {option} a")).stderr);
        let row = |label: &str| told.lines().find_map(|line| line.strip_prefix(label)).map(str::trim);
        assert_eq!(row("lines read "), Some("4000"), "{told}");
        assert_eq!(row("unique "), Some("3000"), "{told}");
        assert_eq!(row("dropped "), Some("990"), "{told}");
        assert_eq!(row("without a key "), Some("10"), "{told}");
        for label in ["wrongly dropped ", "fill ", "rate now ", "rate measured ", "filter memory ", "time ", "speed "] {
            assert!(row(label).is_some_and(|text| text.contains(|c: char| c.is_ascii_digit())), "{label}: {told}");
        }
    }
    assert!(bench.refused("dedup --verify 10 a").contains("--stats"));
    assert!(bench.refused("dedup --stats --verify 0 a").contains("--verify"));
}

#[test]
fn the_rate_that_is_measured_is_the_one_that_is_told() {
    let bench = Bench::new(&[("a", &numbers(0..20_000))]);
    for options in ["-n 20000 -p 0.01", "-n 20000 -p 0.2 --seed 9", "-n 1000 -p 0.01 --when-full grow"] {
        let figures = stats(&bench.run(&format!("dedup {options} --stats=json --verify 200000 a")));
        let (told, measured) = (number(&figures, "fpr"), number(&figures, "measured_fpr"));
        let sigma = (told * (1.0 - told) / 200_000.0).sqrt();
        assert!(told > 1e-4 && (measured - told).abs() < 5.0 * sigma, "{options}: {measured} {told} {sigma}");
        assert!((0.5..2.0).contains(&(number(&figures, "measured_fpr_sigma") / sigma)), "{figures}");
    }
}

#[test]
fn quiet_leaves_nothing_but_errors_to_be_said() {
    let bench = Bench::new(&[("a", &numbers(0..3000)), ("j", b"{}\n[\n"), ("cut", &gzip(b"a\n")[..12])]);
    for line in [
        "dedup -n 100 a",
        "dedup --memory 64K a",
        "dedup --json-pointer /a --on-error skip j",
        "dedup -n 10 --on-error skip cut",
        "dedup -n 10 --on-error keep cut",
    ] {
        assert!(!bench.run(line).stderr.is_empty(), "{line}");
        for quiet in ["-q", "--quiet"] {
            clean(bench.run(&format!("{line} {quiet}")));
        }
    }
    bench.refused("dedup -q missing");
    failed(&bench.run("dedup -q -n 100 --when-full stop a"));
}

#[test]
fn lines_without_a_key_end_the_run_or_are_left_out_or_kept() {
    let json: &[u8] = b"{\"a\":1}\n{\"a\":2}\n{\"a\":1}\n{\"a\":3\n{\"a\":1}\n{\"b\":3}\n{\"a\":4}";
    let fields: &[u8] = b"x,1\nx,2\ny,1\nx\nz,1\n\nx,4\n";
    let urls: &[u8] = b"http://a/\nhttp://b\nHTTP://A\nwww\nhttp://a\n\xff\nhttp://c/\n";
    for (options, bad, why) in [
        ("--json-pointer /a", json, "JSON"),
        ("--field 2 --delimiter ,", fields, "field 2"),
        ("--normalize url", urls, "URL"),
    ] {
        let bench = Bench::new(&[("good", json), ("bad", bad)]);
        // Lines 4 and 6 have no key, lines 3 and 5 are repeats.
        let lines: Vec<&[u8]> = bad.split_inclusive(|&byte| byte == b'\n').collect();
        let whole = |wanted: &[usize]| {
            let mut whole = wanted.iter().map(|&i| lines[i - 1]).collect::<Vec<_>>().concat();
            if whole.last() != Some(&b'\n') {
                whole.push(b'\n');
            }
            whole
        };
        for chunks in ["", "-j 1 --chunk-size 1 ", "-j 3 --chunk-size 9 "] {
            let run = |what: &str| bench.run(&format!("dedup {chunks}{options}{what} bad"));
            for what in ["", " --on-error fail"] {
                let output = run(what);
                assert_eq!(output.stdout, whole(&[1, 2]), "{options}");
                let message = failed(&output);
                assert!(message.contains("\"bad\", line 4:") && message.contains(why), "{message}");
                assert!(message.contains("--on-error"), "{message}");
            }
            for (what, expected) in [("skip", whole(&[1, 2, 7])), ("keep", whole(&[1, 2, 4, 6, 7]))] {
                let output = run(&format!(" --on-error {what}"));
                assert_eq!((output.status.code(), &output.stdout), (Some(0), &expected), "{options} {what}");
                let warning = text(&output.stderr);
                assert_eq!((warning.matches("warning").count(), warning.matches('\n').count()), (1, 1), "{warning}");
                assert!(warning.contains("without a key: 2"), "{warning}");
            }
        }
        // A filter of the good lines only, and the old one after a failure.
        bench.write("f", b"whatever was there");
        let message = bench.refused(&format!("build {options} -n 100 -o f bad"));
        assert!(message.contains("\"bad\", line 4:"), "{message}");
        assert_eq!(bench.read("f"), b"whatever was there");
        for what in ["skip", "keep"] {
            let output = bench.run(&format!("build {options} -n 100 --on-error {what} -o f bad"));
            assert_eq!(output.status.code(), Some(0));
            assert!(text(&output.stderr).contains("without a key: 2"));
        }
        let output = bench.run(&format!("check {options} -f f bad"));
        assert_eq!(output.stdout, whole(&[1, 2, 3]));
        assert!(failed(&output).contains("\"bad\", line 4:"));
        let check = |what: &str| bench.run(&format!("check {options} -f f {what} bad"));
        for (what, code, expected) in [
            ("--on-error skip", 0, whole(&[1, 2, 3, 5, 7])),
            ("--on-error keep", 0, whole(&[1, 2, 3, 4, 5, 6, 7])),
            ("-v --on-error keep", 0, whole(&[4, 6])),
            ("-v --on-error skip", 1, vec![]),
        ] {
            let output = check(what);
            assert_eq!((output.status.code(), output.stdout), (Some(code), expected), "{options} {what}");
        }
    }
}

#[test]
fn lines_are_numbered_in_their_own_file() {
    let bench = Bench::new(&[("a", b"1,\n2,\n"), ("b", b"3,\n\n"), ("c", &gzip(b"4,\n5,\nno\n"))]);
    let message = |line: &str| failed(&bench.run(line));
    assert!(message("dedup --field 2 --delimiter , a b").contains("\"b\", line 2:"));
    assert!(message("dedup --field 2 --delimiter , a c").contains("\"c\", line 3:"));
    let output = fed(bench.command("dedup --field 2 --delimiter , a -"), b"\n");
    assert!(failed(&output).contains("standard input, line 1:"));
}

#[test]
fn the_count_is_that_of_the_lines_printed() {
    let bench = Bench::new(&[("a", b"1\tx\n2\n3\tx\n4\n")]);
    let printed = bench.run("dedup -q --field 2 --on-error keep a").stdout;
    assert_eq!(text(&printed), "1\tx\n2\n4\n");
    assert_eq!(bench.clean("dedup -q --field 2 --on-error keep --count a"), "3\n");
}

#[test]
fn check_tells_of_lines_without_a_key() {
    let bench = Bench::new(&[("a", b"1\tx\n2\n")]);
    bench.run("build --field 2 --on-error skip -o f a");
    assert!(text(&bench.run("check --field 2 --on-error skip -f f a").stderr).contains("warning"));
}

#[test]
fn a_compressed_input_of_build_is_not_called_irregular() {
    let bench = Bench::new(&[("a.gz", &gzip(b"a\n"))]);
    for line in ["build -o f a.gz", "dedup --when-full warn a.gz"] {
        let message = bench.refused(line);
        assert!(message.contains("compressed") && !message.contains("not a regular file"), "{message}");
    }
}

/// Inputs that break after `a`, `b`, `a` and a piece of a line, `part`, and how.
fn broken_inputs() -> Vec<(&'static str, Vec<u8>)> {
    const READABLE: &[u8] = b"a\nb\na\npart";
    const REST: &[u8] = b"of a line\nthat\nis\nlost\n";
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(READABLE).unwrap();
    // Up to here all can be decoded. The byte after it is the first of a block, and no more than its kind.
    encoder.flush().unwrap();
    let flushed = encoder.get_ref().len();
    encoder.write_all(REST).unwrap();
    let truncated_gzip = encoder.finish().unwrap()[..=flushed].to_vec();

    let mut encoder = zstd::Encoder::new(Vec::new(), 0).unwrap();
    encoder.write_all(READABLE).unwrap();
    encoder.flush().unwrap();
    let flushed = encoder.get_ref().len();
    encoder.write_all(REST).unwrap();
    let truncated_zstd = encoder.finish().unwrap()[..=flushed].to_vec();

    // The last block, of the kind 3, which there is not (RFC 1951, 3.2.3), after the ten bytes of the header.
    let mut member = gzip(REST);
    member[10] = 0b111;
    let corrupt_member = [gzip(READABLE), member, gzip(b"never\n")].concat();

    let mut wrong_sum = gzip(READABLE);
    let length = wrong_sum.len();
    wrong_sum[length - 8] ^= 1;
    vec![
        ("truncated gzip", truncated_gzip),
        ("truncated zstd", truncated_zstd),
        ("corrupt member", corrupt_member),
        ("second member without its header", [gzip(READABLE), gzip(REST)[..5].to_vec()].concat()),
        ("wrong checksum", wrong_sum),
    ]
}

#[test]
fn broken_inputs_end_the_run_or_are_read_as_far_as_they_go() {
    for (what, bytes) in broken_inputs() {
        let bench = Bench::new(&[("first", b"x\na"), ("bad", &bytes), ("last", b"b\nc\n")]);
        for options in ["", "-j 1 --chunk-size 1 ", "-j 3 --chunk-size 5 "] {
            let run =
                |on_error: &str| bench.run(&format!("dedup -n 100 {options}--on-error {on_error} first bad last"));
            let output = run("fail");
            assert_eq!(text(&output.stdout), "x\na\nb\n", "{what}");
            let message = failed(&output);
            assert!(message.contains("cannot read \"bad\" after line 3: "), "{what}: {message}");
            // The piece that is kept is the fourth line.
            for (on_error, expected, line) in [("skip", "x\na\nb\nc\n", 3), ("keep", "x\na\nb\npart\nc\n", 4)] {
                let output = run(on_error);
                assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(0), expected), "{what}");
                let warning = text(&output.stderr);
                assert_eq!((warning.matches("warning").count(), warning.matches('\n').count()), (1, 1), "{warning}");
                assert!(warning.contains(&format!("\"bad\" after line {line}: ")), "{what}: {warning}");
            }
        }
        // From a pipe as from a file.
        let output = fed(bench.command("dedup first - last"), &bytes);
        assert_eq!(text(&output.stdout), "x\na\nb\n", "{what}");
        assert!(failed(&output).contains("cannot read standard input after line 3: "));

        bench.write("f", b"whatever was there");
        assert!(bench.refused("build -n 100 -o f first bad last").contains("\"bad\" after line 3: "));
        assert_eq!(bench.read("f"), b"whatever was there");
        assert!(text(&bench.run("build -n 100 --on-error skip -o f first bad last").stderr).contains("warning"));
        assert_eq!(bench.clean("check -f f first last"), "x\na\nb\nc\n");
        let output = bench.run("check -f f first bad last");
        assert_eq!(text(&output.stdout), "x\na\na\nb\na\n", "{what}");
        assert!(failed(&output).contains("\"bad\" after line 3: "));
        let output = bench.run("check -f f --on-error skip first bad last");
        assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(0), "x\na\na\nb\na\nb\nc\n"));
        assert!(text(&output.stderr).contains("\"bad\" after line 3: "));
    }
}

#[test]
fn inputs_that_are_broken_from_the_start_have_no_line() {
    for bytes in [&gzip(b"a\n")[..2], &gzip(b"a\n")[..9], &zstd(b"a\n")[..4], &zstd(b"a\n")[..6]] {
        let bench = Bench::new(&[("bad", bytes), ("last", b"b\n")]);
        let output = bench.run("dedup -n 10 bad last");
        assert!(failed(&output).contains("\"bad\" after line 0: "), "{bytes:?}");
        assert_eq!(output.stdout, b"");
        for on_error in ["skip", "keep"] {
            let output = bench.run(&format!("dedup -n 10 --on-error {on_error} bad last"));
            assert_eq!((output.status.code(), &output.stdout[..]), (Some(0), &b"b\n"[..]), "{bytes:?}");
            assert!(text(&output.stderr).contains("\"bad\" after line 0: "));
        }
    }
}

#[test]
fn an_input_that_vanishes_is_broken_from_the_start() {
    for (on_error, code, rest) in [("fail", 2, &[][..]), ("skip", 0, &["c"]), ("keep", 0, &["c"])] {
        let bench = Bench::new(&[("gone", b"b\n"), ("last", b"a\nc\n")]);
        let mut live = Live::new(bench.command(&format!("dedup --on-error {on_error} - gone last")));
        live.say(b"a\n");
        assert_eq!(live.line(), "a");
        fs::remove_file(bench.0.path().join("gone")).unwrap();
        live.stdin = None;
        let (ended, lines, said) = live.end();
        assert_eq!(
            (ended, &lines[..]),
            (Some(code), &rest.iter().map(|&line| line.to_owned()).collect::<Vec<_>>()[..])
        );
        assert!(said.contains("cannot read \"gone\" after line 0: ") && said.contains("No such file"), "{said}");
    }
}

#[test]
fn lines_of_a_slow_pipe_do_not_wait_for_its_end() {
    for options in ["", "--field 1 ", "--exact ", "--annotate "] {
        let bench = Bench::new(&[]);
        let mut live = Live::new(bench.command(&format!("dedup {options}-")));
        for word in ["one", "two", "three"] {
            live.say(format!("{word}\n").as_bytes());
            assert!(live.line().ends_with(word));
        }
        live.say(b"one\nunfinished");
        live.stdin = None;
        let (code, lines, said) = live.end();
        assert_eq!((code, said.as_str()), (Some(0), ""));
        assert!(lines.last().unwrap().ends_with("unfinished"));
    }
}

#[test]
fn signals_save_what_was_printed() {
    for (signal, code) in [("INT", 130), ("TERM", 143)] {
        for options in ["", "-n 100 ", "--checkpoint 1h "] {
            let bench = Bench::new(&[]);
            let mut live = Live::new(bench.command(&format!("dedup {options}--state s -")));
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
        let mut live = Live::new(bench.command("dedup -n 10 --checkpoint 10ms --state s -o o.gz --dupes d -"));
        live.say(b"a\nb\na\n");
        // Only its state tells that the lines have come.
        wait_for(|| {
            bench.0.path().join("s").exists() && fed(bench.command("check -c -f s"), b"a\nb\n").stdout == b"2\n"
        });
        live.signal(signal);
        assert_eq!(live.end().0, Some(code));
        assert_eq!((text(&decoded(&bench, "o.gz")), text(&bench.read("d"))), ("a\nb\n".to_owned(), "a\n".to_owned()));
    }
}

#[track_caller]
fn wait_for(happened: impl Fn() -> bool) {
    let start = Instant::now();
    while !happened() {
        assert!(start.elapsed() < PATIENCE, "it does not happen");
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn checkpoints_outlive_a_kill() {
    let bench = Bench::new(&[]);
    let mut live = Live::new(bench.command("dedup --state s --checkpoint 20ms -"));
    live.say(b"a\nb\n");
    wait_for(|| bench.0.path().join("s").exists() && fed(bench.command("check -c -f s"), b"a\nb\n").stdout == b"2\n");
    live.signal("KILL");
    // What the state holds was printed.
    assert_eq!(live.end().1, ["a", "b"]);
    assert_eq!(clean(fed(bench.command("dedup --state s"), b"b\nc\na\n")), b"c\n");
    for (line, part) in [("--checkpoint 1m a", "--state"), ("--checkpoint 0s --state s a", "--checkpoint")] {
        let message = bench.refused(&format!("dedup {line}"));
        assert!(message.contains(part), "{message}");
    }
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
    for (output, dupes) in [("o", "d"), ("o.gz", "d.zst")] {
        // Compressed, the two contents would differ in size; only stored, they do not.
        let store = |contents: &[u8]| {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::none());
            encoder.write_all(contents).unwrap();
            encoder.finish().unwrap()
        };
        for code in [<[u8]>::to_vec, store] {
            let bench = Bench::new(&[("before", b"x\t1\n"), ("a", &code(&whole))]);
            let line = format!("dedup -n 2000 --field 2 --state s -o {output} --dupes {dupes} before a");
            assert_eq!(bench.clean(&line), "");
            let outputs = || [decoded(&bench, output), decoded(&bench, dupes)];
            let (expected, state) = (outputs(), bench.read("s"));
            // The 1500 keys, the first one of them in the file before; and the 500 that come again, and that one.
            assert_eq!([count(&expected[0]), count(&expected[1])], [1500, 501]);

            fs::remove_file(bench.0.path().join("s")).unwrap();
            bench.write("a", &code(&bad));
            let message = bench.refused(&line);
            assert!(message.contains(&format!("\"a\", line {bad_line}:")), "{message}");
            let [first, repeats] = outputs();
            assert_eq!(count(&first) + count(&repeats), bad_line);
            let time = fs::metadata(bench.0.path().join("a")).unwrap().modified().unwrap();
            bench.write("a", &code(&whole));
            assert!(bench.refused(&format!("{line} --resume")).contains("another job"));
            fs::File::options().write(true).open(bench.0.path().join("a")).unwrap().set_modified(time).unwrap();
            assert_eq!(bench.clean(&format!("{line} --resume")), "");
            assert!(outputs() == expected, "{output}");
            assert!(bench.read("s") == state);
        }
    }
    let bench = Bench::new(&[("a", b"a\na\nb\n")]);
    // Without a state it begins.
    bench.clean("dedup --state s -o o --resume a");
    assert_eq!(text(&bench.read("o")), "a\nb\n");
    bench.refused("dedup --state s --resume a");
    bench.refused("dedup -o o --resume a");
    let message = refused(fed(bench.command("dedup --state s -o o --resume -"), b"c\n"));
    assert!(message.contains("files"), "{message}");
    bench.write("a", b"a\na\nb\nc\n");
    assert!(bench.refused("dedup --state s -o o --resume a").contains("another job"));
    assert_eq!(text(&bench.read("o")), "a\nb\n");
}

#[test]
fn completions_and_manual_pages_know_the_options() {
    let bench = Bench::new(&[]);
    for shell in ["bash", "zsh"] {
        assert!(bench.clean(&format!("completions {shell}")).contains("--json-pointer"), "{shell}");
    }
    // There the dashes are not part of the name.
    assert!(bench.clean("completions fish").contains("-l json-pointer"));
    assert!(bench.refused("completions csh").contains("csh"));

    bench.clean("manual deep/pages");
    let page = text(&bench.read("deep/pages/bloomline-dedup.1"));
    assert!(page.contains(".TH") && page.contains("json\\-pointer") && page.contains("Examples:"), "{page}");
    bench.write("file", b"");
    assert!(bench.refused("manual file").contains("\"file\""));
}

/// The normal form as the help tells it, for plain addresses such as the homepages.
fn normal(url: &str) -> String {
    let (scheme, rest) = url.split('#').next().unwrap().split_once("://").unwrap();
    let (host, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let (scheme, mut host) = (scheme.to_lowercase(), host.to_lowercase());
    let port = match &*scheme {
        "http" => ":80",
        "https" => ":443",
        "ftp" => ":21",
        _ => "no port",
    };
    host = host.strip_suffix(port).unwrap_or(&host).to_owned();
    host = host.strip_suffix('.').unwrap_or(&host).to_owned();
    let slash = if path.starts_with('/') || port == "no port" { "" } else { "/" };
    let mut parts = path.split('%');
    let mut path = parts.next().unwrap().to_owned();
    for part in parts {
        path += &format!("%{}{}", part[..2].to_uppercase(), &part[2..]);
    }
    format!("{scheme}://{host}{slash}{path}")
}

#[test]
fn real_addresses_are_told_apart_by_their_normal_form() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/data/homepages.txt");
    let input = fs::read_to_string(path).unwrap();
    let mut seen = HashSet::new();
    let (first, repeats): (Vec<&str>, Vec<&str>) = input.lines().partition(|line| seen.insert(normal(line)));
    // The figures of the list, in its description.
    assert_eq!(input.lines().count(), 58_999);
    assert!(first.len() < 30_087);

    let bench = Bench::new(&[]);
    for options in ["", "--exact -n 30000 -p 0.3 ", "-j 3 --chunk-size 1000 --when-full grow "] {
        let output = clean(bench.run(&format!("dedup -q --normalize url {options}--dupes d {path}")));
        let lines: Vec<&str> = std::str::from_utf8(&output).unwrap().lines().collect();
        let differing = lines.iter().zip(&first).find(|(ours, theirs)| ours != theirs);
        assert_eq!((differing, lines.len()), (None, first.len()), "{options}");
        assert!(text(&bench.read("d")).lines().eq(repeats.iter().copied()), "{options}");
    }
}

/// Options, and what the reference needs besides.
#[derive(Debug)]
struct Case {
    lines: Vec<Vec<u8>>,
    options: Vec<String>,
    /// Options of no concern to the reference.
    own: Vec<String>,
    /// How many files the lines make, and how each is compressed.
    codings: Vec<usize>,
    unfinished: bool,
    dupes: bool,
}

/// Lines of few pieces, so that many repeat in one way or another.
fn lines() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let pieces = "a A b \u{e4} \u{c4} \u{df} \u{3c3} \u{3a3} \u{130} \u{a0} , :: { \" \0";
    let pieces: Vec<Vec<u8>> = pieces.split(' ').map(|piece| piece.as_bytes().to_vec()).collect();
    let spaces = [&b" "[..], b"\t", b"\t", b",", b"\r", b"\x0c", b"\xff", b"\xc3"].map(<[u8]>::to_vec);
    let piece = prop::sample::select([pieces, spaces.to_vec()].concat());
    prop::collection::vec(prop::collection::vec(piece, 0..6).prop_map(|pieces| pieces.concat()), 0..80)
}

/// Lines of JSON, some of them none, and some without the member `a`.
fn documents() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let values = r#""x"|"X"|"\u0078"|" x"|"\ud83d\ude00"|"😀"|""|"\n"|1|1.0|1e400|-0|12345678901234567890123|true|null|[]|[1,"x"]|[1, "x" ]|{"p":1,"q":[2]}|{"q": [2], "p":1}|{"p":{"a":1}}"#;
    let value = prop::sample::select(values.split('|').map(str::to_owned).collect::<Vec<_>>());
    let document = prop_oneof![
        6 => value.clone().prop_map(|value| format!(r#"{{"a":{value}}}"#)),
        3 => (value.clone(), value.clone()).prop_map(|(a, b)| format!(r#"{{ "b":{b},"a" : {a} }}"#)),
        1 => (value.clone(), value.clone()).prop_map(|(a, b)| format!("{{\"a\":{a},\"a\":{b}}}\r")),
        1 => value.clone().prop_map(|value| format!(r#"{{"b":{value}}}"#)),
        1 => value,
        1 => prop::sample::select(vec!["", "{", "{\"a\":1,}", "{\"a\":01}", "{\"a\":NaN}", "{'a':1}"]).prop_map(str::to_owned),
    ];
    prop::collection::vec(document.prop_map(String::into_bytes), 0..80)
}

/// An option that may be there.
fn maybe(option: &'static str) -> impl Strategy<Value = Vec<String>> {
    any::<bool>().prop_map(move |there| if there { vec![option.to_owned()] } else { vec![] })
}

fn words(texts: &[&'static str]) -> impl Strategy<Value = Vec<String>> + use<> {
    prop::sample::select(texts.to_vec()).prop_map(|text| text.split_whitespace().map(str::to_owned).collect())
}

fn case() -> impl Strategy<Value = Case> {
    let whole =
        (lines(), words(&["", "--field 1", "--field 2", "--field 2 --delimiter ,", "--field 3 --delimiter ::"]));
    let json =
        (documents(), words(&["--json-pointer /a", "--json-pointer /a", "--json-pointer /a/p", "--json-pointer /a/1"]));
    // The help does not tell whether --invert keeps a line without a key; a test of its own tells how it is counted.
    let output = words(&[
        "--on-error keep",
        "--on-error keep --annotate",
        "--on-error skip",
        "--on-error skip --annotate",
        "--on-error skip --invert",
        "--on-error skip --count",
        "--on-error skip --count --invert",
        "--on-error fail",
        "--annotate",
        "--count",
    ]);
    let own = words(&[
        "-p 1e-9",
        "-p 1e-9 -n 100000 -j 1 --chunk-size 1",
        "-p 1e-9 --when-full grow -j 3 --chunk-size 50",
        "--memory 1M",
        "--exact -p 0.3 -n 10 -j 3 --chunk-size 7",
        "--exact --when-full grow -p 0.3 -n 1",
    ]);
    let folds = (maybe("--trim"), maybe("--ignore-case"), maybe("-z"));
    let shape = (prop::collection::vec(0..3usize, 1..4), any::<bool>(), any::<bool>());
    (prop_oneof![2 => whole, 1 => json], folds, output, own, shape).prop_map(
        |((lines, key), (trim, lower, zero), output, own, (codings, unfinished, dupes))| Case {
            lines,
            dupes: dupes && !output.iter().any(|option| ["--annotate", "--invert"].contains(&option.as_str())),
            options: [key, trim, lower, zero, output].concat(),
            own,
            codings,
            unfinished,
        },
    )
}

/// Whether the reference can run. Where all is checked, it must.
fn has_python() -> bool {
    let there = Command::new("python3").arg("--version").output().is_ok_and(|output| output.status.success());
    assert!(there || std::env::var_os("CI").is_none(), "python3 is missing");
    if !there {
        eprintln!("SKIPPED: no python3 here");
    }
    there
}

/// Runs both on the same lines, in files that are compressed for one of them. Their outputs and their repeats.
fn both(case: &Case, keys: Option<&[u8]>) -> [(Option<i32>, Vec<u8>, Vec<u8>); 2] {
    let end = if case.options.iter().any(|option| option == "-z") { 0 } else { b'\n' };
    let bench = Bench::new(&[("ours.d", b""), ("theirs.d", b"")]);
    let parts = case.lines.len().div_ceil(case.codings.len()).max(1);
    let (mut ours, mut theirs) = (case.own.clone(), vec![]);
    for (i, lines) in case.lines.chunks(parts).enumerate() {
        let mut bytes: Vec<u8> = lines.iter().flat_map(|line| [line, &[end][..]].concat()).collect();
        // A last line that is empty is none without its end.
        if case.unfinished && lines.last().is_some_and(|line| !line.is_empty()) {
            bytes.pop();
        }
        bench.write(&format!("plain{i}"), &bytes);
        bench.write(&format!("ours{i}"), &[<[u8]>::to_vec, gzip, zstd][case.codings[i]](&bytes));
        ours.push(format!("ours{i}"));
        theirs.push(format!("plain{i}"));
    }
    if case.lines.is_empty() {
        bench.write("empty", b"");
        ours.push("empty".to_owned());
    }
    if let Some(keys) = keys {
        bench.write("keys", keys);
        ours.extend(["--normalize", "url"].map(str::to_owned));
        theirs.extend(["--keys", "keys"].map(str::to_owned));
    }
    if case.dupes {
        ours.extend(["--dupes", "ours.d"].map(str::to_owned));
        theirs.extend(["--dupes", "theirs.d"].map(str::to_owned));
    }
    let mut python = Command::new("python3");
    python.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/data/reference.py"));
    python.current_dir(bench.0.path()).args(&case.options).args(theirs);
    let mut command = bench.command("dedup --quiet");
    command.args(&case.options).args(ours);
    [(command, "ours.d"), (python, "theirs.d")].map(|(mut command, dupes)| {
        let output = command.output().unwrap();
        // What the reference says would be its own failure.
        let code = output.status.code().filter(|&code| code == 0 || code == 2);
        assert!(code.is_some(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
        (code, output.stdout, bench.read(dupes))
    })
}

#[test]
fn random_corpora_are_those_of_the_reference() {
    if !has_python() {
        return;
    }
    let config = ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() };
    proptest!(config, |(case in case())| {
        // A line cannot hold its own end.
        prop_assume!(case.options.iter().any(|option| option == "-z") || case.lines.iter().all(|line| !line.contains(&b'\n')));
        let mut case = case;
        if case.options.iter().any(|option| option == "-z") {
            case.lines.iter_mut().for_each(|line| line.iter_mut().filter(|byte| **byte == 0).for_each(|byte| *byte = b'\n'));
        }
        let [ours, theirs] = both(&case, None);
        prop_assert_eq!(ours, theirs);
    });
}

/// A URL in some spelling, and its normal form.
fn url() -> impl Strategy<Value = (String, String)> {
    let scheme = prop::sample::select(vec![
        ("http", "http", ":80"),
        ("HTTP", "http", ":80"),
        ("https", "https", ":443"),
        ("hTTps", "https", ":443"),
        ("ftp", "ftp", ":21"),
    ]);
    let host = prop::sample::select(vec!["a.example", "A.Example", "b.example", "xn--bcher-kva.example", "192.0.2.1"]);
    let port = prop::sample::select(vec!["", "", "default", ":8080", ":443"]);
    let path = prop::sample::select(vec![
        ("", "/"),
        ("/", "/"),
        ("/a", "/a"),
        ("/A", "/A"),
        ("/a/", "/a/"),
        ("/%c3%a4", "/%C3%A4"),
        ("/%C3%a4", "/%C3%A4"),
        ("?q=%2f&p", "/?q=%2F&p"),
        ("/?q=%2F&p", "/?q=%2F&p"),
        ("/?p&q=%2F", "/?p&q=%2F"),
    ]);
    let fragment = prop::sample::select(vec!["", "", "#", "#top", "#a/b?c#%2f"]);
    (scheme, host, any::<bool>(), port, path, fragment).prop_map(|(scheme, host, dot, port, path, fragment)| {
        let (written, scheme, default) = scheme;
        let (written_path, path) = path;
        let written_port = if port == "default" { default } else { port };
        let port = if written_port == default { "" } else { written_port };
        let dot = if dot { "." } else { "" };
        (
            format!("{written}://{host}{dot}{written_port}{written_path}{fragment}"),
            format!("{scheme}://{}{port}{path}", host.to_lowercase()),
        )
    })
}

#[test]
fn random_urls_are_those_of_the_reference() {
    if !has_python() {
        return;
    }
    let config = ProptestConfig { cases: 20, failure_persistence: None, ..ProptestConfig::default() };
    let urls = prop::collection::vec(url(), 0..120);
    let part = words(&["", "--field 2", "--field 2 --delimiter ,", "--json-pointer /url"]);
    proptest!(config, |(urls in urls, part in part, lower in maybe("--ignore-case"), codings in prop::collection::vec(0..3usize, 1..3))| {
        let place = |url: &str| match part.join(" ").as_str() {
            "" => url.to_owned(),
            "--field 2" => format!("{}\t{url}\tx", url.len()),
            "--field 2 --delimiter ," => format!("{},{url}", url.len()),
            _ => format!("{{\"n\":{},\"url\":\"{}\"}}", url.len(), url.replace('/', "\\/")),
        };
        let keys: String = urls.iter().map(|(_, key)| format!("{key}\n")).collect();
        let case = Case {
            lines: urls.iter().map(|(url, _)| place(url).into_bytes()).collect(),
            options: [part.clone(), lower].concat(),
            own: vec!["--exact".to_owned()],
            codings,
            unfinished: false,
            dupes: true,
        };
        let [ours, theirs] = both(&case, Some(keys.as_bytes()));
        prop_assert_eq!(ours, theirs);
    });
}

/// The piece of a line that a broken input ends with may be longer than all that comes after.
#[test]
fn a_live_input_after_a_broken_one_is_read_to_its_end() {
    let bench = Bench::new(&[("broken", &gzip(b"a long first piece")[..30])]);
    for input in [&b"a\n"[..], b"b\na\nb\n", b""] {
        let output = fed(bench.command("dedup --on-error skip broken -"), input);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let expected = [&b"a\n"[..], b"b\na\n", b""].into_iter().find(|lines| input.starts_with(lines)).unwrap();
        assert_eq!(text(&output.stdout), text(expected));
    }
}

/// Only the reader of standard output may leave before the end.
#[test]
fn a_reader_of_the_repeats_that_leaves_is_an_error() {
    let bench = Bench::new(&[("in", &[numbers(0..50_000), numbers(0..50_000)].concat())]);
    let fifo = bench.0.path().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let reader = std::thread::spawn(move || drop(File::open(fifo).unwrap()));
    let output = bench.run("dedup --dupes fifo -o out in");
    reader.join().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("fifo"));
}

#[test]
fn a_state_with_all_bits_set_has_figures() {
    let bench = Bench::new(&[("in", &numbers(0..2000)), ("more", &numbers(2000..2010))]);
    bench.run("dedup -n 1 -p 0.5 --state s in");
    let output = bench.run("dedup -n 1 -p 0.5 --state s --stats more");
    assert!(output.stdout.is_empty());
    assert!(text(&output.stderr).contains("wrongly dropped  10.000 "), "{}", text(&output.stderr));
}
