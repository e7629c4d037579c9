//! Tokens in blocks of 64 bytes, without a branch for each character.

use crate::class::{self, *};
use crate::masks::{BLOCK, Masks, bits, continuations};
use crate::scan::{Scan, Token};
use wide::u8x16;

/// State carried from one block to the next: one bit each, for the last character of the block.
#[derive(Clone, Copy, Default)]
struct Carry {
    token: u64,
    letter: u64,
    digit: u64,
    /// A letter, a digit, a connector, or a mark of punctuation that joins two of them.
    word: u64,
    katakana: u64,
}

/// The characters of a block that are not ASCII, and the part of the block that was classified.
struct NonAscii {
    /// Bytes that continue the token of the byte before.
    continues: u64,
    /// Marks of punctuation that join the characters on both sides.
    joining: u64,
    katakana: u64,
    /// 1 if the character after the block is a letter.
    letter_after: u64,
    digit_after: u64,
    /// The number of bytes of the block that hold complete characters.
    bytes: usize,
    /// The offset in the text of the first character that [`scan_chars`](Scan::scan_chars) has to handle.
    stop: Option<usize>,
}

// The roles of a character, as a bit set.
const IS_LETTER: u8 = 1;
const IS_DIGIT: u8 = 2;
const IS_WHITE: u8 = 4;
const IS_KATAKANA: u8 = 8;
const JOINS_LETTERS: u8 = 16;
const JOINS_DIGITS: u8 = 32;
const IS_MARK: u8 = 64;
/// A rare character with rules of its own, left to [`scan_chars`](Scan::scan_chars).
const IS_RARE: u8 = 128;

/// The roles of each class.
const ROLES: [u8; 256] = {
    let mut roles = [0; 256];
    let mut class = 0;
    while class < 256 {
        roles[class] = match class as u8 & CLASS {
            LETTER => IS_LETTER,
            NUMBER => IS_DIGIT,
            KATAKANA => IS_KATAKANA,
            MID_LETTER => JOINS_LETTERS,
            MID_NUMBER => JOINS_DIGITS,
            MID_BOTH => JOINS_LETTERS | JOINS_DIGITS,
            MARK => IS_MARK,
            HEBREW | CONNECTOR | FLAG | NEWLINE | JOINER => IS_RARE,
            _ if class as u8 & WHITE != 0 => IS_WHITE,
            _ => 0,
        };
        class += 1;
    }
    roles
};

impl<T: Token> Scan<'_, T> {
    /// Scans tokens from the boundary `from` to a boundary before the first character that only
    /// [`scan_chars`](Self::scan_chars) handles. Returns that boundary and the offset of the character, or `None` at
    /// the end of the text.
    pub(crate) fn scan_blocks(&mut self, from: usize) -> Option<(usize, usize)> {
        let bytes = self.text.as_bytes();
        let mut offset = from;
        // The start of the token that is still open at the end of a block.
        let mut token_start = from;
        let mut before = Carry::default();
        let mut tail;
        loop {
            let rest = &bytes[offset..];
            let (block, next) = match rest.first_chunk::<BLOCK>() {
                Some(block) => (block, rest.get(BLOCK).copied().unwrap_or(b' ')),
                None => {
                    if rest.is_empty() && before.token == 0 {
                        return None;
                    }
                    tail = [b' '; BLOCK];
                    tail[..rest.len()].copy_from_slice(rest);
                    (&tail, b' ')
                }
            };
            let mut masks = Masks::new(block);
            let mid_is_last = (masks.letter_mids | masks.digit_mids) >> 63 != 0;
            let non_ascii = if masks.not_ascii != 0 || before.katakana != 0 || mid_is_last && !next.is_ascii() {
                self.classify_non_ascii(offset, block, &mut masks, before)
            } else {
                NonAscii {
                    continues: 0,
                    joining: 0,
                    katakana: 0,
                    letter_after: u64::from(next.is_ascii_alphabetic()),
                    digit_after: u64::from(next.is_ascii_digit()),
                    bytes: BLOCK,
                    stop: None,
                }
            };
            let last = non_ascii.bytes as u32 - 1;
            let Masks { letters, digits, .. } = masks;
            let between_letters = (letters << 1 | before.letter) & (letters >> 1 | non_ascii.letter_after << last);
            let between_digits = (digits << 1 | before.digit) & (digits >> 1 | non_ascii.digit_after << last);
            let words = letters
                | digits
                | masks.connectors
                | non_ascii.joining
                | masks.letter_mids & between_letters
                | masks.digit_mids & between_digits;
            let tokens = !masks.white;
            let continues = words & (words << 1 | before.word) | non_ascii.continues;
            let mut starts = tokens & !continues;
            let mut ends = (tokens << 1 | before.token) & !continues;
            let mut newlines = masks.newlines;
            let mut stop = None;
            if let Some(stop_at) = non_ascii.stop {
                // An open token begins at a boundary too.
                let boundary = self.last_boundary(if before.token == 0 { from } else { token_start }, stop_at);
                // The bits up to the boundary, none if it lies before this block.
                let up_to_boundary =
                    boundary.checked_sub(offset).map_or(0, |bits| !(!1u64).checked_shl(bits as u32).unwrap_or(0));
                ends &= up_to_boundary;
                newlines &= up_to_boundary >> 1;
                stop = Some((boundary, stop_at));
            } else if last < 63 {
                let complete = u64::MAX >> (63 - last);
                starts &= complete;
                ends &= complete;
                newlines &= complete;
            }
            while newlines != 0 {
                let bit = newlines.trailing_zeros();
                self.push_newline_after(offset + bit as usize, (ends & u64::MAX >> (63 - bit)).count_ones() as usize);
                newlines &= newlines - 1;
            }
            if before.token == 0 {
                token_start = offset + starts.trailing_zeros() as usize;
                starts &= starts.wrapping_sub(1);
            }
            while ends != 0 {
                self.push_token(token_start, offset + ends.trailing_zeros() as usize);
                ends &= ends - 1;
                token_start = offset + starts.trailing_zeros() as usize;
                starts &= starts.wrapping_sub(1);
            }
            if stop.is_some() {
                return stop;
            }
            before = Carry {
                token: tokens >> last & 1,
                letter: letters >> last & 1,
                digit: digits >> last & 1,
                word: words >> last & 1,
                katakana: non_ascii.katakana >> last & 1,
            };
            // The bytes after the end of the text are spaces.
            offset = (offset + non_ascii.bytes).min(bytes.len());
        }
    }

    /// Adds the characters of a block that are not ASCII to its masks. All bytes of a character get its class, and the
    /// bytes of a combining mark get the class of the character before it.
    #[inline(never)]
    fn classify_non_ascii(&self, offset: usize, block: &[u8; BLOCK], masks: &mut Masks, before: Carry) -> NonAscii {
        let text = self.text.as_bytes();
        let continued = continuations(block);
        let mut leads = masks.not_ascii & !continued;
        let (mut roles, mut bytes) = ([0; BLOCK], BLOCK);
        while leads != 0 {
            let bit = leads.trailing_zeros() as usize;
            leads &= leads - 1;
            let (c, length) = decode_char(text, offset + bit);
            if bit + length > BLOCK {
                bytes = bit;
                break;
            }
            roles[bit] = ROLES[usize::from(class::class(c))];
        }
        let last = bytes - 1;

        let first = |flag| mask_of(&roles, flag);
        // Extends the first byte of each character to all its bytes.
        let to_all_bytes = |first: u64| (0..3).fold(first, |bytes, _| bytes | bytes << 1 & continued);
        let marks = to_all_bytes(first(IS_MARK));
        // Extends these bytes by the runs of combining marks after them: an addition at the start of a run carries to
        // its end.
        let with_marks = |chars: u64, before: u64| chars | marks & !marks.wrapping_add((chars << 1 | before) & marks);
        // The carry has no bit for connectors: a connector is a part of a word that is neither a letter nor a digit.
        let connector_before = before.word & !before.letter & !before.digit;
        masks.letters = with_marks(masks.letters | to_all_bytes(first(IS_LETTER)), before.letter);
        masks.digits = with_marks(masks.digits | to_all_bytes(first(IS_DIGIT)), before.digit);
        masks.connectors = with_marks(masks.connectors, connector_before);
        masks.white |= to_all_bytes(first(IS_WHITE));
        let katakana = with_marks(to_all_bytes(first(IS_KATAKANA)), before.katakana);
        let (letter_mids, digit_mids) = (first(JOINS_LETTERS), first(JOINS_DIGITS));
        let mids = masks.letter_mids | masks.digit_mids | to_all_bytes(letter_mids | digit_mids);
        // Combining marks after a character that does not keep its class with a mark: white space, the start, or
        // punctuation.
        let unattached_marks = (masks.white << 1 | before.token ^ 1 | mids << 1) & marks;

        let rare = (first(IS_RARE) | unattached_marks).trailing_zeros() as usize;
        let mut stop = (rare < bytes).then_some(offset + rare);
        let (mut letter_after, mut digit_after) = (0, 0);
        if stop.is_none() && offset + bytes < text.len() {
            let roles = ROLES[usize::from(class::class(decode_char(text, offset + bytes).0))];
            letter_after = u64::from(roles & IS_LETTER != 0);
            digit_after = u64::from(roles & IS_DIGIT != 0);
            if roles & (IS_MARK | IS_RARE) != 0 && mids >> last & 1 != 0 {
                stop = Some(offset + bytes);
            }
        }
        // Returns the first bytes of the characters between two characters of one kind.
        let between = |chars: u64, before: u64, after: u64| {
            let followed = chars >> 1 | after << last;
            (chars << 1 | before) & (0..3).fold(followed, |first, _| first | (first & continued) >> 1)
        };
        let joining = letter_mids & between(masks.letters, before.letter, letter_after)
            | digit_mids & between(masks.digits, before.digit, digit_after);
        let connected = katakana | masks.connectors;
        let continues = continued | marks | connected & (connected << 1 | connector_before | before.katakana);
        NonAscii { continues, joining: to_all_bytes(joining), katakana, letter_after, digit_after, bytes, stop }
    }

    /// Returns the latest known boundary in `from..=end` that does not depend on the text from `end` on. `from` is a
    /// boundary.
    ///
    /// The boundary between two characters that cannot belong to one token does not depend on what follows. A combining
    /// mark at `end` is joined to the character before it (WB4), unless that character ends a line (WB3a).
    fn last_boundary(&self, from: usize, end: usize) -> usize {
        let mut next = None;
        for (i, c) in self.text[from..end].char_indices().rev() {
            let offset = from + i;
            let kind = class::class(c) & CLASS;
            match next {
                None if kind == NEWLINE => return end,
                Some((boundary, after)) if !may_join(kind, after) => return boundary,
                _ => next = Some((offset, kind)),
            }
        }
        from
    }
}

/// True if characters of the two classes may belong to one token.
fn may_join(before: u8, after: u8) -> bool {
    let is_word_part = |kind| matches!(kind, LETTER..=QUOTE | MARK);
    is_word_part(before) && is_word_part(after)
        || before == after && matches!(after, SPACE | FLAG)
        || before == JOINER
        || after >= MARK
}

/// Returns the mask of the bytes with a flag.
#[inline(always)]
fn mask_of(bytes: &[u8; BLOCK], flag: u8) -> u64 {
    bits(bytes, |bytes| (bytes & u8x16::splat(flag)).simd_eq(u8x16::splat(flag)))
}

/// Decodes the character at an offset of a text in UTF-8. Returns it and its length in bytes.
#[inline(always)]
fn decode_char(text: &[u8], offset: usize) -> (char, usize) {
    let rest = &text[offset..];
    let low = |i: usize| u32::from(rest[i] & 0x3F);
    let (code, length) = match rest[0] {
        byte @ 0..=0x7F => (u32::from(byte), 1),
        byte @ 0x80..=0xDF => (u32::from(byte & 0x1F) << 6 | low(1), 2),
        byte @ 0xE0..=0xEF => (u32::from(byte & 0xF) << 12 | low(1) << 6 | low(2), 3),
        byte => (u32::from(byte & 7) << 18 | low(1) << 12 | low(2) << 6 | low(3), 4),
    };
    (char::from_u32(code).expect("the text is valid UTF-8"), length)
}
