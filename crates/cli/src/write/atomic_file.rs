//! A file that is written under another name and renamed once it is whole, so readers never see an incomplete file.

use crate::read::compression::Compression;
use crate::system::files::{self, appended};
use bloomline::KeyHasher;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The start of the name of a hidden file.
const HIDDEN: &str = ".bloomline-";

/// The end of the name of a file that is not whole.
const PART: &str = ".part";

/// A longer name is replaced by its hash, because file systems limit names to 255 bytes or less.
const LONGEST: usize = 100;

/// A file by both of its names, and how it is compressed.
#[derive(Clone, Debug, PartialEq)]
pub struct AtomicFile {
    pub whole: PathBuf,
    /// Its name while it is written.
    pub part: PathBuf,
    pub compression: Compression,
    /// The mode of a new file, before the user's mask.
    mode: u32,
}

impl AtomicFile {
    /// Describes a file whose unfinished contents are kept as `NAME.part`, for a run that resumes.
    pub fn resumable(whole: PathBuf, compression: Compression) -> Self {
        Self { part: appended(&whole, PART), whole, compression, mode: 0o666 }
    }

    /// Describes a file whose unfinished contents only its owner can read. A directory is read without them, because they are hidden.
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

    /// Opens the contents: new ones, or the ones that an earlier run left if `continues`. Follows no link.
    pub fn open(&self, continues: bool) -> io::Result<File> {
        let file = File::options().write(true).create_new(!continues).mode(self.mode).open(&self.part)?;
        if !files::is_file_itself(&self.part, &file.metadata()?) {
            return Err(io::Error::other("it is a link or not a regular file"));
        }
        Ok(file)
    }

    /// Renames the contents, which are whole and synced, to the file's name.
    pub fn commit(&self) -> io::Result<()> {
        fs::rename(&self.part, &self.whole)
    }
}

/// True for the path of hidden contents, in progress or left over.
pub fn is_hidden(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_bytes();
    name.starts_with(HIDDEN.as_bytes()) && name.ends_with(PART.as_bytes())
}
