//! Random lines and options, compared with a reference implementation in Python.

use crate::common::{Bench, report_skipped};
use crate::corpus::{bzip2, gzip, xz, zstd};
use proptest::prelude::*;
use std::env;
use std::process::Command;

/// The lines and options of a run.
#[derive(Debug)]
struct Case {
    lines: Vec<Vec<u8>>,
    options: Vec<String>,
    /// Options that the reference does not have.
    own: Vec<String>,
    /// The compression of each file. The lines are distributed over the files.
    codings: Vec<usize>,
    unfinished: bool,
    /// True if the files start with a byte order mark.
    marked: bool,
    dupes: bool,
}

/// Generates lines from a few pieces, so that many are equal after some normalization.
fn lines_of(pieces: Vec<Vec<u8>>) -> impl Strategy<Value = Vec<Vec<u8>>> {
    let piece = prop::sample::select(pieces);
    prop::collection::vec(prop::collection::vec(piece, 0..6).prop_map(|pieces| pieces.concat()), 0..80)
}

fn lines() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let pieces = "a A b \u{e4} \u{c4} \u{df} \u{3c3} \u{3a3} \u{130} \u{a0} , :: { \" \0";
    let pieces: Vec<Vec<u8>> = pieces.split(' ').map(|piece| piece.as_bytes().to_vec()).collect();
    let spaces = [&b" "[..], b"\t", b"\t", b",", b"\r", b"\x0c", b"\xff", b"\xc3"].map(<[u8]>::to_vec);
    lines_of([pieces, spaces.to_vec()].concat())
}

/// Generates lines with quoted fields. Some fields span lines or are not closed.
fn csv_lines() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let pieces = [",", ",", "\t", "\"", "\"\"", "\"a\",", "\"a,\"", "\"\"", "a", "A", " ", "\r", "\0"];
    let rows = ["\"a\nA\",", ",\"\n\"\"\n\"", "\"\n\",\"a\"", "a,\"\r\n\"", "\n"];
    let all: Vec<Vec<u8>> = pieces.into_iter().chain(rows).map(|piece| piece.as_bytes().to_vec()).collect();
    lines_of(all)
}

/// Generates JSON lines, some of them invalid, and some without the member `a`.
fn documents() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let values = r#""x"|"X"|"1"|"null"|"[1,\"x\"]"|"\u0078"|" x"|"\ud83d\ude00"|"😀"|""|"\n"|1|1.0|1e400|-0|12345678901234567890123|true|null|[]|[1,"x"]|[1, "x" ]|{"p":1,"q":[2]}|{"q": [2], "p":1}|{"p":{"a":1}}"#;
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

/// Generates an option that may be present.
fn maybe(option: &'static str) -> impl Strategy<Value = Vec<String>> {
    any::<bool>().prop_map(move |there| if there { vec![option.to_owned()] } else { vec![] })
}

fn words(texts: &[&'static str]) -> impl Strategy<Value = Vec<String>> + use<> {
    prop::sample::select(texts.to_vec()).prop_map(|text| text.split_whitespace().map(str::to_owned).collect())
}

fn case() -> impl Strategy<Value = Case> {
    let whole = words(&[
        "",
        "--field 1",
        "--field 2",
        "--field 2 --delimiter ,",
        "--field 3 --delimiter ::",
        "--field 2,1 --delimiter ,",
        "--field 1-2",
        "--field 2 --field 1 --delimiter :",
        "--field 1 --delimiter \\0",
        "--field 2-",
        "--field=-2,1- --delimiter ,",
        "--header",
        "--header --field 2",
        "--header --field b",
        "--header --field c,1 --delimiter ,",
    ]);
    let csv = words(&[
        "--csv --field 1",
        "--csv --field 2",
        "--csv --field 1,2",
        "--csv --field 2-3 --field 1",
        "--csv --field 2 --delimiter \\t",
        "--csv",
        "--csv --delimiter \\t",
        "--csv --field 2-",
        "--csv --field=-2",
        "--csv --header",
        "--csv --header --field b",
        "--csv --header --field a",
        "--csv --header --field c,a,2-",
        "--csv --header --field b --delimiter \\t",
    ]);
    let json = words(&[
        "--json-pointer /a",
        "--json-pointer /a",
        "--json-pointer /a/p",
        "--json-pointer /a/1",
        "--json-pointer /b --json-pointer /a",
    ]);
    let keys = prop_oneof![3 => (lines(), whole), 2 => (csv_lines(), csv), 2 => (documents(), json)];
    let output = words(&[
        "--on-error keep",
        "--on-error keep --annotate",
        "--on-error keep --invert",
        "--on-error keep --total --invert",
        "--on-error skip",
        "--on-error skip --annotate",
        "--on-error skip --invert",
        "--on-error skip --total",
        "--on-error skip --total --invert",
        "--on-error fail",
        "--annotate",
        "--total",
    ]);
    let own = words(&[
        "-p 1e-9",
        "-p 1e-9 -n 100000 -j 1 --chunk-size 1",
        "-p 1e-9 --when-full grow -j 3 --chunk-size 50",
        "--memory 1M",
        "--exact -p 0.3 -n 10 -j 3 --chunk-size 7",
        "--exact --when-full grow -p 0.3 -n 1",
        "-p 1e-9 -j 4 --chunk-size 2",
    ]);
    let folds = (maybe("--trim"), maybe("--ignore-case"), words(&["", "-z", "--eol=keep"]), maybe("--skip-blank"));
    let shape = (prop::collection::vec(0..5usize, 1..4), any::<bool>(), any::<bool>(), any::<bool>());
    (keys, folds, output, own, shape).prop_map(
        |((lines, key), (trim, lower, ends, blank), output, own, (codings, unfinished, marked, dupes))| Case {
            lines,
            dupes: dupes && !output.iter().any(|option| ["--annotate", "--invert"].contains(&option.as_str())),
            options: [key, trim, lower, ends, blank, output].concat(),
            own,
            codings,
            unfinished,
            marked,
        },
    )
}

/// True if Python is installed. `BLOOMLINE_REQUIRE_PYTHON=1` makes its absence an error.
fn has_python() -> bool {
    let there = Command::new("python3").arg("--version").output().is_ok_and(|output| output.status.success());
    assert!(there || env::var_os("BLOOMLINE_REQUIRE_PYTHON").is_none_or(|value| value != "1"), "no python3");
    if !there {
        report_skipped("no python3 here");
    }
    there
}

/// Returns the header of a file, which is empty without `--header`. In CSV it spans lines, and in some files its names are
/// quoted.
fn header(options: &[String], file: usize, end: u8) -> Vec<u8> {
    let has = |name: &str| options.iter().any(|option| option == name);
    if !has("--header") {
        return Vec::new();
    }
    let csv = has("--csv");
    let mut names = ["c", "a", "b"].map(str::to_owned).to_vec();
    if csv && file % 2 == 1 {
        names.iter_mut().for_each(|name| *name = format!("\"{name}\""));
    }
    names.push("x".to_owned());
    if csv {
        names.push("\"more,\n\"\" names\"".to_owned());
    }
    let given = options.iter().skip_while(|option| *option != "--delimiter").nth(1);
    let delimiter = given.map_or(if csv { "," } else { "\t" }, |given| if given == "\\t" { "\t" } else { given });
    let cr = if csv || has("--eol=keep") { "\r" } else { "" };
    [names.join(delimiter).as_bytes(), cr.as_bytes(), &[end]].concat()
}

/// Runs the command and the reference on the same lines, which are compressed for the command. Returns the exit code, the
/// output and the repeats of each.
fn both(case: &Case, keys: Option<&[u8]>) -> [(Option<i32>, Vec<u8>, Vec<u8>); 2] {
    let end = if case.options.iter().any(|option| option == "-z") { 0 } else { b'\n' };
    let bench = Bench::new(&[("ours.d", b""), ("theirs.d", b"")]);
    let parts = case.lines.len().div_ceil(case.codings.len()).max(1);
    let (mut ours, mut theirs) = (case.own.clone(), vec![]);
    for (i, lines) in case.lines.chunks(parts).enumerate() {
        let mut bytes = if case.marked { "\u{feff}".into() } else { Vec::new() };
        bytes.extend(header(&case.options, i, end));
        bytes.extend(lines.iter().flat_map(|line| [line, &[end][..]].concat()));
        // An empty last line without a line ending is not a line.
        if case.unfinished && lines.last().is_some_and(|line| !line.is_empty()) {
            bytes.pop();
        }
        bench.write(&format!("plain{i}"), &bytes);
        bench.write(&format!("ours{i}"), &[<[u8]>::to_vec, gzip, zstd, xz, bzip2][case.codings[i]](&bytes));
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
    // The reference needs no packages, and Python starts faster without them.
    python.args(["-I", "-S"]);
    python.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/reference.py"));
    python.current_dir(bench.0.path()).args(&case.options).args(theirs);
    let mut command = bench.command("dedup --quiet");
    command.args(&case.options).args(ours);
    [(command, "ours.d"), (python, "theirs.d")].map(|(mut command, dupes)| {
        let output = command.output().unwrap();
        // The exit code 1 with an error message is a failure of the reference.
        let code = output.status.code().filter(|&code| code == 0 || code == 2 || code == 1 && output.stderr.is_empty());
        assert!(code.is_some(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
        (code, output.stdout, bench.read(dupes))
    })
}

#[test]
fn random_corpora_match_the_reference() {
    compare_corpora(40);
}

#[test]
#[ignore = "takes long"]
fn random_corpora_match_the_reference_120_times() {
    compare_corpora(120);
}

/// Compares the command with the reference on this number of random corpora. Starting Python takes most of the time.
fn compare_corpora(cases: u32) {
    if !has_python() {
        return;
    }
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    proptest!(config, |(case in case())| {
        let mut case = case;
        if case.options.iter().any(|option| option == "-z") {
            case.lines.iter_mut().for_each(|line| line.iter_mut().filter(|byte| **byte == 0).for_each(|byte| *byte = b'\n'));
        }
        let [ours, theirs] = both(&case, None);
        prop_assert_eq!(ours, theirs);
    });
}

/// Generates a URL and its normal form.
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
fn random_urls_match_the_reference() {
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
            marked: true,
            dupes: true,
        };
        let [ours, theirs] = both(&case, Some(keys.as_bytes()));
        prop_assert_eq!(ours, theirs);
    });
}
