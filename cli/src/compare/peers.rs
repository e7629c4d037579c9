//! The peers, as contenders. They answer whether a key was there, the opposite of ours.

use super::contenders::Contender;
use crate::classic::Classic;

/// No secret is to be kept: the same keys get the same bits in every run.
const SEED: u128 = 1;

/// `fastbloom`: the classic layout.
pub struct Fastbloom(fastbloom::BloomFilter);

impl Fastbloom {
    pub fn for_memory(bytes: usize, keys: u64) -> Self {
        Self(fastbloom::BloomFilter::with_num_bits(bytes * 8).seed(&SEED).expected_items(keys as usize))
    }

    pub fn for_rate(keys: u64, rate: f64) -> Self {
        Self(fastbloom::BloomFilter::with_false_pos(rate).seed(&SEED).expected_items(keys as usize))
    }
}

impl Contender for Fastbloom {
    fn insert(&mut self, hashes: &[u64], new: &mut [bool]) {
        one_by_one(hashes, new, |hash| !self.0.insert_hash(hash));
    }

    fn contains(&self, hashes: &[u64], found: &mut [bool]) -> usize {
        one_by_one(hashes, found, |hash| self.0.contains_hash(hash))
    }

    fn memory_bytes(&self) -> usize {
        self.0.num_bits() / 8
    }

    fn probes(&self) -> u32 {
        self.0.num_hashes()
    }

    fn modelled_fpr(&self, keys: u64) -> f64 {
        Classic { bits: self.0.num_bits() as f64, probes: self.0.num_hashes() }.fpr(keys as f64)
    }
}

/// `sbbf-rs-safe`: Parquet's split blocks.
pub struct Sbbf(sbbf_rs_safe::Filter);

impl Sbbf {
    pub fn for_memory(bytes: usize) -> Self {
        // 8 bits for each of as many keys as there are bytes.
        Self(sbbf_rs_safe::Filter::new(8, bytes))
    }
}

impl Contender for Sbbf {
    fn insert(&mut self, hashes: &[u64], new: &mut [bool]) {
        one_by_one(hashes, new, |hash| !self.0.insert_hash(hash));
    }

    fn contains(&self, hashes: &[u64], found: &mut [bool]) -> usize {
        one_by_one(hashes, found, |hash| self.0.contains_hash(hash))
    }

    fn memory_bytes(&self) -> usize {
        self.0.as_bytes().len()
    }

    fn probes(&self) -> u32 {
        8
    }

    /// Blocks of 8 words of 32 bits, a bit in each: Σ Poisson(i) · (1 − (31/32)^i)^8 over the keys i of a block.
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

/// `bloomfilter`: the classic layout.
pub struct Bloomfilter(bloomfilter::Bloom<u64>);

impl Bloomfilter {
    /// Two keys of SipHash, which must differ.
    const SEED: [u8; 32] = *b"0123456789abcdef0011223344556677";

    pub fn for_memory(bytes: usize, keys: u64) -> Self {
        let made = bloomfilter::Bloom::new_with_seed(bytes, keys as usize, &Self::SEED);
        Self(made.expect("only random seeds can fail"))
    }

    pub fn for_rate(keys: u64, rate: f64) -> Self {
        let made = bloomfilter::Bloom::new_for_fp_rate_with_seed(keys as usize, rate, &Self::SEED);
        Self(made.expect("only random seeds can fail"))
    }
}

impl Contender for Bloomfilter {
    fn insert(&mut self, hashes: &[u64], new: &mut [bool]) {
        one_by_one(hashes, new, |hash| !self.0.check_and_set(&hash));
    }

    fn contains(&self, hashes: &[u64], found: &mut [bool]) -> usize {
        one_by_one(hashes, found, |hash| self.0.check(&hash))
    }

    fn memory_bytes(&self) -> usize {
        self.0.len() as usize / 8
    }

    fn probes(&self) -> u32 {
        self.0.number_of_hash_functions()
    }

    fn modelled_fpr(&self, keys: u64) -> f64 {
        Classic { bits: self.0.len() as f64, probes: self.probes() }.fpr(keys as f64)
    }
}

/// An operation key by key; how many answers were `true`.
pub fn one_by_one(hashes: &[u64], answers: &mut [bool], mut operation: impl FnMut(u64) -> bool) -> usize {
    let answer = |(answer, hash): (&mut bool, &u64)| {
        *answer = operation(*hash);
        usize::from(*answer)
    };
    answers.iter_mut().zip(hashes).map(answer).sum()
}
