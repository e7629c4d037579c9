//! Shared parts of the benchmarks and `compare`: sizes, pre-hashed keys, the compared filters, and interleaved rounds.

pub mod filters;
pub mod hashes;
pub mod layout;
pub mod rivals;
pub mod turns;

use hashes::{PRESENT, hash};

/// Bits of memory for each key that a filter is filled with.
pub const BITS_PER_KEY: u32 = 12;

/// Bits set for each key, in all filters of the benchmarks.
pub const PROBES: u32 = 8;

/// Distinct keys in a round. Their hashes take 32 MiB, so that the blocks they fall into do not stay in a cache.
pub const ROUND_KEYS: usize = 1 << 22;

/// The percentages of keys that a query finds, and their names.
pub const HITS: [(u64, &str); 3] = [(0, "misses"), (50, "half hits"), (100, "hits")];

/// Sizes of filters in bytes, and their names.
pub const SIZES: [(&str, usize); 5] =
    [("256 KiB", 256 << 10), ("16 MiB", 16 << 20), ("256 MiB", 256 << 20), ("1 GiB", 1 << 30), ("4 GiB", 4 << 30)];

/// True if this run only shows that the benchmark works: `cargo test --benches` runs it without `--bench`.
pub fn smoke() -> bool {
    let has_flag = |flag: &str| std::env::args().any(|argument| argument == flag);
    has_flag("--test") || !has_flag("--bench")
}

/// The sizes that `requested` names, such as "256K 16M". All for "all" or nothing, and the smallest alone in a [`smoke`] run.
pub fn sizes(requested: &str) -> Vec<(&'static str, usize)> {
    if smoke() {
        return SIZES[..1].to_vec();
    }
    if matches!(requested, "all" | "") {
        return SIZES.to_vec();
    }
    let find = |word| SIZES.into_iter().find(|(name, _)| name.replace(" ", "").replace("iB", "") == word);
    requested
        .split_whitespace()
        .map(|word| find(word).unwrap_or_else(|| panic!("no size {word} in {SIZES:?}")))
        .collect()
}

/// The keys that a filter of this size is filled with.
pub fn planned_keys(bytes: usize) -> u64 {
    bytes as u64 * 8 / u64::from(BITS_PER_KEY)
}

/// Returns the number of keys of [`PRESENT`] that the probes hit.
pub fn held_keys(bytes: usize) -> u64 {
    planned_keys(bytes).min(ROUND_KEYS as u64)
}

/// Hands out a range of [`PRESENT`] in chunks.
pub fn chunks(from: u64, to: u64, mut take: impl FnMut(&[u64])) {
    const CHUNK: u64 = 1 << 16;
    for start in (from..to).step_by(CHUNK as usize) {
        let chunk: Vec<u64> = (start..to.min(start + CHUNK)).map(|i| hash(PRESENT, i)).collect();
        take(&chunk);
    }
}
