//! Positions of lines in an input.

use crate::read::batch::Batch;
use std::fmt;
use std::sync::Arc;

/// A position between two lines of an input.
#[derive(Clone, Debug)]
pub struct Position {
    /// The name of the input.
    name: Arc<str>,
    /// The bytes of the input's contents before the position.
    pub offset: u64,
    /// The lines of the input before the position, as an editor counts them.
    pub lines: u64,
    /// The word for a line in messages.
    unit: &'static str,
}

impl Position {
    /// Creates a position in the input of this name.
    pub fn new(name: Arc<str>, offset: u64, lines: u64) -> Self {
        Self { name, offset, lines, unit: "line" }
    }

    /// Creates a position in the table of this name, where rows are counted instead of bytes.
    pub fn for_table(name: Arc<str>, rows: u64) -> Self {
        Self { name, offset: rows, lines: rows, unit: "row" }
    }

    /// Advances by the first `count` of the lines that start here.
    pub fn advance(&mut self, batch: &Batch, count: usize) {
        self.offset += if batch.is_rows() { count } else { batch.header().len() + batch.length(count) } as u64;
        self.lines += batch.editor_lines(count) as u64;
    }

    /// Returns the name of the line after the first `count` of those that start here: "FILE, line 7".
    pub fn line(&self, batch: &Batch, count: usize) -> String {
        format!("{}, {} {}", self.name, self.unit, self.lines + batch.editor_lines(count) as u64 + 1)
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} after {} {}", self.name, self.unit, self.lines)
    }
}
