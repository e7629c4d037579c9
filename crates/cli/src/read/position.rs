//! Positions of lines in an input.

use crate::read::lines::Lines;
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
    /// A position in the input of this name.
    pub fn new(name: Arc<str>, offset: u64, lines: u64) -> Self {
        Self { name, offset, lines, unit: "line" }
    }

    /// A position in the table of this name, where rows are counted instead of bytes.
    pub fn for_table(name: Arc<str>, rows: u64) -> Self {
        Self { name, offset: rows, lines: rows, unit: "row" }
    }

    /// Advances by the first `count` of the lines that start here.
    pub fn advance(&mut self, lines: &Lines, count: usize) {
        self.offset += if lines.is_rows() { count } else { lines.header().len() + lines.bytes(count) } as u64;
        self.lines += lines.rows(count) as u64;
    }

    /// Returns the name of the line after the first `count` of those that start here: "FILE, line 7".
    pub fn line(&self, lines: &Lines, count: usize) -> String {
        format!("{}, {} {}", self.name, self.unit, self.lines + lines.rows(count) as u64 + 1)
    }

    /// Returns the name of the first line that starts here, passed and has no required key, and the fault.
    pub fn first_fault(&self, lines: &Lines) -> Option<String> {
        lines.first_fault().map(|(line, key_error)| format!("{}: {key_error}", self.line(lines, line)))
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} after {} {}", self.name, self.unit, self.lines)
    }
}
