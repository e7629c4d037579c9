//! What the benchmarks share beside the harness of `bloomline compare`: sizes and streams of keys here, the filters, the
//! sides that are timed, and two ways to time them, by criterion and in turns.
#![allow(dead_code, unused_imports)] // each benchmark uses a part

pub mod by_criterion;
pub mod filters;
#[path = "../../cli/src/compare/harness/mod.rs"]
pub mod harness;
pub mod paired;
pub mod rivals;

pub use harness::hashes::{PRESENT, hash, mixed_keys, probe_keys};
pub use harness::{BITS_PER_KEY, HITS, ROUND_KEYS};

/// Bits set for each key, in all filters.
pub const PROBES: u32 = 8;

pub const SIZES: [(&str, usize); 5] =
    [("256 KiB", 256 << 10), ("16 MiB", 16 << 20), ("256 MiB", 256 << 20), ("1 GiB", 1 << 30), ("4 GiB", 4 << 30)];

// The streams that the harness does not have.
pub const NOISE: u64 = 4;
pub const RANKS: u64 = 5;
/// The first of the streams of fresh keys, one for each round.
pub const FRESH: u64 = 100;

/// Whether this run only shows that the benchmark works: `cargo test --benches` runs it without `--bench`.
pub fn smoke() -> bool {
    let given = |flag: &str| std::env::args().any(|argument| argument == flag);
    given("--test") || !given("--bench")
}

/// The sizes that `wanted` names, such as "256K 16M". All for "all" or nothing, and the smallest alone in a [`smoke`] run.
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

/// The keys that a filter of this size is filled with.
pub fn planned_keys(bytes: usize) -> u64 {
    bytes as u64 * 8 / u64::from(BITS_PER_KEY)
}

/// The first keys of a stream.
pub fn hashes(stream: u64, count: usize) -> Vec<u64> {
    harness::hashes::range(stream, 0..count as u64)
}
