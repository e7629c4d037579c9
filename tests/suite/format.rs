//! docs/FORMAT.md is enough for another implementation. `tests/data/format.py` was written from it alone. It writes the bytes
//! that the library writes, gives the same answers and refuses the same files.
//!
//! The tests that lack Python or its module `xxhash` say so on the standard error and pass, unless `BLOOMLINE_REQUIRE_PYTHON=1`.

use crate::bytes::with_header;
use crate::python::python;
use bloomline::{BloomFilter, Builder, FileError, FileErrorKind, ScalableBloomFilter};
use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use std::process::Stdio;
use twox_hash::XxHash3_64;

/// The path of a file in tests/data.
fn data(name: &str) -> String {
    format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// What format.py answers to these jobs.
fn ask(jobs: &[Value]) -> Option<Vec<Value>> {
    let mut python = python("tests/data/format.py")?.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = python.stdin.take().unwrap();
    let jobs: Vec<String> = jobs.iter().map(Value::to_string).collect();
    let writer = std::thread::spawn(move || writeln!(input, "{}", jobs.join("\n")).map(|()| jobs.len()));
    let output = python.wait_with_output().unwrap();
    assert!(output.status.success());
    let replies: Vec<Value> =
        output.stdout.split(|&byte| byte == b'\n').map_while(|line| serde_json::from_slice(line).ok()).collect();
    assert_eq!(replies.len(), writer.join().unwrap().unwrap());
    Some(replies)
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

/// The filter is filled here and there, from nothing or from an empty file, and each side reads what the other has
/// written.
macro_rules! both_agree {
    ($type:ty, $filter:expr, $made:expr) => {{
        #[allow(unused_mut)] // Some are shared.
        let mut filter: $type = $filter;
        let empty = bytes_of!(filter);
        // One key so often that no counter counts it all.
        let inserted = [keys(0..300), vec![b"often".to_vec(); 20]].concat();
        let asked = keys(0..700);
        let new: Vec<bool> = inserted.iter().map(|key| filter.insert(&key[..])).collect();
        let contains: Vec<bool> = asked.iter().map(|key| filter.contains(&key[..])).collect();
        assert!(contains[..300].iter().all(|found| *found));
        let bytes = bytes_of!(filter);
        let jobs = [
            json!({ "filter": $made, "insert": hex_of_all(&inserted), "contains": hex_of_all(&asked) }),
            json!({ "read": hex(&empty), "insert": hex_of_all(&inserted), "contains": hex_of_all(&asked) }),
            json!({ "read": hex(&bytes), "contains": hex_of_all(&asked) }),
        ];
        let Some(replies) = ask(&jobs) else { return };
        for reply in &replies {
            assert_eq!(reply["contains"], json!(contains), "{}", $made);
            assert!(file(reply) == bytes, "{}", $made);
            let read = <$type>::read_from(&file(reply)[..]).unwrap();
            assert!(asked.iter().zip(&contains).all(|(key, found)| read.contains(&key[..]) == *found), "{}", $made);
        }
        assert_eq!((&replies[0]["new"], &replies[1]["new"]), (&json!(new), &json!(new)), "{}", $made);
    }};
}

#[test]
fn words4_is_the_same_there() {
    for (blocks, probes, seed) in [(1, 8, 0), (7, 4, 1), (16, 8, 2), (33, 12, 1 << 63), (100, 16, u64::MAX)] {
        let made = json!({ "layout": "words4", "units": blocks, "probes": probes, "seed": seed });
        let builder = BloomFilter::builder().memory(64 * blocks).probes(probes).seed(seed);
        both_agree!(BloomFilter, builder.build().unwrap(), made);
    }
}

#[cfg(feature = "variants")]
mod variants {
    use super::*;
    use bloomline::variants::{
        ClassicBloomFilter, CountingBloomFilter, RegisterBloomFilter, SplitBlockBloomFilter, TwoBlockBloomFilter,
    };

    fn made(layout: &str, units: usize, probes: u32, seed: u64) -> Value {
        json!({ "layout": layout, "units": units, "probes": probes, "seed": seed })
    }

    /// A file without fields with more bits set in a byte, and the trailer that belongs to them.
    fn with_body(bytes: &[u8], place: usize, bits: u8) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        bytes[place] |= bits;
        let (trailer, end) = (bytes.len() - 16, bytes.len() - 8);
        let ones: u32 = bytes[64..trailer].iter().map(|byte| byte.count_ones()).sum();
        bytes[trailer..end].copy_from_slice(&u64::from(ones).to_le_bytes());
        let checksum = XxHash3_64::oneshot(&bytes[64..end]);
        bytes[end..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    #[test]
    fn other_layouts_are_the_same_there() {
        for (bits, probes) in [(1, 1), (3000, 7), (20_000, 32)] {
            let filter = ClassicBloomFilter::with_bits(bits, probes).unwrap();
            both_agree!(ClassicBloomFilter, filter, made("classic", bits as usize, probes, 0));
        }
        for (groups, probes) in [(1, 4), (5, 8), (40, 16)] {
            let filter = CountingBloomFilter::builder().memory(128 * groups).probes(probes).seed(5).build().unwrap();
            both_agree!(CountingBloomFilter, filter, made("counting", groups, probes, 5));
        }
        for (words, probes) in [(8, 2), (40, 5), (400, 10)] {
            let filter = RegisterBloomFilter::builder().memory(8 * words).probes(probes).seed(5).build().unwrap();
            both_agree!(RegisterBloomFilter, filter, made("register", words, probes, 5));
        }
        for (blocks, probes) in [(1, 8), (8, 16), (33, 24), (40, 32)] {
            let filter = TwoBlockBloomFilter::builder().memory(64 * blocks).probes(probes).seed(5).build().unwrap();
            both_agree!(TwoBlockBloomFilter, filter, made("words4x2", blocks, probes, 5));
        }
        for blocks in [1, 2, 33] {
            let filter = SplitBlockBloomFilter::with_bitset_bytes(32 * blocks).unwrap();
            both_agree!(SplitBlockBloomFilter, filter, made("split block", blocks, 8, 0));
        }
    }

    #[test]
    fn units_and_seeds_that_no_writer_writes_are_refused_by_both() {
        let mut classic = ClassicBloomFilter::with_bits(100, 3).unwrap();
        classic.insert("a");
        let classic = bytes_of!(classic);
        let split = bytes_of!(SplitBlockBloomFilter::with_bitset_bytes(32).unwrap());
        // The golden hash of seed 1.
        let seeded = bytes_of!(BloomFilter::builder().memory(64).probes(8).seed(1).build().unwrap());
        let (bit_100, bit_511) = (with_body(&classic, 64 + 12, 0x10), with_body(&classic, 64 + 63, 0x80));
        let cases = [
            ("units", with_header(&classic, 0, 40, &513u64.to_le_bytes())),
            ("units", with_header(&classic, 0, 40, &0u64.to_le_bytes())),
            ("units", bit_100),
            ("units", bit_511),
            ("units", with_body(&split, 64 + 32, 1)),
            ("seed", with_header(&split, 0, 24, &seeded[24..40])),
        ];
        let jobs: Vec<Value> = cases.iter().map(|(_, bytes)| json!({ "read": hex(bytes) })).collect();
        let Some(replies) = ask(&jobs) else { return };
        for (i, ((name, bytes), reply)) in cases.iter().zip(replies).enumerate() {
            let classic = ClassicBloomFilter::read_from(&bytes[..]).map(|_| ());
            let split = SplitBlockBloomFilter::read_from(&bytes[..]).map(|_| ());
            let error = if i < 4 { classic } else { split }.unwrap_err();
            assert!(matches!(error.kind(), FileErrorKind::Field { field, .. } if field == name), "{i}: {error}");
            let allowed = [format!("bad {name}"), "bad blocks".to_owned()];
            assert!(allowed.iter().any(|reason| reply["refused"] == json!(reason)), "{i}: {reply}");
        }
    }
}

#[test]
fn fields_go_both_ways() {
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
            let told = reply["rate"].as_str().map(|rate| rate.parse().unwrap());
            assert_eq!((&reply["expected_keys"], told, &reply["key_name"]), (&json!(keys), rate, &json!(name)));
        }
    }
}

/// A file without fields with these bytes as its fields, and so many more zeros than they need.
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
fn unknown_fields_are_skipped_by_both() {
    let mut filter = BloomFilter::builder().memory(640).probes(8).build().unwrap();
    keys(0..50).iter().for_each(|key| _ = filter.insert(&key[..]));
    let bytes = bytes_of!(filter);
    let known = field(1, &1000u64.to_le_bytes());
    let later = [&known[..], &field(4, b"later"), &field(0x7FFF, b"")].concat();
    let Some(replies) = ask(&[json!({ "read": hex(&with_fields(&bytes, &later, 0)) })]) else { return };
    let read = BloomFilter::read_from(&with_fields(&bytes, &later, 0)[..]).unwrap();
    assert!(read == filter && read.expected_keys() == Some(1000));
    assert_eq!(bytes_of!(read), with_fields(&bytes, &known, 0));
    assert_eq!(file(&replies[0]), with_fields(&bytes, &known, 0));
}

#[test]
fn a_filter_folds_there_to_the_same_bytes() {
    for probes in [4, 8, 12, 16] {
        let size = || BloomFilter::builder().memory(64 * 96).probes(probes);
        let rated = BloomFilter::builder().memory(64 * 96).false_positive_rate(0.001);
        for builder in [size().seed(9), size().key_name("url"), rated.key_name("line")] {
            let mut filter = builder.build().unwrap();
            keys(0..500).iter().for_each(|key| _ = filter.insert(&key[..]));
            let jobs: Vec<Value> =
                (0..=6).map(|fold| json!({ "read": hex(&bytes_of!(filter)), "fold": fold })).collect();
            let Some(replies) = ask(&jobs) else { return };
            for reply in &replies[..6] {
                assert!(file(reply) == bytes_of!(filter), "{probes}: {:?}", filter.expected_keys());
                assert_eq!(reply["expected_keys"], json!(filter.expected_keys()));
                let even = filter.block_count().is_multiple_of(2);
                assert_eq!(filter.fold(), even);
            }
            assert_eq!(replies[6]["refused"], "this filter does not fold");
        }
    }
}

#[test]
fn scalable_filters_that_were_merged_are_the_same_there() {
    let filled = |first: u64, keys: &[Vec<u8>]| {
        let builder = ScalableBloomFilter::builder().expected_keys(first).false_positive_rate(0.01).seed(5);
        let mut filter = builder.build().unwrap();
        keys.iter().for_each(|key| _ = filter.insert(&key[..]).unwrap());
        filter
    };
    let (after, asked) = (keys(90..300), keys(0..700));
    let mut merged = filled(10, &keys(0..70));
    merged.union(&filled(3, &keys(50..90))).unwrap();
    let mut shrunk = filled(100_000, &keys(0..90));
    shrunk.shrink_to_fit().unwrap();
    for mut filter in [merged, shrunk] {
        let bytes = bytes_of!(filter);
        after.iter().for_each(|key| _ = filter.insert(&key[..]).unwrap());
        let contains: Vec<bool> = asked.iter().map(|key| filter.contains(&key[..])).collect();
        let jobs = [
            json!({ "read": hex(&bytes) }),
            json!({ "read": hex(&bytes), "insert": hex_of_all(&after), "contains": hex_of_all(&asked) }),
        ];
        let Some(replies) = ask(&jobs) else { return };
        assert!(file(&replies[0]) == bytes);
        assert!(file(&replies[1]) == bytes_of!(filter));
        assert_eq!(replies[1]["contains"], json!(contains));
    }
}

#[test]
fn scalable_filters_are_the_same_there() {
    for (first, rate, seed, count) in [(1, 0.5, 0, 0), (1, 0.01, 1, 100), (10, 0.01, 2, 70), (100, 1e-6, 3, 500)] {
        let builder = ScalableBloomFilter::builder().expected_keys(first).false_positive_rate(rate).seed(seed);
        let mut filter = if seed == 2 { builder.key_name("url") } else { builder }.build().unwrap();
        let (before, after) = (keys(0..count), keys(count..2 * count));
        let mut new: Vec<bool> = before.iter().map(|key| filter.insert(&key[..]).unwrap()).collect();
        let bytes = bytes_of!(filter);
        new.extend(after.iter().map(|key| filter.insert(&key[..]).unwrap()));
        let asked = keys(0..700);
        let contains: Vec<bool> = asked.iter().map(|key| filter.contains(&key[..])).collect();
        let all = [&before[..], &after].concat();
        let name = Some(filter.key_name()).filter(|name| !name.is_empty());
        let made = json!({ "first": first, "rate": rate, "seed": seed, "key_name": name });
        let jobs = [
            json!({ "read": hex(&bytes) }),
            json!({ "read": hex(&bytes), "insert": hex_of_all(&after), "contains": hex_of_all(&asked) }),
            json!({ "scalable": made, "insert": hex_of_all(&all), "contains": hex_of_all(&asked) }),
        ];
        let Some(replies) = ask(&jobs) else { return };
        assert!(file(&replies[0]) == bytes);
        for reply in &replies[1..] {
            assert!(file(reply) == bytes_of!(filter), "{made}");
            assert!(ScalableBloomFilter::read_from(&file(reply)[..]).unwrap() == filter);
            assert_eq!(reply["contains"], json!(contains), "{made}");
        }
        assert_eq!(replies[1]["new"], json!(new[count as usize..]));
        assert_eq!(replies[2]["new"], json!(new));
    }
}

/// How format.py names what the library names so.
fn reason(kind: &FileErrorKind) -> String {
    match kind {
        FileErrorKind::NotBloomline => "not a file of bloomline".to_owned(),
        FileErrorKind::Scalable | FileErrorKind::NotScalable => "the other kind of file".to_owned(),
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

/// Neither side reads these files, and both give the same reason.
fn refused_by_both(files: &[Vec<u8>], load: impl Fn(&std::path::Path) -> FileError) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("damaged.bloom");
    let reason_here = |bytes: &Vec<u8>| {
        fs::write(&path, bytes).unwrap();
        reason(load(&path).kind())
    };
    let here: Vec<String> = files.iter().map(reason_here).collect();
    let jobs: Vec<Value> = files.iter().map(|bytes| json!({ "read": hex(bytes) })).collect();
    for (i, (reply, here)) in ask(&jobs).unwrap_or_default().iter().zip(&here).enumerate() {
        assert_eq!(reply["refused"], json!(here), "file {i}");
    }
    here
}

/// Every file that lacks bytes at the end, every one with a flipped bit in a byte, and a longer one.
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
fn damaged_files_are_refused_by_both() {
    let load = |path: &std::path::Path| BloomFilter::load(path).map(|_| ()).unwrap_err();
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

#[test]
fn damaged_scalable_files_are_refused_by_both() {
    let load = |path: &std::path::Path| ScalableBloomFilter::load(path).map(|_| ()).unwrap_err();
    let scalable = fs::read(data("series.bloom")).unwrap();
    refused_by_both(&damaged(&scalable), load);

    let other_seed = {
        let mut other =
            ScalableBloomFilter::builder().expected_keys(10).false_positive_rate(0.01).seed(2).build().unwrap();
        (0..50u64).for_each(|key| _ = other.insert(&key).unwrap());
        bytes_of!(other)
    };
    // The first stage has a block, and fields in 64 bytes.
    let second = 64 + 64 + 64 + 64 + 16;
    let cases = [
        ("newer version", with_header(&scalable, 0, 8, &[3])),
        ("older version", with_header(&scalable, 0, 8, &[1])),
        ("bad stages", with_header(&scalable, 0, 12, &[0])),
        ("bad stages", with_header(&scalable, 0, 12, &[65])),
        ("bad rate", with_header(&scalable, 0, 16, &1.0f64.to_le_bytes())),
        ("bad first", with_header(&scalable, 0, 24, &[0])),
        ("bad last", with_header(&scalable, 0, 32, &[0])),
        ("bad last", with_header(&scalable, 0, 32, &[41])),
        ("truncated", with_header(&scalable, 0, 40, &(scalable.len() as u64 + 1).to_le_bytes())),
        ("bad reserved", with_header(&scalable, 0, 48, &[1])),
        ("bad merged", with_header(&scalable, 0, 53, &[1])),
        ("bad stages", with_header(&scalable, 0, 52, &[3])),
        // The first stage takes as many keys as the third, which has room for more.
        ("bad last", with_header(&scalable, 0, 52, &[2])),
        ("bad blocks", with_header(&scalable, 0, 16, &1e-9f64.to_le_bytes())),
        ("bad seed", [&scalable[..second], &other_seed[second..]].concat()),
        ("the other kind of file", [&scalable[..64], &scalable].concat()),
    ];
    let (names, files): (Vec<&str>, Vec<_>) = cases.into_iter().unzip();
    let mut files = files;
    let nested = files.len() - 1;
    let length = files[nested].len() as u64;
    files[nested] = with_header(&files[nested], 0, 40, &length.to_le_bytes());
    assert_eq!(refused_by_both(&files, load), names);
}

/// The files in tests/data are not the library's own.
#[test]
fn the_golden_files_are_written_there() {
    let Some(mut python) = python("tests/data/golden.py") else { return };
    let folder = tempfile::tempdir().unwrap();
    assert!(python.arg(folder.path()).status().unwrap().success());
    let mut names: Vec<_> =
        fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    let expected = ["example", "fields", "keys", "probes12", "probes16", "probes4", "probes8", "series"];
    assert_eq!(names, expected.map(|name| format!("{name}.bloom")));
    for name in names {
        assert!(fs::read(folder.path().join(&name)).unwrap() == fs::read(data(&name)).unwrap(), "{name}");
    }
}
