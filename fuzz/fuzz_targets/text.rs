//! The results for any documents by any rules, compared with the specification.
#![no_main]

#[path = "../../crates/text/tests/text/specification.rs"]
mod specification;

use bloomline::KeyHasher;
use bloomline_text::near::{Near, Scratch};
use bloomline_text::{Rules, Texts, Unit};
use libfuzzer_sys::fuzz_target;
use specification::{Exact, Specification, outcomes};
use std::collections::HashSet;

fuzz_target!(|input: ([bool; 5], u8, u8, u8, Vec<Vec<u8>>)| {
    let ([document, drop_document, trim, ignore_case, frozen], ngram, min_ngram, share, documents) = input;
    let mut rules = Rules::default();
    rules.unit = if document { Unit::Document } else { Unit::Paragraph };
    (rules.ngram, rules.min_ngram) = (usize::from(ngram % 5), usize::from(min_ngram % 6));
    rules.threshold = f64::from(share % 11) / 10.0;
    (rules.drop_document, rules.frozen) = (drop_document, frozen);
    (rules.trim, rules.ignore_case) = (trim, ignore_case);
    let hasher = KeyHasher::new(0);
    let (mut texts, mut set) = (Texts::default(), Exact::default());
    documents.iter().for_each(|text| texts.push(&rules, &hasher, text));
    texts.decide(&rules, &mut set).unwrap();
    let mut specification = Specification { rules, seen: HashSet::new() };
    let expected: Vec<_> = documents.iter().map(|text| specification.push(text)).collect();
    assert_eq!(outcomes(&texts), expected);

    let near = Near::with_bands(3, 2).unwrap();
    for text in &documents {
        let mut bands = Vec::new();
        near.hash(&hasher, text, &mut Scratch::default(), &mut bands);
        assert_eq!(bands.len(), if Specification::tokens(text).is_empty() { 0 } else { 3 });
    }
});
