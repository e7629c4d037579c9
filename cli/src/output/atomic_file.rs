//! A file that is written under another name, and gets its own once it is whole. So whoever sees it sees all of it.

use crate::encode::Compression;
use crate::files::{self, appended};
use bloomline::KeyHasher;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The start of the name of hidden contents.
const HIDDEN: &str = ".bloomline-";

/// The end of the name of a file that is not whole.
const PART: &str = ".part";

/// A longer name is represented by a hash, as file systems take 255 bytes, or less.
const LONGEST: usize = 100;

/// A file by both of its names, and how it is compressed.
#[derive(Clone, Debug, PartialEq)]
pub struct AtomicFile {
    /// Its name.
    pub whole: PathBuf,
    /// Its name while it is written.
    pub part: PathBuf,
    /// How it is compressed.
    pub compression: Compression,
    /// The mode of a new file, of which the system takes the user's mask away.
    mode: u32,
}

impl AtomicFile {
    /// A file whose unfinished contents are kept for a run that goes on, as `NAME.part`.
    pub fn resumable(whole: PathBuf, compression: Compression) -> Self {
        Self { part: appended(&whole, PART), whole, compression, mode: 0o666 }
    }

    /// A file whose unfinished contents only its owner can read. Directories are read without them, as they are hidden.
    pub fn hidden(whole: PathBuf, compression: Compression) -> Self {
        let name = whole.file_name().unwrap_or_default();
        let mut part = OsString::from(HIDDEN);
        if name.len() > LONGEST {
            part.push(format!("{:016x}", KeyHasher::new(0).bytes(name.as_bytes())));
        } else {
            part.push(name);
        }
        part.push(PART);
        Self { part: whole.with_file_name(part), whole, compression, mode: 0o600 }
    }

    /// Opens the contents: new ones, or those that an earlier run left if it `goes_on`. Follows no link.
    pub fn open(&self, goes_on: bool) -> io::Result<File> {
        let file = File::options().write(true).create_new(!goes_on).mode(self.mode).open(&self.part)?;
        if !files::is_file_itself(&self.part, &file.metadata()?) {
            return Err(io::Error::other("it is a link, or no regular file"));
        }
        Ok(file)
    }

    /// Gives the contents, which are whole and synced, the file's name.
    pub fn commit(&self) -> io::Result<()> {
        fs::rename(&self.part, &self.whole)
    }
}

/// True for the path of hidden contents, which a run writes or left.
pub fn is_hidden(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_bytes();
    name.starts_with(HIDDEN.as_bytes()) && name.ends_with(PART.as_bytes())
}
