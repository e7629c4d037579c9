//! The commands of the guide to corpora, docs/CORPUS.md.

use crate::common::{Bench, json_values};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

/// Returns words that occur in no other text.
fn words(of: usize, count: usize) -> Vec<String> {
    (0..count).map(|i| format!("w{of}x{i}")).collect()
}

/// Returns the documents of a folder, in the order of its files.
fn documents(bench: &Bench, folder: &str) -> Vec<Value> {
    let mut files: Vec<_> = fs::read_dir(bench.path(folder)).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let lines: String = files.iter().map(|file| fs::read_to_string(file).unwrap()).collect();
    json_values(lines.as_bytes())
}

fn ids(documents: &[Value]) -> BTreeSet<u64> {
    documents.iter().map(|document| document["id"].as_u64().unwrap()).collect()
}

const BOILERPLATE: &str =
    "these pages may be copied by all who read them as long as this line stays with each of the copies";

fn text(of: usize) -> String {
    format!("{BOILERPLATE}\n{}", words(of, 400).join(" "))
}

fn document(id: usize, score: f64, text: &str) -> String {
    json!({"id": id, "score": score, "text": text}).to_string() + "\n"
}

/// Returns a test that contains a part of a text in upper case.
fn test(id: usize) -> String {
    json!({"id": id, "text": words(id, 60)[20..].join(", ").to_uppercase()}).to_string() + "\n"
}

/// Returns a script of the page by its number.
fn script(number: usize) -> &'static str {
    let page = include_str!("../../../../docs/CORPUS.md");
    page.split("```sh\n").nth(number + 1).unwrap().split("```").next().unwrap()
}

#[test]
fn each_step_removes_the_documents_of_the_page() {
    // The best document of each group is in the last file.
    let mut raw = [String::new(), String::new(), String::new()];
    for id in 0..30 {
        raw[0] += &document(1000 + id, 0.1, &(text(id).to_uppercase() + "!"));
    }
    for id in 30..50 {
        raw[1] += &document(1000 + id, 0.2, &text(id).replace(&format!("w{id}x200 "), "another "));
    }
    for id in 0..100 {
        // One document quotes a passage of another in the middle of a paragraph.
        let text = if id == 90 { text(id).replacen("w90x200", &words(80, 160)[100..].join(" "), 1) } else { text(id) };
        raw[2] += &document(id, 0.9, &text);
    }
    let bench = Bench::new(&[]);
    ["raw", "tests"].iter().for_each(|folder| fs::create_dir(bench.path(folder)).unwrap());
    (0..).zip(&raw).for_each(|(i, lines)| bench.write(&format!("raw/{i}.jsonl"), lines.as_bytes()));
    bench.write("tests/tests.jsonl", [7, 40, 99].map(test).concat().as_bytes());

    let output = bench.bash(&format!("set -e\n{}", script(0))).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

    let distinct = documents(&bench, "1-distinct");
    assert_eq!(ids(&distinct), (0..100).chain(1030..1050).collect());
    let count = |document: &Value| 1 + u64::from(document["id"].as_u64().unwrap() < 30);
    assert!(distinct.iter().all(|document| document["count"] == count(document)));
    let equal = json_values(&bench.read("equal.jsonl"));
    assert_eq!(equal.len(), 30);
    assert!(equal.iter().all(|pair| pair["id"] == pair["kept"]["id"].as_u64().unwrap() + 1000));

    assert_eq!(ids(&documents(&bench, "2-apart")), (0..100).collect());
    assert_eq!(json_values(&bench.read("near.jsonl")).len(), 20);

    let paragraphs = documents(&bench, "3-paragraphs");
    let with = paragraphs.iter().filter(|document| document["text"].as_str().unwrap().contains(BOILERPLATE));
    assert_eq!((paragraphs.len(), with.count()), (100, 1));

    let passages = documents(&bench, "4-passages");
    assert!(paragraphs[90]["text"].as_str().unwrap().contains("w80x120"));
    let rest = text(90).replacen("w90x200 ", "", 1).replacen(&format!("{BOILERPLATE}\n"), "", 1);
    assert_eq!(
        (passages[80]["text"].as_str(), passages[90]["text"].as_str().map(str::trim)),
        (paragraphs[80]["text"].as_str(), Some(&*rest))
    );

    assert_eq!(ids(&documents(&bench, "5-clean")), (0..100).filter(|id| ![7, 40, 99].contains(id)).collect());
    let found = json_values(&bench.read("found.jsonl"));
    assert!(
        found.iter().all(|item| item["documents"][0]["id"] == item["id"] && item["found"] == item["grams"]),
        "{found:?}"
    );
}

/// Creates shards of two months. The second month repeats documents of the first or changes a word of them. Both months have
/// boilerplate and text of tests.
fn months() -> Bench {
    let bench = Bench::new(&[("month.sh", script(1).as_bytes())]);
    for folder in ["raw/2026-11", "raw/2026-12", "tests"] {
        fs::create_dir_all(bench.path(folder)).unwrap();
    }
    // Each shard is larger than the previous one.
    for (shard, ids) in [0..10, 10..30, 30..60].into_iter().enumerate() {
        let lines: String = ids.clone().map(|id| document(id, 0.5, &text(id))).collect();
        bench.write(&format!("raw/2026-11/{shard}"), lines.as_bytes());
        let again = |id: usize| match id % 3 {
            0 => text(id).to_uppercase(),
            1 => text(id).replace(&format!("w{id}x200 "), "another "),
            _ => text(100 + id),
        };
        let lines: String = ids.map(|id| document(100 + id, 0.9, &again(id))).collect();
        bench.write(&format!("raw/2026-12/{shard}"), lines.as_bytes());
    }
    bench.write("tests/tests.jsonl", [7, 40, 108, 150].map(test).concat().as_bytes());
    bench
}

/// Returns the files that the script writes, except states.
fn written(bench: &Bench) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut written = BTreeMap::new();
    let mut folders = vec![bench.path("")];
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            let name = path.strip_prefix(bench.path("")).unwrap().to_owned();
            if path.is_dir() {
                folders.push(path);
            } else if !name.to_str().unwrap().contains(".bloom") {
                written.insert(name, fs::read(path).unwrap());
            }
        }
    }
    written
}

#[test]
fn later_shards_are_compared_with_earlier_months() {
    let (whole, cut) = (months(), months());
    let run = |bench: &Bench, script: &str| bench.bash(script).output().unwrap();
    for (month, limits) in [("2026-11", [1, 16, 40]), ("2026-12", [1, 6, 12])] {
        let output = run(&whole, &format!("bash month.sh {month}"));
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        // Each step is interrupted once at each file size in KiB: while it writes a state, the first shard, or the second.
        for (step, limit) in (1..=5).flat_map(|step| limits.map(|limit| (step, limit))) {
            let limited = format!(
                "n=0; bloomline() {{ n=$((n + 1)); ( [ $n != {step} ] || ulimit -c 0 -f {limit}; command bloomline \"$@\" ); }}"
            );
            let output = run(&cut, &format!("{limited}\n. ./month.sh {month}"));
            assert!(!output.status.success(), "{month}, step {step}, {limit} KiB");
        }
        for _ in 0..2 {
            let output = run(&cut, &format!("bash month.sh {month}"));
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            let (expected, found) = (written(&whole), written(&cut));
            assert!(found.keys().eq(expected.keys()), "{month}: {:?}, not {:?}", found.keys(), expected.keys());
            expected.iter().for_each(|(name, bytes)| assert!(found[name] == *bytes, "{month}: {}", name.display()));
        }
    }
    let clean = ["5-clean/2026-11", "5-clean/2026-12"].map(|folder| documents(&whole, folder));
    assert_eq!(ids(&clean[0]), (0..60).filter(|id| ![7, 40].contains(id)).collect());
    assert_eq!(ids(&clean[1]), (100..160).filter(|id| id % 3 == 0 && ![108, 150].contains(id)).collect());
    let with = clean.concat();
    let with = with.iter().filter(|document| document["text"].as_str().unwrap().contains(BOILERPLATE));
    assert_eq!(with.count(), 1);
}
