//! Printing of lines, with their prefixes.

use crate::key::json::members;
use crate::read::chunks::BYTE_ORDER_MARK;
use crate::read::table::{COUNT, Encode, TableOptions};
use crate::run::lines::Lines;
use memchr::memmem;
use std::io::{self, Write};
use std::mem;
use std::ops::Range;

/// An end of lines.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum LineEnd {
    /// A newline.
    Lf,
    /// A carriage return and a newline.
    Crlf,
}

impl LineEnd {
    /// Writes a line, which may have either end, with this one.
    pub fn write(self, line: &[u8], out: &mut impl Write) -> io::Result<()> {
        let text = line.strip_suffix(b"\n").unwrap_or(line);
        out.write_all(text.strip_suffix(b"\r").unwrap_or(text))?;
        out.write_all(if self == Self::Lf { b"\n" } else { b"\r\n" })
    }
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

/// The name of the count member as it is written, and the start of an escape that the name may contain.
const COUNT_NAMES: [&[u8]; 2] = [b"\"count\"", b"\\u00"];

/// Writes a line with its own end, or with `eol`.
fn write_line(line: &[u8], eol: Option<LineEnd>, out: &mut impl Write) -> io::Result<()> {
    match eol {
        None => out.write_all(line),
        Some(eol) => eol.write(line, out),
    }
}

impl Lines {
    /// Returns the lines with the mark, each with its end; adjacent lines are one piece.
    fn pieces(&self, mark: bool) -> impl Iterator<Item = &[u8]> {
        self.stretches(|a, b| a == b).filter_map(move |(piece, other)| (other == Some(mark)).then_some(piece))
    }

    /// Selects the rows with the mark, with the prefix in a column of its own, if these are rows. Takes the changed texts and the notes.
    pub fn select(&mut self, prefix: Prefix, mark: bool, write_options: TableOptions) -> Option<Encode> {
        let rows = self.batch.rows()?.clone();
        let count = self.batch.count();
        let marks = self.marks.all();
        let marked = |own: &Option<bool>| own.is_some_and(|own| prefix == Prefix::Mark || own == mark);
        let mut wanted: Vec<bool> = marks.iter().map(marked).collect();
        wanted.resize(count, false);
        let texts = self.edits.texts.take();
        let mut notes = self.edits.notes.take();
        let mut counts = None;
        match prefix {
            Prefix::Nothing => {}
            Prefix::Mark => {
                let text = |mark: &Option<bool>| mark.map(|new| if new { "new" } else { "dup" }.to_owned());
                notes = Some(marks.iter().map(text).collect());
            }
            Prefix::Count | Prefix::Member => {
                let mut by_row = vec![1; count];
                for (row, own) in self.keys.lines(count).zip(&self.edits.counts) {
                    by_row[row] = *own;
                }
                counts = Some(by_row);
            }
        }
        Some(Box::new(move || rows.encode(&wanted, texts, notes, counts, write_options)))
    }

    /// True if at least one line is printed.
    pub fn prints(&self, prefix: Prefix, mark: bool) -> bool {
        self.first_printed(prefix, mark).is_some()
    }

    /// Returns the number of the first line that is printed.
    fn first_printed(&self, prefix: Prefix, mark: bool) -> Option<usize> {
        self.marks.all().iter().position(|own| own.is_some_and(|own| prefix == Prefix::Mark || own == mark))
    }

    /// True if the output starts with a byte order mark: the input's, before its header or first line. If the first printed line
    /// begins with the same bytes, a mark is added too, because readers remove the first one.
    pub fn has_byte_order_mark(&self, header: bool, prefix: Prefix, mark: bool) -> bool {
        if header {
            return self.batch.header().starts_with(BYTE_ORDER_MARK);
        }
        let first = self.first_printed(prefix, mark);
        let starts_with_one =
            |line| self.batch.bytes()[self.batch.chunk().start_of(line)..].starts_with(BYTE_ORDER_MARK);
        let is_text = |line| prefix == Prefix::Nothing && starts_with_one(line);
        first.is_some_and(|line| line == 0 && self.batch.chunk().start() > 0 || is_text(line))
    }

    /// Writes the header of the input without its byte order mark, after a name for the prefix. It ends as the lines do.
    pub fn print_header(&self, prefix: Prefix, eol: Option<LineEnd>, out: &mut impl Write) -> io::Result<()> {
        let header = self.batch.header();
        let name: &[u8] = match prefix {
            Prefix::Nothing | Prefix::Member => b"",
            Prefix::Mark => b"mark\t",
            Prefix::Count => b"  count ",
        };
        out.write_all(name)?;
        write_line(header.strip_prefix(BYTE_ORDER_MARK).unwrap_or(header), eol, out)
    }

    /// Writes the lines with the mark, with their prefixes.
    pub fn print(&self, prefix: Prefix, mark: bool, eol: Option<LineEnd>, out: &mut impl Write) -> io::Result<()> {
        match prefix {
            Prefix::Nothing if eol.is_none() => self.print_bare(mark, out),
            Prefix::Nothing => {
                let mut lines = self.stretches(|_, _| false).filter(|(_, own)| *own == Some(mark));
                lines.try_for_each(|(line, _)| write_line(line, eol, out))
            }
            Prefix::Mark => self.annotate(eol, out),
            Prefix::Count => self.print_counted(mark, out, |line, times, _, out| {
                match times {
                    1 => out.write_all(b"      1 ")?,
                    times => write!(out, "{times:7} ")?,
                }
                write_line(line, eol, out)
            }),
            Prefix::Member => {
                let mut edits = self.edits.ranges.iter().peekable();
                self.print_counted(mark, out, |line, times, is_fault, out| {
                    let start = line.as_ptr().addr() - self.batch.bytes().as_ptr().addr();
                    match edits.next_if(|(place, _)| place.start < start + line.len()) {
                        _ if is_fault => out.write_all(line),
                        Some((Range { start: from, end: to }, _)) => {
                            self.print_with_member(&[&line[..from - start], &line[to - start..]].concat(), times, out)
                        }
                        None => self.print_with_member(line, times, out),
                    }
                })
            }
        }
    }

    /// Writes all lines that have a mark, with "new" or "dup" before each.
    fn annotate(&self, eol: Option<LineEnd>, out: &mut impl Write) -> io::Result<()> {
        self.stretches(|_, _| false).try_for_each(|(line, mark)| match mark {
            Some(new) => out.write_all(if new { b"new\t" } else { b"dup\t" }).and_then(|()| write_line(line, eol, out)),
            None => Ok(()),
        })
    }

    /// Calls `write` for each line with the mark, with the number of occurrences of its key, and true if it should have a key and
    /// has none. Such a line counts once.
    fn print_counted<W: Write>(
        &self,
        mark: bool,
        out: &mut W,
        mut write: impl FnMut(&[u8], u64, bool, &mut W) -> io::Result<()>,
    ) -> io::Result<()> {
        let (mut times, mut skipped) = (self.edits.counts.iter(), self.keys.skipped.iter().peekable());
        self.stretches(|_, _| false).enumerate().try_for_each(|(i, (line, own))| {
            let skip = skipped.next_if(|(line, _)| *line == i);
            let times = if skip.is_some() { 1 } else { times.next().copied().unwrap_or(1) };
            let is_fault = skip.is_some_and(|(_, why)| why.key_error().is_some());
            if own == Some(mark) { write(line, times, is_fault, out) } else { Ok(()) }
        })
    }

    /// Writes a JSON object, checked before, with the number of occurrences as its last member. Other members of that name are
    /// removed.
    fn print_with_member(&self, line: &[u8], times: u64, out: &mut impl Write) -> io::Result<()> {
        // A byte order mark before the object is not part of it.
        let (mark, line) = line.split_at(if line.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 });
        let inner = line.strip_suffix(&[self.batch.chunk().end]).unwrap_or(line).trim_ascii_end();
        let brace = inner.len().saturating_sub(1);
        let has_one = COUNT_NAMES.iter().any(|name| memmem::find(inner, name).is_some());
        let old = if has_one { members(std::str::from_utf8(inner).unwrap_or_default(), COUNT) } else { Vec::new() };
        out.write_all(mark)?;
        let mut start = 0;
        for old in old {
            out.write_all(&line[start..old.start])?;
            start = old.end;
        }
        out.write_all(&line[start..brace])?;
        write!(out, ",\"{COUNT}\":{times}")?;
        out.write_all(&line[brace..])
    }

    /// Writes the lines with the mark, with cuts and notes for documents.
    fn print_bare(&self, mark: bool, out: &mut impl Write) -> io::Result<()> {
        let mut edits = self.edits.ranges.iter().peekable();
        let chunk = self.batch.bytes();
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

    /// Groups adjacent lines with the same mark, without the byte order mark of the input.
    #[inline(always)]
    fn stretches(
        &self,
        same: impl Fn(&Option<bool>, &Option<bool>) -> bool,
    ) -> impl Iterator<Item = (&[u8], Option<bool>)> {
        let chunk = self.batch.chunk();
        let (mut lines, mut start) = (0, chunk.start());
        self.marks.all().chunk_by(same).map(move |run| {
            lines += run.len();
            let end = chunk.start_of(lines);
            (&chunk.bytes()[mem::replace(&mut start, end)..end], run[0])
        })
    }
}
