//! Signals while the GIL is free: Python's handlers run only in the main thread, when it checks for them.

use pyo3::prelude::*;
use std::time::{Duration, Instant};

/// The maximum delay of Ctrl-C, in addition to the time to hash a chunk of keys.
pub(crate) const TICK: Duration = Duration::from_millis(50);

/// Runs the handlers of pending signals. In other threads than the main thread it does nothing.
pub(crate) fn handle() -> PyResult<()> {
    // Signals during the shutdown of the interpreter are not handled.
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

    /// Handles pending signals if the interval has passed.
    pub(crate) fn handle(&mut self) -> PyResult<()> {
        if Instant::now() < self.next {
            return Ok(());
        }
        let answer = handle();
        *self = Self::after(TICK);
        answer
    }
}
