//! loom models of the register's insert: under every interleaving the answers match a sequential order of the calls
//! that keeps the order of each thread. Two inserts in more than one step are wrong, and the models detect them. See
//! src/filter/atomic/loom.rs.

use super::{Geometry, RegisterBloomFilter, locate, word_and_mask};
use crate::sync::Ordering;
use loom::sync::Arc;
use loom::thread;
use std::vec::Vec;

type InsertFn = fn(&RegisterBloomFilter, u64) -> bool;

const REAL: InsertFn = RegisterBloomFilter::insert_hash;

const GEOMETRY: Geometry = Geometry { units: 8, probes: 2 };

fn mask(hash: u64) -> u64 {
    word_and_mask(GEOMETRY, hash).1
}

/// Hashes of one word, two bits each: a, b, and one whose bits are one of a's and one of b's.
fn hashes() -> [u64; 3] {
    let mut in_word =
        (1u64..).map(|i| i.wrapping_mul(0x9E37_79B9_7F4A_7C15)).filter(|&hash| word_and_mask(GEOMETRY, hash).0 == 0);
    let a = in_word.by_ref().find(|&hash| mask(hash).count_ones() == 2).unwrap();
    let b = in_word.by_ref().find(|&hash| (mask(hash) | mask(a)).count_ones() == 4).unwrap();
    let shares = |hash, other| (mask(hash) & mask(other)).count_ones() == 1;
    let c = in_word.find(|&hash| shares(hash, a) && shares(hash, b)).unwrap();
    [a, b, c]
}

/// Returns true if the answers of the threads' inserts match one order of them, with `bits` already set.
fn is_linearizable(bits: u64, threads: &[&[(u64, bool)]]) -> bool {
    let next = |i: usize| {
        let Some((&(hash, new), after)) = threads[i].split_first() else { return false };
        let mut rest = threads.to_vec();
        rest[i] = after;
        (bits & mask(hash) != mask(hash)) == new && is_linearizable(bits | mask(hash), &rest)
    };
    threads.iter().all(|thread| thread.is_empty()) || (0..threads.len()).any(next)
}

/// Races threads. Each inserts its hashes, by their indices in [`hashes`], one after the other.
fn race(preemptions: usize, insert: InsertFn, threads: &'static [&'static [usize]]) {
    let hashes = hashes();
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(move || {
        let filter = Arc::new(RegisterBloomFilter::builder().memory(64).probes(2).build().unwrap());
        let run = move |filter: &RegisterBloomFilter, keys: &[usize]| -> Vec<(u64, bool)> {
            keys.iter().map(|&key| (hashes[key], insert(filter, hashes[key]))).collect()
        };
        let others: Vec<_> = threads[1..]
            .iter()
            .map(|keys| {
                let filter = Arc::clone(&filter);
                thread::spawn(move || run(&filter, keys))
            })
            .collect();
        let mut answers = std::vec![run(&filter, threads[0])];
        answers.extend(others.into_iter().map(|thread| thread.join().unwrap()));
        let answers: Vec<&[(u64, bool)]> = answers.iter().map(Vec::as_slice).collect();
        assert!(is_linearizable(0, &answers), "no order explains {answers:x?}");
        let inserted = answers.iter().copied().flatten().fold(0, |bits, &(hash, _)| bits | mask(hash));
        let (word, _) = locate(GEOMETRY, &filter.0.blocks, hashes[0]);
        assert_eq!(word.load(Ordering::Relaxed), inserted, "a bit was lost");
    });
}

#[test]
fn two_inserts_of_a_key_are_linearizable() {
    race(8, REAL, &[&[0], &[0]]);
}

#[test]
fn repeated_inserts_of_overlapping_keys_are_linearizable() {
    race(8, REAL, &[&[0, 2, 1], &[1, 2, 0]]);
}

#[test]
fn three_inserts_of_a_key_are_linearizable() {
    race(3, REAL, &[&[0], &[0], &[0]]);
}

#[test]
fn inserts_of_a_key_whose_bits_others_set_are_linearizable() {
    race(3, REAL, &[&[0], &[1], &[2, 2]]);
}

/// Decides by the value that was read, and not by the value that the write replaced.
fn the_read_decides(filter: &RegisterBloomFilter, hash: u64) -> bool {
    let (word, mask) = locate(filter.0.params.geometry, &filter.0.blocks, hash);
    let new = word.load(Ordering::Acquire) & mask != mask;
    word.fetch_or(mask, Ordering::AcqRel);
    new
}

/// Sets bit by bit, and claims the key if this call set any.
fn bit_by_bit(filter: &RegisterBloomFilter, hash: u64) -> bool {
    let (word, mask) = locate(filter.0.params.geometry, &filter.0.blocks, hash);
    let bits = (0..64).map(|i| 1 << i).filter(|bit| mask & bit != 0);
    bits.fold(false, |new, bit| word.fetch_or(bit, Ordering::AcqRel) & bit == 0 || new)
}

#[test]
#[should_panic = "no order explains"]
fn the_models_catch_an_insert_decided_by_its_read() {
    race(3, the_read_decides, &[&[0], &[0]]);
}

#[test]
#[should_panic = "no order explains"]
fn the_models_catch_bits_set_one_by_one() {
    race(3, bit_by_bit, &[&[0], &[0]]);
}
