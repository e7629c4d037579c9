//! A set of fingerprints in memory: buckets in the order of insertion, and chains through them.
//!
//! A fingerprint is random, so its high bits select one of the buckets, which fill evenly, and one of the chains, which stay short. An
//! insert moves nothing: it appends to a bucket and puts itself before a chain. A bucket fits into the first cache, where it is sorted
//! before it is written to a file.

use std::hint::black_box;
use std::iter;

/// The buckets of a large set, as a power of two.
const BUCKET_BITS: u32 = 8;

/// The places of a sorted bucket, as a power of two.
const PLACE_BITS: u32 = 11;

/// The fingerprints from which on a set is large.
const LARGE: usize = 1 << 16;

/// Distinct fingerprints, up to about a fixed number.
pub struct MemTable {
    /// The fingerprints that fit, and those of each bucket.
    capacity: usize,
    bucket_capacity: usize,
    /// All buckets, one after another, and the length of each.
    slots: Vec<u128>,
    lens: Vec<usize>,
    bucket_bits: u32,
    /// For each slot, the slot of the next fingerprint of its chain plus 1, or 0.
    next: Vec<u32>,
    /// For each chain, the slot of its first fingerprint plus 1, or 0. There are 2^`chain_bits` chains.
    heads: Vec<u32>,
    chain_bits: u32,
    len: usize,
    /// True if a bucket is full.
    has_full_bucket: bool,
}

impl MemTable {
    /// Creates an empty set for `capacity` fingerprints, at least 2 and less than 2^31.
    pub fn new(capacity: usize) -> Self {
        let bucket_bits = if capacity < LARGE { 0 } else { BUCKET_BITS };
        let bucket_capacity = Self::bucket_capacity(capacity, bucket_bits);
        let chain_bits = Self::chain_bits(capacity);
        Self {
            capacity,
            bucket_capacity,
            slots: vec![0; bucket_capacity << bucket_bits],
            lens: vec![0; 1 << bucket_bits],
            bucket_bits,
            next: vec![0; bucket_capacity << bucket_bits],
            heads: vec![0; 1 << chain_bits],
            chain_bits,
            len: 0,
            has_full_bucket: false,
        }
    }

    /// Returns the bytes of memory of a large set with this capacity.
    pub const fn memory(capacity: usize) -> usize {
        let slots = Self::bucket_capacity(capacity, BUCKET_BITS) << BUCKET_BITS;
        slots * (size_of::<u128>() + size_of::<u32>()) + (size_of::<u32>() << Self::chain_bits(capacity))
    }

    /// Returns the slots of a bucket. Several standard deviations more than the mean, so that hardly ever one is full before the set.
    const fn bucket_capacity(capacity: usize, bucket_bits: u32) -> usize {
        let mean = capacity >> bucket_bits;
        if bucket_bits == 0 { mean } else { mean + 6 * mean.isqrt() }
    }

    /// Returns the logarithm of the number of chains: one or two fingerprints are in each, and the heads fit into the second cache.
    const fn chain_bits(capacity: usize) -> u32 {
        capacity.ilog2()
    }

    pub fn is_full(&self) -> bool {
        self.len >= self.capacity || self.has_full_bucket
    }

    /// Prefetches the chains of these fingerprints, so that their cache misses overlap.
    pub fn prefetch(&self, fingerprints: &[u128]) {
        black_box(fingerprints.iter().fold(0, |sum, &fingerprint| sum ^ self.heads[self.chain(fingerprint)]));
    }

    pub fn contains(&self, fingerprint: u128) -> bool {
        let mut at = self.heads[self.chain(fingerprint)];
        let of_chain = iter::from_fn(|| {
            let slot = at.checked_sub(1)? as usize;
            at = self.next[slot];
            Some(self.slots[slot])
        });
        of_chain.into_iter().any(|other| other == fingerprint)
    }

    /// Adds a fingerprint that is not in the set. The set must not be full.
    pub fn insert(&mut self, fingerprint: u128) {
        let (bucket, chain) = (high_bits(fingerprint, self.bucket_bits), self.chain(fingerprint));
        let len = &mut self.lens[bucket];
        let slot = bucket * self.bucket_capacity + *len;
        self.slots[slot] = fingerprint;
        self.next[slot] = self.heads[chain];
        self.heads[chain] = slot as u32 + 1;
        *len += 1;
        self.has_full_bucket |= *len == self.bucket_capacity;
        self.len += 1;
    }

    /// Returns all fingerprints in pieces, the smallest first. After that, the set can only be cleared.
    pub fn sorted(&mut self) -> impl Iterator<Item = &[u128]> {
        let buckets = self.slots.chunks_exact_mut(self.bucket_capacity).zip(&self.lens);
        let (bits, mut sorted) = (self.bucket_bits, Vec::new());
        buckets.map(move |(bucket, &len)| {
            sort(&mut bucket[..len], bits, &mut sorted);
            &bucket[..len]
        })
    }

    /// Empties the set.
    pub fn clear(&mut self) {
        self.lens.fill(0);
        self.heads.fill(0);
        (self.len, self.has_full_bucket) = (0, false);
    }

    /// Returns the chain of a fingerprint.
    fn chain(&self, fingerprint: u128) -> usize {
        high_bits(fingerprint, self.chain_bits)
    }
}

/// Sorts fingerprints that have the first `bits` bits in common, with a buffer. The next bits, which are random, give each about its
/// place. That takes a third of the time of a sort by comparisons.
fn sort(fingerprints: &mut [u128], bits: u32, buffer: &mut Vec<u128>) {
    let place = |fingerprint: u128| high_bits(fingerprint << bits, PLACE_BITS);
    let mut ends = [0_usize; (1 << PLACE_BITS) + 1];
    fingerprints.iter().for_each(|&fingerprint| ends[place(fingerprint) + 1] += 1);
    let mut sum = 0;
    for end in &mut ends {
        sum += *end;
        *end = sum;
    }
    buffer.resize(fingerprints.len(), 0);
    for &fingerprint in &*fingerprints {
        let end = &mut ends[place(fingerprint)];
        buffer[*end] = fingerprint;
        *end += 1;
    }
    for (i, &fingerprint) in buffer.iter().enumerate() {
        let mut at = i;
        while at > 0 && fingerprints[at - 1] > fingerprint {
            fingerprints[at] = fingerprints[at - 1];
            at -= 1;
        }
        fingerprints[at] = fingerprint;
    }
}

/// Returns the number that the high bits of a fingerprint form.
fn high_bits(fingerprint: u128, bits: u32) -> usize {
    ((fingerprint >> 64) as u64 >> 1 >> (63 - bits)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Inserts fingerprints into a set of this capacity until it is full, and returns how many it took.
    fn fill(capacity: usize, fingerprints: impl Fn(u128) -> u128) -> usize {
        let mut mem_table = MemTable::new(capacity);
        let mut expected = BTreeSet::new();
        for round in 0..2 {
            for i in 0.. {
                let fingerprint = fingerprints(i);
                assert_eq!(mem_table.contains(fingerprint), expected.contains(&fingerprint));
                if expected.insert(fingerprint) {
                    mem_table.insert(fingerprint);
                }
                if mem_table.is_full() {
                    break;
                }
            }
            assert!(mem_table.sorted().flatten().eq(&expected), "{capacity} {round}");
            mem_table.clear();
            assert!(!mem_table.contains(fingerprints(1)) && mem_table.sorted().flatten().count() == 0);
            if round == 0 {
                expected.clear();
            }
        }
        expected.len()
    }

    #[test]
    fn fingerprints_are_sorted() {
        // With the smallest spread, all fingerprints are in one chain.
        for spread in [1, 1 << 64, 1 << 119] {
            assert_eq!(fill(48, |i| (i * 37 % 101 % 80 + 1) * spread), 48);
        }
        // A bucket that is full fills the set.
        let mean = LARGE >> BUCKET_BITS;
        assert_eq!(fill(LARGE, |i| i + 1), mean + 6 * mean.isqrt());
        // The high bits of multiples of the golden ratio are evenly spread.
        assert_eq!(fill(LARGE, |i| i.wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835)), LARGE);
    }
}
