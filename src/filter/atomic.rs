//! `AtomicBloomFilter`: any number of writers and readers, and one claim for each key.

#[cfg(all(test, loom))]
mod loom;

use crate::error::MergeError;
use crate::filter::bloom::BloomFilter;
use crate::filter::methods;
use crate::filter::raw::RawFilter;
use crate::filter::view::view_impls;
use crate::layout::access::Shared;
use crate::layout::sectorized::Sectorized;

/// A [`BloomFilter`] that any number of threads insert into and query at once, without locks.
///
/// # Consistency
/// Racing callers may see:
///
/// - **No false negative.** Once `insert` has returned, `contains` is `true` in every thread that learned of it: by a
///   message, a lock, a join, or any other way that orders the two calls.
/// - **One claim for each key.** Of any number of threads that insert the same key, at most one gets `true`; exactly
///   one does, unless other keys set the last bits that the key lacks at that very moment, which reads like any false
///   positive. So `if filter.insert(url) { visit(url) }` never visits twice.
/// - A `contains` that races with an `insert` of the same key may return either. Once it has returned `true` for a key, it
///   always does, because bits are only ever set.
/// - `insert` and `contains` are lock-free: at most four atomic loads and four `fetch_or`s, and no loop that waits for other
///   threads.
/// - [`union`](Self::union) may race with all of them: it only sets bits. [`fill_ratio`](Self::fill_ratio) and the figures that
///   depend on it see each word at some moment during the call.
///
/// The claim in short: a key has one word in each of four lanes. `insert` reads all four; the one of the last lane that
/// lacks bits is the *linearizing word*. It then completes the lacking words from the first lane up, the linearizing
/// word last, and the key is new if this very `fetch_or` set a bit of that word. A thread that sees a linearizing word
/// complete sees all words before it complete, so no second thread can win at an earlier one. docs/DESIGN.md has the
/// proof.
///
/// The orderings: loads are Acquire and the writes of a claim are AcqRel, which makes "sees the linearizing word
/// complete" imply "all words before it are complete". A query's loads are Relaxed, because by coherence they see every
/// insert that happened before them.
///
/// A clone copies each word at some moment during the call. A key whose insert happened before the call is in the copy.
/// A key whose insert races with the call may be in it with all, some or none of its bits. A comparison reads words in
/// the same way: "equal" is certain only for filters that no thread writes to.
///
/// # Examples
/// ```
/// use bloomline::AtomicBloomFilter;
/// use std::sync::atomic::{AtomicUsize, Ordering};
///
/// let seen = AtomicBloomFilter::new(10_000, 1e-6)?;
/// let visits = AtomicUsize::new(0);
/// std::thread::scope(|scope| {
///     for _ in 0..4 {
///         scope.spawn(|| {
///             for page in 0..1000u32 {
///                 if seen.insert(&page) {
///                     visits.fetch_add(1, Ordering::Relaxed);
///                 }
///             }
///         });
///     }
/// });
/// assert_eq!(visits.into_inner(), 1000);
/// # Ok::<(), bloomline::BuildError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct AtomicBloomFilter(pub(crate) RawFilter<Sectorized, Shared>);

impl AtomicBloomFilter {
    methods::constructors! { "bloomline::AtomicBloomFilter",
        /// Creates an empty filter for `expected_keys` distinct keys; see [`BloomFilter::new`].
    }
    methods::insert_methods!("bloomline::AtomicBloomFilter", many_writers);
    #[cfg(feature = "rayon")]
    methods::par_insert_method! { "bloomline::AtomicBloomFilter", "", [], (), "",
        /// Inserts many [`Keys`](crate::Keys) on all cores of the current rayon pool, while other threads insert. Loading a
        /// [`BloomFilter`] by [its own method](BloomFilter::par_insert) is faster, and it converts to this type without a copy.
    }
    methods::query_methods!("bloomline::AtomicBloomFilter");
    methods::info_methods!();
    methods::capacity_methods!();

    /// Adds the keys of another filter, while other threads insert into either. Keys whose insert into `other` had not returned
    /// before this call may be missing. O(memory). The other filter may be larger if it folds to this one's size, as in
    /// [`BloomFilter::union`].
    ///
    /// # Errors
    /// [`MergeError`] if the filters differ in probes or seed, in the name of their keys, or in size and the other does not fold
    /// to this one's. Nothing is changed then.
    pub fn union(&self, other: &Self) -> Result<(), MergeError> {
        self.0.union(&other.0)
    }

    /// Keeps the bits that both filters have; see [`BloomFilter::intersect`]. O(memory).
    ///
    /// Takes `&mut self`, because clearing bits would break every promise to racing callers.
    ///
    /// # Errors
    /// [`MergeError`] if the filters differ in size, probes, seed or the name of their keys; nothing is changed then.
    pub fn intersect(&mut self, other: &Self) -> Result<(), MergeError> {
        self.0.check_same(&other.0)?;
        self.0.blocks.and_assign(other.0.words());
        Ok(())
    }

    /// Returns the number of blocks, 64 bytes each.
    pub fn block_count(&self) -> usize {
        self.0.params.blocks
    }
}

methods::file_methods!(AtomicBloomFilter, "bloomline::AtomicBloomFilter");
methods::collect_impls!(AtomicBloomFilter, sized);
#[cfg(feature = "rayon")]
methods::par_collect_impls!(AtomicBloomFilter, sized);
methods::trait_impls!(AtomicBloomFilter, many_writers);
view_impls!(AtomicBloomFilter, many_writers);

/// Shares a filter among writers, without copying.
impl From<BloomFilter> for AtomicBloomFilter {
    fn from(filter: BloomFilter) -> Self {
        Self(filter.0.into())
    }
}

/// Freezes a shared filter without copying. Owning it proves that every insert has finished.
impl From<AtomicBloomFilter> for BloomFilter {
    fn from(shared: AtomicBloomFilter) -> Self {
        Self(shared.0.into())
    }
}
