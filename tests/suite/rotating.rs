//! `RotatingBloomFilter`: against sets of keys and a queue of the last ones, against the model of its rate, and with threads.

use crate::workers::on_threads;
use bloomline::{AtomicBloomFilter, BuildError, Kernel, Key, KeyHasher, RotatingBloomFilter};
use proptest::prelude::*;
use std::collections::HashSet;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// The definition, by sets.
struct Replay {
    window: usize,
    current: HashSet<u16>,
    previous: HashSet<u16>,
    /// The last distinct keys, the latest at the end.
    last: Vec<u16>,
}

impl Replay {
    fn new(window: u64) -> Self {
        Self { window: window as usize, current: HashSet::new(), previous: HashSet::new(), last: Vec::new() }
    }

    fn contains(&self, key: u16) -> bool {
        self.current.contains(&key) || self.previous.contains(&key)
    }

    fn rotate(&mut self) {
        self.previous = std::mem::take(&mut self.current);
    }

    fn insert(&mut self, key: u16) -> bool {
        self.last.retain(|&last| last != key);
        self.last.push(key);
        if self.current.contains(&key) {
            return false;
        }
        if self.current.len() == self.window {
            self.rotate();
        }
        self.current.insert(key) && !self.previous.contains(&key)
    }
}

#[derive(Clone, Debug)]
enum Operation {
    Insert(u16),
    InsertBatch(Vec<u16>),
    Rotate,
    Clear,
}

fn operations() -> impl Strategy<Value = Vec<Operation>> {
    let key = || 0..4000u16;
    // Longer than a portion at times, and with repeats near by.
    let keys = prop_oneof![prop::collection::vec(0..50u16, 0..100), prop::collection::vec(key(), 0..3000)];
    let operation = prop_oneof![
        6 => key().prop_map(Operation::Insert),
        6 => keys.prop_map(Operation::InsertBatch),
        1 => Just(Operation::Rotate),
        1 => Just(Operation::Clear),
    ];
    prop::collection::vec(operation, 0..12)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// At a rate of 1e-12: a false positive in one of ten thousand runs of this test.
    #[test]
    fn it_remembers_what_sets_remember(
        window in prop_oneof![1u64..4, 1u64..3000],
        operations in operations(),
    ) {
        let mut filter = RotatingBloomFilter::new(window, 1e-12).unwrap();
        let mut replay = Replay::new(window);
        for operation in operations {
            match operation {
                Operation::Insert(key) => prop_assert_eq!(filter.insert(&key), replay.insert(key)),
                Operation::InsertBatch(keys) => {
                    let mut new = vec![true; keys.len()];
                    let count = filter.insert_batch(&keys, &mut new);
                    let expected: Vec<bool> = keys.iter().map(|&key| replay.insert(key)).collect();
                    prop_assert_eq!(count, expected.iter().filter(|new| **new).count());
                    prop_assert_eq!(new, expected);
                }
                Operation::Rotate => {
                    filter.rotate();
                    replay.rotate();
                    // What the queue promises holds from here on.
                    replay.last.clear();
                }
                Operation::Clear => {
                    filter.clear();
                    replay = Replay::new(window);
                }
            }
            let all: Vec<u16> = (0..5000).collect();
            let mut found = vec![false; all.len()];
            let count = filter.contains_batch(&all, &mut found);
            prop_assert!(count as u64 <= 2 * window, "more is remembered than two windows");
            prop_assert!(all.iter().zip(&found).all(|(&key, &found)| found == replay.contains(key)));
            prop_assert!(all.iter().zip(found).all(|(key, found)| filter.contains(key) == found));
            let window = replay.last.iter().rev().take(window as usize);
            prop_assert!({ window }.all(|key| filter.contains(key)), "one of the last keys is forgotten");
        }
    }
}

/// Fixed seeds. Both generations are full, which is the worst case: at all other times there are fewer keys.
#[test]
fn the_rate_is_the_models_and_not_above_the_one_asked_for() {
    for (window, rate, filters, probes) in [
        (20_000u64, 0.5, 20, 100_000u64),
        (20_000, 0.1, 20, 100_000),
        (20_000, 0.01, 40, 200_000),
        (50_000, 1e-3, 40, 1_000_000),
    ] {
        let (mut rates, mut expected, mut answers) = (Vec::new(), 0.0, vec![false; probes as usize]);
        for seed in 0..filters {
            let builder = RotatingBloomFilter::builder().expected_keys(window).false_positive_rate(rate).seed(seed);
            let filter = builder.build().unwrap();
            let hasher = KeyHasher::new(seed);
            let hashes =
                |range: std::ops::Range<u64>| -> Vec<u64> { range.map(|key| key.hash_with(&hasher)).collect() };
            let keys = hashes(0..2 * window);
            filter.insert_hashes(&keys, &mut answers[..keys.len()]);
            expected = filter.expected_fpr();
            let found = filter.contains_hashes(&hashes(2 * window..2 * window + probes), &mut answers);
            rates.push(found as f64 / probes as f64);
            let measured = found as f64 / probes as f64;
            assert!((filter.current_fpr() / measured - 1.0).abs() < 0.1, "{} {measured}", filter.current_fpr());
        }
        let count = f64::from(filters as u32);
        let mean = rates.iter().sum::<f64>() / count;
        let variance = rates.iter().map(|rate| (rate - mean) * (rate - mean)).sum::<f64>() / (count - 1.0);
        let error = (variance / count).sqrt();
        println!("{window} {rate}: measured {mean:e} ± {error:e}, model {expected:e}");
        // A key that a generation takes for seen takes no place there, so the model is a little below what is measured.
        assert!(mean >= expected - 4.0 * error, "measured {mean:e} ± {error:e}, model {expected:e}");
        assert!(mean <= rate + 4.0 * error, "measured {mean:e} ± {error:e}, asked for {rate}");
        assert!(error < 0.02 * expected, "too few keys to tell: {mean:e} ± {error:e}");
        // One generation has p' / (1 + p').
        let both_keep = 1.0 - (1.0 - rate).sqrt();
        let model = 1.0 - (1.0 / (1.0 + both_keep)).powi(2);
        assert!(expected <= model && expected > 0.97 * model, "{expected} {model}");
    }
}

/// Threads insert the same keys at the same time, over many rotations. Once in a million runs a false positive is missing.
#[test]
fn no_key_is_claimed_twice_in_a_window() {
    const KEYS: u32 = 40_000;
    for threads in [2, 4, 8] {
        for batch in [1, 60] {
            // Longer than what the threads are apart.
            let filter = RotatingBloomFilter::new(1000, 1e-12).unwrap();
            let claims: Vec<AtomicU32> = (0..KEYS).map(|_| AtomicU32::new(0)).collect();
            let (meeting, lost) = (Barrier::new(threads as usize), AtomicU32::new(0));
            let all: Vec<u32> = (0..KEYS).collect();
            on_threads(threads, |_| {
                for keys in all.chunks(300) {
                    meeting.wait();
                    for keys in keys.chunks(batch) {
                        let mut new = vec![false; keys.len()];
                        match keys {
                            [key] => new[0] = filter.insert(key),
                            keys => _ = filter.insert_batch(keys, &mut new),
                        }
                        for (key, new) in keys.iter().zip(new) {
                            lost.fetch_add(u32::from(!filter.contains(key)), Ordering::Relaxed);
                            claims[*key as usize].fetch_add(u32::from(new), Ordering::Relaxed);
                        }
                    }
                }
            });
            assert_eq!(lost.into_inner(), 0, "keys were inserted and not there");
            let claims: Vec<u32> = claims.into_iter().map(AtomicU32::into_inner).collect();
            assert!(claims.iter().all(|&claims| claims <= 1), "a key was claimed twice");
            // Where threads insert a key just as the generations rotate, nobody may claim it: a few for each rotation.
            let missing = claims.iter().filter(|&&claims| claims == 0).count() as u32;
            assert!(missing <= KEYS / 1000 * threads, "{missing} keys were claimed by nobody");
            assert!((KEYS - 1000..KEYS).all(|key| filter.contains(&key)));
        }
    }
}

/// Keys that come again and again are in the window at every moment, while it rotates under the readers.
#[test]
fn a_key_that_stays_in_the_window_is_found_at_every_moment() {
    let filter = RotatingBloomFilter::new(64, 1e-9).unwrap();
    let (done, misses) = (AtomicBool::new(false), AtomicU32::new(0));
    filter.insert("kept");
    on_threads(3, |thread| {
        if thread > 0 {
            while !done.load(Ordering::Relaxed) {
                misses.fetch_add(u32::from(!filter.contains("kept")), Ordering::Relaxed);
                let mut found = [false; 40];
                let keys = ["kept"; 40];
                filter.contains_batch(&keys, &mut found);
                misses.fetch_add(found.iter().filter(|found| !**found).count() as u32, Ordering::Relaxed);
            }
            return;
        }
        for key in 0..200_000u32 {
            filter.insert(&key);
            if key % 30 == 0 {
                assert!(!filter.insert("kept"));
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(misses.into_inner(), 0);
}

/// Repeats ask for no places. A batch of them holds none that another thread needs.
#[test]
fn a_batch_of_repeats_does_not_make_others_rotate() {
    const KEYS: u64 = 1900;
    for round in 0..100 {
        let filter = RotatingBloomFilter::new(2000, 1e-9).unwrap();
        filter.insert("kept");
        filter.insert("repeat");
        let (meeting, done) = (Barrier::new(2), AtomicBool::new(false));
        on_threads(2, |thread| {
            meeting.wait();
            if thread > 0 {
                let hashes = ["repeat".hash_with(filter.hasher()); 1000];
                while !done.load(Ordering::Relaxed) {
                    filter.insert_hashes(&hashes, &mut [false; 1000]);
                }
                return;
            }
            (0..KEYS).for_each(|key| _ = filter.insert(&key));
            done.store(true, Ordering::Relaxed);
        });
        // All of them are in one generation, so two rotations forget them, and one does not.
        filter.rotate();
        assert!(filter.contains("kept") && (0..KEYS).all(|key| filter.contains(&key)), "round {round}");
    }
}

#[test]
fn what_a_filter_says_of_itself() {
    let builder = || RotatingBloomFilter::builder().expected_keys(1000).false_positive_rate(0.01);
    let filter = builder().seed(7).build().unwrap();
    assert_eq!((filter.seed(), filter.window(), filter.false_positive_rate()), (7, 1000, 0.01));
    assert_eq!(1u64.hash_with(filter.hasher()), 1u64.hash_with(&KeyHasher::new(7)));
    // Three filters at half the rate, 11.3 bits a key each by tests/data/fpr.csv, and a few blocks' rounding.
    assert!((3.0 * 1410.0..3.0 * 1500.0).contains(&(filter.memory_bytes() as f64)), "{}", filter.memory_bytes());
    assert!(format!("{filter:?}").contains("window: 1000"), "{filter:?}");
    assert_eq!(RotatingBloomFilter::new(0, 0.01).unwrap_err(), BuildError::NoKeys);
    assert_eq!(RotatingBloomFilter::new(1, 1.0).unwrap_err(), BuildError::Rate { value: 1.0 });
    assert_eq!(builder().probes(8).build().unwrap_err(), BuildError::NotKeysAndRate);
    assert_eq!(builder().key_name("url").build().unwrap().key_name(), "url");
    assert_eq!(builder().kernel(Kernel::Portable).build().unwrap().kernel(), Kernel::Portable);
    // An error names the rate that was asked for, which a single filter keeps.
    AtomicBloomFilter::new(2000, 1.6e-16).unwrap();
    let Err(BuildError::RateUnreachable { value, floor }) = RotatingBloomFilter::new(2000, 1.6e-16) else { panic!() };
    assert!(value == 1.6e-16 && floor >= value, "{value:e} {floor:e}");
    RotatingBloomFilter::new(2000, floor * 1.01).unwrap();
}
