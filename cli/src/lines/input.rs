//! Inputs: opened and checked all at once, before the first byte is read.

use crate::error::Error;
use crate::lines::{decode, estimate};
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, UNIX_EPOCH};

/// An input that could be opened.
pub struct Input {
    origin: Origin,
    from: From,
    /// Its size in bytes, if it is a regular file.
    size: Option<u64>,
    /// When it was changed, since 1970, where the system tells.
    modified: Option<Duration>,
    /// Bytes read of all inputs, as they stand in the files.
    read: Arc<AtomicU64>,
}

/// An input that is being read.
pub struct Open {
    /// Its contents, decompressed.
    pub contents: Box<dyn Read + Send>,
    /// Whether it is a regular file, which never makes its reader wait for others.
    pub regular: bool,
}

/// What an input is called, and which file it is.
pub struct Origin {
    name: String,
    identity: Option<Identity>,
}

enum From {
    /// A named regular file: opened again when its turn comes, so that thousands do not use up the descriptors.
    Path(PathBuf),
    /// Anything else can be opened only once.
    File(File),
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

/// What tells one regular file from another: device and inode.
#[derive(PartialEq)]
struct Identity(u64, u64);

impl Identity {
    /// The identity of a regular file. Others, such as terminals, may well be input and output at once.
    fn of(metadata: &Metadata) -> Option<Self> {
        metadata.is_file().then(|| Self(metadata.dev(), metadata.ino()))
    }
}

impl Origin {
    /// What it is called, for the user to read.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Of a file that is opened later; that it is there is for the opening to tell.
    pub fn of(path: &Path) -> Self {
        let identity = fs::metadata(path).ok().as_ref().and_then(Identity::of);
        Self { name: format!("{path:?}"), identity }
    }
}

/// Refuses an output, with this name and metadata, that is also an input.
pub fn refuse_input<'a>(
    output: &str,
    metadata: &Metadata,
    inputs: impl IntoIterator<Item = &'a Origin>,
) -> Result<(), Error> {
    let identity = Identity::of(metadata);
    match inputs.into_iter().find(|input| identity.is_some() && input.identity == identity) {
        Some(input) => Err(Error::Overwrite { input: input.name.clone(), output: output.to_owned() }),
        None => Ok(()),
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
                let from = if metadata.is_file() && !stdin { From::Path(path.to_owned()) } else { From::File(file) };
                let identity = Identity::of(&metadata);
                let size = identity.is_some().then_some(metadata.len());
                let modified = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
                Ok(Self { origin: Origin { name, identity }, from, size, modified, read: read.clone() })
            }
            Err(source) => Err(Error::Open { input: name, source }),
        }
    }

    /// Its size in bytes, if it is a regular file, that is, one which can be read again.
    pub fn size(&self) -> Option<u64> {
        self.size
    }

    /// When it was changed, since 1970, where the system tells.
    pub fn modified(&self) -> Option<Duration> {
        self.modified
    }

    /// Bytes read of all inputs that were checked together, as they stand in the files.
    pub fn read(&self) -> &Arc<AtomicU64> {
        &self.read
    }

    /// What it is called, and which file it is.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// An estimate of the number of lines that `end` ends, somewhat too high rather than too low; `None` where only
    /// reading it all could tell.
    pub fn estimate_lines(&self, end: u8) -> Result<Option<u64>, Error> {
        if self.size.is_none() {
            return Ok(None);
        }
        let count = match &self.from {
            From::Path(path) => File::open(path).and_then(|file| estimate::lines(&file, end)),
            From::File(file) => estimate::lines(file, end),
        };
        count.map_err(|source| Error::Estimate { input: self.origin.name.clone(), source })
    }

    /// Opens it at the byte `start` of its contents.
    pub fn open(self, start: u64) -> io::Result<Open> {
        let file = match self.from {
            From::File(file) => file,
            From::Path(path) => File::open(path)?,
        };
        // What is skipped counts as read: of a file that is compressed, more than it is.
        self.read.fetch_add(start, Relaxed);
        let raw = |file| Counted { file, read: self.read };
        Ok(Open { contents: decode::contents(file, start, raw)?, regular: self.origin.identity.is_some() })
    }
}
