//! A pass that looks documents up unit by unit, and inserts the parts that are kept.

use crate::read::lines::Lines;
use crate::run::step::{Pass, RunConfig};
use crate::seen::run_stats::OfferedKeys;
use crate::seen::{Claimed, SharedSeenKeys};
use crate::steps::documents::rule::DocumentRule;
use crate::system::error::Error;
use crate::system::unpoisoned::locked;
use bloomline_text::Set;
use std::sync::Mutex;

/// Looks documents up, cuts the parts that were seen, and marks the lines of documents that are kept in part or in whole.
pub struct Documents {
    rule: DocumentRule,
    seen: SharedSeenKeys,
    in_order: bool,
    offered: Mutex<OfferedKeys>,
}

impl Documents {
    /// Creates the pass for a set that has `keys_before` keys.
    pub fn new(rule: DocumentRule, seen: SharedSeenKeys, in_order: bool, keys_before: f64) -> Self {
        Self { rule, seen, in_order, offered: Mutex::new(OfferedKeys(keys_before)) }
    }
}

impl Pass for Documents {
    fn is_in_order(&self) -> bool {
        self.in_order
    }

    fn claim(&self, task: &RunConfig, _input: usize, lines: &mut Lines) -> Result<Claimed, Error> {
        let mut set = DocumentSet { seen: &self.seen, inserted: 0 };
        let fpr = |set: &DocumentSet<'_>| {
            locked(&self.offered).add(set.inserted, |keys| self.seen.read().set.expected_fpr(keys))
        };
        let units = lines.decide(&self.rule, task.on_error, &mut set, fpr)?;
        Ok(Claimed { inserted: set.inserted, unique: lines.kept_documents(task.on_error), units, halt: None })
    }
}

/// The set that documents are looked up in, with a count of the insertions.
struct DocumentSet<'a> {
    seen: &'a SharedSeenKeys,
    inserted: u64,
}

impl Set for DocumentSet<'_> {
    type Error = Error;

    fn contains_hashes(&mut self, hashes: &[u64], found: &mut [bool]) -> Result<usize, Error> {
        self.seen.read().set.contains_hashes(hashes, found)
    }

    fn insert_hashes(&mut self, hashes: &[u64], new: &mut [bool]) -> Result<usize, Error> {
        let count = self.seen.write().set.insert_hashes(hashes, new)?;
        self.inserted += count as u64;
        Ok(count)
    }
}
