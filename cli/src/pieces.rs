//! Compressing the pieces of outputs on all cores.
//!
//! Whoever writes an output hands its pieces to a crew of threads, and writes in order what comes back. So outputs need no lock, and
//! there are never more pieces under way than the crew can work on, and one that waits.

use crate::encode::{Compression, Encoder, encode};
use crate::error::Error;
use crossbeam_channel::{self as channel, Receiver, Sender, TryRecvError};
use std::collections::VecDeque;
use std::io::{self, Write};
use std::{mem, thread};

/// Threads that compress pieces, of any number of outputs. They end when all of these are gone.
#[derive(Clone, Default)]
pub struct Crew {
    threads: usize,
    /// `None` if there are no threads: whoever writes compresses.
    jobs: Option<Sender<Job>>,
}

struct Job {
    compression: Compression,
    piece: Vec<u8>,
    done: Sender<Done>,
}

/// A piece that is compressed, and its memory, for another.
type Done = (io::Result<Vec<u8>>, Vec<u8>);

impl Crew {
    /// Starts so many threads. In the place of one thread there is none: whoever writes compresses.
    pub fn new(threads: usize) -> Result<Self, Error> {
        if threads < 2 {
            return Ok(Self::default());
        }
        let (send, jobs) = channel::unbounded();
        for _ in 0..threads {
            let jobs = jobs.clone();
            let thread = thread::Builder::new().name("encoder".into()).spawn(move || work(jobs));
            thread.map_err(|source| Error::Thread { source })?;
        }
        Ok(Self { threads, jobs: Some(send) })
    }

    /// How many threads there are beside the calling one.
    pub fn threads(&self) -> usize {
        self.threads
    }
}

/// The life of a thread of the crew.
fn work(jobs: Receiver<Job>) {
    // Two outputs may be compressed in two ways.
    let mut encoders = Vec::new();
    for Job { compression, piece, done } in jobs {
        // Fails only if nobody wants the piece any more.
        let _ = done.send((encode(&mut encoders, compression, &piece[..]), piece));
    }
}

/// The pieces of an output: one that is gathered, and those under way.
pub struct Pieces {
    compression: Compression,
    crew: Crew,
    gathered: Vec<u8>,
    /// The oldest first.
    under_way: VecDeque<Receiver<Done>>,
    /// Memory for the next.
    spare: Vec<Vec<u8>>,
    /// That of whoever writes, without a crew.
    encoders: Vec<Encoder>,
}

impl Pieces {
    /// Of an output that is compressed like this.
    pub fn new(compression: Compression, crew: Crew) -> Self {
        Self {
            compression,
            crew,
            gathered: Vec::new(),
            under_way: VecDeque::new(),
            spare: Vec::new(),
            encoders: Vec::new(),
        }
    }

    /// Takes bytes in.
    pub fn add(&mut self, mut bytes: &[u8], out: &mut impl Write) -> io::Result<()> {
        let size = self.compression.piece();
        // Each piece but the last has the same size, whoever compresses it.
        while let Some((now, later)) = bytes.split_at_checked(size - self.gathered.len()) {
            self.gathered.extend_from_slice(now);
            self.hand_over(out)?;
            bytes = later;
        }
        if self.gathered.capacity() == 0 {
            self.gathered.reserve_exact(size);
        }
        self.gathered.extend_from_slice(bytes);
        Ok(())
    }

    /// How many are handed over and not written.
    pub fn under_way(&self) -> usize {
        self.under_way.len()
    }

    /// Whether nothing is gathered.
    pub fn is_empty(&self) -> bool {
        self.gathered.is_empty()
    }

    /// Hands over what is gathered, even if that is nothing.
    pub fn hand_over(&mut self, out: &mut impl Write) -> io::Result<()> {
        let Some(jobs) = &self.crew.jobs else {
            out.write_all(&encode(&mut self.encoders, self.compression, &self.gathered[..])?)?;
            self.gathered.clear();
            return Ok(());
        };
        let piece = mem::replace(&mut self.gathered, self.spare.pop().unwrap_or_default());
        let (done, result) = channel::bounded(1);
        jobs.send(Job { compression: self.compression, piece, done }).map_err(ended)?;
        self.under_way.push_back(result);
        self.write_done(self.crew.threads + 1, out)
    }

    /// Writes the pieces that are done and all that come before, and waits while more than `most` are under way.
    pub fn write_done(&mut self, most: usize, out: &mut impl Write) -> io::Result<()> {
        while let Some(first) = self.under_way.front() {
            let done = match first.try_recv() {
                Err(TryRecvError::Empty) if self.under_way.len() <= most => return Ok(()),
                Err(TryRecvError::Empty) => first.recv().map_err(ended)?,
                done => done.map_err(ended)?,
            };
            self.under_way.pop_front();
            let (compressed, mut piece) = done;
            piece.clear();
            self.spare.push(piece);
            out.write_all(&compressed?)?;
        }
        Ok(())
    }

    /// Writes all that was taken in.
    pub fn end(&mut self, out: &mut impl Write) -> io::Result<()> {
        if !self.gathered.is_empty() {
            self.hand_over(out)?;
        }
        self.write_done(0, out)
    }
}

/// A thread that panicked has said why.
fn ended<T>(_: T) -> io::Error {
    io::Error::other(Error::Encoder)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lines::decode::Coding;
    use std::iter;

    fn of(coding: Coding) -> Compression {
        Compression::of(coding)
    }

    /// What an output has that takes `bytes` in, so many at once.
    fn written(bytes: &[u8], at_once: usize, compression: Compression, threads: usize) -> Vec<u8> {
        let mut out = Vec::new();
        let mut pieces = Pieces::new(compression, Crew::new(threads).unwrap());
        for bytes in bytes.chunks(at_once) {
            pieces.add(bytes, &mut out).unwrap();
            assert!(pieces.under_way.len() <= threads + 1 && pieces.gathered.len() < compression.piece());
        }
        pieces.end(&mut out).unwrap();
        out
    }

    #[test]
    fn neither_the_threads_nor_the_writes_tell_in_the_bytes() {
        let bytes: Vec<u8> = (0..400_000).flat_map(|i| format!("line {i}\n").into_bytes()).collect();
        for coding in [Coding::Gzip, Coding::Zstd, Coding::Bzip2] {
            let expected = written(&bytes, bytes.len(), of(coding), 1);
            for (threads, at_once) in [(1, 77), (2, 4097), (3, 1 << 20), (8, bytes.len())] {
                assert!(written(&bytes, at_once, of(coding), threads) == expected, "{coding:?} {threads} {at_once}");
            }
        }
    }

    /// No call waits for it.
    #[test]
    fn threads_that_panic_are_an_error() {
        // No such level: the library panics.
        let compression = Compression { level: 99, ..of(Coding::Gzip) };
        let mut pieces = Pieces::new(compression, Crew::new(3).unwrap());
        let piece = vec![b'x'; compression.piece()];
        let mut out = Vec::new();
        let failed = iter::repeat_with(|| pieces.add(&piece, &mut out)).take(20).find_map(Result::err);
        assert!(failed.unwrap().to_string().contains("has ended"));
        for _ in 0..20 {
            assert!(pieces.hand_over(&mut out).and_then(|()| pieces.end(&mut out)).is_err());
        }
        assert!(out.is_empty());
    }

    #[test]
    fn an_output_that_takes_no_more_is_an_error() {
        let mut pieces = Pieces::new(of(Coding::Gzip), Crew::new(2).unwrap());
        let bytes = vec![b'x'; 20 << 20];
        assert!(pieces.add(&bytes, &mut &mut [0; 100][..]).is_err());
    }
}
