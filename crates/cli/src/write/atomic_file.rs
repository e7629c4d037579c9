//! A file that is written under another name and renamed once it is whole, so readers never see an incomplete file.

use crate::read::compression::Compression;
use crate::system::files::{self, appended};
use bloomline::KeyHasher;
use std::ffi::OsString;
use std::fs::{self, File, Metadata, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

/// The start of the name of a hidden file.
const HIDDEN: &str = ".bloomline-";

/// The end of the name of a file that is not whole.
const PART: &str = ".part";

/// A longer name is replaced by its hash, because file systems limit names to 255 bytes or less.
const LONGEST: usize = 100;

/// The set-user-ID and set-group-ID bits of a mode.
const SET_ID: u32 = 0o6000;

/// The mode of contents that only their owner can read.
const PRIVATE: u32 = 0o600;

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
        Self { part: whole.with_file_name(part), whole, compression, mode: PRIVATE }
    }

    /// Opens the contents: new ones, or the ones that an earlier run left if `continues`. Follows no link.
    pub fn open(&self, continues: bool) -> io::Result<File> {
        // A file that is replaced may be private.
        let mode = if self.whole.exists() { PRIVATE } else { self.mode };
        let file = File::options().write(true).create_new(!continues).mode(mode).open(&self.part)?;
        if !files::is_file_itself(&self.part, &file.metadata()?) {
            return Err(io::Error::other("it is a link or not a regular file"));
        }
        Ok(file)
    }

    /// Renames the contents, which are whole and synced, to the file's name. They get the owner, the group and the mode of the file
    /// that they replace.
    pub fn commit(&self) -> io::Result<()> {
        if let Ok(old) = fs::metadata(&self.whole) {
            keep_owner_and_mode(&File::options().write(true).open(&self.part)?, &old)?;
        }
        fs::rename(&self.part, &self.whole)
    }
}

/// Gives a file the owner, the group and the mode of another one, as far as the process may.
fn keep_owner_and_mode(file: &File, old: &Metadata) -> io::Result<()> {
    let mut mode = old.permissions().mode();
    if fchown(file, Some(old.uid()), Some(old.gid())).is_err() {
        // Only root may change the owner. The group is kept if the process belongs to it; another one gets the rights of all others.
        mode &= !SET_ID;
        if fchown(file, None, Some(old.gid())).is_err() {
            mode = mode & !0o070 | (mode & 0o007) << 3;
        }
    }
    file.set_permissions(Permissions::from_mode(mode))
}

/// True for the path of hidden contents, in progress or left over.
pub fn is_hidden(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_bytes();
    name.starts_with(HIDDEN.as_bytes()) && name.ends_with(PART.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::coding::Coding;

    #[test]
    fn contents_that_replace_a_private_file_are_private() {
        let folder = tempfile::tempdir().unwrap();
        let whole = folder.path().join("file");
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        for wanted in [0o600, 0o640, 0o644] {
            fs::write(&whole, "old").unwrap();
            fs::set_permissions(&whole, Permissions::from_mode(wanted)).unwrap();
            let file = AtomicFile::resumable(whole.clone(), Compression::new(Coding::Plain));
            file.open(false).unwrap();
            assert_eq!(mode(&file.part), 0o600);
            file.commit().unwrap();
            assert_eq!((mode(&whole), fs::read(&whole).unwrap().len()), (wanted, 0));
        }
    }
}
