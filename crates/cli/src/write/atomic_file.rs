//! A file that is written under another name and renamed once it is whole, so readers never see an incomplete file.

use crate::read::compression::Compression;
use crate::system::file_status::FileStatus;
use crate::system::files::appended;
use crate::system::platform;
use bloomline::KeyHasher;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// The start of the name of a hidden file.
const HIDDEN: &str = ".bloomline-";

/// The end of the name of a file that is not whole.
const PART: &str = ".part";

/// A longer name is replaced by its hash, because file systems limit names to 255 bytes or less.
const LONGEST: usize = 100;

/// The mode of other files, before the user's mask.
pub const PUBLIC: u32 = 0o666;

/// The mode of contents that only their owner can read.
pub const PRIVATE: u32 = 0o600;

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
        Self { part: appended(&whole, PART), whole, compression, mode: PUBLIC }
    }

    /// Describes a file whose unfinished contents only its owner can read. A directory is read without them, because they are hidden.
    pub fn hidden(whole: PathBuf, compression: Compression) -> Self {
        let name = whole.file_name().unwrap_or_default();
        let mut part = OsString::from(HIDDEN);
        if name.len() > LONGEST {
            part.push(format!("{:016x}", KeyHasher::new(0).bytes(name.as_encoded_bytes())));
        } else {
            part.push(name);
        }
        part.push(PART);
        Self { part: whole.with_file_name(part), whole, compression, mode: PRIVATE }
    }

    /// Opens the contents: new ones, or the ones that an earlier run left if `continues`. Follows no link.
    pub fn open(&self, continues: bool) -> io::Result<File> {
        // A file that is replaced may be private.
        let mode = if self.whole.try_exists()? { PRIVATE } else { self.mode };
        let file = platform::writer(mode).create_new(!continues).open(&self.part)?;
        if !FileStatus::from_file(&file)?.is_file_itself(&self.part) {
            return Err(io::Error::other("it is a link or not a regular file"));
        }
        Ok(file)
    }

    /// Renames the contents, which are whole and synced, to the file's name. They get the owner, the group and the mode of the file
    /// that they replace.
    pub fn commit(&self) -> io::Result<()> {
        platform::keep_owner_and_mode(&self.part, &self.whole)?;
        platform::rename(&self.part, &self.whole)
    }
}

/// True for the path of hidden contents, in progress or left over.
pub fn is_hidden(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    name.starts_with(HIDDEN.as_bytes()) && name.ends_with(PART.as_bytes())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use crate::read::coding::Coding;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

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

    #[test]
    fn a_file_whose_status_is_unknown_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let whole = folder.path().join("file");
        let file = AtomicFile::resumable(whole.clone(), Compression::new(Coding::Plain));
        file.open(false).unwrap();
        // A link to itself leads to no file, and the system reports another error than for a missing one.
        symlink("file", &whole).unwrap();
        assert!(file.commit().is_err() && file.open(true).is_err());
        assert!(whole.is_symlink() && file.part.exists());
    }
}
