//! `Plan`: the geometry of a filter, without its memory.

use crate::kernel::block::{self, BLOCK_BYTES, Pattern, WORDS};
use crate::rate::fpr;

/// The geometry of the filter that a [`Builder`](crate::Builder) would build, without allocating it: see
/// [`Builder::plan`](crate::Builder::plan).
///
/// It also computes the bits of a hash, for programs that keep the blocks elsewhere, such as on a server:
///
/// ```
/// use bloomline::{BloomFilter, Key};
///
/// let builder = BloomFilter::builder().expected_keys(1000).false_positive_rate(0.01);
/// let (plan, hasher) = (builder.plan()?, builder.hasher());
/// let mut blocks = vec![[0u64; 8]; plan.block_count()];
/// let hash = "key".hash_with(&hasher);
/// for (word, mask) in blocks[plan.block(hash)].iter_mut().zip(plan.mask(hash)) {
///     *word |= mask;
/// }
///
/// let mut filter = builder.build()?;
/// filter.insert("key");
/// assert!((0..plan.block_count()).all(|block| filter.block_words(block) == blocks[block]));
/// # Ok::<(), bloomline::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    pub(crate) blocks: usize,
    pub(crate) probes: u32,
}

impl Plan {
    /// Returns the number of blocks, 64 bytes each.
    pub fn block_count(&self) -> usize {
        self.blocks
    }

    /// Returns the memory of the blocks, in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.blocks * BLOCK_BYTES
    }

    /// Returns the number of bits set for each key: 4, 8, 12 or 16.
    pub fn probes(&self) -> u32 {
        self.probes
    }

    /// Returns the expected false-positive rate with `keys` distinct keys inserted, by the model, at any load.
    pub fn expected_fpr(&self, keys: u64) -> f64 {
        fpr::rate(self.blocks as u64, self.probes, keys)
    }

    /// Returns the maximum number of distinct keys for which [`expected_fpr`](Self::expected_fpr) is at most
    /// `false_positive_rate`: 0 if one key is too many, and `u64::MAX` for a rate of 1 or more, which no number of keys exceeds.
    /// Takes microseconds.
    pub fn capacity(&self, false_positive_rate: f64) -> u64 {
        fpr::keys_for(self.blocks as u64, self.probes, false_positive_rate)
    }

    /// Estimates the number of distinct keys inserted, from the fraction of the bits that are set, 0 to 1. Infinite for 1.
    ///
    /// ```
    /// let plan = bloomline::BloomFilter::builder().memory(1 << 20).probes(8).plan()?;
    /// assert_eq!(plan.estimated_keys(0.5) as u64, 732_540);
    /// # Ok::<(), bloomline::BuildError>(())
    /// ```
    pub fn estimated_keys(&self, fill_ratio: f64) -> f64 {
        fpr::estimate_keys(fill_ratio, fpr::bit_probability(self.blocks as u64, self.probes))
    }

    /// Returns the number of the block, from 0, that has all bits of a hash: the high half of `hash` ×
    /// [`block_count`](Self::block_count).
    #[inline]
    pub fn block(&self, hash: u64) -> usize {
        block::locate(hash, self.blocks)
    }

    /// Returns the bits of a hash in the eight words of its [block](Self::block): at most [`probes`](Self::probes), since two
    /// may be the same. A key is in a filter if all of them are set. docs/FORMAT.md has the definition; it does not change.
    #[inline]
    pub fn mask(&self, hash: u64) -> [u64; WORDS] {
        Pattern::new(hash).mask(self.probes)
    }
}
