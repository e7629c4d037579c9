//! The claim's orderings, checked against every execution that the memory model of C11 allows (Batty, Owens, Sarkar, Sewell,
//! Weber, "Mathematizing C++ Concurrency", POPL 2011; without fences and without SeqCst). loom cannot see them: its
//! read-modify-writes always read the newest value, so its models pass with Relaxed everywhere.
//!
//! An execution is the write that each load reads, and the order in which each word is modified. All are enumerated. Those that
//! the model forbids are dropped, and the others show which thread claimed the key. Every write of an insert is a
//! read-modify-write, so the release sequence of a write consists of all later writes in the word's order.
//!
//! C11 lets a load read a value that depends on a later write of its own thread, as on CPUs that reorder the two. RC11 forbids
//! it (Lahav, Vafeiadis, Kang, Hur, Dreyer, "Repairing Sequential Consistency in C/C++11", PLDI 2017). Two claims need just
//! that, so under RC11 one claim holds with any orderings, and a check of them by RC11 would detect nothing.

use super::{LINEARIZING_ORDERING, PRECEDING_ORDERING, SCAN_ORDERING};
use crate::sync::Ordering::{self, AcqRel, Acquire, Relaxed, Release};
use std::collections::BTreeSet;
use std::{vec, vec::Vec};

/// The orderings of an insert: its loads, its writes before the linearizing one, and the linearizing write.
#[derive(Clone, Copy)]
struct Orderings {
    scan: Ordering,
    preceding: Ordering,
    linearizing: Ordering,
}

const REAL: Orderings =
    Orderings { scan: SCAN_ORDERING, preceding: PRECEDING_ORDERING, linearizing: LINEARIZING_ORDERING };

#[derive(Clone, Copy)]
struct Event {
    thread: usize,
    word: usize,
    ordering: Ordering,
    /// The result of a load on which its thread's next steps depend: true if the word lacks bits of its mask.
    found: Option<bool>,
    /// The positions in the word's order of the write that it reads, and of its own write, if any. 0 is the initial value.
    reads: usize,
    writes: Option<usize>,
}

/// Returns the events of an insert that found the words in `missing` (a bit for each) to lack bits.
fn insert(thread: usize, words: usize, missing: usize, orderings: Orderings) -> Vec<Event> {
    let event = Event { thread, word: 0, ordering: orderings.scan, found: None, reads: 0, writes: None };
    let mut events: Vec<_> =
        (0..words).map(|word| Event { word, found: Some(missing >> word & 1 == 1), ..event }).collect();
    let lacks: Vec<_> = (0..words).filter(|word| missing >> word & 1 == 1).collect();
    events.extend(lacks.iter().enumerate().map(|(i, &word)| {
        let ordering = if i + 1 == lacks.len() { orderings.linearizing } else { orderings.preceding };
        Event { word, ordering, writes: Some(0), ..event }
    }));
    events
}

/// Returns true if the model allows the execution. `events` are in each thread's order.
fn allowed(events: &[Event]) -> bool {
    // Row i has a bit for each event that comes after event i, by its thread's order or by synchronisation.
    let mut happens_before = vec![0u32; events.len()];
    for (i, a) in events.iter().enumerate() {
        for (j, b) in events.iter().enumerate() {
            let in_order = a.thread == b.thread && i < j;
            let releases = matches!(a.ordering, Release | AcqRel);
            let acquires = matches!(b.ordering, Acquire | AcqRel);
            let synchronises = a.thread != b.thread
                && a.word == b.word
                && releases
                && acquires
                && a.writes.is_some_and(|position| position <= b.reads);
            happens_before[i] |= u32::from(in_order || synchronises) << j;
        }
    }
    for through in 0..events.len() {
        for i in 0..events.len() {
            if happens_before[i] >> through & 1 == 1 {
                happens_before[i] |= happens_before[through];
            }
        }
    }
    if (0..events.len()).any(|i| happens_before[i] >> i & 1 == 1) {
        return false;
    }
    // Coherence: a later event neither reads nor writes an earlier position in a word's order.
    events.iter().enumerate().all(|(i, a)| {
        let later = events.iter().enumerate().filter(|(j, b)| happens_before[i] >> j & 1 == 1 && a.word == b.word);
        later.into_iter().all(|(_, b)| {
            a.writes.unwrap_or(a.reads) <= b.reads
                && b.writes
                    .is_none_or(|position| a.writes.is_none_or(|earlier| earlier < position) && a.reads < position)
        })
    })
}

/// Enumerates every choice of one value below each limit.
fn choices(limits: &[usize], take: &mut impl FnMut(&[usize])) {
    let mut choice = vec![0; limits.len()];
    if limits.contains(&0) {
        return;
    }
    loop {
        take(&choice);
        let Some(position) = (0..limits.len()).find(|&i| choice[i] + 1 < limits[i]) else { return };
        choice[..position].fill(0);
        choice[position] += 1;
    }
}

fn permutations(items: &[usize]) -> Vec<Vec<usize>> {
    if items.is_empty() {
        return vec![vec![]];
    }
    let with_first = |i: usize| {
        let rest: Vec<_> = [&items[..i], &items[i + 1..]].concat();
        permutations(&rest).into_iter().map(move |rest| [vec![items[i]], rest].concat())
    };
    (0..items.len()).flat_map(with_first).collect()
}

/// Returns the sets of threads that claim their key, in every allowed execution. `keys[t][w]` are the bits of thread t's key in
/// word w.
fn outcomes(keys: &[&[u8]], orderings: Orderings) -> BTreeSet<Vec<bool>> {
    let words = keys[0].len();
    let mut outcomes = BTreeSet::new();
    choices(&vec![1 << words; keys.len()], &mut |missing| {
        let mut events: Vec<Event> =
            (0..keys.len()).flat_map(|thread| insert(thread, words, missing[thread], orderings)).collect();
        let orders: Vec<_> = (0..words)
            .map(|word| {
                let writes = |&i: &usize| events[i].word == word && events[i].writes.is_some();
                permutations(&(0..events.len()).filter(writes).collect::<Vec<_>>())
            })
            .collect();
        choices(&orders.iter().map(Vec::len).collect::<Vec<_>>(), &mut |order| {
            // The contents of a word after each write.
            let mut values = vec![vec![0]; words];
            for word in 0..words {
                for (position, &i) in orders[word][order[word]].iter().enumerate() {
                    (events[i].reads, events[i].writes) = (position, Some(position + 1));
                    let value = values[word][position] | keys[events[i].thread][word];
                    values[word].push(value);
                }
            }
            let lacks = |event: &Event, position: usize| {
                let mask = keys[event.thread][event.word];
                values[event.word][position] & mask != mask
            };
            let loads: Vec<usize> = (0..events.len()).filter(|&i| events[i].found.is_some()).collect();
            let sources: Vec<Vec<usize>> = loads
                .iter()
                .map(|&i| {
                    let found = events[i].found.expect("a load");
                    (0..values[events[i].word].len()).filter(|&position| lacks(&events[i], position) == found).collect()
                })
                .collect();
            let claims = |thread: usize| {
                // The last event of a thread that writes is its linearizing write.
                let last = events.iter().rfind(|event| event.thread == thread).expect("loads at least");
                last.writes.is_some() && lacks(last, last.reads)
            };
            let claims: Vec<bool> = (0..keys.len()).map(claims).collect();
            let mut execution = events.clone();
            choices(&sources.iter().map(Vec::len).collect::<Vec<_>>(), &mut |source| {
                for (load, &i) in loads.iter().enumerate() {
                    execution[i].reads = sources[load][source[load]];
                }
                if allowed(&execution) {
                    outcomes.insert(claims.clone());
                }
            });
        });
    });
    outcomes
}

/// Returns the highest and the lowest number of threads that claim the key of the first `rival_threads` threads.
fn claims(keys: &[&[u8]], rival_threads: usize, orderings: Orderings) -> (usize, usize) {
    let outcomes = outcomes(keys, orderings);
    let counts = || outcomes.iter().map(|claims| claims[..rival_threads].iter().filter(|&&won| won).count());
    (counts().max().expect("an execution"), counts().min().expect("an execution"))
}

const FOUR_WORDS: &[u8] = &[1; 4];
const TWO_WORDS: &[u8] = &[1; 2];

#[test]
fn one_of_two_threads_claims_a_key_of_four_words() {
    assert_eq!(claims(&[FOUR_WORDS; 2], 2, REAL), (1, 1));
}

#[test]
fn one_of_three_threads_claims_a_key_of_two_words() {
    assert_eq!(claims(&[TWO_WORDS; 3], 3, REAL), (1, 1));
}

/// The other key has a bit of the first word and another one beside it, and one of its own in the second.
#[test]
fn at_most_one_of_two_threads_claims_a_key_beside_another_key() {
    let other: &[u8] = &[3, 2];
    assert_eq!(claims(&[TWO_WORDS, TWO_WORDS, other], 2, REAL), (1, 1));
    // All bits of the other key are bits of this one: it may complete the linearizing word, and then no thread claims.
    let subset: &[u8] = &[0, 1];
    assert_eq!(claims(&[TWO_WORDS, TWO_WORDS, subset], 2, REAL), (1, 0));
}

/// The orderings that the proof needs: Acquire for the loads, and Release for the linearizing write.
const WEAKEST_SUFFICIENT: Orderings = Orderings { scan: Acquire, preceding: Relaxed, linearizing: Release };

#[test]
fn no_ordering_is_needed_but_those_of_the_proof() {
    assert_eq!(claims(&[FOUR_WORDS; 2], 2, WEAKEST_SUFFICIENT), (1, 1));
    assert_eq!(claims(&[TWO_WORDS; 3], 3, WEAKEST_SUFFICIENT), (1, 1));
}

#[test]
fn each_ordering_of_the_proof_is_needed() {
    let weakened = |orderings| {
        [
            Orderings { scan: Relaxed, ..orderings },
            Orderings { linearizing: Relaxed, ..orderings },
            Orderings { linearizing: Acquire, ..orderings },
        ]
    };
    for orderings in [weakened(WEAKEST_SUFFICIENT), weakened(REAL)].concat() {
        assert_eq!(claims(&[FOUR_WORDS; 2], 2, orderings).0, 2);
        assert_eq!(claims(&[TWO_WORDS; 3], 3, orderings).0, 2);
    }
}
