//! `bloomline dedup --output-dir`: many files at once, each distinct line in one of the outputs.

use crate::common::random::Random;
use crate::common::{
    Bench, assert_contains_all, expect_failure, expect_refusal, expect_success, json_values, number, signal, stats,
    text, url_lines, with_slashes, with_ulimit,
};
use crate::corpus::{count, decode, distinct_lines, distinct_lines_by_file, encode, gzip, read_decoded};
use crate::live::wait_for;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Write;
#[cfg(unix)]
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

/// The files of a corpus, before compression.
type Corpus = Vec<(String, Vec<u8>)>;

/// Returns lines that repeat within a file and across files.
fn lines(random: &mut Random, lines: u32, distinct: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..lines {
        let number = random.below(distinct);
        writeln!(bytes, "https://example.org/{number}/{}", "path/".repeat((number % 7) as usize)).unwrap();
    }
    bytes
}

/// Returns a large file, files of all formats, and many small files.
fn corpus() -> Corpus {
    let mut random = Random(7);
    let mut corpus = vec![("large".to_owned(), lines(&mut random, 24_000, 16_000))];
    for name in ["a/x.gz", "a/y.zst", "b/x.xz", "b/c/x.bz2", "b/y.jsonl"] {
        corpus.push((name.to_owned(), lines(&mut random, 4000, 20_000)));
    }
    corpus.extend((0..60).map(|i| (format!("small/{i:02}"), lines(&mut random, 20, 20_000))));
    corpus.push(("empty".to_owned(), Vec::new()));
    corpus.push(("empty.gz".to_owned(), Vec::new()));
    corpus.push(("repeats.gz".to_owned(), corpus[0].1[..corpus[0].1.len() / 2].to_vec()));
    let end = corpus[1].1.len() - 1;
    corpus[1].1.truncate(end);
    corpus
}

/// Writes the corpus below `in`.
fn bench(corpus: &Corpus) -> Bench {
    let bench = Bench::new(&[]);
    for (name, bytes) in corpus {
        let path = bench.path("in").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, encode(name, bytes)).unwrap();
    }
    bench
}

/// Returns a command with the files of the corpus as inputs.
fn command(bench: &Bench, corpus: &Corpus, line: &str) -> Command {
    let mut command = bench.command(line);
    command.args(corpus.iter().map(|(name, _)| format!("in/{name}")));
    command
}

/// Returns the relative paths of all files below a folder.
fn found(folder: &Path) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        if entry.file_type().unwrap().is_dir() {
            names.extend(found(&entry.path()).into_iter().map(|below| format!("{name}/{below}")));
        } else {
            names.insert(name);
        }
    }
    names
}

/// Returns the contents of each file below a folder, which may be missing.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let names = if folder.exists() { found(folder) } else { BTreeSet::new() };
    names.into_iter().map(|name| (name.clone(), fs::read(folder.join(name)).unwrap())).collect()
}

fn sorted(bytes: &[u8]) -> Vec<&[u8]> {
    let mut lines: Vec<&[u8]> = bytes.split(|&byte| byte == b'\n').collect();
    lines.sort_unstable();
    lines
}

/// Asserts that each distinct line is in one of the outputs, once, and that each output has lines of its input, in their order.
#[track_caller]
fn check(bench: &Bench, folder: &str, corpus: &Corpus) {
    let expected: BTreeSet<String> = corpus.iter().map(|(name, _)| name.clone()).collect();
    assert_eq!(found(&bench.path(folder)), expected);
    let mut all = Vec::new();
    for (name, bytes) in corpus {
        // A compressed output is not empty even without lines.
        assert!(
            !name.contains('.') || name.ends_with("jsonl") || !bench.read(&format!("{folder}/{name}")).is_empty(),
            "{name}"
        );
        let kept = read_decoded(bench, &format!("{folder}/{name}"));
        let mut lines = bytes.split(|&byte| byte == b'\n');
        let mut printed = kept.split_inclusive(|&byte| byte == b'\n').map(|line| line.strip_suffix(b"\n").unwrap());
        assert!(printed.all(|line| lines.any(|own| own == line)), "{name}");
        all.extend(kept);
    }
    let files: Vec<&[u8]> = corpus.iter().map(|(_, bytes)| &bytes[..]).collect();
    assert!(sorted(&all) == sorted(&distinct_lines(&files)), "{folder}: {} lines", count(&all));
}

/// Asserts that the manifest lists each file, in the order of the inputs.
#[track_caller]
fn check_manifest(bench: &Bench, folder: &str, corpus: &Corpus, outputs: &Corpus) -> Vec<Value> {
    let files = json_values(&bench.read("m"));
    assert_eq!(files.len(), corpus.len());
    for (((name, bytes), (output, _)), file) in corpus.iter().zip(outputs).zip(&files) {
        assert_eq!((&file["input"], &file["fault"]), (&format!("in/{name}").into(), &Value::Null));
        assert_eq!(with_slashes(file["output"].as_str().unwrap()), format!("{folder}/{output}"));
        let written = bench.read(&format!("{folder}/{output}"));
        let (lines, unique) = (number(file, "lines"), number(file, "unique"));
        assert_eq!(lines as usize, bytes.split_inclusive(|&byte| byte == b'\n').count());
        assert_eq!(unique as u64, count(&decode(output, &written).0));
        assert_eq!(number(file, "dropped"), lines - unique);
        assert_eq!(number(file, "output_bytes") as usize, written.len());
        assert_eq!(number(file, "input_bytes") as usize, bench.read(&format!("in/{name}")).len());
    }
    files
}

#[test]
fn each_line_is_kept_in_one_file() {
    let corpus = corpus();
    let bench = bench(&corpus);
    for (i, options) in ["-j 1", "-j 2", "-j 8 --chunk-size 1000", "-n 60000 -p 1e-9 -j 3 --chunk-size 50", "--exact"]
        .into_iter()
        .enumerate()
    {
        let line = format!("dedup -p 1e-9 {options} --output-dir o{i} --manifest m --stats=json");
        let output = command(&bench, &corpus, &line.replacen("-p 1e-9 -n", "-n", 1)).output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        check(&bench, &format!("o{i}"), &corpus);
        let manifest = check_manifest(&bench, &format!("o{i}"), &corpus, &corpus);
        let totals = stats(&output);
        for field in ["lines", "unique", "dropped", "bytes"] {
            let sum: f64 = manifest.iter().map(|file| number(file, field)).sum();
            assert_eq!(sum, number(&totals, field), "{field}");
        }
    }
}

#[test]
fn removed_lines_are_written_for_each_file() {
    let corpus = vec![("a".to_owned(), b"x\nx\ny\n".to_vec()), ("b".to_owned(), b"z\nz\n".to_vec())];
    let bench = bench(&corpus);
    for (option, a, b) in [("--invert", "x\n", "z\n"), ("--annotate", "new\tx\ndup\tx\nnew\ty\n", "new\tz\ndup\tz\n")] {
        expect_success(command(&bench, &corpus, &format!("dedup --output-dir o --force {option}")).output().unwrap());
        assert_eq!((text(&bench.read("o/a")), text(&bench.read("o/b"))), (a.to_owned(), b.to_owned()));
    }
}

#[cfg(unix)]
#[test]
fn existing_files_are_kept() {
    let bench = Bench::new(&[("a", b"a\n"), ("b", b"b\n"), ("a.part", b"p\n"), ("list", b"a\n")]);
    fs::create_dir(bench.path("o")).unwrap();
    bench.write("o/b", b"precious\n");
    assert_contains_all(&bench.run_err("dedup --output-dir o a b"), &["refusing to overwrite \"o/b\"", "--force"]);
    assert_eq!(found(&bench.path("o")), BTreeSet::from(["b".to_owned()]));
    bench.run_ok("dedup --output-dir o --force a b");
    assert_eq!((bench.read("o/a"), bench.read("o/b")), (b"a\n".to_vec(), b"b\n".to_vec()));
    for (line, parts) in [
        ("a a", &["\"o2/a\"", "both \"a\" and \"a\""][..]),
        ("a ./a", &["\"o2/a\"", "both \"a\" and \"./a\""]),
        ("a a.part", &["both \"a\" and \"a.part\""]),
        ("a /dev/null", &["/dev/null", "regular files", "-o"]),
        ("a -", &["standard input", "regular files"]),
        ("a missing", &["\"missing\"", "No such file"]),
        ("--state o2/a a", &["o2/a"]),
        ("--manifest o2/a a", &["o2/a"]),
        ("--manifest s --state s a", &["\"s\"", "another output"]),
        ("--manifest ./s.resume --state s a", &["s.resume", "another output"]),
        ("--manifest list --files-from list", &["\"list\"", "another output"]),
        ("--manifest - a", &["\"-\"", "not a regular file"]),
        ("--state s --when-full stop -n 100 a", &["--when-full stop", "--in-order", "grow"]),
        ("-o x a", &["--output", "--output-dir"]),
        ("--dupes x a", &["--dupes", "--output-dir"]),
        ("--total a", &["--total", "--output-dir"]),
    ] {
        assert_contains_all(&bench.run_err(&format!("dedup --output-dir o2 {line}")), parts);
        assert!(!bench.path("o2").exists() || found(&bench.path("o2")).is_empty(), "{line}");
    }
    // A refused run does not remove a partial output.
    fs::create_dir_all(bench.path("o2")).unwrap();
    bench.write("o2/a.part", b"begun\n");
    assert_contains_all(
        &bench.run_err("dedup --output-dir o2 --force --when-full stop -n 100 a"),
        &["--when-full stop", "--in-order"],
    );
    assert_eq!(bench.read("o2/a.part"), b"begun\n");
    // The output and the state are the same file by different paths.
    fs::create_dir(bench.path("real")).unwrap();
    symlink("real", bench.path("link")).unwrap();
    assert_contains_all(&bench.run_err("dedup --state real/a --output-dir link a"), &["\"link/a\"", "another output"]);
    assert!(found(&bench.path("real")).is_empty());
    // The output is the input itself.
    assert_contains_all(&bench.run_err("dedup --output-dir . --force a"), &["\"./a\"", "also an input"]);
    assert_contains_all(&bench.run_err("dedup --manifest m a"), &["--output-dir"]);
    assert_contains_all(&bench.run_err("dedup --in-order a"), &["--output-dir"]);
    assert_eq!(bench.read("a"), b"a\n");
}

#[test]
fn one_run_at_a_time_writes_to_a_folder() {
    let bench = Bench::new(&[("a", b"a\n")]);
    fs::create_dir(bench.path("o")).unwrap();
    #[cfg(unix)]
    let folder = File::open(bench.path("o")).unwrap();
    #[cfg(windows)]
    let folder = File::create(bench.path("o/.bloomline.lock")).unwrap();
    folder.lock().unwrap();
    assert_contains_all(&bench.run_err("dedup --output-dir o a"), &["\"o\"", "another run is writing to it"]);
    drop(folder);
    bench.run_ok("dedup --output-dir o a");
}

#[test]
fn lines_without_a_key_and_broken_files_are_handled() {
    let bench = Bench::new(&[("a", b"k\t1\nbad\nk\t2\n"), ("b", b"k\t1\nk\t3\n"), ("torn.gz", &gzip(b"k\t4\n")[..20])]);
    let line = |more: &str| format!("dedup --field 2 -p 1e-9 -j 1 --output-dir o --force --manifest m {more}");
    let message = bench.run_err(&line("a b"));
    assert_contains_all(&message, &["\"a\", line 2:", "--on-error"]);
    // Incomplete outputs are removed.
    assert!(!bench.path("o/a").exists() && !bench.path("o/a.part").exists());
    assert_contains_all(&bench.run_err(&line("b torn.gz")), &["torn.gz", "--on-error"]);
    for (on_error, a) in [("skip", "k\t1\nk\t2\n"), ("keep", "k\t1\nbad\nk\t2\n")] {
        let output = bench.run(&line(&format!("--on-error {on_error} a torn.gz missing b")));
        assert_eq!(output.status.code(), Some(1));
        assert_contains_all(
            &text(&output.stderr),
            &["torn.gz", "\"missing\"", "lines without a key: 1", "\"a\", line 2"],
        );
        assert_eq!((text(&bench.read("o/a")), text(&bench.read("o/b"))), (a.to_owned(), "k\t3\n".to_owned()));
        assert_contains_all(
            json_values(&bench.read("m"))[1]["fault"].as_str().unwrap(),
            &["torn.gz", "the rest of it is skipped"],
        );
    }
}

#[test]
fn the_manifest_names_broken_inputs() {
    let torn = &gzip(b"x\n")[..12];
    let bench = Bench::new(&[("a.gz", torn), ("b.gz", torn), ("c", b"c\n"), ("d.gz", torn)]);
    for in_order in ["", " --in-order"] {
        let line = format!("dedup --on-error skip --output-dir o --force --manifest m{in_order} a.gz b.gz c d.gz");
        assert_eq!(bench.run(&line).status.code(), Some(1));
        let files = json_values(&bench.read("m"));
        assert_eq!(files.len(), 4);
        for (file, part) in files.iter().zip(["a.gz", "b.gz", "null", "d.gz"]) {
            assert_contains_all(&file["fault"].to_string(), &[part]);
        }
    }
}

/// A partial output that cannot be resumed is removed.
#[cfg(unix)]
#[test]
fn a_full_disk_leaves_no_part_without_a_state() {
    let bench = Bench::new(&[("a", &url_lines(0..10)), ("b", &url_lines(0..50_000)), ("c", b"c\n")]);
    for options in ["-j 2", "--in-order", "--in-order -j 1 --compress none", "--in-order --compress zstd"] {
        let command = bench.command(&format!("dedup -n 100000 --output-dir o --force {options} a b c"));
        assert_contains_all(&expect_failure(&with_ulimit("-f 8", &command).output().unwrap()), &["File too large"]);
        assert!(!found(&bench.path("o")).iter().any(|name| name.ends_with(".part")), "{options}");
    }
}

#[test]
fn later_runs_are_compared_with_earlier_ones() {
    let bench = Bench::new(&[("a", &url_lines(0..1000)), ("b", &url_lines(500..1500)), ("c", &url_lines(1400..2000))]);
    bench.run_ok("dedup --state s -p 1e-9 --output-dir o a b");
    bench.run_ok("dedup --state s --output-dir o c");
    assert_eq!(bench.read("o/c"), url_lines(1500..2000));
    assert_contains_all(&bench.run_err("dedup --state s --output-dir o c"), &["refusing to overwrite \"o/c\""]);
    assert_eq!(found(&bench.path("o")).len(), 3);
    // Resuming the complete run changes nothing.
    let before = bench.read("s");
    assert_eq!(bench.run_ok("dedup --quiet --state s --output-dir o --resume c"), "");
    assert!(bench.read("o/c") == url_lines(1500..2000) && bench.read("s") == before);
}

/// Asserts that the first of equal lines is kept, in the order of the inputs.
#[track_caller]
fn check_order(bench: &Bench, folder: &str, corpus: &Corpus) {
    check(bench, folder, corpus);
    let expected = distinct_lines_by_file(corpus.iter().map(|(_, bytes)| &bytes[..]));
    for ((name, _), expected) in corpus.iter().zip(expected) {
        assert!(read_decoded(bench, &format!("{folder}/{name}")) == expected, "{name}");
    }
}

#[test]
fn in_order_keeps_the_first_line_and_is_deterministic() {
    let corpus = corpus();
    let bench = bench(&corpus);
    let mut first = None;
    for (i, options) in
        ["-j 1", "-j 2", "-j 8 --chunk-size 1000 --exact", "-n 60000 --when-full stop"].into_iter().enumerate()
    {
        let line = format!("dedup --in-order -p 1e-9 {options} --output-dir o{i} --manifest m");
        expect_success(command(&bench, &corpus, &line).output().unwrap());
        check_order(&bench, &format!("o{i}"), &corpus);
        let files = files(&bench.path(&format!("o{i}")));
        assert!(*first.get_or_insert_with(|| files.clone()) == files, "{options}");
        check_manifest(&bench, &format!("o{i}"), &corpus, &corpus);
    }
    // The filter is too small for all lines.
    let output = command(&bench, &corpus, "dedup --in-order -n 1000 --when-full stop --output-dir p").output().unwrap();
    assert_contains_all(&expect_failure(&output), &["stopped at \"in/large\", line 10"]);
    assert_eq!(found(&bench.path("p")), BTreeSet::new());
}

/// At the failure, other threads have claimed lines that are not written. These must not be in the state.
#[test]
fn runs_are_resumed_after_a_failure() {
    let mut lines: Vec<String> = (0..150_000).map(|i| format!("k\t{i}\n")).collect();
    lines[75_000] = "bad\n".to_owned();
    // Compression is slow enough for checkpoints between the failure and the end.
    let line =
        "dedup -p 1e-9 --field 2 -j 8 --chunk-size 20000 --compress xz:0 --state s --checkpoint 1ms --output-dir o a";
    for _ in 0..4 {
        let bench = Bench::new(&[("a", lines.concat().as_bytes())]);
        assert_contains_all(&bench.run_err(line), &["\"a\", line 75001:", "--on-error"]);
        let output = bench.run(&format!("{line} --resume --on-error skip"));
        assert!(output.status.success(), "{}", text(&output.stderr));
        lines[75_000].clear();
        assert!(sorted(&read_decoded(&bench, "o/a.xz")) == sorted(lines.concat().as_bytes()));
        lines[75_000] = "bad\n".to_owned();
    }
}

/// With `--in-order`, the lines before a failure are always printed.
#[test]
fn an_output_shorter_than_at_the_checkpoint_is_refused() {
    let bench = Bench::new(&[("a", b"1\tx\n2\ty\nbad\n")]);
    let line = "dedup --field 2 --in-order --state s --output-dir o a";
    assert_contains_all(&bench.run_err(line), &["\"a\", line 3:"]);
    assert_eq!(bench.read("o/a.part"), b"1\tx\n2\ty\n");
    let expected = |have| ["cannot resume: \"o/a.part\" has ", have, " bytes, but had 8 at the checkpoint"].concat();
    bench.write("o/a.part", b"1\tx\n2\ty");
    assert_contains_all(&bench.run_err(&format!("{line} --resume")), &[&expected("7")]);
    fs::remove_file(bench.path("o/a.part")).unwrap();
    assert_contains_all(&bench.run_err(&format!("{line} --resume")), &[&expected("0")]);
}

#[cfg(unix)]
#[test]
fn interrupted_runs_are_not_restarted() {
    let corpus = corpus();
    let bench = bench(&corpus);
    let job = |more: &str| {
        command(&bench, &corpus, &format!("dedup -q -p 1e-9 -n 1000 --when-full grow --state s --output-dir o{more}"))
    };
    // The limit of files is 200 KiB.
    assert_contains_all(&expect_failure(&with_ulimit("-f 400", &job("")).output().unwrap()), &["File too large"]);
    assert!(files(&bench.path("o")).iter().any(|(name, bytes)| name.ends_with(".part") && !bytes.is_empty()));
    let before = found(&bench.path("o"));
    let message = expect_refusal(job("").output().unwrap());
    assert_contains_all(&message, &["refusing to ", "\"o/", "continue that run with --resume"]);
    assert_eq!(found(&bench.path("o")), before);
    expect_success(job(" --resume").output().unwrap());
    check(&bench, "o", &corpus);
}

#[cfg(unix)]
#[test]
fn a_signal_leaves_no_part_without_a_state() {
    let corpus: Corpus =
        vec![("a".to_owned(), lines(&mut Random(3), 200_000, 150_000)), ("b".to_owned(), url_lines(0..10))];
    let bench = bench(&corpus);
    for _ in 0..20 {
        // A run that ended before its signal leaves outputs, which the next run would refuse to overwrite.
        _ = fs::remove_dir_all(bench.path("o"));
        let child = command(&bench, &corpus, "dedup --chunk-size 100 --output-dir o").spawn().unwrap();
        wait_for(|| bench.path("o/a.part").metadata().is_ok_and(|part| part.len() > 0) || bench.path("o/a").exists());
        signal(&child, "TERM");
        let output = child.wait_with_output().unwrap();
        assert!(!found(&bench.path("o")).iter().any(|name| name.ends_with(".part")));
        if output.status.code() == Some(143) {
            return;
        }
        assert!(output.status.success());
    }
    panic!("each run was faster than its signal");
}

#[cfg(unix)]
#[test]
fn many_files_need_few_descriptors() {
    let corpus: Corpus = (0..500).map(|i| (format!("{i}.zst"), url_lines(i..i + 10))).collect();
    let bench = bench(&corpus);
    for (folder, options) in [("o", ""), ("p", " --in-order")] {
        let command = command(&bench, &corpus, &format!("dedup -p 1e-9 -j 4{options} --output-dir {folder}"));
        expect_success(with_ulimit("-n 40", &command).output().unwrap());
        check(&bench, folder, &corpus);
    }
}

#[test]
fn runs_without_readable_inputs_write_no_output() {
    let bench = Bench::new(&[]);
    for options in ["", " --in-order"] {
        let output = bench.run(&format!("dedup --on-error skip{options} --output-dir o missing"));
        assert_contains_all(&text(&output.stderr), &["\"missing\"", "it is skipped"]);
        assert_eq!((output.status.code(), found(&bench.path("o")).len()), (Some(1), 0));
    }
}

/// Two of the names look the same when they are printed.
#[cfg(unix)]
#[test]
fn reports_distinguish_names_that_are_not_utf8() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let bench = Bench::new(&[]);
    fs::create_dir(bench.path("in")).unwrap();
    let document = b"{\"text\":\"one two three four five six seven eight nine ten eleven twelve thirteen\"}\n";
    for name in [&b"x\xFE"[..], b"x\xFF", b"y"] {
        fs::write(bench.path("in").join(OsStr::from_bytes(name)), document).unwrap();
    }
    bench.run_ok("dedup --output-dir o --manifest m in");
    let files = json_values(&bench.read("m"));
    let names = |name: &str| files.iter().map(|file| file[name].as_str().unwrap_or("-").to_owned()).collect::<Vec<_>>();
    assert_eq!(names("input"), ["in/x\u{FFFD}", "in/x\u{FFFD}", "in/y"]);
    assert_eq!(names("input_hex"), ["696e2f78fe", "696e2f78ff", "-"]);
    assert_eq!(names("output_hex"), ["6f2f78fe", "6f2f78ff", "-"]);

    let [first, second, third] = [",\"file_hex\":\"696e2f78fe\"", ",\"file_hex\":\"696e2f78ff\"", ""]
        .map(|hex| format!("\"file\":\"in/{}\"{hex},\"line\":1", if hex.is_empty() { "y" } else { "x\u{FFFD}" }));
    for command in ["dedup", "corpus --near 0.8"] {
        bench.run_ok(&format!("{command} --pairs p --clusters c -o d in"));
        let similar = if command == "dedup" { "" } else { ",\"similarity\":1.0000,\"contained\":1.0000" };
        let pair = |line: &str| format!("{{{line},\"kept\":{{{first}}}{similar}}}\n");
        assert_eq!(text(&bench.read("p")), pair(&second) + &pair(&third));
        let members = format!("[{{{first}}},{{{second}}},{{{third}}}]");
        assert_eq!(text(&bench.read("c")), format!("{{\"cluster\":1,\"size\":3,\"members\":{members}}}\n"));
    }
    bench.write("test", document);
    bench.run_ok("corpus --against test --report r -o d in");
    assert_contains_all(&text(&bench.read("r")), &[&first, &second, &third]);
}
