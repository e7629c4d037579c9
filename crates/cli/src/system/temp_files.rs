//! A registry of temporary files: each is removed with the value that registers it, or by a signal that ends the process.

use bloomline::unfinished_saves;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

/// Files that this process alone creates and removes, until the value is dropped.
#[derive(Debug)]
pub struct TempFiles {
    paths: Arc<Paths>,
    /// True if the files are removed when this value is dropped.
    removes: bool,
}

#[derive(Debug)]
enum Paths {
    /// A file, which may not exist.
    File(PathBuf),
    /// The temporary files of saves to a path.
    Saves(PathBuf),
}

/// The registered files, in the order of registration.
static REGISTERED: Mutex<Vec<Arc<Paths>>> = Mutex::new(Vec::new());

fn registered() -> MutexGuard<'static, Vec<Arc<Paths>>> {
    REGISTERED.lock().expect("no thread panics while it removes files")
}

impl TempFiles {
    /// Registers a file, which may be created later.
    pub fn file(path: &Path) -> Self {
        Self::register(Paths::File(path.to_owned()), true)
    }

    /// Registers the temporary files of saves to `target`, to which no other process saves. Removes those that a killed process
    /// left.
    pub fn for_target(target: &Path) -> Self {
        let paths = Paths::Saves(target.to_owned());
        paths.remove();
        // A save removes its own.
        Self::register(paths, false)
    }

    fn register(paths: Paths, removes: bool) -> Self {
        let paths = Arc::new(paths);
        registered().push(paths.clone());
        Self { paths, removes }
    }

    /// Ends the registration of a file that is no longer temporary.
    pub fn release(mut self) {
        self.removes = false;
    }
}

impl Drop for TempFiles {
    fn drop(&mut self) {
        // Held throughout: after the removal, the path may be that of another process's file, which a signal must not remove.
        let mut registered = registered();
        registered.retain(|paths| !Arc::ptr_eq(paths, &self.paths));
        if self.removes {
            self.paths.remove();
        }
    }
}

/// Removes all registered files because the process ends, in reverse order, so that a lock outlives the files that it guards.
pub fn remove_all() {
    registered().iter().rev().for_each(|paths| paths.remove());
}

impl Paths {
    /// Removes the files. One that cannot be removed only takes space.
    fn remove(&self) {
        let paths = match self {
            Self::Saves(target) => unfinished_saves(target).unwrap_or_default(),
            Self::File(path) => vec![path.clone()],
        };
        for path in paths {
            let _ = fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_registered(path: &Path) -> bool {
        registered().iter().any(|paths| matches!(&**paths, Paths::File(file) if file == path))
    }

    #[test]
    fn dropped_values_remove_their_files_unless_released() {
        let folder = tempfile::tempdir().unwrap();
        let [dropped, released, other] = ["dropped", "released", "other"].map(|name| folder.path().join(name));
        let begin = |path: &Path| {
            fs::write(path, "").unwrap();
            TempFiles::file(path)
        };
        let [first, second, _third] = [&dropped, &released, &other].map(|path| begin(path));
        drop(first);
        assert!(!dropped.exists() && !is_registered(&dropped));
        second.release();
        assert!(released.exists() && !is_registered(&released));
        assert!(other.exists() && is_registered(&other));
    }
}
