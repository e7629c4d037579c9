//! Workers read and hash chunks at once; the caller gets them in order.
//!
//! A worker takes a spare batch, locks the inputs, fills the batch, and before it unlocks announces the slot in which
//! the result will lie: so slots are announced in input order, whoever is done first. The worker that read a chunk
//! also works on it, while it is in that core's cache. Batches go round, so there are never more than the first few,
//! and a worker that is too far ahead waits for a spare one.

use crate::batch::Batch;
use crate::chunks::Chunks;
use crate::cli::Reading;
use crate::error::Error;
use crate::input::Input;
use crossbeam::channel::{self, Receiver, Sender};
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};
use std::{panic, thread};

type Slot = Receiver<Result<Batch, Error>>;

struct Source {
    /// `None` from the end or a failure on.
    chunks: Option<Chunks>,
    announce: Sender<Slot>,
}

/// Reads the inputs in batches, lets workers do `work` on each, and calls `consume` with each, in input order, until it
/// breaks or the first error. What was consumed before an error is a prefix of the inputs.
pub fn run(
    options: &Reading,
    inputs: Vec<Input>,
    work: impl Fn(&mut Batch) + Send + Sync + 'static,
    mut consume: impl FnMut(&mut Batch) -> Result<ControlFlow<()>, Error>,
) -> Result<(), Error> {
    let threads = match options.threads {
        Some(threads) => threads.into(),
        None => thread::available_parallelism().map_or(1, usize::from),
    };
    let batches = 2 * threads + 2;
    let (recycle, spare) = channel::bounded(batches);
    let (announce, slots) = channel::bounded(batches);
    let chunks = Chunks::new(inputs, options.chunk_size as usize);
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
    for slot in slots {
        let Ok(result) = slot.recv() else { break };
        let mut batch = result?;
        if consume(&mut batch)?.is_break() {
            return Ok(());
        }
        let _ = recycle.send(batch);
    }
    drop(recycle);
    for worker in workers {
        // A worker that panicked must not pass for the end of the inputs.
        worker.join().unwrap_or_else(|payload| panic::resume_unwind(payload));
    }
    Ok(())
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
