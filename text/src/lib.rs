//! Duplicate paragraphs and documents of a corpus, found by their n-grams of words.
//!
//! A text is cut into *units*: its paragraphs, or all of it. The *tokens* of a unit are its [`words`], and its *grams* are all
//! windows of [`Rules::ngram`] tokens. A unit whose grams are mostly in the set is a duplicate, which is cut. What stays
//! inserts its grams. So the first copy stays, and later ones go, also where they differ a little.
//!
//! A [`Form`] says what of a text does not count: case, punctuation and more (feature `forms`).
//!
//! [`near`] finds near duplicates of whole documents from a few keys for each, instead of one for each gram.
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
//     form (feature forms), class, masks, token
//     scan, with blocks and chars
//     tokens, grams
//     set, texts, false_positive
//     near
mod blocks;
mod chars;
mod class;
mod false_positive;
#[cfg_attr(not(feature = "forms"), path = "form/none.rs")]
mod form;
mod grams;
mod masks;
pub mod near;
mod scan;
mod set;
mod texts;
mod token;
mod tokens;

pub use false_positive::expected_false_removals;
pub use form::Form;
pub use set::Set;
pub use texts::{Document, Texts, UnitVerdict};
pub use tokens::words;

/// What is kept or cut as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unit {
    /// All of a text.
    Document,
    /// A paragraph: from the newline (`\n`) before it to before the next one. The first begins with the text. So a text of n
    /// newlines has n + 1 paragraphs, and all of them together are the text.
    Paragraph,
}

/// What a thread claims for itself, so that of equal ones only the first stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Claim {
    /// The unit: all of its grams are looked up before one is inserted, and those of a unit that is cut are not inserted. A
    /// gram that a unit repeats counts each time. Two threads that look up equal units at the same moment keep both.
    Unit,
    /// Each gram, as it is read: it is found if it was claimed before, also by its own unit, and it is inserted whatever becomes of
    /// the unit. A unit with fewer than two grams is then compared as exact text, and that alone counts.
    Gram,
}

/// How texts are cut into units and grams, and which units go.
///
/// # Examples
/// ```
/// use bloomline_text::Rules;
/// // Paragraphs that were seen word for word, of any length:
/// let mut exact = Rules::default();
/// exact.ngram = 0;
/// // Paragraphs of which 90 % was seen, by windows of eight words:
/// let mut near = Rules::default();
/// (near.ngram, near.threshold) = (8, 0.9);
/// assert_ne!(exact, near);
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Rules {
    /// The unit. By default a paragraph.
    pub unit: Unit,
    /// Tokens in a gram, 13 by default. With 0, a unit has one gram: its exact text, without the newline that begins it. A
    /// unit of white space alone has none then.
    pub ngram: usize,
    /// The fewest tokens of a unit with fewer than `ngram`, 13 by default. All of them are one gram. A unit with fewer has no gram:
    /// it stays, and inserts nothing. Plays no part with `ngram` 0 and with [`Claim::Gram`].
    pub min_ngram: usize,
    /// The share of grams, from 0 to 1, above which a unit is cut; 0.8 by default. Plays no part with `ngram` 0, where a unit
    /// is cut if it was found.
    pub threshold: f64,
    /// A share equal to the threshold is enough too.
    pub at_least: bool,
    /// A document of whose grams this share was found is [dropped](Document::dropped). Its units are decided and inserted as
    /// ever.
    pub drop_document: bool,
    /// Exact text is compared without white space at its ends: of Unicode where it is UTF-8, of ASCII where it is not.
    pub trim: bool,
    /// Exact text is compared in lower case: of Unicode where it is UTF-8, of ASCII where it is not.
    pub ignore_case: bool,
    /// What of a text does not count: a difference there makes no other gram and no other exact text. A unit of which nothing but
    /// white space is left in its form has no exact text. By default all counts.
    pub form: Form,
    /// What a thread claims. By default the unit.
    pub claim: Claim,
    /// Nothing is inserted.
    pub frozen: bool,
}

impl Rules {
    /// Whether a unit of so many grams is a duplicate if so many of them were found. None without grams is.
    ///
    /// ```
    /// use bloomline_text::Rules;
    /// let mut rules = Rules::default();
    /// rules.threshold = 0.5;
    /// assert!(rules.is_duplicate(10, 6) && !rules.is_duplicate(10, 5));
    /// rules.at_least = true;
    /// assert!(rules.is_duplicate(10, 5));
    /// ```
    pub fn is_duplicate(&self, grams: usize, found: usize) -> bool {
        if self.ngram == 0 { found > 0 } else { self.passes(grams, found) }
    }

    /// Whether that is the share which the threshold asks for. Without grams there is no share, and no threshold is passed.
    fn passes(&self, grams: usize, found: usize) -> bool {
        let share = found as f64 / grams as f64;
        share > self.threshold || self.at_least && share >= self.threshold
    }
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            unit: Unit::Paragraph,
            ngram: 13,
            min_ngram: 13,
            threshold: 0.8,
            at_least: false,
            drop_document: false,
            trim: false,
            ignore_case: false,
            form: Form::default(),
            claim: Claim::Unit,
            frozen: false,
        }
    }
}

/// The code of the README, for the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
