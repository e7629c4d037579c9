//! Where a line is: the name of its input, and its number there.

use crate::error::Error;
use crate::lines::Batch;
use crate::lines::chunks::Event;
use std::sync::Arc;
use std::{fmt, io};

/// A place between two lines.
#[derive(Clone, Debug, Default)]
pub struct Place {
    /// `None` before the first input.
    name: Option<Arc<str>>,
    /// Inputs that come before.
    pub input: usize,
    /// Bytes of the input's contents that come before.
    pub offset: u64,
    /// Lines of the input that come before.
    pub lines: u64,
}

impl Place {
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

    /// Goes past a batch that starts here, and calls `broken` for each input that failed in it, with the place and the reason.
    pub fn pass(&mut self, batch: &Batch, broken: impl FnMut(&Self, &io::Error)) {
        self.advance(batch, batch.lines(), broken);
    }

    /// The error of the line at which the marks of a batch that starts here end, if it has no key.
    pub fn check(&self, batch: &mut Batch) -> Result<(), Error> {
        match batch.take_fault() {
            Some(fault) => Err(Error::Fault { line: self.of_line(batch, batch.passed()).line(), fault }),
            None => Ok(()),
        }
    }

    /// The place before a line of a batch that starts here.
    pub fn of_line(&self, batch: &Batch, line: usize) -> Self {
        let mut place = self.clone();
        place.advance(batch, line, |_, _| {});
        place
    }

    fn advance(&mut self, batch: &Batch, to: usize, mut broken: impl FnMut(&Self, &io::Error)) {
        let mut from = 0;
        for (line, event) in batch.events().take_while(|&(line, _)| line <= to) {
            self.add(batch, from, line);
            from = line;
            match event {
                Event::Start(name) => {
                    if self.name.replace(name.clone()).is_some() {
                        *self = Self { name: self.name.take(), input: self.input + 1, offset: 0, lines: 0 };
                    }
                }
                Event::Broken(error) => broken(self, error),
            }
        }
        self.add(batch, from, to);
    }

    fn add(&mut self, batch: &Batch, from: usize, to: usize) {
        self.offset += (batch.bytes(to) - batch.bytes(from)) as u64;
        self.lines += (to - from) as u64;
    }
}

/// As in "cannot read {}".
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} after line {}", self.name(), self.lines)
    }
}
