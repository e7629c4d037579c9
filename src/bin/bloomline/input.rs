//! Inputs: opened and checked all at once, before the first byte is read.

use crate::error::Error;
use crate::estimate;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// An input that could be opened.
pub struct Input {
    origin: Origin,
    from: From,
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
        if files.is_empty() {
            return Ok(vec![Self::check(Path::new("-"))?]);
        }
        files.iter().map(|path| Self::check(path)).collect()
    }

    /// Checks that a file can be read; "-" is standard input.
    pub fn check(path: &Path) -> Result<Self, Error> {
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
                Ok(Self { origin: Origin { name, identity: Identity::of(&metadata) }, from })
            }
            Err(source) => Err(Error::Open { input: name, source }),
        }
    }

    /// What it is called, and which file it is.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// An estimate of the number of lines, somewhat too high rather than too low.
    pub fn estimate_lines(&self) -> Result<u64, Error> {
        if self.origin.identity.is_none() {
            return Err(Error::KeysUnknown { input: self.origin.name.clone() });
        }
        let count = match &self.from {
            From::Path(path) => File::open(path).and_then(|file| estimate::lines(&file)),
            From::File(file) => estimate::lines(file),
        };
        count.map_err(|source| Error::Estimate { input: self.origin.name.clone(), source })
    }

    /// The open file and its name.
    pub fn open(self) -> Result<(File, String), Error> {
        match self.from {
            From::File(file) => Ok((file, self.origin.name)),
            From::Path(path) => match File::open(path) {
                Ok(file) => Ok((file, self.origin.name)),
                Err(source) => Err(Error::Open { input: self.origin.name, source }),
            },
        }
    }
}
