//! The lines of a chunk, and what is found out about each.

use crate::documents::exact::ExactUnits;
use crate::documents::{DocumentRule, Documents, UnitCounts};
use crate::error::Error;
use crate::input::chunks::{BYTE_ORDER_MARK, Chunk, Chunks};
use crate::input::split::LineFormat;
use crate::key::{Fault, KeyRule, Part, Scratch};
use crate::table::{Added, Rows, Selected, Wanted, Wish};
use crate::values::OnError;
use bloomline::KeyHasher;
use bloomline_text::Set;
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
    /// Lines without a key or a document, in order, and why.
    asides: Vec<(usize, Aside)>,
    /// What is found out about each key, in order.
    found: Vec<bool>,
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
}

impl Aside {
    fn fault(&self) -> Option<&Fault> {
        match self {
            Self::Blank => None,
            Self::Fault(fault) => Some(fault),
            Self::Null(_) => Some(&Fault::Null),
        }
    }

    /// What becomes of the line, if it is not left out, where bad input is treated so.
    fn treated(&self, on_error: OnError) -> Option<OnError> {
        match self {
            Self::Blank => None,
            Self::Fault(_) => Some(on_error),
            Self::Null(nulls) => Some(*nulls),
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

/// What stands before a line that is printed.
#[derive(Clone, Copy, PartialEq)]
pub enum Before {
    Nothing,
    /// What it is, and so all lines are printed.
    Mark,
    /// How often it comes.
    Count,
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
        self.asides.clear();
        if let Some(rows) = self.rows.clone() {
            return self.hash_rows(&rows, hashing);
        }
        let Self { chunk, rule: own_rule, ends, end, hashes, fingerprints, documents, asides, scratch, .. } = self;
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
                        }
                        Err(Fault::Null) => asides.push((i, Aside::Null(hashing.nulls))),
                        Err(fault) => asides.push((i, Aside::Fault(fault))),
                    }
                }
            }
            What::Document(rule, on_error) => {
                for (i, line) in lines.enumerate() {
                    let Err(fault) = documents.push(&bytes[line.clone()], line.start, rule, hasher) else { continue };
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
        let Self { hashes, fingerprints, documents, asides, scratch, count, .. } = self;
        *count = rows.count();
        let (hasher, mut row) = (&hashing.hasher, 0);
        match &hashing.what {
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
                    Some(text) if asides.is_empty() || *on_error != OnError::Fail => {
                        documents.push_text(text, rule, hasher)
                    }
                    _ => asides.push((row, Aside::Fault(Fault::NoText { pointer: rule.pointer.to_string() }))),
                }
                row += 1;
            }),
        }
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
            self.marks.push(is_kept.then_some(kept));
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
            counts.blank += usize::from(treated.is_none());
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
            Aside::Blank => None,
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
            Before::Count => {
                let (mut times, mut asides) = (self.times.iter(), self.asides.iter().peekable());
                let count = |row: usize| {
                    let aside = asides.next_if(|(other, _)| *other == row).is_some();
                    if aside { 1 } else { times.next().copied().unwrap_or(1) }
                };
                Some(Added::Numbers("count", (0..self.count).map(count).collect()))
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
            Before::Nothing => return out.write_all(header),
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
            Before::Count => self.print_counted(mark, out),
        }
    }

    /// Writes all lines with a mark, each with "new" or "dup" before it.
    fn annotate(&self, out: &mut impl Write) -> io::Result<()> {
        self.stretches(|_, _| false).try_for_each(|(line, mark)| match mark {
            Some(new) => out.write_all(if new { b"new\t" } else { b"dup\t" }).and_then(|()| out.write_all(line)),
            None => Ok(()),
        })
    }

    /// Writes the lines that have the mark, each with how often its key comes before it, as `uniq -c` does. One without a key is
    /// the only one of its kind.
    fn print_counted(&self, mark: bool, out: &mut impl Write) -> io::Result<()> {
        let (mut times, mut asides) = (self.times.iter(), self.asides.iter().peekable());
        self.stretches(|_, _| false).enumerate().try_for_each(|(i, (line, own))| {
            let aside = asides.next_if(|(line, _)| *line == i).is_some();
            let times = if aside { 1 } else { times.next().copied().unwrap_or(1) };
            match times {
                _ if own != Some(mark) => return Ok(()),
                1 => out.write_all(b"      1 ")?,
                times => write!(out, "{times:7} ")?,
            }
            out.write_all(line)
        })
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
