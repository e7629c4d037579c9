//! Which lines come more than once, and how often: what a Bloom filter cannot tell.
//!
//! The inputs are read twice. The first time each repeat is counted here, once the second look has confirmed it. So there is an
//! entry for each distinct line that repeats, and none for the others: the second time, a line without an entry is the only one
//! of its kind, and the entry of any other tells which copy of it is the one to keep.
//!
//! An entry takes 24 bytes, and 5 to 10 in the table of places that leads to it. Neither is there twice while it grows: the system
//! moves the pages of the entries, and the places are made anew from them.

use crate::error::Error;
use crate::groups::decisions::Which;
use std::hint::black_box;
use std::mem;

/// The number of lines whose entries are fetched from memory at once.
const AHEAD: usize = 64;

/// A place that leads to no entry.
const FREE: u32 = u32::MAX;

/// The first places, half a MiB. Where few lines repeat, nearly all are free, and a look at one of them is enough.
const PLACES: usize = 1 << 17;

/// The most places: so many have numbers.
const MOST: u64 = 1 << 32;

/// What is selected of the lines when they are read again.
#[derive(Clone, Copy)]
pub struct Selection {
    pub which: Which,
    /// Of equal lines it is the last one, else the first.
    pub last: bool,
    /// Whether it is told how often each of them comes.
    pub counted: bool,
}

/// How often the lines come that repeat.
pub struct Repeats {
    selection: Selection,
    entries: Vec<Entry>,
    /// Numbers of entries, each in the first place that was free from where the high bits of its fingerprint point to. The bits of a
    /// place that no number needs are those of the fingerprint, so another one is hardly ever compared with the entry.
    places: Vec<u32>,
    /// For each entry how many copies are still to come, where that is not all there is to tell.
    left: Vec<u64>,
    /// The sum of all fingerprints, less those that came again.
    balance: u128,
}

/// A line that repeats.
struct Entry {
    /// Its fingerprint, in halves: as one number it would take 8 bytes more, to be aligned.
    high: u64,
    low: u64,
    /// How many copies there are. When the inputs are read again this is 0 once the first was kept, or where the last is to be kept
    /// how many are still to come, unless `left` tells.
    times: u64,
}

impl Repeats {
    /// Of no lines so far.
    pub fn new(selection: Selection) -> Self {
        Self::with_places(selection, PLACES)
    }

    /// With so many first places, a power of two from 2 on.
    fn with_places(selection: Selection, places: usize) -> Self {
        Self { selection, entries: Vec::new(), places: vec![FREE; places], left: Vec::new(), balance: 0 }
    }

    /// Counts lines that are read for the first time; `new` tells which of them were not there before.
    pub fn count(&mut self, fingerprints: &[u128], new: &[bool]) -> Result<(), Error> {
        for (fingerprints, new) in fingerprints.chunks(AHEAD).zip(new.chunks(AHEAD)) {
            let repeats =
                || fingerprints.iter().zip(new).filter(|(_, new)| !**new).map(|(fingerprint, _)| *fingerprint);
            self.touch(repeats());
            for fingerprint in repeats() {
                match self.find(fingerprint) {
                    Ok(entry) => self.entries[entry].times += 1,
                    Err(place) => self.add(fingerprint, place)?,
                }
            }
            self.balance = fingerprints.iter().fold(self.balance, |sum, &fingerprint| sum.wrapping_add(fingerprint));
        }
        Ok(())
    }

    /// All lines were read for the first time.
    pub fn turn(&mut self) {
        if self.selection.last && self.selection.counted {
            self.left = self.entries.iter().map(|entry| entry.times).collect();
        }
    }

    /// The number of distinct lines that repeat.
    pub fn distinct(&self) -> usize {
        self.entries.len()
    }

    /// Tells of lines that are read again which are selected, and for each how often it comes, if that is asked for. Returns how
    /// many are selected.
    pub fn recall(&mut self, fingerprints: &[u128], selected: &mut [bool], times: &mut Vec<u64>) -> usize {
        let Selection { which, counted, .. } = self.selection;
        times.clear();
        let mut count = 0;
        for (fingerprints, selected) in fingerprints.chunks(AHEAD).zip(selected.chunks_mut(AHEAD)) {
            self.touch(fingerprints.iter().copied());
            for (&fingerprint, selected) in fingerprints.iter().zip(selected) {
                let (kept, all) = self.keep(fingerprint);
                *selected = kept && which.takes(if all.is_some() { 2 } else { 1 });
                count += usize::from(*selected);
                if counted {
                    times.push(all.unwrap_or(1));
                }
            }
            self.balance = fingerprints.iter().fold(self.balance, |sum, &fingerprint| sum.wrapping_sub(fingerprint));
        }
        count
    }

    /// Whether this copy of a line is the one to keep, and how often it comes, if it repeats.
    fn keep(&mut self, fingerprint: u128) -> (bool, Option<u64>) {
        let Ok(entry) = self.find(fingerprint) else { return (true, None) };
        let times = &mut self.entries[entry].times;
        if !self.selection.last {
            let all = mem::take(times);
            return (all > 0, Some(all));
        }
        let all = *times;
        let left = self.left.get_mut(entry).unwrap_or(times);
        // There are more only if an input is another one by now.
        *left = left.saturating_sub(1);
        (*left == 0, Some(all))
    }

    /// Whether the same lines came both times, up to their order.
    pub fn is_balanced(&self) -> bool {
        self.balance == 0
    }

    /// Has the entries of these fingerprints brought into the cache, at once rather than one after the other.
    fn touch(&self, fingerprints: impl Iterator<Item = u128>) {
        let times = |fingerprint| {
            let entry = self.places[self.place(fingerprint)] & self.numbers();
            self.entries.get(entry as usize).map_or(0, |entry| entry.times)
        };
        black_box(fingerprints.fold(0, |sum, fingerprint| sum ^ times(fingerprint)));
    }

    /// Where the search for a fingerprint starts.
    fn place(&self, fingerprint: u128) -> usize {
        (fingerprint >> (u128::BITS - self.places.len().ilog2())) as usize
    }

    /// The bits of a place that have the number of an entry. In a place that is free these are more than there are entries.
    fn numbers(&self) -> u32 {
        (self.places.len() - 1) as u32
    }

    /// The number of the entry of a fingerprint, or the place for it.
    fn find(&self, fingerprint: u128) -> Result<usize, usize> {
        let numbers = self.numbers();
        let mut place = self.place(fingerprint);
        loop {
            let held = self.places[place];
            if held == FREE {
                return Err(place);
            }
            let entry = (held & numbers) as usize;
            if (held ^ fingerprint as u32) & !numbers == 0 && self.entries[entry].fingerprint() == fingerprint {
                return Ok(entry);
            }
            place = (place + 1) & numbers as usize;
        }
    }

    /// Adds the entry of a line that comes for the second time.
    fn add(&mut self, fingerprint: u128, place: usize) -> Result<(), Error> {
        let full = Error::Repeats { lines: self.entries.len() };
        if self.entries.try_reserve(1).is_err() {
            return Err(full);
        }
        self.entries.push(Entry { high: (fingerprint >> 64) as u64, low: fingerprint as u64, times: 2 });
        self.lead(place, self.entries.len() - 1);
        if self.entries.len() < self.places.len() * 4 / 5 {
            return Ok(());
        }
        let places = 2 * self.places.len();
        self.places = Vec::new();
        if places as u64 > MOST || self.places.try_reserve_exact(places).is_err() {
            return Err(full);
        }
        self.places.resize(places, FREE);
        for entry in 0..self.entries.len() {
            if let Err(place) = self.find(self.entries[entry].fingerprint()) {
                self.lead(place, entry);
            }
        }
        Ok(())
    }

    /// Has a place lead to the entry of this number.
    fn lead(&mut self, place: usize, entry: usize) {
        let numbers = self.numbers();
        self.places[place] = self.entries[entry].low as u32 & !numbers | entry as u32;
    }
}

impl Entry {
    fn fingerprint(&self) -> u128 {
        u128::from(self.high) << 64 | u128::from(self.low)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Random ones, of which some have the same high half, at the end of the places, or the same low bits.
    fn fingerprint(key: u64) -> u128 {
        let hash = bloomline::KeyHasher::new(0).bytes(&key.to_le_bytes());
        let high = if key.is_multiple_of(3) { u64::MAX } else { hash.rotate_left(7) };
        let low = if key.is_multiple_of(5) { hash >> 32 << 32 } else { hash };
        u128::from(high) << 64 | u128::from(low)
    }

    proptest! {
        #[test]
        fn they_are_those_of_a_list(
            keys in prop::collection::vec(0..60u64, 0..200),
            which in prop::sample::select(vec![Which::All, Which::Repeated, Which::Unique]),
            last: bool,
            counted: bool,
            batch in 1..50usize,
        ) {
            let mut repeats = Repeats::with_places(Selection { which, last, counted }, 8);
            let fingerprints: Vec<u128> = keys.iter().map(|&key| fingerprint(key)).collect();
            let new: Vec<bool> = (0..keys.len()).map(|i| !keys[..i].contains(&keys[i])).collect();
            fingerprints.chunks(batch).zip(new.chunks(batch)).for_each(|(these, new)| repeats.count(these, new).unwrap());
            repeats.turn();
            prop_assert_eq!(repeats.is_balanced(), keys.is_empty());
            let (mut selected, mut times) = (vec![false; keys.len()], Vec::new());
            for (these, selected) in fingerprints.chunks(batch).zip(selected.chunks_mut(batch)) {
                let mut told = Vec::new();
                let count = repeats.recall(these, selected, &mut told);
                prop_assert_eq!(count, selected.iter().filter(|&&selected| selected).count());
                prop_assert_eq!(told.len(), if counted { these.len() } else { 0 });
                times.extend(told.into_iter().zip(&*selected).filter_map(|(times, selected)| selected.then_some(times)));
            }
            let all = |key| keys.iter().filter(|&&other| other == key).count() as u64;
            let kept = |i: usize| !if last { &keys[i + 1..] } else { &keys[..i] }.contains(&keys[i]);
            let wanted = |i: &usize| kept(*i) && match which {
                Which::All => true,
                Which::Repeated => all(keys[*i]) > 1,
                Which::Unique => all(keys[*i]) == 1,
            };
            let expected: Vec<usize> = (0..keys.len()).filter(wanted).collect();
            prop_assert_eq!((0..keys.len()).filter(|&i| selected[i]).collect::<Vec<_>>(), &expected[..]);
            if counted {
                prop_assert_eq!(times, expected.iter().map(|&i| all(keys[i])).collect::<Vec<_>>());
            }
            prop_assert!(repeats.is_balanced());
        }
    }

    /// Most places are made anew several times.
    #[test]
    fn many_lines_are_counted() {
        const LINES: u64 = 20_000;
        let mut repeats = Repeats::with_places(Selection { which: Which::All, last: false, counted: true }, 2);
        let times = |key| 1 + key % 4;
        for round in 0..4 {
            let come: Vec<u128> = (0..LINES).filter(|&key| times(key) > round).map(fingerprint).collect();
            repeats.count(&come, &vec![round == 0; come.len()]).unwrap();
        }
        assert_eq!(repeats.distinct() as u64, LINES / 4 * 3);
        let all: Vec<u128> = (0..2 * LINES).map(fingerprint).collect();
        let mut told = Vec::new();
        assert_eq!(repeats.recall(&all, &mut vec![false; all.len()], &mut told), all.len());
        assert!(
            (0..LINES).all(|key| told[key as usize] == times(key))
                && told[LINES as usize..].iter().all(|&one| one == 1)
        );
    }

    #[test]
    fn other_lines_are_noticed() {
        let [a, b, c] = [1, 2, 3].map(fingerprint);
        for (again, balanced) in [
            (&[a, b, a][..], true),
            (&[b, a, a], true),
            (&[a, b], false),
            (&[a, b, b], false),
            (&[a, b, a, a, c], false),
        ] {
            for last in [false, true] {
                let mut repeats = Repeats::new(Selection { which: Which::All, last, counted: false });
                repeats.count(&[a, b, a], &[true, true, false]).unwrap();
                repeats.turn();
                repeats.recall(again, &mut vec![false; again.len()], &mut Vec::new());
                assert_eq!(repeats.is_balanced(), balanced, "{again:?}");
            }
        }
    }
}
