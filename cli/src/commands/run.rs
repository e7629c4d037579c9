//! `bloomline dedup` and `bloomline corpus`: what the inputs have goes through a set, and what is new to it to the outputs.

use crate::commands::against::{self, Tests};
use crate::commands::groups::{Grouping, Reported, Targets};
use crate::commands::kinds;
use crate::commands::pass::Pass;
use crate::documents::exact::ExactUnits;
use crate::encode::Compression;
use crate::engine::checkpoint::{Checkpoint, Checkpoints, Job, Mark};
use crate::engine::folder::{Folder, OutputPath};
use crate::engine::lane::lanes;
use crate::engine::sink::{Print, Sink};
use crate::engine::wakes::{self, Wake};
use crate::engine::work::{Act, Keep, Task, Work};
use crate::error::{Error, Stop};
use crate::files::{self, Identity, Origin, is_standard};
use crate::groups::choice::Choice;
use crate::groups::decisions::{Printed, Which};
use crate::groups::near::Collecting;
use crate::groups::values::Wanted as Values;
use crate::input::estimate::Sampled;
use crate::input::inputs::{Input, Inputs};
use crate::input::lines::{Before, Hashing, What};
use crate::input::split::LineFormat;
use crate::leftovers;
use crate::lock::Lock;
use crate::messages::{print, warn};
use crate::options::corpus::CorpusOptions;
use crate::options::{DedupOptions, ReadOptions, RunOptions, SharedOptions, SharedWriteOptions, SizeOptions};
use crate::output::{Target, locked};
use crate::progress::Progress;
use crate::replace::{self, Replaced, Replacement};
use crate::report;
use crate::seen::exact;
use crate::seen::repeats::{Repeats, Selection};
use crate::seen::shared::Address;
use crate::seen::sizing::{self, New};
use crate::seen::tally::{Limit, Tally};
use crate::seen::{KeySet, Seen, SharedSeen};
use crate::signals;
use crate::values::OnError;
use crossbeam_channel::Receiver;
use std::collections::HashMap;
use std::fs::File;
use std::iter;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// What to do instead of losing the outputs of an interrupted run.
const CONTINUE: &str = "continue that run with --resume, ";

/// Why nothing is resumed.
const NOTHING_LEFT: &str = "no run with this state was cut off, so if one wrote it, nothing is left to do; else ";

/// A run, as its options ask for it.
pub struct Run {
    pub reading: ReadOptions,
    pub size: SizeOptions,
    pub options: RunOptions,
    /// What a line is, and what of it is hashed.
    pub format: LineFormat,
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
    /// What is selected by how often lines come, if the inputs are read twice for that.
    pub selection: Option<Selection>,
    /// What becomes of equal lines or documents, if all have to be known for that.
    pub grouping: Option<Grouping>,
    /// Whether units that go by mistake are counted.
    pub exact_units: bool,
    /// Keys to measure the rate with.
    pub sample: Option<u64>,
    /// How often statistics are printed meanwhile.
    pub stats_every: Option<Duration>,
    pub print: Print,
    /// The file that dropped lines go to, if they go anywhere; "-" is standard output.
    pub dupes: Option<PathBuf>,
}

impl Run {
    /// Of lines.
    pub fn of_dedup(options: DedupOptions) -> Self {
        let selection = selection(&options);
        let DedupOptions {
            reading,
            key,
            size,
            shared,
            writing,
            mut run,
            dupes,
            invert,
            total,
            verify,
            stats_every,
            groups,
            ..
        } = options;
        let which = selection.map_or(Which::All, |selection| selection.which);
        let printed = Printed { which, counted: options.count };
        let grouping = groups.given().map(|_| Grouping::new(groups, printed, None));
        let selection = selection.filter(|_| grouping.is_none());
        let before = match (options.annotate, options.count) {
            (true, _) => Before::Mark,
            (_, true) => Before::Count,
            _ => Before::Nothing,
        };
        // Which copy of a line is the first one depends on it.
        run.in_order |= selection.is_some() || grouping.is_some();
        let exact = (options.exact || selection.is_some()) && grouping.is_none();
        let second = (exact || grouping.is_some()).then(|| exact::second_hasher(size.seed()));
        Self {
            format: key.format(reading.end()),
            what: What::Key(key.rule(), second),
            key_name: String::new(),
            description: String::new(),
            nulls: key.nulls.treated(),
            keys: "lines",
            wanted: "key",
            server: shared.server.redis.is_some().then_some((shared, writing)),
            frozen: None,
            against: None,
            exact,
            selection,
            grouping,
            exact_units: false,
            sample: verify,
            stats_every,
            print: Print { wanted: !invert, before, total, wish: run.output.of_rows() },
            dupes,
            reading,
            size,
            options: run,
        }
    }

    /// Of documents.
    pub fn of_corpus(options: CorpusOptions) -> Self {
        let mut rule = options.rule();
        let frozen = options.frozen().map(Path::to_owned);
        let asks_for_groups = options.asks_for_groups().is_some();
        let CorpusOptions { reading, size, mut run, verify, groups, count, near, against, report, .. } = options;
        let against = (!against.is_empty()).then(|| Tests::new(against, report, groups.id.clone()));
        let printed = Printed { which: Which::All, counted: count };
        let grouping = asks_for_groups.then(|| Grouping::new(groups, printed, rule.near.zip(near)));
        rule.second = grouping.as_ref().map(|_| exact::second_hasher(size.seed()));
        run.in_order |= grouping.is_some();
        let before = if count { Before::Member } else { Before::Nothing };
        Self {
            key_name: rule.name(),
            description: rule.description(),
            nulls: OnError::Fail,
            keys: rule.keys(),
            wanted: "text",
            server: None,
            frozen,
            against,
            exact: false,
            selection: None,
            grouping,
            exact_units: verify,
            sample: None,
            stats_every: None,
            print: Print { wanted: true, before, total: false, wish: run.output.of_rows() },
            dupes: None,
            format: LineFormat::plain(reading.end()),
            what: What::Document(rule, reading.on_error),
            reading,
            size,
            options: run,
        }
    }

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

    /// The files of its filter.
    fn filters(&self) -> Vec<PathBuf> {
        let state = self.options.state.iter().flat_map(|state| files::of_filter(state));
        let tests = self.against.iter().flat_map(|tests| tests.files.iter().cloned());
        state.chain(self.frozen.clone()).chain(tests).collect()
    }

    /// The files besides inputs and outputs: those of filters and tests, the list of inputs, the manifest.
    fn own(&self) -> Vec<Origin> {
        let (filters, manifest) = (self.filters(), &self.options.manifest);
        let named = self.reading.list().into_iter().chain(manifest.as_deref());
        filters.iter().map(PathBuf::as_path).chain(named).map(Origin::of).collect()
    }

    /// What is no input where a directory has it: the state, the folder of outputs, and files that this run continues, or empties
    /// only if that is asked for. Other files that it would empty may be somebody's inputs, and are refused.
    fn no_inputs(&self) -> Vec<PathBuf> {
        let RunOptions { resume, force, state, manifest, output_dir, .. } = &self.options;
        let safe = *resume || *force || state.as_deref().is_some_and(Path::exists);
        let outputs = self.outputs().map(Path::to_owned).chain(manifest.clone()).filter(|_| safe);
        self.filters().into_iter().chain(outputs).chain(output_dir.clone()).collect()
    }

    /// Runs it.
    pub fn run(mut self) -> Result<u8, Error> {
        let started = Instant::now();
        let go_on = self.reading.on_error != OnError::Fail;
        let tests = self.against.as_mut().map(|tests| tests.find(&self.reading)).transpose()?;
        let mut inputs = Inputs::check(&self.reading.named(), &self.no_inputs(), go_on)?;
        if self.options.in_place {
            // What a killed run left.
            inputs.found.retain(|input| !replace::is_part(&input.path));
        }
        kinds::check_format(&[&inputs], self.format, self.what.rule())?;
        if let What::Key(rule, _) = &mut self.what {
            *rule = kinds::rule(&[&inputs], rule.clone())?;
            (self.key_name, self.description) = (rule.name(), rule.name());
        }
        if self.options.output_dir.is_none() && !self.options.in_place && !self.print.total {
            kinds::check_one(&inputs)?;
        }
        let of_tests = self.against.as_ref().map_or_else(Values::default, Tests::values);
        let values = self.grouping.as_ref().map_or_else(|| of_tests.clone(), Grouping::values);
        let pointers = values.pointers();
        kinds::check_first_table(&inputs, self.what.of_rows(), &pointers, self.print.wish, self.reading.on_error)?;
        let state = self.options.state.as_deref();
        let _lock = state.map(|state| lock(state, self.options.wait, &inputs.found)).transpose()?;
        let mut searching = None;
        if let (Some(against), Some(tests), What::Document(rule, _)) = (&self.against, tests, &self.what) {
            let wakes = wakes::receive(None, None)?;
            let (mut built, left_out) =
                match against.build(tests, rule, &self.reading, &self.size, &self.options, &wakes)? {
                    Ok(built) => built,
                    Err(stop) => return stop.end(),
                };
            built.search(against::names(&inputs));
            searching = Some((built, left_out, wakes));
        }
        let Begun { mut seen, mut tally, sinks, keep, start, replacement, mut reports } = self.begin(&inputs)?;
        let tests_report = reports.tests.take();
        let in_order = !self.options.is_side_by_side();
        match tally.limit.as_ref().filter(|limit| limit.stop) {
            Some(_) if !in_order => return Err(Error::StopSideBySide),
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
                seen.against = Some(against);
                wakes
            }
            None => wakes::receive(self.options.checkpoint_every(), undone)?,
        };
        let meter = seen.set.shared().map(|set| set.meter(self.stats_every));
        let is_decided =
            self.grouping.is_some() && start.as_ref().is_none_or(|start| !start.is_end(inputs.found.len()));
        let again = match (&self.grouping, self.selection) {
            (Some(grouping), _) if is_decided => {
                if start.is_none() {
                    // A run that is killed begins again from here, for what it knows of groups is lost.
                    save_start(&keep, &seen, &tally, inputs.found.len())?;
                }
                self.group(grouping, inputs, seen, tally, &wakes, reports)?
            }
            (None, Some(selection)) => self.count(selection, inputs, seen, tally, &wakes)?,
            _ => Ok((inputs, SharedSeen::new(seen), tally)),
        };
        let (inputs, seen, tally) = match again {
            Ok(again) => again,
            Err(stop) => return stop.end(),
        };
        let to_stdout = self.options.prints_to_standard_output() && !self.print.total;
        let progress = Progress::new(&inputs.found, inputs.read.clone(), self.options.quiet, to_stdout);
        let progress = progress.of_shared(meter, self.options.stats);
        let hasher = seen.look().set.hasher().clone();
        let task = Task {
            threads: self.reading.threads(),
            hashing: Hashing {
                format: self.format,
                hasher,
                what: self.what.clone(),
                nulls: self.nulls,
                values: of_tests,
                decided: self.grouping.is_some(),
            },
            on_error: self.reading.on_error,
            act: match self.selection {
                Some(_) => Act::Recall,
                None if self.grouping.is_some() => Act::Decided,
                None if in_order => Act::InsertInOrder,
                None => Act::Insert,
            },
            print: self.print,
            ahead: self.reading.ahead(),
        };
        let exact_units = match &self.what {
            What::Document(rule, _) if self.exact_units => Some(ExactUnits::new(rule.text.clone())),
            _ => None,
        };
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
            let against = work.seen.write().against.take().ok_or(Error::Worker)?;
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
        self.report(&work, stop, started)
    }

    /// Reads the inputs for the first time, and counts the lines that repeat. Returns what is known then, and the inputs to read
    /// again, with their tally; or why nothing is to be printed.
    fn count(
        &self,
        selection: Selection,
        inputs: Inputs,
        mut seen: Seen,
        tally: Tally,
        wakes: &Receiver<Wake>,
    ) -> Result<Result<(Inputs, SharedSeen, Tally), Stop>, Error> {
        let (inputs, mut again) = inputs.twice().map_err(|source| Error::Twice { source })?;
        seen.repeats = Some(Repeats::new(selection));
        let (what, wakes) = (self.what.clone(), wakes.clone());
        let (reading, format, nulls, wish) = (&self.reading, self.format, self.nulls, self.print.wish);
        let values = Values::default();
        let pass = Pass { reading, format, what, nulls, values, quiet: self.options.quiet, wish, wakes };
        let (work, stop) = pass.insert(inputs, seen, tally)?;
        if let Some(stop) = stop.or_else(|| signals::first().map(Stop::Signal)) {
            return Ok(Err(stop));
        }
        again.measure().map_err(|source| Error::Twice { source })?;
        let mut seen = work.seen.write();
        seen.repeats.iter_mut().for_each(Repeats::turn);
        // Its files are not needed any more.
        let disk_bytes = seen.exact.take().map_or(0, |exact| exact.disk_bytes());
        let tally = locked(&work.tally).again(disk_bytes);
        Ok(Ok((again, work.seen.clone(), tally)))
    }

    /// Reads the inputs for the first time, finds groups and tells of them. Returns what is known then, and the inputs to read again, with
    /// their tally; or why nothing is to be printed.
    fn group(
        &self,
        grouping: &Grouping,
        inputs: Inputs,
        seen: Seen,
        tally: Tally,
        wakes: &Receiver<Wake>,
        reports: Reported,
    ) -> Result<Result<(Inputs, SharedSeen, Tally), Stop>, Error> {
        let stamps = inputs.stamps();
        let (inputs, mut again) = inputs.twice().map_err(|source| Error::Twice { source })?;
        let (what, wakes, values) = (self.what.clone(), wakes.clone(), grouping.values());
        let (reading, format, nulls, wish) = (&self.reading, self.format, self.nulls, self.print.wish);
        let pass = Pass { reading, format, what, nulls, values, quiet: self.options.quiet, wish, wakes };
        let (work, stop) = pass.insert(inputs, seen, tally)?;
        if let Some(stop) = stop.or_else(|| signals::first().map(Stop::Signal)) {
            return Ok(Err(stop));
        }
        again.measure().map_err(|source| Error::Twice { source })?;
        let mut records = work.seen.write().records.take().ok_or(Error::Worker)?;
        let (mut clusters, mut disk_bytes) = (None, 0);
        if let (Some(bands), Some(threshold)) = (records.bands.take(), grouping.threshold()) {
            let (inputs, third) = again.twice().map_err(|source| Error::Twice { source })?;
            again = third;
            let involved = bands.involved(records.had)?;
            work.seen.write().collecting = Some(Collecting::new(involved, records.places.clone()));
            let tally = locked(&work.tally).again(0);
            let stop = pass.collect(inputs, work.seen.clone(), tally)?;
            if let Some(stop) = stop.or_else(|| signals::first().map(Stop::Signal)) {
                return Ok(Err(stop));
            }
            let collected = work.seen.write().collecting.take().ok_or(Error::Worker)?;
            let involved = collected.end()?;
            disk_bytes = involved.disk_bytes();
            clusters = Some(involved.verified(threshold)?);
        }
        let mut seen = work.seen.write();
        let grouped = grouping.decide(records, clusters, reports)?;
        let mut tally = locked(&work.tally);
        tally.counts.unique = grouped.distinct;
        let tally = tally.again(grouped.disk_bytes + disk_bytes);
        (seen.decided, seen.groups, seen.stamps) = (Some(grouped.decided), grouped.groups, stamps);
        Ok(Ok((again, work.seen.clone(), tally)))
    }

    /// Tells what there is to know at the end. Returns the exit code.
    fn report(&self, work: &Work, stop: Option<Stop>, started: Instant) -> Result<u8, Error> {
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
            let mut figures = report::of_run(&seen, &tally, &self.what, exact_units);
            report::add_state_and_speed(&mut figures, &seen.set, &tally, self.sample, file, started.elapsed())?;
            print(&figures.format(format));
        }
        // A signal may have cut the statistics short.
        stop.or(signals::first().map(Stop::Signal)).map_or(Ok(tally.exit_code()), Stop::end)
    }

    /// Opens what is written, and the set. All that can fail comes before an output is emptied, and before the first line is claimed
    /// of a shared set.
    fn begin(&self, inputs: &Inputs) -> Result<Begun, Error> {
        if self.options.resume && !self.can_resume(&inputs.found) {
            return Err(Error::ResumeStream);
        }
        match &self.options.output_dir {
            Some(path) => self.begin_folder(path, inputs),
            None if self.options.in_place => self.begin_in_place(&inputs.found),
            None => self.begin_files(inputs),
        }
    }

    /// Whether all inputs can be read and all outputs written from the middle.
    fn can_resume(&self, inputs: &[Input]) -> bool {
        let is_file = |path: &Path| !is_standard(path) && path.metadata().map_or(true, |metadata| metadata.is_file());
        let is_named = |input: &Input| input.size.is_some() && !is_standard(&input.path);
        inputs.iter().all(is_named)
            && !self.print.total
            && (self.options.output_dir.is_some() || self.options.output.file().is_some_and(is_file))
            && self.dupes.as_deref().into_iter().chain(self.reports()).all(is_file)
    }

    /// What has to be the same when the run goes on.
    fn job(&self, inputs: &[Input]) -> Job {
        let flags = [
            (self.format.end == 0, ", NUL-terminated"),
            (self.format.header, ", after a header"),
            (self.format.skip_blank, ", not blank"),
            (!self.print.wanted, ", inverted"),
            (self.print.before == Before::Mark, ", annotated"),
            (self.options.is_side_by_side(), ", side by side"),
            (self.nulls == OnError::Keep, ", nulls kept"),
            (self.nulls == OnError::Skip, ", nulls left out"),
            (self.print.wish.filter, ", with filters"),
        ];
        let flags = flags.iter().filter(|(given, _)| *given).map(|(_, name)| (*name).to_owned());
        let flags =
            flags.chain(self.options.output.compress.map(|compression| format!(", compressed as {compression}")));
        let grouping = self.grouping.as_ref().map(Grouping::description);
        let flags = flags.chain(grouping);
        let options = flags.fold(self.description.clone(), |options, flag| options + &flag);
        let outputs = self.outputs().chain(self.options.output_dir.as_deref());
        Job::new(inputs, outputs, options, self.reading.on_error)
    }

    /// What outlives the run: the state.
    fn keep(&self) -> Keep {
        let RunOptions { state, shrink, checkpoint, .. } = &self.options;
        let at_end = self.grouping.is_some();
        // Who asks for an interval gets it, as long as lines get half of the time.
        let rest = if checkpoint.is_some() { 1 } else { 50 };
        Keep { state: state.clone(), shrink: *shrink, at_end, rest, ..Keep::default() }
    }

    /// With one output, and perhaps a file for what is dropped.
    fn begin_files(&self, all: &Inputs) -> Result<Begun, Error> {
        let inputs = &all.found[..];
        let (kept, dropped, reports) = self.targets(inputs, self.options.output.of_lines(all))?;
        let targets: Vec<&Target> = kept.opened().into_iter().chain(&dropped).chain(reports.iter()).collect();
        let full = targets.into_iter().find(|target| target.is_full());
        let full = full.map(|target| target.origin.name().to_owned()).filter(|_| !self.options.force);
        // Lines that this run would not print again, since they are known.
        let lost = |known: &str, resume| match &full {
            Some(output) => Err(Error::Emptied { output: output.clone(), known: known.to_owned(), resume }),
            None => Ok(()),
        };
        if self.server.is_some() {
            lost("the shared filter", "")?;
        }
        let (seen, mut tally) = self.seen(inputs)?;
        let mut keep = self.keep();
        let mut start = None;
        if let Some(state) = &self.options.state {
            let mut checkpoints = Checkpoints::new(state, self.job(inputs))?;
            let known = format!("the state {state:?}");
            match (state.exists(), self.options.resume) {
                (true, true) => {
                    start = checkpoints.find(&seen.set)?;
                    start.as_ref().map_or_else(|| lost(&known, NOTHING_LEFT), |_| Ok(()))?;
                }
                (true, false) => lost(&known, if checkpoints.is_interrupted(&seen.set) { CONTINUE } else { "" })?,
                // Without a state no checkpoint was reached, and nothing was printed.
                (false, true) => {
                    if let Some(output) = full {
                        return Err(Error::NoState { state: state.into(), output });
                    }
                }
                (false, false) => lost(&known, "")?,
            }
            keep.checkpoints = Some(Mutex::new(checkpoints));
        }
        let (input, output, dupes) = start.as_ref().map_or((0, 0, 0), |at| (at.input, at.output, at.dupes));
        let tables = start.as_ref().map_or((None, None), |at| (at.output_table.as_ref(), at.dupes_table.as_ref()));
        tally.resume(start.as_ref().and_then(|start| start.room));
        // Before anything is cut off the first.
        dropped.iter().try_for_each(|target| target.check_length(dupes))?;
        let (kept, replacement) = match kept {
            Kept::Opened(target) => (target.begin(output, tables.0)?, None),
            Kept::Replaced(replaced) => replaced.begin().map(|(replacement, output)| (output, Some(replacement)))?,
        };
        let dropped = dropped.map(|target| target.begin(dupes, tables.1)).transpose()?;
        let sinks = vec![Sink::new(input, Some(kept), dropped)];
        let reports = begin_reports(reports, start.as_ref(), inputs.len())?;
        Ok(Begun { seen, tally, sinks, keep, start, replacement, reports })
    }

    /// The output, if it is also an input: all its lines are to be read, and what stays of them takes their place. Files that are found
    /// in directories are no outputs.
    fn replaced(&self, inputs: &[Input], own: &[Origin]) -> Result<Option<Replaced>, Error> {
        let Some((path, output)) = self.options.output.file().map(|path| (path, Origin::of(path))) else {
            return Ok(None);
        };
        let is_output = |path: &&PathBuf| !is_standard(path) && Origin::of(path).identity() == output.identity();
        let named = self.reading.files.iter().filter(|_| output.is_regular()).find(is_output);
        // Of each line a copy stays, as it is.
        let Print { wanted, before, total, .. } = self.print;
        let all = wanted && before == Before::Nothing && !total;
        let which = self.selection.map(|selection| selection.which).or(self.grouping.as_ref().map(Grouping::which));
        let all = all && which.is_none_or(|which| matches!(which, Which::All));
        let Some(named) = named.filter(|_| all) else { return Ok(None) };
        if self.options.state.is_some() || self.server.is_some() {
            return Err(Error::KnownAgain { output: files::name(path) });
        }
        output.check_apart(own, [])?;
        // One that is left out, since it cannot be read, would be lost.
        let input = inputs.iter().find(|input| input.origin.identity() == output.identity());
        let lost = || Error::Overwrite { input: files::name(named), output: files::name(path) };
        let input = input.ok_or_else(lost)?;
        Replaced::of(path, input, self.options.output.compress.filter(|_| !input.is_table)).map(Some)
    }

    /// Opens the outputs. None of them may be the state or the other one, or an input that it does not replace.
    fn targets(
        &self,
        inputs: &[Input],
        compress: Option<Compression>,
    ) -> Result<(Kept, Option<Target>, Targets), Error> {
        let own = self.own();
        let taken = || inputs.iter().map(|input| &input.origin).chain(&own);
        let kept = match self.replaced(inputs, &own)? {
            Some(replaced) => Kept::Replaced(replaced),
            None => Kept::Opened(Target::open(self.options.output.file(), compress, taken(), [])?),
        };
        let written = || kept.opened().map(|target| &target.origin);
        let dropped = self.dupes.as_ref().map(|path| Target::open(Some(path), compress, taken(), written()));
        let dropped = dropped.transpose()?;
        let written: Vec<_> = written().into_iter().chain(dropped.as_ref().map(|target| &target.origin)).collect();
        let reports = self.report_targets(inputs, &written)?;
        if self.options.state.is_some() {
            // A crash must not leave a state that knows of an output which the folder does not.
            for path in self.outputs() {
                let synced = File::open(files::folder(path)).and_then(|folder| folder.sync_all());
                synced.map_err(|source| Error::Create { output: files::name(path), source })?;
            }
        }
        Ok((kept, dropped, reports))
    }

    /// Opens the files that tell of groups. The other outputs are open.
    fn report_targets(&self, inputs: &[Input], written: &[&Origin]) -> Result<Targets, Error> {
        let (own, written) = (self.own(), written.iter().copied());
        let read = inputs.iter().map(|input| &input.origin).chain(&own);
        let report = self.against.as_ref().and_then(|tests| tests.report.as_deref());
        let targets = match (report, &self.grouping) {
            (Some(report), _) => Target::open(Some(report), None, read, written).map(Targets::of_tests),
            (None, Some(grouping)) => grouping.targets(read, written),
            (None, None) => Ok(Targets::default()),
        }?;
        // A state that is not there yet is told from the outputs by where they are.
        let outputs: Vec<Origin> = self.outputs().map(Origin::of).collect();
        let RunOptions { state, manifest, .. } = &self.options;
        let saved = state.iter().flat_map(|state| files::of_filter(state)).chain(manifest.clone());
        saved.into_iter().try_for_each(|saved| files::check_target(&saved, &outputs))?;
        Ok(targets)
    }

    /// With what stays of each input in its place.
    fn begin_in_place(&self, inputs: &[Input]) -> Result<Begun, Error> {
        let list = self.reading.list().map(Origin::of);
        let mut known: HashMap<Identity, &Input> = HashMap::new();
        let mut sinks = Vec::new();
        let compress = self.options.output.compress;
        let annotates = matches!(&self.what, What::Document(rule, _) if rule.annotate);
        for (lane, input) in inputs.iter().enumerate() {
            let replaced = Replaced::of(&input.path, input, compress.filter(|_| !input.is_table))?;
            input.origin.check_apart(&list, [])?;
            // The second time all its lines would be repeats.
            if let Some(first) = input.origin.identity().and_then(|identity| known.insert(identity, input)) {
                let (first, second) = (first.origin.name().to_owned(), input.origin.name().to_owned());
                return Err(Error::Same { first, second });
            }
            sinks.push(Sink::in_place(lane, replaced, annotates || compress.is_some()));
        }
        let reports = self.report_targets(inputs, &[])?;
        let (seen, tally) = self.seen(inputs)?;
        let (keep, reports) = (Keep::default(), reports.begin()?);
        Ok(Begun { seen, tally, sinks, keep, start: None, replacement: None, reports })
    }

    /// With an output for each input, in a folder. Nothing is lost but an output that is shorter than it was.
    fn begin_folder(&self, path: &Path, inputs: &Inputs) -> Result<Begun, Error> {
        let RunOptions { state, manifest, force, resume, output, .. } = &self.options;
        let mut own: Vec<PathBuf> = self.filters().into_iter().chain(self.reading.list().map(Path::to_owned)).collect();
        if let Some(manifest) = manifest {
            files::check_target(manifest, inputs.found.iter().map(|input| &input.origin))?;
            if files::is_standard(manifest) {
                return Err(Error::NotRegular { output: files::name(manifest) });
            }
            let real = files::real(manifest);
            if let Some(same) = own.iter().find(|own| files::real(own) == real) {
                return Err(Error::Overwrite { input: files::name(same), output: files::name(manifest) });
            }
            own.push(manifest.clone());
        }
        own.extend(self.reports().map(Path::to_owned));
        let folder = Folder::open(path, inputs, output.compress, &own)?;
        let reports = self.report_targets(&inputs.found, &[])?;
        // What a killed run left of it.
        manifest.iter().for_each(|manifest| leftovers::own(manifest));
        let (seen, mut tally) = self.seen(&inputs.found)?;
        let (mut checkpoints, mut start, mut advice) = (None, None, "");
        if let Some(state) = state {
            let mut earlier = Checkpoints::new(state, self.job(&inputs.found))?;
            match (state.exists(), *resume) {
                (true, true) => {
                    start = earlier.find(&seen.set)?;
                    advice = NOTHING_LEFT;
                }
                (true, false) if earlier.is_interrupted(&seen.set) => advice = CONTINUE,
                _ => {}
            }
            checkpoints = Some(Mutex::new(earlier));
        }
        tally.resume(start.as_ref().and_then(|start| start.room));
        let marks = start.iter().flat_map(|start| start.shards.iter().cloned()).chain(iter::repeat_with(Mark::default));
        let outputs: Vec<(OutputPath, Mark)> = folder.outputs.iter().cloned().zip(marks).collect();
        if let Some(full) =
            reports.iter().find(|target| target.is_full() && state.is_some() && !*force && start.is_none())
        {
            let (output, known) =
                (full.origin.name().to_owned(), format!("the state {:?}", state.as_deref().unwrap_or(path)));
            return Err(Error::Emptied { output, known, resume: advice });
        }
        if !*force {
            outputs.iter().try_for_each(|(output, mark)| output.check(mark, start.is_some(), advice))?;
        }
        outputs.iter().try_for_each(|(output, mark)| output.clear(mark))?;
        let outputs = outputs.into_iter().enumerate();
        let sinks = outputs.map(|(lane, (output, mark))| Sink::of_lane(lane, output, &mark)).collect();
        let keep = Keep { checkpoints, folder: Some(folder), manifest: manifest.clone(), ..self.keep() };
        let reports = begin_reports(reports, start.as_ref(), inputs.found.len())?;
        Ok(Begun { seen, tally, sinks, keep, start, replacement: None, reports })
    }

    /// What was seen before the first line, and the tally.
    fn seen(&self, inputs: &[Input]) -> Result<(Seen, Tally), Error> {
        let (set, limit) = self.set(inputs)?;
        let tally = Tally::new(&set, limit, self.keys, self.wanted, self.options.quiet);
        tally.warn(set.shared().and_then(|set| set.danger()));
        let mut seen = Seen::new(set);
        if let Some(grouping) = &self.grouping {
            let had = seen.set.ones() > 0;
            seen.records = Some(grouping.records(inputs, had)?);
        }
        Ok((if self.exact { seen.with_exact()? } else { seen }, tally))
    }

    /// The set: the one on a server, that of the state, or a new one. And when it is full.
    fn set(&self, inputs: &[Input]) -> Result<(KeySet, Option<Limit>), Error> {
        let RunOptions { growth, quiet, state, resume, .. } = &self.options;
        if let Some((shared, writing)) = &self.server
            && let Some(address) = Address::of(shared)?
        {
            return Ok((sizing::of_server(&self.size, writing, self.options.stats.is_some(), &address)?, None));
        }
        if let Some(set) = self.against.as_ref().and_then(|tests| tests.set.take()) {
            return Ok((set, None));
        }
        if let Some(filter) = &self.frozen {
            return Ok((KeySet::load_for(filter, &self.key_name)?, None));
        }
        if let Some(state) = state.as_deref().filter(|state| state.exists()) {
            let set = KeySet::load_for(state, &self.key_name)?;
            let limit = sizing::limit_of_state(&self.size, growth, *resume, state, &set)?;
            return Ok((set, limit));
        }
        let sampled = match &self.what {
            What::Key(..) => Sampled::Lines,
            What::Document(rule, _) => Sampled::Documents(rule.clone()),
        };
        let (size, key_name, keys, keep, quiet) = (&self.size, &*self.key_name, self.keys, state.is_some(), *quiet);
        New { size, growth, keep, key_name, keys, quiet }.of_inputs(inputs, &self.reading, &sampled)
    }
}

/// What is selected by how often lines come, where that is asked for.
fn selection(options: &DedupOptions) -> Option<Selection> {
    let which = match (options.repeated, options.unique) {
        (true, _) => Which::Repeated,
        (_, true) => Which::Unique,
        _ => Which::All,
    };
    let (last, counted) = (options.groups.keep == Choice::Last, options.count);
    options.reads_twice().is_some().then_some(Selection { which, last, counted })
}

/// Where lines go to.
enum Kept {
    Opened(Target),
    /// An input, whose place they take.
    Replaced(Replaced),
}

impl Kept {
    fn opened(&self) -> Option<&Target> {
        if let Self::Opened(target) = self { Some(target) } else { None }
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

/// Begins what tells of groups, unless a run did that is to go on and was cut off when all of it was done.
fn begin_reports(reports: Targets, start: Option<&Checkpoint>, inputs: usize) -> Result<Reported, Error> {
    let is_done = start.is_some_and(|start| start.is_end(inputs));
    if is_done { Ok(Reported::default()) } else { reports.begin() }
}

/// Saves the state as it is before the first line, and that nothing is done.
fn save_start(keep: &Keep, seen: &Seen, tally: &Tally, inputs: usize) -> Result<(), Error> {
    let (Some(state), Some(checkpoints)) = (&keep.state, &keep.checkpoints) else { return Ok(()) };
    let shards = if keep.folder.is_some() { vec![Mark::default(); inputs] } else { Vec::new() };
    let (ones, memory, room) = (seen.set.ones(), seen.set.memory_bytes(), tally.room());
    locked(checkpoints).add(Checkpoint { ones, memory, room, shards, ..Checkpoint::default() }, false)?;
    seen.set.save(state)
}

/// Locks the state and its checkpoints, which must be none of the inputs.
fn lock(state: &Path, wait: bool, inputs: &[Input]) -> Result<Lock, Error> {
    let checkpoints = files::checkpoints_of(state);
    for path in [state, &checkpoints] {
        files::check_target(path, inputs.iter().map(|input| &input.origin))?;
    }
    let lock = Lock::of(state, wait)?;
    leftovers::own(&checkpoints);
    Ok(lock)
}
