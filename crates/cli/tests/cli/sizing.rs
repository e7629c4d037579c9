//! Sizes of filters, and runs with full filters.

use crate::common::{
    Bench, assert_contains_all, expect_failure, expect_refusal, expect_success, number, run_with_stdin, stats, text,
    url_lines,
};
use crate::corpus::count;
use serde_json::Value;
use std::process::Output;

#[test]
fn a_pipe_of_unknown_length_needs_a_growing_filter() {
    let bench = Bench::new(&[]);
    let pipe = |line: &str, input: &[u8]| run_with_stdin(bench.command(line), input);
    assert_eq!(expect_success(pipe("dedup", b"a\nb\na\n")), b"a\nb\n");
    let filters = |options: &str| stats(&pipe(&format!("dedup --stats=json{options}"), b"a\n"))["filters"].as_u64();
    for options in ["", " --when-full grow", " -n 1"] {
        assert_eq!(filters(options), None, "{options}");
    }

    for line in ["dedup --when-full warn", "dedup --when-full stop", "build --when-full warn -o filter"] {
        let message = expect_refusal(pipe(line, b"a\n"));
        assert!(message.contains("standard input") && message.contains("-n"), "{message}");
    }
    assert!(!bench.path("filter").exists());
    expect_success(pipe("build -n 1 -o filter", b"a\n"));
    assert!(bench.path("filter").exists());
}

#[test]
fn a_growing_filter_fits_a_pipe_of_any_length() {
    let lines: Vec<u8> = (0..1_500_000).flat_map(|i| format!("{i}\n").into_bytes()).collect();
    let bench = Bench::new(&[]);
    // At this rate, one in 700 runs loses one of the 1.5 million lines.
    let output = run_with_stdin(bench.command("dedup -p 1e-9 --stats=json"), &[&lines[..], b"7\n1499999\n"].concat());
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stdout == lines);
    let figures = stats(&output);
    assert!(number(&figures, "fpr") <= 1e-9, "{figures}");
    assert_eq!(number(&figures, "dropped"), 2.0);
}

/// Returns the plan for a filter. The tests of `plan` compare plans with the exact model.
fn plan(bench: &Bench, options: &str) -> Value {
    bench.json(&format!("plan --json {options}"))[0].clone()
}

#[test]
fn memory_is_used_at_the_rate() {
    // The lines of a file below a mebibyte are counted, not estimated.
    let bench = Bench::new(&[("a", &url_lines(0..30_000))]);
    // With a given rate, the limit is the planned number of lines, for a file and for a pipe.
    let room = plan(&bench, "-p 1e-4 --memory 64K")["keys"].as_u64().unwrap();
    let line = "dedup -m 64K -p 1e-4 --when-full stop";
    for output in [bench.run(&format!("{line} a")), run_with_stdin(bench.command(line), &bench.read("a"))] {
        assert_eq!((output.status.code(), count(&output.stdout)), (Some(2), room));
        let stderr = text(&output.stderr);
        assert!(
            stderr.contains(&format!("up to {room} distinct lines at a false-positive rate of 1.00e-4\n")),
            "{stderr}"
        );
    }
    // Without a rate, the default of -p determines the limit of a pipe.
    let room = plan(&bench, "-p 1e-6 --memory 64K")["keys"].as_u64().unwrap();
    let output = run_with_stdin(bench.command("dedup -m 64K --when-full stop"), &bench.read("a"));
    assert_eq!((output.status.code(), count(&output.stdout)), (Some(2), room));

    assert_eq!(expect_success(bench.run("dedup -q --memory 1M -p 1e-6 a")), url_lines(0..30_000));
    // Lines beyond the capacity take more memory, and the rate is kept.
    let output = bench.run("dedup --memory 32K -p 0.01 --stats=json a");
    assert_contains_all(
        &text(&output.stderr),
        &["a filter of 32.00 KiB: up to ", "at a false-positive rate of 0.0100; more take more memory"],
    );
    let figures = stats(&output);
    assert!(number(&figures, "memory_bytes") > 32768.0 && number(&figures, "fpr") <= 0.01, "{figures}");
    assert!(count(&output.stdout) > 29_700);
    for (line, parts) in [
        ("dedup --memory 64K -n 5 a", &["--memory", "cannot be used with", "--expected-keys"][..]),
        ("dedup --memory 63 a", &["--memory", "'63'", "from 64 to"]),
    ] {
        assert_contains_all(&bench.run_err(line), parts);
    }
}

/// A filter that is too small for a known number of lines would lose many of them.
#[test]
fn memory_too_small_for_the_lines_is_refused() {
    let lines = url_lines(0..100_000);
    let bench = Bench::new(&[("a", &lines), ("b", b"1\n")]);
    bench.write("text", &(0..20_000).flat_map(|i| format!("{{\"text\":\"{i}\"}}\n").into_bytes()).collect::<Vec<_>>());
    let refused = |line: &str| {
        let message = bench.run_err(line);
        assert_contains_all(&message, &[" 16.00 KiB is too small", "-p", "--when-full grow", "-n"]);
        let enough = message.split(" -m ").nth(1).and_then(|rest| rest.split(' ').next());
        enough.unwrap_or_else(|| panic!("no memory: {message}")).to_owned()
    };
    for line in ["dedup -q MEMORY a", "dedup -q MEMORY -o o a", "dedup -q MEMORY --when-full warn a"] {
        let enough = refused(&line.replace("MEMORY", "-m 16K"));
        assert!(!bench.path("o").exists());
        // With the recommended memory, one in a thousand runs loses lines.
        let printed = expect_success(bench.run(&line.replace("MEMORY", &format!("-m {enough}"))));
        assert!(if line.contains("-o") { bench.read("o") == lines } else { printed == lines }, "{line}");
        let _ = std::fs::remove_file(bench.path("o"));
    }
    // This number of lines is counted, not estimated.
    bench.write("few", &url_lines(0..30_000));
    let rate = plan(&bench, "-n 30000 --memory 16K")["rates"][1]["fpr"].as_f64().unwrap();
    let message = bench.run_err("dedup -m 16K few");
    assert_contains_all(&message, &["the 30000 lines of", &format!("would be {rate:.4}, not 1.00e-6")]);
    for line in ["in -m 16K a -- b", "not-in -m 16K a -- b", "not-in --distinct -m 16K b -- a"] {
        refused(line);
    }
    for (line, keys) in [("--ngram 0", " units "), ("--near 0.8 --annotate", " bands "), ("--min-ngram 1", " grams ")] {
        assert!(bench.run_err(&format!("corpus -m 1K {line} text")).contains(keys), "{line}");
    }
    for options in ["--when-full grow", "-p 1e-6", "--exact", "--repeated -v", "-s s"] {
        assert!(expect_success(bench.run(&format!("dedup -q -m 16K {options} a"))) == lines, "{options}");
    }
    // The number of lines of a pipe is unknown, and a growing filter keeps its rate.
    assert!(expect_success(run_with_stdin(bench.command("dedup -q -m 16K"), &lines)) == lines);
    // All lines count, although few are distinct.
    bench.write("repeats", &url_lines(0..1000).repeat(100));
    refused("dedup -m 16K repeats");
    for options in ["-m 16K --when-full stop", "-m 16K --when-full grow", "-n 1000"] {
        assert!(expect_success(bench.run(&format!("dedup -q {options} repeats"))) == url_lines(0..1000), "{options}");
    }
}

/// A run with more lines than estimated does not fail, whatever its memory is.
#[test]
fn memory_grows_after_a_wrong_estimate() {
    let bench = Bench::new(&[("a", &uneven(25))]);
    for memory in ["4K", "16K", "1M"] {
        assert_eq!(bench.run_ok(&format!("dedup -q -m {memory} --total a")), "6100\n", "{memory}");
    }
}

#[test]
fn stop_ends_at_the_first_line_that_does_not_fit() {
    // The last of 100 lines that fit is the 40th line of the second file.
    let repeats = url_lines(0..30);
    let bench = Bench::new(&[
        ("first", &[url_lines(0..60), repeats.clone()].concat()),
        ("second", &url_lines(60..120)),
        ("fits", &[url_lines(0..90), url_lines(0..40), url_lines(90..100)].concat()),
    ]);
    for options in ["", "-j 1 --chunk-size 1 ", "-j 3 --chunk-size 100 ", "--exact "] {
        let output = bench.run(&format!("dedup -n 100 --when-full stop --dupes d {options}first second"));
        assert!(output.stdout == url_lines(0..100), "{options}");
        assert!(bench.read("d") == repeats, "{options}");
        let message = expect_failure(&output);
        assert!(
            message.contains("stopped at \"second\", line 41:") && message.contains(" 100 distinct lines"),
            "{message}"
        );
        assert!(message.contains("-n") && message.contains("--when-full grow"), "{message}");
    }
    assert!(expect_success(bench.run("dedup -n 100 --when-full stop fits")) == url_lines(0..100));
}

#[test]
fn repeats_need_no_capacity() {
    let repeats = [url_lines(0..100), url_lines(50..100)].concat();
    let bench = Bench::new(&[("fits", &[url_lines(0..100), repeats.clone()].concat()), ("more", &url_lines(99..101))]);
    for options in ["", "-j 1 --chunk-size 1 ", "-j 3 --chunk-size 100 ", "--exact "] {
        let line = format!("dedup -n 100 --when-full stop --dupes d {options}fits");
        assert!(expect_success(bench.run(&line)) == url_lines(0..100), "{options}");
        assert!(bench.read("d") == repeats, "{options}");
        let output = bench.run(&format!("{line} more"));
        assert!(output.stdout == url_lines(0..100), "{options}");
        assert!(bench.read("d") == [&repeats[..], &url_lines(99..100)].concat(), "{options}");
        assert_contains_all(&expect_failure(&output), &["stopped at \"more\", line 2:"]);
    }
}

/// Returns lines of 100 kB, with many short lines at one position, which is between the samples of an estimate or in one of
/// them.
fn uneven(place: usize) -> Vec<u8> {
    let mut lines = Vec::new();
    for i in 0..100 {
        lines.extend_from_slice(format!("{i}{}\n", "x".repeat(100_000)).as_bytes());
        if i == place {
            lines.extend((0..6000).flat_map(|i| format!("{i}\n").into_bytes()));
        }
    }
    lines
}

#[test]
fn wrong_estimates_lose_no_lines() {
    let bench = Bench::new(&[]);
    for place in [0, 25, 62, 75] {
        bench.write("a", &uneven(place));
        // One thread loses the same lines in each run.
        let output = bench.run("dedup -j 1 -p 0.001 --stats=json a");
        assert_eq!(output.status.code(), Some(0));
        let figures = stats(&output);
        // At most one in a thousand is lost, 6.1, and four standard deviations of this number.
        assert!(number(&figures, "unique") > 6100.0 - 6.1 - 10.0, "{place}: {figures}");
        // The rate of the actual bits varies by a few percent.
        assert!(number(&figures, "fpr") <= 0.0011, "{place}: {figures}");
        // A pipe and an exact check have the same result.
        let count = |output: Output| text(&expect_success(output)).trim().parse::<u64>().unwrap();
        assert_eq!(count(bench.run("dedup --total -p 1e-9 a")), 6100, "{place}");
        assert_eq!(count(run_with_stdin(bench.command("dedup --total -p 1e-9"), &bench.read("a"))), 6100, "{place}");
        assert_eq!(count(bench.run("dedup --total --exact -p 0.1 a")), 6100, "{place}");
    }
}

/// Returns so many lines; the function gives the text of each.
fn numbered(lines: u64, text: impl Fn(u64) -> u64) -> Vec<u8> {
    (0..lines).flat_map(|i| format!("{}\n", text(i)).into_bytes()).collect()
}

/// At 1e-6, a key of a full filter takes 41 bits.
#[test]
fn memory_follows_the_distinct_lines() {
    const LINES: u64 = 400_000;
    // An odd factor makes a permutation of 32 bits, so the same numbers come in the same order, which looks random.
    let random = |i: u64| i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
    let bench = Bench::new(&[]);
    for (name, lines) in [
        ("all differ", numbered(LINES, |i| i)),
        ("few", numbered(LINES, |i| random(i) % 1000)),
        ("next to each other", numbered(LINES, |i| i / 2)),
        ("far from each other", numbered(LINES, |i| i % (LINES / 2))),
        ("two thirds", numbered(LINES, |i| i % (2 * LINES / 3))),
        ("in random order", numbered(LINES, |i| random(i) % LINES)),
        ("at the end", numbered(LINES, |i| i.min(150_000))),
        ("at the start", numbered(LINES, |i| i.max(150_000))),
        ("as in texts", numbered(LINES, |i| (random(i) % 4096).pow(2) / (1 + i % 64))),
    ] {
        bench.write("a", &lines);
        for (output, bits) in [
            (bench.run("dedup --stats=json a"), 60.0),
            (run_with_stdin(bench.command("dedup --stats=json"), &lines), 130.0),
        ] {
            assert_eq!(output.status.code(), Some(0));
            let figures = stats(&output);
            let (unique, found) = (number(&figures, "unique"), 8.0 * number(&figures, "memory_bytes"));
            assert!(found <= bits * unique, "{name}: {} bits of {bits} for each of {unique}", found / unique);
            assert!(number(&figures, "fpr") <= 1e-6, "{name}: {figures}");
            let distinct: std::collections::HashSet<_> = lines.split(|&byte| byte == b'\n').collect();
            // At most 0.05 are expected to be lost, and five or more with a probability of 3e-9.
            let lost = distinct.len() as u64 - 1 - unique as u64;
            assert!(lost < 5 && count(&output.stdout) == unique as u64, "{name}: {lost}");
        }
    }
}

#[test]
fn correct_estimates_need_one_filter() {
    let lines = 300_000;
    let bench = Bench::new(&[("a", &url_lines(0..lines))]);
    for rate in ["0.01", "1e-6"] {
        let figures = stats(&bench.run(&format!("dedup --stats=json -p {rate} a")));
        assert!(figures["filters"].is_null(), "{figures}");
        let planned = number(&plan(&bench, &format!("-n {lines} -p {rate}")), "memory_bytes");
        let share = number(&figures, "memory_bytes") / planned;
        assert!((1.0..1.1).contains(&share), "{share}");
    }
}

#[test]
fn filters_are_sized_for_their_lines_despite_wrong_estimates() {
    let bench = Bench::new(&[("a", &uneven(25))]);
    for (line, input) in [("build -j 1 -p 0.001 -o f a", None), ("build -j 1 -p 0.001 -o f", Some("a"))] {
        expect_success(input.map_or_else(|| bench.run(line), |input| bench.run_with(line, input)));
        let info = bench.json("info --json f");
        assert_eq!(number(&info, "false_positive_rate"), 0.001, "{info}");
        let keys = number(&info, "expected_keys");
        assert!((6100.0 - 6.1 - 10.0..=6100.0).contains(&keys), "{info}");
        assert!(number(&info, "fpr") <= 0.0011, "{info}");
        assert_eq!(bench.run_ok("check --total -s f a").trim(), "6100");
    }
}

#[test]
fn filters_are_full_at_their_rate() {
    let bench = Bench::new(&[("a", &url_lines(0..100_000))]);
    let output = bench.run("dedup -n 20000 -p 0.01 --when-full stop --stats=json a");
    assert_eq!(output.status.code(), Some(2));
    let figures = stats(&output);
    assert!((number(&figures, "fpr") / 0.01 - 1.0).abs() < 0.05, "{figures}");
    assert_eq!(number(&figures, "unique") as u64, count(&output.stdout));
    assert_eq!(count(&output.stdout), 20_000);

    let output = bench.run("dedup -n 20000 -p 0.01 --when-full warn a");
    assert_eq!(output.status.code(), Some(0));
    let warning = text(&output.stderr);
    let room = number(&figures, "unique").to_string();
    assert_eq!((warning.matches('\n').count(), warning.matches("warning").count()), (1, 1), "{warning}");
    assert!(warning.contains(&room), "{warning}");
    let quiet = bench.run("dedup -q -n 20000 -p 0.01 --when-full warn a");
    assert!(quiet.stdout == output.stdout && text(&quiet.stderr).contains(&room));

    // A filter with sufficient capacity causes no warning.
    expect_success(bench.run("dedup -n 100000 -p 0.001 --when-full warn a"));
    // A growing filter stays below the rate with any number of lines.
    let output = bench.run("dedup -j 1 -n 1000 -p 0.01 --when-full grow --stats=json a");
    assert_eq!(output.status.code(), Some(0));
    let figures = stats(&output);
    assert!(number(&figures, "filters") >= 2.0 && number(&figures, "fpr") <= 0.01, "{figures}");
    // At most one line in a hundred is lost, 1000, and five standard deviations of this number.
    assert!(count(&output.stdout) > 99_000 - 5 * 32, "{figures}");
}

#[test]
fn more_keys_than_planned_cause_one_warning() {
    let bench = Bench::new(&[("a", &url_lines(0..20_000))]);
    let output = bench.run("dedup -n 1000 --when-full warn -p 0.01 --chunk-size 10000 a");
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(message.matches("warning").count(), 1, "{message}");
    assert_eq!(message.matches('\n').count(), 1, "{message}");
    assert_contains_all(&message, &[" 1000 ", "rate", "-n", "--memory"]);

    // The figures are finite even if all bits are set.
    let stats = stats(&bench.run("dedup -n 1 --when-full warn --stats=json a"));
    assert_eq!(stats["fill"], 1.0);
    assert!(number(&stats, "expected_wrongly_dropped") < 20_000.0, "{stats}");
}

/// A wrong number of lines is no worse than no number.
#[test]
fn too_low_line_counts_lose_no_lines() {
    let lines = url_lines(0..100_000);
    let bench = Bench::new(&[("a", &lines)]);
    for keys in [1, 1000, 99_999] {
        for options in ["", "--exact ", "--state s "] {
            let _ = std::fs::remove_file(bench.path("s"));
            assert!(
                expect_success(bench.run(&format!("dedup -n {keys} -q {options}-p 1e-9 a"))) == lines,
                "{keys} {options}"
            );
        }
        assert!(
            expect_success(run_with_stdin(bench.command(&format!("dedup -n {keys} -p 1e-9")), &lines)) == lines,
            "{keys}"
        );
        // The false positives do not exceed the rate, for files and for pipes. One thread makes them the same in each run.
        bench.write("others", &url_lines(100_000..200_000));
        for output in [
            bench.run(&format!("build -j 1 -n {keys} -p 0.001 -o f a")),
            run_with_stdin(bench.command(&format!("build -j 1 -n {keys} -p 0.001 -o f")), &lines),
            run_with_stdin(bench.command("build -j 1 -p 0.001 -o f"), &lines),
        ] {
            expect_success(output);
            assert_eq!(bench.run_ok("check --total -s f a").trim(), "100000");
            let found: f64 = text(&bench.run("check --total -s f others").stdout).trim().parse().unwrap();
            // 100 are expected, with four standard deviations.
            assert!(found < 140.0, "{keys}: {found}");
            assert!(number(&bench.json("info --json f"), "fpr") < 0.0011, "{keys}");
        }
    }
    // The same command accepts its state, although the state has grown.
    assert_eq!(expect_success(bench.run("dedup -n 99999 -q -p 1e-9 --state s a")), b"");
}

/// A correct number takes hardly more memory than a fixed size. Files of the same size can be merged.
#[test]
fn correct_line_counts_need_little_extra_memory() {
    let bench = Bench::new(&[("a", &url_lines(0..20_000)), ("b", &url_lines(20_000..40_000))]);
    for rate in ["0.01", "1e-6"] {
        let memory = |more: &str| {
            let output = bench.run(&format!("dedup -n 1000000 -p {rate}{more} --stats=json a"));
            number(&stats(&output), "memory_bytes")
        };
        let share = memory("") / memory(" --when-full warn");
        assert!((1.0..1.02).contains(&share), "{rate}: {share}");
    }
    for (name, options) in [("f", "a"), ("g", "--when-full warn b"), ("h", "--when-full stop b")] {
        bench.run_ok(&format!("build -n 40000 -p 0.001 --no-shrink -o {name} {options}"));
    }
    expect_success(run_with_stdin(
        bench.command("build -n 40000 -p 0.001 --when-full warn --no-shrink -o i"),
        &bench.read("b"),
    ));
    bench.run_ok("merge -o both f g h i");
    assert_eq!(bench.run_ok("check --total -s both a b"), "a:20000\nb:20000\n");
    let message = bench.run_err("build -n 10000 --when-full stop -o none a");
    assert_contains_all(&message, &["stopped at \"a\", line 10001:", " 10000 distinct lines"]);
    assert!(!bench.path("none").exists());
    expect_success(run_with_stdin(bench.command("build -n 40000 -p 0.001 --no-shrink -o pipe"), &bench.read("b")));
    bench.run_ok("merge -o both f pipe");
    bench.run_ok("dedup -n 40000 --total --state state a");
    assert_contains_all(&bench.run_err("merge -o both state f"), &["one of them grows", "one kind"]);
}

#[test]
fn few_lines_from_a_pipe_make_a_small_file() {
    let bench = Bench::new(&[]);
    expect_success(run_with_stdin(bench.command("dedup --state s"), b"1\n2\n3\n4\n5\n"));
    expect_success(run_with_stdin(bench.command("build -o f"), b"1\n2\n3\n4\n5\n"));
    for file in ["s", "f"] {
        assert!(bench.read(file).len() < 200_000, "{}", bench.read(file).len());
        assert_eq!(
            expect_success(run_with_stdin(bench.command(&format!("check --total -s {file}")), b"0\n1\n2\n3\n4\n5\n")),
            b"5\n"
        );
    }
    // The state grows with later runs.
    let lines = url_lines(0..100_000);
    assert!(expect_success(run_with_stdin(bench.command("dedup -p 1e-6 --state s"), &lines)) == lines);
    assert_eq!(expect_success(run_with_stdin(bench.command("dedup --state s"), &[&b"5\n"[..], &lines].concat())), b"");
}
