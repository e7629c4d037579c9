//! Filters of other crates, as contenders. Their inserts return whether the key was there, the opposite of ours.

use super::contender::{Contender, Made, NotMade, made, one_by_one};
use super::prehashed::Prehashed;
use crate::classic::Classic;
use bloomcraft::core::BloomFilter as _;
use bloomcraft::filters::RegisterBlockedBloomFilter;
use bloomfilter::Bloom;
use std::f64::consts::LN_2;

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

/// Blocks of 512 bits, with all bits of a key in one.
type Bloomcraft = RegisterBlockedBloomFilter<u64, Prehashed>;

/// The largest that fits. Its blocks are a power of two.
pub fn bloomcraft_for_memory(bytes: usize, keys: u64) -> Made {
    match (bytes / 64).checked_ilog2() {
        Some(power) => made(bloomcraft(1 << power, keys)?),
        None => Err(NotMade::LeftOut("a block has 64 bytes".to_owned())),
    }
}

/// The smallest that keeps the rate by its model. Asked for the rate, the crate takes two and a half times less for
/// granted, and then more.
pub fn bloomcraft_for_rate(keys: u64, rate: f64) -> Made {
    let least = (keys / 128).max(1).ilog2();
    for power in least..least + 16 {
        let filter = bloomcraft(1 << power, keys)?;
        if filter.modelled_fpr(keys) <= rate {
            return made(filter);
        }
    }
    Err(NotMade::LeftOut("the patterns in its blocks repeat too often".to_owned()))
}

/// With so many blocks, a power of two. It can only be asked for by a rate, so this asks for three quarters of the blocks,
/// which it rounds up.
fn bloomcraft(blocks: usize, keys: u64) -> Result<Bloomcraft, NotMade> {
    let bits = 0.75 * 512.0 * blocks as f64;
    let rate = 2.5 * (-bits / keys as f64 * LN_2 * LN_2).exp();
    let filter = Bloomcraft::new(keys as usize, rate).map_err(|error| NotMade::LeftOut(error.to_string()))?;
    match filter.num_blocks() == blocks {
        true => Ok(filter),
        false => Err(NotMade::LeftOut(format!("it cannot be asked for {blocks} blocks"))),
    }
}

impl Contender for Bloomcraft {
    fn insert(&mut self, hashes: &[u64], new: &mut [bool]) -> usize {
        hashes.iter().for_each(|hash| bloomcraft::core::BloomFilter::insert(self, hash));
        new.fill(true);
        hashes.len()
    }

    fn contains(&self, hashes: &[u64], found: &mut [bool]) -> usize {
        one_by_one(hashes, found, |hash| bloomcraft::core::BloomFilter::contains(self, &hash))
    }

    fn memory_bytes(&self) -> usize {
        self.bit_count() / 8
    }

    fn probes(&self) -> u32 {
        self.hash_count() as u32
    }

    /// A key has k bits at equal odd distances, from any of the 512 on. Multiples of odd numbers permute the places, so
    /// it may be taken to have the places 0 to k - 1. Let h(T) be the chance that another key has none of the places in
    /// the set T. A block holds Poisson(n/B) keys, so all of T is missed with the chance e^(-n/B (1 - h(T))). By inclusion
    /// and exclusion, all k places are set with the chance Σ (-1)^|T| e^(-n/B (1 - h(T))).
    fn modelled_fpr(&self, keys: u64) -> f64 {
        let sets = 1 << self.probes();
        // How many keys have none of the places in a set: first those whose own places are the rest, then their sums.
        let mut missed = vec![0.0; sets];
        for (first, distance) in (0..512).flat_map(|first| (0..256).map(move |half| (first, 2 * half + 1))) {
            let places = (0..self.probes() as usize).map(|i| (first + i * distance) % 512);
            let own = places.filter(|&place| place < self.probes() as usize).fold(0, |own, place| own | 1 << place);
            missed[sets - 1 - own] += 1.0 / f64::from(512 * 256);
        }
        for place in 0..self.probes() {
            for set in (0..sets).filter(|set| set & 1 << place == 0) {
                missed[set] += missed[set | 1 << place];
            }
        }
        let load = keys as f64 / self.num_blocks() as f64;
        let term = |(set, missed): (usize, &f64)| {
            let all = (-load * (1.0 - missed)).exp();
            if set.count_ones() % 2 == 0 { all } else { -all }
        };
        missed.iter().enumerate().map(term).sum()
    }
}
