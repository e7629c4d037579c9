//! `ClassicBloomFilter` and `AtomicClassicBloomFilter`: k bits anywhere in the memory.

use super::union_method;
use crate::builder::geometry;
use crate::builder::spec::FilterSpec;
use crate::error::BuildError;
use crate::filter::methods;
use crate::filter::raw::RawFilter;
use crate::filter::view::view_impls;
use crate::kernel::block::WORDS;
use crate::kernel::{KernelOps, prefetch};
use crate::key::hash::KeyHasher;
use crate::layout::access::{Exclusive, Shared};
use crate::layout::descriptor::{CLASSIC, LayoutDescriptor};
use crate::layout::model::Layout;
use crate::layout::ops::LayoutOps;
use crate::layout::params::Geometry;
use crate::layout::storage::{AtomicBlocks, BlockStore, BlockStoreMut, Blocks};
use crate::rate::set_bits;
use crate::sync::Ordering;

/// The Bloom filter as Bloom described it: each key sets k bits anywhere among the m bits of the filter.
///
/// No layout with bits in blocks reaches its rate, (1 - (1 - 1/m)^(k n))^k for n keys, and none is slower: a key touches up to
/// k cache lines. k is 1 to 32. (B. H. Bloom, "Space/Time Trade-offs in Hash Coding with Allowable Errors", CACM 13(7), 1970.
/// Each probe is drawn from a mix of its own. Double hashing, by Kirsch and Mitzenmacher, "Less Hashing, Same Performance",
/// 2008, has the same rate in the limit of large filters, and a higher one at small rates in smaller filters.)
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
#[derive(Clone, PartialEq, Eq)]
pub struct ClassicBloomFilter(pub(super) RawFilter<Classic, Exclusive>);

impl ClassicBloomFilter {
    methods::constructors! { "bloomline::variants::ClassicBloomFilter",
        /// Creates an empty filter for `expected_keys` distinct keys, of the smallest size that keeps the rate by the layout's
        /// model.
    }
    methods::insert_methods!("bloomline::variants::ClassicBloomFilter", one_writer);
    methods::query_methods!("bloomline::variants::ClassicBloomFilter");
    methods::info_methods!();
    methods::capacity_methods!();
    union_method! { "bloomline::variants::ClassicBloomFilter", "mut ", [mut],
        /// Adds the keys of another filter. The result is exactly the filter that both sets of keys would have made. O(memory).
    }

    /// Creates a filter of exactly `bits` bits, at least 1, with `probes` probes, 1 to 32. It takes whole blocks of 64 bytes.
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
        RawFilter::from_params(geometry::exact_params::<Classic>(bits, probes)?, FilterSpec::default()).map(Self)
    }

    /// Returns the number of bits, m.
    pub fn bits(&self) -> u64 {
        self.0.params.geometry.units
    }
}

methods::file_methods!(ClassicBloomFilter, "bloomline::variants::ClassicBloomFilter");
methods::collect_impls!(ClassicBloomFilter, sized);
methods::trait_impls!(ClassicBloomFilter, one_writer);
view_impls!(ClassicBloomFilter, one_writer);

/// Freezes a shared filter without copying, and counts its bits, O(memory). Owning it proves that every insert has finished.
impl From<AtomicClassicBloomFilter> for ClassicBloomFilter {
    fn from(shared: AtomicClassicBloomFilter) -> Self {
        Self(shared.0.into())
    }
}

/// A [`ClassicBloomFilter`] that any number of threads insert into and query at once, without locks. It has the same bits, and
/// `From` converts between the two without copying.
///
/// Once `insert` has returned, `contains` is `true` in every thread that learned of it. `insert` returns true if this call set
/// one of the key's bits. This is **not a claim**: several threads that race to insert one key may all get `true`, because each
/// sets another bit of it. At least one gets `true`, unless other keys set its bits. If exactly one must win, use an
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
#[derive(Clone, PartialEq, Eq)]
pub struct AtomicClassicBloomFilter(pub(super) RawFilter<Classic, Shared>);

impl AtomicClassicBloomFilter {
    methods::constructors! { "bloomline::variants::AtomicClassicBloomFilter",
        /// Creates an empty filter for `expected_keys` distinct keys, of the smallest size that keeps the rate by the layout's
        /// model.
    }
    methods::insert_methods!("bloomline::variants::AtomicClassicBloomFilter", many_writers);
    #[cfg(feature = "rayon")]
    methods::par_insert_method! { "bloomline::variants::AtomicClassicBloomFilter", "", [], (), "",
        /// Inserts many [`Keys`](crate::Keys) on all cores of the current rayon pool, while other threads insert.
    }
    methods::query_methods!("bloomline::variants::AtomicClassicBloomFilter");
    methods::info_methods!();
    methods::capacity_methods!();
    union_method! { "bloomline::variants::AtomicClassicBloomFilter", "", [],
        /// Adds the keys of another filter, while other threads insert into either. Keys whose insert into `other` had
        /// not returned before this call may be missing. O(memory).
    }
}

methods::file_methods!(AtomicClassicBloomFilter, "bloomline::variants::AtomicClassicBloomFilter");
methods::collect_impls!(AtomicClassicBloomFilter, sized);
#[cfg(feature = "rayon")]
methods::par_collect_impls!(AtomicClassicBloomFilter, sized);
methods::trait_impls!(AtomicClassicBloomFilter, many_writers);
view_impls!(AtomicClassicBloomFilter, many_writers);

/// Shares a filter among writers, without copying.
impl From<ClassicBloomFilter> for AtomicClassicBloomFilter {
    fn from(filter: ClassicBloomFilter) -> Self {
        Self(filter.0.into())
    }
}

/// The layout of both filters.
pub(crate) struct Classic(());

/// Blocks, and the number of their bits that are set.
#[derive(Clone, PartialEq)]
pub(crate) struct CountedBlocks {
    blocks: Blocks,
    ones: u64,
}

impl From<Blocks> for CountedBlocks {
    fn from(blocks: Blocks) -> Self {
        let mut counted = Self { blocks, ones: 0 };
        counted.count();
        counted
    }
}

impl From<CountedBlocks> for Blocks {
    fn from(counted: CountedBlocks) -> Self {
        counted.blocks
    }
}

impl CountedBlocks {
    fn count(&mut self) {
        self.ones = set_bits::count_ones(self.words());
    }
}

impl BlockStore for CountedBlocks {
    fn empty(blocks: Blocks) -> Self {
        Self { blocks, ones: 0 }
    }

    fn words(&self) -> impl Iterator<Item = [u64; WORDS]> + Clone {
        self.blocks.words()
    }

    fn clear(&mut self) {
        self.blocks.clear();
        self.ones = 0;
    }

    fn populate(&mut self) {
        self.blocks.populate();
    }
}

impl BlockStoreMut for CountedBlocks {
    fn merge(&mut self, theirs: impl Iterator<Item = [u64; WORDS]>, word: impl Fn(u64, u64) -> u64) {
        self.blocks.merge(theirs, word);
        self.count();
    }
}

/// Returns the bits of a hash: block, word in the block, mask in the word.
///
/// The generator wyrand, seeded with the hash. Its numbers do not depend on each other, and each is brought into range by its
/// high bits.
#[inline(always)]
fn positions(geometry: Geometry, hash: u64) -> impl Iterator<Item = (usize, usize, u64)> {
    // wyrand's own constants.
    const STEP: u64 = 0xA076_1D64_78BD_642F;
    const MIX: u64 = 0xE703_7ED1_A0B4_28DB;
    (1..=u64::from(geometry.probes)).map(move |i| {
        let state = hash.wrapping_add(STEP.wrapping_mul(i));
        let wide = u128::from(KeyHasher::mix(state, state ^ MIX)) * u128::from(geometry.units);
        let bit = (wide >> 64) as u64;
        // Below the number of blocks, which fits a usize.
        ((bit >> 9) as usize, (bit >> 6 & 7) as usize, 1 << (bit & 63))
    })
}

impl Layout for Classic {
    const DESCRIPTOR: &'static LayoutDescriptor = &CLASSIC;

    /// Computes s^k from the mean fraction s of bits set. The variance of the fraction adds k (k-1) / 2 · variance / s²
    /// to it, of the order 1/m, which counts in small filters.
    fn rate(geometry: Geometry, keys: u64) -> f64 {
        let (bits, probes) = (geometry.units as f64, f64::from(geometry.probes));
        if keys == 0 {
            return 0.0;
        }
        // Throws per bit, and the fraction of zeros.
        let load = -probes * keys as f64 * libm::log1p(-1.0 / bits);
        let (zeros, set) = (libm::exp(-load), -libm::expm1(-load));
        let variance = if load.is_finite() { zeros * (set - load * zeros) / bits } else { 0.0 };
        let scatter = 1.0 + probes * (probes - 1.0) / 2.0 * variance.max(0.0) / (set * set);
        (libm::pow(set, probes) * scatter).min(1.0)
    }

    /// Returns the fraction of bits set, to the power of the probes.
    fn current_fpr(geometry: Geometry, words: impl Iterator<Item = [u64; WORDS]>) -> f64 {
        libm::pow(geometry.fraction(&CLASSIC, set_bits::count_ones(words)), f64::from(geometry.probes))
    }

    fn bit_probability(geometry: Geometry) -> f64 {
        -libm::expm1(f64::from(geometry.probes) * libm::log1p(-1.0 / geometry.units as f64))
    }
}

impl LayoutOps<Exclusive> for Classic {
    const NAME: &'static str = "ClassicBloomFilter";
    type Store = CountedBlocks;

    fn fill_ratio(geometry: Geometry, store: &CountedBlocks) -> f64 {
        geometry.fraction(&CLASSIC, store.ones)
    }

    #[inline(always)]
    fn prefetch(geometry: Geometry, store: &CountedBlocks, hash: u64) {
        let blocks = store.blocks.as_slice();
        positions(geometry, hash).for_each(|(block, ..)| prefetch(&blocks[block], blocks.len()));
    }

    #[inline(always)]
    fn contains<I: KernelOps>(geometry: Geometry, _: I, store: &CountedBlocks, hash: u64, _: usize) -> bool {
        let blocks = store.blocks.as_slice();
        positions(geometry, hash).all(|(block, word, mask)| blocks[block].0[word] & mask != 0)
    }

    #[inline(always)]
    fn insert<I: KernelOps>(geometry: Geometry, _: I, store: &mut &mut CountedBlocks, hash: u64, _: usize) -> bool {
        let blocks = store.blocks.as_mut_slice();
        let before = store.ones;
        for (block, word, mask) in positions(geometry, hash) {
            let word = &mut blocks[block].0[word];
            store.ones += u64::from(*word & mask == 0);
            *word |= mask;
        }
        store.ones != before
    }
}

impl LayoutOps<Shared> for Classic {
    const NAME: &'static str = "AtomicClassicBloomFilter";
    type Store = AtomicBlocks;

    #[inline(always)]
    fn prefetch(geometry: Geometry, store: &AtomicBlocks, hash: u64) {
        let blocks = store.as_slice();
        positions(geometry, hash).for_each(|(block, ..)| prefetch(&blocks[block], blocks.len()));
    }

    #[inline(always)]
    fn contains<I: KernelOps>(geometry: Geometry, _: I, store: &AtomicBlocks, hash: u64, _: usize) -> bool {
        let blocks = store.as_slice();
        // Relaxed: by coherence, this load sees every insert that happened before it.
        positions(geometry, hash).all(|(block, word, mask)| blocks[block].0[word].load(Ordering::Relaxed) & mask != 0)
    }

    #[inline(always)]
    fn insert<I: KernelOps>(geometry: Geometry, _: I, store: &mut &AtomicBlocks, hash: u64, _: usize) -> bool {
        let blocks = store.as_slice();
        positions(geometry, hash).fold(false, |new, (block, word, mask)| {
            let word = &blocks[block].0[word];
            // Acquire and AcqRel: a thread that reads a bit set by another call sees that call's earlier bits.
            let missing = word.load(Ordering::Acquire) & mask == 0;
            new | (missing && word.fetch_or(mask, Ordering::AcqRel) & mask == 0)
        })
    }
}
