//! `ClassicBloomFilter`: k bits anywhere in the memory.

use super::keys::key_methods;
use super::methods::{exclusive_methods, layout_methods};
use super::shape::{self, Exclusive, Shape};
use super::size::Size;
use crate::block::Block;
use crate::error::{BuildError, MergeError};
use crate::file::{CLASSIC, Layout, file_methods};
use crate::hash::{KeyHasher, multiply_fold};
use crate::kernel::Isa;
use crate::params::Params;
use crate::storage::{Blocks, prefetch};
use core::ops::Deref;

/// The Bloom filter as Bloom described it: each key sets k bits anywhere among the m bits of the filter.
///
/// No layout with bits in blocks reaches its rate, (1 - (1 - 1/m)^(k n))^k for n keys, and none is slower: a key touches up
/// to k cache lines. k is 1 to 32. (B. H. Bloom, "Space/Time Trade-offs in Hash Coding with Allowable Errors", CACM 13(7),
/// 1970. Each probe is drawn from a mix of its own: double hashing, of Kirsch and Mitzenmacher, "Less Hashing, Same
/// Performance", 2008, has the same rate in the limit of large filters, and more at small rates in smaller ones.)
///
/// # Examples
/// ```
/// use bloomline::variants::ClassicBloomFilter;
/// let mut seen = ClassicBloomFilter::new(1_000_000, 0.001)?;
/// assert_eq!(seen.probes(), 10);
/// seen.insert("a");
/// assert!(seen.contains("a"));
/// assert_eq!(seen.estimated_keys().round(), 1.0);
/// # Ok::<(), bloomline::BuildError>(())
/// ```
#[derive(Clone)]
pub struct ClassicBloomFilter {
    pub(super) params: Params,
    pub(super) size: Size,
    pub(super) hasher: KeyHasher,
    pub(super) blocks: Counted,
}

layout_methods!(ClassicBloomFilter);
exclusive_methods!(ClassicBloomFilter);
key_methods!(ClassicBloomFilter, [mut], "whether it was new");
file_methods!(ClassicBloomFilter, "bloomline::variants::", "", CLASSIC, |filter| filter.size.units);

impl ClassicBloomFilter {
    /// A filter of exactly `bits` bits, at least 1, with `probes` probes, 1 to 32. It takes whole blocks of 64 bytes.
    ///
    /// # Errors
    /// [`BuildError`]: probes out of their range, or a size that the system does not have.
    ///
    /// # Examples
    /// ```
    /// use bloomline::variants::ClassicBloomFilter;
    /// let filter = ClassicBloomFilter::with_bits(9_585_059, 7)?;
    /// assert!((filter.expected_fpr(1_000_000) - 0.01).abs() < 1e-4);
    /// # Ok::<(), bloomline::BuildError>(())
    /// ```
    pub fn with_bits(bits: u64, probes: u32) -> Result<Self, BuildError> {
        Self::build(Size::exact::<Self>(bits, probes)?)
    }

    /// m, the number of bits.
    pub fn bits(&self) -> u64 {
        self.size.units
    }

    /// The share of bits that are set, 0 to 1: they are counted as they are set, so this takes O(1).
    pub fn fill_ratio(&self) -> f64 {
        Self::fill(self.size, &self.blocks)
    }

    /// Removes all keys. O(memory).
    pub fn clear(&mut self) {
        self.blocks.blocks.as_mut_slice().fill(Block::default());
        self.blocks.ones = 0;
    }

    /// Makes this filter hold the keys of both: bit by bit the filter that both sets of keys would have made. O(memory).
    ///
    /// # Errors
    /// [`MergeError`] if the filters differ in size, probes or seed; nothing is changed then.
    pub fn union(&mut self, other: &Self) -> Result<(), MergeError> {
        self.check_same(other)?;
        for (ours, theirs) in self.blocks.blocks.as_mut_slice().iter_mut().zip(other.words()) {
            ours.0.iter_mut().zip(theirs).for_each(|(ours, theirs)| *ours |= theirs);
        }
        self.blocks.ones = shape::ones(self.words());
        Ok(())
    }
}

/// Blocks, and how many of their bits are set.
#[derive(Clone)]
pub(crate) struct Counted {
    pub(super) blocks: Blocks,
    ones: u64,
}

impl From<Blocks> for Counted {
    fn from(blocks: Blocks) -> Self {
        Self { ones: shape::ones(blocks.words()), blocks }
    }
}

impl Deref for Counted {
    type Target = Blocks;

    fn deref(&self) -> &Blocks {
        &self.blocks
    }
}

/// The bits of a hash: block, word in the block, mask in the word.
///
/// The generator wyrand, begun at the hash: numbers that do not wait for each other, each brought into range by its high
/// bits.
#[inline(always)]
pub(super) fn positions(size: Size, hash: u64) -> impl Iterator<Item = (usize, usize, u64)> {
    // wyrand's own constants.
    const STEP: u64 = 0xA076_1D64_78BD_642F;
    const MIX: u64 = 0xE703_7ED1_A0B4_28DB;
    (1..=u64::from(size.probes)).map(move |i| {
        let state = hash.wrapping_add(STEP.wrapping_mul(i));
        let wide = u128::from(multiply_fold(state, state ^ MIX)) * u128::from(size.units);
        let bit = (wide >> 64) as u64;
        // Below the number of blocks, which is a usize.
        ((bit >> 9) as usize, (bit >> 6 & 7) as usize, 1 << (bit & 63))
    })
}

/// The rate of m bits with k probes. The mean share s of bits set gives s^k; that the share scatters adds
/// k (k-1) / 2 · variance / s² to it, of the order 1/m, which counts in small filters.
pub(super) fn rate(size: Size, keys: u64) -> f64 {
    let (bits, probes) = (size.units as f64, f64::from(size.probes));
    if keys == 0 {
        return 0.0;
    }
    // Throws for each bit, and the share of zeros.
    let load = -probes * keys as f64 * libm::log1p(-1.0 / bits);
    let (zeros, set) = (libm::exp(-load), -libm::expm1(-load));
    let variance = if load.is_finite() { zeros * (set - load * zeros) / bits } else { 0.0 };
    let scatter = 1.0 + probes * (probes - 1.0) / 2.0 * variance.max(0.0) / (set * set);
    (libm::pow(set, probes) * scatter).min(1.0)
}

/// The chance that a key sets a given bit.
pub(super) fn touched(size: Size) -> f64 {
    -libm::expm1(f64::from(size.probes) * libm::log1p(-1.0 / size.units as f64))
}

impl Shape for ClassicBloomFilter {
    const LAYOUT: &'static Layout = &CLASSIC;
    type Memory = Counted;

    fn empty(blocks: Blocks) -> Counted {
        Counted { blocks, ones: 0 }
    }

    fn rate(size: Size, keys: u64) -> f64 {
        rate(size, keys)
    }

    fn touched(size: Size) -> f64 {
        touched(size)
    }

    fn fill(size: Size, memory: &Counted) -> f64 {
        size.share(&CLASSIC, memory.ones)
    }

    #[inline(always)]
    fn prefetch(size: Size, memory: &Counted, hash: u64) {
        let blocks = memory.blocks.as_slice();
        positions(size, hash).for_each(|(block, ..)| prefetch(&blocks[block]));
    }

    #[inline(always)]
    fn contains<I: Isa, const B: usize>(size: Size, _: I, memory: &Counted, hash: u64) -> bool {
        let blocks = memory.blocks.as_slice();
        positions(size, hash).all(|(block, word, mask)| blocks[block].0[word] & mask != 0)
    }
}

impl Exclusive for ClassicBloomFilter {
    #[inline(always)]
    fn insert<I: Isa, const B: usize>(size: Size, _: I, memory: &mut Counted, hash: u64) -> bool {
        let blocks = memory.blocks.as_mut_slice();
        let before = memory.ones;
        for (block, word, mask) in positions(size, hash) {
            let word = &mut blocks[block].0[word];
            memory.ones += u64::from(*word & mask == 0);
            *word |= mask;
        }
        memory.ones != before
    }
}
