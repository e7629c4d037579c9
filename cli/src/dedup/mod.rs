//! `bloomline dedup`: each distinct line once, in input order.

mod checkpoint;
mod progress;
mod signals;

use crate::cli::Dedup;
use crate::dedup::checkpoint::{Checkpoint, Checkpoints, Job};
use crate::dedup::progress::Progress;
use crate::dedup::signals::Wake;
use crate::error::Error;
use crate::files;
use crate::lines::Batch;
use crate::lines::chunks::Chunks;
use crate::lines::input::{Input, Origin};
use crate::lines::pipeline::{self, Event, GO_ON};
use crate::lines::position::Place;
use crate::output::{self, Output, say};
use crate::set::exact::Exact;
use crate::set::inserter::Inserter;
use crate::set::{report, sizing};
use crate::values::OnError;
use bloomline::KeyHasher;
use std::env;
use std::fs::File;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// What makes the second hash of a fingerprint another one than the first.
const SECOND: u64 = 0x9E37_79B9_7F4A_7C15;

/// Runs the command.
pub fn run(options: &Dedup) -> Result<ExitCode, Error> {
    let started = Instant::now();
    let reading = &options.reading;
    let mut inputs = Input::check_all(&reading.files)?;
    if let Some(state) = &options.state {
        let origins = || inputs.iter().map(Input::origin);
        files::check_target(state, origins())?;
        files::check_target(&Checkpoints::beside(state), origins())?;
    }
    // The lines of a shared filter are given to nobody else: all that can fail comes before it.
    let ready = if options.sharing.redis.is_some() { Some(Outputs::for_shared(options, &inputs)?) } else { None };
    let mut inserter = sizing::of_dedup(options, &inputs)?;
    if options.resume && !can_resume(options, &inputs) {
        return Err(Error::ResumeStream);
    }
    let (checkpoints, start) = match &options.state {
        Some(state) => begin(options, state, &inputs, &mut inserter)?,
        None => (None, None),
    };
    let outputs = match ready {
        Some(outputs) => outputs,
        None => Outputs::open(options, &inputs, start)?,
    };
    let place = start.map_or_else(Place::default, |start| Place::new(start.input, start.offset, start.lines));
    let read = inputs[0].read().clone();
    inputs.drain(..place.input.min(inputs.len()));
    let mut progress = Progress::new(&inputs, read, options.quiet, options.output.is_none() && !options.count);
    inserter.quiet = options.quiet;
    let mut hashing = reading.hashing(inserter.seen.hasher());
    if options.exact {
        hashing.second = Some(KeyHasher::new(options.sizing.seed ^ SECOND));
        inserter.exact = Some(Exact::new(&env::temp_dir()));
    }
    let wakes = signals::receive(options.checkpoint)?;
    let mut work = Work {
        options,
        inserter,
        outputs,
        checkpoints,
        place: place.clone(),
        saved: started,
        saving: Duration::ZERO,
        settled: started,
        end: None,
    };
    if work.checkpoints.is_some() && start.is_none() {
        // Whatever an earlier run left there, this one starts anew.
        work.checkpoint(false)?;
    }
    let chunks = Chunks::new(inputs, place.offset, reading.cut());
    let hash = move |batch: &mut Batch| batch.hash(&hashing);
    let result = pipeline::run(reading.threads, options.quiet, chunks, place, hash, &wakes, |event| match event {
        Event::Batch(batch, place) => {
            let ended = work.take(batch, place);
            progress.show(&work.inserter);
            ended
        }
        Event::Wake(Wake::Checkpoint) => work.checkpoint_in_time().map(|()| GO_ON),
        Event::Wake(Wake::End(signal)) => {
            work.end = Some(End::Signal(signal));
            Ok(ControlFlow::Break(()))
        }
        Event::Idle => work.outputs.flush().map(|()| GO_ON),
    });
    progress.end();
    work.inserter.end();
    if let Err(error) = result {
        match error {
            // The lines before it are done.
            Error::Read { .. } => work.end = Some(End::Error(error)),
            error => return Err(error),
        }
    }
    work.finish()?;
    // After a failure of the server it would be waited for once more.
    let failed = matches!(work.end, Some(End::Error(_)));
    work.inserter.tell_shared(!failed);
    if let Some(format) = options.stats {
        if !failed {
            work.inserter.seen.refresh()?;
        }
        say(&report::of_dedup(&work.inserter, started.elapsed(), options.verify)?.format(format));
    }
    match work.end {
        None => Ok(ExitCode::SUCCESS),
        Some(End::Signal(signal)) => Ok(ExitCode::from(signals::exit_code(signal))),
        Some(End::Error(error)) => Err(error),
    }
}

/// The checkpoints to come, and the one to go on at.
fn begin(
    options: &Dedup,
    state: &Path,
    inputs: &[Input],
    inserter: &mut Inserter,
) -> Result<(Option<Checkpoints>, Option<Checkpoint>), Error> {
    let mut checkpoints = Checkpoints::new(state, job(options, inputs))?;
    // Without a state no checkpoint was reached.
    if !state.exists() {
        return Ok((Some(checkpoints), None));
    }
    let ones = inserter.seen.ones();
    if options.resume {
        let checkpoint = checkpoints.find(ones)?;
        inserter.resume(checkpoint.room);
        return Ok((Some(checkpoints), Some(checkpoint)));
    }
    if options.output.as_ref().is_some_and(|path| path.metadata().is_ok_and(|file| file.len() > 0)) {
        checkpoints.begin(ones)?;
    }
    Ok((Some(checkpoints), None))
}

/// What the checkpoints of a run are good for.
fn job(options: &Dedup, inputs: &[Input]) -> Job {
    // However they are spelled.
    let whole = |path: &Path| {
        let folder = files::folder(path).canonicalize().unwrap_or_else(|_| files::folder(path).into());
        path.file_name().map_or_else(|| path.into(), |name| folder.join(name))
    };
    Job {
        inputs: inputs.iter().map(|input| (input.origin().name().to_owned(), input.size(), input.modified())).collect(),
        outputs: files(options).map(|path| output::name(Some(&whole(path)))).collect(),
        options: format!(
            "{:?}, line end {}, invert {}, annotate {}, seed {}",
            options.reading.keys(),
            options.reading.end(),
            options.invert,
            options.annotate,
            options.sizing.seed
        ),
        on_error: match options.reading.on_error {
            OnError::Fail => None,
            OnError::Skip => Some("skip".to_owned()),
            OnError::Keep => Some("keep".to_owned()),
        },
    }
}

/// The files that are written, but for the state.
fn files(options: &Dedup) -> impl Iterator<Item = &Path> {
    [&options.output, &options.dupes].into_iter().flatten().map(PathBuf::as_path)
}

/// Whether all inputs can be read and all outputs written from the middle.
fn can_resume(options: &Dedup, inputs: &[Input]) -> bool {
    let is_file = |path: &Path| path.metadata().map_or(true, |metadata| metadata.is_file());
    let from_files = !options.reading.files.is_empty() && inputs.iter().all(|input| input.size().is_some());
    from_files
        && !options.reading.files.iter().any(|path| path == Path::new("-"))
        && !options.count
        && options.output.as_deref().is_some_and(is_file)
        && options.dupes.as_deref().is_none_or(is_file)
}

/// Where lines go to.
struct Outputs {
    kept: Output,
    dropped: Option<Output>,
}

impl Outputs {
    fn open(options: &Dedup, inputs: &[Input], start: Option<Checkpoint>) -> Result<Self, Error> {
        let states: Vec<PathBuf> =
            options.state.iter().flat_map(|path| [path.clone(), Checkpoints::beside(path)]).collect();
        let taken: Vec<Origin> = states.iter().map(|path| Origin::of(path)).collect();
        let taken = || inputs.iter().map(Input::origin).chain(&taken);
        let (kept, dropped) = start.map_or((0, 0), |start| (start.output, start.dupes));
        let kept = Output::open(options.output.as_deref(), taken(), kept)?;
        let first = options.output.as_deref().map(Origin::of);
        let open = |path: &_| Output::open(Some(path), taken().chain(&first), dropped);
        let dropped = options.dupes.as_deref().map(open).transpose()?;
        if options.state.is_some() {
            // A crash must not leave a state that knows of an output which the folder does not.
            for path in files(options) {
                let synced = File::open(files::folder(path)).and_then(|folder| folder.sync_all());
                synced.map_err(|source| Error::Create { output: output::name(Some(path)), source })?;
            }
        }
        // Where the state is not there yet, it is the outputs that tell.
        let outputs: Vec<Origin> = files(options).map(Origin::of).collect();
        states.iter().try_for_each(|state| files::check_target(state, &outputs))?;
        Ok(Self { kept, dropped })
    }

    /// Opens files that are empty or new.
    fn for_shared(options: &Dedup, inputs: &[Input]) -> Result<Self, Error> {
        for path in files(options) {
            if path.metadata().is_ok_and(|file| file.is_file() && file.len() > 0) {
                return Err(Error::SharedOutput { output: output::name(Some(path)) });
            }
        }
        Self::open(options, inputs, None)
    }

    fn flush(&mut self) -> Result<(), Error> {
        self.kept.flush()?;
        self.dropped.as_mut().map_or(Ok(()), Output::flush)
    }

    fn settle(&mut self) -> Result<(), Error> {
        self.kept.settle()?;
        self.dropped.as_mut().map_or(Ok(()), |dropped| dropped.settle().map(drop))
    }
}

/// Why the work ends before the inputs do.
enum End {
    Signal(i32),
    Error(Error),
}

/// The work of the consumer.
struct Work<'a> {
    options: &'a Dedup,
    inserter: Inserter,
    outputs: Outputs,
    checkpoints: Option<Checkpoints>,
    /// All lines before it are done, and none after it.
    place: Place,
    /// When the state was saved, and how long it took.
    saved: Instant,
    saving: Duration,
    /// When the lines of a shared filter were last safe from a crash of the machine.
    settled: Instant,
    end: Option<End>,
}

/// How often they are made so.
const SETTLING: Duration = Duration::from_secs(1);

impl Work<'_> {
    /// Inserts and prints the lines of a batch.
    fn take(&mut self, batch: &mut Batch, place: &Place) -> Result<ControlFlow<()>, Error> {
        let full = self.inserter.insert(batch, self.options.reading.on_error, !self.options.invert)?;
        self.print_surely(batch)?;
        if let Some(error) = self.inserter.failure.take() {
            self.end = Some(End::Error(error));
            return Ok(ControlFlow::Break(()));
        }
        self.place = place.of_line(batch, batch.passed());
        if batch.passed() == batch.lines() {
            return Ok(GO_ON);
        }
        let error = if full.is_break() { Err(self.inserter.full(&self.place)) } else { place.check(batch) };
        self.end = error.err().map(End::Error);
        Ok(ControlFlow::Break(()))
    }

    /// Prints, and where nobody else is given the lines does not keep them back.
    fn print_surely(&mut self, batch: &Batch) -> Result<(), Error> {
        if !self.inserter.seen.is_shared() {
            return self.print(batch);
        }
        let printed = self.print(batch).and_then(|()| {
            if self.settled.elapsed() < SETTLING {
                return self.outputs.flush();
            }
            self.settled = Instant::now();
            self.outputs.settle()
        });
        printed.map_err(|source| Error::Unprinted { lines: batch.count(true), source: Box::new(source) })
    }

    fn print(&mut self, batch: &Batch) -> Result<(), Error> {
        let Outputs { kept, dropped } = &mut self.outputs;
        if let Some(dropped) = dropped {
            batch.pieces(false).try_for_each(|lines| dropped.write(lines))?;
        }
        if self.options.count {
            return Ok(());
        }
        if self.options.annotate {
            return batch.marked().try_for_each(|(line, new)| {
                kept.write(if new { b"new\t" } else { b"dup\t" })?;
                kept.write(line)
            });
        }
        batch.pieces(!self.options.invert).try_for_each(|lines| kept.write(lines))
    }

    /// Saves the state if the last time that took is over once more, so that lines have at least half of the time.
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

    /// Saves the state. The lines it marks as seen leave before it.
    fn checkpoint(&mut self, finished: bool) -> Result<(), Error> {
        let output = self.outputs.kept.settle()?;
        let dupes = self.outputs.dropped.as_mut().map_or(Ok(0), Output::settle)?;
        let Some(path) = &self.options.state else { return Ok(()) };
        if let Some(checkpoints) = &mut self.checkpoints {
            let Place { input, offset, lines, .. } = self.place;
            let (ones, room) = (self.inserter.seen.ones(), self.inserter.room());
            checkpoints.add(Checkpoint { ones, input, offset, lines, output, dupes, room }, finished)?;
        }
        self.inserter.seen.save(path)
    }

    /// Writes what is left.
    fn finish(&mut self) -> Result<(), Error> {
        let Outputs { kept, dropped } = &mut self.outputs;
        if self.options.count {
            let counts = &self.inserter.counts;
            let count = if self.options.invert { counts.dropped() } else { counts.unique() };
            let faults = if self.options.reading.on_error == OnError::Keep { counts.faults } else { 0 };
            kept.write_line(&(count + faults).to_string())?;
        }
        kept.finish()?;
        dropped.as_mut().map_or(Ok(()), Output::finish)?;
        if self.options.state.is_some() { self.checkpoint(self.end.is_none()) } else { Ok(()) }
    }
}
