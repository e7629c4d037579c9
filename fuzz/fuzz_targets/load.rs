//! Arbitrary bytes as a file: an error, or a filter that is written as the same bytes. Run it with little memory,
//! `-rss_limit_mb=256 -malloc_limit_mb=64`, which no header's claims may exceed.
#![no_main]

use bloomline::{AtomicBloomFilter, BloomFilter, FileErrorKind, KeyHasher, ScalableBloomFilter};
use libfuzzer_sys::fuzz_target;
use std::io::{self, Read};
use twox_hash::XxHash3_64;

const HEADER: usize = 64;
const TRAILER: usize = 16;

/// Gives the data in parts of `part` bytes.
struct Parts<'a> {
    rest: &'a [u8],
    part: usize,
}

impl Read for Parts<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = buffer.len().min(self.part);
        self.rest.read(&mut buffer[..length])
    }
}

/// Makes the data pass the checks that no fuzzer passes by chance. Bit by bit, `repair` says which of them.
fn repair(data: &mut [u8], repair: u8) {
    if data.len() < HEADER {
        return;
    }
    if repair & 1 != 0 {
        data[..14].copy_from_slice(b"\x89BLOOM\r\n\x01\0\0\0\x01\0");
    }
    if repair & 2 != 0 {
        data[40..56].fill(0);
    }
    if repair & 4 != 0 {
        let seed = u64::from_le_bytes(data[24..32].try_into().unwrap());
        data[32..40].copy_from_slice(&golden_hash(seed).to_le_bytes());
    }
    let blocks = (data.len() - HEADER).saturating_sub(TRAILER) / 64;
    if repair & 8 != 0 {
        data[16..24].copy_from_slice(&(blocks as u64).to_le_bytes());
    }
    if repair & 16 != 0 {
        let checksum = XxHash3_64::oneshot(&data[..56]);
        data[56..HEADER].copy_from_slice(&checksum.to_le_bytes());
    }
    if let Some((body, trailer)) = data[HEADER..].split_at_mut_checked(64 * blocks)
        && let Some((ones, rest)) = trailer.split_first_chunk_mut::<8>()
        && let Some(checksum) = rest.first_chunk_mut::<8>()
    {
        if repair & 32 != 0 {
            *ones = body.iter().map(|byte| u64::from(byte.count_ones())).sum::<u64>().to_le_bytes();
        }
        if repair & 64 != 0 {
            *checksum = XxHash3_64::oneshot(&[&*body, &*ones].concat()).to_le_bytes();
        }
    }
}

/// From docs/FORMAT.md.
fn golden_hash(seed: u64) -> u64 {
    let hasher = KeyHasher::new(seed);
    let bytes: Vec<u8> = (1..=100).collect();
    [0, 1, 2, 3, 4, 8, 16, 17, 48, 49, 100, 1, 2, 4, 8, 16]
        .into_iter()
        .fold(0, |golden, length| hasher.combine(golden, hasher.bytes(&bytes[..length])))
}

/// The data as the only stage of a scalable filter, with a header that is sound where `first` and `last` are.
fn series(stage: &[u8], first: u8, last: u8) -> Vec<u8> {
    let mut bytes = b"\x89BLSER\r\n\x01\0\0\0\x01\0\0\0".to_vec();
    bytes.extend(0.5f64.to_bits().to_le_bytes());
    bytes.extend(u64::from(first).to_le_bytes());
    bytes.extend(u64::from(last).to_le_bytes());
    bytes.extend((HEADER as u64 + stage.len() as u64).to_le_bytes());
    bytes.extend([0; 8]);
    let checksum = XxHash3_64::oneshot(&bytes);
    bytes.extend(checksum.to_le_bytes());
    bytes.extend(stage);
    bytes
}

/// An error, or a scalable filter that is written as the same bytes.
fn check_series(data: &[u8]) {
    let mut rest = data;
    if let Ok(filter) = ScalableBloomFilter::read_from(&mut rest) {
        let mut written = Vec::new();
        filter.write_to(&mut written).unwrap();
        assert_eq!(written, data[..data.len() - rest.len()]);
        assert!(filter.expected_fpr() <= filter.false_positive_rate());
    }
}

fuzz_target!(|input: (u8, u16, &[u8])| {
    let (repairs, part, data) = input;
    check_series(data);
    let mut data = data.to_vec();
    repair(&mut data, repairs);
    let [first, last] = part.to_le_bytes();
    check_series(&series(&data, first, last));
    let mut rest = &data[..];
    let read = BloomFilter::read_from(&mut rest);
    let in_parts = BloomFilter::read_from(Parts { rest: &data, part: 1 + usize::from(part) });
    match (read, in_parts) {
        (Ok(filter), Ok(in_parts)) => {
            assert!(filter == in_parts);
            let length = data.len() - rest.len();
            assert_eq!(length, HEADER + filter.memory_bytes() + TRAILER);
            let mut written = Vec::new();
            filter.write_to(&mut written).unwrap();
            assert_eq!(written, data[..length]);
            written.clear();
            AtomicBloomFilter::from(filter).write_to(&mut written).unwrap();
            assert_eq!(written, data[..length]);
        }
        (Err(error), Err(in_parts)) => {
            assert_eq!(error.to_string(), in_parts.to_string());
            if let FileErrorKind::Truncated { have, want } = error.kind() {
                assert!(*have == data.len() as u64 && have < want);
            }
        }
        (one, other) => panic!("{one:?} {other:?}"),
    }
});
