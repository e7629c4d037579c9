//! The printed lines, compared with a simple model for various chunk sizes and numbers of threads.

use crate::common::{
    Bench, TEMP_VARIABLE, assert_contains_all, expect_exit_code, expect_refusal, expect_success, number,
    run_with_stdin, stats, text, with_ulimit,
};
use crate::corpus::{HOMEPAGES, count, distinct_lines, gzip, large};
use crate::live::RunningCommand;
use proptest::prelude::*;
use std::fs;
use std::io::Write;

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
fn unusual_lines_match_the_model_in_chunks_of_any_size() {
    let long = [&b"x".repeat(70_000)[..], b"\nshort\n", &b"x".repeat(70_000), b"\n", &b"x".repeat(70_001)].concat();
    for input in AWKWARD.iter().copied().chain([&long[..]]) {
        let bench = Bench::new(&[("a", input)]);
        for size in ["1", "2", "3", "7", "1048576"] {
            for threads in ["1", "3"] {
                let output =
                    expect_success(bench.run(&format!("dedup -q --binary --chunk-size {size} -j {threads} a")));
                assert_eq!(output, distinct_lines(&[input]), "{:?} in chunks of {size}", &input[..input.len().min(30)]);
            }
        }
    }
}

/// A byte order mark is not part of the key, and is printed only at the start of an output.
#[test]
fn byte_order_marks_are_not_part_of_the_first_line() {
    let compressed = gzip(b"\xEF\xBB\xBFa\nz\n");
    let bench = Bench::new(&[
        ("marked", b"\xEF\xBB\xBFa\nb\n"),
        ("plain", b"a\nb\nc\n"),
        ("twice", b"\xEF\xBB\xBF\xEF\xBB\xBFa\n\xEF\xBB\xBFb\n"),
        ("none", b""),
        ("alone", b"\xEF\xBB\xBF"),
        ("blank", b"\xEF\xBB\xBF\n"),
        ("piece", b"\xEF\xBB\n"),
        ("compressed", &compressed),
        ("json", b"\xEF\xBB\xBF{\"a\":1}\n{\"a\":1}\n"),
    ]);
    const MARK: &str = "\u{feff}";
    for options in ["", "-j 1 --chunk-size 1 ", "-j 3 --chunk-size 4 ", "--field 1 ", "--exact "] {
        let dedup = |files: &str| {
            String::from_utf8_lossy(&expect_success(bench.run(&format!("dedup {options}{files}")))).into_owned()
        };
        assert_eq!(dedup("marked marked plain"), format!("{MARK}a\nb\nc\n"), "{options}");
        assert_eq!(dedup("plain none none marked compressed"), "a\nb\nc\nz\n", "{options}");
        // Only the first byte order mark at the start of a file is removed.
        assert_eq!(dedup("plain twice"), format!("a\nb\nc\n{MARK}a\n{MARK}b\n"), "{options}");
        // A byte order mark by itself is not a line. Before a line ending it is an empty line.
        assert_eq!(dedup("alone plain alone"), "a\nb\nc\n", "{options}");
        assert_eq!(dedup("blank alone"), format!("{MARK}\n"), "{options}");
        assert_eq!(dedup("piece piece"), "\u{fffd}\n", "{options}");
        assert_eq!(
            expect_success(run_with_stdin(bench.command(&format!("dedup {options}plain -")), &bench.read("marked"))),
            b"a\nb\nc\n"
        );
    }
    for name in ["none", "alone"] {
        assert_eq!(
            bench.run_ok(&format!("dedup --csv --header -f a marked {name}")),
            format!("{MARK}a\nb\n"),
            "{name}"
        );
        assert_eq!(
            bench.run_ok(&format!("dedup --json-pointer /a json {name}")),
            format!("{MARK}{{\"a\":1}}\n"),
            "{name}"
        );
        assert_eq!(stats(&bench.run(&format!("dedup --stats=json {name}")))["lines"], 0, "{name}");
    }
    assert_eq!(bench.run_ok("dedup --json-pointer /a json"), format!("{MARK}{{\"a\":1}}\n"));
    bench.run_ok("build -o f marked");
    assert_eq!(bench.run_ok("check -s f plain marked"), "a\nb\na\nb\n");
    assert_eq!(bench.run_ok("dedup -c plain marked"), "      2 a\n      2 b\n      1 c\n");
    assert_eq!(bench.run_ok("dedup -c marked plain"), format!("{MARK}      2 a\n      2 b\n      1 c\n"));
    assert_eq!(
        bench.run_ok("dedup --annotate marked twice"),
        format!("{MARK}new\ta\nnew\tb\nnew\t{MARK}a\nnew\t{MARK}b\n")
    );
    // A line that itself begins with a byte order mark is distinguished from an output's mark by a second one.
    assert_eq!(bench.run_ok("not-in plain -- twice"), format!("{MARK}{MARK}a\n{MARK}b\n"));
    bench.write("alike", format!("x\n{MARK}c\n").as_bytes());
    bench.write("x", b"x\n");
    assert_eq!(bench.run_ok("not-in x -- alike"), format!("{MARK}{MARK}c\n"));
    let documents = format!("{MARK}{{\"text\":\"b\",\"count\":3}}\n{{\"text\":\"b\"}}\n");
    bench.write("documents", documents.as_bytes());
    assert_eq!(
        bench.run_ok("corpus --by document --ngram 0 --count documents"),
        format!("{MARK}{{\"text\":\"b\",\"count\":2}}\n")
    );
}

/// A byte order mark in any input does not matter.
#[test]
fn outputs_deduplicate_to_themselves() {
    let marked = |lines: &str| ["\u{feff}", lines].concat();
    let bench = Bench::new(&[
        ("a", marked("{\"t\":\"a\"}\n{\"t\":\"b\"}\n").as_bytes()),
        ("b", marked("{\"t\":\"c\"}\n{\"t\":\"a\"}\n{\"t\":\"d\"}\n").as_bytes()),
        ("c", marked("{\"t\":\"e\"}\n").as_bytes()),
    ]);
    let mark = |bytes: &[u8]| bytes.windows(3).skip(1).any(|bytes| bytes == "\u{feff}".as_bytes());
    for key in ["", "--column t "] {
        for line in
            ["a b c", "--dupes d a a b c", "--keep last a b c a", "--unique a b a c", "--pairs p a b c a", "-c a b c"]
        {
            bench.run_ok(&format!("dedup {key}-o o {line}"));
            for name in ["o", "d"].into_iter().filter(|name| bench.path(name).exists()) {
                assert!(!mark(&bench.read(name)), "{line}");
                let again = if line.starts_with("-c") { "" } else { key };
                assert_eq!(
                    bench.run_ok(&format!("in {again}{name} -- {name}")).as_bytes(),
                    bench.read(name),
                    "{key}{line}"
                );
            }
            let _ = fs::remove_file(bench.path("d"));
        }
        bench.run_ok(&format!("dedup {key}-o all a b c"));
        for name in ["a", "b", "c"] {
            assert_eq!(expect_exit_code(bench.run(&format!("not-in {key}all -- {name}")), 1), "", "{name}");
        }
        bench.run_ok(&format!("dedup {key}--output-dir out --force a b c"));
        bench.run_ok(&format!("not-in {key}c -o o -- a b c"));
        assert!(["out/a", "out/b", "out/c", "o"].iter().all(|name| !mark(&bench.read(name))));
    }
    // Appended output is not at the start of the file.
    let append = fs::File::options().append(true).open(bench.path("a")).unwrap();
    assert!(bench.command("dedup b").stdout(append).status().unwrap().success());
    assert!(!mark(&bench.read("a")));
    for name in ["b", "c"] {
        bench.write(name, marked("x\ny\n").as_bytes());
    }
    bench.run_ok("dedup --in-place c b");
    assert_eq!((text(&bench.read("c")), bench.read("b")), (marked("x\ny\n"), Vec::new()));
}

#[test]
fn resumed_runs_skip_byte_order_marks_only_at_the_start() {
    let bench = Bench::new(&[("a", b"\xEF\xBB\xBF{\"b\":1}\n\xEF\xBB\xBF{\"a\":2}\n")]);
    let line = "dedup -n 10 --json-pointer /a --state s -o o a";
    assert_contains_all(&bench.run_err(line), &["\"a\", line 1: there is no value"]);
    // The run is resumed with a file of the same size and time.
    bench.rewrite("a", b"\xEF\xBB\xBF{\"a\":1}\n\xEF\xBB\xBF{\"a\":2}\n");
    for _ in 0..2 {
        assert_contains_all(&bench.run_err(&format!("{line} --resume")), &["\"a\", line 2: ", "JSON"]);
        assert_eq!(bench.read("o"), b"\xEF\xBB\xBF{\"a\":1}\n");
    }
}

/// Creates a file for each of these inputs, and returns their names.
fn files(contents: &[&[u8]]) -> (Bench, String) {
    let bench = Bench::new(&[]);
    let names: Vec<String> = (0..contents.len()).map(|i| i.to_string()).collect();
    names.iter().zip(contents).for_each(|(name, bytes)| bench.write(name, bytes));
    (bench, names.join(" "))
}

#[test]
fn several_files_are_one_input_of_complete_lines() {
    let (bench, names) = files(AWKWARD);
    for size in ["1", "5", "1048576"] {
        assert_eq!(
            expect_success(bench.run(&format!("dedup -q --binary --chunk-size {size} {names}"))),
            distinct_lines(AWKWARD)
        );
    }
}

#[cfg(unix)]
#[test]
fn more_inputs_than_descriptors_can_be_read() {
    let (bench, names) = files(AWKWARD);
    let mut command = with_ulimit("-n 30", &bench.command("dedup -q --binary"));
    command.args((0..40).flat_map(|_| names.split(' ')));
    assert_eq!(expect_success(command.output().unwrap()), distinct_lines(AWKWARD));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Lines are from a small set, so that most repeat, and files may end within a line.
    #[test]
    fn random_lines_match_the_model(
        inputs in prop::collection::vec(prop::collection::vec("[ab\n\r]{0,3}|[a-e]{2,40}", 0..300), 1..4),
        chunk_size in 1..2000u32,
    ) {
        let contents: Vec<Vec<u8>> = inputs.iter().map(|lines| lines.join("\n").into_bytes()).collect();
        let contents: Vec<&[u8]> = contents.iter().map(Vec::as_slice).collect();
        let (bench, names) = files(&contents);
        for threads in ["1", "2", "8"] {
            let output = bench.run(&format!("dedup -q -p 1e-12 -j {threads} --chunk-size {chunk_size} {names}"));
            prop_assert_eq!(expect_success(output), distinct_lines(&contents));
        }
    }
}

#[test]
fn output_does_not_depend_on_threads() {
    let input = large();
    let bench = Bench::new(&[("a", &input)]);
    let expected = distinct_lines(&[&input]);
    for threads in ["1", "2", "8", "100"] {
        assert!(expect_success(bench.run(&format!("dedup -j {threads} a"))) == expected, "-j {threads}");
    }
    // At a rate that loses many lines, the lost lines do not depend on the number of threads.
    let lossy = |threads, seed| expect_success(bench.run(&format!("dedup -p 0.3 -j {threads} --seed {seed} a")));
    let lost = lossy("1", "0");
    assert!(lost.len() < expected.len());
    assert!(lost == lossy("2", "0") && lost == lossy("8", "0"));
    assert!(lost != lossy("1", "1"));
}

#[test]
fn real_urls_match_the_model() {
    let input = fs::read(HOMEPAGES).unwrap();
    let bench = Bench::new(&[("a", &input)]);
    for threads in ["1", "2", "8"] {
        assert!(
            expect_success(bench.run(&format!("dedup -j {threads} --chunk-size 10000 a"))) == distinct_lines(&[&input])
        );
    }
}

#[test]
fn exact_prints_each_distinct_line_once() {
    // The input has more lines than the memory holds, and mixes new lines with repeats.
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
        assert!(output.stdout == distinct_lines(&[&input]), "{options}");
        let figures = stats(&output);
        assert_eq!((number(&figures, "unique"), number(&figures, "dropped")), (900_000.0, 300_000.0));
        // False positives set no bits, so the filter has the same ones as without --exact.
        assert_eq!(number(&figures, "taken_back") as u64, lost);
        assert!(number(&figures, "disk_bytes") > 0.0);
    }
    let nowhere = bench.command("dedup -n 900000 --exact -o o a").env(TEMP_VARIABLE, "/nowhere").output().unwrap();
    assert_contains_all(&expect_refusal(nowhere), &["temporary file", "No such file", TEMP_VARIABLE]);
    assert_contains_all(&bench.run_err("dedup --exact --state s a"), &["--exact", "cannot be used with", "--state"]);
}

#[test]
#[ignore = "needs a gigabyte of disk and of memory"]
fn lines_may_have_hundreds_of_megabytes() {
    let long = b"0123456789".repeat(30_000_000);
    let input = [b"first\n", &long[..], b"\nsecond\nfirst\n", &long[..], b"\nthird"].concat();
    let bench = Bench::new(&[("a", &input)]);
    let expected = [b"first\n", &long[..], b"\nsecond\nthird\n"].concat();
    for threads in ["1", "2"] {
        assert!(expect_success(bench.run(&format!("dedup -j {threads} a"))) == expected);
    }
}

/// Results for lines of a pipe are printed before more lines arrive.
#[test]
fn check_prints_lines_of_a_pipe_while_it_pauses() {
    let bench = Bench::new(&[("a", b"a\nb\n"), ("first", b"a\n")]);
    bench.run_ok("build -n 10 -o f a");
    for line in ["check -s f", "check -s f -j 1", "check -s f first -", "check -v -s f"] {
        let mut running = RunningCommand::new(bench.command(line));
        let (printed, other) = if line.contains("-v") { ("y", "x") } else { ("b", "a") };
        for _ in 0..2 {
            if line.contains("first") {
                assert_eq!(running.line(), "a", "{line}");
            }
            running.write_input(format!("{printed}\n").as_bytes());
            assert_eq!(running.line(), printed, "{line}");
            if line.contains("first") {
                break;
            }
            running.write_input(format!("{other}\n").as_bytes());
            assert_eq!(running.line(), other, "{line}");
        }
        running.close_input();
        let (code, rest, _) = running.end();
        assert_eq!((code, rest), (Some(0), vec![]), "{line}");
    }
}
