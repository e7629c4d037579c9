//! Signals that ask the command to end, and the times of checkpoints: what comes to it from outside.

use crate::error::{Error, exit_code};
use crossbeam::channel::{Receiver, bounded, tick};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::process;
use std::thread;
use std::time::Duration;

/// What comes from outside.
pub enum Wake {
    /// A checkpoint is due.
    Checkpoint,
    /// A signal asks to end; this is its number.
    End(i32),
}

/// Receives from now on: SIGINT and SIGTERM, and a checkpoint each time `every` has passed. The second signal ends the process
/// at once, for it may wait for something that never comes.
pub fn receive(every: Option<Duration>) -> Result<Receiver<Wake>, Error> {
    // Room for one of each, so that neither waits for the other.
    let (send, wakes) = bounded(2);
    let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(|source| Error::Thread { source })?;
    let ends = send.clone();
    let wait = move || {
        let mut signals = signals.forever();
        for signal in signals.by_ref().take(1) {
            // Fails only if the command is about to end.
            let _ = ends.send(Wake::End(signal));
        }
        if let Some(signal) = signals.next() {
            process::exit(exit_code(signal).into());
        }
    };
    spawn(wait)?;
    if let Some(every) = every {
        let due = move |_: &_| !send.is_empty() || send.send(Wake::Checkpoint).is_ok();
        spawn(move || tick(every).into_iter().take_while(due).for_each(drop))?;
    }
    Ok(wakes)
}

fn spawn(work: impl FnOnce() + Send + 'static) -> Result<(), Error> {
    thread::Builder::new().spawn(work).map(drop).map_err(|source| Error::Thread { source })
}
