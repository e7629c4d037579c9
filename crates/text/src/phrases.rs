//! Short texts that are found within others, word for word or with a run of words that differs.

mod table;
mod window;

use crate::form::FormScratch;
use crate::{Rules, grams, tokens};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use bloomline::KeyHasher;
use core::mem;
use core::ops::Range;
use core::str::from_utf8;
use table::Table;
use window::{Equal, compare, seed};

/// The maximum of the weight of differing words: the weight of all, divided by this.
const DIFFERING_DIVISOR: f64 = 4.0;
/// The minimum of evidence in bits.
const MIN_BITS: f64 = 16.0;
/// The relative error of sums of weights, so that ties do not depend on the order of addition.
const ROUNDING: f64 = 1e-9;
/// The weight in documents of a word's share in all documents, for the estimate of its share in documents with the word
/// before it (Dirichlet smoothing; Zhai and Lafferty, SIGIR 2001).
const PRIOR: f64 = 16.0;
/// The number of words before and after an occurrence within which an answer starts or ends.
const REACH: usize = 32;
/// The minimum number of documents with a common phrase.
const COMMON_DOCUMENTS: u32 = 32;
/// A common phrase is in more than one of this many documents.
const COMMON_SHARE: u64 = 1000;
/// The base of the hashes of a few words.
const BASE: u64 = 0x9E37_79B9_7F4A_7C15;

/// A builder of [`Phrases`].
///
/// # Examples
/// ```
/// use bloomline::KeyHasher;
/// use bloomline_text::{PhrasesBuilder, Rules};
/// let mut rules = Rules::default();
/// rules.min_ngram = 4;
/// let mut builder = PhrasesBuilder::new(rules, KeyHasher::new(0));
/// let river = builder.push("Which river flows through Kyoto", None);
/// let capital = builder.push("The capital of France", Some("Paris"));
/// assert_eq!(builder.push(&"one more ".repeat(7), None), None); // 14 words are a gram
/// let phrases = builder.build();
/// let found = phrases.find("Question 7: Which river flows through Kyoto? The Kamo. The capital of France is large.");
/// assert_eq!(found.iter().map(|found| (Some(found.key), found.words.clone())).collect::<Vec<_>>(), [(river, 3..8)]);
/// assert_eq!(phrases.find("The capital of France? It is Paris.")[0].key, capital.unwrap());
/// ```
#[derive(Clone, Debug)]
pub struct PhrasesBuilder {
    rules: Rules,
    hasher: KeyHasher,
    entries: BTreeMap<u64, Phrase>,
    scratch: FormScratch,
}

/// A phrase, and its count in the sample.
#[derive(Clone, Debug)]
struct Phrase {
    key: u64,
    words: Vec<u64>,
    /// True for each word that has a digit.
    numbers: Vec<bool>,
    /// The words of the answer; empty without an answer.
    answer: Vec<u64>,
    /// The number of documents that contain all words.
    documents: u32,
}

impl PhrasesBuilder {
    /// Creates a builder for texts in the form of these rules, by the hasher of the filter that holds their grams.
    pub fn new(rules: Rules, hasher: KeyHasher) -> Self {
        Self { rules, hasher, entries: BTreeMap::new(), scratch: FormScratch::default() }
    }

    /// Adds a phrase. Returns its key: the hash of its gram, or of its gram and its answer. Returns `None` for a text
    /// that is not a phrase, because it has [`Rules::ngram`] words or more, or fewer than [`Rules::min_ngram`].
    ///
    /// A phrase with an answer is found only if the words of the answer follow one another within 32 words before or
    /// after it. O(length).
    pub fn push(&mut self, text: &str, answer: Option<&str>) -> Option<u64> {
        let words = words_of(&self.rules, &self.hasher, text, &mut self.scratch);
        let mut gram = Vec::new();
        let Rules { ngram, min_ngram, form, .. } = self.rules;
        if words.len() < ngram {
            grams::hashes(&words, ngram, min_ngram, &self.hasher, &mut gram);
        }
        let mut key = *gram.first()?;
        let formed = from_utf8(form.for_words().apply_into(text.as_bytes(), &mut self.scratch));
        let numbers = tokens::words(formed.unwrap_or_default()).map(|word| word.contains(char::is_numeric)).collect();
        let answer =
            answer.map(|answer| words_of(&self.rules, &self.hasher, answer, &mut self.scratch)).unwrap_or_default();
        if !answer.is_empty() {
            key = KeyHasher::mix(key ^ answer.iter().fold(0, add), BASE);
        }
        self.entries.insert(key, Phrase { key, words, numbers, answer, documents: 0 });
        Some(key)
    }

    /// Builds the index. O(n log n) for n words of all phrases.
    pub fn build(self) -> Phrases {
        let Self { rules, hasher, entries, scratch } = self;
        let phrases: Vec<Phrase> = entries.into_values().collect();
        let (mut seeds, mut starts, mut seed_lengths, mut features) = (Vec::new(), Vec::new(), 0u8, Vec::new());
        for (number, phrase) in (0u32..).zip(&phrases) {
            let (words, length) = (&phrase.words, seed(phrase.words.len()));
            seed_lengths |= 1 << length;
            for (seed, id) in [(&words[..length], 2 * number), (&words[words.len() - length..], 2 * number + 1)] {
                seeds.push((seed.iter().fold(0, add), id));
                starts.push((seed.iter().take(2).fold(0, add), 0));
            }
            for run in [words, &phrase.answer] {
                features.extend(run);
                features.extend(run.windows(2).map(|pair| pair.iter().fold(0, add)));
            }
        }
        features.sort_unstable();
        features.dedup();
        let counts = features.iter().map(|_| Count::default()).collect();
        let features = Table::new(features.into_iter().zip(0..).collect());
        let (seeds, starts) = (Table::new(seeds), Table::new(starts));
        Phrases {
            rules,
            hasher,
            phrases,
            seeds,
            starts,
            seed_lengths,
            features,
            counts,
            gaps: BTreeMap::new(),
            documents: 0,
            scratch,
            words: Vec::new(),
        }
    }
}

/// Short texts that are found within others, for example the questions of a test; [`PhrasesBuilder`] has an example.
///
/// A text with fewer words than a gram, such as the question of a test, is a *phrase*. A phrase is found where all its
/// words follow one another. It is also found where one run of its words differs: at most an eighth of them, rounded
/// up, and neither the first nor the last. Such a *near* occurrence counts only if a sample of the corpus shows that
/// it is not one of many similar sentences. All of these must hold:
///
/// - The differing words have at most a quarter of the weight of all words, and no digits: another number is another
///   question. The weight of a word is its information in bits, -log2 of its share of documents. For a word beside another,
///   the share is among documents with the other word. Differing words are weighed beside the words before them and beside
///   the words behind them; the larger sum counts.
/// - The equal words, with the answer, have at least 16 bits, so that they occur together by chance in fewer than 1 of
///   65,536 documents.
/// - In the sample, no two different runs occur in this place: "opens the _ dialog" is a template.
///
/// A phrase is *common*, and is not found at all, if more than one in a thousand documents of the sample contain it, and at
/// least 32.
///
/// Memory: about 100 bytes for each word of the phrases.
#[derive(Clone, Debug)]
pub struct Phrases {
    rules: Rules,
    hasher: KeyHasher,
    phrases: Vec<Phrase>,
    /// The first and the last words of each phrase, with twice its number, and one more for the last.
    seeds: Table,
    /// The first two words of the seeds.
    starts: Table,
    /// A bit for each length of a seed.
    seed_lengths: u8,
    /// The words and pairs of words of all phrases, with the number of their count.
    features: Table,
    counts: Vec<Count>,
    /// The words of the sample in the place of words of a phrase, by the number of the phrase and the numbers of words
    /// before and after the place.
    gaps: BTreeMap<(u32, usize, usize), Gap>,
    documents: u32,
    scratch: FormScratch,
    /// The memory for the words of a document of the sample.
    words: Vec<u64>,
}

/// The number of documents of the sample that contain a word or a pair of words.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    documents: u32,
    /// The last document that was counted.
    last: u32,
}

/// The words of the sample in place of a run of words of a phrase.
#[derive(Clone, Copy, Debug)]
struct Gap {
    /// The hash of the first such words.
    words: u64,
    /// True if there were others.
    several: bool,
}

/// An occurrence of a phrase in a text; see [`Phrases::find`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PhraseMatch {
    /// The key of the phrase.
    pub key: u64,
    /// The [words](crate::words) of the text, in the form of the rules, from the first to the last one of the phrase.
    pub words: Range<usize>,
}

impl Phrases {
    /// Returns the number of distinct phrases.
    pub fn len(&self) -> usize {
        self.phrases.len()
    }

    /// True if there are no phrases.
    pub fn is_empty(&self) -> bool {
        self.phrases.is_empty()
    }

    /// Adds a document of the sample to the statistics. Without a sample, only phrases with all their words are found.
    /// O(length).
    ///
    /// ```
    /// use bloomline::KeyHasher;
    /// use bloomline_text::{PhrasesBuilder, Rules};
    /// let mut rules = Rules::default();
    /// rules.min_ngram = 5;
    /// let mut builder = PhrasesBuilder::new(rules, KeyHasher::new(0));
    /// builder.push("Seven wise owls guard a secret library", None);
    /// let mut phrases = builder.build();
    /// let copy = "Seven wise owls guard one secret library";
    /// assert_eq!(phrases.find(copy), []);
    /// for i in 0..1000 {
    ///     phrases.learn(&format!("A document about number {i}."));
    /// }
    /// assert_eq!(phrases.find(copy)[0].words, 0..7);
    /// // Documents with other words in this place show that it is a template.
    /// phrases.learn("Seven wise owls guard every secret library");
    /// phrases.learn("Seven wise owls guard your secret library");
    /// assert_eq!(phrases.find(copy), []);
    /// ```
    pub fn learn(&mut self, text: &str) {
        let mut words = mem::take(&mut self.words);
        words.clear();
        push_words(&self.rules, &self.hasher, text, &mut self.scratch, &mut words);
        self.documents += 1;
        let document = self.documents;
        let pairs = words.windows(2).map(|pair| pair.iter().fold(0, add));
        for feature in words.iter().copied().chain(pairs) {
            if let Some(number) = self.features.get(feature).next() {
                let count = &mut self.counts[number as usize];
                count.documents += u32::from(count.last != document);
                count.last = document;
            }
        }
        let mut equal = Vec::new();
        let mut gaps = Vec::new();
        self.scan(&words, |number, range, Equal { prefix, suffix }| match suffix {
            0 => equal.push(number),
            _ => gaps
                .push(((number, prefix, suffix), words[range.start + prefix..range.end - suffix].iter().fold(0, add))),
        });
        for (place, filler) in gaps {
            let gap = self.gaps.entry(place).or_insert(Gap { words: filler, several: false });
            gap.several |= gap.words != filler;
        }
        equal.sort_unstable();
        equal.dedup();
        equal.into_iter().for_each(|number| self.phrases[number as usize].documents += 1);
        self.words = words;
    }

    /// Returns the occurrences of phrases in a unit of a text, in the order of their first words. O(length) if phrases
    /// are rare.
    pub fn find(&self, unit: &str) -> Vec<PhraseMatch> {
        let words = words_of(&self.rules, &self.hasher, unit, &mut FormScratch::default());
        let mut found = Vec::new();
        self.scan(&words, |number, range, equal| {
            if self.counts_as_found(number, &range, equal, &words) {
                found.push(PhraseMatch { key: self.phrases[number as usize].key, words: range });
            }
        });
        found.sort_unstable_by_key(|found| (found.words.start, found.key));
        found.dedup();
        found
    }

    /// Appends the keys of the phrases that are found among these words, each once.
    pub(crate) fn keys(&self, words: &[u64], into: &mut Vec<u64>) {
        let mut keys = Vec::new();
        self.scan(words, |number, range, equal| {
            if self.counts_as_found(number, &range, equal, words) {
                keys.push(self.phrases[number as usize].key);
            }
        });
        keys.sort_unstable();
        keys.dedup();
        into.extend(keys);
    }

    /// True if the phrase of a key is common: more than 1 in 1000 documents of the sample contain all its words, and at
    /// least 32. Such a phrase is not found.
    pub fn is_common(&self, key: u64) -> bool {
        self.phrases.binary_search_by_key(&key, |phrase| phrase.key).is_ok_and(|i| self.is_too_common(&self.phrases[i]))
    }

    fn is_too_common(&self, phrase: &Phrase) -> bool {
        let documents = u64::from(phrase.documents);
        phrase.documents >= COMMON_DOCUMENTS && documents * COMMON_SHARE > u64::from(self.documents)
    }

    /// Calls `each` for each place where a phrase equals the text except for a run of words, with the number of the phrase
    /// and the words of the text. A place may be visited twice.
    fn scan(&self, text: &[u64], mut each: impl FnMut(u32, Range<usize>, Equal)) {
        let longest = u8::BITS - self.seed_lengths.leading_zeros();
        let has_single_words = self.seed_lengths & 1 << 1 != 0;
        for start in 0..text.len() {
            let pair = text[start..].iter().take(2).fold(0, add);
            if !has_single_words && !self.starts.may_have(pair) {
                continue;
            }
            let mut hash = 0;
            for (length, word) in (1..longest).zip(&text[start..]) {
                hash = add(hash, word);
                if self.seed_lengths & 1 << length == 0 {
                    continue;
                }
                for seed in self.seeds.get(hash) {
                    let phrase = &self.phrases[seed as usize / 2].words;
                    // The seed is at the start or at the end of the phrase.
                    let before = if seed % 2 == 0 { 0 } else { phrase.len() - length as usize };
                    let Some(first) = start.checked_sub(before) else { continue };
                    let range = first..first + phrase.len();
                    if let Some(equal) = text.get(range.clone()).and_then(|words| compare(phrase, words)) {
                        each(seed / 2, range, equal);
                    }
                }
            }
        }
    }

    /// True if words of a text count as an occurrence of a phrase.
    fn counts_as_found(&self, number: u32, range: &Range<usize>, equal: Equal, text: &[u64]) -> bool {
        let phrase = &self.phrases[number as usize];
        !self.is_too_common(phrase)
            && (equal.suffix == 0 || self.is_evident(number, equal))
            && has_answer(&phrase.answer, text, range)
    }

    /// True if words with a run that differs are not likely to be another sentence.
    fn is_evident(&self, number: u32, Equal { prefix, suffix }: Equal) -> bool {
        let Phrase { words, numbers, answer, .. } = &self.phrases[number as usize];
        let gap = self.gaps.get(&(number, prefix, suffix));
        let end = words.len() - suffix;
        if self.documents == 0 || gap.is_some_and(|gap| gap.several) || numbers[prefix..end].contains(&true) {
            return false;
        }
        let answer = self.bits(answer);
        let equal = self.bits(&words[..prefix]) + self.bits(&words[end..]) + answer;
        let differing = (prefix..end).map(|i| self.bits_beside(words[i], words[i - 1], &words[i - 1..=i])).sum::<f64>();
        let backwards = (prefix..end).map(|i| self.bits_beside(words[i], words[i + 1], &words[i..=i + 1])).sum();
        let differing = differing.max(backwards);
        let all = self.bits(words) + answer;
        equal >= MIN_BITS * (1.0 - ROUNDING) && DIFFERING_DIVISOR * differing <= all * (1.0 + ROUNDING)
    }

    /// Returns the number of documents of the sample with a word or a pair of words.
    fn documents_with(&self, feature: u64) -> f64 {
        let number = self.features.get(feature).next().expect("it is a feature of a phrase");
        f64::from(self.counts[number as usize].documents)
    }

    /// Returns the weight of a run of words in bits.
    fn bits(&self, run: &[u64]) -> f64 {
        let next = run.windows(2).map(|pair| self.bits_beside(pair[1], pair[0], pair));
        run.first().map_or(0.0, |word| -libm::log2(self.share(*word))) + next.sum::<f64>()
    }

    /// Returns the weight of a word in bits beside another one. `pair` has both in the order of the phrase.
    fn bits_beside(&self, word: u64, other: u64, pair: &[u64]) -> f64 {
        let (share, both) = (self.share(word), self.documents_with(pair.iter().fold(0, add)));
        let beside = (both + PRIOR * share) / (self.documents_with(other) + PRIOR);
        (-libm::log2(beside)).clamp(0.0, -libm::log2(share))
    }

    /// Returns the share of documents of the sample that contain a word, as if at least one did.
    fn share(&self, word: u64) -> f64 {
        self.documents_with(word).max(1.0) / f64::from(self.documents)
    }
}

/// True if the words of an answer follow one another near these words.
fn has_answer(answer: &[u64], text: &[u64], words: &Range<usize>) -> bool {
    let reach = REACH + answer.len();
    let before = &text[words.start.saturating_sub(reach)..words.start];
    let after = &text[words.end..text.len().min(words.end + reach)];
    answer.is_empty() || [before, after].iter().any(|near| near.windows(answer.len()).any(|near| near == answer))
}

/// Adds a word to the hash of the words before it.
fn add(sum: u64, word: &u64) -> u64 {
    sum.wrapping_mul(BASE).wrapping_add(*word)
}

/// Returns the hashes of the words of a text.
fn words_of(rules: &Rules, hasher: &KeyHasher, text: &str, scratch: &mut FormScratch) -> Vec<u64> {
    let mut words = Vec::new();
    push_words(rules, hasher, text, scratch, &mut words);
    words
}

/// Appends the hashes of the words of a text.
fn push_words(rules: &Rules, hasher: &KeyHasher, text: &str, scratch: &mut FormScratch, into: &mut Vec<u64>) {
    tokens::hashes(rules.form.for_words().apply_into(text.as_bytes(), scratch), hasher, into);
}
