//! Sequences of operations against plain models: a set of keys, and a filter driven one call at a time.

use bloomline::{AtomicBloomFilter, BloomFilter, Kernel, Key, MergeError};
use proptest::prelude::*;
use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Keys are 0 to 499: few, so that they repeat, and in small filters many enough for false positives.
const KEYS: u16 = 500;

#[derive(Clone, Debug)]
enum Operation {
    Insert(u16),
    InsertBatch(Vec<u16>),
    InsertHashes(Vec<u16>),
    Contains(u16),
    ContainsBatch(Vec<u16>),
    ContainsHashes(Vec<u16>),
    /// With a filter of these keys.
    Union(Vec<u16>),
    Intersect(Vec<u16>),
    Clear,
    /// From exclusive to atomic or back.
    Convert,
}

fn operations() -> impl Strategy<Value = Vec<Operation>> {
    let key = || 0..KEYS;
    // Some are longer than the prefetch distance.
    let keys = || prop::collection::vec(key(), 0..150);
    let operation = prop_oneof![
        4 => key().prop_map(Operation::Insert),
        4 => keys().prop_map(Operation::InsertBatch),
        4 => keys().prop_map(Operation::InsertHashes),
        4 => key().prop_map(Operation::Contains),
        4 => keys().prop_map(Operation::ContainsBatch),
        4 => keys().prop_map(Operation::ContainsHashes),
        2 => keys().prop_map(Operation::Union),
        2 => keys().prop_map(Operation::Intersect),
        1 => Just(Operation::Clear),
        2 => Just(Operation::Convert),
    ];
    prop::collection::vec(operation, 0..20)
}

/// The filter under test, in either type. The calls are the same, but for `&mut`.
enum Filter {
    Exclusive(BloomFilter),
    Atomic(AtomicBloomFilter),
}

/// Calls a method of either type.
macro_rules! either {
    ($filter:expr, $name:ident => $call:expr) => {
        match $filter {
            Filter::Exclusive($name) => $call,
            Filter::Atomic($name) => $call,
        }
    };
}

impl Filter {
    fn convert(self) -> Self {
        match self {
            Self::Exclusive(filter) => Self::Atomic(filter.into()),
            Self::Atomic(filter) => Self::Exclusive(filter.into()),
        }
    }

    fn into_exclusive(self) -> BloomFilter {
        match self {
            Self::Exclusive(filter) => filter,
            Self::Atomic(filter) => filter.into(),
        }
    }
}

fn build(kernel: Kernel, blocks: usize, probes: u32) -> BloomFilter {
    BloomFilter::builder().memory(blocks * 64).probes(probes).seed(5).kernel(kernel).build().unwrap()
}

/// The batch's answers. Checks that their count was returned.
fn answers(length: usize, batch: impl FnOnce(&mut [bool]) -> usize) -> Vec<bool> {
    // Every answer must be written, regardless of its old value.
    let mut answers: Vec<bool> = (0..length).map(|i| i % 2 == 0).collect();
    let count = batch(&mut answers);
    assert_eq!(count, answers.iter().filter(|&&answer| answer).count());
    answers
}

/// Performs the operations on a filter, and also on a set and by single calls on the portable kernel.
fn follow(operations: Vec<Operation>, mut filter: Filter, blocks: usize, probes: u32) {
    let filter_with = |keys: &[u16]| {
        let mut other = build(Kernel::Portable, blocks, probes);
        keys.iter().for_each(|key| _ = other.insert(key));
        other
    };
    let mut set = HashSet::new();
    let mut single = filter_with(&[]);
    let hashes = |single: &BloomFilter, keys: &[u16]| -> Vec<u64> {
        keys.iter().map(|key| key.hash_with(single.hasher())).collect()
    };
    for operation in operations {
        match operation {
            Operation::Insert(key) => {
                assert_eq!(either!(&mut filter, f => f.insert(&key)), single.insert(&key));
                set.insert(key);
            }
            Operation::InsertBatch(keys) => {
                let new = answers(keys.len(), |new| either!(&mut filter, f => f.insert_batch(&keys, new)));
                assert_eq!(new, keys.iter().map(|key| single.insert(key)).collect::<Vec<_>>());
                set.extend(keys);
            }
            Operation::InsertHashes(keys) => {
                let hashes = hashes(&single, &keys);
                let new = answers(keys.len(), |new| either!(&mut filter, f => f.insert_hashes(&hashes, new)));
                assert_eq!(new, hashes.iter().map(|&hash| single.insert_hash(hash)).collect::<Vec<_>>());
                set.extend(keys);
            }
            Operation::Contains(key) => {
                assert_eq!(either!(&filter, f => f.contains(&key)), single.contains(&key));
            }
            Operation::ContainsBatch(keys) => {
                let found = answers(keys.len(), |found| either!(&filter, f => f.contains_batch(&keys, found)));
                assert_eq!(found, keys.iter().map(|key| single.contains(key)).collect::<Vec<_>>());
            }
            Operation::ContainsHashes(keys) => {
                let hashes = hashes(&single, &keys);
                let found = answers(keys.len(), |found| either!(&filter, f => f.contains_hashes(&hashes, found)));
                assert_eq!(found, hashes.iter().map(|&hash| single.contains_hash(hash)).collect::<Vec<_>>());
            }
            Operation::Union(keys) => {
                let other = filter_with(&keys);
                match &mut filter {
                    Filter::Exclusive(filter) => filter.union(&other).unwrap(),
                    Filter::Atomic(filter) => filter.union(&other.into()).unwrap(),
                }
                // The union has the bits of all the keys.
                keys.iter().for_each(|key| _ = single.insert(key));
                set.extend(keys);
            }
            Operation::Intersect(keys) => {
                let other = filter_with(&keys);
                match &mut filter {
                    Filter::Exclusive(filter) => filter.intersect(&other).unwrap(),
                    Filter::Atomic(filter) => filter.intersect(&other.clone().into()).unwrap(),
                }
                // All bits of a key are in both if and only if both contain it.
                for key in 0..KEYS {
                    let expected = single.contains(&key) && other.contains(&key);
                    assert_eq!(either!(&filter, f => f.contains(&key)), expected);
                }
                single.intersect(&other).unwrap();
                set = &set & &keys.into_iter().collect();
            }
            Operation::Clear => {
                either!(&mut filter, f => f.clear());
                single = filter_with(&[]);
                set.clear();
            }
            Operation::Convert => filter = filter.convert(),
        }
        assert!(set.iter().all(|key| either!(&filter, f => f.contains(key))), "a key was lost");
    }
    assert!(filter.into_exclusive() == single, "other bits than by single calls");
}

proptest! {
    #[test]
    fn every_kernel_and_type_answers_like_single_calls(
        operations in operations(),
        // The last size is above those whose batches run without prefetches.
        blocks in prop_oneof![8 => prop::sample::select(vec![1usize, 2, 3, 10, 41]), 1 => Just(20_001)],
        probes in prop::sample::select(vec![4u32, 8, 12, 16]),
    ) {
        for kernel in Kernel::available() {
            let filter = Filter::Exclusive(build(kernel, blocks, probes));
            follow(operations.clone(), filter, blocks, probes);
            let filter = Filter::Atomic(build(kernel, blocks, probes).into());
            follow(operations.clone(), filter, blocks, probes);
        }
    }

    #[test]
    fn new_flags_match_those_of_a_set(keys in prop::collection::vec(any::<u8>(), 0..300)) {
        let mut set = HashSet::new();
        let expected: Vec<bool> = keys.iter().map(|key| set.insert(key)).collect();
        for kernel in Kernel::available() {
            // 64 KiB for 256 possible keys: the chance of a false positive is below 1e-12, and the seed is fixed.
            let mut filter = build(kernel, 1024, 16);
            prop_assert_eq!(&answers(keys.len(), |new| filter.insert_batch(&keys, new)), &expected);
            let atomic = AtomicBloomFilter::from(build(kernel, 1024, 16));
            prop_assert_eq!(&answers(keys.len(), |new| atomic.insert_batch(&keys, new)), &expected);
        }
    }
}

#[test]
fn an_empty_batch_does_nothing() {
    for kernel in Kernel::available() {
        // Without and with prefetches.
        for blocks in [1, 20_001] {
            let mut filter = build(kernel, blocks, 8);
            assert_eq!(filter.insert_batch(&[0u64; 0], &mut []), 0);
            assert_eq!(filter.insert_hashes(&[], &mut []), 0);
            assert_eq!(filter.contains_batch(&[0u64; 0], &mut []), 0);
            assert_eq!(filter.contains_hashes(&[], &mut []), 0);
            let atomic = AtomicBloomFilter::from(filter);
            assert_eq!(atomic.insert_batch(&[0u64; 0], &mut []), 0);
            assert_eq!(atomic.insert_hashes(&[], &mut []), 0);
            assert_eq!(atomic.contains_batch(&[0u64; 0], &mut []), 0);
            assert_eq!(atomic.contains_hashes(&[], &mut []), 0);
            assert!(BloomFilter::from(atomic) == build(kernel, blocks, 8));
        }
    }
}

/// Asserts that a batch of 3 keys and `length` answers panics with both numbers.
fn panics_with_lengths(length: usize, batch: impl FnOnce(&[u64; 3], &mut [bool]) -> usize) {
    let mut answers = vec![false; length];
    let panic = catch_unwind(AssertUnwindSafe(|| batch(&[1, 2, 3], &mut answers))).unwrap_err();
    let message = panic.downcast_ref::<String>().unwrap();
    assert!(message.contains("3 keys") && message.ends_with(&format!(" {length}")), "{message}");
}

#[test]
fn batches_of_unequal_lengths_panic_and_change_nothing() {
    for length in [0, 2, 47] {
        let mut filter = build(Kernel::detect(), 10, 8);
        panics_with_lengths(length, |keys, new| filter.insert_batch(keys, new));
        panics_with_lengths(length, |keys, new| filter.insert_hashes(keys, new));
        panics_with_lengths(length, |keys, found| filter.contains_batch(keys, found));
        panics_with_lengths(length, |keys, found| filter.contains_hashes(keys, found));
        let atomic = AtomicBloomFilter::from(filter);
        panics_with_lengths(length, |keys, new| atomic.insert_batch(keys, new));
        panics_with_lengths(length, |keys, new| atomic.insert_hashes(keys, new));
        panics_with_lengths(length, |keys, found| atomic.contains_batch(keys, found));
        panics_with_lengths(length, |keys, found| atomic.contains_hashes(keys, found));
        assert_eq!(atomic.fill_ratio(), 0.0);
    }
}

#[test]
fn filters_that_differ_do_not_merge() {
    let build = |blocks: usize, probes, seed| -> BloomFilter {
        let mut filter: BloomFilter =
            BloomFilter::builder().memory(blocks * 64).probes(probes).seed(seed).build().unwrap();
        (0..100 * seed).for_each(|key| _ = filter.insert(&key));
        filter
    };
    let others = [
        (build(11, 8, 1), MergeError::Blocks { ours: 10, theirs: 11 }),
        (build(10, 12, 1), MergeError::Probes { ours: 8, theirs: 12 }),
        (build(10, 8, 2), MergeError::Seed),
    ];
    for (other, error) in others {
        let before = build(10, 8, 1);
        let mut filter = before.clone();
        assert_eq!(filter.union(&other), Err(error.clone()));
        assert_eq!(filter.intersect(&other), Err(error.clone()));
        assert!(filter == before);

        let (mut atomic, other) = (AtomicBloomFilter::from(filter), AtomicBloomFilter::from(other));
        assert_eq!(atomic.union(&other), Err(error.clone()));
        assert_eq!(atomic.intersect(&other), Err(error.clone()));
        assert!(BloomFilter::from(atomic) == before);
    }
}
