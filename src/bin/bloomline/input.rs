//! Inputs: opened and checked all at once, before the first byte is read.

use crate::error::Error;
use crate::estimate;
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// An input that could be opened.
pub struct Input {
    name: String,
    identity: Option<Identity>,
    from: From,
}

enum From {
    /// A named regular file: opened again when its turn comes, so that thousands do not use up the descriptors.
    Path(PathBuf),
    /// Anything else can be opened only once.
    File(File),
}

/// What tells one regular file from another: device and inode.
#[derive(Clone, Copy, PartialEq)]
pub struct Identity(u64, u64);

impl Identity {
    /// The identity of a regular file. Others, such as terminals, may well be input and output at once.
    pub fn of(metadata: &Metadata) -> Option<Self> {
        metadata.is_file().then(|| Self(metadata.dev(), metadata.ino()))
    }
}

impl Input {
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
                Ok(Self { name, identity: Identity::of(&metadata), from })
            }
            Err(source) => Err(Error::Open { input: name, source }),
        }
    }

    /// The input's name as it is shown to the user.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The identity of a regular file.
    pub fn identity(&self) -> Option<Identity> {
        self.identity
    }

    /// An estimate of the number of lines, somewhat too high rather than too low.
    pub fn estimate_lines(&self) -> Result<u64, Error> {
        if self.identity.is_none() {
            return Err(Error::KeysUnknown { input: self.name.clone() });
        }
        let count = match &self.from {
            From::Path(path) => File::open(path).and_then(|file| estimate::lines(&file)),
            From::File(file) => estimate::lines(file),
        };
        count.map_err(|source| Error::Estimate { input: self.name.clone(), source })
    }

    /// The open file and its name.
    pub fn open(self) -> Result<(File, String), Error> {
        match self.from {
            From::File(file) => Ok((file, self.name)),
            From::Path(path) => match File::open(path) {
                Ok(file) => Ok((file, self.name)),
                Err(source) => Err(Error::Open { input: self.name, source }),
            },
        }
    }
}
