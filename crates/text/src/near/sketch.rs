//! Sketches of sets: a lower bound of the number of grams that two sets do not share.
//!
//! A sketch stores, for each of many cells, the parity of the number of grams in it. If the parities of two sets differ, a gram
//! in the cell is in only one of them. So the number of cells that differ is at most the number of grams in only one set.

use alloc::vec::Vec;

/// The maximum number of words of a sketch.
const MAX_WORDS: usize = 1 << 9;

/// Returns the number of words in the sketch of a set with this number of grams, a power of two: four to eight bits for
/// each gram, so that few differences of similar sets collide.
pub(super) fn words(grams: usize) -> usize {
    (grams / 16).next_power_of_two().min(MAX_WORDS)
}

/// Appends the sketch of a set.
pub(super) fn push(grams: &[u64], sketches: &mut Vec<u64>) {
    let (start, words) = (sketches.len(), words(grams.len()));
    sketches.resize(start + words, 0);
    for gram in grams {
        let cell = *gram as usize % (64 * words);
        sketches[start + cell / 64] ^= 1 << (cell % 64);
    }
}

/// Returns a lower bound of the number of grams in only one of two sets, from their sketches.
pub(super) fn difference(a: &[u64], b: &[u64]) -> usize {
    let (long, short) = if a.len() < b.len() { (b, a) } else { (a, b) };
    // A cell of the shorter sketch has the grams of all cells whose numbers are equal modulo its length.
    let folded = |word: usize| long.iter().skip(word).step_by(short.len()).fold(0, |parity, word| parity ^ word);
    let differing = short.iter().enumerate().map(|(word, parity)| (parity ^ folded(word)).count_ones() as usize);
    differing.sum()
}
