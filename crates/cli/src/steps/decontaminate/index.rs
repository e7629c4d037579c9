//! A step that inserts the grams of tests into a set.

use crate::run::lines::Lines;
use crate::run::step::{RunConfig, Step};
use crate::seen::Claimed;
use crate::steps::decontaminate::Decontaminator;
use crate::steps::documents::step::Documents;
use crate::system::error::Error;
use crate::system::unpoisoned::writing;
use std::any::Any;
use std::sync::{Arc, RwLock};

/// Inserts the grams of tests, and records which test has which gram.
pub struct IndexTests {
    pub documents: Documents,
    pub decontaminator: Arc<RwLock<Decontaminator>>,
}

impl Step for IndexTests {
    fn column(&self) -> Box<dyn Any + Send> {
        self.documents.column()
    }

    fn hash(&self, config: &RunConfig, lines: &mut Lines) {
        self.documents.hash(config, lines);
    }

    fn claim(&self, config: &RunConfig, input: usize, lines: &mut Lines) -> Result<Claimed, Error> {
        self.documents.claim(config, input, lines)
    }

    fn emitted(&self, input: usize, before: u64, lines: &Lines) -> Result<(), Error> {
        writing(&self.decontaminator).index(input, before, lines)
    }
}
