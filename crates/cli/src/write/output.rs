//! An output: a file or standard output, compressed if its name or an option asks for it.
//!
//! Lines are taken in by the thread that drains the buffer. Output that is compressed in pieces is then handled piece by piece: any
//! thread compresses one, and they are written in order. No thread blocks on another; the lock is held only during a write.

use crate::read::compression::Compression;
use crate::read::table::{Assembly, Encode, Group, Saved};
use crate::system::error::{Error, MORE_MEMORY, lacks_memory};
use crate::system::platform;
use crate::system::unpoisoned::locked;
use crate::system::write_watchdog::WatchedFile;
use crate::terminal::signals;
use crate::write::encode::{Encoder, SLICE, Stream, quick};
use crate::write::reorder_buffer::ReorderBuffer;
use std::fs;
use std::io::{self, BufWriter, IsTerminal, Seek, Write};
use std::mem;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

/// Up to this number of bytes are buffered; larger writes bypass the buffer.
const GATHERED: usize = 1 << 16;

/// An output of lines.
pub struct Output {
    name: String,
    compression: Compression,
    /// True for standard output, whose reader may exit.
    standard: bool,
    /// The path, if it is a regular file.
    path: Option<PathBuf>,
    gathered: Mutex<PendingInput>,
    /// True if a header or a line was taken in, by this run or the one that it continues. Relaxed: only the thread that drains the
    /// buffer changes it.
    begun: AtomicBool,
    /// The path, if this run created the file and may remove it again, because no line was written to it.
    created: Mutex<Option<PathBuf>>,
    /// Relaxed: it only bounds the memory, and locks guard the pieces that it counts.
    compressing_pieces: AtomicUsize,
    /// Compressed pieces, and the end.
    pieces: ReorderBuffer<Option<EncodedPiece>>,
    writer: Mutex<Writer>,
}

/// The input that was taken in and is not yet a piece.
pub struct PendingInput {
    /// Bytes of an incomplete piece, or those that came after a signal if the output is one stream.
    buffer: Vec<u8>,
    /// The compressor, if the output is one stream and has begun. It is boxed because most outputs have none.
    stream: Option<Box<Stream>>,
    /// The number of the next piece.
    next: u64,
    /// True if nothing was taken in and nothing precedes it.
    empty: bool,
}

struct Writer {
    /// `None` once the output is whole.
    file: Option<BufWriter<WatchedFile>>,
    /// The length that is safe from a crash, or final.
    length: u64,
    /// The row groups, if it is a table.
    table: Option<Box<dyn Assembly>>,
    /// The state of a table before its end was written, with which a run may resume. `length` is then the length before the end.
    saved: Option<Saved>,
    /// True if it is a table with its end.
    is_table: bool,
}

/// The contents of a piece before it is encoded.
pub enum PieceContents {
    Bytes(Vec<u8>),
    Rows(Encode),
}

/// An encoded piece.
enum EncodedPiece {
    Bytes(Vec<u8>),
    Group(Box<dyn Group>),
}

/// A piece of the output with its number, to be compressed and written in order; `None` is the end.
pub type Piece = (u64, Option<PieceContents>);

/// A writer that takes bytes in.
pub enum PieceWriter<'a> {
    Plain(&'a mut BufWriter<WatchedFile>),
    Stream(Compression, &'a mut PendingInput, &'a mut BufWriter<WatchedFile>),
    Pieces(&'a mut Vec<u8>),
}

impl Write for PieceWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all(bytes).map(|()| bytes.len())
    }

    #[inline]
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Plain(file) => file.write_all(bytes),
            Self::Pieces(buffer) => {
                buffer.try_reserve(bytes.len())?;
                buffer.write_all(bytes)
            }
            Self::Stream(compression, PendingInput { stream, buffer, .. }, file) => {
                let mut slices = bytes.chunks(SLICE);
                while signals::first().is_none()
                    && let Some(slice) = slices.next()
                {
                    let stream = match stream {
                        Some(stream) => stream,
                        None => stream.insert(Stream::new(*compression)?.into()),
                    };
                    stream.write(slice)?;
                    file.write_all(&stream.take())?;
                }
                slices.for_each(|slice| buffer.extend_from_slice(slice));
                Ok(())
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Output {
    /// Creates an output after the first `length` bytes of a file, or standard output if there is no path. `table` is the table so far, if
    /// any. `created` is the path if this run created the file.
    pub(super) fn new(
        file: WatchedFile,
        name: String,
        compression: Compression,
        path: Option<PathBuf>,
        created: Option<PathBuf>,
        length: u64,
        table: Option<Box<dyn Assembly>>,
    ) -> Self {
        Self {
            name,
            compression,
            standard: path.is_none(),
            path: path.filter(|_| file.regular),
            gathered: Mutex::new(PendingInput { buffer: Vec::new(), stream: None, next: 0, empty: length == 0 }),
            begun: AtomicBool::new(false),
            created: Mutex::new(created),
            compressing_pieces: AtomicUsize::new(0),
            pieces: ReorderBuffer::new((0, 0)),
            // Not `Stdout`, which would search for the last newline in every write.
            writer: Mutex::new(Writer {
                file: Some(BufWriter::with_capacity(GATHERED, file)),
                length,
                table,
                saved: None,
                is_table: false,
            }),
        }
    }

    /// Records whether the run that this one continues printed a header or a line.
    pub fn continues(self, begun: bool) -> Self {
        self.begun.store(begun, Relaxed);
        self
    }

    /// True if a header or a line was printed. A compressed output may have bytes before that.
    pub fn has_begun(&self) -> bool {
        self.begun.load(Relaxed)
    }

    /// True for the first printed lines, unless other bytes precede them, as in a file that is appended to.
    pub fn is_first_write(&self, prints: impl FnOnce() -> bool) -> bool {
        if self.has_begun() || !prints() {
            return false;
        }
        self.begun.store(true, Relaxed);
        self.keep();
        !self.is_appended_to()
    }

    /// Keeps the file, even if no line is written to it.
    pub fn keep(&self) {
        *locked(&self.created) = None;
    }

    /// Removes the file if this run created it and has written no line to it. With `only_empty`, a file that has other bytes is kept.
    pub fn remove_unused(&self, only_empty: bool) {
        let Some(path) = locked(&self.created).take() else { return };
        if !only_empty || path.metadata().is_ok_and(|metadata| metadata.len() == 0) {
            // Not worth a message beside the error that caused it.
            let _ = fs::remove_file(path);
        }
    }

    /// True if standard output is a file with contents before it is written to.
    fn is_appended_to(&self) -> bool {
        let writer = locked(&self.writer);
        let file = writer.file.as_ref().map(BufWriter::get_ref).filter(|file| self.standard && file.regular);
        file.is_some_and(|WatchedFile { file, .. }| file.metadata().is_ok_and(|metadata| metadata.len() > 0))
    }

    /// Takes in the printed bytes. Returns the pieces that are complete. Output without pieces is flushed if `live`.
    pub fn take_in(
        &self,
        live: bool,
        print: impl FnOnce(&mut PieceWriter<'_>) -> io::Result<()>,
    ) -> Result<Vec<Piece>, Error> {
        let mut gathered = locked(&self.gathered);
        if self.compression.is_in_pieces() {
            let done = print(&mut PieceWriter::Pieces(&mut gathered.buffer));
            return done.map(|()| self.cut(&mut gathered, false)).map_err(|source| self.failed(source));
        }
        let mut writer = locked(&self.writer);
        let Some(file) = &mut writer.file else { return Ok(Vec::new()) };
        let taken = if self.compression.is_stream() {
            print(&mut PieceWriter::Stream(self.compression, &mut gathered, file))
        } else {
            print(&mut PieceWriter::Plain(file))
        };
        let taken = taken.and_then(|()| if live { file.flush() } else { Ok(()) });
        taken.map(|()| Vec::new()).map_err(|source| self.failed(source))
    }

    /// Takes in rows of a table. Returns them as a piece.
    pub fn take_rows(&self, rows: Encode) -> Piece {
        self.keep();
        let mut gathered = locked(&self.gathered);
        let number = gathered.next;
        gathered.next += 1;
        self.compressing_pieces.fetch_add(1, Relaxed);
        (number, Some(PieceContents::Rows(rows)))
    }

    /// Flushes bytes that were written without pieces.
    pub fn flush(&self) -> Result<(), Error> {
        locked(&self.writer).flush(false).map_err(|source| self.failed(source))
    }

    /// Ends the output. Returns the remaining pieces.
    pub fn end(&self) -> Result<Vec<Piece>, Error> {
        let gathered = &mut *locked(&self.gathered);
        self.end_stream(gathered, true).map_err(|source| self.failed(source))?;
        let mut pieces = self.cut(gathered, true);
        self.compressing_pieces.fetch_add(1, Relaxed);
        pieces.push((gathered.next, None));
        Ok(pieces)
    }

    /// Compresses a piece, and writes the pieces that are next in order. Returns true if the output is whole with them; it is
    /// then synced if `sync`.
    pub fn put(&self, (number, piece): Piece, encoder: &mut Encoder, sync: bool) -> Result<bool, Error> {
        let encode = |piece| match piece {
            PieceContents::Bytes(bytes) => {
                encoder.encode(self.compression, &bytes).map(EncodedPiece::Bytes).map_err(|source| self.failed(source))
            }
            PieceContents::Rows(encode) => encode().map(EncodedPiece::Group),
        };
        self.pieces.put((0, number), (0, number + 1), piece.map(encode).transpose()?);
        let mut whole = false;
        while let Some((_turn, piece)) = self.pieces.take() {
            self.compressing_pieces.fetch_sub(1, Relaxed);
            whole = piece.is_none();
            let mut writer = locked(&self.writer);
            let Writer { file, table, .. } = &mut *writer;
            let written = match (&piece, file) {
                (Some(EncodedPiece::Bytes(bytes)), Some(file)) => file.write_all(bytes),
                (Some(EncodedPiece::Group(group)), Some(file)) => {
                    if table.is_none() {
                        self.check_table(file.get_ref())?;
                    }
                    group.append(table, file)
                }
                (None, Some(file)) => match table {
                    Some(table) => table.finish(file),
                    None => Ok(()),
                },
                (_, None) => Ok(()),
            };
            let written = written.and_then(|()| writer.flush(sync && whole)).inspect_err(|_| self.pieces.close());
            written.map_err(|source| self.failed(source))?;
            if whole {
                writer.file = None;
            }
        }
        Ok(whole)
    }

    /// Refuses an output in which no table can begin, because it must begin at the first byte of a file.
    fn check_table(&self, WatchedFile { file, regular, .. }: &WatchedFile) -> Result<(), Error> {
        if file.is_terminal() {
            return Err(Error::new(format!(
                "cannot write Parquet to {}: it is a terminal; name a file with -o",
                self.name
            )));
        }
        let length = if *regular { file.metadata().map_err(|source| self.failed(source))?.len() } else { 0 };
        if length == 0 {
            return Ok(());
        }
        Err(Error::new(format!(
            "cannot write Parquet to {}: it already has contents, and Parquet needs a file of its own; name one with -o",
            self.name
        )))
    }

    /// Returns the number of pieces that are being compressed or wait for their turn.
    pub fn compressing_pieces(&self) -> usize {
        self.compressing_pieces.load(Relaxed)
    }

    /// Writes all that was taken in. With `sync`, syncs a file, so that it is readable up to here after a crash. No other thread
    /// may be using it.
    pub fn write_out(&self, encoder: &mut Encoder, sync: bool) -> Result<(), Error> {
        self.write_all(encoder, false, sync)
    }

    /// Returns the length of the file when it was last synced, or became whole.
    pub fn length(&self) -> u64 {
        locked(&self.writer).length
    }

    /// Returns the table so far, if it is one.
    pub fn table(&self) -> Result<Option<Saved>, Error> {
        let writer = locked(&self.writer);
        let save = || writer.table.as_ref().map(|table| table.save().map_err(|source| self.failed(source))).transpose();
        writer.saved.clone().map_or_else(save, |saved| Ok(Some(saved)))
    }

    /// Writes all that was taken in, and the end. Compressed output has at least one piece, even if that is empty. No other thread
    /// may be using it.
    pub fn finish(&self, encoder: &mut Encoder) -> Result<(), Error> {
        self.write_all(encoder, true, false)
    }

    /// Closes the file, which is finished.
    pub fn close(&self) {
        locked(&self.writer).file = None;
    }

    fn write_all(&self, encoder: &mut Encoder, end: bool, sync: bool) -> Result<(), Error> {
        let gathered = &mut *locked(&self.gathered);
        let end_piece = end || !gathered.buffer.is_empty();
        for piece in self.cut(gathered, end_piece) {
            self.put(piece, encoder, sync)?;
        }
        let ended = self.end_stream(gathered, end);
        let writer = &mut *locked(&self.writer);
        let is_table = end && writer.table.is_some();
        let ended = ended.and_then(|()| if end { writer.end_table() } else { Ok(()) });
        let ended = ended.and_then(|()| writer.flush(sync)).inspect(|()| writer.is_table |= is_table);
        ended.map_err(|source| self.failed(source))
    }

    /// Deletes an incomplete table after a write error.
    pub fn remove_cut_table(&self) {
        let is_whole_table = locked(&self.writer).is_table;
        if !is_whole_table && let Some(path) = &self.path {
            // The path of the file itself, behind all links. If it cannot be removed, readers report it as truncated.
            let _ = path.canonicalize().and_then(fs::remove_file);
        }
    }

    /// Writes all that was taken in, then a text and a newline.
    pub fn write_line(&self, text: impl AsRef<[u8]>) -> Result<(), Error> {
        self.write_text(&[text.as_ref(), b"\n"].concat())
    }

    /// Writes all that was taken in, then a text as it is.
    pub fn write_text(&self, text: &[u8]) -> Result<(), Error> {
        self.keep();
        let encoder = &mut Encoder::default();
        let pieces = self.take_in(true, |out| out.write_all(text))?;
        pieces.into_iter().try_for_each(|piece| self.put(piece, encoder, false).map(drop))?;
        self.finish(encoder)
    }

    /// Cuts off the complete pieces, and at the `end` the rest too.
    fn cut(&self, gathered: &mut PendingInput, end: bool) -> Vec<Piece> {
        let mut pieces = Vec::new();
        if self.compression.is_in_pieces() {
            let PendingInput { buffer, next, empty, .. } = gathered;
            let size = self.compression.piece();
            let due = if end { buffer.len() } else { buffer.len() - buffer.len() % size };
            if due > 0 || end && *empty {
                let rest = buffer.split_off(due);
                let due = mem::replace(buffer, rest);
                let mut push = |piece| {
                    pieces.push((*next, Some(PieceContents::Bytes(piece))));
                    *next += 1;
                };
                if due.len() <= size {
                    push(due)
                } else {
                    due.chunks(size).for_each(|piece| push(piece.to_vec()))
                }
                *empty = false;
            }
            self.compressing_pieces.fetch_add(pieces.len(), Relaxed);
        }
        pieces
    }

    /// Ends the compressed stream, and writes the bytes that came after a signal. At the `end` of an empty output, the stream is
    /// written without contents.
    fn end_stream(&self, gathered: &mut PendingInput, end: bool) -> io::Result<()> {
        if !self.compression.is_stream() {
            return Ok(());
        }
        let mut writer = locked(&self.writer);
        let Some(file) = &mut writer.file else { return Ok(()) };
        let stream = match gathered.stream.take() {
            None if end && gathered.buffer.is_empty() && mem::take(&mut gathered.empty) => {
                Some(Stream::new(self.compression)?.into())
            }
            stream => stream,
        };
        gathered.empty &= stream.is_none() && gathered.buffer.is_empty();
        if let Some(stream) = stream {
            file.write_all(&stream.finish()?)?;
        }
        let rest = mem::take(&mut gathered.buffer);
        if !rest.is_empty() {
            file.write_all(&quick(self.compression, &rest)?)?;
        }
        Ok(())
    }

    fn failed(&self, source: io::Error) -> Error {
        if platform::is_reader_gone(&source) && self.standard {
            return Error::ReaderGone;
        }
        let remedy = if lacks_memory(&source) { format!("; {MORE_MEMORY}") } else { String::new() };
        Error::new(format!("cannot write to {}: {source}{remedy}", self.name))
    }
}

/// A run that ends early, before its first line, leaves no new file.
impl Drop for Output {
    fn drop(&mut self) {
        self.remove_unused(true);
    }
}

impl Writer {
    /// Writes the end of a table, and saves the state before it, from which a run can resume.
    fn end_table(&mut self) -> io::Result<()> {
        if self.table.is_none() || self.saved.is_some() {
            return Ok(());
        }
        self.flush(false)?;
        let Self { file, table: Some(table), saved, .. } = self else { return Ok(()) };
        *saved = Some(table.save()?);
        match file {
            Some(file) => table.finish(file),
            None => Ok(()),
        }
    }

    fn flush(&mut self, sync: bool) -> io::Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        file.flush()?;
        let WatchedFile { file, regular, .. } = file.get_mut();
        if *regular {
            if sync {
                file.sync_data()?;
            }
            if self.saved.is_none() {
                self.length = file.stream_position()?;
            }
        }
        Ok(())
    }
}
