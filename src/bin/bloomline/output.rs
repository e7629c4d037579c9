//! The output: a file or standard output, written in large pieces.

use crate::error::Error;
use crate::input::{self, Origin};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::fd::AsFd;
use std::path::Path;

/// Pieces up to this size are gathered, larger ones are written as they are.
const GATHERED: usize = 1 << 16;

/// Where lines go to.
pub struct Output {
    name: String,
    writer: BufWriter<File>,
}

impl Output {
    /// Opens `path`, or standard output. Refuses a file that is also an input before it is emptied.
    pub fn create<'a>(path: Option<&Path>, inputs: impl IntoIterator<Item = &'a Origin>) -> Result<Self, Error> {
        let name = path.map_or_else(|| "standard output".to_owned(), |path| format!("{path:?}"));
        let open = || {
            let file = match path {
                Some(path) => File::options().write(true).create(true).truncate(false).open(path)?,
                None => io::stdout().as_fd().try_clone_to_owned()?.into(),
            };
            file.metadata().map(|metadata| (file, metadata))
        };
        let failed = |source| Error::Create { output: name.clone(), source };
        let (file, metadata) = open().map_err(failed)?;
        input::refuse_input(&name, &metadata, inputs)?;
        if path.is_some() && metadata.is_file() {
            file.set_len(0).map_err(failed)?;
        }
        // Not `Stdout`, which would look for the last newline in every piece.
        Ok(Self { name, writer: BufWriter::with_capacity(GATHERED, file) })
    }

    /// Writes bytes.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.writer.write_all(bytes).map_err(|source| self.failed(source))
    }

    /// Writes what is gathered. Without it nothing tells whether the last bytes arrived.
    pub fn finish(&mut self) -> Result<(), Error> {
        self.writer.flush().map_err(|source| self.failed(source))
    }

    /// Writes text and a newline, and all that is gathered.
    pub fn write_line(&mut self, text: &str) -> Result<(), Error> {
        self.write(text.as_bytes())?;
        self.write(b"\n")?;
        self.finish()
    }

    fn failed(&self, source: io::Error) -> Error {
        Error::Write { output: self.name.clone(), source }
    }
}

/// A message for the user; where standard error is closed, nobody wants it.
pub fn say(message: &str) {
    let _ = writeln!(io::stderr(), "{message}");
}
