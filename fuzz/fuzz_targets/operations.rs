//! Sequences of operations on a filter that changes its type, beside a set of the same keys.
#![no_main]

use arbitrary::Arbitrary;
use bloomline::{AtomicBloomFilter, BloomFilter};
use libfuzzer_sys::fuzz_target;
use std::collections::HashSet;

#[derive(Arbitrary, Debug)]
enum Operation {
    Insert(String),
    InsertBatch(Vec<u8>),
    /// With a filter of these keys.
    Union(Vec<u8>),
    Intersect(Vec<u8>),
    Clear,
    /// Converts the filter to the atomic type, inserts, and converts it back.
    InsertShared(Vec<u8>),
}

#[derive(Arbitrary, Debug)]
struct Input {
    blocks: u8,
    probes: u8,
    seed: u64,
    operations: Vec<Operation>,
}

/// Checks the answers to keys that were inserted in order, and adds the keys to the set.
fn check_and_add(set: &mut HashSet<Vec<u8>>, before: &BloomFilter, keys: &[[u8; 1]], new: &[bool], count: usize) {
    assert_eq!(count, new.iter().filter(|&&new| new).count());
    for (key, &new) in keys.iter().zip(new) {
        let unseen = set.insert(key.to_vec());
        assert!(!new || unseen, "new twice");
        assert!(!new || !before.contains(key), "new and contained");
    }
}

fuzz_target!(|input: Input| {
    let empty: BloomFilter = BloomFilter::builder()
        .memory(64 * (1 + usize::from(input.blocks)))
        .probes(4 * (1 + u32::from(input.probes % 4)))
        .seed(input.seed)
        .build()
        .unwrap();
    let keys = |bytes: &[u8]| -> Vec<[u8; 1]> { bytes.iter().map(|&byte| [byte]).collect() };
    let filter_with = |bytes: &[u8]| {
        let mut filter = empty.clone();
        bytes.iter().for_each(|byte| _ = filter.insert(byte));
        filter
    };
    let mut filter = empty.clone();
    let mut set: HashSet<Vec<u8>> = HashSet::new();
    for operation in input.operations {
        let before = filter.clone();
        match operation {
            Operation::Insert(key) => {
                let new = filter.insert(&key);
                assert_eq!(new, !before.contains(&key));
                set.insert(key.into_bytes());
            }
            Operation::InsertBatch(bytes) => {
                let keys = keys(&bytes);
                let mut new = vec![false; keys.len()];
                let count = filter.insert_batch(&keys, &mut new);
                check_and_add(&mut set, &before, &keys, &new, count);
            }
            Operation::InsertShared(bytes) => {
                let keys = keys(&bytes);
                let mut new = vec![false; keys.len()];
                let atomic = AtomicBloomFilter::from(filter);
                let count = atomic.insert_batch(&keys, &mut new);
                filter = atomic.into();
                check_and_add(&mut set, &before, &keys, &new, count);
            }
            Operation::Union(bytes) => {
                filter.union(&filter_with(&bytes)).unwrap();
                set.extend(bytes.into_iter().map(|byte| vec![byte]));
            }
            Operation::Intersect(bytes) => {
                filter.intersect(&filter_with(&bytes)).unwrap();
                set.retain(|key| key.len() == 1 && bytes.contains(&key[0]));
            }
            Operation::Clear => {
                filter.clear();
                assert!(filter == empty);
                set.clear();
            }
        }
        assert!(set.iter().all(|key| filter.contains(key)), "a key was lost");
    }
});
