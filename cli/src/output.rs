//! An output: a file or standard output, written in large pieces, compressed if its name or an option asks for it.

use crate::encode::{Compression, Stream};
use crate::error::Error;
use crate::files::{self, Origin};
use crate::lines::decode::Coding;
use crate::pieces::{Crew, Pieces};
use crate::stall::Watched;
use std::fs::{self, File, TryLockError};
use std::io::{self, BufWriter, IsTerminal, Seek, Write};
use std::mem;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

/// Pieces up to this size are gathered, larger ones are written as they are.
const GATHERED: usize = 1 << 16;

/// Where lines go to.
pub struct Output {
    name: String,
    coder: Coder,
    file: BufWriter<Watched>,
    /// Standard output, whose reader may leave.
    standard: bool,
    /// A regular file: synced where others are only flushed.
    regular: bool,
    /// Nothing was written so far, nor is anything before it.
    empty: bool,
}

/// What bytes go through.
enum Coder {
    Plain,
    Pieces(Pieces),
    /// One that is under way, or none yet.
    Stream(Compression, Option<Stream>),
}

/// A file or standard output that is open. What is in it stays until [`begin`](Self::begin), so all that can fail comes before.
pub struct Target {
    /// What it is called, and which file it is.
    pub origin: Origin,
    file: File,
    path: Option<PathBuf>,
    compression: Compression,
    /// Its length.
    length: u64,
    /// There was no such file before, so it goes again if nothing begins.
    made: Option<PathBuf>,
}

impl Target {
    /// Opens `path`, or standard output, which "-" is too, to be compressed as is asked or as its name tells. Refuses a file that
    /// is read or written besides, by this run or another, and compressed bytes for a terminal.
    pub fn open<'a>(
        path: Option<&Path>,
        compression: Option<Compression>,
        read: impl IntoIterator<Item = &'a Origin>,
        written: impl IntoIterator<Item = &'a Origin>,
    ) -> Result<Self, Error> {
        let path = path.filter(|path| !files::is_standard(path));
        let name = path.map_or_else(|| "standard output".to_owned(), files::name);
        let compression = Compression::of_output(path, compression)?;
        let open = || {
            let Some(path) = path else { return Ok((io::stdout().as_fd().try_clone_to_owned()?.into(), None)) };
            let there = path.exists();
            let file = File::options().write(true).create(true).truncate(false).open(path)?;
            // The name of the file itself, should a link lead to it.
            Ok((file, if there { None } else { Some(path.canonicalize()?) }))
        };
        let opened = open().and_then(|(file, made): (File, _)| file.metadata().map(|metadata| (file, made, metadata)));
        let (file, made, metadata) = opened.map_err(|source| Error::Create { output: name.clone(), source })?;
        let origin = Origin::new(name, &metadata);
        let mut target = Self { origin, file, path: path.map(Path::to_owned), compression, length: 0, made };
        target.origin.check_apart(read, written)?;
        if compression.coding != Coding::Plain && target.file.is_terminal() {
            return Err(Error::Terminal { output: target.origin.name().to_owned() });
        }
        if let Some(path) = target.path.as_ref().filter(|_| target.origin.is_regular()) {
            // The lock goes with the descriptor. Where there are no locks, nothing tells of others.
            let taken = matches!(target.file.try_lock(), Err(TryLockError::WouldBlock));
            // A run that made it and did not begin may have removed it since it was opened here.
            if taken || !files::is_named(path, &metadata) {
                target.made = None;
                return Err(Error::Locked { file: target.origin.name().to_owned() });
            }
            // From the lock on it is this run's alone.
            let metadata = target.file.metadata();
            target.length =
                metadata.map_err(|source| Error::Create { output: target.origin.name().to_owned(), source })?.len();
        }
        Ok(target)
    }

    /// Whether there are bytes in a file that a run from its beginning would lose.
    pub fn is_full(&self) -> bool {
        self.length > 0
    }

    /// How it is compressed.
    pub fn compression(&self) -> Compression {
        self.compression
    }

    /// Refuses a file that is shorter than it was.
    pub fn check_length(&self, length: u64) -> Result<(), Error> {
        if self.origin.is_regular() && self.length < length {
            let output = self.origin.name().to_owned();
            return Err(Error::Shorter { output, have: self.length, want: length });
        }
        Ok(())
    }

    /// The output after the first `length` bytes that are there. What follows them is gone. Its pieces are the crew's work.
    pub fn begin(mut self, length: u64, crew: Crew) -> Result<Output, Error> {
        self.check_length(length)?;
        let name = self.origin.name().to_owned();
        let mut file = self.file.try_clone().map_err(|source| Error::Create { output: name.clone(), source })?;
        let regular = self.origin.is_regular();
        if self.path.is_some() && regular {
            let begun = file.set_len(length).and_then(|()| file.seek(io::SeekFrom::Start(length)));
            begun.map_err(|source| Error::Create { output: name.clone(), source })?;
        }
        self.made = None;
        let coder = match self.compression {
            Compression { coding: Coding::Plain, .. } => Coder::Plain,
            compression if compression.is_stream() => Coder::Stream(compression, None),
            compression => Coder::Pieces(Pieces::new(compression, crew)),
        };
        // Not `Stdout`, which would look for the last newline in every piece.
        let file = BufWriter::with_capacity(GATHERED, Watched { file, regular });
        Ok(Output { name, coder, file, standard: self.path.is_none(), regular, empty: length == 0 })
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        if let Some(path) = &self.made
            && self.file.metadata().is_ok_and(|metadata| metadata.len() == 0)
        {
            // Not worth a message beside the one that is on its way.
            let _ = fs::remove_file(path);
        }
    }
}

impl Output {
    /// Opens `path`, or standard output, and empties it. Refuses a file that is also an input.
    pub fn create<'a>(path: Option<&Path>, inputs: impl IntoIterator<Item = &'a Origin>) -> Result<Self, Error> {
        Target::open(path, None, inputs, [])?.begin(0, Crew::default())
    }

    /// Writes bytes.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.empty &= bytes.is_empty();
        self.encode(bytes).map_err(|source| self.failed(source))
    }

    fn encode(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.coder {
            Coder::Plain => self.file.write_all(bytes),
            Coder::Pieces(pieces) => pieces.add(bytes, &mut self.file),
            Coder::Stream(compression, under_way) => {
                let stream = match under_way {
                    Some(stream) => stream,
                    None => under_way.insert(Stream::new(*compression)?),
                };
                stream.write(bytes)?;
                self.file.write_all(&stream.take())
            }
        }
    }

    /// Lets a reader see what was written so far, unless that would make it compress less.
    pub fn flush(&mut self) -> Result<(), Error> {
        self.write_done(usize::MAX)?;
        self.file.flush().map_err(|source| self.failed(source))
    }

    /// Writes all that was gathered and syncs a file, so that it can be read up to here whatever happens next. Returns its
    /// length.
    pub fn settle(&mut self) -> Result<u64, Error> {
        let settle = |output: &mut Self| {
            output.end()?;
            if !output.regular {
                return Ok(0);
            }
            let file = &mut output.file.get_mut().file;
            file.sync_data()?;
            file.stream_position()
        };
        settle(self).map_err(|source| self.failed(source))
    }

    /// Lets others compress all that was gathered. Then [`finish`](Self::finish) has little to wait for.
    pub fn hand_over(&mut self) -> Result<(), Error> {
        let done = match &mut self.coder {
            Coder::Pieces(pieces) if !pieces.is_empty() || mem::take(&mut self.empty) => {
                pieces.hand_over(&mut self.file)
            }
            _ => Ok(()),
        };
        done.map_err(|source| self.failed(source))
    }

    /// Pieces that are being compressed.
    pub fn under_way(&self) -> usize {
        match &self.coder {
            Coder::Pieces(pieces) => pieces.under_way(),
            _ => 0,
        }
    }

    /// Writes pieces that are done, and waits while more than `most` are under way.
    pub fn write_done(&mut self, most: usize) -> Result<(), Error> {
        let done = match &mut self.coder {
            Coder::Pieces(pieces) => pieces.write_done(most, &mut self.file),
            _ => Ok(()),
        };
        done.map_err(|source| self.failed(source))
    }

    /// The length of a file that is finished.
    pub fn length(&mut self) -> Result<u64, Error> {
        let length = self.file.get_mut().file.stream_position();
        length.map_err(|source| self.failed(source))
    }

    /// Writes all that was gathered. Without it nothing tells whether the last bytes arrived.
    pub fn finish(&mut self) -> Result<(), Error> {
        let finish = |output: &mut Self| {
            // A compressed file has at least one member, even if that is empty.
            if mem::take(&mut output.empty) {
                output.encode(b"")?;
                if let Coder::Pieces(pieces) = &mut output.coder {
                    pieces.hand_over(&mut output.file)?;
                }
            }
            output.end()
        };
        finish(self).map_err(|source| self.failed(source))
    }

    /// Writes text and a newline, and all that is gathered.
    pub fn write_line(&mut self, text: &str) -> Result<(), Error> {
        self.write(text.as_bytes())?;
        self.write(b"\n")?;
        self.finish()
    }

    /// Ends what is compressed, and writes all that was gathered.
    fn end(&mut self) -> io::Result<()> {
        match &mut self.coder {
            Coder::Plain => {}
            Coder::Pieces(pieces) => pieces.end(&mut self.file)?,
            Coder::Stream(_, under_way) => {
                if let Some(stream) = under_way.take() {
                    self.file.write_all(&stream.finish()?)?;
                }
            }
        }
        self.file.flush()
    }

    fn failed(&self, source: io::Error) -> Error {
        if source.kind() == io::ErrorKind::BrokenPipe && self.standard {
            return Error::ReaderGone;
        }
        Error::Write { output: self.name.clone(), source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;
    use std::thread;

    /// The others are refused, and remove nothing.
    #[test]
    fn of_runs_that_begin_at_once_one_makes_the_output() {
        let folder = tempfile::tempdir().unwrap();
        for round in 0..500 {
            let path = folder.path().join(round.to_string());
            let (start, end) = (Barrier::new(4), Barrier::new(4));
            let run = || {
                start.wait();
                let opened = Target::open(Some(&path), None, [], []);
                let refused = opened.as_ref().err().map(|error| matches!(error, Error::Locked { .. }));
                assert!(refused.unwrap_or(true));
                let begun = opened.is_ok();
                let output = opened.and_then(|target| target.begin(0, Crew::default()));
                // Locks are held until all have tried.
                end.wait();
                drop(output);
                begun
            };
            let begun = thread::scope(|scope| {
                let runs = [(); 4].map(|()| scope.spawn(run));
                runs.map(|run| run.join().unwrap()).iter().filter(|begun| **begun).count()
            });
            assert_eq!((begun, path.exists()), (1, true), "round {round}");
        }
    }
}
