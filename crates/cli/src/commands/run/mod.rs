//! `bloomline dedup` and `bloomline corpus`: the inputs are looked up in a set, and new lines or texts are printed.

mod decontaminate;
mod destination;
mod first_pass;
mod memory;
pub mod plan;

use crate::commands::groups::GroupRequest;
use crate::commands::headers;
use crate::commands::input_kinds::{self, TableRequirements};
use crate::commands::report;
use crate::commands::run::decontaminate::IndexedTests;
use crate::commands::run::destination::OpenedRun;
use crate::commands::run::memory::save_start;
use crate::commands::run::plan::{DestinationKind, Memory, Plan, StateOptions, TestSet};
use crate::key::KeyRule;
use crate::options::values::OnError;
use crate::read::hints;
use crate::read::inputs::Inputs;
use crate::read::lines::Prefix;
use crate::read::lines::keys::KeySource;
use crate::read::table::COUNT;
use crate::run::checkpoint::Checkpoint;
use crate::run::events;
use crate::run::progress::Progress;
use crate::run::shard::shards;
use crate::run::step::{Pass, RunConfig};
use crate::run::work::Work;
use crate::seen::SharedSeenKeys;
use crate::seen::run_stats::RunStats;
use crate::steps::decontaminate::Decontaminator;
use crate::steps::decontaminate::search::SearchTests;
use crate::steps::documents::MEMBER;
use crate::steps::documents::step::Documents;
use crate::steps::groups::values::ValueProjection as Values;
use crate::steps::insert::Insert;
use crate::system::error::{Error, Stop};
use crate::system::unpoisoned::{locked, reading, writing};
use crate::terminal::messages::{print, warn};
use crate::terminal::phase::begin_passes;
use crate::terminal::signals;
use crate::write::atomic_file;
use std::sync::{Arc, RwLock};
use std::time::Instant;

impl Plan {
    /// Finds the inputs, and the tests if there are any. Their kind decides about the key rule.
    fn find(&mut self) -> Result<(Inputs, Option<Inputs>), Error> {
        let go_on = self.reading.on_error != OnError::Fail;
        let tests = match &mut self.memory {
            Memory::Tests(tests) => Some(tests.find(&self.reading)?),
            _ => None,
        };
        let mut inputs = Inputs::check(&self.reading.named(), &self.no_inputs(), go_on)?;
        if matches!(self.destination.kind, DestinationKind::InPlace) {
            // Unfinished contents that a killed run left.
            inputs.found.retain(|input| !atomic_file::is_hidden(&input.path));
        }
        let has_one_output = self.has_one_output();
        let Self { keys, destination, reporting, reading, .. } = self;
        input_kinds::check_directories(&[&inputs], tests.as_ref(), reading)?;
        input_kinds::check_format(&[&inputs], keys.format, keys.what.rule(), keys.crlf)?;
        if let KeySource::Key(rule, _) = &mut keys.what {
            *rule = input_kinds::rule(&[&inputs], rule.clone())?;
            (keys.name, keys.description) = (rule.name(), rule.name());
        }
        let (end, rule) = (keys.format.end, keys.what.rule());
        hints::check_replaced(inputs.found.iter().filter(|input| destination.replaces(input)), end, rule)?;
        if let Some(rule) = rule {
            hints::warn_of_format(&[&inputs], end, rule, reporting.quiet);
        }
        if has_one_output {
            input_kinds::check_one(&inputs)?;
        }
        if has_one_output || keys.what.rule().is_some_and(KeyRule::depends_on_order) {
            let remedy = if has_one_output { headers::ONE_OUTPUT_OR_OWN } else { headers::NAME_FIELDS };
            headers::check_all(&mut [&mut inputs], reading.cut(keys.format), remedy, go_on)?;
        }
        Ok((inputs, tests))
    }

    /// True if the lines of all inputs are written to one output.
    fn has_one_output(&self) -> bool {
        matches!(self.destination.kind, DestinationKind::File { .. }) && !self.print.total
    }

    /// Returns the requirements for tables that are written.
    fn demand(&self) -> TableRequirements {
        let annotates = self.keys.what.document().is_some_and(|rule| rule.annotate);
        let added = match self.print.before {
            _ if self.print.total => None,
            Prefix::Count | Prefix::Member => Some(COUNT),
            Prefix::Mark => Some(MEMBER),
            Prefix::Nothing => annotates.then_some(MEMBER),
        };
        TableRequirements { write_options: self.print.write_options, added, together: self.has_one_output() }
    }

    /// Returns the error to report if the process ends before all is saved, or printed for an `is_shared` set.
    fn undone(&self, is_shared: bool) -> Option<Error> {
        let unsaved = |state: &StateOptions| {
            Error::new(format!(
                "the run ended before the state {:?} was saved: the state is as of the last checkpoint, so the next run may \
                 print lines again, but loses none",
                state.path
            ))
        };
        let unprinted = || {
            Error::new(
                "the run ended before all lines were printed: lines that are in the shared filter may be missing from the \
                 output, and no later run will print them",
            )
        };
        self.state().map(unsaved).or_else(|| is_shared.then(unprinted))
    }

    /// Returns the pass over inputs that are read once.
    fn pass(
        &self,
        seen: &SharedSeenKeys,
        stats: &RunStats,
        decontaminator: Option<&Arc<RwLock<Decontaminator>>>,
    ) -> Arc<dyn Pass> {
        let (seen, in_order) = (seen.clone(), !self.destination.is_side_by_side());
        match (&self.keys.what, decontaminator) {
            (KeySource::Key(..), _) => Arc::new(Insert { seen, in_order }),
            (KeySource::Document(rule, _), Some(decontaminator)) => {
                Arc::new(SearchTests { rule: rule.clone(), seen, in_order, decontaminator: Arc::clone(decontaminator) })
            }
            (KeySource::Document(rule, _), None) => {
                Arc::new(Documents::new(rule.clone(), seen, in_order, stats.keys_before))
            }
        }
    }

    pub fn run(mut self) -> Result<u8, Error> {
        let started = Instant::now();
        let (mut inputs, tests) = self.find()?;
        let of_tests = self.tests().map_or_else(Values::default, TestSet::values);
        let values = self.group_request.as_ref().map_or_else(|| of_tests.clone(), GroupRequest::values);
        self.keys.kinds =
            input_kinds::check_tables(&inputs, &self.keys.what, &values, self.demand(), self.reading.on_error)?;
        let _lock = self.state().map(|state| self.lock(state, &inputs.found)).transpose()?;
        if let Some(code) = self.ended(&inputs)? {
            return Ok(code);
        }
        let indexed = match self.index(tests, &inputs) {
            Ok(indexed) => indexed,
            Err(stop) => return stop.end(),
        };
        let (set, indexed) = indexed.unzip();
        let OpenedRun { mut seen, mut stats, records, sinks, keep, start, replaced, mut reports } =
            self.open(&inputs, set)?;
        let tests_report = reports.tests.take();
        if let Some(limit) = stats.limit.as_ref().filter(|limit| limit.stop) {
            seen.limit(limit.keys);
        }
        stats.warn_if_overfull(&seen.set);
        inputs.left_out.drain(..).for_each(|why| stats.leave_out(&why));
        let left_out = start.as_ref().map_or(0, |start| start.left_out);
        stats.counts.left_out = stats.counts.left_out.max(left_out);
        let undone = self.undone(seen.set.shared().is_some());
        let (events, decontaminator) = match indexed {
            Some(IndexedTests { decontaminator, left_out, events }) => {
                stats.counts.left_out += left_out;
                stats.warn(reading(&decontaminator).warning());
                (events, Some(decontaminator))
            }
            None => (events::receive(self.state().map(StateOptions::every), undone)?, None),
        };
        let remote = seen.set.shared().map(|set| set.remote(self.reporting.every));
        let is_left = start.as_ref().is_none_or(|start| !start.is_end(inputs.found.len()));
        let group_request = self.group_request.as_ref().zip(records).filter(|_| is_left);
        begin_passes(match &group_request {
            Some((group_request, _)) if group_request.threshold().is_some() => 3,
            Some(_) => 2,
            None => 1,
        });
        let again = match group_request {
            Some((group_request, records)) => {
                if start.is_none() {
                    // A run that is killed starts again from here, because its records of groups are lost.
                    save_start(&keep, &seen, &stats, inputs.found.len())?;
                }
                self.group(group_request, inputs, records, (seen, stats), &events, reports)
            }
            None => {
                let seen = SharedSeenKeys::new(seen);
                let pass = self.pass(&seen, &stats, decontaminator.as_ref());
                Ok((inputs, pass, seen, stats))
            }
        };
        let (inputs, pass, seen, stats) = match again {
            Ok(again) => again,
            Err(stop) => return stop.end(),
        };
        let to_stdout = self.destination.is_standard_output() && !self.print.total;
        let progress = Progress::new(&inputs.found, inputs.read.clone(), self.reporting.quiet, to_stdout);
        let progress = progress.for_shared(remote, self.reporting.stats);
        let task = RunConfig {
            threads: self.reading.threads(),
            hashing: self.keys.hashing(&seen.read().set, of_tests),
            on_error: self.reading.on_error,
            print: self.print,
            ahead: self.reading.ahead(),
        };
        let resumed = start.as_ref().is_some_and(Checkpoint::has_begun);
        let first = start.is_none() && (keep.checkpoints.is_some() || keep.folder.is_some());
        let shards = shards(inputs, self.reading.cut(self.keys.format), start.as_ref());
        let work = Work::new(task, pass, shards, sinks, seen, stats, keep);
        if first {
            // The checkpoints of an earlier run end here.
            work.checkpoint(false)?;
        }
        let stop = work.run(&events, progress)?;
        // An input is replaced only after all else has succeeded.
        if let (None, Some(mut report), Some(decontaminator)) = (&stop, tests_report, decontaminator) {
            let _reporting = match signals::at_once() {
                Ok(reporting) => reporting,
                Err(stop) => return stop.end(),
            };
            writing(&decontaminator).report(&mut |piece| report.write(piece))?;
            report.finish()?;
        }
        if let (None, Some(replaced)) = (&stop, replaced) {
            if work.is_broken(replaced.path()) {
                return Err(Error::new(format!(
                    "cannot replace {}: the rest of it cannot be read; the file is left unchanged",
                    replaced.name
                )));
            }
            replaced.publish()?;
        }
        signals::in_order();
        self.report(&work, stop, resumed, started)
    }

    /// Prints the warnings and statistics at the end. Returns the exit code.
    fn report(&self, work: &Work, stop: Option<Stop>, resumed: bool, started: Instant) -> Result<u8, Error> {
        let mut seen = work.seen.write();
        // A server that failed would block once more.
        let mut alive = !matches!(stop, Some(Stop::After(_)));
        let stop = match (stop, signals::first()) {
            // Do not wait for a server that did not answer. Its uncertain lines are reported below.
            (Some(Stop::After(Error::Shared(_))), Some(signal)) => Some(Stop::Signal(signal)),
            (None, _) => {
                let checked = seen.set.shared().map_or(Ok(true), |set| set.check());
                alive = matches!(checked, Ok(true));
                checked.err().map(Stop::After)
            }
            (stop, _) => stop,
        };
        let stats = locked(&work.stats);
        if let Some(set) = seen.set.shared() {
            stats.warn(set.warnings());
            let overfull_warning = if alive { set.overfull_warning() } else { None };
            overfull_warning.iter().for_each(|overfull_warning| warn(overfull_warning));
        }
        if let Some(rule) = self.keys.what.document() {
            stats.warn_false_removals(rule.units());
        }
        if let Some(format) = self.reporting.stats {
            if alive {
                // All lines are done: if the server fails now, only its own figures are missing.
                _ = seen.set.refresh();
            }
            let file = match &self.memory {
                Memory::Frozen(file) | Memory::State(StateOptions { path: file, .. }) => Some(&**file),
                _ => None,
            };
            let mut figures = report::run_figures(&seen, &stats, &self.keys.what, self.print, work.pass.repeated());
            if resumed {
                figures.row_and_field("resumed", "these are the figures since the checkpoint", "resumed", true);
            }
            report::add_state_and_speed(&mut figures, &seen.set, &stats, file, started.elapsed());
            print(&figures.format(format));
        }
        // A signal may have cut the statistics short.
        stop.or(signals::first().map(Stop::Signal)).map_or(Ok(stats.exit_code()), Stop::end)
    }
}
