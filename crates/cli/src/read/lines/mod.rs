//! The lines of a chunk, and the results for each.

pub mod ends;
mod groups;
mod hash;
pub mod keys;
mod print;
mod skip;

use crate::key::KeyScratch;
use crate::key::error::KeyError;
use crate::options::values::OnError;
use crate::read::chunks::{Chunk, Chunks};
use crate::read::lines::keys::{HeaderRule, Keys};
use crate::read::lines::skip::SkipReason;
use crate::read::table::Rows;
use crate::steps::documents::rule::DocumentRule;
use crate::steps::documents::{DocumentBatch, UnitCounts};
use crate::steps::groups::values::FoundValues;
use crate::system::error::Error;
use bloomline_keys::KeyKinds;
use bloomline_text::Set;
use std::io;
use std::mem;
use std::sync::Arc;

/// Lines, their hashes, and a mark for each. The memory is reused.
#[derive(Default)]
pub struct Lines {
    chunk: Chunk,
    /// The rows of a table, instead of lines.
    rows: Option<Arc<dyn Rows>>,
    /// The rule that the header gives, if the keys or values depend on it.
    rule: Option<Arc<HeaderRule>>,
    keys: Keys,
    /// The documents, if wanted: one for each line that has a key.
    documents: DocumentBatch,
    /// The other values read of each line with a key, if wanted.
    values: FoundValues,
    /// The result for each key, in order.
    found: Vec<bool>,
    /// The sets of grams of the marked lines.
    sets: Sets,
    /// The number of occurrences of each key, if wanted.
    times: Vec<u64>,
    /// The result for each line; `None` for lines that are skipped.
    marks: Vec<Option<bool>>,
    /// The number of lines up to the last one with a mark, or with a mark but for being skipped.
    passed: usize,
    scratch: KeyScratch,
}

/// Sets of grams, concatenated, and the end of each.
#[derive(Default)]
struct Sets {
    grams: Vec<u64>,
    ends: Vec<usize>,
}

/// The numbers of lines without a key.
#[derive(Default)]
pub struct SkipCounts {
    /// Lines that should have a key, and those of them that are kept.
    pub faults: usize,
    pub kept: usize,
    /// Blank lines, which are skipped.
    pub blank: usize,
}

/// The prefix of a printed line.
#[derive(Clone, Copy, Default, PartialEq)]
pub enum Prefix {
    #[default]
    Nothing,
    /// "new" or "dup", so all lines are printed.
    Mark,
    /// The number of occurrences.
    Count,
    /// Nothing: the number is a member at the end of the line.
    Member,
}

impl Lines {
    /// Reads the next lines. Returns false at the end of the input.
    pub fn fill(&mut self, chunks: &mut Chunks) -> io::Result<bool> {
        self.rows = None;
        chunks.fill(&mut self.chunk)
    }

    /// Sets rows instead of lines. Returns false if `rows` is `None`.
    pub fn take_rows(&mut self, rows: Option<Arc<dyn Rows>>) -> bool {
        self.chunk.clear();
        self.rows = rows;
        self.is_rows()
    }

    /// Sets what depends on the header of the input.
    pub fn set_rule(&mut self, rule: Option<Arc<HeaderRule>>) {
        self.rule = rule;
    }

    /// Marks the lines by the results that `find` gives for their keys, in order, from the hashes and fingerprints. `find` returns
    /// the number of keys that are done. Lines from the next key on get no mark.
    ///
    /// A line without a key gets the mark `kept` if such lines are kept, and no mark if they are skipped. If they are failures, the
    /// first of them and all lines after it get no mark. Blank lines get none.
    pub fn mark(
        &mut self,
        on_error: OnError,
        kept: bool,
        find: impl FnOnce(&[u64], &[u128], &mut [bool]) -> Result<usize, Error>,
    ) -> Result<(), Error> {
        let failed = self.keys.skipped.iter().find(|(_, skip)| skip.policy(on_error) == Some(OnError::Fail));
        let end = failed.map_or(self.count(), |(line, _)| *line);
        let skipped = &self.keys.skipped[..self.keys.skipped.partition_point(|(line, _)| *line < end)];
        let keys = end - skipped.len();
        self.found.resize(keys, false);
        let fingerprints = &self.keys.fingerprints[..keys.min(self.keys.fingerprints.len())];
        let hashes = &self.keys.hashes[..keys.min(self.keys.hashes.len())];
        let known = find(hashes, fingerprints, &mut self.found)?;
        let mut found = self.found[..known].iter().copied().map(Some);
        self.marks.clear();
        for (line, why) in skipped {
            self.marks.extend(found.by_ref().take(line - self.marks.len()));
            if self.marks.len() < *line {
                break;
            }
            let is_kept = why.policy(on_error) == Some(OnError::Keep);
            self.marks.push(if let SkipReason::Empty(stays) = why { Some(*stays) } else { is_kept.then_some(kept) });
        }
        self.marks.extend(found);
        self.passed = self.marks.len();
        self.marks.resize(self.count(), None);
        Ok(())
    }

    /// Marks the lines by the decisions about their documents: `true` if some text is kept, which is then inserted. Lines without a
    /// document are marked as in [`mark`](Self::mark). `fpr` returns the set's mean false-positive rate over the call.
    pub fn decide<S: Set<Error = Error>>(
        &mut self,
        rule: &DocumentRule,
        on_error: OnError,
        set: &mut S,
        fpr: impl FnOnce(&S) -> f64,
    ) -> Result<UnitCounts, Error> {
        let (mut documents, mut counts) = (mem::take(&mut self.documents), UnitCounts::default());
        let decisions = self.mark(on_error, true, |_, _, kept| {
            counts = documents.decide(rule, set, fpr, kept)?;
            Ok(kept.len())
        });
        self.documents = documents;
        decisions.map(|()| counts)
    }

    /// Returns the kinds of the keys.
    pub fn kinds(&self) -> &KeyKinds {
        &self.keys.kinds
    }

    /// Returns the kinds of the keys if they were found in values.
    pub fn found_kinds(&self) -> &KeyKinds {
        &self.keys.found_kinds
    }

    /// Returns the number of documents that are kept at least in part, after [`decide`](Self::decide).
    pub fn kept_documents(&self, on_error: OnError) -> u64 {
        (self.marked(true) - self.count_asides(on_error).kept) as u64
    }

    /// Returns the bytes of memory for the lines, with spare capacity.
    pub fn memory(&self) -> usize {
        self.rows.as_ref().map_or_else(|| self.chunk.memory(), |rows| rows.memory())
    }

    /// Returns the number of lines.
    pub fn count(&self) -> usize {
        self.rows.as_ref().map_or_else(|| self.chunk.count(), |rows| rows.count())
    }

    /// Counts the lines that passed without a key, if bad input is treated as `on_error`.
    pub fn count_asides(&self, on_error: OnError) -> SkipCounts {
        let mut counts = SkipCounts::default();
        for (_, skip) in self.keys.skipped.iter().take_while(|(line, _)| *line < self.passed) {
            let policy = skip.policy(on_error);
            counts.blank += usize::from(matches!(skip, SkipReason::Blank));
            counts.faults += usize::from(policy.is_some());
            counts.kept += usize::from(policy == Some(OnError::Keep));
        }
        counts
    }

    /// Returns the first line that passed without a required key, and the fault.
    pub fn first_fault(&self) -> Option<(usize, &KeyError)> {
        let mut faults = self.keys.skipped.iter().filter_map(|(line, why)| Some((*line, why.key_error()?)));
        // The treatment of nulls was chosen by the user.
        faults.find(|(_, key_error)| **key_error != KeyError::Null).filter(|(line, _)| *line < self.passed)
    }

    /// Removes and returns the fault of the first line that did not pass, if it has one.
    pub fn take_fault(&mut self) -> Option<KeyError> {
        let i = self.keys.skipped.iter().position(|&(line, _)| line == self.passed)?;
        match self.keys.skipped.remove(i).1 {
            SkipReason::Blank | SkipReason::Empty(_) => None,
            SkipReason::Invalid(key_error) => Some(key_error),
            SkipReason::Null(_) => Some(KeyError::Null),
        }
    }

    /// Returns the number of lines that are done: up to the last one with a mark, or with a mark but for being skipped.
    pub fn passed(&self) -> usize {
        self.passed
    }

    /// Returns the length of the first `lines` lines with their ends.
    pub fn bytes(&self, lines: usize) -> usize {
        match &self.rows {
            Some(rows) => rows.bytes(lines),
            None if lines == 0 => 0,
            None => self.chunk.start_of(lines),
        }
    }

    /// Returns the header of the input with its end, if these are its first lines.
    pub fn header(&self) -> &[u8] {
        self.chunk.header()
    }

    /// True for rows of a table.
    pub fn is_rows(&self) -> bool {
        self.rows.is_some()
    }

    /// Returns the number of lines in an editor for the header and the first `lines` lines. A CSV record may span several.
    pub fn rows(&self, lines: usize) -> usize {
        let header = self.header();
        if !self.chunk.quoted {
            return lines + usize::from(!header.is_empty());
        }
        let rows = |bytes| memchr::memchr_iter(self.chunk.end, bytes).count();
        rows(header) + rows(&self.chunk.bytes()[..self.bytes(lines)])
    }

    /// Removes a mark from the lines that have it, and returns their number.
    pub fn unmark(&mut self, mark: bool) -> usize {
        let marked = self.marked(mark);
        self.marks.iter_mut().for_each(|other| *other = other.filter(|&other| other != mark));
        marked
    }

    /// Returns the number of lines with the mark.
    pub fn marked(&self, mark: bool) -> usize {
        self.marks.iter().filter(|&&other| other == Some(mark)).count()
    }
}
