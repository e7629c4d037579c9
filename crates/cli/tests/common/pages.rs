//! The commands of the pages, and files such as they name.

use super::Bench;
use flate2::{Compression, write::GzEncoder};
use serde_json::json;
use std::fs;
use std::io::Write;

/// The scripts of a page, from its shell blocks. Blank lines separate the scripts of one block.
pub fn scripts(page: &str) -> Vec<String> {
    let blocks = page.split("\n```").filter_map(|block| block.strip_prefix("sh\n").or(block.strip_prefix("text\n")));
    let scripts = blocks.flat_map(|block| block.split("\n\n")).filter(|script| script.contains("bloomline "));
    scripts.map(str::to_owned).collect()
}

/// Runs a script in a folder with the files that the pages name. It must succeed, and no output may be empty.
#[track_caller]
pub fn run(script: &str) {
    let bench = Bench::new(&[]);
    write_input_files(&bench);
    // What is only put out is not there before.
    let outputs = script.split("-o ").skip(1).chain(script.split("> ").skip(1));
    let outputs: Vec<&str> = outputs.filter_map(|rest| rest.split_whitespace().next()).collect();
    for output in outputs.iter().filter(|output| script.matches(**output).count() == 1) {
        let _ = fs::remove_file(bench.path(output));
    }
    let output = bench.bash(&format!("set -eo pipefail\n{script}")).output().unwrap();
    assert!(output.status.success(), "{script}\n{}", String::from_utf8_lossy(&output.stderr));
    for output in outputs {
        assert!(fs::metadata(bench.path(output)).unwrap().len() > 0, "{script}\n{output} is empty");
    }
}

/// Runs a script on two days, as it is. Before each its outputs are moved away, and its states stay.
#[track_caller]
pub fn run_daily(script: &str) {
    let bench = Bench::new(&[]);
    write_input_files(&bench);
    let outputs = ["-o ", "--output-dir ", "--manifest "].map(|option| script.split(option).skip(1));
    let outputs = outputs.into_iter().flatten().filter_map(|rest| rest.split_whitespace().next());
    let outputs: Vec<&str> = outputs.collect();
    for day in 1..=2 {
        for output in &outputs {
            let _ = fs::rename(bench.path(output), bench.path(&format!("{output}.{day}")));
        }
        let output = bench.bash(&format!("set -eo pipefail\n{script}")).output().unwrap();
        assert!(output.status.success(), "day {day}: {script}\n{}", String::from_utf8_lossy(&output.stderr));
    }
}

/// Lines. The next file repeats some of them.
fn lines(file: usize) -> Vec<u8> {
    let line = |i: usize| format!("https://example.org/{0}?page={0}\n", (i + 30 * file) % 200);
    (0..60).map(line).collect::<String>().into_bytes()
}

/// Documents. The next file repeats some of them.
fn documents(file: usize) -> Vec<u8> {
    let document = |i: usize| {
        let id = (i + 10 * file) % 50;
        let words: Vec<String> = (0..40).map(|word| format!("w{id}x{word}")).collect();
        let source = ["books", "web"][id % 2];
        let url = format!("https://example.org/{id}");
        json!({"id": id, "url": url, "source": source, "score": file, "text": words.join(" ")}).to_string() + "\n"
    };
    (0..20).map(document).collect::<String>().into_bytes()
}

fn table(file: usize) -> Vec<u8> {
    let row = |i: usize| format!("https://example.org/{},Title {},{i}\n", (i + 30 * file) % 50, i % 3);
    let header = "url,title,rank\n".to_owned();
    (header + &(0..60).map(row).collect::<String>()).into_bytes()
}

fn compress_by_name(name: &str, bytes: Vec<u8>) -> Vec<u8> {
    if name.ends_with(".gz") {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(&bytes).unwrap();
        encoder.finish().unwrap()
    } else if name.ends_with(".zst") {
        zstd::encode_all(&bytes[..], 1).unwrap()
    } else {
        bytes
    }
}

const LINES: [&str; 20] = [
    "all.txt",
    "archive/one.txt",
    "archive/two.txt",
    "crawl-1.gz",
    "crawl-2.gz",
    "lists/one.txt",
    "lists/two.txt",
    "monday.txt",
    "new.txt",
    "old.txt",
    "others.txt",
    "part-7.txt",
    "sunday.txt",
    "today-1.gz",
    "today-2.gz",
    "today.txt",
    "tuesday.txt",
    "urls.txt",
    "log.csv",
    "yesterday",
];
const DOCUMENTS: [&str; 9] = [
    "corpus.jsonl.zst",
    "crawl.jsonl.gz",
    "crawl.jsonl.zst",
    "crawl/2026/a.jsonl.gz",
    "crawl/b.jsonl.gz",
    "crawl/c-test.jsonl.gz",
    "pages.jsonl.gz",
    "tests/one.jsonl",
    "train/one.jsonl",
];
const TABLES: [&str; 2] = ["pages-1.csv", "pages-2.csv"];

fn write_input_files(bench: &Bench) {
    let write = |names: &[&str], make: fn(usize) -> Vec<u8>| {
        for (i, name) in names.iter().enumerate() {
            fs::create_dir_all(bench.path(name).parent().unwrap()).unwrap();
            bench.write(name, &compress_by_name(name, make(i)));
        }
    };
    write(&LINES, lines);
    write(&DOCUMENTS, documents);
    write(&TABLES, table);
    // Older than the crawl, for `find -newer`.
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(86_400);
    fs::File::open(bench.path("yesterday")).unwrap().set_modified(old).unwrap();
    #[cfg(feature = "parquet")]
    for name in ["data/one.parquet", "train-1.parquet", "train-2.parquet", "fineweb/2026-11/one.parquet"] {
        fs::create_dir_all(bench.path(name).parent().unwrap()).unwrap();
        bench.write(name, &parquet());
    }
}

/// A file of Parquet with the columns that the pages name.
#[cfg(feature = "parquet")]
fn parquet() -> Vec<u8> {
    use arrow_array::{ArrayRef, RecordBatch, StringArray};
    let column = |of: &str| {
        let values = (0..60).map(|i| format!("{of} {}", i % 40));
        std::sync::Arc::new(StringArray::from_iter_values(values)) as ArrayRef
    };
    let batch = RecordBatch::try_from_iter([("url", column("url")), ("text", column("text"))]).unwrap();
    let mut writer = parquet::arrow::ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.into_inner().unwrap()
}
