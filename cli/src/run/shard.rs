//! An input with an output of its own, on which several threads can work at once.
//!
//! ```text
//! read      one thread at a time: the next chunk of lines gets a number
//! claim     any number of threads: which lines are new
//! gather    in the order of the numbers: what is printed, cut into pieces, which get numbers too
//! encode    any number of threads: a piece is compressed
//! write     in the order of these numbers
//! ```
//!
//! A thread goes with a chunk from `read` to `write`. What has to wait for its turn is left behind, and goes on with whoever has
//! the turn. So all threads can help with one large file.

use crate::encode::{Encoder, Stream, encode};
use crate::error::{Error, Stop};
use crate::files::name;
use crate::lines::Lines;
use crate::lines::chunks::{Chunks, Cut};
use crate::lines::decode::Coding;
use crate::lines::input::Input;
use crate::lines::position::Position;
use crate::run::Run;
use crate::run::checkpoint::Mark;
use crate::run::folder::{Folder, Place};
use crate::run::manifest::Summary;
use crate::run::ordered::Ordered;
use crate::set::inserter::Counts;
use std::convert::Infallible;
use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom, Write};
use std::mem;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// An input and its output.
pub struct Shard {
    /// Its path.
    input: PathBuf,
    /// Bytes of the input as it stands in the file.
    pub size: u64,
    /// Where the output is.
    pub place: Place,
    reader: Mutex<Reader>,
    gatherer: Mutex<Gatherer>,
    writer: Mutex<Writer>,
    /// Chunks and pieces between `read` and `write`. Relaxed, for it only bounds the memory, and locks guard what is counted.
    in_flight: AtomicUsize,
}

struct Reader {
    /// `None` once they are read.
    chunks: Option<Chunks>,
    next: u64,
}

struct Gatherer {
    ordered: Ordered<Chunk>,
    position: Position,
    buffer: Vec<u8>,
    /// The number of the next piece.
    next: u64,
    /// Whether there was a piece.
    begun: bool,
    counts: Counts,
    broken: Option<String>,
}

struct Writer {
    ordered: Ordered<Option<Vec<u8>>>,
    /// What is under way, if the output is one stream.
    stream: Option<Stream>,
    /// While it is written.
    file: Option<File>,
    length: u64,
    whole: bool,
    /// Whether somebody gives it its name.
    named: bool,
}

/// What was read.
pub enum Chunk {
    /// Lines, and what was counted when they were claimed.
    Lines(Box<Lines>, Counts),
    /// The input failed, and that ends the run.
    Failed(io::Error),
    /// There are no more.
    End,
}

/// What comes of reading.
pub enum Taken {
    /// The chunk with this number.
    Chunk(u64, Chunk),
    /// Nothing before others have caught up.
    Later(Box<Lines>),
    /// Nothing ever.
    Ended(Box<Lines>),
}

/// Lines that are gathered.
pub struct Done {
    /// Their memory.
    pub lines: Box<Lines>,
    /// What was counted of them.
    pub counts: Counts,
    /// The first of them without a key, and why.
    pub fault: Option<String>,
    /// What failed of the input after them.
    pub broken: Option<String>,
}

/// A piece of the output with its number, to be written in its turn; `None` is the end.
pub type Piece = (u64, Option<Vec<u8>>);

fn locked<T>(stage: &Mutex<T>) -> MutexGuard<'_, T> {
    // After a panic nothing of it is saved.
    stage.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shard {
    /// From where it was at `mark`, the input of this number.
    pub fn new(number: usize, input: Input, place: Place, mark: Mark, cut: Cut) -> Self {
        let Mark { offset, output: length, whole, counts, broken } = mark;
        let (path, size) = (input.path.clone(), input.size.unwrap_or(0));
        let position = Position::new(number, offset, counts.lines);
        let chunks = (!whole).then(|| Chunks::new(vec![input], offset, cut));
        let reader = Reader { chunks, next: 0 };
        let (ordered, buffer, begun) = (Ordered::default(), Vec::new(), length > 0);
        let gatherer = Gatherer { ordered, position, buffer, next: 0, begun, counts, broken };
        let writer = Writer { ordered: Ordered::default(), stream: None, file: None, length, whole, named: false };
        Self {
            input: path,
            size,
            place,
            reader: Mutex::new(reader),
            gatherer: Mutex::new(gatherer),
            writer: Mutex::new(writer),
            in_flight: AtomicUsize::new(0),
        }
    }

    /// Reads the next lines, unless `most` chunks and pieces are on their way already.
    pub fn read(&self, mut lines: Box<Lines>, most: usize, folder: &Folder) -> Result<Taken, Error> {
        let mut reader = locked(&self.reader);
        let Reader { chunks: Some(chunks), next } = &mut *reader else { return Ok(Taken::Ended(lines)) };
        // One too many does no harm.
        if self.in_flight.load(Relaxed) >= most {
            return Ok(Taken::Later(lines));
        }
        if *next == 0 {
            self.begin(folder)?;
        }
        let chunk = match lines.fill(chunks) {
            Ok(true) => Chunk::Lines(lines, Counts::default()),
            Ok(false) => Chunk::End,
            Err(error) => Chunk::Failed(error),
        };
        let number = *next;
        *next += 1;
        if !matches!(chunk, Chunk::Lines(..)) {
            reader.chunks = None;
        }
        self.in_flight.fetch_add(1, Relaxed);
        Ok(Taken::Chunk(number, chunk))
    }

    /// Opens the output. What follows the length that it had at the mark is gone.
    fn begin(&self, folder: &Folder) -> Result<(), Error> {
        let Place { part, .. } = &self.place;
        let mut writer = locked(&self.writer);
        let length = writer.length;
        let open = || {
            if let Some(folder) = part.parent() {
                fs::create_dir_all(folder)?;
            }
            let mut file = File::options().write(true).create(true).truncate(false).open(part)?;
            let have = file.metadata()?.len();
            file.set_len(length.min(have))?;
            file.seek(SeekFrom::Start(length))?;
            Ok((file, have))
        };
        let (file, have) = open().map_err(|source| Error::Create { output: name(part), source })?;
        if have < length {
            return Err(Error::Shorter { output: name(part), have, want: length });
        }
        writer.file = Some(file);
        folder.begun(&self.place);
        Ok(())
    }

    /// Puts a chunk where it belongs. Returns the pieces that are due with it, and hands on the lines that are done.
    pub fn gather(
        &self,
        number: u64,
        chunk: Chunk,
        run: &Run<'_>,
        mut done: impl FnMut(Done),
    ) -> Result<Vec<Piece>, Stop> {
        let mut gatherer = locked(&self.gatherer);
        let gatherer = &mut *gatherer;
        gatherer.ordered.put(number, chunk);
        let mut pieces = Vec::new();
        while let Some(chunk) = gatherer.ordered.take() {
            self.in_flight.fetch_sub(1, Relaxed);
            match chunk {
                Chunk::Lines(mut lines, mut counts) => {
                    let fault = gatherer.add(&lines, &mut counts, run);
                    gatherer.position.check(&mut lines, run.wanted())?;
                    let Gatherer { position, broken, .. } = gatherer;
                    let mut why = None;
                    position.advance(&lines, lines.count(), |position, error| {
                        why = Some(format!("cannot read {position}: {error}; continued without the rest of it"));
                    });
                    if why.is_some() {
                        broken.clone_from(&why);
                    }
                    gatherer.counts.add(&counts);
                    gatherer.cut(&self.place, false, &mut pieces);
                    done(Done { lines, counts, fault, broken: why });
                }
                Chunk::Failed(source) => {
                    return Err(Stop::After(Error::Read { position: gatherer.position.to_string(), source }));
                }
                Chunk::End => {
                    gatherer.cut(&self.place, true, &mut pieces);
                    pieces.push((gatherer.next, None));
                    gatherer.next += 1;
                }
            }
        }
        self.in_flight.fetch_add(pieces.len(), Relaxed);
        Ok(pieces)
    }

    /// Compresses a piece, unless the output is one stream.
    pub fn encode(&self, piece: Vec<u8>, encoders: &mut Vec<Encoder>) -> Result<Vec<u8>, Error> {
        match self.place.compression {
            compression if compression.is_stream() => Ok(piece),
            compression => encode(encoders, compression, piece).map_err(|source| self.failed(source)),
        }
    }

    fn failed(&self, source: io::Error) -> Error {
        Error::Write { output: name(&self.place.part), source }
    }

    /// Writes a piece in its turn. Returns whether the output is whole with it, and synced if `sync`.
    pub fn write(&self, (number, piece): Piece, sync: bool) -> Result<bool, Error> {
        let mut writer = locked(&self.writer);
        let Writer { ordered, stream, file, length, whole, .. } = &mut *writer;
        let compression = self.place.compression;
        ordered.put(number, piece);
        let mut write = || {
            while let Some(piece) = ordered.take() {
                self.in_flight.fetch_sub(1, Relaxed);
                let open = file.as_mut().expect("it was opened before the first chunk was read");
                let ended = piece.is_none();
                let bytes = match piece {
                    Some(piece) if compression.is_stream() => {
                        let stream = match stream {
                            Some(stream) => stream,
                            None => stream.insert(Stream::new(compression)?),
                        };
                        stream.write(&piece)?;
                        stream.take()
                    }
                    Some(piece) => piece,
                    None => stream.take().map_or(Ok(Vec::new()), Stream::finish)?,
                };
                open.write_all(&bytes)?;
                *length += bytes.len() as u64;
                if ended {
                    if sync {
                        open.sync_data()?;
                    }
                    *file = None;
                    *whole = true;
                }
            }
            Ok(*whole)
        };
        write().map_err(|source| self.failed(source))
    }

    /// Writes and syncs all that was gathered. No thread may be at work on it.
    pub fn settle(&self, encoders: &mut Vec<Encoder>) -> Result<Mark, Error> {
        let mut gatherer = locked(&self.gatherer);
        if !gatherer.buffer.is_empty() {
            let piece = self.encode(mem::take(&mut gatherer.buffer), encoders)?;
            self.in_flight.fetch_add(1, Relaxed);
            self.write((gatherer.next, Some(piece)), false)?;
            gatherer.next += 1;
            gatherer.begun = true;
        }
        let mut writer = locked(&self.writer);
        let Writer { stream, file, length, .. } = &mut *writer;
        if let Some(file) = file {
            let bytes = stream.take().map_or(Ok(Vec::new()), Stream::finish);
            let settled = bytes.and_then(|bytes| {
                file.write_all(&bytes)?;
                *length += bytes.len() as u64;
                file.sync_data()
            });
            settled.map_err(|source| self.failed(source))?;
        }
        drop((gatherer, writer));
        Ok(self.mark())
    }

    /// Whether it is whole since the last call.
    pub fn is_unnamed(&self) -> bool {
        let mut writer = locked(&self.writer);
        writer.whole && !mem::replace(&mut writer.named, true)
    }

    /// Removes an output that is not whole.
    pub fn abandon(&self) {
        if locked(&self.writer).file.take().is_some() {
            // What cannot be removed is replaced by the next run.
            let _ = fs::remove_file(&self.place.part);
        }
    }

    /// Whether all of its input is read.
    pub fn is_read(&self) -> bool {
        locked(&self.reader).chunks.is_none()
    }

    /// Whether there is more to read, and fewer than `most` chunks and pieces are on their way.
    pub fn has_room(&self, most: usize) -> bool {
        !self.is_read() && self.in_flight.load(Relaxed) < most
    }

    /// What the manifest tells of it, once it is whole.
    pub fn summary(&self, documents: bool) -> Option<Summary<'_>> {
        let mark = self.mark();
        mark.whole.then(|| Summary::new(&self.input, self.size, &self.place, &mark, documents))
    }

    fn mark(&self) -> Mark {
        let gatherer = locked(&self.gatherer);
        let writer = locked(&self.writer);
        Mark {
            offset: gatherer.position.offset,
            output: writer.length,
            whole: writer.whole,
            counts: gatherer.counts.clone(),
            broken: gatherer.broken.clone(),
        }
    }
}

impl Gatherer {
    /// Gathers what is printed of some lines, and counts them. Returns the first fault.
    fn add(&mut self, lines: &Lines, counts: &mut Counts, run: &Run<'_>) -> Option<String> {
        let gathered = lines.print(run.annotates(), !run.inverts(), |bytes| {
            self.buffer.extend_from_slice(bytes);
            Ok::<_, Infallible>(())
        });
        let Ok(()) = gathered;
        counts.lines = lines.passed() as u64;
        counts.faults = lines.faults() as u64;
        counts.bytes = lines.bytes(lines.passed()) as u64;
        self.position.first_fault(lines)
    }

    /// Cuts off what makes up pieces, and at the `end` all of it. A compressed output has at least one piece, even if that is
    /// empty.
    fn cut(&mut self, place: &Place, end: bool, pieces: &mut Vec<Piece>) {
        // Plain bytes and those of a stream need no pieces of one size.
        let any = place.compression.coding == Coding::Plain || place.compression.is_stream();
        let size = if any { 1 } else { place.compression.piece() };
        let due = if end { self.buffer.len() } else { self.buffer.len() - self.buffer.len() % size };
        if due == 0 && (self.begun || !end) {
            return;
        }
        let rest = self.buffer.split_off(due);
        let due = mem::replace(&mut self.buffer, rest);
        let mut push = |piece| {
            pieces.push((self.next, Some(piece)));
            self.next += 1;
        };
        if size == 1 || due.len() <= size {
            push(due);
        } else {
            due.chunks(size).for_each(|piece| push(piece.to_vec()));
        }
        self.begun = true;
    }
}
