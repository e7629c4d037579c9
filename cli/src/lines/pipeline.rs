//! Workers read and hash chunks at once; the caller gets them in order.
//!
//! A worker takes a spare batch, locks the inputs, fills the batch, and before it unlocks announces the slot in which
//! the result will lie: so slots are announced in input order, whoever is done first. The worker that read a chunk
//! also works on it, while it is in that core's cache. Batches go round, so there are never more than the first few,
//! and a worker that is too far ahead waits for a spare one.

use crate::error::Error;
use crate::lines::Batch;
use crate::lines::chunks::Chunks;
use crate::lines::position::Place;
use crate::output::say;
use crossbeam::channel::{self, Receiver, Sender};
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};
use std::{io, panic, thread};

/// For a consumer that wants the next batch.
pub const GO_ON: ControlFlow<()> = ControlFlow::Continue(());

type Slot = Receiver<io::Result<Batch>>;

struct Source {
    /// `None` from the end or a failure on.
    chunks: Option<Chunks>,
    announce: Sender<Slot>,
}

/// What the caller gets.
pub enum Event<'a, W> {
    /// The next lines, and where in the inputs they start.
    Batch(&'a mut Batch, &'a Place),
    /// Something from outside.
    Wake(W),
    /// The next lines are not there yet.
    Idle,
}

/// Lets workers fill batches from `chunks`, which begin at `place`, and do `work` on each. Calls `consume` with each, in input
/// order, and in between with what comes through `wakes`, until it breaks or the first error. What was consumed before an
/// error is a prefix of the inputs. Of inputs that fail, and may, warnings tell unless `quiet`.
pub fn run<W>(
    threads: Option<u16>,
    quiet: bool,
    chunks: Chunks,
    mut place: Place,
    work: impl Fn(&mut Batch) + Send + Sync + 'static,
    wakes: &Receiver<W>,
    mut consume: impl FnMut(Event<W>) -> Result<ControlFlow<()>, Error>,
) -> Result<(), Error> {
    let threads = match threads {
        Some(threads) => threads.into(),
        None => thread::available_parallelism().map_or(1, usize::from),
    };
    let batches = 2 * threads + 2;
    let (recycle, spare) = channel::bounded(batches);
    let (announce, slots) = channel::bounded(batches);
    let source = Arc::new(Mutex::new(Source { chunks: Some(chunks), announce }));
    let work = Arc::new(work);
    // Not scoped: after an error the process can end while a worker waits for a pipe that stays silent.
    let mut workers = Vec::new();
    for _ in 0..threads {
        let (source, spare, work) = (source.clone(), spare.clone(), work.clone());
        let worker = thread::Builder::new().name("worker".into()).spawn(move || live(&source, &spare, &*work));
        workers.push(worker.map_err(|source| Error::Thread { source })?);
    }
    drop(source);
    for _ in 0..batches {
        // Fails only if all workers are gone, and the loop below ends then.
        let _ = recycle.send(Batch::default());
    }
    let mut woken = false;
    while let Some(next) = next(&slots, wakes, woken, &mut consume)? {
        woken = matches!(next, Next::Wake(_));
        let slot: Slot = match next {
            Next::Slot(slot) => slot,
            Next::Wake(wake) => {
                if consume(Event::Wake(wake))?.is_break() {
                    return Ok(());
                }
                continue;
            }
        };
        let Ok(result) = slot.recv() else { break };
        let mut batch = result.map_err(|source| Error::Read { place: place.to_string(), source })?;
        if consume(Event::Batch(&mut batch, &place))?.is_break() {
            return Ok(());
        }
        place.pass(&batch, |place, error| {
            if !quiet {
                say(&format!("bloomline: warning: cannot read {place}: {error}; went on without the rest of it"));
            }
        });
        let _ = recycle.send(batch);
    }
    drop(recycle);
    for worker in workers {
        // A worker that panicked must not pass for the end of the inputs.
        worker.join().unwrap_or_else(|payload| panic::resume_unwind(payload));
    }
    Ok(())
}

/// Runs without anything from outside.
pub fn batches(
    threads: Option<u16>,
    quiet: bool,
    chunks: Chunks,
    work: impl Fn(&mut Batch) + Send + Sync + 'static,
    mut consume: impl FnMut(&mut Batch, &Place) -> Result<ControlFlow<()>, Error>,
) -> Result<(), Error> {
    run(threads, quiet, chunks, Place::default(), work, &channel::never::<()>(), |event| match event {
        Event::Batch(batch, place) => consume(batch, place),
        Event::Wake(()) | Event::Idle => Ok(GO_ON),
    })
}

enum Next<W> {
    Slot(Slot),
    Wake(W),
}

/// Waits for the next slot or wake; `None` at the end of the slots. After a wake a slot that is there has its turn.
fn next<W>(
    slots: &Receiver<Slot>,
    wakes: &Receiver<W>,
    woken: bool,
    mut consume: impl FnMut(Event<W>) -> Result<ControlFlow<()>, Error>,
) -> Result<Option<Next<W>>, Error> {
    if let Some(Ok(wake)) = (!woken).then(|| wakes.try_recv()) {
        return Ok(Some(Next::Wake(wake)));
    }
    if let Ok(slot) = slots.try_recv() {
        return Ok(Some(Next::Slot(slot)));
    }
    if consume(Event::Idle)?.is_break() {
        return Ok(None);
    }
    channel::select! {
        recv(slots) -> slot => Ok(slot.ok().map(Next::Slot)),
        recv(wakes) -> wake => match wake {
            Ok(wake) => Ok(Some(Next::Wake(wake))),
            // Nobody is left who could wake.
            Err(_) => Ok(slots.recv().ok().map(Next::Slot)),
        },
    }
}

/// One worker's life. It ends with the inputs, or when the consumer is gone.
fn live(source: &Mutex<Source>, spare: &Receiver<Batch>, work: &impl Fn(&mut Batch)) {
    for mut batch in spare {
        let slot = {
            let mut source = source.lock().expect("no worker panics while it reads");
            let Some(chunks) = &mut source.chunks else { return };
            let filled = batch.fill(chunks);
            if !matches!(filled, Ok(true)) {
                source.chunks = None;
            }
            if let Ok(false) = filled {
                return;
            }
            let (slot, result) = channel::bounded(1);
            if source.announce.send(result).is_err() {
                return;
            }
            if let Err(error) = filled {
                let _ = slot.send(Err(error));
                return;
            }
            slot
        };
        work(&mut batch);
        let _ = slot.send(Ok(batch));
    }
}
