//! What the benchmarks share: keys, filters filled to their planned load, and the raw limit of the memory.
#![allow(dead_code)] // each benchmark uses a part

use bloomline::{AtomicBloomFilter, BloomFilter, Kernel};

/// Bits a key and probes of all comparisons.
pub const BITS_PER_KEY: u64 = 12;
pub const PROBES: u32 = 8;

/// Distinct probe keys in one measurement: 32 MiB of hashes, so that their blocks do not stay in a cache.
pub const BATCH: usize = 1 << 22;

pub const SIZES: [(&str, usize); 5] =
    [("256 KiB", 256 << 10), ("16 MiB", 16 << 20), ("256 MiB", 256 << 20), ("1 GiB", 1 << 30), ("4 GiB", 4 << 30)];

/// Pre-hashed keys: a bijection of a counter (splitmix64), so that streams of different numbers never meet.
pub fn hash(stream: u64, i: u64) -> u64 {
    let mut z = (stream << 40 | i).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ z >> 31
}

pub fn hashes(stream: u64, count: usize) -> Vec<u64> {
    (0..count as u64).map(|i| hash(stream, i)).collect()
}

/// The stream of the keys that a filter is filled with.
pub const PRESENT: u64 = 1;
/// A stream of keys that no filter holds.
pub const ABSENT: u64 = 2;

pub fn planned_keys(bytes: usize) -> u64 {
    bytes as u64 * 8 / BITS_PER_KEY
}

/// Probe keys of which `percent` are among the first `planned` keys of [`PRESENT`], mixed at random.
pub fn probe_keys(planned: u64, percent: u64) -> Vec<u64> {
    (0..BATCH as u64)
        .map(|i| {
            let die = hash(3, i);
            if die % 100 < percent { hash(PRESENT, (die >> 8) % planned) } else { hash(ABSENT, i) }
        })
        .collect()
}

pub fn empty(bytes: usize, kernel: Kernel) -> BloomFilter {
    BloomFilter::builder().memory(bytes).probes(PROBES).kernel(kernel).build().unwrap()
}

/// Filled to the planned load with [`PRESENT`].
pub fn filled(bytes: usize, kernel: Kernel) -> BloomFilter {
    let mut filter = empty(bytes, kernel);
    fill(bytes, |hashes| {
        filter.insert_hashes(hashes, &mut vec![false; hashes.len()]);
    });
    filter
}

pub fn filled_atomic(bytes: usize) -> AtomicBloomFilter {
    filled(bytes, Kernel::detect()).into()
}

/// Hands out the planned keys in portions.
pub fn fill(bytes: usize, mut insert: impl FnMut(&[u64])) {
    let planned = planned_keys(bytes);
    for start in (0..planned).step_by(1 << 16) {
        let portion: Vec<u64> = (start..planned.min(start + (1 << 16))).map(|i| hash(PRESENT, i)).collect();
        insert(&portion);
    }
}
