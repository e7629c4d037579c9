//! Other layouts, to choose among: each a filter of its own behind the trait [`Layout`].
//!
//! [`BloomFilter`](crate::BloomFilter) (`words4`) is the one to begin with. The others are for what it does not do:
//!
//! | type | name | a key's bits | it is for |
//! |---|---|---|---|
//! | [`ClassicBloomFilter`] | `classic` | anywhere | the least memory at any rate, where speed counts less |
//! | [`AtomicClassicBloomFilter`] | `classic` | anywhere | the same from many threads |
//! | [`TwoBlockBloomFilter`] | `words4x2` | in two cache lines | rates below 1e-4 in a quarter less memory than `words4` |
//! | [`RegisterBloomFilter`] | `register` | in one word | inserts in one atomic step, high rates |
//! | [`SplitBlockBloomFilter`] | `split block` | in half a cache line | Parquet's filters, bit by bit |
//! | [`CountingBloomFilter`] | `counting` | counters in two lines | keys that are removed again |
//!
//! Bits a key for a rate, by each layout's model:
//!
//! | layout | 1 % | 0.1 % | 1e-4 | 1e-6 |
//! |---|---|---|---|---|
//! | `words4` | 10.1 | 15.8 | 22.6 | 41.1 |
//! | `classic` | 9.6 | 14.4 | 19.2 | 28.8 |
//! | `words4x2` | 9.8 | 14.8 | 20.2 | 31.6 |
//! | `register` | 12.1 | 24.0 | 45.5 | 174 |
//! | `split block` | 10.5 | 16.9 | 26.3 | 64.7 |
//! | `counting` | 42.1 | 67.6 | 105 | 205 |
//!
//! Hashes are the crate's own, [`KeyHasher`] with the seed 0 or another one, but for Parquet's.
//!
//! # Examples
//! What works for every layout:
//! ```
//! use bloomline::BloomFilter;
//! use bloomline::variants::{ClassicBloomFilter, Layout, TwoBlockBloomFilter};
//!
//! fn bits_per_key<L: Layout>(rate: f64) -> Result<f64, bloomline::BuildError> {
//!     Ok(L::for_rate(1_000_000, rate)?.memory_bytes() as f64 * 8.0 / 1e6)
//! }
//!
//! assert!(bits_per_key::<BloomFilter>(1e-6)? > 41.0);
//! assert!(bits_per_key::<TwoBlockBloomFilter>(1e-6)? < 31.8);
//! assert!(bits_per_key::<ClassicBloomFilter>(1e-6)? < 28.9);
//! # Ok::<(), bloomline::BuildError>(())
//! ```

mod classic;
mod counting;
mod register;
mod split_block;
#[cfg(test)]
mod tests;
mod two_block;

use crate::batch;
use crate::error::BuildError;
use crate::filter::Filter;
use crate::hash::KeyHasher;
use crate::operations::{Access, Keyed, Operations};
use crate::params::Builder;
use crate::storage::{Blocks, Memory};

pub use classic::{AtomicClassicBloomFilter, ClassicBloomFilter};
pub use counting::CountingBloomFilter;
pub use register::RegisterBloomFilter;
pub use split_block::SplitBlockBloomFilter;
pub use two_block::TwoBlockBloomFilter;

/// A filter layout: what all of them do, so that they can be compared.
///
/// # Examples
/// ```
/// use bloomline::variants::{Layout, RegisterBloomFilter};
///
/// fn repeats<L: Layout>(hashes: &[u64]) -> Result<usize, bloomline::BuildError> {
///     let mut seen = L::for_rate(hashes.len() as u64, 0.001)?;
///     let mut new = vec![false; hashes.len()];
///     Ok(hashes.len() - seen.insert_hashes(hashes, &mut new))
/// }
///
/// let hashes = ["a", "b", "a"].map(|key| bloomline::KeyHasher::new(0).bytes(key.as_bytes()));
/// assert_eq!(repeats::<RegisterBloomFilter>(&hashes)?, 1);
/// # Ok::<(), bloomline::BuildError>(())
/// ```
pub trait Layout: Sized + Send + Sync {
    /// The layout's name, as in the tables: "words4", "classic", ...
    const NAME: &'static str;

    /// The smallest filter that keeps the rate with `expected_keys` keys.
    ///
    /// # Errors
    /// [`BuildError`]: no keys, a rate not between 0 and 1 or below what 64-bit hashes can keep, or a size that the
    /// system does not have.
    fn for_rate(expected_keys: u64, false_positive_rate: f64) -> Result<Self, BuildError>;

    /// A filter of at most `bytes` bytes, in whole blocks, with the number of probes that is best for `expected_keys` keys.
    ///
    /// # Errors
    /// [`BuildError`]: less than a block, no keys, or a size that the system does not have.
    fn for_memory(bytes: usize, expected_keys: u64) -> Result<Self, BuildError>;

    /// Inserts a hash. Returns whether it was new. All 64 bits of a hash must be well mixed.
    fn insert_hash(&mut self, hash: u64) -> bool;

    /// Returns whether a hash is in, or passes for it.
    fn contains_hash(&self, hash: u64) -> bool;

    /// Inserts hashes in order. `new[i]` is `true` if `hashes[i]` was new. Returns how many were.
    ///
    /// # Panics
    /// If `new` is not as long as `hashes`.
    fn insert_hashes(&mut self, hashes: &[u64], new: &mut [bool]) -> usize;

    /// Queries hashes. `found[i]` is `true` if `hashes[i]` is in. Returns how many are.
    ///
    /// # Panics
    /// If `found` is not as long as `hashes`.
    fn contains_hashes(&self, hashes: &[u64], found: &mut [bool]) -> usize;

    /// The size of the bits in bytes.
    fn memory_bytes(&self) -> usize;

    /// Bits set for each key.
    fn probes(&self) -> u32;

    /// The model's false-positive rate with `keys` distinct keys.
    fn expected_fpr(&self, keys: u64) -> f64;
}

/// A layout that has no [`Builder`](crate::Builder).
trait Variant: crate::operations::Shape {}

impl Variant for classic::Classic {}
impl Variant for counting::Counting {}
impl Variant for register::Register {}
impl Variant for split_block::SplitBlock {}
impl Variant for two_block::TwoBlocks {}

impl<L: Operations<A> + Variant, A: Access> Filter<L, A> {
    /// For the types of this module: a filter of at most `bytes` bytes, in whole blocks of 64, empty, with the number of probes that has the
    /// lowest rate for `expected_keys` distinct keys.
    ///
    /// # Errors
    /// [`BuildError`]: less than a block, no keys, or a size that the system does not have.
    pub fn with_memory(bytes: usize, expected_keys: u64) -> Result<Self, BuildError> {
        Builder::new().memory(bytes).expected_keys(expected_keys).build()
    }

    /// For the types of this module: the same filter with another seed of the hash, empty, since keys that are in would not
    /// be found again. The seed is 0 at first. Only filters with the same seed can be merged. O(1), in fresh memory.
    ///
    /// # Panics
    /// If the system does not have the memory.
    pub fn with_seed(mut self, seed: u64) -> Self
    where
        L: Keyed,
    {
        self.blocks = L::Memory::empty(Blocks::zeroed_or_abort(self.params.blocks));
        self.params.seed = seed;
        self.hasher = KeyHasher::new(seed);
        self
    }
}

impl<L: Operations<A>, A: Access> Layout for Filter<L, A> {
    const NAME: &'static str = L::FORMAT.name;

    fn for_rate(expected_keys: u64, false_positive_rate: f64) -> Result<Self, BuildError> {
        Self::new(expected_keys, false_positive_rate)
    }

    fn for_memory(bytes: usize, expected_keys: u64) -> Result<Self, BuildError> {
        Builder::new().memory(bytes).expected_keys(expected_keys).build()
    }

    fn insert_hash(&mut self, hash: u64) -> bool {
        self.insert_alone(hash)
    }

    fn contains_hash(&self, hash: u64) -> bool {
        Self::contains_hash(self, hash)
    }

    fn insert_hashes(&mut self, hashes: &[u64], new: &mut [bool]) -> usize {
        batch::check_lengths(hashes.len(), new.len());
        self.insert_many_alone(hashes, new)
    }

    fn contains_hashes(&self, hashes: &[u64], found: &mut [bool]) -> usize {
        Self::contains_hashes(self, hashes, found)
    }

    fn memory_bytes(&self) -> usize {
        Self::memory_bytes(self)
    }

    fn probes(&self) -> u32 {
        Self::probes(self)
    }

    fn expected_fpr(&self, keys: u64) -> f64 {
        Self::expected_fpr(self, keys)
    }
}
