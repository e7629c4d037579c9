//! `corpus --against`: what tests have goes, and a report tells of it. python/tests/test_against.py has a model of both.

use crate::common::{Bench, clean, failed, number, stats, tells, text, values};
use crate::documents::line;
use serde_json::Value;
use std::fs;
use std::thread;

const QUESTION: &str = "Which river flows through the city of 京都 and past the 鴨川デルタ on its way to the sea?";

#[test]
fn what_tests_have_goes_and_nothing_else() {
    let tests = [
        line(1, QUESTION),
        line(2, "Столица Франции? Париж!"),
        line(3, "ไม่มีใคร 👩\u{200D}👩\u{200D}👧 مرحبا 한국어 e\u{301} ไม่มีใคร"),
    ];
    let train = [
        line(1, &format!("A quiz:\n{QUESTION}\nThe Kamo.")),
        line(2, "Столица Франции? Париж!"),
        line(3, "Столица Франции? Париж! Да."),
        line(4, ""),
        line(5, "yes"),
    ];
    let bench = Bench::new(&[("tests", tests.concat().as_bytes()), ("train", train.concat().as_bytes())]);
    // What was blank before stays, as it is in nobody's tests.
    let kept = [&*train[2], &train[3], &train[4]].concat();
    assert_eq!(bench.clean("corpus --against tests train --report r --id /id"), kept);
    let told = values(&bench.read("r"));
    let found = told.iter().map(|item| number(item, "found"));
    assert!(found.eq([number(&told[0], "grams"), 1.0, 0.0]));
    let documents: Vec<_> = told.iter().map(|item| &item["documents"]).collect();
    assert_eq!((&documents[0][0]["line"], &documents[0][0]["id"]), (&Value::from(1), &Value::from(1)));
    assert_eq!(documents[1][0]["grams"], Value::from(vec!["Столица Франции? Париж!"]));
    assert_eq!(*documents[2], Value::Array(Vec::new()));
    assert_eq!(told.iter().map(|item| item.get("short").is_some()).collect::<Vec<_>>(), [false, true, false]);
    // By paragraph the rest stays. In each way that outputs are written it is the same.
    let cut = [line(1, "A quiz:\nThe Kamo."), train[2..].concat()].concat();
    assert_eq!(bench.clean("corpus --against tests --by paragraph train"), cut);
    assert_eq!(bench.clean("corpus --against tests --by paragraph --output-dir o train --report r2"), "");
    assert_eq!(text(&bench.read("o/train")), cut);
    assert_eq!(values(&bench.read("r2")).len(), 3);
    assert_eq!(text(&bench.run_with("corpus --against tests --by paragraph", "train").stdout), cut);
    bench.write("place", train.concat().as_bytes());
    assert_eq!(bench.clean("corpus --against tests --in-place place --report r3"), "");
    assert_eq!((text(&bench.read("place")), values(&bench.read("r3")).len()), (kept, 3));
    // Of texts that differ from the tests in what does not count.
    bench.write("loud", line(1, &QUESTION.to_uppercase()).as_bytes());
    assert_eq!(bench.clean("corpus --against tests loud"), line(1, &QUESTION.to_uppercase()));
    assert_eq!(bench.clean("corpus --against tests --normalize text loud"), "");
    assert_eq!(
        bench.clean("corpus --against tests --against loud --against train loud train"),
        [&*train[3], &train[4]].concat()
    );
}

/// A filter takes a hundredth of all grams for known, and a gram is enough.
#[test]
fn nothing_goes_by_mistake() {
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
    assert_eq!(values(&bench.read("r"))[0]["documents"], Value::Array(Vec::new()));
}

#[test]
fn tests_are_read_once_and_never_written() {
    let bench = Bench::new(&[]);
    fs::create_dir_all(bench.path("all/tests")).unwrap();
    bench.write("all/a", line(1, QUESTION).as_bytes());
    bench.write("all/tests/b", line(2, QUESTION).as_bytes());
    // What a directory has of them is no input.
    assert_eq!(bench.clean("corpus --against all/tests all"), "");
    assert_eq!(bench.clean("corpus --against all/tests all --output-dir o"), "");
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
        ("all/a --like dclm", ["--against", "--like"]),
        ("all/a -p 0.1", ["--against", "--fpr"]),
        ("all/a --ngram 0 --pairs p", ["--pairs", "--against"]),
        ("--against -", ["standard input", "--against"]),
        ("--against nowhere all/a", ["nowhere", ""]),
    ] {
        tells(&bench.refused(&format!("corpus --against all/tests {options}")), &parts);
        assert_eq!(
            text(&bench.read("all/tests/b")) + &text(&bench.read("all/a")),
            line(2, QUESTION) + &line(1, QUESTION)
        );
    }
    tells(&bench.refused("corpus --report r all"), &["--against"]);
    // What cannot be told is not done to an input either.
    tells(&failed(&bench.run("corpus --against all/tests --report /dev/full -o all/a all/a")), &["/dev/full"]);
    assert_eq!(text(&bench.read("all/a")), line(1, QUESTION));
    // By a pipe they are as good.
    let pipe = bench.fifo("pipe");
    let writer = thread::spawn(move || fs::write(pipe, line(3, QUESTION)));
    assert_eq!(bench.clean("corpus --against pipe all/a"), "");
    writer.join().unwrap().unwrap();
    // A line without a text is told, wherever it is.
    bench.write("bad", format!("{{}}\n{}", line(1, QUESTION)).as_bytes());
    tells(&failed(&bench.run("corpus --against bad all/a")), &["\"bad\", line 1"]);
    assert_eq!(text(&clean(bench.run("corpus --against bad --on-error skip --quiet all/a"))), "");
}
