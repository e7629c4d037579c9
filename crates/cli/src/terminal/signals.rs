//! Signals that ask the command to end.
//!
//! The first signal asks the command to stop in good order, if it can. Any other ends it at once, and so does the first
//! if there is nothing to put in order, or if a write waits for a reader that does not read.

use crate::system::error::{Error, FAILED, Stop, exit_code};
use crate::system::platform;
use crate::system::temp_files;
use crate::system::write_watchdog;
use crate::terminal::bar;
use crate::terminal::messages::print_message;
use crossbeam_channel::bounded;
use signal_hook::consts::SIGABRT;
use signal_hook::flag;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering::SeqCst};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;
use std::{io, process, thread};

/// The longest wait for a write, or for the last message, after a signal.
const MAX_WAIT: Duration = Duration::from_secs(1);

/// The interval of checks for such a write after a signal.
const PERIOD: Duration = Duration::from_millis(50);

/// A function that asks the command to stop because of the signal with this number.
type StopInOrder = Box<dyn FnOnce(i32) + Send>;

/// The first signal, or 0. `SeqCst` here and below, because a thread that sees one of these must see the ones before
/// it, and signals are rare.
static FIRST_SIGNAL: AtomicI32 = AtomicI32::new(0);

/// True once a signal has arrived.
static ARRIVED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// True if the process is about to end.
static ENDING: AtomicBool = AtomicBool::new(false);

/// The function that asks the command to stop in good order.
static STOP_IN_ORDER: Mutex<Option<StopInOrder>> = Mutex::new(None);

/// The error to report if the process ends before all is in order.
static UNSAVED: Mutex<Option<Error>> = Mutex::new(None);

/// The reason why the locks here are not poisoned.
const NO_PANIC: &str = "no thread panics while it sets this";

/// Starts to end the process on signals that ask for it. Signals that were ignored at the start stay ignored. If there is no memory
/// for a small allocation, Rust reports that and aborts; the exit code is then that of an error.
pub fn receive() -> Result<(), Error> {
    flag::register_conditional_shutdown(SIGABRT, FAILED.into(), Arc::new(AtomicBool::new(true))).map_err(no_thread)?;
    let handle = |signal| {
        FIRST_SIGNAL.compare_exchange(0, signal, SeqCst, SeqCst).ok();
        ARRIVED.store(true, SeqCst);
        let stop_in_order = STOP_IN_ORDER.lock().expect(NO_PANIC).take();
        match stop_in_order {
            Some(stop_in_order) => {
                stop_in_order(signal);
                // If no thread can be started, the next signal ends the process.
                let _ = spawn(move || end_if_stalled(signal));
            }
            None => end(signal),
        }
    };
    platform::for_each_signal(handle).map_err(no_thread)
}

/// Lets the first signal `ask` the command to stop in good order. If the process ends otherwise, `unsaved` is reported.
pub fn end_in_order(ask: impl FnOnce(i32) + Send + 'static, unsaved: Option<Error>) {
    *STOP_IN_ORDER.lock().expect(NO_PANIC) = Some(Box::new(ask));
    *UNSAVED.lock().expect(NO_PANIC) = unsaved;
}

/// A guard of work that leaves nothing to put in order. Until it is dropped, the first signal ends the process at once.
pub struct ImmediateExit {
    stop_in_order: Option<StopInOrder>,
    unsaved: Option<Error>,
}

/// Begins work that leaves nothing to put in order, even if it takes long. Fails if a signal arrived before it.
pub fn exit_immediately() -> Result<ImmediateExit, Stop> {
    let stop_in_order = STOP_IN_ORDER.lock().expect(NO_PANIC).take();
    let unsaved = UNSAVED.lock().expect(NO_PANIC).take();
    let begun = ImmediateExit { stop_in_order, unsaved };
    match first() {
        Some(signal) => Err(Stop::Signal(signal)),
        None => Ok(begun),
    }
}

impl Drop for ImmediateExit {
    fn drop(&mut self) {
        defer_to_signal();
        *STOP_IN_ORDER.lock().expect(NO_PANIC) = self.stop_in_order.take();
        *UNSAVED.lock().expect(NO_PANIC) = self.unsaved.take();
    }
}

/// Records that nothing is unsaved.
pub fn clear_unsaved() {
    *UNSAVED.lock().expect(NO_PANIC) = None;
}

/// Returns the first signal that arrived.
pub fn first() -> Option<i32> {
    match FIRST_SIGNAL.load(SeqCst) {
        0 => None,
        signal => Some(signal),
    }
}

/// Returns the flag that is set when a signal arrives.
#[cfg(feature = "redis")]
pub fn flag() -> Arc<AtomicBool> {
    Arc::clone(&ARRIVED)
}

/// Blocks if a signal is about to end the process, because a failure at this point may be due to it.
pub fn defer_to_signal() {
    while ENDING.load(SeqCst) {
        thread::park();
    }
}

fn end_if_stalled(signal: i32) {
    while !write_watchdog::has_lasted(MAX_WAIT) {
        thread::sleep(PERIOD);
    }
    end(signal);
}

/// Ends the process, even if the terminal is stopped.
fn end(signal: i32) {
    if ENDING.swap(true, SeqCst) {
        return;
    }
    let (done, is_done) = bounded::<()>(0);
    let report_and_clear = move || {
        bar::end();
        if let Some(unsaved) = UNSAVED.lock().expect(NO_PANIC).take() {
            print_message(&unsaved.to_string());
        }
        drop(done);
    };
    if spawn(report_and_clear).is_ok() {
        let _ = is_done.recv_timeout(MAX_WAIT);
    }
    temp_files::remove_all();
    process::exit(exit_code(signal).into());
}

fn spawn(work: impl FnOnce() + Send + 'static) -> Result<(), Error> {
    thread::Builder::new().spawn(work).map(drop).map_err(no_thread)
}

/// Wraps a failure to start a thread.
pub fn no_thread(source: io::Error) -> Error {
    Error::new(format!("cannot start a thread: {source}; ask for fewer with -j"))
}
