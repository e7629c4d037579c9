//! Workers read and hash chunks at once; the caller gets their lines in order.
//!
//! A worker takes a spare [`Lines`], locks the inputs, fills it, and before it unlocks announces the slot in which
//! the result will lie: so slots are announced in input order, whoever is done first. The worker that read a chunk
//! also works on it, while it is in that core's cache. The memory goes round, so there is never more than at first,
//! and a worker that is too far ahead waits for a spare one.

use crate::error::{Error, Stop};
use crate::lines::Lines;
use crate::lines::chunks::Chunks;
use crate::lines::position::Position;
use crossbeam_channel::{self as channel, Receiver, Sender};
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::{io, panic, thread};

/// What a worker hands on: lines, the failure of the work on them, or that of an input before them.
type Slot = Receiver<io::Result<Result<Lines, Error>>>;

struct Feed {
    /// `None` from the end or a failure on.
    chunks: Option<Chunks>,
    announce: Sender<Slot>,
}

/// What the caller gets.
pub enum Event<'a, W> {
    /// The next lines, and where in the inputs they start.
    Lines(&'a mut Lines, &'a Position),
    /// The number of an input whose rest is left out, and what failed of it.
    Broken(usize, String),
    /// Something from outside.
    Wake(W),
    /// The next lines are not there yet.
    Idle,
}

/// Lets workers take lines from `chunks`, which begin at `position`, and do `work` on them. Calls `consume` with the lines in
/// input order, and in between with what comes through `wakes`, until `consume` stops or something fails. The lines that were
/// consumed by then are a prefix of the inputs.
pub fn run<W>(
    threads: usize,
    chunks: Chunks,
    mut position: Position,
    work: impl Fn(&mut Lines) -> Result<(), Error> + Send + Sync + 'static,
    wakes: &Receiver<W>,
    mut consume: impl FnMut(Event<W>) -> Result<(), Stop>,
) -> Result<(), Stop> {
    let spares = 2 * threads + 2;
    let (recycle, spare) = channel::bounded(spares);
    let (announce, slots) = channel::bounded(spares);
    let feed = Arc::new(Mutex::new(Feed { chunks: Some(chunks), announce }));
    let work = Arc::new(work);
    // Not scoped: after an error the process can end while a worker waits for a pipe that stays silent.
    let mut workers = Vec::new();
    for _ in 0..threads {
        let (feed, spare, work) = (feed.clone(), spare.clone(), work.clone());
        let worker = thread::Builder::new().name("worker".into()).spawn(move || live(&feed, &spare, &*work));
        workers.push(worker.map_err(|source| Error::Thread { source })?);
    }
    drop(feed);
    for _ in 0..spares {
        // Fails only if all workers are gone, and the loop below ends then.
        let _ = recycle.send(Lines::default());
    }
    let mut woken = false;
    while let Some(next) = next(&slots, wakes, woken, || consume(Event::Idle))? {
        woken = next.is_err();
        let slot = match next {
            Ok(slot) => slot,
            Err(wake) => {
                consume(Event::Wake(wake))?;
                continue;
            }
        };
        let Ok(result) = slot.recv() else { break };
        let failed = |source| Stop::After(Error::Read { position: position.to_string(), source });
        let mut lines = result.map_err(failed)??;
        consume(Event::Lines(&mut lines, &position))?;
        let mut broken = Vec::new();
        position.advance(&lines, lines.count(), |position, error| {
            let why = format!("cannot read {position}: {error}; continued without the rest of it");
            broken.push((position.input, why));
        });
        broken.into_iter().try_for_each(|(input, why)| consume(Event::Broken(input, why)))?;
        let _ = recycle.send(lines);
    }
    drop(recycle);
    for worker in workers {
        // A worker that panicked must not pass for the end of the inputs.
        worker.join().unwrap_or_else(|payload| panic::resume_unwind(payload));
    }
    Ok(())
}

/// Runs from the start of the inputs, without anything from outside.
pub fn run_alone(
    threads: usize,
    chunks: Chunks,
    work: impl Fn(&mut Lines) -> Result<(), Error> + Send + Sync + 'static,
    consume: impl FnMut(Event<Infallible>) -> Result<(), Stop>,
) -> Result<(), Stop> {
    run(threads, chunks, Position::default(), work, &channel::never(), consume)
}

/// Waits for the next slot, or what comes from outside before it; `None` at the end of the slots. After a wake a slot that is
/// there has its turn.
fn next<W>(
    slots: &Receiver<Slot>,
    wakes: &Receiver<W>,
    woken: bool,
    idle: impl FnOnce() -> Result<(), Stop>,
) -> Result<Option<Result<Slot, W>>, Stop> {
    if let Some(Ok(wake)) = (!woken).then(|| wakes.try_recv()) {
        return Ok(Some(Err(wake)));
    }
    if let Ok(slot) = slots.try_recv() {
        return Ok(Some(Ok(slot)));
    }
    idle()?;
    Ok(channel::select! {
        recv(slots) -> slot => slot.ok().map(Ok),
        recv(wakes) -> wake => match wake {
            Ok(wake) => Some(Err(wake)),
            // Nobody is left who could wake.
            Err(_) => slots.recv().ok().map(Ok),
        },
    })
}

/// One worker's life. It ends with the inputs, or when the consumer is gone.
fn live(feed: &Mutex<Feed>, spare: &Receiver<Lines>, work: &impl Fn(&mut Lines) -> Result<(), Error>) {
    for mut lines in spare {
        let (slot, filled) = {
            let mut feed = feed.lock().expect("no worker panics while it reads");
            let Some(chunks) = &mut feed.chunks else { return };
            let filled = lines.fill(chunks);
            if !matches!(filled, Ok(true)) {
                feed.chunks = None;
            }
            if let Ok(false) = filled {
                return;
            }
            let (slot, result) = channel::bounded(1);
            if feed.announce.send(result).is_err() {
                return;
            }
            (slot, filled)
        };
        let _ = slot.send(filled.map(|_| work(&mut lines).map(|()| lines)));
    }
}
