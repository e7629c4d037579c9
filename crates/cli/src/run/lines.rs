//! The lines of a batch with their keys, the results for them, and the changes that are printed.

use crate::key::error::KeyError;
use crate::read::batch::Batch;
use crate::read::keys::Keys;
use crate::read::skip::{OnError, SkipReason};
use crate::read::table::Column;
use crate::run::marks::Marks;
use crate::system::error::Error;
use std::any::Any;
use std::ops::Range;

/// Lines on their way from an input to an output. The memory is reused.
pub struct Lines {
    pub batch: Batch,
    pub keys: Keys,
    pub marks: Marks,
    pub edits: Edits,
    /// The step's own values of the lines.
    column: Box<dyn Any + Send>,
}

/// The changes to lines that are printed.
#[derive(Default)]
pub struct Edits {
    /// Ranges of the batch's bytes, in order, and their replacements.
    pub ranges: Vec<Edit>,
    /// The number of occurrences of each key, in order, if counted.
    pub counts: Vec<u64>,
    /// The new texts of rows, if some are changed.
    pub texts: Option<Column>,
    /// The column of notes that is added to rows, if any.
    pub notes: Option<Column>,
}

/// A range of bytes, and its replacement.
pub type Edit = (Range<usize>, String);

/// The numbers of lines without a key.
#[derive(Default)]
pub struct SkipCounts {
    /// Lines that should have a key, and those of them that are kept.
    pub faults: usize,
    pub kept: usize,
    /// Blank lines, which are skipped.
    pub blank: usize,
}

impl Edits {
    fn clear(&mut self) {
        self.ranges.clear();
        self.counts.clear();
        self.texts = None;
        self.notes = None;
    }
}

impl Lines {
    /// Creates an empty batch with the column of a step.
    pub fn new(column: Box<dyn Any + Send>) -> Self {
        Self {
            batch: Batch::default(),
            keys: Keys::default(),
            marks: Marks::default(),
            edits: Edits::default(),
            column,
        }
    }

    /// Splits the lines of the batch at each byte `end`, and clears all that belonged to earlier lines.
    pub fn split(&mut self, end: u8) {
        self.batch.split(end);
        self.keys.clear();
        self.edits.clear();
    }

    /// Returns the step's column. Panics if the step has another type of column.
    pub fn column<C: 'static>(&self) -> &C {
        self.column.downcast_ref().expect(OWN_COLUMN)
    }

    /// Returns all parts, to be changed, with the step's column. Panics if the step has another type of column.
    pub fn parts<C: 'static>(&mut self) -> (&mut Batch, &mut Keys, &mut Marks, &mut Edits, &mut C) {
        let Self { batch, keys, marks, edits, column } = self;
        (batch, keys, marks, edits, column.downcast_mut().expect(OWN_COLUMN))
    }

    /// Marks the lines by the results for their keys, as [`Marks::mark`] does.
    pub fn mark(
        &mut self,
        on_error: OnError,
        kept: bool,
        find: impl FnOnce(&[u64], &[u128], &mut [bool]) -> Result<usize, Error>,
    ) -> Result<(), Error> {
        self.marks.mark(self.batch.count(), &self.keys, on_error, kept, find)
    }

    /// Counts the decided lines without a key, if bad input is treated as `on_error`.
    pub fn count_skipped(&self, on_error: OnError) -> SkipCounts {
        let mut counts = SkipCounts::default();
        for (_, skip) in self.keys.skipped.iter().take_while(|(line, _)| *line < self.marks.passed()) {
            let policy = skip.policy(on_error);
            counts.blank += usize::from(matches!(skip, SkipReason::Blank));
            counts.faults += usize::from(policy.is_some());
            counts.kept += usize::from(policy == Some(OnError::Keep));
        }
        counts
    }

    /// Returns the first decided line without a required key, and the fault.
    pub fn first_fault(&self) -> Option<(usize, &KeyError)> {
        let mut faults = self.keys.skipped.iter().filter_map(|(line, why)| Some((*line, why.key_error()?)));
        // The treatment of nulls was chosen by the user.
        faults.find(|(_, key_error)| **key_error != KeyError::Null).filter(|(line, _)| *line < self.marks.passed())
    }

    /// Removes and returns the fault of the first undecided line, if it has one.
    pub fn take_undecided_fault(&mut self) -> Option<KeyError> {
        let passed = self.marks.passed();
        let i = self.keys.skipped.iter().position(|&(line, _)| line == passed)?;
        match self.keys.skipped.remove(i).1 {
            SkipReason::Blank | SkipReason::Empty(_) => None,
            SkipReason::Invalid(key_error) => Some(key_error),
            SkipReason::Null(_) => Some(KeyError::Null),
        }
    }
}

const OWN_COLUMN: &str = "the step creates the column";
