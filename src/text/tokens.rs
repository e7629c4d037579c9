//! The tokens of a text, and their hashes.

use crate::hash::{KeyHasher, multiply_fold};
use alloc::vec::Vec;
use unicode_segmentation::UnicodeSegmentation;

/// The tokens of a text: what lies between two word boundaries of [UAX #29](https://unicode.org/reports/tr29/), without
/// white space. A token is a word, a number, a mark of punctuation, an emoji, or a letter of a script that has no spaces.
///
/// ```
/// let words: Vec<_> = bloomline::text::words("It's 3.14, isn't it?").collect();
/// assert_eq!(words, ["It's", "3.14", ",", "isn't", "it", "?"]);
/// ```
pub fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split_word_bounds().filter(|token| !token.chars().all(char::is_whitespace))
}

/// Adds the hash of each token of a text. Where it is not UTF-8, each valid stretch is a text of its own, and each invalid
/// sequence is one token.
pub(crate) fn hashes(text: &[u8], hasher: &KeyHasher, into: &mut Vec<u64>) {
    for chunk in text.utf8_chunks() {
        into.extend(words(chunk.valid()).map(|token| hash(token.as_bytes(), hasher)));
        if !chunk.invalid().is_empty() {
            into.push(hash(chunk.invalid(), hasher));
        }
    }
}

/// The hash of a token.
fn hash(token: &[u8], hasher: &KeyHasher) -> u64 {
    if token.len() > 16 {
        return hasher.bytes(token);
    }
    let mut bytes = [0; 16];
    bytes[..token.len()].copy_from_slice(token);
    let [low, high] = [&bytes[..8], &bytes[8..]].map(|half| u64::from_le_bytes(half.try_into().expect("8 bytes")));
    let [_, secret1, secret2, _] = hasher.secret();
    multiply_fold(low ^ secret1, high ^ secret2)
}
