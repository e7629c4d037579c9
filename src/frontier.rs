//! `Frontier`: the queue of a crawler, which holds each item once.

use crate::error::BuildError;
use crate::filter::atomic::AtomicBloomFilter;
use crate::key::single::Key;
use crate::sync::{AtomicU64, Ordering};
use core::fmt;
use crossbeam::queue::SegQueue;

/// The queue of a crawler (a crawl frontier): any number of threads push the items that they find and pop the next to visit,
/// and no item is queued twice.
///
/// It is an unbounded first-in, first-out queue behind an [`AtomicBloomFilter`]. The filter remembers the items that were seen,
/// in some 10 to 40 bits each regardless of their length. Only waiting items are kept whole.
///
/// # What the filter costs
/// A false positive is an item that is reported as seen and never visited. This happens to a new item at the filter's current
/// rate, which rises from 0 to the given `false_positive_rate` by the time that the expected items are in. So choose the
/// fraction of a crawl that may be missed: 1e-6 takes 41 bits per item.
///
/// # When it is full
/// Past the expected items the rate rises above the requested one. [`WhenFull`] decides what happens then: by default
/// pushes succeed and one warning with the rate is logged; or they are refused with [`FrontierFull`].
///
/// # Consistency
/// Racing callers may see:
///
/// - **An item is queued once.** A push queues its item if its insert claimed it in the filter, and of all the pushes
///   of one item at most one claims it: exactly one, unless the item is a false positive. See [`AtomicBloomFilter`].
/// - An item that was queued is popped once, by one thread. `pop` returns `None` if there was a moment when nothing
///   waited: another thread may be about to push.
/// - `len` and `is_empty` are right for some moment during the call.
/// - `seen` counts an item before it can be popped.
/// - With [`WhenFull::Refuse`] never more than the expected items are queued. A push takes a permit, which `seen` counts,
///   before it claims its item, and returns it if another thread was faster. So while `t` threads push the same items,
///   up to `t - 1` permits fewer than are left may be available; all are again when these pushes have returned.
///
/// # When a crawl is over
/// An empty queue is not the end: a thread that visits an item may push more. The crawl is over when as many items were visited
/// as seen. Count an item as visited once all that it leads to was pushed, and read that count *before* `seen`:
///
/// ```
/// use bloomline::Frontier;
/// use std::sync::atomic::{AtomicU64, Ordering};
///
/// // The pages are the numbers below 1000, and a page links to its double and to the page after that.
/// let frontier = Frontier::new(1000, 1e-9)?;
/// let visited = AtomicU64::new(0);
/// frontier.push(1u64);
/// std::thread::scope(|scope| {
///     for _ in 0..4 {
///         scope.spawn(|| {
///             // Acquire: with the visits come the pushes that were made during them.
///             while visited.load(Ordering::Acquire) != frontier.seen() {
///                 let Some(page) = frontier.pop() else {
///                     std::thread::yield_now();
///                     continue;
///                 };
///                 for link in [2 * page, 2 * page + 1] {
///                     if link < 1000 {
///                         frontier.push(link);
///                     }
///                 }
///                 // Release: see above.
///                 visited.fetch_add(1, Ordering::Release);
///             }
///         });
///     }
/// });
/// assert_eq!(visited.into_inner(), 999);
/// # Ok::<(), bloomline::BuildError>(())
/// ```
///
/// `examples/crawl.rs` crawls a folder tree this way.
///
/// # Stop and resume
/// The filter remembers the items that wait as well: with it alone, a later frontier would never visit them. So save both, at a
/// moment when no item is being visited, into one file that is replaced as a whole, and begin with both:
///
/// ```
/// use bloomline::{AtomicBloomFilter, Frontier, FrontierParts, WhenFull, save_file};
/// use std::io::{BufRead, BufReader, Write};
/// use std::fs::File;
///
/// let frontier = Frontier::new(1000, 1e-9)?;
/// frontier.push("a".to_owned());
/// frontier.push("b".to_owned());
/// let page = frontier.pop(); // "a" is visited, and "b" waits
///
/// let path = std::env::temp_dir().join(format!("frontier-{}", std::process::id()));
/// let FrontierParts { filter, waiting, seen, .. } = frontier.into_parts();
/// save_file(&path, |mut file| {
///     filter.write_to(&mut file)?;
///     writeln!(file, "{seen}")?;
///     waiting.iter().try_for_each(|item| writeln!(file, "{item}"))
/// })?;
///
/// let mut file = BufReader::new(File::open(&path)?);
/// let filter = AtomicBloomFilter::read_from(&mut file)?;
/// let mut lines = file.lines();
/// let seen = lines.next().expect("the number seen")?.parse()?;
/// let waiting: Vec<String> = lines.collect::<Result<_, _>>()?;
/// let parts = FrontierParts { filter, waiting, seen, capacity: 1000, when_full: WhenFull::Warn };
/// let frontier = Frontier::from_parts(parts);
/// assert_eq!((frontier.seen(), frontier.len()), (2, 1));
/// assert!(!frontier.push("b".to_owned())); // it waits already
/// assert_eq!(frontier.pop().as_deref(), Some("b"));
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// The number of items [`seen`](Self::seen) continues as well, so a count of visited items that is compared with it begins at
/// `seen - len`. A crawl that is killed resumes from the last save: items visited since are visited again, and none is missed.
pub struct Frontier<T> {
    queue: SegQueue<T>,
    filter: AtomicBloomFilter,
    capacity: u64,
    when_full: WhenFull,
    /// Items claimed, and permits held for claims under way.
    ///
    /// All of its orderings are Relaxed. The capacity holds, and only one push crosses it, because all
    /// read-modify-writes of one atomic are totally ordered. A thread that popped an item sees it counted, because the
    /// count precedes the push, and the queue makes a push happen before its pop.
    claimed: AtomicU64,
}

/// The treatment of new items by a full [`Frontier`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WhenFull {
    /// Queues them, while the false-positive rate rises. The first of them logs a warning that names the
    /// rate, through the crate `log`.
    #[default]
    Warn,
    /// Refuses them with [`FrontierFull`], so that the false-positive rate stays as requested.
    Refuse,
}

/// The state of a [`Frontier`], to save it and to continue with it.
#[derive(Clone, Debug)]
pub struct FrontierParts<T> {
    /// The items that were seen.
    pub filter: AtomicBloomFilter,
    /// The items that wait, oldest first.
    pub waiting: Vec<T>,
    /// The number of items that were seen, including those that wait.
    pub seen: u64,
    /// The number of items that the frontier is made for.
    pub capacity: u64,
    /// The treatment of new items once it is full.
    pub when_full: WhenFull,
}

impl<T> Frontier<T> {
    /// Creates a frontier for `expected_items` distinct items. Up to a fraction `false_positive_rate` of them may be missed.
    ///
    /// The hash has a random seed, so that an attacker cannot prepare items that are reported as seen. The filter takes the
    /// memory of [`AtomicBloomFilter::new`]; see [`with_filter`](Self::with_filter) for other choices.
    ///
    /// # Errors
    /// [`BuildError`]: no items, a rate not between 0 and 1, or a size that the system does not have.
    ///
    /// # Examples
    /// ```
    /// let frontier = bloomline::Frontier::new(1_000_000, 1e-6)?;
    /// assert!(frontier.push("https://example.org/"));
    /// assert!(!frontier.push("https://example.org/"));
    /// assert_eq!(frontier.pop(), Some("https://example.org/"));
    /// assert!(!frontier.push("https://example.org/")); // popped, and seen all the same
    /// # Ok::<(), bloomline::BuildError>(())
    /// ```
    pub fn new(expected_items: u64, false_positive_rate: f64) -> Result<Self, BuildError> {
        let builder = AtomicBloomFilter::builder().random_seed();
        let filter = builder.expected_keys(expected_items).false_positive_rate(false_positive_rate).build()?;
        Ok(Self::with_filter(filter, expected_items))
    }

    /// Creates a frontier around a filter of your own: sized in bytes, with a fixed seed, or with the items of an earlier
    /// crawl.
    ///
    /// `expected_items` counts future items only, regardless of the filter's contents. Items that waited when the earlier crawl
    /// ended are in the filter too, and only [`from_parts`](Self::from_parts) queues them, and counts the earlier ones.
    ///
    /// # Examples
    /// ```
    /// use bloomline::{AtomicBloomFilter, Frontier};
    /// let filter = AtomicBloomFilter::builder().memory(64 << 20).false_positive_rate(1e-6).random_seed().build()?;
    /// let capacity = filter.capacity(1e-6);
    /// let frontier = Frontier::with_filter(filter, capacity);
    /// assert!(frontier.push("https://example.org/"));
    /// # Ok::<(), bloomline::BuildError>(())
    /// ```
    pub fn with_filter(filter: AtomicBloomFilter, expected_items: u64) -> Self {
        Self {
            queue: SegQueue::new(),
            filter,
            capacity: expected_items,
            when_full: WhenFull::default(),
            claimed: AtomicU64::new(0),
        }
    }

    /// Creates a frontier that continues an earlier one. The first of the waiting items is popped first.
    ///
    /// Waiting items are queued even if the filter has them already. Those that it lacks are inserted, and count as
    /// [`seen`](Self::seen). If more items were seen than the frontier is made for, and it is to [warn](WhenFull::Warn), the warning
    /// is logged at once. O(length of all items).
    pub fn from_parts(parts: FrontierParts<T>) -> Self
    where
        T: Key,
    {
        let FrontierParts { filter, waiting, mut seen, capacity, when_full } = parts;
        let frontier = Self::with_filter(filter, capacity).when_full(when_full);
        for item in waiting {
            seen = seen.saturating_add(frontier.filter.insert(&item).into());
            frontier.queue.push(item);
        }
        let seen = seen.max(frontier.queue.len() as u64);
        if seen > capacity && when_full == WhenFull::Warn {
            frontier.warn();
        }
        Self { claimed: AtomicU64::new(seen), ..frontier }
    }

    /// Returns the filter, the waiting items and the rest of the state, for a later run. O(waiting items).
    ///
    /// An item that was popped and is not yet visited is in neither: [`requeue`](Self::requeue) it before.
    pub fn into_parts(self) -> FrontierParts<T> {
        FrontierParts {
            seen: self.seen(),
            waiting: self.queue.into_iter().collect(),
            filter: self.filter,
            capacity: self.capacity,
            when_full: self.when_full,
        }
    }

    /// Chooses what happens once the expected items were seen; [`WhenFull::Warn`] if not called.
    ///
    /// # Examples
    /// ```
    /// use bloomline::{Frontier, WhenFull};
    /// let frontier = Frontier::new(1, 1e-6)?.when_full(WhenFull::Refuse);
    /// assert_eq!(frontier.try_push("a"), Ok(true));
    /// let full = frontier.try_push("b").unwrap_err();
    /// assert_eq!(full.item, "b");
    /// assert_eq!(full.capacity, 1);
    /// # Ok::<(), bloomline::BuildError>(())
    /// ```
    #[must_use]
    pub fn when_full(mut self, when_full: WhenFull) -> Self {
        self.when_full = when_full;
        self
    }

    /// Queues an item unless it was seen before. Returns true if it was queued.
    ///
    /// `false` means seen before, being pushed by another thread, or a false positive. O(length of the item), except for the
    /// one push that logs the warning, which is O(memory of the filter).
    ///
    /// # Panics
    /// If the item is new, the frontier is full and [`WhenFull::Refuse`] was chosen: then use
    /// [`try_push`](Self::try_push), which gives the item back.
    ///
    /// # Examples
    /// Most links of a page were seen before. Those need not be copied from it:
    /// ```
    /// let frontier = bloomline::Frontier::new(1000, 1e-6)?;
    /// for link in "a b a".split(' ') {
    ///     if !frontier.filter().contains(link) {
    ///         frontier.push(link.to_owned());
    ///     }
    /// }
    /// assert_eq!(frontier.len(), 2);
    /// # Ok::<(), bloomline::BuildError>(())
    /// ```
    #[track_caller]
    pub fn push(&self, item: T) -> bool
    where
        T: Key,
    {
        match self.try_push(item) {
            Ok(new) => new,
            Err(full) => panic!("{full}"),
        }
    }

    /// Queues an item as [`push`](Self::push) does, but returns an error when the frontier is full.
    ///
    /// # Errors
    /// [`FrontierFull`] with the item, if it is new, the frontier is full and [`WhenFull::Refuse`] was chosen. The item
    /// does not count as seen then.
    pub fn try_push(&self, item: T) -> Result<bool, FrontierFull<T>>
    where
        T: Key,
    {
        let hash = item.hash_with(self.filter.hasher());
        match self.when_full {
            WhenFull::Warn => {
                if !self.filter.insert_hash(hash) {
                    return Ok(false);
                }
                let before = self.claimed.fetch_add(1, Ordering::Relaxed);
                self.queue.push(item);
                // Only one push finds exactly the capacity taken.
                if before == self.capacity {
                    self.warn();
                }
                Ok(true)
            }
            WhenFull::Refuse => {
                // Checked first: a seen item needs no permit, so it is not refused when none is left.
                if self.filter.contains_hash(hash) {
                    return Ok(false);
                }
                // The permit precedes the claim: a refused item must leave no trace in the filter.
                let free = |claimed| (claimed < self.capacity).then_some(claimed + 1);
                if self.claimed.fetch_update(Ordering::Relaxed, Ordering::Relaxed, free).is_err() {
                    return Err(FrontierFull { item, capacity: self.capacity });
                }
                let new = self.filter.insert_hash(hash);
                if new {
                    self.queue.push(item);
                } else {
                    self.claimed.fetch_sub(1, Ordering::Relaxed);
                }
                Ok(new)
            }
        }
    }

    #[cold]
    fn warn(&self) {
        log::warn!(
            "the frontier has seen more than the {} items that it was made for: the false-positive rate is {:.2e} and rises",
            self.capacity,
            self.current_fpr()
        );
    }

    /// Removes and returns the next item to visit, the one that waited longest; `None` if no item waits.
    pub fn pop(&self) -> Option<T> {
        self.queue.pop()
    }

    /// Queues a popped item again, for example if it could not be visited. It is popped after all that wait. The number of
    /// items [`seen`](Self::seen) does not change.
    ///
    /// # Examples
    /// ```
    /// let frontier = bloomline::Frontier::new(1000, 1e-6)?;
    /// frontier.push("https://example.org/");
    /// let page = frontier.pop().unwrap();
    /// assert!(!frontier.push(page)); // it was seen
    /// frontier.requeue(page);
    /// assert_eq!(frontier.pop(), Some(page));
    /// # Ok::<(), bloomline::BuildError>(())
    /// ```
    pub fn requeue(&self, item: T) {
        self.queue.push(item);
    }

    /// Returns the number of items that wait.
    pub fn len(&self) -> usize {
        self.queue.len()
    }

    /// Returns true if no item waits.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Returns the number of items that were queued, including those already popped.
    ///
    /// # Examples
    /// ```
    /// let frontier = bloomline::Frontier::new(1000, 1e-6)?;
    /// for page in ["a", "b", "a"] {
    ///     frontier.push(page);
    /// }
    /// frontier.pop();
    /// assert_eq!((frontier.seen(), frontier.len(), frontier.capacity_left()), (2, 1, 998));
    /// # Ok::<(), bloomline::BuildError>(())
    /// ```
    pub fn seen(&self) -> u64 {
        self.claimed.load(Ordering::Relaxed)
    }

    /// Returns the number of items that the frontier was made for.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Returns the number of new items left until the frontier is full; 0 if it is full, or past that.
    pub fn capacity_left(&self) -> u64 {
        self.capacity.saturating_sub(self.seen())
    }

    /// Returns the fraction of new items that are reported as seen at present; see [`AtomicBloomFilter::current_fpr`].
    /// O(memory).
    pub fn current_fpr(&self) -> f64 {
        self.filter.current_fpr()
    }

    /// Returns the filter of the items that were seen, to query, measure or save. A key inserted into it counts as seen and
    /// is never queued.
    pub fn filter(&self) -> &AtomicBloomFilter {
        &self.filter
    }
}

impl<T> fmt::Debug for Frontier<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Frontier")
            .field("len", &self.len())
            .field("seen", &self.seen())
            .field("capacity", &self.capacity)
            .field("when_full", &self.when_full)
            .field("filter", &self.filter)
            .finish_non_exhaustive()
    }
}

/// The error of a full [`Frontier`], which refuses a new item.
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct FrontierFull<T> {
    /// The item, given back.
    pub item: T,
    /// The number of items that the frontier was made for.
    pub capacity: u64,
}

/// Omits the item, which need not be `Debug`.
impl<T> fmt::Debug for FrontierFull<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FrontierFull").field("capacity", &self.capacity).finish_non_exhaustive()
    }
}

impl<T> fmt::Display for FrontierFull<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the frontier is full: it has seen the {} items that it was made for; make it for more, or let it warn instead",
            self.capacity
        )
    }
}

impl<T> core::error::Error for FrontierFull<T> {}
