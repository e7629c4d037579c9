//! One run at a time writes to a filter's file: it holds a lock on another file beside it, `FILTER.lock`.
//!
//! The lock is the system's, which a crash releases too. It is not on the filter's file itself, since a save puts another file in
//! its place.

use crate::error::Error;
use crate::files::{self, name};
use crate::leftovers;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

/// Held until it is dropped.
#[derive(Debug)]
pub struct Lock {
    path: PathBuf,
    /// `None` where the file system has no locks.
    file: Option<File>,
}

impl Lock {
    /// Locks a filter's file, whether it is there or not. If another run holds the lock, waits for it or refuses. Removes what a
    /// killed run left.
    pub fn of(target: &Path, wait: bool) -> Result<Self, Error> {
        let path = files::lock_of(target);
        let failed = |source| Error::Create { output: name(&path), source };
        loop {
            let file = File::options().write(true).create(true).truncate(false).open(&path).map_err(failed)?;
            let opened = file.metadata().map_err(failed)?;
            if !opened.is_file() || opened.len() > 0 {
                // It would be removed in the end.
                return Err(Error::NotLock { filter: target.into(), path });
            }
            let locked = if wait { file.lock().map_err(TryLockError::Error) } else { file.try_lock() };
            match locked {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Err(Error::Busy { filter: target.into() }),
                Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {
                    return Ok(Self { path, file: None });
                }
                Err(TryLockError::Error(source)) => return Err(failed(source)),
            }
            // The run that held it removed it in the end, perhaps after it was opened here: then it locks nothing.
            if files::is_named(&path, &opened) {
                leftovers::own_lock(&path);
                leftovers::own(target);
                return Ok(Self { path, file: Some(file) });
            }
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        leftovers::disown();
        if self.file.is_some() {
            // While it is held, so that nobody else's is removed. One that stays is no harm.
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
    use std::thread;

    #[test]
    fn one_at_a_time_holds_it() {
        let folder = tempfile::tempdir().unwrap();
        let filter = folder.path().join("filter");
        let (inside, entered) = (AtomicU32::new(0), AtomicU32::new(0));
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let lock = Lock::of(&filter, true).unwrap();
                        assert_eq!(inside.fetch_add(1, Relaxed), 0);
                        assert!(matches!(Lock::of(&filter, false), Err(Error::Busy { .. })));
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

    #[test]
    fn other_names_of_a_file_have_the_same_lock() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("filter"), "").unwrap();
        std::os::unix::fs::symlink("filter", path("link")).unwrap();
        let _lock = Lock::of(&path("filter"), false).unwrap();
        for name in ["link", "./filter", "../x/filter"] {
            let name = name.replace('x', folder.path().file_name().unwrap().to_str().unwrap());
            assert!(matches!(Lock::of(&path(&name), false), Err(Error::Busy { .. })), "{name}");
        }
        Lock::of(&path("other"), false).unwrap();
    }
}
