//! Scalable filters as files.

use super::*;
use crate::bytes::{Failing, with_header};
use bloomline::{AtomicBloomFilter, FileError, FileErrorKind};
use std::fs;
use std::io::Read;

fn filled(first: u64, rate: f64, seed: u64, keys: u64) -> ScalableBloomFilter {
    let mut filter = scalable(first, rate, seed);
    let keys: Vec<u64> = (0..keys).collect();
    filter.insert_batch(&keys, &mut vec![false; keys.len()]).unwrap();
    filter
}

/// The bytes of a stage in a file. The fields, without the name of the keys, fill a block.
fn bytes_of_stage(stage: &BloomFilter) -> usize {
    64 + 64 + stage.memory_bytes() + 16
}

/// Returns the error for a file. It must be the same in each way to read the file.
fn refused(bytes: &[u8]) -> FileError {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("damaged.bloom");
    fs::write(&path, bytes).unwrap();
    let loaded = ScalableBloomFilter::load(&path).unwrap_err();
    let read = ScalableBloomFilter::read_from(bytes).unwrap_err();
    assert_eq!(loaded.to_string(), format!("{}: {read}", path.display()));
    read
}

#[test]
fn merged_and_shrunk_filters_round_trip() {
    let mut merged = filled(10, 0.01, 7, 200);
    merged.union(&filled(3, 0.001, 7, 40)).unwrap();
    let mut shrunk = filled(1000, 0.01, 7, 9000);
    shrunk.shrink_to_fit().unwrap();
    for filter in [merged, shrunk] {
        let bytes = bytes_of!(&filter);
        let mut loaded = ScalableBloomFilter::read_from(&bytes[..]).unwrap();
        assert!(loaded == filter);
        let figures = |filter: &ScalableBloomFilter| (filter.keys(), filter.false_positive_rate());
        assert_eq!(figures(&loaded), figures(&filter));
        for key in 0..20_000u64 {
            loaded.insert(&key).unwrap();
        }
        assert!((0..20_000u64).all(|key| loaded.contains(&key)));
        // A merged stage must have a purpose.
        let fields = bytes.windows(4).position(|bytes| bytes == [1, 0, 8, 0]).unwrap();
        let silent = [&bytes[..fields], &[9, 0, 8, 0], &bytes[fields + 4..]].concat();
        assert!(ScalableBloomFilter::read_from(&silent[..]).is_err());
    }
}

#[test]
fn a_loaded_filter_equals_the_saved_one_and_continues_to_grow() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("series.bloom");
    for (first, rate, keys) in [(1, 0.5, 0), (1, 0.5, 1), (1, 0.01, 100), (100, 1e-6, 700), (100_000, 0.01, 300_001)] {
        let mut filter = filled(first, rate, keys, keys);
        filter.save(&path).unwrap();
        let bytes = fs::read(&path).unwrap();
        let stages: usize = filter.stages().iter().map(bytes_of_stage).sum();
        assert_eq!(bytes.len(), 64 + stages);
        assert_eq!(bytes, bytes_of!(&filter));

        let mut loaded = ScalableBloomFilter::load(&path).unwrap();
        assert!(loaded == filter);
        assert_eq!((loaded.keys(), loaded.seed()), (filter.keys(), keys));
        let followed = [&bytes[..], b"rest"].concat();
        let mut reader = &followed[..];
        assert!(ScalableBloomFilter::read_from(&mut reader).unwrap() == filter);
        assert_eq!(reader, b"rest");

        let more: Vec<u64> = (keys..3 * keys + 10).collect();
        let [mut new, mut expected] = [(); 2].map(|()| vec![false; more.len()]);
        assert_eq!(loaded.insert_batch(&more, &mut new), filter.insert_batch(&more, &mut expected));
        assert_eq!(new, expected);
        assert!(loaded == filter && loaded.stages().len() > 1);
        // Each stage is a file of its own.
        assert!(BloomFilter::read_from(&bytes[64..]).unwrap().seed() == keys);
    }
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "temporary files remain");
}

#[test]
fn every_flipped_bit_is_detected() {
    let filter = filled(3, 0.1, 7, 20);
    let good = bytes_of!(&filter);
    let mut starts = vec![64];
    filter.stages().iter().for_each(|stage| starts.push(starts[starts.len() - 1] + bytes_of_stage(stage)));
    assert_eq!((starts.len(), starts[3]), (4, good.len()));
    for bit in 0..good.len() * 8 {
        let mut bytes = good.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        // Only one bit of each byte is tested in a file, because files take longer than all other ways.
        let error = match bit % 8 {
            0 => refused(&bytes),
            _ => ScalableBloomFilter::read_from(&bytes[..]).unwrap_err(),
        };
        let expected = match bit / 8 {
            0..8 => matches!(error.kind(), FileErrorKind::NotBloomline),
            8..64 => matches!(error.kind(), FileErrorKind::DamagedHeader),
            byte => match error.kind() {
                FileErrorKind::Stage { stage, kind } if (starts[*stage]..starts[stage + 1]).contains(&byte) => {
                    match byte - starts[*stage] {
                        0..8 => matches!(**kind, FileErrorKind::NotBloomline),
                        8..128 => matches!(**kind, FileErrorKind::DamagedHeader),
                        _ => matches!(**kind, FileErrorKind::DamagedBody),
                    }
                }
                _ => false,
            },
        };
        assert!(expected, "bit {bit}: {error:?}");
    }
}

#[test]
fn every_truncation_is_detected() {
    let good = bytes_of!(&filled(3, 0.1, 7, 20));
    for length in 0..good.len() {
        let total = if length < 64 { 64 } else { good.len() };
        let (error, lengths) = (refused(&good[..length]), (length as u64, total as u64));
        let named = matches!(error.kind(), &FileErrorKind::Truncated { have, want } if (have, want) == lengths);
        assert!(named, "{length}: {error:?}");
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("long.bloom");
    fs::write(&path, [&good[..], &[0]].concat()).unwrap();
    let error = ScalableBloomFilter::load(&path).unwrap_err();
    let lengths = (good.len() as u64 + 1, good.len() as u64);
    assert!(matches!(error.kind(), &FileErrorKind::TooLong { have, want } if (have, want) == lengths), "{error}");
}

#[test]
fn impossible_headers_are_refused_with_the_field() {
    let filter = filled(300, 0.1, 7, 1500);
    let good = bytes_of!(&filter);
    let length = good.len() as u64;
    assert_eq!((with_header(&good, 0, 0, &[]), with_header(&good, 64, 0, &[])), (good.clone(), good.clone()));
    let newer = refused(&with_header(&good, 0, 8, &3u32.to_le_bytes()));
    assert!(matches!(newer.kind(), FileErrorKind::NewerVersion { found: 3, newest: 2 }), "{newer:?}");
    for start in [0, 64] {
        let error = refused(&with_header(&good, start, 8, &1u32.to_le_bytes()));
        let older = match error.kind() {
            FileErrorKind::Stage { stage: 0, kind } => kind,
            kind => kind,
        };
        assert!(matches!(older, FileErrorKind::OlderVersion { found: 1, oldest: 2 }), "{older:?}");
    }
    let [second, last] = [1, 2].map(|stage| filter.stages()[stage].memory_bytes() as u64);
    let in_last = filter.keys() - 900;
    // The field that is named, and its value; the position of the changed bytes, and their value.
    let fields: [(&str, u64, usize, u64); 16] = [
        ("stages", 0, 8, 2),
        ("stages", 65, 8, 65 << 32 | 2),
        ("rate", 0, 16, 0),
        ("rate", 1f64.to_bits(), 16, 1f64.to_bits()),
        ("rate", (-0.1f64).to_bits(), 16, (-0.1f64).to_bits()),
        ("rate", f64::NAN.to_bits(), 16, f64::NAN.to_bits()),
        ("first", 0, 24, 0),
        ("last", 0, 32, 0),
        ("last", 1201, 32, 1201),
        ("last", in_last, 24, (in_last - 1) / 4),
        ("length", 64 + 3 * 144 - 1, 40, 64 + 3 * 144 - 1),
        ("reserved", 1, 48, 1),
        // Only a reader detects these, because the length is already wrong.
        ("blocks", last / 64, 40, length - 64),
        ("blocks", second / 64, 40, length - last - 64),
        ("length", length + 1, 40, length + 1),
        ("length", length, 8, 2 << 32 | 2),
    ];
    for (name, found, offset, value) in fields {
        let bytes = with_header(&good, 0, offset, &value.to_le_bytes());
        let error = ScalableBloomFilter::read_from(&bytes[..]).unwrap_err();
        let kind = match error.kind() {
            FileErrorKind::Stage { kind, .. } => kind,
            kind => kind,
        };
        let named = matches!(*kind, FileErrorKind::Field { field, value, .. } if (field, value) == (name, found));
        assert!(named, "{name}: {kind:?}");
    }
    // Stages that are too small for the header's values, and stages of another hash.
    for bytes in
        [with_header(&good, 0, 16, &0.09f64.to_bits().to_le_bytes()), with_header(&good, 0, 24, &310u64.to_le_bytes())]
    {
        let error = refused(&bytes);
        let FileErrorKind::Stage { stage: 0, kind } = error.kind() else { panic!("{error:?}") };
        assert!(matches!(**kind, FileErrorKind::Field { field: "blocks", .. }), "{kind:?}");
    }
    let second = 64 + bytes_of_stage(&filter.stages()[0]);
    let other = bytes_of!(&filled(300, 0.1, 8, 1500));
    let error = refused(&[&good[..second], &other[second..]].concat());
    let FileErrorKind::Stage { stage: 1, kind } = error.kind() else { panic!("{error:?}") };
    assert!(matches!(**kind, FileErrorKind::Field { field: "seed", value: 8, .. }), "{kind:?}");
}

/// No system has 2^62 bytes: `OutOfMemory` would show that they were requested.
#[test]
fn a_header_with_too_many_blocks_takes_no_memory() {
    let good = bytes_of!(&filled(300, 0.1, 7, 300));
    // On 32 bits the larger ones exceed the address space.
    for &blocks in if usize::BITS == 32 { &[1u64 << 24][..] } else { &[1 << 30, 1 << 40, 1 << 56] } {
        let claim = with_header(&good, 64, 16, &blocks.to_le_bytes());
        let claim = with_header(&claim, 0, 40, &(64 + 64 + 80 + 64 * blocks).to_le_bytes());
        let error = refused(&claim);
        let lengths = (good.len() as u64, 64 + 64 + 80 + 64 * blocks);
        let named = matches!(error.kind(), &FileErrorKind::Truncated { have, want } if (have, want) == lengths);
        assert!(named, "{error:?}");
    }
    // The largest number that the format allows exceeds the address space, which is not a fault of a stage.
    let claim = with_header(&good, 64, 16, &((1u64 << 57) - 1).to_le_bytes());
    let error = ScalableBloomFilter::read_from(&claim[..]).unwrap_err();
    assert!(matches!(error.kind(), &FileErrorKind::OutOfMemory { bytes } if bytes == (1 << 63) - 64), "{error:?}");
}

#[test]
fn each_type_refuses_files_of_the_other() {
    let scalable = bytes_of!(&filled(300, 0.1, 7, 1500));
    assert!(matches!(BloomFilter::read_from(&scalable[..]).unwrap_err().kind(), FileErrorKind::Scalable));
    assert!(matches!(AtomicBloomFilter::read_from(&scalable[..]).unwrap_err().kind(), FileErrorKind::Scalable));
    assert!(matches!(refused(&scalable[64..]).kind(), FileErrorKind::NotScalable));
    for other in [&b"#!/bin/sh\n"[..], &[0; 1000]] {
        assert!(matches!(refused(other).kind(), FileErrorKind::NotBloomline));
    }
    let nested = [&scalable[..64], &scalable[..]].concat();
    let error = ScalableBloomFilter::read_from(&nested[..]).unwrap_err();
    assert_eq!(error.to_string(), "stage 0: a scalable filter: load it as a ScalableBloomFilter");
}

#[test]
fn errors_of_streams_are_returned() {
    let good = bytes_of!(&filled(3, 0.1, 7, 20));
    for limit in 0..good.len() {
        let error = ScalableBloomFilter::read_from((&good[..limit]).chain(Failing(0))).unwrap_err();
        assert!(matches!(error.kind(), FileErrorKind::Io(_)), "{limit}: {error}");
        assert_eq!(error.to_string(), "the line is dead", "{limit}");
    }
}

/// The file in tests/data, which every later version must still read. docs/FORMAT.md has its header.
#[test]
fn the_golden_file_round_trips() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../data/series.bloom");
    let loaded = ScalableBloomFilter::load(path).unwrap();
    assert_eq!((loaded.stages().len(), loaded.keys(), loaded.seed()), (3, 50, 1));
    let made_for: Vec<_> = loaded.stages().iter().map(BloomFilter::expected_keys).collect();
    assert_eq!(made_for, [Some(10), Some(20), Some(40)]);
    let built = filled(10, 0.01, 1, 50);
    assert!((0..50u64).all(|key| loaded.contains(&key)));
    assert!(built == loaded);
    assert_eq!(bytes_of!(&built), fs::read(path).unwrap());
}
