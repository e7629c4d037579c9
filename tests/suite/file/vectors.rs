//! The files in tests/data, which every later version must still read, and their contents.

use super::*;
use bloomline::{Key, KeyHasher};

/// Byte strings, text, integers and pairs; tests/suite/keys.rs has keys of the other types.
fn hashes(hasher: &KeyHasher) -> Vec<u64> {
    let of_one = |i: u8| {
        [
            format!("key {i}").hash_with(hasher),
            "long ".repeat(i.into()).hash_with(hasher),
            i.hash_with(hasher),
            (u16::from(i) * 0x0101).hash_with(hasher),
            (u32::from(i) * 0x0101_0101).hash_with(hasher),
            (u64::from(i) * 0x0101_0101_0101_0101).hash_with(hasher),
            (u128::from(i) << 100 | 7).hash_with(hasher),
            (format!("{i}"), i).hash_with(hasher),
        ]
    };
    (0..100).flat_map(of_one).collect()
}

/// Name, blocks, probes, seed.
const VECTORS: [(&str, usize, u32, u64); 4] = [
    ("probes4", 10, 4, 0),
    ("probes8", 17, 8, 1),
    ("probes12", 25, 12, 0x0123_4567_89AB_CDEF),
    ("probes16", 33, 16, u64::MAX),
];

fn path(name: &str) -> String {
    format!("{}/../data/{name}.bloom", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn golden_files_round_trip() {
    for (name, blocks, probes, seed) in VECTORS {
        let loaded = BloomFilter::load(path(name)).unwrap();
        assert_eq!((loaded.block_count(), loaded.probes(), loaded.seed()), (blocks, probes, seed));
        let mut built = filter(blocks, probes, seed, 0);
        for hash in hashes(&KeyHasher::new(seed)) {
            assert!(loaded.contains_hash(hash), "{name}");
            built.insert_hash(hash);
        }
        assert!(built == loaded, "{name}");
        assert_eq!(bytes_of!(&built), fs::read(path(name)).unwrap(), "{name}");
    }
}

#[test]
fn golden_files_with_fields_round_trip() {
    let loaded = BloomFilter::load(path("fields")).unwrap();
    assert_eq!(spec(&loaded), (Some(1000), Some(0.01), "url"));
    let builder = BloomFilter::builder().expected_keys(1000).false_positive_rate(0.01).key_name("url");
    let mut built: BloomFilter = builder.build().unwrap();
    assert_eq!((built.block_count(), built.probes()), (20, 8));
    for key in ["https://example.org/", "https://example.com/", "https://example.net/"] {
        assert!(loaded.contains(key) && built.insert(key));
    }
    assert!(built == loaded);
    assert_eq!(bytes_of!(&built), fs::read(path("fields")).unwrap());
}

#[test]
fn version_1_is_refused_by_name() {
    let old = fs::read(path("version1")).unwrap();
    let error = refused(&old);
    assert!(matches!(*error.kind(), FileErrorKind::OlderVersion { found: 1, oldest: 2 }), "{error:?}");
    let error = BloomFilter::load(path("version1")).unwrap_err().to_string();
    assert!(error.contains("written in version 1") && error.contains("build the filter again"), "{error}");
    // With one block the bits are the same as in version 2.
    assert_eq!(with_header(&old, 0, 8, &[2]), fs::read(path("example")).unwrap());
}

#[test]
fn the_documented_example_matches_its_file() {
    let mut example = filter(1, 8, 0, 0);
    example.insert("bloom");
    example.insert(&42u32);
    assert_eq!(bytes_of!(&example), fs::read(path("example")).unwrap());
    // Lines such as `00000010  01 00 …`, in docs/FORMAT.md.
    let text = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/FORMAT.md")).unwrap();
    let mut documented = Vec::new();
    for line in text.lines() {
        if let Some((offset, bytes)) = line.split_once("  ")
            && usize::from_str_radix(offset, 16) == Ok(documented.len())
            && offset.len() == 8
        {
            let bytes = bytes.split_whitespace().take(16);
            documented.extend(bytes.map(|byte| u8::from_str_radix(byte, 16).unwrap()));
        }
    }
    assert_eq!(documented, bytes_of!(&example));
}
