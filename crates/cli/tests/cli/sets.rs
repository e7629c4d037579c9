//! `in` and `not-in`, compared with sets and grep.

use crate::common::{
    Bench, assert_contains_all, expect_exit_code, expect_failure, expect_refusal, expect_success, number,
    report_skipped, run_with_stdin, stats, text, url_lines, with_slashes,
};
use crate::corpus::{gunzip, unzstd};
use crate::live::RunningCommand;
use proptest::prelude::*;
use std::collections::HashSet;
use std::fs::{self, File};
use std::process::Command;

/// Returns a file of these lines. Some of them have many repeats.
fn file(lines: &[u8]) -> Vec<u8> {
    lines
        .iter()
        .flat_map(|line| [&b"x".repeat(usize::from(*line) % 7)[..], &[b'a' + line % 26, b'\n']].concat())
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    /// The lines of NEW are printed in order, with repeats or only once.
    #[test]
    fn lines_match_the_model(
        old in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..60), 1..4),
        new in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..60), 0..4),
        (threads, chunk, exact, piped) in (1..4u8, 1..50u8, any::<bool>(), any::<bool>()),
    ) {
        let bench = Bench::new(&[]);
        let write = |side: &str, files: &[Vec<u8>]| {
            let names = files.iter().enumerate().map(|(i, lines)| {
                bench.write(&format!("{side}{i}"), &file(lines));
                format!(" {side}{i}")
            });
            names.collect::<String>()
        };
        let (olds, news) = (write("old", &old), write("new", &new));
        let (old, new) = (old.iter().flat_map(|lines| file(lines)), new.iter().flat_map(|lines| file(lines)));
        let (old, new): (Vec<u8>, Vec<u8>) = (old.collect(), new.collect());
        let known: HashSet<&[u8]> = old.split_inclusive(|&byte| byte == b'\n').collect();
        // Without --exact, half of the other lines would be false positives.
        let rate = if exact { "--exact -p 0.5" } else { "-p 1e-9" };
        for (command, wanted, distinct) in [("in", true, false), ("not-in", false, false), ("not-in --distinct", false, true)] {
            let mut printed = HashSet::new();
            let selected = new.split_inclusive(|&byte| byte == b'\n').filter(|line| known.contains(line) == wanted);
            let selected = selected.filter(|line| printed.insert(*line) || !distinct);
            let expected: Vec<u8> = selected.flatten().copied().collect();
            let line = format!("{command} -q {rate} -j {threads} --chunk-size {chunk}{olds}");
            let output = match piped || news.is_empty() {
                true => run_with_stdin(bench.command(&line), &new),
                false => bench.run(&format!("{line} --{news}")),
            };
            prop_assert_eq!(text(&output.stderr), "");
            prop_assert_eq!(output.status.code(), Some(i32::from(expected.is_empty())));
            prop_assert_eq!(output.stdout, expected);
        }
    }
}

/// Only lines and exit codes are compared, not file names, counts and messages.
#[test]
fn outputs_and_exit_codes_match_grep() {
    let bench = Bench::new(&[("a", b"x\ny\nz\nx"), ("b", b"q\n"), ("c", b""), ("old", b"x\ny\n")]);
    for files in ["a", "a b c", "b", "c", "missing", "missing a", "a missing b", "missing gone"] {
        for (ours, of_grep) in [
            ("in --total", "-c"),
            ("not-in --total", "-vc"),
            ("in -j1", "-h"),
            ("not-in", "-vh"),
            ("in --any", "-q"),
            ("not-in --any", "-vq"),
        ] {
            let arguments = format!("{of_grep} -F -x -f old {files}");
            let grep = Command::new("grep").args(arguments.split(' ')).current_dir(bench.0.path()).output();
            let Ok(grep) = grep else {
                report_skipped("no grep here");
                return;
            };
            let ours = bench.run(&format!("{ours} old -- {files}"));
            assert_eq!((ours.stdout, ours.status.code()), (grep.stdout, grep.status.code()), "{arguments}");
        }
    }
}

#[test]
fn exact_comparison_has_no_errors() {
    let bench = Bench::new(&[("old", &url_lines(0..60_000)), ("new", &url_lines(30_000..90_000))]);
    let (both, added) = (text(&url_lines(30_000..60_000)), text(&url_lines(60_000..90_000)));
    for options in ["", "-j 1 ", "-n 10 ", "-m 4096 "] {
        assert!(bench.run_ok(&format!("in --exact -p 0.3 {options}-q old -- new")) == both, "{options}");
        assert!(bench.run_ok(&format!("not-in --exact -p 0.3 {options}-q old -- new")) == added, "{options}");
    }
    // Without --exact, the number of false positives matches the expectation in both commands. One thread makes it the same in each
    // run.
    let selected = |command: &str| {
        let output = bench.run(&format!("{command} -j 1 -n 60000 -p 0.3 --stats=json old -- new"));
        (output.stdout.iter().filter(|&&byte| byte == b'\n').count() as f64, number(&stats(&output), "expected_wrong"))
    };
    let ((added, expected), (both, same)) = (selected("not-in"), selected("in"));
    let wrong = 30_000.0 - added;
    // Five standard deviations of the count, and the error of the estimate.
    assert!((wrong - expected).abs() < 5.0 * (0.7 * wrong).sqrt() + 0.02 * wrong, "{wrong} {expected}");
    assert_eq!(both, 30_000.0 + wrong);
    assert!((same / expected - 1.0).abs() < 1e-9, "{same} {expected}");
}

#[test]
fn distinct_lines_are_printed_once() {
    let new = [url_lines(30_000..90_000), url_lines(50_000..90_000)].concat();
    let bench = Bench::new(&[("old", &url_lines(0..60_000)), ("new", &new), ("one", b"x\ny\nx\n"), ("two", b"y\nz\n")]);
    let added = text(&url_lines(60_000..90_000));
    for options in ["", "-j 1 ", "-n 10 ", "-m 4096 "] {
        assert!(
            bench.run_ok(&format!("not-in --distinct --exact -p 0.3 {options}-q old -- new")) == added,
            "{options}"
        );
        assert_eq!(
            bench.run_ok(&format!("not-in --distinct --exact -p 0.3 --total {options}-q old -- new")),
            "30000\n"
        );
    }
    // A line counts for the file in which it is first.
    assert_eq!(bench.run_ok("not-in --distinct --total old -- one two one"), "one:2\ntwo:1\none:0\n");
    assert_eq!(bench.run_ok("not-in --distinct -f 1 -d . --trim -o o one -- two"), "");
    assert_eq!(bench.read("o"), b"z\n");
    assert_eq!(expect_exit_code(bench.run("not-in --distinct one -- one"), 1), "");
    assert_contains_all(&bench.run_err("in --distinct one -- two"), &["'--distinct' is an option of bloomline not-in"]);
    // The filter is sized for the lines of both sides, and has the rate for all of them.
    let size = |line: &str| number(&stats(&bench.run(line)), "memory_bytes");
    assert_eq!(size("not-in --distinct -p 0.3 --stats=json old -- new"), size("dedup -p 0.3 --stats=json old new"));
    let output = bench.run("not-in --distinct -j 1 -n 90000 -p 0.3 --stats=json old -- new");
    let figures = stats(&output);
    let selected = output.stdout.iter().filter(|&&byte| byte == b'\n').count() as f64;
    assert_eq!((number(&figures, "selected"), number(&figures, "new_lines")), (selected, 100_000.0));
    let (wrong, expected) = (30_000.0 - selected, number(&figures, "expected_wrong"));
    assert!((wrong - expected).abs() < 5.0 * wrong.sqrt() + 0.02 * wrong, "{wrong} {expected}");
    assert!(wrong > 100.0, "{wrong}");
    // The lines of both sides fill the filter.
    let stopped = bench.run("not-in --distinct -n 60001 --when-full stop -q old -- new");
    assert_contains_all(&expect_failure(&stopped), &["stopped at \"new\"", "60001 distinct lines"]);
    assert!(stopped.stdout == url_lines(60_000..60_001));
    // Lines without a key are not repeats.
    bench.write("none", b"none\nnone\na\tx\na\tx\n");
    assert_eq!(bench.run_ok("not-in --distinct --field 2 --on-error keep -q old -- none"), "none\nnone\na\tx\n");
}

#[test]
fn statistics_count_both_sides() {
    let bench = Bench::new(&[("old", b"a\tx\na\tx\nnone\nb\ty\n"), ("new", b"n\tx\nnone\nn\tz\n")]);
    let line = "not-in -n 3 --field 2 --on-error skip -q --stats=json old -- new";
    let output = bench.run(line);
    assert_eq!((text(&output.stdout).as_str(), output.status.code()), ("n\tz\n", Some(0)));
    let figures = stats(&output);
    for (name, expected) in
        [("old_lines", 4), ("old_distinct", 2), ("new_lines", 3), ("selected", 1), ("without_key", 2)]
    {
        assert_eq!(figures[name], expected, "{name}");
    }
    let output = bench.run(&line.replace("skip", "keep").replace("not-in", "in"));
    assert_eq!(text(&output.stdout), "n\tx\nnone\n");
    let rate = number(&stats(&output), "fpr");
    assert!((number(&stats(&output), "expected_wrong") / rate - 1.0).abs() < 0.01);
    assert_contains_all(&text(&bench.run("in --exact --stats old -- old").stderr), &["lines of OLD", "hashes on disk"]);
}

#[test]
fn key_options_apply_to_both_sides() {
    let bench = Bench::new(&[
        ("old", b"1,\"X\"\n2,y\n"),
        ("new", b"3,x\n4,z\n5,\" Y \"\n"),
        ("zero", b"x\0y\0"),
        ("zeros", b"y\0z\0"),
    ]);
    assert_eq!(bench.run_ok("in --csv -f 2 -i --trim old -- new"), "3,x\n5,\" Y \"\n");
    assert_eq!(bench.run_ok("not-in --csv -f 2 -i --trim old -- new"), "4,z\n");
    assert_eq!(bench.run_ok("not-in -z zero -- zeros"), "z\0");
}

/// A file of NEW in a directory of OLD is not read as OLD.
#[test]
fn directories_are_read_on_both_sides() {
    let bench = Bench::new(&[]);
    fs::create_dir_all(bench.path("crawl/today")).unwrap();
    bench.write("crawl/monday", b"a\nb\n");
    bench.write("crawl/tuesday.txt", b"c\n");
    bench.write("crawl/today/1", b"b\nd\n");
    bench.write("crawl/today/2", b"e\nc\n");
    assert_eq!(bench.run_ok("not-in crawl -- crawl/today"), "d\ne\n");
    assert_eq!(bench.run_ok("in crawl -- crawl/today/2"), "c\n");
    assert_eq!(bench.run_ok("in --glob *.txt crawl -- crawl/today/2"), "c\n");
    assert_eq!(expect_exit_code(bench.run("not-in crawl crawl/today/2 -- crawl/today/2"), 1), "");
    let totals = bench.run_ok("not-in --total crawl/monday -- crawl/today");
    assert_eq!(with_slashes(&totals), "crawl/today/1:1\ncrawl/today/2:2\n");
    // The list names inputs of OLD.
    assert_eq!(
        expect_success(run_with_stdin(
            bench.command("not-in --files-from - crawl/tuesday.txt -- crawl/today"),
            b"crawl/monday\n"
        )),
        b"d\ne\n"
    );
}

#[cfg(unix)]
#[test]
fn standard_input_is_one_side() {
    let bench = Bench::new(&[("old", b"a\n"), ("new", b"a\nb\n")]);
    assert_eq!(expect_success(run_with_stdin(bench.command("not-in old"), b"b\na\nb\n")), b"b\nb\n");
    assert_eq!(expect_success(run_with_stdin(bench.command("not-in old -- new -"), b"c\n")), b"b\nc\n");
    assert_eq!(expect_success(run_with_stdin(bench.command("not-in - -- new"), b"b\n")), b"a\n");
    for line in ["not-in -", "in old - -- -", "not-in --files-from - -- -", "in --files-from -"] {
        assert_contains_all(
            &expect_refusal(run_with_stdin(bench.command(line), b"")),
            &["standard input cannot be read for both OLD and NEW"],
        );
    }
    assert_contains_all(&bench.run_err("in old -- new -o out"), &["no file \"-o\"", "options before"]);
    assert!(!bench.path("out").exists());
    bench.write("-x", b"x\n");
    assert_eq!(bench.run_ok("not-in old -- -x"), "x\n");
    assert_contains_all(&bench.run_err("not-in"), &["required", "OLD"]);
    assert_contains_all(&bench.run_err("in -- new"), &["required", "OLD"]);
    // Results for lines of a pipe do not wait for its end.
    let mut running = RunningCommand::new(bench.command("not-in old"));
    for word in ["one", "two"] {
        running.write_input(format!("a\n{word}\n").as_bytes());
        assert_eq!(running.line(), word);
    }
    running.signal("INT");
    assert_eq!(running.end(), (Some(130), vec![], String::new()));
}

#[test]
fn output_options_work_as_in_dedup() {
    let bench =
        Bench::new(&[("old", &url_lines(0..5000)), ("new", &url_lines(2000..9000)), ("o.zst", b"what was there")]);
    let expected = url_lines(5000..9000);
    assert_eq!(bench.run_ok("not-in old -o o.zst -- new"), "");
    assert!(unzstd(&bench.read("o.zst")) == expected);
    bench.run_ok("not-in --compress gzip -o o old -- new");
    assert!(gunzip(&bench.read("o")) == expected);
    assert_eq!(bench.run_ok("not-in --total -o o old -- new"), "");
    assert_eq!(bench.read("o"), b"4000\n");
    assert_contains_all(&bench.run_err("not-in --any -o o.gz old -- new"), &["--any", "--output"]);

    fs::hard_link(bench.path("new"), bench.path("link")).unwrap();
    for (output, input) in [("old", "old"), ("new", "new"), ("link", "new"), ("list", "list")] {
        bench.write("list", b"old\n");
        let line = format!("not-in --files-from list -o {output} old -- new");
        assert_contains_all(
            &bench.run_err(&line),
            &[&format!("cannot write to \"{output}\""), "also an input", &format!("\"{input}\"")],
        );
    }
    let appended = File::options().append(true).open(bench.path("old")).unwrap();
    assert_contains_all(
        &expect_refusal(bench.command("in old -- new").stdout(appended).output().unwrap()),
        &["standard output", "input"],
    );
    assert!(bench.read("old") == url_lines(0..5000) && bench.read("new") == url_lines(2000..9000));
}

#[test]
fn read_errors_of_old_end_the_run() {
    let bench = Bench::new(&[("old", b"a\tx\nfault\n"), ("new", b"b\ty\n"), ("o", b"precious\n")]);
    for line in ["not-in -o o missing -- new", "not-in -o o old missing -- new", "not-in -o o -f 2 old -- new"] {
        expect_failure(&bench.run(line));
        assert_eq!(bench.read("o"), b"precious\n");
    }
    assert_contains_all(&bench.run_err("not-in -o fresh -f 2 old -- new"), &["no key in \"old\", line 2"]);
    assert!(!bench.path("fresh").exists());
    let output = bench.run("not-in --on-error skip old missing -- new");
    assert_eq!((text(&output.stdout).as_str(), output.status.code()), ("b\ty\n", Some(2)));
    assert_contains_all(&text(&output.stderr), &["\"missing\"", "it is skipped"]);
}
