//! loom models of the turn: one claim for a key while its turn passes on, and four wrong rules, which the models detect. The
//! filters are words, in which a key is one bit, so that loom tries every interleaving.

use super::Turn;
use crate::sync::{AtomicU64, Ordering, fence};
use loom::sync::Arc;
use loom::thread;
use std::vec::Vec;

/// The rules under test.
#[derive(Clone, Copy)]
struct Rules {
    counts: fn(&Turn, u64) -> bool,
    pass_to: fn(&Turn, u64),
}

const REAL: Rules = Rules { counts: Turn::counts, pass_to: Turn::pass_to };

struct Filters {
    words: [AtomicU64; 3],
    turn: Turn,
    rules: Rules,
}

impl Filters {
    /// Inserts as `AtomicScalableBloomFilter` does.
    fn insert(&self) -> bool {
        let mut from = 0;
        loop {
            let turn = self.turn.current();
            if (from..=turn).any(|i| self.words[i as usize].load(Ordering::Relaxed) != 0) {
                return false;
            }
            if self.words[turn as usize].fetch_or(1, Ordering::AcqRel) != 0 {
                return false;
            }
            if (self.rules.counts)(&self.turn, turn) {
                return true;
            }
            from = turn + 1;
        }
    }
}

/// Races inserts of one key. Each thread passes the turn so far before it inserts.
fn race(rules: Rules, turns: &'static [u64]) {
    let mut builder = loom::model::Builder::new();
    // Three threads and more have too many interleavings.
    builder.preemption_bound = (turns.len() > 2).then_some(3);
    builder.check(move || {
        let filters =
            Arc::new(Filters { words: core::array::from_fn(|_| AtomicU64::new(0)), turn: Turn::new(0), rules });
        let run = |turn: u64, filters: &Filters| {
            if turn > 0 {
                (filters.rules.pass_to)(&filters.turn, turn);
            }
            filters.insert()
        };
        let threads: Vec<_> = turns[1..]
            .iter()
            .map(|&turn| {
                let filters = Arc::clone(&filters);
                thread::spawn(move || run(turn, &filters))
            })
            .collect();
        let mut claims = usize::from(run(turns[0], &filters));
        claims += threads.into_iter().map(|thread| usize::from(thread.join().unwrap())).sum::<usize>();
        assert_eq!(claims, 1, "claims");
    });
}

#[test]
fn one_thread_passes_the_turn_on() {
    race(REAL, &[0, 1]);
}

#[test]
fn both_threads_pass_the_turn_on() {
    race(REAL, &[1, 2]);
}

#[test]
fn three_threads_and_two_turns() {
    race(REAL, &[0, 1, 2]);
    race(REAL, &[0, 0, 1]);
}

fn counts_without_a_fence(turn: &Turn, in_turn: u64) -> bool {
    let open = turn.open.load(Ordering::Acquire);
    open == in_turn || {
        turn.pass_to(open);
        false
    }
}

fn passes_without_a_fence(turn: &Turn, to: u64) {
    turn.open.fetch_max(to, Ordering::AcqRel);
    turn.current.fetch_max(to, Ordering::AcqRel);
}

fn passes_before_it_closes(turn: &Turn, to: u64) {
    turn.current.fetch_max(to, Ordering::AcqRel);
    fence(Ordering::SeqCst);
    turn.open.fetch_max(to, Ordering::AcqRel);
}

#[test]
#[should_panic = "claims"]
fn the_models_catch_a_claim_that_always_counts() {
    race(Rules { counts: |_, _| true, ..REAL }, &[0, 1]);
}

#[test]
#[should_panic = "claims"]
fn the_models_catch_a_missing_fence_after_a_claim() {
    race(Rules { counts: counts_without_a_fence, ..REAL }, &[0, 1]);
}

#[test]
#[should_panic = "claims"]
fn the_models_catch_a_missing_fence_between_the_steps() {
    race(Rules { pass_to: passes_without_a_fence, ..REAL }, &[0, 1, 0]);
}

#[test]
#[should_panic = "claims"]
fn the_models_catch_the_other_order_of_the_steps() {
    race(Rules { pass_to: passes_before_it_closes, ..REAL }, &[0, 1, 0]);
}
