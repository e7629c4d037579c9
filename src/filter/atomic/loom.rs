//! loom models of the atomic filter: the real insert under every interleaving that loom tries, and three wrong rules for the
//! claim, which the models detect. Run them with `RUSTFLAGS="--cfg loom"`; docs/DEVELOPMENT.md has the command, and
//! .ci/README.md its cost.

use crate::filter::atomic::AtomicBloomFilter;
use crate::filter::bloom::BloomFilter;
use crate::kernel::block::{LANES, Pattern};
use crate::layout::storage::AtomicBlock;
use crate::sync::Ordering;
use loom::sync::Arc;
use loom::thread;
use std::vec::Vec;

/// The claim rule under test.
type InsertFn = fn(&AtomicBlock, Pattern) -> bool;

const REAL: InsertFn = |block, pattern| block.insert(pattern, 1);

/// Returns a filter of one block with 4 probes: a key is one bit in each lane.
fn filter() -> AtomicBloomFilter {
    AtomicBloomFilter::builder().memory(64).probes(4).build().unwrap()
}

/// Returns a key by its four (word, position) pairs.
fn key(lanes: [(usize, u64); LANES]) -> Pattern {
    let lane = |(upper, position): (usize, u64)| (upper as u64) << 15 | position;
    let first = (0..LANES).fold(0, |first, g| first | lane(lanes[g]) << (16 * g));
    Pattern { first }
}

fn same_word_keys() -> [Pattern; 2] {
    // Lane 0: another word. Lane 1: the same bit. Lane 2: the same word, another bit. Lane 3: the same bit.
    [key([(0, 1), (0, 2), (0, 3), (0, 4)]), key([(1, 1), (0, 2), (0, 9), (0, 4)])]
}

/// Runs `run` under every interleaving with at most `preemptions` preemptions.
fn model(preemptions: usize, run: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(run);
}

/// Races the inserts of `keys`, one thread each, under loom. The number of `true`s of each distinct key is passed to `check`;
/// the final words must hold all their bits.
fn race(preemptions: usize, insert: InsertFn, keys: &[Pattern], check: fn(claims: &[usize])) {
    let keys: Vec<Pattern> = keys.to_vec();
    model(preemptions, move || {
        let filter = Arc::new(filter());
        let threads: Vec<_> = keys[1..]
            .iter()
            .map(|&key| {
                let filter = Arc::clone(&filter);
                thread::spawn(move || insert(&filter.0.blocks.as_slice()[0], key))
            })
            .collect();
        let mut won = std::vec![insert(&filter.0.blocks.as_slice()[0], keys[0])];
        won.extend(threads.into_iter().map(|thread| thread.join().unwrap()));

        let mut distinct: Vec<(u64, usize)> = Vec::new();
        let mut expected = [0; 8];
        for (key, won) in keys.iter().zip(won) {
            match distinct.iter_mut().find(|(first, _)| *first == key.first) {
                Some((_, claims)) => *claims += usize::from(won),
                None => distinct.push((key.first, usize::from(won))),
            }
            for (word, mask) in key.words_and_masks(1) {
                expected[word] |= mask;
            }
        }
        let words = filter.0.blocks.as_slice()[0].0.iter().map(|word| word.load(Ordering::Relaxed));
        assert!(words.eq(expected), "a bit was lost");
        let claims: Vec<usize> = distinct.into_iter().map(|(_, claims)| claims).collect();
        check(&claims);
    });
}

fn exactly_one(claims: &[usize]) {
    assert!(claims.iter().all(|&claims| claims == 1), "claims: {claims:?}");
}

fn at_most_one(claims: &[usize]) {
    assert!(claims.iter().all(|&claims| claims <= 1), "claims: {claims:?}");
}

#[test]
fn one_of_two_threads_claims_a_key() {
    let [a, _] = same_word_keys();
    race(8, REAL, &[a, a], exactly_one);
}

#[test]
fn one_of_three_threads_claims_a_key() {
    let [a, _] = same_word_keys();
    race(3, REAL, &[a, a, a], exactly_one);
}

#[test]
fn each_of_two_overlapping_keys_is_claimed_at_most_once() {
    let [a, b] = same_word_keys();
    race(8, REAL, &[a, b], at_most_one);
}

#[test]
fn a_key_is_claimed_at_most_once_beside_an_overlapping_key() {
    let [a, b] = same_word_keys();
    race(3, REAL, &[a, a, b], at_most_one);
}

/// Claims the key if this call set any bit: two threads that each set some of the bits both win.
fn any_flipped_bit_wins(block: &AtomicBlock, pattern: Pattern) -> bool {
    pattern
        .words_and_masks(1)
        .into_iter()
        .fold(false, |new, (word, mask)| block.0[word].fetch_or(mask, Ordering::AcqRel) & mask != mask || new)
}

/// Claims the key by the first word that lacks bits, not by the last one.
fn first_lacking_word_decides(block: &AtomicBlock, pattern: Pattern) -> bool {
    let mut claimed = None;
    for (word, mask) in pattern.words_and_masks(1) {
        if block.0[word].load(Ordering::Acquire) & mask != mask {
            let flipped = block.0[word].fetch_or(mask, Ordering::AcqRel) & mask != mask;
            claimed.get_or_insert(flipped);
        }
    }
    claimed.unwrap_or(false)
}

/// Claims the key by the linearizing word, but writes it before the words below it.
fn linearizing_word_is_written_first(block: &AtomicBlock, pattern: Pattern) -> bool {
    let chosen = pattern.words_and_masks(1);
    let missing = chosen.map(|(word, mask)| block.0[word].load(Ordering::Acquire) & mask != mask);
    let Some(linearizing) = missing.iter().rposition(|&is_missing| is_missing) else { return false };
    let (word, mask) = chosen[linearizing];
    let claimed = block.0[word].fetch_or(mask, Ordering::AcqRel) & mask != mask;
    for (word, mask) in &chosen[..linearizing] {
        block.0[*word].fetch_or(*mask, Ordering::AcqRel);
    }
    claimed
}

#[test]
#[should_panic = "claims: [2]"]
fn the_models_catch_any_flipped_bit_wins() {
    let [a, _] = same_word_keys();
    race(3, any_flipped_bit_wins, &[a, a], exactly_one);
}

#[test]
#[should_panic = "claims: [2]"]
fn the_models_catch_the_other_order_of_the_scan() {
    let [a, _] = same_word_keys();
    race(3, first_lacking_word_decides, &[a, a], exactly_one);
}

#[test]
#[should_panic = "claims: [2]"]
fn the_models_catch_the_other_order_of_the_writes() {
    let [a, _] = same_word_keys();
    race(3, linearizing_word_is_written_first, &[a, a], exactly_one);
}

/// Arbitrary hashes whose keys share one block.
const HASHES: [u64; 3] = [0x0123_4567_89AB_CDEF, 0x9E37_79B9_7F4A_7C15, 0xC2B2_AE3D_27D4_EB4F];

#[test]
fn a_thread_that_observes_an_insert_finds_the_key() {
    model(4, || {
        let filter = Arc::new(filter());
        let (tell, received) = loom::sync::mpsc::channel();
        let inserting = {
            let filter = Arc::clone(&filter);
            thread::spawn(move || {
                filter.insert_hash(HASHES[0]);
                tell.send(()).unwrap();
            })
        };
        filter.insert_hash(HASHES[1]);
        received.recv().unwrap();
        assert!(filter.contains_hash(HASHES[0]));
        inserting.join().unwrap();
    });
}

#[test]
fn a_key_that_was_found_is_found_again() {
    model(4, || {
        let filter = Arc::new(filter());
        let inserting = {
            let filter = Arc::clone(&filter);
            thread::spawn(move || filter.insert_hash(HASHES[0]))
        };
        let first = filter.contains_hash(HASHES[0]);
        let second = filter.contains_hash(HASHES[0]);
        assert!(second || !first);
        inserting.join().unwrap();
    });
}

#[test]
fn a_frozen_filter_has_all_inserts_batches_and_unions() {
    model(2, || {
        let filter = Arc::new(filter());
        let other = self::filter();
        other.insert_hash(HASHES[1]);
        let threads = [
            {
                let filter = Arc::clone(&filter);
                thread::spawn(move || {
                    filter.insert_batch(&[HASHES[0], HASHES[2]], &mut [false; 2]);
                })
            },
            {
                let filter = Arc::clone(&filter);
                thread::spawn(move || filter.union(&other).unwrap())
            },
        ];
        filter.insert_hash(HASHES[2]);
        for thread in threads {
            thread.join().unwrap();
        }
        let frozen = BloomFilter::from(Arc::try_unwrap(filter).unwrap());
        assert!(frozen.contains(&HASHES[0]) && frozen.contains(&HASHES[2]));
        assert!(frozen.contains_hash(HASHES[1]) && frozen.contains_hash(HASHES[2]));
    });
}
