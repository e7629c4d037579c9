//! The lines of a chunk, and what is found out about each.

use crate::documents::exact::ExactUnits;
use crate::documents::{DocumentRule, Documents, UnitCounts};
use crate::error::Error;
use crate::groups::decisions::{self, Decided, Verdict};
use crate::groups::near::Collecting;
use crate::groups::records::Records;
use crate::groups::values::{Found, Wanted as Values};
use crate::input::chunks::{BYTE_ORDER_MARK, Chunk, Chunks};
use crate::input::split::LineFormat;
use crate::key::json::members;
use crate::key::{Fault, KeyRule, Part, Scratch};
use crate::table::{Added, Rows, Selected, Wanted, Wish};
use crate::values::OnError;
use bloomline::KeyHasher;
use bloomline_text::near::Near;
use bloomline_text::{Document, Set};
use memchr::memmem;
use std::io::{self, Write};
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

/// Why a line has no key.
enum Aside {
    /// It is left out.
    Blank,
    Fault(Fault),
    /// A null, and what becomes of its row.
    Null(OnError),
    /// It has a text without anything to compare, and whether it stays.
    Empty(bool),
}

impl Aside {
    fn fault(&self) -> Option<&Fault> {
        match self {
            Self::Blank | Self::Empty(_) => None,
            Self::Fault(fault) => Some(fault),
            Self::Null(_) => Some(&Fault::Null),
        }
    }

    /// What becomes of the line, if it is not left out, where bad input is treated so.
    fn treated(&self, on_error: OnError) -> Option<OnError> {
        match self {
            Self::Blank | Self::Empty(_) => None,
            Self::Fault(_) => Some(on_error),
            Self::Null(nulls) => Some(*nulls),
        }
    }

    /// What groups are told of it, where bad input is treated so.
    fn told(&self, on_error: OnError) -> decisions::Aside {
        match (self, self.treated(on_error)) {
            (Self::Empty(true), _) => decisions::Aside::EmptyStays,
            (Self::Empty(false), _) => decisions::Aside::EmptyGoes,
            (_, None) => decisions::Aside::Blank,
            (_, Some(OnError::Keep)) => decisions::Aside::FaultStays,
            (_, Some(_)) => decisions::Aside::FaultGoes,
        }
    }

    /// What it was that groups were told.
    fn of(told: decisions::Aside) -> Self {
        match told {
            decisions::Aside::Blank => Self::Blank,
            decisions::Aside::FaultGoes => Self::Null(OnError::Skip),
            decisions::Aside::FaultStays => Self::Null(OnError::Keep),
            decisions::Aside::EmptyGoes => Self::Empty(false),
            decisions::Aside::EmptyStays => Self::Empty(true),
        }
    }
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

/// The column of what is told of each row.
const NOTE: &str = "bloomline";

/// That of how often each comes, and the member of lines of JSON.
pub const COUNT: &str = "count";
/// How the name of that is written, and how an escape begins that may be a part of it.
const COUNT_NAMES: [&[u8]; 2] = [b"\"count\"", b"\\u00"];

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
        rule: &DocumentRule,
        insert: impl FnOnce(&[u64], &mut [bool]) -> Result<usize, Error>,
    ) -> Result<usize, Error> {
        let per = rule.near.as_ref().map_or(0, Near::bands);
        let bands = &self.documents.bands[..per * self.found.len()];
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

    /// The lines that have the mark, each with its end; neighbours are one piece.
    fn pieces(&self, mark: bool) -> impl Iterator<Item = &[u8]> {
        self.stretches(|a, b| a == b).filter_map(move |(piece, other)| (other == Some(mark)).then_some(piece))
    }

    /// The rows that have the mark, with what stands before them in a column of its own.
    pub fn select(&self, before: Before, mark: bool, wish: Wish) -> Option<Selected> {
        let rows = self.rows.as_ref()?;
        let marked = |own: &Option<bool>| own.is_some_and(|own| before == Before::Mark || own == mark);
        let mut wanted: Vec<bool> = self.marks.iter().map(marked).collect();
        wanted.resize(self.count, false);
        let added = match before {
            Before::Nothing => None,
            Before::Mark => {
                let text = |mark: &Option<bool>| mark.map(|new| if new { "new" } else { "dup" }.to_owned());
                Some(Added::Texts(NOTE, self.marks.iter().map(text).collect()))
            }
            Before::Count | Before::Member => {
                let (mut times, mut asides) = (self.times.iter(), self.asides.iter().peekable());
                let count = |row: usize| {
                    let aside = asides.next_if(|(other, _)| *other == row).is_some();
                    if aside { 1 } else { times.next().copied().unwrap_or(1) }
                };
                Some(Added::Numbers(COUNT, (0..self.count).map(count).collect()))
            }
        };
        let (texts, notes) = self.documents.rewritten(self.asides.iter().map(|(row, _)| *row), self.count);
        let notes = notes.map(|notes| Added::Texts(NOTE, notes));
        Some(rows.select(wanted, texts, added.or(notes), wish))
    }

    /// Writes the header of the input, and a name for what stands before the lines.
    pub fn print_header(&self, before: Before, out: &mut impl Write) -> io::Result<()> {
        let header = self.header();
        let name: &[u8] = match before {
            Before::Nothing | Before::Member => return out.write_all(header),
            Before::Mark => b"mark\t",
            Before::Count => b"  count ",
        };
        // A byte order mark counts at the start alone.
        let start = if header.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
        [&header[..start], name, &header[start..]].iter().try_for_each(|piece| out.write_all(piece))
    }

    /// Writes the lines that have the mark, with what stands before them.
    pub fn print(&self, before: Before, mark: bool, out: &mut impl Write) -> io::Result<()> {
        match before {
            Before::Nothing => self.print_bare(mark, out),
            Before::Mark => self.annotate(out),
            Before::Count => self.print_counted(mark, out, |line, times, _, out| {
                match times {
                    1 => out.write_all(b"      1 ")?,
                    times => write!(out, "{times:7} ")?,
                }
                out.write_all(line)
            }),
            Before::Member => self.print_counted(mark, out, |line, times, is_fault, out| match is_fault {
                true => out.write_all(line),
                false => self.print_with_member(line, times, out),
            }),
        }
    }

    /// Writes all lines with a mark, each with "new" or "dup" before it.
    fn annotate(&self, out: &mut impl Write) -> io::Result<()> {
        self.stretches(|_, _| false).try_for_each(|(line, mark)| match mark {
            Some(new) => out.write_all(if new { b"new\t" } else { b"dup\t" }).and_then(|()| out.write_all(line)),
            None => Ok(()),
        })
    }

    /// Has the lines written that have the mark, each with how often its key comes, and whether it should have one and has none. Such a
    /// line is the only one of its kind.
    fn print_counted<W: Write>(
        &self,
        mark: bool,
        out: &mut W,
        write: impl Fn(&[u8], u64, bool, &mut W) -> io::Result<()>,
    ) -> io::Result<()> {
        let (mut times, mut asides) = (self.times.iter(), self.asides.iter().peekable());
        self.stretches(|_, _| false).enumerate().try_for_each(|(i, (line, own))| {
            let aside = asides.next_if(|(line, _)| *line == i);
            let times = if aside.is_some() { 1 } else { times.next().copied().unwrap_or(1) };
            let is_fault = aside.is_some_and(|(_, why)| why.fault().is_some());
            if own == Some(mark) { write(line, times, is_fault, out) } else { Ok(()) }
        })
    }

    /// Writes a JSON object, which was checked before, with how often it comes as a member at its end. Another member of this name goes.
    fn print_with_member(&self, line: &[u8], times: u64, out: &mut impl Write) -> io::Result<()> {
        let inner = line.strip_suffix(&[self.end]).unwrap_or(line).trim_ascii_end();
        let brace = inner.len().saturating_sub(1);
        let has_one = COUNT_NAMES.iter().any(|name| memmem::find(inner, name).is_some());
        let old = if has_one { members(std::str::from_utf8(inner).unwrap_or_default(), COUNT) } else { Vec::new() };
        let mut start = 0;
        for old in old {
            out.write_all(&line[start..old.start])?;
            start = old.end;
        }
        out.write_all(&line[start..brace])?;
        write!(out, ",\"{COUNT}\":{times}")?;
        out.write_all(&line[brace..])
    }

    /// Writes the lines that have the mark. Of documents it leaves out what is cut, and adds notes.
    fn print_bare(&self, mark: bool, out: &mut impl Write) -> io::Result<()> {
        let mut edits = self.documents.edits().iter().peekable();
        let chunk = self.chunk.bytes();
        self.pieces(mark).try_for_each(|piece| {
            let mut start = piece.as_ptr().addr() - chunk.as_ptr().addr();
            let end = start + piece.len();
            while let Some((place, text)) = edits.next_if(|(place, _)| place.start < end) {
                out.write_all(&chunk[start..place.start])?;
                out.write_all(text.as_bytes())?;
                start = place.end;
            }
            out.write_all(&chunk[start..end])
        })
    }

    /// Stretches of lines whose marks are the same.
    #[inline(always)]
    fn stretches(
        &self,
        same: impl Fn(&Option<bool>, &Option<bool>) -> bool,
    ) -> impl Iterator<Item = (&[u8], Option<bool>)> {
        let (mut lines, mut start) = (0, 0);
        self.marks.chunk_by(same).map(move |run| {
            lines += run.len();
            let piece = &self.chunk.bytes()[start..self.ends[lines - 1]];
            start = self.ends[lines - 1];
            (piece, run[0])
        })
    }
}
