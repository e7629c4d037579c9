//! The page on a corpus: its commands, run.

use crate::common::{Bench, values};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;

/// Words that no other text has.
fn words(of: usize, count: usize) -> Vec<String> {
    (0..count).map(|i| format!("w{of}x{i}")).collect()
}

/// The documents of a folder, in the order of its files.
fn documents(bench: &Bench, folder: &str) -> Vec<Value> {
    let mut files: Vec<_> = fs::read_dir(bench.path(folder)).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let lines: String = files.iter().map(|file| fs::read_to_string(file).unwrap()).collect();
    values(lines.as_bytes())
}

fn ids(documents: &[Value]) -> BTreeSet<u64> {
    documents.iter().map(|document| document["id"].as_u64().unwrap()).collect()
}

#[test]
fn each_step_removes_what_the_page_says() {
    const BOILERPLATE: &str =
        "these pages may be copied by all who read them as long as this line stays with each of the copies";
    let page = include_str!("../../../docs/CORPUS.md");
    let script = page.split("```sh\n").nth(1).unwrap().split("```").next().unwrap();
    let document =
        |id: usize, score: f64, text: &str| json!({"id": id, "score": score, "text": text}).to_string() + "\n";
    let text = |of: usize| format!("{BOILERPLATE}\n{}", words(of, 400).join(" "));
    // The best of equal and of near ones comes last.
    let mut raw = [String::new(), String::new(), String::new()];
    for id in 0..30 {
        raw[0] += &document(1000 + id, 0.1, &(text(id).to_uppercase() + "!"));
    }
    for id in 30..50 {
        raw[1] += &document(1000 + id, 0.2, &text(id).replace(&format!("w{id}x200 "), "another "));
    }
    for id in 0..100 {
        raw[2] += &document(id, 0.9, &text(id));
    }
    let test = |id: usize| json!({"id": id, "text": words(id, 60)[20..].join(" ")}).to_string() + "\n";
    let bench = Bench::new(&[]);
    ["raw", "tests"].iter().for_each(|folder| fs::create_dir(bench.path(folder)).unwrap());
    (0..).zip(&raw).for_each(|(i, lines)| bench.write(&format!("raw/{i}.jsonl"), lines.as_bytes()));
    bench.write("tests/tests.jsonl", [7, 40, 99].map(test).concat().as_bytes());

    let output = bench.bash(&format!("set -e\n{script}")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

    let distinct = documents(&bench, "1-distinct");
    assert_eq!(ids(&distinct), (0..100).chain(1030..1050).collect());
    let count = |document: &Value| 1 + u64::from(document["id"].as_u64().unwrap() < 30);
    assert!(distinct.iter().all(|document| document["count"] == count(document)));
    let equal = values(&bench.read("equal.jsonl"));
    assert_eq!(equal.len(), 30);
    assert!(equal.iter().all(|pair| pair["id"] == pair["kept"]["id"].as_u64().unwrap() + 1000));

    assert_eq!(ids(&documents(&bench, "2-apart")), (0..100).collect());
    assert_eq!(values(&bench.read("near.jsonl")).len(), 20);

    let paragraphs = documents(&bench, "3-paragraphs");
    let with = paragraphs.iter().filter(|document| document["text"].as_str().unwrap().contains(BOILERPLATE));
    assert_eq!((paragraphs.len(), with.count()), (100, 1));

    assert_eq!(ids(&documents(&bench, "4-clean")), (0..100).filter(|id| ![7, 40, 99].contains(id)).collect());
    let found = values(&bench.read("found.jsonl"));
    assert!(
        found.iter().all(|item| item["documents"][0]["id"] == item["id"] && item["found"] == item["grams"]),
        "{found:?}"
    );
}
