//! The replacement of a file: at every moment its path has the complete old or the complete new contents.
//!
//! The data are written to a temporary file first. Its name is derived from the target's, so leftovers of killed processes can
//! be removed while no process writes to the target.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;
use twox_hash::XxHash3_64;

/// The end of a temporary file's name, after `RANDOM_LEN` letters and digits.
const SUFFIX: &str = ".tmp";
const RANDOM_LEN: usize = 6;

/// Longer names of targets are replaced by a hash: some file systems take names of 143 bytes.
const MAX_NAME_LEN: usize = 100;

/// The maximum number of tries to rename a file, and the time between them. On Windows, a program that has the target open for a
/// moment, such as a virus scanner, prevents its replacement.
const RENAME_TRIES: u32 = if cfg!(windows) { 100 } else { 1 };
const RENAME_PAUSE: Duration = Duration::from_millis(10);

/// Saves a file of your own as a filter's `save` does, for example one that belongs to a filter: `path` has either the complete
/// output of `write`, or its previous contents.
///
/// # Errors
/// The errors of `write` and of the system, and [`InvalidInput`](io::ErrorKind::InvalidInput) if `path` exists and is not a
/// regular file.
///
/// # Examples
/// ```
/// use std::io::Write;
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("position");
/// bloomline::save_file(&path, |mut file| file.write_all(b"17"))?;
/// assert_eq!(std::fs::read(&path)?, b"17");
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn save_file(path: impl AsRef<Path>, write: impl FnOnce(&File) -> io::Result<()>) -> io::Result<()> {
    let target = target(path.as_ref())?;
    let old = match fs::metadata(&target) {
        Ok(old) => Some(old),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    if old.as_ref().is_some_and(|old| !old.is_file()) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file: open it and use write_to"));
    }
    let (folder, prefix) = (folder(&target), prefix(&target));
    // Opened before anything is replaced, because this fails if the folder cannot be read.
    let sync = open_folder(folder)?;
    let temporary = TemporaryFile::create(folder, &prefix, old.is_some())?;
    // Before the first byte: a filter that others may read stays readable after a crash.
    if let Some(old) = old {
        keep_owner_and_permissions(&temporary.file, &old)?;
    }
    write(&temporary.file)?;
    // Before the rename: else a crash could leave the name with a file whose data never reached the disk.
    temporary.file.sync_all()?;
    temporary.rename(&target)?;
    // Makes the rename itself last.
    sync.map_or(Ok(()), |folder| folder.sync_all())
}

/// Returns the temporary files of saves to a path that are under way, or whose process was killed. They can be removed once no
/// process saves to it. O(files in the folder).
///
/// # Errors
/// The system's errors in reading the folder.
///
/// # Examples
/// ```
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("seen.bloom");
/// for file in bloomline::unfinished_saves(&path)? {
///     std::fs::remove_file(file)?;
/// }
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn unfinished_saves(path: impl AsRef<Path>) -> io::Result<Vec<PathBuf>> {
    let target = target(path.as_ref())?;
    let prefix = prefix(&target);
    let is_temporary = |name: &OsStr| {
        let rest = name.as_encoded_bytes().strip_prefix(prefix.as_encoded_bytes());
        let random = rest.and_then(|rest| rest.strip_suffix(SUFFIX.as_bytes()));
        random.is_some_and(|random| random.len() == RANDOM_LEN && random.iter().all(u8::is_ascii_alphanumeric))
    };
    let paths = fs::read_dir(folder(&target))?.map(|entry| entry.map(|entry| entry.path()));
    paths.filter(|path| path.as_ref().map_or(true, |path| path.file_name().is_some_and(is_temporary))).collect()
}

/// Returns the file that a rename is to replace: the target of a symbolic link, not the link.
fn target(path: &Path) -> io::Result<PathBuf> {
    match fs::canonicalize(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(path.to_path_buf()),
        target => target,
    }
}

fn folder(target: &Path) -> &Path {
    target.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."))
}

/// Returns the prefix of the names of a target's temporary files.
fn prefix(target: &Path) -> OsString {
    let name = target.file_name().unwrap_or_default();
    let mut prefix = OsString::from(".bloomline-");
    if name.len() > MAX_NAME_LEN {
        prefix.push(format!("{:016x}", XxHash3_64::oneshot(name.as_encoded_bytes())));
    } else {
        prefix.push(name);
    }
    prefix.push("-");
    prefix
}

/// A file that removes itself unless it is renamed.
struct TemporaryFile {
    file: File,
    path: PathBuf,
}

impl TemporaryFile {
    /// Creates a file with the permissions of any new file, or one that only its owner can open, if it replaces another file.
    /// That file may be private, and a process that opens the temporary file early could read all that is written later.
    fn create(folder: &Path, prefix: &OsStr, replaces: bool) -> io::Result<Self> {
        let mut options = File::options();
        options.read(true).write(true).create_new(true);
        #[cfg(unix)]
        if replaces {
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        }
        #[cfg(not(unix))]
        let _ = replaces;
        loop {
            let mut name = prefix.to_owned();
            name.push(random_name());
            name.push(SUFFIX);
            let path = folder.join(name);
            match options.open(&path) {
                Ok(file) => return Ok(Self { file, path }),
                // Of another process, or a leftover: one name in two billion.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn rename(mut self, target: &Path) -> io::Result<()> {
        let mut tries = RENAME_TRIES;
        while let Err(error) = fs::rename(&self.path, target) {
            tries -= 1;
            if tries == 0 || error.kind() != io::ErrorKind::PermissionDenied {
                return Err(error);
            }
            thread::sleep(RENAME_PAUSE);
        }
        self.path.clear();
        Ok(())
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        if !self.path.as_os_str().is_empty() {
            _ = fs::remove_file(&self.path);
        }
    }
}

/// Returns letters and digits that another call is unlikely to return.
fn random_name() -> String {
    // Each state has other keys. A forked process has the keys of its parent, and takes the next name if the file
    // exists.
    let mut number = RandomState::new().hash_one(());
    let mut next = || {
        let digit = (number % 36) as u32;
        number /= 36;
        char::from_digit(digit, 36).unwrap_or_default()
    };
    (0..RANDOM_LEN).map(|_| next()).collect()
}

#[cfg(unix)]
fn keep_owner_and_permissions(file: &File, old: &Metadata) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
    let mut mode = old.mode();
    if fchown(file, Some(old.uid()), Some(old.gid())).is_err() {
        // Only root may give files away: for other users the file is their own, without the bits that lend its owner's rights.
        mode &= 0o1777;
        if fchown(file, None, Some(old.gid())).is_err() {
            // Another group gets the rights of all others.
            mode = mode & !0o070 | (mode & 0o007) << 3;
        }
    }
    file.set_permissions(fs::Permissions::from_mode(mode))
}

#[cfg(not(unix))]
fn keep_owner_and_permissions(file: &File, old: &Metadata) -> io::Result<()> {
    file.set_permissions(old.permissions())
}

/// Opens the folder, if the system can sync one.
fn open_folder(folder: &Path) -> io::Result<Option<File>> {
    if cfg!(unix) { File::open(folder).map(Some) } else { Ok(None) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_save_leaves_the_file_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("name");
        fs::write(&target, "old").unwrap();
        let failed = save_file(&target, |_| Err(io::ErrorKind::StorageFull.into())).unwrap_err();
        assert_eq!(failed.kind(), io::ErrorKind::StorageFull);
        assert_eq!(fs::read(&target).unwrap(), b"old");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        let names: std::collections::HashSet<String> = (0..100).map(|_| random_name()).collect();
        assert!(names.len() > 98, "random");
    }

    /// Before it has the permissions of the file that it replaces.
    #[cfg(unix)]
    #[test]
    fn a_temporary_file_that_replaces_another_is_private_from_its_creation() {
        use std::os::unix::fs::MetadataExt;
        let folder = tempfile::tempdir().unwrap();
        let temporary = TemporaryFile::create(folder.path(), "name-".as_ref(), true).unwrap();
        assert_eq!(temporary.file.metadata().unwrap().mode() & 0o777, 0o600);
    }

    #[test]
    fn the_temporary_file_is_beside_its_target() {
        assert_eq!(folder(Path::new("name")), Path::new("."));
        assert_eq!(folder(Path::new("a/b/name")), Path::new("a/b"));
        assert_eq!(folder(Path::new("/name")), Path::new("/"));

        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("name");
        save_file(&target, |_| {
            let found = unfinished_saves(&target)?;
            assert_eq!(found.iter().map(|path| path.parent()).collect::<Vec<_>>(), [Some(folder.path())]);
            Ok(())
        })
        .unwrap();
        assert!(target.is_file() && unfinished_saves(&target).unwrap().is_empty());
    }
}
