//! The lines of a chunk, and what is found out about each.

mod aside;
mod print;

use crate::documents::exact::ExactUnits;
use crate::documents::{DocumentRule, Documents, UnitCounts};
use crate::error::Error;
use crate::groups::decisions::{Decided, Verdict};
use crate::groups::near::involved::Collecting;
use crate::groups::records::Records;
use crate::groups::values::{Found, Wanted as Values};
use crate::input::chunks::{Chunk, Chunks};
use crate::input::lines::aside::Aside;
use crate::input::split::LineFormat;
use crate::key::{Fault, KeyRule, Part, Scratch};
use crate::table::{Rows, Wanted};
use crate::values::OnError;
use bloomline::KeyHasher;
use bloomline_text::near::Near;
use bloomline_text::{Document, Set};
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
    /// The hash of each key: of every line but those aside.
    hashes: Vec<u64>,
    /// The hash of each key and a second one: 128 bits that tell keys apart for certain. Empty unless wanted.
    fingerprints: Vec<u128>,
    /// The documents that lines are, if that is asked for: of every line but those aside.
    documents: Documents,
    /// What else is read of each line with a key, if that is asked for.
    values: Found,
    /// Lines without a key or a document, in order, and why.
    asides: Vec<(usize, Aside)>,
    /// What is found out about each key, in order.
    found: Vec<bool>,
    /// Which bands of documents are new, if these are compared.
    new_bands: Vec<bool>,
    /// The sets of grams of the lines with marks, one after another, and where each ends.
    grams: Vec<u64>,
    sets: Vec<usize>,
    /// How often each key comes, if that is wanted.
    pub times: Vec<u64>,
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
    /// Whether nothing is hashed, for what becomes of each line is known.
    pub decided: bool,
}

impl Hashing {
    /// Of keys alone.
    pub fn of_keys(hasher: &KeyHasher, format: LineFormat, what: What, nulls: OnError) -> Self {
        Self { format, hasher: hasher.clone(), what, nulls, values: Values::default(), decided: false }
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
                Part::Record | Part::Fields { .. } => Wanted::Field,
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

    /// Splits the lines and hashes each. A byte order mark at the start of an input is no part of a line.
    pub fn hash(&mut self, hashing: &Hashing) {
        self.ends.clear();
        self.hashes.clear();
        self.fingerprints.clear();
        self.documents.clear();
        self.values.clear();
        self.asides.clear();
        if let Some(rows) = self.rows.clone() {
            return self.hash_rows(&rows, hashing);
        }
        let Self { chunk, rule: own_rule, ends, end, hashes, fingerprints, documents, values, asides, scratch, .. } =
            self;
        let LineFormat { skip_blank, .. } = hashing.format;
        *end = hashing.format.end;
        scratch.set_plain(!chunk.quoted);
        chunk.each_end(*end, |end| ends.push(end));
        let (bytes, mut start) = (chunk.bytes(), chunk.start());
        let count = ends.len();
        self.count = count;
        let lines = ends.iter().map(|&end| {
            let line = start..end - 1;
            start = end;
            line
        });
        let hasher = &hashing.hasher;
        match &hashing.what {
            _ if hashing.decided => {}
            What::Key(rule, None) if rule.is_line() && !skip_blank => {
                hashes.extend(lines.map(|line| hasher.bytes(&bytes[line])));
            }
            What::Key(rule, second) => {
                let rule = own_rule.as_deref().unwrap_or(rule);
                for (i, line) in lines.enumerate() {
                    let line = &bytes[line];
                    if skip_blank && line.trim_ascii_start().is_empty() {
                        asides.push((i, Aside::Blank));
                        continue;
                    }
                    let key = if chunk.open && i + 1 == count { Err(Fault::Quote) } else { rule.key(line, scratch) };
                    match key {
                        Ok(key) => {
                            let hash = hasher.bytes(key);
                            let both = |second: &KeyHasher| u128::from(hash) << 64 | u128::from(second.bytes(key));
                            hashes.push(hash);
                            fingerprints.extend(second.as_ref().map(both));
                            values.push(&hashing.values, line);
                        }
                        Err(Fault::Null) => asides.push((i, Aside::Null(hashing.nulls))),
                        Err(fault) => asides.push((i, Aside::Fault(fault))),
                    }
                }
            }
            What::Document(rule, on_error) => {
                for (i, line) in lines.enumerate() {
                    let Err(fault) = documents.push(&bytes[line.clone()], line.start, rule, hasher) else {
                        if rule.second.is_some() {
                            match documents.fingerprint(rule) {
                                Some(fingerprint) => {
                                    hashes.push((fingerprint >> 64) as u64);
                                    fingerprints.push(fingerprint);
                                    values.push(&hashing.values, &bytes[line]);
                                }
                                None => asides.push((i, Aside::Empty(documents.stays_alone(rule)))),
                            }
                        } else if hashing.values.id.is_some() {
                            values.push(&hashing.values, &bytes[line]);
                        }
                        continue;
                    };
                    asides.push((i, Aside::Fault(fault)));
                    if *on_error == OnError::Fail {
                        break;
                    }
                }
            }
        }
    }

    /// Hashes each row.
    fn hash_rows(&mut self, rows: &Rows, hashing: &Hashing) {
        let Self { hashes, fingerprints, documents, values: found, asides, scratch, count, .. } = self;
        *count = rows.count();
        let (hasher, mut row, mut failed) = (&hashing.hasher, 0, None);
        match &hashing.what {
            _ if hashing.decided => return,
            What::Key(rule, second) => rows.each_row(|values| {
                match rule.key_of(values, scratch) {
                    Ok(key) => {
                        let hash = hasher.bytes(key);
                        hashes.push(hash);
                        let both = |second: &KeyHasher| u128::from(hash) << 64 | u128::from(second.bytes(key));
                        fingerprints.extend(second.as_ref().map(both));
                    }
                    Err(Fault::Null) => asides.push((row, Aside::Null(hashing.nulls))),
                    Err(fault) => asides.push((row, Aside::Fault(fault))),
                }
                row += 1;
            }),
            What::Document(rule, on_error) => rows.each_text(|text| {
                match text {
                    // After a failure nothing is looked at.
                    Some(text) if failed.is_none() || *on_error != OnError::Fail => {
                        documents.push_text(text, rule, hasher);
                        if rule.second.is_some() {
                            match documents.fingerprint(rule) {
                                Some(fingerprint) => {
                                    hashes.push((fingerprint >> 64) as u64);
                                    fingerprints.push(fingerprint);
                                }
                                None => asides.push((row, Aside::Empty(documents.stays_alone(rule)))),
                            }
                        }
                    }
                    _ => {
                        failed.get_or_insert(row);
                        asides.push((row, Aside::Fault(Fault::NoText { pointer: rule.pointer.to_string() })));
                    }
                }
                row += 1;
            }),
        }
        if hashing.values.is_nothing() {
            return;
        }
        let (mut row, mut aside) = (0, asides.iter().peekable());
        rows.each_value(|values| {
            if aside.next_if(|(aside, _)| *aside == row).is_none() {
                found.push_row(&hashing.values, values);
            }
            row += 1;
        });
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
        let failed = self.asides.iter().find(|(_, aside)| aside.treated(on_error) == Some(OnError::Fail));
        let end = failed.map_or(self.count, |(line, _)| *line);
        let asides = &self.asides[..self.asides.partition_point(|(line, _)| *line < end)];
        let keys = end - asides.len();
        self.found.resize(keys, false);
        let fingerprints = &self.fingerprints[..keys.min(self.fingerprints.len())];
        let hashes = &self.hashes[..keys.min(self.hashes.len())];
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

    /// Has the bands of all documents inserted that have marks, in order. `insert` returns how many were new, and tells which.
    pub fn insert_bands(
        &mut self,
        near: &Near,
        insert: impl FnOnce(&[u64], &mut [bool]) -> Result<usize, Error>,
    ) -> Result<usize, Error> {
        let bands = &self.documents.bands[..near.bands() * self.found.len()];
        self.new_bands.resize(bands.len(), false);
        insert(bands, &mut self.new_bands)
    }

    /// Marks the lines of the input with this number that are to be compared.
    pub fn want(&mut self, input: usize, collecting: &mut Collecting) {
        self.marks.clear();
        self.marks.resize(self.count, None);
        let header = self.rows.is_none() && !self.chunk.header().is_empty();
        collecting.take(input, header, self.count, |line| self.marks[line] = Some(true));
        self.passed = self.count;
    }

    /// Makes the sets of grams of the lines that have marks.
    pub fn make_sets(&mut self, hashing: &Hashing) {
        let Self { chunk, rows, ends, documents, marks, grams, sets, .. } = self;
        grams.clear();
        sets.clear();
        let What::Document(rule, _) = &hashing.what else { return };
        let mut wanted = marks.iter().map(Option::is_some);
        if let Some(rows) = rows {
            return rows.each_text(|text| {
                if let (Some(true), Some(text)) = (wanted.next(), text) {
                    documents.push_grams_of(text, rule, &hashing.hasher, grams);
                    sets.push(grams.len());
                }
            });
        }
        let mut start = chunk.start();
        for (&end, wanted) in ends.iter().zip(wanted) {
            if wanted {
                documents.push_grams(&chunk.bytes()[start..end - 1], rule, &hashing.hasher, grams);
                sets.push(grams.len());
            }
            start = end;
        }
    }

    /// The sets of grams that were made, in order.
    pub fn sets(&self) -> impl Iterator<Item = &[u64]> {
        let mut start = 0;
        self.sets.iter().map(move |&end| {
            let set = &self.grams[start..end];
            start = end;
            set
        })
    }

    /// Has groups remember the lines of the input with this number that have marks, or would have them if they were not left out.
    pub fn record(&self, input: usize, on_error: OnError, records: &mut Records) -> io::Result<()> {
        records.places.take(input, !self.header().is_empty(), self.passed);
        let (mut asides, mut key) = (self.asides.iter().peekable(), 0);
        let per = self.new_bands.len() / self.found.len().max(1);
        for line in 0..self.passed {
            match asides.next_if(|(aside, _)| *aside == line) {
                Some((_, why)) => records.add_aside(why.told(on_error))?,
                None => {
                    let (score, id) = (self.values.score(key), self.values.id(key));
                    records.add(self.fingerprints[key], self.found[key], score, id)?;
                    if let Some(all) = &mut records.bands {
                        let bands = per * key..per * (key + 1);
                        all.add(&self.documents.bands[bands.clone()], &self.new_bands[bands])?;
                    }
                    key += 1;
                }
            }
        }
        records.settle()
    }

    /// Marks the lines of the input with this number with what was decided of each. Those that are kept without a key get the mark
    /// `kept`. Returns how many are selected.
    pub fn recall(&mut self, input: usize, kept: bool, decided: &mut Decided) -> io::Result<u64> {
        let Self { marks, times, asides, .. } = self;
        let which = decided.print.which;
        marks.clear();
        marks.resize(self.count, Some(which.takes(1)));
        times.clear();
        if decided.print.counted {
            times.resize(self.count, 1);
        }
        let header = self.rows.is_none() && !self.chunk.header().is_empty();
        decided.take(input, header, self.count, |line, verdict| match verdict {
            Verdict::Stays { count } => {
                marks[line] = Some(which.takes(count));
                times.get_mut(line).into_iter().for_each(|times| *times = count);
            }
            Verdict::Goes { .. } => marks[line] = Some(false),
            Verdict::Aside(told) => {
                let aside = Aside::of(told);
                marks[line] = match &aside {
                    Aside::Empty(stays) => Some(*stays),
                    aside => (aside.treated(OnError::Fail) == Some(OnError::Keep)).then_some(kept),
                };
                asides.push((line, aside));
            }
        })?;
        // Those of keys alone.
        let (mut lines, mut aside) = (0.., asides.iter().peekable());
        times.retain(|_| {
            let line = lines.next();
            aside.next_if(|(aside, _)| Some(*aside) == line).is_none()
        });
        self.passed = self.count;
        let stay = asides.iter().filter(|(line, _)| marks[*line] == Some(true));
        let kept = stay.filter(|(_, why)| !matches!(why, Aside::Empty(_))).count();
        Ok((marks.iter().filter(|mark| **mark == Some(true)).count() - kept) as u64)
    }

    /// Calls `each` with each line that passed and has a document which is decided: its number from 0, the document, its text, and what
    /// it is called.
    pub fn each_document(
        &self,
        mut each: impl FnMut(usize, Document<'_>, &str, &str) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut asides = self.asides.iter().peekable();
        let with_document = (0..self.passed).filter(|line| asides.next_if(|(aside, _)| aside == line).is_none());
        for (number, line) in with_document.enumerate() {
            let (document, text) = self.documents.get(number);
            each(line, document, text, self.values.id(number))?;
        }
        Ok(())
    }

    /// Bytes of memory for the lines, with those that are free.
    pub fn memory(&self) -> usize {
        self.rows.as_ref().map_or_else(|| self.chunk.memory(), |rows| rows.memory())
    }

    /// The number of lines.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Lines that should have a key or a document and have none, in order, and why.
    fn faults(&self) -> impl Iterator<Item = (usize, &Fault)> {
        self.asides.iter().filter_map(|(line, why)| Some((*line, why.fault()?)))
    }

    /// How many of the lines that passed have no key, where bad input is treated so.
    pub fn count_asides(&self, on_error: OnError) -> AsideCounts {
        let mut counts = AsideCounts::default();
        for (_, aside) in self.asides.iter().take_while(|(line, _)| *line < self.passed) {
            let treated = aside.treated(on_error);
            counts.blank += usize::from(matches!(aside, Aside::Blank));
            counts.faults += usize::from(treated.is_some());
            counts.kept += usize::from(treated == Some(OnError::Keep));
        }
        counts
    }

    /// The first line that passed without a key that it should have, and why it has none.
    pub fn first_fault(&self) -> Option<(usize, &Fault)> {
        // What becomes of nulls was chosen.
        self.faults().find(|(_, fault)| **fault != Fault::Null).filter(|(line, _)| *line < self.passed)
    }

    /// The fault of the line at which the marks end, if it is for that.
    pub fn take_fault(&mut self) -> Option<Fault> {
        let i = self.asides.iter().position(|&(line, _)| line == self.passed)?;
        match self.asides.remove(i).1 {
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
