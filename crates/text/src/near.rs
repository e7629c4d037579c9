//! Near duplicates: documents that share most of their grams with an earlier one.
//!
//! The similarity of two documents is the *Jaccard similarity* of their sets of grams: the number of grams that both
//! have, divided by the number that at least one has. A *signature* of a document is a list of values, and the fraction
//! of equal values in two signatures estimates the similarity. The values are grouped into *bands* of some *rows* each.
//! A document is a near duplicate if it has all values of a band in common with an earlier one. So each band is one key
//! in a filter.
//!
//! ```
//! use bloomline::BloomFilter;
//! use bloomline_text::near::{self, Near, Scratch};
//!
//! let near = Near::new(0.8)?; // similarity
//! let documents = 1_000_000;
//! let mut seen = BloomFilter::new(documents * near.bands() as u64, near.band_fpr(1e-3))?;
//!
//! let text: String = (0..500).map(|i| format!("word{i} ")).collect();
//! let edited = text.replace("word42 ", "");
//! let mut scratch = Scratch::default();
//! let mut bands = Vec::new();
//! let mut kept = Vec::new();
//! for document in [&text, &edited, "another text"] {
//!     bands.clear();
//!     near.hash(seen.hasher(), document.as_bytes(), &mut scratch, &mut bands);
//!     kept.push(near::claim(&mut seen, &bands)?);
//! }
//! assert_eq!(kept, [true, false, true]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A common band does not prove similarity. [`Near::grams`], [`jaccard`] and [`containment`] compare two texts, and
//! [`Survivors`] chooses the documents that are kept by direct comparison.
//!
//! [LSHBloom](https://arxiv.org/abs/2411.04257) keeps a filter for each band. Here one filter holds all bands, because
//! a key is hashed with the number of its band. The filter takes as much memory at the same rate, and it is one file.

mod error;
mod params;
mod signature;
mod sketch;
mod survivors;

use crate::{Form, Set, form, grams, tokens};
use alloc::vec::Vec;
use bloomline::{Key, KeyHasher};
pub use error::NearError;
pub use survivors::{Removal, Survivors};

/// The maximum number of values in a signature.
const MAX_VALUES: usize = 16_384;

/// The parameters of near duplicates: the bands of a signature, the rows of a band, and the tokens of a gram.
///
/// A filter must be queried with the same bands, rows and tokens as it was filled with.
///
/// # Examples
/// ```
/// use bloomline_text::near::Near;
/// let near = Near::new(0.8)?;
/// assert_eq!((near.bands(), near.rows(), near.ngram()), (9, 13, 5));
/// // The chance that a document is found by an earlier one of this similarity:
/// assert!(near.probability(0.6) < 0.02);
/// assert!(near.probability(0.9) > 0.9);
/// assert!(near.probability(0.95) > 0.99);
/// # Ok::<(), bloomline_text::near::NearError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Near {
    bands: usize,
    rows: usize,
    ngram: usize,
    form: Form,
}

impl Near {
    /// Creates parameters for documents of this Jaccard similarity and above: [`with_permutations`](Self::with_permutations) with 128
    /// values, and grams of 5 tokens.
    ///
    /// # Errors
    /// [`NearError::Similarity`] if the similarity is not between 0 and 1, both excluded.
    pub fn new(similarity: f64) -> Result<Self, NearError> {
        Self::with_permutations(similarity, 128)
    }

    /// Creates parameters for documents of this Jaccard similarity and above, with signatures of at most `permutations` values: 2 to
    /// 16,384. More values separate similarities more sharply, and make more bands, each a key in the filter.
    ///
    /// The numbers of bands and rows minimize the area of errors: the area under [`probability`](Self::probability)
    /// below the similarity, and the area between it and 1 above the similarity. datasketch's `MinHashLSH` chooses the
    /// same numbers. **At the similarity itself, fewer than half of the documents are found.** Choose a lower one to
    /// find nearly all of them. O(p log p) for p permutations: 0.2 ms for 128.
    ///
    /// # Errors
    /// [`NearError::Similarity`], [`NearError::Permutations`] if a number is out of range.
    ///
    /// # Examples
    /// ```
    /// use bloomline_text::near::Near;
    /// let near = Near::with_permutations(0.8, 256)?;
    /// assert_eq!((near.bands(), near.rows()), (17, 15));
    /// # Ok::<(), bloomline_text::near::NearError>(())
    /// ```
    pub fn with_permutations(similarity: f64, permutations: usize) -> Result<Self, NearError> {
        if !(similarity > 0.0 && similarity < 1.0) {
            return Err(NearError::Similarity { value: similarity });
        }
        if !(2..=MAX_VALUES).contains(&permutations) {
            return Err(NearError::Permutations { value: permutations });
        }
        let (bands, rows) = params::optimal_params(similarity, permutations);
        Self::with_bands(bands, rows)
    }

    /// Creates parameters with these numbers of bands and rows: at least one of each, and at most 16,384 values in total.
    ///
    /// # Errors
    /// [`NearError::Bands`] if the numbers are out of range.
    ///
    /// # Examples
    /// ```
    /// use bloomline_text::near::Near;
    /// let fineweb = Near::with_bands(14, 8)?;
    /// assert!(fineweb.probability(0.8) > 0.9);
    /// # Ok::<(), bloomline_text::near::NearError>(())
    /// ```
    pub fn with_bands(bands: usize, rows: usize) -> Result<Self, NearError> {
        match bands.checked_mul(rows) {
            Some(1..=MAX_VALUES) => Ok(Self { bands, rows, ngram: 5, form: Form::default() }),
            _ => Err(NearError::Bands { bands, rows }),
        }
    }

    /// Sets the number of tokens in a gram, at least 1. A document with fewer tokens is one gram.
    ///
    /// With longer grams, an edit changes more of them: with grams of 5 tokens, one changed word in a text of 45 leaves
    /// a similarity of about 0.8.
    ///
    /// # Errors
    /// [`NearError::Ngram`] if `ngram` is 0.
    ///
    /// # Examples
    /// ```
    /// use bloomline_text::near::Near;
    /// let near = Near::new(0.8)?.with_ngram(13)?;
    /// assert_eq!(near.ngram(), 13);
    /// # Ok::<(), bloomline_text::near::NearError>(())
    /// ```
    pub fn with_ngram(self, ngram: usize) -> Result<Self, NearError> {
        match ngram {
            0 => Err(NearError::Ngram),
            _ => Ok(Self { ngram, ..self }),
        }
    }

    /// Sets the form in which documents are compared. The options for white space and carriage returns have no effect,
    /// because neither occurs in the words of grams.
    ///
    /// ```
    /// use bloomline_text::{Form, near::Near};
    /// let near = Near::new(0.8)?.with_form(Form::default());
    /// assert_eq!(near, Near::new(0.8)?);
    /// # Ok::<(), bloomline_text::near::NearError>(())
    /// ```
    pub fn with_form(self, form: Form) -> Self {
        Self { form: form.for_words(), ..self }
    }

    /// Returns the number of bands, which is the number of keys of a document.
    pub fn bands(&self) -> usize {
        self.bands
    }

    /// Returns the number of values in a band.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the number of tokens in a gram.
    pub fn ngram(&self) -> usize {
        self.ngram
    }

    /// Returns the form in which documents are compared.
    pub fn form(&self) -> Form {
        self.form
    }

    /// Returns the probability that two documents of a similarity s, from 0 to 1, agree in a complete band: 1 - (1 -
    /// s^rows)^bands.
    ///
    /// The formula assumes independent values. The values of short documents repel each other a little, which makes the
    /// curve steeper: fewer errors far below and far above the similarity, and a probability that is up to 0.02 less at
    /// it.
    ///
    /// ```
    /// let near = bloomline_text::near::Near::with_bands(2, 2)?;
    /// assert_eq!(near.probability(0.5), 0.4375);
    /// # Ok::<(), bloomline_text::near::NearError>(())
    /// ```
    pub fn probability(&self, similarity: f64) -> f64 {
        let band = libm::pow(similarity, self.rows as f64);
        at_least_one(band, self.bands as f64)
    }

    /// Returns the false-positive rate of a filter with which the rate for documents is `document_fpr`, from 0 to 1. A
    /// document is reported as a near duplicate if one of its bands is, so the rate p of a band solves 1 - (1 -
    /// p)^bands = `document_fpr`.
    ///
    /// Size the filter for documents × [`bands`](Self::bands) keys.
    ///
    /// ```
    /// let near = bloomline_text::near::Near::new(0.8)?;
    /// let rate = near.band_fpr(1e-3);
    /// assert!((rate / (1e-3 / 9.0) - 1.0).abs() < 1e-3);
    /// # Ok::<(), bloomline_text::near::NearError>(())
    /// ```
    pub fn band_fpr(&self, document_fpr: f64) -> f64 {
        at_least_one(document_fpr, 1.0 / self.bands as f64)
    }

    /// Returns the probability that a filter of this false-positive rate reports a new document as a near duplicate:
    /// the inverse of [`band_fpr`](Self::band_fpr).
    pub fn document_fpr(&self, band_fpr: f64) -> f64 {
        at_least_one(band_fpr, self.bands as f64)
    }

    /// Appends the hashes of a document's [`bands`](Self::bands) to `into`, or nothing if the text has no token.
    /// `hasher` is the filter's. crates/text/FORMAT.md has the definition, which does not change.
    ///
    /// O(length + v log v) for v = bands × rows values. For 128 permutations, the signature takes 1.0 to 1.6 µs for up
    /// to 500 tokens, and 1.5 ns for each further token. `scratch` keeps two 64-bit numbers for each token.
    ///
    /// ```
    /// use bloomline::{Key, KeyHasher};
    /// use bloomline_text::near::{Near, Scratch};
    /// let (near, hasher, mut scratch) = (Near::new(0.8)?, KeyHasher::new(0), Scratch::default());
    /// let mut bands = Vec::new();
    /// near.hash(&hasher, b" \n", &mut scratch, &mut bands);
    /// assert!(bands.is_empty());
    /// near.hash(&hasher, b"A text.", &mut scratch, &mut bands);
    /// assert_eq!(bands.len(), near.bands());
    /// # Ok::<(), bloomline_text::near::NearError>(())
    /// ```
    pub fn hash(&self, hasher: &KeyHasher, text: &[u8], scratch: &mut Scratch, into: &mut Vec<u64>) {
        self.hash_grams(hasher, text, scratch);
        let Scratch { grams, signature, .. } = scratch;
        if grams.is_empty() {
            return;
        }
        signature::sign(grams, self.bands * self.rows, signature);
        let bands = signature.chunks_exact(self.rows).zip(0u64..);
        into.extend(bands.map(|(band, number)| {
            band.iter().fold(number.hash_with(hasher), |hash, value| hasher.combine(hash, *value))
        }));
    }

    /// Appends a document's set of grams to `into`: the distinct hashes in ascending order. [`jaccard`] compares two
    /// such sets, which need the same `hasher`. Two different grams have the same hash with a probability of 2⁻⁶⁴.
    ///
    /// O(n log n) for a text of n bytes. `scratch` keeps two 64-bit numbers for each token.
    ///
    /// ```
    /// use bloomline::KeyHasher;
    /// use bloomline_text::near::{Near, Scratch};
    /// let near = Near::new(0.8)?.with_ngram(2)?;
    /// let (hasher, mut scratch, mut grams) = (KeyHasher::new(0), Scratch::default(), Vec::new());
    /// near.grams(&hasher, b"a b a b a", &mut scratch, &mut grams);
    /// assert_eq!(grams.len(), 2); // "a b" and "b a"
    /// # Ok::<(), bloomline_text::near::NearError>(())
    /// ```
    pub fn grams(&self, hasher: &KeyHasher, text: &[u8], scratch: &mut Scratch, into: &mut Vec<u64>) {
        self.hash_grams(hasher, text, scratch);
        scratch.grams.sort_unstable();
        scratch.grams.dedup();
        into.extend_from_slice(&scratch.grams);
    }

    /// Sets the scratch's grams to the grams of a text, in order and with repeats.
    fn hash_grams(&self, hasher: &KeyHasher, text: &[u8], Scratch { form_scratch, tokens, grams, .. }: &mut Scratch) {
        tokens.clear();
        tokens::hashes(self.form.apply_into(text, form_scratch), hasher, tokens);
        grams.clear();
        grams::hashes(tokens, self.ngram, 1, hasher, grams);
    }
}

/// Returns the Jaccard index of two sets, given in ascending order without repeats: the number of common elements,
/// divided by the number of elements in at least one set. Two empty sets have the index 1.
///
/// The quotient is rounded once, so it is at least 0.8 exactly if 5 × common ≥ 4 × total. O(n + m).
///
/// # Examples
/// ```
/// use bloomline::KeyHasher;
/// use bloomline_text::near::{Near, Scratch, jaccard};
/// let near = Near::new(0.8)?.with_ngram(1)?;
/// let mut scratch = Scratch::default();
/// let mut set = |text: &str| {
///     let mut grams = Vec::new();
///     near.grams(&KeyHasher::new(0), text.as_bytes(), &mut scratch, &mut grams);
///     grams
/// };
/// assert_eq!(jaccard(&set("one two three four"), &set("four three two zero")), 0.6); // 3 of 5
/// # Ok::<(), bloomline_text::near::NearError>(())
/// ```
pub fn jaccard(a: &[u64], b: &[u64]) -> f64 {
    let common = common(a, b);
    share(common, a.len() + b.len() - common)
}

/// Returns the share of the elements of `a` that `b` has, from 0 to 1, for two sets given in ascending order without
/// repeats. An empty set is contained in every set. O(n + m).
///
/// # Examples
/// ```
/// use bloomline_text::near::containment;
/// assert_eq!(containment(&[1, 2, 3, 4], &[2, 3, 4, 5, 6, 7, 8, 9]), 0.75);
/// assert_eq!(containment(&[2, 3], &[1, 2, 3]), 1.0);
/// ```
pub fn containment(a: &[u64], b: &[u64]) -> f64 {
    share(common(a, b), a.len())
}

/// Returns the number of common elements of two sets.
fn common(a: &[u64], b: &[u64]) -> usize {
    let (mut common, mut i, mut j) = (0, 0, 0);
    // No branch depends on the elements, since a processor could not predict it.
    while let (Some(x), Some(y)) = (a.get(i), b.get(j)) {
        common += usize::from(x == y);
        i += usize::from(x <= y);
        j += usize::from(y <= x);
    }
    common
}

/// Returns `part / all`, which is 1 for an empty whole.
fn share(part: usize, all: usize) -> f64 {
    if all == 0 { 1.0 } else { part as f64 / all as f64 }
}

/// Returns the probability of at least one of `times` events of this probability, 1 - (1 - chance)^times, without
/// cancellation near 0.
fn at_least_one(chance: f64, times: f64) -> f64 {
    -libm::expm1(times * libm::log1p(-chance))
}

/// Reusable memory for [`Near::hash`] and [`Near::grams`]. Keep one for each thread.
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    form_scratch: form::FormScratch,
    tokens: Vec<u64>,
    grams: Vec<u64>,
    signature: Vec<u64>,
}

/// Returns true if the set has one of a document's bands, which makes it a near duplicate of an earlier document.
/// Inserts nothing. Without bands the result is `false`.
///
/// # Errors
/// Errors of the set.
///
/// # Examples
/// ```
/// use bloomline::BloomFilter;
/// use bloomline_text::near;
/// let mut seen = BloomFilter::new(1000, 1e-6)?;
/// near::claim(&mut seen, &[1 << 60, 2 << 60])?;
/// assert!(near::seen(&mut seen, &[1 << 60, 3 << 60])?);
/// assert!(!near::seen(&mut seen, &[4 << 60, 3 << 60])?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn seen<S: Set + ?Sized>(set: &mut S, bands: &[u64]) -> Result<bool, S::Error> {
    let mut found = [false; BAND_CHUNK];
    for bands in bands.chunks(BAND_CHUNK) {
        if set.contains_hashes(bands, &mut found[..bands.len()])? > 0 {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Inserts the bands of a document unless one of them was [`seen`]. Returns `true` for a document to keep, which was
/// inserted, and `false` for a near duplicate, which leaves the set unchanged. A document without bands is kept.
///
/// Two threads that look up similar documents at the same moment keep both.
///
/// # Errors
/// Errors of the set. If inserting fails, some of the bands may be in the set.
///
/// # Examples
/// ```
/// use bloomline::BloomFilter;
/// use bloomline_text::near;
/// let mut seen = BloomFilter::new(1000, 1e-6)?;
/// assert!(near::claim(&mut seen, &[1 << 60, 2 << 60])?);
/// assert!(!near::claim(&mut seen, &[3 << 60, 2 << 60])?);
/// assert!(!seen.contains_hash(3 << 60));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn claim<S: Set + ?Sized>(set: &mut S, bands: &[u64]) -> Result<bool, S::Error> {
    if seen(set, bands)? {
        return Ok(false);
    }
    let mut new = [false; BAND_CHUNK];
    for bands in bands.chunks(BAND_CHUNK) {
        set.insert_hashes(bands, &mut new[..bands.len()])?;
    }
    Ok(true)
}

/// The number of bands that are looked up together, so that the answers fit on the stack.
const BAND_CHUNK: usize = 64;
