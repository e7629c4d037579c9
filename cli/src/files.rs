//! What files are called, which of them are the same, and where filters can be saved.

use crate::error::Error;
use serde_json::Value;
use std::ffi::OsString;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{self, Component, Path, PathBuf};

/// What an input or output is called, and which file it is.
#[derive(Clone)]
pub struct Origin {
    name: String,
    /// Of all but devices: a terminal may well be input and output at once, and `/dev/null` anything.
    identity: Option<Identity>,
    regular: bool,
}

/// What tells one file from another: device and inode.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Identity(u64, u64);

impl Identity {
    /// That of the file with this metadata.
    pub fn of(metadata: &Metadata) -> Self {
        Self(metadata.dev(), metadata.ino())
    }
}

impl Origin {
    /// A file that is open, under the name for the user.
    pub fn new(name: String, metadata: &Metadata) -> Self {
        let kind = metadata.file_type();
        let device = kind.is_char_device() || kind.is_block_device();
        let identity = (!device).then(|| Identity::of(metadata));
        Self { name, identity, regular: metadata.is_file() }
    }

    /// A file that is opened later, when it may not be there; "-" is standard input.
    pub fn of(path: &Path) -> Self {
        let standard = || File::from(io::stdin().as_fd().try_clone_to_owned()?).metadata();
        match if is_standard(path) { standard() } else { fs::metadata(path) } {
            Ok(metadata) => Self::new(input_name(path), &metadata),
            Err(_) => Self { name: input_name(path), identity: None, regular: false },
        }
    }

    /// Whether it is what is at a path, which has this inode.
    pub fn is_at(&self, path: &Path, inode: u64) -> bool {
        let may_be = self.identity.as_ref().is_some_and(|identity| identity.1 == inode);
        may_be && self.identity == Self::of(path).identity
    }

    /// Its name for the user.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What tells it from other files, unless it is a device, or not there.
    pub fn identity(&self) -> Option<Identity> {
        self.identity
    }

    /// Whether it is a regular file, which can be read again and never makes its reader wait for others.
    pub fn is_regular(&self) -> bool {
        self.regular
    }

    /// Refuses to write to it if it is also read, or written by another name. Pipes and sockets may be read and written at once,
    /// but what goes into one of them from two outputs is a mixture.
    pub fn check_apart<'a>(
        &self,
        read: impl IntoIterator<Item = &'a Self>,
        written: impl IntoIterator<Item = &'a Self>,
    ) -> Result<(), Error> {
        let same = |other: &&Self| self.identity.is_some() && self.identity == other.identity;
        let read = read.into_iter().filter(|other| other.regular);
        match read.chain(written).find(same) {
            Some(other) => Err(Error::Overwrite { input: other.name.clone(), output: self.name.clone() }),
            None => Ok(()),
        }
    }
}

/// Refuses a path that no filter can be saved to, or that is one of the inputs, before hours of reading are spent on it.
pub fn check_target<'a>(path: &Path, inputs: impl IntoIterator<Item = &'a Origin>) -> Result<(), Error> {
    let output = name(path);
    match fs::metadata(path) {
        Ok(metadata) if !metadata.is_file() => Err(Error::NotRegular { output: output.clone() }),
        Ok(metadata) => Origin::new(output.clone(), &metadata).check_apart(inputs, []),
        // It would be replaced by a file.
        Err(error) if error.kind() == io::ErrorKind::NotFound && path.is_symlink() => {
            Err(Error::Dangling { output: output.clone() })
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(source) => Err(Error::Create { output: output.clone(), source }),
    }?;
    // Saving goes through a temporary file there.
    tempfile::tempfile_in(folder(&resolved(path))).map(drop).map_err(|source| Error::Create { output, source })
}

/// Makes an error of the system that of a file which cannot be written.
pub fn failed(path: &Path) -> impl Fn(io::Error) -> Error {
    move |source| Error::Create { output: name(path), source }
}

/// Removes a file or link, if it exists.
pub fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory].contains(&error.kind()) => Ok(()),
        removed => removed,
    }
}

/// Makes the names of the files in a folder safe from a crash.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// What a file is called for the user to read: on one line, whatever is in the name.
pub fn name(path: &Path) -> String {
    format!("{path:?}")
}

/// The same for an input.
pub fn input_name(path: &Path) -> String {
    if is_standard(path) { "standard input".to_owned() } else { name(path) }
}

/// The bytes of a path that is not UTF-8, in hexadecimal.
pub fn hex(path: &Path) -> Option<String> {
    let bytes = path.as_os_str().as_bytes();
    path.to_str().is_none().then(|| bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The members of a JSON object that tell a file: its name and, if that is not UTF-8, its bytes.
pub fn members(path: &Path) -> String {
    let hex = hex(path).map_or(String::new(), |hex| format!(",\"file_hex\":\"{hex}\""));
    format!("\"file\":{}{hex}", Value::from(path.to_string_lossy()))
}

/// Whether the path stands for standard input or output.
pub fn is_standard(path: &Path) -> bool {
    path == Path::new("-")
}

/// Whether a path still leads to the file that was opened by it.
pub fn is_named(path: &Path, opened: &Metadata) -> bool {
    fs::metadata(path).is_ok_and(|named| Identity::of(&named) == Identity::of(opened))
}

/// Whether at a path there is the regular file that was opened by it, and no link to it.
pub fn is_file_itself(path: &Path, opened: &Metadata) -> bool {
    let there = fs::symlink_metadata(path);
    opened.is_file() && there.is_ok_and(|there| Identity::of(&there) == Identity::of(opened))
}

/// The folder that a file is in.
pub fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."))
}

/// The path with its folder in full, however that is spelled, whether the file is there or not.
pub fn whole(path: &Path) -> PathBuf {
    let folder = folder(path).canonicalize().unwrap_or_else(|_| folder(path).into());
    path.file_name().map_or_else(|| path.into(), |name| folder.join(name))
}

/// The file that a path leads to, however that is spelled, whether it is there or not.
pub fn resolved(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| whole(path))
}

/// A path from the root on, without `.` and `..`. Links stay as they are named.
pub fn plain(path: &Path) -> PathBuf {
    let full = path::absolute(path).unwrap_or_else(|_| path.into());
    full.components().fold(PathBuf::new(), |mut plain, part| {
        match part {
            Component::ParentDir => _ = plain.pop(),
            part => plain.push(part),
        }
        plain
    })
}

/// Where a path leads to, whether the file and its folders are there or not.
pub fn real(path: &Path) -> PathBuf {
    let full = plain(path);
    let of = |there: &Path| Some(there.canonicalize().ok()?.join(full.strip_prefix(there).ok()?));
    full.ancestors().find_map(of).unwrap_or_else(|| full.clone())
}

/// The path with something after it.
pub fn appended(path: &Path, end: &str) -> PathBuf {
    let mut path = OsString::from(path);
    path.push(end);
    path.into()
}

/// The file of the lock on a filter's file, however that is spelled.
pub fn lock_of(filter: &Path) -> PathBuf {
    appended(&resolved(filter), ".lock")
}

/// The file of the checkpoints of a run whose state is in this file.
pub fn checkpoints_of(state: &Path) -> PathBuf {
    appended(state, ".resume")
}

/// A filter's file, and what may stand beside it.
pub fn of_filter(filter: &Path) -> [PathBuf; 3] {
    [filter.into(), lock_of(filter), checkpoints_of(filter)]
}
