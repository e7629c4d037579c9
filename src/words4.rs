//! The layout `words4`, of one block a key; `BloomFilter`: one writer, any number of readers.

use crate::block::{Pattern, WORDS};
use crate::error::{BuildError, MergeError};
use crate::filter::Filter;
use crate::format::{Format, WORDS4};
use crate::fpr::{self, BlockRates, Lanes};
use crate::kernel::{Isa, Kernel};
use crate::operations::{self, Access, Exclusive, Keyed, Operations, Shape};
use crate::params::{Builder, Params, Size};
use crate::plan::Plan;
use crate::stats;
use crate::storage::{Blocks, MemoryMut};

/// A set of keys that takes some new keys for seen ones, at a known rate, and never a seen key for a new one.
///
/// Inserting needs `&mut self`; any number of threads may query a shared reference. For inserting from many threads at
/// once there is [`AtomicBloomFilter`](crate::AtomicBloomFilter); they turn into each other with `From`, without copying.
/// Every key sets 4, 8, 12 or 16 bits in a single block of 64 bytes, so that a query or an insert touches one cache line.
///
/// # Examples
/// ```
/// use bloomline::BloomFilter;
///
/// let mut seen = BloomFilter::new(1_000_000, 0.001)?;
/// assert!(seen.insert("https://example.org/")); // new
/// assert!(!seen.insert("https://example.org/")); // seen
/// assert!(seen.contains("https://example.org/"));
/// # Ok::<(), bloomline::BuildError>(())
/// ```
pub type BloomFilter = Filter<Words4, Exclusive>;

/// The layout of [`BloomFilter`] and [`AtomicBloomFilter`](crate::AtomicBloomFilter).
pub struct Words4(());

impl<A: Access> Filter<Words4, A>
where
    Words4: Operations<A>,
{
    /// A [`Builder`] for a filter of this type: for a size in bytes, a number of probes or a seed.
    pub fn builder() -> Builder<Self> {
        Builder::new()
    }

    /// The number of blocks, 64 bytes each.
    pub fn block_count(&self) -> usize {
        self.params.blocks
    }

    /// The kernel in use.
    pub fn kernel(&self) -> Kernel {
        self.params.kernel.kernel()
    }

    /// The most distinct keys for which [`expected_fpr`](Self::expected_fpr) stays at or below
    /// `false_positive_rate`; 0 if one key is too many, and `u64::MAX` for a rate of 1 and more, which any number keeps.
    /// Takes microseconds.
    pub fn capacity(&self, false_positive_rate: f64) -> u64 {
        Words4::capacity(self.params.size(), false_positive_rate)
    }

    /// The false-positive rate of the bits as they are: exact for keys with random hashes, whatever was
    /// inserted and however often. O(memory).
    pub fn current_fpr(&self) -> f64 {
        stats::current_rate(self.words(), self.params.probes)
    }
}

impl<A: Access> Builder<Filter<Words4, A>>
where
    Words4: Operations<A>,
{
    /// Returns what [`build`](Self::build) would build, without allocating it. Use it for a filter on another machine, or to
    /// choose a size. It does not plan scalable filters.
    ///
    /// # Errors
    /// [`BuildError`], as from `build`, but never for memory that the system refuses.
    ///
    /// # Examples
    /// ```
    /// let builder = bloomline::BloomFilter::builder().expected_keys(1_000_000_000_000).false_positive_rate(0.001);
    /// let plan = builder.plan()?;
    /// assert_eq!((plan.probes(), plan.memory_bytes() / 1_000_000_000), (8, 1984)); // 15.87 bits a key
    /// assert!(plan.expected_fpr(2_000_000_000_000) > 0.03);
    /// # Ok::<(), bloomline::BuildError>(())
    /// ```
    pub fn plan(&self) -> Result<Plan, BuildError> {
        let Params { blocks, probes, .. } = self.params::<Words4>()?;
        Ok(Plan { blocks, probes })
    }
}

impl BloomFilter {
    /// The eight words of a block, from 0 to [`block_count`](Self::block_count) − 1: what others may keep elsewhere. The same
    /// on every platform. [`Plan`](crate::Plan) says which bits are a key's.
    ///
    /// # Panics
    /// If there is no such block.
    ///
    /// # Examples
    /// ```
    /// use bloomline::BloomFilter;
    /// let mut seen = BloomFilter::new(1000, 0.01)?;
    /// seen.insert("key");
    /// let words: Vec<[u64; 8]> = (0..seen.block_count()).map(|block| seen.block_words(block)).collect();
    ///
    /// let mut copy = BloomFilter::new(1000, 0.01)?;
    /// for (block, words) in words.into_iter().enumerate() {
    ///     copy.set_block_words(block, words);
    /// }
    /// assert!(copy == seen);
    /// # Ok::<(), bloomline::BuildError>(())
    /// ```
    #[inline]
    #[track_caller]
    pub fn block_words(&self, block: usize) -> [u64; WORDS] {
        self.blocks.as_slice()[block].0
    }

    /// Replaces the words of a block by those of [`block_words`](Self::block_words) of a filter of the same size, probes and
    /// seed. The keys that were in the block are removed, unless the words have their bits.
    ///
    /// # Panics
    /// If there is no such block.
    #[inline]
    #[track_caller]
    pub fn set_block_words(&mut self, block: usize, words: [u64; WORDS]) {
        self.blocks.as_mut_slice()[block].0 = words;
    }

    /// Keeps the bits that both filters have. Keys that are in both stay. Some keys that are in only one may stay too, at a
    /// rate somewhat above that of a filter of the common keys. O(memory).
    ///
    /// # Errors
    /// [`MergeError`] if the filters differ in size, probes or seed; nothing is changed then.
    pub fn intersect(&mut self, other: &Self) -> Result<(), MergeError> {
        self.params.check_same(&other.params)?;
        self.blocks.merge(other.words(), |ours, theirs| ours & theirs);
        Ok(())
    }
}

impl Shape for Words4 {
    const FORMAT: &'static Format = &WORDS4;
    const FOLDS: bool = true;

    fn rate(size: Size, keys: u64) -> f64 {
        BlockRates::new(Lanes::words4(size.probes)).mixture(size.units, keys)
    }

    fn touched(size: Size) -> f64 {
        fpr::touched(size.units, size.probes)
    }

    fn kernel_probes(size: Size) -> u32 {
        size.probes
    }

    fn least(keys: u64, rate: f64, given: Option<u32>, limit: u64) -> Option<Size> {
        let (probes, units) = match given {
            Some(probes) => (probes, fpr::blocks_for(keys, probes, rate, limit)?),
            None => fpr::best_for_rate(keys, rate, limit)?,
        };
        Some(Size { units, probes })
    }

    fn best_probes(units: u64, keys: u64) -> u32 {
        fpr::best_for_size(units, keys)
    }

    fn capacity(size: Size, rate: f64) -> u64 {
        fpr::keys_for(size.units, size.probes, rate)
    }
}

impl Keyed for Words4 {}

impl Operations<Exclusive> for Words4 {
    const NAME: &'static str = "BloomFilter";
    type Memory = Blocks;

    #[inline(always)]
    fn prefetch(_: Size, blocks: &Blocks, hash: u64) {
        blocks.prefetch(hash);
    }

    #[inline(always)]
    fn contains<I: Isa, const B: usize>(_: Size, isa: I, blocks: &Blocks, hash: u64) -> bool {
        isa.contains::<B>(blocks.locate(hash), Pattern::new(hash))
    }

    fn contains_many(params: &Params, blocks: &Blocks, hashes: &[u64], found: &mut [bool]) -> usize {
        operations::contains_many::<Self, Exclusive>(params, blocks, hashes, found)
    }

    #[inline(always)]
    fn insert<I: Isa, const B: usize>(_: Size, isa: I, blocks: &mut Blocks, hash: u64) -> bool {
        isa.insert::<B>(blocks.locate_mut(hash), Pattern::new(hash))
    }

    fn insert_many<'a>(params: &'a Params, blocks: &'a mut Blocks, hashes: &[u64], new: &mut [bool]) -> usize {
        operations::insert_many::<Self, Exclusive>(params, blocks, hashes, new)
    }
}
