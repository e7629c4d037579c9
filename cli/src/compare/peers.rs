//! Filters of other crates, as contenders. Their inserts return whether the key was there, the opposite of ours.

use super::contender::{Contender, one_by_one};
use crate::classic::Classic;
use bloomfilter::Bloom;

/// The classic layout.
impl Contender for fastbloom::BloomFilter {
    fn insert(&mut self, hashes: &[u64], new: &mut [bool]) -> usize {
        one_by_one(hashes, new, |hash| !self.insert_hash(hash))
    }

    fn contains(&self, hashes: &[u64], found: &mut [bool]) -> usize {
        one_by_one(hashes, found, |hash| self.contains_hash(hash))
    }

    fn memory_bytes(&self) -> usize {
        self.num_bits() / 8
    }

    fn probes(&self) -> u32 {
        self.num_hashes()
    }

    fn modelled_fpr(&self, keys: u64) -> f64 {
        Classic { bits: self.num_bits() as f64, probes: self.probes() }.fpr(keys as f64)
    }
}

/// Parquet's split blocks.
impl Contender for sbbf_rs_safe::Filter {
    fn insert(&mut self, hashes: &[u64], new: &mut [bool]) -> usize {
        one_by_one(hashes, new, |hash| !self.insert_hash(hash))
    }

    fn contains(&self, hashes: &[u64], found: &mut [bool]) -> usize {
        one_by_one(hashes, found, |hash| self.contains_hash(hash))
    }

    fn memory_bytes(&self) -> usize {
        self.as_bytes().len()
    }

    fn probes(&self) -> u32 {
        8
    }

    /// Blocks of 8 words of 32 bits, with one bit of a key in each word: Σ Poisson(i) · (1 − (31/32)^i)^8, where i is the
    /// number of keys in a block.
    fn modelled_fpr(&self, keys: u64) -> f64 {
        let load = 256.0 * keys as f64 / (self.memory_bytes() as f64 * 8.0);
        let most = (load + 40.0 * load.sqrt() + 40.0) as i32;
        let mut logarithm = -load;
        (1..=most)
            .map(|i| {
                logarithm += (load / f64::from(i)).ln();
                logarithm.exp() * (1.0 - (31.0_f64 / 32.0).powi(i)).powi(8)
            })
            .sum()
    }
}

/// The classic layout, with a hash of its own.
impl Contender for Bloom<u64> {
    fn insert(&mut self, hashes: &[u64], new: &mut [bool]) -> usize {
        one_by_one(hashes, new, |hash| !self.check_and_set(&hash))
    }

    fn contains(&self, hashes: &[u64], found: &mut [bool]) -> usize {
        one_by_one(hashes, found, |hash| self.check(&hash))
    }

    fn memory_bytes(&self) -> usize {
        self.len() as usize / 8
    }

    fn probes(&self) -> u32 {
        self.number_of_hash_functions()
    }

    fn modelled_fpr(&self, keys: u64) -> f64 {
        Classic { bits: self.len() as f64, probes: self.probes() }.fpr(keys as f64)
    }
}
