//! Documents: lines of JSON with a text that is looked up unit by unit, and the cuts in them.
//!
//! Uncut bytes of a line are never changed: a cut removes bytes of the string as it is written, with its escapes.

pub mod column;
pub mod removal_sample;
pub mod rule;
mod sample;
mod spans;
pub mod step;

use crate::key::error::KeyError;
use crate::key::json::members;
use crate::read::table::{Column, MEMBER};
use crate::run::lines::Edit;
use crate::seen::counts::UnitCounts;
use crate::steps::documents::removal_sample::RemovalSample;
use crate::steps::documents::rule::DocumentRule;
use bloomline::KeyHasher;
use bloomline_text::near::{Near, Scratch};
use bloomline_text::substrings::Windows;
use bloomline_text::{Document, Set, Texts, Unit, UnitVerdict, expected_false_removals};
use std::fmt::Write;
use std::mem;
use std::ops::Range;
use std::str::from_utf8;

/// The documents of a chunk of lines. The memory is reused.
#[derive(Default)]
pub struct DocumentBatch {
    located: Vec<DocumentPosition>,
    /// The texts, unescaped and concatenated.
    text: String,
    /// The ranges in the chunk of the newlines, as written, that start paragraphs.
    breaks: Vec<Range<usize>>,
    texts: Texts,
    /// The same texts by the second hash, if any.
    second_texts: Texts,
    /// The bands of all documents, for near duplicates.
    pub bands: Vec<u64>,
    /// True for each band that is new, if documents are compared.
    pub new_bands: Vec<bool>,
    /// The windows of all documents, for repeated runs of words.
    pub windows: Windows,
    /// True for each window that may be a repeat, and then for each that is one.
    pub repeats: Vec<bool>,
    /// True for each document that is a near duplicate.
    near: Vec<bool>,
    scratch: Scratch,
    /// True if documents get notes and are not cut.
    annotated: bool,
}

/// The size from which a text is huge: memory for processing it may be unavailable.
const HUGE: usize = 1 << 24;

/// The maximum bytes of memory for a byte of a line: a newline, whose escape has two bytes, starts a paragraph.
const COPIES: usize = 64;

/// The position of a document.
struct DocumentPosition {
    /// The string between its quotes, in the chunk.
    string: Range<usize>,
    /// The position of a note, before the closing brace, and the ranges of old notes, each with a comma.
    note: usize,
    old_notes: Vec<Range<usize>>,
    /// The ends of this document's text, breaks and bands in those of all documents.
    text: usize,
    breaks: usize,
    bands: usize,
}

impl DocumentPosition {
    /// Returns the ranges to cut: the first `head` units, and later units with `cut`. `breaks` holds the newlines that start units.
    fn cuts(&self, breaks: &[Range<usize>], units: &[UnitVerdict], head: usize) -> impl Iterator<Item = Range<usize>> {
        let Range { start, end } = self.string;
        // In the chunk, a unit starts at its newline as written.
        let begin = move |unit: usize| unit.checked_sub(1).map_or(start, |i| breaks[i].start);
        let stop = move |unit: usize| breaks.get(unit).map_or(end, |newline| newline.start);
        let begun = head.checked_sub(1).map(|i| breaks.get(i).map_or(end, |newline| newline.end));
        let cut = units.iter().enumerate().skip(head).filter(|(_, unit)| unit.cut);
        begun.map(|end| start..end).into_iter().chain(cut.map(move |(unit, _)| begin(unit)..stop(unit)))
    }
}

impl DocumentBatch {
    /// Removes all documents. Memory that grew for a huge one is returned to the system.
    pub fn clear(&mut self) {
        if self.text.capacity() > HUGE {
            *self = Self::default();
        }
        let Self { located, text, breaks, texts, second_texts, bands, windows, .. } = self;
        located.clear();
        text.clear();
        breaks.clear();
        texts.clear();
        second_texts.clear();
        bands.clear();
        windows.clear();
    }

    /// Returns the number of keys of all documents.
    pub fn keys(&self) -> usize {
        self.texts.grams() + self.bands.len() + self.windows.fingerprints().len()
    }

    /// Adds the document of a line that starts at the byte `start` of the chunk.
    pub fn push(&mut self, line: &[u8], start: usize, rule: &DocumentRule, hasher: &KeyHasher) -> Result<(), KeyError> {
        if line.len() >= HUGE && Vec::<u8>::new().try_reserve_exact(line.len().saturating_mul(COPIES)).is_err() {
            return Err(KeyError::Memory { bytes: line.len() });
        }
        let pointer = || rule.pointer.to_string();
        let document = from_utf8(line).map_err(KeyError::Utf8)?;
        let (before, breaks) = (self.text.len(), self.breaks.len());
        let by_paragraph = rule.near.is_none() && rule.text.unit == Unit::Paragraph;
        let newline = |escape| {
            if by_paragraph {
                self.breaks.push(escape);
            }
        };
        let found = rule.pointer.find_string(document, &mut self.text, newline);
        let string = match found
            .map_err(|error| error.map_or_else(|| KeyError::NoText { pointer: pointer() }, KeyError::Json))
        {
            Ok(Some(string)) => string,
            none => {
                self.breaks.truncate(breaks);
                return none.and(Err(KeyError::no_value(&rule.pointer, document)));
            }
        };
        let note = document.trim_ascii_end().len() - 1;
        if rule.object && document.as_bytes()[note] != b'}' {
            self.text.truncate(before);
            self.breaks.truncate(breaks);
            return Err(KeyError::NoObject);
        }
        let at = start + (string.as_ptr().addr() - document.as_ptr().addr());
        self.breaks[breaks..].iter_mut().for_each(|newline| *newline = newline.start + at..newline.end + at);
        let mut old_notes = if rule.annotate { members(document, MEMBER) } else { Vec::new() };
        old_notes.iter_mut().for_each(|old| *old = start + old.start..start + old.end);
        self.locate(before, rule, hasher, at..at + string.len(), start + note, old_notes);
        Ok(())
    }

    /// Adds a document that is a text by itself. Cuts are ranges of all such texts, concatenated.
    pub fn push_text(&mut self, text: &str, rule: &DocumentRule, hasher: &KeyHasher) {
        let start = self.text.len();
        self.text.push_str(text);
        if rule.near.is_none() && rule.text.unit == Unit::Paragraph {
            let newlines = memchr::memchr_iter(b'\n', text.as_bytes());
            self.breaks.extend(newlines.map(|newline| start + newline..start + newline + 1));
        }
        let end = self.text.len();
        self.locate(start, rule, hasher, start..end, end, Vec::new());
    }

    /// Hashes the last text, which starts at the byte `start`, and stores the position of its document.
    fn locate(
        &mut self,
        start: usize,
        rule: &DocumentRule,
        hasher: &KeyHasher,
        string: Range<usize>,
        note: usize,
        old_notes: Vec<Range<usize>>,
    ) {
        let Self { text, breaks, bands, .. } = self;
        let own = &text.as_bytes()[start..];
        if let Some(substrings) = &rule.substrings {
            self.windows.push(substrings, hasher, &text[start..]);
        } else if let Some(near) = &rule.near {
            near.hash(hasher, own, &mut self.scratch, bands);
        } else {
            match &rule.phrases {
                Some(phrases) => self.texts.push_with_phrases(&rule.text, hasher, own, phrases),
                None => self.texts.push(&rule.text, hasher, own),
            }
            rule.second_hasher.iter().for_each(|second_hasher| self.second_texts.push(&rule.text, second_hasher, own));
        }
        let document =
            DocumentPosition { string, note, old_notes, text: text.len(), breaks: breaks.len(), bands: bands.len() };
        self.located.push(document);
    }

    /// Returns the 128-bit fingerprint of the last document, from both hashes. `None` if its text has nothing to compare. For near
    /// duplicates it is a band.
    pub fn fingerprint(&self, rule: &DocumentRule) -> Option<u128> {
        if rule.near.is_some() {
            let before = self.located.len().checked_sub(2).map_or(0, |before| self.located[before].bands);
            return self.bands.get(before).map(|&band| u128::from(band) << 64);
        }
        let hash = |texts: &Texts| {
            let last = texts.document(texts.len().checked_sub(1)?);
            last.hashes().flatten().next().map(|&hash| u128::from(hash))
        };
        Some(hash(&self.texts)? << 64 | hash(&self.second_texts)?)
    }

    /// True if the last document is kept although it has nothing to compare. A text may have no words in some form and still not be
    /// blank.
    pub fn is_kept_alone(&self, rule: &DocumentRule) -> bool {
        let last = self.located.len().checked_sub(1);
        rule.keep_empty || last.is_some_and(|last| !self.text_of(last).trim().is_empty())
    }

    /// Appends the set of grams of a line's document to `into`, or nothing if there is no document.
    pub fn push_grams(&mut self, line: &[u8], rule: &DocumentRule, hasher: &KeyHasher, into: &mut Vec<u64>) {
        self.text.clear();
        let document = from_utf8(line).unwrap_or_default();
        if let Ok(Some(_)) = rule.pointer.find_string(document, &mut self.text, |_| ()) {
            let text = mem::take(&mut self.text);
            self.push_grams_of(&text, rule, hasher, into);
            self.text = text;
        }
    }

    /// Appends the set of grams of a text to `into`.
    pub fn push_grams_of(&mut self, text: &str, rule: &DocumentRule, hasher: &KeyHasher, into: &mut Vec<u64>) {
        if let Some(near) = &rule.near {
            near.grams(hasher, text.as_bytes(), &mut self.scratch, into);
        }
    }

    /// Looks up the bands of each document, and inserts those of documents that are kept. Counts with a sample how many documents
    /// are removed below the similarity.
    fn decide_near<S: Set>(
        &mut self,
        near: &Near,
        frozen: bool,
        set: &mut S,
        mut sample: Option<(&mut RemovalSample, &KeyHasher)>,
        counts: &mut UnitCounts,
    ) -> Result<(), S::Error> {
        let Self { located, text, bands, near: decided, scratch, .. } = self;
        let (mut found, mut new) = (vec![false; near.bands()], vec![false; near.bands()]);
        let (mut text_start, mut start) = (0, 0);
        decided.clear();
        for place in &*located {
            let bands = &bands[start..place.bands];
            let text = &text[text_start..place.text];
            (start, text_start) = (place.bands, place.text);
            let (found, new) = (&mut found[..bands.len()], &mut new[..bands.len()]);
            let is_near = set.contains_hashes(bands, found)? > 0;
            if !is_near && !frozen {
                set.insert_hashes(bands, new)?;
            }
            decided.push(is_near);
            let Some((sample, hasher)) = &mut sample else { continue };
            let grams = || {
                let mut grams = Vec::new();
                near.grams(hasher, text.as_bytes(), scratch, &mut grams);
                grams
            };
            if is_near {
                let below = sample.removed(bands, found, grams);
                counts.below += below.expected;
                counts.below_variance += below.variance;
            } else if !frozen {
                sample.add_kept(bands, grams);
            }
        }
        Ok(())
    }

    /// Looks the documents up in order, and inserts what is kept. Sets `kept[i]` to true if part of document i is kept, and adds
    /// the cuts in the documents to `edits`, in order. `fpr` returns the set's mean false-positive rate over the call. A `sample` is
    /// for near duplicates, with the set's hasher.
    pub fn decide<S: Set>(
        &mut self,
        rule: &DocumentRule,
        sample: Option<(&mut RemovalSample, &KeyHasher)>,
        set: &mut S,
        fpr: impl FnOnce(&S) -> f64,
        kept: &mut [bool],
        edits: &mut Vec<Edit>,
    ) -> Result<UnitCounts, S::Error> {
        let mut counts = UnitCounts::default();
        self.annotated = rule.annotate;
        match &rule.near {
            None => self.texts.decide(&rule.text, set)?,
            Some(near) => self.decide_near(near, rule.text.frozen, set, sample, &mut counts)?,
        }
        let fpr = fpr(set);
        let mut text = 0;
        let mut first = 0;
        let mut band = 0;
        let mut verdicts = Vec::new();
        for (i, place) in self.located.iter().enumerate() {
            verdicts.clear();
            let mut dropped = false;
            let whole = &self.text[text..place.text];
            if let Some(near) = &rule.near {
                // A signature is looked up as a whole. A text without words has none.
                let (cut, grams) = (self.near[i], usize::from(place.bands > band));
                band = place.bands;
                let found = usize::from(cut);
                counts.wrong += expected_false_removals(&rule.text, grams, found, near.document_fpr(fpr));
                let mut unit = UnitVerdict::default();
                (unit.range, unit.grams, unit.found, unit.cut) = (0..whole.len(), grams, found, cut);
                verdicts.push(unit);
            } else {
                let document = self.texts.document(i);
                verdicts.extend(document.verdicts());
                let wrong = |unit: &UnitVerdict| expected_false_removals(&rule.text, unit.grams, unit.found, fpr);
                counts.wrong += verdicts.iter().map(wrong).sum::<f64>();
                dropped = document.dropped();
            }
            let cut = verdicts.iter().filter(|unit| unit.cut).count();
            let blank = |unit: &UnitVerdict| whole[unit.range.clone()].trim().is_empty();
            // With a frozen set, a blank text is not removed unless something was cut.
            let emptied = (cut > 0 || !rule.text.frozen) && verdicts.iter().all(|unit| unit.cut || blank(unit));
            // If the first paragraph is cut, blank ones before the first that is kept are cut, too.
            let begins_cut = verdicts.first().is_some_and(|unit| unit.cut);
            let head = verdicts.iter().take_while(|unit| begins_cut && (unit.cut || blank(unit))).count();
            let is_removed = dropped || emptied && !rule.keep_empty;
            let grams: usize = verdicts.iter().map(|unit| unit.grams).sum();
            let found: usize = verdicts.iter().map(|unit| unit.found).sum();
            counts.units += verdicts.len() as u64;
            counts.duplicates += cut as u64;
            counts.shortened += u64::from(cut > 0 && !is_removed);
            counts.grams += grams as u64;
            counts.found += found as u64;
            counts.bytes += whole.len() as u64;
            let head_bytes = verdicts.get(head).map_or(whole.len(), |unit| unit.range.start + usize::from(head > 0));
            let cut_bytes: usize = verdicts[head..].iter().filter(|unit| unit.cut).map(|unit| unit.range.len()).sum();
            counts.removed += if is_removed { whole.len() } else { head_bytes + cut_bytes } as u64;
            kept[i] = rule.annotate || !is_removed;
            if rule.annotate {
                edits.extend(place.old_notes.iter().map(|old| (old.clone(), String::new())));
                edits.push((place.note..place.note, note(&verdicts, head, grams, found, is_removed)));
            } else if cut > 0 && !is_removed {
                let ranges = place.cuts(&self.breaks[first..place.breaks], &verdicts, head);
                edits.extend(ranges.map(|range| (range, String::new())));
            }
            (text, first) = (place.text, place.breaks);
        }
        Ok(counts)
    }

    /// For documents that are texts by themselves, returns the remaining text of each that is cut by `edits`, or a note for each. Of the
    /// `count` rows, those in `skip` are not documents.
    fn rewritten(
        &self,
        skip: impl Iterator<Item = usize>,
        count: usize,
        edits: &[Edit],
    ) -> (Option<Column>, Option<Column>) {
        let mut skip = skip.peekable();
        let mut documents = self.located.iter();
        let mut next = |row: usize| if skip.next_if_eq(&row).is_some() { None } else { documents.next() };
        if edits.is_empty() && !self.annotated {
            return (None, None);
        }
        let mut edits = edits.iter().peekable();
        if self.annotated {
            let note = |row| next(row).and_then(|_| edits.next()).map(|(_, note)| note[MEMBER.len() + 4..].to_owned());
            return (None, Some((0..count).map(note).collect()));
        }
        let left = |row| {
            let string = &next(row)?.string;
            let mut start = string.start;
            let mut left = None::<String>;
            while let Some((range, new)) = edits.next_if(|(range, _)| range.start < string.end) {
                let left = left.get_or_insert_default();
                left.push_str(&self.text[start..range.start]);
                left.push_str(new);
                start = range.end;
            }
            left.map(|left| left + &self.text[start..string.end])
        };
        (Some((0..count).map(left).collect()), None)
    }

    /// Returns a document by its number, and its text.
    pub fn get(&self, number: usize) -> (Document<'_>, &str) {
        (self.texts.document(number), self.text_of(number))
    }

    /// Returns the number of bytes of a document's text, or 0 if there is no document of this number.
    pub fn text_len(&self, number: usize) -> usize {
        if number < self.located.len() { self.text_of(number).len() } else { 0 }
    }

    fn text_of(&self, number: usize) -> &str {
        let start = number.checked_sub(1).map_or(0, |before| self.located[before].text);
        &self.text[start..self.located[number].text]
    }
}

/// Returns the member that is added at the end of an object. The first `head` units are cut, and the newline after them.
fn note(verdicts: &[UnitVerdict], head: usize, grams: usize, found: usize, is_removed: bool) -> String {
    let mut note = format!(r#","{MEMBER}":{{"duplicate":{is_removed},"grams":{grams},"found":{found},"spans":["#);
    let mut comma = "";
    let mut span = |Range { start, end }: Range<usize>, share: f64| {
        write!(note, "{comma}[{start},{end},{share:.4}]").expect("memory takes all");
        comma = ",";
    };
    for (i, UnitVerdict { range, grams, found, cut, .. }) in verdicts.iter().enumerate() {
        if i == head && head > 0 {
            span(range.start..range.start + 1, 0.0);
        }
        if *cut || i < head {
            // A blank paragraph has no grams.
            span(range.clone(), *found as f64 / (*grams).max(1) as f64);
        }
    }
    note + "]}"
}
