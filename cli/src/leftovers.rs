//! What a run that a signal ends would leave beside its files: temporary files of saves, begun contents of files, and locks.

use bloomline::unfinished_saves;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

/// What may be there.
enum Leftover {
    /// Temporary files of a file that this run alone saves to.
    Saves(PathBuf),
    /// The file of a lock that this run holds.
    Lock(PathBuf),
    /// New contents of a file, which are not whole.
    Part(PathBuf),
}

/// In the order in which they have to go.
static LEFTOVERS: Mutex<Vec<Leftover>> = Mutex::new(Vec::new());

fn leftovers() -> MutexGuard<'static, Vec<Leftover>> {
    LEFTOVERS.lock().expect("no thread panics while it removes files")
}

/// Takes over a file that no other run saves to. Removes what a killed run left of it.
pub fn own(target: &Path) {
    let saves = Leftover::Saves(target.to_owned());
    saves.remove();
    leftovers().insert(0, saves);
}

/// Takes over the file of a lock.
pub fn own_lock(path: &Path) {
    leftovers().push(Leftover::Lock(path.to_owned()));
}

/// Takes over the new contents of a file, until they are whole.
pub fn own_part(path: &Path) {
    leftovers().push(Leftover::Part(path.to_owned()));
}

/// Gives them up.
pub fn disown_part(path: &Path) {
    leftovers().retain(|leftover| !matches!(leftover, Leftover::Part(part) if part == path));
}

/// Gives up all that is owned, for it is another run's from now on.
pub fn disown() {
    leftovers().clear();
}

/// Removes what is owned, since the process ends now.
pub fn remove_all() {
    leftovers().iter().for_each(Leftover::remove);
}

impl Leftover {
    /// What cannot be removed stays: it does no harm but for its size.
    fn remove(&self) {
        let paths = match self {
            Self::Saves(target) => unfinished_saves(target).unwrap_or_default(),
            Self::Lock(path) | Self::Part(path) => vec![path.clone()],
        };
        for path in paths {
            let _ = fs::remove_file(path);
        }
    }
}
