//! Tokens of ASCII, 64 bytes at once: a bit for each byte, as simdjson has it.

use super::scan::Scan;
use wide::u8x16;

/// Bytes in a block.
const BLOCK: usize = 64;

/// The bytes of a block by their classes, the first in the lowest bit.
struct Masks {
    letters: u64,
    digits: u64,
    /// Letters, digits and underscores.
    words: u64,
    /// What joins two letters.
    letter_mids: u64,
    /// What joins two digits.
    digit_mids: u64,
    white: u64,
    newlines: u64,
    not_ascii: u64,
}

impl Masks {
    #[inline(always)]
    fn new(block: &[u8; BLOCK]) -> Self {
        let (quarters, _) = block.as_chunks::<16>();
        let quarters: [u8x16; 4] = core::array::from_fn(|i| u8x16::new(quarters[i]));
        let bits = |of: &dyn Fn(u8x16) -> u8x16| {
            let bits = quarters.map(|bytes| u64::from(of(bytes).to_bitmask()));
            bits[3] << 48 | bits[2] << 32 | bits[1] << 16 | bits[0]
        };
        let is = |bytes: u8x16, byte| bytes.simd_eq(u8x16::splat(byte));
        let within = |bytes: u8x16, first: u8, last: u8| {
            let from_first = bytes - u8x16::splat(first);
            from_first.min(u8x16::splat(last - first)).simd_eq(from_first)
        };
        let letters = bits(&|bytes| within(bytes | u8x16::splat(0x20), b'a', b'z'));
        let digits = bits(&|bytes| within(bytes, b'0', b'9'));
        Self {
            letters,
            digits,
            words: letters | digits | bits(&|bytes| is(bytes, b'_')),
            letter_mids: bits(&|bytes| is(bytes, b'.') | is(bytes, b'\'') | is(bytes, b':')),
            digit_mids: bits(&|bytes| is(bytes, b'.') | is(bytes, b'\'') | is(bytes, b',') | is(bytes, b';')),
            white: bits(&|bytes| is(bytes, b' ') | within(bytes, b'\t', b'\r')),
            newlines: bits(&|bytes| is(bytes, b'\n')),
            not_ascii: bits(&|bytes| bytes),
        }
    }
}

/// Whether a byte is part of a word, or can join two parts.
fn joins(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'\'' | b':' | b',' | b';')
}

/// The last boundary in `from..=end` that is one whatever stands from `end` on. All bytes there are ASCII, and `from` is a boundary.
///
/// Between two bytes of ASCII nothing but words and spaces can be joined (WB3d, WB5 to WB13), or the end of a line of two bytes,
/// both of which are white. What stands behind the two matters only if the second can join two parts, and then only for
/// words. A mark that stands at `end` is joined to the byte before it (WB4), unless that ends a line (WB3a).
fn last_boundary(bytes: &[u8], from: usize, end: usize) -> usize {
    if end > from && matches!(bytes[end - 1], b'\n'..=b'\r') {
        return end;
    }
    let joined = |before, after| joins(before) && joins(after) || (before, after) == (b' ', b' ');
    (from + 1..end).rev().find(|&at| !joined(bytes[at - 1], bytes[at])).unwrap_or(from)
}

impl Scan<'_> {
    /// The tokens from `from` on, which is a boundary, to a boundary before the first character that is not ASCII. Returns that
    /// boundary and the place of the character.
    pub(super) fn ascii(&mut self, from: usize) -> Option<(usize, usize)> {
        let bytes = self.text.as_bytes();
        let mut at = from;
        // Where the token begins that is open at the end of a block.
        let mut open = from;
        // The bit before each block's first.
        let (mut in_token, mut in_word, mut letter_before, mut digit_before) = (0, 0, 0, 0);
        let mut tail;
        loop {
            let rest = &bytes[at..];
            let (block, next) = match rest.first_chunk::<BLOCK>() {
                Some(block) => (block, rest.get(BLOCK).copied().unwrap_or(b' ')),
                None => {
                    if rest.is_empty() && in_token == 0 {
                        return None;
                    }
                    tail = [b' '; BLOCK];
                    tail[..rest.len()].copy_from_slice(rest);
                    (&tail, b' ')
                }
            };
            let masks = Masks::new(block);
            let letter_after = u64::from(next.is_ascii_alphabetic()) << 63;
            let digit_after = u64::from(next.is_ascii_digit()) << 63;
            let between_letters = (masks.letters << 1 | letter_before) & (masks.letters >> 1 | letter_after);
            let between_digits = (masks.digits << 1 | digit_before) & (masks.digits >> 1 | digit_after);
            let words = masks.words | masks.letter_mids & between_letters | masks.digit_mids & between_digits;
            let tokens = !masks.white;
            let goes_on = words & (words << 1 | in_word);
            let mut starts = tokens & !goes_on;
            let mut ends = (tokens << 1 | in_token) & !goes_on;
            let mut newlines = masks.newlines;
            let mut stop = None;
            if masks.not_ascii != 0 || !next.is_ascii() {
                let place = at + masks.not_ascii.trailing_zeros() as usize;
                // An open token begins at a boundary too.
                let boundary = last_boundary(bytes, if in_token == 0 { from } else { open }, place);
                // Up to the boundary, of which the block may have nothing.
                let most = boundary.checked_sub(at).map_or(0, |bits| !(!1u64).checked_shl(bits as u32).unwrap_or(0));
                ends &= most;
                newlines &= most;
                stop = Some((boundary, place));
            }
            while newlines != 0 {
                let bit = newlines.trailing_zeros();
                self.newline_after(at + bit as usize, (ends & u64::MAX >> (63 - bit)).count_ones() as usize);
                newlines &= newlines - 1;
            }
            if in_token == 0 {
                open = at + starts.trailing_zeros() as usize;
                starts &= starts.wrapping_sub(1);
            }
            while ends != 0 {
                self.token(open, at + ends.trailing_zeros() as usize);
                ends &= ends - 1;
                open = at + starts.trailing_zeros() as usize;
                starts &= starts.wrapping_sub(1);
            }
            if stop.is_some() {
                return stop;
            }
            (in_token, in_word) = (tokens >> 63, words >> 63);
            (letter_before, digit_before) = (masks.letters >> 63, masks.digits >> 63);
            // The bytes behind the end are white.
            at = (at + BLOCK).min(bytes.len());
        }
    }
}
