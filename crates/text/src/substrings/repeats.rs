//! `Repeats`: the candidates that were read so far.

use crate::substrings::Fingerprint;
use alloc::collections::{BTreeSet, VecDeque};
use alloc::vec;
use alloc::vec::Vec;
use core::mem;

/// The candidates for each 100 places of the table.
const LOAD: usize = 80;

/// The places that are searched for a window. Windows that find none of them free are kept in a tree.
const PROBES: usize = 256;

/// The candidates that were read so far, exactly, or those of one part of all hashes. A candidate takes 8 bytes, and
/// the table is filled to 80 %.
///
/// # Examples
/// ```
/// use bloomline_text::substrings::{Fingerprint, Repeats};
/// let mut repeats = Repeats::new(100, 0, 1); // candidates, part, parts
/// let (a, b) = (Fingerprint { hash: 1, check: 2 }, Fingerprint { hash: 3, check: 4 });
/// let mut found = [true; 3];
/// repeats.decide(2, &[a, b, a], &mut found); // words of a window
/// assert_eq!(found, [false, false, true]);
/// ```
#[derive(Debug)]
pub struct Repeats {
    /// A table with linear probing: the check of each window, or 0.
    table: Vec<u64>,
    /// The windows whose places were taken.
    others: BTreeSet<(u64, u64)>,
    /// The windows of a text that are not in the table yet, each with its number and its first place.
    waiting: VecDeque<(usize, Fingerprint, usize)>,
    part: u64,
    parts: u64,
    len: usize,
}

impl Repeats {
    /// Creates an empty table for this number of candidates of part `part` of `parts`, from 0. With many more it becomes slow, and
    /// takes more memory.
    ///
    /// # Panics
    /// If `part` is not below `parts`.
    #[track_caller]
    pub fn new(candidates: usize, part: u64, parts: u64) -> Self {
        assert!(part < parts, "part {part} of {parts}");
        let table = vec![0; Self::memory_bytes_for(candidates) / 8];
        Self { table, others: BTreeSet::new(), waiting: VecDeque::new(), part, parts, len: 0 }
    }

    /// Returns the bytes of a table for this number of candidates.
    pub fn memory_bytes_for(candidates: usize) -> usize {
        (candidates / LOAD + 1).saturating_mul(8 * 100)
    }

    /// Returns the number of candidates for which a table of so many bytes has room.
    pub fn candidates_for(memory_bytes: usize) -> usize {
        (memory_bytes / (8 * 100)).saturating_sub(1) * LOAD
    }

    /// Decides about the windows of one text, in order, after all texts before it. `found[i]` is true if window i is a
    /// candidate, and becomes true if it is a repeat and in the part. `length` is the number of words of a window.
    /// O(windows).
    ///
    /// # Panics
    /// If `found` is shorter than the windows.
    pub fn decide(&mut self, length: usize, windows: &[Fingerprint], found: &mut [bool]) {
        // A window counts for those that start after its end.
        let mut waiting = mem::take(&mut self.waiting);
        for (i, window) in windows.iter().enumerate() {
            while let Some(&(_, other, place)) = waiting.front().filter(|(start, ..)| start + length <= i) {
                self.insert(other, place);
                waiting.pop_front();
            }
            if found[i] {
                let place = self.place(window.hash);
                found[i] = place.is_some_and(|place| self.contains(*window, place));
                if let Some(place) = place.filter(|_| !found[i]) {
                    waiting.push_back((i, *window, place));
                }
            }
        }
        waiting.drain(..).for_each(|(_, window, place)| self.insert(window, place));
        self.waiting = waiting;
    }

    fn contains(&self, window: Fingerprint, place: usize) -> bool {
        match self.find(window, place) {
            Some(found) => self.table[found] != 0,
            None => self.others.contains(&(window.hash, window.check)),
        }
    }

    fn insert(&mut self, window: Fingerprint, place: usize) {
        self.len += usize::from(match self.find(window, place) {
            Some(found) => mem::replace(&mut self.table[found], check(window)) == 0,
            None => self.others.insert((window.hash, window.check)),
        });
    }

    /// Returns the place that a window has or would get, from its first place on.
    #[inline]
    fn find(&self, window: Fingerprint, first: usize) -> Option<usize> {
        let check = check(window);
        let (before, after) = self.table.split_at(first);
        let mut places = after.iter().chain(before).take(PROBES);
        let probe = places.position(|place| *place == check || *place == 0)?;
        Some(if probe < after.len() { first + probe } else { probe - after.len() })
    }

    /// Returns the number of candidates in the table.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True if no candidate was read.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the first place of a hash in the table, if it is in the part.
    #[inline]
    fn place(&self, hash: u64) -> Option<usize> {
        let product = u128::from(hash) * u128::from(self.parts);
        let rest = u128::from(product as u64);
        ((product >> 64) as u64 == self.part).then(|| ((rest * self.table.len() as u128) >> 64) as usize)
    }
}

/// Returns the check of a window in the table, in which 0 marks a free place.
fn check(window: Fingerprint) -> u64 {
    window.check.max(1)
}
