//! A slow specification of the rules: tokens of the library for word boundaries, and sets of their sequences.

use bloomline_text::{Rules, Set, Texts, Unit, words};
use std::collections::HashSet;
use std::convert::Infallible;

/// A set without false positives.
#[derive(Default)]
pub struct Exact(pub HashSet<u64>);

impl Set for Exact {
    type Error = Infallible;

    fn contains_hashes(&mut self, hashes: &[u64], found: &mut [bool]) -> Result<usize, Infallible> {
        assert_eq!(hashes.len(), found.len());
        hashes.iter().zip(&mut *found).for_each(|(hash, found)| *found = self.0.contains(hash));
        Ok(found.iter().filter(|found| **found).count())
    }

    fn insert_hashes(&mut self, hashes: &[u64], new: &mut [bool]) -> Result<usize, Infallible> {
        assert_eq!(hashes.len(), new.len());
        hashes.iter().zip(&mut *new).for_each(|(hash, new)| *new = self.0.insert(*hash));
        Ok(new.iter().filter(|new| **new).count())
    }
}

/// A gram: its tokens, or an exact text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Gram {
    Tokens(Vec<Vec<u8>>),
    Text(Vec<u8>),
}

/// The verdict for a document: the range, grams, found grams and verdict of each unit, and true if it is dropped.
pub type Outcome = (Vec<(usize, usize, usize, usize, bool)>, bool);

/// A second implementation of the rules.
pub struct Specification {
    pub rules: Rules,
    pub seen: HashSet<Gram>,
}

impl Specification {
    fn units(&self, text: &[u8]) -> Vec<(usize, usize)> {
        let mut cuts = vec![0];
        if self.rules.unit == Unit::Paragraph {
            cuts.extend((0..text.len()).filter(|&at| text[at] == b'\n'));
        }
        cuts.push(text.len());
        cuts.windows(2).map(|cut| (cut[0], cut[1])).collect()
    }

    /// Returns the tokens of a unit.
    pub fn tokens(unit: &[u8]) -> Vec<Vec<u8>> {
        let mut tokens = Vec::new();
        for chunk in unit.utf8_chunks() {
            tokens.extend(words(chunk.valid()).map(|token| token.as_bytes().to_vec()));
            tokens.extend((!chunk.invalid().is_empty()).then(|| chunk.invalid().to_vec()));
        }
        tokens
    }

    fn exact(&self, unit: &[u8]) -> Option<Gram> {
        let unit = match self.rules.unit {
            Unit::Paragraph => unit.strip_prefix(b"\n").unwrap_or(unit),
            Unit::Document => unit,
            by => unreachable!("not specified: {by:?}"),
        };
        let text = str::from_utf8(unit);
        if text.is_ok_and(|text| text.trim().is_empty()) {
            return None;
        }
        let trimmed = match text {
            _ if !self.rules.trim => unit,
            Ok(text) => text.trim().as_bytes(),
            Err(_) => unit.trim_ascii(),
        };
        Some(Gram::Text(match str::from_utf8(trimmed) {
            _ if !self.rules.ignore_case => trimmed.to_vec(),
            Ok(text) => text.to_lowercase().into_bytes(),
            Err(_) => trimmed.to_ascii_lowercase(),
        }))
    }

    /// Returns the grams of a unit, or its exact text.
    fn grams(&self, unit: &[u8]) -> Vec<Gram> {
        let Rules { ngram, min_ngram, .. } = self.rules;
        if ngram == 0 {
            return self.exact(unit).into_iter().collect();
        }
        let tokens = Self::tokens(unit);
        let mut grams: Vec<Gram> = tokens.windows(ngram).map(|tokens| Gram::Tokens(tokens.to_vec())).collect();
        if grams.is_empty() && !tokens.is_empty() && tokens.len() >= min_ngram {
            grams.push(Gram::Tokens(tokens));
        }
        grams
    }

    fn enough(&self, found: usize, grams: usize) -> bool {
        found as f64 / grams as f64 > self.rules.threshold
    }

    /// Decides the next document.
    pub fn push(&mut self, text: &[u8]) -> Outcome {
        let all: Vec<Gram> =
            self.units(text).into_iter().flat_map(|(start, end)| self.grams(&text[start..end])).collect();
        let found = all.iter().filter(|gram| self.seen.contains(gram)).count();
        // A dropped document inserts nothing.
        let dropped = self.rules.drop_document && self.enough(found, all.len());
        let mut units = Vec::new();
        for (start, end) in self.units(text) {
            let grams = self.grams(&text[start..end]);
            let (count, found) = (grams.len(), grams.iter().filter(|gram| self.seen.contains(gram)).count());
            let cut = if self.rules.ngram == 0 { found > 0 } else { self.enough(found, count) };
            if !cut && !self.rules.frozen && !dropped {
                self.seen.extend(grams);
            }
            units.push((start, end, count, found, cut));
        }
        (units, dropped)
    }
}

/// Returns the verdicts of documents that are decided.
pub fn outcomes(texts: &Texts) -> Vec<Outcome> {
    let outcome = |i| {
        let document = texts.document(i);
        let units: Vec<_> = document
            .verdicts()
            .map(|unit| (unit.range.start, unit.range.end, unit.grams, unit.found, unit.cut))
            .collect();
        assert_eq!(document.grams(), units.iter().map(|unit| unit.2).sum::<usize>());
        assert_eq!(document.found(), units.iter().map(|unit| unit.3).sum::<usize>());
        (units, document.dropped())
    };
    (0..texts.len()).map(outcome).collect()
}
