//! Workers read and hash chunks at once; the caller gets them in order.
//!
//! A worker takes a spare batch, locks the inputs, fills its chunk, and before it unlocks announces the slot in which
//! the result will lie: so slots are announced in input order, whoever is done first. The worker that read a chunk
//! also hashes it, while it is in that core's cache. Batches go round, so there are never more than the first few,
//! and a worker that is too far ahead waits for a spare one.

use crate::chunks::{Chunk, Chunks};
use crate::error::Error;
use crate::lines::newlines;
use bloomline::KeyHasher;
use crossbeam::channel::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::{panic, thread};

/// A chunk and what a worker found in it.
#[derive(Default)]
pub struct Batch {
    chunk: Chunk,
    ends: Vec<usize>,
    hashes: Vec<u64>,
}

impl Batch {
    /// The lines, each with its newline.
    pub fn bytes(&self) -> &[u8] {
        self.chunk.bytes()
    }

    /// Where each line ends in the bytes, past its newline.
    pub fn ends(&self) -> &[usize] {
        &self.ends
    }

    /// The hash of each line without its newline.
    pub fn hashes(&self) -> &[u64] {
        &self.hashes
    }

    fn hash(&mut self, hasher: &KeyHasher) {
        self.ends.clear();
        self.hashes.clear();
        let bytes = self.chunk.bytes();
        newlines(bytes, |newline| self.ends.push(newline + 1));
        let mut start = 0;
        self.hashes.extend(self.ends.iter().map(|&end| {
            let line = &bytes[start..end - 1];
            start = end;
            hasher.bytes(line)
        }));
    }
}

type Slot = Receiver<Result<Batch, Error>>;

struct Source {
    /// `None` from the end or a failure on.
    chunks: Option<Chunks>,
    announce: Sender<Slot>,
}

/// Reads and hashes all chunks with `threads` workers and calls `consume` with each, in input order, until the first
/// error. What was consumed before an error is a prefix of the inputs.
pub fn run(
    chunks: Chunks,
    hasher: &KeyHasher,
    threads: usize,
    mut consume: impl FnMut(&Batch) -> Result<(), Error>,
) -> Result<(), Error> {
    let batches = 2 * threads + 2;
    let (recycle, spare) = channel::bounded(batches);
    let (announce, slots) = channel::bounded(batches);
    let source = Arc::new(Mutex::new(Source { chunks: Some(chunks), announce }));
    // Not scoped: after an error the process can end while a worker waits for a pipe that stays silent.
    let mut workers = Vec::new();
    for _ in 0..threads {
        let (source, spare, hasher) = (source.clone(), spare.clone(), hasher.clone());
        let worker = thread::Builder::new().name("hash".into()).spawn(move || work(&source, &spare, &hasher));
        workers.push(worker.map_err(|source| Error::Thread { source })?);
    }
    drop(source);
    for _ in 0..batches {
        // Fails only if all workers are gone, and the loop below ends then.
        let _ = recycle.send(Batch::default());
    }
    for slot in slots {
        let Ok(result) = slot.recv() else { break };
        let batch = result?;
        consume(&batch)?;
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
fn work(source: &Mutex<Source>, spare: &Receiver<Batch>, hasher: &KeyHasher) {
    for mut batch in spare {
        let slot = {
            let mut source = source.lock().expect("no worker panics while it reads");
            let Some(chunks) = &mut source.chunks else { return };
            let filled = chunks.fill(&mut batch.chunk);
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
        batch.hash(hasher);
        let _ = slot.send(Ok(batch));
    }
}
