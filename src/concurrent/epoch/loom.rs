//! loom models of the epoch: one claim for a key while the epoch advances, and four wrong rules, which the models detect. The
//! filters are words, in which a key is one bit, so that loom tries every interleaving.

use super::{EpochCounter, raise};
use crate::sync::{AtomicU64, Ordering, fence};
use loom::sync::Arc;
use loom::thread;
use std::vec::Vec;

/// The rules under test.
#[derive(Clone, Copy)]
struct Rules {
    validate_claim: fn(&EpochCounter, u64) -> bool,
    advance_to: fn(&EpochCounter, u64),
}

const REAL: Rules = Rules { validate_claim: EpochCounter::validate_claim, advance_to: EpochCounter::advance_to };

struct Filters {
    words: [AtomicU64; 3],
    epoch: EpochCounter,
    rules: Rules,
}

impl Filters {
    /// Inserts as `AtomicScalableBloomFilter` does.
    fn insert(&self) -> bool {
        let mut from = 0;
        loop {
            let epoch = self.epoch.current();
            if (from..=epoch).any(|i| self.words[i as usize].load(Ordering::Relaxed) != 0) {
                return false;
            }
            if self.words[epoch as usize].fetch_or(1, Ordering::AcqRel) != 0 {
                return false;
            }
            if (self.rules.validate_claim)(&self.epoch, epoch) {
                return true;
            }
            from = epoch + 1;
        }
    }
}

/// Races inserts of one key. Each thread first advances the epoch to its number in `epochs`.
fn race(rules: Rules, epochs: &'static [u64]) {
    let mut builder = loom::model::Builder::new();
    // Three threads and more have too many interleavings.
    builder.preemption_bound = (epochs.len() > 2).then_some(3);
    builder.check(move || {
        let filters = Arc::new(Filters {
            words: core::array::from_fn(|_| AtomicU64::new(0)),
            epoch: EpochCounter::new(0),
            rules,
        });
        let run = |epoch: u64, filters: &Filters| {
            if epoch > 0 {
                (filters.rules.advance_to)(&filters.epoch, epoch);
            }
            filters.insert()
        };
        let threads: Vec<_> = epochs[1..]
            .iter()
            .map(|&epoch| {
                let filters = Arc::clone(&filters);
                thread::spawn(move || run(epoch, &filters))
            })
            .collect();
        let mut claims = usize::from(run(epochs[0], &filters));
        claims += threads.into_iter().map(|thread| usize::from(thread.join().unwrap())).sum::<usize>();
        assert_eq!(claims, 1, "claims");
    });
}

#[test]
fn a_key_is_claimed_once_if_one_thread_advances_the_epoch() {
    race(REAL, &[0, 1]);
}

#[test]
fn a_key_is_claimed_once_if_both_threads_advance_the_epoch() {
    race(REAL, &[1, 2]);
}

#[test]
fn one_of_three_threads_claims_a_key_while_the_epoch_advances() {
    race(REAL, &[0, 1, 2]);
    race(REAL, &[0, 0, 1]);
}

fn validates_without_a_fence(epoch: &EpochCounter, own: u64) -> bool {
    let open = epoch.open.load(Ordering::Acquire);
    open == own || {
        epoch.advance_to(open);
        false
    }
}

fn advances_without_a_fence(epoch: &EpochCounter, to: u64) {
    raise(&epoch.open, to);
    raise(&epoch.current, to);
}

fn advances_before_it_closes(epoch: &EpochCounter, to: u64) {
    raise(&epoch.current, to);
    fence(Ordering::SeqCst);
    raise(&epoch.open, to);
}

#[test]
#[should_panic = "claims"]
fn the_models_catch_a_claim_that_always_counts() {
    race(Rules { validate_claim: |_, _| true, ..REAL }, &[0, 1]);
}

#[test]
#[should_panic = "claims"]
fn the_models_catch_a_missing_fence_after_a_claim() {
    race(Rules { validate_claim: validates_without_a_fence, ..REAL }, &[0, 1]);
}

#[test]
#[should_panic = "claims"]
fn the_models_catch_a_missing_fence_between_the_steps() {
    race(Rules { advance_to: advances_without_a_fence, ..REAL }, &[0, 1, 0]);
}

#[test]
#[should_panic = "claims"]
fn the_models_catch_the_other_order_of_the_steps() {
    race(Rules { advance_to: advances_before_it_closes, ..REAL }, &[0, 1, 0]);
}
