//! Decisions about texts, compared with a slow specification: tokens of the library for word boundaries, and sets of
//! their sequences.

mod specification;

use crate::near::{specified_gram, specified_token};
use bloomline::{AtomicBloomFilter, AtomicScalableBloomFilter, BloomFilter, KeyHasher, ScalableBloomFilter};
use bloomline_text::{Rules, Texts, Unit, words};
use proptest::prelude::*;
use specification::{Exact, Outcome, Specification, outcomes};
use std::collections::HashSet;

/// Text of few distinct words, so that much of it repeats.
fn text() -> impl Strategy<Value = Vec<u8>> {
    let words: &[&[u8]] = &[
        b"a ",
        b"b ",
        b"A",
        b" ",
        b"\n",
        b"\n",
        b"a b c d ",
        b"it's ",
        b".",
        b"1,",
        b"\t",
        b"\r\n",
        b"\x80",
        b"\xF0\x9F",
    ];
    let others: &[&str] =
        &["é", "É", "中", "\u{301}", "\u{200D}", "😀", "🇩🇪", "א'", "カ", "\u{A0}", "\u{3000}", "’", "İ"];
    let piece = prop_oneof![
        4 => prop::sample::select(words).prop_map(Vec::from),
        1 => prop::sample::select(others).prop_map(|piece| piece.as_bytes().to_vec()),
    ];
    prop::collection::vec(piece, 0..30).prop_map(|pieces| pieces.concat())
}

fn rules() -> impl Strategy<Value = Rules> {
    let numbers = (0..5usize, 0..5usize, prop::sample::select(&[0.0, 0.25, 1.0 / 3.0, 0.5, 0.8, 1.0][..]));
    (any::<[bool; 5]>(), numbers).prop_map(|(flags, (ngram, min_ngram, threshold))| {
        let [document, drop_document, trim, ignore_case, frozen] = flags;
        let by = if document { Unit::Document } else { Unit::Paragraph };
        let mut rules = Rules::default();
        (rules.unit, rules.frozen, rules.drop_document) = (by, frozen, drop_document);
        (rules.ngram, rules.min_ngram, rules.threshold) = (ngram, min_ngram, threshold);
        (rules.trim, rules.ignore_case) = (trim, ignore_case);
        rules
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn any_texts_are_decided_as_specified(
        rules in rules(),
        before in prop::collection::vec(text(), 0..3),
        batches in prop::collection::vec(prop::collection::vec(text(), 0..4), 1..3),
        seed: u64,
    ) {
        let hasher = KeyHasher::new(seed);
        let mut thawed = rules.clone();
        thawed.frozen = false;
        let mut specification = Specification { rules: thawed.clone(), seen: HashSet::new() };
        let (mut texts, mut set) = (Texts::default(), Exact::default());
        // The documents that were inserted before the rules are frozen.
        for text in &before {
            specification.push(text);
            texts.push(&thawed, &hasher, text);
        }
        texts.decide(&thawed, &mut set).unwrap();
        specification.rules = rules.clone();
        for batch in &batches {
            texts.clear();
            prop_assert!(texts.is_empty());
            let specified: Vec<Outcome> = batch.iter().map(|text| specification.push(text)).collect();
            batch.iter().for_each(|text| texts.push(&rules, &hasher, text));
            texts.decide(&rules, &mut set).unwrap();
            prop_assert_eq!(outcomes(&texts), specified);
        }
        prop_assert_eq!(set.0.len(), specification.seen.len());
    }
}

/// Returns the sample of a unit's grams, as specified.
fn sampled(unit: &[u64], share: u32) -> Vec<u64> {
    let (first, second) = unit.split_at(unit.len() / 2);
    let halves = [first, second].map(|half| {
        let lowest = half.iter().map(|hash| hash.swap_bytes()).min().unwrap_or(0);
        let max = lowest.max(u64::MAX / u64::from(share.max(1)));
        half.iter().copied().filter(|hash| hash.swap_bytes() <= max).collect::<Vec<u64>>()
    });
    halves.concat()
}

proptest! {
    /// A sampled unit is decided by the grams of low rank in each half, and counts with all its grams for the document.
    #[test]
    fn any_texts_are_sampled_as_specified(rules in rules(), texts in prop::collection::vec(text(), 1..8), sample in 0..6u32, seed: u64) {
        let all = rules;
        let mut rules = all.clone();
        rules.sample = sample;
        let hasher = KeyHasher::new(seed);
        let (mut set, mut seen) = (Exact::default(), HashSet::new());
        let mut batch = Texts::default();
        for text in &texts {
            batch.clear();
            batch.push(&all, &hasher, text);
            let units: Vec<Vec<u64>> = batch.document(0).hashes().map(<[u64]>::to_vec).collect();
            let counts: Vec<usize> = units.iter().map(Vec::len).collect();
            let samples = units.into_iter().map(|unit| if rules.ngram > 0 { sampled(&unit, sample) } else { unit });
            let samples: Vec<Vec<u64>> = samples.collect();
            let found_in = |unit: &[u64], seen: &HashSet<u64>| unit.iter().filter(|hash| seen.contains(*hash)).count();
            let shares = counts.iter().zip(&samples).filter(|(count, _)| **count > 0);
            let found: f64 = shares
                .map(|(&count, unit)| count as f64 * found_in(unit, &seen) as f64 / unit.len() as f64)
                .sum();
            let dropped = rules.drop_document && found / counts.iter().sum::<usize>() as f64 > rules.threshold;
            let mut expected = Vec::new();
            for unit in samples {
                let found = found_in(&unit, &seen);
                let cut = rules.is_duplicate(unit.len(), found);
                expected.push((unit.len(), found, cut));
                if !cut && !rules.frozen && !dropped {
                    seen.extend(unit);
                }
            }
            batch.clear();
            batch.push(&rules, &hasher, text);
            batch.decide(&rules, &mut set).unwrap();
            let document = batch.document(0);
            let units: Vec<_> = document.verdicts().map(|unit| (unit.grams, unit.found, unit.cut)).collect();
            prop_assert_eq!(units, expected);
            prop_assert_eq!(document.dropped(), dropped);
            prop_assert!(set.0 == seen);
        }
    }
}

/// No filter has a false positive here.
#[test]
fn all_filters_decide_alike() {
    let text = b"one two three four\nfive six seven eight\none two three four\nfive six seven nine\none two three four";
    let mut rules = Rules::default();
    (rules.ngram, rules.min_ngram, rules.threshold) = (2, 1, 0.6);
    let mut filter = BloomFilter::new(10_000, 1e-9).unwrap();
    let hasher = filter.hasher().clone();
    let shared = AtomicBloomFilter::new(10_000, 1e-9).unwrap();
    let mut scalable = ScalableBloomFilter::new(10, 1e-9).unwrap();
    let shared_scalable = AtomicScalableBloomFilter::new(10, 1e-9).unwrap();
    for (ngram, expected_cuts) in [(2, [false, false, true, true, true]), (0, [false, false, true, false, true])] {
        rules.ngram = ngram;
        let outcome = |decide: &mut dyn FnMut(&mut Texts)| {
            let mut texts = Texts::default();
            texts.push(&rules, &hasher, text);
            decide(&mut texts);
            outcomes(&texts)
        };
        let expected = outcome(&mut |texts| texts.decide(&rules, &mut filter).unwrap());
        assert_eq!(outcome(&mut |texts| texts.decide(&rules, &mut (&shared)).unwrap()), expected);
        assert_eq!(outcome(&mut |texts| texts.decide(&rules, &mut scalable).unwrap()), expected);
        assert_eq!(outcome(&mut |texts| texts.decide(&rules, &mut (&shared_scalable)).unwrap()), expected);
        let cuts: Vec<bool> = expected[0].0.iter().map(|unit| unit.4).collect();
        assert_eq!(cuts, expected_cuts);
    }
}

/// An exact paragraph has the key of a line of the same bytes.
#[test]
fn exact_text_has_the_hash_of_its_bytes() {
    let mut filter = BloomFilter::new(1000, 1e-9).unwrap();
    filter.insert("a line");
    let mut rules = Rules::default();
    rules.ngram = 0;
    let mut texts = Texts::default();
    texts.push(&rules, filter.hasher(), b"first\na line\n\na line ");
    texts.decide(&rules, &mut filter).unwrap();
    let cuts: Vec<_> = texts.document(0).verdicts().filter(|unit| unit.cut).map(|unit| unit.range).collect();
    assert_eq!(cuts, vec![5..12]);
    assert!(filter.contains("first") && filter.contains("a line ") && !filter.contains(""));
}

/// Returns the hashes that a document inserts into an empty set.
fn inserted(rules: &Rules, hasher: &KeyHasher, text: &str) -> HashSet<u64> {
    let (mut texts, mut set) = (Texts::default(), Exact::default());
    texts.push(rules, hasher, text.as_bytes());
    texts.decide(rules, &mut set).unwrap();
    set.0
}

/// The hash of each gram follows from its tokens, as crates/text/FORMAT.md specifies ("Hashes of grams").
#[test]
fn grams_have_the_hashes_of_the_format() {
    for seed in [0, 1, 0x9E37_79B9_7F4A_7C15] {
        let secret = wyhash::final3::make_secret(seed);
        let gram = |tokens: &[&str]| {
            let tokens: Vec<u64> = tokens.iter().map(|token| specified_token(token, seed, secret)).collect();
            specified_gram(&tokens, secret)
        };
        let text = "It's 3.14 in eighteen_and_more_bytes, sixteen_bytes_ok a ü 日本 \u{1F600}! 7";
        let tokens: Vec<&str> = words(text).collect();
        assert_eq!(tokens.len(), 13);
        for (ngram, min_ngram) in [(1, 1), (2, 1), (3, 1), (13, 1), (14, 13), (20, 1)] {
            let mut rules = Rules::default();
            (rules.ngram, rules.min_ngram) = (ngram, min_ngram);
            let mut expected: HashSet<u64> = tokens.windows(ngram).map(gram).collect();
            if tokens.len() < ngram {
                expected.insert(gram(&tokens));
            }
            assert_eq!(inserted(&rules, &KeyHasher::new(seed), text), expected, "{ngram}");
        }
    }
}

/// The hashes that the Python of crates/text/FORMAT.md computes for some grams.
#[test]
fn golden_grams_have_the_documented_hashes() {
    let sixteen = "x".repeat(16);
    let golden: [(u64, &[&str], u64); 3] = [
        (0, &["a"], 0x9BC4_C886_A52E_4A09),
        (7, &["the", "quick", "brown", "fox"], 0x94DF_CF38_399A_D97D),
        (u64::MAX, &["Überschallgeschwindigkeit", "テスト", ",", &sixteen], 0x616C_12B4_7EEF_77C8),
    ];
    for (seed, tokens, hash) in golden {
        let text = tokens.join(" ");
        assert!(words(&text).eq(tokens.iter().copied()));
        let mut rules = Rules::default();
        rules.ngram = tokens.len();
        assert_eq!(inserted(&rules, &KeyHasher::new(seed), &text), HashSet::from([hash]), "{tokens:?}");
    }
}

/// Returns random text of `words` words with Zipf's distribution: the n-th word has a weight of 1/n.
fn natural(seed: u64, words: usize) -> String {
    let mut state = seed;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f64 / (1u64 << 24) as f64
    };
    let mut text = String::new();
    for i in 0..words {
        let rank = 50_000f64.powf(random()) as u64;
        text += &format!("{}{:x} ", ["w", "a", "the", "x"][(rank % 4) as usize], rank * 37);
        if i % 15 == 14 {
            text += ".";
        }
    }
    text
}

/// Grams behave as random keys: the number of false positives in new text matches the filter's bits and the model
/// within 5 standard deviations, a bound that a correct filter exceeds for one seed in 1.7 million.
#[test]
fn grams_are_found_by_mistake_at_the_rate_of_the_filter() {
    let texts = [1, 2].map(|seed| natural(seed, 200_000));
    for ngram in [1, 2, 5, 13, 64] {
        let mut rules = Rules::default();
        (rules.ngram, rules.unit, rules.threshold) = (ngram, Unit::Document, 1.0);
        let hasher = KeyHasher::new(ngram as u64);
        let [present, fresh] = texts.each_ref().map(|text| inserted(&rules, &hasher, text));
        let present_hashes: Vec<u64> = present.iter().copied().collect();
        let absent: Vec<u64> = fresh.difference(&present).copied().collect();
        // One byte for each key.
        let builder = BloomFilter::builder().memory(present.len()).probes(4).seed(hasher.seed());
        let mut filter: BloomFilter = builder.build().unwrap();
        filter.insert_hashes(&present_hashes, &mut vec![false; present_hashes.len()]);
        let found = filter.contains_hashes(&absent, &mut vec![false; absent.len()]) as f64;
        let rate = filter.current_fpr();
        let (mean, deviation) = (rate * absent.len() as f64, (rate * (1.0 - rate) * absent.len() as f64).sqrt());
        assert!(mean > 100.0, "{ngram}: {mean}");
        assert!((found - mean).abs() < 5.0 * deviation, "{ngram}: {found}, {mean} ± {deviation}");
        // The fraction of bits set by n random keys deviates by 0.21/√n of itself, and the rate is about its fourth
        // power.
        let (keys, model) = (present.len() as f64, filter.expected_fpr(present.len() as u64));
        assert!((rate / model - 1.0).abs() < 5.0 * 4.0 * 0.21 / keys.sqrt(), "{ngram}: {rate}, {model}");
    }
}

/// Paragraphs in various orders and lengths. Each may repeat parts of earlier ones.
#[test]
fn long_texts_are_decided_as_specified() {
    let text = natural(5, 20_000);
    let tokens: Vec<&str> = text.split(' ').collect();
    let mut state = 1u64;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let mut documents = Vec::new();
    for _ in 0..40 {
        let mut paragraph = || {
            let length = [1, 20, 200, 3000][random(4)];
            let start = random(tokens.len() - length);
            tokens[start..start + length].join(" ")
        };
        documents.push((0..12).map(|_| paragraph()).collect::<Vec<_>>().join("\n"));
    }
    for (threshold, frozen) in [(0.3, false), (0.9, false), (0.3, true)] {
        let mut rules = Rules::default();
        (rules.ngram, rules.min_ngram, rules.threshold, rules.drop_document) = (5, 1, threshold, true);
        let mut specification = Specification { rules: rules.clone(), seen: HashSet::new() };
        let (mut texts, mut set) = (Texts::default(), Exact::default());
        for (batch, frozen) in [(&documents[..20], false), (&documents[20..], frozen)] {
            rules.frozen = frozen;
            specification.rules = rules.clone();
            texts.clear();
            batch.iter().for_each(|text| texts.push(&rules, &KeyHasher::new(0), text.as_bytes()));
            texts.decide(&rules, &mut set).unwrap();
            assert!(texts.grams() > 50_000);
            let specified: Vec<Outcome> = batch.iter().map(|text| specification.push(text.as_bytes())).collect();
            assert!(outcomes(&texts) == specified, "{threshold} {frozen}");
            let cut = specified.iter().flat_map(|(units, _)| units).filter(|unit| unit.4).count();
            assert!((20..220).contains(&cut), "{cut}");
        }
    }
}

#[test]
fn huge_paragraphs_are_decided() {
    let mut rules = Rules::default();
    rules.threshold = 0.9;
    let text = format!("{}\n{}", natural(1, 1_000_000), "x".repeat(5_000_000));
    let mut set = Exact::default();
    let mut texts = Texts::default();
    for _ in 0..2 {
        texts.push(&rules, &KeyHasher::new(0), text.as_bytes());
    }
    texts.decide(&rules, &mut set).unwrap();
    let of = |i: usize| {
        texts.document(i).verdicts().map(|unit| (unit.range.len(), unit.grams, unit.cut)).collect::<Vec<_>>()
    };
    let tokens = words(text.split('\n').next().unwrap()).count();
    assert_eq!(of(0), [(text.len() - 5_000_001, tokens - 12, false), (5_000_001, 0, false)]);
    assert_eq!(of(1), [(text.len() - 5_000_001, tokens - 12, true), (5_000_001, 0, false)]);
}

/// In scripts without spaces, a gram of n words is a gram of n characters, except for Katakana and Hangul.
#[test]
fn words_of_scripts_without_spaces_are_characters() {
    for (text, expected) in [
        ("我喜欢中文", &["我", "喜", "欢", "中", "文"][..]),
        ("日本語です", &["日", "本", "語", "で", "す"]),
        // A character of Thai includes its vowels above and below, and its tone.
        ("น้ำดื่ม", &["น้", "ำ", "ดื่", "ม"]),
        ("ພາສາ", &["ພ", "າ", "ສ", "າ"]),
        ("カタカナとひらがな", &["カタカナ", "と", "ひ", "ら", "が", "な"]),
        ("한국어 텍스트", &["한국어", "텍스트"]),
        ("Привет, мир", &["Привет", ",", "мир"]),
        ("مرحبا بالعالم", &["مرحبا", "بالعالم"]),
        ("e\u{301}t\u{E9}", &["e\u{301}t\u{E9}"]),
        ("👩\u{200D}👩\u{200D}👧🇩🇪🇫🇷", &["👩\u{200D}👩\u{200D}👧", "🇩🇪", "🇫🇷"]),
    ] {
        assert_eq!(words(text).collect::<Vec<_>>(), expected);
    }
}
