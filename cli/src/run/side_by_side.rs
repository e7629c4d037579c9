//! Many files at once: each input has an output of its own, and all threads claim lines of one set.
//!
//! A thread begins with the largest input that nobody has begun, and stays with it. Once all are begun it helps with one that is
//! not at its end. A checkpoint waits until each thread is between two chunks, so all outputs, the set and the positions fit
//! together.

use crate::encode::Encoder;
use crate::error::{Error, Stop};
use crate::lines::input::Inputs;
use crate::lines::{Hashing, Lines, What};
use crate::progress::Progress;
use crate::run::Run;
use crate::run::checkpoint::{Checkpoint, Checkpoints, Mark};
use crate::run::folder::Folder;
use crate::run::manifest;
use crate::run::shard::{Chunk, Done, Shard, Taken};
use crate::run::start::{self, InFolder};
use crate::run::wakes::Wake;
use crate::set::claims::Claims;
use crate::set::counted::Counted;
use crate::set::inserter::{Counts, Inserter};
use crossbeam_channel::{Receiver, bounded, never, select, tick};
use std::cmp::Reverse;
use std::iter;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, RwLock};
use std::thread;
use std::time::{Duration, Instant};

const UNPOISONED: &str = "no thread panics while it has this";

/// How often the progress is shown.
const PERIOD: Duration = Duration::from_millis(100);
/// How long a thread waits for others to catch up where nothing else is left to do.
const MOMENT: Duration = Duration::from_millis(1);

/// Reads the inputs side by side, each to an output of its own.
pub fn run(run: &Run<'_>, inputs: Inputs) -> Result<(Inserter, Option<Stop>), Error> {
    let InFolder { folder, mut inserter, checkpoints, start } = InFolder::new(run, &inputs)?;
    if inserter.limit.as_ref().is_some_and(|limit| limit.stop) {
        return Err(Error::StopSideBySide);
    }
    start::begin_counting(&mut inserter, &inputs, start.as_ref());
    let wakes = start::receive_wakes(run, &inserter.set)?;
    let progress = Progress::new(&inputs.found, inputs.read.clone(), run.options.quiet, false);
    let hashing = start::hashing(run, &inserter);
    let first = start.is_none();
    let work = Work::new(run, hashing, inserter, inputs, folder, checkpoints, start);
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

/// The work of all threads.
pub struct Work<'a> {
    run: &'a Run<'a>,
    hashing: Hashing,
    shards: Vec<Shard>,
    /// Held until the end.
    folder: Folder,
    /// Whoever claims lines is one of its readers. A checkpoint has it alone.
    claims: RwLock<Claims>,
    record: Mutex<Inserter<()>>,
    /// Those that nobody has begun, the largest last.
    fresh: Mutex<Vec<usize>>,
    /// How many are whole. Relaxed, for it is only shown.
    whole: AtomicUsize,
    /// Memory for chunks. It moves between threads, and is large.
    #[expect(clippy::vec_box)]
    spare: Mutex<Vec<Box<Lines>>>,
    /// No thread takes another chunk. Relaxed, for nothing else is read because of it: the threads are joined before.
    ending: AtomicBool,
    failure: Mutex<Option<Stop>>,
    checkpoints: Option<Mutex<Checkpoints>>,
    /// Chunks and pieces of one input that may be on their way.
    most: usize,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect(UNPOISONED)
}

impl<'a> Work<'a> {
    /// The work on these inputs, from where they were at the checkpoint if there is one.
    pub fn new(
        run: &'a Run<'a>,
        hashing: Hashing,
        inserter: Inserter,
        inputs: Inputs,
        folder: Folder,
        checkpoints: Option<Checkpoints>,
        start: Option<Checkpoint>,
    ) -> Self {
        let marks = start.map_or_else(Vec::new, |start| start.shards).into_iter();
        let marks = marks.chain(iter::repeat_with(Mark::default));
        let mut shards = Vec::new();
        for (number, ((input, place), mark)) in inputs.found.into_iter().zip(&folder.places).zip(marks).enumerate() {
            if mark.whole {
                // For a display that shows how far the run is.
                inputs.read.fetch_add(input.size.unwrap_or(0), Relaxed);
            }
            shards.push(Shard::new(number, input, place.clone(), mark, run.reading.cut()));
        }
        let whole = shards.iter().filter(|shard| shard.is_read()).count();
        let mut fresh: Vec<usize> = (0..shards.len()).filter(|&i| !shards[i].is_read()).collect();
        // Of equal ones the first comes first.
        fresh.sort_by_key(|&i| (shards[i].size, Reverse(i)));
        let (set, mut record) = inserter.with_set(());
        let claims = Claims::new(set, record.exact.take());
        Self {
            run,
            hashing,
            shards,
            folder,
            claims: RwLock::new(claims),
            record: Mutex::new(record),
            fresh: Mutex::new(fresh),
            whole: AtomicUsize::new(whole),
            spare: Mutex::default(),
            ending: AtomicBool::new(false),
            failure: Mutex::default(),
            checkpoints: checkpoints.map(Mutex::new),
            most: 2 * run.reading.threads() + 2,
        }
    }

    /// Works until the inputs end, a signal comes or something fails.
    pub fn run(&self, wakes: &Receiver<Wake>, mut progress: Progress) -> Result<(), Stop> {
        let mut signal = None;
        thread::scope(|scope| {
            let (alive, gone) = bounded::<()>(0);
            for _ in 0..self.run.reading.threads() {
                let alive = alive.clone();
                let worker = move || {
                    self.live();
                    drop(alive);
                };
                let worker = thread::Builder::new().name("worker".into()).spawn_scoped(scope, worker);
                if let Err(source) = worker {
                    self.fail(Error::Thread { source }.into());
                    break;
                }
            }
            drop(alive);
            let shows = tick(PERIOD);
            let (mut wakes, mut saved, mut saving) = (wakes.clone(), Instant::now(), Duration::ZERO);
            loop {
                select! {
                    recv(gone) -> _ => break,
                    recv(wakes) -> wake => match wake {
                        Ok(Wake::End(number)) => {
                            signal = Some(number);
                            self.ending.store(true, Relaxed);
                        }
                        // Lines get at least half of the time.
                        Ok(Wake::Checkpoint) if saved.elapsed() >= saving => {
                            let started = Instant::now();
                            self.checkpoint(false).unwrap_or_else(|error| self.fail(error.into()));
                            (saved, saving) = (Instant::now(), started.elapsed());
                        }
                        Ok(Wake::Checkpoint) => {}
                        Err(_) => wakes = never(),
                    },
                    recv(shows) -> _ => self.show(&mut progress),
                }
            }
        });
        drop(progress);
        locked(&self.record).end();
        let failure = locked(&self.failure).take().or(signal.map(Stop::Signal));
        if failure.is_some() && self.checkpoints.is_none() {
            self.shards.iter().for_each(Shard::abandon);
        }
        failure.map_or(Ok(()), Err)
    }

    /// Gives back the set and what was counted.
    pub fn into_inserter(self) -> Inserter {
        let (set, exact) = self.claims.into_inner().expect(UNPOISONED).into_inner();
        let ((), mut inserter) = self.record.into_inner().expect(UNPOISONED).with_set(set);
        inserter.exact = exact;
        inserter
    }

    fn show(&self, progress: &mut Progress) {
        progress.show_claims(&locked(&self.record), self.whole.load(Relaxed));
    }

    fn fail(&self, why: Stop) {
        // The first failure may be the reason of those that follow.
        locked(&self.failure).get_or_insert(why);
        self.ending.store(true, Relaxed);
    }

    /// A thread's life.
    fn live(&self) {
        let mut encoders = Vec::new();
        let mut shard = self.begin().or_else(|| self.help(0));
        while let Some(at) = shard.filter(|_| !self.ending.load(Relaxed)) {
            shard = match self.step(&self.shards[at], &mut encoders) {
                Some(true) => Some(at),
                Some(false) => self.begin().or_else(|| self.help(at)),
                None => None,
            };
        }
    }

    /// Takes a chunk from `read` to `write`; `false` if there is none. After a failure no checkpoint comes: lines are claimed that
    /// are not written.
    fn step(&self, shard: &Shard, encoders: &mut Vec<Encoder>) -> Option<bool> {
        // Until the failure is known.
        let claims = self.claims.read().expect(UNPOISONED);
        let taken = panic::catch_unwind(AssertUnwindSafe(|| self.take(shard, &claims, encoders)));
        taken.unwrap_or_else(|_| Err(Error::Worker.into())).map_err(|why| self.fail(why)).ok()
    }

    /// The largest input that nobody has begun.
    fn begin(&self) -> Option<usize> {
        locked(&self.fresh).pop()
    }

    /// An input after this one that can be helped with. Waits while there is none, and not all are at their ends.
    fn help(&self, after: usize) -> Option<usize> {
        let count = self.shards.len();
        loop {
            if self.ending.load(Relaxed) || self.shards.iter().all(Shard::is_read) {
                return None;
            }
            let found = (1..=count).map(|i| (after + i) % count).find(|&i| self.shards[i].has_room(self.most));
            if found.is_some() {
                return found;
            }
            thread::sleep(MOMENT);
        }
    }

    fn take(&self, shard: &Shard, claims: &Claims, encoders: &mut Vec<Encoder>) -> Result<bool, Stop> {
        let spare = || locked(&self.spare);
        let lines = spare().pop().unwrap_or_default();
        let (number, mut chunk) = match shard.read(lines, self.most, &self.folder)? {
            Taken::Chunk(number, chunk) => (number, chunk),
            Taken::Later(lines) | Taken::Ended(lines) => {
                spare().push(lines);
                return Ok(false);
            }
        };
        if let Chunk::Lines(lines, counts) = &mut chunk {
            lines.hash(&self.hashing);
            let on_error = self.run.reading.on_error;
            if let What::Document(rule, _) = &self.hashing.what {
                let mut set = Counted::new(claims);
                let units = lines.decide(rule, on_error, &mut set, None, |set| {
                    let mut record = locked(&self.record);
                    record.offered.add(set.inserted, |keys| claims.expected_fpr(keys))
                })?;
                *counts = Counts::of_documents(lines, on_error, set.inserted, units);
            } else {
                lines.mark(on_error, !self.run.inverts(), |hashes, fingerprints, new| {
                    let (inserted, rescued) = claims.insert_hashes(hashes, fingerprints, new)?;
                    let (inserted, unique) = (inserted as u64, (inserted + rescued) as u64);
                    *counts = Counts { inserted, unique, ..Counts::default() };
                    Ok(hashes.len())
                })?;
            }
        }
        let done = |Done { lines, counts, fault, broken }| {
            spare().push(lines);
            let mut record = locked(&self.record);
            record.count(&counts, fault, |()| claims.current_fpr());
            broken.iter().for_each(|why| record.leave_out(why));
        };
        let pieces = shard.gather(number, chunk, self.run, done)?;
        for (number, piece) in pieces {
            let piece = piece.map(|piece| shard.encode(piece, encoders)).transpose()?;
            if shard.write((number, piece), self.checkpoints.is_some())? {
                self.whole.fetch_add(1, Relaxed);
                if self.checkpoints.is_none() {
                    shard.place.publish()?;
                }
            }
        }
        Ok(true)
    }

    /// Saves the outputs, the set and where all inputs are, if there is a state. Outputs that are whole get their names then, for
    /// no later run will write them anew. Writes the manifest. Does nothing after a failure.
    pub fn checkpoint(&self, finished: bool) -> Result<(), Error> {
        let mut claims = self.claims.write().expect(UNPOISONED);
        if locked(&self.failure).is_some() {
            return Ok(());
        }
        if let (Some(checkpoints), Some(state)) = (&self.checkpoints, &self.run.options.state) {
            let (mut encoders, mut shards) = (Vec::new(), Vec::new());
            for shard in &self.shards {
                shards.push(shard.settle(&mut encoders)?);
            }
            self.folder.sync()?;
            let (room, left_out) = {
                let record = locked(&self.record);
                (record.room(), record.counts.left_out)
            };
            claims.with(|set| {
                if finished && self.run.options.shrink {
                    set.shrink();
                }
                let (ones, memory) = (set.ones(), set.memory_bytes());
                let checkpoint = Checkpoint { ones, memory, room, left_out, shards, ..Checkpoint::default() };
                locked(checkpoints).add(checkpoint, finished)?;
                set.save(state)
            })?;
            let unnamed = self.shards.iter().filter(|shard| shard.is_unnamed());
            self.folder.publish(unnamed.map(|shard| &shard.place))?;
        }
        let documents = matches!(self.hashing.what, What::Document(..));
        match &self.run.options.manifest {
            Some(path) => manifest::write(path, self.shards.iter().filter_map(|shard| shard.summary(documents))),
            None => Ok(()),
        }
    }
}
