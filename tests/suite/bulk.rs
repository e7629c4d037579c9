//! Bulk calls and iterators: the bits are the same as after inserting the keys one by one.
#![cfg(feature = "rayon")]

use bloomline::{BloomFilter, Hashes, Kernel, KeyHasher};
use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The number of keys from which on all threads insert.
const MANY: u64 = 1 << 18;
/// Keys that a thread checks before it inserts those of its range.
const PICKED: u64 = 1 << 12;
/// Keys that all threads hash before they insert them.
const ROUND: u64 = 1 << 19;
/// Keys that a thread takes from a parallel iterator at a time.
const TAKEN: u64 = 1 << 17;

/// Fewer blocks than threads, as many, and numbers that threads divide or not.
const BLOCKS: [usize; 6] = [1, 7, 8, 1025, 16_391, 40_000];

const SEED: u64 = 7;

fn build(kernel: Kernel, blocks: usize, probes: u32) -> BloomFilter {
    BloomFilter::builder().memory(blocks * 64).probes(probes).seed(SEED).kernel(kernel).build().unwrap()
}

/// The keys 0, 1, 2, … and their hashes.
struct Input {
    keys: Vec<u64>,
    hashes: Vec<u64>,
}

impl Input {
    fn new(keys: u64) -> Self {
        let hasher = KeyHasher::new(SEED);
        let keys: Vec<u64> = (0..keys).collect();
        let hashes = keys.iter().map(|key| hasher.bytes(&key.to_le_bytes())).collect();
        Self { keys, hashes }
    }
}

/// An empty filter, the first keys of an input and their hashes, and the filter after single inserts of these keys.
struct Case<'a> {
    input: &'a Input,
    empty: BloomFilter,
    keys: &'a [u64],
    hashes: &'a [u64],
    full: BloomFilter,
}

impl<'a> Case<'a> {
    fn new(empty: BloomFilter, input: &'a Input, keys: u64) -> Self {
        let full = empty.clone();
        let mut case = Self { input, empty, keys: &[], hashes: &[], full };
        case.extend_to(keys);
        case
    }

    /// Takes more keys of the input.
    fn extend_to(&mut self, keys: u64) {
        let (before, after) = (self.keys.len(), keys as usize);
        (self.keys, self.hashes) = (&self.input.keys[..after], &self.input.hashes[..after]);
        self.hashes[before..].iter().for_each(|&hash| _ = self.full.insert_hash(hash));
    }

    fn after(&self, insert: impl FnOnce(&mut BloomFilter)) -> BloomFilter {
        let mut filter = self.empty.clone();
        insert(&mut filter);
        filter
    }

    #[track_caller]
    fn check_bulk(&self) {
        assert!(self.after(|filter| filter.par_insert(self.keys)) == self.full, "par_insert");
        assert!(self.after(|filter| filter.par_insert(&Hashes::new(self.hashes))) == self.full, "par_insert of hashes");
        assert!(self.after(|filter| filter.par_extend(self.keys.par_iter())) == self.full, "par_extend");
    }

    #[track_caller]
    fn check_extend(&self) {
        assert!(self.after(|filter| filter.extend(self.keys.iter())) == self.full, "extend");
    }

    /// Checks inserts into a filter that already has keys.
    #[track_caller]
    fn check_second_half(&self) {
        let half = self.keys.len() / 2;
        let halves = self.after(|filter| {
            filter.insert_hashes(&self.hashes[..half], &mut vec![false; half]);
            filter.par_insert(&self.keys[half..]);
        });
        assert!(halves == self.full, "par_insert of the second half");
    }
}

fn pool(threads: usize) -> ThreadPool {
    ThreadPoolBuilder::new().num_threads(threads).build().unwrap()
}

#[test]
fn every_kernel_sets_the_bits_of_single_inserts() {
    let input = Input::new(3000);
    for kernel in Kernel::available() {
        for probes in [4, 8, 12, 16] {
            for blocks in BLOCKS {
                for keys in [0, 1, 63, 64, 65, 3000] {
                    let case = Case::new(build(kernel, blocks, probes), &input, keys);
                    case.check_extend();
                    case.check_bulk();
                    case.check_second_half();
                }
            }
        }
    }
}

#[test]
fn pools_of_any_size_set_the_bits_of_single_inserts() {
    let (input, pools) = (Input::new(MANY + 1), [1, 2, 8].map(pool));
    for blocks in BLOCKS {
        // More than a batch of the iterators, and not a whole number of them.
        for keys in [1023, 1024, 1025, MANY + 1] {
            let case = Case::new(build(Kernel::detect(), blocks, 8), &input, keys);
            case.check_extend();
            case.check_second_half();
            pools.iter().for_each(|pool| pool.install(|| case.check_bulk()));
        }
    }
}

/// The filter is so large that the last keys still set bits.
#[test]
fn batches_around_the_ends_of_rounds_insert_every_key() {
    const MOST: u64 = 2 * ROUND + 100;
    let (input, pool) = (Input::new(MOST), pool(8));
    let mut case = Case::new(build(Kernel::detect(), 100_000, 4), &input, 0);
    for keys in [MANY - 1, MANY, 70 * PICKED - 1, 70 * PICKED, 70 * PICKED + 1, ROUND - 1, ROUND, MOST] {
        case.extend_to(keys);
        pool.install(|| case.check_bulk());
    }
}

/// All hashes fall in the first or the last range, or around the ends of the others.
#[test]
fn keys_at_the_ends_of_ranges_are_inserted() {
    const BLOCKS: u64 = 100_003;
    let scattered = |i: u64| i.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    // The least hash of a block, and those beside it.
    let edge = |i: u64| {
        ((u128::from(i % BLOCKS) << 64).div_ceil(u128::from(BLOCKS)) as u64).wrapping_add(i % 3).wrapping_sub(1)
    };
    let (low, high) = (|i| scattered(i) >> 9, |i| !(scattered(i) >> 9));
    for hash in [&low as &dyn Fn(u64) -> u64, &high, &edge] {
        let hashes: Vec<u64> = (0..3 * BLOCKS).map(hash).collect();
        let empty = build(Kernel::detect(), BLOCKS as usize, 8);
        let mut one_by_one = empty.clone();
        hashes.iter().for_each(|&hash| _ = one_by_one.insert_hash(hash));
        for threads in [2, 3, 8] {
            let mut filter = empty.clone();
            pool(threads).install(|| filter.par_insert(&Hashes::new(&hashes)));
            assert!(filter == one_by_one, "{threads}");
        }
    }
}

#[test]
fn collected_filters_are_sized_for_their_keys() {
    for keys in [0, 1, 1000, (1 << 16) - 1, 1 << 16, (1 << 16) + 1, TAKEN + 1, 8 * TAKEN + 1] {
        let mut expected = BloomFilter::new(keys.max(1), 0.01).unwrap();
        (0..keys).for_each(|key| _ = expected.insert(&key));
        assert!(BloomFilter::from_iter(0..keys) == expected);
        for threads in [1, 2, 8] {
            assert!(pool(threads).install(|| BloomFilter::from_par_iter(0..keys)) == expected);
        }
    }
}

#[test]
fn bulk_inserts_accept_strings() {
    let keys: Vec<String> = (0..5000).map(|i| format!("https://example.org/{i}")).collect();
    let empty = build(Kernel::detect(), 600, 8);
    let mut expected = empty.clone();
    keys.iter().for_each(|key| _ = expected.insert(key));
    let [mut bulk, mut extended, mut par_extended] = [(); 3].map(|()| empty.clone());
    bulk.par_insert(&keys);
    extended.extend(keys.iter().map(String::as_str));
    par_extended.par_extend(keys.into_par_iter());
    assert!(bulk == expected && extended == expected && par_extended == expected);
}

#[test]
fn bulk_queries_answer_like_single_queries() {
    let (input, pools) = (Input::new(50_000), [1, 2, 8].map(pool));
    for kernel in Kernel::available() {
        // The number of threads does not divide these; batches of the largest filter prefetch.
        for blocks in [1, 1025, 40_000] {
            // Around the length of a task, 2^14.
            for keys in [0, 1, (1 << 14) - 1, 1 << 14, (1 << 14) + 1, 50_000] {
                let filter = Case::new(build(kernel, blocks, 8), &input, keys / 2).full;
                let (keys, hashes) = (&input.keys[..keys as usize], &input.hashes[..keys as usize]);
                let expected: Vec<bool> = hashes.iter().map(|&hash| filter.contains_hash(hash)).collect();
                let there = expected.iter().filter(|&&found| found).count();
                for pool in &pools {
                    let mut found = vec![false; hashes.len()];
                    assert_eq!(pool.install(|| filter.par_contains(&Hashes::new(hashes), &mut found)), there);
                    assert!(found == expected);
                    found.iter_mut().for_each(|found| *found = !*found);
                    assert_eq!(pool.install(|| filter.par_contains(keys, &mut found)), there);
                    assert!(found == expected);
                }
            }
        }
    }
}

#[test]
fn bulk_queries_panic_on_unequal_lengths() {
    let filter = build(Kernel::detect(), 2, 8);
    for length in [0, 2, 4] {
        let mut found = vec![false; length];
        let by_hash: &dyn Fn(&mut [bool]) -> usize = &|found| filter.par_contains(&Hashes::new(&[1, 2, 3]), found);
        let by_key: &dyn Fn(&mut [bool]) -> usize = &|found| filter.par_contains(&[1u64, 2, 3], found);
        for query in [by_hash, by_key] {
            let panic = catch_unwind(AssertUnwindSafe(|| query(&mut found))).unwrap_err();
            let message = panic.downcast_ref::<String>().unwrap();
            assert_eq!(*message, format!("a batch of 3 keys needs as many answers, not {length}"));
            assert_eq!(found, vec![false; length]);
        }
    }
}

#[test]
fn populate_changes_no_bit() {
    let input = Input::new(1000);
    for blocks in [1, 63, 64, 65, 100_000] {
        let case = Case::new(build(Kernel::detect(), blocks, 8), &input, 1000);
        let mut filter = case.full.clone();
        filter.populate();
        assert!(filter == case.full, "{blocks}");
        assert!(
            case.after(|filter| {
                filter.populate();
                filter.extend(case.keys)
            }) == case.full,
            "{blocks}"
        );
    }
}
