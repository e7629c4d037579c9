//! `bloomline dedup` and `bloomline corpus`: what the inputs have goes through a set, and what is new to it to the outputs.

mod begin;
mod first;
mod of_options;

use crate::against::Against;
use crate::commands::against::{self, Tests};
use crate::commands::groups::{Grouping, Reported};
use crate::commands::kinds::{self, Demand};
use crate::documents::MEMBER;
use crate::documents::exact::ExactUnits;
use crate::engine::checkpoint::{Checkpoint, Mark};
use crate::engine::lane::lanes;
use crate::engine::sink::{Print, Sink};
use crate::engine::wakes::{self, Wake};
use crate::engine::work::{Act, Keep, Task, Work};
use crate::error::{Error, Stop};
use crate::files::{self, Origin, is_standard};
use crate::groups::values::Wanted as Values;
use crate::input::header;
use crate::input::hints;
use crate::input::inputs::{Input, Inputs};
use crate::input::lines::ends::LineEnds;
use crate::input::lines::{Before, COUNT, Hashing, What};
use crate::input::split::LineFormat;
use crate::key::KeyRule;
use crate::leftovers;
use crate::lock::Lock;
use crate::locked::locked;
use crate::messages::{print, warn};
use crate::options::{ReadOptions, RunOptions, SharedOptions, SharedWriteOptions, SizeOptions};
use crate::phase::begin_passes;
use crate::progress::Progress;
use crate::replace::{self, Replacement};
use crate::report;
use crate::seen::set::KeySet;
use crate::seen::tally::Tally;
use crate::seen::{Beside, Seen, SharedSeen};
use crate::signals;
use crate::values::OnError;
use crossbeam_channel::Receiver;
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A run, as its options ask for it.
pub struct Run {
    pub reading: ReadOptions,
    pub size: SizeOptions,
    pub options: RunOptions,
    /// What a line is, and what of it is hashed.
    pub format: LineFormat,
    /// True if CR LF is taken for an end of lines, or written.
    pub crlf: bool,
    pub what: What,
    /// The name of the keys, and all that decides what becomes of them, for comparison with another run.
    pub key_name: String,
    pub description: String,
    /// What becomes of lines whose key has a null, if nulls are no keys.
    pub nulls: OnError,
    /// What they are called, and what a line has to have.
    pub keys: &'static str,
    pub wanted: &'static str,
    /// Where the filter is, if it is on a server.
    pub server: Option<(SharedOptions, SharedWriteOptions)>,
    /// A filter that is asked, and stays as it is.
    pub frozen: Option<PathBuf>,
    /// Tests whose texts are removed.
    pub against: Option<Tests>,
    /// Whether there is a second look at what the filter takes for seen.
    pub exact: bool,
    /// What becomes of equal lines or documents, if all have to be known for that.
    pub grouping: Option<Grouping>,
    /// Whether units that go by mistake are counted.
    pub exact_units: bool,
    /// Keys to measure the rate with.
    pub sample: Option<u64>,
    /// How often statistics are printed meanwhile.
    pub stats_every: Option<Duration>,
    pub print: Print,
    /// The line ends of the keys, for a warning if there are two kinds.
    pub ends: Arc<LineEnds>,
    /// The file that dropped lines go to, if they go anywhere; "-" is standard output.
    pub dupes: Option<PathBuf>,
}

impl Run {
    /// The files that are written, but for the state.
    pub fn outputs(&self) -> impl Iterator<Item = &Path> {
        let outputs = [self.options.output.file(), self.dupes.as_deref()].into_iter().flatten();
        outputs.chain(self.reports()).filter(|path| !is_standard(path))
    }

    /// The files that tell of groups.
    fn reports(&self) -> impl Iterator<Item = &Path> {
        let of_tests = self.against.iter().filter_map(|tests| tests.report.as_deref());
        self.grouping.iter().flat_map(Grouping::paths).chain(of_tests)
    }

    /// The files that are read besides the inputs, and stay as they are.
    fn besides(&self) -> impl Iterator<Item = &Path> {
        let tests = self.against.iter().flat_map(|tests| tests.files.iter().map(PathBuf::as_path));
        let server = self.server.iter().flat_map(|(shared, _)| shared.server.files());
        self.frozen.as_deref().into_iter().chain(tests).chain(self.reading.list()).chain(server)
    }

    /// The files of its state, and those that are read besides the inputs.
    fn own(&self) -> Vec<PathBuf> {
        let state = self.options.state.iter().flat_map(|state| files::of_filter(state));
        state.chain(self.besides().map(Path::to_owned)).collect()
    }

    /// True if lines of an input are to take its place.
    fn replaces(&self, input: &Input) -> bool {
        let output = self.options.output.file().filter(|path| !is_standard(path)).map(Origin::of);
        self.options.in_place
            || output.is_some_and(|output| output.is_regular() && output.identity() == input.origin.identity())
    }

    /// What is no input where a directory has it: the state, what is read besides, the folder of outputs, and files that this run
    /// continues, or empties only if that is asked for. Other files that it would empty may be somebody's inputs, and are refused.
    fn no_inputs(&self) -> Vec<PathBuf> {
        let RunOptions { resume, force, state, manifest, output_dir, .. } = &self.options;
        let safe = *resume || *force || state.as_deref().is_some_and(Path::exists);
        let outputs = self.outputs().map(Path::to_owned).chain(manifest.clone()).filter(|_| safe);
        self.own().into_iter().chain(outputs).chain(output_dir.clone()).collect()
    }

    /// How its lines are hashed for this set, and what else is read of them.
    fn hashing(&self, set: &KeySet, values: Values) -> Hashing {
        let (what, ends) = (self.what.clone(), Arc::clone(&self.ends));
        Hashing { values, ends, ..Hashing::of_keys(set.hasher(), self.format, what, self.nulls) }
    }

    /// Finds the inputs, and the tests if there are any. What is hashed depends on their kind.
    fn find(&mut self) -> Result<(Inputs, Option<Inputs>), Error> {
        let go_on = self.reading.on_error != OnError::Fail;
        let tests = self.against.as_mut().map(|tests| tests.find(&self.reading)).transpose()?;
        let mut inputs = Inputs::check(&self.reading.named(), &self.no_inputs(), go_on)?;
        if self.options.in_place {
            // What a killed run left.
            inputs.found.retain(|input| !replace::is_part(&input.path));
        }
        kinds::check_format(&[&inputs], self.format, self.what.rule(), self.crlf)?;
        if let What::Key(rule, _) = &mut self.what {
            *rule = kinds::rule(&[&inputs], rule.clone())?;
            (self.key_name, self.description) = (rule.name(), rule.name());
        }
        let (end, rule) = (self.format.end, self.what.rule());
        hints::check_replaced(inputs.found.iter().filter(|input| self.replaces(input)), end, rule)?;
        if let Some(rule) = rule {
            hints::give(&[&inputs], end, rule, self.options.quiet);
        }
        let has_one_output = self.has_one_output();
        if has_one_output {
            kinds::check_one(&inputs)?;
        }
        if has_one_output || self.what.rule().is_some_and(KeyRule::is_by_place) {
            let remedy = if has_one_output { header::ONE_OR_OWN } else { header::BY_PLACE };
            header::check_all(&mut [&mut inputs], self.reading.cut(self.format), remedy, go_on)?;
        }
        Ok((inputs, tests))
    }

    /// Whether the lines of all inputs come to one output.
    fn has_one_output(&self) -> bool {
        self.options.output_dir.is_none() && !self.options.in_place && !self.print.total
    }

    /// What tables have to be like to be written.
    fn demand(&self) -> Demand {
        let annotates = matches!(&self.what, What::Document(rule, _) if rule.annotate);
        let added = match self.print.before {
            _ if self.print.total => None,
            Before::Count | Before::Member => Some(COUNT),
            Before::Mark => Some(MEMBER),
            Before::Nothing => annotates.then_some(MEMBER),
        };
        Demand { wish: self.print.wish, added, together: self.has_one_output() }
    }

    /// Reads the tests that these inputs are searched for. Returns them, how many of their inputs are left out, and what comes from outside.
    /// Fails with why it ended before.
    fn search(&self, tests: Option<Inputs>, inputs: &Inputs) -> Result<Option<(Against, u64, Receiver<Wake>)>, Stop> {
        let (Some(against), Some(tests), What::Document(rule, _)) = (&self.against, tests, &self.what) else {
            return Ok(None);
        };
        let wakes = wakes::receive(None, None)?;
        let (mut built, left_out) = against.build(tests, rule, &self.reading, &self.size, &self.options, &wakes)?;
        built.search(against::names(inputs));
        Ok(Some((built, left_out, wakes)))
    }

    /// What is done with lines that are hashed so.
    fn task(&self, hashing: Hashing) -> Task {
        Task {
            threads: self.reading.threads(),
            hashing,
            on_error: self.reading.on_error,
            act: match &self.grouping {
                Some(_) => Act::Decided,
                None if self.options.is_side_by_side() => Act::Insert,
                None => Act::InsertInOrder,
            },
            print: self.print,
            ahead: self.reading.ahead(),
        }
    }

    /// Runs it.
    pub fn run(mut self) -> Result<u8, Error> {
        let started = Instant::now();
        let (mut inputs, tests) = self.find()?;
        let of_tests = self.against.as_ref().map_or_else(Values::default, Tests::values);
        let values = self.grouping.as_ref().map_or_else(|| of_tests.clone(), Grouping::values);
        kinds::check_tables(&inputs, self.what.of_rows(), &values, self.demand(), self.reading.on_error)?;
        let state = self.options.state.as_deref();
        let _lock = state.map(|state| self.lock(state, &inputs.found)).transpose()?;
        if let Some(code) = self.ended(&inputs)? {
            return Ok(code);
        }
        let searching = match self.search(tests, &inputs) {
            Ok(searching) => searching,
            Err(stop) => return stop.end(),
        };
        let Begun { mut seen, mut tally, sinks, keep, start, replacement, mut reports } = self.begin(&inputs)?;
        let tests_report = reports.tests.take();
        match tally.limit.as_ref().filter(|limit| limit.stop) {
            Some(_) if self.options.is_side_by_side() => return Err(Error::StopSideBySide),
            Some(limit) => seen.limit(limit.keys),
            None => {}
        }
        tally.begin(&seen.set);
        inputs.left_out.drain(..).for_each(|why| tally.leave_out(&why));
        let left_out = start.as_ref().map_or(0, |start| start.left_out);
        tally.counts.left_out = tally.counts.left_out.max(left_out);
        let unsaved = self.options.state.clone().map(|state| Error::Unsaved { state });
        let undone = unsaved.or(seen.set.shared().map(|_| Error::UnprintedAtEnd));
        let wakes = match searching {
            Some((against, left_out, wakes)) => {
                tally.counts.left_out += left_out;
                tally.warn(against.warning());
                seen.beside = Beside::Against(against);
                wakes
            }
            None => wakes::receive(self.options.checkpoint_every(), undone)?,
        };
        let meter = seen.set.shared().map(|set| set.meter(self.stats_every));
        let is_decided =
            self.grouping.is_some() && start.as_ref().is_none_or(|start| !start.is_end(inputs.found.len()));
        begin_passes(match &self.grouping {
            Some(grouping) if is_decided && grouping.threshold().is_some() => 3,
            Some(_) if is_decided => 2,
            _ => 1,
        });
        let again = match &self.grouping {
            Some(grouping) if is_decided => {
                if start.is_none() {
                    // A run that is killed begins again from here, for what it knows of groups is lost.
                    save_start(&keep, &seen, &tally, inputs.found.len())?;
                }
                self.group(grouping, inputs, seen, tally, &wakes, reports)
            }
            _ => Ok((inputs, SharedSeen::new(seen), tally)),
        };
        let (inputs, seen, tally) = match again {
            Ok(again) => again,
            Err(stop) => return stop.end(),
        };
        let to_stdout = self.options.prints_to_standard_output() && !self.print.total;
        let progress = Progress::new(&inputs.found, inputs.read.clone(), self.options.quiet, to_stdout);
        let progress = progress.of_shared(meter, self.options.stats);
        let hashing = self.hashing(&seen.look().set, of_tests);
        let task = self.task(Hashing { decided: self.grouping.is_some(), ..hashing });
        let exact_units = match &self.what {
            What::Document(rule, _) if self.exact_units => Some(ExactUnits::new(rule.text.clone())),
            _ => None,
        };
        let resumed = start.as_ref().is_some_and(Checkpoint::has_begun);
        let first = start.is_none() && (keep.checkpoints.is_some() || keep.folder.is_some());
        let lanes = lanes(inputs, self.reading.cut(self.format), start.as_ref());
        let work = Work::new(task, lanes, sinks, seen, tally, exact_units, keep);
        if first {
            // The checkpoints of an earlier run end here.
            work.checkpoint(false)?;
        }
        let stop = work.run(&wakes, progress)?;
        // An input is replaced after all that can fail.
        if let (None, Some(mut report)) = (&stop, tests_report) {
            let Beside::Against(against) = mem::take(&mut work.seen.write().beside) else {
                return Err(Error::Worker);
            };
            let _reporting = match signals::at_once() {
                Ok(reporting) => reporting,
                Err(stop) => return stop.end(),
            };
            against.report(&mut |piece| report.write(piece))?;
            report.end()?;
        }
        if let (None, Some(replacement)) = (&stop, replacement) {
            if work.is_broken(&replacement.path) {
                return Err(Error::Broken { file: replacement.name.clone() });
            }
            replacement.publish()?;
        }
        signals::in_order();
        self.report(&work, stop, resumed, started)
    }

    /// Locks the state and its checkpoints, which must not be read as anything else.
    fn lock(&self, state: &Path, inputs: &[Input]) -> Result<Lock, Error> {
        let besides: Vec<Origin> = self.besides().map(Origin::of).collect();
        let checkpoints = files::checkpoints_of(state);
        for path in [state, &checkpoints] {
            files::check_target(path, inputs.iter().map(|input| &input.origin).chain(&besides))?;
        }
        let lock = Lock::of(state, self.options.wait)?;
        leftovers::own(&checkpoints);
        Ok(lock)
    }

    /// Tells what there is to know at the end. Returns the exit code.
    fn report(&self, work: &Work, stop: Option<Stop>, resumed: bool, started: Instant) -> Result<u8, Error> {
        let mut seen = work.seen.write();
        // A server that failed would be waited for once more.
        let mut alive = !matches!(stop, Some(Stop::After(_)));
        let stop = match (stop, signals::first()) {
            // A server that did not answer is not waited for then. What it left in doubt is told below.
            (Some(Stop::After(Error::Shared { .. })), Some(signal)) => Some(Stop::Signal(signal)),
            (None, _) => {
                let checked = seen.set.shared().map_or(Ok(true), |set| set.check());
                alive = matches!(checked, Ok(true));
                checked.err().map(Stop::After)
            }
            (stop, _) => stop,
        };
        let tally = locked(&work.tally);
        if let Some(set) = seen.set.shared() {
            tally.warn(set.warnings());
            let excess = if alive { set.excess() } else { None };
            excess.iter().for_each(|excess| warn(excess));
        }
        if let What::Document(rule, _) = &self.what {
            tally.tell_wrong(rule.units());
        }
        if let Some(format) = self.options.stats {
            if alive {
                // All lines are done: a server that fails by now costs its own figures alone.
                _ = seen.set.refresh();
            }
            let exact_units = work.exact_units.as_ref().map(|exact| locked(exact).wrong);
            let file = self.frozen.as_deref().or(self.options.state.as_deref());
            let mut figures = report::of_run(&seen, &tally, &self.what, self.print, exact_units);
            if resumed {
                figures.both("resumed", "these are the figures since the checkpoint", "resumed", true);
            }
            report::add_state_and_speed(&mut figures, &seen.set, &tally, self.sample, file, started.elapsed())?;
            print(&figures.format(format));
        }
        // A signal may have cut the statistics short.
        stop.or(signals::first().map(Stop::Signal)).map_or(Ok(tally.exit_code()), Stop::end)
    }
}

/// What a run begins with.
struct Begun {
    seen: Seen,
    tally: Tally,
    sinks: Vec<Sink>,
    keep: Keep,
    /// The checkpoint to go on at.
    start: Option<Checkpoint>,
    /// The new contents of the output, if that is also an input.
    replacement: Option<Replacement>,
    /// What tells of groups.
    reports: Reported,
}

/// Saves the state as it is before the first line, and that nothing is done.
fn save_start(keep: &Keep, seen: &Seen, tally: &Tally, inputs: usize) -> Result<(), Error> {
    let (Some(state), Some(checkpoints)) = (&keep.state, &keep.checkpoints) else { return Ok(()) };
    let shards = if keep.folder.is_some() { vec![Mark::default(); inputs] } else { Vec::new() };
    let (ones, memory, room) = (seen.set.ones(), seen.set.memory_bytes(), tally.room());
    locked(checkpoints).add(Checkpoint { ones, memory, room, shards, ..Checkpoint::default() }, false)?;
    seen.set.save(state)
}
