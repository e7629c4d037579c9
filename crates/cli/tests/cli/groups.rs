//! Groups of equal documents and lines: the one that is kept and the reports, compared with a simple model.

use crate::common::{
    Bench, TEMP_VARIABLE, assert_contains_all, expect_failure, expect_success, json_values, number, run_with_stdin,
    stats, text,
};
use crate::corpus::{encode, gzip, read_decoded};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::Write;

const WHOLE: &str = "corpus --by document --ngram 0";

/// A document, or a line without a text.
#[derive(Clone, Debug)]
struct Document {
    text: Option<String>,
    score: Option<i32>,
    source: Option<char>,
    /// True if the input's document has a member `count`.
    count: bool,
}

fn document() -> impl Strategy<Value = Document> {
    let text = prop_oneof![
        10 => "[a-d]{1,2}".prop_map(Some),
        1 => prop::sample::select(&["", " ", "\n\t", "é\"", "\u{3000}"][..]).prop_map(|text| Some(text.to_owned())),
        1 => Just(None),
    ];
    let parts = (text, any::<Option<i8>>(), prop::sample::select(&[None, Some('A'), Some('B'), Some('C')][..]));
    let score = |score: Option<i8>| score.map(|score| i32::from(score) % 4);
    (parts, prop::bool::weighted(0.1)).prop_map(move |((text, number, source), count)| Document {
        text,
        score: score(number),
        source,
        count,
    })
}

impl Document {
    fn line(&self, id: usize) -> String {
        let Some(text) = &self.text else { return format!("none {id}") };
        let mut line = format!("{{\"id\":{id}");
        line += if self.count { ",\"count\":[1, 2]" } else { "" };
        line += &format!(",\"text\":{}", Value::from(&**text));
        line += &self.score.map_or(String::new(), |score| format!(", \"score\": {score}.5e0"));
        line += &self.source.map_or(String::new(), |source| format!(",\"source\":\"{source}\""));
        line + "}"
    }

    /// Formats the line with the size of its group.
    fn counted(&self, id: usize, count: usize) -> String {
        let line = Self { count: false, ..self.clone() }.line(id);
        line.strip_suffix('}').map_or(line.clone(), |start| format!("{start},\"count\":{count}}}"))
    }
}

/// The options of a run.
#[derive(Clone, Debug)]
struct Request {
    keep: &'static str,
    count: bool,
    keep_empty: bool,
    keep_faults: bool,
}

fn request() -> impl Strategy<Value = Request> {
    let keep = prop::sample::select(&["first", "last", "max:/score", "min:score", "order:/source=B,A"][..]);
    let parts = (keep, any::<bool>(), any::<bool>(), any::<bool>());
    parts.prop_map(|(keep, count, keep_empty, keep_faults)| Request { keep, count, keep_empty, keep_faults })
}

/// The expected output for each input, and the expected reports.
#[derive(Debug, Default, PartialEq)]
struct Expected {
    lines: Vec<Vec<String>>,
    pairs: Vec<Value>,
    clusters: Vec<Value>,
}

impl Request {
    fn options(&self) -> String {
        let mut options = format!(
            "--keep {} --on-error {} -q --pairs pairs --clusters clusters --id /id",
            self.keep,
            self.on_error()
        );
        options += if self.count { " --count" } else { "" };
        options + if self.keep_empty { " --keep-empty" } else { "" }
    }

    fn on_error(&self) -> &str {
        if self.keep_faults { "keep" } else { "skip" }
    }

    /// Returns the rank of a document in its group. The first document with the lowest rank is kept.
    fn rank(&self, document: &Document, place: usize) -> (bool, i64) {
        match self.keep {
            "first" => (false, 0),
            "last" => (false, -(place as i64)),
            "max:/score" => (document.score.is_none(), -i64::from(document.score.unwrap_or(0))),
            "min:score" => (document.score.is_none(), document.score.unwrap_or(0).into()),
            _ => match document.source {
                Some('B') => (false, 0),
                Some('A') => (false, 1),
                _ => (true, 0),
            },
        }
    }

    /// Returns the output and the reports as the help describes them.
    fn model(&self, inputs: &[(String, Vec<Document>)], known: &HashSet<String>) -> Expected {
        let mut groups: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        let all: Vec<(&str, usize, &Document)> = inputs
            .iter()
            .flat_map(|(name, all)| all.iter().zip(1..).map(|(document, line)| (&**name, line, document)))
            .collect();
        for (place, (_, _, document)) in all.iter().enumerate() {
            if let Some(text) = document.text.as_deref().filter(|text| !text.trim().is_empty()) {
                groups.entry(text).or_default().push(place);
            }
        }
        let best =
            |group: &[usize]| *group.iter().min_by_key(|&&place| (self.rank(all[place].2, place), place)).unwrap();
        let reported = |place: usize| json!({"file": all[place].0, "line": all[place].1, "id": place});
        let mut expected = Expected { lines: vec![Vec::new(); inputs.len()], ..Expected::default() };
        for (place, (name, _, document)) in all.iter().enumerate() {
            let input = inputs.iter().position(|(other, _)| other == name).unwrap();
            let group = document.text.as_deref().and_then(|text| groups.get(text));
            let (stays, count) = match (&document.text, group) {
                (None, _) => (self.keep_faults, 1),
                (_, None) => (self.keep_empty, 1),
                (Some(text), Some(_)) if known.contains(text) => (false, 0),
                (_, Some(group)) => (best(group) == place, group.len()),
            };
            let emptied = Document { text: Some(String::new()), ..(*document).clone() };
            let goes = !stays && group.is_some();
            let (printed, count) = if goes { (&emptied, 0) } else { (*document, count) };
            if stays || goes && self.keep_empty {
                expected.lines[input].push(if self.count {
                    printed.counted(place, count)
                } else {
                    printed.line(place)
                });
            }
            if let (true, Some(text), Some(group)) = (goes, &document.text, group) {
                let kept = if known.contains(text) { Value::Null } else { reported(best(group)) };
                let mut pair = reported(place);
                pair["kept"] = kept;
                expected.pairs.push(pair);
            }
        }
        let mut clusters: Vec<(usize, Vec<usize>)> = groups
            .iter()
            .filter(|(text, group)| group.len() > 1 && !known.contains(**text))
            .map(|(_, group)| (best(group), group.iter().copied().filter(|&place| place != best(group)).collect()))
            .collect();
        clusters.sort();
        for ((kept, others), number) in clusters.into_iter().zip(1..) {
            let members: Vec<Value> = [kept].into_iter().chain(others).map(reported).collect();
            expected.clusters.push(json!({"cluster": number, "size": members.len(), "members": members}));
        }
        expected
    }
}

/// Writes inputs, some of them compressed. The ids are the line numbers.
fn write(bench: &Bench, inputs: &[Vec<Document>]) -> Vec<(String, Vec<Document>)> {
    let mut place = 0;
    let mut write = |(number, documents): (usize, &Vec<Document>)| {
        let line = |document: &Document| {
            place += 1;
            document.line(place - 1) + "\n"
        };
        let bytes = documents.iter().map(line).collect::<String>().into_bytes();
        let name = format!("{number}{}", ["", ".gz", ".zst"][number % 3]);
        bench.write(&name, &encode(&name, &bytes));
        (name, documents.clone())
    };
    inputs.iter().enumerate().map(&mut write).collect()
}

fn lines(bytes: &[u8]) -> Vec<String> {
    text(bytes).lines().map(str::to_owned).collect()
}

/// Returns the given lines with the reports of the last run.
fn with_reports(bench: &Bench, lines: Vec<Vec<String>>) -> Expected {
    Expected { lines, pairs: json_values(&bench.read("pairs")), clusters: json_values(&bench.read("clusters")) }
}

fn names(inputs: &[(String, Vec<Document>)]) -> String {
    inputs.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(" ")
}

fn inputs() -> impl Strategy<Value = Vec<Vec<Document>>> {
    prop::collection::vec(prop::collection::vec(document(), 0..30), 1..5)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn random_documents_match_the_model(
        request in request(),
        inputs in inputs(),
        chunk_size in 1..300u32,
        few in any::<bool>(),
        piped in any::<bool>(),
    ) {
        let bench = Bench::new(&[]);
        let mut inputs = write(&bench, &inputs);
        // False positives of a tiny filter do not change the result.
        let few = if few { "-n 3 -p 0.5 --when-full warn " } else { "" };
        let names = names(&inputs);
        if piped {
            inputs[0].0 = "-".to_owned();
        }
        let mut expected = request.model(&inputs, &HashSet::new());
        expected.lines = vec![expected.lines.concat()];
        for threads in [1, 3] {
            let line = format!("{WHOLE} {few}{} --chunk-size {chunk_size} -j {threads} ", request.options());
            let output = if piped {
                let (first, rest) = names.split_once(' ').unwrap_or((&names, ""));
                run_with_stdin(bench.command(format!("{line}- {rest}").trim_end()), &bench.read(first))
            } else {
                bench.run(&(line + &names))
            };
            prop_assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
            prop_assert_eq!(&with_reports(&bench, vec![lines(&output.stdout)]), &expected);
        }
    }

    /// Each input has its own output, and a second run uses the state of the first.
    #[test]
    fn states_hold_the_groups_of_earlier_runs(request in request(), first in inputs(), second in inputs(), threads in 1..4u32) {
        let bench = Bench::new(&[]);
        let inputs = write(&bench, &first);
        let run = |inputs: &[(String, Vec<Document>)], out: &str| {
            let line = format!("{WHOLE} {} -j {threads} --chunk-size 100 --force --output-dir {out} -s state {}", request.options(), names(inputs));
            expect_success(bench.run(&line));
            with_reports(&bench, inputs.iter().map(|(name, _)| lines(&read_decoded(&bench, &format!("{out}/{name}")))).collect())
        };
        prop_assert_eq!(run(&inputs, "one"), request.model(&inputs, &HashSet::new()));
        let known = first.iter().flatten().filter_map(|document| document.text.clone()).collect();
        let inputs = write(&bench, &second);
        prop_assert_eq!(run(&inputs, "two"), request.model(&inputs, &known));
    }
}

#[test]
fn reports_name_lines_by_file() {
    let bench =
        Bench::new(&[("a", b"id,url,n\n1,x,5\n2,\"y\n\",6\n3,x,7\n"), ("b", b"id,url,n\n4,\"y\n\",1\n\n5,z,1\n")]);
    let options = "dedup --csv --header -f url --skip-blank --pairs pairs";
    assert_eq!(bench.run_ok(&format!("{options} a b")), "id,url,n\n1,x,5\n2,\"y\n\",6\n5,z,1\n");
    let pairs = "{\"file\":\"a\",\"line\":4,\"kept\":{\"file\":\"a\",\"line\":2}}\n{\"file\":\"b\",\"line\":2,\"kept\":{\"file\":\"a\",\"line\":3}}\n";
    assert_eq!(text(&bench.read("pairs")), pairs);
    // Blank lines count in line numbers, and removed lines can be written to another file.
    assert_eq!(
        bench.run_ok("dedup --csv --skip-blank -f 2 --keep last --clusters c --dupes d b b"),
        "id,url,n\n4,\"y\n\",1\n5,z,1\n"
    );
    assert_eq!(text(&bench.read("d")), "id,url,n\n4,\"y\n\",1\n5,z,1\n");
    assert_eq!(
        json_values(&bench.read("c"))[2],
        json!({"cluster": 3, "size": 2, "members": [{"file": "b", "line": 4}, {"file": "b", "line": 4}]})
    );
}

#[test]
fn lines_with_the_best_number_are_kept_and_counted() {
    let lines = r#"{"k":"a","n":1}
{"k":"b","n":3}
{"k":"a","n":2}
{"k":"c"}
{"k":"b","n":[4]}
{"k":"a","n":2.0}
"#;
    let bench = Bench::new(&[("in", lines.as_bytes()), ("in.gz", &gzip(lines.as_bytes()))]);
    let line = |digit: u8| lines.lines().nth(usize::from(digit - b'0')).unwrap().to_owned() + "\n";
    let expected = |numbers: &str| numbers.bytes().map(line).collect::<String>();
    for (options, numbers) in [
        ("--keep max:/n", "123"),
        ("--keep min:n", "013"),
        ("--keep max:/n --repeated", "12"),
        ("--keep max:/n -v", "045"),
        ("--keep order:/k=b --exact", "013"),
    ] {
        for input in ["in", "in.gz", "- "] {
            let line = format!("dedup --json-pointer /k {options} {}", input.trim());
            let output = if input == "- " {
                expect_success(bench.run_with(&line, "in"))
            } else {
                expect_success(bench.run(&line))
            };
            assert_eq!(text(&output), expected(numbers), "{line}");
        }
    }
    let counted = "      2 {\"k\":\"b\",\"n\":3}\n      3 {\"k\":\"a\",\"n\":2}\n      1 {\"k\":\"c\"}\n";
    assert_eq!(bench.run_ok("dedup --column k --keep max:n -c in"), counted);
    assert_eq!(bench.run_ok("dedup --column k --keep max:n --total --dupes d in"), "3\n");
    assert_eq!(text(&bench.read("d")), expected("045"));
    let output = bench.run("dedup --column k --keep max:n -n 2 -p 0.5 --when-full warn --stats=json in");
    let figures = stats(&output);
    for (name, expected) in [("lines", 6.0), ("unique", 3.0), ("repeated", 2.0), ("printed", 3.0), ("dropped", 3.0)] {
        assert_eq!(number(&figures, name), expected, "{name}");
    }
    // The output may replace the input, after both passes.
    bench.run_ok("dedup --column k --keep max:n in -o in");
    assert_eq!(text(&bench.read("in")), expected("123"));
}

/// Each two consecutive values are compared, in both orders of their lines.
#[test]
fn greatest_and_least_values_are_kept() {
    let numbers =
        ["-1e400", "-2.5", "-1", "false", "0.5", "true", "9007199254740992", "9007199254740993", "1e19", "1e400"];
    let long = "long ".repeat(40);
    let strings = [
        "",
        "-1",
        "2025-12-31",
        "2026-11-01",
        "2026-11-01T10:00:00+01:00",
        "2026-11-01T09:00:00.5Z",
        "2026-11-01T10:00:00Z",
        &long,
        &format!("{long}!"),
        &format!("{long}\"\\"),
        "é",
    ];
    let strings = strings.map(|text| Value::from(text).to_string());
    let [numbers, strings] = [&numbers.map(str::to_owned)[..], &strings];
    let mut input = String::new();
    let mut expected = [String::new(), String::new()];
    let mut group = |values: [&String; 2], stay: [usize; 2]| {
        let key = expected[0].lines().count();
        let lines = values.map(|value| format!("{{\"key\":{key},\"at\":{{\"v\":{value}}}}}\n"));
        input += &lines.concat();
        expected.iter_mut().zip(stay).for_each(|(expected, stay)| *expected += &lines[stay]);
    };
    for pair in [numbers, strings].iter().flat_map(|values| values.windows(2)) {
        group([&pair[0], &pair[1]], [1, 0]);
        group([&pair[1], &pair[0]], [0, 1]);
    }
    // Values of other kinds are the worst, and the first of equal values is kept.
    for other in ["null", "[9]", "{\"a\":9}"].map(str::to_owned) {
        group([&other, &numbers[0]], [1, 1]);
        group([&strings[0], &other], [0, 0]);
        group([&other, &"null".to_owned()], [0, 0]);
    }
    group([&"1.0".to_owned(), &"true".to_owned()], [0, 0]);
    group([&"\"\\u0061\"".to_owned(), &"\"a\"".to_owned()], [0, 0]);
    let bench = Bench::new(&[("in", input.as_bytes())]);
    for (keep, expected) in ["max:/at/v", "min:at.v"].iter().zip(&expected) {
        for threads in [1, 3] {
            let line = format!("dedup --column key --keep {keep} -j {threads} --chunk-size 200 in");
            assert_eq!(bench.run_ok(&line), *expected, "{keep}");
        }
    }
    // A number is better than a string.
    bench.write(
        "both",
        b"{\"k\":1,\"v\":\"z\"}\n{\"k\":1,\"v\":0}\n{\"k\":1}\n{\"k\":2,\"v\":\"a\"}\n{\"k\":2,\"v\":\"b\"}\n",
    );
    for (keep, kept) in [("max", "b"), ("min", "a")] {
        let output = bench.run(&format!("dedup --column k --keep {keep}:/v both"));
        assert_eq!(text(&output.stdout), format!("{{\"k\":1,\"v\":0}}\n{{\"k\":2,\"v\":\"{kept}\"}}\n").as_str());
        assert_contains_all(&text(&output.stderr), &["numbers and strings at \"/v\": 1;"]);
    }
}

/// Times are compared as instants. A warning reports other strings whose byte order misleads.
#[test]
fn misleading_strings_are_reported() {
    for (less, greater, warns) in [
        ("2026-11-01T10:00:00+02:00", "2026-11-01T09:00:00Z", false),
        ("2026-11-01T10:00:00Z", "2026-11-01T10:00:00.5Z", false),
        ("2026-11-01 23:30:00-01:00", "2026-11-02T00:30:00.001", false),
        ("2026-11-01", "2026-11-01T00:00:00Z", false),
        ("b", "c", false),
        ("10", "11", false),
        ("9", "10", true),
        ("12/31/2025", "01/01/2026", true),
        ("31.12.2025", "01.01.2026", true),
        ("Sun, 29 Nov 2026 10:00:00 GMT", "Fri, 04 Dec 2026 10:00:00 GMT", true),
    ] {
        let lines = [greater, less].map(|value| format!("{{\"k\":1,\"text\":\"a\",\"v\":\"{value}\"}}\n"));
        let bench =
            Bench::new(&[("in", lines.concat().as_bytes()), ("more", b"{\"k\":1,\"text\":\"a\",\"v\":\"\"}\n")]);
        for command in ["dedup --column k", WHOLE] {
            for (keep, most) in [("max", true), ("min", false)] {
                let output = bench.run(&format!("{command} --keep {keep}:/v in"));
                let (kept, stderr) = (text(&output.stdout), text(&output.stderr));
                // The byte order selects the other string.
                let [first, second] = if most != warns { [0, 1] } else { [1, 0] };
                assert_eq!(kept, lines[first], "{keep} {less} {greater}");
                let values = [greater, less];
                let order = "\"/v\" are compared by their bytes, which is not the order";
                let example = format!("{:?} stays before {:?};", values[first], values[second]);
                assert_eq!(stderr.lines().count(), usize::from(warns), "{stderr}");
                if warns {
                    assert_contains_all(&stderr, &["warning: ", order, &example]);
                }
                assert_eq!(bench.run_ok(&format!("{command} -q --keep {keep}:/v in")), kept);
            }
        }
        // Documents of an earlier run are removed whatever their values.
        bench.run_ok(&format!("{WHOLE} --state s more"));
        assert_eq!(bench.run_ok(&format!("{WHOLE} --state s --keep max:/v in")), "");
    }
}

#[test]
fn groups_without_a_value_are_reported() {
    let lines = b"{\"text\":\"a\",\"d\":[1]}\n{\"text\":\"a\",\"d\":null}\n{\"text\":\"b\",\"s\":\"x\"}\n{\"text\":\"b\"}\n{\"text\":\"c\",\"e\":1}\n";
    let bench = Bench::new(&[("in", lines), ("apart", b"{\"text\":\"a\"}\n{\"text\":\"b\"}\n")]);
    for (keep, what) in
        [("max:/d", "number or string"), ("min:/e", "number or string"), ("order:/s=y,z", "string of the list")]
    {
        let pointer = &keep[keep.find('/').unwrap()..][..2];
        let parts = [
            "warning: ",
            &format!("without a {what} at \"{pointer}\""),
            "all 2;",
            "the first line of each is kept",
            "--keep",
        ];
        for command in [WHOLE, "dedup --json-pointer /text", "corpus --near 0.8"] {
            let output = bench.run(&format!("{command} --keep {keep} in"));
            assert_eq!(output.status.code(), Some(0));
            assert_eq!(lines_of(&output.stdout, "text"), ["a", "b", "c"]);
            assert_contains_all(&text(&output.stderr), &parts);
            expect_success(bench.run(&format!("{command} -q --keep {keep} in")));
            // No group has several documents.
            expect_success(bench.run(&format!("{command} --keep {keep} apart")));
        }
    }
    // One value in any group is enough.
    expect_success(bench.run(&format!("{WHOLE} --keep order:/s=y,x in")));
    // Groups of an earlier run need no value.
    let state = format!("{WHOLE} --exact -s state -o");
    expect_success(bench.run(&format!("{state} out in")));
    expect_success(bench.run(&format!("{state} more --keep max:/d in")));
}

/// Returns a member of each line.
fn lines_of(output: &[u8], name: &str) -> Vec<String> {
    json_values(output).iter().map(|line| line[name].as_str().unwrap().to_owned()).collect()
}

#[test]
fn statistics_count_groups() {
    let bench =
        Bench::new(&[("in", b"{\"text\":\"a\"}\n{\"text\":\" \"}\nnone\n{\"text\":\"a\"}\n{\"text\":\"b\"}\n")]);
    let figures = stats(&bench.run(&format!("{WHOLE} --exact --on-error skip --stats=json in")));
    let expected = [("documents", 5.0), ("kept", 2.0), ("repeated", 1.0), ("dropped", 2.0), ("without_text", 1.0)];
    expected.iter().for_each(|(name, expected)| assert_eq!(number(&figures, name), *expected, "{name}"));
    assert_contains_all(&bench.run_err(&format!("{WHOLE} --exact in")), &["no text in \"in\", line 3"]);
    // The count is a member, so the document must be an object.
    bench.write("list", b"[\"a\"]\n");
    assert_contains_all(
        &bench.run_err(&format!("{WHOLE} --count --json-pointer /0 list")),
        &["\"list\", line 1", "not a JSON object"],
    );
    assert_eq!(bench.run_ok(&format!("{WHOLE} --exact --json-pointer /0 list")), "[\"a\"]\n");
}

/// Returns lines of many groups. The last line of each group is the best.
fn many(count: usize) -> Vec<u8> {
    let line = |i: usize| format!("{{\"text\":\"text number {}\",\"score\":{i}}}\n", i % (count / 2 + 7));
    (0..count).map(line).collect::<String>().into_bytes()
}

#[cfg(unix)]
#[test]
fn an_input_that_changes_is_an_error() {
    for change in ["{\"text\":\"a\"}\n", "{\"text\":\"a\"}\n{\"text\":\"c\"}\n"] {
        let bench = Bench::new(&[("a", b"{\"text\":\"a\"}\n{\"text\":\"b\"}\n")]);
        let pipe = bench.fifo("pipe");
        let child = bench.command(&format!("{WHOLE} --exact -j 1 a pipe")).spawn().unwrap();
        let mut writer = File::options().write(true).open(pipe).unwrap();
        // The bytes exceed the capacity of the pipe, so the write returns after the first file is read.
        writer.write_all(&b"{\"text\":\"p\"}\n".repeat(1 << 15)).unwrap();
        bench.write("a", change.as_bytes());
        drop(writer);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert_contains_all(&text(&output.stderr), &["an input changed"]);
    }
}

#[test]
fn broken_inputs_are_skipped_in_both_passes() {
    let whole = gzip(&b"{\"text\":\"a\"}\n".repeat(40_000));
    let bench = Bench::new(&[("a.gz", &whole[..whole.len() - 20]), ("b", b"{\"text\":\"a\"}\n{\"text\":\"b\"}\n")]);
    assert_contains_all(&bench.run_err(&format!("{WHOLE} --exact a.gz b")), &["cannot read \"a.gz\""]);
    let output = bench.run(&format!("{WHOLE} --keep last --pairs p --on-error skip a.gz b missing"));
    assert_eq!(
        (output.status.code(), text(&output.stdout)),
        (Some(1), "{\"text\":\"a\"}\n{\"text\":\"b\"}\n".to_owned())
    );
    assert_eq!(text(&output.stderr).matches("it is skipped").count(), 2);
    assert_eq!(json_values(&bench.read("p"))[7], json!({"file": "a.gz", "line": 8, "kept": {"file": "b", "line": 1}}));
}

#[test]
fn options_without_groups_are_refused() {
    let bench = Bench::new(&[("a", b"{\"text\":\"a\"}\n")]);
    for option in ["--pairs p", "--clusters p", "--keep last", "--keep max:/n", "--count", "--exact"] {
        for mode in ["corpus", "corpus --by document", "corpus --ngram 0", "corpus --ngram 0 --normalize trim,lower"] {
            assert_contains_all(
                &bench.run_err(&format!("{mode} {option} a")),
                &["whole documents", "--by document --ngram 0"],
            );
        }
        for other in ["--annotate", "--drop-document", "--in-place", "--frozen -s s"] {
            let other_name = other.split(' ').next().unwrap();
            assert_contains_all(
                &bench.run_err(&format!("{WHOLE} {option} {other} a")),
                &[option.split(' ').next().unwrap(), other_name],
            );
        }
    }
    for (line, parts) in [
        ("dedup --keep best a", &["best", "max:POINTER"][..]),
        ("dedup --keep order:/a a", &["order:/source=books,web"]),
        ("dedup --keep max: a", &["name a value"]),
        ("dedup --keep max:/~ a", &["~0"]),
        ("dedup --id /id a", &["--pairs"]),
        ("dedup --pairs p --redis redis://localhost --name n a", &["--pairs", "--redis"]),
        ("dedup --pairs p --in-place a", &["--pairs", "--in-place"]),
        ("dedup --keep min:/n --repeated -s s a", &["--repeated", "--state"]),
        ("dedup --keep max:/n -f 2 a", &["'--keep max'", "'--field'", "give --header"]),
        ("dedup --pairs p --id /id --csv a", &["'--id'", "'--csv'", "give --header"]),
        ("dedup --pairs a a", &["cannot write to \"a\""]),
        ("dedup --pairs p --clusters p a", &["cannot write to \"p\""]),
        ("dedup --pairs p -o p a", &["cannot write to \"p\""]),
        ("dedup --pairs p -s p a", &["cannot write to"]),
    ] {
        assert_contains_all(&bench.run_err(line), parts);
    }
    // An earlier report is not overwritten.
    bench.run_ok("dedup --pairs p -s s a -o b");
    bench.write("p", b"{}\n");
    assert_contains_all(&bench.run_err("dedup --pairs p -s s a -o c"), &["refusing to overwrite \"p\""]);
    assert_contains_all(&bench.run_err("dedup --pairs p -s s a --output-dir c"), &["refusing to overwrite \"p\""]);
    bench.run_ok("dedup --pairs p -s s a --output-dir c --force");
    assert_eq!(text(&bench.read("p")), "{\"file\":\"a\",\"line\":1,\"kept\":null}\n");
    let mut nowhere = bench.command(&format!("{WHOLE} -n 10 --exact a"));
    nowhere.env(TEMP_VARIABLE, "/nowhere");
    assert_contains_all(&crate::common::expect_refusal(nowhere.output().unwrap()), &["temporary file", TEMP_VARIABLE]);
}

/// The names of reports determine their compression, and standard output may be a report.
#[test]
fn reports_are_written_as_outputs() {
    let bench = Bench::new(&[("in", &many(5000))]);
    expect_success(bench.run(&format!("{WHOLE} --pairs p --clusters c --id /score in -o out")));
    expect_success(bench.run(&format!("{WHOLE} --pairs p.gz --clusters c.zst --id /score in -o out")));
    assert_eq!(read_decoded(&bench, "p.gz"), bench.read("p"));
    assert_eq!(read_decoded(&bench, "c.zst"), bench.read("c"));
    assert_eq!(bench.run_ok(&format!("{WHOLE} --pairs - --id /score in -o out")), text(&bench.read("p")));
    let told = text(&bench.run(&format!("{WHOLE} --pairs p2 --id /nope in -o out")).stderr);
    assert_contains_all(&told, &["no line has a value at \"/nope\""]);
}

/// --keep-empty keeps each document, with an empty text if it is a duplicate.
#[test]
fn emptied_duplicates_are_kept_with_keep_empty() {
    let line = |text: &str, id: u32| format!("{{\"text\":{},\"id\":{id}}}\n", Value::from(text));
    let counted = |text: &str, id: u32, count: u32| line(text, id).replace('}', &format!(",\"count\":{count}}}"));
    let texts = [" a b \n", "", "c", " a b \n", " \n", "", "c"];
    let input: String = texts.iter().zip(0..).map(|(text, id)| line(text, id)).collect();
    let bench = Bench::new(&[("in", input.as_bytes())]);
    let with = |kept: [&str; 7]| -> String { kept.iter().zip(0..).map(|(text, id)| line(text, id)).collect() };
    let first = with([" a b \n", "", "c", "", " \n", "", ""]);
    let last = with(["", "", "", " a b \n", " \n", "", "c"]);
    let counts: String = [(" a b \n", 2), ("", 1), ("c", 2), ("", 0), (" \n", 1), ("", 1), ("", 0)]
        .iter()
        .zip(0..)
        .map(|((text, count), id)| counted(text, id, *count))
        .collect();
    for how in ["--by document --ngram 0", "--near 0.8", "--near 0.8 --normalize text"] {
        for (mode, expected) in [
            ("", &first),
            ("--exact ", &first),
            ("--pairs p ", &first),
            ("--clusters q ", &first),
            ("--keep min:/id ", &first),
            ("--keep max:/id ", &last),
            ("--keep last ", &last),
            ("--count ", &counts),
        ] {
            for size in [20, 100_000] {
                let line = format!("corpus {how} {mode}--keep-empty --chunk-size {size} in");
                assert_eq!(bench.run_ok(&line), *expected, "{line}");
            }
        }
        assert_eq!(text(&bench.read("p")).lines().count(), 2);
    }
}

#[test]
fn texts_normalized_to_nothing_are_kept() {
    let lines = ["!?", "?", "a", "!?", "", " \n"].map(|text| format!("{{\"text\":{}}}\n", Value::from(text)));
    let bench = Bench::new(&[("in", lines.concat().as_bytes())]);
    for how in ["--by document --ngram 0", "--near 0.8"] {
        for (empty, kept) in [("", &lines[..4]), ("--keep-empty ", &lines[..])] {
            let line = format!("corpus {how} --normalize punctuation {empty}in");
            assert_eq!(bench.run_ok(&line), kept.concat());
            assert_eq!(bench.run_ok(&format!("{line} --exact --pairs p")), kept.concat());
            assert_eq!(bench.read("p"), b"");
        }
    }
}

#[test]
fn a_count_replaces_earlier_counts() {
    let bench = Bench::new(&[("in", b"{\"\\u0063oun\\u0074\":7,\"text\":\"a\",\"n\":{\"count\":1}}\n[\"a\"]\n")]);
    let counted = bench.run(&format!("{WHOLE} --count --on-error skip -q in"));
    assert_eq!(text(&counted.stdout), "{\"text\":\"a\",\"n\":{\"count\":1},\"count\":1}\n");
    assert_contains_all(&expect_failure(&bench.run(&format!("{WHOLE} --count --json-pointer /0 in"))), &["line 1"]);
    bench.write("array", b"[\"a\"]\n");
    assert_contains_all(
        &bench.run_err(&format!("{WHOLE} --count --json-pointer /0 array")),
        &["not a JSON object", "--count"],
    );
    // A byte order mark precedes the object.
    bench.write("marked", b"\xEF\xBB\xBF{\"text\":\"a\",\"count\":7}\n{\"text\":\"a\"}\n");
    let counted = bench.run_ok(&format!("{WHOLE} --count marked"));
    assert_eq!(counted.trim_start_matches('\u{feff}'), "{\"text\":\"a\",\"count\":2}\n");
    for at in ["--json-pointer /count", "--json-pointer /count/0", "--column count"] {
        assert_contains_all(
            &bench.run_err(&format!("{WHOLE} --count {at} in")),
            &["\"count\"", "which contains the text"],
        );
    }
}

#[test]
fn outputs_are_unchanged_without_temporary_files() {
    let bench = Bench::new(&[("in", b"{\"text\":\"a\"}\n"), ("o", b"old\n"), ("p", b"old\n")]);
    for line in ["dedup --pairs p -o o in", "corpus --near 0.8 --pairs p -o o in"] {
        let ended = bench.command(line).env(TEMP_VARIABLE, bench.path("nowhere")).output().unwrap();
        assert_contains_all(&expect_failure(&ended), &[TEMP_VARIABLE]);
        assert_eq!([bench.read("o"), bench.read("p")], [b"old\n", b"old\n"]);
    }
}

#[test]
fn reports_do_not_replace_files_of_the_run() {
    let bench = Bench::new(&[("a", b"x\ny\nx\n"), ("list", b"a\0")]);
    for (options, name) in [
        ("--output-dir out --manifest m a", "m"),
        ("--output-dir out --state s a", "s"),
        ("--output-dir out --files-from list", "list"),
        ("-o o --state s a", "s"),
    ] {
        for report in ["--pairs", "--clusters"] {
            assert_contains_all(&bench.run_err(&format!("dedup {report} {name} {options}")), &[&format!("{name:?}")]);
            assert!(!bench.path("m").exists() && !bench.path("s").exists());
        }
    }
    assert_eq!(bench.read("list"), b"a\0");
    // With these options, the output does not contain each line once, so it must not replace its input.
    for which in ["--repeated", "--unique"] {
        assert_contains_all(&bench.run_err(&format!("dedup {which} --pairs p a -o a")), &["\"a\""]);
        assert_eq!(bench.read("a"), b"x\ny\nx\n");
    }
    bench.run_ok("dedup --pairs p a -o a");
    assert_eq!(bench.read("a"), b"x\ny\n");
}

#[cfg(feature = "parquet")]
mod tables {
    use super::*;
    use arrow_array::builder::{Int64Builder, MapBuilder, StringBuilder};
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Int32Type, Int64Type};
    use arrow_array::*;
    use arrow_buffer::OffsetBuffer;
    use arrow_schema::{DataType, Field};
    use bytes::Bytes;
    use parquet::arrow::ArrowWriter;
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
    use parquet::file::properties::WriterProperties;
    use std::fs;
    use std::sync::Arc;

    fn table(documents: &[Document], first: usize) -> Vec<u8> {
        let texts = StringArray::from_iter(documents.iter().map(|document| document.text.as_deref()));
        let scores = Float64Array::from_iter(
            documents.iter().map(|document| document.score.map(|score| format!("{score}.5").parse().unwrap())),
        );
        let sources = StringArray::from_iter(documents.iter().map(|document| document.source.map(String::from)));
        let ids = Int64Array::from_iter_values((first..).take(documents.len()).map(|id| id as i64));
        let columns = [
            ("score", Arc::new(scores) as ArrayRef),
            ("text", Arc::new(texts)),
            ("source", Arc::new(sources)),
            ("id", Arc::new(ids)),
        ];
        let batch =
            RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, name != "id")))
                .unwrap();
        let properties = WriterProperties::builder().set_max_row_group_row_count(Some(7)).build();
        let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        writer.into_inner().unwrap()
    }

    /// Returns the ids of the rows, and the counts if there are any.
    fn read(bytes: Vec<u8>) -> Vec<(i64, Option<i64>)> {
        let reader = ParquetRecordBatchReaderBuilder::try_new(Bytes::from(bytes)).unwrap().build().unwrap();
        let batches = reader.map(Result::unwrap).flat_map(|batch| {
            let numbers = |name: &str| {
                batch.column_by_name(name).map(|column| column.as_primitive::<Int64Type>().values().to_vec())
            };
            let (ids, counts) = (numbers("id").unwrap(), numbers("count"));
            let row = move |(row, id): (usize, i64)| (id, counts.as_ref().map(|counts| counts[row]));
            ids.into_iter().enumerate().map(row).collect::<Vec<_>>()
        });
        batches.collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

        /// Tables and lines of JSON are mixed.
        #[test]
        fn rows_match_the_model(request in request(), inputs in inputs(), threads in 1..4u32) {
            let bench = Bench::new(&[]);
            let mut inputs = write(&bench, &inputs);
            let mut first = 0;
            for (number, (name, documents)) in inputs.iter_mut().enumerate() {
                documents.iter_mut().for_each(|document| document.count = false);
                if number != 1 {
                    *name = format!("{number}.parquet");
                    bench.write(name, &table(documents, first));
                }
                first += documents.len();
            }
            // The file of JSON lines is written again, without `count` members.
            if let Some((name, documents)) = inputs.get(1) {
                let first = inputs[0].1.len();
                let lines: String = documents.iter().enumerate().map(|(i, document)| document.line(first + i) + "\n").collect();
                bench.write(name, &gzip(lines.as_bytes()));
            }
            let mut expected = request.model(&inputs, &HashSet::new());
            let line = format!("{WHOLE} {} -j {threads} --output-dir out {}", request.options(), names(&inputs));
            expect_success(bench.run(&line));
            let id = |line: &String| {
                let Ok(line) = serde_json::from_str::<Value>(line) else {
                    return (line.rsplit(' ').next().unwrap().parse().unwrap(), request.count.then_some(1));
                };
                (line["id"].as_i64().unwrap(), line["count"].as_i64())
            };
            for ((name, _), lines) in inputs.iter().zip(&expected.lines) {
                let expected: Vec<(i64, Option<i64>)> = lines.iter().map(id).collect();
                if name.ends_with("parquet") {
                    prop_assert_eq!(read(bench.read(&format!("out/{name}"))), expected);
                } else {
                    prop_assert_eq!(&super::lines(&read_decoded(&bench, &format!("out/{name}"))), lines);
                }
            }
            expected.lines.clear();
            prop_assert_eq!(with_reports(&bench, Vec::new()), expected);
        }
    }

    #[test]
    fn numbers_not_in_json_are_reported_as_strings() {
        let numbers = Float64Array::from(vec![f64::NAN, f64::NEG_INFINITY, 1e300, f64::INFINITY]);
        let texts = StringArray::from(vec!["a"; 4]);
        let columns = [("text", Arc::new(texts) as ArrayRef), ("score", Arc::new(numbers))];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        let bench = Bench::new(&[("a.parquet", &writer.into_inner().unwrap())]);
        for (keep, kept, ids) in [
            ("first", "NaN", [json!("-Infinity"), json!(1e300), json!("Infinity")]),
            ("max:score", "Infinity", [json!("NaN"), json!("-Infinity"), json!(1e300)]),
            ("min:score", "-Infinity", [json!("NaN"), json!(1e300), json!("Infinity")]),
        ] {
            bench.run_ok(&format!("{WHOLE} --keep {keep} --pairs p --id score a.parquet -o out.parquet"));
            let pairs = json_values(&bench.read("p"));
            assert!(pairs.iter().all(|pair| pair["kept"]["id"] == kept));
            assert!(pairs.iter().map(|pair| &pair["id"]).eq(&ids));
        }
    }

    /// Returns a table with these columns and a column of row numbers.
    fn of_columns(columns: &[(&str, ArrayRef)]) -> Vec<u8> {
        let rows = columns[0].1.len();
        let text = Arc::new(StringArray::from(vec!["a"; rows])) as ArrayRef;
        let ids = Arc::new(Int64Array::from_iter_values(0..rows as i64)) as ArrayRef;
        let all = columns.iter().cloned().chain([("text", text), ("id", ids)]);
        let batch = RecordBatch::try_from_iter_with_nullable(all.map(|(name, column)| (name, column, true))).unwrap();
        let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.into_inner().unwrap()
    }

    /// Returns the number of the row of these tables that is kept.
    fn kept(bench: &Bench, keep: &str, tables: &str) -> i64 {
        bench.run_ok(&format!("dedup --column text --keep {keep} {tables} -o out.parquet"));
        let rows = read(bench.read("out.parquet"));
        assert_eq!(rows.len(), 1);
        rows[0].0
    }

    #[test]
    fn columns_of_each_type_are_compared() {
        fn three<T: Copy>([low, middle, high]: [T; 3]) -> [Option<T>; 4] {
            [None, Some(middle), Some(high), Some(low)]
        }
        macro_rules! array {
            ($kind:ty, $values:expr) => {
                Arc::new(<$kind>::from_iter(three($values))) as ArrayRef
            };
            ($kind:ty, $values:expr, zone) => {
                Arc::new(<$kind>::from_iter(three($values)).with_timezone("Asia/Tokyo")) as ArrayRef
            };
        }
        let day = 86_400_000;
        // As texts, times before 1970, after the year 9999 and with fractions of a second would sort differently.
        let milliseconds = [-1, 1_500, 253_402_300_800_000];
        let decimals = three([-5_i128, 12_345_678_901_234_567_890_123, 12_345_678_901_234_567_890_124]);
        let texts = ["2026-11-01T09:00:00Z", "2026-11-01T10:00:00Z", "2026-11-02"];
        let bytes = [&b"\0"[..], &b"\xfe\0"[..], &b"\xff"[..]];
        let columns = [
            ("date32", array!(Date32Array, [-1, 20_000, 3_000_000])),
            ("date64", array!(Date64Array, [-day, 20_000 * day, 3_000_000 * day])),
            ("second", array!(TimestampSecondArray, [-1, 0, 253_402_300_800])),
            ("milli", array!(TimestampMillisecondArray, milliseconds)),
            ("micro", array!(TimestampMicrosecondArray, milliseconds)),
            ("nano", array!(TimestampNanosecondArray, milliseconds)),
            ("milli_zone", array!(TimestampMillisecondArray, milliseconds, zone)),
            ("micro_zone", array!(TimestampMicrosecondArray, milliseconds, zone)),
            ("nano_zone", array!(TimestampNanosecondArray, milliseconds, zone)),
            ("time32", array!(Time32MillisecondArray, [0, 999, 1_000])),
            ("time64", array!(Time64NanosecondArray, [0, 999, 1_000])),
            ("text", array!(StringArray, texts)),
            ("large", array!(LargeStringArray, texts)),
            ("dictionary", Arc::new(three(texts).into_iter().collect::<DictionaryArray<Int32Type>>()) as ArrayRef),
            ("binary", array!(BinaryArray, bytes)),
            ("boolean", Arc::new(BooleanArray::from(vec![None, Some(false), Some(true), Some(false)]))),
            ("int8", array!(Int8Array, [-128, -1, 127])),
            ("int64", array!(Int64Array, [i64::MIN, i64::MAX - 1, i64::MAX])),
            ("uint64", array!(UInt64Array, [0, u64::MAX - 1, u64::MAX])),
            ("float32", array!(Float32Array, [f32::NEG_INFINITY, 0.1, 0.25])),
            ("float64", array!(Float64Array, [-1e-300, 0.1, f64::INFINITY])),
            (
                "decimal",
                Arc::new(Decimal128Array::from_iter(decimals).with_precision_and_scale(38, 10).unwrap()) as ArrayRef,
            ),
        ];
        let columns: Vec<_> =
            columns.into_iter().map(|(name, column)| (if name == "text" { "string" } else { name }, column)).collect();
        let bench = Bench::new(&[("a.parquet", &of_columns(&columns))]);
        for (name, _) in &columns {
            // Two rows have the value `false`, and the first is kept.
            let expected = if *name == "boolean" { 1 } else { 3 };
            assert_eq!(kept(&bench, &format!("max:{name}"), "a.parquet"), 2, "{name}");
            assert_eq!(kept(&bench, &format!("min:{name}"), "a.parquet"), expected, "{name}");
        }
        // Values may be members of structs.
        let inner = Arc::new(Date32Array::from(vec![1, 3, 2])) as ArrayRef;
        let outer = StructArray::from(vec![(Arc::new(Field::new("day", DataType::Date32, true)), inner)]);
        bench.write("b.parquet", &of_columns(&[("at", Arc::new(outer))]));
        assert_eq!(kept(&bench, "max:/at/day", "b.parquet"), 1);
        assert_eq!(kept(&bench, "order:at.day=1970-01-03,1970-01-02", "b.parquet"), 2);
    }

    #[test]
    fn times_of_several_units_are_compared() {
        let bench = Bench::new(&[]);
        for (name, column) in [
            ("date", Arc::new(Date32Array::from(vec![1])) as ArrayRef),
            ("second", Arc::new(TimestampSecondArray::from(vec![86_401]))),
            ("milli", Arc::new(TimestampMillisecondArray::from(vec![86_401_500]))),
            ("nano", Arc::new(TimestampNanosecondArray::from(vec![86_401_500_000_001]))),
        ] {
            bench.write(&format!("{name}.parquet"), &of_columns(&[("at", column)]));
        }
        let names = ["date", "second", "milli", "nano"];
        for pair in names.windows(2) {
            let run = |keep: &str, tables: [&str; 2]| {
                let [first, second] = tables.map(|name| format!("{name}.parquet"));
                let pairs = "--pairs p --output-dir out --force";
                bench.run_ok(&format!("dedup --column text --keep {keep}:at {pairs} {first} {second}"));
                json_values(&bench.read("p"))[0]["kept"]["file"].as_str().unwrap().to_owned()
            };
            for tables in [[pair[0], pair[1]], [pair[1], pair[0]]] {
                assert_eq!(run("max", tables), format!("{}.parquet", pair[1]));
                assert_eq!(run("min", tables), format!("{}.parquet", pair[0]));
            }
        }
    }

    #[test]
    fn folder_inputs_are_ranked_by_values() {
        let bench = Bench::new(&[]);
        let mut rows = 0;
        let mut write = |name: &str| {
            rows += 1;
            let path = format!("{name}/a.parquet");
            fs::create_dir_all(bench.path(name)).unwrap();
            bench.write(
                &path,
                &table(&[Document { text: Some("a".into()), score: None, source: None, count: false }], rows - 1),
            );
            path
        };
        for (names, most, least) in [
            (["day=2026-11-02", "day=2026-12-01", "day=2026-11-11"], 1, 0),
            (["day=9", "day=10", "day=-1"], 1, 2),
            (["day=1.5", "day=9.25", "day=10.125"], 2, 0),
            (["day=9007199254740993", "day=9007199254740992", "day=9007199254740994"], 2, 1),
            (["day=__HIVE_DEFAULT_PARTITION__", "day=b", "day=a%2Fa"], 1, 2),
        ] {
            let paths = names.map(&mut write);
            let first = read(bench.read(&paths[0]))[0].0;
            assert_eq!(kept(&bench, "max:day", &paths.join(" ")) - first, most, "{names:?}");
            assert_eq!(kept(&bench, "min:day", &paths.join(" ")) - first, least, "{names:?}");
            let order = format!("order:day=x,{}", names[2].strip_prefix("day=").unwrap().replace("%2F", "/"));
            assert_eq!(kept(&bench, &order, &paths.join(" ")) - first, 2, "{names:?}");
        }
    }

    #[test]
    fn columns_without_an_order_are_refused_by_schema() {
        let numbers = Arc::new(Int64Array::from(vec![1, 2])) as ArrayRef;
        let field = Arc::new(Field::new("n", DataType::Int64, true));
        let offsets = OffsetBuffer::from_lengths([1, 1]);
        let list = ListArray::new(field.clone(), offsets, numbers.clone(), None);
        let group = StructArray::from(vec![(field, numbers.clone())]);
        let mut map = MapBuilder::new(None, StringBuilder::new(), Int64Builder::new());
        (0..2).for_each(|_| map.append(true).unwrap());
        let columns = [
            ("list", Arc::new(list) as ArrayRef),
            ("group", Arc::new(group)),
            ("map", Arc::new(map.finish())),
            ("n", numbers),
        ];
        let bench = Bench::new(&[("a.parquet", &of_columns(&columns)), ("out.parquet", b"as it was")]);
        for (keep, parts) in [
            ("max:list", ["List(", "have no order"]),
            ("min:/list", ["List(", "have no order"]),
            ("max:group", ["Struct(", "have no order"]),
            ("max:map", ["Map(", "have no order"]),
            ("order:n=1,2", ["Int64", "are no texts"]),
            ("order:list=1,2", ["List(", "are no texts"]),
            ("max:/group/m", ["no column \"group.m\"", "name one"]),
        ] {
            let message = bench.run_err(&format!("dedup --column text --keep {keep} a.parquet -o out.parquet"));
            assert_contains_all(&message, &["\"a.parquet\"", parts[0], parts[1]]);
            assert_eq!(bench.read("out.parquet"), b"as it was");
        }
        assert_eq!(kept(&bench, "max:group.n", "a.parquet"), 1);
    }

    #[test]
    fn best_rows_are_kept_in_one_output() {
        let document = |text: &str, score| Document { text: Some(text.to_owned()), score, source: None, count: false };
        let rows = [document("a", Some(1)), document("b", None), document("a", Some(2))];
        let bench = Bench::new(&[("a.parquet", &table(&rows, 0)), ("b.parquet", &table(&rows, 3))]);
        bench.run_ok("dedup --column text --keep max:score -c --pairs p --id id a.parquet b.parquet -o out.parquet");
        assert_eq!(read(bench.read("out.parquet")), [(1, Some(2)), (2, Some(4))]);
        let pair = json!({"file": "b.parquet", "line": 2, "id": 4, "kept": {"file": "a.parquet", "line": 2, "id": 1}});
        assert_eq!(json_values(&bench.read("p"))[2], pair);
        assert_contains_all(&bench.run_err("dedup --column text --keep max:none a.parquet"), &["no column \"none\""]);
        // Keys may be whole rows.
        bench.run_ok("dedup --pairs p --id /id a.parquet a.parquet -o all.parquet");
        assert_eq!((read(bench.read("all.parquet")).len(), json_values(&bench.read("p")).len()), (3, 3));
    }
}
