//! `ReadAhead`: a thread that reads a file, so that the disk is busy while the caller computes a chunk's checksum and
//! touches new memory for the chunk.

use std::fs::File;
use std::io::{self, Read};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread::{Builder, Scope};

/// Bytes of a read, large enough to make system calls cheap.
pub(super) const READ_BYTES: usize = 1 << 20;

/// Reads that may wait for their consumer.
const QUEUED_READS: usize = 4;

pub(crate) struct ReadAhead {
    read: Receiver<io::Result<Vec<u8>>>,
    used: SyncSender<Vec<u8>>,
    current: Vec<u8>,
    position: usize,
}

impl ReadAhead {
    /// Starts the thread. The file must be at its start. The thread ends with the file, at an error, or when this is
    /// dropped.
    pub(crate) fn new<'scope>(scope: &'scope Scope<'scope, '_>, file: &'scope File) -> io::Result<Self> {
        let (full, read) = sync_channel(QUEUED_READS);
        let (used, empty) = sync_channel::<Vec<u8>>(QUEUED_READS);
        let work = move || {
            loop {
                let mut buffer = match empty.try_recv() {
                    Ok(buffer) => buffer,
                    Err(TryRecvError::Empty) => Vec::with_capacity(READ_BYTES),
                    Err(TryRecvError::Disconnected) => return,
                };
                buffer.clear();
                let result = file.take(READ_BYTES as u64).read_to_end(&mut buffer).map(|_| buffer);
                let last = result.as_ref().map_or(true, |buffer| buffer.is_empty());
                if full.send(result).is_err() || last {
                    return;
                }
            }
        };
        Builder::new().spawn_scoped(scope, work)?;
        Ok(Self { read, used, current: Vec::new(), position: 0 })
    }
}

impl Read for ReadAhead {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.position == self.current.len() {
            // If the channel is full, the buffer is freed. No more reads come after the end of the file.
            let _ = self.used.try_send(std::mem::take(&mut self.current));
            self.current = self.read.recv().unwrap_or_else(|_| Ok(Vec::new()))?;
            self.position = 0;
        }
        let read = (&self.current[self.position..]).read(buffer)?;
        self.position += read;
        Ok(read)
    }
}
