//! A set of fingerprints in memory, in pages.
//!
//! A fingerprint is random, so its high bits select a page, and the pages fill evenly. An insert appends to a page: the ends of all
//! pages together stay in the second cache. The pages are in the order of a file, so they are written as they are. For look-ups, each
//! page has a hash table of its fingerprints. A search first adds those that are not in it, unless they are a few: an input of new
//! lines needs few tables, and many repeats are near one another.

use crate::seen::exact::page_of;

/// The places of the hash table of a page, with linear probing.
const PLACES: usize = 1 << u8::BITS;

/// The latest fingerprints of a page, up to which a search compares each.
const FEW: u8 = 4;

/// Distinct fingerprints, up to about a fixed number.
pub struct MemTable {
    page_bits: u32,
    page_capacity: usize,
    /// The fingerprints of all pages, one page after another.
    slots: Vec<u128>,
    pages: Vec<Page>,
    /// The hash table of each page. The low byte of a fingerprint is its place, which has its index in the page plus 1, or 0.
    tables: Vec<[u8; PLACES]>,
    /// True if all fingerprints are in their tables.
    is_indexed: bool,
    /// True if a page is full.
    is_full: bool,
}

#[derive(Clone, Copy, Default)]
struct Page {
    /// The number of fingerprints, and of those that are in the table.
    len: u8,
    indexed: u8,
}

impl MemTable {
    /// Creates an empty set of 2^`page_bits` pages.
    pub fn new(page_bits: u32, page_capacity: u8) -> Self {
        let (pages, page_capacity) = (1 << page_bits, usize::from(page_capacity));
        Self {
            page_bits,
            page_capacity,
            slots: vec![0; pages * page_capacity],
            pages: vec![Page::default(); pages],
            tables: vec![[0; PLACES]; pages],
            is_indexed: true,
            is_full: false,
        }
    }

    pub fn page_bits(&self) -> u32 {
        self.page_bits
    }

    /// True if a page is full. Then the set takes no more.
    pub fn is_full(&self) -> bool {
        self.is_full
    }

    /// Returns the bytes of memory of a set of this size.
    pub const fn memory(page_bits: u32, page_capacity: u8) -> usize {
        (page_capacity as usize * size_of::<u128>() + PLACES + size_of::<Page>()) << page_bits
    }

    /// True if the set has this fingerprint. Slow if many of its page are not in the table.
    pub fn contains(&self, fingerprint: u128) -> bool {
        let page = page_of(fingerprint, self.page_bits);
        let (indexed, latest) = self.fingerprints(page).split_at(usize::from(self.pages[page].indexed));
        if latest.contains(&fingerprint) {
            return true;
        }
        let (table, mut place) = (&self.tables[page], fingerprint as u8);
        while let Some(slot) = usize::from(table[usize::from(place)]).checked_sub(1) {
            if indexed[slot] == fingerprint {
                return true;
            }
            place = place.wrapping_add(1);
        }
        false
    }

    /// True if the set has this fingerprint. Completes the table of its page unless it lacks only a few.
    pub fn find(&mut self, fingerprint: u128) -> bool {
        let page = page_of(fingerprint, self.page_bits);
        let Page { len, indexed } = self.pages[page];
        if len - indexed > FEW {
            self.index(page);
        }
        self.contains(fingerprint)
    }

    /// True if the tables of all pages are complete.
    pub fn is_indexed(&self) -> bool {
        self.is_indexed
    }

    /// Completes the tables of all pages.
    pub fn index_all(&mut self) {
        (0..self.pages.len()).for_each(|page| self.index(page));
        self.is_indexed = true;
    }

    fn index(&mut self, page: usize) {
        let Page { len, indexed } = self.pages[page];
        let table = &mut self.tables[page];
        for slot in indexed..len {
            let mut place = self.slots[page * self.page_capacity + usize::from(slot)] as u8;
            while table[usize::from(place)] != 0 {
                place = place.wrapping_add(1);
            }
            table[usize::from(place)] = slot + 1;
        }
        self.pages[page].indexed = len;
    }

    /// Returns the fingerprints of a page.
    fn fingerprints(&self, page: usize) -> &[u128] {
        let start = page * self.page_capacity;
        &self.slots[start..start + usize::from(self.pages[page].len)]
    }

    /// Adds a fingerprint that is not in the set. The set must not be full.
    pub fn insert(&mut self, fingerprint: u128) {
        let page = page_of(fingerprint, self.page_bits);
        let len = &mut self.pages[page].len;
        self.slots[page * self.page_capacity + usize::from(*len)] = fingerprint;
        *len += 1;
        self.is_full |= usize::from(*len) == self.page_capacity;
        self.is_indexed = false;
    }

    /// Returns the fingerprints of each page.
    pub fn pages(&self) -> impl Iterator<Item = &[u128]> {
        (0..self.pages.len()).map(|page| self.fingerprints(page))
    }

    /// Empties the set.
    pub fn clear(&mut self) {
        self.pages.fill(Page::default());
        self.tables.as_flattened_mut().fill(0);
        (self.is_indexed, self.is_full) = (true, false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Inserts fingerprints into a set of this size until it is full, and returns how many it took.
    fn fill(page_bits: u32, page_capacity: u8, fingerprints: impl Fn(u128) -> u128) -> usize {
        let mut mem_table = MemTable::new(page_bits, page_capacity);
        let mut expected = BTreeSet::new();
        for round in 0..2 {
            for i in 0.. {
                let fingerprint = fingerprints(i);
                assert_eq!(mem_table.contains(fingerprint), expected.contains(&fingerprint));
                if i % 3 == 0 {
                    assert_eq!(mem_table.find(fingerprint), expected.contains(&fingerprint));
                }
                if expected.insert(fingerprint) {
                    mem_table.insert(fingerprint);
                }
                if mem_table.is_full() {
                    break;
                }
            }
            mem_table.index_all();
            assert!(expected.iter().all(|&fingerprint| mem_table.contains(fingerprint)));
            assert_eq!(mem_table.pages().count(), 1 << page_bits);
            let pages = mem_table.pages().enumerate();
            let found = pages.flat_map(|(page, entries)| entries.iter().map(move |&entry| (page, entry)));
            let found: BTreeSet<_> = found.collect();
            assert!(found.iter().map(|(_, entry)| entry).eq(&expected), "{page_bits} {round}");
            mem_table.clear();
            assert!(!mem_table.contains(fingerprints(1)) && mem_table.pages().flatten().count() == 0);
            if round == 0 {
                expected.clear();
            }
        }
        expected.len()
    }

    #[test]
    fn a_set_takes_fingerprints_until_a_page_is_full() {
        for spread in [1, 1 << 64, 1 << 119] {
            assert_eq!(fill(0, 48, |i| (i * 37 % 101 % 80 + 1) * spread), 48);
        }
        // All are in one page.
        assert_eq!(fill(8, 48, |i| i + 1), 48);
        // The high bits of multiples of the golden ratio are evenly spread.
        let spread = |i: u128| i.wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835);
        assert!(fill(8, 48, spread) > 40 << 8);
    }
}
