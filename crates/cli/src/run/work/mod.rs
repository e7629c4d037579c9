//! The work of all threads: each carries a chunk of lines from its input to the output.
//!
//! ```text
//! read      one thread at a time for each input: the next lines, split and hashed
//! claim     which lines are new: in any order, or in the order of the inputs
//! gather    in the order of the lines: what is printed, cut into pieces
//! encode    any number of threads: a piece is compressed
//! write     in the order of the pieces
//! ```
//!
//! a chunk that is not next in order is left behind, and the thread that drains the buffer continues with it. So threads
//! block only on reads, inserts and writes, and there are only the worker threads that the user asks for.
//!
//! A checkpoint is taken when no thread is between claim and write, so all outputs, the set and the positions are consistent.

mod choose;
mod claim;
mod gather;
mod save;

use crate::run::checkpoint::Checkpoints;
use crate::run::events::Event;
use crate::run::folder::OutputFolder;
use crate::run::input::{InputChunk, RunInput};
use crate::run::lines::Lines;
use crate::run::progress::Progress;
use crate::run::sink::Sink;
use crate::run::step::{RunConfig, Step};
use crate::seen::SharedSeenKeys;
use crate::seen::run_stats::RunStats;
use crate::system::error::{Error, Stop};
use crate::system::files::NamedFile;
use crate::system::unpoisoned::{locked, reading, writing};
use crate::terminal::signals;
use crate::write::encode::Encoder;
use crate::write::reorder_buffer::ReorderBuffer;
use crossbeam_channel::{Receiver, Sender, bounded, never, select, tick};
use std::cmp::Reverse;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread;
use std::time::{Duration, Instant};

/// The interval at which the progress is shown.
const PERIOD: Duration = Duration::from_millis(100);

/// The results that outlive the run, beside the outputs.
#[derive(Default)]
pub struct Persistence {
    /// The file of the set, and the file of checkpoints.
    pub state: Option<PathBuf>,
    pub checkpoints: Option<Mutex<Checkpoints>>,
    /// The folder of outputs, held until the end.
    pub folder: Option<OutputFolder>,
    pub manifest: Option<PathBuf>,
    /// True if the set is shrunk to the smallest size at the end.
    pub shrink: bool,
    /// True if nothing is saved before the end, because the set has keys of lines that are not printed.
    pub at_end: bool,
    /// The time for lines between two checkpoints, as a multiple of the time that a checkpoint takes.
    pub rest: u32,
}

impl Persistence {
    /// Opens the sink's own output when it gets its first lines.
    fn begin(&self, sink: &Sink) -> Result<(), Error> {
        if sink.open()?
            && let Some(folder) = &self.folder
            && let Some(own) = sink.own()
        {
            folder.begun(&own.path);
        }
        Ok(())
    }
}

/// Held by a thread that carries a chunk from claim to write.
type InFlight<'a> = RwLockReadGuard<'a, ()>;

/// The work, and its progress.
pub struct Work {
    config: RunConfig,
    pub step: Arc<dyn Step>,
    inputs: Vec<RunInput>,
    /// One for each input, or one for all.
    sinks: Vec<Sink>,
    pub seen: SharedSeenKeys,
    /// True if other processes write to the set.
    shared: bool,
    pub stats: Mutex<RunStats>,
    persistence: Persistence,
    /// The chunks that wait to be claimed, if there is an order.
    claims: Option<ReorderBuffer<InputChunk>>,
    /// Locked for reading by a thread that carries a chunk from claim to write, and exclusively by a checkpoint.
    in_flight: RwLock<()>,
    /// Inputs that are not begun, the largest last. Empty if they have an order.
    fresh: Mutex<Vec<usize>>,
    /// All inputs before this one are read. Relaxed, as the others: they only choose the next input.
    first: AtomicUsize,
    unread: AtomicUsize,
    /// The weight of the chunks of all inputs that are read and not gathered.
    ungathered: AtomicUsize,
    whole: AtomicUsize,
    /// Buffers for chunks, boxed because they are large and move between threads.
    #[expect(clippy::vec_box)]
    spare: Mutex<Vec<Box<Lines>>>,
    /// True once no thread takes another chunk. Relaxed: the thread that ends the work takes the lock `in_flight` after that.
    ending: AtomicBool,
    failure: Mutex<Option<Stop>>,
    /// The time when the lines of a shared set were last synced.
    last_sync: Mutex<Instant>,
}

impl Work {
    /// Prepares the work on these inputs.
    pub fn new(
        config: RunConfig,
        step: Arc<dyn Step>,
        inputs: Vec<RunInput>,
        sinks: Vec<Sink>,
        seen: SharedSeenKeys,
        stats: RunStats,
        persistence: Persistence,
    ) -> Arc<Self> {
        let unread: Vec<usize> = (0..inputs.len()).filter(|&i| !inputs[i].is_read()).collect();
        let first = unread.first().copied().unwrap_or(inputs.len());
        let in_order = step.is_in_order();
        let mut fresh = if in_order || sinks.len() < inputs.len() { Vec::new() } else { unread.clone() };
        // Among inputs of equal size, the first is taken first.
        fresh.sort_by_key(|&i| (inputs[i].size, Reverse(i)));
        let shared = seen.read().set.shared().is_some();
        Arc::new(Self {
            claims: in_order.then(|| ReorderBuffer::new((first, 0))),
            in_flight: RwLock::new(()),
            fresh: Mutex::new(fresh),
            first: AtomicUsize::new(first),
            unread: AtomicUsize::new(unread.len()),
            ungathered: AtomicUsize::new(0),
            whole: AtomicUsize::new(inputs.len() - unread.len()),
            spare: Mutex::default(),
            ending: AtomicBool::new(false),
            failure: Mutex::default(),
            last_sync: Mutex::new(Instant::now()),
            stats: Mutex::new(stats),
            config,
            step,
            inputs,
            sinks,
            seen,
            shared,
            persistence,
        })
    }

    /// Works until the inputs end, a signal arrives or an error occurs. Returns the reason if it ended before the
    /// inputs, and keeps the work done: the outputs, the set and the positions.
    pub fn run(self: &Arc<Self>, events: &Receiver<Event>, mut progress: Progress) -> Result<Option<Stop>, Error> {
        // A thread may be blocked on a silent pipe. So this waits only for the chunks in progress, not for the threads.
        let (alive, over) = bounded::<()>(0);
        let (failed, failure) = bounded(1);
        for _ in 0..self.config.threads {
            let work = self.clone();
            let alive = alive.clone();
            let failed = failed.clone();
            let live = move || {
                work.run_worker(&failed);
                drop(alive);
            };
            let worker = thread::Builder::new().name("worker".into()).spawn(live);
            worker.map_err(|source| self.end_early(signals::no_thread(source)))?;
        }
        drop(alive);
        let shows = tick(PERIOD);
        let mut events = events.clone();
        let mut saved = Instant::now();
        let mut saving = Duration::ZERO;
        let mut signal = None;
        while signal.is_none() {
            select! {
                recv(over) -> _ => break,
                recv(failure) -> _ => break,
                recv(events) -> event => match event {
                    Ok(Event::End(number)) => signal = Some(Stop::Signal(number)),
                    Ok(Event::Checkpoint) if saved.elapsed() >= self.persistence.rest * saving => {
                        let started = Instant::now();
                        self.checkpoint(false).unwrap_or_else(|error| self.fail(error.into(), &failed));
                        (saved, saving) = (Instant::now(), started.elapsed());
                    }
                    Ok(Event::Checkpoint) => {}
                    Err(_) => events = never(),
                },
                recv(shows) -> _ => {
                    let stats = locked(&self.stats);
                    let found = match &stats.first {
                        Some(_) => self.config.print.numbers(&stats.counts).0,
                        None => stats.counts.unique,
                    };
                    let stages = || Some(self.seen.try_read()?.set.stages().count().max(1));
                    progress.show_tally(&stats, found, stages, self.whole.load(Relaxed));
                }
            }
        }
        self.ending.store(true, Relaxed);
        let quiescent = self.quiesce();
        drop(progress);
        locked(&self.stats).warn_of_faults();
        let stop = locked(&self.failure).take().or(signal);
        let stop = stop.or_else(|| self.step.finish().err().map(Stop::After));
        let done = match stop {
            // Lines of later chunks may be claimed and not written. The state of the last checkpoint has none of them.
            Some(Stop::After(error)) if self.claims.is_none() && self.persistence.folder.is_some() => Err(error),
            Some(Stop::Failed(error)) => Err(error),
            stop => self.finish(&quiescent, stop.is_none()).map(|()| stop),
        };
        if self.persistence.state.is_none() && !matches!(done, Ok(None)) {
            self.sinks.iter().for_each(Sink::abandon);
        }
        let is_complete = matches!(done, Ok(None | Some(Stop::Enough)) | Err(Error::ReaderGone));
        self.sinks.iter().for_each(|sink| sink.keep_or_remove_unused(is_complete, self.persistence.state.is_some()));
        // An incomplete table is useful only for a resumed run.
        let continues = self.persistence.state.is_some() && !matches!(done, Ok(None));
        if !continues && !self.config.print.total && self.inputs.iter().any(|input| input.is_table) {
            self.sinks.iter().for_each(Sink::remove_cut_tables);
        }
        done
    }

    /// Returns the inputs that are read to their ends, with the number of unique or selected lines of each.
    pub fn counted(&self) -> Vec<(PathBuf, u64)> {
        let counted = self.inputs.iter().map(|input| (input, locked(&input.gathered)));
        let ended = counted.take_while(|(_, gathered)| gathered.ended);
        ended.map(|(input, gathered)| (input.path.clone(), gathered.counts.unique)).collect()
    }

    /// True if the input at this path is skipped in part.
    pub fn is_broken(&self, path: &Path) -> bool {
        let broken = self.inputs.iter().filter(|input| locked(&input.gathered).broken.is_some());
        broken
            .map(|input| NamedFile::from_path(&input.path))
            .any(|origin| origin.identity() == NamedFile::from_path(path).identity())
    }

    /// Closes the outputs, which are finished: an open file cannot be replaced or renamed on every system.
    pub fn close_outputs(&self) {
        self.sinks.iter().for_each(Sink::close);
    }

    fn end_early(&self, error: Error) -> Error {
        self.ending.store(true, Relaxed);
        error
    }

    /// Waits until no chunk is between claim and write.
    fn quiesce(&self) -> RwLockWriteGuard<'_, ()> {
        writing(&self.in_flight)
    }

    /// Enters the section between claim and write; `false` if the work ends.
    fn enter<'a>(&'a self, in_flight: &mut Option<InFlight<'a>>) -> bool {
        in_flight.get_or_insert_with(|| reading(&self.in_flight));
        !self.ending.load(Relaxed)
    }

    fn fail(&self, why: Stop, failed: &Sender<()>) {
        // The first failure may be the cause of later ones.
        locked(&self.failure).get_or_insert(why);
        self.ending.store(true, Relaxed);
        // One message is enough.
        let _ = failed.try_send(());
    }

    /// Runs a worker thread.
    fn run_worker(&self, failed: &Sender<()>) {
        let (mut encoder, mut last) = (Encoder::default(), None);
        while let Some(input) = self.choose(last) {
            let mut in_flight = None;
            let advance = AssertUnwindSafe(|| self.advance(&self.inputs[input], &mut encoder, &mut in_flight));
            let ended = || Error::new("a thread that reads and writes has ended");
            if let Err(why) = panic::catch_unwind(advance).unwrap_or_else(|_| Err(ended().into())) {
                self.fail(why, failed);
            }
            // A checkpoint must not see the incomplete work of a failure, so the lock is held until the failure is recorded.
            drop(in_flight);
            last = Some(input);
        }
    }

    fn sink(&self, input: usize) -> &Sink {
        &self.sinks[input.min(self.sinks.len() - 1)]
    }

    /// Takes the next chunk of an input as far as possible, and the chunks that wait for it. `in_flight` is held beyond
    /// the call, until its result is recorded.
    fn advance<'a>(
        &'a self,
        input: &RunInput,
        encoder: &mut Encoder,
        in_flight: &mut Option<InFlight<'a>>,
    ) -> Result<(), Stop> {
        // If chunks are claimed out of order and a state is saved, the lock is taken before the read: a chunk that others wait for
        // after their claim must not miss a checkpoint. Otherwise no checkpoint waits for a silent pipe.
        let early = self.claims.is_none() && self.persistence.state.is_some();
        if early && !self.enter(in_flight) {
            return Ok(());
        }
        let spare = locked(&self.spare).pop();
        let lines = spare.unwrap_or_else(|| Box::new(Lines::new(self.step.column())));
        let mut chunk = match input.read(lines, &self.config.projection) {
            Ok(chunk) => chunk,
            Err(lines) => {
                self.recycle(lines, 1);
                return Ok(());
            }
        };
        self.ungathered.fetch_add(chunk.weight, Relaxed);
        match &chunk.end {
            None => {
                chunk.lines.split(self.config.format.end);
                self.step.hash(&self.config, &mut chunk.lines);
            }
            Some(_) => _ = self.unread.fetch_sub(1, Relaxed),
        }
        let Some(claims) = &self.claims else {
            if early || self.enter(in_flight) {
                self.claim(&mut chunk)?;
                self.gather(chunk, encoder)?;
            }
            return Ok(());
        };
        claims.put(chunk.position, chunk.next, chunk);
        while self.enter(in_flight) {
            let Some((guard, chunk)) = claims.take() else { break };
            self.claim_in_turn(claims, guard, chunk, encoder)?;
        }
        Ok(())
    }

    /// Reuses the buffer of a chunk, unless it has grown. Its rows are dropped, because they keep the file of their table open.
    fn recycle(&self, mut lines: Box<Lines>, weight: usize) {
        if weight == 1 {
            lines.batch.set_rows(None);
            locked(&self.spare).push(lines);
        }
    }
}
