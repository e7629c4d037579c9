//! The interface of lines to groups: the records of lines or documents, and the decisions about them.

use crate::key::json::Pointer;
use crate::options::values::OnError;
use crate::read::lines::keys::{HashOptions, Keys};
use crate::read::lines::skip::SkipReason;
use crate::read::lines::{Lines, Sets};
use crate::steps::documents::DocumentBatch;
use crate::steps::groups::decisions::{Decisions, LineVerdict};
use crate::steps::groups::near::candidate_documents::GramCollector;
use crate::steps::groups::records::RecordFile;
use crate::system::error::Error;
use bloomline_text::Document;
use bloomline_text::near::Near;
use std::io;
use std::mem;

impl Lines {
    /// Inserts the bands of all documents with marks, in order. `insert` returns the number of new bands, and sets a flag for each.
    pub fn insert_bands(
        &mut self,
        near: &Near,
        insert: impl FnOnce(&[u64], &mut [bool]) -> Result<usize, Error>,
    ) -> Result<usize, Error> {
        let DocumentBatch { bands, new_bands, .. } = &mut self.documents;
        let bands = &bands[..near.bands() * self.found.len()];
        new_bands.resize(bands.len(), false);
        insert(bands, new_bands)
    }

    /// Marks the lines of input number `input` that are to be compared.
    pub fn want(&mut self, input: usize, collecting: &mut GramCollector) {
        self.marks.clear();
        let count = self.count();
        self.marks.resize(count, None);
        let header = !self.header().is_empty();
        collecting.take(input, header, count, |line| self.marks[line] = Some(true));
        self.passed = count;
    }

    /// Makes the sets of grams of the marked lines.
    pub fn make_sets(&mut self, hashing: &HashOptions) {
        let Self { chunk, rows, documents, marks, sets: Sets { grams, ends }, .. } = self;
        grams.clear();
        ends.clear();
        let Some(rule) = hashing.what.document() else { return };
        let mut wanted = marks.iter().map(Option::is_some);
        if let Some(rows) = rows {
            return rows.each_text(&mut |text| {
                if let (Some(true), Some(text)) = (wanted.next(), text) {
                    documents.push_grams_of(text, rule, &hashing.hasher, grams);
                    ends.push(grams.len());
                }
            });
        }
        for (line, _) in chunk.lines().zip(wanted).filter(|(_, wanted)| *wanted) {
            documents.push_grams(&chunk.bytes()[line], rule, &hashing.hasher, grams);
            ends.push(grams.len());
        }
    }

    /// Returns the sets of grams, in order.
    pub fn sets(&self) -> impl Iterator<Item = &[u64]> {
        let (Sets { grams, ends }, mut start) = (&self.sets, 0);
        ends.iter().map(move |&end| &grams[mem::replace(&mut start, end)..end])
    }

    /// Records the lines of input number `input` that passed.
    pub fn record(&self, input: usize, on_error: OnError, records: &mut RecordFile) -> io::Result<()> {
        records.ordinals.take(input, !self.header().is_empty(), self.passed);
        let (mut skipped, mut key) = (self.keys.skipped.iter().peekable(), 0);
        let DocumentBatch { bands, new_bands, .. } = &self.documents;
        let per = new_bands.len() / self.found.len().max(1);
        for line in 0..self.passed {
            match skipped.next_if(|(skip, _)| *skip == line) {
                Some((_, why)) => records.add_skipped(why.code(on_error))?,
                None => {
                    let (score, id) = (self.values.score(key), self.values.id(key));
                    records.add(self.keys.fingerprints[key], self.found[key], score, id)?;
                    if let Some(all) = &mut records.bands {
                        let own = per * key..per * (key + 1);
                        all.add(&bands[own.clone()], &new_bands[own])?;
                    }
                    key += 1;
                }
            }
        }
        records.insert_pending()
    }

    /// Marks the lines of input number `input` by the decisions about them. Lines that are kept without a key get the mark `kept`.
    /// If `emptied` points to the text, removed documents are kept without their text. Returns the number of selected lines.
    pub fn recall(
        &mut self,
        input: usize,
        kept: bool,
        emptied: Option<&Pointer>,
        decisions: &mut Decisions,
    ) -> io::Result<u64> {
        let (header, occurrences) = (!self.header().is_empty(), decisions.print.occurrences);
        let (is_rows, count) = (self.is_rows(), self.count());
        let Self { marks, times, keys: Keys { skipped, .. }, chunk, documents, .. } = self;
        marks.clear();
        marks.resize(count, Some(occurrences.selects(1)));
        times.clear();
        if decisions.print.counted {
            times.resize(count, 1);
        }
        decisions.take(input, header, count, |line, verdict| match verdict {
            LineVerdict::Kept { count } => {
                marks[line] = Some(occurrences.selects(count));
                times.get_mut(line).into_iter().for_each(|times| *times = count);
            }
            LineVerdict::Removed { .. } => {
                marks[line] = Some(emptied.is_some());
                let Some(pointer) = emptied else { return };
                // It is counted with the document that is kept.
                times.get_mut(line).into_iter().for_each(|times| *times = 0);
                if is_rows {
                    documents.empty_row(line);
                } else {
                    let start = chunk.start_of(line);
                    documents.empty(&chunk.bytes()[start..chunk.start_of(line + 1) - 1], start, pointer);
                }
            }
            LineVerdict::Skipped(code) => {
                let skip = SkipReason::from_code(code);
                marks[line] = match &skip {
                    SkipReason::Empty(is_kept) => Some(*is_kept),
                    skip => (skip.policy(OnError::Fail) == Some(OnError::Keep)).then_some(kept),
                };
                skipped.push((line, skip));
            }
        })?;
        // Only lines with keys have counts.
        let (mut lines, mut skip) = (0.., skipped.iter().peekable());
        times.retain(|_| {
            let line = lines.next();
            skip.next_if(|(skip, _)| Some(*skip) == line).is_none()
        });
        self.passed = count;
        let stay = skipped.iter().filter(|(line, _)| marks[*line] == Some(true));
        let kept = stay.filter(|(_, why)| !matches!(why, SkipReason::Empty(_))).count();
        Ok((marks.iter().filter(|mark| **mark == Some(true)).count() - kept) as u64)
    }

    /// Calls `each` for each document that passed, with the number of its line from 0, the document, its text and its id.
    pub fn each_document(
        &self,
        mut each: impl FnMut(usize, Document<'_>, &str, &str) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut skipped = self.keys.skipped.iter().peekable();
        let with_document = (0..self.passed).filter(|line| skipped.next_if(|(skip, _)| skip == line).is_none());
        for (number, line) in with_document.enumerate() {
            let (document, text) = self.documents.get(number);
            each(line, document, text, self.values.id(number))?;
        }
        Ok(())
    }
}
