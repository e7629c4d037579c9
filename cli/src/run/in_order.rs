//! One input after another: the first of equal lines stays, and the lines keep their order.

use crate::documents::DocumentRule;
use crate::error::{Error, Stop};
use crate::lines::Lines;
use crate::lines::chunks::{Chunks, Cut};
use crate::lines::input::{Input, Inputs};
use crate::lines::pipeline::{self, Event};
use crate::lines::position::Position;
use crate::progress::Progress;
use crate::run::Run;
use crate::run::checkpoint::{self, Checkpoint, Checkpoints, Job};
use crate::run::one_by_one::OneByOne;
use crate::run::outputs::{Outputs, Settled, Targets};
use crate::run::start::{self, CONTINUE, InFolder};
use crate::run::wakes::Wake;
use crate::set::inserter::Inserter;
use crate::values::OnError;
use crossbeam_channel::Receiver;
use std::path::Path;
use std::time::{Duration, Instant};

/// How often the lines of a shared set are made safe from a crash of the machine.
const SETTLING: Duration = Duration::from_secs(1);

/// Reads the inputs one after another. Returns what went in, and why it stopped before the end of the inputs.
pub fn run(run: &Run<'_>, inputs: Inputs) -> Result<(Inserter, Option<Stop>), Error> {
    let (mut work, start) = Work::new(run, &inputs)?;
    start::begin_counting(&mut work.inserter, &inputs, start.as_ref());
    let wakes = start::receive_wakes(run, &work.inserter.set)?;
    if work.checkpoints.is_some() && start.is_none() {
        // The checkpoints of an earlier run end here.
        work.checkpoint(false)?;
    }
    let done = match work.read(inputs, &wakes) {
        Err(Stop::Failed(error)) => Err(error),
        read => work.finish(read.is_ok()).map(|()| read.err()),
    };
    if done.is_err() && run.options.state.is_none() {
        work.outputs.abandon();
    }
    Ok((work.inserter, done?))
}

/// Refuses outputs that hold lines which this run would not print again, since they are known.
fn check_full(run: &Run<'_>, targets: &Targets, known: &str, resume: &'static str) -> Result<(), Error> {
    match targets.full().filter(|_| !run.options.force) {
        Some(output) => Err(Error::Emptied { output: output.to_owned(), known: known.to_owned(), resume }),
        None => Ok(()),
    }
}

/// The checkpoints to come, and the one to go on at.
fn begin(
    run: &Run<'_>,
    state: &Path,
    inputs: &[Input],
    targets: &Targets,
    inserter: &mut Inserter,
) -> Result<(Option<Checkpoints>, Option<Checkpoint>), Error> {
    let mut checkpoints = Checkpoints::new(state, Job::new(run, inputs))?;
    match (state.exists(), run.options.resume) {
        (true, true) => {
            let checkpoint = checkpoints.find(&inserter.set)?;
            inserter.resume(checkpoint.room);
            return Ok((Some(checkpoints), Some(checkpoint)));
        }
        (true, false) => {
            let interrupted = checkpoints.is_interrupted(&inserter.set);
            let resume = if interrupted { CONTINUE } else { "" };
            check_full(run, targets, &format!("the state {state:?}"), resume)?;
        }
        // Without a state no checkpoint was reached, and nothing was printed.
        (false, true) => {
            if let Some(output) = targets.full().filter(|_| !run.options.force) {
                return Err(Error::NoState { state: state.into(), output: output.to_owned() });
            }
        }
        (false, false) => {}
    }
    Ok((Some(checkpoints), None))
}

type Begun = (Inserter, Outputs, Option<Checkpoints>, Option<Checkpoint>);

/// A run with one output, and perhaps a file for what is dropped.
fn to_files(run: &Run<'_>, inputs: &[Input]) -> Result<Begun, Error> {
    if run.options.resume && !checkpoint::can_resume(run, inputs) {
        return Err(Error::ResumeStream);
    }
    let targets = Targets::open(run, inputs)?;
    if run.is_shared() {
        check_full(run, &targets, "the shared filter", "")?;
    }
    let mut inserter = start::inserter(run, inputs)?;
    let (checkpoints, start) = match &run.options.state {
        Some(state) => begin(run, state, inputs, &targets, &mut inserter)?,
        None => (None, None),
    };
    let outputs = targets.begin(run, start.as_ref())?;
    Ok((inserter, outputs, checkpoints, start))
}

/// The work of the consumer.
struct Work<'a> {
    run: &'a Run<'a>,
    /// What becomes of documents, if lines are documents.
    rule: Option<DocumentRule>,
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
    fn new(run: &'a Run<'a>, inputs: &Inputs) -> Result<(Self, Option<Checkpoint>), Error> {
        let (inserter, outputs, checkpoints, start) = if run.options.output_dir.is_some() {
            let InFolder { folder, inserter, checkpoints, start } = InFolder::new(run, inputs)?;
            let outputs = OneByOne::new(run, folder, &inputs.found, start.as_ref())?;
            (inserter, Outputs::Folder(outputs), checkpoints, start)
        } else {
            to_files(run, &inputs.found)?
        };
        let position = start.as_ref().map_or_else(Position::default, |at| Position::new(at.input, at.offset, at.lines));
        let (saved, saving) = (Instant::now(), Duration::ZERO);
        Ok((
            Self {
                run,
                rule: run.document_rule(),
                inserter,
                outputs,
                checkpoints,
                position,
                saved,
                saving,
                settled: saved,
            },
            start,
        ))
    }

    /// Takes the lines of the inputs from the position on.
    fn read(&mut self, mut inputs: Inputs, wakes: &Receiver<Wake>) -> Result<(), Stop> {
        let (run, position) = (self.run, self.position.clone());
        let reading = &run.reading;
        inputs.found.drain(..position.input.min(inputs.found.len()));
        let to_stdout = run.options.output().is_none() && run.options.output_dir.is_none() && !run.counts_only();
        let mut progress = Progress::new(&inputs.found, inputs.read, run.options.quiet, to_stdout);
        let hashing = start::hashing(run, &self.inserter);
        let hash = move |lines: &mut Lines| {
            lines.hash(&hashing);
            Ok(())
        };
        let first = position.input;
        let cut = Cut { apart: run.options.output_dir.is_some(), ..reading.cut() };
        let chunks = Chunks::new(inputs.found, position.offset, cut);
        let read = pipeline::run(reading.threads(), chunks, position, hash, wakes, |event| match event {
            Event::Lines(lines, position) => {
                let taken = self.take(lines, position);
                progress.show_set(&self.inserter, self.position.input - first);
                taken
            }
            Event::Broken(input, why) => {
                self.inserter.leave_out(&why);
                self.outputs.broken(input, why);
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
        let on_error = self.run.reading.on_error;
        let inserted = match &self.rule {
            Some(rule) => self.inserter.decide(lines, position, on_error, rule),
            None => self.inserter.insert(lines, position, on_error, !self.run.inverts()),
        };
        if let Err(Stop::Failed(_)) = inserted {
            return inserted;
        }
        let after = position.of_line(lines, lines.passed());
        self.print(lines, &after)?;
        self.position = after;
        inserted
    }

    /// Prints. The lines of a shared set leave at once, since no other process prints them.
    fn print(&mut self, lines: &Lines, after: &Position) -> Result<(), Error> {
        let printed = self.outputs.print(self.run, lines, after, &self.inserter.counts);
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
        let Settled { output, dupes, shards } = self.outputs.settle()?;
        let Some(path) = &self.run.options.state else { return Ok(()) };
        if finished && self.run.options.shrink {
            self.inserter.set.shrink();
        }
        if let Some(checkpoints) = &mut self.checkpoints {
            let Position { input, offset, lines, .. } = self.position;
            let (set, room) = (&self.inserter.set, self.inserter.room());
            let (ones, memory) = (set.ones(), set.memory_bytes());
            let left_out = self.inserter.counts.left_out;
            checkpoints.add(
                Checkpoint { ones, memory, input, offset, lines, output, dupes, room, left_out, shards },
                finished,
            )?;
        }
        self.inserter.set.save(path)?;
        self.outputs.publish()
    }

    /// Writes what is left, at the end of the inputs or before it.
    fn finish(&mut self, finished: bool) -> Result<(), Error> {
        if self.run.counts_only() {
            let counts = &self.inserter.counts;
            let count = if self.run.inverts() { counts.dropped() } else { counts.unique };
            let faults = if self.run.reading.on_error == OnError::Keep { counts.faults } else { 0 };
            self.outputs.print_count(count + faults)?;
        }
        self.outputs.finish(finished, self.run.options.state.is_some())?;
        if self.run.options.state.is_some() { self.checkpoint(finished) } else { self.outputs.publish() }
    }
}
