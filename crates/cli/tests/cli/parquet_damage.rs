//! Damaged Parquet files: each run terminates, names the file in one line, and stays within its memory limit.

use crate::common::random::{Random, mix};
use crate::common::{Bench, text, with_ulimit};
use crate::live::PATIENCE;
use crate::parquet::table;
use arrow_array::builder::{Int32Builder, ListBuilder};
use arrow_array::{
    ArrayRef, BooleanArray, Decimal128Array, FixedSizeBinaryArray, Float64Array, Int32Array, Int64Array, RecordBatch,
    StringArray, StructArray, TimestampMicrosecondArray,
};
use parquet::arrow::ArrowWriter;
use parquet::basic::{BrotliLevel, Compression, Encoding, GzipLevel, ZstdLevel};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use std::fs;
use std::process::Stdio;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// The limit of the address space in bytes.
const MEMORY: u64 = 256 << 20;

/// Returns columns of all types.
fn columns(rows: i32) -> RecordBatch {
    let numbers = || (0..rows).map(|row| mix(row as u64));
    let mut lists = ListBuilder::new(Int32Builder::new());
    for number in numbers() {
        (0..number % 4).for_each(|item| lists.values().append_value(item as i32));
        lists.append(!number.is_multiple_of(5));
    }
    let texts: ArrayRef = Arc::new(StringArray::from_iter_values(
        numbers().map(|n| format!("text {} ", n % 50).repeat((n % 5) as usize)),
    ));
    let some: ArrayRef =
        Arc::new(Int32Array::from_iter(numbers().map(|n| (!n.is_multiple_of(9)).then_some(n as i32 % 100))));
    let structs = StructArray::try_from(vec![("text", texts.clone()), ("some", some.clone())]).unwrap();
    let fixed = FixedSizeBinaryArray::try_from_iter(numbers().map(|n| (n as u32).to_le_bytes())).unwrap();
    let decimals =
        Decimal128Array::from_iter_values(numbers().map(|n| n as i128 % 1000)).with_precision_and_scale(20, 2);
    RecordBatch::try_from_iter([
        ("text", texts),
        ("some", some),
        ("number", Arc::new(Int64Array::from_iter_values(numbers().map(|n| n as i64))) as ArrayRef),
        ("float", Arc::new(Float64Array::from_iter_values(numbers().map(|n| n as f64 / 7.0)))),
        ("bool", Arc::new(BooleanArray::from_iter(numbers().map(|n| Some(n % 2 == 0))))),
        ("list", Arc::new(lists.finish())),
        ("struct", Arc::new(structs)),
        ("fixed", Arc::new(fixed)),
        ("decimal", Arc::new(decimals.unwrap())),
        ("time", Arc::new(TimestampMicrosecondArray::from_iter_values(numbers().map(|n| n as i64 % 1_000_000)))),
    ])
    .unwrap()
}

/// Returns valid files with all types, encodings and codecs.
fn valid_files() -> Vec<Vec<u8>> {
    let (batch, mut files) = (columns(100), Vec::new());
    let (gzip, zstd) = (Compression::GZIP(GzipLevel::default()), Compression::ZSTD(ZstdLevel::default()));
    let brotli = Compression::BROTLI(BrotliLevel::default());
    let codecs =
        [Compression::UNCOMPRESSED, Compression::SNAPPY, gzip, zstd, brotli, Compression::LZ4, Compression::LZ4_RAW];
    for (i, codec) in codecs.into_iter().enumerate() {
        for encodings in [
            &[][..],
            &[
                ("text", Encoding::DELTA_BYTE_ARRAY),
                ("some", Encoding::DELTA_BINARY_PACKED),
                ("float", Encoding::BYTE_STREAM_SPLIT),
            ],
            &[
                ("text", Encoding::DELTA_LENGTH_BYTE_ARRAY),
                ("number", Encoding::DELTA_BINARY_PACKED),
                ("bool", Encoding::RLE),
            ],
        ] {
            let version = [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0][(i + encodings.len()) % 2];
            let mut properties = WriterProperties::builder()
                .set_compression(codec)
                .set_writer_version(version)
                .set_max_row_group_row_count(Some(40))
                .set_data_page_row_count_limit(15)
                .set_write_batch_size(15)
                .set_dictionary_enabled(encodings.is_empty())
                .set_bloom_filter_enabled(i == 1)
                .set_statistics_enabled([EnabledStatistics::Page, EnabledStatistics::Chunk][i % 2])
                .set_offset_index_disabled(i % 3 == 2);
            for (column, encoding) in encodings {
                properties = properties.set_column_encoding((*column).into(), *encoding);
            }
            let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties.build())).unwrap();
            writer.write(&batch).unwrap();
            files.push(writer.into_inner().unwrap());
        }
    }
    files
}

/// Encodes an unsigned number as Thrift's compact protocol does.
fn varint(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number > 0x7F {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

/// Returns a file with changed bytes, some files also truncated.
fn damaged(random: &mut Random, file: &[u8]) -> Vec<u8> {
    let mut bytes = file.to_vec();
    let end = bytes.len() - 8;
    let footer = end - u32::from_le_bytes(bytes[end..end + 4].try_into().unwrap()) as usize;
    if random.below(12) == 0 {
        bytes.truncate(random.below(end as u64) as usize);
    }
    for _ in 0..random.one_of(&[1, 1, 1, 2, 4]) {
        let (start, stop) = if random.below(2) == 0 { (footer, end) } else { (4, footer) };
        let at = (start as u64 + random.below((stop - start) as u64)) as usize;
        let other = match random.below(6) {
            0 | 1 => vec![random.next() as u8],
            2 => vec![bytes.get(at).copied().unwrap_or(0) ^ 1 << random.below(8)],
            3 => vec![random.one_of(&[0, 0x7F, 0x80, 0xFF])],
            4 => varint(random.one_of(&[
                0,
                1,
                1 << 30,
                u32::MAX as u64 - 1,
                u32::MAX as u64,
                1 << 32,
                1 << 63,
                u64::MAX,
            ])),
            _ => {
                let from = random.below(bytes.len() as u64 - 20) as usize;
                bytes[from..from + 1 + random.below(19) as usize].to_vec()
            }
        };
        let stop = (at + other.len()).min(bytes.len());
        if at < stop {
            bytes.splice(at..stop, other);
        }
    }
    // Most damaged files keep their magic numbers, because without them the rest is not read.
    if random.below(8) > 0 {
        bytes.truncate(bytes.len().saturating_sub(8));
        bytes.extend(&file[end..]);
        bytes[..4].copy_from_slice(b"PAR1");
    }
    bytes
}

/// Runs a command with a memory limit over a file. Returns its exit code and standard error.
///
/// The C library reserves 128 MiB of addresses for each thread that allocates. Unused reservations of two threads would exceed
/// the limit, so all threads share one arena.
#[track_caller]
fn run(bench: &Bench, line: &str) -> (i32, String) {
    let limit = format!("-c 0; ulimit -v {}", MEMORY / 1024);
    let mut child = with_ulimit(&limit, &bench.command(line))
        .stdin(Stdio::null())
        .env("MALLOC_ARENA_MAX", "1")
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let started = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if started.elapsed() > PATIENCE {
            child.kill().unwrap();
            panic!("it does not end: {line}");
        }
        thread::sleep(Duration::from_millis(2));
    }
    let output = child.wait_with_output().unwrap();
    let stderr = text(&output.stderr);
    (output.status.code().unwrap_or(-1), stderr)
}

/// Runs a command over a damaged file, and keeps the file if the result is unexpected.
#[track_caller]
fn check(bench: &Bench, bytes: &[u8], line: &str) -> i32 {
    bench.write("in", bytes);
    let (code, stderr) = run(bench, line);
    let skips = line.contains("skip");
    let lines = stderr.matches('\n').count();
    let expected = match code {
        0 => lines == 0,
        1 => skips && lines == 1,
        2 => (1..=1 + usize::from(skips)).contains(&lines),
        _ => false,
    };
    let named = code == 0 || stderr.contains("\"in\"");
    if !expected || !named || stderr.contains("panicked") {
        let kept = std::env::temp_dir().join("damaged.parquet");
        fs::write(&kept, bytes).unwrap();
        panic!("{line}: code {code}, the file is kept as {kept:?}\n{stderr}");
    }
    code
}

const COLUMNS: [&str; 12] = [
    "text",
    "some",
    "number",
    "float",
    "bool",
    "list",
    "struct",
    "struct.some",
    "fixed",
    "decimal",
    "time",
    "text,list",
];

fn lines(random: &mut Random) -> String {
    let column = random.one_of(&COLUMNS);
    let line = match random.below(6) {
        0 => "dedup -n 1000 -o out in".to_owned(),
        1 => format!("dedup -n 1000 --column {column} --output-dir out --force in"),
        2 => format!("build -n 1000 --column {column} -o state in"),
        3 => "corpus -n 1000 -o out.corpus in".to_owned(),
        _ => format!("dedup -n 1000 --column {column} -o out.parquet in"),
    };
    let more = match random.below(8) {
        0 => " --on-error skip",
        1 if !line.starts_with("build") => " --compress zstd",
        3 if line.starts_with("dedup") => " --annotate",
        _ => "",
    };
    line.replacen(" in", &format!("{more} in"), 1).replacen("-o out ", "-o out.rows ", 1)
}

fn check_damaged_files(cases: u64) {
    let (mut random, files) = (Random(0x000B_1013), valid_files());
    let bench = Bench::new(&[]);
    let (mut refused, mut taken) = (0, 0);
    for case in 0..cases {
        let file = &files[case as usize % files.len()];
        let bytes = damaged(&mut random, file);
        match check(&bench, &bytes, &format!("{} -j {}", lines(&mut random), 1 + case % 2)) {
            0 => taken += 1,
            _ => refused += 1,
        }
    }
    eprintln!("{cases} damaged files, {refused} refused, {taken} taken");
    assert!(refused * 4 > cases && taken * 20 > cases, "{refused} {taken}");
}

#[test]
fn damaged_files_are_reported() {
    check_damaged_files(100);
}

#[test]
#[ignore = "takes long"]
fn many_damaged_files_are_reported() {
    check_damaged_files(1500);
}

/// Checks files that are truncated at every `step`th byte.
fn check_truncated_files(step: usize) {
    let rows: Vec<_> = (0..9).map(|i| (format!("url {i}"), i, format!("a:{i}"))).collect();
    let whole = table(&rows, 4, Compression::SNAPPY);
    let bench = Bench::new(&[]);
    assert_eq!(check(&bench, &whole, "dedup --column url -o out in"), 0);
    // The end of the file contains the metadata of the rest.
    for length in (4..whole.len()).step_by(step).chain(whole.len() - 16..whole.len()) {
        assert_eq!(check(&bench, &whole[..length], "dedup -n 10 --column url -o out in"), 2, "{length}");
        // The end of the file follows the truncated part.
        let bytes = [&whole[..length], &whole[whole.len() - 8..]].concat();
        check(&bench, &bytes, "dedup -n 10 --column url -o out in");
    }
    let size = u32::from_le_bytes(whole[whole.len() - 8..][..4].try_into().unwrap());
    for wrong in [u32::MAX, whole.len() as u32, 0, size - 7, size + 1] {
        let bytes = [&whole[..whole.len() - 8], &wrong.to_le_bytes(), b"PAR1"].concat();
        assert_eq!(check(&bench, &bytes, "dedup -n 10 --column url -o out in"), 2, "{wrong}");
    }
    for short in [&b"PAR1PAR1"[..], b"PAR1\0\0\0\0PAR1"] {
        assert_eq!(check(&bench, short, "dedup -n 10 --column url -o out in"), 2);
    }
}

#[test]
fn truncated_files_are_refused() {
    check_truncated_files(61);
}

#[test]
#[ignore = "takes long"]
fn files_truncated_at_many_bytes_are_refused() {
    check_truncated_files(7);
}

#[test]
fn valid_files_are_read_within_memory() {
    let (files, bench) = (valid_files(), Bench::new(&[]));
    for (file, column) in files.iter().zip(COLUMNS.iter().cycle()) {
        assert_eq!(check(&bench, file, &format!("dedup -n 1000 --column {column} -o out in")), 0);
    }
}

/// A struct in Thrift's compact protocol.
#[derive(Clone, Default)]
struct Struct(Vec<u8>, u8);

impl Struct {
    fn field(mut self, id: u8, kind: u8, value: &[u8]) -> Self {
        self.0.push((id - self.1) << 4 | kind);
        self.0.extend(value);
        Self(self.0, id)
    }

    fn i32(self, id: u8, number: i64) -> Self {
        self.field(id, 5, &varint((number << 1 ^ number >> 63) as u64))
    }

    fn i64(self, id: u8, number: i64) -> Self {
        self.field(id, 6, &varint((number << 1 ^ number >> 63) as u64))
    }

    fn text(self, id: u8, text: &str) -> Self {
        self.field(id, 8, &[&varint(text.len() as u64), text.as_bytes()].concat())
    }

    /// Appends a list whose header states `count` values, and that contains the given ones.
    fn list(self, id: u8, kind: u8, count: u64, values: &[Vec<u8>]) -> Self {
        self.field(id, 9, &[&[0xF0 | kind], &varint(count)[..], &values.concat()].concat())
    }

    fn inner(self, id: u8, inner: Self) -> Self {
        self.field(id, 12, &inner.end())
    }

    fn end(self) -> Vec<u8> {
        [self.0, vec![0]].concat()
    }
}

const INT32: i64 = 1;
const TEXTS: i64 = 6;

/// A file with one column `text` in one row group, whose metadata may be false.
#[derive(Clone)]
struct ForgedFile {
    kind: i64,
    codec: i64,
    pages: Vec<u8>,
    has_dictionary: bool,
    rows: i64,
    /// The elements of the schema, if they are not the default ones.
    schema: Option<Vec<Vec<u8>>>,
    /// The page index, which follows the pages.
    index: Vec<u8>,
    /// The error of the recorded offset of the pages.
    away: i64,
    /// The recorded size of the pages in bytes, if it is not the real one.
    size: Option<i64>,
    has_columns: bool,
}

fn column(name: &str, kind: Option<i64>, repetition: i64, children: Option<i64>) -> Vec<u8> {
    let column = kind.map_or(Struct::default(), |kind| Struct::default().i32(1, kind)).i32(3, repetition).text(4, name);
    children.map_or(column.clone(), |children| column.i32(5, children)).end()
}

impl ForgedFile {
    fn new(kind: i64, pages: Vec<u8>) -> Self {
        Self {
            kind,
            codec: 0,
            pages,
            has_dictionary: false,
            rows: 3,
            schema: None,
            index: Vec::new(),
            away: 0,
            size: None,
            has_columns: true,
        }
    }

    fn bytes(&self) -> Vec<u8> {
        let length = self.pages.len() as i64;
        let schema = self.schema.clone();
        let own = || vec![column("root", None, 0, Some(1)), column("text", Some(self.kind), 0, None)];
        let schema = schema.unwrap_or_else(own);
        let mut meta =
            Struct::default().i32(1, self.kind).list(2, 5, 1, &[vec![0]]).list(3, 8, 1, &[b"\x04text".to_vec()]);
        meta = meta
            .i32(4, self.codec)
            .i64(5, self.rows)
            .i64(6, 1 << 32)
            .i64(7, self.size.unwrap_or(length))
            .i64(9, 4 + self.away + i64::from(self.has_dictionary));
        if self.has_dictionary {
            meta = meta.i64(11, 4);
        }
        let mut chunk = Struct::default().i64(2, 0).inner(3, meta);
        if !self.index.is_empty() {
            chunk = chunk.i64(4, 4 + length).i32(5, self.index.len() as i64);
        }
        let columns = if self.has_columns { vec![chunk.end()] } else { vec![] };
        let group =
            Struct::default().list(1, 12, columns.len() as u64, &columns).i64(2, length).i64(3, self.rows).end();
        let groups = if self.pages.is_empty() { vec![] } else { vec![group] };
        let footer = Struct::default().i32(1, 1).list(2, 12, schema.len() as u64, &schema).i64(3, self.rows);
        let footer = footer.list(4, 12, groups.len() as u64, &groups).text(6, "a lie").end();
        let length = (footer.len() as u32).to_le_bytes();
        [b"PAR1", &self.pages[..], &self.index, &footer, &length, b"PAR1"].concat()
    }
}

/// Returns a page whose header states this size and number of values.
fn page(size: i64, values: i64, encoding: i64, data: &[u8]) -> Vec<u8> {
    let header = Struct::default().i32(1, 0).i32(2, size).i32(3, data.len() as i64);
    let values = Struct::default().i32(1, values).i32(2, encoding).i32(3, 3).i32(4, 3);
    [header.inner(5, values).end(), data.to_vec()].concat()
}

fn texts() -> Vec<u8> {
    b"\x01\0\0\0a\x01\0\0\0b\x01\0\0\0c".to_vec()
}

/// Returns delta-encoded numbers whose header states `count` values.
fn deltas(count: u64) -> Vec<u8> {
    [&varint(128)[..], &varint(4), &varint(count), &[2, 0, 0, 0, 0, 0], b"ab"].concat()
}

#[test]
fn false_sizes_allocate_no_memory() {
    let bench = Bench::new(&[]);
    let all = [
        "dedup -n 1000 -o out in",
        "dedup -n 1000 --column text --compress none -o out in",
        "corpus -n 1000 -o out in",
    ];
    let refused = |what: &str, forged: &ForgedFile| {
        for line in all {
            assert_eq!(check(&bench, &forged.bytes(), line), 2, "{what}");
        }
    };
    let valid = ForgedFile::new(TEXTS, page(15, 3, 0, &texts()));
    assert!(all.iter().all(|line| check(&bench, &valid.bytes(), line) == 0));
    let max = i64::from(i32::MAX);
    refused("no columns", &ForgedFile { has_columns: false, ..valid.clone() });
    let texts_by_schema = vec![column("root", None, 0, Some(1)), column("text", Some(TEXTS), 0, None)];
    let numbers = ForgedFile::new(INT32, page(12, 3, 0, &[0x7F; 12]));
    refused("another type", &ForgedFile { schema: Some(texts_by_schema), ..numbers });
    for codec in [-1, 3, 77] {
        refused("a codec", &ForgedFile { codec, ..valid.clone() });
    }
    for away in [1 << 40, i64::MAX - 4, 5, -5, -1 << 40] {
        refused("the place of the pages", &ForgedFile { away, ..valid.clone() });
    }
    for size in [1 << 60, 5, 0, -5] {
        refused("the size of the pages", &ForgedFile { size: Some(size), ..valid.clone() });
    }
    for codec in 1..=7 {
        refused("a page", &ForgedFile { codec, pages: page(max, 3, 0, &texts()), ..valid.clone() });
    }
    for (rows, values) in [(3, max), (max, max), (max, 3), (i64::MAX, 3), (2, 3), (0, 3), (-1, 3)] {
        if (rows, values) != (3, max) {
            refused("rows", &ForgedFile { rows, pages: page(15, values, 0, &texts()), ..valid.clone() });
        }
    }
    // A run of 2^30 nulls or of values of one list is encoded in a few bytes.
    let run = |values: &[(u64, u8)]| {
        let run: Vec<u8> =
            values.iter().flat_map(|&(count, level)| [varint(count << 1), vec![level]].concat()).collect();
        [&(run.len() as u32).to_le_bytes()[..], &run].concat()
    };
    let schema = |repetition| vec![column("root", None, 0, Some(1)), column("text", Some(INT32), repetition, None)];
    let nulls = ForgedFile::new(INT32, page(7, 1 << 30, 0, &run(&[(1 << 30, 0)])));
    refused("nulls", &ForgedFile { rows: 1 << 30, schema: Some(schema(1)), ..nulls.clone() });
    let levels = [run(&[(1, 0), (1 << 30, 1)]), run(&[(1 << 30, 1)]), vec![7, 0, 0, 0]].concat();
    let list = ForgedFile { pages: page(7, 1 << 30, 0, &levels), rows: 1, schema: Some(schema(2)), ..nulls };
    refused("a list", &list);
    for kind in [INT32, 2, 3, TEXTS] {
        let header = Struct::default().i32(1, 2).i32(2, 15).i32(3, 15);
        let header = header.inner(7, Struct::default().i32(1, max).i32(2, 0)).end();
        let pages = [header, texts(), page(4, 3, 8, &[1, 6, 0, 0])].concat();
        refused("a dictionary", &ForgedFile { has_dictionary: true, ..ForgedFile::new(kind, pages) });
    }
    for count in [1 << 28, 1 << 31, 1 << 40, i64::MAX as u64] {
        for (encoding, data) in [(6, deltas(count)), (7, deltas(count)), (7, [deltas(1), deltas(count)].concat())] {
            refused("lengths", &ForgedFile::new(TEXTS, page(99, 3, encoding, &data)));
        }
    }
    for count in [1 << 24, 1 << 28, max as u64] {
        refused("an index", &ForgedFile { index: [&[0x19, 0xFC], &varint(count)[..], &[0]].concat(), ..valid.clone() });
    }
    let empty = ForgedFile::new(INT32, Vec::new());
    for levels in [101, 1000, 100_000] {
        let groups = (0..levels).map(|_| column("group", None, 0, Some(1)));
        let schema = groups.chain([column("text", Some(INT32), 0, None)]).collect();
        refused("levels", &ForgedFile { schema: Some(schema), rows: 0, ..empty.clone() });
    }
    let schema = vec![column("root", None, 0, Some(max)), column("text", Some(INT32), 0, None)];
    refused("columns", &ForgedFile { schema: Some(schema), rows: 0, ..empty.clone() });
    // The maximum accepted depth.
    let groups = (0..98).map(|_| column("text", None, 0, Some(1)));
    let schema = groups.chain([column("text", Some(INT32), 0, None)]).collect();
    let deep = ForgedFile { schema: Some(schema), rows: 0, ..empty };
    assert_eq!(check(&bench, &deep.bytes(), "dedup -n 1000 -o out in"), 0);
}
