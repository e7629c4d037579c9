//! The stages of a filter that grows, with many writers: one of them builds a stage while the others continue.

use super::stage_list::StageList;
use super::stages::{Stages, fpr_of, own_rate};
use crate::batch::collect::or_panic;
use crate::batch::{self, MAX_UNRESOLVED, SMALL_BATCH, Unresolved};
use crate::builder::options::{Builder, FromBuilder};
use crate::concurrent::epoch::EpochCounter;
use crate::concurrent::permits::Permits;
use crate::error::BuildError;
use crate::filter::bloom::BloomFilter;
use crate::filter::chain;
use crate::filter::raw::RawFilter;
use crate::layout::access::Shared;
use crate::layout::sectorized::Sectorized;
use crate::rate::growth::{GrowthPolicy, combined};
use crate::sync::{Mutex, Ordering, fence};
use core::fmt;
use std::sync::PoisonError;

type Stage = RawFilter<Sectorized, Shared>;

/// The implementation of [`AtomicScalableBloomFilter`].
pub(super) struct SharedStages {
    pub(super) growth: GrowthPolicy,
    /// The stages up to the current one. All before it are full.
    stages: StageList<Stage>,
    epoch: EpochCounter,
    /// The permits for new keys in the current stage.
    permits: Permits,
    /// Held by the thread that builds a stage.
    growing: Mutex<()>,
}

impl SharedStages {
    pub(super) fn insert_hash(&self, hash: u64) -> Result<bool, BuildError> {
        self.insert_from(0, hash)
    }

    pub(super) fn contains_hash(&self, hash: u64) -> bool {
        // Newest first, because the newest stage has half of all keys.
        self.newest_first().any(|stage| stage.contains_hash(hash))
    }

    #[inline]
    pub(super) fn prefetch_hash(&self, hash: u64) {
        chain::prefetch_hash(self.newest_first(), hash);
    }

    #[track_caller]
    pub(super) fn insert_hashes(&self, hashes: &[u64], new: &mut [bool]) -> Result<usize, BuildError> {
        batch::check_lengths(hashes.len(), new.len());
        new.fill(false);
        let mut count = 0;
        if hashes.len() <= SMALL_BATCH {
            for (&hash, new) in hashes.iter().zip(new) {
                *new = self.insert_hash(hash)?;
                count += usize::from(*new);
            }
            return Ok(count);
        }
        let mut unresolved = Unresolved::new();
        for (hashes, new) in hashes.chunks(MAX_UNRESOLVED).zip(new.chunks_mut(MAX_UNRESOLVED)) {
            unresolved.reset(hashes);
            count += self.insert_unresolved(&mut unresolved, new)?;
        }
        Ok(count)
    }

    /// Inserts hashes without answers, and counts the new ones.
    pub(super) fn set_hashes(&self, hashes: &[u64]) {
        or_panic(self.try_set_hashes(hashes));
    }

    pub(super) fn try_set_hashes(&self, hashes: &[u64]) -> Result<(), BuildError> {
        let mut new = [false; MAX_UNRESOLVED];
        hashes
            .chunks(MAX_UNRESOLVED)
            .try_for_each(|hashes| self.insert_hashes(hashes, &mut new[..hashes.len()]).map(drop))
    }

    #[track_caller]
    pub(super) fn contains_hashes(&self, hashes: &[u64], found: &mut [bool]) -> usize {
        batch::check_lengths(hashes.len(), found.len());
        chain::contains_hashes(self.newest_first(), hashes, found)
    }

    pub(super) fn keys(&self) -> u64 {
        (0..=self.epoch.current()).map(|i| self.keys_in(i)).fold(0, u64::saturating_add)
    }

    pub(super) fn expected_keys(&self) -> Option<u64> {
        Some(self.growth.first_keys)
    }

    pub(super) fn false_positive_rate(&self) -> Option<f64> {
        let merged = (0..self.growth.merged as u64).filter_map(|i| self.stage(i).false_positive_rate());
        Some(combined(merged.chain([self.growth.rate])))
    }

    pub(super) fn estimated_fpr(&self) -> f64 {
        combined((0..=self.epoch.current()).map(|i| fpr_of(self.stage(i), self.keys_in(i))))
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.newest_first().map(Stage::memory_bytes).sum()
    }

    /// Adds up the estimates of all stages, because no key is in two of them.
    pub(super) fn estimated_keys(&self) -> f64 {
        self.newest_first().map(Stage::estimated_keys).sum()
    }

    /// Returns the key name of the filter's own stages; a merged stage may have another.
    pub(super) fn key_name(&self) -> &str {
        self.stage(self.growth.merged as u64).key_name()
    }

    chain::aggregate_methods!(self, any: self.stage(0), all: self.newest_first().rev());

    #[cfg(feature = "file")]
    pub(super) fn add_key_kinds(&self, kinds: &[u16]) {
        // A stage that is being built has the kinds of the stage before it.
        let _growing = self.growing.lock().unwrap_or_else(PoisonError::into_inner);
        self.newest_first().for_each(|stage| stage.add_key_kinds(kinds));
    }

    pub(super) fn populate(&mut self) {
        self.stages.iter_mut().for_each(Stage::populate);
    }

    pub(super) fn clear(&mut self) {
        let merged = (0..self.growth.merged as u64).map(|i| &self.stage(i).spec);
        self.growth.rate = own_rate(&self.growth, merged);
        let stages = core::mem::replace(&mut self.stages, StageList::from_iter([]));
        self.stages = stages.into_stages().skip(self.growth.merged).take(1).collect();
        self.stages.iter_mut().for_each(Stage::clear);
        self.growth.merged = 0;
        self.epoch = EpochCounter::new(0);
        self.permits.reset(0, self.growth.first_keys);
    }

    /// Returns all stages, newest first.
    pub(super) fn newest_first(&self) -> impl DoubleEndedIterator<Item = &Stage> + Clone {
        self.stages_from(0, self.epoch.current())
    }

    /// Returns a stage up to the current one.
    fn stage(&self, i: u64) -> &Stage {
        self.stages.get(i).expect("a stage is built before its epoch")
    }

    /// Returns the stages `from` to `last`, newest first.
    fn stages_from(&self, from: u64, last: u64) -> impl DoubleEndedIterator<Item = &Stage> + Clone {
        (from..=last).rev().map(|i| self.stage(i))
    }

    /// Returns the keys in a stage up to the current one, as one writer would count them.
    fn keys_in(&self, i: u64) -> u64 {
        let Some(own_index) = i.checked_sub(self.growth.merged as u64) else {
            return self.stage(i).expected_keys().unwrap_or(0);
        };
        // A stage whose epoch has passed has no free permits: it is full.
        let keys = self.growth.capacity(i as usize).saturating_sub(self.permits.available(i));
        // A stage may be built for a key that another thread then claimed in the previous stage. A stage without keys
        // counts as one with a key.
        keys.max(own_index.min(1))
    }

    /// Returns the full stages, oldest first, a copy of the last one, and the keys in the copy.
    pub(super) fn snapshot(&self) -> (Vec<&Stage>, Stage, u64) {
        let last = self.epoch.current();
        let copy = self.stage(last).clone();
        // Counted after the copy: a key takes a permit before it sets bits, so the count includes each key with bits in
        // the copy.
        fence(Ordering::Acquire);
        ((0..last).map(|i| self.stage(i)).collect(), copy, self.keys_in(last))
    }

    /// Inserts a hash. In the stages before `from`, no other thread has a claim of it that counts.
    fn insert_from(&self, mut from: u64, hash: u64) -> Result<bool, BuildError> {
        loop {
            let epoch = self.epoch.current();
            // After the epoch was read: this sees every claim of the key in an earlier stage that counts.
            if self.stages_from(from, epoch).any(|stage| stage.contains_hash(hash)) {
                return Ok(false);
            }
            from = epoch;
            if self.permits.acquire(epoch, 1) == 0 {
                self.grow(epoch)?;
                continue;
            }
            if !self.stage(epoch).insert_hash(hash) {
                self.permits.release(epoch, 1);
                return Ok(false);
            }
            if self.epoch.validate_claim(epoch) {
                return Ok(true);
            }
            // The bits in this stage are this call's own.
            from = epoch + 1;
        }
    }

    /// Inserts a chunk, whose answers in `new` are still `false`, as [`insert_from`](Self::insert_from) does one by one.
    fn insert_unresolved(&self, unresolved: &mut Unresolved, new: &mut [bool]) -> Result<usize, BuildError> {
        let (mut from, mut count) = (0, 0);
        loop {
            let epoch = self.epoch.current();
            // The last stage is queried too, so that repeats neither take a permit nor need the next stage.
            for i in (from..=epoch).rev() {
                unresolved.retain_absent(|hashes, seen| self.stage(i).contains_hashes(hashes, seen));
            }
            if unresolved.hashes().is_empty() {
                return Ok(count);
            }
            from = epoch;
            let permits = self.permits.acquire(epoch, unresolved.hashes().len());
            if permits == 0 {
                self.grow(epoch)?;
                continue;
            }
            let stage = self.stage(epoch);
            let mut result = Ok(());
            count += unresolved.take_front(permits, new, |hashes, new| {
                let mut claimed = stage.insert_hashes(hashes, new);
                self.permits.release(epoch, hashes.len() - claimed);
                if claimed > 0 && !self.epoch.validate_claim(epoch) {
                    for (&hash, new) in hashes.iter().zip(new).filter(|(_, new)| **new) {
                        *new = self.insert_from(epoch + 1, hash).unwrap_or_else(|error| {
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

    /// Builds the stage after `full`, unless another thread did.
    #[cold]
    fn grow(&self, full: u64) -> Result<(), BuildError> {
        // A poisoned lock: another thread panicked before the epoch advanced, so the stage is the same as before.
        let _growing = self.growing.lock().unwrap_or_else(PoisonError::into_inner);
        if self.epoch.current() != full {
            return Ok(());
        }
        let next = full + 1;
        let (keys, rate) = (self.growth.capacity(next as usize), self.growth.rate(next as usize));
        let stage = self.stage(full).empty_with_size(keys, rate)?;
        self.stages.set(next, stage);
        self.permits.reset(next, self.growth.capacity(next as usize));
        self.epoch.advance_to(next);
        Ok(())
    }
}

impl FromBuilder for SharedStages {
    fn from_builder<F>(builder: Builder<F>) -> Result<Self, BuildError> {
        Stages::from_builder(builder).map(Self::from)
    }
}

impl From<Stages> for SharedStages {
    fn from(Stages { growth, stages, last_len }: Stages) -> Self {
        let last = stages.len() - 1;
        let permits = Permits::new(last as u64, growth.capacity(last) - last_len);
        Self {
            growth,
            stages: stages.into_iter().map(|stage| Stage::from(stage.0)).collect(),
            epoch: EpochCounter::new(last as u64),
            permits,
            growing: Mutex::new(()),
        }
    }
}

/// Owning it proves that every insert has finished.
impl From<SharedStages> for Stages {
    fn from(shared: SharedStages) -> Self {
        let last_len = shared.keys_in(shared.epoch.current());
        let stages = shared.stages.into_stages();
        Self { growth: shared.growth, stages: stages.map(|stage| BloomFilter(stage.into())).collect(), last_len }
    }
}

/// Each word is copied at some moment during the call.
impl Clone for SharedStages {
    fn clone(&self) -> Self {
        let (full, last, last_len) = self.snapshot();
        let stages = full.into_iter().cloned().chain([last]).map(|stage| BloomFilter(stage.into()));
        Stages { growth: self.growth, stages: stages.collect(), last_len }.into()
    }
}

/// Compares stages, keys and rate, each word at some moment during the call. The kernel is ignored.
impl PartialEq for SharedStages {
    fn eq(&self, other: &Self) -> bool {
        let last = self.epoch.current();
        self.growth == other.growth
            && last == other.epoch.current()
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
