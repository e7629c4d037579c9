//! `AtomicClassicBloomFilter`: the classic filter for many writers.

use super::classic::{self, ClassicBloomFilter, positions};
use super::keys::key_methods;
use super::methods::{layout_methods, shared_methods};
use super::shape::{self, Shape, Shared};
use super::size::Size;
use crate::error::BuildError;
use crate::file::{CLASSIC, Layout, file_methods};
use crate::hash::KeyHasher;
use crate::kernel::Isa;
use crate::params::Params;
use crate::storage::{AtomicBlocks, Blocks, prefetch};
use crate::sync::Ordering;

/// A [`ClassicBloomFilter`] that any number of threads insert into and query at once, without locks: the same bits, and
/// they turn into each other with `From`, without copying.
///
/// Once `insert` has returned, `contains` is `true` in every thread that learned of it. `insert` tells whether this call
/// set one of the key's bits, which is **not a claim**: of threads that race to insert a key several may get `true`, each
/// having set another bit of it, but never none, unless other keys set its bits. Where exactly one must win, use an
/// [`AtomicBloomFilter`](crate::AtomicBloomFilter) or a [`RegisterBloomFilter`](super::RegisterBloomFilter).
///
/// # Examples
/// ```
/// use bloomline::variants::AtomicClassicBloomFilter;
/// let seen = AtomicClassicBloomFilter::new(1000, 0.001)?;
/// std::thread::scope(|scope| {
///     scope.spawn(|| seen.insert("a"));
///     scope.spawn(|| seen.insert("b"));
/// });
/// assert!(seen.contains("a") && seen.contains("b"));
/// # Ok::<(), bloomline::BuildError>(())
/// ```
pub struct AtomicClassicBloomFilter {
    params: Params,
    size: Size,
    hasher: KeyHasher,
    blocks: AtomicBlocks,
}

layout_methods!(AtomicClassicBloomFilter);
shared_methods!(AtomicClassicBloomFilter, "whether this call set one of its bits");
key_methods!(AtomicClassicBloomFilter, [], "whether this call set one of its bits");
file_methods!(
    AtomicClassicBloomFilter,
    "bloomline::variants::",
    "Other threads may insert meanwhile: a key whose insert this thread knows to have returned is in.",
    CLASSIC,
    |filter| filter.size.units
);

impl AtomicClassicBloomFilter {
    /// A filter of exactly `bits` bits; see [`ClassicBloomFilter::with_bits`].
    ///
    /// # Errors
    /// [`BuildError`]: probes out of their range, or a size that the system does not have.
    pub fn with_bits(bits: u64, probes: u32) -> Result<Self, BuildError> {
        ClassicBloomFilter::with_bits(bits, probes).map(Self::from)
    }

    /// m, the number of bits.
    pub fn bits(&self) -> u64 {
        self.size.units
    }
}

/// Shares a filter among writers, without copying.
impl From<ClassicBloomFilter> for AtomicClassicBloomFilter {
    fn from(filter: ClassicBloomFilter) -> Self {
        let ClassicBloomFilter { params, size, hasher, blocks } = filter;
        Self { params, size, hasher, blocks: blocks.blocks.into() }
    }
}

/// Freezes a shared filter, without copying. Counts its bits: O(memory).
impl From<AtomicClassicBloomFilter> for ClassicBloomFilter {
    fn from(filter: AtomicClassicBloomFilter) -> Self {
        let AtomicClassicBloomFilter { params, size, hasher, blocks } = filter;
        Self { params, size, hasher, blocks: Blocks::from(blocks).into() }
    }
}

impl Shape for AtomicClassicBloomFilter {
    const LAYOUT: &'static Layout = &CLASSIC;
    type Memory = AtomicBlocks;

    fn rate(size: Size, keys: u64) -> f64 {
        classic::rate(size, keys)
    }

    fn touched(size: Size) -> f64 {
        classic::touched(size)
    }

    fn fill(size: Size, memory: &AtomicBlocks) -> f64 {
        size.share(&CLASSIC, shape::ones(memory.words()))
    }

    #[inline(always)]
    fn prefetch(size: Size, memory: &AtomicBlocks, hash: u64) {
        let blocks = memory.as_slice();
        positions(size, hash).for_each(|(block, ..)| prefetch(&blocks[block]));
    }

    #[inline(always)]
    fn contains<I: Isa, const B: usize>(size: Size, _: I, memory: &AtomicBlocks, hash: u64) -> bool {
        let blocks = memory.as_slice();
        // Relaxed: an insert that the caller knows of happened before this load, so by coherence it is seen.
        positions(size, hash).all(|(block, word, mask)| blocks[block].0[word].load(Ordering::Relaxed) & mask != 0)
    }
}

impl Shared for AtomicClassicBloomFilter {
    #[inline(always)]
    fn insert(size: Size, memory: &AtomicBlocks, hash: u64) -> bool {
        let blocks = memory.as_slice();
        positions(size, hash).fold(false, |new, (block, word, mask)| {
            let word = &blocks[block].0[word];
            // Acquire and AcqRel: who reads a bit that another call set has that call's bits before it.
            let lacking = word.load(Ordering::Acquire) & mask == 0;
            new | (lacking && word.fetch_or(mask, Ordering::AcqRel) & mask == 0)
        })
    }
}
