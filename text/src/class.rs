//! The classes of characters that the rules of word boundaries tell apart.
//!
//! No table of Unicode stands here: a character's class is what the library for word boundaries does with it, asked once and
//! remembered. So both always agree, whatever version of Unicode the library has.

use alloc::string::String;
use core::sync::atomic::{AtomicU8, Ordering};
use unicode_segmentation::UnicodeSegmentation;

// 0 says that the library was not asked yet.
pub(crate) const OTHER: u8 = 1;
pub(crate) const LETTER: u8 = 2;
pub(crate) const HEBREW: u8 = 3;
pub(crate) const NUMBER: u8 = 4;
pub(crate) const KATAKANA: u8 = 5;
/// Such as the underscore.
pub(crate) const CONNECTOR: u8 = 6;
/// Joins two letters.
pub(crate) const MID_LETTER: u8 = 7;
/// Joins two digits.
pub(crate) const MID_NUMBER: u8 = 8;
/// Joins two letters or two digits.
pub(crate) const MID_BOTH: u8 = 9;
pub(crate) const APOSTROPHE: u8 = 10;
pub(crate) const QUOTE: u8 = 11;
/// Half of a flag.
pub(crate) const FLAG: u8 = 12;
/// White space of which a run is one token.
pub(crate) const SPACE: u8 = 13;
/// The end of a line: nothing joins it on either side.
pub(crate) const NEWLINE: u8 = 14;
/// Belongs to the character before it, such as an accent.
pub(crate) const MARK: u8 = 15;
/// A mark that joins a pictogram behind it too.
pub(crate) const JOINER: u8 = 16;
pub(crate) const CLASSES: usize = 17;

/// The bits of a class's number.
pub(crate) const CLASS: u8 = 0x1F;
/// Added to the class of white space.
pub(crate) const WHITE: u8 = 0x40;
/// Added to the class of pictograms.
pub(crate) const PICTOGRAM: u8 = 0x80;

/// The class of every character that was met. Memory that nobody asked about stays with the system.
static CACHE: [AtomicU8; 0x11_0000] = [const { AtomicU8::new(0) }; 0x11_0000];

/// The class of a character, with [`WHITE`] and [`PICTOGRAM`].
#[inline]
pub(crate) fn class(c: char) -> u8 {
    // Whoever finds nothing asks the library, which tells all threads the same.
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

/// Whether the library takes `before`, `c` and `after` for one token.
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
