//! What `bloomline compare` and the library's benchmarks share: the pre-hashed keys, the shares of hits, and the sides that
//! take turns. The files in `benches/` include this folder by its path.

pub mod hashes;
pub mod turns;

/// Bits of memory for each key that a filter is filled with.
pub const BITS_PER_KEY: u32 = 12;

/// Distinct keys in a round. Their hashes take 32 MiB, so that the blocks they fall into do not stay in a cache.
pub const ROUND_KEYS: usize = 1 << 22;

/// The percentages of keys that a query finds, and their names.
pub const HITS: [(u64, &str); 3] = [(0, "misses"), (50, "half hits"), (100, "hits")];
