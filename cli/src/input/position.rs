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
    /// Lines of the input that come before.
    pub lines: u64,
}

impl Position {
    /// In the input of this name.
    pub fn new(name: Arc<str>, offset: u64, lines: u64) -> Self {
        Self { name, offset, lines }
    }

    /// Goes past the first `count` of the lines that start here.
    pub fn advance(&mut self, lines: &Lines, count: usize) {
        self.offset += lines.bytes(count) as u64;
        self.lines += count as u64;
    }

    /// What line `number` of those that start here is called: "FILE, line 7".
    pub fn line(&self, number: usize) -> String {
        format!("{}, line {}", self.name, self.lines + number as u64 + 1)
    }

    /// What the first without a key is called among the lines that passed and start here, and why it has none.
    pub fn first_fault(&self, lines: &Lines) -> Option<String> {
        lines.first_fault().map(|(line, fault)| format!("{}: {fault}", self.line(line)))
    }
}

/// As in "cannot read {}".
impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} after line {}", self.name, self.lines)
    }
}
