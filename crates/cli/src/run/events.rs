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
    let (send, events) = bounded(2);
    let ends = send.clone();
    // Fails only if the command is about to end.
    signals::end_in_order(move |signal| drop(ends.send(Event::End(signal))), unsaved);
    if let Some(every) = every {
        let due = move |_: &_| !send.is_empty() || send.send(Event::Checkpoint).is_ok();
        let ticks = thread::Builder::new().spawn(move || tick(every).into_iter().take_while(due).for_each(drop));
        ticks.map_err(signals::no_thread)?;
    }
    Ok(events)
}
