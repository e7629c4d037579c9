//! The stages of a filter that grows, with one writer.

use crate::batch::collect::or_panic;
use crate::batch::{self, MAX_UNRESOLVED, SMALL_BATCH, Unresolved};
use crate::builder::options::{Builder, FromBuilder};
use crate::builder::spec::FilterSpec;
use crate::error::{BuildError, MergeError};
use crate::filter::bloom::BloomFilter;
use crate::filter::chain;
use crate::filter::raw::RawFilter;
use crate::kernel::block::BLOCK_BYTES;
use crate::layout::access::Access;
use crate::layout::ops::LayoutOps;
use crate::layout::sectorized::Sectorized;
use crate::rate::fpr;
use crate::rate::growth::{GrowthPolicy, MAX_MERGED, combined};
use alloc::borrow::ToOwned;
use alloc::vec::Vec;
use core::fmt;

/// A filter shrinks if this saves an eighth of its memory, and the next stage takes an eighth of its keys. Each time takes a share of
/// the rate, so a smaller saving must not: after a thousand calls, each for a key more, the memory was 1.9 times that of a filter
/// that never shrank at most.
const SHRINK_SHARE: u64 = 8;

/// The share of its rate that a filter keeps for keys to come, however often it shrinks.
const MIN_RATE_LEFT: f64 = 1.0 / 64.0;

/// The implementation of [`ScalableBloomFilter`]. A comparison ignores the kernel.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Stages {
    pub(super) growth: GrowthPolicy,
    /// At least one of its own, after the merged ones. All but the last never change, and its own among them are full.
    pub(super) stages: Vec<BloomFilter>,
    /// Keys in the last stage. Not 0, unless it is the only one of its own.
    pub(super) last_len: u64,
}

impl Stages {
    pub(super) fn insert_hash(&mut self, hash: u64) -> Result<bool, BuildError> {
        if self.contains_hash(hash) {
            return Ok(false);
        }
        if self.capacity_left() == 0 {
            self.grow()?;
        }
        let new = self.last_mut().insert_hash(hash);
        self.last_len += u64::from(new);
        Ok(new)
    }

    pub(super) fn contains_hash(&self, hash: u64) -> bool {
        // Newest first, because the newest stage has half of all keys.
        self.stages.iter().rev().any(|stage| stage.contains_hash(hash))
    }

    #[inline]
    pub(super) fn prefetch_hash(&self, hash: u64) {
        chain::prefetch_hash(self.stages.iter().map(|stage| &stage.0), hash);
    }

    #[track_caller]
    pub(super) fn insert_hashes(&mut self, hashes: &[u64], new: &mut [bool]) -> Result<usize, BuildError> {
        batch::check_lengths(hashes.len(), new.len());
        // A single stage takes the hashes for which it certainly has room straight from the slice.
        let fitting = if self.stages.len() == 1 { self.capacity_left().min(hashes.len()) } else { 0 };
        let mut count = self.insert_in_last(&hashes[..fitting], &mut new[..fitting]);
        let (hashes, new) = (&hashes[fitting..], &mut new[fitting..]);
        if hashes.is_empty() {
            return Ok(count);
        }
        new.fill(false);
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
    pub(super) fn set_hashes(&mut self, hashes: &[u64]) {
        or_panic(self.try_set_hashes(hashes));
    }

    pub(super) fn try_set_hashes(&mut self, hashes: &[u64]) -> Result<(), BuildError> {
        let mut new = [false; MAX_UNRESOLVED];
        hashes
            .chunks(MAX_UNRESOLVED)
            .try_for_each(|hashes| self.insert_hashes(hashes, &mut new[..hashes.len()]).map(drop))
    }

    #[track_caller]
    pub(super) fn contains_hashes(&self, hashes: &[u64], found: &mut [bool]) -> usize {
        batch::check_lengths(hashes.len(), found.len());
        chain::contains_hashes(self.stages.iter().rev().map(|stage| &stage.0), hashes, found)
    }

    pub(super) fn keys(&self) -> u64 {
        (0..self.stages.len()).map(|stage| self.keys_in(stage)).fold(0, u64::saturating_add)
    }

    pub(super) fn expected_keys(&self) -> Option<u64> {
        Some(self.growth.first_keys)
    }

    pub(super) fn false_positive_rate(&self) -> Option<f64> {
        Some(self.whole_rate())
    }

    /// The rate of all stages that there may be.
    fn whole_rate(&self) -> f64 {
        combined(self.merged().filter_map(BloomFilter::false_positive_rate).chain([self.growth.rate]))
    }

    pub(super) fn estimated_fpr(&self) -> f64 {
        combined(self.stages.iter().enumerate().map(|(i, stage)| fpr_of(&stage.0, self.keys_in(i))))
    }

    /// Returns the keys in a stage.
    fn keys_in(&self, stage: usize) -> u64 {
        match stage {
            _ if stage < self.growth.merged => self.stages[stage].expected_keys().unwrap_or(0),
            _ if stage == self.stages.len() - 1 => self.last_len,
            _ => self.growth.capacity(stage),
        }
    }

    pub(super) fn union(&mut self, other: &Self) -> Result<(), MergeError> {
        let (ours, theirs) = (&self.last().0, &other.last().0);
        ours.spec.check_same_keys(&theirs.spec)?;
        if ours.params.seed != theirs.params.seed {
            return Err(MergeError::Seed);
        }
        let stages = self.stages.len() + other.stages.len();
        if stages > MAX_MERGED {
            return Err(MergeError::Stages { stages, max: MAX_MERGED });
        }
        // The expected keys of the other's stages no longer count, and its stages without keys are left out.
        let merged_stages = other.stages.iter().enumerate().filter(|(i, _)| other.keys_in(*i) > 0).map(|(i, stage)| {
            let mut stage = stage.clone();
            let keys = other.keys_in(i);
            stage.0.spec.keys = Some(keys);
            stage.0.spec.rate = Some(fpr_of(&stage.0, keys));
            stage.0.spec.is_closed = false;
            stage
        });
        let merged_stages: Vec<BloomFilter> = merged_stages.collect();
        self.growth.merged += merged_stages.len();
        self.stages.splice(0..0, merged_stages);
        Ok(())
    }

    /// The rate of its own stages together, also of the closed ones.
    fn own_rate(&self) -> f64 {
        own_rate(&self.growth, self.merged().map(|stage| &stage.0.spec))
    }

    fn merged(&self) -> impl Iterator<Item = &BloomFilter> {
        self.stages[..self.growth.merged].iter()
    }

    pub(super) fn shrink_to_fit(&mut self) -> Result<(), BuildError> {
        let (last, keys) = (self.stages.len() - 1, self.last_len);
        // A file holds fewer merged stages.
        if keys == 0 || self.stages.len() >= MAX_MERGED {
            return Ok(());
        }
        // By the model, as a stage is sized: its bits may be better than the stage promises.
        let (rate, blocks, probes) = (self.growth.rate(last), self.last().block_count(), self.last().probes());
        let keeps_rate = |levels: &u32| fpr::rate((blocks >> levels) as u64, probes, keys) <= rate;
        let levels = (1..=blocks.trailing_zeros()).take_while(keeps_rate).count() as u32;
        let last_rate = fpr::rate_of_new((blocks >> levels) as u64, probes, keys);
        let full = (self.growth.merged..last).map(|stage| self.growth.rate(stage));
        let closed = self.merged().filter_map(|stage| closed_rate(&stage.0.spec));
        let (own, used) = (self.own_rate(), combined(closed.chain(full).chain([last_rate])));
        let growth = GrowthPolicy {
            first_keys: (self.keys() / SHRINK_SHARE).max(64),
            // The rest, so that the rate of the whole stays.
            rate: (own - used) / (1.0 - used),
            merged: self.stages.len(),
        };
        if growth.rate < own * MIN_RATE_LEFT {
            return Ok(());
        }
        let next = BloomFilter(self.last().0.empty_with_size(growth.first_keys, growth.rate(growth.merged))?);
        let saved = (blocks - (blocks >> levels)) * BLOCK_BYTES;
        if saved <= next.memory_bytes() + self.memory_bytes() / SHRINK_SHARE as usize {
            return Ok(());
        }
        for stage in self.growth.merged..last {
            self.close(stage, self.growth.capacity(stage), self.growth.rate(stage));
        }
        self.last_mut().0.fold_levels(levels);
        self.close(last, keys, last_rate);
        self.stages.push(next);
        (self.growth, self.last_len) = (growth, 0);
        Ok(())
    }

    /// Makes a stage of its own a merged one, with these keys and this rate.
    fn close(&mut self, stage: usize, keys: u64, rate: f64) {
        let spec = &mut self.stages[stage].0.spec;
        (spec.keys, spec.rate, spec.is_closed) = (Some(keys), Some(rate), true);
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.stages.iter().map(BloomFilter::memory_bytes).sum()
    }

    /// Adds up the estimates of all stages, because no key is in two of them.
    pub(super) fn estimated_keys(&self) -> f64 {
        self.stages.iter().map(BloomFilter::estimated_keys).sum()
    }

    /// Returns the key name of the filter's own stages; a merged stage may have another.
    pub(super) fn key_name(&self) -> &str {
        self.last().key_name()
    }

    pub(super) fn set_key_name(&mut self, name: &str) -> Result<(), BuildError> {
        let merged = self.growth.merged;
        self.stages[merged..].iter_mut().try_for_each(|stage| stage.0.set_key_name(name.to_owned()))
    }

    chain::aggregate_methods!(self, any: self.last(), all: self.stages.iter().map(|stage| &stage.0));

    #[cfg(feature = "file")]
    pub(super) fn add_key_kinds(&self, kinds: &[u16]) {
        self.stages.iter().for_each(|stage| stage.add_key_kinds(kinds));
    }

    pub(super) fn populate(&mut self) {
        self.last_mut().populate();
    }

    pub(super) fn clear(&mut self) {
        self.growth.rate = self.own_rate();
        self.stages.drain(..self.growth.merged);
        self.growth.merged = 0;
        self.stages.truncate(1);
        self.last_mut().clear();
        self.last_len = 0;
    }

    fn last(&self) -> &BloomFilter {
        &self.stages[self.stages.len() - 1]
    }

    fn last_mut(&mut self) -> &mut BloomFilter {
        let last = self.stages.len() - 1;
        &mut self.stages[last]
    }

    /// Returns the number of new keys that the last stage still takes, limited to `usize`.
    fn capacity_left(&self) -> usize {
        usize::try_from(self.growth.capacity(self.stages.len() - 1) - self.last_len).unwrap_or(usize::MAX)
    }

    /// Begins the next stage.
    fn grow(&mut self) -> Result<(), BuildError> {
        let (keys, rate) = (self.growth.capacity(self.stages.len()), self.growth.rate(self.stages.len()));
        let stage = BloomFilter(self.last().0.empty_with_size(keys, rate)?);
        self.stages.try_reserve(1).map_err(|_| BuildError::OutOfMemory { bytes: stage.memory_bytes() })?;
        self.stages.push(stage);
        self.last_len = 0;
        Ok(())
    }

    /// Inserts at most [`capacity_left`](Self::capacity_left) hashes into the last stage.
    fn insert_in_last(&mut self, hashes: &[u64], new: &mut [bool]) -> usize {
        let count = self.last_mut().insert_hashes(hashes, new);
        self.last_len += count as u64;
        count
    }

    /// Inserts a chunk, whose answers in `new` are still `false`. Hashes that a stage already has are dropped together,
    /// because inserting others does not remove them. The rest is inserted in order.
    fn insert_unresolved(&mut self, unresolved: &mut Unresolved, new: &mut [bool]) -> Result<usize, BuildError> {
        for stage in self.stages.iter().rev() {
            unresolved.retain_absent(|hashes, seen| stage.contains_hashes(hashes, seen));
        }
        let mut count = 0;
        while !unresolved.hashes().is_empty() {
            if self.capacity_left() == 0 {
                self.grow()?;
            }
            count += unresolved.take_front(self.capacity_left(), new, |hashes, new| self.insert_in_last(hashes, new));
            // Repeats of a key that was just inserted neither take up capacity nor need the next stage.
            unresolved.retain_absent(|hashes, seen| self.last().contains_hashes(hashes, seen));
        }
        Ok(count)
    }
}

/// Returns the rate of a filter's own stages together, also of those among the `merged` ones that it closed.
pub(super) fn own_rate<'a>(growth: &GrowthPolicy, merged: impl Iterator<Item = &'a FilterSpec>) -> f64 {
    combined(merged.filter_map(closed_rate).chain([growth.rate]))
}

fn closed_rate(spec: &FilterSpec) -> Option<f64> {
    spec.rate.filter(|_| spec.is_closed)
}

/// Returns the false-positive rate of a stage that counted `keys` new keys, by the model.
pub(super) fn fpr_of<A: Access>(stage: &RawFilter<Sectorized, A>, keys: u64) -> f64
where
    Sectorized: LayoutOps<A>,
{
    let geometry = stage.params.geometry;
    fpr::rate_of_new(geometry.units, geometry.probes, keys)
}

impl FromBuilder for Stages {
    fn from_builder<F>(builder: Builder<F>) -> Result<Self, BuildError> {
        let (first_keys, rate) = builder.keys_and_rate::<Sectorized>()?;
        let growth = GrowthPolicy { first_keys, rate, merged: 0 };
        let stage =
            builder.part(first_keys, growth.rate(0)).build().map_err(|error: BuildError| error.for_whole(rate))?;
        Ok(Self { growth, stages: alloc::vec![stage], last_len: 0 })
    }
}

impl fmt::Debug for Stages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScalableBloomFilter")
            .field("stages", &self.stages)
            .field("keys", &self.keys())
            .field("false_positive_rate", &self.false_positive_rate())
            .finish()
    }
}
