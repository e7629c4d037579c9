//! The lines of a chunk, and what is found out about each.

mod aside;
pub mod ends;
mod groups;
mod hash;
mod keys;
mod print;

use crate::documents::exact::ExactUnits;
use crate::documents::rule::DocumentRule;
use crate::documents::{Documents, UnitCounts};
use crate::error::Error;
use crate::groups::values::{Found, Wanted as Values};
use crate::input::chunks::{Chunk, Chunks};
use crate::input::lines::aside::Aside;
use crate::input::lines::ends::LineEnds;
use crate::input::lines::keys::Keys;
use crate::input::split::LineFormat;
use crate::key::fault::Fault;
use crate::key::{KeyRule, Part, Scratch};
use crate::table::{Rows, Wanted};
use crate::values::OnError;
use bloomline::KeyHasher;
use bloomline_text::Set;
use std::io;
use std::mem;
use std::sync::Arc;

/// Lines, their hashes, and a mark for each. Its memory is used again and again.
#[derive(Default)]
pub struct Lines {
    chunk: Chunk,
    /// The rows of a table, in the place of lines.
    rows: Option<Arc<Rows>>,
    /// How many there are.
    count: usize,
    /// What the key of a line is, where the header of the input has a part in that.
    rule: Option<Arc<KeyRule>>,
    /// Where each line ends, past its end.
    ends: Vec<usize>,
    /// The byte that ends them.
    end: u8,
    keys: Keys,
    /// The documents that lines are, if that is asked for: of every line but those aside.
    documents: Documents,
    /// The rows that are printed without their texts.
    without_text: Vec<usize>,
    /// What else is read of each line with a key, if that is asked for.
    values: Found,
    /// What is found out about each key, in order.
    found: Vec<bool>,
    /// Which bands of documents are new, if these are compared.
    new_bands: Vec<bool>,
    /// The sets of grams of the lines with marks, one after another, and where each ends.
    grams: Vec<u64>,
    sets: Vec<usize>,
    /// How often each key comes, if that is wanted.
    times: Vec<u64>,
    /// What is found out for each line; none for lines that are left out.
    marks: Vec<Option<bool>>,
    /// The lines up to the last one with a mark, or that would have one if it were not left out.
    passed: usize,
    scratch: Scratch,
}

/// How many lines have no key.
#[derive(Default)]
pub struct AsideCounts {
    /// Those that should have one, and those of them that stay.
    pub faults: usize,
    pub kept: usize,
    /// Those that are left out, for they are blank.
    pub blank: usize,
}

/// The column of how often each row comes, and the member of lines of JSON.
pub const COUNT: &str = "count";

/// What stands before a line that is printed.
#[derive(Clone, Copy, PartialEq)]
pub enum Before {
    Nothing,
    /// What it is, and so all lines are printed.
    Mark,
    /// How often it comes.
    Count,
    /// Nothing, for that is a member at its end.
    Member,
}

/// How lines are hashed.
#[derive(Clone)]
pub struct Hashing {
    /// What a line is.
    pub format: LineFormat,
    /// The filter's hasher.
    pub hasher: KeyHasher,
    /// What of a line is hashed.
    pub what: What,
    /// What becomes of a line whose key has a null, if nulls are no keys.
    pub nulls: OnError,
    /// What else is read of lines.
    pub values: Values,
    /// The line ends of the keys, for a warning if there are two kinds.
    pub ends: Arc<LineEnds>,
}

impl Hashing {
    /// Of keys alone.
    pub fn of_keys(hasher: &KeyHasher, format: LineFormat, what: What, nulls: OnError) -> Self {
        let (hasher, values, ends) = (hasher.clone(), Values::default(), Arc::default());
        Self { format, hasher, what, nulls, values, ends }
    }
}

/// What of a line is hashed.
#[derive(Clone)]
pub enum What {
    /// Its key, for fingerprints with a second hasher too.
    Key(KeyRule, Option<KeyHasher>),
    /// What its document is looked up by. From the first line on that has none, nothing is if that is a failure.
    Document(DocumentRule, OnError),
}

impl What {
    /// What the key is, if it is one.
    pub fn rule(&self) -> Option<&KeyRule> {
        if let Self::Key(rule, _) = self { Some(rule) } else { None }
    }

    /// What is read of the rows of a table for it.
    pub fn of_rows(&self) -> Wanted<'_> {
        match self {
            Self::Document(rule, _) => Wanted::Text(&rule.pointer),
            Self::Key(rule, _) => match &rule.part {
                Part::Line | Part::Row => Wanted::Row,
                Part::Json(pointers) => Wanted::Values(pointers),
                Part::Record(_) | Part::Fields { .. } => Wanted::Field,
            },
        }
    }
}

impl Lines {
    /// Takes the next lines; `false` if there are none.
    pub fn fill(&mut self, chunks: &mut Chunks) -> io::Result<bool> {
        self.rows = None;
        chunks.fill(&mut self.chunk)
    }

    /// Takes rows in the place of lines; `false` if there are none.
    pub fn take_rows(&mut self, rows: Option<Rows>) -> bool {
        self.rows = rows.map(Arc::new);
        self.rows.is_some()
    }

    /// Takes what their keys are, where that depends on their input.
    pub fn set_rule(&mut self, rule: Option<Arc<KeyRule>>) {
        self.rule = rule;
    }

    /// Marks the lines with what `find` finds out about their keys, in order, from the hashes and fingerprints. `find` returns
    /// the number of keys that it has done. The lines from the next key on get no mark.
    ///
    /// A line without a key gets the mark `kept` if such lines are kept, and no mark if they are skipped. If they are failures,
    /// the first of them and all lines after it get no mark. Blank lines get none.
    pub fn mark(
        &mut self,
        on_error: OnError,
        kept: bool,
        find: impl FnOnce(&[u64], &[u128], &mut [bool]) -> Result<usize, Error>,
    ) -> Result<(), Error> {
        let failed = self.keys.asides.iter().find(|(_, aside)| aside.treated(on_error) == Some(OnError::Fail));
        let end = failed.map_or(self.count, |(line, _)| *line);
        let asides = &self.keys.asides[..self.keys.asides.partition_point(|(line, _)| *line < end)];
        let keys = end - asides.len();
        self.found.resize(keys, false);
        let fingerprints = &self.keys.fingerprints[..keys.min(self.keys.fingerprints.len())];
        let hashes = &self.keys.hashes[..keys.min(self.keys.hashes.len())];
        let known = find(hashes, fingerprints, &mut self.found)?;
        let mut found = self.found[..known].iter().copied().map(Some);
        self.marks.clear();
        for (line, why) in asides {
            self.marks.extend(found.by_ref().take(line - self.marks.len()));
            if self.marks.len() < *line {
                break;
            }
            let is_kept = why.treated(on_error) == Some(OnError::Keep);
            self.marks.push(if let Aside::Empty(stays) = why { Some(*stays) } else { is_kept.then_some(kept) });
        }
        self.marks.extend(found);
        self.passed = self.marks.len();
        self.marks.resize(self.count, None);
        Ok(())
    }

    /// Marks the lines with what is decided of their documents: `true` if something of it stays, and what stays is inserted. Lines
    /// without a document are marked as in [`mark`](Self::mark). `exact` counts mistakes, and `fpr`
    /// tells the mean rate of the set meanwhile.
    pub fn decide<S: Set<Error = Error>>(
        &mut self,
        rule: &DocumentRule,
        on_error: OnError,
        set: &mut S,
        exact: Option<&mut ExactUnits>,
        fpr: impl FnOnce(&S) -> f64,
    ) -> Result<UnitCounts, Error> {
        let (mut documents, mut counts) = (mem::take(&mut self.documents), UnitCounts::default());
        let decided = self.mark(on_error, true, |_, _, kept| {
            counts = documents.decide(rule, set, exact, fpr, kept)?;
            Ok(kept.len())
        });
        self.documents = documents;
        decided.map(|()| counts)
    }

    /// The number of lines of whose documents something stays, after [`decide`](Self::decide).
    pub fn kept_documents(&self, on_error: OnError) -> u64 {
        (self.marked(true) - self.count_asides(on_error).kept) as u64
    }

    /// Bytes of memory for the lines, with those that are free.
    pub fn memory(&self) -> usize {
        self.rows.as_ref().map_or_else(|| self.chunk.memory(), |rows| rows.memory())
    }

    /// The number of lines.
    pub fn count(&self) -> usize {
        self.count
    }

    /// How many of the lines that passed have no key, where bad input is treated so.
    pub fn count_asides(&self, on_error: OnError) -> AsideCounts {
        let mut counts = AsideCounts::default();
        for (_, aside) in self.keys.asides.iter().take_while(|(line, _)| *line < self.passed) {
            let treated = aside.treated(on_error);
            counts.blank += usize::from(matches!(aside, Aside::Blank));
            counts.faults += usize::from(treated.is_some());
            counts.kept += usize::from(treated == Some(OnError::Keep));
        }
        counts
    }

    /// The first line that passed without a key that it should have, and why it has none.
    pub fn first_fault(&self) -> Option<(usize, &Fault)> {
        let mut faults = self.keys.asides.iter().filter_map(|(line, why)| Some((*line, why.fault()?)));
        // What becomes of nulls was chosen.
        faults.find(|(_, fault)| **fault != Fault::Null).filter(|(line, _)| *line < self.passed)
    }

    /// The fault of the line at which the marks end, if it is for that.
    pub fn take_fault(&mut self) -> Option<Fault> {
        let i = self.keys.asides.iter().position(|&(line, _)| line == self.passed)?;
        match self.keys.asides.remove(i).1 {
            Aside::Blank | Aside::Empty(_) => None,
            Aside::Fault(fault) => Some(fault),
            Aside::Null(_) => Some(Fault::Null),
        }
    }

    /// How many lines are done: all up to the last one with a mark, or that would have one if it were not left out.
    pub fn passed(&self) -> usize {
        self.passed
    }

    /// The length of the first lines with their ends.
    pub fn bytes(&self, lines: usize) -> usize {
        if let Some(rows) = &self.rows {
            return rows.bytes(lines);
        }
        lines.checked_sub(1).map_or(0, |last| self.ends[last])
    }

    /// The header of the input with its end, if these are its first lines.
    pub fn header(&self) -> &[u8] {
        if self.is_rows() { &[] } else { self.chunk.header() }
    }

    /// Whether they are rows of a table.
    pub fn is_rows(&self) -> bool {
        self.rows.is_some()
    }

    /// How many lines the header and the first `lines` lines are in an editor: a record of CSV may have several.
    pub fn rows(&self, lines: usize) -> usize {
        let header = self.header();
        if self.is_rows() || !self.chunk.quoted {
            return lines + usize::from(!header.is_empty());
        }
        let rows = |bytes| memchr::memchr_iter(self.end, bytes).count();
        rows(header) + rows(&self.chunk.bytes()[..self.bytes(lines)])
    }

    /// Takes a mark away from the lines that have it, and returns how many there were.
    pub fn unmark(&mut self, mark: bool) -> usize {
        let marked = self.marked(mark);
        self.marks.iter_mut().for_each(|other| *other = other.filter(|&other| other != mark));
        marked
    }

    /// How many lines have the mark.
    pub fn marked(&self, mark: bool) -> usize {
        self.marks.iter().filter(|&&other| other == Some(mark)).count()
    }
}
