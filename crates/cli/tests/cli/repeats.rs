//! `bloomline dedup` with counts, repeats and last copies, compared with a simple model and with `uniq`.

use crate::common::{
    Bench, TEMP_VARIABLE, assert_contains_all, expect_failure, expect_refusal, expect_success, json_values, number,
    report_skipped, run_with_stdin, stats, text, with_default_signals, with_ulimit,
};
use crate::corpus::{HOMEPAGES, encode, gzip, large, read_decoded};
use crate::live::RunningCommand;
use proptest::prelude::*;
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Write;
use std::process::Command;

/// The options of a run.
#[derive(Clone, Debug, Default)]
struct Request {
    count: bool,
    /// `Some(true)` is `--repeated`, and `Some(false)` is `--unique`.
    repeated: Option<bool>,
    last: bool,
    invert: bool,
}

impl Request {
    fn options(&self) -> String {
        let options = [
            (self.count, "-c "),
            (self.repeated == Some(true), "--repeated "),
            (self.repeated == Some(false), "--unique "),
            (self.last, "--keep last "),
            (self.invert, "-v "),
        ];
        options.iter().filter(|(given, _)| *given).map(|(_, option)| *option).collect()
    }

    /// True if `--keep last` has no effect, because only unique lines are kept.
    fn keeps_in_vain(&self) -> bool {
        self.last && self.repeated == Some(false)
    }

    /// Returns the expected output lines.
    fn model<'a>(&self, lines: &[&'a [u8]], key: impl Fn(&'a [u8]) -> &'a [u8], end: u8) -> Vec<Vec<u8>> {
        let mut places: HashMap<&[u8], Vec<usize>> = HashMap::new();
        for (i, &line) in lines.iter().enumerate() {
            places.entry(key(line)).or_default().push(i);
        }
        let print = |(i, &line): (usize, &&'a [u8])| {
            let places = &places[key(line)];
            let kept = if self.last { places.last() } else { places.first() } == Some(&i);
            let selected = kept && self.repeated.is_none_or(|repeated| repeated == (places.len() > 1));
            if selected == self.invert {
                return Vec::new();
            }
            let count = if self.count { format!("{:7} ", places.len()) } else { String::new() };
            [count.as_bytes(), line, &[end]].concat()
        };
        lines.iter().enumerate().map(print).collect()
    }
}

fn request() -> impl Strategy<Value = Request> {
    let parts = (any::<bool>(), any::<Option<bool>>(), any::<bool>(), any::<bool>());
    let request =
        parts.prop_map(|(count, repeated, last, invert)| Request { count, repeated, last, invert: invert && !count });
    request.prop_filter("that reads its inputs once, or is refused", |request| {
        (request.count || request.repeated.is_some() || request.last) && !request.keeps_in_vain()
    })
}

/// Returns all valid combinations of options.
fn all() -> Vec<Request> {
    let mut all = Vec::new();
    for bits in 0..24 {
        let repeated = [None, Some(true), Some(false)][bits / 8];
        let [count, last, invert] = [1, 2, 4].map(|bit| bits & bit > 0);
        all.push(Request { count, repeated, last, invert });
    }
    all.retain(|request| {
        !(request.count && request.invert)
            && (request.count || request.repeated.is_some() || request.last)
            && !request.keeps_in_vain()
    });
    all
}

fn lines(bytes: &[u8]) -> Vec<&[u8]> {
    bytes.strip_suffix(b"\n").unwrap_or(bytes).split(|&byte| byte == b'\n').collect()
}

fn whole_line(line: &[u8]) -> &[u8] {
    line
}

#[test]
fn each_option_selects_its_lines() {
    let bench = Bench::new(&[("a", b"b\na\nb\nc\n"), ("b", b"a\nd\nb"), ("none", b""), ("one", b"x\n")]);
    for (options, expected) in [
        ("-c", "      3 b\n      2 a\n      1 c\n      1 d\n"),
        ("--repeated", "b\na\n"),
        ("--unique", "c\nd\n"),
        ("--keep last", "c\na\nd\nb\n"),
        ("-c --repeated", "      3 b\n      2 a\n"),
        ("-c --unique", "      1 c\n      1 d\n"),
        ("-c --keep last", "      1 c\n      2 a\n      1 d\n      3 b\n"),
        ("-c --keep last --repeated", "      2 a\n      3 b\n"),
        ("--repeated --keep last", "a\nb\n"),
        ("--unique -v", "b\na\nb\na\nb\n"),
        ("--keep last -v", "b\na\nb\n"),
        ("--keep last --annotate", "dup\tb\ndup\ta\ndup\tb\nnew\tc\nnew\ta\nnew\td\nnew\tb\n"),
        ("--exact --total", "4\n"),
        ("--repeated --total", "2\n"),
        ("--unique --total -v", "5\n"),
        ("--keep first", "b\na\nc\nd\n"),
        ("--count --exact --keep first", "      3 b\n      2 a\n      1 c\n      1 d\n"),
    ] {
        assert_eq!(bench.run_ok(&format!("dedup {options} a b")), expected, "{options}");
        assert_eq!(bench.run_ok(&format!("dedup {options} a none b none")), expected, "{options}");
    }
    assert_eq!(bench.run_ok("dedup -c none"), "");
    assert_eq!(bench.run_ok("dedup --repeated one none"), "");
    // Lines that are not selected are written to another file without counts.
    assert_eq!(bench.run_ok("dedup -c --repeated --dupes d a b"), "      3 b\n      2 a\n");
    assert_eq!(text(&bench.read("d")), "b\nc\na\nd\nb\n");
}

#[test]
fn keys_are_compared_and_lines_are_printed() {
    let bench = Bench::new(&[("a", b"1\tx\n2\ty\n3\tX\nnone\n4\tx\nnone\n")]);
    let field = "--field 2 --on-error";
    assert_eq!(bench.run(&format!("dedup -c {field} skip a")).stdout, b"      2 1\tx\n      1 2\ty\n      1 3\tX\n");
    assert_eq!(
        bench.run(&format!("dedup -c -i --keep last {field} keep a")).stdout,
        b"      1 2\ty\n      1 none\n      3 4\tx\n      1 none\n"
    );
    assert_eq!(bench.run(&format!("dedup --repeated {field} keep a")).stdout, b"1\tx\n");
    assert_eq!(bench.run(&format!("dedup --repeated -v {field} keep a")).stdout, b"2\ty\n3\tX\nnone\n4\tx\nnone\n");
    let output = bench.run(&format!("dedup --unique {field} skip a"));
    assert_eq!((output.status.code(), &output.stdout[..]), (Some(0), &b"2\ty\n3\tX\n"[..]));
    // One warning is printed, although the inputs are read twice.
    assert_eq!(text(&output.stderr).matches('\n').count(), 1);
    assert_contains_all(&text(&output.stderr), &["lines without a key: 2", "\"a\", line 4"]);
    // An error in the first pass precedes all output.
    assert_contains_all(&bench.run_err("dedup -c --field 2 a"), &["no key in \"a\", line 4"]);
}

/// The statistics are compared with the output, and the output with a simple model.
#[test]
fn statistics_match_the_output() {
    let lines: [(Option<&str>, u64); 9] = [
        (Some("a"), 1),
        (None, 0),
        (Some("b"), 3),
        (Some("a"), 2),
        (Some("c"), 1),
        (None, 1),
        (Some("a"), 2),
        (Some("b"), 2),
        (Some("d"), 1),
    ];
    let line_of = |&(key, n): &(Option<&str>, u64)| match key {
        Some(key) => format!("{{\"k\":\"{key}\",\"n\":{n}}}\n"),
        None => format!("none {n}\n"),
    };
    let mut input: String = lines.iter().map(line_of).collect();
    input.insert_str(0, "\n  \n");
    let bench = Bench::new(&[("in", input.as_bytes())]);
    let expected = |[which, keep, mode, on_error]: [&str; 4]| -> String {
        let print = |(place, line): (usize, &(Option<&str>, u64))| {
            let group: Vec<usize> = (0..lines.len()).filter(|&other| lines[other].0 == line.0).collect();
            let (best, count) = match (line.0, keep) {
                // A line without a key has no duplicates.
                (None, _) => (place, 1),
                (_, "--keep last") => (*group.last().unwrap(), group.len()),
                // `max_by_key` returns the last maximum, so the order is reversed to find the first.
                (_, "--keep max:/n") => {
                    (*group.iter().rev().max_by_key(|&&other| lines[other].1).unwrap(), group.len())
                }
                _ => (group[0], group.len()),
            };
            let is_wanted = if which == "--repeated" { count > 1 } else { which.is_empty() || count == 1 };
            let selected = place == best && is_wanted;
            match mode {
                _ if line.0.is_none() && on_error == "skip" => String::new(),
                "--annotate" => format!("{}\t{}", if selected { "new" } else { "dup" }, line_of(line)),
                "-c" if selected => format!("{count:7} {}", line_of(line)),
                _ if selected != (mode == "-v") && mode != "-c" => line_of(line),
                _ => String::new(),
            }
        };
        lines.iter().enumerate().map(print).collect()
    };
    for bits in 0..3 * 4 * 4 * 2 * 2 {
        let which = ["", "--repeated", "--unique"][bits % 3];
        let keep = ["", "--keep last", "--keep max:/n", "--pairs p"][bits / 3 % 4];
        let mode = ["", "-c", "-v", "--annotate"][bits / 12 % 4];
        let on_error = ["skip", "keep"][bits / 48 % 2];
        let total = ["", "--total"][bits / 96];
        if mode == "--annotate" && (!which.is_empty() || !total.is_empty()) || mode == "-c" && !total.is_empty() {
            continue;
        }
        // `--keep` has no effect in these combinations and is refused.
        if keep.starts_with("--keep") && (which == "--unique" || !total.is_empty()) {
            continue;
        }
        let parts = [which, keep, mode, total].join(" ");
        let request = parts.split_whitespace().collect::<Vec<_>>().join(" ");
        let expected = expected([which, keep, mode, on_error]);
        // Each pair of choices occurs with both formats.
        let format = ["text", "json"][(bits % 3 + bits / 3 % 4 + bits / 12 % 4 + bits / 48 % 2 + bits / 96) % 2];
        let line =
            format!("dedup -q --json-pointer /k --skip-blank --on-error {on_error} --stats={format} {request} in");
        let output = bench.run(&line.replace("  ", " "));
        let printed = text(&output.stdout);
        let count = if total.is_empty() {
            assert_eq!(printed, expected, "{line}");
            printed.lines().count()
        } else {
            printed.trim().parse().unwrap()
        };
        assert_eq!(count, expected.lines().count(), "{line}");
        let dropped = lines.len() - count - if on_error == "skip" { 2 } else { 0 };
        let stderr = text(&output.stderr);
        let figure = |label: &str, name: &str| match format {
            "json" => stats(&output)[name].as_u64(),
            _ => stderr.lines().find_map(|row| row.strip_prefix(label)?.trim().parse().ok()),
        };
        let figures = [("printed ", "printed"), ("dropped ", "dropped")].map(|(label, name)| figure(label, name));
        // The text format omits the number of printed lines if it equals the number of unique lines.
        let is_told = format == "json" || parts.trim() != total || on_error == "keep";
        assert_eq!(figures, [is_told.then_some(count as u64), Some(dropped as u64)], "{line}: {stderr}");
        let rest =
            [("lines read ", "lines"), ("unique ", "unique"), ("without a key ", "without_key"), ("blank ", "blank")];
        assert_eq!(rest.map(|(label, name)| figure(label, name)), [11, 4, 2, 2].map(Some), "{line}: {stderr}");
    }
}

#[test]
fn tables_keep_their_header_and_records() {
    let table = b"\xEF\xBB\xBFid,text\n1,\"a\nb\"\n2,c\n\n1,d\n";
    let bench = Bench::new(&[("a", table), ("b", b"\"id\",text\r\n2,e\n3,f\n")]);
    for (options, expected) in [
        ("-c", "\u{feff}  count id,text\n      2 1,\"a\nb\"\n      2 2,c\n      1 3,f\n"),
        ("--keep last", "\u{feff}id,text\n1,d\n2,e\n3,f\n"),
        ("--unique", "\u{feff}id,text\n3,f\n"),
    ] {
        for size in ["1", "7", "1000"] {
            let line = format!("dedup --header --csv --skip-blank -f id --chunk-size {size} {options} a b");
            assert_eq!(bench.run_ok(&line), expected, "{options} in chunks of {size}");
        }
    }
}

#[test]
fn real_lines_match_the_model_for_any_number_of_threads() {
    let mut input = fs::read(HOMEPAGES).unwrap();
    input.truncate(400_000);
    let bench = Bench::new(&[("a", &input)]);
    for (request, threads) in all().iter().zip([1, 2, 8].into_iter().cycle()) {
        let options = request.options();
        let output = expect_success(bench.run(&format!("dedup {options}-j {threads} --chunk-size 10000 a")));
        assert!(output == request.model(&lines(&input), whole_line, b'\n').concat(), "{options}");
    }
}

/// Inputs for which `uniq` has the same output.
#[test]
fn sorted_lines_match_uniq() {
    let version = Command::new("uniq").arg("--version").output();
    if !version.is_ok_and(|output| text(&output.stdout).contains("coreutils")) {
        report_skipped("no uniq of the GNU coreutils here");
        return;
    }
    let input = large();
    let mut sorted = lines(&input);
    sorted.truncate(60_000);
    sorted.sort_unstable();
    let bench = Bench::new(&[("a", &sorted.join(&b'\n')), ("awkward", b"\n\n a\n a\nb \xff\nb\0\nb\0")]);
    for file in ["a", "awkward"] {
        for (options, ours) in [
            ("-c", "-c"),
            ("-d", "--repeated"),
            ("-u", "--unique"),
            ("-cd", "-c --repeated"),
            ("-cu", "-c --unique"),
            ("-zc", "-zc"),
            ("-ci", "-ci"),
        ] {
            let mut uniq = Command::new("uniq");
            uniq.env("LC_ALL", "C").args([options, file]).current_dir(bench.0.path());
            assert!(
                expect_success(bench.run(&format!("dedup --binary {ours} {file}")))
                    == expect_success(uniq.output().unwrap()),
                "{options} {file}"
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Few distinct lines are in files that may end within a line, in compressed files, and in a pipe.
    #[test]
    fn random_lines_match_the_model(
        request in request(),
        inputs in prop::collection::vec(prop::collection::vec("[ab]{0,2}(\t[a-cé]{0,2})?", 0..80), 1..5),
        chunk_size in 1..500u32,
        few in any::<bool>(),
        field in any::<bool>(),
        zero in any::<bool>(),
        piped in any::<bool>(),
    ) {
        let end = if zero { 0 } else { b'\n' };
        let field = field && !few;
        let bench = Bench::new(&[]);
        let mut names = Vec::new();
        for (i, lines) in inputs.iter().enumerate() {
            let bytes: Vec<u8> = lines.iter().flat_map(|line| [line.as_bytes(), &[end]].concat()).collect();
            let name = format!("{i}{}", ["", ".gz", ".zst"][i % 3]);
            bench.write(&name, &encode(&name, &bytes));
            names.push(name);
        }
        let all: Vec<&[u8]> = inputs.iter().flatten().map(|line| line.as_bytes()).collect();
        // A line without a second field has no key.
        let second = |line: &&[u8]| !field || line.contains(&b'\t');
        let all: Vec<&[u8]> = all.into_iter().filter(second).collect();
        let key = |line| if field { <[u8]>::splitn(line, 2, |&byte| byte == b'\t').last().unwrap() } else { line };
        let mut options = request.options() + &format!("-q --chunk-size {chunk_size} ");
        // False positives of a tiny filter do not change counts.
        options += if few { "-n 3 -p 0.5 --when-full warn " } else { "" };
        options += if field { "--field 2 --on-error skip " } else { "" };
        options += if zero { "-z " } else { "" };
        let expected = if request.invert && field { None } else { Some(request.model(&all, key, end).concat()) };
        for threads in [1, 4] {
            let line = format!("dedup {options}-j {threads} ");
            let output = if piped {
                let (first, rest) = names.split_first().unwrap();
                let line = format!("{line}- {}", rest.join(" "));
                run_with_stdin(bench.command(line.trim_end()), &bench.read(first))
            } else {
                bench.run(&(line + &names.join(" ")))
            };
            prop_assert_eq!(output.status.code(), Some(0));
            if let Some(expected) = &expected {
                prop_assert_eq!(String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(expected));
            }
        }
    }

    /// The outputs in a folder, in the order of the inputs, equal a single output.
    #[test]
    fn a_folder_has_the_same_lines(
        request in request(),
        inputs in prop::collection::vec(prop::collection::vec("[ab]{0,2}", 0..80), 1..5),
        threads in 1..5u32,
    ) {
        let bench = Bench::new(&[]);
        let file = |i: usize| format!("{i}{}", ["", ".gz", ".zst"][i % 3]);
        for (i, lines) in inputs.iter().enumerate() {
            let bytes: Vec<u8> = lines.iter().flat_map(|line| [line.as_bytes(), b"\n"].concat()).collect();
            bench.write(&file(i), &encode(&file(i), &bytes));
        }
        let names: Vec<String> = (0..inputs.len()).map(file).collect();
        bench.run_ok(&format!("dedup {}-j {threads} --chunk-size 30 --manifest m --output-dir out {}", request.options(), names.join(" ")));
        let all: Vec<&[u8]> = inputs.iter().flatten().map(|line| line.as_bytes()).collect();
        let mut printed = request.model(&all, whole_line, b'\n').into_iter();
        let mut manifest = json_values(&bench.read("m")).into_iter();
        for (name, lines) in names.iter().zip(&inputs) {
            let expected: Vec<Vec<u8>> = printed.by_ref().take(lines.len()).collect();
            prop_assert_eq!(text(&read_decoded(&bench, &format!("out/{name}"))), text(&expected.concat()));
            let figures = manifest.next().unwrap();
            let selected = expected.iter().filter(|line| line.is_empty() == request.invert).count();
            prop_assert_eq!((number(&figures, "lines"), number(&figures, "unique")), (lines.len() as f64, selected as f64));
        }
    }
}

#[test]
fn counts_are_exact_despite_false_positives() {
    let mut input = Vec::new();
    for i in 0..20_000u64 {
        writeln!(input, "{}", i * i % 15_013).unwrap();
    }
    let bench = Bench::new(&[("a", &input)]);
    let request = Request { count: true, ..Request::default() };
    let output = bench.run("dedup -n 10 -p 0.5 --when-full warn -c --stats=json a");
    assert!(output.stdout == request.model(&lines(&input), whole_line, b'\n').concat());
    assert_contains_all(&text(&output.stderr), &["the filter has more than the 10 distinct lines"]);
    let distinct = output.stdout.split_inclusive(|&byte| byte == b'\n').count() as f64;
    let repeated = bench.run("dedup --repeated --total a").stdout;
    let figures = stats(&output);
    assert!(number(&figures, "taken_back") > 1000.0);
    let expected = [
        ("lines", 20_000.0),
        ("unique", distinct),
        ("repeated", text(&repeated).trim().parse().unwrap()),
        ("printed", distinct),
        ("dropped", 20_000.0 - distinct),
    ];
    expected.iter().for_each(|(name, expected)| assert_eq!(number(&figures, name), *expected, "{name}"));
    let figures = stats(&bench.run("dedup --unique --stats=json a"));
    assert_eq!(number(&figures, "printed"), number(&figures, "unique") - number(&figures, "repeated"));
    assert_eq!(number(&figures, "dropped"), 20_000.0 - number(&figures, "printed"));
}

#[test]
fn broken_inputs_are_reported_once_and_counted_up_to_the_error() {
    let whole_line = gzip(&b"a\nb\n".repeat(40_000));
    let bench = Bench::new(&[("a.gz", &whole_line[..whole_line.len() - 20]), ("b", b"b\nc\n")]);
    assert_contains_all(&bench.run_err("dedup -c a.gz b"), &["cannot read \"a.gz\""]);
    let once = bench.run("dedup --on-error skip --stats=json a.gz b missing");
    let read = number(&stats(&once), "lines") as usize;
    let output = bench.run("dedup -c --on-error skip --stats=json a.gz b missing");
    let stderr = text(&output.stderr);
    assert_eq!((output.status.code(), stderr.matches("it is skipped").count()), (Some(1), 2), "{stderr}");
    let [b, a] = [(read - 2) / 2, (read - 1) / 2];
    assert_eq!(text(&output.stdout), format!("{a:7} a\n{:7} b\n      1 c\n", b + 1));
    assert_eq!((number(&stats(&output), "lines"), number(&stats(&output), "inputs_left_out")), (read as f64, 2.0));
}

#[cfg(unix)]
#[test]
fn an_input_that_changes_is_an_error() {
    for (change, options) in [("a\nb\nc\n", "-c"), ("a\n", "--keep last"), ("a\nc\n", "--unique")] {
        let bench = Bench::new(&[("a", b"a\nb\n")]);
        let pipe = bench.fifo("pipe");
        let child = bench.command(&format!("dedup {options} -j 1 a pipe")).spawn().unwrap();
        let mut writer = File::options().write(true).open(pipe).unwrap();
        // The bytes exceed the capacity of the pipe, so the write returns after the first file is read.
        writer.write_all(&b"p\n".repeat(1 << 17)).unwrap();
        bench.write("a", change.as_bytes());
        drop(writer);
        let output = child.wait_with_output().unwrap();
        assert_contains_all(&expect_failure(&output), &["an input changed"]);
    }
}

#[cfg(unix)]
#[test]
fn signals_print_nothing_and_leave_no_files() {
    for (signal, code) in [("INT", Some(130)), ("TERM", Some(143)), ("KILL", None)] {
        let bench = Bench::new(&[]);
        fs::create_dir(bench.path("tmp")).unwrap();
        let mut command = with_default_signals("INT,TERM,HUP");
        command.args([env!("CARGO_BIN_EXE_bloomline"), "dedup", "-c", "-o", "out", "-"]);
        command.env("TMPDIR", bench.path("tmp")).current_dir(bench.0.path());
        let mut running = RunningCommand::new(command);
        // The bytes exceed the capacity of the pipe, so the write returns while the command is reading them.
        running.write_input(&b"many\n".repeat(1 << 16));
        running.signal(signal);
        assert_eq!(running.end(), (code, vec![], String::new()));
        // Only a killed process leaves its empty output.
        assert_eq!(bench.path("out").exists(), signal == "KILL");
        assert_eq!(fs::read_dir(bench.path("tmp")).unwrap().count(), 0);
    }
}

#[test]
fn options_that_conflict_with_counts_are_refused() {
    let bench = Bench::new(&[("a", b"a\n")]);
    for option in ["--count", "--repeated", "--unique", "--keep last"] {
        assert_contains_all(
            &bench.run_err(&format!("dedup {option} -s s a")),
            &["cannot be used with", "--state", option, "count the lines of one run"],
        );
        let redis = bench.run_err(&format!("dedup {option} --redis redis://localhost --name n a"));
        assert_contains_all(&redis, &["cannot be used with", "--redis", option]);
    }
    for (options, parts) in [
        ("-c --annotate", ["--count", "--annotate"]),
        ("-c -v", ["--count", "--invert"]),
        ("--repeated --annotate", ["--repeated", "--annotate"]),
        ("--unique --annotate", ["--unique", "--annotate"]),
        ("--unique --repeated", ["--unique", "--repeated"]),
        ("--keep both", ["both", "first, last"]),
    ] {
        assert_contains_all(&bench.run_err(&format!("dedup {options} a")), &parts);
    }
    bench.run_ok("dedup --keep first -s s a");
    let mut nowhere = bench.command("dedup -n 10 -c -");
    nowhere.env(TEMP_VARIABLE, "/nowhere");
    assert_contains_all(&expect_refusal(run_with_stdin(nowhere, b"a\n")), &["temporary file", TEMP_VARIABLE]);
}

#[cfg(unix)]
#[test]
fn a_pipe_that_cannot_be_copied_is_an_error() {
    let bench = Bench::new(&[]);
    let run = |options: &str| {
        let command = with_ulimit("-f 8", &bench.command(&format!("dedup -c {options} -")));
        run_with_stdin(command, &b"line\n".repeat(10_000))
    };
    // The message does not blame the input.
    for options in ["-n 10", "--on-error skip", "--on-error keep"] {
        let message = expect_refusal(run(options));
        assert_contains_all(
            &message,
            &["cannot copy a pipe, which is read twice, to a temporary file", "TMPDIR", "name a file"],
        );
        assert!(!message.contains("--on-error") && !message.contains("changed"), "{message}");
    }
}

#[cfg(unix)]
#[test]
fn open_file_limit_errors_name_the_remedy() {
    let bench = Bench::new(&[("a", &b"line\n".repeat(10_000))]);
    let mut remedies = 0;
    for files in 5..12 {
        for input in ["a", "-"] {
            let command = bench.command(&format!("dedup -c -j 1 {input}"));
            let output = run_with_stdin(with_ulimit(&format!("-n {files}"), &command), b"line\n");
            let message = String::from_utf8_lossy(&output.stderr).into_owned();
            if message.contains("Too many open files") {
                assert!(!message.contains("TMPDIR") && !message.contains("--on-error"), "{message}");
                remedies += usize::from(message.contains("ulimit -n"));
            }
        }
    }
    assert!(remedies > 0);
}
