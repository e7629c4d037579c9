//! The stages of a filter that grows, with many writers: one of them builds a stage while the others continue.

use super::stages::Stages;
use crate::batch::collect::or_panic;
use crate::batch::{self, FEW, PENDING, Pending};
use crate::builder::options::{Builder, FromBuilder};
use crate::concurrent::room::Room;
use crate::concurrent::turn::Turn;
use crate::error::BuildError;
use crate::filter::bloom::BloomFilter;
use crate::filter::fixed::Fixed;
use crate::filter::row;
use crate::layout::access::Shared;
use crate::layout::words4::Words4;
use crate::rate::growth::{Growth, MAX_STAGES, combined};
use crate::sync::{Mutex, Ordering, fence};
use core::fmt;
use std::sync::{OnceLock, PoisonError};

type Stage = Fixed<Words4, Shared>;

/// The implementation of [`AtomicScalableBloomFilter`].
pub(super) struct SharedStages {
    pub(super) growth: Growth,
    /// The stages up to the current one. All before it are full.
    stages: Box<[OnceLock<Stage>]>,
    turn: Turn,
    /// The places for new keys in the current stage.
    room: Room,
    /// Held by the thread that builds a stage.
    growing: Mutex<()>,
}

impl SharedStages {
    pub(super) fn insert_hash(&self, hash: u64) -> Result<bool, BuildError> {
        self.insert_from(0, hash)
    }

    pub(super) fn contains_hash(&self, hash: u64) -> bool {
        // Newest first: it has half of all keys.
        self.all().any(|stage| stage.contains_hash(hash))
    }

    #[track_caller]
    pub(super) fn insert_hashes(&self, hashes: &[u64], new: &mut [bool]) -> Result<usize, BuildError> {
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

    /// Inserts hashes without answers. The number of keys counts the new ones.
    pub(super) fn set_hashes(&self, hashes: &[u64]) {
        or_panic(self.try_set_hashes(hashes));
    }

    pub(super) fn try_set_hashes(&self, hashes: &[u64]) -> Result<(), BuildError> {
        let mut new = [false; PENDING];
        hashes.chunks(PENDING).try_for_each(|hashes| self.insert_hashes(hashes, &mut new[..hashes.len()]).map(drop))
    }

    #[track_caller]
    pub(super) fn contains_hashes(&self, hashes: &[u64], found: &mut [bool]) -> usize {
        batch::check_lengths(hashes.len(), found.len());
        row::contains_many(self.all(), hashes, found)
    }

    pub(super) fn keys(&self) -> u64 {
        (0..=self.turn.current()).map(|i| self.keys_in(i)).fold(0, u64::saturating_add)
    }

    pub(super) fn expected_keys(&self) -> Option<u64> {
        Some(self.growth.first)
    }

    pub(super) fn false_positive_rate(&self) -> Option<f64> {
        let merged = (0..self.growth.merged as u64).filter_map(|i| self.stage(i).false_positive_rate());
        Some(combined(merged.chain([self.growth.rate])))
    }

    pub(super) fn estimated_fpr(&self) -> f64 {
        combined((0..=self.turn.current()).map(|i| self.stage(i).expected_fpr(self.keys_in(i))))
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.all().map(Stage::memory_bytes).sum()
    }

    /// No key is in two stages.
    pub(super) fn estimated_keys(&self) -> f64 {
        self.all().map(Stage::estimated_keys).sum()
    }

    /// The key name of its own stages: a merged one may have another.
    pub(super) fn key_name(&self) -> &str {
        self.stage(self.growth.merged as u64).key_name()
    }

    row::as_one!(self, any: self.stage(0), all: self.all().rev());

    pub(super) fn populate(&mut self) {
        self.stages.iter_mut().filter_map(OnceLock::get_mut).for_each(Stage::populate);
    }

    pub(super) fn clear(&mut self) {
        // Its own stages come to the front.
        self.stages.rotate_left(self.growth.merged);
        self.growth.merged = 0;
        self.stages[1..].iter_mut().for_each(|stage| _ = stage.take());
        self.stages[0].get_mut().expect("it has a first stage").clear();
        self.turn = Turn::new(0);
        self.room.begin(0, self.growth.first);
    }

    /// The stages there are, newest first.
    pub(super) fn all(&self) -> impl DoubleEndedIterator<Item = &Stage> + Clone {
        self.stages_from(0, self.turn.current())
    }

    /// Returns a stage up to the current one.
    fn stage(&self, i: u64) -> &Stage {
        self.stages[i as usize].get().expect("a stage is built before its turn")
    }

    /// The stages `from` to `last`, newest first.
    fn stages_from(&self, from: u64, last: u64) -> impl DoubleEndedIterator<Item = &Stage> + Clone {
        (from..=last).rev().map(|i| self.stage(i))
    }

    /// The keys in a stage up to the current one, as one writer would count them.
    fn keys_in(&self, i: u64) -> u64 {
        let Some(own) = i.checked_sub(self.growth.merged as u64) else {
            return self.stage(i).expected_keys().unwrap_or(0);
        };
        // A stage whose turn has passed on has no free places: it is full.
        let keys = self.growth.capacity(i as usize).saturating_sub(self.room.free(i));
        // A stage may be begun for a key whose claim another thread then won in the stage before. It has no key, and counts as
        // one.
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

    /// Inserts a portion, whose marks in `new` are still `false`, as [`insert_from`](Self::insert_from) does one by one.
    fn insert_pending(&self, pending: &mut Pending, new: &mut [bool]) -> Result<usize, BuildError> {
        let (mut from, mut count) = (0, 0);
        loop {
            let turn = self.turn.current();
            // The last stage too: repeats neither take up room nor need the next stage.
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

/// Compares stages, keys and rate, each word at some moment during the call. The kernel does not count.
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
