//! A pass that collects the sets of grams of documents that may be similar.

use crate::read::lines::Lines;
use crate::read::lines::keys::HashOptions;
use crate::run::step::{Pass, RunConfig};
use crate::seen::Claimed;
use crate::steps::groups::near::candidate_documents::{CandidateDocuments, GramCollector};
use crate::system::error::Error;
use crate::system::unpoisoned::locked;
use std::sync::Mutex;

/// Collects the sets of grams of candidate documents.
pub struct Collect(Mutex<Option<GramCollector>>);

impl Collect {
    pub fn new(collecting: GramCollector) -> Self {
        Self(Mutex::new(Some(collecting)))
    }

    /// Returns the documents with their sets, once. Fails if the lines differ from the first reading.
    pub fn end(&self) -> Result<CandidateDocuments, Error> {
        locked(&self.0).take().expect("a reading ends once").end()
    }
}

impl Pass for Collect {
    fn hash(&self, lines: &mut Lines, hashing: &HashOptions) {
        lines.split(hashing);
    }

    fn claim(&self, _task: &RunConfig, input: usize, lines: &mut Lines) -> Result<Claimed, Error> {
        if let Some(collecting) = &mut *locked(&self.0) {
            lines.want(input, collecting);
        }
        Ok(Claimed::default())
    }

    fn prepare(&self, lines: &mut Lines, hashing: &HashOptions) {
        lines.make_sets(hashing);
    }

    fn emitted(&self, _input: usize, _before: u64, lines: &Lines) -> Result<(), Error> {
        let mut collecting = locked(&self.0);
        collecting.iter_mut().try_for_each(|collecting| lines.sets().try_for_each(|grams| collecting.push(grams)))
    }
}
