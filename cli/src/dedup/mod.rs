//! `bloomline dedup`: each distinct line once, in input order.

mod checkpoint;
mod folder;
mod ordered;
mod outputs;
mod shard;
mod side_by_side;
mod wakes;

use crate::cli::DedupOptions;
use crate::dedup::checkpoint::{Checkpoint, Checkpoints, Job};
use crate::dedup::folder::Folder;
use crate::dedup::outputs::{Outputs, Targets};
use crate::dedup::wakes::Wake;
use crate::error::{Error, Stop};
use crate::files;
use crate::leftovers;
use crate::lines::chunks::Chunks;
use crate::lines::input::{Input, Inputs};
use crate::lines::pipeline::{self, Event};
use crate::lines::position::Position;
use crate::lines::{Hashing, Lines};
use crate::lock::{self, Lock};
use crate::messages::print;
use crate::progress::Progress;
use crate::set::exact::Exact;
use crate::set::inserter::Inserter;
use crate::set::{KeySet, report, sizing};
use crate::signals;
use crate::values::OnError;
use bloomline::KeyHasher;
use crossbeam_channel::Receiver;
use std::env;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// What makes the second hash of a fingerprint another one than the first.
const SECOND: u64 = 0x9E37_79B9_7F4A_7C15;

/// What to do instead of losing the outputs of an interrupted run.
const CONTINUE: &str = "continue that run with --resume, ";

/// How often the lines of a shared set are made safe from a crash of the machine.
const SETTLING: Duration = Duration::from_secs(1);

/// Runs the command.
pub fn run(options: &DedupOptions) -> Result<ExitCode, Error> {
    let started = Instant::now();
    let inputs =
        Inputs::check(&options.reading.named(), &no_inputs(options), options.reading.on_error != OnError::Fail)?;
    let _lock = options.state.as_deref().map(|state| lock(options, state, &inputs.found)).transpose()?;
    let (mut inserter, stop) = match &options.output_dir {
        Some(folder) => side_by_side(options, inputs, folder)?,
        None => in_order(options, inputs)?,
    };
    signals::in_order();
    // A server that failed would be waited for once more.
    let alive = !matches!(stop, Some(Stop::After(_)));
    inserter.tell_shared(alive);
    if let Some(format) = options.stats {
        if alive {
            inserter.set.refresh()?;
        }
        print(&report::of_dedup(&inserter, options, started.elapsed())?.format(format));
    }
    // A signal may have cut the statistics short.
    stop.or(signals::first().map(Stop::Signal)).map_or(Ok(inserter.exit_code()), Stop::end)
}

/// Reads the inputs one after another. Returns what went in, and why it stopped before the end of the inputs.
fn in_order(options: &DedupOptions, inputs: Inputs) -> Result<(Inserter, Option<Stop>), Error> {
    let (mut work, start) = Work::new(options, &inputs.found)?;
    begin_counting(&mut work.inserter, &inputs, start.as_ref());
    let wakes = receive_wakes(options, &work.inserter.set)?;
    if work.checkpoints.is_some() && start.is_none() {
        // The checkpoints of an earlier run end here.
        work.checkpoint(false)?;
    }
    let stop = match work.read(inputs, &wakes) {
        Err(Stop::Failed(error)) => return Err(error),
        read => read.err(),
    };
    work.finish(stop.is_none())?;
    Ok((work.inserter, stop))
}

/// Reads the inputs side by side, each to an output of its own.
fn side_by_side(options: &DedupOptions, inputs: Inputs, folder: &Path) -> Result<(Inserter, Option<Stop>), Error> {
    if options.resume && !checkpoint::can_resume(options, &inputs.found) {
        return Err(Error::ResumeStream);
    }
    let own: Vec<PathBuf> = own_files(options).into_iter().chain(options.reading.files_from.clone()).collect();
    let folder = Folder::open(folder, &inputs, options.compress, &own)?;
    if let Some(manifest) = &options.manifest {
        files::check_target(manifest, inputs.found.iter().map(|input| &input.origin))?;
    }
    let mut inserter = sizing::of_dedup(options, &inputs.found)?;
    if inserter.limit.as_ref().is_some_and(|limit| limit.stop) {
        return Err(Error::StopSideBySide);
    }
    if options.exact {
        inserter.exact = Some(Exact::new(&env::temp_dir()).map_err(|source| Error::Exact { source })?);
    }
    let (mut checkpoints, mut start, mut resume) = (None, None, "");
    if let Some(state) = &options.state {
        let mut earlier = Checkpoints::new(state, Job::new(options, &inputs.found))?;
        match (state.exists(), options.resume) {
            (true, true) => start = Some(earlier.find(&inserter.set)?),
            (true, false) if earlier.is_interrupted(&inserter.set) => resume = CONTINUE,
            _ => {}
        }
        checkpoints = Some(earlier);
    }
    match &start {
        Some(start) => inserter.resume(start.room),
        None if options.force => {}
        None => folder.check_new(options.state.as_deref(), resume)?,
    }
    begin_counting(&mut inserter, &inputs, start.as_ref());
    let wakes = receive_wakes(options, &inserter.set)?;
    let progress = Progress::new(&inputs.found, inputs.read.clone(), options.quiet, false);
    let hashing = hashing(options, &inserter);
    let first = start.is_none();
    let work = side_by_side::Work::new(options, hashing, inserter, inputs, folder, checkpoints, start);
    if first {
        work.checkpoint(false)?;
    }
    let stop = match work.run(&wakes, progress) {
        // Lines of later chunks are claimed and not written. The state of the last checkpoint knows of none of them.
        Err(Stop::Failed(error) | Stop::After(error)) => return Err(error),
        run => run.err(),
    };
    work.checkpoint(stop.is_none())?;
    Ok((work.into_inserter(), stop))
}

/// Tells the user of what is known before the first line.
fn begin_counting(inserter: &mut Inserter, inputs: &Inputs, start: Option<&Checkpoint>) {
    inserter.begin();
    inputs.left_out.iter().for_each(|why| inserter.leave_out(why));
    let counts = &mut inserter.counts;
    counts.left_out = start.map_or(0, |start| start.left_out).max(counts.left_out);
}

/// Receives signals and the times of checkpoints from now on.
fn receive_wakes(options: &DedupOptions, set: &KeySet) -> Result<Receiver<Wake>, Error> {
    let unsaved = options.state.clone().map(|state| Error::Unsaved { state });
    wakes::receive(options.checkpoint, unsaved.or(set.is_shared().then_some(Error::UnprintedAtEnd)))
}

/// How the keys of lines are hashed.
fn hashing(options: &DedupOptions, inserter: &Inserter) -> Hashing {
    let second = options.exact.then(|| KeyHasher::new(options.size.seed() ^ SECOND));
    Hashing { second, ..options.reading.hashing(inserter.set.hasher()) }
}

/// A filter's file, and what stands beside it: its lock, and its checkpoints.
pub fn files_of(filter: &Path) -> [PathBuf; 3] {
    [filter.into(), lock::beside(filter), Checkpoints::beside(filter)]
}

/// The files that the run itself keeps.
fn own_files(options: &DedupOptions) -> Vec<PathBuf> {
    options.state.iter().flat_map(|state| files_of(state)).chain(options.manifest.clone()).collect()
}

/// What is no input where a directory has it: the state, the folder of outputs, and files that this run continues, or empties
/// only if that is asked for. Other files that it would empty may be somebody's inputs, and are refused.
fn no_inputs(options: &DedupOptions) -> Vec<PathBuf> {
    let safe = options.resume || options.force || options.state.as_deref().is_some_and(Path::exists);
    let outputs = options.outputs().map(Path::to_owned).chain(options.manifest.clone()).filter(|_| safe);
    let state = options.state.iter().flat_map(|state| files_of(state));
    state.chain(outputs).chain(options.output_dir.clone()).collect()
}

/// Locks the state and its checkpoints, which must be none of the inputs.
fn lock(options: &DedupOptions, state: &Path, inputs: &[Input]) -> Result<Lock, Error> {
    let checkpoints = Checkpoints::beside(state);
    for path in [state, &checkpoints] {
        files::check_target(path, inputs.iter().map(|input| &input.origin))?;
    }
    let lock = Lock::of(state, options.wait)?;
    leftovers::own(&checkpoints);
    Ok(lock)
}

/// Refuses outputs that hold lines which this run would not print again, since they are known.
fn check_full(options: &DedupOptions, targets: &Targets, known: &str, resume: &'static str) -> Result<(), Error> {
    match targets.full().filter(|_| !options.force) {
        Some(output) => Err(Error::Emptied { output: output.to_owned(), known: known.to_owned(), resume }),
        None => Ok(()),
    }
}

/// The checkpoints to come, and the one to go on at.
fn begin(
    options: &DedupOptions,
    state: &Path,
    inputs: &[Input],
    targets: &Targets,
    inserter: &mut Inserter,
) -> Result<(Option<Checkpoints>, Option<Checkpoint>), Error> {
    let mut checkpoints = Checkpoints::new(state, Job::new(options, inputs))?;
    match (state.exists(), options.resume) {
        (true, true) => {
            let checkpoint = checkpoints.find(&inserter.set)?;
            inserter.resume(checkpoint.room);
            return Ok((Some(checkpoints), Some(checkpoint)));
        }
        (true, false) => {
            let interrupted = checkpoints.is_interrupted(&inserter.set);
            let resume = if interrupted { CONTINUE } else { "" };
            check_full(options, targets, &format!("the state {state:?}"), resume)?;
        }
        // Without a state no checkpoint was reached, and nothing was printed.
        (false, true) => {
            if let Some(output) = targets.full().filter(|_| !options.force) {
                return Err(Error::NoState { state: state.into(), output: output.to_owned() });
            }
        }
        (false, false) => {}
    }
    Ok((Some(checkpoints), None))
}

/// The work of the consumer.
struct Work<'a> {
    options: &'a DedupOptions,
    inserter: Inserter,
    outputs: Outputs,
    checkpoints: Option<Checkpoints>,
    /// All lines before it are done, and none after it.
    position: Position,
    /// When the state was saved, and how long it took.
    saved: Instant,
    saving: Duration,
    /// When the lines of a shared set were last safe from a crash of the machine.
    settled: Instant,
}

impl<'a> Work<'a> {
    /// Opens what is written, and the set. Returns the checkpoint to go on at, too. All that can fail comes before an output is
    /// emptied, and before the first line is claimed of a shared set.
    fn new(options: &'a DedupOptions, inputs: &[Input]) -> Result<(Self, Option<Checkpoint>), Error> {
        if options.resume && !checkpoint::can_resume(options, inputs) {
            return Err(Error::ResumeStream);
        }
        let targets = Targets::open(options, inputs)?;
        if options.shared.redis.is_some() {
            check_full(options, &targets, "the shared filter", "")?;
        }
        let mut inserter = sizing::of_dedup(options, inputs)?;
        if options.exact {
            inserter.exact = Some(Exact::new(&env::temp_dir()).map_err(|source| Error::Exact { source })?);
        }
        let (checkpoints, start) = match &options.state {
            Some(state) => begin(options, state, inputs, &targets, &mut inserter)?,
            None => (None, None),
        };
        let outputs = targets.begin(options.reading.threads(), start.as_ref())?;
        let position = start.as_ref().map_or_else(Position::default, |at| Position::new(at.input, at.offset, at.lines));
        let (saved, saving) = (Instant::now(), Duration::ZERO);
        Ok((Self { options, inserter, outputs, checkpoints, position, saved, saving, settled: saved }, start))
    }

    /// Takes the lines of the inputs from the position on.
    fn read(&mut self, mut inputs: Inputs, wakes: &Receiver<Wake>) -> Result<(), Stop> {
        let (options, position) = (self.options, self.position.clone());
        let reading = &options.reading;
        inputs.found.drain(..position.input.min(inputs.found.len()));
        let to_stdout = options.output().is_none() && !options.count;
        let mut progress = Progress::new(&inputs.found, inputs.read, options.quiet, to_stdout);
        let hashing = hashing(options, &self.inserter);
        let hash = move |lines: &mut Lines| {
            lines.hash(&hashing);
            Ok(())
        };
        let chunks = Chunks::new(inputs.found, position.offset, reading.cut());
        let read = pipeline::run(reading.threads(), chunks, position, hash, wakes, |event| match event {
            Event::Lines(lines, position) => {
                let taken = self.take(lines, position);
                progress.show_set(&self.inserter);
                taken
            }
            Event::Broken(why) => {
                self.inserter.leave_out(&why);
                Ok(())
            }
            Event::Wake(Wake::Checkpoint) => Ok(self.checkpoint_in_time()?),
            Event::Wake(Wake::End(signal)) => Err(Stop::Signal(signal)),
            Event::Idle => Ok(self.outputs.flush()?),
        });
        drop(progress);
        self.inserter.end();
        read
    }

    /// Inserts and prints lines that start at this position.
    fn take(&mut self, lines: &mut Lines, position: &Position) -> Result<(), Stop> {
        let inserted = self.inserter.insert(lines, position, self.options.reading.on_error, !self.options.invert);
        if let Err(Stop::Failed(_)) = inserted {
            return inserted;
        }
        self.print(lines)?;
        self.position = position.of_line(lines, lines.passed());
        inserted
    }

    /// Prints. The lines of a shared set leave at once, since no other process prints them.
    fn print(&mut self, lines: &Lines) -> Result<(), Error> {
        let printed = self.outputs.print(self.options, lines);
        if !self.inserter.set.is_shared() {
            return printed;
        }
        let printed = printed.and_then(|()| {
            if self.settled.elapsed() < SETTLING {
                return self.outputs.flush();
            }
            self.settled = Instant::now();
            self.outputs.settle().map(drop)
        });
        printed.map_err(|source| Error::Unprinted { lines: lines.marked(true), source: Box::new(source) })
    }

    /// Saves the state, unless the last save took longer than has passed since. So lines get at least half of the time.
    fn checkpoint_in_time(&mut self) -> Result<(), Error> {
        if self.saved.elapsed() < self.saving {
            return Ok(());
        }
        let started = Instant::now();
        self.checkpoint(false)?;
        self.saving = started.elapsed();
        self.saved = Instant::now();
        Ok(())
    }

    /// Saves the state, after the lines that it marks as seen. Shrinks it only at the end of the inputs, for a run that goes on
    /// or is resumed needs the planned size.
    fn checkpoint(&mut self, finished: bool) -> Result<(), Error> {
        let (output, dupes) = self.outputs.settle()?;
        let Some(path) = &self.options.state else { return Ok(()) };
        if finished && self.options.shrink {
            self.inserter.set.shrink();
        }
        if let Some(checkpoints) = &mut self.checkpoints {
            let Position { input, offset, lines, .. } = self.position;
            let (set, room) = (&self.inserter.set, self.inserter.room());
            let (ones, memory) = (set.ones(), set.memory_bytes());
            let left_out = self.inserter.counts.left_out;
            checkpoints.add(
                Checkpoint { ones, memory, input, offset, lines, output, dupes, room, left_out, shards: Vec::new() },
                finished,
            )?;
        }
        self.inserter.set.save(path)
    }

    /// Writes what is left, at the end of the inputs or before it.
    fn finish(&mut self, finished: bool) -> Result<(), Error> {
        if self.options.count {
            let counts = &self.inserter.counts;
            let count = if self.options.invert { counts.dropped() } else { counts.unique() };
            let faults = if self.options.reading.on_error == OnError::Keep { counts.faults } else { 0 };
            self.outputs.print_count(count + faults)?;
        }
        self.outputs.finish()?;
        if self.options.state.is_some() { self.checkpoint(finished) } else { Ok(()) }
    }
}
