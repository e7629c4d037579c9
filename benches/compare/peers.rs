//! Filters of other crates, as contenders. Their inserts return whether the key was there, the opposite of ours.

use super::contender::{BoxedContender, Contender, boxed, contender};
use super::prehashed::Prehashed;
use bloomcraft::core::BloomFilter as _;
use bloomcraft::filters::RegisterBlockedBloomFilter;
use bloomfilter::Bloom;
use bloomline::variants::SplitBlockBloomFilter;
use bloomline_benches::layout::LayoutFilter;
use std::f64::consts::LN_2;

contender! { fastbloom::BloomFilter, |filter, hash, keys|
    insert: !filter.insert_hash(hash),
    contains: filter.contains_hash(hash),
    bytes: filter.num_bits() / 8,
    probes: filter.num_hashes(),
    rate: classic(filter.memory_bytes(), filter.num_hashes(), keys)
}

// With a hash of its own.
contender! { Bloom<u64>, |filter, hash, keys|
    insert: !filter.check_and_set(&hash),
    contains: filter.check(&hash),
    bytes: filter.len() as usize / 8,
    probes: filter.number_of_hash_functions(),
    rate: classic(filter.memory_bytes(), filter.number_of_hash_functions(), keys)
}

/// The rate of the classic layout as textbooks have it, with k probes in m bits: (1 − e^(−k n/m))^k.
fn classic(bytes: usize, probes: u32, keys: u64) -> f64 {
    let set = -(-f64::from(probes) * keys as f64 / (bytes as f64 * 8.0)).exp_m1();
    set.powi(probes as i32)
}

// Parquet's split blocks, as ours are.
contender! { sbbf_rs_safe::Filter, |filter, hash, keys|
    insert: !filter.insert_hash(hash),
    contains: filter.contains_hash(hash),
    bytes: filter.as_bytes().len(),
    probes: 8,
    rate: SplitBlockBloomFilter::for_memory(filter.memory_bytes(), keys)
        .expect("the peer got as much memory")
        .expected_fpr(keys)
}

/// Blocks of 512 bits, with all bits of a key in one.
type Bloomcraft = RegisterBlockedBloomFilter<u64, Prehashed>;

contender! { Bloomcraft, |filter, hash, keys|
    insert: {
        bloomcraft::core::BloomFilter::insert(filter, &hash);
        true
    },
    contains: bloomcraft::core::BloomFilter::contains(filter, &hash),
    bytes: filter.bit_count() / 8,
    probes: filter.hash_count() as u32,
    rate: patterns(filter.probes(), keys as f64 / filter.num_blocks() as f64)
}

/// The largest that fits. Its blocks are a power of two.
pub fn bloomcraft_for_memory(bytes: usize, keys: u64) -> BoxedContender {
    boxed(bloomcraft(1 << (bytes / 64).checked_ilog2().ok_or("a block has 64 bytes")?, keys)?)
}

/// The smallest that keeps the rate by its model. Asked for the rate, the crate takes two and a half times less for
/// granted, and then more.
pub fn bloomcraft_for_rate(keys: u64, rate: f64) -> BoxedContender {
    let min = (keys / 128).max(1).ilog2();
    for power in min..min + 16 {
        let filter = bloomcraft(1 << power, keys)?;
        if filter.modelled_fpr(keys) <= rate {
            return boxed(filter);
        }
    }
    Err("the patterns in its blocks repeat too often".to_owned())
}

/// With so many blocks, a power of two. It can only be asked for by a rate, so this asks for three quarters of the blocks,
/// which it rounds up.
fn bloomcraft(blocks: usize, keys: u64) -> Result<Bloomcraft, String> {
    let bits = 0.75 * 512.0 * blocks as f64;
    let rate = 2.5 * (-bits / keys as f64 * LN_2 * LN_2).exp();
    let filter = Bloomcraft::new(keys as usize, rate).map_err(|error| error.to_string())?;
    if filter.num_blocks() == blocks { Ok(filter) } else { Err(format!("it cannot be asked for {blocks} blocks")) }
}

/// The rate of blocks with `load` keys each. A key has k bits at equal odd distances, from any of the 512 on. Multiples of odd
/// numbers permute the places, so it may be taken to have the places 0 to k - 1. Let h(T) be the chance that another key has
/// none of the places in the set T. A block holds Poisson(load) keys, so all of T is missed with the chance e^(-load (1 - h(T))).
/// By inclusion and exclusion, all k places are set with the chance Σ (-1)^|T| e^(-load (1 - h(T))).
fn patterns(probes: u32, load: f64) -> f64 {
    let sets = 1 << probes;
    // How many keys have none of the places in a set: first those whose own places are the rest, then their sums.
    let mut missed = vec![0.0; sets];
    for (first, distance) in (0..512).flat_map(|first| (0..256).map(move |half| (first, 2 * half + 1))) {
        let places = (0..probes as usize).map(|i| (first + i * distance) % 512);
        let own = places.filter(|&place| place < probes as usize).fold(0, |own, place| own | 1 << place);
        missed[sets - 1 - own] += 1.0 / f64::from(512 * 256);
    }
    for place in 0..probes {
        for set in (0..sets).filter(|set| set & 1 << place == 0) {
            missed[set] += missed[set | 1 << place];
        }
    }
    let term = |(set, missed): (usize, &f64)| {
        let all = (-load * (1.0 - missed)).exp();
        if set.count_ones() % 2 == 0 { all } else { -all }
    };
    missed.iter().enumerate().map(term).sum()
}
