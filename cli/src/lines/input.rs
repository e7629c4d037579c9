//! Inputs: opened and checked all at once, before the first byte is read.

use crate::error::Error;
use crate::files::{self, Origin};
use crate::lines::decode::Coding;
use crate::lines::{decode, estimate};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, UNIX_EPOCH};

/// The inputs of a run.
pub struct Inputs {
    /// Those that can be opened, in order.
    pub found: Vec<Input>,
    /// The folders that they are in.
    pub folders: Vec<PathBuf>,
    /// What failed of the others, which are left out.
    pub left_out: Vec<String>,
    /// Bytes read of all of them, as they stand in the files.
    pub read: Arc<AtomicU64>,
}

/// An input that could be opened.
pub struct Input {
    /// What it is called, and which file it is.
    pub origin: Origin,
    /// Its path, or "-".
    pub path: PathBuf,
    /// A file that can be opened only once. It is read from this position on, or from where it is. A named regular file is
    /// opened again when its turn comes, so that thousands do not use up the descriptors.
    file: Option<(File, Option<u64>)>,
    /// Its size in bytes, if it is a regular file, that is, one which can be read again.
    pub size: Option<u64>,
    /// Whether it is a regular file that is compressed, as far as its first bytes tell.
    compressed: bool,
    /// When it was changed, since 1970, where the system tells.
    pub modified: Option<Duration>,
    /// Bytes read of all inputs.
    read: Arc<AtomicU64>,
}

/// An input that is being read.
pub struct Opened {
    /// Its contents, decompressed.
    pub contents: Box<dyn Read + Send>,
    /// Whether it is a regular file, which never makes its reader wait for others.
    pub regular: bool,
}

impl Inputs {
    /// Checks that all files can be opened; standard input if there are none. Fails where one cannot, unless `go_on`.
    pub fn check(files: &[PathBuf], go_on: bool) -> Result<Self, Error> {
        let folders = files.iter().map(|file| crate::files::folder(file).to_owned()).collect();
        let mut inputs = Self { found: Vec::new(), folders, left_out: Vec::new(), read: Arc::default() };
        let stdin = [PathBuf::from("-")];
        for path in if files.is_empty() { &stdin } else { files } {
            match Input::check(path, &inputs.read) {
                Ok(input) => inputs.found.push(input),
                Err(error) if go_on => inputs.left_out.push(format!("{error}; continued without it")),
                Err(error) => return Err(error),
            }
        }
        Ok(inputs)
    }
}

impl Input {
    /// Checks that a file can be opened, and is no directory and of no format that is not supported.
    fn check(path: &Path, read: &Arc<AtomicU64>) -> Result<Self, Error> {
        let stdin = files::is_standard(path);
        let name = if stdin { "standard input".to_owned() } else { files::name(path) };
        let open = || {
            let file = if stdin { io::stdin().as_fd().try_clone_to_owned()?.into() } else { File::open(path)? };
            let metadata = file.metadata()?;
            let compressed = metadata.is_file()
                && match Coding::of_file(&file) {
                    Err(error) if error.kind() == io::ErrorKind::Unsupported => return Err(error),
                    // Other errors may pass until it is read.
                    coding => coding.is_ok_and(|coding| coding != Coding::Plain),
                };
            Ok((file, metadata, compressed))
        };
        match open() {
            Ok((_, metadata, _)) if metadata.is_dir() => Err(Error::Directory { input: name }),
            Ok((file, metadata, compressed)) => {
                let file = (!metadata.is_file() || stdin).then_some((file, None));
                let origin = Origin::new(name, &metadata);
                let size = origin.is_regular().then_some(metadata.len());
                let modified = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
                Ok(Self { origin, path: path.to_owned(), file, size, compressed, modified, read: read.clone() })
            }
            Err(source) => Err(Error::Open { input: name, source }),
        }
    }

    /// The same input once more, to be read after this one. Only a regular file can be.
    pub fn again(&self) -> io::Result<Self> {
        let again = |(file, _): &(File, _)| {
            let mut file = file.try_clone()?;
            let start = file.stream_position()?;
            Ok::<_, io::Error>((file, Some(start)))
        };
        let Self { origin, path, file, size, compressed, modified, read } = self;
        let (origin, path, file) = (origin.clone(), path.clone(), file.as_ref().map(again).transpose()?);
        Ok(Self { origin, path, file, size: *size, compressed: *compressed, modified: *modified, read: read.clone() })
    }

    /// An estimate of the number of lines that `end` ends, somewhat too high rather than too low; `None` where only
    /// reading it all could tell.
    pub fn estimate_lines(&self, end: u8) -> Result<Option<u64>, Error> {
        if self.size.is_none() {
            return Ok(None);
        }
        let count = match &self.file {
            Some((file, _)) => estimate::lines(file, end),
            None => File::open(&self.path).and_then(|file| estimate::lines(&file, end)),
        };
        count.map_err(|source| Error::Estimate { input: self.origin.name().to_owned(), source })
    }

    /// Whether it is a compressed file, whose reading takes a core. Standard input is none.
    pub fn is_compressed(&self) -> bool {
        self.compressed && self.file.is_none()
    }

    /// Opens it at the byte `start` of its contents.
    pub fn open(self, start: u64) -> io::Result<Opened> {
        let file = match self.file {
            Some((mut file, position)) => {
                position.map_or(Ok(0), |position| file.seek(SeekFrom::Start(position)))?;
                file
            }
            None => File::open(self.path)?,
        };
        Ok(Opened { contents: decode::contents(file, start, self.read)?, regular: self.origin.is_regular() })
    }
}
