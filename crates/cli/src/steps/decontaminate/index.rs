//! A pass that inserts the grams of tests into a set.

use crate::read::lines::Lines;
use crate::run::step::{Pass, RunConfig};
use crate::seen::Claimed;
use crate::steps::decontaminate::Decontaminator;
use crate::steps::documents::step::Documents;
use crate::system::error::Error;
use crate::system::unpoisoned::writing;
use std::sync::{Arc, RwLock};

/// Inserts the grams of tests, and records which test has which gram.
pub struct IndexTests {
    pub documents: Documents,
    pub decontaminator: Arc<RwLock<Decontaminator>>,
}

impl Pass for IndexTests {
    fn claim(&self, task: &RunConfig, input: usize, lines: &mut Lines) -> Result<Claimed, Error> {
        self.documents.claim(task, input, lines)
    }

    fn emitted(&self, input: usize, before: u64, lines: &Lines) -> Result<(), Error> {
        writing(&self.decontaminator).index(input, before, lines)
    }
}
