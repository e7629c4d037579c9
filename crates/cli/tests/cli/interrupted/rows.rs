//! The table of jobs: one for each mode of each command.

use super::job::*;
use crate::common::random::{Random, mix};
use crate::common::{Bench, url_lines};
use crate::corpus::{bzip2, encode, gzip, xz, zstd};
use bloomline::{BloomFilter, FileErrorKind, ScalableBloomFilter};
use std::path::Path;

/// Returns `count` moments of all kinds.
pub fn moments(random: &mut Random, count: usize) -> Vec<Moment> {
    let mut moment = || {
        let fraction = random.below(100) as f64 / 100.0;
        match random.below(8) {
            0 | 1 => Moment::Write(fraction),
            2 => Moment::Full(fraction),
            3 => Moment::Kill(fraction),
            4 => Moment::Rename,
            5 => Moment::Checkpoint(random.below(8) as u32),
            6 => Moment::Signal("TERM", 15, fraction),
            _ => Moment::Signal("INT", 2, fraction),
        }
    };
    // These moments interrupt a job at its start.
    let first = [Moment::Write(0.1), Moment::Full(0.3)];
    first.into_iter().chain((2..count).map(|_| moment())).collect()
}

/// Returns `count` lines without line endings. About half of them repeat an earlier line.
pub fn lines(seed: u64, count: u64) -> Vec<String> {
    let mut random = Random(seed);
    let mut next = |i| {
        let number = if random.below(2) == 0 { i } else { random.below(i + 1) };
        line(seed << 32 | number)
    };
    (0..count).map(&mut next).collect()
}

fn line(number: u64) -> String {
    format!("{number}\thttps://example.org/{:x}/{}", mix(number), "path/".repeat((number % 17) as usize))
}

pub fn join_lines(lines: &[String], end: u8) -> Vec<u8> {
    lines.iter().flat_map(|line| line.bytes().chain([end])).collect()
}

fn text_of(seed: u64, count: u64) -> Vec<u8> {
    join_lines(&lines(seed, count), b'\n')
}

/// Compresses bytes into several members or frames. The first one is short.
fn in_parts(bytes: &[u8], compress: fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    let (first, rest) = bytes.split_at(bytes.len() / 5);
    [compress(first), compress(b""), compress(rest)].concat()
}

/// Returns the filters of a state, which must be valid.
#[track_caller]
pub fn stages(state: &Path) -> Vec<BloomFilter> {
    match BloomFilter::load(state) {
        Ok(filter) => vec![filter],
        Err(error) if matches!(error.kind(), FileErrorKind::Scalable) => {
            ScalableBloomFilter::load(state).unwrap().stages().to_vec()
        }
        Err(error) => panic!("the state cannot be loaded: {error}"),
    }
}

/// Returns the number of bits set in all filters of a state.
#[track_caller]
pub fn count_state_bits(state: &Path) -> u64 {
    let ones = |filter: &BloomFilter| (filter.fill_ratio() * filter.memory_bytes() as f64 * 8.0).round() as u64;
    stages(state).iter().map(ones).sum()
}

/// Returns the state of a run of a command over these lines.
fn state_of(command: &str, lines: &[u8]) -> Vec<u8> {
    let bench = Bench::new(&[("input", lines)]);
    bench.run_ok(&format!("{command} -s {STATE} -o output input"));
    bench.read(STATE)
}

/// Options for a filter that is saved quickly. The estimate for compressed inputs would be too high.
const SMALL: &str = "-p 1e-9 -n 5000 --when-full grow";

/// Options for a checkpoint after each chunk of 20,000 bytes.
pub const ALWAYS: [&str; 4] = ["--checkpoint", "0.001ms", "--chunk-size", "20000"];

/// Returns a job of `dedup` with a state.
fn dedup(name: &str, inputs: &[(&str, Vec<u8>)], options: &str) -> Job {
    let inputs: Vec<_> = inputs.iter().map(|(name, bytes)| (*name, bytes.clone())).collect();
    let job = Job::new(name, &inputs, &format!("dedup -s {STATE} {options}"), Kind::Same);
    Job { checkpoint_options: &ALWAYS, ..job }
}

pub fn plain() -> Job {
    dedup("plain", &[("in.txt", text_of(1, 30_000))], "-n 30000 -p 1e-9 --when-full warn -o out.txt")
}

pub fn several() -> Job {
    let mut unended = text_of(2, 10_000);
    unended.pop();
    let inputs =
        [("a.txt", unended), ("empty.txt", vec![]), ("b.txt", text_of(3, 5000)), ("c.txt", text_of(2, 15_000))];
    // The first stage is small, so there are many.
    dedup("several files, growing, an older state", &inputs, "-p 1e-9 -o out.txt --dupes dupes.txt")
        .with_state(state_of("dedup -n 500 --when-full grow -p 1e-9", &text_of(3, 1000)))
}

/// Returns a job whose state is planned for more than twice the lines, and shrunk at the end.
pub fn shrunk() -> Job {
    let options = "-n 100000 --when-full warn --shrink -o out.txt";
    dedup("shrunk", &[("in.txt", text_of(14, 30_000))], options)
}

pub fn faulty() -> Job {
    let faulty = |(i, line): (usize, String)| if i % 7 == 0 { line.replace('\t', " ") } else { line };
    let lines: Vec<String> = lines(11, 15_000).into_iter().enumerate().map(faulty).collect();
    let options = "--field 2 --trim --ignore-case --on-error keep -p 1e-9 -o out.txt --dupes dupes.txt";
    dedup("lines without a key", &[("in.txt", join_lines(&lines, b'\n'))], options)
}

pub fn gzipped() -> Job {
    dedup("gzip", &[("in", in_parts(&text_of(4, 20_000), gzip))], &format!("{SMALL} -o out.gz"))
}

pub fn lines_with_a_state() -> Vec<Job> {
    let mut random = Random(12);
    let repeats: Vec<String> = (0..15_000).map(|i| line(if i < 3000 { i } else { random.below(3000) })).collect();
    let short = (0..20_000).map(|i| format!("{i}\n")).collect::<String>().into_bytes();
    vec![
        plain(),
        several(),
        shrunk(),
        // The state is the longest file, so that a limit interrupts the run between a checkpoint and its state.
        dedup("short lines", &[("in", short)], "-n 500 --when-full grow -p 1e-13 -o out"),
        // At this rate false positives depend on all earlier lines, so a lost bit changes the output.
        dedup(
            "lossy, growing",
            &[("a.txt", text_of(8, 12_000)), ("b.gz", in_parts(&text_of(9, 12_000), gzip))],
            "-n 500 --when-full grow -p 0.2 -o out.txt --dupes dupes.txt",
        ),
        dedup("lossy, overfull", &[("in.txt", text_of(10, 10_000))], "-m 8K --invert -o out.txt"),
        // Between checkpoints, neither the state nor the output changes.
        dedup("repeats only", &[("in", join_lines(&repeats, b'\n'))], "-p 1e-9 -o out.txt --dupes dupes.txt"),
    ]
}

pub fn compressed_lines() -> Vec<Job> {
    let zstandards =
        [("a", in_parts(&text_of(5, 8000), zstd)), ("b", text_of(5, 4000)), ("c", in_parts(&text_of(6, 8000), zstd))];
    let others = [("a", in_parts(&text_of(15, 5000), xz)), ("b", in_parts(&text_of(16, 5000), bzip2))];
    vec![
        gzipped(),
        dedup("zstd", &zstandards, &format!("{SMALL} -o out.zst --dupes dupes.gz")),
        // The levels are the fastest, because each checkpoint starts a stream.
        dedup("xz", &others, &format!("{SMALL} --compress xz:0 -o out.xz --dupes dupes.xz")),
        dedup("bzip2", &others[1..], &format!("{SMALL} --compress bzip2:1 -o out.bz2")),
    ]
}

pub fn records_and_faults() -> Vec<Job> {
    let record = |(i, line): (usize, String)| format!("{{\"id\": {i},\n \"text\": \"{}\"}}", line.replace('\t', "\\t"));
    let records: Vec<String> = lines(7, 8000).into_iter().enumerate().map(record).collect();
    // Records span lines, and the headers of the files differ in quotes.
    let rows = |count, row: fn(usize, &str) -> String| {
        let lines = lines(17, count);
        let rows = lines.iter().enumerate().map(|(i, line)| row(i, line.split('\t').nth(1).unwrap()));
        rows.collect::<String>()
    };
    let a = format!("\"no\n.\",url\n{}", rows(4000, |i, url| format!("{i},\"{url}\n\"\r\n")));
    let b = format!("\"no\n.\",\"url\"\n{}", rows(5000, |i, url| format!("\"in {i}\n\n\",\"{url}\n\"\n")));
    let tables = [("a.csv", a.into_bytes()), ("b.csv.gz", in_parts(b.as_bytes(), gzip))];
    let mut fails = lines(13, 30_000);
    fails[25_000] = "no tab".to_owned();
    let fails = dedup(
        "an error near the end",
        &[("in.txt", join_lines(&fails, b'\n'))],
        "--field 2 -p 1e-9 -o out.txt --dupes dupes.txt",
    );
    vec![
        dedup("JSON, -z", &[("in", join_lines(&records, 0))], "-z --json-pointer /text -p 1e-9 --annotate -o out.json"),
        dedup("CSV with a header", &tables, &format!("--csv --header -f url {SMALL} -o out.csv --dupes dupes.csv.zst")),
        faulty(),
        Job { failure: Some("no key in \"in.txt\", line 25001:"), ..fails },
    ]
}

/// Returns a large file, files of all formats, and many small files.
fn crawl() -> Vec<(String, Vec<u8>)> {
    let line = |number: u64| format!("https://example.org/{number}/{}\n", "path/".repeat(number as usize % 7));
    let mut random = Random(7);
    let mut lines = |count, of| (0..count).map(|_| line(random.below(of))).collect::<String>().into_bytes();
    let mut crawl = vec![("in/large".to_owned(), lines(15_000, 10_000))];
    // Each checkpoint starts a stream, which is slow in xz.
    for (name, count) in
        [("a/x1.gz", 2500), ("a/x2.zst", 2500), ("b/x3.xz", 500), ("b/c/x4.bz2", 2500), ("b/x5.jsonl", 2500)]
    {
        crawl.push((format!("in/{name}"), lines(count, 12_500)));
    }
    crawl.extend((0..15).map(|i| (format!("in/small/{i:02}"), lines(20, 12_500))));
    crawl.push(("in/none.gz".to_owned(), Vec::new()));
    crawl.push(("in/repeats.gz".to_owned(), crawl[0].1[..crawl[0].1.len() / 2].to_vec()));
    crawl[1].1.pop();
    crawl.iter().map(|(name, bytes)| (name.clone(), encode(name, bytes))).collect()
}

/// Returns a job with these inputs.
fn job_of(name: &str, inputs: &[(String, Vec<u8>)], line: &str, kind: Kind) -> Job {
    let inputs: Vec<_> = inputs.iter().map(|(name, bytes)| (&**name, bytes.clone())).collect();
    Job::new(name, &inputs, line, kind)
}

pub fn folders() -> Vec<Job> {
    let crawl = crawl();
    let options = "-p 1e-9 -j 3 --chunk-size 2000 --checkpoint 1ms --output-dir o --manifest manifest";
    let row = |name: &str, more: &str, kind| job_of(name, &crawl, &format!("dedup -s {STATE} {options} {more}"), kind);
    vec![
        row("a folder", "", Kind::Spread),
        row("a folder, in order", "--in-order", Kind::Same),
        row("a folder, compressed", "--compress zstd:1:long=20", Kind::Spread),
    ]
}

/// Returns documents with repeated paragraphs, some of them with one changed word.
fn texts(count: u64) -> Vec<String> {
    let words = |number: u64| (0..1 + number % 23).map(move |i| format!("w{}", mix(number % 997 * 31 + i) % 65_521));
    let paragraph = |number: u64| {
        let mut words: Vec<String> = words(number).collect();
        if number.is_multiple_of(3) {
            let at = number as usize % words.len();
            words[at] = format!("x{number}");
        }
        words.join(" ")
    };
    let document = |i: u64| {
        let text: Vec<String> = (0..1 + i % 7).map(|j| paragraph(i * 31 + j * 17)).collect();
        format!("{{\"id\":{i},\"text\":\"{}\",\"score\":{}}}\n", text.join("\\n"), i % 1000)
    };
    (0..count).map(document).collect()
}

/// Returns three inputs. The second one, which is compressed, and the third one repeat documents of the first.
fn corpus_inputs(count: u64) -> Vec<(String, Vec<u8>)> {
    let texts = texts(count);
    let third = texts.len() / 3;
    [("in/a", texts.concat()), ("in/b.gz", texts[third / 2..2 * third].concat()), ("in/c", texts[..third].concat())]
        .map(|(name, text)| (name.to_owned(), encode(name, text.as_bytes())))
        .into()
}

pub fn documents() -> Vec<Job> {
    let inputs = corpus_inputs(1000);
    let options = format!("-s {STATE} -p 1e-9 -j 3 --chunk-size 3000 --checkpoint 1ms");
    let row = |name: &str, more: &str, kind| job_of(name, &inputs, &format!("corpus {options} {more}"), kind);
    let folder = "--output-dir o --manifest manifest";
    let by_paragraph = row("paragraphs, a folder", &format!("--ngram 0 {folder}"), Kind::Spread);
    vec![
        row("documents", "--ngram 3 --drop-document -o out.gz", Kind::Same),
        row("documents, a folder in order", &format!("--ngram 3 --drop-document --in-order {folder}"), Kind::Same),
        Job { by_paragraph: true, ..by_paragraph },
        row("near duplicates", "--near 0.8 -o out", Kind::Same),
    ]
}

pub fn groups() -> Vec<Job> {
    let inputs = corpus_inputs(1000);
    let row = |name: &str, line: &str| job_of(name, &inputs, &format!("{line} -s {STATE}"), Kind::Same);
    let whole = "corpus --by document --ngram 0";
    let known = state_of(&format!("{whole} --exact"), texts(500).concat().as_bytes());
    vec![
        row("groups", &format!("{whole} --keep max:/score --count --pairs pairs -o out")).with_state(known.clone()),
        row(
            "groups, a folder",
            &format!("{whole} --keep max:/score --clusters clusters --output-dir o --manifest manifest"),
        )
        .with_state(known),
        row("pairs of lines", "dedup --pairs pairs --clusters clusters.gz -o out"),
        row("clusters of near duplicates", "corpus --near 0.8 --pairs pairs -o out"),
    ]
}

pub fn in_place() -> Vec<Job> {
    // Each file has lines of earlier files, new lines, and repeats of the new lines.
    let contents =
        |i: u32| [url_lines(1500 * i..1500 * (i + 2)), url_lines(1500 * i..1500 * (i + 1)), url_lines(0..1000)];
    let names = ["a", "b.gz", "c", "d.zst", "e"];
    let inputs: Vec<_> =
        (0..).zip(names).map(|(i, name)| (name.to_owned(), encode(name, &contents(i).concat()))).collect();
    let row = |name: &str, line: &str| {
        job_of(name, &inputs, &format!("dedup -p 1e-9 -j 2 --chunk-size 5000 {line}"), Kind::InPlace)
    };
    let corpus = job_of("a corpus in place", &corpus_inputs(1000), "corpus --ngram 0 --in-place", Kind::InPlace);
    let substrings = "corpus --substrings 8 -j 2 --chunk-size 5000 --in-place";
    let substrings = job_of("runs of words in place", &corpus_inputs(600), substrings, Kind::InPlace);
    vec![
        // Words of every document may be cut.
        Job { key: |_| Vec::new(), ..substrings },
        row("in place", "--in-place"),
        row("an output that is an input", "-o c"),
        row("the last of equal lines, in an input", "--keep last -o c"),
        Job { by_paragraph: true, ..corpus },
    ]
}

pub fn without_a_state() -> Vec<Job> {
    let inputs = [("a".to_owned(), text_of(21, 8000)), ("b.gz".to_owned(), gzip(&text_of(22, 5000)))];
    let row = |name: &str, line: &str| job_of(name, &inputs, line, Kind::Anew);
    let folder = job_of("a folder without a state", &inputs, "dedup --output-dir o --force --in-order", Kind::Anew);
    let filter = state_of("dedup --when-full warn -n 30000 -p 1e-9", &text_of(23, 1000));
    vec![
        job_of("runs of words", &corpus_inputs(300), "corpus --substrings 8 --output-dir o --force", Kind::Anew),
        row("without a state", "dedup -p 1e-9 -o out --dupes dupes.gz"),
        row("exact", "dedup --exact -p 0.1 -o out"),
        row("counts", "dedup -c -o out"),
        row("the last of equal lines", "dedup --keep last -o out"),
        row("lines that come once", "dedup --unique -o out.zst"),
        row("a filter", &format!("build -n 30000 -p 1e-9 --no-shrink -o {STATE}")),
        row("more keys in a filter", &format!("build --append -o {STATE}")).with_state(filter),
        row("sets", "not-in --distinct -p 1e-9 -o out b.gz --"),
        folder,
    ]
}

#[cfg(feature = "parquet")]
pub fn tables() -> Vec<Job> {
    use crate::parquet::crawl as inputs;
    let tables = ["a.parquet", "b.parquet", "c.parquet"];
    let options = format!("dedup --column url -n 20000 -p 1e-9 -s {STATE} --checkpoint 1ms");
    let resumed = |name: &str, more: &str| job_of(name, &inputs(&tables), &format!("{options} {more}"), Kind::Same);
    let mixed = ["in/a.parquet", "in/b.jsonl", "in/c.parquet", "in/d.parquet", "in/e.jsonl"];
    // Each unit begins with its URL.
    let key = |unit: &[u8]| unit.split(|&byte| byte == b'"').find(|part| part.len() > 4).unwrap().to_vec();
    let folder = |name: &str, more: &str, kind| {
        let job = job_of(name, &inputs(&mixed), &format!("{options} --output-dir o {more}"), kind);
        Job { key, ..job }
    };
    let stateless = |name: &str, line: &str, kind| Job { key, ..job_of(name, &inputs(&tables), line, kind) };
    vec![
        resumed("rows", "-o out.parquet --dupes dupes.parquet"),
        resumed("rows with marks", "-o out.parquet --annotate"),
        folder("rows, a folder", "", Kind::Spread),
        folder("rows, a folder in order", "--in-order --manifest manifest", Kind::Same),
        stateless("rows in place", "dedup --column url -j 2 -p 1e-9 --in-place", Kind::InPlace),
        stateless("rows in an input", "dedup --column url -j 2 -p 1e-9 -o b.parquet", Kind::InPlace),
        stateless("rows without a state", "dedup --column url -p 1e-9 -o out.parquet", Kind::Anew),
        stateless("texts of rows", "corpus --column from --by document -o out.parquet", Kind::Anew),
        stateless("groups of rows", "dedup --column url --keep max:number --pairs pairs -o out.parquet", Kind::Anew),
        stateless("rows, a folder without a state", "dedup --column url --force --in-order --output-dir o", Kind::Anew),
    ]
}
