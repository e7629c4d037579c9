//! Where in the inputs a line is.

use crate::error::{Error, Stop};
use crate::lines::Lines;
use crate::lines::chunks::InputEvent;
use std::sync::Arc;
use std::{fmt, io};

/// A position between two lines of the inputs.
#[derive(Clone, Debug, Default)]
pub struct Position {
    /// The name of the input. `None` before the first input.
    name: Option<Arc<str>>,
    /// Inputs that come before.
    pub input: usize,
    /// Bytes of the input's contents that come before.
    pub offset: u64,
    /// Lines of the input that come before.
    pub lines: u64,
}

impl Position {
    /// Where the first input that is read begins.
    pub fn new(input: usize, offset: u64, lines: u64) -> Self {
        Self { name: None, input, offset, lines }
    }

    /// What the line after it is called: "FILE, line 7".
    pub fn line(&self) -> String {
        format!("{}, line {}", self.name(), self.lines + 1)
    }

    fn name(&self) -> &str {
        self.name.as_deref().unwrap_or("the input")
    }

    /// Fails with the line at which the marks of lines that start here end, if that lacks `what`: a key or a text.
    pub fn check(&self, lines: &mut Lines, what: &'static str) -> Result<(), Stop> {
        let line = |lines: &Lines| self.of_line(lines, lines.passed()).line();
        match lines.take_fault() {
            Some(fault) => Err(Stop::After(Error::NoKey { what, line: line(lines), fault })),
            None => Ok(()),
        }
    }

    /// What the first without a key is called among the lines that passed and start here, and why it has none.
    pub fn first_fault(&self, lines: &Lines) -> Option<String> {
        lines.first_fault().map(|(line, fault)| format!("{}: {fault}", self.of_line(lines, line).line()))
    }

    /// The position before one of `lines`, which start here.
    pub fn of_line(&self, lines: &Lines, line: usize) -> Self {
        let mut position = self.clone();
        position.advance(lines, line, |_, _| {});
        position
    }

    /// Goes past the first `to` of the lines that start here, and calls `broken` for each input that failed among them, with
    /// the position and the reason.
    pub fn advance(&mut self, lines: &Lines, to: usize, mut broken: impl FnMut(&Self, &io::Error)) {
        let mut from = 0;
        for (line, event) in lines.events().take_while(|&(line, _)| line <= to) {
            self.add(lines, from, line);
            from = line;
            match event {
                InputEvent::Start(name) => {
                    if self.name.replace(name.clone()).is_some() {
                        *self = Self { name: self.name.take(), input: self.input + 1, offset: 0, lines: 0 };
                    }
                }
                InputEvent::Broken(error) => broken(self, error),
            }
        }
        self.add(lines, from, to);
    }

    fn add(&mut self, lines: &Lines, from: usize, to: usize) {
        self.offset += (lines.bytes(to) - lines.bytes(from)) as u64;
        self.lines += (to - from) as u64;
    }
}

/// As in "cannot read {}".
impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} after line {}", self.name(), self.lines)
    }
}
