//! Parquet files: refusals, outputs of broken files, and names for tables.

use crate::common::random::Random;
use crate::common::{Bench, assert_contains_all, expect_exit_code, expect_failure, text};
use crate::interrupted::job::Units;
use arrow_array::cast::AsArray;
use arrow_array::types::{DurationMicrosecondType, DurationMillisecondType, Int64Type};
use arrow_array::{
    Array, ArrayRef, BinaryArray, DurationMicrosecondArray, DurationMillisecondArray, Float64Array, Int64Array,
    ListArray, ListViewArray, RecordBatch, StringArray, StructArray,
};
use arrow_schema::{DataType, Field, Schema, TimeUnit};
use bytes::Bytes;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use serde_json::Value;
use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::sync::Arc;

/// A row: its key, a second value that depends on the key, and the position at which it was written first.
pub type Row = (String, i64, String);

/// Returns `count` rows of a file. Keys repeat within a file and across files.
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

/// Returns a Parquet file with row groups of `group` rows.
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

/// Returns the rows of a Parquet file, with the value of the column `bloomline` if it exists.
#[track_caller]
pub fn read_with_marks(bytes: Vec<u8>) -> Vec<(Row, Option<String>)> {
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

/// Returns the rows of a file with their marks, and true if the file is complete.
pub fn units(bytes: &[u8]) -> Units {
    if ParquetRecordBatchReaderBuilder::try_new(Bytes::from(bytes.to_vec())).is_err() {
        return (Vec::new(), false);
    }
    (read_with_marks(bytes.to_vec()).iter().map(|row| format!("{row:?}").into_bytes()).collect(), true)
}

/// Returns files of the formats of their names. The third file has row groups that lose all rows, and a last row group that
/// loses none.
pub fn crawl(names: &[&str]) -> Vec<(String, Vec<u8>)> {
    let mut random = Random(names.len() as u64);
    let mut first = Vec::new();
    let mut file = |(i, name): (usize, &&str)| {
        let mut rows = rows(&mut random, name, 3000);
        if i == 0 {
            first.clone_from(&rows);
        } else if i == 2 {
            rows.splice(..1000, first[..1000].to_vec());
            rows.extend((0..500).map(|i| (format!("own {i}"), i, format!("{name}:own {i}"))));
        }
        let compression = [Compression::SNAPPY, Compression::UNCOMPRESSED, Compression::LZ4_RAW][i % 3];
        let bytes = if name.ends_with("l") { lines(&rows) } else { table(&rows, 70 + 30 * i, compression) };
        ((*name).to_owned(), bytes)
    };
    names.iter().enumerate().map(&mut file).collect()
}

/// A table must not have a name for lines or for a file that is compressed as a whole.
#[test]
fn tables_are_written_unless_the_name_implies_lines() {
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
            let parts = [&*format!("cannot write Parquet to \"{name}\""), "stands for another format", ".parquet"];
            assert_contains_all(&expect_failure(&bench.run(&line.replace("NAME", name))), &parts);
            assert_eq!(bench.path(name).exists(), name == "there.csv", "{line} {name}");
        }
    }
    assert_eq!(bench.read("there.csv"), b"precious");
    for name in ["w", "w.parquet", "w.pq", "w.data", "w.txt.part"] {
        assert!(bench.run(&format!("dedup --column url -o {name} in")).status.success());
        assert!(!read(bench.read(name)).is_empty(), "{name}");
    }
    // The number of rows is printed as a line.
    assert!(bench.run("dedup --column url --total -o w.txt in").status.success());
    assert_contains_all(
        &expect_failure(&bench.run("dedup --column url --total -o n.parquet in")),
        &["cannot write lines"],
    );
}

#[test]
fn distinct_rows_not_in_another_table_are_written_once() {
    let rows = |keys: &[i64]| -> Vec<Row> {
        keys.iter().enumerate().map(|(i, key)| (format!("u{key}"), *key, format!("f{i}"))).collect()
    };
    let (old, new) = (rows(&[1, 2]), rows(&[3, 1, 3, 4, 4, 2, 5, 3]));
    let bench = Bench::new(&[
        ("old.parquet", &table(&old, 10, Compression::SNAPPY)),
        ("new.parquet", &table(&new, 3, Compression::SNAPPY)),
    ]);
    bench.run_ok("not-in --distinct --column url -o o.parquet old.parquet -- new.parquet");
    let expected: Vec<Row> = [0, 3, 6].map(|row: usize| new[row].clone()).to_vec();
    assert_eq!(read(bench.read("o.parquet")), expected);
}

#[test]
fn row_values_have_no_line_endings() {
    let bench = Bench::new(&[("t.parquet", &table(&[("u".into(), 1, "f".into())], 1, Compression::SNAPPY))]);
    bench.write("j", b"{\"url\":\"u\"}\r\n");
    bench.run_ok("build --column url -o f t.parquet");
    for line in [
        "dedup --eol keep -o o.parquet t.parquet",
        "dedup --eol lf -o o.parquet t.parquet",
        "dedup --eol keep --in-place t.parquet",
        "build --eol keep -o g t.parquet",
        "check --eol keep --total -s f t.parquet",
        "in --eol keep t.parquet -- t.parquet",
        "not-in --eol lf -o o.parquet t.parquet -- t.parquet",
    ] {
        for key in ["--column url ", ""] {
            let message = bench.run_err(&line.replacen(" --", &format!(" {key}--"), 1));
            assert_contains_all(&message, &["--eol is for lines", "\"t.parquet\" is Parquet", "leave it out"]);
            assert!(!bench.path("o.parquet").exists() && !bench.path("g").exists(), "{line}");
        }
    }
    // The option applies to other inputs, which have lines.
    assert_eq!(bench.run_ok("in --eol lf --column url t.parquet -- j"), "{\"url\":\"u\"}\n");
}

/// Paragraphs can be removed only from a column that is not nested.
#[test]
fn nested_text_columns_are_refused_before_the_run() {
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["one two\nthree", "one two\nfour"]));
    let page: ArrayRef = Arc::new(StructArray::from(vec![(Field::new("text", DataType::Utf8, false).into(), texts)]));
    let batch = RecordBatch::try_from_iter([("page", page)]).unwrap();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    let bench = Bench::new(&[("t.parquet", &writer.into_inner().unwrap())]);
    let line = "corpus --ngram 0 --column page.text t.parquet -o o.parquet";
    assert_contains_all(&bench.run_err(line), &["in a part of a column", "--by document"]);
    assert!(!bench.path("o.parquet").exists());
    bench.run_ok(&format!("{line} --by document"));
    bench.run_ok(&format!("{line} --annotate"));
}

/// Returns a table of one row with these columns.
fn table_of(columns: Vec<(&str, ArrayRef)>) -> Vec<u8> {
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.into_inner().unwrap()
}

/// The refusal precedes any change of a file.
#[test]
fn a_table_that_cannot_be_read_or_written_is_refused_before_the_run() {
    let texts = || Arc::new(StringArray::from(vec!["a"])) as ArrayRef;
    let number = || Arc::new(Int64Array::from(vec![1])) as ArrayRef;
    let nested =
        || Arc::new(StructArray::from(vec![(Arc::new(Field::new("x", DataType::Utf8, false)), texts())])) as ArrayRef;
    let good = || vec![("n", number()), ("text", texts())];
    for (columns, command, why) in [
        (vec![("n", number())], "dedup --column text", "no column \"text\""),
        (vec![("n", nested()), ("text", texts())], "dedup --column text --keep max:n", "have no order"),
        (vec![("text", texts())], "dedup --column text --keep max:n", "no column \"n\""),
        (vec![("n", number()), ("text", number())], "corpus", "not texts"),
        (vec![("n", number()), ("text", nested())], "corpus", "not texts"),
        (
            vec![("n", number()), ("count", number()), ("text", texts())],
            "corpus --by document --ngram 0 --count",
            "a column \"count\" already",
        ),
        (
            vec![("bloomline", texts()), ("text", texts())],
            "dedup --column text --annotate",
            "a column \"bloomline\" already",
        ),
        (vec![("bloomline", texts()), ("text", texts())], "corpus --annotate", "a column \"bloomline\" already"),
    ] {
        let bench =
            Bench::new(&[("a", &table_of(good())), ("b", &table_of(good())), ("c", &table_of(columns)), ("o", b"old")]);
        let before = ["a", "b"].map(|name| bench.read(name));
        for target in ["-o o", "--output-dir f", "--in-place"] {
            if target == "--in-place" && !["dedup --column text", "corpus"].contains(&command) {
                continue;
            }
            let message = bench.run_err(&format!("{command} {target} a b c"));
            assert_contains_all(&message, &["\"c\"", why]);
            assert!(["a", "b"].map(|name| bench.read(name)) == before && bench.read("o") == b"old", "{message}");
            assert!(!bench.path("f").exists(), "{message}");
        }
    }
    // All tables of one output must have the columns of the first table.
    let other = table_of(vec![("text", texts()), ("n", number())]);
    let bench = Bench::new(&[("a", &table_of(good())), ("b", &other), ("o", b"old")]);
    for command in ["dedup --column text a b", "corpus a b", "not-in --column text a -- a b"] {
        assert_contains_all(
            &bench.run_err(&command.replacen(' ', " -o o ", 1)),
            &["\"b\"", "differs from the one in the inputs before it", "--output-dir"],
        );
        assert_eq!(bench.read("o"), b"old");
    }
    bench.run_ok("dedup -q --column text --output-dir f a b");
    assert_eq!(bench.run_ok("dedup -q --column text --total a b"), "1\n");
}

fn names(bench: &Bench, folder: &str) -> BTreeSet<String> {
    let entries = fs::read_dir(bench.path(folder)).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// Removes a state.
fn remove_state(bench: &Bench) {
    for name in ["state", "state.resume"] {
        fs::remove_file(bench.path(name)).ok();
    }
}

/// Only complete tables are written.
#[test]
fn unreadable_tables_have_no_output() {
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
            let message = expect_failure(&bench.run(&line));
            if left.is_some() {
                assert_contains_all(&message, &["cannot read \"in/b\"", "row group 2, column \"url\""]);
                // Only a run with a state keeps partial outputs, because it can be resumed.
                assert!(state || names(&bench, "out").iter().all(|name| name == "a"), "{name}{options}");
                fs::remove_dir_all(bench.path("out")).unwrap();
            } else {
                // Footers are read before files are written.
                assert_contains_all(&message, &["cannot open \"in/b\""]);
                assert!(!bench.path("out").exists(), "{name}{options}");
            }
            remove_state(&bench);

            let output = bench.run(&format!("{line} --on-error skip --manifest m"));
            assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
            assert_contains_all(&text(&output.stderr), &["cannot read \"in/b\"", "the rest of it is skipped"]);
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
            // No run is left to resume.
            if state {
                assert!(!bench.is_resumable("state"));
            }
            fs::remove_dir_all(bench.path("out")).unwrap();
            remove_state(&bench);
        }
        // A single output is completed with the rows before the error, or does not exist.
        expect_failure(&bench.run("dedup -n 10000 --column url -o o in/b"));
        assert_eq!(bench.path("o").exists(), left.is_some());
        if left.is_some() {
            read(bench.read("o"));
        }
        bench.run("dedup -n 10000 --column url --on-error skip -o o in/b");
        assert_eq!(bench.path("o").exists(), left.is_some());
        fs::remove_file(bench.path("o")).ok();
        expect_failure(&bench.run("dedup -n 10000 --column url -o o in/a in/b"));
        if left.is_some() {
            assert!(read(bench.read("o")).len() > 500);
            fs::remove_file(bench.path("o")).unwrap();
        }
        assert!(!bench.path("o").exists());
        fs::remove_dir_all(bench.path("in")).unwrap();
    }
}

/// Returns a Parquet file with these columns.
fn columns(columns: Vec<(&str, ArrayRef)>) -> Vec<u8> {
    let batch = RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true)));
    written(&batch.unwrap())
}

fn written(batch: &RecordBatch) -> Vec<u8> {
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
    writer.write(batch).unwrap();
    writer.into_inner().unwrap()
}

fn texts(values: &[&str]) -> ArrayRef {
    Arc::new(StringArray::from_iter_values(values))
}

fn numbers(values: &[i64]) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(values.iter().copied()))
}

/// The order of columns does not matter.
#[test]
fn whole_rows_are_compared_by_column_names() {
    let bench = Bench::new(&[
        ("a", &columns(vec![("id", texts(&["x"])), ("name", texts(&["y"]))])),
        ("b", &columns(vec![("name", texts(&["x"])), ("id", texts(&["y"]))])),
        ("same", &columns(vec![("name", texts(&["y"])), ("id", texts(&["x"]))])),
        ("other", &columns(vec![("id", texts(&["x"])), ("title", texts(&["y"]))])),
    ]);
    assert_eq!(bench.run_ok("not-in --exact --total a -- b"), "1\n");
    assert_eq!(expect_exit_code(bench.run("not-in --exact --total a -- same"), 1), "0\n");
    assert_eq!(bench.run_ok("dedup --exact --total a b same"), "2\n");
    bench.run_ok("dedup --exact --in-order --output-dir out a b same");
    let rows = |name: &str| bench.run_ok(&format!("dedup --total out/{name}"));
    assert_eq!(["a", "b", "same"].map(rows), ["1\n", "1\n", "0\n"]);
    bench.run_ok("dedup -s state -o new a");
    assert_eq!(bench.run_ok("dedup -s state --total b"), "1\n");
    assert_eq!(bench.run_ok("dedup -s state --total same"), "0\n");
    assert_eq!(bench.json("info --json state")["key_name"], "id,name");
    for line in ["dedup --total a other", "not-in --total a -- other", "dedup -o all a other"] {
        let refused = expect_failure(&bench.run(line));
        assert_contains_all(&refused, &["\"other\"", "\"id\", \"title\"", "\"id\", \"name\"", "--column"]);
    }
    let refused = expect_failure(&bench.run("dedup -s state --total other"));
    assert_contains_all(&refused, &["its keys are \"id,name\"", "\"id,title\""]);
    // The same rows in lines of JSON have the same keys.
    bench.write("lines", b"{\"name\":\"y\",\"id\":\"x\"}\n{\"name\":\"z\",\"id\":\"x\"}\n");
    assert_eq!(bench.run_ok("not-in --total --column id,name a -- lines"), "1\n");
}

#[test]
fn the_stored_index_of_pandas_is_not_part_of_a_row() {
    let file = |index: &[i64]| {
        let batch =
            RecordBatch::try_from_iter([("a", numbers(&[1, 2])), ("__index_level_0__", numbers(index))]).unwrap();
        let pandas = ("pandas".to_owned(), r#"{"index_columns": ["__index_level_0__"]}"#.to_owned());
        let schema = batch.schema().as_ref().clone().with_metadata(HashMap::from([pandas]));
        written(&batch.with_schema(schema.into()).unwrap())
    };
    let bench =
        Bench::new(&[("a", &file(&[0, 1])), ("b", &file(&[5, 6])), ("c", &columns(vec![("a", numbers(&[1]))]))]);
    assert_eq!(bench.run_ok("dedup --exact --total a b c"), "2\n");
    assert_eq!(bench.run_ok("dedup --exact --total --column a,__index_level_0__ a b"), "4\n");
}

/// Parquet stores durations as integers, with their unit in the schema.
#[test]
fn durations_do_not_depend_on_their_unit_and_are_not_integers() {
    let file = |array: ArrayRef| columns(vec![("v", array)]);
    let views = |lists: ListArray| file(Arc::new(ListViewArray::from(lists)));
    let bench = Bench::new(&[
        ("ms", &file(Arc::new(DurationMillisecondArray::from(vec![1, 5])))),
        ("us", &file(Arc::new(DurationMicrosecondArray::from(vec![1000, 5, 7])))),
        ("int", &file(numbers(&[9]))),
        ("ms_views", &views(ListArray::from_iter_primitive::<DurationMillisecondType, _, _>([[Some(5)]].map(Some)))),
        ("us_views", &views(ListArray::from_iter_primitive::<DurationMicrosecondType, _, _>([[Some(5)]].map(Some)))),
    ]);
    assert_eq!(bench.run_ok("not-in --exact --total --column v ms -- us"), "2\n");
    assert_eq!(bench.run_ok("not-in --exact --total --column v ms_views -- us_views"), "1\n");
    assert_eq!(bench.run_ok("dedup --exact --total --column v ms us"), "4\n");
    for other in ["us", "int"] {
        let refused = expect_failure(&bench.run(&format!("dedup --exact --column v ms {other} -o out")));
        assert_contains_all(&refused, &[&format!("the column \"v\" of \"{other}\" differs"), "--output-dir"]);
        assert!(!bench.path("out").exists());
    }
    let refused = expect_failure(&bench.run("dedup --exact --total --column v ms int"));
    assert_contains_all(&refused, &["they are numbers, and the earlier keys are durations"]);
    // An output with an additional column keeps the type of durations.
    bench.run_ok("dedup --count --column v us -o counted");
    let schema = ParquetRecordBatchReaderBuilder::try_new(Bytes::from(bench.read("counted"))).unwrap().schema().clone();
    assert_eq!(schema.field(0).data_type(), &DataType::Duration(TimeUnit::Microsecond));
}

/// Numbers of different types are compared by value. pandas writes a column of integers with nulls as floats.
#[test]
fn integers_and_floats_are_one_kind() {
    let floats = Float64Array::from(vec![Some(1.0), Some(2.0), None, Some(4.0)]);
    let bench = Bench::new(&[
        ("old", &columns(vec![("id", numbers(&[1, 2, 3]))])),
        ("new", &columns(vec![("id", Arc::new(floats) as ArrayRef)])),
        ("lines", b"{\"id\":1.0}\n{\"id\":3}\n{\"id\":2e0}\n{\"id\":5}\n"),
    ]);
    assert_eq!(bench.run_ok("not-in --exact --column id --total old -- new"), "2\n");
    bench.run_ok("dedup -s state --column id --total old");
    assert_eq!(bench.run_ok("dedup -s state --column id --total new"), "2\n");
    assert_eq!(bench.run_ok("check -s state --column id --total lines"), "3\n");
}

#[test]
fn byte_strings_are_texts_only_on_request() {
    let bytes: ArrayRef = Arc::new(BinaryArray::from(vec![&b"a"[..], b"\xff0", b"\xffn1"]));
    let with_null = Int64Array::from(vec![Some(1), None]);
    let bench = Bench::new(&[
        ("bytes", &columns(vec![("x", bytes)])),
        ("texts", &columns(vec![("x", texts(&["a", "b"]))])),
        ("numbers", &columns(vec![("x", Arc::new(with_null) as ArrayRef)])),
        ("lines", b"{\"x\":\"a\"}\n{\"x\":\"c\"}\n"),
    ]);
    let refused = expect_failure(&bench.run("not-in --total --column x bytes -- texts"));
    assert_contains_all(
        &refused,
        &["NEW", "they are texts, and the earlier keys are byte strings", "--normalize text"],
    );
    assert_contains_all(&expect_failure(&bench.run("not-in --total --column x bytes -- lines")), &["--normalize text"]);
    assert_eq!(bench.run_ok("not-in --total --column x --normalize text bytes -- texts"), "1\n");
    assert_eq!(bench.run_ok("not-in --total --column x --normalize text bytes -- lines"), "1\n");
    // The kinds of values in JSON lines are not known before they are read.
    assert_contains_all(
        &expect_failure(&bench.run("not-in --total --column x lines -- bytes")),
        &["NEW", "byte strings"],
    );
    // Byte strings differ from nulls and numbers, whatever their bytes.
    assert_contains_all(&expect_failure(&bench.run("dedup --total --column x bytes numbers")), &["they are numbers"]);
    assert_eq!(bench.run_ok("dedup --exact --total --column x bytes"), "3\n");
}

#[test]
fn extension_types_are_named() {
    let metadata = [("ARROW:extension:name".to_owned(), "pandas.period".to_owned())];
    let field = Field::new("month", DataType::Int64, true).with_metadata(HashMap::from(metadata));
    let batch = RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![numbers(&[1])]).unwrap();
    let bench = Bench::new(&[("periods", &written(&batch))]);
    for line in ["dedup --total --column month periods", "dedup --total periods"] {
        let refused = expect_failure(&bench.run(line));
        assert_contains_all(&refused, &["\"month\"", "pandas.period", "convert the column"]);
    }
}

/// A row's note has the spans that a run cuts out of its text.
#[test]
fn annotated_spans_are_the_cuts_of_rows() {
    let mut random = Random(7);
    let mut paragraph = || random.one_of(&["a b c", "a b d", "\u{e9} e", "", " \t"]);
    let rows: Vec<Row> = (0..200).map(|i| ([(); 4].map(|()| paragraph()).join("\n"), i, String::new())).collect();
    let bench = Bench::new(&[("t.parquet", &table(&rows, 64, Compression::SNAPPY))]);
    for options in ["--ngram 0", "--ngram 0 --keep-empty", "--ngram 2 --min-ngram 1 --threshold 0.5"] {
        let line = format!("corpus -n 10000 -p 1e-9 {options} --column url t.parquet -o o.parquet");
        bench.run_ok(&format!("{line} --annotate"));
        let noted = read_with_marks(bench.read("o.parquet"));
        bench.run_ok(&line);
        let left = noted.into_iter().filter_map(|((text, number, from), note)| {
            let note: Value = serde_json::from_str(&note.unwrap()).unwrap();
            let ends = |span: &Value| [0, 1].map(|end| span[end].as_u64().unwrap() as usize);
            let spans: Vec<_> = note["spans"].as_array().unwrap().iter().map(ends).collect();
            let bytes = text.bytes().enumerate().filter(|(at, _)| !spans.iter().any(|[a, b]| (a..b).contains(&at)));
            let left = String::from_utf8(bytes.map(|(_, byte)| byte).collect()).unwrap();
            (note["duplicate"] == false).then_some((left, number, from))
        });
        assert_eq!(left.collect::<Vec<_>>(), read(bench.read("o.parquet")), "{options}");
    }
}
