//! Documents, their units and grams, and the decision for each.

use crate::masks::{self, BLOCK};
use crate::scan::Newline;
use crate::{Phrases, Rules, Set, Unit, form, grams, sample, tokens};
use alloc::vec::Vec;
use bloomline::KeyHasher;
use core::ops::Range;
use core::str::from_utf8;

/// The number of hashes that are looked up together, small enough that their cache lines are still in the cache when
/// units insert them.
const LOOKUP_BATCH: usize = 1024;

/// A batch of documents, divided into units and grams and decided together. [`clear`](Self::clear) keeps the memory, so
/// keep one for each thread.
///
/// # Examples
/// ```
/// use bloomline::BloomFilter;
/// use bloomline_text::{Rules, Texts};
/// let mut seen = BloomFilter::new(1000, 1e-6)?;
/// let mut rules = Rules::default();
/// rules.ngram = 2;
/// let mut texts = Texts::default();
/// for text in ["a b c", "a b c", "a b d"] {
///     texts.clear();
///     texts.push(&rules, seen.hasher(), text.as_bytes());
///     texts.decide(&rules, &mut seen)?;
///     let document = texts.document(0);
///     println!("{} of {} grams were seen", document.found(), document.grams());
/// }
/// assert_eq!(texts.document(0).found(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
pub struct Texts {
    documents: Vec<DocumentEntry>,
    units: Vec<UnitEntry>,
    /// The hashes to look up, unit by unit.
    hashes: Vec<u64>,
    answers: Vec<bool>,
    tokens: Vec<u64>,
    newlines: Vec<Newline>,
    form_scratch: form::FormScratch,
    lower: Vec<u8>,
}

/// A document.
#[derive(Clone, Copy, Debug)]
struct DocumentEntry {
    /// The end of the document's units.
    units: usize,
    grams: usize,
    found: usize,
    dropped: bool,
}

#[derive(Debug)]
struct UnitEntry {
    start: usize,
    end: usize,
    /// The end of the unit's hashes.
    hashes: usize,
    /// The number of grams before they were sampled.
    all_grams: usize,
    grams: usize,
    found: usize,
    cut: bool,
}

impl Texts {
    /// Removes all documents.
    pub fn clear(&mut self) {
        self.documents.clear();
        self.units.clear();
        self.hashes.clear();
    }

    /// Adds a document. `hasher` must be the hasher of the filter that [`decide`](Self::decide) gets. O(length of the
    /// text).
    ///
    /// The text need not be UTF-8: each invalid sequence is a token.
    pub fn push(&mut self, rules: &Rules, hasher: &KeyHasher, text: &[u8]) {
        self.push_units(rules, hasher, text, None);
    }

    /// Adds a document as [`push`](Self::push) does, but a unit has grams of [`Rules::ngram`] tokens alone, and the
    /// key of each phrase that is found in it counts as one more gram. `phrases` are of the same rules and hasher.
    pub fn push_with_phrases(&mut self, rules: &Rules, hasher: &KeyHasher, text: &[u8], phrases: &Phrases) {
        self.push_units(rules, hasher, text, Some(phrases));
    }

    fn push_units(&mut self, rules: &Rules, hasher: &KeyHasher, text: &[u8], phrases: Option<&Phrases>) {
        self.tokens.clear();
        self.newlines.clear();
        if rules.ngram > 0 && rules.form.is_plain() {
            tokens::hashes_and_newlines(text, hasher, &mut self.tokens, &mut self.newlines);
        } else if rules.unit == Unit::Paragraph {
            newlines(text, &mut self.newlines);
        }
        let mut unit = Newline { offset: 0, tokens: 0 };
        if rules.unit == Unit::Paragraph {
            for i in 0..self.newlines.len() {
                let newline = self.newlines[i];
                self.push_unit(rules, hasher, text, phrases, unit..newline);
                unit = newline;
            }
        }
        let end = Newline { offset: text.len(), tokens: self.tokens.len() };
        self.push_unit(rules, hasher, text, phrases, unit..end);
        self.documents.push(DocumentEntry { units: self.units.len(), grams: 0, found: 0, dropped: false });
    }

    /// Adds the unit from one newline to the next.
    fn push_unit(
        &mut self,
        rules: &Rules,
        hasher: &KeyHasher,
        text: &[u8],
        phrases: Option<&Phrases>,
        Range { start: from, end: to }: Range<Newline>,
    ) {
        let unit = &text[from.offset..to.offset];
        let before = self.hashes.len();
        if rules.ngram > 0 {
            let mut tokens = from.tokens..to.tokens;
            if !rules.form.is_plain() {
                self.tokens.clear();
                let formed = rules.form.for_words().apply_into(unit, &mut self.form_scratch);
                tokens::hashes(formed, hasher, &mut self.tokens);
                tokens = 0..self.tokens.len();
            }
            let tokens = &self.tokens[tokens];
            let min_ngram = if phrases.is_some() { rules.ngram } else { rules.min_ngram };
            grams::hashes(tokens, rules.ngram, min_ngram, hasher, &mut self.hashes);
            phrases.iter().for_each(|phrases| phrases.keys(tokens, &mut self.hashes));
        } else {
            let newline = rules.unit == Unit::Paragraph && unit.first() == Some(&b'\n');
            self.push_exact(rules, hasher, &unit[usize::from(newline)..]);
        }
        let all_grams = self.hashes.len() - before;
        if rules.ngram > 0 {
            sample::retain(&mut self.hashes, before, rules.sample);
        }
        let hashes = self.hashes.len();
        self.units.push(UnitEntry {
            start: from.offset,
            end: to.offset,
            hashes,
            all_grams,
            grams: hashes - before,
            found: 0,
            cut: false,
        });
    }

    /// Adds the hash of a unit's exact text, unless it is blank.
    fn push_exact(&mut self, rules: &Rules, hasher: &KeyHasher, text: &[u8]) {
        let mut text = rules.form.apply_into(text, &mut self.form_scratch);
        if is_blank(text) {
            return;
        }
        if rules.trim {
            text = from_utf8(text).map_or_else(|_| text.trim_ascii(), |text| text.trim().as_bytes());
        }
        if rules.ignore_case {
            self.lower.clear();
            match from_utf8(text) {
                Ok(text) if !text.is_ascii() => self.lower.extend_from_slice(text.to_lowercase().as_bytes()),
                _ => self.lower.extend(text.iter().map(u8::to_ascii_lowercase)),
            }
            text = &self.lower;
        }
        self.hashes.push(hasher.bytes(text));
    }

    /// Returns the number of documents.
    pub fn len(&self) -> usize {
        self.documents.len()
    }

    /// True if there are no documents.
    pub fn is_empty(&self) -> bool {
        self.documents.is_empty()
    }

    /// Returns the number of hashes that [`decide`](Self::decide) looks up: grams and exact texts.
    pub fn grams(&self) -> usize {
        self.hashes.len()
    }

    /// Decides all documents in order, unit by unit, by the rules with which they were added, and inserts the kept
    /// units unless the rules are frozen. A document is [dropped](Document::dropped) by its grams that earlier documents
    /// have inserted, and then inserts nothing. Call it once: a second call would find the grams that the first inserted.
    /// O(grams). For a large filter, one call with some thousand grams is several times faster than a call for each
    /// short document.
    ///
    /// # Errors
    /// Errors of the set, for example if a scalable filter cannot grow. Units that were not decided before the error are
    /// kept and not inserted.
    pub fn decide<S: Set + ?Sized>(&mut self, rules: &Rules, set: &mut S) -> Result<(), S::Error> {
        self.answers.clear();
        self.answers.resize(self.hashes.len(), false);
        if !rules.drop_document {
            self.decide_units(rules, set, 0..self.units.len())?;
        }
        let mut start = 0;
        for document in 0..self.documents.len() {
            let range = start..self.documents[document].units;
            start = range.end;
            if rules.drop_document {
                self.documents[document].dropped = self.is_dropped(rules, set, range.clone())?;
                if !self.documents[document].dropped {
                    self.decide_units(rules, set, range.clone())?;
                }
            }
            let units = &self.units[range];
            self.documents[document].grams = units.iter().map(|unit| unit.grams).sum();
            self.documents[document].found = units.iter().map(|unit| unit.found).sum();
        }
        Ok(())
    }

    /// Looks up the units of a document, and inserts nothing. Returns true if the document is dropped.
    fn is_dropped<S: Set + ?Sized>(
        &mut self,
        rules: &Rules,
        set: &mut S,
        range: Range<usize>,
    ) -> Result<bool, S::Error> {
        let mut start = self.first_hash(range.start);
        let units = &mut self.units[range];
        let Some(end) = units.last().map(|unit| unit.hashes) else { return Ok(false) };
        set.contains_hashes(&self.hashes[start..end], &mut self.answers[start..end])?;
        for unit in &mut *units {
            unit.found = self.answers[start..unit.hashes].iter().filter(|found| **found).count();
            unit.cut = rules.is_duplicate(unit.grams, unit.found);
            start = unit.hashes;
        }
        Ok(found_share(units) > rules.threshold)
    }

    /// Returns the index of a unit's first hash.
    fn first_hash(&self, unit: usize) -> usize {
        unit.checked_sub(1).map_or(0, |before| self.units[before].hashes)
    }

    /// Decides units in order.
    fn decide_units<S: Set + ?Sized>(
        &mut self,
        rules: &Rules,
        set: &mut S,
        units: Range<usize>,
    ) -> Result<(), S::Error> {
        if rules.ngram > 0 { self.decide_grams(rules, set, units) } else { self.decide_exact(rules, set, units) }
    }

    /// Decides each unit after the previous one has inserted its grams.
    ///
    /// The grams of several units are looked up together, so that the filter's memory is fetched for all of them at
    /// once. A gram that was found remains found. A unit with missing grams is looked up again if an earlier unit has
    /// inserted since.
    fn decide_grams<S: Set + ?Sized>(
        &mut self,
        rules: &Rules,
        set: &mut S,
        units: Range<usize>,
    ) -> Result<(), S::Error> {
        let mut start = self.first_hash(units.start);
        let Self { units: all, hashes, answers, .. } = self;
        let mut rest = &mut all[units];
        while let Some(first) = rest.first() {
            let max = first.hashes.max(start + LOOKUP_BATCH);
            let count = rest.iter().take_while(|unit| unit.hashes <= max).count();
            let (chunk, after) = rest.split_at_mut(count);
            rest = after;
            let end = chunk[count - 1].hashes;
            set.contains_hashes(&hashes[start..end], &mut answers[start..end])?;
            let mut inserted = false;
            for unit in chunk {
                let (hashes, answers) = (&hashes[start..unit.hashes], &mut answers[start..unit.hashes]);
                start = unit.hashes;
                unit.found = answers.iter().filter(|found| **found).count();
                if inserted && unit.found < unit.grams {
                    unit.found = set.contains_hashes(hashes, answers)?;
                }
                unit.cut = rules.is_duplicate(unit.grams, unit.found);
                if !unit.cut && !rules.frozen && unit.grams > 0 {
                    set.insert_hashes(hashes, answers)?;
                    inserted = true;
                }
            }
        }
        Ok(())
    }

    /// Looks up or inserts the exact texts of units in one call, in order.
    fn decide_exact<S: Set + ?Sized>(
        &mut self,
        rules: &Rules,
        set: &mut S,
        units: Range<usize>,
    ) -> Result<(), S::Error> {
        let first = self.first_hash(units.start);
        let Self { units: all, hashes, answers, .. } = self;
        let units = &mut all[units];
        let end = units.last().map_or(first, |unit| unit.hashes);
        let (hashes, answers) = (&hashes[first..end], &mut answers[first..end]);
        if rules.frozen {
            set.contains_hashes(hashes, answers)?;
        } else {
            set.insert_hashes(hashes, answers)?;
            answers.iter_mut().for_each(|answer| *answer = !*answer);
        }
        for unit in units {
            unit.found = usize::from(unit.grams > 0 && answers[unit.hashes - first - 1]);
            unit.cut = rules.is_duplicate(unit.grams, unit.found);
        }
        Ok(())
    }

    /// Returns document number `i`, from 0 in the order of [`push`](Self::push), with the result of
    /// [`decide`](Self::decide).
    ///
    /// # Panics
    /// If there is no such document.
    #[track_caller]
    pub fn document(&self, i: usize) -> Document<'_> {
        let entry = self.documents[i];
        let start = if i == 0 { 0 } else { self.documents[i - 1].units };
        let first_hash = self.first_hash(start);
        Document { units: &self.units[start..entry.units], hashes: &self.hashes, first_hash, entry }
    }
}

/// Returns the share of grams that were found in some units, or NaN if they have none. A sample represents all grams of its
/// unit.
fn found_share(units: &[UnitEntry]) -> f64 {
    let found = |unit: &UnitEntry| unit.all_grams as f64 * unit.found as f64 / unit.grams.max(1) as f64;
    units.iter().map(found).sum::<f64>() / units.iter().map(|unit| unit.all_grams).sum::<usize>() as f64
}

/// Appends the newlines of a text without counting tokens.
fn newlines(text: &[u8], into: &mut Vec<Newline>) {
    let mut push = |offset| into.push(Newline { offset, tokens: 0 });
    let (blocks, rest) = text.as_chunks();
    for (i, block) in blocks.iter().enumerate() {
        let mut newlines = masks::newlines(block);
        while newlines != 0 {
            push(BLOCK * i + newlines.trailing_zeros() as usize);
            newlines &= newlines - 1;
        }
    }
    rest.iter().zip(BLOCK * blocks.len()..).filter(|(byte, _)| **byte == b'\n').for_each(|(_, offset)| push(offset));
}

/// True if a text has only white space. Text that is not UTF-8 has other characters.
fn is_blank(text: &[u8]) -> bool {
    from_utf8(text).is_ok_and(|text| text.chars().all(char::is_whitespace))
}

/// A document and its verdicts; see [`Texts::document`].
#[derive(Clone, Copy, Debug)]
pub struct Document<'a> {
    units: &'a [UnitEntry],
    /// The hashes of all documents, and the index of this document's first hash.
    hashes: &'a [u64],
    first_hash: usize,
    entry: DocumentEntry,
}

impl<'a> Document<'a> {
    /// Returns the verdict for each unit, in order. There is at least one unit, and their ranges together are the text.
    pub fn verdicts(&self) -> impl Iterator<Item = UnitVerdict> + use<'a> {
        self.units.iter().map(|unit| UnitVerdict {
            range: unit.start..unit.end,
            grams: unit.grams,
            found: unit.found,
            cut: unit.cut,
        })
    }

    /// Returns the hashes of each unit, in order: of its grams, or of its exact text.
    pub fn hashes(&self) -> impl Iterator<Item = &'a [u64]> + use<'a> {
        let (hashes, mut start) = (self.hashes, self.first_hash);
        self.units.iter().map(move |unit| {
            let of_unit = &hashes[start..unit.hashes];
            start = unit.hashes;
            of_unit
        })
    }

    /// Returns the number of grams of all units, after [sampling](Rules::sample).
    pub fn grams(&self) -> usize {
        self.entry.grams
    }

    /// Returns the number of grams that were found.
    pub fn found(&self) -> usize {
        self.entry.found
    }

    /// True if the complete document is dropped, by [`Rules::drop_document`].
    pub fn dropped(&self) -> bool {
        self.entry.dropped
    }
}

/// The verdict for a unit. The default is a kept unit without bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnitVerdict {
    /// The unit's bytes in the text.
    pub range: Range<usize>,
    /// The number of grams, after [sampling](Rules::sample). A unit that is compared as exact text has one, or none if it is
    /// blank.
    pub grams: usize,
    /// The number of grams that were found.
    pub found: usize,
    /// True if the unit is cut.
    pub cut: bool,
}
