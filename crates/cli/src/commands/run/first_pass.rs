//! The first reading of inputs that are read twice, in which groups are found.

use crate::commands::groups::{GroupRequest, OpenReports};
use crate::commands::run::plan::{KeySource, Plan};
use crate::commands::scan::ScanOptions;
use crate::read::inputs::Inputs;
use crate::run::events::Event;
use crate::run::sink::PrintOptions;
use crate::run::step::Step;
use crate::seen::run_stats::RunStats;
use crate::seen::{SeenKeys, SharedSeenKeys};
use crate::steps::documents::column::DocumentReader;
use crate::steps::documents::rule::DocumentRule;
use crate::steps::groups::collect::Collect;
use crate::steps::groups::near::candidate_documents::GramCollector;
use crate::steps::groups::near::survivors::NearGroups;
use crate::steps::groups::record::{Members, Record};
use crate::steps::groups::records::RecordFile;
use crate::steps::groups::replay::Replay;
use crate::steps::values::ValueProjection;
use crate::system::error::{Error, Stop, temporary_remedy};
use crate::system::unpoisoned::locked;
use crate::terminal::signals;
use crossbeam_channel::Receiver;
use std::io;
use std::sync::{Arc, Mutex};

/// The inputs to read after the first reading, the step that decides about them, the set and the statistics.
pub(super) type SecondPass = (Inputs, Arc<dyn Step>, SharedSeenKeys, RunStats);

impl Plan {
    /// Reads the inputs for the first time, after the inputs that are only read, finds groups and writes the reports. Fails with the
    /// reason if nothing is to be printed.
    pub(super) fn group(
        &self,
        group_request: &GroupRequest,
        (earlier, mut inputs): (Inputs, Inputs),
        records: RecordFile,
        (seen, stats): (SeenKeys, RunStats),
        events: &Receiver<Event>,
        reports: OpenReports,
    ) -> Result<SecondPass, Stop> {
        let earlier_count = inputs.prepend(earlier);
        let versions = inputs.versions();
        let (inputs, mut second_inputs) = inputs.with_second_reading().map_err(not_copied)?;
        let values = group_request.values();
        let scan = ScanOptions {
            reading: &self.reading,
            format: self.keys.format,
            projection: self.keys.projection(&values),
            print: PrintOptions::for_mark(true),
            quiet: self.reporting.quiet,
            events: events.clone(),
        };
        let document_reader = |rule: &DocumentRule, values| DocumentReader {
            rule: rule.clone(),
            hasher: seen.set.hasher().clone(),
            values,
        };
        let collected = self.keys.what.document().map(|rule| document_reader(rule, ValueProjection::default()));
        let members = match &self.keys.what {
            KeySource::Key(rule, second_hasher) => {
                Members::Lines(self.keys.hashing(rule, second_hasher.as_ref(), &seen.set), values)
            }
            KeySource::Document(rule) => Members::Documents(document_reader(rule, values)),
        };
        let seen = SharedSeenKeys::new(seen);
        let step = Arc::new(Record { members, seen: seen.clone(), records: Mutex::new(records) });
        let (work, stop) = scan.read(inputs, step.clone(), seen.clone(), stats)?;
        check_stop(stop)?;
        second_inputs.measure().map_err(not_copied)?;
        let mut records = locked(&step.records);
        let (mut near, mut disk_bytes) = (None, 0);
        if let (Some(bands), Some(thresholds), Some(reader)) =
            (records.bands.take(), group_request.thresholds(), collected)
        {
            let (inputs, third) = second_inputs.with_second_reading().map_err(not_copied)?;
            second_inputs = third;
            let sorting = signals::exit_immediately()?;
            let collecting = GramCollector::new(bands.candidate_documents(records.had_keys)?, records.ordinals.clone());
            drop(sorting);
            let step = Arc::new(Collect::new(reader, collecting));
            let (_, stop) = scan.read(inputs, step.clone(), seen.clone(), locked(&work.stats).for_second_reading(0))?;
            check_stop(stop)?;
            let candidate_documents = step.take_documents()?;
            disk_bytes = candidate_documents.disk_bytes();
            let _comparing = signals::exit_immediately()?;
            let ranks = records.ranks(&candidate_documents.ordinals)?;
            let compared = NearGroups::new(candidate_documents, &ranks, records.ordinals.first_own(), thresholds)?;
            locked(&work.stats).warn(compared.warning());
            near = Some(compared);
        }
        let _deciding = signals::exit_immediately()?;
        let group_index = group_request.decide(&mut records, near, reports)?;
        let mut stats = locked(&work.stats);
        stats.warn(group_request.warnings(&group_index.stats));
        stats.warn(group_request.id_warning(&mut records));
        stats.counts.unique = group_index.distinct;
        let mut stats = stats.for_second_reading(group_index.disk_bytes + disk_bytes);
        if let Some(first) = &mut stats.first {
            first.comparison = group_index.comparison;
        }
        let emptied = self.keys.what.document().filter(|rule| rule.keep_empty).map(|rule| rule.pointer.clone());
        second_inputs.found.drain(..earlier_count);
        let replay = Replay {
            decisions: Mutex::new(group_index.decisions),
            emptied,
            groups: group_index.stats.groups,
            versions,
        };
        Ok((second_inputs, Arc::new(replay), seen, stats))
    }
}

/// Fails if the reading ended early, or a signal arrived.
pub(super) fn check_stop(stop: Option<Stop>) -> Result<(), Stop> {
    match stop.or_else(|| signals::first().map(Stop::Signal)) {
        Some(stop) => Err(stop),
        None => Ok(()),
    }
}

pub(super) fn not_copied(source: io::Error) -> Error {
    let remedy = temporary_remedy(&source);
    Error::new(format!("cannot read the inputs twice: {source}; a pipe is kept in a temporary file, so {remedy}"))
}
