//! `AtomicScalableBloomFilter`: with one thread it equals `ScalableBloomFilter`. With many, one thread claims each key, over
//! every growth, and no stage gets more keys than it takes.
//!
//! Which keys are false positives depends on the order of the inserts, so tests with threads can fail by chance; each says how
//! rarely.

use crate::workers::on_threads;
use bloomline::{AtomicScalableBloomFilter, BuildError, Key, KeyHasher, ScalableBloomFilter};
use proptest::prelude::*;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

const THREADS: [u32; 3] = [2, 4, 8];

fn shared(first: u64, rate: f64) -> AtomicScalableBloomFilter {
    AtomicScalableBloomFilter::new(first, rate).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    /// Single calls and batches in any order, and conversions in both directions.
    #[test]
    fn one_thread_sets_the_bits_of_the_filter_with_one_writer(
        first in prop_oneof![1u64..4, 1u64..3000],
        rate in prop_oneof![Just(0.9), Just(0.1), Just(1e-3)],
        batches in prop::collection::vec(prop::collection::vec(0..6000u16, 0..3000), 0..8),
    ) {
        let (mut sequential, mut filter) = (ScalableBloomFilter::new(first, rate).unwrap(), shared(first, rate));
        for (i, keys) in batches.iter().enumerate() {
            // An answer that is not written stays true, which fails the test.
            let (mut expected, mut new) = (vec![true; keys.len()], vec![true; keys.len()]);
            let count = sequential.insert_batch(keys, &mut expected).unwrap();
            if i % 3 == 0 {
                keys.iter().zip(&mut new).for_each(|(key, new)| *new = filter.insert(key).unwrap());
            } else {
                prop_assert_eq!(filter.insert_batch(keys, &mut new).unwrap(), count);
            }
            prop_assert_eq!(&new, &expected);
            let all: Vec<u16> = (0..8000).collect();
            let (mut expected, mut found) = (vec![true; all.len()], vec![false; all.len()]);
            prop_assert_eq!(filter.contains_batch(&all, &mut found), sequential.contains_batch(&all, &mut expected));
            prop_assert_eq!(&found, &expected);
            prop_assert!(all.iter().zip(expected).all(|(key, found)| filter.contains(key) == found));
            prop_assert_eq!((filter.keys(), filter.memory_bytes()), (sequential.keys(), sequential.memory_bytes()));
            prop_assert_eq!(filter.estimated_fpr(), sequential.estimated_fpr());
            if i % 2 == 0 {
                filter = ScalableBloomFilter::from(filter).into();
            }
        }
        prop_assert_eq!(filter.current_fpr(), sequential.current_fpr());
        prop_assert!(ScalableBloomFilter::from(filter) == sequential);
    }
}

/// Inserts the same keys from many threads. Returns how often each was claimed.
fn race(filter: &AtomicScalableBloomFilter, threads: u32, keys: u32, batch: usize) -> Vec<u32> {
    let claims: Vec<AtomicU32> = (0..keys).map(|_| AtomicU32::new(0)).collect();
    let (meeting, lost) = (Barrier::new(threads as usize), AtomicUsize::new(0));
    let all: Vec<u32> = (0..keys).collect();
    on_threads(threads, |_| {
        // Few keys between two barriers, so that all threads insert the same keys at the same time.
        for keys in all.chunks(400) {
            meeting.wait();
            for keys in keys.chunks(batch) {
                let mut new = [false; 400];
                let new = &mut new[..keys.len()];
                match keys {
                    [key] => new[0] = filter.insert(key).unwrap(),
                    keys => _ = filter.insert_batch(keys, new).unwrap(),
                }
                for (key, new) in keys.iter().zip(new) {
                    lost.fetch_add(usize::from(!filter.contains(key)), Ordering::Relaxed);
                    claims[*key as usize].fetch_add(u32::from(*new), Ordering::Relaxed);
                }
            }
        }
    });
    assert_eq!(lost.into_inner(), 0, "keys that were inserted are not found");
    claims.into_iter().map(AtomicU32::into_inner).collect()
}

#[test]
fn every_key_is_claimed_once_while_the_filter_grows() {
    const KEYS: u32 = 20_000;
    for threads in THREADS {
        for batch in [1, 50, 400] {
            for first in [1, 100] {
                // 20,000 keys at less than 1e-12: a false positive in one of fifty million runs.
                let filter = shared(first, 1e-12);
                let claims = race(&filter, threads, KEYS, batch);
                assert!(claims.iter().all(|&claims| claims == 1), "{threads} threads, batches of {batch}, {first}");
                let frozen = ScalableBloomFilter::from(filter);
                assert!((0..KEYS).all(|key| frozen.contains(&key)));
                // A permit that a thread held when a stage became full is counted, whether or not its key's claim was.
                let (held, full) = (u64::from(threads) * batch as u64, frozen.stages().len() - 1);
                let twice: u64 = (0..full).map(|stage| held.min(first << stage)).sum();
                let (keys, min) = (frozen.keys(), u64::from(KEYS));
                assert!((min..=min + twice).contains(&keys), "{keys}, {threads} threads, batches of {batch}, {first}");
            }
        }
    }
}

#[test]
fn with_false_positives_no_key_is_claimed_twice() {
    for threads in THREADS {
        for batch in [1, 400] {
            let claims = race(&shared(10, 0.5), threads, 20_000, batch);
            assert!(claims.iter().all(|&claims| claims <= 1), "a key was claimed twice");
        }
    }
}

/// Threads that all insert large batches into a small stage do not overfill it, by the estimate from its bits.
#[test]
fn racing_batches_keep_the_rate() {
    for threads in THREADS {
        let filter = shared(100, 0.01);
        let start = Barrier::new(threads as usize);
        on_threads(threads, |thread| {
            start.wait();
            for i in 0..20u64 {
                let keys: Vec<u64> = (0..1024).map(|key| (u64::from(thread) * 20 + i) * 1024 + key).collect();
                filter.insert_batch(&keys, &mut [false; 1024]).unwrap();
            }
        });
        let frozen = ScalableBloomFilter::from(filter);
        for (i, stage) in frozen.stages().iter().enumerate() {
            // The estimate's deviation is a third of the root of the keys; six of them.
            let (capacity, keys) = ((100u64 << i) as f64, stage.estimated_keys());
            assert!(keys < capacity + 2.0 * capacity.sqrt(), "stage {i}: {keys} keys of {capacity}");
        }
        assert!(frozen.current_fpr() < 0.01 && frozen.estimated_fpr() < 0.01);
    }
}

#[test]
fn a_thread_that_observes_an_insert_finds_the_key_while_the_filter_grows() {
    const KEYS: u64 = 100_000;
    let filter = shared(1, 0.001);
    let inserted = AtomicU64::new(0);
    on_threads(4, |thread| {
        if thread == 0 {
            for key in 0..KEYS {
                filter.insert(&key).unwrap();
                // Release and Acquire let the readers observe the insert.
                inserted.store(key + 1, Ordering::Release);
            }
            return;
        }
        let mut end = 0;
        while end < KEYS {
            end = inserted.load(Ordering::Acquire);
            for key in end.saturating_sub(50)..end {
                assert!(filter.contains(&key), "a key that was inserted is not found");
            }
        }
    });
}

/// A scalable filter that can have only one stage: hashes of 64 bits cannot keep the rate of the next one.
#[test]
fn an_impossible_stage_is_an_error_on_every_thread() {
    const FIRST: u64 = 2000;
    for batch in [1, 100] {
        let filter = shared(FIRST, 8e-16 * FIRST as f64 / 1000.0);
        let (claimed, failed) = (AtomicU64::new(0), AtomicBool::new(false));
        on_threads(4, |thread| {
            let keys: Vec<u64> = (0..FIRST).map(|key| u64::from(thread) * FIRST + key).collect();
            for keys in keys.chunks(batch) {
                let mut new = vec![true; keys.len()];
                match filter.insert_batch(keys, &mut new) {
                    Ok(_) => {}
                    Err(error) => {
                        assert!(matches!(error, BuildError::RateUnreachable { .. }), "{error}");
                        failed.store(true, Ordering::Relaxed);
                    }
                }
                claimed.fetch_add(new.iter().filter(|new| **new).count() as u64, Ordering::Relaxed);
                assert!(keys.iter().zip(new).all(|(key, new)| !new || filter.contains(key)));
            }
        });
        assert!(failed.into_inner());
        assert_eq!((claimed.into_inner(), filter.keys()), (FIRST, FIRST));
        // Repeats need no room.
        assert_eq!((0..4 * FIRST).filter(|key| filter.contains(key)).count() as u64, FIRST);
    }
}

#[test]
fn a_filter_reports_its_parameters_and_figures() {
    let builder = AtomicScalableBloomFilter::builder().expected_keys(100).false_positive_rate(1e-6);
    let mut filter = builder.seed(7).key_name("url").build().unwrap();
    for key in 0..1000u64 {
        filter.insert(&key).unwrap();
    }
    assert_eq!((filter.seed(), filter.key_name(), filter.keys()), (7, "url", 1000));
    assert_eq!(1u64.hash_with(filter.hasher()), 1u64.hash_with(&KeyHasher::new(7)));
    assert!(format!("{filter:?}").contains("keys: 1000"), "{filter:?}");
    filter.clear();
    assert!(!filter.contains(&1u64) && filter.insert(&1u64).unwrap());
    let mut expected =
        ScalableBloomFilter::builder().expected_keys(100).false_positive_rate(1e-6).seed(7).build().unwrap();
    expected.insert(&1u64).unwrap();
    assert!(ScalableBloomFilter::from(filter) == expected);
    assert_eq!(AtomicScalableBloomFilter::new(0, 0.1).unwrap_err(), BuildError::NoKeys);
    let builder = AtomicScalableBloomFilter::builder().memory(64).probes(4);
    assert_eq!(builder.build().unwrap_err(), BuildError::NotKeysAndRate);
}
