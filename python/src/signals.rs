//! Signals while the GIL is free: Python's handlers run only in the main thread, when it checks for them.

use pyo3::prelude::*;
use std::time::{Duration, Instant};

/// The longest delay of Ctrl-C, besides the time to hash a portion of keys.
pub(crate) const TICK: Duration = Duration::from_millis(50);

/// Runs the handlers of pending signals. Only the main thread has any.
pub(crate) fn handle() -> PyResult<()> {
    // At the interpreter's end there is no interpreter to handle them.
    Python::try_attach(|py| py.check_signals()).unwrap_or(Ok(()))
}

/// Handles signals at intervals.
pub(crate) struct Signals {
    next: Instant,
}

impl Signals {
    /// Begins to handle signals after `wait`.
    pub(crate) fn after(wait: Duration) -> Self {
        Self { next: Instant::now() + wait }
    }

    /// Handles pending signals, if it is time.
    pub(crate) fn handle(&mut self) -> PyResult<()> {
        if Instant::now() < self.next {
            return Ok(());
        }
        let answer = handle();
        *self = Self::after(TICK);
        answer
    }
}
