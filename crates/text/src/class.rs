//! The classes of characters that the rules of word boundaries distinguish.
//!
//! This file has no table of Unicode. The class of a character is derived from the library for word boundaries and
//! cached, so both agree in every version of Unicode.

use alloc::string::String;
use core::sync::atomic::{AtomicU8, Ordering};
use unicode_segmentation::UnicodeSegmentation;

// 0 is the cache's value for a character that was not classified yet.
pub(crate) const OTHER: u8 = 1;
pub(crate) const LETTER: u8 = 2;
pub(crate) const HEBREW: u8 = 3;
pub(crate) const NUMBER: u8 = 4;
pub(crate) const KATAKANA: u8 = 5;
/// A connector, such as the underscore.
pub(crate) const CONNECTOR: u8 = 6;
/// Punctuation that joins two letters.
pub(crate) const MID_LETTER: u8 = 7;
/// Punctuation that joins two digits.
pub(crate) const MID_NUMBER: u8 = 8;
/// Punctuation that joins two letters or two digits.
pub(crate) const MID_BOTH: u8 = 9;
pub(crate) const APOSTROPHE: u8 = 10;
pub(crate) const QUOTE: u8 = 11;
/// Half of a flag.
pub(crate) const FLAG: u8 = 12;
/// White space whose runs are one token.
pub(crate) const SPACE: u8 = 13;
/// The end of a line, which joins nothing on either side.
pub(crate) const NEWLINE: u8 = 14;
/// A combining character, such as an accent, which belongs to the character before it.
pub(crate) const MARK: u8 = 15;
/// A combining character that also joins a pictogram after it.
pub(crate) const JOINER: u8 = 16;
pub(crate) const CLASSES: usize = 17;

/// The mask of the class's number.
pub(crate) const CLASS: u8 = 0x1F;
/// A flag of white space.
pub(crate) const WHITE: u8 = 0x40;
/// A flag of pictograms.
pub(crate) const PICTOGRAM: u8 = 0x80;

/// The class of every character that occurred. The system commits only the pages that are read or written.
static CACHE: [AtomicU8; 0x11_0000] = [const { AtomicU8::new(0) }; 0x11_0000];

/// Returns the class of a character, with the flags [`WHITE`] and [`PICTOGRAM`].
#[inline]
pub(crate) fn class(c: char) -> u8 {
    // Relaxed: threads that race here compute the same class.
    match CACHE[c as usize].load(Ordering::Relaxed) {
        0 => classify_and_cache(c),
        class => class,
    }
}

#[cold]
fn classify_and_cache(c: char) -> u8 {
    let class = classify(c) | if c.is_whitespace() { WHITE } else { 0 };
    let class = class | if is_one_token("\u{200D}", c, "") { PICTOGRAM } else { 0 };
    CACHE[c as usize].store(class, Ordering::Relaxed);
    class
}

/// True if `before`, `c` and `after` are one token for the library.
fn is_one_token(before: &str, c: char, after: &str) -> bool {
    let mut text = String::from(before);
    text.push(c);
    text += after;
    text.split_word_bounds().count() == 1
}

fn classify(c: char) -> u8 {
    let after_letter = is_one_token("a", c, "");
    let after_katakana = is_one_token("ア", c, "");
    if c == '\u{200D}' {
        JOINER
    } else if is_one_token("!", c, "") {
        MARK
    } else if !is_one_token("", c, "\u{308}") {
        NEWLINE
    } else if after_letter && after_katakana {
        CONNECTOR
    } else if after_katakana {
        KATAKANA
    } else if after_letter && is_one_token("1,", c, "") {
        NUMBER
    } else if after_letter && is_one_token("א\"", c, "") {
        HEBREW
    } else if after_letter {
        LETTER
    } else if is_one_token("א", c, "") {
        APOSTROPHE
    } else if is_one_token("א", c, "א") && !is_one_token("a", c, "a") {
        QUOTE
    } else if is_one_token("a", c, "a") && is_one_token("1", c, "1") {
        MID_BOTH
    } else if is_one_token("a", c, "a") {
        MID_LETTER
    } else if is_one_token("1", c, "1") {
        MID_NUMBER
    } else if is_one_token("🇦", c, "") {
        FLAG
    } else if is_one_token(" ", c, "") {
        SPACE
    } else {
        OTHER
    }
}
