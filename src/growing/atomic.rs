//! `AtomicScalableBloomFilter`: stages that many threads fill, with one claim for each key, and growth under concurrent
//! inserts.

#[cfg(feature = "rayon")]
use crate::error::BuildError;
use crate::filter::methods;
use crate::growing::scalable::ScalableBloomFilter;
use crate::growing::shared_stages::SharedStages;

/// A [`ScalableBloomFilter`] that any number of threads insert into and query at once, while it grows.
///
/// # Consistency
/// Racing callers may see:
///
/// - **No false negative**, as in [`AtomicBloomFilter`](crate::AtomicBloomFilter): once `insert` has returned, `contains` is
///   `true` in every thread that learned of it. Once `contains` has returned `true` for a key, it always does.
/// - **One claim for each key**, also over a growth. Of any number of threads that insert the same key, at most one gets
///   `true`. Exactly one does, unless other keys set the bits that the key lacks, which reads like any false positive.
/// - **The rate does not rise.** A key takes a permit of its stage before it sets bits, so no stage has more keys than it was
///   sized for, however many threads race.
/// - Queries and repeats never wait. An insert waits only if its key needs a stage that another thread is building.
///   Building one takes well under a millisecond, because the system allocates memory as it is written.
///
/// A new key costs one fence more than in an [`AtomicBloomFilter`](crate::AtomicBloomFilter), and two steps on a counter that
/// hardly any other thread uses. A batch pays these costs once per 512 keys, or per 1024 hashes.
///
/// A claim counts only if its stage is still open when the key's bits are set. Otherwise the insert continues in the
/// next stage, where threads that saw the stage closed compete for the key. docs/DESIGN.md has the proof.
///
/// Clones and comparisons see words in the same way as for an [`AtomicBloomFilter`](crate::AtomicBloomFilter).
///
/// # Examples
/// ```
/// use bloomline::AtomicScalableBloomFilter;
/// use std::sync::atomic::{AtomicUsize, Ordering};
///
/// let seen = AtomicScalableBloomFilter::new(100, 1e-6)?; // keys of the first stage, and the rate of all
/// let visits = AtomicUsize::new(0);
/// std::thread::scope(|scope| {
///     for _ in 0..4 {
///         scope.spawn(|| {
///             for page in 0..10_000u32 {
///                 if seen.insert(&page).expect("there is memory for the next stage") {
///                     visits.fetch_add(1, Ordering::Relaxed);
///                 }
///             }
///         });
///     }
/// });
/// assert_eq!(visits.into_inner(), 10_000);
/// assert!(seen.estimated_fpr() <= 1e-6);
/// # Ok::<(), bloomline::BuildError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct AtomicScalableBloomFilter(SharedStages);

impl AtomicScalableBloomFilter {
    methods::constructors! { "bloomline::AtomicScalableBloomFilter",
        /// Creates an empty filter whose first stage is for `expected_keys` keys; see [`ScalableBloomFilter::new`].
    }
    methods::insert_methods!("bloomline::AtomicScalableBloomFilter", many_writers that grow);
    #[cfg(feature = "rayon")]
    methods::par_insert_method! { "bloomline::AtomicScalableBloomFilter", "", [], Result<(), BuildError>, "?",
        /// Inserts many [`Keys`](crate::Keys) on all cores of the current rayon pool, while other threads insert. O(keys × stages).
        ///
        /// # Errors
        /// As [`insert`](Self::insert). Some of the keys are inserted then.
    }
    methods::query_methods!("bloomline::AtomicScalableBloomFilter");
    methods::info_methods!();

    /// Returns the number of keys that were new. It is too high by the permits that threads hold, and by the permits
    /// that they held when each stage became full: 1 for a thread that inserted a key, up to 1024 for a thread that
    /// inserted a batch.
    ///
    /// # Examples
    /// ```
    /// let seen = bloomline::AtomicScalableBloomFilter::new(1, 0.001)?;
    /// seen.insert("a")?;
    /// seen.insert("b")?;
    /// assert_eq!(seen.keys(), 2);
    /// # Ok::<(), bloomline::BuildError>(())
    /// ```
    pub fn keys(&self) -> u64 {
        self.0.keys()
    }

    /// Returns the false-positive rate with the present keys, by the model; see [`ScalableBloomFilter::estimated_fpr`].
    pub fn estimated_fpr(&self) -> f64 {
        self.0.estimated_fpr()
    }
}

methods::file_methods!(AtomicScalableBloomFilter, "bloomline::AtomicScalableBloomFilter");
methods::collect_impls!(AtomicScalableBloomFilter, grows);
#[cfg(feature = "rayon")]
methods::par_collect_impls!(AtomicScalableBloomFilter, grows);
methods::trait_impls!(AtomicScalableBloomFilter, many_writers that grow);

/// Shares a filter among writers, without copying.
impl From<ScalableBloomFilter> for AtomicScalableBloomFilter {
    fn from(filter: ScalableBloomFilter) -> Self {
        Self(filter.0.into())
    }
}

/// Freezes a shared filter without copying. Owning it proves that every insert has finished.
impl From<AtomicScalableBloomFilter> for ScalableBloomFilter {
    fn from(shared: AtomicScalableBloomFilter) -> Self {
        Self(shared.0.into())
    }
}
