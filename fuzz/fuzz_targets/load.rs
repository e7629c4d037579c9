//! Arbitrary bytes as a file: an error, or a filter that is written as the same bytes. Run it with little memory,
//! `-rss_limit_mb=256 -malloc_limit_mb=64`, which no header's claims may exceed.
#![no_main]

use bloomline::{
    AtomicBloomFilter, BloomFilter, BorrowedBloomFilter, FileError, FileErrorKind, KeyHasher, RotatingBloomFilter,
    ScalableBloomFilter,
};
use libfuzzer_sys::fuzz_target;
use std::io::{self, Read};
use twox_hash::XxHash3_64;

const HEADER: usize = 64;
const TRAILER: usize = 16;

/// Yields the data in parts of `part` bytes.
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

/// Makes the data pass checks that a fuzzer does not pass by chance. Each bit of `repair` selects a check.
fn repair(data: &mut [u8], repair: u8) {
    if data.len() < HEADER {
        return;
    }
    if repair & 1 != 0 {
        data[..14].copy_from_slice(b"\x89BLOOM\r\n\x02\0\0\0\x01\0");
    }
    if repair & 2 != 0 {
        data[40..48].fill(0);
        // At most three blocks of fields.
        data[48] &= 64 | 128;
        data[49..56].fill(0);
    }
    if repair & 4 != 0 {
        let seed = u64::from_le_bytes(data[24..32].try_into().unwrap());
        data[32..40].copy_from_slice(&golden_hash(seed).to_le_bytes());
    }
    let fields = fields_length(data).min(data.len() - HEADER);
    let blocks = (data.len() - HEADER - fields).saturating_sub(TRAILER) / 64;
    if repair & 8 != 0 {
        data[16..24].copy_from_slice(&(blocks as u64).to_le_bytes());
    }
    if repair & 16 != 0 {
        let checksum = XxHash3_64::oneshot(&data[..56]);
        data[56..HEADER].copy_from_slice(&checksum.to_le_bytes());
    }
    if repair & 128 != 0
        && let Some((fields, checksum)) = data[HEADER..HEADER + fields].split_last_chunk_mut::<8>()
    {
        *checksum = XxHash3_64::oneshot(fields).to_le_bytes();
    }
    if let Some((body, trailer)) = data[HEADER + fields..].split_at_mut_checked(64 * blocks)
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

/// The bytes of the fields, as a header has them.
fn fields_length(header: &[u8]) -> usize {
    u32::from_le_bytes(header[48..52].try_into().unwrap()) as usize
}

/// True if a file that was read has fields that its reader does not know. They are not written again.
fn has_unknown_fields(data: &[u8]) -> bool {
    let mut rest = &data[HEADER..HEADER + fields_length(data).saturating_sub(8)];
    while let Some((&[tag, tag_high, length, length_high], after)) = rest.split_first_chunk() {
        match u16::from_le_bytes([tag, tag_high]) {
            0 => return false,
            1..=3 => rest = &after[u16::from_le_bytes([length, length_high]).into()..],
            _ => return true,
        }
    }
    false
}

/// The golden hash by docs/FORMAT.md.
fn golden_hash(seed: u64) -> u64 {
    let hasher = KeyHasher::new(seed);
    let bytes: Vec<u8> = (1..=100).collect();
    [0, 1, 2, 3, 4, 8, 16, 17, 48, 49, 100, 1, 2, 4, 8, 16]
        .into_iter()
        .fold(0, |golden, length| hasher.combine(golden, hasher.bytes(&bytes[..length])))
}

/// The data as each part of a scalable or rotating filter, with a header that is sound where `keys` and `last` are.
fn chain(magic: &[u8; 8], parts: u32, part: &[u8], keys: u8, last: u8) -> Vec<u8> {
    let mut bytes = magic.to_vec();
    bytes.extend(2u32.to_le_bytes());
    bytes.extend(parts.to_le_bytes());
    bytes.extend(0.5f64.to_bits().to_le_bytes());
    bytes.extend(u64::from(keys).to_le_bytes());
    bytes.extend(u64::from(last).to_le_bytes());
    bytes.extend((HEADER as u64 + u64::from(parts) * part.len() as u64).to_le_bytes());
    bytes.extend([0; 8]);
    let checksum = XxHash3_64::oneshot(&bytes);
    bytes.extend(checksum.to_le_bytes());
    (0..parts).for_each(|_| bytes.extend(part));
    bytes
}

/// Checks that the data are refused, or are a scalable filter that is written as the same bytes.
fn check_scalable(data: &[u8]) {
    let mut rest = data;
    if let Ok(filter) = ScalableBloomFilter::read_from(&mut rest) {
        let mut written = Vec::new();
        filter.write_to(&mut written).unwrap();
        assert!(ScalableBloomFilter::read_from(&written[..]).unwrap() == filter);
        // No input that passes has other stages than those of `chain`.
        if !has_unknown_fields(&data[HEADER..]) {
            assert_eq!(written, data[..data.len() - rest.len()]);
        }
        assert!((0.0..=1.0).contains(&filter.estimated_fpr()));
    }
}

/// Checks that the data are refused, or are a rotating filter that is written as the same bytes.
fn check_rotating(data: &[u8]) {
    let mut rest = data;
    if let Ok(filter) = RotatingBloomFilter::read_from(&mut rest) {
        let mut written = Vec::new();
        filter.write_to(&mut written).unwrap();
        if !has_unknown_fields(&data[HEADER..]) {
            assert_eq!(written, data[..data.len() - rest.len()]);
        }
    }
}

/// Checks that borrowing the data gives the same filter or the same error as reading them.
fn check_borrowed(data: &[u8], read: &Result<BloomFilter, FileError>) {
    let mut memory = vec![0; data.len() + 128];
    memory.truncate(memory.as_ptr().align_offset(64));
    let start = memory.len();
    memory.extend(data);
    let borrowed = BorrowedBloomFilter::new(&memory[start..]).and_then(|filter| filter.verify().map(|()| filter));
    match (read, borrowed) {
        (Ok(filter), Ok(borrowed)) => assert!(*filter == *borrowed),
        (Err(error), Err(borrowed)) => assert_eq!(error.to_string(), borrowed.to_string()),
        (one, other) => panic!("{one:?} {other:?}"),
    }
}

fuzz_target!(|input: (u8, u16, &[u8])| {
    let (repairs, part, data) = input;
    check_scalable(data);
    check_rotating(data);
    let mut data = data.to_vec();
    repair(&mut data, repairs);
    let [keys, last] = part.to_le_bytes();
    check_scalable(&chain(b"\x89BLSER\r\n", 1, &data, keys, last));
    check_rotating(&chain(b"\x89BLROT\r\n", 2, &data, keys, last));
    let mut rest = &data[..];
    let read = BloomFilter::read_from(&mut rest);
    check_borrowed(&data, &read);
    let in_parts = BloomFilter::read_from(Parts { rest: &data, part: 1 + usize::from(part) });
    match (read, in_parts) {
        (Ok(filter), Ok(in_parts)) => {
            assert!(filter == in_parts);
            let length = data.len() - rest.len();
            assert_eq!(length, HEADER + fields_length(&data) + filter.memory_bytes() + TRAILER);
            let mut written = Vec::new();
            filter.write_to(&mut written).unwrap();
            if !has_unknown_fields(&data) {
                assert_eq!(written, data[..length]);
            }
            let mut again = Vec::new();
            AtomicBloomFilter::read_from(&written[..]).unwrap().write_to(&mut again).unwrap();
            assert_eq!(written, again);
            again.clear();
            AtomicBloomFilter::from(filter).write_to(&mut again).unwrap();
            assert_eq!(written, again);
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
