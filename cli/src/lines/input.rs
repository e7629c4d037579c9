//! Inputs: opened and checked all at once, before the first byte is read.

use crate::error::Error;
use crate::files::Origin;
use crate::lines::{decode, estimate};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, UNIX_EPOCH};

/// An input that could be opened.
pub struct Input {
    /// What it is called, and which file it is.
    pub origin: Origin,
    source: Source,
    /// Its size in bytes, if it is a regular file, that is, one which can be read again.
    pub size: Option<u64>,
    /// When it was changed, since 1970, where the system tells.
    pub modified: Option<Duration>,
    /// Bytes read of all inputs that were checked together, as they stand in the files.
    pub read: Arc<AtomicU64>,
}

/// An input that is being read.
pub struct Opened {
    /// Its contents, decompressed.
    pub contents: Box<dyn Read + Send>,
    /// Whether it is a regular file, which never makes its reader wait for others.
    pub regular: bool,
}

enum Source {
    /// A named regular file: opened again when its turn comes, so that thousands do not use up the descriptors.
    Path(PathBuf),
    /// Anything else can be opened only once. It is read from this position on, or from where it is.
    File(File, Option<u64>),
}

/// A file that counts what is read of it.
struct Counted {
    file: File,
    read: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.file.read(buffer)?;
        // For a display that may lag behind.
        self.read.fetch_add(n as u64, Relaxed);
        Ok(n)
    }
}

impl Input {
    /// Checks that all files can be read; standard input if there are none.
    pub fn check_all(files: &[PathBuf]) -> Result<Vec<Self>, Error> {
        let read = Arc::default();
        if files.is_empty() {
            return Ok(vec![Self::check(Path::new("-"), &read)?]);
        }
        files.iter().map(|path| Self::check(path, &read)).collect()
    }

    /// Checks that a file can be read; "-" is standard input.
    fn check(path: &Path, read: &Arc<AtomicU64>) -> Result<Self, Error> {
        let stdin = path == Path::new("-");
        let name = if stdin { "standard input".to_owned() } else { format!("{path:?}") };
        let open = || {
            let file = if stdin { io::stdin().as_fd().try_clone_to_owned()?.into() } else { File::open(path)? };
            file.metadata().map(|metadata| (file, metadata))
        };
        match open() {
            Ok((_, metadata)) if metadata.is_dir() => Err(Error::Directory { input: name }),
            Ok((file, metadata)) => {
                let source =
                    if metadata.is_file() && !stdin { Source::Path(path.to_owned()) } else { Source::File(file, None) };
                let origin = Origin::new(name, &metadata);
                let size = origin.is_regular().then_some(metadata.len());
                let modified = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
                Ok(Self { origin, source, size, modified, read: read.clone() })
            }
            Err(source) => Err(Error::Open { input: name, source }),
        }
    }

    /// The path of a file that has a name.
    pub fn path(&self) -> Option<&Path> {
        match &self.source {
            Source::Path(path) => Some(path),
            Source::File(..) => None,
        }
    }

    /// The same input once more, to be read after this one. Only a regular file can be.
    pub fn again(&self) -> io::Result<Self> {
        let source = match &self.source {
            Source::Path(path) => Source::Path(path.clone()),
            Source::File(file, _) => {
                let mut file = file.try_clone()?;
                let start = file.stream_position()?;
                Source::File(file, Some(start))
            }
        };
        let Self { origin, size, modified, read, .. } = self;
        Ok(Self { origin: origin.clone(), source, size: *size, modified: *modified, read: read.clone() })
    }

    /// An estimate of the number of lines that `end` ends, somewhat too high rather than too low; `None` where only
    /// reading it all could tell.
    pub fn estimate_lines(&self, end: u8) -> Result<Option<u64>, Error> {
        if self.size.is_none() {
            return Ok(None);
        }
        let count = match &self.source {
            Source::Path(path) => File::open(path).and_then(|file| estimate::lines(&file, end)),
            Source::File(file, _) => estimate::lines(file, end),
        };
        count.map_err(|source| Error::Estimate { input: self.origin.name().to_owned(), source })
    }

    /// Opens it at the byte `start` of its contents.
    pub fn open(self, start: u64) -> io::Result<Opened> {
        let file = match self.source {
            Source::File(mut file, position) => {
                position.map_or(Ok(0), |position| file.seek(SeekFrom::Start(position)))?;
                file
            }
            Source::Path(path) => File::open(path)?,
        };
        // Skipped bytes count as read. In a compressed file that is more than the bytes of the file.
        self.read.fetch_add(start, Relaxed);
        let raw = |file| Counted { file, read: self.read };
        Ok(Opened { contents: decode::contents(file, start, raw)?, regular: self.origin.is_regular() })
    }
}
