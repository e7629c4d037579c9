//! External events for `dedup`: signals that ask it to stop, and the times of checkpoints.

use crate::system::error::Error;
use crate::terminal::signals;
use crossbeam_channel::{Receiver, bounded, tick};
use std::thread;
use std::time::Duration;

/// An external event.
pub enum Event {
    /// A checkpoint is due.
    Checkpoint,
    /// A signal, with its number, asks to stop.
    End(i32),
}

/// Starts to receive the first signal, and a checkpoint each time `every` has passed. If the process ends before all is
/// in order, `unsaved` is reported.
pub fn receive(every: Option<Duration>, unsaved: Option<Error>) -> Result<Receiver<Event>, Error> {
    // Room for one of each, so that neither blocks the other.
    let (sender, events) = bounded(2);
    let signal_sender = sender.clone();
    let send_signal = move |signal| {
        // Fails only if the command is about to end.
        let _ = signal_sender.send(Event::End(signal));
    };
    signals::end_in_order(send_signal, unsaved);
    if let Some(every) = every {
        let send_checkpoints = move || {
            for _ in tick(every) {
                if sender.is_empty() && sender.send(Event::Checkpoint).is_err() {
                    break;
                }
            }
        };
        thread::Builder::new().spawn(send_checkpoints).map_err(signals::no_thread)?;
    }
    Ok(events)
}
