//! `bloomline corpus --against`: a first pass inserts the grams of tests into a set, and the run removes texts with these grams.

use crate::against::Against;
use crate::commands::kinds::{self, Demand};
use crate::commands::run::plan::Plan;
use crate::commands::scan::Scan;
use crate::engine::pass::documents::Documents;
use crate::engine::pass::index_tests::IndexTests;
use crate::engine::wakes::{self, Wake};
use crate::error::{Error, Stop};
use crate::files;
use crate::groups::values;
use crate::input::estimate::Sampled;
use crate::input::find::Named;
use crate::input::inputs::{Input, Inputs};
use crate::input::lines::{Hashing, What};
use crate::input::split::LineFormat;
use crate::input::table::Wish;
use crate::key::json::Pointer;
use crate::locked::{locked, writing};
use crate::options::ReadOptions;
use crate::seen::set::KeySet;
use crate::seen::sizing::New;
use crate::seen::tally::Tally;
use crate::seen::{Seen, SharedSeen};
use crate::values::OnError;
use crossbeam_channel::Receiver;
use std::path::PathBuf;
use std::sync::{Arc, RwLock};

/// Tests whose texts are removed.
pub struct Tests {
    named: Vec<PathBuf>,
    /// The files of the tests, once they are found.
    pub files: Vec<PathBuf>,
    pub report: Option<PathBuf>,
    pub id: Option<Pointer>,
}

impl Tests {
    pub fn new(named: Vec<PathBuf>, report: Option<PathBuf>, id: Option<Pointer>) -> Self {
        Self { named, files: Vec::new(), report, id }
    }

    /// The values that are read of lines beside their texts.
    pub fn values(&self) -> values::Wanted {
        values::Wanted { choice: None, id: self.id.clone() }
    }

    /// Finds the files of the tests. Globs apply only to the inputs. All files must exist.
    pub fn find(&mut self, reading: &ReadOptions) -> Result<Inputs, Error> {
        let named = Named { paths: &self.named, list: None, globs: &[], ..reading.named() };
        let inputs = Inputs::check(&named, &[], false)?;
        self.files = inputs.found.iter().map(|input| input.path.clone()).collect();
        Ok(inputs)
    }
}

/// Tests that were read.
pub struct Indexed {
    pub against: Arc<RwLock<Against>>,
    /// The number of skipped files of the tests.
    pub left_out: u64,
    /// Signals.
    pub wakes: Receiver<Wake>,
}

impl Plan {
    /// Inserts all grams of the tests, duplicates included, into a set for the search of these inputs. `None` if there
    /// are no tests. Fails with the reason if it ends early.
    pub(super) fn index(&self, found: Option<Inputs>, inputs: &Inputs) -> Result<Option<(KeySet, Indexed)>, Stop> {
        let (Some(tests), Some(found), What::Document(rule, _)) = (self.tests(), found, &self.keys.what) else {
            return Ok(None);
        };
        let (reading, wakes) = (&self.reading, wakes::receive(None, None)?);
        let mut rule = rule.clone();
        rule.text.frozen = false;
        rule.text.drop_document = false;
        (rule.text.threshold, rule.text.at_least) = (1.0, false);
        rule.annotate = false;
        let (what, values) = (What::Document(rule.clone(), reading.on_error), tests.values());
        kinds::check_tables(&found, &what, &values, Demand::default(), reading.on_error)?;
        let (size, growth, quiet, key_name) = (&self.size, &self.growth, self.reporting.quiet, &rule.name());
        let new = New { size, growth, keep: false, key_name, keys: rule.keys(), quiet };
        let (set, limit) = new.of_inputs(&found.found, reading, &Sampled::Documents(rule.clone()))?;
        let tally = Tally::new(&set, limit, rule.keys(), "text", quiet);
        let against = Against::new(rule.clone(), set.hasher().clone(), names(&found), tests.id.is_some())?;
        let against = Arc::new(RwLock::new(against));
        let format = LineFormat::plain(reading.end());
        let hashing = Hashing { values, ..Hashing::of_keys(set.hasher(), format, what, OnError::Fail) };
        let scan = Scan { reading, hashing, quiet, wish: Wish::default(), eol: None, wakes: wakes.clone() };
        let seen = SharedSeen::new(Seen::new(set));
        let documents = Documents::new(rule, seen.clone(), true, tally.keys_before);
        let pass = IndexTests { documents, against: Arc::clone(&against) };
        let (work, stop) = scan.read(found, Arc::new(pass), seen, tally)?;
        stop.map_or(Ok(()), Err)?;
        writing(&against).begin_search(names(inputs));
        let (set, left_out) = (work.seen.write().take_set()?, locked(&work.tally).counts.left_out);
        Ok(Some((set, Indexed { against, left_out, wakes })))
    }
}

/// Returns the members that identify each input in a report.
fn names(inputs: &Inputs) -> Vec<String> {
    inputs.found.iter().map(|input: &Input| files::members(&input.path)).collect()
}
