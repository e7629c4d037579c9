//! Tables: headers, names of fields, CSV records that span lines, and line endings.

use crate::common::{
    Bench, assert_contains_all, expect_exit_code, expect_failure, expect_success, json_values, run_with_stdin, stats,
    text,
};
use crate::corpus::{decode, gzip, gzip_stored, unzstd, zstd};
use std::fs;

/// Options for chunks that end at every position, and for several threads.
const CHUNKS: [&str; 5] =
    ["", "-j 1 --chunk-size 1 ", "-j 4 --chunk-size 2 ", "-j 3 --chunk-size 13 ", "-j 4 --chunk-size 40 "];

#[test]
fn field_lists_match_cut() {
    let bench = Bench::new(&[("a", b"a\tb\tc\nx\tb\tc\na\tb\tx\na\tb\nx\tb\na\n")]);
    for (list, expected) in [
        ("-f 2-", "a\tb\tc\na\tb\tx\na\tb\n"),
        ("-f 2-,1", "a\tb\tc\nx\tb\tc\na\tb\tx\na\tb\nx\tb\n"),
        ("-f 1-", "a\tb\tc\nx\tb\tc\na\tb\tx\na\tb\nx\tb\na\n"),
        ("-f 4294967295-", ""),
        ("-f -2", "a\tb\tc\nx\tb\tc\n"),
        ("-f-2", "a\tb\tc\nx\tb\tc\n"),
        ("--field=-2", "a\tb\tc\nx\tb\tc\n"),
        ("--field -1,2", "a\tb\tc\nx\tb\tc\n"),
        ("-f -1", "a\tb\tc\nx\tb\tc\n"),
    ] {
        assert_eq!(bench.run(&format!("dedup {list} --on-error skip a")).stdout, expected.as_bytes(), "{list}");
    }
    assert_contains_all(
        &expect_failure(&bench.run("dedup -f 2- a")),
        &["\"a\", line 6: there is no field 2: the line has 1 field"],
    );
    bench.run_ok("build -f 2- --on-error skip -q -o f a");
    assert_eq!(bench.json("info --json f")["key_name"], "fields 2- of lines split at tab");
    assert_eq!(bench.run_ok("check -f 2- --on-error skip -q --total -s f a"), "5\n");
    assert_contains_all(&bench.run_err("check -f 2 -s f a"), &["fields 2- of", "field 2 of"]);
}

/// An empty file, and three files whose headers differ only in quotes, line endings and a byte order mark.
const TABLES: [(&str, &[u8]); 4] = [
    ("empty.csv", b""),
    ("a.csv", b"id,url,\"title, \"\"more\"\"\"\r\n1,u1,\"one\nof two\"\r\n2,u2,t\r\n3,u1,x\r\n"),
    ("b.csv", b"\"id\",\"url\",\"title, \"\"more\"\"\"\n4,\"u2\",\"a \"\"b\"\"\n\"\n5,u3,\n"),
    ("c.csv", b"\xEF\xBB\xBFid,\"url\",\"title, \"\"more\"\"\"\n,u3,\n6,\"u4\","),
];

/// The rows of `TABLES` with distinct URLs, and the rows that are dropped.
const LEFT: &str = "id,url,\"title, \"\"more\"\"\"\r\n1,u1,\"one\nof two\"\r\n2,u2,t\r\n5,u3,\n6,\"u4\",\n";
const DROPPED: &str = "id,url,\"title, \"\"more\"\"\"\r\n3,u1,x\r\n4,\"u2\",\"a \"\"b\"\"\n\"\n,u3,\n";

/// An empty file, and three files whose columns have different orders.
const SHUFFLED: [(&str, &[u8]); 4] = [
    ("empty.csv", b""),
    ("a.csv", b"id,url,title\r\n1,u1,\"one\nof two\"\r\n2,u2,t\r\n3,u1,x\r\n"),
    ("b.csv", b"\"url\",\"title, \"\"more\"\"\",id\n\"u2\",\"a \"\"b\"\"\n\",4\nu3,,5\n"),
    ("c.csv", b"title,url\n,u3\n\"u1\",u4"),
];

#[test]
fn headers_are_printed_once_and_not_compared() {
    for code in [<[u8]>::to_vec, gzip, zstd] {
        let bench = Bench::new(&TABLES);
        TABLES.iter().for_each(|(name, bytes)| bench.write(name, &code(bytes)));
        for chunks in CHUNKS {
            let line = format!("dedup --csv --header -f url {chunks}");
            let files = "empty.csv a.csv b.csv c.csv";
            assert_eq!(bench.run_ok(&format!("{line}--dupes d {files}")), LEFT, "{chunks}");
            assert_eq!(text(&bench.read("d")), DROPPED, "{chunks}");
            assert_eq!(bench.run_ok(&format!("{line}-v {files}")), DROPPED, "{chunks}");
            assert_eq!(bench.run_ok(&format!("{line}--total {files}")), "4\n");
            assert_eq!(bench.run_ok(&format!("{line}--total -v {files}")), "3\n");
            let annotated =
                "mark\tid,url,\"title, \"\"more\"\"\"\r\nnew\t1,u1,\"one\nof two\"\r\nnew\t2,u2,t\r\ndup\t3,u1,x\r\n";
            assert_eq!(bench.run_ok(&format!("{line}--annotate a.csv")), annotated);
            let output = bench.run(&format!("{line}--stats=json {files}"));
            let figures = stats(&output);
            let figure = |name: &str| figures[name].as_u64().unwrap();
            assert_eq!((figure("lines"), figure("unique"), figure("dropped")), (7, 4, 3), "{figures}");
            // The header is that of the first file with one.
            let first = text(&bench.run(&format!("{line}c.csv a.csv")).stdout);
            assert!(
                first.starts_with("\u{feff}id,\"url\",\"title, \"\"more\"\"\"\n,u3,\n6,\"u4\",\n1,u1,"),
                "{chunks}"
            );
            for output in ["o.gz", "o.zst"] {
                bench.run_ok(&format!("{line}-o {output} {files}"));
                assert_eq!(text(&decode(output, &bench.read(output)).0), LEFT);
            }
        }
        assert_eq!(
            text(&expect_success(run_with_stdin(bench.command("dedup --csv --header -f url - c.csv"), TABLES[1].1))),
            "id,url,\"title, \"\"more\"\"\"\r\n1,u1,\"one\nof two\"\r\n2,u2,t\r\n,u3,\n6,\"u4\",\n"
        );
        assert_eq!(bench.run_ok("dedup --csv --header -f url empty.csv"), "");
    }
}

/// Lines of an input are not printed under the header of another input.
#[test]
fn inputs_of_one_output_must_share_a_header() {
    let files = [("a", "id,name\n1,Ann\n2,Bob\n"), ("b", "name,id\nAnn,1\nCid,3\n"), ("c", "id,name\n3,Dan\n")];
    let bench = Bench::new(&files.map(|(name, lines)| (name, lines.as_bytes())));
    let headers = ["\"b\"", "its header is \"name,id\"", "the header of \"a\" is \"id,name\"", "one output"];
    for code in [<[u8]>::to_vec, gzip] {
        files.iter().for_each(|(name, lines)| bench.write(name, &code(lines.as_bytes())));
        bench.run_ok("build --csv --header -f id -o f a b");
        for line in [
            "dedup --csv --header -f id a b",
            "dedup --csv --header -f 1 a b",
            "dedup --header -d , -f id a b",
            "dedup --csv --header a b",
            "dedup --header a b",
            "dedup --csv --header -f id -o a a b",
            "dedup --csv --header -f id --dupes d a b",
            "dedup --csv --header -f id -c a b",
            "dedup --csv --header -f id --keep last a b",
            "dedup --csv --header -f id --pairs p a b",
            "not-in --csv --header -f id c -- a b",
            "in --csv --header -f id c -- a b",
            "check --csv --header -f id -s f a b",
        ] {
            let message = bench.run_err(line);
            assert_contains_all(&message, &headers);
            // Other commands have no folder of outputs.
            assert_eq!(message.contains("--output-dir"), line.starts_with("dedup"), "{message}");
            assert_eq!(bench.read("a"), code(files[0].1.as_bytes()), "{line}");
        }
        for on_error in ["skip", "keep"] {
            let output = bench.run(&format!("dedup --csv --header -f id --on-error {on_error} a b c"));
            assert_eq!(
                (text(&output.stdout), output.status.code()),
                ("id,name\n1,Ann\n2,Bob\n3,Dan\n".to_owned(), Some(1))
            );
            assert_contains_all(&text(&output.stderr), &["warning: cannot open \"b\": its header", "it is skipped"]);
            let output = bench.run(&format!("not-in --csv --header -f id --on-error {on_error} c -- a b"));
            assert_eq!((text(&output.stdout), output.status.code()), ("id,name\n1,Ann\n2,Bob\n".to_owned(), Some(2)));
        }
        // The header of a pipe is compared when it is read.
        for (options, printed) in [("", files[0].1), ("-c ", "")] {
            let line = format!("dedup --csv --header -f id {options}a -");
            let output = run_with_stdin(bench.command(&line), &code(files[1].1.as_bytes()));
            assert_contains_all(
                &expect_failure(&output),
                &["standard input after line 0: its header is \"name,id\"", "\"a\" is \"id,name\""],
            );
            assert_eq!(text(&output.stdout), printed);
        }
        let output = run_with_stdin(bench.command("dedup --csv --header -f id - b"), &code(files[0].1.as_bytes()));
        assert_contains_all(
            &expect_failure(&output),
            &["\"b\" after line 0: its header is \"name,id\"", "the header of standard input is \"id,name\""],
        );
        assert_eq!(text(&output.stdout), files[0].1);
        let output = run_with_stdin(
            bench.command("dedup --csv --header -f id --on-error skip a - c"),
            &code(files[1].1.as_bytes()),
        );
        assert_eq!(
            (text(&output.stdout), output.status.code()),
            ("id,name\n1,Ann\n2,Bob\n3,Dan\n".to_owned(), Some(1))
        );
        // A file on standard input is read from its current position.
        let output = bench.run_with("dedup --csv --header -f id - c", "a");
        assert_eq!(expect_exit_code(output, 0), "id,name\n1,Ann\n2,Bob\n3,Dan\n");
        // Headers of OLD and of counted inputs are not printed, so they may differ.
        assert_eq!(bench.run_ok("in --csv --header -f id b -- a"), "id,name\n1,Ann\n");
        assert_eq!(bench.run_ok("dedup --csv --header -f id --total a b"), "3\n");
    }
}

/// If a key does not consist of names only, all inputs need the same order of columns, even if nothing is printed.
#[test]
fn keys_by_number_need_columns_in_one_order() {
    let files: [(&str, &[u8]); 3] = [("a", b"id,v\n1,2\n"), ("b", b"v,id\n1,2\n1,3\n"), ("c", b"\"id\",v\r\n1,2\r\n")];
    let bench = Bench::new(&files);
    let why = ["\"b\"", "its header is \"v,id\"", "the header of \"a\" is \"id,v\"", "-f NAME"];
    bench.run_ok("build --csv --header -f 1 -o known a");
    for key in ["--header --csv", "--header --csv -f 1", "--header --csv -f id,2-", "--header -d , -f 1", "--header"] {
        for line in [
            "dedup --output-dir od --in-order a b",
            "dedup --in-place a b",
            "dedup --total a b",
            "build -o f a b",
            "check --total -s known a b",
            "check --any -s known a b",
            "not-in a -- b",
            "in --total a -- b",
            "in --any a b -- a",
        ] {
            let (command, rest) = line.split_once(' ').unwrap();
            assert_contains_all(&bench.run_err(&format!("{command} {key} {rest}")), &why);
            assert!(!bench.path("od").exists() && !bench.path("f").exists(), "{key} {line}");
            assert_eq!((bench.read("a"), bench.read("b")), (files[0].1.to_vec(), files[1].1.to_vec()));
        }
    }
    for on_error in ["skip", "keep"] {
        let output = bench.run(&format!("dedup --csv --header --total --on-error {on_error} a b c"));
        assert_eq!((text(&output.stdout), output.status.code()), ("1\n".to_owned(), Some(1)));
        assert_contains_all(&text(&output.stderr), &["warning: cannot open \"b\": its header", "it is skipped"]);
        let output = bench.run(&format!("in --csv --header --on-error {on_error} a b -- c"));
        assert_eq!((text(&output.stdout), output.status.code()), ("\"id\",v\r\n1,2\r\n".to_owned(), Some(2)));
    }
    // The header of a pipe is compared when it is read.
    let output = run_with_stdin(bench.command("not-in --csv --header a -- -"), files[1].1);
    assert_contains_all(
        &expect_failure(&output),
        &["its header is \"v,id\"", "the header of \"a\" is \"id,v\"", "-f NAME"],
    );
    // Names are resolved in each file.
    assert_eq!(bench.run_ok("not-in --csv --header -f id,v a -- b"), "v,id\n1,2\n1,3\n");
    bench.run_ok("build --csv --header -f id -o f a b");
    bench.run_ok("dedup --csv --header -f id,v --output-dir od a b");
    assert_eq!(bench.read("od/b"), files[1].1);
}

#[test]
fn headers_may_precede_lines_of_any_kind() {
    let bench = Bench::new(&[
        ("a", b"h\na\nh\na\n"),
        ("b", b"\xEF\xBB\xBFh\n{\"k\":1}\n"),
        ("only", b"h"),
        ("z", b"h\0a\0h\0a"),
    ]);
    assert_eq!(bench.run_ok("dedup --header a a"), "h\na\nh\n");
    assert_eq!(bench.run_ok("dedup --header only a"), "h\na\nh\n");
    assert_eq!(bench.run_ok("dedup --header only only"), "h\n");
    assert_eq!(bench.run_ok("dedup --header -z z z"), "h\0a\0h\0");
    // A byte order mark precedes the header.
    assert_eq!(bench.run_ok("dedup --header --json-pointer /k b b"), "\u{feff}h\n{\"k\":1}\n");
    assert_eq!(bench.run_ok("dedup --header --annotate b"), "\u{feff}mark\th\nnew\t{\"k\":1}\n");
}

#[test]
fn each_output_of_a_folder_has_the_header_of_its_input() {
    for order in ["", "--in-order "] {
        for chunks in ["", "-j 3 --chunk-size 5 "] {
            let bench = Bench::new(&SHUFFLED);
            bench.write("c.csv", &gzip(SHUFFLED[3].1));
            let line = format!("dedup --csv --header -f url --output-dir out {order}{chunks}--manifest m --stats=json");
            let output = bench.run(&format!("{line} --compress zstd empty.csv a.csv b.csv c.csv"));
            let contents = |name: &str| text(&unzstd(&bench.read(name)));
            let [empty, a, b, c] =
                ["out/empty.csv.zst", "out/a.csv.zst", "out/b.csv.zst", "out/c.csv.zst"].map(contents);
            assert_eq!(empty, "");
            assert!(a.starts_with("id,url,title\r\n"), "{a}");
            assert!(b.starts_with("\"url\",\"title, \"\"more\"\"\",id\n"), "{b}");
            assert!(c.starts_with("title,url\n"), "{c}");
            assert_eq!(stats(&output)["unique"], 4);
            let lines = json_values(&bench.read("m"));
            let of = |field: &str| lines.iter().map(|line| line[field].as_u64().unwrap()).collect::<Vec<_>>();
            assert_eq!(of("lines"), [0, 3, 2, 2]);
            assert_eq!(of("unique").iter().sum::<u64>(), 4);
            if !order.is_empty() {
                let left = [a, b, c].map(|table| table.split_once(['\n']).unwrap().1.to_owned()).concat();
                assert_eq!(left, "1,u1,\"one\nof two\"\r\n2,u2,t\r\nu3,,5\n\"u1\",u4\n");
            }
        }
    }
}

#[test]
fn unknown_field_names_end_the_run() {
    let bench = Bench::new(&[
        ("a", b"id,url\n1,u\n"),
        ("b", b"id,uri\n1,u\n"),
        ("twice", b"url,id,\"url\"\n1,2,3\n"),
        ("dos", b"id\turl\r\n1\tu\r\n2\tu\n"),
        ("open", b"id,\"url\n1,u\n"),
        ("mark", b"\xEF\xBB\xBF\"url\",id\nu,3\n"),
    ]);
    let line = "dedup --csv --header -f url";
    let output = bench.run(&format!("{line} --output-dir one a b"));
    let why = ["cannot read \"b\"", "no field \"url\"", "\"id\", \"uri\"", "with -f", "its number", "--on-error"];
    assert_contains_all(&expect_failure(&output), &why);
    let output = bench.run(&format!("{line} --on-error skip --total a b mark"));
    assert_eq!((text(&output.stdout), output.status.code()), ("1\n".to_owned(), Some(1)));
    assert_contains_all(
        &text(&output.stderr),
        &["warning: cannot read \"b\"", "no field \"url\"", "the rest of it is skipped"],
    );
    assert_contains_all(&bench.run_err(&format!("{line} b")), &["\"b\"", "no field \"url\""]);
    assert_contains_all(
        &bench.run_err(&format!("{line} twice")),
        &["\"twice\"", "\"url\" twice", "1 and 3", "numbers"],
    );
    assert_contains_all(&bench.run_err(&format!("{line} open")), &["\"open\"", "a quoted field is not closed"]);
    assert_contains_all(
        &bench.run_err("dedup --header -f url dos"),
        &["\"dos\"", "no field \"url\"", "\"url\\r\"", "--eol keep"],
    );
    assert_eq!(bench.run_ok("dedup --header -f url --eol keep dos"), "id\turl\r\n1\tu\r\n");
    assert_contains_all(
        &bench.run_err("dedup --header -f Url dos"),
        &["no field \"Url\"", "\"id\", \"url\\r\"; give one of these"],
    );
    assert_contains_all(&bench.run_err("build --csv --header -f url -o f b"), &["\"b\"", "no field \"url\""]);
    // Fields that are selected by number need no name.
    assert_eq!(bench.run_ok("dedup --csv --header -f 2 --total a a"), "1\n");
    for line in ["dedup -f url a", "build --csv -f 1,url -o f a", "check -s f -f url a"] {
        assert_contains_all(&bench.run_err(line), &["-f \"url\"", "--header", "the number of a field", "-s"]);
    }
    assert_contains_all(&bench.run_err("dedup --header -f --csv a"), &["'--csv'", "--field"]);
    // A header may have thousands of names.
    let many: Vec<String> = (0..5000).map(|i| format!("column {i}")).collect();
    bench.write("many", (many.join(",") + "\n").as_bytes());
    let message = bench.run_err(&format!("{line} many"));
    assert_contains_all(&message, &["\"column 29\" and 4970 more"]);
}

#[test]
fn filters_record_field_names() {
    let bench = Bench::new(&SHUFFLED);
    bench.run_ok("build --csv --header -f url -o f a.csv");
    assert_eq!(bench.json("info --json f")["key_name"], "url");
    let check = "check --csv --header -f url -s f";
    assert_eq!(bench.run_ok(&format!("{check} empty.csv a.csv")), text(&bench.read("a.csv")));
    let header = "\"url\",\"title, \"\"more\"\"\",id\n";
    assert_eq!(bench.run_ok(&format!("{check} empty.csv b.csv")), format!("{header}\"u2\",\"a \"\"b\"\"\n\",4\n"));
    assert_eq!(bench.run_ok(&format!("{check} -v b.csv")), format!("{header}u3,,5\n"));
    assert_eq!(bench.run_ok(&format!("{check} --total b.csv c.csv a.csv")), "b.csv:1\nc.csv:0\na.csv:3\n");
    // The header is printed even if no line is selected, and is not counted as a line.
    assert_eq!(expect_exit_code(bench.run(&format!("{check} c.csv")), 1), "title,url\n");
    assert_eq!(expect_exit_code(bench.run(&format!("{check} --any c.csv")), 1), "");
    assert_contains_all(
        &bench.run_err("check --csv --header -f id -s f a.csv"),
        &["its keys are \"url\"", "ask for \"id\""],
    );
    let output = bench.run("build --stats=json --csv --header -f url -o f a.csv b.csv");
    assert_eq!((&stats(&output)["lines"], &stats(&output)["new"]), (&5.into(), &3.into()));
}

#[test]
fn both_sides_of_a_comparison_have_headers() {
    let bench = Bench::new(&SHUFFLED);
    for chunks in CHUNKS {
        let compare = |line: &str| bench.run_ok(&line.replace(" --csv", &format!(" {chunks}--csv --header -f url")));
        let left = "\"url\",\"title, \"\"more\"\"\",id\nu3,,5\n";
        assert_eq!(compare("not-in --csv empty.csv a.csv -- empty.csv b.csv"), left, "{chunks}");
        assert_eq!(compare("in --csv b.csv -- a.csv"), "id,url,title\r\n2,u2,t\r\n", "{chunks}");
        assert_eq!(compare("in --csv b.csv --total -- a.csv c.csv"), "a.csv:1\nc.csv:1\n", "{chunks}");
    }
    let output = bench.run("in --skip-blank --eol keep --stats=json a.csv -- a.csv");
    let figures = stats(&output);
    assert_eq!((&figures["old_lines"], &figures["selected"]), (&5.into(), &5.into()), "{figures}");
}

/// Chunks may end at any byte.
#[test]
fn quoted_records_span_lines() {
    let table = "a,\"1\n2\"\n\"\n\"\"\n,\",x\r\nb,\"1\n2\"\n\n\nq\"\n\"\nc\",\"1\n2x\"\n";
    for code in [<[u8]>::to_vec, gzip] {
        let bench = Bench::new(&[("a", &code(table.as_bytes()))]);
        for chunks in CHUNKS {
            let run = |line: &str| text(&bench.run(&line.replace("dedup", &format!("dedup {chunks}--csv"))).stdout);
            let all = "a,\"1\n2\"\n\"\n\"\"\n,\",x\r\nb,\"1\n2\"\n\nq\"\n\"\nc\",\"1\n2x\"\n";
            assert_eq!(run("dedup a"), all, "{chunks}");
            let second = "a,\"1\n2\"\n\"\n\"\"\n,\",x\r\n\"\nc\",\"1\n2x\"\n";
            assert_eq!(run("dedup -f 2 --on-error skip a"), second, "{chunks}");
            // A quote is special only at the start of a field, which depends on the delimiter.
            assert_eq!(
                run("dedup -d ; --on-error keep a"),
                "a,\"1\n2\"\n\"\n\"\"\n,\",x\r\nb,\"1\n\nq\"\n\"\nc\",\"1\n2x\"\n",
                "{chunks}"
            );
        }
        let figures = stats(&bench.run("dedup --csv --stats=json a"));
        assert_eq!((&figures["lines"], &figures["unique"], &figures["dropped"]), (&7.into(), &6.into(), &1.into()));
    }
    // With -z a record ends with NUL.
    let bench = Bench::new(&[("a", b"a,\"x\0y\"\0b,\"x\0y\"\0c,x\ny\0d,x\ny")]);
    for chunks in CHUNKS {
        assert_eq!(bench.run_ok(&format!("dedup {chunks}--csv -z -f 2 a")), "a,\"x\0y\"\0c,x\ny\0");
    }
}

/// Spark and MySQL escape quotes with a backslash. In RFC 4180, no text follows the closing quote of a field.
#[test]
fn backslash_escaped_quotes_need_an_option() {
    let rows = ["1,\"Acme \\\"A\\\", Paris\"\n", "2,\"Acme \\\"A\\\", Rome\"\n", "3,\"Acme \\\"A\\\", Oslo\"\n"];
    let (wide, again) = ("4,\"5\\\"\"\n5,\"C:\\\\\"\n", "6,\"Acme \"\"A\"\", Rome\"\n7,\"5\"\"\"\n");
    let table = format!("id,t\n{}", rows.concat());
    let bench = Bench::new(&[("in.csv", table.as_bytes()), ("more.csv", format!("id,t\n{wide}{again}").as_bytes())]);
    for chunks in CHUNKS {
        for key in ["-f t ", "-f 2 ", ""] {
            let line = format!("dedup {chunks}--csv --header --exact {key}");
            let why =
                ["\"in.csv\", line 2: text follows the closing quote of field 2; ", "--escape '\\'", "--on-error"];
            let output = bench.run(&format!("{line}in.csv"));
            assert_eq!(text(&output.stdout), "id,t\n");
            assert_contains_all(&expect_failure(&output), &why);
            assert_eq!(bench.run(&format!("{line}--on-error keep in.csv")).stdout, table.as_bytes());
            assert_eq!(bench.run(&format!("{line}--on-error skip in.csv")).stdout, b"id,t\n");
            assert_eq!(bench.run_ok(&format!("{line}--escape \\ in.csv")), table);
        }
        let escaped = bench.run_ok(&format!("dedup {chunks}--csv --header -f t --escape \\ in.csv more.csv"));
        assert_eq!(escaped, format!("{table}{wide}"), "{chunks}");
    }
    // The rest of the record shows that the backslash is an escape, not text before a closing quote.
    bench.write("short", b"a,b\n1,\"x \\\", y\"\n");
    assert_contains_all(
        &expect_failure(&bench.run("dedup --csv -f 2 short")),
        &["\"short\", line 2: there is a quote inside field 3", "--escape"],
    );
    bench.write("many", b"a,b\n1,\"x \\\",2,3\n");
    assert_contains_all(
        &expect_failure(&bench.run("dedup --csv --header -f 1 many")),
        &["line 2: it has 4 fields, but the header has 2", "--escape"],
    );
    // A backslash before a quote is text if the record is valid.
    bench.write("ragged", b"a,b\n\"1\",2\n\"C:\\\",4\n");
    assert_eq!(bench.run_ok("dedup --csv --header -f a ragged").as_bytes(), bench.read("ragged"));
    // Filters record the escape.
    bench.run_ok("build --csv --escape \\\\ -f 2 -o f in.csv");
    assert_eq!(bench.json("info --json f")["key_name"], "field 2 of CSV lines with the escape '\\\\'");
    assert_contains_all(&bench.run_err("check --csv -f 2 -s f in.csv"), &["with the escape", "give the key options"]);
    for (options, why) in [
        ("--escape \\", &["--csv"][..]),
        ("--csv --escape \"", &["--escape"]),
        ("--csv --escape ab", &["--escape", "one visible character"]),
        ("--csv --escape , -f 1", &["--escape and --delimiter"]),
    ] {
        assert_contains_all(&bench.run_err(&format!("dedup {options} in.csv")), why);
    }
}

#[test]
fn messages_count_lines_as_editors_do() {
    let bench = Bench::new(&[
        ("a", b"\"i\nd\",u\n\"1\n\n\",a\n2,\"b\nc\"\n3\n\"4\",d\n5\n"),
        ("good", b"\"i\nd\",u\n"),
        ("open", b"id,u\n1,\"\n\"\n\n2,\"b\nc\nd,\"\"\n"),
    ]);
    for chunks in CHUNKS {
        let message = |line: &str| expect_failure(&bench.run(&format!("dedup {chunks}{line}")));
        assert_contains_all(&message("--csv -f 2 a"), &["\"a\", line 8: there is no field 2"]);
        assert_contains_all(&message("--csv --header -f 2 good a"), &["\"a\", line 8: it has 1 field"]);
        assert_contains_all(&message("--csv -f 2 --header open"), &["\"open\", line 4: it has 1 field"]);
        let output = bench.run(&format!("dedup {chunks}--csv -f 2 --on-error skip open"));
        assert_eq!(text(&output.stdout), "id,u\n1,\"\n\"\n", "{chunks}");
        let warnings = text(&output.stderr);
        assert_contains_all(
            &warnings,
            &["without a key: 1; the first is \"open\", line 4: ", "\"open\" after line 4: "],
        );
        // The rest of the input is one record.
        let why = [
            "\"open\" after line 4: the rest, 3 lines, is one record: a quoted field is not closed",
            "leave out --csv",
        ];
        let output = bench.run(&format!("dedup {chunks}--csv --skip-blank open"));
        assert_eq!(text(&output.stdout), "id,u\n1,\"\n\"\n", "{chunks}");
        assert_contains_all(&expect_failure(&output), &why);
        let output = bench.run(&format!("dedup {chunks}--csv --skip-blank --on-error skip open good"));
        assert_eq!((text(&output.stdout), output.status.code()), ("id,u\n1,\"\n\"\n\"i\nd\",u\n".to_owned(), Some(1)));
        assert_contains_all(&text(&output.stderr), &why);
        assert_eq!(text(&output.stderr).lines().count(), 1, "{}", text(&output.stderr));
        let kept = bench.run(&format!("dedup {chunks}--csv --on-error keep open"));
        assert_eq!(kept.stdout, bench.read("open"), "{chunks}");
        assert_contains_all(&text(&kept.stderr), &["without a key: 1; the first is \"open\", line 5: "]);
    }
}

/// If an input breaks within a record, the record is skipped with the rest of the input, or kept.
#[test]
fn truncated_records_are_skipped_or_kept() {
    let whole = b"x,\"\ny\"\n".repeat(2000).iter().copied().chain(*b"z,\"1\n2\n\n\n").collect::<Vec<_>>();
    let mut bytes = gzip(&whole);
    // The checksum is incomplete.
    bytes.truncate(bytes.len() - 4);
    let bench = Bench::new(&[("a.gz", &bytes)]);
    for chunks in ["", "-j 3 --chunk-size 100 "] {
        let run = |what: &str| bench.run(&format!("dedup {chunks}--csv --on-error {what} a.gz"));
        assert_eq!(text(&run("skip").stdout), "x,\"\ny\"\n");
        assert_contains_all(&text(&run("skip").stderr), &["cannot read \"a.gz\" after line 4000: "]);
        assert_eq!(text(&run("keep").stdout), "x,\"\ny\"\nz,\"1\n2\n\n\n");
    }
}

#[test]
fn carriage_returns_and_blank_lines_can_be_ignored() {
    let bench = Bench::new(&[
        ("a", b"a\r\na\na\r\r\nb\tc\r\nx\tc\n\r\n\n \t\r\n\x0b\n"),
        ("csv", b"a,b\r\n\r\n\"\"\n,\n \" \n"),
        ("mark", b"\xEF\xBB\xBF\n\xEF\xBB\xBF\n"),
    ]);
    for chunks in CHUNKS {
        let dedup = |line: &str| bench.run_ok(&format!("dedup -q {chunks}{line}"));
        assert_eq!(dedup("--eol keep a"), "a\r\na\r\r\nb\tc\r\nx\tc\n\r\n \t\r\n\x0b\n");
        assert_eq!(dedup("--skip-blank a"), "a\r\na\na\r\r\nb\tc\r\nx\tc\n\x0b\n");
        assert_eq!(
            dedup("--skip-blank --eol keep --annotate a"),
            "new\ta\r\ndup\ta\nnew\ta\r\r\nnew\tb\tc\r\nnew\tx\tc\nnew\t\x0b\n"
        );
        assert_eq!(
            text(&bench.run(&format!("dedup {chunks}--eol keep -f 2 --on-error skip --skip-blank a")).stdout),
            "b\tc\r\n"
        );
        assert_eq!(dedup("--csv --skip-blank csv"), "a,b\r\n\"\"\n,\n \" \n");
        assert_eq!(dedup("--skip-blank mark"), "\u{feff}\u{feff}\n");
        let output = bench.run(&format!("dedup {chunks}--skip-blank --stats=json --on-error keep -f 2 a"));
        assert_eq!(text(&output.stdout), "a\r\na\na\r\r\nb\tc\r\nx\tc\n\x0b\n");
        let figures = stats(&output);
        let figure = |name: &str| figures[name].as_u64().unwrap();
        assert_eq!(["lines", "unique", "dropped", "without_key", "blank"].map(figure), [9, 2, 0, 4, 3], "{figures}");
        // Skipped blank lines do not suppress errors of other lines.
        let output = bench.run(&format!("dedup -q {chunks}--skip-blank -f 2 a"));
        assert_contains_all(&expect_failure(&output), &["\"a\", line 1: there is no field 2"]);
    }
    assert_contains_all(&text(&bench.run("dedup --skip-blank --stats a").stderr), &["\nblank            3\n"]);
    let output = bench.run("build --eol keep --skip-blank --stats=json -o f a");
    assert_eq!(stats(&output)["blank"], 3);
    assert_eq!(bench.json("info --json f")["key_name"], "line, without CR");
    assert_eq!(bench.run_ok("check --eol keep --skip-blank --total -s f a"), "6\n");
    bench.run_ok("dedup -q --skip-blank --manifest m --output-dir out a");
    assert_eq!(json_values(&bench.read("m"))[0]["blank"], 3);
    // In CSV, a final carriage return is never part of the key, so `--eol` does not change its name.
    for (options, name) in [("--csv", "record of CSV lines"), ("--csv -f 1", "field 1 of CSV lines")] {
        bench.run_ok(&format!("build --eol keep {options} -o f csv"));
        assert_eq!(bench.json("info --json f")["key_name"], name);
        bench.run_ok(&format!("check {options} -s f csv"));
    }
}

/// Lines with different endings look the same.
#[test]
fn mixed_line_endings_are_reported_once_and_can_be_unified() {
    let bench = Bench::new(&[
        ("mixed", b"a\r\nb\na\nc\r\n"),
        ("unix", b"a\nb\n"),
        ("dos", b"a\r\n\r\nb"),
        ("fields", b"a\tx\r\nb\tx\n"),
        ("table.csv", b"id,\"t\nu\"\r\n1,\"a\r\nb\"\n1,x\r\n2,y"),
    ]);
    let why = ["warning: some lines end with CR LF and others with LF", "give --eol keep"];
    bench.run_ok("build -o f unix");
    for line in [
        "dedup mixed",
        "dedup unix dos",
        "dedup -i mixed mixed",
        "dedup -f 2 fields",
        "dedup -c mixed",
        "dedup --pairs p mixed",
        "not-in unix -- dos",
        "in -j 1 --chunk-size 1 unix -- dos unix",
        "check -s f mixed",
        "build -o g mixed",
    ] {
        let output = bench.run(line);
        assert_contains_all(&text(&output.stderr), &why);
        assert_eq!(text(&output.stderr).lines().count(), 1, "{line}");
        let (command, rest) = line.split_once(' ').unwrap();
        assert_eq!(text(&bench.run(&format!("{command} -q {rest}")).stderr), "", "{line}");
    }
    for line in [
        "dedup unix unix",
        "dedup dos",
        "dedup --eol keep mixed",
        "dedup --trim mixed",
        "dedup -f 1 fields",
        "dedup -z mixed",
    ] {
        bench.run_ok(line);
    }
    for (eol, end) in [("lf", "\n"), ("crlf", "\r\n")] {
        let lines = |lines: &[&str]| lines.iter().map(|line| [*line, end].concat()).collect::<String>();
        for chunks in CHUNKS {
            let run = |line: &str| bench.run_ok(&line.replacen(' ', &format!(" {chunks}--eol {eol} "), 1));
            assert_eq!(run("dedup mixed dos"), lines(&["a", "b", "c", ""]));
            assert_eq!(run("dedup -c unix dos"), lines(&["      2 a", "      2 b", "      1 "]));
            assert_eq!(run("dedup --annotate unix dos"), lines(&["new\ta", "new\tb", "dup\ta", "new\t", "dup\tb"]));
            assert_eq!(run("in unix -- mixed"), lines(&["a", "b", "a"]));
            bench.run_ok("build --eol keep -o f unix");
            assert_eq!(run("check -s f mixed"), lines(&["a", "b", "a"]));
            // Line endings within quotes are kept.
            assert_eq!(run("dedup --csv --header -f id table.csv"), lines(&["id,\"t\nu\"", "1,\"a\r\nb\"", "2,y"]));
            assert_eq!(run("dedup --dupes d mixed"), lines(&["a", "b", "c"]));
            assert_eq!(text(&bench.read("d")), lines(&["a"]));
        }
        bench.write("own", b"a\r\nb\n");
        bench.run_ok(&format!("dedup --in-place --eol {eol} own"));
        assert_eq!(text(&bench.read("own")), lines(&["a", "b"]));
    }
    assert_contains_all(&bench.run_err("dedup -z --eol lf unix"), &["--zero-terminated", "--eol"]);
    assert_contains_all(&bench.run_err("dedup -z --eol keep unix"), &["--zero-terminated", "--eol"]);
}

/// Each warning is one line.
#[test]
fn inputs_that_contradict_the_options_are_reported() {
    let bench = Bench::new(&[
        ("t.csv", b"url,title\na,b\nc,d\n"),
        ("t.tsv", b"url\ttitle\na\tb\n"),
        ("semicolon", b"url;title\na;b\n"),
        ("open.csv", b"a,\"x\ny\"\nb,\"x\ny\"\n"),
        ("open.csv.gz", &gzip(b"a,\"x\ny\"\nb,\"x\ny\"\n")),
        ("w", b"WARC/1.0\r\nWARC-Type: warcinfo\r\n\r\n"),
        ("old", b"a\n"),
    ]);
    for (line, why) in [
        ("dedup -f 1 t.csv", &["\"t.csv\"", "--csv"][..]),
        ("build -f 1 -o f t.csv", &["\"t.csv\"", "--csv"]),
        ("dedup --csv -f 1 t.tsv", &["\"t.tsv\"", "-d '\\t'"]),
        ("dedup open.csv", &["\"open.csv\"", "--csv"]),
        ("not-in old -- open.csv.gz", &["\"open.csv.gz\"", "--csv"]),
        ("dedup --eol keep w", &["\"w\"", "a WARC"]),
        ("not-in old t.csv", &["standard input, which is NEW, has no lines", "\"old\" -- \"t.csv\""]),
    ] {
        let output = bench.run(line);
        assert_eq!(text(&output.stderr).lines().count(), 1, "{line}: {}", text(&output.stderr));
        assert_contains_all(&text(&output.stderr), &[&["warning: "], why].concat());
        let (command, rest) = line.split_once(' ').unwrap();
        assert_eq!(text(&bench.run(&format!("{command} -q {rest}")).stderr), "", "{line}");
    }
    for line in [
        "dedup t.csv t.tsv",
        "dedup -f 1 t.tsv",
        "dedup -f 1 -d , t.csv",
        "dedup --csv open.csv",
        "dedup -f 1 semicolon",
    ] {
        bench.run_ok(line);
    }
    for (line, advice) in [
        ("dedup --header -f url t.csv", "give --csv, or -d ','"),
        ("dedup --header --csv -f url t.tsv", "give -d '\\t'"),
        ("dedup --header --csv -f title semicolon", "give -d ';'"),
        ("dedup --header --csv -d ; -f url t.csv", "; give -d ',', as it is split there"),
        ("dedup --header --csv -d ; -f url t.tsv", "; give -d '\\t'"),
    ] {
        assert_contains_all(&bench.run_err(line), &["the header has no field", advice]);
    }
}

/// The runs are resumed in the middle of the second file.
#[test]
fn resumed_runs_keep_the_header() {
    let row = |i: u32| format!("u{0},\"text\nof {i}\",{0}\n", i % 300);
    let rows = |range: std::ops::Range<u32>| range.map(row).collect::<String>();
    let good = format!("\"url\",\"te\nxt\",id\n{}", rows(0..500));
    let bad = good.replace("u49,\"text\nof 349\",49\n", "u49 \"text\nof 349\"x49\n");
    assert!(good != bad && good.len() == bad.len());
    for code in [<[u8]>::to_vec, gzip_stored] {
        for (options, outputs) in [
            ("-o o.csv --dupes d.csv", &["o.csv", "d.csv"][..]),
            ("-o o.csv.gz --dupes d.csv.zst", &["o.csv.gz", "d.csv.zst"]),
            ("--output-dir out --in-order", &["out/a.csv", "out/b.csv"]),
        ] {
            for chunks in ["", "-j 3 --chunk-size 13 "] {
                let bench =
                    Bench::new(&[("a.csv", b"url,\"te\nxt\",\"id\"\r\nu5,,5\n"), ("b.csv", &code(good.as_bytes()))]);
                let line = format!("dedup -n 1000 --csv --header -f url,id --state s {options} {chunks}a.csv b.csv");
                bench.run_ok(&line);
                let contents =
                    || outputs.iter().map(|name| text(&decode(name, &bench.read(name)).0)).collect::<Vec<_>>();
                let expected = contents();
                assert!(expected.iter().all(|output| output.len() > 10));
                outputs.iter().chain(&["s"]).for_each(|name| fs::remove_file(bench.path(name)).unwrap());
                bench.write("b.csv", &code(bad.as_bytes()));
                // The header and each of 349 records have two lines.
                assert_contains_all(&bench.run_err(&line), &["\"b.csv\", line 701: it has 1 field"]);
                // A resumed run counts lines from the start of the input.
                let again = bench.run_err(&format!("{line} --resume"));
                assert_contains_all(&again, &["\"b.csv\", line 701: it has 1 field"]);
                bench.rewrite("b.csv", &code(good.as_bytes()));
                let message = bench.run_err(&format!("{line} --resume --skip-blank"));
                assert_contains_all(&message, &["it belongs to a run with the options", ", after a header, not blank"]);
                bench.run_ok(&format!("{line} --resume"));
                assert!(contents() == expected, "{line}");
            }
        }
    }
}

/// A CSV record with another number of fields than its header has no key, and is not lost.
#[test]
fn records_have_as_many_fields_as_their_header() {
    let names = "id,name,city\n1,Smith, John,Rome\n2,Smith, Jane,Oslo\n3,Ann,John\n";
    let quotes = "id, city\n1, \"Paris, FR\"\n2, \"Paris, TX\"\n3, \"Oslo\"\n";
    let bench = Bench::new(&[
        ("names", names.as_bytes()),
        ("quotes", quotes.as_bytes()),
        ("new", b"id,name,city\n9,Smith,Rome\n"),
        ("fewer", b"a,b\n1,x\n\n2\n3,x\n"),
    ]);
    let refused = expect_failure(&bench.run("dedup --exact --csv --header -f name names"));
    assert_contains_all(
        &refused,
        &["\"names\", line 2: it has 4 fields, but the header has 3", "in quotes", "--on-error"],
    );
    assert_contains_all(&expect_failure(&bench.run("dedup --csv --header -f 2 quotes")), &["line 2: it has 3 fields"]);
    // The rule also applies to keys of whole records and of fields selected by number.
    for key in ["", "-f 1", "-f 1,3", "-f id,city"] {
        let kept = bench.run(&format!("dedup --csv --header {key} --on-error keep names").replace("  ", " "));
        assert_eq!((kept.status.code(), text(&kept.stdout)), (Some(0), names.into()), "{key}");
    }
    let skipped = bench.run("dedup --csv --header -f name --on-error skip names");
    assert_eq!(text(&skipped.stdout), "id,name,city\n3,Ann,John\n");
    // The file is not replaced after the error.
    expect_failure(&bench.run("dedup --in-place --csv --header -f name names"));
    assert_eq!(bench.read("names"), names.as_bytes());
    // No new row is taken for a known one, and rows without a key are kept.
    let unknown = bench.run("not-in --exact --csv --header -f name --on-error skip names -- new");
    assert_eq!(text(&unknown.stdout), "id,name,city\n9,Smith,Rome\n");
    let kept = bench.run("not-in --exact --csv --header -f name --on-error keep new -- names");
    assert_eq!(text(&kept.stdout), names);
    let refused = expect_failure(&bench.run("dedup --csv --header -f b fewer"));
    assert_contains_all(&refused, &["line 3: it has 1 field, but the header has 2", "--skip-blank"]);
    let kept = bench.run("dedup --csv --header -f b --skip-blank --on-error skip fewer");
    assert_eq!(text(&kept.stdout), "a,b\n1,x\n");
    // Without a header, records may have any number of fields.
    assert_eq!(bench.run_ok("dedup --csv -f 1 fewer"), text(&bench.read("fewer")));
}

#[test]
fn lone_carriage_returns_are_errors_in_csv() {
    let bench = Bench::new(&[
        ("mac.csv", b"id,name\r1,Ann\r2,Bob\r"),
        ("mixed.csv", b"id,name\n1,Ann\r2,Bob\n1,Ann\r3,Cid\n"),
        ("quoted.csv", b"id,name\r\n1,\"Ann\rB\"\r\n2,\"Ann\rB\"\r\n"),
    ]);
    for line in
        ["dedup --csv --header -f 1 --total mac.csv", "dedup --csv -f 1 mac.csv", "dedup --csv --total mixed.csv"]
    {
        let refused = bench.run(line);
        assert_eq!(refused.status.code(), Some(2), "{line}");
        assert_contains_all(&text(&refused.stderr), &["a carriage return stands alone", "tr '\\r' '\\n'"]);
    }
    for line in ["dedup --exact --csv --header -f id mixed.csv", "dedup --exact --csv --header -f 2 mixed.csv"] {
        assert_contains_all(
            &expect_failure(&bench.run(line)),
            &["\"mixed.csv\", line 2: a carriage return stands alone"],
        );
    }
    // Within quotes, a carriage return is text. At the end of a line, it is part of the line ending.
    assert_eq!(bench.run_ok("dedup --csv --header -f name quoted.csv"), "id,name\r\n1,\"Ann\rB\"\r\n");
    // Without --csv, the file is one line.
    let output = bench.run("dedup --total mac.csv");
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(0), "1\n".into()));
    assert_contains_all(&text(&output.stderr), &["lines of \"mac.csv\" end with CR alone"]);
}

#[test]
fn lines_that_name_a_separator_are_not_headers() {
    let bench = Bench::new(&[("a.csv", b"sep=;\r\nid;name\r\n1;Ann\r\n")]);
    for key in ["-f name", "-d ; -f name", "-f 1"] {
        let refused = expect_failure(&bench.run(&format!("dedup --csv --header {key} a.csv")));
        assert_contains_all(&refused, &["\"sep=;\" is for spreadsheets", "give -d ';'", "tail -n +2"]);
    }
}

#[test]
fn names_of_columns_may_have_commas_and_digits() {
    let bench = Bench::new(&[
        ("a.csv", b"\"last, first\",2,\"say \"\"hi\"\"\"\nx,1,p\nx,2,q\ny,1,q\n"),
        ("a.jsonl", b"{\"last, first\":\"x\",\"a.b\":1}\n{\"last, first\":\"x\",\"a.b\":2}\n"),
    ]);
    let run = |list: &str| {
        let mut command = bench.command("dedup --csv --header --total a.csv -f");
        text(&command.arg(list).output().unwrap().stdout)
    };
    let lists = [r#""last, first""#, r#""2""#, r#""say ""hi""""#, r#""last, first","2""#, r#"2,"last, first""#];
    assert_eq!(lists.map(run), ["2\n", "2\n", "2\n", "3\n", "3\n"]);
    let mut command = bench.command("dedup --total a.jsonl --column");
    assert_eq!(text(&command.arg(r#""last, first""#).output().unwrap().stdout), "1\n");
    let mut command = bench.command("dedup --total a.jsonl --column");
    assert_eq!(text(&command.arg(r#""a.b""#).output().unwrap().stdout), "2\n");
    for list in [r#""a"#, r#""a"b"#] {
        let refused = bench.command("dedup --csv --header a.csv -f").arg(list).output().unwrap();
        assert_contains_all(&text(&refused.stderr), &["after a name in quotes"]);
    }
}

/// The value of --keep and the id may be columns of CSV.
#[test]
fn copies_are_chosen_by_columns_of_csv() {
    let rows = "url,score,day,id\nu1,9,20260101T230000-0500,a\nu1,10,2026-01-02T00:00:00Z,b\nu2,,2026-01-01,c\nu2,x,2026-01-02,d\n";
    let bench = Bench::new(&[("a.csv", rows.as_bytes()), ("b.tsv", rows.replace(',', "\t").as_bytes())]);
    let row = |number: usize| rows.split_inclusive('\n').nth(number).unwrap();
    for (keep, kept) in [
        ("max:score", [2, 4]),
        ("min:score", [1, 4]),
        // Both formats of ISO 8601 are compared as instants.
        ("max:day", [1, 4]),
        ("min:day", [2, 3]),
        ("order:id=d,b", [2, 4]),
    ] {
        let expected = [row(0), row(kept[0]), row(kept[1])].concat();
        assert_eq!(bench.run_ok(&format!("dedup --csv --header -f url --keep {keep} a.csv")), expected, "{keep}");
        let lines = bench.run_ok(&format!("dedup --header -f url --keep {keep} b.tsv"));
        assert_eq!(lines, expected.replace(',', "\t"), "{keep}");
    }
    bench.run_ok("dedup --csv --header -f 1 --pairs pairs --id id --total a.csv");
    let pairs = json_values(&bench.read("pairs"));
    let ids: Vec<_> = pairs.iter().map(|pair| (&pair["id"], &pair["kept"]["id"])).collect();
    assert_eq!(ids, [(&"b".into(), &"a".into()), (&"d".into(), &"c".into())]);
    let refused = expect_failure(&bench.run("dedup --csv --header -f url --keep max:points a.csv"));
    assert_contains_all(&refused, &["the header has no field \"points\"", "\"score\""]);
    assert_contains_all(
        &bench.run_err("dedup --csv -f 1 --keep max:score a.csv"),
        &["without --header columns have no names"],
    );
}

/// A row of the table of formats in docs/COMMAND.md: a file, its contents, a command, its exit code, and a part of its output
/// or error message.
type Sample = (&'static str, &'static [u8], &'static str, i32, &'static str);

const FORMATS: [(&str, &[Sample]); 11] = [
    (
        "lines",
        &[
            ("a", b"x\ny\nx\n", "dedup", 0, "x\ny\n"),
            ("a", b"x\0y\0x\0", "dedup -z", 0, "x\0y\0"),
            ("a", b"x\ry\r", "dedup", 0, "lines of \"a\" end with CR alone"),
        ],
    ),
    (
        "lines that end with CR LF",
        &[
            ("a", b"x\r\nx\n", "dedup", 0, "x\r\nx\n"),
            ("a", b"x\r\nx\n", "dedup --eol lf", 0, "x\n"),
            ("a", b"x\r\nx\n", "dedup --eol keep", 0, "x\r\n"),
        ],
    ),
    (
        "`--header`",
        &[
            ("a", b"x\nx\n", "dedup --header", 0, "x\nx\n"),
            ("a", b"sep=;\nx;y\n", "dedup --header -d ; -f x", 2, "for spreadsheets"),
            ("b", b"y\nx\n", "dedup --header a", 2, "its header is \"y\""),
        ],
    ),
    (
        "`--csv`",
        &[
            ("a", b"\"x\ny\"\n\"x\ny\"\n", "dedup --csv", 0, "\"x\ny\"\n"),
            ("a", b"\"x\\\",y\n", "dedup --csv -f 2", 0, "\"x\\\",y\n"),
            ("a", b"\"x\\\",y\",z\n", "dedup --csv --escape \\ -f 2", 0, "\"x\\\",y\",z\n"),
            ("a", b"\"x\"y\n", "dedup --csv", 2, "text follows the closing quote"),
            ("a", b"x\ry\n", "dedup --csv", 2, "a carriage return stands alone"),
            ("a", b"\"x\n", "dedup --csv", 2, "a quoted field is not closed"),
        ],
    ),
    (
        "`--csv --header`",
        &[
            ("a", b"h,i\nx,y\n", "dedup --csv --header -f h", 0, "h,i\nx,y\n"),
            ("a", b"h,i\nx,y,z\n", "dedup --csv --header -f h", 2, "it has 3 fields, but the header has 2"),
            ("a", b"h,i\n\nx,y\n", "dedup --csv --header -f h", 2, "--skip-blank"),
        ],
    ),
    (
        "`--column`, `--json-pointer`",
        &[
            ("a", b"{\"k\":1,\"k\":2}\n{\"k\":2.0}\n", "dedup --column k", 0, "{\"k\":1,\"k\":2}\n"),
            ("a", b"k,l\n", "dedup --column k", 2, "lines of JSON are expected, and this one is \"k,l\""),
            ("a", b"k,l\n", "corpus --json-pointer /k", 2, "lines of JSON are expected, and this one is \"k,l\""),
            ("a", b"{}\n", "dedup --json-pointer /k", 2, "there is no value at \"/k\""),
            (
                "a",
                b"[{\"k\":1}]\n",
                "corpus --json-pointer /k",
                2,
                "the line is an array, of which jq -c '.[]' makes lines",
            ),
            ("a", b"{\"k\":\"\\ud800\"}\n", "dedup --column k", 2, "half of a surrogate pair"),
        ],
    ),
    ("Parquet", &[("a", b"PAR1\x00\x00PAR1", "dedup --column k", 2, "cannot open \"a\"")]),
    ("gzip, zstd, xz, bzip2, lz4", &[("a", b"\x1f\x8b\x08\0\0\0\0\0\0\x03", "dedup", 2, "cannot read \"a\"")]),
    ("a byte order mark of UTF-8", &[("a", b"\xef\xbb\xbfx\nx\n", "dedup --total", 0, "1\n")]),
    (
        "UTF-16, UTF-32",
        &[("a", b"\xff\xfex\0\n\0", "dedup", 2, "UTF-16"), ("a", b"\xff\xfe\0\0", "dedup", 2, "UTF-32")],
    ),
    (
        "Arrow, Avro, ORC, SQLite, zip, tar, PDF",
        &[
            ("a", b"PK\x03\x04", "dedup", 2, "zip"),
            ("a", b"SQLite format 3\0", "dedup", 2, "SQLite"),
            ("a", b"%PDF-1.7\n", "dedup --binary", 0, "%PDF-1.7\n"),
        ],
    ),
];

#[test]
fn the_table_of_formats_is_correct() {
    let page = include_str!("../../../../docs/COMMAND.md");
    let table = page.split("| input | a record |").nth(1).unwrap().split("\n\n").next().unwrap();
    let rows: Vec<&str> = table.lines().skip(2).map(|row| row.split('|').nth(1).unwrap().trim()).collect();
    assert_eq!(rows, FORMATS.map(|(row, _)| row));
    for (row, samples) in FORMATS {
        for (name, contents, line, code, part) in samples {
            let bench = Bench::new(&[("a", b"x\n"), (name, contents)]);
            let output = bench.run(&format!("{line} {name}"));
            let printed = [text(&output.stdout), text(&output.stderr)].concat();
            assert_eq!(output.status.code(), Some(*code), "{row}: {line}: {printed}");
            assert!(printed.contains(part), "{row}: {line}: {printed}");
        }
    }
}
