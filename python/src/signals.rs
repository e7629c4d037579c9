//! Signals where the GIL is free: Python's handlers run in the main thread, and only when that asks for them.

use pyo3::prelude::*;
use std::time::{Duration, Instant};

/// How long Ctrl-C waits, but for the keys that are hashed in between.
pub(crate) const TICK: Duration = Duration::from_millis(50);

/// Runs the handlers of signals that came. In another thread than the main one there are none.
pub(crate) fn handle() -> PyResult<()> {
    // At the interpreter's end there is none to handle them.
    Python::try_attach(|py| py.check_signals()).unwrap_or(Ok(()))
}

/// Handles signals now and then.
pub(crate) struct Signals {
    next: Instant,
}

impl Signals {
    /// From so much later on.
    pub(crate) fn after(wait: Duration) -> Self {
        Self { next: Instant::now() + wait }
    }

    /// Handles those that came, if it is time.
    pub(crate) fn handle(&mut self) -> PyResult<()> {
        if Instant::now() < self.next {
            return Ok(());
        }
        let answer = handle();
        *self = Self::after(TICK);
        answer
    }
}
