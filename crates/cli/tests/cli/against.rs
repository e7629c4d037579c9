//! `corpus --against`: overlaps with tests are removed and reported. python/tests/test_against.py models both.

use crate::common::{Bench, assert_contains_all, expect_failure, expect_success, json_values, number, stats, text};
use crate::documents::line;
use serde_json::Value;
use std::fs;
use std::thread;

const QUESTION: &str = "Which river flows through the city of 京都 and past the 鴨川デルタ on its way to the sea?";

#[test]
fn only_documents_overlapping_with_tests_are_removed() {
    let tests = [
        line(1, QUESTION),
        line(2, "Столица и главный город Франции? Париж!"),
        line(3, "ไม่มีใคร 👩\u{200D}👩\u{200D}👧 مرحبا 한국어 e\u{301} ไม่มีใคร"),
    ];
    let train = [
        line(1, &format!("A quiz:\n{QUESTION}\nThe Kamo.")),
        line(2, "Столица и главный город Франции? Париж!"),
        line(3, "Столица и главный город Франции? Да, Париж!"),
        line(4, ""),
        line(5, "yes"),
    ];
    let bench = Bench::new(&[("tests", tests.concat().as_bytes()), ("train", train.concat().as_bytes())]);
    // A blank document is kept, because it overlaps with no test.
    let kept = [&*train[2], &train[3], &train[4]].concat();
    assert_eq!(bench.run_ok("corpus --against tests train --report r --id /id"), kept);
    let report = json_values(&bench.read("r"));
    let found = report.iter().map(|item| number(item, "found"));
    assert!(found.eq([number(&report[0], "grams"), 1.0, 0.0]));
    let documents: Vec<_> = report.iter().map(|item| &item["documents"]).collect();
    assert_eq!((&documents[0][0]["line"], &documents[0][0]["id"]), (&Value::from(1), &Value::from(1)));
    assert_eq!(documents[1][0]["grams"], Value::from(vec!["столица и главный город франции париж"]));
    assert_eq!(*documents[2], Value::Array(Vec::new()));
    assert_eq!(report.iter().map(|item| item.get("short").is_some()).collect::<Vec<_>>(), [false, true, false]);
    // By paragraph, the rest of the document is kept. Each kind of output has the same result.
    let cut = [line(1, "A quiz:\nThe Kamo."), train[2..].concat()].concat();
    assert_eq!(bench.run_ok("corpus --against tests --by paragraph train"), cut);
    assert_eq!(bench.run_ok("corpus --against tests --by paragraph --output-dir o train --report r2"), "");
    assert_eq!(text(&bench.read("o/train")), cut);
    assert_eq!(json_values(&bench.read("r2")).len(), 3);
    assert_eq!(text(&bench.run_with("corpus --against tests --by paragraph", "train").stdout), cut);
    bench.write("place", train.concat().as_bytes());
    assert_eq!(bench.run_ok("corpus --against tests --in-place place --report r3"), "");
    assert_eq!((text(&bench.read("place")), json_values(&bench.read("r3")).len()), (kept, 3));
    bench.write("loud", line(1, &QUESTION.to_uppercase()).as_bytes());
    assert_eq!(
        bench.run_ok("corpus --against tests --against loud --against train loud train"),
        [&*train[3], &train[4]].concat()
    );
}

/// By default, texts are compared in a form that ignores usual changes of copies. `--normalize` replaces this form.
#[test]
fn changed_copies_are_found() {
    const TEST: &str =
        "Don't \"re-use\" it: is the café's naïve file of ½ a page -- or 20 more -- well-known in Zürich?";
    const PERSIAN: &str = "او می\u{200C}خواهد که این کتاب را به همه ی ما در خانه نشان بدهد";
    let test = line(1, TEST) + &line(2, PERSIAN);
    let invisible = |text: &str| text.replace('e', "e\u{200B}").replace("of", "o\u{AD}f").replace(' ', " \u{2060}");
    let copies = [
        (TEST.to_owned(), ""),
        (TEST.to_uppercase(), "none"),
        (
            TEST.replace("Don't", "Don’t").replace("\"re-use\"", "“re‐use”").replace(" -- ", "—").replace('?', ""),
            "none,text",
        ),
        (TEST.replace(' ', "\n\t").replace(':', " :"), ""),
        (TEST.replace("é", "e\u{301}").replace("20", "２０").replace("fi", "ﬁ").replace("½", "1⁄2"), "none"),
        (invisible(TEST), "none"),
        (format!("\u{FEFF}{}", TEST.replace(' ', "\u{200B} ")), "none"),
        (PERSIAN.replace('\u{200C}', ""), "none"),
        (TEST.split(' ').map(|word| format!("*{word}*")).collect::<Vec<_>>().join(" "), "none"),
    ];
    let train: String = (1..).zip(&copies).map(|(id, (copy, _))| line(id, &format!("Before {copy} after."))).collect();
    let bench = Bench::new(&[("tests", test.as_bytes()), ("train", train.as_bytes())]);
    assert_eq!(bench.run_ok("corpus --against tests train"), "");
    for form in ["none", "text"] {
        let left = json_values(bench.run_ok(&format!("corpus --against tests --normalize {form} train")).as_bytes());
        let escaped = copies.iter().enumerate().filter(|(_, (_, by))| by.split(',').any(|name| name == form));
        let escaped: Vec<f64> = escaped.map(|(i, _)| i as f64 + 1.0).collect();
        assert_eq!(left.iter().map(|line| number(line, "id")).collect::<Vec<_>>(), escaped, "{form}");
    }
}

/// A test that is shorter than a gram is found within a text: with all its words, or with one changed if the others are rare. With
/// an answer, it is found only near this answer.
#[cfg(unix)]
#[test]
fn short_tests_are_found_within_documents() {
    const OWLS: &str = "Seven wise owls guard a secret old library";
    const FRANCE: &str = "What is the capital of France?";
    let test = |id: usize, text: &str, answer: &str| {
        format!("{{\"id\":{id},\"text\":{},\"answer\":{answer}}}\n", Value::from(text))
    };
    let tests = [
        test(0, OWLS, "null"),
        test(1, FRANCE, "\"Paris\""),
        test(2, FRANCE, "\"Lyon, of course\""),
        test(3, "How many legs do spiders have?", "8"),
        test(4, "Click on the button to see more", "[]"),
        test(5, "The green lizard opens a small drawer", "null"),
    ];
    let far = "word ".repeat(40);
    let removed = [
        format!("A story: {}! What then?", OWLS.to_uppercase().replace(' ', " - ")),
        "A story. Seven wise owls guard the secret old library. Then nothing.".to_owned(),
        format!("{FRANCE}\nIt is Paris, everybody knows."),
        "8! How many legs do spiders have? I knew it.".to_owned(),
    ];
    let kept = [
        "Seven wise owls guard a secret old museum".to_owned(),
        "seven wise owls guard my very old library".to_owned(),
        "The capital of France is Paris".to_owned(),
        format!("{FRANCE} {far} Paris"),
        format!("{FRANCE} Lyon."),
        "The green lizard opens the small drawer".to_owned(),
        "The green lizard opens every small drawer".to_owned(),
    ];
    let others = (0..1000)
        .map(|i| if i < 40 { format!("Click on the button to see more {i}") } else { format!("Page {i} has n{i}") });
    let texts: Vec<String> = removed.iter().chain(&kept).cloned().chain(others).collect();
    let train: Vec<String> = (0..).zip(&texts).map(|(id, text)| line(id, text)).collect();
    let rest = train[removed.len()..].concat();
    let bench = Bench::new(&[("tests", tests.concat().as_bytes()), ("train", train.concat().as_bytes())]);
    let output = expect_success(bench.run("corpus -q --against tests --answer /answer train --report r --id /id"));
    assert_eq!(text(&output), rest);
    let told = text(&bench.run("corpus --against tests --answer /answer train").stderr);
    assert_contains_all(&told, &["more than 1 of 1000 documents", ": 1;"]);
    let report = json_values(&bench.read("r"));
    let documents = |test: usize| report[test]["documents"].as_array().unwrap();
    let contexts =
        |test| documents(test).iter().map(|document| document["context"].as_str().unwrap()).collect::<Vec<_>>();
    assert_eq!(
        contexts(0),
        [
            "a story [seven wise owls guard a secret old library] what then",
            "a story [seven wise owls guard the secret old library] then nothing"
        ]
    );
    assert_eq!(contexts(1), ["[what is the capital of france] it is paris everybody knows"]);
    assert_eq!(documents(1)[0]["grams"], Value::from(vec!["what is the capital of france"]));
    assert_eq!(contexts(3), ["8 [how many legs do spiders have] i knew it"]);
    assert_eq!([2, 4, 5].map(|test| documents(test).len()), [0; 3]);
    assert_eq!(
        report.iter().map(|test| test.get("common").is_some()).collect::<Vec<_>>(),
        [false, false, false, false, true, false]
    );
    // Without answers, the question is enough.
    let questions = [&*kept[3], &*kept[4]];
    let left = json_values(&bench.run("corpus -q --against tests train").stdout);
    assert_eq!(left.len(), train.len() - removed.len() - questions.len());
    // A pipe cannot be sampled before it is read, so changed copies are not found.
    let pipe = bench.fifo("pipe");
    let writer = thread::spawn(move || fs::write(pipe, train.concat()));
    let piped = bench.run("corpus --against tests --answer /answer pipe");
    writer.join().unwrap().unwrap();
    assert_eq!(json_values(&piped.stdout).len() + removed.len() - 1 + 40, texts.len());
    assert_contains_all(&text(&piped.stderr), &["no sample of", "name files"]);
    assert_contains_all(&bench.run_err("corpus --answer /answer train"), &["--against"]);
    // A name that no text has is told.
    let told = text(&bench.run("corpus --against tests --answer /answr train --report r --id /nope --force").stderr);
    assert_contains_all(&told, &["string or number at \"/answr\"", "no line has a value at \"/nope\""]);
}

/// Answers are columns of tables of tests, texts or numbers, and documents are rows of tables or lines.
#[cfg(feature = "parquet")]
#[test]
fn answers_are_columns_of_tables() {
    let row = |text: &str, number, other: &str| (text.to_owned(), number, other.to_owned());
    let table = |rows: &[crate::parquet::Row]| crate::parquet::table(rows, 2, parquet::basic::Compression::SNAPPY);
    let tests = [
        row("How many legs do spiders have?", 8, "eight"),
        row("How many teeth do adult dogs have?", 42, "forty-two of them"),
        row("How many wings does a bee have?", 4, "four"),
    ];
    let documents = [
        row("8! How many legs do spiders have? I knew it.", 0, ""),
        row("How many legs do spiders have? Eight.", 1, ""),
        row("How many teeth do adult dogs have: 40, or forty two of them?", 2, ""),
        row("How many wings does a bee have?", 3, ""),
    ];
    let lines: String = documents.iter().map(|(text, id, _)| line(*id as usize, text)).collect();
    let of_tests: String = tests
        .iter()
        .map(|(text, number, from)| {
            serde_json::json!({"text": text, "number": number, "from": from}).to_string() + "\n"
        })
        .collect();
    let bench = Bench::new(&[
        ("tests.parquet", &table(&tests)[..]),
        ("train.parquet", &table(&documents)),
        ("tests.jsonl", of_tests.as_bytes()),
        ("train.jsonl", lines.as_bytes()),
    ]);
    for (answer, left) in [("number", &[1, 2, 3][..]), ("from", &[0, 3])] {
        let run = |options: &str| bench.run_ok(&format!("corpus -q {options} --answer /{answer} --force --report r"));
        run("--column url -o out.parquet train.parquet --against tests.parquet");
        let rows = crate::parquet::read_with_marks(bench.read("out.parquet"));
        assert_eq!(rows.iter().map(|((_, id, _), _)| *id).collect::<Vec<_>>(), left, "{answer}");
        let found = |report: &[u8]| {
            let tests = json_values(report);
            tests.iter().map(|test| (test["found"].clone(), test["short"].clone())).collect::<Vec<_>>()
        };
        let of_tables = found(&bench.read("r"));
        let kept = json_values(run("train.jsonl --against tests.jsonl").as_bytes());
        assert_eq!(kept.iter().map(|line| line["id"].as_i64().unwrap()).collect::<Vec<_>>(), left, "{answer}");
        assert_eq!(of_tables, found(&bench.read("r")));
    }
}

/// Punctuation is not a word: unrelated pages often share runs of it.
#[test]
fn documents_without_words_of_a_test_are_kept() {
    let words = "one two three four five six seven eight nine ten eleven twelve";
    let rules =
        "|---|---|---|---|---|\n. . . . . . . . . . . . . . .\n────────────────────\n🇩🇪 👍🏽 * * * * * * * * * * * *";
    let test = line(1, &format!("{words} thirteen\n{rules}"));
    let train = line(1, &format!("{words} 13\n{rules}")) + &line(2, rules) + &line(3, &words.replace(' ', ", "));
    let bench = Bench::new(&[("tests", test.as_bytes()), ("train", train.as_bytes())]);
    assert_eq!(bench.run_ok("corpus --against tests train"), train);
    assert_eq!(bench.run_ok("corpus --against tests --normalize none train"), line(3, &words.replace(' ', ", ")));
    assert_eq!(bench.run_ok("corpus --against tests --ngram 12 train"), line(2, rules));
    // Exact comparison uses the same form.
    assert_eq!(bench.run_ok("corpus --against train --ngram 0 tests"), test);
    bench.write("loud", line(4, &words.to_uppercase().replace(' ', "")).as_bytes());
    assert_eq!(bench.run_ok("corpus --against train --ngram 0 loud"), "");
}

/// One known gram removes text, so a false-positive rate of 1 % would remove many documents.
#[test]
fn false_positives_remove_no_document() {
    let word = |i: usize| format!("w{i}");
    let tests = line(0, &(0..20_000).map(word).collect::<Vec<_>>().join(" "));
    let train: String =
        (0..500).map(|i| line(i, &(0..200).map(|j| word(j * 7919 + i)).collect::<Vec<_>>().join(" "))).collect();
    let bench = Bench::new(&[("tests", tests.as_bytes()), ("train", train.as_bytes())]);
    let output = bench.run("corpus --against tests train --stats=json --report r");
    assert!(text(&output.stdout) == train);
    assert_eq!(
        (number(&stats(&output), "found_grams"), number(&stats(&output), "expected_wrongly_removed")),
        (0.0, 0.0)
    );
    assert_eq!(json_values(&bench.read("r"))[0]["documents"], Value::Array(Vec::new()));
}

/// Such tests remove nothing.
#[test]
fn tests_without_grams_are_reported() {
    let tests = line(1, "yes") + &line(2, "Paris, of course!") + &line(3, "");
    let train = line(1, "yes") + &line(2, QUESTION);
    let bench = Bench::new(&[
        ("short", tests.as_bytes()),
        ("blank", line(1, " ").as_bytes()),
        ("some", (tests.clone() + &line(4, QUESTION)).as_bytes()),
        ("empty", b""),
        ("train", train.as_bytes()),
    ]);
    let words = "no text of 5 words or more, as --min-ngram asks, so nothing is removed";
    for (options, why) in [
        ("short", [words, "texts read: 3"]),
        ("empty", [words, "texts read: 0"]),
        ("short --against empty", [words, "texts read: 3"]),
        ("blank --ngram 0", ["no text, so nothing is removed", "texts read: 1"]),
    ] {
        let output = bench.run(&format!("corpus --against {options} train"));
        assert_eq!((text(&output.stdout), output.status.code()), (train.clone(), Some(0)));
        assert_contains_all(&text(&output.stderr), &[&["warning: "], &why[..]].concat());
        assert_eq!(text(&expect_success(bench.run(&format!("corpus -q --against {options} train")))), train);
    }
    assert_eq!(bench.run_ok("corpus --against some train"), line(1, "yes"));
    assert_eq!(bench.run_ok("corpus --against short --min-ngram 1 train"), line(2, QUESTION));
}

#[cfg(unix)]
#[test]
fn tests_are_read_once_and_never_written() {
    let bench = Bench::new(&[]);
    fs::create_dir_all(bench.path("all/tests")).unwrap();
    bench.write("all/a", line(1, QUESTION).as_bytes());
    bench.write("all/tests/b", line(2, QUESTION).as_bytes());
    // Tests in a directory of inputs are not inputs.
    assert_eq!(bench.run_ok("corpus --against all/tests all"), "");
    // Globs apply only to the inputs.
    assert_eq!(bench.run_ok("corpus --against all/tests --glob a all"), "");
    assert_eq!(bench.run_ok("corpus --against all/tests all --output-dir o"), "");
    assert!(bench.path("o/a").exists() && !bench.path("o/tests").exists());
    for (options, parts) in [
        ("all/a -o all/tests/b", ["all/tests/b", ""]),
        ("all/a --report all/tests/b", ["all/tests/b", ""]),
        ("all/a --report all/a", ["all/a", ""]),
        ("all/a --report r -o r", ["\"r\"", ""]),
        ("all/a --report all/tests/b --output-dir new", ["all/tests/b", ""]),
        ("all/a --report all/tests/b --in-place", ["all/tests/b", ""]),
        ("all/a --state s", ["--against", "--state"]),
        ("all/a --near 0.8", ["--against", "--near"]),
        ("all/a --drop-document", ["--against", "--drop-document"]),
        ("all/a -p 0.1", ["--against", "--fpr"]),
        ("all/a --ngram 0 --pairs p", ["--pairs", "--against"]),
        ("--against -", ["standard input", "--against"]),
        ("--against nowhere all/a", ["nowhere", ""]),
    ] {
        assert_contains_all(&bench.run_err(&format!("corpus --against all/tests {options}")), &parts);
        assert_eq!(
            text(&bench.read("all/tests/b")) + &text(&bench.read("all/a")),
            line(2, QUESTION) + &line(1, QUESTION)
        );
    }
    assert_contains_all(&bench.run_err("corpus --report r all"), &["--against"]);
    // An input is not replaced if the report cannot be written.
    assert_contains_all(
        &expect_failure(&bench.run("corpus --against all/tests --report /dev/full -o all/a all/a")),
        &["/dev/full"],
    );
    assert_eq!(text(&bench.read("all/a")), line(1, QUESTION));
    // A pipe may contain tests.
    let pipe = bench.fifo("pipe");
    let writer = thread::spawn(move || fs::write(pipe, line(3, QUESTION)));
    assert_eq!(bench.run_ok("corpus --against pipe all/a"), "");
    writer.join().unwrap().unwrap();
    // Lines without a text are errors in tests too.
    bench.write("bad", format!("{{}}\n{}", line(1, QUESTION)).as_bytes());
    assert_contains_all(&expect_failure(&bench.run("corpus --against bad all/a")), &["\"bad\", line 1"]);
    assert_eq!(text(&expect_success(bench.run("corpus --against bad --on-error skip --quiet all/a"))), "");
}
