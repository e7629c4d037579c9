//! `ScalableBloomFilter`: against a set of keys, against stages built by hand, against the model, and as a file.

use bloomline::{
    AtomicScalableBloomFilter, BloomFilter, BuildError, Kernel, Key, KeyHasher, MergeError, ScalableBloomFilter,
};
use proptest::prelude::*;
use std::collections::HashSet;

mod files;

/// The ratio of each stage's rate to the rate before it; docs/DESIGN.md.
const TIGHTENING: f64 = 0.875;

fn scalable(first: u64, rate: f64, seed: u64) -> ScalableBloomFilter {
    ScalableBloomFilter::builder().expected_keys(first).false_positive_rate(rate).seed(seed).build().unwrap()
}

/// The definition of a scalable filter, one key at a time, from public filters.
struct Replay {
    first: u64,
    rate: f64,
    seed: u64,
    stages: Vec<BloomFilter>,
    /// New keys in each stage.
    keys: Vec<u64>,
}

impl Replay {
    fn new(first: u64, rate: f64, seed: u64) -> Self {
        Self { first, rate, seed, stages: Vec::new(), keys: Vec::new() }
    }

    fn contains(&self, hash: u64) -> bool {
        self.stages.iter().any(|stage| stage.contains_hash(hash))
    }

    fn insert(&mut self, hash: u64) -> bool {
        if self.contains(hash) {
            return false;
        }
        let last = self.stages.len().wrapping_sub(1);
        if self.keys.last().is_none_or(|&keys| keys == self.first << last) {
            let next = self.stages.len() as i32;
            let rate = self.rate * (1.0 - TIGHTENING) * TIGHTENING.powi(next);
            let builder = BloomFilter::builder().expected_keys(self.first << next).false_positive_rate(rate);
            self.stages.push(builder.seed(self.seed).build().unwrap());
            self.keys.push(0);
        }
        assert!(self.stages.last_mut().unwrap().insert_hash(hash));
        *self.keys.last_mut().unwrap() += 1;
        true
    }
}

proptest! {
    /// After any order of unions, no key is lost, and the rate stays below the rate that the filter reports.
    #[test]
    fn a_union_has_the_keys_of_all(
        sets in prop::collection::vec((1..200u64, prop::collection::vec(any::<u16>(), 0..400), any::<bool>()), 1..6),
        more in prop::collection::vec(any::<u16>(), 0..800),
    ) {
        let mut all = scalable(50, 1e-12, 3);
        let mut model = HashSet::new();
        let mut rates = 1e-12;
        for (first, keys, shrink) in sets {
            let mut filter = scalable(first, 1e-12, 3);
            keys.iter().for_each(|key| _ = filter.insert(key).unwrap());
            if shrink {
                filter.shrink_to_fit().unwrap();
            }
            all.union(&filter).unwrap();
            model.extend(keys);
            rates += 1e-12;
        }
        prop_assert!(all.false_positive_rate().unwrap() <= rates);
        prop_assert!(all.keys() >= model.len() as u64);
        prop_assert!(model.iter().all(|key| all.contains(key)));
        // It continues as a set, and so does a copy that threads share.
        let shared = AtomicScalableBloomFilter::from(all.clone());
        for key in more {
            let new = model.insert(key);
            prop_assert_eq!(all.insert(&key).unwrap(), new);
            prop_assert_eq!(shared.insert(&key).unwrap(), new);
        }
        prop_assert!(all == ScalableBloomFilter::from(shared));
        let (mut cleared, mut shared) = (all.clone(), AtomicScalableBloomFilter::from(all));
        shared.clear();
        cleared.clear();
        prop_assert_eq!((cleared.keys(), cleared.stages().len()), (0, 1));
        prop_assert!(cleared == ScalableBloomFilter::from(shared) && cleared == scalable(50, 1e-12, 3));
    }
}

#[test]
fn a_union_keeps_the_rate_that_it_reports() {
    const KEYS: u64 = 100_000;
    let mut filter = scalable(1000, 0.01, 1);
    filter.extend(0..KEYS);
    let mut other = scalable(30_000, 0.02, 1);
    other.extend(KEYS..2 * KEYS);
    filter.union(&other).unwrap();
    let rate = filter.false_positive_rate().unwrap();
    assert!((0.01..0.03).contains(&rate), "{rate}");
    for more in [0, KEYS] {
        filter.extend(2 * KEYS..2 * KEYS + more);
        let found = (4 * KEYS..5 * KEYS).filter(|key| filter.contains(key)).count() as f64;
        // Four standard deviations of the number found at the rate.
        let max = rate * KEYS as f64;
        assert!(found < max + 4.0 * max.sqrt(), "{found} of {max}");
        assert!(filter.current_fpr() <= rate && filter.estimated_fpr() <= rate);
    }
}

#[test]
fn a_union_refuses_incompatible_filters() {
    let mut filter = scalable(10, 0.01, 1);
    assert_eq!(filter.union(&scalable(10, 0.01, 2)), Err(MergeError::Seed));
    let named = |name: &str| {
        let builder = ScalableBloomFilter::builder().expected_keys(10).false_positive_rate(0.01).seed(1);
        builder.key_name(name).build().unwrap()
    };
    let (mut urls, mails) = (named("url"), named("mail"));
    assert!(matches!(urls.union(&mails), Err(MergeError::KeyName { .. })));
    // A name that only the other filter has is not taken over.
    let mut nameless = named("");
    urls.extend(["a"]);
    nameless.union(&urls).unwrap();
    assert_eq!(nameless.key_name(), "");
    assert_eq!(AtomicScalableBloomFilter::from(nameless).key_name(), "");
    let mut other = scalable(1, 0.01, 1);
    other.extend(0..10u64);
    let before = other.stages().len();
    let mut refused = None;
    for _ in 0..100 {
        refused = refused.or(filter.union(&other).err());
    }
    let max = 256;
    assert!(matches!(refused, Some(MergeError::Stages { stages, max: 256 }) if stages > max));
    assert!(filter.stages().len() + before > max);
}

/// Keys without recorded kinds are texts, beside kinds that are recorded: docs/FORMAT.md. A file omits the kinds of texts.
#[test]
fn a_union_has_the_kinds_of_all_keys() {
    const TEXT: u16 = 1;
    const NUMBER: u16 = 1 << 2;
    let with = |kinds: &[u16], keys: u64| {
        let mut filter = scalable(10, 0.01, 1);
        filter.add_key_kinds(kinds);
        filter.extend(0..keys);
        filter
    };
    for (ours, theirs, expected) in [
        (with(&[NUMBER], 20), with(&[], 5), vec![TEXT | NUMBER]),
        (with(&[], 20), with(&[NUMBER], 5), vec![TEXT | NUMBER]),
        (with(&[NUMBER], 20), with(&[TEXT], 5), vec![TEXT | NUMBER]),
        (with(&[NUMBER], 20), with(&[], 0), vec![NUMBER]),
        (with(&[], 0), with(&[NUMBER], 5), vec![NUMBER]),
        (with(&[], 20), with(&[], 5), vec![]),
    ] {
        let mut united = ours;
        united.union(&theirs).unwrap();
        assert_eq!(united.key_kinds(), expected);
        let mut bytes = Vec::new();
        united.write_to(&mut bytes).unwrap();
        assert_eq!(ScalableBloomFilter::read_from(&bytes[..]).unwrap().key_kinds(), expected);
        assert_eq!(AtomicScalableBloomFilter::from(united).key_kinds(), expected);
    }
}

/// The stage that is not full is resized to its contents, and the filter continues to grow.
#[test]
fn a_shrunk_filter_keeps_its_keys_and_its_rate() {
    for keys in [0, 1, 1000, 160_000, 260_000] {
        let mut filter = scalable(1 << 18, 0.01, 1);
        filter.extend(0..keys);
        let (before, counted) = (filter.memory_bytes(), filter.keys());
        filter.shrink_to_fit().unwrap();
        assert!(filter.memory_bytes() <= before && filter.keys() == counted, "{keys}");
        if (1..2000).contains(&keys) {
            assert!(filter.memory_bytes() < before / 20, "{keys}: {}", filter.memory_bytes());
        }
        assert!((0..keys).all(|key| filter.contains(&key)));
        filter.extend(keys..4 * keys + 5000);
        assert!((0..4 * keys + 5000).all(|key| filter.contains(&key)), "{keys}");
        let rate = filter.false_positive_rate().unwrap();
        assert!((rate / 0.01 - 1.0).abs() < 1e-9 && filter.current_fpr() <= rate, "{keys}: {rate}");
    }
}

/// A key or more a day, and each day the filter is shrunk.
#[test]
fn a_filter_that_is_shrunk_every_day_keeps_its_rate_and_its_size() {
    for (first, rate, keys) in
        [(1000, 0.01, 1), (100, 1e-6, 1), (1 << 20, 0.01, 1), (1000, 0.01, 100), (1000, 1e-6, 700)]
    {
        let (mut filter, mut fresh) = (scalable(first, rate, 1), scalable(first, rate, 1));
        for day in 0..1000u64 {
            for key in day * keys..(day + 1) * keys {
                filter.insert(&key).unwrap();
                fresh.insert(&key).unwrap();
            }
            filter.shrink_to_fit().unwrap();
            let (bytes, fresh) = (filter.memory_bytes(), fresh.memory_bytes());
            assert!(bytes <= 2 * fresh, "{first} {keys}, day {day}: {bytes} and {fresh} bytes");
        }
        assert!((filter.false_positive_rate().unwrap() / rate - 1.0).abs() < 1e-9 && filter.current_fpr() <= rate);
        assert!((0..1000 * keys).all(|key| filter.contains(&key)));
        // A cleared filter has the whole rate again.
        let mut shared = AtomicScalableBloomFilter::from(filter.clone());
        shared.clear();
        filter.clear();
        assert!(filter == ScalableBloomFilter::from(shared));
        assert!((filter.false_positive_rate().unwrap() / rate - 1.0).abs() < 1e-9, "{:?}", filter);
    }
}

/// A file holds fewer merged stages than a filter with many unions could get by shrinking.
#[test]
fn what_is_merged_often_and_then_shrunk_can_be_saved() {
    let mut other = scalable(1, 1e-6, 1);
    other.insert(&0u64).unwrap();
    for unions in [250, 255] {
        let mut filter = scalable(1 << 14, 0.01, 1);
        (0..unions).for_each(|_| filter.union(&other).unwrap());
        let whole = filter.false_positive_rate().unwrap();
        for round in 1..=6u32 {
            filter.extend(0..10u64.pow(round));
            filter.shrink_to_fit().unwrap();
            let bytes = bytes_of!(filter);
            assert!(ScalableBloomFilter::read_from(&bytes[..]).unwrap() == filter, "{unions} {round}");
            assert!((filter.false_positive_rate().unwrap() / whole - 1.0).abs() < 1e-9, "{unions} {round}");
        }
        assert!(filter.stages().len() > 256 && (0..1_000_000u64).all(|key| filter.contains(&key)));
    }
}

/// However often it shrinks, a filter keeps a part of its rate for the keys to come.
#[test]
fn shrinking_does_not_use_up_the_rate() {
    let mut filter = scalable(1, 1e-6, 1);
    let mut keys = 0u64;
    while keys < 1_000_000 {
        let more = keys + keys / 8 + 1;
        filter.extend(keys..more);
        keys = more;
        filter.shrink_to_fit().unwrap();
    }
    assert!(filter.stages().len() < 64, "{}", filter.stages().len());
    let last = filter.stages().last().unwrap().false_positive_rate().unwrap();
    assert!(last > 1e-6 / 8.0 / 64.0 * TIGHTENING.powi(20), "{last}");
}

#[derive(Clone, Debug)]
enum Operation {
    Insert(u16),
    InsertBatch(Vec<u16>),
    InsertHashes(Vec<u16>),
    /// All keys, by the three calls.
    Contains,
    Clear,
}

fn operations() -> impl Strategy<Value = Vec<Operation>> {
    let key = || 0..6000u16;
    // Some batches are longer than a chunk.
    let keys = || prop_oneof![prop::collection::vec(key(), 0..100), prop::collection::vec(key(), 0..3000)];
    let operation = prop_oneof![
        4 => key().prop_map(Operation::Insert),
        4 => keys().prop_map(Operation::InsertBatch),
        4 => keys().prop_map(Operation::InsertHashes),
        2 => Just(Operation::Contains),
        1 => Just(Operation::Clear),
    ];
    prop::collection::vec(operation, 0..12)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_calls_answer_like_single_calls_in_order(
        first in prop_oneof![1u64..4, 1u64..3000],
        rate in prop_oneof![Just(0.9), Just(0.1), Just(1e-3)],
        seed: u64,
        operations in operations(),
    ) {
        let mut filter = scalable(first, rate, seed);
        let hasher = KeyHasher::new(seed);
        let mut replay = Replay::new(first, rate, seed);
        let mut set = HashSet::new();
        for operation in operations {
            match operation {
                Operation::Insert(key) => {
                    let new = filter.insert(&key).unwrap();
                    prop_assert_eq!(new, replay.insert(key.hash_with(&hasher)));
                    prop_assert!(set.insert(key) || !new);
                }
                Operation::InsertBatch(keys) | Operation::InsertHashes(keys) if keys.is_empty() => {
                    prop_assert_eq!(filter.insert_batch(&keys, &mut []), Ok(0));
                }
                Operation::InsertBatch(ref keys) | Operation::InsertHashes(ref keys) => {
                    let hashes: Vec<u64> = keys.iter().map(|&key| key.hash_with(&hasher)).collect();
                    // An answer that is not written stays true, which fails the test.
                    let mut new = vec![true; keys.len()];
                    let count = match operation {
                        Operation::InsertBatch(_) => filter.insert_batch(keys, &mut new).unwrap(),
                        _ => filter.insert_hashes(&hashes, &mut new).unwrap(),
                    };
                    let expected: Vec<bool> = hashes.iter().map(|&hash| replay.insert(hash)).collect();
                    prop_assert_eq!(count, expected.iter().filter(|new| **new).count());
                    prop_assert_eq!(&new, &expected);
                    for (key, new) in keys.iter().zip(new) {
                        prop_assert!(set.insert(*key) || !new);
                    }
                }
                Operation::Contains => {
                    let keys: Vec<u16> = (0..8000).collect();
                    let hashes: Vec<u64> = keys.iter().map(|&key| key.hash_with(&hasher)).collect();
                    let expected: Vec<bool> = hashes.iter().map(|&hash| replay.contains(hash)).collect();
                    let count = expected.iter().filter(|found| **found).count();
                    let mut found = vec![false; keys.len()];
                    prop_assert_eq!(filter.contains_batch(&keys, &mut found), count);
                    prop_assert_eq!(&found, &expected);
                    found.fill(true);
                    prop_assert_eq!(filter.contains_hashes(&hashes, &mut found), count);
                    prop_assert_eq!(&found, &expected);
                    prop_assert!(keys.iter().zip(expected).all(|(key, found)| filter.contains(key) == found));
                }
                Operation::Clear => {
                    filter.clear();
                    replay = Replay::new(first, rate, seed);
                    set.clear();
                    prop_assert!(filter == scalable(first, rate, seed));
                }
            }
            prop_assert!(set.iter().all(|key| filter.contains(key)), "a false negative");
            prop_assert_eq!(filter.keys(), replay.keys.iter().sum::<u64>());
            if !replay.stages.is_empty() {
                prop_assert!(filter.stages() == &replay.stages[..]);
            }
        }
    }
}

#[test]
fn a_stage_begins_with_the_first_key_that_needs_it() {
    for first in [1, 2, 7, 1000] {
        let mut filter = scalable(first, 1e-9, 0);
        let mut key = 0u64;
        for stage in 0..5 {
            for _ in 0..first << stage {
                assert!(filter.insert(&key).unwrap());
                assert_eq!(filter.stages().len(), stage + 1);
                key += 1;
                assert_eq!(filter.keys(), key);
            }
            // The stage is full. Repeats do not make the filter grow, singly or in a batch.
            let keys: Vec<u64> = (0..key).collect();
            assert_eq!(filter.insert_batch(&keys, &mut vec![true; keys.len()]), Ok(0));
            assert!(!filter.insert(&0u64).unwrap());
            assert_eq!((filter.stages().len(), filter.keys()), (stage + 1, key));
        }
    }
}

#[test]
fn a_filter_reports_its_parameters_and_figures() {
    for kernel in Kernel::available() {
        let builder = ScalableBloomFilter::builder().expected_keys(100).false_positive_rate(0.01).key_name("line");
        let mut filter = builder.seed(7).kernel(kernel).build().unwrap();
        for key in 0..1000u64 {
            filter.insert(&key).unwrap();
        }
        assert_eq!((filter.kernel(), filter.seed(), filter.stages().len()), (kernel, 7, 4));
        assert!(filter.stages().iter().all(|stage| (stage.kernel(), stage.seed()) == (kernel, 7)));
        let made_for: Vec<_> = filter.stages().iter().map(|stage| (stage.expected_keys(), stage.key_name())).collect();
        assert_eq!(made_for, [100, 200, 400, 800].map(|keys| (Some(keys), "line")));
        assert_eq!(filter.key_name(), "line");
        assert_eq!(1u64.hash_with(filter.hasher()), 1u64.hash_with(&KeyHasher::new(7)));
        assert_eq!(filter.false_positive_rate(), Some(0.01));
        let memory: usize = filter.stages().iter().map(BloomFilter::memory_bytes).sum();
        assert_eq!(filter.memory_bytes(), memory);
        let copy = filter.clone();
        assert!(copy == filter);
        filter.insert(&1000u64).unwrap();
        assert!(copy != filter);
        assert!(format!("{copy:?}").contains(&format!("keys: {}", copy.keys())), "{copy:?}");
    }
}

#[test]
fn bad_values_are_named() {
    let error = |first, rate| ScalableBloomFilter::new(first, rate).unwrap_err();
    assert_eq!(error(0, 0.01), BuildError::NoKeys);
    for value in [0.0, -1.0, 1.0, 1.5, f64::INFINITY] {
        assert_eq!(error(1, value), BuildError::Rate { value });
    }
    assert!(matches!(error(1, f64::NAN), BuildError::Rate { .. }));
    assert_eq!(error(1, 1e-30), BuildError::RateUnreachable { value: 1e-30, floor: 0.5f64.powi(64) });
    // The first stage has an eighth of the rate: 0.1, which takes 4.8852 bits a key by tests/data/fpr.csv, and a little more
    // because one key in 512 collides with another in all 64 bits.
    match error(1 << 55, 0.8) {
        BuildError::OutOfMemory { bytes } => {
            let bits_per_key = bytes as f64 / 2f64.powi(52);
            assert!((4.8852..4.95).contains(&bits_per_key), "{bits_per_key}");
        }
        // A filter of one stage does not exist either.
        BuildError::TooLarge { .. } if usize::BITS == 32 => {}
        error => panic!("{error:?}"),
    }

    let builder = ScalableBloomFilter::builder;
    let sized = || builder().expected_keys(1).false_positive_rate(0.01);
    for builder in [
        builder(),
        builder().expected_keys(1),
        builder().false_positive_rate(0.01),
        sized().memory(1 << 20),
        sized().probes(8),
        builder().memory(64).probes(8),
    ] {
        assert_eq!(builder.build().unwrap_err(), BuildError::NotKeysAndRate);
    }
}

/// A scalable filter that can have only one stage: hashes of 64 bits cannot keep the rate of the next one.
#[test]
fn keys_before_one_that_needs_an_impossible_stage_are_inserted() {
    const FIRST: u64 = 2000;
    let rate = 8e-16 * FIRST as f64 / 1000.0;
    let keys: Vec<u64> = (0..FIRST - 500).flat_map(|key| [key, key]).chain(FIRST..FIRST + 3000).collect();
    let fits = 2 * (FIRST as usize - 500) + 500;

    let mut one_by_one = scalable(FIRST, rate, 0);
    for (i, key) in keys.iter().enumerate() {
        let result = one_by_one.insert(key);
        assert_eq!(result.is_ok(), i < fits, "{i}: {result:?}");
    }
    type Insert = fn(&mut ScalableBloomFilter, &[u64], &mut [bool]) -> Result<usize, BuildError>;
    let by = |insert: Insert| {
        let (mut filter, mut new) = (scalable(FIRST, rate, 0), vec![true; keys.len()]);
        let error = insert(&mut filter, &keys, &mut new).unwrap_err();
        assert!(matches!(error, BuildError::RateUnreachable { value, floor } if value <= floor), "{error}");
        assert!(filter == one_by_one);
        assert_eq!((filter.keys(), filter.stages().len()), (FIRST, 1));
        let expected = |i| i >= fits - 500 && i < fits || i < fits - 500 && i % 2 == 0;
        assert!(new.iter().enumerate().all(|(i, &new)| new == expected(i)));
    };
    by(|filter, keys, new| filter.insert_batch(keys, new));
    by(|filter, keys, new| {
        let hashes: Vec<u64> = keys.iter().map(|&key| key.hash_with(filter.hasher())).collect();
        filter.insert_hashes(&hashes, new)
    });
}

/// The mean rate of filters with seeds of their own, and its standard error: the deviation among the filters, which comes from
/// their crowded blocks and from counting.
fn measured(first: u64, rate: f64, keys: u64, filters: u64, probes: u64) -> (f64, f64, f64) {
    let mut answers = vec![false; keys.max(probes) as usize];
    let all: Vec<u64> = (0..keys + probes).collect();
    let (inserted, absent) = all.split_at(keys as usize);
    let (mut rates, mut expected) = (Vec::new(), 0.0);
    for seed in 0..filters {
        let mut filter = scalable(first, rate, seed);
        filter.insert_batch(inserted, &mut answers[..inserted.len()]).unwrap();
        expected += filter.estimated_fpr() / filters as f64;
        let found = filter.contains_batch(absent, &mut answers[..absent.len()]);
        rates.push(found as f64 / probes as f64);
    }
    let mean = rates.iter().sum::<f64>() / filters as f64;
    let variance = rates.iter().map(|rate| (rate - mean) * (rate - mean)).sum::<f64>() / (filters - 1) as f64;
    (mean, (variance / filters as f64).sqrt(), expected)
}

/// Keys reported as seen while a stage fills up are not counted, so the keys in it have set a few bits more than as many distinct
/// keys would. The rate of the bits is exact for one stage, and its mean is within four standard errors in 9996 of 10,000 runs
/// with other seeds. Without these bits the estimate is 3 to 8 % lower, and the standard error is below 0.4 %.
#[test]
fn the_estimate_of_a_full_stage_is_the_rate_of_its_bits() {
    const KEYS: u64 = 5000;
    const FILTERS: u64 = 48;
    for rate in [0.5, 0.9, 0.99] {
        let filters = (0..FILTERS).map(|seed| {
            let mut filter = scalable(KEYS, rate, seed);
            let mut keys = 0u64..;
            while filter.keys() < KEYS {
                filter.insert(&keys.next().unwrap()).unwrap();
            }
            filter
        });
        let filters: Vec<_> = filters.collect();
        let rates: Vec<f64> = filters.iter().map(ScalableBloomFilter::current_fpr).collect();
        let mean = rates.iter().sum::<f64>() / FILTERS as f64;
        let variance = rates.iter().map(|rate| (rate - mean) * (rate - mean)).sum::<f64>() / (FILTERS - 1) as f64;
        let (error, estimate) = ((variance / FILTERS as f64).sqrt(), filters[0].estimated_fpr());
        println!("{rate}: {mean} ± {error}, estimate {estimate}");
        assert!((mean - estimate).abs() < 4.0 * error, "{rate}: {mean} ± {error}, estimate {estimate}");
        assert!(error < 0.004 * mean, "too few filters to tell: {rate}: {mean} ± {error}");
        let shared = AtomicScalableBloomFilter::from(filters[0].clone());
        assert_eq!(shared.estimated_fpr(), estimate);
    }
}

fn check_rate(first: u64, rate: f64, keys: u64, filters: u64, probes: u64) {
    let (mean, error, expected) = measured(first, rate, keys, filters, probes);
    println!("{first} {rate} {keys}: measured {mean:e} ± {error:e}, model {expected:e}");
    // The stages err together a little less often than the model takes them to: docs/DESIGN.md.
    let excess = 1.0 + 0.05 * rate;
    let sound = expected - 4.0 * error..expected * excess + 4.0 * error;
    assert!(sound.contains(&mean), "measured {mean:e} ± {error:e}, model {expected:e}");
    assert!(error < 0.02 * expected, "too few keys to tell: {mean:e} ± {error:e}");
    assert!(mean < rate && expected < rate);
}

#[test]
fn the_rate_matches_the_model_and_is_below_the_requested_rate() {
    // Four stages, the last one full or half full; 4 million absent keys and more.
    check_rate(10_000, 0.01, 150_000, 32, 200_000);
    check_rate(10_000, 0.01, 110_000, 32, 200_000);
    check_rate(10_000, 1e-3, 150_000, 16, 1_000_000);
}

#[test]
#[ignore = "long"]
fn the_rate_after_many_stages_matches_the_model() {
    // A rate so high that many keys are reported as seen while a stage fills up; ten stages and more.
    check_rate(1000, 0.5, 1_000_000, 32, 100_000);
    check_rate(10_000, 1e-3, 150_000, 64, 1_000_000);
    check_rate(1, 0.1, 100_000, 64, 100_000);
    check_rate(1000, 1e-3, 2_000_000, 32, 1_000_000);
}
