//! `bloomline corpus --against`: a first reading inserts the grams of tests into a set, and the run removes texts with these grams.

use crate::commands::input_kinds::{self, TableRequirements};
use crate::commands::run::plan::Plan;
use crate::commands::scan::ScanOptions;
use crate::commands::sizing::NewSet;
use crate::read::inputs::{Input, Inputs};
use crate::read::projection::ProjectedPart;
use crate::read::split::LineFormat;
use crate::run::events::{self, Event};
use crate::run::sink::PrintOptions;
use crate::seen::run_stats::RunStats;
use crate::seen::set::KeySet;
use crate::seen::{SeenKeys, SharedSeenKeys};
use crate::steps::decontaminate::Decontaminator;
use crate::steps::decontaminate::index::IndexTests;
use crate::steps::documents::column::DocumentReader;
use crate::steps::documents::step::Documents;
use crate::steps::values::ValueProjection;
use crate::system::error::Stop;
use crate::system::files;
use crate::system::unpoisoned::{locked, writing};
use crossbeam_channel::Receiver;
use std::sync::{Arc, RwLock};

/// Tests that were read.
pub struct IndexedTests {
    pub decontaminator: Arc<RwLock<Decontaminator>>,
    /// The number of skipped files of the tests.
    pub left_out: u64,
    /// Signals.
    pub events: Receiver<Event>,
}

impl Plan {
    /// Inserts all grams of the tests, duplicates included, into a set for the search of these inputs. Returns `None` if
    /// there are no tests, and the reason as an error if the reading ends early.
    pub(super) fn index(&self, found: Option<Inputs>, inputs: &Inputs) -> Result<Option<(KeySet, IndexedTests)>, Stop> {
        let (Some(tests), Some(found), Some(rule)) = (self.tests(), found, self.keys.what.document()) else {
            return Ok(None);
        };
        let reading = &self.reading;
        let events = events::receive(None, None)?;
        let mut rule = rule.clone();
        rule.text.frozen = false;
        rule.text.drop_document = false;
        rule.text.threshold = 1.0;
        rule.annotate = false;
        let values = ValueProjection { answer: tests.answer.clone(), ..tests.values() };
        let projection = values.with(ProjectedPart::Text(rule.pointer.clone()));
        input_kinds::check_tables(&found, &projection, TableRequirements::default(), reading.on_error)?;
        let size = &self.size;
        let growth = &self.growth;
        let quiet = self.reporting.quiet;
        let key_name = &rule.name();
        let new_set = NewSet { size, growth, keep: false, exact: false, key_name, keys: rule.keys(), quiet };
        let (set, limit) = new_set.for_inputs(&found.found, reading, &rule)?;
        let stats = RunStats::new(&set, limit, rule.keys(), "text", quiet);
        let decontaminator = Decontaminator::new(
            rule.clone(),
            set.hasher().clone(),
            names(&found),
            tests.id.is_some(),
            tests.report.is_some(),
        )?;
        let decontaminator = Arc::new(RwLock::new(decontaminator));
        let format = LineFormat::plain(reading.line_end());
        let reader = DocumentReader { rule, hasher: set.hasher().clone(), values };
        let print = PrintOptions::for_mark(true);
        let scan = ScanOptions { reading, format, projection, print, quiet, events: events.clone() };
        let seen = SharedSeenKeys::new(SeenKeys::new(set));
        let documents = Documents::new(reader, seen.clone(), true, stats.keys_before);
        let step = IndexTests { documents, decontaminator: Arc::clone(&decontaminator) };
        let (work, stop) = scan.read(found, Arc::new(step), seen, stats)?;
        if let Some(stop) = stop {
            return Err(stop);
        }
        let grams = writing(&decontaminator).begin_search(&inputs.found, names(inputs), reading.line_end())?;
        // A short test with an answer has a key of its own.
        work.seen.write().set.insert_hashes(&grams, &mut vec![false; grams.len()])?;
        let set = work.seen.write().take_set()?;
        let left_out = locked(&work.stats).counts.left_out;
        Ok(Some((set, IndexedTests { decontaminator, left_out, events })))
    }
}

/// Returns the members that identify each input in a report.
fn names(inputs: &Inputs) -> Vec<String> {
    inputs.found.iter().map(|input: &Input| files::members(&input.path)).collect()
}
