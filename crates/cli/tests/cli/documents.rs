//! `corpus`: paragraphs and documents, and the bytes that are kept.

#[cfg(unix)]
use crate::common::random::Random;
use crate::common::{Bench, assert_contains_all, expect_failure, expect_success, json_values, number, stats, text};
use crate::corpus::{gzip, read_decoded};
use serde_json::Value;
use std::collections::HashSet;

const LONG: &str = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen";

/// Returns a sentence of `words` words, a different one for each number.
fn sentence(number: usize, words: usize) -> String {
    let word = |i: usize| format!("w{}", (number * 7919 + i * 104_729) % 65_521);
    (0..words).map(word).collect::<Vec<_>>().join(" ")
}

pub fn line(id: usize, text: &str) -> String {
    format!("{{\"id\":{id},\"text\":{}}}\n", Value::from(text))
}

pub fn texts(lines: &[u8]) -> Vec<String> {
    json_values(lines).iter().map(|document| document["text"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn lines_change_only_where_paragraphs_are_removed() {
    let first = format!(r#"{{"z":1.50,"text":"{LONG}\nshort\n\u00e9\ud83d\ude00 \/","n":12345678901234567890123}}"#);
    let second = format!(r#" {{ "text" : "A\u000a{LONG}\n\"B\"\r" , "a" : 1e5 }} "#);
    let third = format!(r#"{{"text":"{LONG}"}}"#);
    let bench = Bench::new(&[("in", format!("{first}\n{second}\n{third}").as_bytes())]);
    // The escape of a newline is removed as it is written.
    let kept = format!("{first}\n {{ \"text\" : \"A\\n\\\"B\\\"\\r\" , \"a\" : 1e5 }} \n");
    assert_eq!(bench.run_ok("corpus in"), kept);
    assert_eq!(bench.run_ok("corpus --ngram 0 in"), kept);
    // The first document contains both grams of the last document.
    assert_eq!(bench.run_ok("corpus --by document in"), format!("{first}\n{second}\n"));
    assert_eq!(bench.run_ok("corpus --by document --ngram 0 in"), format!("{first}\n{second}\n{third}\n"));
    // With shorter grams, all grams of the last document were seen.
    assert_eq!(bench.run_ok("corpus --by document --ngram 3 --min-ngram 1 --threshold 0.7 in"), format!("{first}\n"));
}

#[test]
fn empty_documents_are_removed_without_keep_empty() {
    let lines = [LONG, &format!("{LONG}\n \n\t"), LONG, "", " \n "].map(|text| line(0, text)).concat();
    let bench = Bench::new(&[("in", lines.as_bytes())]);
    // Documents that are blank in the input are removed too.
    for options in ["", "--ngram 0 ", "--near 0.8 ", "--by document ", "--by document --ngram 0 ", "--drop-document "] {
        let kept = texts(&expect_success(bench.run(&format!("corpus {options}in"))));
        assert!(kept[0] == LONG && kept.iter().all(|text| !text.trim().is_empty()), "{options}: {kept:?}");
        // Each copy of a blank document is kept, because blank text is never a duplicate.
        let kept = texts(&expect_success(bench.run(&format!("corpus {options}--keep-empty in in"))));
        assert_eq!(kept.iter().filter(|text| *text == " \n ").count(), 2, "{options}: {kept:?}");
    }
    assert_eq!(texts(&expect_success(bench.run("corpus --keep-empty in"))), [LONG, "", "", "", " \n "]);
    // --keep-empty keeps documents emptied by --against, but not documents dropped by --drop-document.
    assert_eq!(texts(&expect_success(bench.run("corpus --keep-empty --drop-document in"))), [LONG, "", " \n "]);
    bench.write("tests", line(0, LONG).as_bytes());
    assert_eq!(texts(&expect_success(bench.run("corpus --against tests in"))), ["", " \n "]);
    assert_eq!(texts(&expect_success(bench.run("corpus --against tests --keep-empty in"))), ["", "", "", "", " \n "]);
    // A frozen filter has no blank documents, so they are kept.
    expect_success(bench.run("corpus --state s in"));
    assert_eq!(texts(&expect_success(bench.run("corpus --frozen --state s in"))), ["", " \n "]);
}

#[test]
fn annotations_list_removed_spans() {
    let lines = [line(1, LONG), line(2, &format!("é\n{LONG}\nnew"))].concat();
    let bench = Bench::new(&[("in", format!("{lines}{{ \"text\":\"{LONG}\" }} \n").as_bytes())]);
    let output = bench.run_ok("corpus --annotate in");
    let span = (3, 3 + LONG.len());
    let expected = [
        format!(
            "{{\"id\":1,\"text\":\"{LONG}\",\"bloomline\":{{\"duplicate\":false,\"grams\":2,\"found\":0,\"spans\":[]}}}}"
        ),
        format!(
            "{{\"id\":2,\"text\":\"é\\n{LONG}\\nnew\",\"bloomline\":{{\"duplicate\":false,\"grams\":2,\"found\":2,\"spans\":[[2,{},1.0000]]}}}}",
            span.1
        ),
        format!(
            "{{ \"text\":\"{LONG}\" ,\"bloomline\":{{\"duplicate\":true,\"grams\":2,\"found\":2,\"spans\":[[0,{},1.0000]]}}}} ",
            LONG.len()
        ),
    ];
    assert_eq!(output.lines().collect::<Vec<_>>(), expected);
    let bench = Bench::new(&[("in", b"[\"a b c\"]\n")]);
    assert_contains_all(
        &bench.run_err("corpus --annotate --json-pointer /0 in"),
        &["\"in\", line 1", "not a JSON object"],
    );
}

/// Returns a JSON string as written, without the given spans of bytes of its decoded text.
fn without_spans(written: &str, spans: &Value) -> String {
    let number = |value: &Value| value.as_u64().unwrap() as usize;
    let spans: Vec<_> = spans.as_array().unwrap().iter().map(|span| number(&span[0])..number(&span[1])).collect();
    let (mut rest, mut left, mut at) = (written, String::new(), 0);
    while !rest.is_empty() {
        let length = match rest.as_bytes() {
            // A surrogate pair is one character.
            [b'\\', b'u', b'd', ..] => 12,
            [b'\\', b'u', ..] => 6,
            [b'\\', ..] => 2,
            _ => rest.chars().next().unwrap().len_utf8(),
        };
        let (character, after) = rest.split_at(length);
        let denoted: String = serde_json::from_str(&format!("\"{character}\"")).unwrap();
        if spans.iter().all(|span| !span.contains(&at)) {
            left += character;
        }
        (rest, at) = (after, at + denoted.len());
    }
    left
}

/// Without the annotated spans, a text equals the output of a run that removes paragraphs, including its escapes.
#[cfg(unix)]
#[test]
fn annotated_spans_match_the_removed_text() {
    const PARAGRAPHS: [&str; 9] =
        ["a b c", "a b d", r"\u00e9\u00e8 b", "é è b c", r"\ud83d\ude00 x\/", "", "  ", r"\t\r", r#"\"a b c\""#];
    const NEWLINES: [&str; 3] = [r"\n", r"\u000a", r"\u000A"];
    let mut random = Random(1);
    let written = |_| {
        let paragraphs = 1 + random.below(6);
        let mut rest = || [random.one_of(&NEWLINES), random.one_of(&PARAGRAPHS)].concat();
        let rest = (1..paragraphs).map(|_| rest()).collect::<String>();
        random.one_of(&PARAGRAPHS).to_owned() + &rest
    };
    let written: Vec<String> = (0..400).map(written).collect();
    let line = |text: &str| format!("{{ \"n\":1.50,\"text\":\"{text}\" }}\n");
    let bench = Bench::new(&[("in", written.iter().map(|text| line(text)).collect::<String>().as_bytes())]);
    let known = format!("{{\"text\":\"{}\"}}\n{{\"text\":\"{}\"}}\n", PARAGRAPHS[0], PARAGRAPHS[3]);
    bench.write("known", known.as_bytes());
    for options in ["--ngram 2 --min-ngram 1 --threshold 0.5", "--ngram 0", "--ngram 1 --threshold 0.9", "--near 0.5"] {
        let state = format!("s{}", options.len());
        bench.run_ok(&format!("corpus {options} -s {state} -o /dev/null known"));
        for more in
            ["", " --keep-empty", " --drop-document", " --by document", " --by document --keep-empty", " --frozen"]
        {
            // Notes about near duplicates are made in one reading, and so is a run with --frozen.
            if options.contains("near") && more != " --frozen" {
                continue;
            }
            let state = if more == " --frozen" { format!(" -s {state}") } else { " -n 1000 -p 1e-9".to_owned() };
            let command = format!("corpus {options}{more}{state} in");
            let notes = json_values(bench.run_ok(&format!("{command} --annotate")).as_bytes());
            assert_eq!(notes.len(), written.len(), "{command}");
            let left = notes.iter().zip(&written).map(|(noted, text)| match &noted["bloomline"] {
                note if note["duplicate"] == true => String::new(),
                note => line(&without_spans(text, &note["spans"])),
            });
            assert_eq!(left.collect::<String>(), bench.run_ok(&command), "{command}");
        }
    }
}

#[test]
fn lines_without_a_text_are_errors() {
    let good = line(1, LONG);
    let lines = format!("{good}{{\"id\":2}}\n{{\"text\":7}}\n{{\"text\":\"\\ud800\"}}\nnone\n{good}");
    let bench = Bench::new(&[("in", lines.as_bytes())]);
    let output = bench.run("corpus in");
    assert_contains_all(&expect_failure(&output), &["no text in \"in\", line 2", "no value at \"/text\""]);
    assert_eq!(text(&output.stdout), good);
    let output = bench.run("corpus --on-error skip in");
    assert_contains_all(&text(&output.stderr), &["lines without a text: 4", "\"in\", line 2"]);
    assert_contains_all(&expect_failure(&bench.run("corpus --output-dir o in")), &["no text in \"in\", line 2"]);
    let output = bench.run("corpus --on-error skip --stats=json in");
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(0), good.clone()));
    assert_eq!((number(&stats(&output), "without_text"), number(&stats(&output), "dropped")), (4.0, 1.0));
    let kept = lines.strip_suffix(&good).unwrap();
    assert_eq!(text(&bench.run("corpus --on-error keep in").stdout), kept);
    let bench = Bench::new(&[("in", b"{\"text\":7}\n")]);
    assert_contains_all(&bench.run_err("corpus in"), &["the value at \"/text\" is not a string"]);
}

/// A model with sets of words, for 3-grams, at least 2 words, and a threshold of one half.
fn model(documents: &[String]) -> Vec<String> {
    let mut seen: HashSet<Vec<&str>> = HashSet::new();
    let mut kept = Vec::new();
    for text in documents {
        let mut rest = String::new();
        let starts = text.match_indices('\n').map(|(at, _)| at);
        let bounds: Vec<usize> = [0].into_iter().chain(starts).chain([text.len()]).collect();
        let mut begins_cut = false;
        for (i, paragraph) in bounds.windows(2).map(|ends| &text[ends[0]..ends[1]]).enumerate() {
            let words: Vec<&str> = paragraph.split_ascii_whitespace().collect();
            let grams: Vec<Vec<&str>> = match words.len() {
                0..2 => Vec::new(),
                2 => vec![words],
                _ => words.windows(3).map(<[_]>::to_vec).collect(),
            };
            let found = grams.iter().filter(|gram| seen.contains(*gram)).count();
            if !grams.is_empty() && 2 * found > grams.len() {
                begins_cut |= i == 0;
            } else {
                seen.extend(grams);
                // If the start was removed, the text does not begin with blank lines.
                let paragraph = if begins_cut && rest.is_empty() { paragraph.trim_start() } else { paragraph };
                rest += paragraph;
            }
        }
        if !rest.trim().is_empty() {
            kept.push(rest);
        }
    }
    kept
}

/// Returns documents with repeated paragraphs, some of them with one changed word.
fn documents(count: usize) -> Vec<String> {
    let paragraph = |i: usize| {
        let mut words: Vec<String> = sentence(i % 997, 1 + i % 23).split(' ').map(str::to_owned).collect();
        if i.is_multiple_of(3) {
            let at = i % words.len();
            words[at] = format!("x{i}");
        }
        words.join(" ")
    };
    let document = |i: usize| (0..1 + i % 7).map(|j| paragraph(i * 31 + j * 17)).collect::<Vec<_>>().join("\n");
    (0..count).map(document).collect()
}

const RULES: &str = "--ngram 3 --min-ngram 2 --threshold 0.5 -n 100000 -p 1e-9";

#[test]
fn output_does_not_depend_on_threads_or_chunks() {
    let documents = documents(1500);
    let lines: String = documents.iter().enumerate().map(|(i, text)| line(i, text)).collect();
    let bench = Bench::new(&[("in", lines.as_bytes()), ("in.gz", &gzip(lines.as_bytes()))]);
    let expected = model(&documents);
    assert!(expected.len() > 500 && expected.concat().len() < documents.concat().len() * 3 / 4);
    let one = expect_success(bench.run(&format!("corpus {RULES} -j 1 in")));
    assert!(texts(&one) == expected);
    for options in ["-j 4 in", "-j 3 --chunk-size 100 in", "-j 2 in.gz", "-j 4 --chunk-size 3000 in.gz"] {
        assert!(expect_success(bench.run(&format!("corpus {RULES} {options}"))) == one, "{options}");
    }
    // A folder of outputs, in order.
    assert_eq!(bench.run_ok(&format!("corpus {RULES} --in-order --output-dir o in in.gz")), "");
    let twice = texts(&expect_success(bench.run(&format!("corpus {RULES} in in"))));
    assert!(bench.read("o/in") == one && texts(&read_decoded(&bench, "o/in.gz")) == twice[expected.len()..]);
}

#[test]
fn states_are_continued_and_resumed() {
    let documents = documents(2000);
    let all: Vec<String> = documents.iter().enumerate().map(|(i, text)| line(i, text)).collect();
    let (first, second) = (all[..900].concat(), all[900..].concat());
    let bench = Bench::new(&[("first", first.as_bytes()), ("second", second.as_bytes())]);
    let whole = expect_success(bench.run(&format!("corpus {RULES} first second")));
    let one = expect_success(bench.run(&format!("corpus {RULES} --state s first")));
    let two = expect_success(bench.run(&format!("corpus {RULES} --state s second")));
    assert!([one, two].concat() == whole);
    // The state records the name of its keys.
    assert_contains_all(&bench.run_err("corpus --ngram 4 --state s second"), &["3-grams of words", "4-grams of words"]);
    assert_contains_all(&bench.run_err("dedup --state s second"), &["3-grams of words", "line"]);
    // A run that ended with an error is resumed.
    bench.write("third", format!("{first}broken\n{second}").as_bytes());
    let third = format!("corpus {RULES} --state t -o out third");
    assert_contains_all(&expect_failure(&bench.run(&third)), &["\"third\", line 901"]);
    assert!(bench.read("out") == expect_success(bench.run(&format!("corpus {RULES} first"))));
    // A run with other rules is not resumed.
    assert_contains_all(&expect_failure(&bench.run(&format!("{third} --resume --drop-document"))), &["options"]);
    assert_eq!(bench.run_ok(&format!("{third} --resume --on-error skip --quiet")), "");
    assert!(bench.read("out") == whole);
}

#[test]
fn frozen_filters_are_unchanged() {
    let tests = [line(1, LONG), line(2, "What is the capital of France?")].concat();
    let train =
        [line(1, &format!("new\n{LONG}")), line(2, LONG), line(3, "What is the capital of France?\nParis")].concat();
    let bench = Bench::new(&[("tests", tests.as_bytes()), ("train", train.as_bytes())]);
    expect_success(bench.run("corpus --by document --min-ngram 5 --state t tests"));
    let state = bench.read("t");
    let kept = texts(&expect_success(bench.run("corpus --frozen --state t --min-ngram 5 train")));
    assert_eq!(kept, ["new", "Paris"]);
    // Repeats of text that is not in the filter are kept.
    assert_eq!(texts(&expect_success(bench.run("corpus --frozen --state t --min-ngram 5 train train"))).len(), 4);
    assert!(bench.read("t") == state);
    // The filter is not overwritten, and in a directory it is not an input.
    for options in ["-o t train", "--manifest t --output-dir o train", "-o t --force train"] {
        let message = bench.run_err(&format!("corpus --frozen --state t {options}"));
        assert_contains_all(&message, &["cannot write to", "\"t\""]);
    }
    std::fs::create_dir(bench.path("d")).unwrap();
    std::fs::copy(bench.path("t"), bench.path("d/t")).unwrap();
    bench.write("d/train", train.as_bytes());
    assert_eq!(texts(&expect_success(bench.run("corpus --frozen --state d/t --min-ngram 5 d"))), ["new", "Paris"]);
    assert!(bench.read("t") == state && bench.read("d/t") == state);
    assert_contains_all(&bench.run_err("corpus --frozen --state none train"), &["none"]);
    assert_contains_all(&bench.run_err("corpus --frozen train"), &["--state"]);
}

#[test]
fn documents_are_dropped_by_their_fraction_of_seen_grams() {
    // 3 of 4 paragraphs were seen.
    let old: Vec<String> = (0..3).map(|i| sentence(i, 20)).collect();
    let mixed = format!("{}\n{}", old.join("\n"), sentence(9, 20));
    let lines = [line(1, &old.join("\n")), line(2, &mixed)].concat();
    let bench = Bench::new(&[("in", lines.as_bytes())]);
    let kept = |options: &str| texts(&expect_success(bench.run(&format!("corpus {options} in"))));
    assert_eq!(kept("--threshold 0.7")[1], sentence(9, 20));
    assert_eq!(kept("--threshold 0.7 --drop-document").len(), 1);
    assert_eq!(kept("--threshold 0.75 --drop-document").len(), 2);
    // The new paragraph of a dropped document is kept where it occurs again, and repeats within a document drop nothing.
    let again = format!("{0}\n{0}\n{0}\n{0}\n{0}\n{0}", sentence(9, 20));
    let bench = Bench::new(&[("in", [lines, line(3, &again)].concat().as_bytes())]);
    let kept = texts(&expect_success(bench.run("corpus --threshold 0.7 --drop-document in")));
    assert_eq!(kept, [old.join("\n"), sentence(9, 20)]);
}

#[test]
fn statistics_count_removals() {
    let documents = documents(500);
    let lines: String = documents.iter().enumerate().map(|(i, text)| line(i, text)).collect();
    let bench = Bench::new(&[("in", lines.as_bytes())]);
    let output = bench.run(&format!("corpus {RULES} --stats=json in"));
    let (stats, kept) = (stats(&output), texts(&output.stdout));
    let bytes = |texts: &[String]| texts.iter().map(String::len).sum::<usize>() as f64;
    assert_eq!(number(&stats, "documents"), 500.0);
    assert_eq!(number(&stats, "kept"), kept.len() as f64);
    // Removed documents do not count as shortened.
    let whole: HashSet<&String> = documents.iter().collect();
    let shortened = kept.iter().filter(|text| !whole.contains(text)).count();
    assert!(shortened > 0 && number(&stats, "dropped") > 0.0);
    assert_eq!(number(&stats, "shortened"), shortened as f64);
    assert_eq!(number(&stats, "text_bytes"), bytes(&documents));
    assert_eq!(number(&stats, "removed_bytes"), bytes(&documents) - bytes(&kept));
    assert_eq!(
        number(&stats, "units"),
        documents.iter().map(|text| 1 + text.matches('\n').count()).sum::<usize>() as f64
    );
    let output = text(&bench.run(&format!("corpus {RULES} --stats in")).stderr);
    for label in ["documents ", "duplicate paragraphs ", "text removed ", "grams found ", "wrongly removed ", "fill "] {
        assert!(output.lines().any(|line| line.starts_with(label)), "{label}: {output}");
    }
}

/// The worst case: four threads read the same documents from four files at the same time.
#[test]
fn side_by_side_outputs_keep_every_text_and_count_copies() {
    const COUNT: usize = 1500;
    let all: Vec<String> = (0..COUNT).map(|i| sentence(i, 60).replace('w', &format!("v{i}x"))).collect();
    let lines: String = all.iter().enumerate().map(|(i, text)| line(i, text)).collect();
    let bench = Bench::new(&["a", "b", "c", "d"].map(|name| (name, lines.as_bytes())));
    let kept = |options: &str| {
        let output =
            bench.run(&format!("corpus {options} -n 400000 -p 1e-9 -j 4 --stats=json --force --output-dir o a b c d"));
        let kept: Vec<String> =
            ["a", "b", "c", "d"].iter().flat_map(|name| texts(&bench.read(&format!("o/{name}")))).collect();
        assert_eq!(kept.iter().collect::<HashSet<_>>(), all.iter().collect(), "{options}");
        assert_eq!(number(&stats(&output), "kept"), kept.len() as f64);
        kept.len() - COUNT
    };
    let manifest = expect_success(bench.run("corpus -n 400000 -p 1e-9 --in-order --manifest m --output-dir p a b"));
    assert_eq!(manifest, b"");
    let lines = json_values(&bench.read("m"));
    let bytes = all.concat().len() as f64;
    let figures = |line: &Value| {
        ["lines", "unique", "units", "duplicate_units", "text_bytes", "removed_bytes"].map(|name| number(line, name))
    };
    let count = COUNT as f64;
    assert_eq!(figures(&lines[0]), [count, count, count, 0.0, bytes, 0.0]);
    assert_eq!(figures(&lines[1]), [count, 0.0, count, count, bytes, bytes]);
    // With whole paragraphs, each is claimed by exactly one thread.
    assert_eq!(kept("--ngram 0"), 0);
    assert_eq!(kept("--in-order"), 0);
    println!("{} copies too many stayed of {COUNT} documents", kept("--threshold 0.8"));
}

/// The filter is much too small.
#[test]
fn false_removals_match_the_expectation() {
    let lines: String = (0..6000).map(|i| line(i, &sentence(i * 13 + 5, 40).replace('w', &format!("v{i}x")))).collect();
    let bench = Bench::new(&[("in", lines.as_bytes())]);
    for options in [
        "--ngram 5 --min-ngram 5 --threshold 0.3 -n 60000 --when-full warn -p 0.05",
        "--ngram 0 -n 1500 --when-full warn -p 0.01 --output-dir o",
        // Growing filters keep the requested rate.
        "--ngram 0 -n 4000 -p 0.2",
        "--ngram 0 -n 300 --when-full grow -p 0.2 --output-dir p",
        "--near 0.8 -n 1000 --when-full warn -p 0.2 --checkpoint 1h -s near",
    ] {
        // The ratio of the chunk size to the filter size is that of large files.
        let output = bench.run(&format!("corpus {options} --chunk-size 10000 --quiet --stats=json in"));
        let stats = stats(&output);
        // All texts differ, so each dropped document is a false positive.
        let (expected, measured) = (number(&stats, "expected_wrongly_removed"), number(&stats, "dropped"));
        assert!(measured > 100.0, "{options}: {measured}");
        let ratio = expected / measured;
        assert!((0.8..1.25).contains(&ratio), "{options}: {expected} expected, {measured} measured");
    }
}

/// The warning explains an empty result.
#[test]
fn an_overfull_filter_is_reported() {
    let lines: String = (0..2000).map(|i| line(i, &sentence(i * 13, 30).replace('w', &format!("v{i}x")))).collect();
    let bench = Bench::new(&[("in", lines.as_bytes())]);
    let warned = |options: &str| text(&bench.run(&format!("corpus {options} --ngram 5 --min-ngram 5 in")).stderr);
    for quiet in ["", " --quiet"] {
        let message = warned(&format!("-n 2000 --when-full warn{quiet}"));
        assert_contains_all(&message, &["warning: of the ", "paragraphs that were removed", "plan for more with -n"]);
    }
    assert_eq!(warned("-n 2000") + &warned("-p 0.01") + &warned("-n 60000"), "");
}

/// -n and -p refer to documents, although the filter contains bands.
#[test]
fn a_filter_for_near_duplicates_is_sized_in_documents() {
    let lines: String = (0..1000).map(|i| line(i, &sentence(i * 13 + 5, 40).replace('w', &format!("v{i}x")))).collect();
    let bench = Bench::new(&[("in", lines.as_bytes())]);
    assert_eq!(bench.run_ok("corpus --near 0.8 -n 1000 -p 1e-6 --state s in"), lines);
    // The file records the rate.
    assert_eq!(bench.run_ok("corpus --near 0.8 --state s in"), "");
    assert_eq!(bench.run_ok("corpus --near 0.8 --state s -n 1000 -p 1e-6 in"), "");
    assert_contains_all(&bench.run_err("corpus --near 0.8 --state s -p 0.1 in"), &["\"s\"", "false-positive rate"]);
    // One of nine bands is enough for a candidate, so the rate of a band is 1 - 0.95^(1/9).
    let output = bench.run("corpus --near 0.8 --memory 1M -p 0.05 --when-full warn in");
    assert_contains_all(&text(&output.stderr), &["distinct bands at a false-positive rate of 0.0057"]);
}

#[test]
fn near_duplicates_are_removed() {
    let original = |i: usize| sentence(i * 31, 200);
    let near = |i: usize| format!("{} changed", original(i).rsplit_once(' ').unwrap().0);
    let lines: Vec<String> = (0..50).map(|i| line(i, &original(i))).collect();
    let more: Vec<String> =
        (0..50).map(|i| line(i, &near(i))).chain((50..100).map(|i| line(i, &original(i)))).collect();
    let bench = Bench::new(&[("in", (lines.concat() + &more.concat()).as_bytes())]);
    let output = bench.run("corpus --near 0.8 --stats=json in");
    assert!(text(&output.stdout) == lines.concat() + &more[50..].concat());
    assert_eq!(number(&stats(&output), "dropped"), 50.0);
    assert_contains_all(&bench.run_err("corpus --near 0.8 --by paragraph in"), &["--near", "--by"]);
    assert_contains_all(&bench.run_err("corpus --near 1.5 in"), &["1.5"]);
}

#[test]
fn conflicting_options_are_refused() {
    let bench = Bench::new(&[("in", b"")]);
    for (options, parts) in [
        ("--normalize trim", ["--normalize space, trim", "--ngram 0"]),
        ("--normalize nfc,lower", ["--normalize lower", "--ngram 0"]),
        ("--near 0.8 --normalize lower", ["--normalize lower", "give case"]),
        ("--normalize space", ["--normalize space", "--ngram 0"]),
        ("--near 0.8 --normalize crlf,case", ["crlf", "--ngram 0"]),
        ("--normalize upper", ["upper", "nfkc"]),
        ("--normalize none,case", ["--normalize none", "alone"]),
        ("--when-full stop", ["'stop'", "grow"]),
        ("--min-ngram 9 --ngram 5", ["--min-ngram 9", "--ngram 5"]),
        ("--threshold 1.1", ["1.1", "from 0 to below 1"]),
        ("--threshold 1", ["'1'", "which no share exceeds"]),
        ("--json-pointer text", ["text", "\"/\""]),
        // Options without effect.
        ("--ngram 0 --threshold 0.5", ["--threshold", "--ngram 0"]),
        ("--ngram 0 --drop-document --min-ngram 5", ["--min-ngram", "leave it out"]),
        ("--by document --drop-document", ["--by document", "--drop-document"]),
        ("--by document --drop-document --keep-empty", ["--by document", "--drop-document"]),
        ("--frozen --state s -p 0.1", ["--frozen", "--fpr"]),
        ("--frozen --state s --seed 1", ["--frozen", "--seed"]),
        ("--frozen --state s --when-full grow", ["--frozen", "--when-full"]),
        ("--frozen --state s --wait", ["--frozen", "--wait"]),
    ] {
        assert_contains_all(&bench.run_err(&format!("corpus {options} in")), &parts);
    }
    assert_eq!(bench.run_ok("corpus in"), "");
}

/// The removed bytes are counted, including newlines with every kind of escape.
#[test]
fn a_text_whose_start_is_removed_begins_with_a_paragraph() {
    let lines =
        [line(0, LONG), line(1, &format!("{LONG}\n \n{LONG}\n\t\nnew\n\nend")), line(2, &format!("\n{LONG}\nold"))];
    let lines = lines.concat() + &format!("{{\"text\":\"{LONG}\\u000ahex\"}}\n");
    let bench = Bench::new(&[("in", lines.as_bytes())]);
    for options in ["", "--ngram 0 "] {
        let output = bench.run(&format!("corpus {options}--stats=json in"));
        // A text that begins with a newline keeps it.
        assert_eq!(texts(&output.stdout), [LONG, "new\n\nend", "\nold", "hex"]);
        let removed = 2 * (LONG.len() + 1) + 2 + 2 + LONG.len() + 1 + LONG.len() + 1;
        assert_eq!(number(&stats(&output), "removed_bytes"), removed as f64);
    }
}

#[test]
fn annotations_replace_earlier_ones() {
    let old = r#""bloomline":{"duplicate":true,"spans":[[0,1,1.0]]}"#;
    let new = r#""bloomline":{"duplicate":false,"grams":1,"found":0,"spans":[]}"#;
    for (number, (before, after)) in [
        (format!(r#"{{"text":"N a b",{old}}}"#), format!(r#"{{"text":"N a b",{new}}}"#)),
        (format!(r#"{{ {old} , "text":"N a b" }}"#), format!(r#"{{ "text":"N a b" ,{new}}}"#)),
        (format!(r#"{{"x":1 , {old} ,"text":"N a b"}}"#), format!(r#"{{"x":1  ,"text":"N a b",{new}}}"#)),
        (
            r#"{"text":"N a b","other":{"bloomline":1}}"#.into(),
            format!(r#"{{"text":"N a b","other":{{"bloomline":1}},{new}}}"#),
        ),
        // All earlier annotations are removed, including adjacent ones and names with escapes.
        (
            format!(r#"{{{old}, {old} , "text":"N a b",{old} ,"\u0062loomline":{{"bloomline":[]}}}}"#),
            format!(r#"{{"text":"N a b" ,{new}}}"#),
        ),
        (
            format!(r#"{{"x":[{{{old}}}],{old},{old},"text":"N a b"}}"#),
            format!(r#"{{"x":[{{{old}}}],"text":"N a b",{new}}}"#),
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let named = |line: String| line.replace('N', &number.to_string()) + "\n";
        let bench = Bench::new(&[("in", [named(before), line(7, "x y z")].concat().as_bytes())]);
        let expected = named(after);
        let output = bench.run_ok("corpus --annotate --min-ngram 3 in");
        assert_eq!(output.lines().next().unwrap(), expected.trim_end());
        // Annotating again changes nothing.
        bench.write("again", output.as_bytes());
        assert_eq!(bench.run_ok("corpus --annotate --min-ngram 3 again"), output);
    }
    // The text must not be read from an earlier annotation.
    let bench = Bench::new(&[("in", b"")]);
    for place in ["--json-pointer /bloomline", "--json-pointer /bloomline/text", "--column bloomline"] {
        let message = bench.run_err(&format!("corpus --annotate {place} in"));
        assert_contains_all(&message, &["--annotate", "\"bloomline\"", "another"]);
    }
}

/// Each mode ignores certain differences. The output keeps the original text.
#[test]
fn texts_are_compared_after_normalization() {
    for (switches, first, second) in [
        (
            "nfc",
            "\u{E9}t\u{E9} \u{43A}\u{43E}\u{439} \u{D55C}\u{AD6D}",
            "e\u{301}te\u{301} \u{43A}\u{43E}\u{438}\u{306} \u{1112}\u{1161}\u{11AB}\u{1100}\u{116E}\u{11A8}",
        ),
        ("nfkc", "カタカナ ABC سلام", "ｶﾀｶﾅ ＡＢＣ ﺳﻼﻡ"),
        ("case", "Straße МИР ΣΊΣΥΦΟΣ", "STRASSE мир σίσυφος"),
        ("digits", "12 ห้อง ๓ ٤٥ 六", "67 ห้อง ๘ ٩٠ 六"),
        ("punctuation", "「我喜欢，中文。」 👩\u{200D}👩\u{200D}👧🇩🇪!", "我喜欢中文 👩\u{200D}👩\u{200D}👧🇩🇪"),
        ("symbols", "don’t re-use ▶ 我喜欢。", "dont re use = 我喜欢 "),
        ("ignorable", "\u{FEFF}so\u{AD}ft می\u{200C}خواهم ภาษา\u{200B}ไทย", "soft میخواهم ภาษาไทย"),
        ("text", "Ｓtraße 10: ภาษาไทย, 日本語! مرحبا،", "strasse 99 ภาษาไทย 日本語 مرحبا"),
    ] {
        let lines = line(1, first) + &line(2, second);
        let bench = Bench::new(&[("in", lines.as_bytes())]);
        for mode in ["--ngram 0", "--by document --ngram 0", "--ngram 2 --min-ngram 1", "--near 0.8"] {
            assert_eq!(bench.run_ok(&format!("corpus {mode} in")), lines, "{mode}");
            assert_eq!(bench.run_ok(&format!("corpus {mode} --normalize {switches} in")), line(1, first), "{mode}");
        }
    }
    let lines = line(1, "a b\r\nc\r") + &line(2, "a b\nc") + &line(3, "ab c\nd");
    let bench = Bench::new(&[("in", lines.as_bytes())]);
    let kept = |options: &str| texts(&expect_success(bench.run(&format!("corpus --ngram 0 {options} in"))));
    assert_eq!(kept("--normalize crlf"), ["a b\r\nc\r", "ab c\nd"]);
    assert_eq!(kept("--normalize space"), ["a b\r\nc\r", "ab c\nd"]);
    assert_eq!(kept("--by document --normalize crlf"), ["a b\r\nc\r", "ab c\nd"]);
    // A state records its normal form.
    bench.run_ok("corpus --normalize digits,case --state s in");
    bench.run_ok("corpus --normalize case --normalize digits --state s in");
    assert_contains_all(
        &bench.run_err("corpus --normalize case --state s in"),
        &["normalized by case,digits", "normalized by case\""],
    );
    assert_contains_all(&bench.run_err("corpus --state s in"), &["normalized by case,digits", "13-grams of words\""]);
    for (form, name) in
        [("text", "nfkc,case,digits,punctuation"), ("symbols,text,ignorable", "nfkc,case,digits,ignorable,symbols")]
    {
        bench.run_ok(&format!("corpus --normalize {form} --state {form} in"));
        let named = format!("normalized by {name}\"");
        assert_contains_all(
            &bench.run_err(&format!("corpus --normalize none --state {form} in")),
            &[&named, "13-grams of words\""],
        );
    }
}
