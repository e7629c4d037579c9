//! `BloomFilter`: one writer, any number of readers.

use crate::builder::options::Builder;
use crate::builder::plan::Plan;
use crate::error::{BuildError, MergeError};
use crate::filter::methods;
use crate::filter::raw::RawFilter;
use crate::filter::view::view_impls;
use crate::kernel::block::WORDS;
use crate::layout::access::Exclusive;
use crate::layout::params::FilterParams;
use crate::layout::sectorized::Sectorized;
use crate::layout::storage::BlockStoreMut;
use alloc::string::String;

/// A set of keys that reports some new keys as seen, at a known rate, and never a seen key as new.
///
/// Inserting needs `&mut self`; any number of threads may query a shared reference. To insert from many threads at once use
/// [`AtomicBloomFilter`](crate::AtomicBloomFilter); `From` converts between the two without copying. Every key sets 4, 8, 12 or
/// 16 bits in a single block of 64 bytes, so that a query or an insert touches one cache line.
///
/// Filters are equal if their size, probes, seed and bits are. Kernels, and what the filters are made for, are not compared.
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
///
/// From an iterator, it is sized for as many keys as the iterator yields, at a rate of 1 %:
///
/// ```
/// let seen: bloomline::BloomFilter = ["a", "b"].into_iter().collect();
/// assert!(seen.contains("a"));
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct BloomFilter(pub(crate) RawFilter<Sectorized, Exclusive>);

impl BloomFilter {
    methods::constructors! { "bloomline::BloomFilter",
        /// Creates an empty filter for `expected_keys` distinct keys.
        ///
        /// The size is the smallest that keeps the rate, rounded up by at most 1/128 so that it [folds](Self::fold). It is
        /// computed by the exact model of the layout, not by the classic formula. Takes microseconds; see [`Builder::build`].
    }
    methods::insert_methods!("bloomline::BloomFilter", one_writer);
    #[cfg(feature = "rayon")]
    methods::par_insert_method! { "bloomline::BloomFilter", "mut ", [mut], (), "",
        /// Inserts many [`Keys`](crate::Keys) on all cores of the current rayon pool. The bits are the same as after inserting
        /// them one by one.
        ///
        /// Needs 4 MiB beside the filter for any number of keys, and 64 KiB per thread. O(keys), and each thread passes over
        /// all of the hashes. Fewer than 2^18 keys are inserted by one thread.
    }
    methods::query_methods!("bloomline::BloomFilter");
    methods::info_methods!();
    methods::capacity_methods!();

    /// Changes the name for the kind of keys, when the filter gets keys of another kind. O(length of the name).
    ///
    /// # Errors
    /// [`BuildError::KeyName`] for a name of more than 1024 bytes, or with control characters. The filter keeps its name then.
    ///
    /// # Examples
    /// ```
    /// let builder = bloomline::BloomFilter::builder().expected_keys(1000).false_positive_rate(0.01);
    /// let mut seen = builder.key_name("url").build()?;
    /// seen.set_key_name("url or title")?;
    /// assert_eq!(seen.key_name(), "url or title");
    /// # Ok::<(), bloomline::BuildError>(())
    /// ```
    pub fn set_key_name(&mut self, name: impl Into<String>) -> Result<(), BuildError> {
        self.0.set_key_name(name.into())
    }

    /// Adds the keys of another filter. The result is exactly the filter that both sets of keys would have made. O(memory).
    ///
    /// The filters may differ in size if one [folds](Self::fold) to the size of the other. The result has the smaller size.
    ///
    /// # Errors
    /// [`MergeError`] if the filters differ in probes or seed, in the name of their keys, or in size and neither folds to the
    /// other's. Nothing is changed then.
    ///
    /// # Examples
    /// ```
    /// use bloomline::BloomFilter;
    /// let (mut a, mut b) = (BloomFilter::new(1000, 0.01)?, BloomFilter::new(1000, 0.01)?);
    /// a.insert("a");
    /// b.insert("b");
    /// a.union(&b)?;
    /// assert!(a.contains("a") && a.contains("b"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn union(&mut self, other: &Self) -> Result<(), MergeError> {
        self.0.union(&other.0)
    }

    /// Keeps the bits that both filters have. Keys that are in both are kept. Some keys that are in only one may be kept too,
    /// at a rate somewhat above the rate of a filter of the common keys. O(memory).
    ///
    /// # Errors
    /// [`MergeError`] if the filters differ in size, probes, seed or the name of their keys; nothing is changed then.
    pub fn intersect(&mut self, other: &Self) -> Result<(), MergeError> {
        self.0.check_same(&other.0)?;
        self.0.blocks.merge(other.0.words(), |ours, theirs| ours & theirs);
        Ok(())
    }

    /// Returns the number of blocks, 64 bytes each.
    pub fn block_count(&self) -> usize {
        self.0.params.blocks
    }

    /// Returns the eight words of a block, from 0 to [`block_count`](Self::block_count) − 1, for example to store them
    /// elsewhere. The same on every platform. [`Plan`] computes the bits of a key.
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
        self.0.blocks.as_slice()[block].0
    }

    /// Replaces the words of a block by the [`block_words`](Self::block_words) of a filter of the same size, probes and seed.
    /// The keys that were in the block are removed, unless the words have their bits.
    ///
    /// # Panics
    /// If there is no such block.
    #[inline]
    #[track_caller]
    pub fn set_block_words(&mut self, block: usize, words: [u64; WORDS]) {
        self.0.blocks.as_mut_slice()[block].0 = words;
    }
}

methods::file_methods!(BloomFilter, "bloomline::BloomFilter");
methods::collect_impls!(BloomFilter, sized);
#[cfg(feature = "rayon")]
methods::par_collect_impls!(BloomFilter, sized);
methods::trait_impls!(BloomFilter, one_writer);
view_impls!(BloomFilter, one_writer);

impl Builder<BloomFilter> {
    /// Returns the plan of the filter that [`build`](Self::build) would build, without allocating it. Use it for a
    /// filter on another machine, or to choose a size. An `AtomicBloomFilter` has the same size.
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
        let FilterParams { blocks, geometry, .. } = self.params::<Sectorized>()?;
        Ok(Plan { blocks, probes: geometry.probes })
    }
}
