//! Filters that take turns, and the turn itself: the implementation of
//! [`RotatingBloomFilter`](super::filter::RotatingBloomFilter).

use crate::batch::{self, FEW};
use crate::builder::options::{Builder, FromBuilder};
use crate::concurrent::room::Room;
use crate::concurrent::turn::Turn;
use crate::error::BuildError;
use crate::filter::fixed::Fixed;
use crate::filter::row;
use crate::layout::access::Shared;
use crate::layout::words4::Words4;
use crate::rate::window;
use crate::sync::{AtomicU64, Mutex, Ordering};
use core::fmt;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

/// Keys of a batch that are inserted together. A batch holds at most so many places, which a generation may lack meanwhile.
const GROUP: usize = 64;

type Generation = Fixed<Words4, Shared>;

pub(super) struct Generations {
    window: u64,
    rate: f64,
    rotate_when_full: bool,
    /// The current one, those before it that are queried, and one that is empty or being emptied.
    all: Box<[Generation]>,
    /// The first turn is the number of queried generations, less one.
    turn: Turn,
    /// The places for keys in the current generation.
    room: Room,
    /// Held while the turn passes on.
    rotating: Mutex<()>,
    /// Held while a generation is emptied, which the next rotation waits for.
    emptying: Mutex<()>,
    made: Instant,
    /// The start of the current generation, in nanoseconds after `made`.
    began: AtomicU64,
}

impl Generations {
    /// Makes a window of the generations that are queried, oldest first, and an empty one.
    fn of(window: u64, rate: f64, rotate_when_full: bool, all: Vec<Generation>, in_last: u64) -> Self {
        let turn = all.len() as u64 - 2;
        let room = Room::new(turn, window::keys_of_one(window, all.len() as u32 - 1).saturating_sub(in_last));
        Self {
            window,
            rate,
            rotate_when_full,
            all: all.into(),
            turn: Turn::new(turn),
            room,
            rotating: Mutex::new(()),
            emptying: Mutex::new(()),
            made: Instant::now(),
            began: AtomicU64::new(0),
        }
    }

    pub(super) fn insert_hash(&self, hash: u64) -> bool {
        self.insert_after(None, hash)
    }

    pub(super) fn contains_hash(&self, hash: u64) -> bool {
        loop {
            let turn = self.turn.current();
            if self.newest_first(turn).any(|generation| generation.contains_hash(hash)) {
                return true;
            }
            // Otherwise the oldest generation may have been emptied meanwhile, and the key moved on.
            if self.turn.stands(turn) {
                return false;
            }
        }
    }

    #[track_caller]
    pub(super) fn insert_hashes(&self, hashes: &[u64], new: &mut [bool]) -> usize {
        batch::check_lengths(hashes.len(), new.len());
        if hashes.len() <= FEW {
            return self.insert_singly(hashes, new);
        }
        let portions = hashes.chunks(GROUP).zip(new.chunks_mut(GROUP));
        portions.map(|(hashes, new)| self.insert_portion(hashes, new)).sum()
    }

    /// Inserts hashes without answers. The room counts the new ones.
    pub(super) fn set_hashes(&self, hashes: &[u64]) {
        let mut new = [false; 16 * GROUP];
        for hashes in hashes.chunks(new.len()) {
            self.insert_hashes(hashes, &mut new[..hashes.len()]);
        }
    }

    #[track_caller]
    pub(super) fn contains_hashes(&self, hashes: &[u64], found: &mut [bool]) -> usize {
        batch::check_lengths(hashes.len(), found.len());
        loop {
            let turn = self.turn.current();
            let count = row::contains_many(self.newest_first(turn), hashes, found);
            // As in `contains_hash`.
            if count == hashes.len() || self.turn.stands(turn) {
                return count;
            }
        }
    }

    pub(super) fn rotate(&self) {
        self.rotate_from(self.turn.current(), self.now());
    }

    pub(super) fn rotate_if_older_than(&self, age: Duration) -> bool {
        self.rotate_if_older_at(self.now(), age.as_nanos().try_into().unwrap_or(u64::MAX))
    }

    /// Nanoseconds since the filter was made; they last for 584 years.
    fn now(&self) -> u64 {
        self.made.elapsed().as_nanos() as u64
    }

    /// [`rotate_if_older_than`](Self::rotate_if_older_than) at the time `now`.
    fn rotate_if_older_at(&self, now: u64, age: u64) -> bool {
        let mut rotated = false;
        loop {
            let turn = self.turn.current();
            // Relaxed: the turn was passed on after this was written, and was read before.
            let began = self.began.load(Ordering::Relaxed);
            let passed = now.saturating_sub(began);
            if passed < age {
                return rotated;
            }
            let Some(due) = passed.checked_div(age) else {
                return self.rotate_from(turn, now);
            };
            // The next generation begins when this one had to end, or else each late call would lengthen the window. As many
            // rotations as there are generations forget all keys; more would have no effect.
            let skipped = due.saturating_sub(self.asked().into());
            rotated |= self.rotate_from(turn, began + age * (1 + skipped));
        }
    }

    pub(super) fn rotations(&self) -> u64 {
        self.turn.current() - u64::from(self.asked() - 1)
    }

    pub(super) fn expected_keys(&self) -> Option<u64> {
        Some(self.window)
    }

    pub(super) fn false_positive_rate(&self) -> Option<f64> {
        Some(self.rate)
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.all.iter().map(Generation::memory_bytes).sum()
    }

    /// A key may be in several generations: their union is a filter of the keys that are remembered.
    pub(super) fn estimated_keys(&self) -> f64 {
        let mut generations = self.newest_first(self.turn.current());
        let all = generations.next().expect("there is a current one").clone();
        // They have one size and seed.
        generations.for_each(|generation| all.blocks.unite(generation.words()));
        all.estimated_keys()
    }

    pub(super) fn key_name(&self) -> &str {
        self.all[0].key_name()
    }

    row::as_one!(self, any: self.all[0], all: self.newest_first(self.turn.current()));

    pub(super) fn populate(&mut self) {
        self.all.iter_mut().for_each(Generation::populate);
    }

    pub(super) fn clear(&mut self) {
        self.all.iter_mut().for_each(Generation::clear);
        self.room.begin(self.turn.current(), window::keys_of_one(self.window, self.asked()));
    }

    /// The number of generations that are queried.
    fn asked(&self) -> u32 {
        // At most window::MOST.
        self.all.len() as u32 - 1
    }

    fn generation(&self, turn: u64) -> &Generation {
        // Below their number.
        &self.all[(turn % self.all.len() as u64) as usize]
    }

    /// The generations of the window.
    fn newest_first(&self, turn: u64) -> impl Iterator<Item = &Generation> + Clone {
        (0..u64::from(self.asked())).map(move |age| self.generation(turn - age))
    }

    /// Continues an insert after a change of turn. `won` is the turn in whose generation this call set the bits without
    /// success, and whether an older generation had the key.
    fn insert_after(&self, mut won: Option<(u64, bool)>, hash: u64) -> bool {
        loop {
            match self.insert_in(self.turn.current(), won, hash) {
                Ok(new) => return new,
                Err(set) => won = set,
            }
        }
    }

    /// Inserts into the generation of `turn`, and returns true if the key is new to the window. If the turn has passed on, the
    /// error is the `won` of the next attempt.
    fn insert_in(&self, turn: u64, won: Option<(u64, bool)>, hash: u64) -> Result<bool, Option<(u64, bool)>> {
        let current = self.generation(turn);
        if current.contains_hash(hash) {
            // In a generation that is not the current one any more, the key would leave the window too soon.
            return if self.turn.stands(turn) { Ok(false) } else { Err(None) };
        }
        let oldest = turn - u64::from(self.asked() - 1);
        // The bits in a generation of the window that did not count are this call's own, and those before it were queried.
        let (from, seen) = won.filter(|&(own, _)| own >= oldest).map_or((oldest, false), |(own, seen)| (own + 1, seen));
        let seen = seen || (from..turn).rev().any(|turn| self.generation(turn).contains_hash(hash));
        let place = self.room.take(turn, 1);
        if place == 0 && self.rotate_when_full {
            self.rotate_from(turn, self.now());
            return Err(won);
        }
        let new = current.insert_hash(hash);
        if !new {
            self.room.put(turn, place);
        }
        if self.turn.counts(turn) { Ok(new && !seen) } else { Err(new.then_some((turn, seen))) }
    }

    /// Inserts at most [`GROUP`] hashes, as single calls would.
    fn insert_portion(&self, hashes: &[u64], new: &mut [bool]) -> usize {
        let turn = self.turn.current();
        let current = self.generation(turn);
        // Repeats need no places.
        let lacking = hashes.len() - current.contains_hashes(hashes, new);
        if lacking == 0 && self.turn.stands(turn) {
            new.fill(false);
            return 0;
        }
        let mut seen = [false; GROUP];
        let before = self.newest_first(turn).skip(1);
        row::contains_many(before, hashes, &mut seen[..hashes.len()]);
        let places = self.room.take(turn, lacking);
        if places < lacking && self.rotate_when_full {
            self.room.put(turn, places);
            return self.insert_singly(hashes, new);
        }
        let won = current.insert_hashes(hashes, new);
        // More than were lacking if the generation was emptied since. Its places are then void.
        self.room.put(turn, places.saturating_sub(won));
        let counts = self.turn.counts(turn);
        for ((&hash, new), seen) in hashes.iter().zip(&mut *new).zip(seen) {
            *new = match counts {
                true => *new && !seen,
                false => self.insert_after(new.then_some((turn, seen)), hash),
            };
        }
        new.iter().filter(|new| **new).count()
    }

    fn insert_singly(&self, hashes: &[u64], new: &mut [bool]) -> usize {
        hashes.iter().zip(&mut *new).for_each(|(&hash, new)| *new = self.insert_hash(hash));
        new.iter().filter(|new| **new).count()
    }

    /// Begins the generation after `turn` at the time `began`, unless another thread did. Returns true if it did.
    #[cold]
    fn rotate_from(&self, turn: u64, began: u64) -> bool {
        // Poisoned locks: nothing here panics between the steps.
        let rotating = self.rotating.lock().unwrap_or_else(PoisonError::into_inner);
        if self.turn.current() != turn {
            return false;
        }
        let _emptying = self.emptying.lock().unwrap_or_else(PoisonError::into_inner);
        self.room.begin(turn + 1, window::keys_of_one(self.window, self.asked()));
        // Relaxed: the turn that passes on publishes it.
        self.began.store(began, Ordering::Relaxed);
        self.turn.pass_to(turn + 1);
        drop(rotating);
        // The oldest one is in no window from here on. It is the next to take keys.
        self.generation(turn + 2).blocks.wipe();
        true
    }
}

impl FromBuilder for Generations {
    fn from_builder<F>(builder: Builder<F>) -> Result<Self, BuildError> {
        let (window, rate) = builder.of_parts::<Words4>()?;
        let asked = builder.generations;
        if !(2..=window::MOST).contains(&asked) {
            return Err(BuildError::Generations { value: asked });
        }
        let (keys, of_one) = (window::keys_of_one(window, asked), window::rate_of_one(rate, asked));
        let generation = |_| Generation::from_builder(builder.part::<F>(keys, of_one));
        let all: Result<Vec<_>, BuildError> = (0..=asked).map(generation).collect();
        Ok(Self::of(window, rate, builder.rotate_when_full, all.map_err(|error| error.of_whole(rate))?, 0))
    }
}

impl fmt::Debug for Generations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RotatingBloomFilter")
            .field("window", &self.window)
            .field("false_positive_rate", &self.rate)
            .field("generations", &self.asked())
            .field("rotations", &self.rotations())
            .field("memory_bytes", &self.memory_bytes())
            .finish_non_exhaustive()
    }
}

/// The window as a file.
#[cfg(feature = "file")]
mod as_file {
    use super::*;
    use crate::file::{self, FileErrorKind, Rotating, Series, Stored};
    use crate::sync::fence;
    use std::io::{self, Read, Write};

    impl Generations {
        fn series(&self, in_last: u64) -> Series {
            let Self { window, rate, rotate_when_full, .. } = *self;
            Series { rate, keys: window, in_last, merged: 0, stays_when_full: !rotate_when_full }
        }

        /// The generations that are queried, oldest first.
        fn oldest_first(&self) -> impl ExactSizeIterator<Item = &Generation> + Clone {
            let (turn, asked) = (self.turn.current(), self.asked());
            (0..asked).map(move |i| self.generation(turn - u64::from(asked - 1 - i)))
        }
    }

    impl Stored for Generations {
        fn write_to(&self, writer: impl Write) -> io::Result<()> {
            // Nothing is forgotten meanwhile: who needs the next rotation waits.
            let _rotating = self.rotating.lock().unwrap_or_else(PoisonError::into_inner);
            let turn = self.turn.current();
            // A copy, and the count after it: what the copy has of a key, the count has too.
            let last = self.generation(turn).clone();
            fence(Ordering::Acquire);
            let in_last = window::keys_of_one(self.window, self.asked()).saturating_sub(self.room.free(turn));
            let mut generations: Vec<_> = self.oldest_first().collect();
            generations.pop();
            generations.push(&last);
            let generations = generations.into_iter().map(Fixed::parts);
            file::write_series::<Rotating, _>(self.series(in_last), generations, writer)
        }

        fn file_bytes(&self) -> usize {
            // Little more than the blocks, which are in memory.
            file::series_bytes(self.oldest_first().map(Fixed::parts)) as usize
        }

        fn read(reader: impl Read, length: Option<u64>) -> Result<Self, FileErrorKind> {
            let (Series { rate, keys, in_last, stays_when_full, .. }, parts) =
                file::read_series::<Rotating>(reader, length)?;
            let mut all: Vec<Generation> = parts.into_iter().map(Fixed::from).collect();
            let out_of_memory = |_| FileErrorKind::OutOfMemory { bytes: all[0].memory_bytes() as u64 };
            let empty = Fixed::from_params(all[0].params, all[0].purpose.clone()).map_err(out_of_memory)?;
            all.push(empty);
            Ok(Self::of(keys, rate, !stays_when_full, all, in_last))
        }
    }
}

#[cfg(feature = "rayon")]
mod parallel {
    use super::*;
    use crate::filter::bulk::{self, SHARED};
    use crate::key::keys::Keys;
    use crate::key::single::Key;
    use rayon::iter::IntoParallelIterator;

    impl Generations {
        pub(in super::super) fn par_insert<K: Keys + Sync + ?Sized>(&self, keys: &K) {
            bulk::par_in_portions(self.hasher(), keys, |hashes| self.set_hashes(hashes));
        }

        pub(in super::super) fn par_extend<K: Key + Send>(&self, keys: impl IntoParallelIterator<Item = K>) {
            bulk::par_in_batches(self.hasher(), keys, SHARED, |hashes| self.set_hashes(hashes));
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Returns a filter with so many queried generations.
    fn generations(window: u64, asked: u32, rotate_when_full: bool) -> Generations {
        let builder = Builder { generations: asked, rotate_when_full, ..Builder::<()>::new() };
        Generations::from_builder(builder.expected_keys(window).false_positive_rate(1e-9)).unwrap()
    }

    /// A thread reads the turn, sleeps through a rotation, and then finds its key in the previous generation.
    #[test]
    fn a_repeat_under_a_rotation_moves_on_to_the_current_generation() {
        let filter = generations(1000, 2, true);
        filter.insert_hash(1);
        let turn = filter.turn.current();
        filter.rotate();
        let won = filter.insert_in(turn, None, 1).unwrap_err();
        assert!(!filter.insert_after(won, 1));
        filter.rotate();
        assert!(filter.contains_hash(1));
    }

    /// Keys of the last `(asked - 1) * AGE` are found, and none that is older than `asked * AGE`, however long a pause lasts,
    /// if a call comes before each insert.
    #[test]
    fn a_window_of_time_forgets_what_a_pause_made_old() {
        const AGE: u64 = 60;
        for asked in [2u64, 3, 11] {
            for pause in (0..15 * AGE).step_by(37) {
                let filter = generations(10_000, asked as u32, false);
                // A key at each moment, then a pause, and a call at each moment again.
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
                        assert!(found || old >= (asked - 1) * AGE, "{asked} {pause}: {old} is forgotten");
                        assert!(!found || old < asked * AGE, "{asked} {pause}: {old} is found");
                    }
                }
            }
        }
    }

    #[test]
    fn a_pause_costs_no_more_rotations_than_there_are_generations() {
        let filter = generations(1000, 5, true);
        assert!(filter.rotate_if_older_at(1_000_000_007, 10) && filter.rotations() == 5);
        assert!(!filter.rotate_if_older_at(1_000_000_009, 10));
        assert!(filter.rotate_if_older_at(1_000_000_010, 10) && filter.rotations() == 6);
        assert!(filter.rotate_if_older_at(1_000_000_010, 0) && filter.rotations() == 7);
        // A thread whose clock reading is older.
        assert!(!filter.rotate_if_older_at(5, 10) && !filter.rotate_if_older_at(u64::MAX, u64::MAX));
    }

    /// A hash for each number.
    fn bits(number: u64) -> u64 {
        (number + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }

    /// A thread sets its key's bits in a generation, and finds that the turn has passed on: as often as this happens, the bits
    /// in the generations of the window are its own.
    #[test]
    fn a_claim_that_is_late_again_and_again_is_one_claim() {
        for asked in [2, 3, 5] {
            // With rotation on, a turn that is over grants no place, so no bits would be set.
            let filter = generations(1000, asked, false);
            let mut won = None;
            for _ in 0..2 * asked {
                let turn = filter.turn.current();
                filter.rotate();
                won = filter.insert_in(turn, won, 1).unwrap_err();
                assert_eq!(won, Some((turn, false)));
            }
            assert!(filter.insert_after(won, 1) && !filter.insert_hash(1));
        }
    }
}
