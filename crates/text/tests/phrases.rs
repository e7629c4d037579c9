//! Phrases within texts, compared with a slow model of their definition.

use bloomline::{BloomFilter, KeyHasher};
use bloomline_text::{Phrases, PhrasesBuilder, Rules, Texts, words};
use proptest::prelude::*;
use std::collections::{BTreeSet, HashSet};

fn rules() -> Rules {
    let mut rules = Rules::default();
    rules.min_ngram = 1;
    rules
}

/// The definition of an occurrence, word by word.
struct Model<'a> {
    phrase: Vec<&'a str>,
    answer: Vec<&'a str>,
    sample: Vec<Vec<&'a str>>,
}

impl Model<'_> {
    /// The lengths of the equal parts at both ends, if an eighth of the words at most differs, in one run between them.
    fn equal(&self, found: &[&str]) -> Option<(usize, usize)> {
        let length = self.phrase.len();
        let differing: Vec<usize> = (0..length).filter(|&i| self.phrase[i] != found[i]).collect();
        let (Some(&first), Some(&last)) = (differing.first(), differing.last()) else { return Some((length, 0)) };
        let is_near = first > 0 && last < length - 1 && 8 * (last + 1 - first) < length + 8;
        is_near.then_some((first, length - 1 - last))
    }

    fn places<'t>(&self, text: &'t [&'t str]) -> impl Iterator<Item = (usize, (usize, usize))> {
        let windows = text.windows(self.phrase.len()).enumerate();
        windows
            .filter_map(|(start, found)| self.equal(found).map(|equal| (start, equal)))
            .collect::<Vec<_>>()
            .into_iter()
    }

    fn documents_with(&self, run: &[&str]) -> f64 {
        self.sample.iter().filter(|text| text.windows(run.len()).any(|found| found == run)).count() as f64
    }

    /// The weight of a word by itself, or beside the word before or behind it.
    fn weight(&self, words: &[&str], i: usize, beside: Option<usize>) -> f64 {
        let share = self.documents_with(&words[i..=i]).max(1.0) / self.sample.len() as f64;
        let alone = -share.log2();
        let Some(other) = beside else { return alone };
        let both = self.documents_with(&words[i.min(other)..=i.max(other)]);
        let given = (both + 16.0 * share) / (self.documents_with(&words[other..=other]) + 16.0);
        (-given.log2()).clamp(0.0, alone)
    }

    fn is_evident(&self, (prefix, suffix): (usize, usize)) -> bool {
        if self.sample.is_empty() {
            return false;
        }
        let length = self.phrase.len();
        let place = prefix..length - suffix;
        let others: HashSet<&[&str]> = self
            .sample
            .iter()
            .flat_map(|text| {
                let same = self.places(text).filter(|(_, equal)| *equal == (prefix, suffix));
                same.map(|(start, _)| &text[start + place.start..start + place.end])
            })
            .collect();
        let sum = |range: std::ops::Range<usize>, first: usize| {
            range.map(|i| self.weight(&self.phrase, i, (i != first).then(|| i - 1))).sum::<f64>()
        };
        let answer: f64 = (0..self.answer.len()).map(|i| self.weight(&self.answer, i, i.checked_sub(1))).sum();
        let backwards: f64 = place.clone().map(|i| self.weight(&self.phrase, i, Some(i + 1))).sum();
        let has_number = self.phrase[place.clone()].iter().any(|word| word.contains(|c: char| c.is_ascii_digit()));
        let equal = sum(0..prefix, 0) + sum(place.end..length, place.end) + answer;
        let (all, differing) = (sum(0..length, 0) + answer, sum(place, 0).max(backwards));
        // Ties count, however the sums are rounded.
        let is_evident = equal >= 16.0 * (1.0 - 1e-9) && 4.0 * differing <= all * (1.0 + 1e-9);
        is_evident && others.len() < 2 && !has_number
    }

    /// The first words of the occurrences.
    fn found(&self, text: &[&str]) -> BTreeSet<usize> {
        let documents =
            self.sample.iter().filter(|text| text.windows(self.phrase.len()).any(|w| w == self.phrase)).count();
        if documents >= 32 && documents * 1000 > self.sample.len() {
            return BTreeSet::new();
        }
        let counts = |start: usize, equal: (usize, usize)| {
            let end = start + self.phrase.len();
            let reach = 32 + self.answer.len();
            let near = [&text[start.saturating_sub(reach)..start], &text[end..text.len().min(end + reach)]];
            let answered = near.iter().any(|near| near.windows(self.answer.len().max(1)).any(|w| w == self.answer));
            (equal.1 == 0 || self.is_evident(equal)) && (self.answer.is_empty() || answered)
        };
        self.places(text).filter(|(start, equal)| counts(*start, *equal)).map(|(start, _)| start).collect()
    }
}

/// A text of few words, so that much of it repeats, around pieces of the phrase with a word changed.
fn text(phrase: Vec<String>) -> impl Strategy<Value = String> {
    let word = || prop::sample::select(&["a", "b", "c", "d", "river", "of", "the", "x1", "x2"][..]);
    let filler = prop::collection::vec(word(), 0..6).prop_map(|words| words.join(" "));
    let changed = (any::<prop::sample::Index>(), word(), 0..3usize).prop_map(move |(at, word, count)| {
        let mut words = phrase.clone();
        let at = at.index(words.len());
        words.iter_mut().skip(at).take(count).for_each(|old| *old = word.to_owned());
        words.join(" ")
    });
    prop::collection::vec(prop_oneof![filler, changed], 0..5).prop_map(|pieces| pieces.join(" "))
}

/// A phrase, a text, and documents of the sample that are repeated in turn.
fn cases() -> impl Strategy<Value = (String, Option<String>, String, Vec<String>, usize)> {
    let word = prop::sample::select(&["a", "b", "river", "of", "the", "flows", "into", "sea", "past", "x1"][..]);
    prop::collection::vec(word.prop_map(str::to_owned), 1..13).prop_flat_map(|phrase| {
        let answer = prop::option::of(prop::sample::select(&["d", "c x1", "a b"][..]).prop_map(str::to_owned));
        let texts = prop::collection::vec(text(phrase.clone()), 0..4);
        (Just(phrase.join(" ")), answer, text(phrase), texts, prop::sample::select(&[0usize, 1, 40, 1500][..]))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn phrases_are_found_as_defined((phrase, answer, text, samples, others) in cases()) {
        let mut builder = PhrasesBuilder::new(rules(), KeyHasher::new(7));
        let key = builder.push(&phrase, answer.as_deref()).unwrap();
        let mut phrases = builder.build();
        // Other documents make words rare.
        let sample: Vec<String> = samples.into_iter().chain((0..others).map(|i| format!("nothing {i}"))).collect();
        sample.iter().for_each(|text| phrases.learn(text));
        let split = |text: &'_ str| words(text).map(str::to_owned).collect::<Vec<_>>();
        let (phrase_words, answer_words, text_words) =
            (split(&phrase), split(answer.as_deref().unwrap_or_default()), split(&text));
        let sample_words: Vec<Vec<String>> = sample.iter().map(|text| split(text)).collect();
        fn refs(words: &[String]) -> Vec<&str> {
            words.iter().map(String::as_str).collect()
        }
        let model = Model {
            phrase: refs(&phrase_words),
            answer: refs(&answer_words),
            sample: sample_words.iter().map(|words| refs(words)).collect(),
        };
        let expected = model.found(&refs(&text_words));
        let found = phrases.find(&text);
        prop_assert!(found.iter().all(|found| found.key == key && found.words.len() == phrase_words.len()));
        prop_assert_eq!(found.iter().map(|found| found.words.start).collect::<BTreeSet<_>>(), expected.clone());
        prop_assert_eq!(found.len(), expected.len());
        // As grams of a document.
        let mut texts = Texts::default();
        texts.push_with_phrases(&rules(), &KeyHasher::new(7), text.as_bytes(), &phrases);
        let keys: Vec<u64> = texts.document(0).hashes().flatten().copied().collect();
        prop_assert_eq!(keys.contains(&key), !expected.is_empty());
        prop_assert_eq!(keys.len(), text_words.len().saturating_sub(12) + usize::from(!expected.is_empty()));
    }

    /// Of many phrases, each is found where it is alone.
    #[test]
    fn phrases_do_not_hide_each_other(
        numbers in prop::collection::vec(prop::collection::vec(0..4u8, 1..8), 1..40),
        text in prop::collection::vec(0..4u8, 0..60),
    ) {
        let join = |numbers: &[u8]| numbers.iter().map(|i| format!("w{i}")).collect::<Vec<_>>().join(" ");
        let all = |texts: &[Vec<u8>]| {
            let mut builder = PhrasesBuilder::new(rules(), KeyHasher::new(0));
            for text in texts {
                builder.push(&join(text), None);
            }
            builder.build()
        };
        let of = |phrases: &Phrases| {
            let found = phrases.find(&join(&text));
            found.into_iter().map(|found| (found.words.start, found.key)).collect::<BTreeSet<_>>()
        };
        let each = numbers.iter().flat_map(|own| of(&all(std::slice::from_ref(own)))).collect::<BTreeSet<_>>();
        prop_assert_eq!(of(&all(&numbers)), each);
    }
}

/// A sentence of many documents is not removed from them, but one of a few documents is.
#[test]
fn common_phrases_are_not_found() {
    let mut builder = PhrasesBuilder::new(rules(), KeyHasher::new(0));
    let keys =
        ["accept all cookies of this site", "a test in some copies"].map(|text| builder.push(text, None).unwrap());
    let mut phrases = builder.build();
    for i in 0..10_000 {
        let has = |below, text: &'static str| if i < below { text } else { "" };
        phrases.learn(&format!(
            "{} {i} {}",
            has(32, "Accept. accept all cookies of this site"),
            has(31, "a test in some copies")
        ));
    }
    assert_eq!(keys.map(|key| phrases.is_common(key)), [true, false]);
    assert_eq!(phrases.find("accept all cookies of this site"), []);
    assert_eq!(phrases.find("here: a test in some copies")[0].words, 2..7);
}

/// A text that has a gram or too few words is not a phrase, and the keys are those of grams.
#[test]
fn only_texts_shorter_than_a_gram_are_phrases() {
    let mut rules = Rules::default();
    (rules.ngram, rules.min_ngram) = (4, 2);
    let set = BloomFilter::new(10, 1e-6).unwrap();
    let mut builder = PhrasesBuilder::new(rules.clone(), set.hasher().clone());
    assert_eq!(["a", "a b c d", ""].map(|text| builder.push(text, None)), [None; 3]);
    let key = builder.push("a b c", None).unwrap();
    let mut texts = Texts::default();
    texts.push(&rules, set.hasher(), b"a b c");
    assert_eq!(texts.document(0).hashes().next(), Some(&[key][..]));
    let answered = ["x", "y"].map(|answer| builder.push("a b c", Some(answer)).unwrap());
    assert!(answered[0] != answered[1] && !answered.contains(&key));
    // An answer without words is ignored.
    assert_eq!(builder.push("a b c", Some(" ")), Some(key));
    assert_eq!(builder.build().len(), 3);
}
