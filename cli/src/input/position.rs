//! Where in an input a line is.

use crate::input::lines::Lines;
use std::fmt;
use std::sync::Arc;

/// A position between two lines of an input.
#[derive(Clone, Debug)]
pub struct Position {
    /// The name of the input.
    name: Arc<str>,
    /// Bytes of the input's contents that come before.
    pub offset: u64,
    /// Lines of the input that come before, as an editor counts them.
    pub lines: u64,
    /// What a line is called.
    unit: &'static str,
}

impl Position {
    /// In the input of this name.
    pub fn new(name: Arc<str>, offset: u64, lines: u64) -> Self {
        Self { name, offset, lines, unit: "line" }
    }

    /// In the table of this name, where rows are counted in the place of bytes too.
    pub fn of_table(name: Arc<str>, rows: u64) -> Self {
        Self { name, offset: rows, lines: rows, unit: "row" }
    }

    /// Goes past the first `count` of the lines that start here.
    pub fn advance(&mut self, lines: &Lines, count: usize) {
        self.offset += if lines.is_rows() { count } else { lines.header().len() + lines.bytes(count) } as u64;
        self.lines += lines.rows(count) as u64;
    }

    /// What the line after the first `count` of those that start here is called: "FILE, line 7".
    pub fn line(&self, lines: &Lines, count: usize) -> String {
        format!("{}, {} {}", self.name, self.unit, self.lines + lines.rows(count) as u64 + 1)
    }

    /// What the first without a key is called among the lines that passed and start here, and why it has none.
    pub fn first_fault(&self, lines: &Lines) -> Option<String> {
        lines.first_fault().map(|(line, fault)| format!("{}: {fault}", self.line(lines, line)))
    }
}

/// As in "cannot read {}".
impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} after {} {}", self.name, self.unit, self.lines)
    }
}
