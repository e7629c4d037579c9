//! A step that searches documents for the grams of tests.

use crate::run::lines::Lines;
use crate::run::step::{RunConfig, Step};
use crate::seen::{Claimed, SharedSeenKeys};
use crate::steps::decontaminate::Decontaminator;
use crate::steps::documents::column::{DocumentColumn, DocumentReader};
use crate::steps::documents::step::{decide, edit_rows, kept_documents};
use crate::system::error::Error;
use crate::system::unpoisoned::{reading, writing};
use bloomline_text::Set;
use std::any::Any;
use std::sync::{Arc, RwLock};

/// Looks grams of documents up among those of tests, cuts matches, and marks the documents that are kept in part or in whole.
pub struct SearchTests {
    pub reader: DocumentReader,
    pub seen: SharedSeenKeys,
    pub in_order: bool,
    pub decontaminator: Arc<RwLock<Decontaminator>>,
}

impl Step for SearchTests {
    fn is_in_order(&self) -> bool {
        self.in_order
    }

    fn column(&self) -> Box<dyn Any + Send> {
        Box::new(DocumentColumn::default())
    }

    fn hash(&self, config: &RunConfig, lines: &mut Lines) {
        self.reader.read(config.on_error, lines);
    }

    fn claim(&self, config: &RunConfig, _input: usize, lines: &mut Lines) -> Result<Claimed, Error> {
        let mut set = ExactGrams { seen: &self.seen, decontaminator: &self.decontaminator };
        let units = decide(&self.reader, config, lines, None, &mut set, |_| 0.0)?;
        Ok(Claimed { unique: kept_documents(config, lines), units, ..Claimed::default() })
    }

    fn prepare(&self, lines: &mut Lines) {
        edit_rows(lines);
    }

    fn emitted(&self, input: usize, before: u64, lines: &Lines) -> Result<(), Error> {
        writing(&self.decontaminator).search(input, before, lines)
    }
}

/// The grams of tests, without false positives.
struct ExactGrams<'a> {
    seen: &'a SharedSeenKeys,
    decontaminator: &'a RwLock<Decontaminator>,
}

impl Set for ExactGrams<'_> {
    type Error = Error;

    fn contains_hashes(&mut self, hashes: &[u64], found: &mut [bool]) -> Result<usize, Error> {
        match self.seen.read().set.contains_hashes(hashes, found)? {
            0 => Ok(0),
            _ => Ok(reading(self.decontaminator).confirm(hashes, found)),
        }
    }

    /// A search inserts nothing.
    fn insert_hashes(&mut self, _hashes: &[u64], new: &mut [bool]) -> Result<usize, Error> {
        new.fill(false);
        Ok(0)
    }
}
