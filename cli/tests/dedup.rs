//! `bloomline dedup` from end to end: the real binary against a plain model.
#![cfg(unix)]

mod common;

use common::{bloomline, clean, failed, fed, refused};
use proptest::prelude::*;
use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;
use tempfile::TempDir;

/// The distinct lines of the files, in order, as `awk '!seen[$0]++'` prints them.
fn model(files: &[&[u8]]) -> Vec<u8> {
    let mut seen = HashSet::new();
    let mut output = Vec::new();
    for file in files {
        for line in file.strip_suffix(b"\n").unwrap_or(file).split(|&byte| byte == b'\n') {
            if !file.is_empty() && seen.insert(line) {
                output.extend(line);
                output.push(b'\n');
            }
        }
    }
    output
}

fn dedup(arguments: &[impl AsRef<OsStr>]) -> Command {
    let mut command = bloomline();
    command.arg("dedup").args(arguments);
    command
}

fn run(arguments: &[impl AsRef<OsStr>]) -> Output {
    dedup(arguments).output().unwrap()
}

/// Runs with a pipe as standard input.
fn pipe(arguments: &[&str], input: &[u8]) -> Output {
    fed(dedup(arguments), input)
}

/// A directory with these files, and their paths.
fn files(contents: &[&[u8]]) -> (TempDir, Vec<String>) {
    let directory = tempfile::tempdir().unwrap();
    let path = |i| directory.path().join(format!("{i}.txt")).into_os_string().into_string().unwrap();
    let paths: Vec<String> = (0..contents.len()).map(path).collect();
    paths.iter().zip(contents).for_each(|(path, bytes)| fs::write(path, bytes).unwrap());
    (directory, paths)
}

const AWKWARD: &[&[u8]] = &[
    b"",
    b"\n",
    b"\n\n",
    b"a",
    b"a\na",
    b"a\n\na\n\n",
    b"no newline\nat the end",
    b"crlf\r\ncrlf\r\ncrlf\n",
    b"nul\0\nnul\0\0\nnul\0\nnul",
    b"\xff\xfe\n\xff\n\xff\xfe\n\xc3\x28\n\xff",
    b" a\na \na\n A\n a\n",
];

#[test]
fn awkward_lines_in_chunks_of_any_size() {
    let long = [&b"x".repeat(70_000)[..], b"\nshort\n", &b"x".repeat(70_000), b"\n", &b"x".repeat(70_001)].concat();
    for input in AWKWARD.iter().copied().chain([&long[..]]) {
        let (_directory, paths) = files(&[input]);
        for size in ["1", "2", "3", "7", "4096", "1048576"] {
            for threads in ["1", "3"] {
                let output = clean(run(&["--chunk-size", size, "-j", threads, &paths[0]]));
                assert_eq!(output, model(&[input]), "{:?} in chunks of {size}", &input[..input.len().min(30)]);
            }
        }
    }
}

#[test]
fn several_files_are_one_input_with_whole_lines() {
    let (_directory, paths) = files(AWKWARD);
    for size in ["1", "5", "1048576"] {
        assert_eq!(clean(run(&[&["--chunk-size".to_owned(), size.to_owned()], &paths[..]].concat())), model(AWKWARD));
    }
}

#[test]
fn more_files_than_descriptors() {
    let (_directory, paths) = files(AWKWARD);
    let output = Command::new("sh")
        .args(["-c", r#"ulimit -n 30; exec "$@""#, "sh", env!("CARGO_BIN_EXE_bloomline"), "dedup"])
        .args((0..40).flat_map(|_| &paths))
        .output();
    assert_eq!(clean(output.unwrap()), model(AWKWARD));
}

#[test]
fn a_fifo_is_opened_once() {
    let (directory, paths) = files(&[b"a\nb\n"]);
    let fifo = directory.path().join("fifo").into_os_string().into_string().unwrap();
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    thread::scope(|scope| {
        scope.spawn(|| fs::write(&fifo, b"b\nc"));
        assert_eq!(clean(run(&["-n", "3", &paths[0], &fifo])), b"a\nb\nc\n");
    });
}

#[test]
fn an_input_that_fails_midway_is_an_error_after_what_is_right() {
    // The address 0 of a process cannot be read.
    let broken = "/proc/self/mem";
    if !Path::new(broken).exists() {
        eprintln!("skipped: no {broken} here");
        return;
    }
    let (_directory, paths) = files(&[b"a\nb\na\n", b"c\n"]);
    for threads in ["1", "4"] {
        let output = run(&["-n", "3", "-j", threads, "--chunk-size", "2", &paths[0], broken, &paths[1]]);
        let message = failed(&output);
        assert_eq!(output.stdout, b"a\nb\n");
        assert!(message.contains(&format!("cannot read \"{broken}\" after line 0: ")), "{message}");
    }
    assert!(refused(run(&[broken])).contains(broken));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Lines from a small set, so that most repeat, in files that break anywhere.
    #[test]
    fn random_lines_are_those_of_the_model(
        inputs in prop::collection::vec(prop::collection::vec("[ab\n\r]{0,3}|[a-e]{2,40}", 0..300), 1..4),
        chunk_size in 1..2000u32,
    ) {
        let contents: Vec<Vec<u8>> = inputs.iter().map(|lines| lines.join("\n").into_bytes()).collect();
        let contents: Vec<&[u8]> = contents.iter().map(Vec::as_slice).collect();
        let (_directory, paths) = files(&contents);
        for threads in ["1", "2", "8"] {
            let options = ["-j", threads, "--chunk-size", &chunk_size.to_string()].map(str::to_owned);
            prop_assert_eq!(clean(run(&[&options[..], &paths[..]].concat())), model(&contents));
        }
    }
}

/// Many chunks of the real size, with repeats near and far.
fn large() -> Vec<u8> {
    let mut state = 1u64;
    let mut bytes = Vec::new();
    for i in 0..300_000u64 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let number = if state >> 62 == 0 { i } else { (state >> 33) % (i + 1) };
        writeln!(bytes, "https://example.org/{number}/{}", "path/".repeat((number % 7) as usize)).unwrap();
    }
    bytes
}

#[test]
fn the_bytes_do_not_depend_on_the_threads() {
    let input = large();
    let (_directory, paths) = files(&[&input]);
    let expected = model(&[&input]);
    for threads in ["1", "2", "8", "100"] {
        assert!(clean(run(&["-j", threads, &paths[0]])) == expected, "-j {threads}");
    }
    // At a rate where many lines are lost, all threads lose the same ones.
    let lossy = |threads, seed| clean(run(&["-p", "0.3", "-j", threads, "--seed", seed, &paths[0]]));
    let lost = lossy("1", "0");
    assert!(lost.len() < expected.len());
    assert!(lost == lossy("2", "0") && lost == lossy("8", "0"));
    assert!(lost != lossy("1", "1"));
}

#[test]
fn real_addresses_are_those_of_the_model() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/data/homepages.txt");
    let input = fs::read(path).unwrap();
    for threads in ["1", "2", "8"] {
        assert!(clean(run(&["-j", threads, "--chunk-size", "10000", path])) == model(&[&input]));
    }
}

#[test]
fn standard_input_can_be_a_pipe_or_a_file() {
    let input = large();
    let (_directory, paths) = files(&[b"first\nb", &input]);
    assert!(clean(pipe(&["-n", "300000"], &input)) == model(&[&input]));
    assert_eq!(clean(pipe(&["-n", "10", &paths[0], "-"], b"a\nb\nc")), b"first\nb\na\nc\n");

    // Redirected from a file it is sized, and read from where it stands.
    let mut file = File::open(&paths[1]).unwrap();
    let mut start = [0; 100_000];
    file.read_exact(&mut start).unwrap();
    let output = dedup(&["--stats=json"]).stdin(file).output().unwrap();
    assert!(output.stdout == model(&[&input[start.len()..]]));
    let stats = json(&output.stderr);
    let keys_at_1e6 = stats["memory_bytes"].as_f64().unwrap() * 8.0 / 41.08;
    assert!((1.0..1.1).contains(&(keys_at_1e6 / stats["lines"].as_f64().unwrap())), "{stats}");
}

#[test]
fn a_pipe_of_unknown_length_needs_a_filter_that_grows() {
    assert_eq!(clean(pipe(&[], b"a\nb\na\n")), b"a\nb\n");
    let told = |arguments: &[&str]| json(&pipe(arguments, b"a\n").stderr)["filters"].as_u64();
    for arguments in [&["--stats=json"][..], &["--stats=json", "--when-full", "grow"]] {
        assert_eq!(told(arguments), Some(1), "{arguments:?}");
    }
    assert_eq!(told(&["--stats=json", "-n", "1"]), None);

    let needs_keys = |output| {
        let message = refused(output);
        assert!(message.contains("standard input") && message.contains("-n"), "{message}");
    };
    needs_keys(pipe(&["--when-full", "warn"], b"a\n"));
    needs_keys(pipe(&["--when-full", "stop"], b"a\n"));
    let (directory, _) = files(&[]);
    let filter = directory.path().join("filter");
    let build = |arguments: &[&str]| {
        let mut command = bloomline();
        command.arg("build").args(arguments).arg("-o").arg(&filter);
        fed(command, b"a\n")
    };
    needs_keys(build(&[]));
    assert!(!filter.exists());
    clean(build(&["-n", "1"]));
    assert!(filter.exists());
}

#[test]
fn unreadable_inputs_are_refused_before_any_output() {
    let (directory, paths) = files(&[b"a\n", b"secret\n"]);
    let missing = directory.path().join("missing").into_os_string().into_string().unwrap();
    let folder = directory.path().to_str().unwrap().to_owned();
    for bad in [&missing, &folder] {
        let message = refused(run(&[&paths[0], bad]));
        assert!(message.contains(bad), "{message}");
    }
    let stdin = OwnedFd::from(File::open(directory.path()).unwrap());
    assert!(refused(dedup(&["-n", "1"]).stdin(stdin).output().unwrap()).contains("standard input"));

    fs::set_permissions(&paths[1], fs::Permissions::from_mode(0o000)).unwrap();
    // Root may read it all the same.
    if File::open(&paths[1]).is_err() {
        assert!(refused(run(&paths)).contains(&paths[1]));
    }
    let odd = directory.path().join("two\nlines");
    assert!(refused(run(&[odd])).contains(r"two\nlines"));
}

#[test]
fn an_output_that_is_an_input_is_refused() {
    let (directory, paths) = files(&[b"a\na\n"]);
    let link = directory.path().join("link").into_os_string().into_string().unwrap();
    fs::hard_link(&paths[0], &link).unwrap();
    for output in [&paths[0], &link] {
        let message = refused(run(&["-o", output, &paths[0]]));
        assert!(message.contains(output) && message.contains(&paths[0]), "{message}");
    }
    let appended = File::options().append(true).open(&paths[0]).unwrap();
    let output = dedup(&[&paths[0]]).stdout(appended).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(fs::read(&paths[0]).unwrap(), b"a\na\n");
}

#[test]
fn the_output_file_is_replaced() {
    let (directory, paths) = files(&[b"a\nb\na\n", b"something longer that was there\n"]);
    assert_eq!(clean(run(&["-o", &paths[1], &paths[0]])), b"");
    assert_eq!(fs::read(&paths[1]).unwrap(), b"a\nb\n");

    let nowhere = directory.path().join("missing/output").into_os_string().into_string().unwrap();
    assert!(refused(run(&["-o", &nowhere, &paths[0]])).contains(&nowhere));
    // Nothing is touched before the inputs are known to be good.
    refused(run(&["-o", &paths[1], &paths[0], &nowhere]));
    assert_eq!(fs::read(&paths[1]).unwrap(), b"a\nb\n");
}

#[test]
fn a_full_output_is_an_error() {
    if !Path::new("/dev/full").exists() {
        eprintln!("skipped: no /dev/full here");
        return;
    }
    let (_directory, paths) = files(&[b"a\n"]);
    assert!(refused(run(&["-o", "/dev/full", &paths[0]])).contains("/dev/full"));
}

#[test]
fn a_closed_pipe_ends_it_quietly() {
    // More comes than any pipe holds, and the input stays open: only the closed output can end it.
    let mut child = dedup(&["-n", "1000000", "-j", "2"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    drop(child.stdout.take());
    let feeder = thread::spawn(move || {
        // Ends with an error when the command is gone.
        let _ = stdin.write_all(&large());
        stdin
    });
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(output.status.code(), Some(0));
    drop(feeder.join());
}

fn json(bytes: &[u8]) -> serde_json::Value {
    serde_json::from_slice(bytes).unwrap()
}

#[test]
fn stats_tell_the_figures() {
    let input = large();
    let (_directory, paths) = files(&[&input]);
    let unique = model(&[&input]).iter().filter(|&&byte| byte == b'\n').count() as u64;

    let output = run(&["--stats=json", "-n", &unique.to_string(), "-p", "1e-6", &paths[0]]);
    let stats = json(&output.stderr);
    assert_eq!(stats["lines"], 300_000);
    assert_eq!(stats["unique"], unique);
    assert_eq!(stats["dropped"], 300_000 - unique);
    assert_eq!(stats["bytes"], input.len());
    let within = |name: &str, range: std::ops::Range<f64>| {
        let value = stats[name].as_f64().unwrap();
        assert!(range.contains(&value), "{name} {value}");
    };
    within("fpr", 0.8e-6..1.2e-6);
    within("fill", 0.2..0.5);
    within("seconds", 1e-4..100.0);
    within("mb_per_second", 0.01..1e6);

    for flag in ["--stats", "--stats=text"] {
        let output = run(&[flag, &paths[0]]);
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(text.contains("lines read       300000\n"), "{text}");
        assert!(text.contains(&format!("\nunique           {unique}\n")), "{text}");
    }
}

#[test]
fn lines_lost_are_as_many_as_expected() {
    let input: Vec<u8> = (0..200_000).flat_map(|i| format!("{i}\n").into_bytes()).collect();
    let (_directory, paths) = files(&[&input]);
    for rate in ["0.01", "0.3"] {
        let stats = json(&run(&["--stats=json", "-n", "200000", "-p", rate, &paths[0]]).stderr);
        let (lost, expected) =
            (stats["dropped"].as_f64().unwrap(), stats["expected_wrongly_dropped"].as_f64().unwrap());
        // All lines differ, so all that were dropped were lost. Five standard deviations, of a count that is about
        // Poisson's.
        assert!(expected > 100.0 && (lost - expected).abs() < 5.0 * expected.sqrt(), "{rate}: {lost} {expected}");
    }
}

#[test]
fn more_keys_than_planned_are_warned_of_once() {
    let input = large();
    let (_directory, paths) = files(&[&input]);
    let output = run(&["-n", "1000", "-p", "0.01", "--chunk-size", "10000", &paths[0]]);
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(message.matches("warning").count(), 1, "{message}");
    assert_eq!(message.matches('\n').count(), 1, "{message}");
    assert!(message.contains("1000") && message.contains("rate"), "{message}");

    // Figures stay finite when the filter is full to the last bit.
    let output = run(&["-n", "1", "--stats=json", &paths[0]]);
    let stats = json(output.stderr.split(|&byte| byte == b'\n').nth(1).unwrap());
    assert_eq!(stats["fill"], 1.0);
    assert!(stats["expected_wrongly_dropped"].as_f64().unwrap() < 300_000.0, "{stats}");
}

#[test]
fn values_out_of_range_are_refused() {
    let (_directory, paths) = files(&[b"a\n"]);
    for (option, values) in [
        ("--fpr", &["0", "1", "2", "-0.1", "NaN", "inf", "x", ""][..]),
        ("--expected-keys", &["0", "-1", "1.5", "99999999999999999999"]),
        ("--threads", &["0", "1025", "x"]),
        ("--stats", &["xml"]),
        ("--seed", &["-1"]),
    ] {
        for value in values {
            let message = refused(run(&[&format!("{option}={value}"), &paths[0]]));
            assert!(message.contains(option), "{message}");
        }
    }
    assert!(refused(run(&["-n", "18446744073709551615", &paths[0]])).contains("1e-6"));
    assert!(refused(run(&["-n", "1000000000000000", "-p", "0.1", &paths[0]])).contains("memory"));
    assert!(refused(run(&["--unknown"])).contains("--unknown"));
}

#[test]
fn help_shows_an_example() {
    let help = String::from_utf8(clean(run(&["--help"]))).unwrap();
    assert!(help.contains("bloomline dedup") && help.contains("--expected-keys"), "{help}");
    assert!(!help.contains("--chunk-size"), "{help}");
}

/// Takes a second and most of a gigabyte.
#[test]
#[ignore = "needs a gigabyte of disk and of memory"]
fn a_line_of_hundreds_of_megabytes() {
    let long = b"0123456789".repeat(30_000_000);
    let input = [b"first\n", &long[..], b"\nsecond\nfirst\n", &long[..], b"\nthird"].concat();
    let (_directory, paths) = files(&[&input]);
    let expected = [b"first\n", &long[..], b"\nsecond\nthird\n"].concat();
    for threads in ["1", "2"] {
        assert!(clean(run(&["-j", threads, &paths[0]])) == expected);
    }
}
