//! The places in a document where it overlaps with tests, with the words around them.

use crate::steps::decontaminate::grams::TestGrams;
use crate::steps::documents::rule::DocumentRule;
use bloomline_text::{Document, words};
use serde_json::Value;
use std::collections::BTreeMap;
use std::ops::Range;

/// The number of words before and after an overlap.
const WORDS: usize = 8;

/// Returns for each test that a document overlaps with, as a JSON array, its number and the first such place: words of the document
/// in the form of the comparison, those of the test in brackets.
pub fn contexts(rule: &DocumentRule, grams: &TestGrams, document: Document<'_>, text: &str) -> String {
    let mut contexts = BTreeMap::new();
    for (verdict, hashes) in document.verdicts().zip(document.hashes()) {
        if verdict.found == 0 {
            continue;
        }
        let unit = super::word_form(&rule.text).apply(&text[verdict.range.clone()]);
        let words: Vec<&str> = words(&unit).collect();
        let mut places: BTreeMap<u32, Range<usize>> = BTreeMap::new();
        let mut add = |hash: u64, place: Range<usize>| {
            for (_, test) in grams.tests_of(hash) {
                let known = places.entry(test).or_insert_with(|| place.clone());
                // A run of grams is one place.
                if place.start <= known.start + 1 || place.end == known.end + 1 {
                    known.end = known.end.max(place.end);
                }
            }
        };
        let windows = words.len().saturating_sub(rule.text.ngram - 1);
        hashes.iter().take(windows).enumerate().for_each(|(i, hash)| add(*hash, i..i + rule.text.ngram));
        let found = rule.phrases.iter().flat_map(|phrases| phrases.find(&text[verdict.range.clone()]));
        found.for_each(|found| add(found.key, found.words));
        for (test, place) in places {
            contexts.entry(test).or_insert_with(|| excerpt(&words, place));
        }
    }
    Value::from_iter(contexts.into_iter().map(|(test, context)| Value::from(vec![Value::from(test), context.into()])))
        .to_string()
}

/// Returns some words of a text, in brackets, with the words around them.
fn excerpt(words: &[&str], place: Range<usize>) -> String {
    let before = words[place.start.saturating_sub(WORDS)..place.start].join(" ");
    let after = words[place.end..words.len().min(place.end + WORDS)].join(" ");
    format!("{before} [{}] {after}", words[place].join(" ")).trim().to_owned()
}

/// Returns the context of a test from those of a document.
pub fn context_of(contexts: &str, test: u64) -> Option<Value> {
    let contexts: Vec<(u64, Value)> = serde_json::from_str(contexts).ok()?;
    contexts.into_iter().find(|(number, _)| *number == test).map(|(_, context)| context)
}
