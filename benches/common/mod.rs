//! What the benchmarks share: sizes and keys here, filters, the sides that are timed, and the two
//! harnesses that time them, criterion's and the paired one.
#![allow(dead_code)] // each benchmark uses a part

pub mod filters;
pub mod measure;
pub mod operations;
pub mod paired;

/// Bits a key and probes of all comparisons.
pub const BITS_PER_KEY: u64 = 12;
pub const PROBES: u32 = 8;

/// Distinct probe keys in one measurement: 32 MiB of hashes, so that their blocks do not stay in a cache.
pub const BATCH: usize = 1 << 22;

pub const SIZES: [(&str, usize); 5] =
    [("256 KiB", 256 << 10), ("16 MiB", 16 << 20), ("256 MiB", 256 << 20), ("1 GiB", 1 << 30), ("4 GiB", 4 << 30)];

/// The percentages of keys that a query finds, and what they are called.
pub const HITS: [(u64, &str); 3] = [(0, "misses"), (50, "half hits"), (100, "hits")];

/// Whether this run shall only show that the benchmark works, as `cargo test --benches` does: without `--bench`.
pub fn smoke() -> bool {
    let given = |flag: &str| std::env::args().any(|argument| argument == flag);
    given("--test") || !given("--bench")
}

/// The sizes that `wanted` names, such as "256K 16M"; all for "all" or nothing; the smallest alone in a [`smoke`] run.
pub fn sizes(wanted: &str) -> Vec<(&'static str, usize)> {
    if smoke() {
        return SIZES[..1].to_vec();
    }
    if matches!(wanted, "all" | "") {
        return SIZES.to_vec();
    }
    let find = |word| SIZES.into_iter().find(|(name, _)| name.replace(" ", "").replace("iB", "") == word);
    wanted.split_whitespace().map(|word| find(word).unwrap_or_else(|| panic!("no size {word} in {SIZES:?}"))).collect()
}

pub fn planned_keys(bytes: usize) -> u64 {
    bytes as u64 * 8 / BITS_PER_KEY
}

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
const ABSENT: u64 = 2;
const DICE: u64 = 3;
pub const NOISE: u64 = 4;
const RANKS: u64 = 5;
/// The first of the streams of fresh keys, one for each round.
pub const FRESH: u64 = 100;

/// Probe keys of which `percent` are among the first `held` keys of [`PRESENT`], mixed at random with absent ones.
pub fn probe_keys(count: usize, held: u64, percent: u64) -> Vec<u64> {
    let hit = |i| hash(DICE, i) % 100 < percent;
    (0..count as u64).map(|i| if hit(i) { hash(PRESENT, i % held) } else { hash(ABSENT, i) }).collect()
}

/// As many keys of [`PRESENT`], of which the key of rank r comes with probability r^-1.1 / Σ i^-1.1 (Zipf).
///
/// Rejection-inversion (Hörmann and Derflinger, 1996): x is drawn under the curve x^-1.1 by inverting its integral,
/// and its nearest rank is taken unless x lies outside the bar of that rank.
pub fn zipf_keys(count: usize) -> Vec<u64> {
    const S: f64 = 1.1;
    let integral = |x: f64| (x.powf(1.0 - S) - 1.0) / (1.0 - S);
    let inverse = |y: f64| (1.0 + y * (1.0 - S)).powf(1.0 / (1.0 - S));
    // The bar of rank 1 starts where the curve has the same area as the bar.
    let (low, high) = (integral(1.5) - 1.0, integral(count as f64 + 0.5));
    let mut dice = (0..).map(|i| (hash(RANKS, i) >> 11) as f64 / (1u64 << 53) as f64);
    let ranks = std::iter::from_fn(|| {
        let y = low + dice.next()? * (high - low);
        let rank = inverse(y).round().clamp(1.0, count as f64);
        Some((y >= integral(rank + 0.5) - rank.powf(-S)).then_some(rank as u64))
    });
    ranks.flatten().take(count).map(|rank| hash(PRESENT, rank)).collect()
}
