//! Locks of which a panic takes nothing: whoever panicked ends the run, and nothing of it is saved.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Takes a lock.
pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
