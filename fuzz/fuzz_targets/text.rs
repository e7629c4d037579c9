//! The tokens of any text beside those of the library for word boundaries, by the fate of each paragraph: each token is a gram.
#![no_main]

use bloomline::KeyHasher;
use bloomline::text::{By, Rules, Set, Texts, words};
use libfuzzer_sys::fuzz_target;
use std::collections::HashSet;
use std::convert::Infallible;

#[derive(Default)]
struct Exact(HashSet<u64>);

impl Set for Exact {
    type Error = Infallible;

    fn contains_hashes(&mut self, hashes: &[u64], found: &mut [bool]) -> Result<usize, Infallible> {
        hashes.iter().zip(&mut *found).for_each(|(hash, found)| *found = self.0.contains(hash));
        Ok(found.iter().filter(|found| **found).count())
    }

    fn insert_hashes(&mut self, hashes: &[u64], new: &mut [bool]) -> Result<usize, Infallible> {
        hashes.iter().zip(&mut *new).for_each(|(hash, new)| *new = self.0.insert(*hash));
        Ok(new.iter().filter(|new| **new).count())
    }
}

fn tokens(text: &[u8]) -> Vec<&[u8]> {
    let mut tokens = Vec::new();
    for chunk in text.utf8_chunks() {
        tokens.extend(words(chunk.valid()).map(str::as_bytes));
        tokens.extend((!chunk.invalid().is_empty()).then(|| chunk.invalid()));
    }
    tokens
}

fuzz_target!(|input: (u8, bool, &[u8])| {
    let (ngram, document, text) = input;
    let ngram = 1 + usize::from(ngram % 4);
    let by = if document { By::Document } else { By::Paragraph };
    let rules = Rules { by, ngram, min_ngram: 1, threshold: 0.5, ..Rules::default() };
    let (mut texts, mut set) = (Texts::default(), Exact::default());
    texts.push(&rules, &KeyHasher::new(0), text);
    texts.decide(&rules, &mut set).unwrap();

    let mut starts = vec![0];
    starts.extend((0..text.len()).filter(|&at| !document && text[at] == b'\n'));
    let mut seen: HashSet<Vec<&[u8]>> = HashSet::new();
    let mut verdicts = texts.document(0).verdicts();
    for (i, &start) in starts.iter().enumerate() {
        let range = start..starts.get(i + 1).copied().unwrap_or(text.len());
        let tokens = tokens(&text[range.clone()]);
        let grams: Vec<Vec<&[u8]>> = match tokens.len() {
            0 => Vec::new(),
            few if few < ngram => vec![tokens],
            _ => tokens.windows(ngram).map(<[_]>::to_vec).collect(),
        };
        let found = grams.iter().filter(|gram| seen.contains(*gram)).count();
        let verdict = verdicts.next().unwrap();
        assert_eq!((verdict.range, verdict.grams, verdict.found), (range, grams.len(), found));
        assert_eq!(verdict.cut, found as f64 / grams.len() as f64 > 0.5);
        if !verdict.cut {
            seen.extend(grams);
        }
    }
    assert!(verdicts.next().is_none());
});
