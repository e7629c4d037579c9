//! docs/FORMAT.md is enough for another implementation. `tests/data/format.py` was written from it alone. It writes the bytes
//! that the library writes, gives the same answers and refuses the same files.
//!
//! Without Python or its module `xxhash`, the tests print a note to standard error and pass, unless
//! `BLOOMLINE_REQUIRE_PYTHON=1`.

use crate::bytes::with_header;
use crate::python::python;
use bloomline::{BloomFilter, Builder, FileError, FileErrorKind};
use serde_json::{Value, json};
use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::{LazyLock, Mutex};
use twox_hash::XxHash3_64;

/// The path of a file in tests/data.
fn data(name: &str) -> String {
    format!("{}/../data/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// The answers of format.py to these jobs. One process answers all tests, because its start takes longer than most jobs.
fn ask(jobs: &[Value]) -> Option<Vec<Value>> {
    static PROGRAM: LazyLock<Option<Mutex<Child>>> = LazyLock::new(|| {
        let mut python = python("../data/format.py")?;
        Some(Mutex::new(python.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()))
    });
    let mut program = PROGRAM.as_ref()?.lock().unwrap();
    let Child { stdin: Some(input), stdout: Some(output), .. } = &mut *program else { unreachable!("both are piped") };
    let lines: String = jobs.iter().map(|job| format!("{job}\n")).collect();
    std::thread::scope(|threads| {
        threads.spawn(move || input.write_all(lines.as_bytes()).unwrap());
        let reply = |line: io::Result<String>| serde_json::from_str(&line.unwrap()).unwrap();
        let replies: Vec<Value> = BufReader::new(output).lines().take(jobs.len()).map(reply).collect();
        assert_eq!(replies.len(), jobs.len(), "format.py ended");
        Some(replies)
    })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The file in a reply.
fn file(reply: &Value) -> Vec<u8> {
    let hex = reply["file"].as_str().unwrap_or_else(|| panic!("{reply}"));
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

/// Byte strings of 0 to 100 bytes; the short ones repeat.
fn keys(range: std::ops::Range<u64>) -> Vec<Vec<u8>> {
    let key = |i: u64| (0..i % 101).map(|at| (i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (at % 8 * 7)) as u8).collect();
    range.map(key).collect()
}

fn hex_of_all(keys: &[Vec<u8>]) -> Vec<String> {
    keys.iter().map(|key| hex(key)).collect()
}

/// Both implementations fill the filter, from nothing and from an empty file, and each reads what the other has written.
macro_rules! both_agree {
    ($type:ty, $filter:expr, $made:expr) => {{
        #[allow(unused_mut)] // Some are shared.
        let mut filter: $type = $filter;
        let empty = bytes_of!(filter);
        // One key is inserted more often than a counter can count.
        let inserted = [keys(0..300), vec![b"often".to_vec(); 20]].concat();
        let queried = keys(0..700);
        let new: Vec<bool> = inserted.iter().map(|key| filter.insert(&key[..])).collect();
        let contains: Vec<bool> = queried.iter().map(|key| filter.contains(&key[..])).collect();
        assert!(contains[..300].iter().all(|found| *found));
        let bytes = bytes_of!(filter);
        header::check_answers(&bytes, &queried, &contains);
        let jobs = [
            json!({ "filter": $made, "insert": hex_of_all(&inserted), "contains": hex_of_all(&queried) }),
            json!({ "read": hex(&empty), "insert": hex_of_all(&inserted), "contains": hex_of_all(&queried) }),
            json!({ "read": hex(&bytes), "contains": hex_of_all(&queried) }),
        ];
        let Some(replies) = ask(&jobs) else { return };
        for reply in &replies {
            assert_eq!(reply["contains"], json!(contains), "{}", $made);
            assert!(file(reply) == bytes, "{}", $made);
            let read = <$type>::read_from(&file(reply)[..]).unwrap();
            assert!(queried.iter().zip(&contains).all(|(key, found)| read.contains(&key[..]) == *found), "{}", $made);
        }
        assert_eq!((&replies[0]["new"], &replies[1]["new"]), (&json!(new), &json!(new)), "{}", $made);
    }};
}

#[test]
fn both_implementations_write_the_same_words4_filters() {
    for (blocks, probes, seed) in [(1, 8, 0), (7, 4, 1), (16, 8, 2), (33, 12, 1 << 63), (100, 16, u64::MAX)] {
        let made = json!({ "layout": "words4", "units": blocks, "probes": probes, "seed": seed });
        let builder = BloomFilter::builder().memory(64 * blocks).probes(probes).seed(seed);
        both_agree!(BloomFilter, builder.build().unwrap(), made);
    }
}

mod chain;
mod header;
#[cfg(feature = "variants")]
mod variants;

#[test]
fn both_implementations_read_each_others_fields() {
    let builder = || BloomFilter::builder().seed(3);
    let sized = || builder().expected_keys(1000).false_positive_rate(0.01);
    let builders: [Builder<BloomFilter>; 6] = [
        builder().memory(640).probes(8),
        builder().memory(640).probes(8).key_name("url"),
        builder().memory(640).expected_keys(77),
        sized(),
        sized().key_name("Schlüssel 🗝"),
        sized().key_name("n".repeat(1024)),
    ];
    for builder in builders {
        let mut filter = builder.build().unwrap();
        filter.insert("key");
        let bytes = bytes_of!(filter);
        let name = Some(filter.key_name()).filter(|name| !name.is_empty());
        let (keys, rate) = (filter.expected_keys(), filter.false_positive_rate());
        let (units, probes, seed) = (filter.block_count(), filter.probes(), filter.seed());
        let made = json!({
            "layout": "words4", "units": units, "probes": probes, "seed": seed,
            "expected_keys": keys, "rate": rate, "key_name": name,
        });
        let jobs = [json!({ "filter": made, "insert": [hex(b"key")] }), json!({ "read": hex(&bytes) })];
        let Some(replies) = ask(&jobs) else { return };
        for reply in replies {
            assert!(file(&reply) == bytes, "{reply}");
            let read = BloomFilter::read_from(&file(&reply)[..]).unwrap();
            assert!(read == filter);
            assert_eq!(
                (read.expected_keys(), read.false_positive_rate(), read.key_name()),
                (keys, rate, filter.key_name())
            );
            let found_rate = reply["rate"].as_str().map(|rate| rate.parse().unwrap());
            assert_eq!((&reply["expected_keys"], found_rate, &reply["key_name"]), (&json!(keys), rate, &json!(name)));
        }
    }
}

/// Adds fields to a file without fields, with `zeros` more zeros than the padding needs.
fn with_fields(bytes: &[u8], fields: &[u8], zeros: usize) -> Vec<u8> {
    let mut fields = fields.to_vec();
    fields.resize((fields.len() + 8).next_multiple_of(64) - 8 + zeros, 0);
    let checksum = XxHash3_64::oneshot(&fields);
    fields.extend(checksum.to_le_bytes());
    let header = with_header(bytes, 0, 48, &(fields.len() as u32).to_le_bytes());
    [&header[..64], &fields, &bytes[64..]].concat()
}

fn field(tag: u16, value: &[u8]) -> Vec<u8> {
    [&tag.to_le_bytes()[..], &(value.len() as u16).to_le_bytes(), value].concat()
}

#[test]
fn both_implementations_skip_unknown_fields() {
    let mut filter = BloomFilter::builder().memory(640).probes(8).build().unwrap();
    keys(0..50).iter().for_each(|key| _ = filter.insert(&key[..]));
    let bytes = bytes_of!(filter);
    let known = field(1, &1000u64.to_le_bytes());
    let later = [&known[..], &field(6, b"later"), &field(0x7FFF, b"")].concat();
    let Some(replies) = ask(&[json!({ "read": hex(&with_fields(&bytes, &later, 0)) })]) else { return };
    let read = BloomFilter::read_from(&with_fields(&bytes, &later, 0)[..]).unwrap();
    assert!(read == filter && read.expected_keys() == Some(1000));
    assert_eq!(bytes_of!(read), with_fields(&bytes, &known, 0));
    assert_eq!(file(&replies[0]), with_fields(&bytes, &known, 0));
}

#[test]
fn both_implementations_fold_to_the_same_bytes() {
    let size = |probes| BloomFilter::builder().memory(64 * 96).probes(probes);
    let sized = [4, 8, 12, 16].into_iter().flat_map(|probes| [size(probes).seed(9), size(probes).key_name("url")]);
    let rated = BloomFilter::builder().memory(64 * 96).false_positive_rate(0.001).key_name("line");
    let filled = |builder: Builder<BloomFilter>| {
        let mut filter = builder.build().unwrap();
        keys(0..500).iter().for_each(|key| _ = filter.insert(&key[..]));
        filter
    };
    let mut filters: Vec<BloomFilter> = sized.chain([rated]).map(filled).collect();
    let fold = |filter: &BloomFilter, times: u32| json!({ "read": hex(&bytes_of!(filter)), "fold": times });
    let jobs: Vec<Value> = filters.iter().flat_map(|filter| (0..=6).map(move |times| fold(filter, times))).collect();
    let Some(replies) = ask(&jobs) else { return };
    for (filter, replies) in filters.iter_mut().zip(replies.chunks(7)) {
        for reply in &replies[..6] {
            assert!(file(reply) == bytes_of!(filter), "{}: {:?}", filter.probes(), filter.expected_keys());
            assert_eq!(reply["expected_keys"], json!(filter.expected_keys()));
            let even = filter.block_count().is_multiple_of(2);
            assert_eq!(filter.fold(), even);
        }
        assert_eq!(replies[6]["refused"], "this filter does not fold");
    }
}

/// The name in format.py for an error of the library.
fn reason(kind: &FileErrorKind) -> String {
    match kind {
        FileErrorKind::NotBloomline => "not a file of bloomline".to_owned(),
        FileErrorKind::Scalable | FileErrorKind::NotScalable | FileErrorKind::Rotating | FileErrorKind::NotRotating => {
            "another kind of file".to_owned()
        }
        FileErrorKind::DamagedHeader => "damaged header".to_owned(),
        FileErrorKind::DamagedBody => "damaged body".to_owned(),
        FileErrorKind::NewerVersion { .. } => "newer version".to_owned(),
        FileErrorKind::OlderVersion { .. } => "older version".to_owned(),
        FileErrorKind::OtherHash => "other hash".to_owned(),
        FileErrorKind::Truncated { .. } => "truncated".to_owned(),
        FileErrorKind::TooLong { .. } => "too long".to_owned(),
        FileErrorKind::Field { field, .. } => format!("bad {field}"),
        FileErrorKind::Stage { kind, .. } => reason(kind),
        kind => panic!("{kind:?}"),
    }
}

/// Checks that both implementations refuse these files for the same reasons, and the reader in C, too. Returns the reasons.
fn refused_by_both(files: &[Vec<u8>], load: impl Fn(&Path) -> FileError) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("damaged.bloom");
    let reason_here = |bytes: &Vec<u8>| {
        fs::write(&path, bytes).unwrap();
        reason(load(&path).kind())
    };
    let here: Vec<String> = files.iter().map(reason_here).collect();
    header::check_refusals(files, &here);
    let jobs: Vec<Value> = files.iter().map(|bytes| json!({ "read": hex(bytes) })).collect();
    for (i, (reply, here)) in ask(&jobs).unwrap_or_default().iter().zip(&here).enumerate() {
        assert_eq!(reply["refused"], json!(here), "file {i}");
    }
    here
}

/// Every truncation of a file, every file with a flipped bit in a byte, and a longer one.
fn damaged(good: &[u8]) -> Vec<Vec<u8>> {
    let flipped = |at: usize| {
        let mut bytes = good.to_vec();
        bytes[at] ^= 1 << (at % 8);
        bytes
    };
    let short = (0..good.len()).map(|length| good[..length].to_vec());
    short.chain((0..good.len()).map(flipped)).chain([[good, &[0]].concat()]).collect()
}

#[test]
fn both_implementations_refuse_damaged_files() {
    let load = |path: &Path| BloomFilter::load(path).map(|_| ()).unwrap_err();
    let fields = fs::read(data("fields.bloom")).unwrap();
    refused_by_both(&damaged(&fields), load);

    let plain = fs::read(data("example.bloom")).unwrap();
    let keys = |keys: u64| field(1, &keys.to_le_bytes());
    let rate = |rate: f64| field(2, &rate.to_le_bytes());
    let with = |fields: &[Vec<u8>]| with_fields(&plain, &fields.concat(), 0);
    let cases = [
        ("newer version", with_header(&plain, 0, 8, &[3])),
        ("older version", with_header(&plain, 0, 8, &[1])),
        ("older version", with_header(&plain, 0, 8, &[0])),
        ("older version", fs::read(data("version1.bloom")).unwrap()),
        ("bad layout", with_header(&plain, 0, 12, &[0])),
        ("bad layout", with_header(&plain, 0, 12, &[7])),
        ("bad probes", with_header(&plain, 0, 14, &[6])),
        ("bad blocks", with_header(&plain, 0, 16, &[0])),
        ("bad blocks", with_header(&plain, 0, 23, &[2])),
        ("truncated", with_header(&plain, 0, 16, &[2])),
        ("other hash", with_header(&plain, 0, 24, &[1])),
        ("other hash", with_header(&plain, 0, 32, &[1])),
        ("bad units", with_header(&plain, 0, 40, &[1])),
        ("bad fields", with_header(&plain, 0, 48, &[1])),
        ("bad fields", with_header(&plain, 0, 48, &(65536u32 + 64).to_le_bytes())),
        ("bad reserved", with_header(&plain, 0, 52, &[1])),
        ("bad expected keys", with(&[keys(0)])),
        ("bad expected keys", with(&[field(1, &[1; 7])])),
        ("bad rate", with(&[rate(0.0)])),
        ("bad rate", with(&[rate(1.0)])),
        ("bad rate", with(&[rate(f64::NAN)])),
        ("bad rate", with(&[field(2, &[1; 9])])),
        ("bad key name", with(&[field(3, b"")])),
        ("bad key name", with(&[field(3, &[b'n'; 1025])])),
        ("bad key name", with(&[field(3, b"\xFF")])),
        ("bad key name", with(&[field(3, "\u{85}".as_bytes())])),
        ("bad tag", with(&[rate(0.5), keys(1)])),
        ("bad tag", with(&[keys(1), keys(1)])),
        ("bad tag", with(&[field(0x8000, b"")])),
        ("bad tag", with(&[keys(1), vec![9, 0, 200, 0]])),
        // One byte is left for a tag, then none for a length.
        ("bad padding", with(&[field(9, &[1; 51]), vec![1]])),
        ("bad tag", with(&[field(9, &[1; 50]), vec![1, 1]])),
        ("bad padding", with(&[keys(1), vec![0, 0, 0, 1]])),
        ("bad fields", with_fields(&plain, &[], 0)),
        ("bad fields", with_fields(&plain, &keys(1), 64)),
    ];
    let (names, files): (Vec<&str>, Vec<_>) = cases.into_iter().unzip();
    assert_eq!(refused_by_both(&files, load), names);
}

/// The files in tests/data are not the library's own output.
#[test]
fn format_py_writes_the_golden_files() {
    let Some(mut python) = python("../data/golden.py") else { return };
    let folder = tempfile::tempdir().unwrap();
    assert!(python.arg(folder.path()).status().unwrap().success());
    let mut names: Vec<_> =
        fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    let expected = [
        "example", "fields", "keys", "probes12", "probes16", "probes4", "probes8", "rotating", "rows", "series",
        "values", "values1",
    ];
    assert_eq!(names, expected.map(|name| format!("{name}.bloom")));
    for name in names {
        assert!(fs::read(folder.path().join(&name)).unwrap() == fs::read(data(&name)).unwrap(), "{name}");
    }
}
