//! A map from hashes to numbers that is queried for every word of a text, and seldom has it.

use alloc::vec;
use alloc::vec::Vec;

/// The bits of the filter for each entry. A hash that the table lacks passes the filter with a probability of at most
/// 1/16.
const BITS_PER_ENTRY: usize = 16;

/// The hashes with their numbers, in order, behind a filter of one bit for each hash. An index by their high bits leads to about one
/// entry.
#[derive(Clone, Debug)]
pub(super) struct Table {
    entries: Vec<(u64, u32)>,
    bits: Vec<u64>,
    shift: u32,
    /// The first entry of each value of the high bits.
    index: Vec<u32>,
    index_shift: u32,
}

impl Table {
    pub(super) fn new(mut entries: Vec<(u64, u32)>) -> Self {
        entries.sort_unstable();
        entries.dedup();
        let size = (entries.len() * BITS_PER_ENTRY).next_power_of_two().max(64);
        let values = entries.len().next_power_of_two().max(2);
        let index_shift = 64 - values.ilog2();
        let first = |value: usize| entries.partition_point(|entry| (entry.0 >> index_shift) < value as u64) as u32;
        let index = (0..values).map(first).collect();
        let mut table = Self { entries, bits: vec![0; size / 64], shift: 64 - size.ilog2(), index, index_shift };
        for i in 0..table.entries.len() {
            let bit = table.bit(table.entries[i].0);
            table.bits[bit / 64] |= 1 << (bit % 64);
        }
        table
    }

    /// Returns the bit of a hash: its high bits, because these are random in hashes of words and grams.
    fn bit(&self, hash: u64) -> usize {
        (hash >> self.shift) as usize
    }

    /// True if the table may have a hash.
    #[inline]
    pub(super) fn may_have(&self, hash: u64) -> bool {
        let bit = self.bit(hash);
        self.bits[bit / 64] & 1 << (bit % 64) != 0
    }

    /// Returns the numbers of a hash, in ascending order.
    #[inline]
    pub(super) fn get(&self, hash: u64) -> impl Iterator<Item = u32> + '_ {
        let entries = if self.may_have(hash) { self.entries_from(hash) } else { &[] };
        entries.iter().take_while(move |entry| entry.0 == hash).map(|entry| entry.1)
    }

    #[inline(never)]
    fn entries_from(&self, hash: u64) -> &[(u64, u32)] {
        let entries = &self.entries[self.index[(hash >> self.index_shift) as usize] as usize..];
        let smaller = entries.iter().take_while(|entry| entry.0 < hash).count();
        &entries[smaller..]
    }
}
