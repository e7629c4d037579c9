//! The tokens of a text, and their hashes.

use crate::scan::{Newline, Scan};
use crate::token::TokenHasher;
use alloc::vec::Vec;
use bloomline::KeyHasher;
use core::str::from_utf8;
use unicode_segmentation::UnicodeSegmentation;

/// Returns the tokens of a text: the pieces between two word boundaries of [UAX
/// #29](https://unicode.org/reports/tr29/), without white space. A token is a word, a number, a mark of punctuation, an
/// emoji, or a character of a script without spaces (Chinese, Japanese, Thai, Lao) with its marks. A run of Katakana or
/// Hangul is one word.
///
/// ```
/// let words: Vec<_> = bloomline_text::words("It's 3.14, isn't it?").collect();
/// assert_eq!(words, ["It's", "3.14", ",", "isn't", "it", "?"]);
/// ```
pub fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split_word_bounds().filter(|token| !token.chars().all(char::is_whitespace))
}

/// Appends the hash of each token of a text. If the text is not UTF-8, each valid piece is a text of its own, and each
/// invalid sequence is one token.
pub(crate) fn hashes(text: &[u8], hasher: &KeyHasher, into: &mut Vec<u64>) {
    hashes_and_newlines(text, hasher, into, &mut Vec::new());
}

/// Appends the hashes as [`hashes`] does, and the newlines.
pub(crate) fn hashes_and_newlines(text: &[u8], hasher: &KeyHasher, into: &mut Vec<u64>, newlines: &mut Vec<Newline>) {
    let hasher = TokenHasher::new(hasher);
    let mut rest = text;
    while !rest.is_empty() {
        let (valid, invalid, after) = match from_utf8(rest) {
            Ok(valid) => (valid, &[][..], &[][..]),
            Err(error) => {
                let (valid, after) = rest.split_at(error.valid_up_to());
                let (invalid, after) = after.split_at(error.error_len().unwrap_or(after.len()));
                (from_utf8(valid).expect("it is valid up to there"), invalid, after)
            }
        };
        let (offset, first) = (text.len() - rest.len(), newlines.len());
        Scan::new(valid, hasher, into, newlines).run();
        if offset > 0 {
            newlines[first..].iter_mut().for_each(|newline| newline.offset += offset);
        }
        if !invalid.is_empty() {
            into.push(hasher.hash_range(invalid, 0, invalid.len()));
        }
        rest = after;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::String;
    use proptest::prelude::*;

    /// A character of every class, including pictograms, and white space of every class. More characters of some
    /// classes follow, because ASCII is scanned by other code.
    const OF_EACH_CLASS: [char; 27] = [
        'a', 'א', '1', 'カ', '_', ':', ',', '.', '\'', '"', '🇩', ' ', '\n', '\u{301}', '\u{200D}', '\t', '!', '😀',
        'ℹ', '\u{202F}', '\r', '中', '\u{AD}', '\u{A0}', '\u{3000}', '·', 'é',
    ];

    fn hash(token: &[u8], hasher: &KeyHasher) -> u64 {
        if token.len() > 16 {
            return hasher.bytes(token);
        }
        let mut bytes = [0; 16];
        bytes[..token.len()].copy_from_slice(token);
        let (low, high) = (u128::from_le_bytes(bytes) as u64, (u128::from_le_bytes(bytes) >> 64) as u64);
        KeyHasher::mix(low ^ hasher.secret()[1], high ^ hasher.secret()[2])
    }

    /// Returns the tokens of each paragraph by the library for word boundaries alone.
    fn specification(text: &[u8], hasher: &KeyHasher) -> (Vec<u64>, Vec<Newline>) {
        let (mut tokens, mut newlines) = (Vec::new(), Vec::new());
        let starts: Vec<usize> = (0..text.len()).filter(|&offset| offset == 0 || text[offset] == b'\n').collect();
        for (i, &start) in starts.iter().enumerate() {
            let paragraph = &text[start..starts.get(i + 1).copied().unwrap_or(text.len())];
            if paragraph[0] == b'\n' {
                newlines.push(Newline { offset: start, tokens: tokens.len() });
            }
            for chunk in paragraph.utf8_chunks() {
                tokens.extend(words(chunk.valid()).map(|token| hash(token.as_bytes(), hasher)));
                if !chunk.invalid().is_empty() {
                    tokens.push(hash(chunk.invalid(), hasher));
                }
            }
        }
        (tokens, newlines)
    }

    #[track_caller]
    fn check(text: &[u8], hasher: &KeyHasher) {
        let (mut tokens, mut newlines) = (Vec::new(), Vec::new());
        hashes_and_newlines(text, hasher, &mut tokens, &mut newlines);
        assert!((tokens, newlines) == specification(text, hasher), "{:?}", String::from_utf8_lossy(text));
    }

    /// Checks all strings of `length` characters of `alphabet`, each after `before`.
    fn check_all(alphabet: &[char], length: u32, before: &str) {
        let hasher = KeyHasher::new(0);
        for number in 0..alphabet.len().pow(length) {
            let chars = (0..length).map(|digit| alphabet[number / alphabet.len().pow(digit) % alphabet.len()]);
            let text: String = before.chars().chain(chars).collect();
            check(text.as_bytes(), &hasher);
        }
    }

    #[test]
    fn all_strings_of_four_classes_have_the_reference_tokens() {
        check_all(&OF_EACH_CLASS, 4, "");
    }

    #[test]
    #[ignore = "millions of strings"]
    fn all_strings_of_five_classes_have_the_reference_tokens() {
        check_all(&OF_EACH_CLASS[..20], 5, "");
    }

    #[test]
    fn tokens_are_joined_across_blocks() {
        let ascii = ['a', '1', '.', ':', ',', ' ', '\n', '!', 'é'];
        for length in 59..=64 {
            for filler in ["x", "7", " ", ".", "x y. "] {
                let before: String = filler.chars().cycle().take(length).collect();
                check_all(&ascii, 4, &before);
            }
        }
    }

    #[test]
    fn every_character_has_the_reference_tokens() {
        let hasher = KeyHasher::new(1);
        // Planes 4 to 13 have no characters.
        for c in ('\0'..='\u{3FFFF}').chain('\u{E0000}'..=char::MAX) {
            // Between all contexts that distinguish classes.
            let text = alloc::format!(
                "{c} {c}{c}a{c}a1{c}1 ア{c}ア א{c}א \u{200D}{c}! {c}\u{301}{c} 🇦{c}🇦\n{c}\u{301}a\u{200D}{c}_{c}.{c} א\"{c}"
            );
            check(text.as_bytes(), &hasher);
        }
    }

    /// Characters of each class, with more of ASCII than of others, and invalid bytes.
    fn text(pieces: core::ops::Range<usize>) -> impl Strategy<Value = Vec<u8>> {
        let each = prop::sample::select(&OF_EACH_CLASS[..]).prop_map(|c| String::from(c).into_bytes());
        let ascii = prop::collection::vec(prop::sample::select(&b"aZ09_.:,;' \n\r\t!-\""[..]), 1..40);
        let words = prop::sample::select(
            &["the ", "word", "слово ", "ไทย", "हिन्दी", "한국어", "日本", "👩‍👩‍👧", "العربية", "it's ", "3,000.5 "][..],
        )
        .prop_map(Vec::from);
        let piece = prop_oneof![
            4 => each,
            4 => ascii,
            2 => words,
            1 => any::<char>().prop_map(|c| String::from(c).into_bytes()),
            1 => prop::collection::vec(0x80..=0xFFu8, 1..4),
        ];
        prop::collection::vec(piece, pieces).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn any_text_has_the_reference_tokens(text in text(0..40), seed: u64) {
            check(&text, &KeyHasher::new(seed));
        }
    }

    #[test]
    fn long_texts_have_the_reference_tokens() {
        let hasher = KeyHasher::new(0);
        for piece in [
            "a",
            "1,",
            "a.",
            " ",
            "\n",
            "é",
            "中",
            "\u{301}",
            "🇩",
            "a é",
            "long stretches of ASCII before 中文 and after it; ",
        ] {
            check(piece.repeat((1 << 20) / piece.len()).as_bytes(), &hasher);
        }
        check(&[&b"a".repeat(1 << 20)[..], "é".as_bytes(), &b"a ".repeat(1 << 20)].concat(), &hasher);
        check(&b"\xFF".repeat(1 << 16), &hasher);
    }
}
