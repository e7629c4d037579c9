//! The commands of the documentation pages, and input files with the names that they use.

use super::Bench;
use flate2::{Compression, write::GzEncoder};
use serde_json::json;
use std::fs;
use std::io::Write;

/// Returns the scripts in the shell blocks of a page. Blank lines separate the scripts of a block.
pub fn scripts(page: &str) -> Vec<String> {
    let blocks = page.split("\n```").filter_map(|block| block.strip_prefix("sh\n").or(block.strip_prefix("text\n")));
    let scripts = blocks.flat_map(|block| block.split("\n\n")).filter(|script| script.contains("bloomline "));
    scripts.map(str::to_owned).collect()
}

/// Runs a script on two days in a folder with the files that the pages name. Some files differ on the second day. The script must
/// succeed on both days, and no output may be empty.
#[track_caller]
pub fn run(script: &str) {
    let bench = Bench::new(&[]);
    for day in 1..=2 {
        write_input_files(&bench, day);
        let date = [("+%F", format!("2026-11-0{day}")), ("+%Y-%m", format!("2026-1{day}"))];
        let dated = |text: String, (format, date): &(&str, String)| text.replace(&format!("$(date {format})"), date);
        let dated = date.iter().fold(script.replace("$month", "$(date +%Y-%m)"), dated);
        let outputs = dated.split("-o ").skip(1).chain(dated.split("> ").skip(1));
        let outputs = outputs.filter_map(|rest| rest.split_whitespace().next());
        let outputs: Vec<&str> = outputs.map(|output| output.trim_matches('"')).collect();
        if day == 1 {
            // A file that a script only writes must not exist before.
            for output in outputs.iter().filter(|output| dated.matches(**output).count() == 1) {
                let _ = fs::remove_file(bench.path(output));
            }
        }
        let cases: String = date.iter().map(|(format, date)| format!("{format}) echo {date};;\n")).collect();
        let script = format!("set -eo pipefail\ndate() {{ case $1 in\n{cases}esac; }}\n{script}");
        let output = bench.bash(&script).output().unwrap();
        assert!(output.status.success(), "day {day}: {script}\n{}", String::from_utf8_lossy(&output.stderr));
        for output in outputs {
            assert!(fs::metadata(bench.path(output)).unwrap().len() > 0, "day {day}: {script}\n{output} is empty");
        }
    }
}

/// Returns lines. The next file repeats some of them.
fn lines(file: usize) -> Vec<u8> {
    let line = |i: usize| format!("https://example.org/{0}?page={0}\n", (i + 30 * file) % 200);
    (0..60).map(line).collect::<String>().into_bytes()
}

/// Returns documents. The next file repeats some of them.
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
const DOCUMENTS: [&str; 10] = [
    "corpus.jsonl.zst",
    "crawl.jsonl.gz",
    "crawl.jsonl.zst",
    "crawl/2026-11/a.jsonl.gz",
    "crawl/b.jsonl.gz",
    "crawl/c-test.jsonl.gz",
    "crawl/2026-12/a.jsonl.gz",
    "pages.jsonl.gz",
    "tests/one.jsonl",
    "train/one.jsonl",
];
const TABLES: [&str; 2] = ["pages-1.csv", "pages-2.csv"];

fn write_input_files(bench: &Bench, day: usize) {
    let write = |names: &[&str], make: fn(usize) -> Vec<u8>| {
        for (i, name) in names.iter().enumerate() {
            fs::create_dir_all(bench.path(name).parent().unwrap()).unwrap();
            bench.write(name, &compress_by_name(name, make(i + day - 1)));
        }
    };
    write(&LINES, lines);
    write(&DOCUMENTS, documents);
    write(&TABLES, table);
    // The file must be older than the crawl for `find -newer`.
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(86_400);
    fs::File::open(bench.path("yesterday")).unwrap().set_modified(old).unwrap();
    #[cfg(feature = "parquet")]
    for name in ["data/one", "train-1", "train-2"] {
        let name = format!("{name}.parquet");
        fs::create_dir_all(bench.path(&name).parent().unwrap()).unwrap();
        bench.write(&name, &parquet(day));
    }
}

/// Returns a Parquet file with the columns that the pages name.
#[cfg(feature = "parquet")]
fn parquet(day: usize) -> Vec<u8> {
    use arrow_array::{ArrayRef, RecordBatch, StringArray};
    let column = |of: &str| {
        let values = (0..60).map(|i| format!("{of} {}", day + i % 40));
        std::sync::Arc::new(StringArray::from_iter_values(values)) as ArrayRef
    };
    let batch = RecordBatch::try_from_iter([("url", column("url")), ("text", column("text"))]).unwrap();
    let mut writer = parquet::arrow::ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.into_inner().unwrap()
}
