//! Files of Parquet while the command is killed, and on disks that are full.

use crate::common::{Bench, failed, limited, signal, tells, text};
use crate::resume::job::Random;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, StringArray, StructArray};
use arrow_schema::{DataType, Field};
use bytes::Bytes;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Output};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// A row: its key, another value of the same key, and where it was written first.
type Row = (String, i64, String);

/// So many rows of a file, whose keys repeat within and across files.
fn rows(random: &mut Random, file: &str, count: u64) -> Vec<Row> {
    let row = |i| {
        let number = random.below(9_000);
        (
            format!("https://example.org/{number}/{}", "path/".repeat(number as usize % 9)),
            number as i64,
            format!("{file}:{i}"),
        )
    };
    (0..count).map(row).collect()
}

/// A file of Parquet with row groups of so many rows.
pub fn table(rows: &[Row], group: usize, compression: Compression) -> Vec<u8> {
    let texts = |text: fn(&Row) -> &str| Arc::new(StringArray::from_iter_values(rows.iter().map(text))) as ArrayRef;
    let numbers = Arc::new(Int64Array::from_iter_values(rows.iter().map(|(_, number, _)| *number))) as ArrayRef;
    let columns = [("from", texts(|row| &row.2)), ("number", numbers), ("url", texts(|row| &row.0))];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let properties =
        WriterProperties::builder().set_compression(compression).set_max_row_group_row_count(Some(group)).build();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.into_inner().unwrap()
}

/// The rows of a file of Parquet, with the value of the column `bloomline` if there is one.
#[track_caller]
fn read_with_marks(bytes: Vec<u8>) -> Vec<(Row, Option<String>)> {
    let reader = ParquetRecordBatchReaderBuilder::try_new(Bytes::from(bytes)).unwrap().build().unwrap();
    let mut rows = Vec::new();
    for batch in reader {
        let batch = batch.unwrap();
        let texts = |name: &str| batch.column_by_name(name).map(|texts| texts.as_string::<i32>().clone());
        let (urls, froms, marks) = (texts("url").unwrap(), texts("from").unwrap(), texts("bloomline"));
        let numbers = batch.column_by_name("number").unwrap().as_primitive::<Int64Type>();
        assert_eq!(urls.null_count() + froms.null_count() + numbers.null_count(), 0);
        rows.extend((0..batch.num_rows()).map(|row| {
            let values = (urls.value(row).to_owned(), numbers.value(row), froms.value(row).to_owned());
            (values, marks.as_ref().map(|marks| marks.value(row).to_owned()))
        }));
    }
    rows
}

#[track_caller]
fn read(bytes: Vec<u8>) -> Vec<Row> {
    read_with_marks(bytes).into_iter().map(|(row, _)| row).collect()
}

fn lines(rows: &[Row]) -> Vec<u8> {
    let line = |(url, number, from): &Row| format!("{{\"url\":\"{url}\",\"number\":{number},\"from\":\"{from}\"}}\n");
    rows.iter().map(line).collect::<String>().into_bytes()
}

/// The rows of a file of either kind, which must be whole.
#[track_caller]
fn contents(name: &str, bytes: Vec<u8>) -> Vec<Row> {
    if name.ends_with(".parquet") {
        return read(bytes);
    }
    let row = |line: &str| {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        let text = |name: &str| line[name].as_str().unwrap().to_owned();
        (text("url"), line["number"].as_i64().unwrap(), text("from"))
    };
    text(&bytes).lines().map(row).collect()
}

/// The rows whose keys come for the first time, and the others.
fn model(rows: impl IntoIterator<Item = Row>) -> (Vec<Row>, Vec<Row>) {
    let mut seen = HashSet::new();
    rows.into_iter().partition(|(url, ..)| seen.insert(url.clone()))
}

/// What is killed, and what it must leave.
struct Job {
    bench: Bench,
    options: &'static str,
    inputs: Vec<(&'static str, Vec<Row>)>,
}

const ONE_OUTPUT: &str = "-o out.parquet --dupes dupes.parquet";
const MARKED: &str = "-o out.parquet --annotate";
const FOLDER: &str = "--output-dir out";
const IN_ORDER: &str = "--output-dir out --in-order";

impl Job {
    fn new(options: &'static str) -> Self {
        let mut random = Random(options.len() as u64);
        let names = match options {
            FOLDER | IN_ORDER => &["a.parquet", "b.jsonl", "c.parquet", "d.parquet", "e.jsonl"][..],
            _ => &["a.parquet", "b.parquet", "c.parquet"],
        };
        let bench = Bench::new(&[]);
        let mut inputs = Vec::new();
        for (i, &name) in names.iter().enumerate() {
            let mut rows = rows(&mut random, name, 4000);
            if i == 2 {
                // Row groups of which nothing stays, and, at the end, all.
                let repeats: Vec<Row> = inputs.first().map(|(_, rows): &(_, Vec<Row>)| rows[..1000].to_vec()).unwrap();
                rows.splice(..1000, repeats);
                rows.extend((0..500).map(|i| (format!("own {i}"), i, format!("{name}:own {i}"))));
            }
            let compression = [Compression::SNAPPY, Compression::UNCOMPRESSED, Compression::LZ4_RAW][i % 3];
            let bytes = if name.ends_with("l") { lines(&rows) } else { table(&rows, 70 + 30 * i, compression) };
            bench.write(name, &bytes);
            inputs.push((name, rows));
        }
        Self { bench, options, inputs }
    }

    fn command(&self, more: &str) -> Command {
        let mut command = self.bench.command("dedup -q --column url -n 20000 -p 1e-9 -s state --checkpoint 1ms");
        command.args(self.options.split(' ')).args(more.split_whitespace());
        command.args(self.inputs.iter().map(|(name, _)| name));
        command
    }

    /// As before the first run.
    fn clear(&self) {
        for entry in fs::read_dir(self.bench.0.path()).unwrap().map(Result::unwrap) {
            match entry.file_name().to_str().unwrap() {
                "out" => fs::remove_dir_all(entry.path()).unwrap(),
                name if self.inputs.iter().any(|(input, _)| *input == name) => {}
                _ => fs::remove_file(entry.path()).unwrap(),
            }
        }
    }

    fn is_whole(&self) -> bool {
        let printed = self.bench.path("out").exists()
            || self.bench.path("out.parquet").metadata().is_ok_and(|output| output.len() > 0);
        printed && self.bench.path("state").exists() && !self.bench.goes_on("state")
    }

    /// The files of the folder of outputs that have their names.
    fn named(&self) -> BTreeMap<String, Vec<u8>> {
        let Ok(entries) = fs::read_dir(self.bench.path("out")) else { return BTreeMap::new() };
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let names = names.filter(|name| !name.ends_with(".part"));
        names.map(|name| (name.clone(), self.bench.read(&format!("out/{name}")))).collect()
    }

    /// What a run left before its end: files with their names are whole, and stay.
    fn check_named(&self, before: &mut BTreeMap<String, Vec<u8>>) {
        let named = self.named();
        for (name, bytes) in &*before {
            assert!(named.get(name) == Some(bytes), "{name} changed after it had its name");
        }
        for (name, bytes) in &named {
            contents(name, bytes.clone());
        }
        *before = named;
    }

    fn check(&self) {
        let all = || self.inputs.iter().flat_map(|(_, rows)| rows.iter().cloned());
        let (first, repeats) = model(all());
        match self.options {
            ONE_OUTPUT => {
                assert!(read(self.bench.read("out.parquet")) == first, "out.parquet");
                assert!(read(self.bench.read("dupes.parquet")) == repeats, "dupes.parquet");
            }
            MARKED => {
                let mut seen = HashSet::new();
                let mut mark = |row: &Row| if seen.insert(row.0.clone()) { "new" } else { "dup" }.to_owned();
                let expected: Vec<_> = all().map(|row| (row.clone(), Some(mark(&row)))).collect();
                assert!(read_with_marks(self.bench.read("out.parquet")) == expected, "out.parquet");
            }
            _ => {
                let named = self.named();
                assert_eq!(fs::read_dir(self.bench.path("out")).unwrap().count(), self.inputs.len());
                let mut kept = Vec::new();
                for (name, rows) in &self.inputs {
                    let left = contents(name, named[*name].clone());
                    let mut own = rows.iter();
                    assert!(
                        left.iter().all(|row| own.any(|other| other == row)),
                        "{name} has other rows, or another order"
                    );
                    kept.extend(left);
                }
                if self.options == IN_ORDER {
                    assert!(kept == first, "other rows than the first");
                }
                let keys = |rows: &[Row]| rows.iter().map(|row| row.0.clone()).collect::<BTreeSet<_>>();
                assert!(kept.len() == first.len() && keys(&kept) == keys(&first), "each key once");
            }
        }
    }
}

/// Ends a process after a while: `KILL`, or `TERM` and what comes of that.
fn end(mut child: Child, after: Duration, terminate: bool) -> Output {
    thread::sleep(after);
    if terminate {
        signal(&child, "TERM");
    } else {
        child.kill().unwrap();
    }
    child.wait_with_output().unwrap()
}

/// Ends each job again and again at any moment, and resumes it to its end.
fn resume_after_kills(tries: u64) {
    let mut random = Random(0x000B_1012);
    let (mut killed, mut ended, mut missed, mut continued) = (0, 0, 0, 0);
    let jobs = [ONE_OUTPUT, MARKED, FOLDER, IN_ORDER].map(Job::new);
    for job in &jobs {
        job.clear();
        let started = Instant::now();
        let output = job.command("").output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        let mut duration = started.elapsed();
        job.check();
        let mut left = tries / jobs.len() as u64;
        while left > 0 {
            job.clear();
            let (mut resume, mut named) = ("", BTreeMap::new());
            while left > 0 && !job.is_whole() {
                let (terminate, threads) = (random.below(3) == 0, random.one_of(&["-j 1", "-j 2", "-j 4"]));
                continued += u64::from(job.bench.path("state").exists());
                let child = job.command(&format!("{threads} {resume}")).spawn().unwrap();
                let output = end(child, random.moment(duration), terminate);
                match (output.status.code(), output.status.signal()) {
                    // The first run may have been a slow one.
                    (Some(0), _) => (duration, missed) = (duration.mul_f64(0.9), missed + 1),
                    (Some(143), _) => ended += 1,
                    (None, Some(9 | 15)) => killed += 1,
                    _ => panic!("{} {resume}: {} {}", job.options, output.status, text(&output.stderr)),
                }
                assert!(missed < 100 + 10 * tries, "{killed} killed, {ended} ended by a signal, {missed} missed");
                left -= u64::from(!output.status.success());
                // Or a fast one.
                if !job.bench.path("state").exists() {
                    duration = duration.mul_f64(1.05);
                }
                job.check_named(&mut named);
                resume = "--resume";
            }
            if !job.is_whole() {
                let output = job.command("--resume").output().unwrap();
                assert!(output.status.success(), "{}: {}", job.options, text(&output.stderr));
            }
            job.check_named(&mut named);
            job.check();
        }
    }
    eprintln!("{killed} killed, {ended} ended by a signal, {missed} missed, {continued} went on with a state");
    assert!(4 * continued >= tries, "{continued}");
}

#[test]
fn each_key_comes_once_after_12_kills() {
    resume_after_kills(12);
}

#[test]
#[ignore = "takes long"]
fn each_key_comes_once_after_40_kills() {
    resume_after_kills(40);
}

/// Runs until one is ended by SIGTERM after its first rows, and before its last.
fn terminated(bench: &Bench, line: &str, has_begun: impl Fn() -> bool) -> Output {
    for _ in 0..50 {
        let child = bench.command(line).spawn().unwrap();
        let started = Instant::now();
        while !has_begun() && started.elapsed() < Duration::from_secs(20) {
            thread::yield_now();
        }
        let output = end(child, Duration::from_millis(1), true);
        if output.status.code() == Some(143) {
            return output;
        }
        assert!(output.status.success(), "{line}: {}", text(&output.stderr));
        fs::remove_file(bench.path("out")).ok();
    }
    panic!("each run was faster than its signal");
}

#[test]
fn an_output_has_its_end_when_a_run_is_ended() {
    let rows = rows(&mut Random(7), "in", 20_000);
    let bench = Bench::new(&[("in", &table(&rows, 50, Compression::UNCOMPRESSED))]);
    let (first, _) = model(rows);
    let has_begun = || bench.path("out").metadata().is_ok_and(|output| output.len() > 0);
    terminated(&bench, "dedup -q -j 2 --column url -p 1e-9 -o out in", has_begun);
    let left = read(bench.read("out"));
    assert!(!left.is_empty() && left.len() < first.len() && left == first[..left.len()], "{}", left.len());
    // A folder has no part of it.
    fs::remove_file(bench.path("out")).unwrap();
    let has_begun = || bench.path("out/in.part").metadata().is_ok_and(|output| output.len() > 0);
    terminated(&bench, "dedup -q -j 2 --column url -p 1e-9 --force --output-dir out in", has_begun);
    assert_eq!(fs::read_dir(bench.path("out")).unwrap().count(), 0);
}

/// At any moment a name has the old file or all of the new one.
fn kill_in_place(tries: u64) {
    let names = ["a", "b", "c", "d"];
    let mut random = Random(5);
    let files: Vec<_> = names.iter().map(|name| (*name, rows(&mut random, name, 3000))).collect();
    let old: Vec<Vec<u8>> = files.iter().map(|(_, rows)| table(rows, 100, Compression::SNAPPY)).collect();
    let all = || files.iter().flat_map(|(_, rows)| rows.iter().cloned());
    let first = model(all()).0;
    let in_place: Vec<Vec<Row>> =
        files.iter().map(|(name, _)| first.iter().filter(|row| row.2.starts_with(*name)).cloned().collect()).collect();
    for one in [true, false] {
        let bench = Bench::new(&[]);
        let reset = || names.iter().zip(&old).for_each(|(name, old)| bench.write(name, old));
        let line = if one {
            "dedup --column url -q -j 2 -p 1e-9 -o b"
        } else {
            "dedup --column url -q -j 2 -p 1e-9 --in-place"
        };
        let run = || bench.command(line).args(names).spawn().unwrap();
        let new = |i: usize| match one {
            true if i == 1 => &first,
            true => &files[i].1,
            false => &in_place[i],
        };
        reset();
        let started = Instant::now();
        assert!(run().wait().unwrap().success());
        let (mut duration, mut killed, mut between) = (started.elapsed(), 0, 0);
        for _ in 0..tries / 2 {
            reset();
            let output = end(run(), random.moment(duration), random.below(4) == 0);
            // So that about two of three runs are met, at any moment.
            if output.status.success() {
                duration = duration.mul_f64(0.9);
            } else {
                (duration, killed) = (duration.mul_f64(1.05), killed + 1);
            }
            let found: Vec<Vec<u8>> = names.iter().map(|name| bench.read(name)).collect();
            for (i, name) in names.iter().enumerate().filter(|(i, _)| found[*i] != old[*i]) {
                assert!(read(found[i].clone()) == *new(i), "{name} is neither the old nor the new file");
            }
            let keys = |rows: &mut dyn Iterator<Item = Row>| rows.map(|row| row.0).collect::<HashSet<_>>();
            let left = keys(&mut found.iter().flat_map(|bytes| read(bytes.clone())));
            assert!(left == keys(&mut all()), "a key is in no file");
            between += u64::from(found != old && found.iter().zip(&old).any(|(found, old)| found == old));
            assert!(run().wait().unwrap().success());
            let parts = fs::read_dir(bench.0.path()).unwrap().count();
            assert_eq!(parts, names.len(), "a part is left");
        }
        eprintln!("{line}: {} tries, {killed} killed, {between} between two files", tries / 2);
        assert!(killed * 4 >= tries / 2, "{killed}");
    }
}

#[test]
fn files_are_replaced_whole_or_not_at_all() {
    kill_in_place(8);
}

#[test]
#[ignore = "takes long"]
fn files_are_replaced_whole_or_not_at_all_by_40_kills() {
    kill_in_place(40);
}

/// Nothing goes, and each column of the key gets its filter.
#[test]
fn filters_of_columns_are_written_in_place() {
    let all: Vec<Row> = (0..9).map(|i| (format!("u{i}"), i, format!("f{i}"))).collect();
    let bench = Bench::new(&[("t.parquet", &table(&all, 100, Compression::SNAPPY))]);
    bench.clean("dedup --column url --in-place --column-filter t.parquet");
    let bytes = bench.read("t.parquet");
    let reader = ParquetRecordBatchReaderBuilder::try_new(Bytes::from(bytes.clone())).unwrap();
    let columns = reader.metadata().row_group(0).columns();
    let filtered = columns.iter().filter(|column| column.bloom_filter_offset().is_some());
    assert_eq!(filtered.map(|column| column.column_path().string()).collect::<Vec<_>>(), ["url"]);
    assert_eq!(read(bytes), all);
}

/// Tables under a name of lines, or of what is compressed as a whole.
#[test]
fn tables_go_where_the_name_does_not_claim_lines() {
    let rows = rows(&mut Random(1), "a", 100);
    let bench = Bench::new(&[("in", &table(&rows, 10, Compression::SNAPPY)), ("there.csv", b"precious")]);
    for name in [
        "w.jsonl.gz",
        "w.csv",
        "w.TXT",
        "w.tsv",
        "w.json",
        "w.jsonl",
        "w.ndjson",
        "w.parquet.zst",
        "w.xz",
        "w.avro",
        "there.csv",
    ] {
        let lines = [
            "dedup --column url -o NAME in",
            "dedup --column url --dupes NAME in",
            "not-in in -o NAME -- in",
            "corpus --column url -o NAME in",
        ];
        for line in lines {
            let parts = [&*format!("cannot write Parquet to \"{name}\""), "claims another format", ".parquet"];
            tells(&failed(&bench.run(&line.replace("NAME", name))), &parts);
            assert_eq!(bench.path(name).exists(), name == "there.csv", "{line} {name}");
        }
    }
    assert_eq!(bench.read("there.csv"), b"precious");
    for name in ["w", "w.parquet", "w.pq", "w.data", "w.txt.part"] {
        assert!(bench.run(&format!("dedup --column url -o {name} in")).status.success());
        assert!(!read(bench.read(name)).is_empty(), "{name}");
    }
    // The number of rows is a line.
    assert!(bench.run("dedup --column url --total -o w.txt in").status.success());
    tells(&failed(&bench.run("dedup --column url --total -o n.parquet in")), &["cannot write lines"]);
}

#[test]
fn distinct_rows_that_another_table_lacks_are_written_once() {
    let rows = |keys: &[i64]| -> Vec<Row> {
        keys.iter().enumerate().map(|(i, key)| (format!("u{key}"), *key, format!("f{i}"))).collect()
    };
    let (old, new) = (rows(&[1, 2]), rows(&[3, 1, 3, 4, 4, 2, 5, 3]));
    let bench = Bench::new(&[
        ("old.parquet", &table(&old, 10, Compression::SNAPPY)),
        ("new.parquet", &table(&new, 3, Compression::SNAPPY)),
    ]);
    bench.clean("not-in --distinct --column url -o o.parquet old.parquet -- new.parquet");
    let expected: Vec<Row> = [0, 3, 6].map(|row: usize| new[row].clone()).to_vec();
    assert_eq!(read(bench.read("o.parquet")), expected);
}

#[test]
fn rows_have_no_ends_of_lines() {
    let bench = Bench::new(&[("t.parquet", &table(&[("u".into(), 1, "f".into())], 1, Compression::SNAPPY))]);
    bench.write("j", b"{\"url\":\"u\"}\r\n");
    bench.clean("build --column url -o f t.parquet");
    for line in [
        "dedup --crlf -o o.parquet t.parquet",
        "dedup --eol lf -o o.parquet t.parquet",
        "dedup --crlf --in-place t.parquet",
        "build --crlf -o g t.parquet",
        "check --crlf --total -s f t.parquet",
        "in --crlf t.parquet -- t.parquet",
        "not-in --eol lf -o o.parquet t.parquet -- t.parquet",
    ] {
        for key in ["--column url ", ""] {
            let message = bench.refused(&line.replacen(" --", &format!(" {key}--"), 1));
            tells(&message, &["--eol or --crlf is for lines", "\"t.parquet\" is Parquet", "leave it out"]);
            assert!(!bench.path("o.parquet").exists() && !bench.path("g").exists(), "{line}");
        }
    }
    // Other inputs may have lines.
    assert_eq!(bench.clean("in --eol lf --column url t.parquet -- j"), "{\"url\":\"u\"}\n");
}

/// Paragraphs are cut out of a whole column, and nothing is begun otherwise.
#[test]
fn texts_in_a_part_of_a_column_are_refused_before_the_run() {
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["one two\nthree", "one two\nfour"]));
    let page: ArrayRef = Arc::new(StructArray::from(vec![(Field::new("text", DataType::Utf8, false).into(), texts)]));
    let batch = RecordBatch::try_from_iter([("page", page)]).unwrap();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    let bench = Bench::new(&[("t.parquet", &writer.into_inner().unwrap())]);
    let line = "corpus --ngram 0 --column page.text t.parquet -o o.parquet";
    tells(&bench.refused(line), &["in a part of a column", "--by document"]);
    assert!(!bench.path("o.parquet").exists());
    bench.clean(&format!("{line} --by document"));
    bench.clean(&format!("{line} --annotate"));
}

fn names(bench: &Bench, folder: &str) -> BTreeSet<String> {
    let entries = fs::read_dir(bench.path(folder)).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// Removes a state.
fn forget(bench: &Bench) {
    for name in ["state", "state.resume"] {
        fs::remove_file(bench.path(name)).ok();
    }
}

/// Those that are whole are there, and what is there is whole.
#[test]
fn what_cannot_be_read_has_no_output() {
    let (good, bad) = (rows(&mut Random(1), "good", 1000), rows(&mut Random(2), "bad", 1000));
    let bytes = table(&bad, 100, Compression::UNCOMPRESSED);
    let mut footer = bytes.clone();
    let end = footer.len() - 8;
    let length = u32::from_le_bytes(footer[end..end + 4].try_into().unwrap()) as usize;
    footer[end - length..end].fill(0xFF);
    // The header of a page of the third row group.
    let mut group = bytes.clone();
    let place = ParquetRecordBatchReaderBuilder::try_new(Bytes::from(bytes.clone())).unwrap();
    let place = place.metadata().row_group(2).column(2).data_page_offset() as usize;
    group[place..place + 20].fill(0xFF);
    let bench = Bench::new(&[]);
    for (name, bytes, left) in
        [("footer", &footer, None), ("cut", &bytes[..5000].to_vec(), None), ("group", &group, Some(200))]
    {
        fs::create_dir(bench.path("in")).unwrap();
        bench.write("in/a", &table(&good, 100, Compression::SNAPPY));
        bench.write("in/b", bytes);
        for (options, state) in [("", false), (" --in-order", false), (" -s state", true)] {
            let line = format!("dedup -j 2 -n 10000 --column url{options} --output-dir out in");
            let message = failed(&bench.run(&line));
            tells(&message, &["cannot read \"in/b\""]);
            assert!(name != "group" || message.contains("row group 2"), "{message}");
            // A run may go on with a state.
            assert!(state || names(&bench, "out").iter().all(|name| name == "a"), "{name}{options}");
            fs::remove_dir_all(bench.path("out")).unwrap();
            forget(&bench);

            let output = bench.run(&format!("{line} --on-error skip --manifest m"));
            assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
            tells(&text(&output.stderr), &["cannot read \"in/b\"", "continued without the rest of it"]);
            let expected: &[&str] = if left.is_some() { &["a", "b"] } else { &["a"] };
            assert_eq!(
                names(&bench, "out"),
                expected.iter().map(|name| (*name).to_owned()).collect(),
                "{name}{options}"
            );
            assert!(!read(bench.read("out/a")).is_empty());
            assert!(text(&bench.read("m")).lines().count() == 2);
            if let Some(left) = left {
                assert!(read(bench.read("out/b")).len() <= left);
            }
            // A run that goes on has nothing to do.
            if state {
                assert!(!bench.goes_on("state"));
            }
            fs::remove_dir_all(bench.path("out")).unwrap();
            forget(&bench);
        }
        // One output has what came before, with its end, or is not there.
        failed(&bench.run("dedup -n 10000 --column url -o o in/b"));
        assert_eq!(bench.path("o").exists(), left.is_some());
        if left.is_some() {
            read(bench.read("o"));
        }
        bench.run("dedup -n 10000 --column url --on-error skip -o o in/b");
        assert_eq!(bench.path("o").exists(), left.is_some());
        fs::remove_file(bench.path("o")).ok();
        failed(&bench.run("dedup -n 10000 --column url -o o in/a in/b"));
        assert!(read(bench.read("o")).len() > 500);
        fs::remove_file(bench.path("o")).unwrap();
        fs::remove_dir_all(bench.path("in")).unwrap();
    }
}

/// Where the outputs find no room.
#[test]
fn a_full_disk_leaves_no_part() {
    let many = rows(&mut Random(11), "a", 8000);
    let bytes = table(&many, 500, Compression::UNCOMPRESSED);
    let small = table(&many[..10], 10, Compression::UNCOMPRESSED);
    for (line, file) in [
        ("dedup --column url -o out a b", "out"),
        ("dedup --column url -o new --dupes out b a", "new"),
        ("dedup --column url --output-dir out b a", "out/a.part"),
        ("dedup --column url --output-dir out --compress zstd:1 b a", "out/a.part"),
        ("dedup --column url --in-place b a", "a"),
        ("dedup --column url -o a a b", "a"),
        ("corpus --column from --by document -o out a", "out"),
    ] {
        for state in ["", " -s state"] {
            if !state.is_empty() && (line.contains("-o a") || line.contains("place")) {
                continue;
            }
            let bench = Bench::new(&[("a", &bytes), ("b", &small)]);
            let limit = if line.contains("zstd") { "-f 60" } else { "-f 200" };
            let command = bench.command(&format!("{line} -n 10000 -p 0.01{state}"));
            tells(
                &failed(&limited(limit, &command).output().unwrap()),
                &["cannot write to ", &format!("{file:?}"), "File too large"],
            );
            assert!(bench.read("a") == bytes && bench.read("b") == small, "{line}");
            let mut left = names(&bench, ".");
            if left.remove("out") && bench.path("out").is_dir() {
                // The small one may be whole. A run may go on with the state.
                let outputs = names(&bench, "out");
                assert!(
                    outputs.iter().all(|name| name == "b" || !state.is_empty() && name.ends_with(".part")),
                    "{line}"
                );
            } else {
                assert!(!bench.path("out").exists() || !state.is_empty(), "{line}{state}");
            }
            left.retain(|name| !name.starts_with("state"));
            assert!(left.remove("a") && left.remove("b"));
            assert!(!left.remove("new") || !state.is_empty(), "{line}");
            assert!(left.is_empty(), "{line}: {left:?}");
        }
    }
}
