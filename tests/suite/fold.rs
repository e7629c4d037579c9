//! Folding: the bits are exactly those of a filter with fewer blocks, and so is the rate.

use bloomline::{AtomicBloomFilter, BloomFilter, MergeError};
use proptest::prelude::*;

fn filter(blocks: usize, probes: u32, keys: impl IntoIterator<Item = u64>) -> BloomFilter {
    let mut filter: BloomFilter = BloomFilter::builder().memory(64 * blocks).probes(probes).seed(3).build().unwrap();
    filter.extend(keys);
    filter
}

proptest! {
    #[test]
    fn a_folded_filter_equals_one_of_fewer_blocks(
        blocks in 1usize..1500,
        times in 0u32..6,
        probes in prop::sample::select(vec![4, 8, 12, 16]),
        hashes in prop::collection::vec(any::<u64>(), 0..400),
    ) {
        let mut large: BloomFilter = BloomFilter::builder().memory((64 * blocks) << times).probes(probes).build().unwrap();
        let mut small: BloomFilter = BloomFilter::builder().memory(64 * blocks).probes(probes).build().unwrap();
        large.insert_hashes(&hashes, &mut vec![false; hashes.len()]);
        small.insert_hashes(&hashes, &mut vec![false; hashes.len()]);
        for _ in 0..times {
            prop_assert!(large.fold());
        }
        prop_assert!(large == small);
        prop_assert_eq!(large.fold(), blocks % 2 == 0);
    }

    #[test]
    fn a_union_has_the_smaller_size(
        blocks in 1usize..300,
        ours in 0u32..4,
        theirs in 0u32..4,
        (first, second) in (prop::collection::vec(any::<u64>(), 0..200), prop::collection::vec(any::<u64>(), 0..200)),
    ) {
        let levels = ours.min(theirs);
        let mut a = filter(blocks << ours, 8, first.iter().copied());
        let b = filter(blocks << theirs, 8, second.iter().copied());
        let both = filter(blocks << levels, 8, first.iter().chain(&second).copied());
        let shared = AtomicBloomFilter::from(a.clone());
        a.union(&b).unwrap();
        prop_assert!(a == both);
        // A filter with many writers cannot be folded, but it can be merged into the other one.
        let b = AtomicBloomFilter::from(b);
        let united = shared.union(&b);
        if ours > theirs {
            prop_assert_eq!(united, Err(MergeError::Order { ours: blocks << ours, theirs: blocks << theirs }));
            b.union(&shared).unwrap();
            prop_assert!(BloomFilter::from(b) == both);
        } else {
            united.unwrap();
            prop_assert!(BloomFilter::from(shared) == both);
        }
    }
}

#[test]
fn sizes_that_do_not_fold_to_each_other_are_refused() {
    for (ours, theirs) in [(10, 30), (30, 10), (9, 4), (4, 9), (12, 5), (6, 4), (10, 15)] {
        let mut a = filter(ours, 8, 0..10);
        let before = a.clone();
        assert_eq!(a.union(&filter(theirs, 8, 0..10)), Err(MergeError::Blocks { ours, theirs }));
        assert!(a == before);
    }
    assert_eq!(filter(8, 8, []).union(&filter(4, 12, [])), Err(MergeError::Probes { ours: 8, theirs: 12 }));
    let other: BloomFilter = BloomFilter::builder().memory(256).probes(8).seed(4).build().unwrap();
    assert_eq!(filter(8, 8, []).union(&other), Err(MergeError::Seed));
}

#[test]
fn folding_ends_at_the_smallest_size_that_keeps_the_rate() {
    for (expected, keys, rate) in
        [(1_000_000, 1_000_000, 0.01), (10_000_000, 300_000, 0.001), (5_000_000, 40_000, 1e-5)]
    {
        let mut filter = BloomFilter::new(expected, rate).unwrap();
        filter.extend(0..keys);
        let before = filter.memory_bytes();
        filter.shrink_to_fit();
        let times = (before / filter.memory_bytes()).ilog2();
        assert_eq!(filter.memory_bytes(), before >> times);
        assert!(filter.current_fpr() <= rate);
        assert!((0..keys).all(|key| filter.contains(&key)));
        // A folded filter expects as many keys as it has room for, and the model agrees with the bits.
        let room = filter.expected_keys().unwrap();
        assert_eq!(room, if times == 0 { expected } else { filter.capacity(rate) });
        assert!(room as f64 > 0.97 * keys as f64, "{room}");
        assert_eq!(filter.false_positive_rate(), Some(rate));
        let once_more = filter.fold().then(|| filter.current_fpr());
        assert!(once_more.is_none_or(|folded| folded > rate), "{once_more:?}");
    }
}

#[test]
fn a_filter_without_a_rate_keeps_its_size() {
    let mut filter = filter(1024, 8, 0..10);
    filter.shrink_to_fit();
    assert_eq!((filter.block_count(), filter.expected_keys()), (1024, None));
    assert_eq!(filter.fold_to(0.01), 10);
}

/// The measured rate of a folded filter is the rate of a filter of its size.
#[test]
fn a_folded_filter_has_the_rate_of_its_size() {
    let keys = 2_000_000;
    let mut filter = filter(1 << 17, 8, 0..keys);
    for _ in 0..2 {
        assert!(filter.fold());
        let trials: Vec<u64> = (1 << 40..(1 << 40) + 4_000_000).collect();
        let found = filter.contains_batch(&trials, &mut vec![false; trials.len()]) as f64;
        let expected = filter.expected_fpr(keys);
        // The binomial deviation, and the deviation of the load. A sound build exceeds six of both for one in 10^8 seeds, and the
        // seed is fixed.
        let sigma = (expected * (1.0 - expected) / trials.len() as f64).sqrt();
        let share = found / trials.len() as f64;
        assert!((share - expected).abs() < 6.0 * sigma + 0.003 * expected, "{share} {expected}");
    }
}

/// A size is at most 1/128 more than the smallest, and folds until fewer than 256 blocks are left.
#[test]
fn sizes_for_a_rate_fold() {
    // A 32-bit machine has no filter for more keys.
    let many = if usize::BITS == 32 { 300_000_000 } else { 3_000_000_000 };
    for keys in [1, 100, 5_000, 123_456, 10_000_000, many] {
        for rate in [0.1, 0.01, 1e-4, 1e-6] {
            let plan = BloomFilter::builder().expected_keys(keys).false_positive_rate(rate).plan().unwrap();
            let blocks = plan.block_count();
            assert!(blocks >> blocks.trailing_zeros().min(40) < 256, "{keys} {rate}: {blocks}");
            let fewer = |blocks: usize| {
                let memory = BloomFilter::builder().memory(64 * blocks).probes(plan.probes()).plan().unwrap();
                memory.expected_fpr(keys)
            };
            assert!(plan.expected_fpr(keys) <= rate);
            // A size 1/128 smaller does not keep the rate.
            let min = blocks - blocks / 128 - 1;
            assert!(min == 0 || fewer(min) > rate, "{keys} {rate}: {blocks}");
        }
    }
}
