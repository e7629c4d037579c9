//! The parts of lines that are keys, and lines without a key.

use crate::common::{Bench, assert_contains_all, expect_failure, expect_success, run_with_stdin, text};
use crate::corpus::{HOMEPAGES, gzip, zstd};
use std::collections::HashSet;
use std::fs;

#[test]
fn key_options_select_keys() {
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
        // Texts and other values have different keys.
        (
            "--json-pointer /a",
            "{\"a\":null}\n{\"a\":\"null\"}\n{\"a\":1}\n{\"a\":\"1\"}\n{\"a\":[1]}\n{\"a\":\"[1]\"}\n{\"a\":[ 1]}\n",
            "{\"a\":null}\n{\"a\":\"null\"}\n{\"a\":1}\n{\"a\":\"1\"}\n{\"a\":[1]}\n{\"a\":\"[1]\"}\n",
        ),
        // Several parts make one key.
        ("--field 1,3", "a\tb\tc\na\tx\tc\na\tb\td\nb\tb\tc\n", "a\tb\tc\na\tb\td\nb\tb\tc\n"),
        ("--field 1 --field 3", "a\tb\tc\na\tx\tc\na\tb\td\n", "a\tb\tc\na\tb\td\n"),
        ("--field 1-2 --delimiter ,", "a,bc\nab,c\na,bc,d\n", "a,bc\nab,c\n"),
        (
            "--json-pointer /a --json-pointer /b",
            "{\"a\":1,\"b\":2}\n{\"b\":2,\"a\":1,\"c\":3}\n{\"a\":2,\"b\":1}\n{\"a\":1,\"b\":\"2\"}\n",
            "{\"a\":1,\"b\":2}\n{\"a\":2,\"b\":1}\n{\"a\":1,\"b\":\"2\"}\n",
        ),
        // Quotes are not part of the key, and lines are printed unchanged.
        ("--csv --field 2", "1,\"a,b\"\n2,\"a,c\"\n3,\"a,b\",x\r\n4,c\n5,\"c\"\r\n", "1,\"a,b\"\n2,\"a,c\"\n4,c\n"),
        ("--csv --field 1 --delimiter ;", "\"a;\"\"\";1\n\"a;\"\"\";2\na,;3\n", "\"a;\"\"\";1\na,;3\n"),
        // Delimiters that are written as escapes.
        ("--field 2 --delimiter \\0", "1\0a\n2\0a\n3\0b\n", "1\0a\n3\0b\n"),
        ("--field 2 --delimiter \\\\", "1\\a\n2\\a\n3\\b\n", "1\\a\n3\\b\n"),
        ("--field 2 --delimiter ,\\t\\\\t", "1,\t\\ta\n2,\t\\ta\n3,\t\\tb\n", "1,\t\\ta\n3,\t\\tb\n"),
    ] {
        let bench = Bench::new(&[("a", input.as_bytes())]);
        assert_eq!(bench.run_ok(&format!("dedup {options} a")), expected, "{options}");
    }
    let bench = Bench::new(&[("a", b"a b\n")]);
    for (line, parts) in [
        ("dedup --field 0 a", &["--field", "'0'", "starting at 1", "2-4"][..]),
        ("dedup --field 1, a", &["--field", "'1,'", "starting at 1"]),
        ("dedup --field 1,x a", &["-f", "\"x\"", "starting at 1", "--header"]),
        ("dedup --field x-1 a", &["-f", "\"x-1\"", "starting at 1", "--header"]),
        ("dedup --field 4-2 a", &["--field", "'4-2'", "the first and the last", "2-4"]),
        ("dedup --field - a", &["--field", "'-'", "the first and the last"]),
        ("dedup --field 0- a", &["--field", "'0-'", "the first and the last"]),
        ("dedup --field -0 a", &["--field", "'-0'", "the first and the last"]),
        ("dedup --field 4294967296 a", &["--field", "'4294967296'", "starting at 1"]),
        ("dedup --field 1 --delimiter \\ a", &["--delimiter", "tab", "NUL", "second backslash"]),
        (
            "dedup --field 1 --delimiter \\n a",
            &["--delimiter", "'\\n'", "t for a tab", "0 for NUL", "second backslash"],
        ),
        ("dedup --csv --json-pointer /a a", &["--csv", "cannot be used with", "--json-pointer"]),
        ("dedup --delimiter ; --json-pointer /a a", &["--delimiter", "cannot be used with", "--json-pointer"]),
        ("dedup --csv --field 1 --delimiter :: a", &["--delimiter", "--csv", "one byte"]),
        ("build -o f --csv --field 1 --delimiter \" a", &["--delimiter", "--csv", "quote"]),
        ("check -s f --csv --field 1 --delimiter \u{e4} a", &["--delimiter", "--csv", "one byte"]),
        ("dedup --field 1 --json-pointer /a a", &["--field", "cannot be used with", "--json-pointer"]),
        ("dedup --delimiter ; a", &["without", "--field", "--csv"]),
        ("dedup --json-pointer a a", &["--json-pointer", "'a'", "starts with \"/\""]),
        ("dedup --json-pointer /~ a", &["--json-pointer", "'/~'", "~0", "~1"]),
        ("dedup --normalize path a", &["--normalize", "'path'", "url"]),
    ] {
        assert_contains_all(&bench.run_err(line), parts);
    }
}

/// The expected values are those of Python's `str.lower` and `str.strip` for each field.
#[test]
fn normalization_applies_to_named_parts() {
    let accounts = b"Mail@x.org:Secret\nmail@X.org:Secret\nmail@x.org:secret\na@b:p:q\nA@b:p:q\nA@b:p:Q\n a@b:p:q\n";
    let urls = b"{\"url\":\"http://A/\",\"t\":\"A\"}\n{\"url\":\"http://a:80\",\"t\":\"A\"}\n{\"url\":\"http://a/\",\"t\":\"a\"}\n";
    let bench = Bench::new(&[("accounts", accounts), ("urls", urls)]);
    let dedup = |options: &str, expected: &[usize]| {
        let file = options.split(' ').next_back().unwrap();
        let lines = text(&bench.read(file));
        let lines: Vec<&str> = lines.lines().collect();
        let expected: String = expected.iter().map(|&line| format!("{}\n", lines[line])).collect();
        assert_eq!(bench.run_ok(&format!("dedup {options}")), expected, "{options}");
    };
    dedup("-d : -f 1,2- --ignore-case=1 accounts", &[0, 2, 3, 5, 6]);
    dedup("-d : -f 1,2- -i=1 --trim=1 accounts", &[0, 2, 3, 5]);
    dedup("-d : -f 1,2- -i=1,2,3 --trim=2 accounts", &[0, 3, 6]);
    dedup("-d : -f 1,2- -i accounts", &[0, 3, 6]);
    // Parts are numbered by their order in the key, not by their order in the line.
    dedup("-d : -f 2,1 -i=2 --trim=2 accounts", &[0, 2, 3]);
    dedup("--json-pointer /url --json-pointer /t --normalize url:1 urls", &[0, 2]);
    dedup("--column t,url --normalize url:2 -i=1 urls", &[0]);
    // The option can be combined with others in one word.
    assert_eq!(bench.run_ok("dedup -ic urls").lines().count(), 2);
    for (line, parts) in [
        ("dedup -i=1 accounts", &["--ignore-case=1", "the key is the whole line", "--field"][..]),
        ("dedup --csv --trim=2 accounts", &["--trim=2", "the key is the whole line"]),
        ("build -o f -f 1,3-4 --trim=4 accounts", &["--trim=4", "the last part is 3"]),
        ("in -f 1 --normalize url:1,2 accounts -- accounts", &["--normalize url:2", "the last part is 1"]),
        ("dedup --normalize number --normalize time accounts", &["number", "time", "apply to the key"]),
        ("dedup -d : -f 1,2 --normalize url --normalize time:2 accounts", &["url", "time", "part 2 of the key"]),
        (
            "dedup -d : -f 1-3 --normalize number:1,3 --normalize url:2,3 accounts",
            &["url", "number", "part 3 of the key"],
        ),
        ("dedup -f 1 -i=0 accounts", &["'0'", "starting at 1"]),
        ("dedup -f 1 -i=x accounts", &["'x'", "1 or 1,3"]),
    ] {
        assert_contains_all(&bench.run_err(line), parts);
    }
    // A filter records these options.
    bench.run_ok("build -o f -d : -f 1,2 -i=1 accounts");
    assert_eq!(bench.run_ok("check --total -s f -d : -f 1,2 -i=1 accounts"), "7\n");
    assert_contains_all(
        &bench.run_err("check -s f -d : -f 1,2 -i accounts"),
        &["case ignored in part 1\"", "case ignored\""],
    );
}

#[test]
fn lines_may_end_with_nul() {
    let bench = Bench::new(&[("a", b"x\ny\0z\0x\ny\0\n\0\0z"), ("b", b"z\0new\0")]);
    for option in ["-z", "--zero-terminated"] {
        assert_eq!(bench.run_ok(&format!("dedup {option} a b")), "x\ny\0z\0\n\0\0new\0");
    }
    assert_eq!(bench.run_ok("dedup -z --annotate a"), "new\tx\ny\0new\tz\0dup\tx\ny\0new\t\n\0new\t\0dup\tz\0");
}

#[test]
fn build_and_check_accept_the_same_keys_and_inputs() {
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
            bench.run_ok(&format!("build -n 100 {options} -o f known"));
            assert_eq!(bench.run_ok(&format!("check {options} -s f asked")), found, "{options}");
            let missing = bench.run_ok(&format!("check -v {options} -s f asked"));
            assert_eq!(missing.len() + found.len(), asked.len() + usize::from(options == "-z"), "{options}");
        }
    }
}

#[test]
fn lines_without_a_key_end_the_run_or_are_skipped_or_kept() {
    let json: &[u8] = b"{\"a\":1}\n{\"a\":2}\n{\"a\":1}\n{\"a\":3\n{\"a\":1}\n{\"b\":3}\n{\"a\":4}";
    let fields: &[u8] = b"x,1\nx,2\ny,1\nx\nz,1\n\nx,4\n";
    let csv: &[u8] = b"x,1\nx,2\ny,\"1\"\nx\nz,1,x\n\"x,2\"\nx,4\n";
    let values: &[u8] = b"{\"a\":\"http://a\"}\n{\"a\":\"http://b\"}\n{\"a\":\"HTTP://A\"}\n{\"a\":1}\n{\"a\":\"http://a/\"}\n{\"a\":[\"http://a\"]}\n{\"a\":\"http://c\"}\n";
    let urls: &[u8] = b"http://a/\nhttp://b\nHTTP://A\nwww\nhttp://a\n\xff\nhttp://c/\n";
    for (options, bad, why) in [
        ("--json-pointer /a", json, "JSON"),
        ("--field 2 --delimiter ,", fields, "field 2"),
        ("--normalize url", urls, "URL"),
        ("--csv --field 2", csv, "field 2"),
        ("--json-pointer /a --normalize url", values, "the value at \"/a\" is not a string"),
    ] {
        let bench = Bench::new(&[("good", json), ("bad", bad)]);
        // Lines 4 and 6 have no key, and lines 3 and 5 are repeats.
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
                let message = expect_failure(&output);
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
        // A failed build keeps the old file. A successful one contains only the lines with a key.
        bench.write("f", b"whatever was there");
        let message = bench.run_err(&format!("build {options} -n 100 -o f bad"));
        assert!(message.contains("\"bad\", line 4:"), "{message}");
        assert_eq!(bench.read("f"), b"whatever was there");
        for what in ["skip", "keep"] {
            let output = bench.run(&format!("build {options} -n 100 --on-error {what} -o f bad"));
            assert_eq!(output.status.code(), Some(0));
            assert_contains_all(&text(&output.stderr), &["without a key: 2; the first is \"bad\", line 4: "]);
        }
        let output = bench.run(&format!("check {options} -s f bad"));
        assert_eq!(output.stdout, whole(&[1, 2, 3]));
        assert!(expect_failure(&output).contains("\"bad\", line 4:"));
        let check = |what: &str| bench.run(&format!("check {options} -s f {what} bad"));
        for (what, code, expected) in [
            ("--on-error skip", 0, whole(&[1, 2, 3, 5, 7])),
            ("--on-error keep", 0, whole(&[1, 2, 3, 4, 5, 6, 7])),
            ("-v --on-error keep", 0, whole(&[4, 6])),
            ("-v --on-error skip", 1, vec![]),
        ] {
            let output = check(what);
            assert_eq!((output.status.code(), output.stdout), (Some(code), expected), "{options} {what}");
            assert_contains_all(&text(&output.stderr), &["without a key: 2; the first is \"bad\", line 4: "]);
        }
    }
}

#[test]
fn lines_are_numbered_in_their_own_file() {
    let bench = Bench::new(&[("a", b"1,\n2,\n"), ("b", b"3,\n\n"), ("c", &gzip(b"4,\n5,\nno\n"))]);
    let message = |line: &str| expect_failure(&bench.run(line));
    assert!(message("dedup --field 2 --delimiter , a b").contains("\"b\", line 2:"));
    assert!(message("dedup --field 2 --delimiter , a c").contains("\"c\", line 3:"));
    let output = run_with_stdin(bench.command("dedup --field 2 --delimiter , a -"), b"\n");
    assert!(expect_failure(&output).contains("standard input, line 1:"));
}

#[test]
fn total_counts_printed_lines() {
    let bench = Bench::new(&[("a", b"1\tx\n2\n3\tx\n4\n")]);
    let printed = bench.run("dedup -q --field 2 --on-error keep a").stdout;
    assert_eq!(text(&printed), "1\tx\n2\n4\n");
    assert_eq!(bench.run_ok("dedup -q --field 2 --on-error keep --total a"), "3\n");
}

#[test]
fn check_reports_lines_without_a_key() {
    let bench = Bench::new(&[("a", b"1\tx\n2\n")]);
    bench.run("build --field 2 --on-error skip -o f a");
    let output = bench.run("check --field 2 --on-error skip -s f a");
    assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(0), "1\tx\n"));
    let first = "\"a\", line 2: there is no field 2: the line has 1 field";
    assert_eq!(text(&output.stderr), format!("bloomline: warning: lines without a key: 1; the first is {first}\n"));
}

/// Returns the normal form as the help describes it, for simple URLs such as the homepages.
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
fn real_urls_are_compared_in_normal_form() {
    let input = fs::read_to_string(HOMEPAGES).unwrap();
    let mut seen = HashSet::new();
    let (first, repeats): (Vec<&str>, Vec<&str>) = input.lines().partition(|line| seen.insert(normal(line)));
    // The description of the list states these figures.
    assert_eq!(input.lines().count(), 58_999);
    assert!(first.len() < 30_087);

    let bench = Bench::new(&[]);
    for options in ["", "--exact -n 30000 -p 0.3 ", "-j 3 --chunk-size 1000 --when-full grow "] {
        let output = expect_success(bench.run(&format!("dedup -q --normalize url {options}--dupes d {HOMEPAGES}")));
        let lines: Vec<&str> = std::str::from_utf8(&output).unwrap().lines().collect();
        let differing = lines.iter().zip(&first).find(|(ours, theirs)| ours != theirs);
        assert_eq!((differing, lines.len()), (None, first.len()), "{options}");
        assert!(text(&bench.read("d")).lines().eq(repeats.iter().copied()), "{options}");
    }
}

#[test]
fn json_numbers_are_compared_by_value() {
    let numbers = [
        "1",
        "1.0",
        "1e0",
        "1.50",
        "15e-1",
        "-0",
        "0",
        "1e999999999",
        "10e999999998",
        "0.1",
        "0.10000000000000000000001",
    ];
    let lines: Vec<String> = numbers.iter().map(|number| format!("{{\"a\":{number}}}\n")).collect();
    let bench = Bench::new(&[("a", lines.concat().as_bytes())]);
    let expected = [0, 3, 5, 7, 9, 10].map(|line: usize| &*lines[line]).concat();
    assert_eq!(bench.run_ok("dedup --exact --json-pointer /a a"), expected);
    // Numbers within arrays and objects are compared by value too.
    let nested = "{\"a\":[1,{\"b\":2.0}]}\n{\"a\":[1.0,{\"b\":2}]}\n{\"a\":[1,{\"b\":2,\"c\":null}]}\n";
    bench.write("n", nested.as_bytes());
    assert_eq!(bench.run_ok("dedup --exact --total --json-pointer /a n"), "2\n");
}

/// A column has the same name and the same keys in CSV and in JSON.
#[test]
fn a_named_column_has_one_key_in_every_format() {
    let bench = Bench::new(&[
        ("a.csv", b"id,url\n1,http://a\n2,\"http://b\"\n"),
        ("b.tsv", b"url\tid\nhttp://b\t2\nhttp://c\t3\n"),
        ("c.jsonl", b"{\"url\":\"http://c\",\"id\":\"3\"}\n{\"url\":\"http://d\",\"id\":\"4\"}\n"),
    ]);
    for (key, csv, json) in
        [("url", "-f url", "--column url"), ("id,url", "-f url,id", "--json-pointer /id --json-pointer /url")]
    {
        assert_eq!(bench.run_ok(&format!("dedup --csv --header {csv} -s {key} --total a.csv")), "2\n");
        assert_eq!(bench.run_ok(&format!("dedup --header {csv} -s {key} --total b.tsv")), "1\n");
        assert_eq!(bench.run_ok(&format!("dedup {json} -s {key} --total c.jsonl")), "1\n");
        assert_eq!(bench.run_ok(&format!("check {json} -s {key} --total c.jsonl")), "2\n");
        assert_eq!(bench.json(&format!("info --json {key}"))["key_name"], key);
    }
    assert_eq!(bench.json("info --json id,url")["key_kinds"], "texts, texts");
}

/// Keys that can never be equal are refused before a line is printed. The message names the option that converts them.
#[test]
fn mixed_texts_and_numbers_are_refused() {
    let csv = "id,day\n007,2026-01-01 00:00\n8,2026-01-02T00:00:00\n";
    let json = "{\"id\":7,\"day\":\"2026-01-01T00:00:00\"}\n{\"id\":9.0,\"day\":\"2026-01-03T00:00:00\"}\n";
    let bench = Bench::new(&[("a.csv", csv.as_bytes()), ("b.jsonl", json.as_bytes()), ("none", b"")]);
    bench.run_ok("dedup --csv --header -f id -s texts -o out a.csv");
    let before = bench.read("texts");
    let conflict =
        ["they are numbers", "the earlier keys are texts", "--normalize number where the earlier keys are made"];
    for command in ["dedup -s texts", "check -s texts", "build --append -o texts"] {
        let refused = bench.run(&format!("{command} --column id b.jsonl"));
        assert_eq!(text(&refused.stdout), "", "{command}");
        assert_contains_all(&expect_failure(&refused), &conflict);
        assert_eq!(bench.read("texts"), before, "{command}");
    }
    // Neither an empty filter nor an empty input causes a conflict.
    bench.run_ok("dedup --column id -s texts none");
    bench.run_ok("dedup --column id -s empty none");
    assert_eq!(bench.run_ok("dedup --column id -s empty --total b.jsonl"), "2\n");
    // With the option, 007 equals 7.
    bench.run_ok("dedup --csv --header -f id --normalize number -s numbers --total a.csv");
    assert_eq!(bench.run_ok("dedup --column id -s numbers b.jsonl"), json.split_inclusive('\n').nth(1).unwrap());
    // Strings of JSON are texts unless an option parses them as times.
    bench.run_ok("dedup --csv --header -f day --normalize time -s days --total a.csv");
    let refused = expect_failure(&bench.run("dedup --column day -s days b.jsonl"));
    assert_contains_all(&refused, &["they are texts", "timestamps without a zone", "give --normalize time, or"]);
    assert_eq!(bench.run_ok("dedup --column day --normalize time -s days --total b.jsonl"), "1\n");
    // A file may contain values of several kinds if the filter has keys of one of them.
    bench.write("mixed.jsonl", b"{\"id\":7}\n{\"id\":\"7\"}\n{\"id\":null}\n");
    assert_eq!(bench.run_ok("dedup --column id -s numbers --total mixed.jsonl"), "2\n");
    assert_eq!(bench.json("info --json numbers")["key_kinds"], "texts or numbers");
}

#[test]
fn texts_that_are_not_numbers_or_times_have_no_key() {
    let bench = Bench::new(&[("a", b"1\none\n1.0\n\n")]);
    let refused = expect_failure(&bench.run("dedup --normalize number a"));
    assert_contains_all(&refused, &["no key in \"a\", line 2: \"one\" is not a number", "--on-error"]);
    assert_eq!(bench.run("dedup --normalize number --on-error skip a").stdout, b"1\n\n");
    assert_eq!(bench.run("dedup --normalize number --on-error keep a").stdout, b"1\none\n\n");
    let refused = expect_failure(&bench.run("dedup --normalize time a"));
    assert_contains_all(&refused, &["\"1\" is not a date or time in ISO 8601"]);
    for (options, sentence) in [
        ("--normalize dates", "give url, number, time or text"),
        ("--normalize number:2 -f 1", "the last part is 1"),
        ("--normalize number:0", "starting at 1"),
    ] {
        assert_contains_all(&expect_failure(&bench.run(&format!("dedup {options} a"))), &[sentence]);
    }
}

/// Another program wrote these files, with keys of values of version 2, and of version 1, which records no kinds.
#[test]
fn golden_files_of_values_are_read() {
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data");
    let values = r#""text"|"550e8400-e29b-41d4-a716-446655440000"|null|1|1.0|1200|-0.05|-0e7|1e999999999|false|true|["a",1,null]|{"b":"text","a":1e0}"#;
    let absent = r#""1"|"bytes"|"false"|2|[1,"a",null]|["a",1]|{"a":1}|{"a":1,"b":"text","c":null}|{}"#;
    let lines = |values: &str| values.split('|').map(|value| format!("{{\"v\":{value}}}\n")).collect::<String>();
    let (known, unknown) = (lines(values), lines(absent));
    let rows = "{\"url\":\"a\",\"day\":7.0}\n{\"day\":null,\"url\":\"b\"}\n{\"day\":\"a\",\"url\":7}\n";
    let bench = Bench::new(&[
        ("a", (known.clone() + &unknown).as_bytes()),
        ("times", b"20780\n"),
        ("rows", rows.as_bytes()),
        ("texts", b"{\"v\":\"text\"}\n{\"v\":\"other\"}\n"),
        ("numbers", b"{\"v\":1}\n"),
    ]);
    assert_eq!(bench.run_ok(&format!("check --column v -s {data}/values.bloom a")), known);
    assert_eq!(bench.run_ok(&format!("check --column url,day -s {data}/rows.bloom --total rows")), "2\n");
    let times = "2026-11-23\n07:05:00\n2023-11-14T22:13:20.12\n2023-11-14 23:13:20+01:00\n";
    bench.write("times.csv", format!("v\n{times}2026-11-22\n2023-11-14T22:13:20.12Z\n").as_bytes());
    let found = bench.run_ok(&format!("check --csv --header -f v --normalize time -s {data}/values.bloom times.csv"));
    assert_eq!(found, format!("v\n{times}"));
    let earlier = format!("{data}/values1.bloom");
    assert_eq!(bench.run_ok(&format!("check --column v -s {earlier} --total texts")), "1\n");
    let refused = expect_failure(&bench.run(&format!("check --column v -s {earlier} --total numbers")));
    assert_contains_all(&refused, &["they are numbers, and the earlier keys are texts"]);
}
