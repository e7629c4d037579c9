//! `LayoutFilter`: what comparisons of layouts ask of every one, that of Parquet too, which hashes keys in its own way.

use bloomline::variants::{
    AtomicClassicBloomFilter, ClassicBloomFilter, CountingBloomFilter, RegisterBloomFilter, SplitBlockBloomFilter,
    TwoBlockBloomFilter,
};
use bloomline::{BloomFilter, BuildError};

/// A filter of one size, by hashes.
pub trait LayoutFilter: Sized + Send + Sync {
    /// The layout's name, as in the tables.
    const NAME: &'static str;

    /// The smallest filter that keeps the rate with `keys` keys.
    fn for_rate(keys: u64, rate: f64) -> Result<Self, BuildError>;

    /// A filter of at most `bytes` bytes, with the number of probes that is best for `keys` keys.
    fn for_memory(bytes: usize, keys: u64) -> Result<Self, BuildError>;

    /// Inserts a hash; whether it was new.
    fn insert_hash(&mut self, hash: u64) -> bool;

    /// True if the filter contains a hash.
    fn contains_hash(&self, hash: u64) -> bool;

    /// Inserts hashes. Sets `new[i]` to true if `hashes[i]` was new, and returns the number of these.
    fn insert_hashes(&mut self, hashes: &[u64], new: &mut [bool]) -> usize;

    /// `found[i]` = whether `hashes[i]` is in; how many are.
    fn contains_hashes(&self, hashes: &[u64], found: &mut [bool]) -> usize;

    /// The size of the bits in bytes.
    fn memory_bytes(&self) -> usize;

    /// Bits set for each key.
    fn probes(&self) -> u32;

    /// The model's rate with `keys` keys.
    fn expected_fpr(&self, keys: u64) -> f64;

    /// The rate of the bits as they are.
    fn current_fpr(&self) -> f64;
}

macro_rules! layouts {
    ($($Filter:ident = $name:literal),* $(,)?) => {$(
        impl LayoutFilter for $Filter {
            const NAME: &'static str = $name;

            fn for_rate(keys: u64, rate: f64) -> Result<Self, BuildError> {
                Self::new(keys, rate)
            }

            fn for_memory(bytes: usize, keys: u64) -> Result<Self, BuildError> {
                Self::builder().memory(bytes).expected_keys(keys).build()
            }

            fn insert_hash(&mut self, hash: u64) -> bool {
                Self::insert_hash(self, hash)
            }

            fn contains_hash(&self, hash: u64) -> bool {
                Self::contains_hash(self, hash)
            }

            fn insert_hashes(&mut self, hashes: &[u64], new: &mut [bool]) -> usize {
                Self::insert_hashes(self, hashes, new)
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

            fn current_fpr(&self) -> f64 {
                Self::current_fpr(self)
            }
        }
    )*};
}

layouts! {
    BloomFilter = "words4",
    ClassicBloomFilter = "classic",
    AtomicClassicBloomFilter = "classic",
    TwoBlockBloomFilter = "words4x2",
    RegisterBloomFilter = "register",
    SplitBlockBloomFilter = "split block",
    CountingBloomFilter = "counting",
}
