//! Signatures of sets of grams. The fraction of equal values in two signatures estimates the Jaccard similarity.
//!
//! The algorithm is fast similarity sketching, from Dahlgaard, Knudsen and Thorup, "Fast Similarity Sketching", FOCS
//! 2017 (arXiv 1704.04370), section 2. crates/text/DESIGN.md compares it with others.

use alloc::vec::Vec;
use bloomline::KeyHasher;

/// An empty slot. No throw has this value, because no round has this number.
const EMPTY: u64 = u64::MAX;

/// Computes the signature of one or more grams, which may repeat, in any order.
///
/// In each round, each gram throws a random number into a random slot, and a slot keeps the smallest number of the
/// first round that reached it. Then one round for each slot follows, in which all grams throw into that slot, to fill
/// slots that are still empty. The rounds end when no slot is empty.
///
/// In each slot, every gram of the union of two sets is equally likely to have the smallest number. So the probability
/// that both signatures have the same value is the Jaccard similarity.
pub(super) fn sign(grams: &mut Vec<u64>, values: usize, signature: &mut Vec<u64>) {
    signature.clear();
    signature.resize(values, EMPTY);
    let mut empty = values;
    // The sum that earlier rounds have added to the state of each gram's random numbers. The initial state is the gram.
    let mut added = 0;
    for round in 0..2 * values as u64 {
        for gram in &*grams {
            let number = random(&mut gram.wrapping_add(added));
            let slot = match round.checked_sub(values as u64) {
                None => ((u128::from(number) * values as u128) >> 64) as usize,
                Some(slot) => slot as usize,
            };
            let current = signature[slot];
            empty -= usize::from(current == EMPTY);
            // The round is in the high bits, so the first round is the smallest.
            signature[slot] = current.min(round << 48 | number >> 16);
        }
        if empty == 0 {
            return;
        }
        // As many distinct grams would have filled all slots. Repeats change nothing, and would be thrown in each
        // round.
        if round == 2 && grams.len() > 4 * values {
            grams.sort_unstable();
            grams.dedup();
        }
        random(&mut added);
    }
}

/// Returns the next of wyhash's random numbers. Each call adds the same constant to the state.
#[inline(always)]
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0xA076_1D64_78BD_642F);
    KeyHasher::mix(*state, *state ^ 0xE703_7ED1_A0B4_28DB)
}
