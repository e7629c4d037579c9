//! The hashes of grams, rolling over the hashes of tokens.

use alloc::vec::Vec;
use bloomline::KeyHasher;

/// Adds the hash of each window of `ngram` tokens; of all tokens if they are fewer, but at least `min_ngram` and not none.
pub(crate) fn hashes(tokens: &[u64], ngram: usize, min_ngram: usize, hasher: &KeyHasher, into: &mut Vec<u64>) {
    let [secret0, secret1, _, secret3] = hasher.secret();
    let base = secret3 & !7 | 5;
    let finish = |sum: u64| KeyHasher::mix(sum ^ secret0, secret1);
    let add = |sum: u64, token: &u64| sum.wrapping_mul(base).wrapping_add(*token);
    if tokens.len() < ngram {
        if tokens.len() >= min_ngram.max(1) {
            into.push(finish(tokens.iter().fold(0, add)));
        }
        return;
    }
    let (first, rest) = tokens.split_at(ngram);
    let mut sum = first.iter().fold(0, add);
    into.push(finish(sum));
    // The base to the power of `ngram`.
    let out = first.iter().fold(1u64, |power, _| power.wrapping_mul(base));
    for (gone, token) in tokens.iter().zip(rest) {
        sum = add(sum, token).wrapping_sub(gone.wrapping_mul(out));
        into.push(finish(sum));
    }
}
