//! An output: a file or standard output, written in large pieces, compressed if its name asks for it.

use crate::error::Error;
use crate::files::{Origin, refuse_input};
use crate::lines::decode::Coding;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::fs::File;
use std::io::{self, BufWriter, Seek, Write};
use std::mem;
use std::os::fd::AsFd;
use std::path::Path;

/// Pieces up to this size are gathered, larger ones are written as they are.
const GATHERED: usize = 1 << 16;

/// Where lines go to.
pub struct Output {
    name: String,
    coding: Coding,
    writer: Writer,
    /// Standard output, whose reader may leave.
    standard: bool,
    /// A regular file: synced where others are only flushed.
    regular: bool,
}

enum Writer {
    Plain(BufWriter<File>),
    Gzip(GzEncoder<BufWriter<File>>),
    Zstd(zstd::Encoder<'static, BufWriter<File>>),
    /// After a failure.
    Closed,
}

impl Output {
    /// Opens `path`, or standard output. Refuses a file that is also an input before it is emptied.
    pub fn create<'a>(path: Option<&Path>, inputs: impl IntoIterator<Item = &'a Origin>) -> Result<Self, Error> {
        Self::open(path, inputs, 0)
    }

    /// Opens `path`, or standard output, to go on after the first `length` bytes that are there.
    pub fn open<'a>(
        path: Option<&Path>,
        inputs: impl IntoIterator<Item = &'a Origin>,
        length: u64,
    ) -> Result<Self, Error> {
        let name = name(path);
        let open = || {
            let file = match path {
                Some(path) => File::options().write(true).create(true).truncate(false).open(path)?,
                None => io::stdout().as_fd().try_clone_to_owned()?.into(),
            };
            file.metadata().map(|metadata| (file, metadata))
        };
        let failed = |source| Error::Create { output: name.clone(), source };
        let (mut file, metadata) = open().map_err(failed)?;
        refuse_input(&name, &metadata, inputs)?;
        if path.is_some() && metadata.is_file() {
            if metadata.len() < length {
                return Err(Error::Shorter { output: name, have: metadata.len(), want: length });
            }
            file.set_len(length).and_then(|()| file.seek(io::SeekFrom::Start(length))).map_err(failed)?;
        }
        let coding = path.map_or(Coding::Plain, Coding::of_name);
        // Not `Stdout`, which would look for the last newline in every piece.
        let writer = Writer::Plain(BufWriter::with_capacity(GATHERED, file));
        Ok(Self { name, coding, writer, standard: path.is_none(), regular: metadata.is_file() })
    }

    /// Writes bytes.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let write = |output: &mut Self| {
            output.begin()?;
            match &mut output.writer {
                Writer::Plain(writer) => writer.write_all(bytes),
                Writer::Gzip(writer) => writer.write_all(bytes),
                Writer::Zstd(writer) => writer.write_all(bytes),
                Writer::Closed => Err(io::ErrorKind::NotConnected.into()),
            }
        };
        write(self).map_err(|source| self.failed(source))
    }

    /// Lets a reader see what was written so far, unless that would make it compress less.
    pub fn flush(&mut self) -> Result<(), Error> {
        match &mut self.writer {
            Writer::Plain(writer) => writer.flush().map_err(|source| self.failed(source)),
            _ => Ok(()),
        }
    }

    /// Writes all that was gathered and syncs a file, so that it can be read up to here whatever happens next. Returns its
    /// length.
    pub fn settle(&mut self) -> Result<u64, Error> {
        let settle = |output: &mut Self| {
            let regular = output.regular;
            let file = output.end()?;
            if !regular {
                return Ok(0);
            }
            file.sync_data()?;
            file.stream_position()
        };
        settle(self).map_err(|source| self.failed(source))
    }

    /// Writes all that was gathered. Without it nothing tells whether the last bytes arrived.
    pub fn finish(&mut self) -> Result<(), Error> {
        let finish = |output: &mut Self| {
            // A compressed file has at least one member, even if that is empty.
            if output.regular && output.end()?.stream_position()? == 0 {
                output.begin()?;
            }
            output.end().map(drop)
        };
        finish(self).map_err(|source| self.failed(source))
    }

    /// Writes text and a newline, and all that is gathered.
    pub fn write_line(&mut self, text: &str) -> Result<(), Error> {
        self.write(text.as_bytes())?;
        self.write(b"\n")?;
        self.finish()
    }

    /// Begins a compressed member, where one is due.
    fn begin(&mut self) -> io::Result<()> {
        if self.coding == Coding::Plain || !matches!(self.writer, Writer::Plain(_)) {
            return Ok(());
        }
        if let Writer::Plain(writer) = mem::replace(&mut self.writer, Writer::Closed) {
            self.writer = match self.coding {
                Coding::Plain => Writer::Plain(writer),
                Coding::Gzip => Writer::Gzip(GzEncoder::new(writer, Compression::default())),
                Coding::Zstd => Writer::Zstd(zstd::Encoder::new(writer, zstd::DEFAULT_COMPRESSION_LEVEL)?),
            };
        }
        Ok(())
    }

    /// Ends a compressed member, if one is begun, and writes all that was gathered.
    fn end(&mut self) -> io::Result<&mut File> {
        self.writer = Writer::Plain(match mem::replace(&mut self.writer, Writer::Closed) {
            Writer::Plain(writer) => writer,
            Writer::Gzip(writer) => writer.finish()?,
            Writer::Zstd(writer) => writer.finish()?,
            Writer::Closed => return Err(io::ErrorKind::NotConnected.into()),
        });
        let Writer::Plain(writer) = &mut self.writer else { unreachable!("it was made plain above") };
        writer.flush()?;
        Ok(writer.get_mut())
    }

    fn failed(&self, source: io::Error) -> Error {
        if source.kind() == io::ErrorKind::BrokenPipe && self.standard {
            return Error::ReaderGone;
        }
        Error::Write { output: self.name.clone(), source }
    }
}

/// What an output is called, for the user to read.
pub fn name(path: Option<&Path>) -> String {
    path.map_or_else(|| "standard output".to_owned(), |path| format!("{path:?}"))
}
