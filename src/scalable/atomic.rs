//! `AtomicScalableBloomFilter`: stages that many threads fill, one claim for each key, and growth while the others go on.

use super::{ScalableBloomFilter, build, stage};
use crate::atomic_filter::AtomicBloomFilter;
use crate::batch::{self, FEW, PENDING, Pending};
use crate::error::BuildError;
use crate::growth::{Growth, MAX_STAGES, combined};
use crate::key::Key;
use crate::params::{Builder, FromBuilder};
use crate::room::Room;
use crate::row;
use crate::sync::{Mutex, Ordering, fence};
use crate::turn::Turn;
use crate::words4::BloomFilter;
use core::fmt;
use std::sync::{OnceLock, PoisonError};

/// A [`ScalableBloomFilter`] that any number of threads insert into and query at once, while it grows.
///
/// # Consistency
/// What racing callers may see:
///
/// - **No false negative**, as in [`AtomicBloomFilter`]: once `insert` has returned, `contains` is `true` in every thread that
///   learned of it. A key of which `contains` once said `true` stays `true`.
/// - **One claim for each key**, also over a growth. Of any number of threads that insert the same key, at most one gets
///   `true`. Exactly one does, unless other keys set the bits that the key lacks, which reads like any false positive.
/// - **The rate stays.** A key takes a place in its stage before it sets bits, so no stage has more keys than it was sized for,
///   however many threads race.
/// - Queries and repeats never wait. An insert waits only if its key needs a stage that another thread builds at that moment.
///   To build one takes well under a millisecond, since memory is claimed from the system as it is written.
///
/// A new key costs a fence more than in an [`AtomicBloomFilter`], and two steps on a counter that hardly any other thread uses. A
/// batch costs them once for 512 keys, or for 1024 hashes.
///
/// A claim counts only if its stage is still open when the key's bits are set. Otherwise the insert goes on in the next stage,
/// where threads that saw the stage closed compete for the key. docs/DESIGN.md has the proof.
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
/// assert!(seen.expected_fpr() <= 1e-6);
/// # Ok::<(), bloomline::BuildError>(())
/// ```
pub struct AtomicScalableBloomFilter {
    pub(super) growth: Growth,
    /// Those up to the one whose turn it is. All before it are full.
    stages: Box<[OnceLock<AtomicBloomFilter>]>,
    pub(super) turn: Turn,
    /// For new keys, in the stage whose turn it is.
    room: Room,
    /// Held by the thread that builds a stage.
    growing: Mutex<()>,
}

impl AtomicScalableBloomFilter {
    /// A filter whose first stage is for `expected_keys` keys, empty; see [`ScalableBloomFilter::new`].
    ///
    /// # Errors
    /// [`BuildError`], as from [`BloomFilter::new`].
    ///
    /// # Examples
    /// ```
    /// let filter = bloomline::AtomicScalableBloomFilter::new(1_000_000, 0.01)?;
    /// assert_eq!((filter.keys(), filter.false_positive_rate()), (0, 0.01));
    /// # Ok::<(), bloomline::BuildError>(())
    /// ```
    pub fn new(expected_keys: u64, false_positive_rate: f64) -> Result<Self, BuildError> {
        Self::builder().expected_keys(expected_keys).false_positive_rate(false_positive_rate).build()
    }

    /// A [`Builder`] for a filter of this type; see [`ScalableBloomFilter::builder`].
    ///
    /// # Examples
    /// ```
    /// use bloomline::AtomicScalableBloomFilter;
    /// let filter: AtomicScalableBloomFilter =
    ///     AtomicScalableBloomFilter::builder().expected_keys(1000).false_positive_rate(0.01).random_seed().build()?;
    /// # Ok::<(), bloomline::BuildError>(())
    /// ```
    pub fn builder() -> Builder<Self> {
        Builder::new()
    }

    /// Inserts a key. Returns whether this call claimed it: of all threads that insert a key, at most one gets `true`.
    /// O(length of the key + stages).
    ///
    /// # Errors
    /// [`BuildError`] if the key is new and needs a stage that cannot be built: the memory is at its end, or the stage's rate
    /// below what 64-bit hashes can keep. The key is not inserted then. (If another thread began a stage during this very call,
    /// the key may read as seen afterwards, and nobody has claimed it.)
    ///
    /// # Examples
    /// ```
    /// let seen = bloomline::AtomicScalableBloomFilter::new(1, 0.001)?;
    /// assert!(seen.insert("a")?);
    /// assert!(!seen.insert("a")?);
    /// assert!(seen.insert("b")?); // begins the second stage
    /// # Ok::<(), bloomline::BuildError>(())
    /// ```
    #[inline]
    pub fn insert<K: Key + ?Sized>(&self, key: &K) -> Result<bool, BuildError> {
        self.insert_hash(key.hash_with(self.hasher()))
    }

    /// [`insert`](Self::insert) of a key that was hashed elsewhere; see [`BloomFilter::insert_hash`]. O(stages).
    ///
    /// # Errors
    /// As [`insert`](Self::insert).
    pub fn insert_hash(&self, hash: u64) -> Result<bool, BuildError> {
        self.insert_from(0, hash)
    }

    /// [`contains`](Self::contains) of a key that was hashed elsewhere; see [`BloomFilter::insert_hash`]. O(stages).
    pub fn contains_hash(&self, hash: u64) -> bool {
        // Newest first: it has half of all keys.
        self.stages_from(0, self.turn.current()).any(|stage| stage.contains_hash(hash))
    }

    /// Inserts many keys in order: `new[i]` is `true` if this call claimed `keys[i]`. Of equal keys in the batch only the first
    /// can be. Returns how many it claimed. Faster than single calls. O(keys × stages).
    ///
    /// # Errors
    /// As [`insert`](Self::insert). Keys that were claimed by then are marked. The others are marked `false`, and most of them
    /// are not inserted.
    ///
    /// # Panics
    /// If `new` is not as long as `keys`.
    ///
    /// # Examples
    /// ```
    /// let seen = bloomline::AtomicScalableBloomFilter::new(1, 0.001)?;
    /// let mut new = [false; 4];
    /// assert_eq!(seen.insert_batch(&["a", "b", "a", "c"], &mut new)?, 3);
    /// assert_eq!(new, [true, true, false, true]);
    /// # Ok::<(), bloomline::BuildError>(())
    /// ```
    #[track_caller]
    pub fn insert_batch<K: Key>(&self, keys: &[K], new: &mut [bool]) -> Result<usize, BuildError> {
        batch::check_lengths(keys.len(), new.len());
        // Those after an error are not come to.
        new.fill(false);
        batch::try_hashed(self.hasher(), keys, new, |hashes, new| self.insert_hashes(hashes, new))
    }

    /// [`insert_batch`](Self::insert_batch) of keys that were hashed elsewhere; see [`BloomFilter::insert_hash`].
    ///
    /// # Errors
    /// As [`insert_batch`](Self::insert_batch).
    ///
    /// # Panics
    /// If `new` is not as long as `hashes`.
    ///
    /// # Examples
    /// ```
    /// let seen = bloomline::AtomicScalableBloomFilter::new(1, 0.001)?;
    /// use bloomline::Key;
    /// let hashes = ["a", "b", "a"].map(|key| key.hash_with(seen.hasher()));
    /// let mut new = [false; 3];
    /// assert_eq!(seen.insert_hashes(&hashes, &mut new)?, 2);
    /// assert_eq!(new, [true, true, false]);
    /// # Ok::<(), bloomline::BuildError>(())
    /// ```
    #[track_caller]
    pub fn insert_hashes(&self, hashes: &[u64], new: &mut [bool]) -> Result<usize, BuildError> {
        batch::check_lengths(hashes.len(), new.len());
        new.fill(false);
        let mut count = 0;
        if hashes.len() <= FEW {
            for (&hash, new) in hashes.iter().zip(new) {
                *new = self.insert_hash(hash)?;
                count += usize::from(*new);
            }
            return Ok(count);
        }
        let mut pending = Pending::new();
        for (hashes, new) in hashes.chunks(PENDING).zip(new.chunks_mut(PENDING)) {
            pending.take(hashes);
            count += self.insert_pending(&mut pending, new)?;
        }
        Ok(count)
    }

    /// [`contains_batch`](Self::contains_batch) of keys that were hashed elsewhere; see [`BloomFilter::insert_hash`].
    /// O(hashes × stages).
    ///
    /// # Panics
    /// If `found` is not as long as `hashes`.
    ///
    /// # Examples
    /// ```
    /// let seen = bloomline::AtomicScalableBloomFilter::new(1, 0.001)?;
    /// use bloomline::Key;
    /// seen.insert("a")?;
    /// let hashes = ["a", "b"].map(|key| key.hash_with(seen.hasher()));
    /// let mut found = [false; 2];
    /// assert_eq!(seen.contains_hashes(&hashes, &mut found), 1);
    /// assert_eq!(found, [true, false]);
    /// # Ok::<(), bloomline::BuildError>(())
    /// ```
    #[track_caller]
    pub fn contains_hashes(&self, hashes: &[u64], found: &mut [bool]) -> usize {
        batch::check_lengths(hashes.len(), found.len());
        row::contains_many(self.stages_from(0, self.turn.current()), hashes, found)
    }

    /// How many keys were new. It is too high by the places that threads hold, and by those that they held as a stage became
    /// full, for each stage: 1 for a thread that inserted a key, up to 1024 for one that inserted a batch.
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
        let last = self.turn.current();
        self.growth.keys(last as usize + 1, self.keys_in(last))
    }

    /// The rate asked for, which all stages together never pass.
    pub fn false_positive_rate(&self) -> f64 {
        self.growth.rate
    }

    /// The false-positive rate to expect with the keys that are in; see [`ScalableBloomFilter::expected_fpr`].
    ///
    /// # Examples
    /// ```
    /// let seen = bloomline::AtomicScalableBloomFilter::new(1, 0.001)?;
    /// assert_eq!(seen.expected_fpr(), 0.0);
    /// seen.insert("a")?;
    /// assert!(seen.expected_fpr() < 0.001);
    /// # Ok::<(), bloomline::BuildError>(())
    /// ```
    pub fn expected_fpr(&self) -> f64 {
        combined((0..=self.turn.current()).map(|i| self.stage(i).expected_fpr(self.keys_in(i))))
    }

    /// The size of the bits of all stages in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.stages_from(0, self.turn.current()).map(AtomicBloomFilter::memory_bytes).sum()
    }

    row::as_one!(self, any: self.stage(0), all: self.stages_from(0, self.turn.current()).rev());

    /// Removes all keys, and all stages but the first. O(memory of the first).
    ///
    /// # Examples
    /// ```
    /// let mut seen = bloomline::AtomicScalableBloomFilter::new(1, 0.001)?;
    /// seen.insert("a")?;
    /// seen.clear();
    /// assert!(!seen.contains("a") && seen.keys() == 0);
    /// # Ok::<(), bloomline::BuildError>(())
    /// ```
    pub fn clear(&mut self) {
        self.stages[1..].iter_mut().for_each(|stage| _ = stage.take());
        self.stages[0].get_mut().expect("it has a first stage").clear();
        self.turn = Turn::new(0);
        self.room.begin(0, self.growth.first);
    }

    /// A stage up to the one whose turn it is.
    fn stage(&self, i: u64) -> &AtomicBloomFilter {
        self.stages[i as usize].get().expect("a stage is built before its turn")
    }

    /// The stages `from` to `last`, the newest first.
    pub(super) fn stages_from(
        &self,
        from: u64,
        last: u64,
    ) -> impl DoubleEndedIterator<Item = &AtomicBloomFilter> + Clone {
        (from..=last).rev().map(|i| self.stage(i))
    }

    /// The keys in a stage up to the one whose turn it is, as one writer would have them.
    fn keys_in(&self, i: u64) -> u64 {
        // No places are free where the turn has passed on: such a stage is full.
        let keys = self.growth.capacity(i as usize).saturating_sub(self.room.free(i));
        // A stage that was begun for a key whose claim another thread won in the stage before may have none: it counts as one.
        keys.max(i.min(1))
    }

    /// The full stages, oldest first, a copy of the last one, and the keys in the copy.
    pub(super) fn snapshot(&self) -> (Vec<&AtomicBloomFilter>, AtomicBloomFilter, u64) {
        let last = self.turn.current();
        let copy = self.stage(last).clone();
        // Counted after that: a key takes a place before it sets bits. So what the copy has of a key, the count has too.
        fence(Ordering::Acquire);
        ((0..last).map(|i| self.stage(i)).collect(), copy, self.keys_in(last))
    }

    /// Inserts a hash that no stage before `from` has from another thread whose claim counts.
    fn insert_from(&self, mut from: u64, hash: u64) -> Result<bool, BuildError> {
        loop {
            let turn = self.turn.current();
            // After the turn was read: whoever claimed the key in an earlier stage, and whose claim counts, is seen.
            if self.stages_from(from, turn).any(|stage| stage.contains_hash(hash)) {
                return Ok(false);
            }
            from = turn;
            if self.room.take(turn, 1) == 0 {
                self.grow(turn)?;
                continue;
            }
            if !self.stage(turn).insert_hash(hash) {
                self.room.put(turn, 1);
                return Ok(false);
            }
            if self.turn.counts(turn) {
                return Ok(true);
            }
            // The bits in this stage are this call's own.
            from = turn + 1;
        }
    }

    /// Inserts a portion, whose marks in `new` are `false` yet, as [`insert_from`](Self::insert_from) does one by one.
    fn insert_pending(&self, pending: &mut Pending, new: &mut [bool]) -> Result<usize, BuildError> {
        let (mut from, mut count) = (0, 0);
        loop {
            let turn = self.turn.current();
            // The last stage too: repeats neither take up room nor ask for the next stage.
            for i in (from..=turn).rev() {
                pending.drop_seen(|hashes, seen| self.stage(i).contains_hashes(hashes, seen));
            }
            if pending.hashes().is_empty() {
                return Ok(count);
            }
            from = turn;
            let places = self.room.take(turn, pending.hashes().len());
            if places == 0 {
                self.grow(turn)?;
                continue;
            }
            let stage = self.stage(turn);
            let mut result = Ok(());
            count += pending.pass(places, new, |hashes, new| {
                let mut claimed = stage.insert_hashes(hashes, new);
                self.room.put(turn, hashes.len() - claimed);
                if claimed > 0 && !self.turn.counts(turn) {
                    for (&hash, new) in hashes.iter().zip(new).filter(|(_, new)| **new) {
                        *new = self.insert_from(turn + 1, hash).unwrap_or_else(|error| {
                            result = Err(error);
                            false
                        });
                        claimed -= usize::from(!*new);
                    }
                }
                claimed
            });
            result?;
        }
    }

    /// Begins the stage after `full`, unless another thread did.
    #[cold]
    fn grow(&self, full: u64) -> Result<(), BuildError> {
        // A poisoned lock: another thread panicked before the turn passed on, so the stage is the same as before.
        let _growing = self.growing.lock().unwrap_or_else(PoisonError::into_inner);
        if self.turn.current() != full {
            return Ok(());
        }
        let next = full + 1;
        let stage = stage(&self.growth, next as usize, self.seed(), self.kernel(), self.key_name())?;
        self.stages[next as usize].get_or_init(|| stage.into());
        self.room.begin(next, self.growth.capacity(next as usize));
        self.turn.pass_to(next);
        Ok(())
    }
}

impl FromBuilder for AtomicScalableBloomFilter {
    fn from_builder(builder: Builder<Self>) -> Result<Self, BuildError> {
        build(&builder).map(Self::from)
    }
}

/// Shares a filter among writers, without copying.
impl From<ScalableBloomFilter> for AtomicScalableBloomFilter {
    fn from(ScalableBloomFilter { growth, stages, in_last }: ScalableBloomFilter) -> Self {
        let last = stages.len() - 1;
        let room = Room::new(last as u64, growth.capacity(last) - in_last);
        let mut stages = stages.into_iter();
        let stages = (0..MAX_STAGES)
            .map(|_| stages.next().map(AtomicBloomFilter::from).map_or_else(OnceLock::new, OnceLock::from));
        Self { growth, stages: stages.collect(), turn: Turn::new(last as u64), room, growing: Mutex::new(()) }
    }
}

/// Freezes a shared filter without copying. Owning it proves that every insert has finished.
impl From<AtomicScalableBloomFilter> for ScalableBloomFilter {
    fn from(shared: AtomicScalableBloomFilter) -> Self {
        let in_last = shared.keys_in(shared.turn.current());
        let stages = shared.stages.into_iter().map_while(OnceLock::into_inner).map(BloomFilter::from).collect();
        Self { growth: shared.growth, stages, in_last }
    }
}

/// Each word is copied at some moment during the call, as in [`AtomicBloomFilter`]. O(memory).
impl Clone for AtomicScalableBloomFilter {
    fn clone(&self) -> Self {
        let (full, last, in_last) = self.snapshot();
        let stages = full.into_iter().cloned().chain([last]).map(BloomFilter::from).collect();
        ScalableBloomFilter { growth: self.growth, stages, in_last }.into()
    }
}

/// Equal stages, keys and rate, each word at some moment during the call; the kernel does not count.
impl PartialEq for AtomicScalableBloomFilter {
    fn eq(&self, other: &Self) -> bool {
        let last = self.turn.current();
        self.growth == other.growth
            && last == other.turn.current()
            && self.keys_in(last) == other.keys_in(last)
            && (0..=last).all(|i| self.stage(i) == other.stage(i))
    }
}

impl Eq for AtomicScalableBloomFilter {}

impl fmt::Debug for AtomicScalableBloomFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AtomicScalableBloomFilter")
            .field("keys", &self.keys())
            .field("false_positive_rate", &self.growth.rate)
            .field("memory_bytes", &self.memory_bytes())
            .finish_non_exhaustive()
    }
}
