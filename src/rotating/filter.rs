//! `RotatingBloomFilter`: a window of the last keys, by generations of filters.

use super::generations::Generations;
use crate::builder::options::Builder;
use crate::filter::methods;
use std::time::Duration;

/// A filter that forgets: a window of the last *n* distinct keys, or of a time, that any number of threads share.
///
/// It is for an endless stream, such as the doorkeeper of a cache, which admits a key at its second occurrence, or a log whose
/// repeats come soon. It consists of generations, each of them a filter. The *current generation* takes keys; queries check it
/// and the g - 1 before it. A *rotation* begins an empty generation and forgets the oldest one. g is 2 unless
/// [`generations`](Builder::generations) sets it. Each generation is made for n / (g - 1) keys, and a full one rotates.
///
/// **A key is found until g rotations after it.** Inserting a key again renews it. So the keys that are remembered
/// depend on the rotations:
///
/// | what rotates | at least | at most |
/// |---|---|---|
/// | only full generations (as built) | the last n distinct keys (with more than two generations: those after which fewer than n keys came that were new to their generation) | n · g / (g - 1) keys |
/// | [`rotate_if_older_than`](Self::rotate_if_older_than) (T / (g - 1)) before each insert, with [`rotate_when_full(false)`](Builder::rotate_when_full) | the keys of the last T, however many | the keys of the last T · g / (g - 1) |
/// | `rotate_if_older_than`(T / (g - 1)) and full generations | after a key, g - 1 generations that were full or T / (g - 1) old: with more keys than planned, the last n; with fewer, the keys of the last T | as above, whichever is less |
/// | [`rotate`](Self::rotate), called as you like | nothing but the sentence above | n · g / (g - 1) keys |
///
/// Without a call before each insert, the time between two calls is missing in "at least" and is added to "at most". A file keeps
/// the age of the current generation once `rotate_if_older_than` was called, and the system's clock gives the time between save and
/// load, which counts as well: not at all if the clock was set back meanwhile, and too long if it was set forward. A process
/// measures time by a clock that nobody sets. On some systems that one stops while the machine sleeps.
/// Among threads that race, n is less by the permits that others hold at that moment: 1 for an insert, up to 64 for a
/// batch, and up to a 1024th of a generation for a thread that takes permits in advance.
///
/// - **The rate** of all full generations together is at most the requested rate, p. Each keeps p' with 1 - (1 - p')^g
///   = p. If full generations do not rotate, one with more keys than it is made for has a higher rate:
///   [`current_fpr`](Self::current_fpr) returns it.
/// - **Memory** is g + 1 filters for n / (g - 1) keys each, because one is emptied while the others are in use. At 1 %, that is
///   35 bits for each key of the window with two generations, 25 with three, and 21 with five. More generations forget in finer
///   steps, and each costs a query a cache line.
///
/// # Consistency
/// Racing callers may see:
///
/// - **No false negative.** Once `insert` has returned, `contains` is `true` in every thread that learned of it, until
///   g rotations later.
/// - **At most one claim in a window.** Of any number of threads that insert the same key, at most one gets `true`,
///   also over a rotation, and none does again until g rotations later. Exactly one does, unless other keys set the
///   bits that the key lacks. It may also be that no thread does: if two threads insert a new key as the generations
///   rotate, or if a thread is stopped as below.
/// - Queries do not wait. The insert that rotates empties a generation, which takes as long as writing its memory. Only
///   a thread that needs the next rotation waits, until that is done or the filter is saved.
/// - A thread that is stopped in the middle of an insert for as long as it takes to fill more than a generation may
///   leave bits of its key, or of up to 64 keys of its batch, in a later one. They read like any false positive.
///
/// There is no union, because two windows have no common order. The only copy is a file, which keeps the whole window.
///
/// # A window of time
/// Make it for the most keys that you plan for in the time T.
///
/// ```
/// use bloomline::RotatingBloomFilter;
/// use std::time::Duration;
///
/// // Keys of the last ten minutes are found, however many come, and none that is older than eleven minutes.
/// let seen: RotatingBloomFilter = RotatingBloomFilter::builder()
///     .expected_keys(100_000)
///     .false_positive_rate(0.01)
///     .generations(11)
///     .rotate_when_full(false)
///     .build()?;
/// // In any thread, before each insert:
/// seen.rotate_if_older_than(Duration::from_secs(60));
/// assert!(seen.insert("10.0.0.7"));
/// # Ok::<(), bloomline::BuildError>(())
/// ```
///
/// # Examples
/// ```
/// use bloomline::RotatingBloomFilter;
///
/// let seen = RotatingBloomFilter::new(1000, 1e-6)?; // keys of the window, and the rate
/// assert!(seen.insert("a"));
/// assert!(!seen.insert("a"));
/// for key in 0..999u32 {
///     seen.insert(&key);
/// }
/// assert!(seen.contains("a")); // the oldest of the last thousand
/// for key in 0..3000u32 {
///     seen.insert(&key);
/// }
/// assert!(!seen.contains("a")); // forgotten
/// # Ok::<(), bloomline::BuildError>(())
/// ```
pub struct RotatingBloomFilter(Generations);

impl RotatingBloomFilter {
    methods::constructors! { "bloomline::RotatingBloomFilter",
        /// Creates an empty filter for a window of the last `expected_keys` distinct keys.
        ///
        /// Its builder takes keys and rate, and refuses memory and probes
        /// ([`BuildError::NotKeysAndRate`](crate::BuildError::NotKeysAndRate)).
        ///
        /// # Panics
        /// If the system has no clock, as `wasm32-unknown-unknown`.
    }
    methods::insert_methods!("bloomline::RotatingBloomFilter", many_writers);
    #[cfg(feature = "rayon")]
    methods::par_insert_method! { "bloomline::RotatingBloomFilter", "", [], (), "",
        /// Inserts many [`Keys`](crate::Keys) on all cores of the current rayon pool, while other threads insert. Which of them
        /// count as the last ones varies between runs.
    }
    methods::query_methods!("bloomline::RotatingBloomFilter");
    methods::info_methods!();

    /// Begins an empty generation, and forgets the oldest one. Calls that race count as one. O(memory of a generation), while
    /// the other threads continue.
    ///
    /// # Examples
    /// ```
    /// let seen = bloomline::RotatingBloomFilter::new(1000, 1e-6)?;
    /// seen.insert("a");
    /// seen.rotate();
    /// assert!(seen.contains("a"));
    /// seen.rotate();
    /// assert!(!seen.contains("a"));
    /// assert_eq!(seen.rotations(), 2);
    /// # Ok::<(), bloomline::BuildError>(())
    /// ```
    pub fn rotate(&self) {
        self.0.rotate();
    }

    /// [Rotates](Self::rotate) if the current generation is at least `age` old: once for each `age` that has passed, at most as
    /// often as there are generations. Returns true if it rotated. Cheap enough to call before each insert, as intended: some
    /// 50 ns. A file keeps the age, if this was called before it was saved; otherwise the age counts from the load.
    ///
    /// # Examples
    /// ```
    /// use std::time::Duration;
    /// let seen = bloomline::RotatingBloomFilter::new(1000, 1e-6)?;
    /// assert!(!seen.rotate_if_older_than(Duration::from_secs(3600)));
    /// assert!(seen.rotate_if_older_than(Duration::ZERO));
    /// # Ok::<(), bloomline::BuildError>(())
    /// ```
    pub fn rotate_if_older_than(&self, age: Duration) -> bool {
        self.0.rotate_if_older_than(age)
    }

    /// Returns the number of rotations, automatic and called. A file does not keep it.
    pub fn rotations(&self) -> u64 {
        self.0.rotations()
    }
}

methods::file_methods!(RotatingBloomFilter, "bloomline::RotatingBloomFilter");
methods::collect_impls!(RotatingBloomFilter);
#[cfg(feature = "rayon")]
methods::par_collect_impls!(RotatingBloomFilter);
methods::trait_impls!(RotatingBloomFilter, many_writers);

/// The options of a window.
impl Builder<RotatingBloomFilter> {
    /// Sets the number of generations that are queried, 2 to 64; 2 if not called. See [`RotatingBloomFilter`] for the costs and
    /// gains of more.
    pub fn generations(mut self, generations: u32) -> Self {
        self.generations = generations;
        self
    }

    /// Sets whether a full generation rotates; `true` if not called. If it does, more keys than planned shorten a window of
    /// time, and the rate is kept. Otherwise the window is kept, and the rate rises.
    pub fn rotate_when_full(mut self, rotate: bool) -> Self {
        self.rotate_when_full = rotate;
        self
    }
}
