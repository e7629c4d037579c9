//! `bloomline dedup` and `bloomline corpus`: the inputs are looked up in a set, and new lines or texts are printed.

mod decided;
mod decontaminate;
mod destination;
mod first_pass;
mod memory;
pub mod plan;
pub mod sampling;
mod state;
mod substrings;

use crate::commands::headers;
use crate::commands::input_kinds::{self, TableRequirements};
use crate::commands::job::{Checked, Opened};
use crate::commands::prelude::Prelude;
use crate::commands::report;
use crate::commands::run::decontaminate::IndexedTests;
use crate::commands::run::destination::{CheckedDestination, OpenedDestination};
use crate::commands::run::memory::LimitedSet;
use crate::commands::run::plan::{DestinationKind, KeySource, Memory, Plan, StateOptions, TestSet};
use crate::commands::run::state::{CheckedState, emptying_error, save_start};
use crate::read::hints;
use crate::read::inputs::Inputs;
use crate::read::skip::OnError;
use crate::read::table::{COUNT, MEMBER};
use crate::run::checkpoint::Checkpoint;
use crate::run::events;
use crate::run::input::run_inputs;
use crate::run::print::Prefix;
use crate::run::progress::Progress;
use crate::run::step::{RunConfig, Step};
use crate::run::work::{Persistence, Work};
use crate::seen::local_set::LocalSet;
use crate::seen::run_stats::RunStats;
use crate::seen::{SeenKeys, SharedSeenKeys};
use crate::steps::decontaminate::Decontaminator;
use crate::steps::decontaminate::search::SearchTests;
use crate::steps::documents::column::DocumentReader;
use crate::steps::documents::rule::DocumentRule;
use crate::steps::documents::step::Documents;
use crate::steps::groups::ids;
use crate::steps::groups::records::RecordFile;
use crate::steps::insert::Insert;
use crate::steps::values::ValueProjection as Values;
use crate::system::error::{Error, Stop};
use crate::system::files;
use crate::system::unpoisoned::{locked, reading, writing};
use crate::terminal::messages::{print, warn};
use crate::terminal::phase::begin_passes;
use crate::terminal::signals;
use crate::write::atomic_file;
use std::mem;
use std::path::Path;
use std::sync::{Arc, Mutex, RwLock};
use std::time::Instant;

/// A run whose outputs are open.
struct OpenedRun {
    plan: Plan,
    started: Instant,
    inputs: Inputs,
    seen: SeenKeys,
    stats: RunStats,
    /// Empty records, if groups are to be found.
    records: Option<RecordFile>,
    indexed: Option<IndexedTests>,
    persistence: Persistence,
    /// The checkpoint from which the run resumes.
    start: Option<Checkpoint>,
    destination: OpenedDestination,
}

impl OpenedRun {
    /// Runs the passes. Returns the exit code.
    fn run(self) -> Result<u8, Error> {
        let Self { mut plan, started, inputs, seen, mut stats, records, indexed, persistence, start, destination } =
            self;
        let OpenedDestination { sinks, replaced, mut reports, .. } = destination;
        let tests_report = reports.tests.take();
        let unsaved = plan.unsaved(seen.set.shared().is_some());
        let (events, decontaminator) = match indexed {
            Some(IndexedTests { decontaminator, left_out, events }) => {
                stats.counts.left_out += left_out;
                stats.warn(reading(&decontaminator).warnings(plan.tests().and_then(|tests| tests.answer.as_ref())));
                (events, Some(decontaminator))
            }
            None => (events::receive(plan.state().map(StateOptions::every), unsaved)?, None),
        };
        let remote = seen.set.shared().map(|set| set.remote(plan.reporting.every));
        let is_complete = start.as_ref().is_some_and(|start| start.is_end(inputs.found.len()));
        let earlier = mem::take(&mut plan.earlier.inputs);
        let group_request = if is_complete { None } else { plan.group_request.as_ref().zip(records) };
        begin_passes(match &group_request {
            Some((group_request, _)) if group_request.thresholds().is_some() => 3,
            Some(_) => 2,
            None if plan.substring_request.is_some() => 2,
            None => 1,
        });
        let substring_request = plan.substring_request.as_ref().zip(plan.keys.what.document());
        let last_pass = match (group_request, substring_request) {
            (_, Some(request)) => plan.find_substrings(request, inputs, earlier, (seen, stats), &events),
            (Some((group_request, records)), _) => {
                if start.is_none() {
                    // A run that is killed starts again from here, because its records of groups are lost.
                    save_start(&persistence, &seen, &stats, inputs.found.len())?;
                }
                plan.group(group_request, (earlier, inputs), records, (seen, stats), &events, reports)
            }
            (None, None) => {
                let seen = SharedSeenKeys::new(seen);
                let step = plan.step(&seen, &stats, decontaminator.as_ref());
                Ok((inputs, step, seen, stats))
            }
        };
        let (inputs, step, seen, stats) = match last_pass {
            Ok(last_pass) => last_pass,
            Err(stop) => return stop.end(),
        };
        let to_stdout = plan.destination.is_standard_output() && !plan.print.total;
        let progress = Progress::new(&inputs.found, inputs.read.clone(), plan.reporting.quiet, to_stdout);
        let progress = progress.for_shared(remote, plan.reporting.stats);
        let config = RunConfig {
            threads: plan.reading.threads(),
            format: plan.keys.format,
            projection: plan.keys.projection(&plan.test_values()),
            on_error: plan.reading.on_error,
            print: plan.print,
            max_chunks_ahead: plan.reading.max_chunks_ahead(),
        };
        let resumed = start.as_ref().is_some_and(Checkpoint::has_begun);
        let saves_start = start.is_none() && (persistence.checkpoints.is_some() || persistence.folder.is_some());
        let inputs = run_inputs(inputs, plan.reading.chunk_config(plan.keys.format), start.as_ref());
        let work = Work::new(config, step, inputs, sinks, seen, stats, persistence);
        if saves_start {
            // The checkpoints of an earlier run end here.
            work.checkpoint(false)?;
        }
        let stop = work.run(&events, progress)?;
        // An input is replaced only after all else has succeeded.
        if stop.is_none()
            && let Some(mut report) = tests_report
            && let Some(decontaminator) = decontaminator
        {
            let _reporting = match signals::exit_immediately() {
                Ok(reporting) => reporting,
                Err(stop) => return stop.end(),
            };
            let mut decontaminator = writing(&decontaminator);
            decontaminator.report(&mut |piece| report.write(piece))?;
            report.finish()?;
            let id = plan.tests().and_then(|tests| tests.id.as_ref()).filter(|_| !decontaminator.has_ids());
            locked(&work.stats).warn(id.map(ids::warning));
        }
        if stop.is_none()
            && let Some(decided) = plan.substring_request.as_ref().and_then(|request| request.decided_path.as_deref())
        {
            files::remove(decided).map_err(files::cannot_write(&files::name(decided)))?;
        }
        if stop.is_none()
            && let Some(replaced) = replaced
        {
            if work.is_broken(replaced.path()) {
                return Err(Error::new(format!(
                    "cannot replace {}: the rest of it cannot be read; the file is left unchanged",
                    replaced.name
                )));
            }
            work.close_outputs();
            replaced.publish()?;
        }
        signals::clear_unsaved();
        plan.report(&work, stop, resumed, started)
    }
}

impl Plan {
    /// Checks the inputs, the set and the outputs.
    pub fn check(mut self) -> Result<Checked, Stop> {
        let started = Instant::now();
        let (inputs, tests) = self.find()?;
        if let Some(state) = self.state() {
            self.check_state_files(state, &inputs.found)?;
        }
        if let Some(state) = self.state()
            && let Some(code) = self.exit_code_if_complete(state, &inputs)?
        {
            let state = state.path.clone();
            return Ok(Box::new(move || {
                // A run that was killed may have left the file of its lock.
                drop(Self::lock(&state, true)?);
                Err(Stop::Done(code))
            }));
        }
        let destination = self.check_destination(&inputs)?;
        let full = destination.full().filter(|_| !self.destination.force);
        if self.is_shared()
            && let Some(output) = full
        {
            return Err(emptying_error(output, "the shared filter", "").into());
        }
        let set = if tests.is_some() { None } else { self.check_set(&inputs.found)? };
        let state = match (self.state(), &set) {
            (Some(state), Some((set, _))) => Some(self.check_state(state, &inputs, set, full)?),
            _ => None,
        };
        let start = state.as_ref().and_then(|state| state.start.as_ref());
        let advice = state.as_ref().map_or("", |state| &state.advice);
        destination.check_progress(start, advice, self.destination.force)?;
        Ok(Box::new(move || self.open(started, inputs, tests, set, state, destination)))
    }

    /// Opens the outputs. `set` is the set at the first line, unless it is on a server, or has the grams of tests.
    fn open(
        mut self,
        started: Instant,
        mut inputs: Inputs,
        tests: Option<Inputs>,
        set: Option<LimitedSet>,
        mut state: Option<CheckedState>,
        destination: CheckedDestination,
    ) -> Result<Opened, Stop> {
        let (indexed_set, indexed) = self.index(tests, &inputs)?.unzip();
        let set = match set.or(indexed_set.map(|set| (set, None))) {
            Some(set) => set,
            None => self.open_server()?,
        };
        let (mut seen, mut stats, mut records) = self.open_seen(&inputs.found, set)?;
        let lock = self.state().map(|state| Self::lock(&state.path, state.wait)).transpose()?;
        let has_changed = |(options, checked): (&StateOptions, &CheckedState)| checked.has_changed(options);
        if self.state().zip(state.as_ref()).is_some_and(has_changed)
            && let Some(set) = self.check_set(&inputs.found)?
            && let Some(options) = self.state()
        {
            // Another run saved it before the lock was taken.
            let full = destination.full().filter(|_| !self.destination.force);
            let again = self.check_state(options, &inputs, &set.0, full)?;
            destination.check_progress(again.start.as_ref(), &again.advice, self.destination.force)?;
            state = Some(again);
            (seen, stats, records) = self.open_seen(&inputs.found, set)?;
        }
        let mut persistence = self.persistence();
        let mut start = None;
        if let Some(CheckedState { mut checkpoints, start: checkpoint, .. }) = state {
            start = checkpoint;
            checkpoints.forget(&seen.set)?;
            persistence.checkpoints = Some(Mutex::new(checkpoints));
        }
        stats.resume(start.as_ref().and_then(|start| start.room));
        let mut destination = destination.open(&self, start.as_ref(), inputs.found.len())?;
        persistence.folder = destination.folder.take();
        persistence.manifest = self.destination.manifest().map(Path::to_owned);
        if let Some(limit) = stats.limit.as_ref().filter(|limit| limit.stop) {
            seen.limit(limit.keys);
        }
        stats.warn_if_overfull(&seen.set);
        inputs.left_out.drain(..).for_each(|why| stats.leave_out_input(&why));
        let left_out = start.as_ref().map_or(0, |start| start.left_out);
        stats.counts.left_out = stats.counts.left_out.max(left_out);
        let run =
            OpenedRun { plan: self, started, inputs, seen, stats, records, indexed, persistence, start, destination };
        Ok(Box::new(move || {
            let _lock = lock;
            run.run()
        }))
    }

    /// Finds the inputs, and the tests if there are any. Completes the rule for keys by the kind of the inputs and by their headers.
    fn find(&mut self) -> Result<(Inputs, Option<Inputs>), Error> {
        let go_on = self.reading.on_error != OnError::Fail;
        let tests = match &mut self.memory {
            Memory::Tests(tests) => Some(tests.find(&self.reading)?),
            _ => None,
        };
        let mut inputs = Inputs::check(&self.reading.named_paths(), &self.ignored_files(), go_on)?;
        if matches!(self.destination.kind, DestinationKind::InPlace) {
            // Unfinished contents that a killed run left.
            inputs.found.retain(|input| !atomic_file::is_hidden(&input.path));
            self.continue_in_place(&mut inputs.found)?;
        }
        self.find_earlier(&inputs)?;
        let one_output = self.has_one_output().then_some(headers::ONE_OUTPUT_OR_OWN);
        let values = match &self.group_request {
            Some(group_request) => group_request.values(),
            None => self.test_values(),
        };
        let demand = self.demand();
        let Self { keys, destination, reporting, reading, earlier, .. } = self;
        let prelude = Prelude { reading, format: keys.format, crlf: keys.crlf, one_output, quiet: reporting.quiet };
        let replaced = inputs.found.iter().filter(|input| destination.replaces(input));
        hints::check_replaced(replaced, keys.format.end, keys.what.rule())?;
        match &mut keys.what {
            KeySource::Key(rule, _) => {
                *rule = prelude.check_keys(&mut [&mut inputs], rule.clone())?;
                keys.name = rule.name();
                keys.description = rule.name();
            }
            KeySource::Document(_) => {
                let others = tests.as_ref().or(Some(&earlier.inputs).filter(|earlier| !earlier.found.is_empty()));
                input_kinds::check_directories(&[&inputs], others, reading)?;
                input_kinds::check_format(&[&inputs], keys.format, None, keys.crlf)?;
                prelude.check_output(&mut [&mut inputs], false)?;
            }
        }
        keys.kinds = prelude.check_projection(&inputs, &keys.projection(&values), demand)?;
        input_kinds::check_tables(
            &earlier.inputs,
            &keys.projection(&values),
            TableRequirements::default(),
            reading.on_error,
        )?;
        Ok((inputs, tests))
    }

    /// Returns the values that reports about tests need from the lines.
    fn test_values(&self) -> Values {
        self.tests().map_or_else(Values::default, TestSet::values)
    }

    /// True if the lines of all inputs are written to one output.
    fn has_one_output(&self) -> bool {
        matches!(self.destination.kind, DestinationKind::File { .. }) && !self.print.total
    }

    /// Returns the requirements for tables that are written.
    fn demand(&self) -> TableRequirements {
        let annotates = self.keys.what.document().is_some_and(|rule| rule.annotate);
        let added = match self.print.prefix {
            _ if self.print.total => None,
            Prefix::Count | Prefix::Member => Some(COUNT),
            Prefix::Mark => Some(MEMBER),
            Prefix::Nothing => annotates.then_some(MEMBER),
        };
        TableRequirements { write_options: self.print.write_options, added, together: self.has_one_output() }
    }

    /// Returns the error to report if the process ends before all is saved, or printed for an `is_shared` set.
    fn unsaved(&self, is_shared: bool) -> Option<Error> {
        let of_state = |state: &StateOptions| {
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
        self.state().map(of_state).or_else(|| is_shared.then(unprinted))
    }

    /// Returns the step for inputs that are read once.
    fn step(
        &self,
        seen: &SharedSeenKeys,
        stats: &RunStats,
        decontaminator: Option<&Arc<RwLock<Decontaminator>>>,
    ) -> Arc<dyn Step> {
        let seen = seen.clone();
        let in_order = !self.destination.is_side_by_side();
        let values = self.test_values();
        let reader = |rule: &DocumentRule| {
            let hasher = seen.read().set.hasher().clone();
            DocumentReader { rule: rule.clone(), hasher, values }
        };
        match (&self.keys.what, decontaminator) {
            (KeySource::Key(rule, second_hasher), _) => {
                let hashing = self.keys.hashing(rule, second_hasher.as_ref(), &seen.read().set);
                Arc::new(Insert { hashing, seen, in_order })
            }
            (KeySource::Document(rule), Some(decontaminator)) => Arc::new(SearchTests {
                reader: reader(&DocumentRule { phrases: reading(decontaminator).phrases(), ..rule.clone() }),
                seen,
                in_order,
                decontaminator: Arc::clone(decontaminator),
            }),
            (KeySource::Document(rule), None) => {
                Arc::new(Documents::new(reader(rule), seen, in_order, stats.keys_before))
            }
        }
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
            if alive && let Some(overfull_warning) = set.overfull_warning() {
                warn(&overfull_warning);
            }
        }
        if let Some(rule) = self.keys.what.document() {
            stats.warn_false_removals(rule.units());
        }
        if let Some(format) = self.reporting.stats {
            seen.set.local_mut().map_or(Ok(()), LocalSet::fit)?;
            if alive {
                // All lines are done: if the server fails now, only its own figures are missing.
                _ = seen.set.refresh();
            }
            let file = match &self.memory {
                Memory::Frozen(file) | Memory::State(StateOptions { path: file, .. }) => Some(&**file),
                _ => None,
            };
            let mut figures = report::run_figures(&seen, &stats, &self.keys.what, self.print, work.step.repeated());
            if resumed {
                figures.row_and_field("resumed", "these are the figures since the checkpoint", "resumed", true);
            }
            if self.substring_request.is_none() {
                report::add_state(&mut figures, &seen.set, &stats, file);
            }
            report::add_speed(&mut figures, &stats, started.elapsed());
            print(&figures.format(format));
        }
        // A signal may have cut the statistics short.
        stop.or(signals::first().map(Stop::Signal)).map_or(Ok(stats.exit_code()), Stop::end)
    }
}
