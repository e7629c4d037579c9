//! A set of few hashes: a table with linear probing.
//!
//! A hash is random, so its high bits are its place. The table is nearly sorted, so a larger one is filled from front to back.

use std::hint::black_box;
use std::mem;

/// The slots of an empty table.
const SLOTS: usize = 1 << 10;

/// The number of hashes whose slots are fetched from memory at once.
const PREFETCH_DISTANCE: usize = 64;

/// Distinct hashes. A large table has 1.33 to 2.67 slots for each.
pub struct HashTable {
    /// The slots of all places, and more for the hashes that the last places push away. 0 marks a free slot.
    slots: Vec<u64>,
    places: usize,
    len: usize,
    has_zero: bool,
}

impl HashTable {
    pub fn new() -> Self {
        Self { slots: vec![0; SLOTS], places: SLOTS, len: 0, has_zero: false }
    }

    pub fn len(&self) -> usize {
        self.len + usize::from(self.has_zero)
    }

    /// Inserts hashes in order until the set has `limit` hashes, and sets `new[i]` to `true` if hash i was new. Returns the number of
    /// hashes that were processed.
    pub fn insert(&mut self, hashes: &[u64], new: &mut [bool], limit: usize) -> usize {
        for (i, (&hash, new)) in hashes.iter().zip(new).enumerate() {
            if i % PREFETCH_DISTANCE == 0 {
                self.prefetch(&hashes[i..hashes.len().min(i + PREFETCH_DISTANCE)]);
            }
            if self.len() >= limit {
                return i;
            }
            *new = self.insert_one(hash);
        }
        hashes.len()
    }

    /// Sets `found[i]` to `true` if hash i is in the set. Returns the number that were found.
    pub fn find(&self, hashes: &[u64], found: &mut [bool]) -> usize {
        let mut count = 0;
        for (i, (&hash, found)) in hashes.iter().zip(found).enumerate() {
            if i % PREFETCH_DISTANCE == 0 {
                self.prefetch(&hashes[i..hashes.len().min(i + PREFETCH_DISTANCE)]);
            }
            *found = if hash == 0 { self.has_zero } else { self.slots.get(self.slot(hash)) == Some(&hash) };
            count += usize::from(*found);
        }
        count
    }

    /// Returns all hashes.
    pub fn hashes(&self) -> impl Iterator<Item = u64> {
        let zero = self.has_zero.then_some(0);
        self.slots.iter().copied().filter(|&hash| hash != 0).chain(zero)
    }

    fn prefetch(&self, hashes: &[u64]) {
        black_box(hashes.iter().fold(0, |sum, &hash| sum ^ self.slots[self.place(hash)]));
    }

    fn insert_one(&mut self, hash: u64) -> bool {
        if hash == 0 {
            return !mem::replace(&mut self.has_zero, true);
        }
        let slot = self.slot(hash);
        match self.slots.get_mut(slot) {
            Some(&mut old) if old == hash => return false,
            Some(free) => *free = hash,
            None => self.slots.push(hash),
        }
        self.len += 1;
        if 4 * self.len > 3 * self.places {
            self.grow();
        }
        true
    }

    fn grow(&mut self) {
        let places = 2 * self.places;
        let old = mem::replace(&mut self.slots, vec![0; places]);
        self.places = places;
        for hash in old.into_iter().filter(|&hash| hash != 0) {
            let slot = self.slot(hash);
            match self.slots.get_mut(slot) {
                Some(free) => *free = hash,
                None => self.slots.push(hash),
            }
        }
    }

    /// Returns the slot of a hash other than 0, or the free slot where it would be.
    fn slot(&self, hash: u64) -> usize {
        let place = self.place(hash);
        let probed = self.slots[place..].iter().position(|&slot| slot == hash || slot == 0);
        probed.map_or(self.slots.len(), |probed| place + probed)
    }

    fn place(&self, hash: u64) -> usize {
        ((u128::from(hash) * self.places as u128) >> u64::BITS) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn tables_match_a_hash_set(
            keys in prop::collection::vec(prop_oneof![0..3000_u64, u64::MAX - 900..=u64::MAX, any::<u64>()], 0..4000),
            limit in 0..4000_usize,
        ) {
            let (mut table, mut model) = (HashTable::new(), HashSet::new());
            for keys in keys.chunks(100) {
                let mut new = vec![true; keys.len()];
                let done = table.insert(keys, &mut new, limit);
                let expected: Vec<bool> =
                    keys.iter().map_while(|&key| (model.len() < limit).then(|| model.insert(key))).collect();
                prop_assert_eq!(&new[..done], &expected);
                prop_assert_eq!(table.len(), model.len());
            }
            prop_assert_eq!(table.hashes().collect::<HashSet<_>>(), model.clone());
            let mut found = vec![false; keys.len()];
            let count = table.find(&keys, &mut found);
            prop_assert!(keys.iter().zip(&found).all(|(key, &found)| found == model.contains(key)));
            prop_assert_eq!(count, found.iter().filter(|found| **found).count());
        }
    }
}
