//! Advisory locks of the system on files and folders, which a crash releases too.
//!
//! A lock belongs to an inode, and the path may lead to another inode once the lock is held. So the path is checked afterwards.

use crate::system::error::Error;
use crate::system::file_status::FileStatus;
use crate::system::files;
use crate::system::platform;
use crate::system::temp_files::TempFiles;
use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;

/// A lock, which is held until the value is dropped.
#[derive(Debug)]
pub struct FileLock {
    /// The temporary files that the lock guards.
    saves: Vec<TempFiles>,
    /// The file of the lock, if it has one of its own. Dropped, and so removed, while the lock is held.
    _lock_file: Option<TempFiles>,
    _file: File,
}

enum LockOutcome {
    Locked,
    /// Another process holds the lock.
    Busy,
    /// The file system has no locks.
    Unsupported,
}

impl FileLock {
    /// Locks a folder. `None` if another process holds the lock, or the path leads elsewhere by now.
    pub fn on_folder(path: &Path) -> io::Result<Option<Self>> {
        let (path, options) = platform::folder_lock(path);
        let file = match options.open(&path) {
            Err(error) if platform::is_locked(&error) => return Ok(None),
            file => file?,
        };
        let locked = try_lock(&file, &path)?;
        Ok(locked.then_some(Self { saves: Vec::new(), _lock_file: None, _file: file }))
    }

    /// Locks a file that may not exist and that saves replace: the lock is on `TARGET.lock`. If another run holds it,
    /// waits or fails. Removes temporary files that a killed run left.
    pub fn beside(target: &Path, wait: bool) -> Result<Self, Error> {
        let path = files::lock_of(target);
        loop {
            let file =
                File::options().write(true).create(true).truncate(false).open(&path).map_err(files::failed(&path))?;
            let opened = FileStatus::from_file(&file).map_err(files::failed(&path))?;
            if !opened.is_regular() || opened.len > 0 {
                // The run would remove it at its end.
                return Err(Error::new(format!(
                    "cannot use {target:?}: its lock file would be {path:?}, which holds something else; move that, or choose \
                     another file"
                )));
            }
            match lock(&file, wait).map_err(files::failed(&path))? {
                LockOutcome::Busy => {
                    return Err(Error::new(format!(
                        "cannot use {target:?}: another run is writing to it; give --wait to wait until that run ends, or choose \
                         another file"
                    )));
                }
                LockOutcome::Unsupported => return Ok(Self { saves: Vec::new(), _lock_file: None, _file: file }),
                LockOutcome::Locked if opened.is_named(&path) => {
                    let lock_file = Some(TempFiles::file(&path));
                    let mut lock = Self { saves: Vec::new(), _lock_file: lock_file, _file: file };
                    lock.guard(target);
                    return Ok(lock);
                }
                // The run that held the lock removed its file after it was opened here.
                LockOutcome::Locked => {}
            }
        }
    }

    /// Takes over the saves to another file, which no run makes without the lock. Removes their temporary files that a killed run
    /// left.
    pub fn guard(&mut self, target: &Path) {
        self.saves.push(TempFiles::for_target(target));
    }
}

/// Locks a file or folder that was opened at `path` with the options of [`platform`], until its last descriptor is closed. False if another
/// process holds the lock, or the path leads elsewhere by now.
pub fn try_lock(file: &File, path: &Path) -> io::Result<bool> {
    let is_busy = matches!(outcome(platform::try_lock(file))?, LockOutcome::Busy);
    Ok(!is_busy && FileStatus::from_file(file)?.is_named(path))
}

fn lock(file: &File, wait: bool) -> io::Result<LockOutcome> {
    match outcome(if wait { file.lock().map_err(TryLockError::Error) } else { file.try_lock() }) {
        Err(error) if error.kind() == io::ErrorKind::Interrupted => lock(file, wait),
        outcome => outcome,
    }
}

fn outcome(locked: Result<(), TryLockError>) -> io::Result<LockOutcome> {
    match locked {
        Ok(()) => Ok(LockOutcome::Locked),
        Err(TryLockError::WouldBlock) => Ok(LockOutcome::Busy),
        Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => Ok(LockOutcome::Unsupported),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
    use std::thread;

    fn is_busy(path: &Path) -> bool {
        FileLock::beside(path, false).is_err_and(|error| error.to_string().contains("another run is writing to it"))
    }

    #[test]
    fn one_thread_at_a_time_holds_a_lock() {
        let folder = tempfile::tempdir().unwrap();
        let filter = folder.path().join("filter");
        let (inside, entered) = (AtomicU32::new(0), AtomicU32::new(0));
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let lock = FileLock::beside(&filter, true).unwrap();
                        assert_eq!(inside.fetch_add(1, Relaxed), 0);
                        assert!(is_busy(&filter));
                        inside.fetch_sub(1, Relaxed);
                        entered.fetch_add(1, Relaxed);
                        drop(lock);
                    }
                });
            }
        });
        assert_eq!(entered.into_inner(), 800);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[cfg(unix)]
    #[test]
    fn all_paths_of_a_file_have_one_lock() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("filter"), "").unwrap();
        std::os::unix::fs::symlink("filter", path("link")).unwrap();
        let _lock = FileLock::beside(&path("filter"), false).unwrap();
        for name in ["link", "./filter", "../x/filter"] {
            let name = name.replace('x', folder.path().file_name().unwrap().to_str().unwrap());
            assert!(is_busy(&path(&name)), "{name}");
        }
        FileLock::beside(&path("other"), false).unwrap();
    }
}
