//! Signatures: values of a set of grams, of which two sets share about as many as their Jaccard similarity says.
//!
//! This is fast similarity sketching, from Dahlgaard, Knudsen and Thorup, "Fast Similarity Sketching", FOCS 2017
//! (arXiv 1704.04370), section 2. text/DESIGN.md compares it with others.

use alloc::vec::Vec;
use bloomline::KeyHasher;

/// No gram has this value: it is of no round.
const EMPTY: u64 = u64::MAX;

/// Makes `signature` the signature of one or more grams, which may repeat, in any order.
///
/// In each round, each gram throws a random number into a random place, and the place keeps the least number of the first
/// round that reaches it. A round per place follows, in which all grams throw into that place, for places that are empty even
/// then. The rounds end when no place is empty.
///
/// In a place, every gram of the union of two sets is equally likely to have the least number. So the chance that both
/// signatures have it is the Jaccard similarity.
pub(super) fn sign(grams: &mut Vec<u64>, values: usize, signature: &mut Vec<u64>) {
    signature.clear();
    signature.resize(values, EMPTY);
    let mut empty = values;
    // What the rounds so far have added to the state of each gram's random numbers, which begins as the gram.
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
            // The round stands in the high bits, so the first round is the least.
            signature[slot] = current.min(round << 48 | number >> 16);
        }
        if empty == 0 {
            return;
        }
        // So many different grams would have filled all places. Repeats change nothing, and would be thrown in each round.
        if round == 2 && grams.len() > 4 * values {
            grams.sort_unstable();
            grams.dedup();
        }
        random(&mut added);
    }
}

/// wyhash's random numbers. Each call adds the same number to the state.
#[inline(always)]
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0xA076_1D64_78BD_642F);
    KeyHasher::mix(*state, *state ^ 0xE703_7ED1_A0B4_28DB)
}
