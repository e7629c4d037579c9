//! Pre-hashed keys, the same for every contender.

use std::ops::Range;

/// The stream of the keys that filters are filled with.
pub const PRESENT: u64 = 1;
/// A stream of keys that no filter holds.
pub const ABSENT: u64 = 2;
const DICE: u64 = 3;
/// The first of the streams of fresh keys, one for each round.
pub const FRESH: u64 = 100;

/// Key `i` of a stream. A bijection of stream and number (splitmix64), so no two keys are equal and no two streams meet.
pub fn hash(stream: u64, i: u64) -> u64 {
    let mut z = (stream << 48 | i).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ z >> 31
}

/// A range of a stream.
pub fn range(stream: u64, range: Range<u64>) -> Vec<u64> {
    range.map(|i| hash(stream, i)).collect()
}

/// Keys, `percent` of them among the first `held_keys` of [`PRESENT`], mixed at random with absent ones.
pub fn probe_keys(count: usize, held_keys: u64, percent: u64) -> Vec<u64> {
    mixed_keys(ABSENT, count, held_keys, percent)
}

/// Keys, `percent` of them among the first `held_keys` of [`PRESENT`], mixed at random with keys of another stream.
pub fn mixed_keys(stream: u64, count: usize, held_keys: u64, percent: u64) -> Vec<u64> {
    let hit = |i| hash(DICE, i) % 100 < percent;
    (0..count as u64).map(|i| if hit(i) { hash(PRESENT, i % held_keys) } else { hash(stream, i) }).collect()
}
