//! A batch: the lines or the rows that are read at once.

use crate::key::KeyScratch;
use crate::key::fields::FieldNumbers;
use crate::read::chunks::{Chunk, Chunks};
use crate::read::projection::HeaderRule;
use crate::read::table::Rows;
use std::io;
use std::ops::Range;
use std::sync::Arc;

/// The lines of a chunk, or the rows of a row group. The memory is reused.
#[derive(Default)]
pub struct Batch {
    pub(super) chunk: Chunk,
    /// The rows of a table, instead of lines.
    pub(super) rows: Option<Arc<dyn Rows>>,
    /// The rule that the header gives, if the keys or the values that a step reads depend on it.
    pub(super) rule: Option<Arc<HeaderRule>>,
    pub(super) scratch: KeyScratch,
}

impl Batch {
    /// Reads the next lines. Returns false at the end of the input.
    pub fn fill(&mut self, chunks: &mut Chunks) -> io::Result<bool> {
        self.rows = None;
        chunks.fill(&mut self.chunk)
    }

    /// Sets rows instead of lines. Returns false if `rows` is `None`.
    pub fn set_rows(&mut self, rows: Option<Arc<dyn Rows>>) -> bool {
        self.chunk.clear();
        self.rows = rows;
        self.is_rows()
    }

    /// Sets the rule that the header of the input gives.
    pub fn set_rule(&mut self, rule: Option<Arc<HeaderRule>>) {
        self.rule = rule;
    }

    /// Splits the bytes into lines, each up to a byte `end`.
    pub fn split(&mut self, end: u8) {
        self.chunk.split(end);
    }

    /// Returns the bytes of memory in use, with spare capacity.
    pub fn memory(&self) -> usize {
        self.rows.as_ref().map_or_else(|| self.chunk.memory(), |rows| rows.memory())
    }

    /// Returns the number of lines or rows.
    pub fn count(&self) -> usize {
        self.rows.as_ref().map_or_else(|| self.chunk.count(), |rows| rows.count())
    }

    /// Returns the lines; for rows, an empty chunk.
    pub fn chunk(&self) -> &Chunk {
        &self.chunk
    }

    /// Returns the bytes of the lines, without the header.
    pub fn bytes(&self) -> &[u8] {
        self.chunk.bytes()
    }

    /// Returns the ranges of the lines in the bytes, without the ends of the lines.
    pub fn lines(&self) -> impl Iterator<Item = Range<usize>> {
        self.chunk.lines()
    }

    /// Returns the range of a line in the bytes, without the end of the line.
    pub fn line(&self, line: usize) -> Range<usize> {
        self.chunk.start_of(line)..self.chunk.start_of(line + 1) - 1
    }

    /// Returns the rows, if the batch is part of a table.
    pub fn rows(&self) -> Option<&Arc<dyn Rows>> {
        self.rows.as_ref()
    }

    /// True if the batch is part of a table.
    pub fn is_rows(&self) -> bool {
        self.rows.is_some()
    }

    /// Returns the fields of the values that a step reads beside the key, if the header names them.
    pub fn value_fields(&self) -> Option<&FieldNumbers> {
        self.rule.as_ref()?.values.as_ref()
    }

    /// Returns the number of bytes of the first `lines` lines, with their ends.
    pub fn length(&self, lines: usize) -> usize {
        match &self.rows {
            Some(rows) => rows.bytes(lines),
            None if lines == 0 => 0,
            None => self.chunk.start_of(lines),
        }
    }

    /// Returns the header with its end, if the batch is the first one of its input.
    pub fn header(&self) -> &[u8] {
        self.chunk.header()
    }

    /// Returns the number of lines in an editor for the header and the first `lines` lines. A CSV record may span several.
    pub fn editor_lines(&self, lines: usize) -> usize {
        let header = self.header();
        if !self.chunk.quoted {
            return lines + usize::from(!header.is_empty());
        }
        let ends = |bytes| memchr::memchr_iter(self.chunk.end, bytes).count();
        ends(header) + ends(&self.chunk.bytes()[..self.length(lines)])
    }
}
