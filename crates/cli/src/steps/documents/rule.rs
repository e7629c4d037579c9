//! The rule for documents: the keys that are looked up, and the treatment of duplicates.

use crate::key::json::Pointer;
use crate::key::{KeyPart, KeyRule};
use bloomline::KeyHasher;
use bloomline_text::near::Near;
use bloomline_text::substrings::{self, Ends};
use bloomline_text::{Form, Phrases, Rules, Unit};
use std::sync::Arc;

/// The bytes of a short paragraph.
const PARAGRAPH: u64 = 100;

/// The bytes of a word, and so of a gram.
const WORD: f64 = 6.0;

/// The bytes of a common paragraph that has grams.
const LONG_PARAGRAPH: u64 = 300;

/// Begins the part of a name that describes a sample.
const SAMPLE: &str = ", 1 of ";

/// The keys of documents, and the treatment of duplicates.
#[derive(Clone)]
pub struct DocumentRule {
    /// The location of the text.
    pub pointer: Pointer,
    /// The units, and the condition for a duplicate.
    pub text: Rules,
    /// Near duplicates of whole documents instead of units.
    pub near: Option<Near>,
    /// The similarity of near duplicates.
    pub similarity: Option<f64>,
    /// Repeated runs of words instead of units.
    pub substrings: Option<substrings::Rules>,
    /// The sample of grams that the options ask for. That of `text` may also follow from a state, or from the memory.
    pub asked_sample: Option<u32>,
    /// True if a document is kept even if only white space is left.
    pub keep_empty: bool,
    /// True if nothing is cut, and each line reports what would be.
    pub annotate: bool,
    /// The second hasher, for fingerprints of whole texts.
    pub second_hasher: Option<KeyHasher>,
    /// Short tests, which are found within texts.
    pub phrases: Option<Arc<Phrases>>,
    /// True if each line must be an object, to which a member can be added.
    pub object: bool,
}

impl DocumentRule {
    /// Returns the name of the filter's keys.
    pub fn name(&self) -> String {
        let sample = if self.text.sample > 1 { format!("{SAMPLE}{}", self.text.sample) } else { String::new() };
        self.unsampled_name() + &sample
    }

    /// Returns the name without the sample.
    pub fn unsampled_name(&self) -> String {
        let form = form_name(self.text.form, self.near.is_none() && self.text.ngram == 0);
        self.unformed_name() + &form
    }

    /// True if the keys are grams, which can be sampled.
    pub fn has_grams(&self) -> bool {
        self.near.is_none() && self.text.ngram > 0
    }

    /// Returns the name without the form.
    fn unformed_name(&self) -> String {
        match (&self.near, self.text.ngram) {
            (Some(near), _) => {
                format!("{} bands of {} of {}-grams of words", near.bands(), near.rows(), near.ngram())
            }
            (None, 0) => {
                let Rules { unit, trim, ignore_case, .. } = self.text;
                let part = KeyPart::from_pointers([self.pointer.clone()]);
                // A whole text is the same key as in other commands, except for trimmed white space.
                let name = KeyRule { ignore_case: ignore_case.into(), ..KeyRule::new(part) }.name();
                let of = if unit == Unit::Paragraph { "paragraphs of " } else { "" };
                format!("{of}{name}{}", if trim { ", without white space around" } else { "" })
            }
            (None, 1) => "words".to_owned(),
            (None, ngram) => format!("{ngram}-grams of words"),
        }
    }

    /// Describes all options that affect the result, for comparison with another run.
    pub fn description(&self) -> String {
        let Rules { unit, min_ngram, threshold, drop_document, frozen, .. } = self.text;
        let unit = if unit == Unit::Paragraph { "paragraph" } else { "document" };
        let text = self.near.is_none().then(|| {
            let ngrams = (self.text.ngram > 0).then(|| format!(", from {min_ngram} words, above {threshold}"));
            format!(", by {unit}{}", ngrams.unwrap_or_default())
        });
        let ends = self.substrings.as_ref().map(|rules| rules.ends);
        let flags = [
            (ends == Some(Ends::Words), ", cut at words"),
            (ends == Some(Ends::Lines), ", cut at lines"),
            (ends == Some(Ends::Sentences), ", cut at sentences"),
            (drop_document, ", documents dropped"),
            (frozen, ", frozen"),
            (self.keep_empty, ", empty ones kept"),
            (self.annotate, ", annotated"),
        ];
        let flags = flags.iter().filter(|(given, _)| *given).map(|(_, name)| *name);
        let sample = self.asked_sample.map(|sample| format!(", sampled 1 of {sample}"));
        let name = format!("{} at {}", self.unsampled_name(), self.pointer);
        text.into_iter().chain(sample).fold(name, |all, part| all + &part) + &flags.collect::<String>()
    }

    /// Estimates the number of keys in a piece of a line of JSON.
    pub(super) fn keys_in(&self, piece: &[u8]) -> f64 {
        match (&self.near, self.text.ngram, self.text.unit) {
            (None, 1.., _) => piece.len() as f64 / WORD / f64::from(self.text.sample.max(1)),
            (None, 0, Unit::Paragraph) => memchr::memmem::find_iter(piece, r"\n").count() as f64,
            // The other keys are of whole documents.
            _ => 0.0,
        }
    }

    /// Estimates the number of keys in so many texts with so many bytes.
    pub(super) fn keys_of(&self, texts: u64, bytes: u64) -> u64 {
        match (&self.near, self.text.ngram, self.text.unit) {
            (Some(near), ..) => texts * near.bands() as u64,
            (None, 1.., unit) => sampled_grams(unit, texts, bytes, self.text.sample),
            (None, 0, Unit::Paragraph) => texts + bytes / PARAGRAPH,
            (None, ..) => texts,
        }
    }

    /// Returns the name of units.
    pub fn units(&self) -> &'static str {
        match (&self.near, self.text.unit) {
            _ if self.substrings.is_some() => "words",
            (None, Unit::Paragraph) => "paragraphs",
            _ => "documents",
        }
    }

    /// True if paragraphs or whole texts are cut.
    pub fn cuts(&self) -> bool {
        let cuts = self.text.unit == Unit::Paragraph && self.near.is_none() || self.substrings.is_some();
        (cuts || self.keep_empty) && !self.annotate
    }

    /// Returns the name of the filter's keys in counts.
    pub fn keys(&self) -> &'static str {
        match (&self.near, self.text.ngram) {
            _ if self.substrings.is_some() => "windows",
            (Some(_), _) => "bands",
            (None, 0) => "units",
            (None, _) => "grams",
        }
    }
}

/// Estimates the number of grams in a sample of so many texts with so many bytes.
pub fn sampled_grams(unit: Unit, texts: u64, bytes: u64, sample: u32) -> u64 {
    let grams = texts as f64 + bytes as f64 / WORD;
    let paragraphs = if unit == Unit::Paragraph { bytes / LONG_PARAGRAPH } else { 0 };
    let units = (texts + paragraphs).max(1) as f64;
    if sample <= 1 {
        return grams as u64;
    }
    // Of each half, the number that chance selects is binomial, and none becomes one.
    let (of_unit, share) = ((grams / units).max(2.0), 1.0 / f64::from(sample));
    (units * (of_unit * share + 2.0 * (1.0 - share).powf(of_unit / 2.0))).min(grams) as u64
}

/// Divides a name of keys into the name without the sample, and N for a sample of one of N grams.
pub fn split_sample(name: &str) -> (&str, u32) {
    let parts = name.rsplit_once(SAMPLE).and_then(|(grams, sample)| Some((grams, sample.parse().ok()?)));
    parts.unwrap_or((name, 1))
}

/// Returns the part of a key's name that describes the form. Only `exact` texts keep white space.
fn form_name(form: Form, exact: bool) -> String {
    let switches = [
        (form.nfkc, "nfkc"),
        (form.nfc && !form.nfkc, "nfc"),
        (form.case, "case"),
        (form.digits, "digits"),
        (form.ignorable, "ignorable"),
        (form.symbols, "symbols"),
        (form.katakana, "katakana"),
        (form.punctuation && !form.symbols, "punctuation"),
        (form.space && exact, "space"),
        (form.crlf && exact && !form.space, "crlf"),
    ];
    let names: Vec<&str> = switches.iter().filter(|(on, _)| *on).map(|(_, name)| *name).collect();
    if names.is_empty() { String::new() } else { format!(", normalized by {}", names.join(",")) }
}
