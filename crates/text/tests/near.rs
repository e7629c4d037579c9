//! Near duplicates, compared with exact Jaccard similarities, the formula of the curve, and a slow specification of the
//! hashes.
//!
//! Seeds are fixed, so the tests are deterministic. A bound of four standard deviations holds for a correct build with
//! all but one seed in 16,000.

use bloomline::{BloomFilter, BuildError, KeyHasher};
use bloomline_text::near::{self, Near, NearError, Scratch};
use bloomline_text::{Set, words};
use proptest::prelude::*;
use std::collections::{BTreeSet, HashSet};

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let i = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let i = (i ^ i >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        i ^ i >> 31
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
}

fn hash(near: Near, hasher: &KeyHasher, text: &str) -> Vec<u64> {
    let mut bands = Vec::new();
    near.hash(hasher, text.as_bytes(), &mut Scratch::default(), &mut bands);
    bands
}

/// Returns two texts that share `shared` of `all` words, and have as many different words each.
fn pair(random: &mut Random, all: usize, shared: usize) -> [String; 2] {
    let words: Vec<_> = (0..all).map(|_| format!("{:x} ", random.next())).collect();
    let (common, rest) = words.split_at(shared);
    let (left, right) = rest.split_at(rest.len() / 2);
    [left, right].map(|own| [common, own].concat().concat())
}

// The choice of bands and rows.

/// The area of errors, by the midpoint rule.
fn errors(similarity: f64, bands: usize, rows: usize) -> f64 {
    const STEPS: usize = 20_000;
    let midpoints = (0..STEPS).map(|i| (i as f64 + 0.5) / STEPS as f64);
    let at = |s: f64| {
        let missed = (1.0 - s.powi(rows as i32)).powi(bands as i32);
        if s < similarity { 1.0 - missed } else { missed }
    };
    midpoints.map(at).sum::<f64>() / STEPS as f64
}

#[test]
fn no_other_bands_and_rows_have_a_smaller_area_of_errors() {
    for (similarity, permutations) in [(0.8, 2), (0.3, 16), (0.5, 50), (0.95, 50), (0.8, 128)] {
        let near = Near::with_permutations(similarity, permutations).unwrap();
        let chosen = errors(similarity, near.bands(), near.rows());
        for rows in 1..=permutations {
            for bands in 1..=permutations / rows {
                let other = errors(similarity, bands, rows);
                assert!(chosen < other + 1e-5, "{near:?} {chosen} {bands} {rows} {other}");
            }
        }
    }
}

#[test]
fn the_choice_matches_datasketch() {
    // `datasketch.lsh._optimal_param(similarity, permutations, 0.5, 0.5)` of version 2.0.0.
    let theirs = [
        (0.5, 128, (25, 5)),
        (0.5, 256, (42, 6)),
        (0.7, 128, (14, 9)),
        (0.7, 256, (25, 10)),
        (0.8, 128, (9, 13)),
        (0.8, 256, (17, 15)),
        (0.9, 128, (5, 25)),
        (0.9, 256, (9, 28)),
        (0.95, 128, (3, 42)),
        (0.95, 256, (5, 51)),
    ];
    for (similarity, permutations, theirs) in theirs {
        let near = Near::with_permutations(similarity, permutations).unwrap();
        assert_eq!((near.bands(), near.rows()), theirs, "{similarity} {permutations}");
    }
}

#[test]
fn numbers_out_of_range_are_refused_by_name() {
    for value in [0.0, 1.0, -0.5, 80.0, f64::INFINITY] {
        assert_eq!(Near::new(value), Err(NearError::Similarity { value }));
    }
    assert!(Near::new(f64::NAN).is_err());
    for value in [0, 1, 16_385, usize::MAX] {
        let error = Near::with_permutations(0.8, value).unwrap_err();
        assert_eq!(error.to_string(), format!("{value} permutations: give 2 to 16384"));
    }
    for (bands, rows) in [(0, 1), (1, 0), (0, 0), (16_385, 1), (129, 128), (1 << 33, 1 << 33)] {
        let error = Near::with_bands(bands, rows).unwrap_err();
        assert!(error.to_string().starts_with(&format!("{bands} bands of {rows} rows: ")), "{error}");
    }
    assert_eq!(Near::new(0.8).unwrap().with_ngram(0), Err(NearError::Ngram));
    assert!(Near::with_bands(128, 128).is_ok() && Near::with_permutations(1e-9, 2).is_ok());
}

// Sets of grams.

fn gram_set(near: Near, text: &str) -> Vec<u64> {
    let mut grams = vec![7];
    near.grams(&KeyHasher::new(3), text.as_bytes(), &mut Scratch::default(), &mut grams);
    assert_eq!(grams.remove(0), 7);
    grams
}

proptest! {
    #[test]
    fn the_similarity_of_two_texts_equals_that_of_their_sets_of_windows(
        ngram in 1_usize..4,
        texts in prop::array::uniform2(prop::collection::vec(
            prop::sample::select(vec!["a", "B", "слово", "言", "ไทย", "e\u{301}", "👩‍🚀", "كلمة", "a", "a", "B"]), 0..40,
        )),
    ) {
        let texts = texts.map(|tokens| tokens.join(" , "));
        let near = Near::new(0.8).unwrap().with_ngram(ngram).unwrap();
        let windows = texts.each_ref().map(|text| {
            let words: Vec<_> = words(text).collect();
            let windows: HashSet<_> = words.windows(ngram.min(words.len()).max(1)).map(|gram| gram.concat()).collect();
            windows
        });
        let sets = texts.each_ref().map(|text| gram_set(near, text));
        for (set, windows) in sets.iter().zip(&windows) {
            prop_assert!(set.is_sorted_by(|a, b| a < b));
            prop_assert_eq!(set.len(), windows.len());
        }
        let [a, b] = &windows;
        let expected = match a.union(b).count() {
            0 => 1.0,
            either => a.intersection(b).count() as f64 / either as f64,
        };
        prop_assert_eq!(near::jaccard(&sets[0], &sets[1]), expected);
        prop_assert_eq!(near::jaccard(&sets[1], &sets[0]), expected);
    }
}

// Signatures.

/// With one row in a band, the fraction of equal bands is the estimate.
#[test]
fn signatures_estimate_the_similarity_without_bias() {
    const VALUES: usize = 117;
    let near = Near::with_bands(VALUES, 1).unwrap().with_ngram(1).unwrap();
    let (hasher, mut random) = (KeyHasher::new(1), Random(1));
    for (all, shared, trials) in
        [(2, 1, 2000), (12, 10, 2000), (50, 30, 2000), (120, 96, 2000), (500, 400, 1000), (4000, 800, 300)]
    {
        let (similarity, mut sum, mut squares) = (shared as f64 / all as f64, 0.0, 0.0);
        for _ in 0..trials {
            let [left, right] = pair(&mut random, all, shared).map(|text| hash(near, &hasher, &text));
            let equal = left.iter().zip(&right).filter(|(left, right)| left == right).count();
            let error = equal as f64 / VALUES as f64 - similarity;
            sum += error;
            squares += error * error;
        }
        // The variance for independent values. The values of fast similarity sketching repel each other, so their
        // variance is smaller.
        let variance = similarity * (1.0 - similarity) / VALUES as f64;
        let trials = f64::from(trials);
        let bias = sum / trials;
        assert!(bias.abs() < 4.0 * (variance / trials).sqrt(), "{all} {shared}: {bias}");
        let measured = squares / trials;
        assert!(measured < variance * (1.0 + 4.0 * (2.0 / trials).sqrt()), "{all} {shared}: {measured} {variance}");
    }
}

#[test]
fn pairs_are_found_as_often_as_the_formula_says() {
    let near = Near::new(0.8).unwrap().with_ngram(1).unwrap();
    let (hasher, mut random) = (KeyHasher::new(2), Random(2));
    let mut share = |all, shared, trials: usize| {
        let found = (0..trials).filter(|_| {
            let [left, right] = pair(&mut random, all, shared).map(|text| hash(near, &hasher, &text));
            left.iter().zip(&right).any(|(left, right)| left == right)
        });
        let formula = near.probability(shared as f64 / all as f64);
        let deviation = (formula * (1.0 - formula) / trials as f64).sqrt();
        (found.count() as f64 / trials as f64, formula, deviation)
    };
    for (all, shared) in [(20, 18), (100, 90), (100, 95), (500, 450), (500, 485)] {
        let (found, formula, deviation) = share(all, shared, 1000);
        assert!(found > formula - 4.0 * deviation, "{all} {shared}: {found} {formula}");
    }
    for (all, shared) in [(20, 12), (100, 60), (100, 30), (500, 300), (500, 5)] {
        let (found, formula, deviation) = share(all, shared, 1000);
        assert!(found < formula + 4.0 * deviation + 1e-3, "{all} {shared}: {found} {formula}");
    }
    // Between these points the curve is steeper than for independent values, and crosses it.
    let (found, formula, deviation) = share(500, 400, 2000);
    assert!((found - formula).abs() < 4.0 * deviation + 0.03, "{found} {formula}");
}

// Claims.

/// Returns the set of 5-grams of a text, sorted.
fn grams(text: &str) -> Vec<[&str; 5]> {
    let words: Vec<_> = text.split(' ').collect();
    let grams: BTreeSet<_> = words.windows(5).map(|window| window.try_into().unwrap()).collect();
    grams.into_iter().collect()
}

fn jaccard(a: &[[&str; 5]], b: &[[&str; 5]]) -> f64 {
    let (mut i, mut j, mut both) = (0, 0, 0);
    while i < a.len() && j < b.len() {
        let order = a[i].cmp(&b[j]);
        both += usize::from(order.is_eq());
        i += usize::from(order.is_le());
        j += usize::from(order.is_ge());
    }
    both as f64 / (a.len() + b.len() - both) as f64
}

/// Documents that repeat an earlier one with some words replaced.
fn corpus(random: &mut Random, documents: usize) -> Vec<String> {
    let mut texts: Vec<Vec<String>> = Vec::new();
    for i in 0..documents {
        let mut text: Vec<_> = match i % 4 {
            0 => (0..60 + random.below(300)).map(|_| format!("{}", random.below(5000))).collect(),
            _ => texts[random.below(i)].clone(),
        };
        if i % 4 > 0 {
            // Each replaced word changes up to 5 grams.
            for _ in 0..random.below(1 + text.len() / 25) {
                let at = random.below(text.len());
                text[at] = format!("{}", random.below(5000));
            }
        }
        texts.push(text);
    }
    texts.iter().map(|text| text.join(" ")).collect()
}

#[test]
fn claims_of_a_corpus_agree_with_exact_similarities() {
    let near = Near::new(0.8).unwrap();
    let texts = corpus(&mut Random(3), 1200);
    let grams: Vec<_> = texts.iter().map(|text| grams(text)).collect();
    let mut seen = BloomFilter::new(1200 * near.bands() as u64, 1e-9).unwrap();
    let mut kept = Vec::new();
    // For documents with a similarity of at least 0.9 to an earlier one, and for those with at most 0.6 to all: the count, the
    // number found, the expected number, and its variance.
    let (mut alike, mut unlike) = ([0.0; 4], [0.0; 4]);
    for (i, text) in texts.iter().enumerate() {
        let similarities = kept.iter().map(|&earlier: &usize| jaccard(&grams[i], &grams[earlier]));
        let (mut most, mut missed) = (0.0, 1.0);
        for similarity in similarities {
            most = f64::max(most, similarity);
            missed *= 1.0 - near.probability(similarity);
        }
        let bands = hash(near, seen.hasher(), text);
        let new = near::claim(&mut seen, &bands).unwrap();
        if new {
            kept.push(i);
        }
        assert!(!new || most < 1.0, "an equal document is found");
        let count = match most {
            0.9.. => &mut alike,
            ..=0.6 => &mut unlike,
            _ => continue,
        };
        let more = [1.0, f64::from(!new), 1.0 - missed, missed * (1.0 - missed)];
        count.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
    }
    let [documents, found, expected, variance] = alike;
    assert!(documents > 150.0, "{alike:?}");
    assert!(found > expected - 4.0 * variance.sqrt(), "{alike:?}");
    let [documents, found, expected, variance] = unlike;
    assert!(documents > 300.0, "{unlike:?}");
    assert!(found < expected + 4.0 * variance.sqrt() + 1.0, "{unlike:?}");
}

#[test]
fn documents_have_the_expected_rate_of_false_positives() {
    let near = Near::new(0.8).unwrap();
    let documents = 5000;
    let rate = 0.02;
    let mut seen = BloomFilter::new(documents * near.bands() as u64, near.band_fpr(rate)).unwrap();
    let mut random = Random(4);
    let mut text = || (0..8).map(|_| format!("{:x} ", random.next())).collect::<String>();
    for _ in 0..documents {
        // All documents are inserted, including false positives.
        let bands = hash(near, seen.hasher(), &text());
        seen.insert_hashes(&bands, &mut vec![false; bands.len()]);
    }
    let trials = 20_000;
    let found = (0..trials).filter(|_| {
        let bands = hash(near, seen.hasher(), &text());
        near::seen(&mut seen, &bands).unwrap()
    });
    // 400 expected: 4 deviations are 20 %, and the rate of the filter itself is within 10 %.
    let measured = found.count() as f64 / f64::from(trials) / rate;
    assert!((0.7..1.3).contains(&measured), "{measured}");
}

/// A set that records its calls, and fails from the n-th call on.
#[derive(Default)]
struct Recorder {
    hashes: HashSet<u64>,
    calls: Vec<(&'static str, usize)>,
    fails: Option<usize>,
}

impl Recorder {
    fn call(&mut self, name: &'static str, hashes: usize, answers: usize) -> Result<(), &'static str> {
        assert_eq!(hashes, answers);
        self.calls.push((name, hashes));
        if self.fails.is_some_and(|calls| self.calls.len() > calls) { Err(name) } else { Ok(()) }
    }
}

impl Set for Recorder {
    type Error = &'static str;

    fn contains_hashes(&mut self, hashes: &[u64], found: &mut [bool]) -> Result<usize, &'static str> {
        self.call("look", hashes.len(), found.len())?;
        found.iter_mut().zip(hashes).for_each(|(found, hash)| *found = self.hashes.contains(hash));
        Ok(found.iter().filter(|found| **found).count())
    }

    fn insert_hashes(&mut self, hashes: &[u64], new: &mut [bool]) -> Result<usize, &'static str> {
        self.call("insert", hashes.len(), new.len())?;
        new.iter_mut().zip(hashes).for_each(|(new, hash)| *new = self.hashes.insert(*hash));
        Ok(new.iter().filter(|new| **new).count())
    }
}

#[test]
fn all_bands_are_looked_up_before_one_is_inserted() {
    let bands: Vec<u64> = (0..150).collect();
    let mut set = Recorder::default();
    assert_eq!(near::claim(&mut set, &bands), Ok(true));
    assert_eq!(
        set.calls.iter().map(|call| call.0).collect::<Vec<_>>(),
        ["look", "look", "look", "insert", "insert", "insert"]
    );
    assert_eq!(set.hashes, bands.iter().copied().collect());

    // Only the last band was seen, so nothing is inserted.
    let other: Vec<u64> = (1000..1149).chain([149]).collect();
    assert_eq!(near::claim(&mut set, &other), Ok(false));
    assert_eq!(near::seen(&mut set, &other), Ok(true));
    assert_eq!(near::seen(&mut set, &other[..149]), Ok(false));
    assert_eq!(set.hashes.len(), 150);

    assert_eq!(near::claim(&mut Recorder { fails: Some(2), ..Recorder::default() }, &bands), Err("look"));
    assert_eq!(near::claim(&mut Recorder { fails: Some(4), ..Recorder::default() }, &bands), Err("insert"));
}

#[test]
fn a_document_without_tokens_is_kept_and_inserts_nothing() {
    let near = Near::new(0.8).unwrap();
    let mut set = Recorder::default();
    for text in ["", " ", "\n\t\r\n", "\u{3000}"] {
        let bands = hash(near, &KeyHasher::new(0), text);
        assert_eq!(bands, []);
        assert_eq!(near::claim(&mut set, &bands), Ok(true));
        assert_eq!(near::seen(&mut set, &bands), Ok(false));
    }
    assert!(set.calls.is_empty());
}

// The inputs that a document's hashes depend on.

#[test]
fn the_order_of_words_counts_within_grams() {
    let hasher = KeyHasher::new(0);
    let words: Vec<_> = (0..400).map(|i| format!("word{i}")).collect();
    let forth = words.join(" ");
    let back = words.iter().rev().map(String::as_str).collect::<Vec<_>>().join(" ");
    let equal = |near| {
        let [left, right] = [&forth, &back].map(|text| hash(near, &hasher, text));
        left.iter().zip(&right).filter(|(left, right)| left == right).count()
    };
    let near = Near::new(0.8).unwrap();
    assert_eq!(equal(near), 0);
    assert_eq!(equal(near.with_ngram(2).unwrap()), 0);
    assert_eq!(equal(near.with_ngram(1).unwrap()), near.bands());
}

#[test]
fn a_short_document_is_one_gram() {
    let (near, hasher) = (Near::new(0.8).unwrap(), KeyHasher::new(0));
    let of = |text| hash(near, &hasher, text);
    assert_eq!(of("four words are here"), of("four  words\nare here "));
    assert_ne!(of("four words are here"), of("here are four words"));
    assert_ne!(of("a b"), of("a b c"));
    assert_eq!(of("a").len(), near.bands());
    assert_eq!(of("a").iter().collect::<HashSet<_>>().len(), near.bands());
}

#[test]
fn hashes_depend_on_the_seed_the_numbers_and_the_text_alone() {
    let near = Near::new(0.8).unwrap();
    let text = corpus(&mut Random(5), 1).remove(0);
    let hasher = KeyHasher::new(7);
    let first = hash(near, &hasher, &text);
    assert_eq!(first, hash(near, &KeyHasher::new(7), &text));
    // Neither the scratch memory of another document nor earlier hashes in `bands` change the result.
    let (mut scratch, mut bands) = (Scratch::default(), vec![42]);
    near.hash(&hasher, b"Another text, with other words than those.", &mut scratch, &mut bands);
    near.hash(&hasher, text.as_bytes(), &mut scratch, &mut bands);
    assert_eq!(bands[0], 42);
    assert_eq!(bands[1 + near.bands()..], first);

    let others = [
        hash(near, &KeyHasher::new(8), &text),
        hash(near.with_ngram(6).unwrap(), &hasher, &text),
        hash(Near::with_bands(9, 12).unwrap(), &hasher, &text),
    ];
    for other in others {
        assert!(other.iter().all(|hash| !first.contains(hash)));
    }
}

#[test]
fn huge_texts_and_texts_that_are_not_utf8_have_bands() {
    let near = Near::new(0.8).unwrap();
    let mut random = Random(6);
    let mut text: Vec<u8> = (0..200_000).flat_map(|_| format!("{} ", random.below(50_000)).into_bytes()).collect();
    let mut seen = BloomFilter::new(100, 1e-9).unwrap();
    let mut claim = |text: &[u8]| {
        let mut bands = Vec::new();
        near.hash(seen.hasher(), text, &mut Scratch::default(), &mut bands);
        assert_eq!(bands.len(), near.bands());
        near::claim(&mut seen, &bands).unwrap()
    };
    assert!(claim(&text));
    text.extend(b" some more words at the end \xFF\xFE");
    assert!(!claim(&text));
    assert!(claim(b"\xFF\xFE\xFD"));
    // One word of a megabyte, and one word a hundred thousand times.
    assert!(claim(&[b'a'; 1 << 20]));
    assert!(claim(&b"again ".repeat(100_000)));
    assert!(!claim(&b"again ".repeat(100)));
}

// The definition of the hashes.

/// Returns the bands of a text by the definition in crates/text/FORMAT.md.
fn specified(text: &str, seed: u64, ngram: usize, bands: usize, rows: usize) -> Vec<u64> {
    let secret = wyhash::final3::make_secret(seed);
    let random = |gram: u64, round: u64| {
        let state = gram.wrapping_add(0xA076_1D64_78BD_642F_u64.wrapping_mul(round + 1));
        mum(state, state ^ 0xE703_7ED1_A0B4_28DB)
    };

    let tokens: Vec<u64> = words(text).map(|token| specified_token(token, seed, secret)).collect();
    let windows = if tokens.len() < ngram { vec![&tokens[..]] } else { tokens.windows(ngram).collect() };
    let grams: Vec<u64> = windows.into_iter().map(|window| specified_gram(window, secret)).collect();

    let values = bands * rows;
    let value = |slot: usize| {
        let thrown = |round: u64, all: bool| {
            let numbers = grams.iter().map(|gram| random(*gram, round));
            let here = numbers.filter(|number| all || (u128::from(*number) * values as u128) >> 64 == slot as u128);
            here.min().map(|number| round << 48 | number >> 16)
        };
        (0..values as u64).find_map(|round| thrown(round, false)).or_else(|| thrown((values + slot) as u64, true))
    };
    let signature: Vec<u64> = (0..values).map(|slot| value(slot).unwrap()).collect();

    let wyhash = |bytes: &[u8]| wyhash::final3::wyhash(bytes, seed, secret);
    let band = |number: usize| {
        let start = wyhash(&(number as u64).to_le_bytes());
        signature[number * rows..][..rows]
            .iter()
            .fold(start, |hash, value| wyhash(&[hash.to_le_bytes(), value.to_le_bytes()].concat()))
    };
    (0..bands).map(band).collect()
}

fn mum(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product >> 64) as u64 ^ product as u64
}

pub fn specified_token(token: &str, seed: u64, secret: [u64; 4]) -> u64 {
    if token.len() > 16 {
        return wyhash::final3::wyhash(token.as_bytes(), seed, secret);
    }
    let half = |from: usize| token.bytes().skip(from).take(8).rev().fold(0, |word, byte| word << 8 | u64::from(byte));
    mum(half(0) ^ secret[1], half(8) ^ secret[2])
}

/// Returns the hash of a gram from the hashes of its tokens.
pub fn specified_gram(tokens: &[u64], secret: [u64; 4]) -> u64 {
    let base = secret[3] / 8 * 8 + 5;
    let sum = tokens.iter().fold(0u64, |sum, token| sum.wrapping_mul(base).wrapping_add(*token));
    mum(sum ^ secret[0], secret[1])
}

#[test]
fn hashes_match_the_specification() {
    let mut random = Random(7);
    for (seed, length, ngram, bands, rows) in [
        (0, 1, 1, 9, 13),
        (1, 3, 5, 2, 1),
        (2, 5, 5, 1, 2),
        (3, 6, 5, 9, 13),
        (4, 40, 5, 9, 13),
        (5, 40, 1, 14, 8),
        (6, 300, 13, 17, 15),
        (u64::MAX, 1000, 5, 9, 13),
        (8, 2, 2, 40, 10),
    ] {
        let some = ["a", "Wörter", "don't", "3.14", ",", "中", "a_word_that_is_longer_than_sixteen_bytes", "\n", "🙂"];
        let text: String = (0..length)
            .map(|_| match random.below(3) {
                0 => format!("{} ", some[random.below(some.len())]),
                _ => format!("{:x} ", random.below(1000)),
            })
            .collect();
        let near = Near::with_bands(bands, rows).unwrap().with_ngram(ngram).unwrap();
        let expected = if words(&text).next().is_none() { vec![] } else { specified(&text, seed, ngram, bands, rows) };
        assert_eq!(hash(near, &KeyHasher::new(seed), &text), expected, "{text:?}");
    }
}

/// One text and its hashes in crates/text/FORMAT.md: a saved filter finds its documents in every version.
#[test]
fn the_hashes_of_the_example_do_not_change() {
    let format = include_str!("../FORMAT.md");
    let near = Near::with_bands(3, 2).unwrap().with_ngram(2).unwrap();
    let hashes = hash(near, &KeyHasher::new(0), "one two three, one two four");
    assert_eq!(hashes, [0xE2F5_DAB5_5D2E_BBA0, 0x68A4_5A27_EC2F_6C0E, 0xA41F_C2FF_BCCD_1CD2]);
    assert!(hashes.iter().all(|hash| format.contains(&format!("{hash:016X}"))));
}

/// Repeats change nothing, and do not take long.
#[test]
fn a_repetitive_text_has_the_signature_of_its_set_of_grams() {
    let (near, hasher) = (Near::new(0.8).unwrap(), KeyHasher::new(0));
    let once = "some words that come again and again ".repeat(2);
    let often = "some words that come again and again ".repeat(50_000);
    assert_eq!(hash(near, &hasher, &once), hash(near, &hasher, &often));
}

#[test]
fn shared_filters_serve_as_sets() {
    let near = Near::new(0.8).unwrap();
    let seen = bloomline::AtomicBloomFilter::new(1000, 1e-6).unwrap();
    let bands = hash(near, seen.hasher(), "a text of some words that is here");
    let claims: [Result<bool, BuildError>; 2] = [near::claim(&mut &seen, &bands), near::claim(&mut &seen, &bands)];
    assert_eq!(claims, [Ok(true), Ok(false)]);
}
