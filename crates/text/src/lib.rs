//! Duplicate paragraphs and documents of a corpus, found by their n-grams of words.
//!
//! A text is divided into *units*: its paragraphs, or the complete text. The *tokens* of a unit are its [`words`], and
//! its *grams* are all windows of [`Rules::ngram`] tokens. A unit whose grams are mostly in the set is a duplicate and
//! is cut. The grams of other units are inserted. So the first copy is kept, and later copies are cut even if they
//! differ a little.
//!
//! A [`Form`] normalizes texts before they are compared: case, punctuation and more (feature `forms`).
//!
//! [`near`] finds near duplicates of whole documents from a few keys for each, instead of one for each gram.
//! [`substrings`] finds runs of words that occurred before, anywhere in a text.
//!
//! ```
//! use bloomline::BloomFilter;
//! use bloomline_text::{Rules, Texts};
//!
//! let mut seen = BloomFilter::new(1_000_000, 1e-6)?; // grams, false-positive rate
//! let mut rules = Rules::default();
//! (rules.ngram, rules.min_ngram) = (3, 1);
//! let mut texts = Texts::default();
//! texts.push(&rules, seen.hasher(), b"Accept all cookies\nThe first text");
//! texts.push(&rules, seen.hasher(), b"Accept all cookies\nAnother text");
//! texts.decide(&rules, &mut seen)?;
//! let cuts = |i| -> Vec<_> { texts.document(i).verdicts().filter(|unit| unit.cut).map(|unit| unit.range).collect() };
//! assert_eq!(cuts(0), []);
//! assert_eq!(cuts(1), [0..18]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![cfg_attr(not(test), no_std)]

extern crate alloc;

// Imports run from the lower of these rows to the upper ones:
//
//     pieces, class, masks, token
//     form (feature forms)
//     scan, with blocks and chars
//     tokens, grams, sample
//     phrases
//     set, texts, false_positive
//     near, substrings
mod blocks;
mod chars;
mod class;
mod false_positive;
#[cfg_attr(not(feature = "forms"), path = "form/stub.rs")]
mod form;
mod grams;
mod masks;
pub mod near;
mod phrases;
mod pieces;
mod sample;
mod scan;
mod set;
pub mod substrings;
mod texts;
mod token;
mod tokens;

pub use false_positive::{expected_false_removals, new_unit_removal_rate};
pub use form::Form;
pub use phrases::{PhraseMatch, Phrases, PhrasesBuilder};
pub use set::Set;
pub use texts::{Document, Texts, UnitVerdict};
pub use tokens::words;

/// The unit of text that is kept or cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unit {
    /// The complete text.
    Document,
    /// A paragraph: from the newline (`\n`) before it to the next one, exclusive. The first paragraph begins with the
    /// text. So a text of n newlines has n + 1 paragraphs, which together are the text.
    Paragraph,
}

/// The rules for dividing texts into units and grams, and for cutting units.
///
/// All grams of a unit are looked up before one is inserted, and the grams of a cut unit are not inserted. A gram that
/// occurs several times in a unit counts each time. Two threads that look up equal units at the same moment keep both.
///
/// # Examples
/// ```
/// use bloomline_text::Rules;
/// // Paragraphs that were seen word for word, of any length:
/// let mut exact = Rules::default();
/// exact.ngram = 0;
/// // Paragraphs with more than 90 % of their grams seen, by windows of eight words:
/// let mut near = Rules::default();
/// (near.ngram, near.threshold) = (8, 0.9);
/// assert_ne!(exact, near);
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Rules {
    /// The unit, by default a paragraph.
    pub unit: Unit,
    /// The number of tokens in a gram, 13 by default. With 0, a unit has one gram: its exact text without the newline
    /// that begins it, or no gram if the text has only white space.
    pub ngram: usize,
    /// The minimum number of tokens of a unit with fewer than `ngram` tokens, 13 by default. These tokens are one gram.
    /// A shorter unit has no grams: it is kept and inserts nothing. Ignored if `ngram` is 0.
    pub min_ngram: usize,
    /// The fraction of found grams, from 0 to 1, above which a unit is cut; 0.8 by default. If `ngram` is 0, a unit is
    /// cut if its exact text was found.
    pub threshold: f64,
    /// True if a document is [dropped](Document::dropped) when the fraction of its grams that was found passes the
    /// threshold. A dropped document inserts nothing, so other copies of its new units are kept. Grams that it repeats itself
    /// count as found only if an earlier document has them.
    pub drop_document: bool,
    /// True if exact text is compared without white space at its ends (of Unicode if the text is UTF-8, otherwise of
    /// ASCII).
    pub trim: bool,
    /// True if exact text is compared in lower case (of Unicode if the text is UTF-8, otherwise of ASCII).
    pub ignore_case: bool,
    /// The normalization before texts are compared, by default none. A unit with only white space in its form has no
    /// exact text.
    pub form: Form,
    /// The number of grams for each one that is compared and inserted, 1 by default. With more, a unit is represented by one of
    /// `sample` of its grams on average, which their hashes select, and by at least one of each half of the unit. Such a set
    /// takes a fraction of the memory, and few units are decided otherwise. A unit can be compared with units that were
    /// inserted with the same or a smaller `sample`. Exact text is not sampled.
    pub sample: u32,
    /// True if nothing is inserted.
    pub frozen: bool,
}

impl Rules {
    /// True if a unit with `found` of `grams` grams found is a duplicate. A unit without grams is not a duplicate.
    ///
    /// ```
    /// use bloomline_text::Rules;
    /// let mut rules = Rules::default();
    /// rules.threshold = 0.5;
    /// assert!(rules.is_duplicate(10, 6) && !rules.is_duplicate(10, 5));
    /// ```
    pub fn is_duplicate(&self, grams: usize, found: usize) -> bool {
        if self.ngram == 0 { found > 0 } else { self.passes(grams, found) }
    }

    /// True if the fraction `found / grams` passes the threshold. Without grams it is not a number and does not pass.
    fn passes(&self, grams: usize, found: usize) -> bool {
        found as f64 / grams as f64 > self.threshold
    }
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            unit: Unit::Paragraph,
            ngram: 13,
            min_ngram: 13,
            threshold: 0.8,
            drop_document: false,
            trim: false,
            ignore_case: false,
            form: Form::default(),
            sample: 1,
            frozen: false,
        }
    }
}

/// The code of the README, for the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
