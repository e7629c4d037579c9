//! A pass that searches documents for the grams of tests.

use crate::read::lines::Lines;
use crate::run::step::{Pass, RunConfig};
use crate::seen::{Claimed, SharedSeenKeys};
use crate::steps::decontaminate::Decontaminator;
use crate::steps::documents::rule::DocumentRule;
use crate::system::error::Error;
use crate::system::unpoisoned::{reading, writing};
use bloomline_text::Set;
use std::sync::{Arc, RwLock};

/// Looks grams of documents up among those of tests, cuts matches, and marks the documents that are kept in part or in whole.
pub struct SearchTests {
    pub rule: DocumentRule,
    pub seen: SharedSeenKeys,
    pub in_order: bool,
    pub decontaminator: Arc<RwLock<Decontaminator>>,
}

impl Pass for SearchTests {
    fn is_in_order(&self) -> bool {
        self.in_order
    }

    fn claim(&self, task: &RunConfig, _input: usize, lines: &mut Lines) -> Result<Claimed, Error> {
        let mut set = ExactGrams { seen: &self.seen, decontaminator: &self.decontaminator };
        let units = lines.decide(&self.rule, task.on_error, &mut set, |_| 0.0)?;
        Ok(Claimed { unique: lines.kept_documents(task.on_error), units, ..Claimed::default() })
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
