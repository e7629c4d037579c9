//! The generations of a window, and their rotation: the implementation of
//! [`RotatingBloomFilter`](super::filter::RotatingBloomFilter).

#[cfg(feature = "rayon")]
mod bulk;
#[cfg(feature = "file")]
mod file;

use crate::batch::{self, SMALL_BATCH};
use crate::builder::options::{Builder, FromBuilder};
use crate::concurrent::epoch::EpochCounter;
use crate::concurrent::permits::Permits;
use crate::error::BuildError;
use crate::filter::chain;
use crate::filter::raw::RawFilter;
use crate::layout::access::Shared;
use crate::layout::sectorized::Sectorized;
use crate::rate::window;
use crate::sync::{AtomicBool, AtomicU64, Mutex, Ordering};
use core::fmt;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

/// Keys of a batch that are inserted together. A batch holds at most this many permits, which other threads cannot take
/// meanwhile.
const INSERT_CHUNK: usize = 64;

type Generation = RawFilter<Sectorized, Shared>;

/// An attempt of an insert that set the bits in a generation, but too late to count.
#[derive(Clone, Copy, Debug, PartialEq)]
struct VoidedInsert {
    /// The epoch of the generation.
    epoch: u64,
    /// True if an older generation had the key.
    seen: bool,
}

pub(super) struct Generations {
    window: u64,
    rate: f64,
    rotate_when_full: bool,
    /// The current one, those before it that are queried, and one that is empty or being emptied.
    ring: Box<[Generation]>,
    /// The first epoch is the number of queried generations, less one.
    epoch: EpochCounter,
    /// The permits for keys in the current generation.
    permits: Permits,
    /// Held while the epoch advances.
    rotating: Mutex<()>,
    /// Held while a generation is emptied, which the next rotation waits for.
    clearing: Mutex<()>,
    created: Instant,
    /// The age of the current generation in nanoseconds when this value was created: 0, unless it was loaded.
    loaded_age: u64,
    /// The start of the current generation, in nanoseconds of [`now`](Self::now).
    started: AtomicU64,
    /// True if it rotates by time. Its file then has the age of the current generation.
    rotates_by_time: AtomicBool,
}

impl Generations {
    /// Makes a window of the generations that are queried, oldest first, and an empty one.
    fn new(window: u64, rate: f64, rotate_when_full: bool, ring: Vec<Generation>, last_len: u64) -> Self {
        let epoch = ring.len() as u64 - 2;
        let permits =
            Permits::new(epoch, window::keys_per_generation(window, ring.len() as u32 - 1).saturating_sub(last_len));
        Self {
            window,
            rate,
            rotate_when_full,
            ring: ring.into(),
            epoch: EpochCounter::new(epoch),
            permits,
            rotating: Mutex::new(()),
            clearing: Mutex::new(()),
            created: Instant::now(),
            loaded_age: 0,
            started: AtomicU64::new(0),
            rotates_by_time: AtomicBool::new(false),
        }
    }

    pub(super) fn insert_hash(&self, hash: u64) -> bool {
        self.insert_after(None, hash)
    }

    pub(super) fn contains_hash(&self, hash: u64) -> bool {
        loop {
            let epoch = self.epoch.current();
            if self.newest_first(epoch).any(|generation| generation.contains_hash(hash)) {
                return true;
            }
            // Otherwise the oldest generation may have been emptied meanwhile, after the key was inserted into a newer
            // one.
            if self.epoch.validate_read(epoch) {
                return false;
            }
        }
    }

    #[inline]
    pub(super) fn prefetch_hash(&self, hash: u64) {
        chain::prefetch_hash(self.newest_first(self.epoch.current()), hash);
    }

    #[track_caller]
    pub(super) fn insert_hashes(&self, hashes: &[u64], new: &mut [bool]) -> usize {
        batch::check_lengths(hashes.len(), new.len());
        if hashes.len() <= SMALL_BATCH {
            return self.insert_one_by_one(hashes, new);
        }
        let chunks = hashes.chunks(INSERT_CHUNK).zip(new.chunks_mut(INSERT_CHUNK));
        chunks.map(|(hashes, new)| self.insert_chunk(hashes, new)).sum()
    }

    /// Inserts hashes without answers. The permits count the new ones.
    pub(super) fn set_hashes(&self, hashes: &[u64]) {
        let mut new = [false; 16 * INSERT_CHUNK];
        for hashes in hashes.chunks(new.len()) {
            self.insert_hashes(hashes, &mut new[..hashes.len()]);
        }
    }

    #[track_caller]
    pub(super) fn contains_hashes(&self, hashes: &[u64], found: &mut [bool]) -> usize {
        batch::check_lengths(hashes.len(), found.len());
        loop {
            let epoch = self.epoch.current();
            let count = chain::contains_hashes(self.newest_first(epoch), hashes, found);
            // As in `contains_hash`.
            if count == hashes.len() || self.epoch.validate_read(epoch) {
                return count;
            }
        }
    }

    pub(super) fn rotate(&self) {
        self.rotate_from(self.epoch.current(), self.now());
    }

    pub(super) fn rotate_if_older_than(&self, age: Duration) -> bool {
        // Relaxed, as all of its orderings: nothing depends on it. Only read most times, because all threads share it.
        if !self.rotates_by_time.load(Ordering::Relaxed) {
            self.rotates_by_time.store(true, Ordering::Relaxed);
        }
        self.rotate_if_older_at(self.now(), age.as_nanos().try_into().unwrap_or(u64::MAX))
    }

    /// Returns the nanoseconds since the filter was created, or since the beginning of the generation that was the current one when
    /// it was loaded. 64 bits last for 584 years.
    fn now(&self) -> u64 {
        self.loaded_age.saturating_add(self.created.elapsed().as_nanos() as u64)
    }

    /// Implements [`rotate_if_older_than`](Self::rotate_if_older_than) at the time `now`.
    fn rotate_if_older_at(&self, now: u64, age: u64) -> bool {
        let mut rotated = false;
        loop {
            let epoch = self.epoch.current();
            // Relaxed: the epoch advanced after this was written, and was read before.
            let started = self.started.load(Ordering::Relaxed);
            let passed = now.saturating_sub(started);
            if passed < age {
                return rotated;
            }
            let Some(due) = passed.checked_div(age) else {
                return self.rotate_from(epoch, now);
            };
            // The next generation begins when this one should have ended. Otherwise each late call would lengthen the
            // window. As many rotations as there are generations forget all keys; more would have no effect.
            let skipped = due.saturating_sub(self.generation_count().into());
            rotated |= self.rotate_from(epoch, started + age * (1 + skipped));
        }
    }

    pub(super) fn rotations(&self) -> u64 {
        self.epoch.current() - u64::from(self.generation_count() - 1)
    }

    pub(super) fn expected_keys(&self) -> Option<u64> {
        Some(self.window)
    }

    pub(super) fn false_positive_rate(&self) -> Option<f64> {
        Some(self.rate)
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.ring.iter().map(Generation::memory_bytes).sum()
    }

    /// Estimates the keys of the union of all generations, because a key may be in several.
    pub(super) fn estimated_keys(&self) -> f64 {
        let mut generations = self.newest_first(self.epoch.current());
        let ring = generations.next().expect("there is a current one").clone();
        // They have one size and seed.
        generations.for_each(|generation| ring.blocks.or_assign(generation.words()));
        ring.estimated_keys()
    }

    pub(super) fn key_name(&self) -> &str {
        self.ring[0].key_name()
    }

    chain::aggregate_methods!(self, any: self.ring[0], all: self.newest_first(self.epoch.current()));

    /// Adds kinds to the generation that takes keys next, too.
    #[cfg(feature = "file")]
    pub(super) fn add_key_kinds(&self, kinds: &[u16]) {
        self.ring.iter().for_each(|generation| generation.add_key_kinds(kinds));
    }

    pub(super) fn populate(&mut self) {
        self.ring.iter_mut().for_each(Generation::populate);
    }

    pub(super) fn clear(&mut self) {
        self.ring.iter_mut().for_each(Generation::clear);
        self.permits.reset(self.epoch.current(), window::keys_per_generation(self.window, self.generation_count()));
    }

    /// Returns the number of generations that are queried.
    fn generation_count(&self) -> u32 {
        // At most window::MAX_GENERATIONS.
        self.ring.len() as u32 - 1
    }

    fn generation(&self, epoch: u64) -> &Generation {
        // Below their number.
        &self.ring[(epoch % self.ring.len() as u64) as usize]
    }

    /// Returns the generations of the window.
    fn newest_first(&self, epoch: u64) -> impl Iterator<Item = &Generation> + Clone {
        (0..u64::from(self.generation_count())).map(move |age| self.generation(epoch - age))
    }

    /// Continues an insert after a change of epoch.
    fn insert_after(&self, mut voided: Option<VoidedInsert>, hash: u64) -> bool {
        loop {
            match self.insert_in(self.epoch.current(), voided, hash) {
                Ok(new) => return new,
                Err(next) => voided = next,
            }
        }
    }

    /// Inserts into the generation of `epoch`, and returns true if the key is new to the window. If the epoch has advanced, the
    /// error is the `voided` of the next attempt.
    fn insert_in(&self, epoch: u64, voided: Option<VoidedInsert>, hash: u64) -> Result<bool, Option<VoidedInsert>> {
        let current = self.generation(epoch);
        if current.contains_hash(hash) {
            // In a generation that is not the current one any more, the key would leave the window too soon.
            return if self.epoch.validate_read(epoch) { Ok(false) } else { Err(None) };
        }
        let oldest = epoch - u64::from(self.generation_count() - 1);
        // The bits in a generation of the window that did not count are this call's own, and those before it were queried.
        let previous = voided.filter(|voided| voided.epoch >= oldest);
        let (from, seen) = previous.map_or((oldest, false), |voided| (voided.epoch + 1, voided.seen));
        let seen = seen || (from..epoch).rev().any(|epoch| self.generation(epoch).contains_hash(hash));
        let permit = self.permits.acquire(epoch, 1);
        if permit == 0 && self.rotate_when_full {
            self.rotate_from(epoch, self.now());
            return Err(voided);
        }
        let new = current.insert_hash(hash);
        if !new {
            self.permits.release(epoch, permit);
        }
        if self.epoch.validate_claim(epoch) {
            Ok(new && !seen)
        } else {
            Err(new.then_some(VoidedInsert { epoch, seen }))
        }
    }

    /// Inserts at most [`INSERT_CHUNK`] hashes, as single calls would.
    fn insert_chunk(&self, hashes: &[u64], new: &mut [bool]) -> usize {
        let epoch = self.epoch.current();
        let current = self.generation(epoch);
        // Repeats need no permits.
        let absent = hashes.len() - current.contains_hashes(hashes, new);
        if absent == 0 && self.epoch.validate_read(epoch) {
            new.fill(false);
            return 0;
        }
        let mut seen = [false; INSERT_CHUNK];
        let older = self.newest_first(epoch).skip(1);
        chain::contains_hashes(older, hashes, &mut seen[..hashes.len()]);
        let permits = self.permits.acquire(epoch, absent);
        if permits < absent && self.rotate_when_full {
            self.permits.release(epoch, permits);
            return self.insert_one_by_one(hashes, new);
        }
        let inserted = current.insert_hashes(hashes, new);
        // More than were absent if the generation was emptied since. Its permits are then void.
        self.permits.release(epoch, permits.saturating_sub(inserted));
        let valid = self.epoch.validate_claim(epoch);
        for ((&hash, new), seen) in hashes.iter().zip(&mut *new).zip(seen) {
            *new = match valid {
                true => *new && !seen,
                false => self.insert_after(new.then_some(VoidedInsert { epoch, seen }), hash),
            };
        }
        new.iter().filter(|new| **new).count()
    }

    fn insert_one_by_one(&self, hashes: &[u64], new: &mut [bool]) -> usize {
        hashes.iter().zip(&mut *new).for_each(|(&hash, new)| *new = self.insert_hash(hash));
        new.iter().filter(|new| **new).count()
    }

    /// Begins the generation after `epoch` at the time `started`, unless another thread did. Returns true if it did.
    #[cold]
    fn rotate_from(&self, epoch: u64, started: u64) -> bool {
        // Poisoned locks: nothing here panics between the steps.
        let rotating = self.rotating.lock().unwrap_or_else(PoisonError::into_inner);
        if self.epoch.current() != epoch {
            return false;
        }
        let _clearing = self.clearing.lock().unwrap_or_else(PoisonError::into_inner);
        self.permits.reset(epoch + 1, window::keys_per_generation(self.window, self.generation_count()));
        // Relaxed: the epoch that advances publishes it.
        self.started.store(started, Ordering::Relaxed);
        self.epoch.advance_to(epoch + 1);
        drop(rotating);
        // The oldest one is in no window from here on. It is the next to take keys.
        self.generation(epoch + 2).blocks.clear_relaxed();
        true
    }
}

impl FromBuilder for Generations {
    fn from_builder<F>(builder: Builder<F>) -> Result<Self, BuildError> {
        let (window, rate) = builder.keys_and_rate::<Sectorized>()?;
        let generation_count = builder.generations;
        if !(2..=window::MAX_GENERATIONS).contains(&generation_count) {
            return Err(BuildError::Generations { value: generation_count });
        }
        let (keys, rate_of_each) = (
            window::keys_per_generation(window, generation_count),
            window::rate_per_generation(rate, generation_count),
        );
        let generation = |_| Generation::from_builder(builder.part::<F>(keys, rate_of_each));
        let ring: Result<Vec<_>, BuildError> = (0..=generation_count).map(generation).collect();
        Ok(Self::new(window, rate, builder.rotate_when_full, ring.map_err(|error| error.for_whole(rate))?, 0))
    }
}

impl fmt::Debug for Generations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RotatingBloomFilter")
            .field("window", &self.window)
            .field("false_positive_rate", &self.rate)
            .field("generations", &self.generation_count())
            .field("rotations", &self.rotations())
            .field("memory_bytes", &self.memory_bytes())
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Returns a filter with `generation_count` queried generations.
    fn generations(window: u64, generation_count: u32, rotate_when_full: bool) -> Generations {
        let builder = Builder { generations: generation_count, rotate_when_full, ..Builder::<()>::new() };
        Generations::from_builder(builder.expected_keys(window).false_positive_rate(1e-9)).unwrap()
    }

    /// A thread reads the epoch, sleeps through a rotation, and then finds its key in the previous generation.
    #[test]
    fn a_repeat_during_a_rotation_moves_its_key_to_the_current_generation() {
        let filter = generations(1000, 2, true);
        filter.insert_hash(1);
        let epoch = filter.epoch.current();
        filter.rotate();
        let voided = filter.insert_in(epoch, None, 1).unwrap_err();
        assert!(!filter.insert_after(voided, 1));
        filter.rotate();
        assert!(filter.contains_hash(1));
    }

    /// Keys of the last `(generation_count - 1) * AGE` are found, and none that is older than `generation_count * AGE`, however
    /// long a pause lasts, if a call comes before each insert.
    #[test]
    fn a_window_of_time_forgets_keys_that_became_old_in_a_pause() {
        const AGE: u64 = 60;
        for generation_count in [2u64, 3, 11] {
            for pause in (0..15 * AGE).step_by(37) {
                let filter = generations(10_000, generation_count as u32, false);
                // A key at each moment, then a pause, then a call at each moment.
                let last = 13 * AGE + 31;
                for now in 0..=last {
                    filter.rotate_if_older_at(now, AGE);
                    assert!(filter.insert_hash(bits(now)));
                }
                for now in last + pause..last + pause + 2 * AGE {
                    filter.rotate_if_older_at(now, AGE);
                    for inserted in (0..=last).step_by(11) {
                        let found = filter.contains_hash(bits(inserted));
                        let old = now - inserted;
                        assert!(
                            found || old >= (generation_count - 1) * AGE,
                            "{generation_count} {pause}: {old} is forgotten"
                        );
                        assert!(!found || old < generation_count * AGE, "{generation_count} {pause}: {old} is found");
                    }
                }
            }
        }
    }

    #[test]
    fn a_pause_causes_at_most_as_many_rotations_as_generations() {
        let filter = generations(1000, 5, true);
        assert!(filter.rotate_if_older_at(1_000_000_007, 10) && filter.rotations() == 5);
        assert!(!filter.rotate_if_older_at(1_000_000_009, 10));
        assert!(filter.rotate_if_older_at(1_000_000_010, 10) && filter.rotations() == 6);
        assert!(filter.rotate_if_older_at(1_000_000_010, 0) && filter.rotations() == 7);
        // A thread whose clock reading is older.
        assert!(!filter.rotate_if_older_at(5, 10) && !filter.rotate_if_older_at(u64::MAX, u64::MAX));
    }

    /// Returns a hash for each number.
    fn bits(number: u64) -> u64 {
        (number + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }

    /// A thread sets its key's bits in a generation, and finds that the epoch has advanced: as often as this happens, the bits
    /// in the generations of the window are its own.
    #[test]
    fn a_claim_that_is_late_repeatedly_is_one_claim() {
        for generation_count in [2, 3, 5] {
            // With rotation on, an epoch that is over grants no permit, so no bits would be set.
            let filter = generations(1000, generation_count, false);
            let mut voided = None;
            for _ in 0..2 * generation_count {
                let epoch = filter.epoch.current();
                filter.rotate();
                voided = filter.insert_in(epoch, voided, 1).unwrap_err();
                assert_eq!(voided, Some(VoidedInsert { epoch, seen: false }));
            }
            assert!(filter.insert_after(voided, 1) && !filter.insert_hash(1));
        }
    }
}
