//! A set of fingerprints in memory, always sorted.
//!
//! A fingerprint is random, so its high bits give its approximate index in a sorted table: a lookup starts there and
//! takes few steps, and the table need not be sorted before it is written to a file. The order is descending, so that
//! 0, a free slot, ends a search like any smaller fingerprint.

use std::hint::black_box;

/// Fingerprints other than 0.
pub struct MemTable {
    /// 2^`bits` slots, and the fingerprints that were pushed beyond them.
    slots: Vec<u128>,
    bits: u32,
    len: usize,
}

impl MemTable {
    /// Creates an empty set with 2 to the power of `bits` slots, at least 2.
    pub fn new(bits: u32) -> Self {
        Self { slots: vec![0; 1 << bits], bits, len: 0 }
    }

    /// True if more keys would make searches slow.
    pub fn is_full(&self) -> bool {
        self.len >= (1 << self.bits) / 4 * 3
    }

    /// Prefetches the slots of these fingerprints, so that their cache misses overlap.
    pub fn prefetch(&self, fingerprints: &[u128]) {
        black_box(fingerprints.iter().fold(0, |sum, &fingerprint| sum ^ self.slots[self.start(fingerprint)]));
    }

    pub fn contains(&self, fingerprint: u128) -> bool {
        self.slots.get(self.index(fingerprint)) == Some(&fingerprint)
    }

    /// Adds a fingerprint, unless it is in the set.
    pub fn insert(&mut self, fingerprint: u128) {
        let index = self.index(fingerprint);
        if self.slots.get(index) == Some(&fingerprint) {
            return;
        }
        self.len += 1;
        let mut moved = fingerprint;
        for slot in &mut self.slots[index..] {
            std::mem::swap(slot, &mut moved);
            if moved == 0 {
                return;
            }
        }
        self.slots.push(moved);
    }

    /// Returns all fingerprints, the smallest first.
    pub fn ascending(&self) -> impl Iterator<Item = u128> {
        self.slots.iter().rev().copied().filter(|&fingerprint| fingerprint != 0)
    }

    /// Empties the set.
    pub fn clear(&mut self) {
        self.slots.truncate(1 << self.bits);
        self.slots.fill(0);
        self.len = 0;
    }

    /// Returns the index at which the fingerprint is, or would be inserted.
    fn index(&self, fingerprint: u128) -> usize {
        let mut index = self.start(fingerprint);
        while self.slots.get(index).is_some_and(|&slot| slot > fingerprint) {
            index += 1;
        }
        index
    }

    /// Returns the index at which the search for the fingerprint starts.
    fn start(&self, fingerprint: u128) -> usize {
        (!fingerprint >> (u128::BITS - self.bits)) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn clustered_fingerprints_are_sorted() {
        // With the smallest spread, fingerprints overflow the end of the table.
        for spread in [1, 1 << 64, 1 << 119] {
            let mut mem_table = MemTable::new(6);
            let mut expected = BTreeSet::new();
            for round in 0..2 {
                for i in 0..100_u128 {
                    let fingerprint = (i * 37 % 101 % 80 + 1) * spread;
                    assert_eq!(mem_table.contains(fingerprint), expected.contains(&fingerprint));
                    mem_table.insert(fingerprint);
                    expected.insert(fingerprint);
                    assert_eq!(mem_table.is_full(), expected.len() >= 48);
                }
                assert!(mem_table.ascending().eq(expected.iter().copied()), "{spread} {round}");
                mem_table.clear();
                expected.clear();
                assert_eq!(mem_table.ascending().count(), 0);
            }
        }
    }
}
