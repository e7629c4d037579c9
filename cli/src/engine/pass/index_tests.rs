//! A pass that inserts the grams of tests into a set.

use crate::against::Against;
use crate::engine::pass::documents::Documents;
use crate::engine::pass::{Pass, Task};
use crate::error::Error;
use crate::input::lines::Lines;
use crate::locked::writing;
use crate::seen::Claimed;
use std::sync::{Arc, RwLock};

/// Inserts the grams of tests, and records which test has which gram.
pub struct IndexTests {
    pub documents: Documents,
    pub against: Arc<RwLock<Against>>,
}

impl Pass for IndexTests {
    fn claim(&self, task: &Task, input: usize, lines: &mut Lines) -> Result<Claimed, Error> {
        self.documents.claim(task, input, lines)
    }

    fn emitted(&self, input: usize, before: u64, lines: &Lines) -> Result<(), Error> {
        writing(&self.against).index(input, before, lines)
    }
}
