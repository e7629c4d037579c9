//! The hashes of grams: a rolling hash over the hashes of tokens.

use alloc::vec::Vec;
use bloomline::KeyHasher;

/// Appends the hash of each window of `ngram` tokens. Fewer tokens are one gram, if there are at least `min_ngram` and
/// at least one.
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
    let oldest_factor = first.iter().fold(1u64, |power, _| power.wrapping_mul(base));
    for (oldest, token) in tokens.iter().zip(rest) {
        sum = add(sum, token).wrapping_sub(oldest.wrapping_mul(oldest_factor));
        into.push(finish(sum));
    }
}
