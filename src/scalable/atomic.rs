//! `AtomicScalableBloomFilter`: stages that many threads fill, one claim for each key, and growth while the others go on.

use super::{ScalableBloomFilter, Stages};
use crate::batch::{self, FEW, PENDING, Pending};
use crate::bloom::BloomFilter;
use crate::collect::or_panic;
use crate::error::BuildError;
use crate::fixed::Fixed;
use crate::growth::{Growth, MAX_STAGES, combined};
use crate::methods;
use crate::operations::Shared;
use crate::params::{Builder, FromBuilder};
use crate::room::Room;
use crate::row;
use crate::sync::{Mutex, Ordering, fence};
use crate::turn::Turn;
use crate::words4::Words4;
use core::fmt;
use std::sync::{OnceLock, PoisonError};

/// A [`ScalableBloomFilter`] that any number of threads insert into and query at once, while it grows.
///
/// # Consistency
/// What racing callers may see:
///
/// - **No false negative**, as in [`AtomicBloomFilter`](crate::AtomicBloomFilter): once `insert` has returned, `contains` is `true` in every thread that
///   learned of it. A key of which `contains` once said `true` stays `true`.
/// - **One claim for each key**, also over a growth. Of any number of threads that insert the same key, at most one gets
///   `true`. Exactly one does, unless other keys set the bits that the key lacks, which reads like any false positive.
/// - **The rate stays.** A key takes a place in its stage before it sets bits, so no stage has more keys than it was sized for,
///   however many threads race.
/// - Queries and repeats never wait. An insert waits only if its key needs a stage that another thread builds at that moment.
///   To build one takes well under a millisecond, since memory is claimed from the system as it is written.
///
/// A new key costs a fence more than in an [`AtomicBloomFilter`](crate::AtomicBloomFilter), and two steps on a counter that hardly any other thread uses. A
/// batch costs them once for 512 keys, or for 1024 hashes.
///
/// A claim counts only if its stage is still open when the key's bits are set. Otherwise the insert goes on in the next stage,
/// where threads that saw the stage closed compete for the key. docs/DESIGN.md has the proof.
///
/// A clone and a comparison see words as those of an [`AtomicBloomFilter`](crate::AtomicBloomFilter) do.
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
    methods::building! { "bloomline::AtomicScalableBloomFilter",
        /// A filter whose first stage is for `expected_keys` keys, empty; see [`ScalableBloomFilter::new`].
    }
    methods::inserting!("bloomline::AtomicScalableBloomFilter", many_writers that grow);
    #[cfg(feature = "rayon")]
    methods::par_inserting! { "bloomline::AtomicScalableBloomFilter", "", [], Result<(), BuildError>, "?",
        /// Inserts many [`Keys`](crate::Keys) on all cores of the current rayon pool, while other threads insert. O(keys × stages).
        ///
        /// # Errors
        /// As [`insert`](Self::insert). Some of the keys are inserted then.
    }
    methods::asking!("bloomline::AtomicScalableBloomFilter");
    methods::telling!();

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
        self.0.keys()
    }

    /// The false-positive rate with the keys that are in, by the model; see [`ScalableBloomFilter::estimated_fpr`].
    pub fn estimated_fpr(&self) -> f64 {
        self.0.estimated_fpr()
    }
}

methods::filing!(AtomicScalableBloomFilter, "bloomline::AtomicScalableBloomFilter");
methods::collecting!(AtomicScalableBloomFilter, grows);
#[cfg(feature = "rayon")]
methods::par_collecting!(AtomicScalableBloomFilter, grows);
methods::as_filter!(AtomicScalableBloomFilter, many_writers that grow);

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

type Stage = Fixed<Words4, Shared>;

/// What does the work of an [`AtomicScalableBloomFilter`].
pub(super) struct SharedStages {
    pub(super) growth: Growth,
    /// Those up to the one whose turn it is. All before it are full.
    stages: Box<[OnceLock<Stage>]>,
    turn: Turn,
    /// For new keys, in the stage whose turn it is.
    room: Room,
    /// Held by the thread that builds a stage.
    growing: Mutex<()>,
}

impl SharedStages {
    fn insert_hash(&self, hash: u64) -> Result<bool, BuildError> {
        self.insert_from(0, hash)
    }

    fn contains_hash(&self, hash: u64) -> bool {
        // Newest first: it has half of all keys.
        self.all().any(|stage| stage.contains_hash(hash))
    }

    #[track_caller]
    fn insert_hashes(&self, hashes: &[u64], new: &mut [bool]) -> Result<usize, BuildError> {
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

    /// Inserts hashes of which nobody asks whether they were new. The number of keys does.
    fn set_hashes(&self, hashes: &[u64]) {
        or_panic(self.try_set_hashes(hashes));
    }

    pub(super) fn try_set_hashes(&self, hashes: &[u64]) -> Result<(), BuildError> {
        let mut new = [false; PENDING];
        hashes.chunks(PENDING).try_for_each(|hashes| self.insert_hashes(hashes, &mut new[..hashes.len()]).map(drop))
    }

    #[track_caller]
    fn contains_hashes(&self, hashes: &[u64], found: &mut [bool]) -> usize {
        batch::check_lengths(hashes.len(), found.len());
        row::contains_many(self.all(), hashes, found)
    }

    fn keys(&self) -> u64 {
        (0..=self.turn.current()).map(|i| self.keys_in(i)).fold(0, u64::saturating_add)
    }

    fn expected_keys(&self) -> Option<u64> {
        Some(self.growth.first)
    }

    fn false_positive_rate(&self) -> Option<f64> {
        let merged = (0..self.growth.merged as u64).filter_map(|i| self.stage(i).false_positive_rate());
        Some(combined(merged.chain([self.growth.rate])))
    }

    fn estimated_fpr(&self) -> f64 {
        combined((0..=self.turn.current()).map(|i| self.stage(i).expected_fpr(self.keys_in(i))))
    }

    fn memory_bytes(&self) -> usize {
        self.all().map(Stage::memory_bytes).sum()
    }

    /// No key is in two stages.
    fn estimated_keys(&self) -> f64 {
        self.all().map(Stage::estimated_keys).sum()
    }

    // Of its own stages: one that was merged may have a name for the keys where the filter has none.
    row::as_one!(self, any: self.stage(self.growth.merged as u64), all: self.all().rev());

    fn populate(&mut self) {
        self.stages.iter_mut().filter_map(OnceLock::get_mut).for_each(Stage::populate);
    }

    fn clear(&mut self) {
        // Its own stages come to the front.
        self.stages.rotate_left(self.growth.merged);
        self.growth.merged = 0;
        self.stages[1..].iter_mut().for_each(|stage| _ = stage.take());
        self.stages[0].get_mut().expect("it has a first stage").clear();
        self.turn = Turn::new(0);
        self.room.begin(0, self.growth.first);
    }

    /// Those there are, the newest first.
    pub(super) fn all(&self) -> impl DoubleEndedIterator<Item = &Stage> + Clone {
        self.stages_from(0, self.turn.current())
    }

    /// A stage up to the one whose turn it is.
    fn stage(&self, i: u64) -> &Stage {
        self.stages[i as usize].get().expect("a stage is built before its turn")
    }

    /// The stages `from` to `last`, the newest first.
    fn stages_from(&self, from: u64, last: u64) -> impl DoubleEndedIterator<Item = &Stage> + Clone {
        (from..=last).rev().map(|i| self.stage(i))
    }

    /// The keys in a stage up to the one whose turn it is, as one writer would have them.
    fn keys_in(&self, i: u64) -> u64 {
        let Some(own) = i.checked_sub(self.growth.merged as u64) else {
            return self.stage(i).expected_keys().unwrap_or(0);
        };
        // No places are free where the turn has passed on: such a stage is full.
        let keys = self.growth.capacity(i as usize).saturating_sub(self.room.free(i));
        // A stage that was begun for a key whose claim another thread won in the stage before may have none: it counts as one.
        keys.max(own.min(1))
    }

    /// The full stages, oldest first, a copy of the last one, and the keys in the copy.
    pub(super) fn snapshot(&self) -> (Vec<&Stage>, Stage, u64) {
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
        let (keys, rate) = (self.growth.capacity(next as usize), self.growth.rate(next as usize));
        let stage = self.stage(full).like(keys, rate)?;
        self.stages[next as usize].get_or_init(|| stage);
        self.room.begin(next, self.growth.capacity(next as usize));
        self.turn.pass_to(next);
        Ok(())
    }
}

impl FromBuilder for SharedStages {
    fn from_builder<F>(builder: Builder<F>) -> Result<Self, BuildError> {
        Stages::from_builder(builder).map(Self::from)
    }
}

impl From<Stages> for SharedStages {
    fn from(Stages { growth, stages, in_last }: Stages) -> Self {
        let last = stages.len() - 1;
        let room = Room::new(last as u64, growth.capacity(last) - in_last);
        let mut stages = stages.into_iter();
        let stages = (0..growth.merged + MAX_STAGES)
            .map(|_| stages.next().map(|stage| Stage::from(stage.0)).map_or_else(OnceLock::new, OnceLock::from));
        Self { growth, stages: stages.collect(), turn: Turn::new(last as u64), room, growing: Mutex::new(()) }
    }
}

/// Owning it proves that every insert has finished.
impl From<SharedStages> for Stages {
    fn from(shared: SharedStages) -> Self {
        let in_last = shared.keys_in(shared.turn.current());
        let stages = shared.stages.into_iter().map_while(OnceLock::into_inner);
        Self { growth: shared.growth, stages: stages.map(|stage| BloomFilter(stage.into())).collect(), in_last }
    }
}

/// Each word is copied at some moment during the call.
impl Clone for SharedStages {
    fn clone(&self) -> Self {
        let (full, last, in_last) = self.snapshot();
        let stages = full.into_iter().cloned().chain([last]).map(|stage| BloomFilter(stage.into()));
        Stages { growth: self.growth, stages: stages.collect(), in_last }.into()
    }
}

/// Equal stages, keys and rate, each word at some moment during the call; the kernel does not count.
impl PartialEq for SharedStages {
    fn eq(&self, other: &Self) -> bool {
        let last = self.turn.current();
        self.growth == other.growth
            && last == other.turn.current()
            && self.keys_in(last) == other.keys_in(last)
            && (0..=last).all(|i| self.stage(i) == other.stage(i))
    }
}

impl Eq for SharedStages {}

impl fmt::Debug for SharedStages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AtomicScalableBloomFilter")
            .field("keys", &self.keys())
            .field("false_positive_rate", &self.false_positive_rate())
            .field("memory_bytes", &self.memory_bytes())
            .finish_non_exhaustive()
    }
}
