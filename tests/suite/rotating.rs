//! `RotatingBloomFilter`: against sets of keys, against the model of its rate, and with threads.

use crate::workers::on_threads;
use bloomline::{AtomicBloomFilter, BloomFilter, BuildError, Kernel, Key, KeyHasher, RotatingBloomFilter};
use proptest::prelude::*;
use std::collections::VecDeque;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};
use twox_hash::XxHash3_64;

/// The keys of operations are below this number.
const KEYS: u16 = 4000;

/// A set of the keys below [`KEYS`].
#[derive(Clone)]
struct Set {
    has: [bool; KEYS as usize],
    keys: usize,
}

impl Set {
    const EMPTY: Self = Self { has: [false; KEYS as usize], keys: 0 };

    fn insert(&mut self, key: u16) {
        self.keys += usize::from(!self.has[usize::from(key)]);
        self.has[usize::from(key)] = true;
    }
}

/// The definition of a rotating filter, by sets.
struct Replay {
    window: usize,
    rotates_when_full: bool,
    /// The generations that are queried, the current one first.
    generations: VecDeque<Set>,
    /// Keys that were new to their generation.
    arrivals: u64,
    /// The number of arrivals at each key's last insert.
    last: Vec<Option<u64>>,
}

impl Replay {
    fn new(window: u64, generation_count: usize, rotates_when_full: bool) -> Self {
        let generations = vec![Set::EMPTY; generation_count].into();
        let last = vec![None; KEYS.into()];
        Self { window: window as usize, rotates_when_full, generations, arrivals: 0, last }
    }

    fn contains(&self, key: u16) -> bool {
        self.generations.iter().any(|generation| generation.has[usize::from(key)])
    }

    fn rotate(&mut self) {
        self.generations.pop_back();
        self.generations.push_front(Set::EMPTY);
    }

    fn insert(&mut self, key: u16) -> bool {
        if self.generations[0].has[usize::from(key)] {
            self.last[usize::from(key)] = Some(self.arrivals);
            return false;
        }
        let seen = self.contains(key);
        // As many full generations as hold the window, and the current one beside them.
        if self.rotates_when_full && self.generations[0].keys == self.window.div_ceil(self.generations.len() - 1) {
            // Inserted again: a rotation may forget the key.
            self.rotate();
            return self.insert(key);
        }
        self.arrivals += 1;
        self.last[usize::from(key)] = Some(self.arrivals);
        self.generations[0].insert(key);
        !seen
    }

    /// The answers for all keys.
    fn all(&self) -> Vec<bool> {
        let mut all = vec![false; KEYS.into()];
        for generation in &self.generations {
            all.iter_mut().zip(&generation.has).for_each(|(all, has)| *all |= has);
        }
        all
    }
}

#[derive(Clone, Debug)]
enum Operation {
    Insert(u16),
    InsertBatch(Vec<u16>),
    Rotate,
    SaveAndLoad,
    Clear,
}

fn operations() -> impl Strategy<Value = Vec<Operation>> {
    let key = || 0..KEYS;
    // Some batches are longer than a chunk, and have repeats close together.
    let keys = prop_oneof![prop::collection::vec(0..50u16, 0..100), prop::collection::vec(key(), 0..3000)];
    let operation = prop_oneof![
        6 => key().prop_map(Operation::Insert),
        6 => keys.prop_map(Operation::InsertBatch),
        1 => Just(Operation::Rotate),
        1 => Just(Operation::SaveAndLoad),
        1 => Just(Operation::Clear),
    ];
    prop::collection::vec(operation, 0..12)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// At a rate of 1e-12, there is a false positive in one of ten thousand runs of this test.
    #[test]
    fn a_rotating_filter_remembers_what_sets_remember(
        window in prop_oneof![1u64..4, 1u64..3000],
        generation_count in prop_oneof![Just(2), 2..7usize],
        rotates_when_full in prop::bool::weighted(0.8),
        operations in operations(),
    ) {
        // If full generations do not rotate, the window has room for all keys, because a full generation has a higher rate.
        let window = if rotates_when_full { window } else { u64::from(KEYS) * (generation_count as u64 - 1) };
        let builder = RotatingBloomFilter::builder().expected_keys(window).false_positive_rate(1e-12);
        let builder = builder.generations(generation_count as u32).rotate_when_full(rotates_when_full);
        let mut filter = builder.build().unwrap();
        let mut replay = Replay::new(window, generation_count, rotates_when_full);
        // Also keys that are never inserted.
        let all: Vec<u16> = (0..KEYS + 1000).collect();
        let hashes: Vec<u64> = all.iter().map(|key| key.hash_with(filter.hasher())).collect();
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
                    // The guarantee of the last keys by arrivals begins anew.
                    replay.last.fill(None);
                }
                Operation::SaveAndLoad => {
                    let bytes = bytes_of!(filter);
                    prop_assert_eq!(bytes.len(), filter.file_bytes());
                    filter = RotatingBloomFilter::read_from(&bytes[..]).unwrap();
                    prop_assert_eq!(filter.rotations(), 0);
                }
                Operation::Clear => {
                    filter.clear();
                    replay = Replay::new(window, generation_count, rotates_when_full);
                }
            }
            let mut found = vec![false; all.len()];
            let count = filter.contains_batch(&all, &mut found);
            let max = generation_count as u64 * window.div_ceil(generation_count as u64 - 1);
            prop_assert!(count as u64 <= max || !rotates_when_full, "more is remembered than all generations take");
            let mut expected = replay.all();
            expected.resize(all.len(), false);
            prop_assert!(found == expected);
            let mut single = hashes.iter().zip(&found).step_by(7);
            prop_assert!(single.all(|(&hash, found)| filter.contains_hash(hash) == *found));
            let mut last = replay.last.iter().zip(found).filter(|(came, _)| came.is_some_and(|came| replay.arrivals - came < window));
            prop_assert!(last.all(|(_, found)| found), "one of the last keys is forgotten");
        }
    }
}

/// Checks the table of the type's documentation, for loads from half the plan to three times it: a stream of keys, one per
/// millisecond of a simulated clock, checked at every tenth. A generation by time ends when the clock reaches its end.
#[test]
fn the_window_is_as_the_table_states() {
    const PLAN: u64 = 1000;
    for (load, generation_count) in
        [(500, 2), (500, 5), (1000, 2), (1010, 2), (1000, 5), (1500, 3), (3000, 2), (3000, 5)]
    {
        for rotates_when_full in [true, false] {
            let builder = RotatingBloomFilter::builder().expected_keys(PLAN).false_positive_rate(1e-9);
            let filter = builder.generations(generation_count).rotate_when_full(rotates_when_full).build().unwrap();
            // The keys in the window of time. A generation has its share of them.
            let a_generation = load / u64::from(generation_count - 1);
            let (mut began, mut rotations) = (0, 0);
            for key in 0..8 * load {
                if filter.rotations() > rotations {
                    (began, rotations) = (key, filter.rotations());
                }
                if key - began >= a_generation {
                    filter.rotate();
                    (began, rotations) = (key, filter.rotations());
                }
                filter.insert(&key);
                if key % 10 == 0 && key > 3 * load {
                    // The key with this age is the oldest that is found.
                    let age = (0..).find(|age| !filter.contains(&(key - age))).unwrap();
                    // A generation ends when it is full or old, whichever comes first, or only when it is old.
                    let full = PLAN.div_ceil(u64::from(generation_count - 1));
                    let per_generation = if rotates_when_full { full.min(a_generation) } else { a_generation };
                    let (min, max) = (
                        per_generation * u64::from(generation_count - 1),
                        per_generation * u64::from(generation_count),
                    );
                    assert!(
                        (min..=max).contains(&age),
                        "{load} {generation_count} {rotates_when_full}: {age}, {min} to {max}"
                    );
                }
            }
        }
    }
}

#[test]
fn only_an_old_generation_is_rotated_and_only_once() {
    let filter = RotatingBloomFilter::new(1000, 1e-9).unwrap();
    let hour = Duration::from_secs(3600);
    assert!(!filter.rotate_if_older_than(hour) && filter.rotations() == 0);
    assert!(filter.rotate_if_older_than(Duration::ZERO) && filter.rotations() == 1);
    // If many threads see the age at once, one of them rotates. On a busy machine the threads may be so far apart that the next
    // generation reaches the age too.
    let age = Duration::from_millis(100);
    let rotated_by_one = |_| {
        std::thread::sleep(age);
        let (before, rotated, start) = (filter.rotations(), AtomicU32::new(0), Instant::now());
        on_threads(4, |_| _ = rotated.fetch_add(filter.rotate_if_older_than(age).into(), Ordering::Relaxed));
        let (rotated, rotations) = (rotated.into_inner(), filter.rotations() - before);
        assert!(rotated >= 1 && u64::from(rotated) == rotations, "{rotated} {rotations}");
        assert!(rotated == 1 || start.elapsed() >= age, "{rotated} threads rotated");
        rotated == 1
    };
    assert!((0..100).any(rotated_by_one), "never at once");
}

/// Writes a filter as if the file was saved this long ago, by a clock that was ahead by this much.
fn saved_at(filter: &RotatingBloomFilter, ago: Duration, ahead: Duration) -> Vec<u8> {
    let mut bytes = bytes_of!(filter);
    assert_eq!(bytes.len(), filter.file_bytes());
    let field = bytes.windows(4).rposition(|bytes| bytes == [5, 0, 16, 0]).unwrap();
    let saved = u64::from_le_bytes(bytes[field + 12..field + 20].try_into().unwrap());
    bytes[field + 12..field + 20]
        .copy_from_slice(&(saved + ahead.as_nanos() as u64 - ago.as_nanos() as u64).to_le_bytes());
    // The fields are in one block, which follows the header of the last generation and ends with their checksum.
    let last = bytes.windows(8).rposition(|bytes| bytes == b"\x89BLOOM\r\n").unwrap();
    let start = last + 64;
    let checksum = XxHash3_64::oneshot(&bytes[start..start + 56]);
    bytes[start + 56..start + 64].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

/// A filter is restarted far more often than its generations rotate.
#[test]
fn a_filter_forgets_across_restarts() {
    const HOUR: Duration = Duration::from_secs(3600);
    const PAUSE: Duration = Duration::from_secs(600);
    for generation_count in [2, 3, 5] {
        let builder = RotatingBloomFilter::builder().expected_keys(100).false_positive_rate(1e-9);
        let mut filter = builder.generations(generation_count).rotate_when_full(false).build().unwrap();
        // Until it rotates by time, its file has no time.
        assert!(bytes_of!(filter) == bytes_of!(filter));
        filter.rotate_if_older_than(HOUR);
        filter.insert("a");
        // A pause is a little longer than it says, and these tests take less than half an hour.
        for pauses in 1..=6 * generation_count {
            filter = RotatingBloomFilter::read_from(&saved_at(&filter, PAUSE, Duration::ZERO)[..]).unwrap();
            filter.rotate_if_older_than(HOUR);
            let hours = pauses / 6;
            assert_eq!(filter.rotations(), u64::from(pauses % 6 == 0), "{pauses}");
            assert_eq!(filter.contains("a"), hours < generation_count, "{pauses}");
        }
        // If the clock was set back, the time in the file does not count, but the age does.
        for (pause, forward, rotates) in [(5, 0, false), (0, 5, false), (1, 0, true)] {
            filter = RotatingBloomFilter::read_from(&saved_at(&filter, pause * PAUSE, forward * PAUSE)[..]).unwrap();
            assert_eq!(filter.rotate_if_older_than(HOUR), rotates);
        }
    }
}

#[test]
fn estimated_keys_counts_a_remembered_key_once() {
    let filter: RotatingBloomFilter =
        RotatingBloomFilter::builder().expected_keys(100_000).false_positive_rate(1e-3).generations(3).build().unwrap();
    (0..60_000u32).for_each(|key| _ = filter.insert(&key));
    filter.rotate();
    // Half of the keys again, and as many others.
    (30_000..80_000u32).for_each(|key| _ = filter.insert(&key));
    // Ten standard deviations, and the false positives of a rate of 1e-3.
    assert!((filter.estimated_keys() / 80_000.0 - 1.0).abs() < 0.01, "{}", filter.estimated_keys());
}

/// Seeds are fixed. Both generations are full, which is the worst case: at all other times there are fewer keys.
fn check_rate(window: u64, rate: f64, filters: u64, probes: u64) {
    let (mut rates, mut answers) = (Vec::new(), vec![false; probes as usize]);
    let keys: Vec<u64> = (0..2 * window + probes).collect();
    let (inserted, absent) = keys.split_at(2 * window as usize);
    // One generation has p' / (1 + p').
    let both_keep = 1.0 - (1.0 - rate).sqrt();
    let one = BloomFilter::new(window, both_keep / (1.0 + both_keep)).unwrap().expected_fpr(window);
    let expected = 1.0 - (1.0 - one).powi(2);
    for seed in 0..filters {
        let builder = RotatingBloomFilter::builder().expected_keys(window).false_positive_rate(rate).seed(seed);
        let filter = builder.build().unwrap();
        filter.insert_batch(inserted, &mut answers[..inserted.len()]);
        let found = filter.contains_batch(absent, &mut answers);
        rates.push(found as f64 / probes as f64);
        let measured = found as f64 / probes as f64;
        assert!((filter.current_fpr() / measured - 1.0).abs() < 0.1, "{} {measured}", filter.current_fpr());
    }
    let count = filters as f64;
    let mean = rates.iter().sum::<f64>() / count;
    let variance = rates.iter().map(|rate| (rate - mean) * (rate - mean)).sum::<f64>() / (count - 1.0);
    let error = (variance / count).sqrt();
    println!("{window} {rate}: measured {mean:e} ± {error:e}, model {expected:e}");
    // A key that a generation reports as seen takes no permit there, so the model is a little below the measured rate.
    assert!(mean >= expected - 4.0 * error, "measured {mean:e} ± {error:e}, model {expected:e}");
    assert!(mean <= rate + 4.0 * error, "measured {mean:e} ± {error:e}, asked for {rate}");
    assert!(error < 0.02 * expected, "too few keys to tell: {mean:e} ± {error:e}");
    let model = 1.0 - (1.0 / (1.0 + both_keep)).powi(2);
    assert!(expected <= model && expected > 0.97 * model, "{expected} {model}");
}

#[test]
fn the_rate_matches_the_model_and_is_at_most_the_requested_rate() {
    check_rate(20_000, 0.5, 20, 100_000);
    check_rate(20_000, 0.1, 20, 100_000);
    check_rate(20_000, 0.01, 40, 200_000);
    check_rate(50_000, 1e-3, 16, 1_000_000);
}

#[test]
#[ignore = "long"]
fn a_small_rate_matches_the_model() {
    check_rate(50_000, 1e-3, 80, 1_000_000);
}

/// Threads insert the same keys at the same time, over many rotations. In one of a million runs a key is a false positive.
#[test]
fn no_key_is_claimed_twice_in_a_window() {
    const KEYS: u32 = 40_000;
    for threads in [2, 4, 8] {
        for batch in [1, 60] {
            // The window is longer than the distance between the threads.
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
            assert_eq!(lost.into_inner(), 0, "keys that were inserted are not found");
            let claims: Vec<u32> = claims.into_iter().map(AtomicU32::into_inner).collect();
            assert!(claims.iter().all(|&claims| claims <= 1), "a key was claimed twice");
            // The keys of a batch that a thread inserts just as the generations rotate may remain unclaimed.
            let unclaimed = claims.iter().filter(|&&claims| claims == 0).count();
            let max = filter.rotations() as usize * (threads as usize * batch).min(300);
            assert!(
                unclaimed <= max && max < KEYS as usize,
                "{unclaimed} keys were claimed by nobody, at most {max} may be"
            );
            assert!((KEYS - 1000..KEYS).all(|key| filter.contains(&key)));
        }
    }
}

/// Keys that are inserted again and again are in the window at every moment, while it rotates under the readers.
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

/// Repeats take no permits, so a batch of repeats holds none that another thread needs.
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

/// The file in tests/data, which every later version must still read. tests/data/golden.py has its keys.
/// Also the generation that is in no window when the kinds are recorded.
#[test]
fn every_generation_has_the_recorded_kinds() {
    let filter = RotatingBloomFilter::new(10, 0.01).unwrap();
    filter.add_key_kinds(&[1 << 2]);
    for _ in 0..4 {
        filter.insert(&1u64);
        assert_eq!(filter.key_kinds(), [1 << 2]);
        filter.rotate();
    }
}

#[test]
fn the_golden_file_round_trips() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../data/rotating.bloom");
    let loaded = RotatingBloomFilter::load(path).unwrap();
    assert_eq!((loaded.expected_keys(), loaded.seed(), loaded.key_name()), (Some(20), 1, "line"));
    assert!((30..50u64).all(|key| loaded.contains(&key)));
    let builder = RotatingBloomFilter::builder().expected_keys(20).false_positive_rate(0.01).generations(3);
    let built = builder.seed(1).key_name("line").build().unwrap();
    (0..50u64).for_each(|key| _ = built.insert(&key));
    assert!(bytes_of!(built) == std::fs::read(path).unwrap() && bytes_of!(loaded) == std::fs::read(path).unwrap());
}

#[test]
fn a_filter_reports_its_parameters_and_figures() {
    let builder = || RotatingBloomFilter::builder().expected_keys(1000).false_positive_rate(0.01);
    let filter = builder().seed(7).build().unwrap();
    assert_eq!((filter.seed(), filter.expected_keys(), filter.false_positive_rate()), (7, Some(1000), Some(0.01)));
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
