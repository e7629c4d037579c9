//! Repeated substrings: every run of N words that occurred before is cut, and the first copy is kept.
//!
//! A *window* is N consecutive words of one text; in Chinese, Japanese, Thai and Lao, N characters. A window is a
//! repeat if an equal window ended before it, in the same text or in one before it. The words of all repeats are
//! [cut](Windows::cuts). So of a word that stands there a thousand times, the first N are kept. This is the rule of Lee
//! et al., "Deduplicating Training Data Makes Language Models Better" (2022), without a suffix array.
//!
//! The texts are read at least twice:
//!
//! 1. [`add`] inserts the hashes of all windows into a filter, and those that were there into a second filter, of
//!    *candidates*. Each window that occurs twice is a candidate; a false positive of either filter only costs memory.
//! 2. [`Repeats`] has the candidates that were read so far, exactly. If they do not fit into memory, each further
//!    reading decides about one *part* of them, by their hashes.
//!
//! A window is compared by 61 bits among about ten others, which another hash selects. So a window is taken for another
//! with a chance of about 2^-58: for 10 GB of text, once in a hundred million runs. Words are compared by 64-bit hashes.
//!
//! ```
//! use bloomline::BloomFilter;
//! use bloomline_text::substrings::{self, Repeats, Rules, Windows};
//!
//! let texts = ["to be or not to be", "whether to be or not is the question"];
//! let mut seen = BloomFilter::new(1000, 0.01)?; // windows, false-positive rate
//! let mut candidates = BloomFilter::new(1000, 0.01)?;
//! let rules = Rules::new(4); // words
//! let hasher = seen.hasher().clone();
//! let mut windows = Windows::default();
//! for text in texts {
//!     windows.push(&rules, &hasher, text);
//! }
//! substrings::add(&windows, &mut seen, &mut candidates)?;
//!
//! let mut repeats = Repeats::new(1000, 0, 1); // candidates, part, parts
//! let mut found = Vec::new();
//! substrings::look_up(&windows, &mut candidates, &mut found)?;
//! for i in 0..texts.len() {
//!     let own = windows.windows_of(i);
//!     repeats.decide(rules.length, &windows.fingerprints()[own.clone()], &mut found[own]);
//! }
//! let cuts: Vec<_> = windows.cuts(1, &rules, texts[1], &found).iter().map(|cut| cut.range.clone()).collect();
//! assert_eq!(cuts, [7..20]); // a space and "to be or not"
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod cuts;
mod repeats;

use crate::form::{Form, FormScratch};
use crate::pieces::Origins;
use crate::scan::{PlacedToken, Scan};
use crate::set::Set;
use crate::token::TokenHasher;
use alloc::vec::Vec;
use bloomline::KeyHasher;
use core::ops::Range;

pub use cuts::{CutSpan, Ends};
pub use repeats::Repeats;

/// The windows that are looked up together.
const LOOKUP_BATCH: usize = 1024;

/// The rules for windows and cuts.
///
/// # Examples
/// ```
/// use bloomline_text::substrings::{Ends, Rules};
/// let mut rules = Rules::new(50);
/// rules.ends = Ends::Lines;
/// assert_eq!(rules.length, 50);
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Rules {
    /// The number of words of a window, at least 1. A shorter text has no window.
    pub length: usize,
    /// The normalization before words are compared, by default none. Words that it removes are not part of a window.
    pub form: Form,
    /// The places where cuts begin and end.
    pub ends: Ends,
}

impl Rules {
    /// Returns the rules for windows of `length` words, with cuts of whole words and without normalization.
    ///
    /// # Panics
    /// If `length` is 0.
    #[track_caller]
    pub fn new(length: usize) -> Self {
        assert!(length > 0, "a window has at least one word");
        Self { length, form: Form::default(), ends: Ends::Words }
    }
}

/// The identity of a window: two hashes of its words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fingerprint {
    /// The hash for filters, which is also the hash of the n-gram. It selects the part and the place in a table.
    pub hash: u64,
    /// The hash by which windows are compared: a polynomial of the words' hashes modulo 2^61 - 1.
    pub check: u64,
}

/// The words and windows of a batch of texts. [`clear`](Self::clear) keeps the memory, so keep one for each thread.
#[derive(Debug, Default)]
pub struct Windows {
    /// The ends of each text's words and windows.
    texts: Vec<(usize, usize)>,
    words: Vec<PlacedToken>,
    fingerprints: Vec<Fingerprint>,
    form_scratch: FormScratch,
    /// True for each word of a text that is cut.
    covered: Vec<bool>,
    cuts: Vec<CutSpan>,
}

impl Windows {
    /// Removes all texts.
    pub fn clear(&mut self) {
        self.texts.clear();
        self.words.clear();
        self.fingerprints.clear();
    }

    /// Adds a text. `hasher` must be the hasher of the filters. O(length of the text).
    pub fn push(&mut self, rules: &Rules, hasher: &KeyHasher, text: &str) {
        let Self { words, fingerprints, form_scratch, .. } = self;
        let before = words.len();
        let scan = |text: &str, words: &mut Vec<PlacedToken>| {
            Scan::new(text, TokenHasher::new(hasher), words, &mut Vec::new()).run();
        };
        if rules.form.is_plain() {
            scan(text, words);
        } else {
            let (formed, pieces) = rules.form.apply_traced(text, form_scratch);
            scan(formed, words);
            let mut origins = Origins::new(pieces);
            for word in &mut words[before..] {
                Range { start: word.start, end: word.end } = origins.origin(word.start..word.end);
            }
        }
        push_fingerprints(&words[before..], rules.length, hasher, fingerprints);
        self.texts.push((words.len(), fingerprints.len()));
    }

    /// Returns the number of texts.
    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// True if there are no texts.
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// Returns the windows of all texts, in order.
    pub fn fingerprints(&self) -> &[Fingerprint] {
        &self.fingerprints
    }

    /// Returns the numbers of the windows of text number `i`, in [`fingerprints`](Self::fingerprints).
    ///
    /// # Panics
    /// If there is no such text.
    #[track_caller]
    pub fn windows_of(&self, i: usize) -> Range<usize> {
        self.ends_before(i).1..self.texts[i].1
    }

    /// Returns the number of words of text number `i`.
    ///
    /// # Panics
    /// If there is no such text.
    #[track_caller]
    pub fn words_of(&self, i: usize) -> usize {
        self.texts[i].0 - self.ends_before(i).0
    }

    fn ends_before(&self, i: usize) -> (usize, usize) {
        i.checked_sub(1).map_or((0, 0), |before| self.texts[before])
    }

    /// Returns the cuts in text number `i`, in order. `text` is that text, and `repeats[i]` is true if window i of all texts is a
    /// repeat. O(length of the text).
    ///
    /// # Panics
    /// If there is no such text, or `repeats` is shorter than the windows. May panic if `text` is another text.
    #[track_caller]
    pub fn cuts(&mut self, i: usize, rules: &Rules, text: &str, repeats: &[bool]) -> &[CutSpan] {
        let words = self.ends_before(i).0..self.texts[i].0;
        let repeats = &repeats[self.windows_of(i)];
        let Self { words: all, covered, cuts, form_scratch, .. } = self;
        cuts.clear();
        if repeats.contains(&true) {
            let words = &all[words];
            covered.clear();
            covered.resize(words.len(), false);
            cuts::cover(repeats, rules.length, covered);
            cuts::keep_incomplete(text, words, rules.ends, covered);
            cuts::push(text, words, covered, (&rules.form, form_scratch), cuts);
        }
        cuts
    }
}

/// The prime modulus of the hash by which windows are compared. Modulo 2^64, some windows of two alternating words
/// collide.
const MODULUS: u64 = (1 << 61) - 1;

/// Appends the fingerprints of all windows of `length` words.
fn push_fingerprints(words: &[PlacedToken], length: usize, hasher: &KeyHasher, into: &mut Vec<Fingerprint>) {
    let Some((first, rest)) = words.split_at_checked(length) else { return };
    let [secret0, secret1, secret2, secret3] = hasher.secret();
    let (base, check_base) = (secret3 & !7 | 5, secret2 % MODULUS);
    let add = |sum: u64, word: &PlacedToken| sum.wrapping_mul(base).wrapping_add(word.hash);
    let add_check =
        |sum: u64, word: &PlacedToken| reduced(u128::from(sum) * u128::from(check_base) + u128::from(word.hash));
    let (mut sum, mut check) = (first.iter().fold(0, add), first.iter().fold(0, add_check));
    // The bases to the power of `length`.
    let oldest_factor = first.iter().fold(1u64, |power, _| power.wrapping_mul(base));
    let oldest_check = first.iter().fold(1, |power, _| reduced(u128::from(power) * u128::from(check_base)));
    let fingerprint = |sum: u64, check: u64| Fingerprint { hash: KeyHasher::mix(sum ^ secret0, secret1), check };
    into.reserve(rest.len() + 1);
    into.push(fingerprint(sum, check));
    for (oldest, word) in words.iter().zip(rest) {
        sum = add(sum, word).wrapping_sub(oldest.hash.wrapping_mul(oldest_factor));
        let passed = reduced(u128::from(reduced(oldest.hash.into())) * u128::from(oldest_check));
        check = reduced(u128::from(add_check(check, word)) + u128::from(MODULUS - passed));
        into.push(fingerprint(sum, check));
    }
}

/// Returns the remainder modulo 2^61 - 1 of a number below 2^124.
#[inline(always)]
fn reduced(number: u128) -> u64 {
    let sum = (number as u64 & MODULUS) + (number >> 61) as u64;
    let sum = (sum & MODULUS) + (sum >> 61);
    if sum >= MODULUS { sum - MODULUS } else { sum }
}

/// Inserts the windows of a batch into `seen`, and those that were there into `candidates`. Returns the number of
/// candidates that were new. The order of batches does not matter.
///
/// # Errors
/// Errors of the sets.
pub fn add<S: Set, C: Set<Error = S::Error>>(
    windows: &Windows,
    seen: &mut S,
    candidates: &mut C,
) -> Result<usize, S::Error> {
    let mut count = 0;
    let mut hashes = Vec::new();
    let mut new = [false; LOOKUP_BATCH];
    for batch in windows.fingerprints.chunks(LOOKUP_BATCH) {
        let new = &mut new[..batch.len()];
        hashes.clear();
        hashes.extend(batch.iter().map(|window| window.hash));
        seen.insert_hashes(&hashes, new)?;
        hashes.clear();
        hashes.extend(batch.iter().zip(&*new).filter(|(_, new)| !**new).map(|(window, _)| window.hash));
        count += candidates.insert_hashes(&hashes, &mut new[..hashes.len()])?;
    }
    Ok(count)
}

/// Sets `found[i]` to true if window i of a batch is a candidate. Returns the number of these.
///
/// # Errors
/// Errors of the set.
pub fn look_up<C: Set>(windows: &Windows, candidates: &mut C, found: &mut Vec<bool>) -> Result<usize, C::Error> {
    let mut count = 0;
    let mut hashes = Vec::new();
    found.clear();
    found.resize(windows.fingerprints.len(), false);
    for (batch, found) in windows.fingerprints.chunks(LOOKUP_BATCH).zip(found.chunks_mut(LOOKUP_BATCH)) {
        hashes.clear();
        hashes.extend(batch.iter().map(|window| window.hash));
        count += candidates.contains_hashes(&hashes, found)?;
    }
    Ok(count)
}
