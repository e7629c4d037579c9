//! Which file an input or output is, so that no output overwrites an input, and where filters can be saved.

use crate::error::Error;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// What an input or output is called, and which file it is.
#[derive(Clone)]
pub struct Origin {
    name: String,
    identity: Option<Identity>,
}

/// What tells one regular file from another: device and inode.
#[derive(Clone, PartialEq)]
struct Identity(u64, u64);

impl Identity {
    /// The identity of a regular file. Others, such as terminals, may well be input and output at once.
    fn of(metadata: &Metadata) -> Option<Self> {
        metadata.is_file().then(|| Self(metadata.dev(), metadata.ino()))
    }
}

impl Origin {
    /// An input that is open, under the name for the user.
    pub fn new(name: String, metadata: &Metadata) -> Self {
        Self { name, identity: Identity::of(metadata) }
    }

    /// A file that is opened later; opening tells whether it is there.
    pub fn of(path: &Path) -> Self {
        let identity = fs::metadata(path).ok().as_ref().and_then(Identity::of);
        Self { name: format!("{path:?}"), identity }
    }

    /// Its name for the user.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it is a regular file, which can be read again and never makes its reader wait for others.
    pub fn is_regular(&self) -> bool {
        self.identity.is_some()
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

/// Refuses a path that no filter can be saved to, or that is one of the inputs, before hours of reading are spent on it.
pub fn check_target<'a>(path: &Path, inputs: impl IntoIterator<Item = &'a Origin>) -> Result<(), Error> {
    let output = format!("{path:?}");
    match fs::metadata(path) {
        Ok(metadata) if !metadata.is_file() => Err(Error::NotRegular { output: output.clone() }),
        Ok(metadata) => refuse_input(&output, &metadata, inputs),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(source) => Err(Error::Create { output: output.clone(), source }),
    }?;
    // Saving goes through a temporary file there.
    tempfile::tempfile_in(folder(path)).map(drop).map_err(|source| Error::Create { output, source })
}

/// The folder that a file is in.
pub fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."))
}
