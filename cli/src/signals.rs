//! Signals that ask the command to end.
//!
//! The first asks a command that is able to end in good order. Any other ends it at once, and so does the first if there is
//! nothing to put in order, or if the command waits for someone who does not read what it writes.

use crate::bar;
use crate::error::{Error, Stop, exit_code};
use crate::messages::tell;
use crate::stall;
use crate::temp_files;
use crossbeam_channel::bounded;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering::SeqCst};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;
use std::{fs, process, thread};

/// After a signal, a write that takes longer waits for nobody.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often writes are looked at after a signal.
const PERIOD: Duration = Duration::from_millis(50);

type Ask = Box<dyn FnOnce(i32) + Send>;

/// The first signal that came, or 0. `SeqCst` here and below, since whoever sees one of these must see those before it, and a
/// signal is too rare to save on.
static FIRST: AtomicI32 = AtomicI32::new(0);
/// Whether one has come.
static CAME: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);
/// Whether the process is about to end.
static ENDING: AtomicBool = AtomicBool::new(false);
/// What asks the command to end in good order.
static ASK: Mutex<Option<Ask>> = Mutex::new(None);
/// What the user has to know if the process ends before all is in order.
static UNDONE: Mutex<Option<Error>> = Mutex::new(None);

const UNPOISONED: &str = "no thread panics while it sets this";

/// Ends the process from now on if SIGINT, SIGTERM or SIGHUP says so. One that was ignored stays so.
pub fn receive() -> Result<(), Error> {
    let ignored = ignored();
    let heard = [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| ignored >> (signal - 1) & 1 == 0);
    let mut signals = Signals::new(heard).map_err(|source| Error::Thread { source })?;
    spawn(move || {
        for signal in signals.forever() {
            FIRST.compare_exchange(0, signal, SeqCst, SeqCst).ok();
            CAME.store(true, SeqCst);
            let ask = ASK.lock().expect(UNPOISONED).take();
            match ask {
                Some(ask) => {
                    ask(signal);
                    // If there is no thread to be had, the next signal ends the process.
                    let _ = spawn(move || end_if_stalled(signal));
                }
                None => end(signal),
            }
        }
    })
}

/// Lets the first signal `ask` the command to end in good order. If it ends otherwise, `undone` is told.
pub fn end_in_order(ask: impl FnOnce(i32) + Send + 'static, undone: Option<Error>) {
    *ASK.lock().expect(UNPOISONED) = Some(Box::new(ask));
    *UNDONE.lock().expect(UNPOISONED) = undone;
}

/// Lets the first signal end the process at once until this is dropped, since nothing is out of order.
pub struct AtOnce {
    ask: Option<Ask>,
    undone: Option<Error>,
}

/// Begins work that leaves nothing to put in order, however long it takes. Fails if a signal came before it.
pub fn at_once() -> Result<AtOnce, Stop> {
    let ask = ASK.lock().expect(UNPOISONED).take();
    let undone = UNDONE.lock().expect(UNPOISONED).take();
    let begun = AtOnce { ask, undone };
    first().map_or(Ok(begun), |signal| Err(Stop::Signal(signal)))
}

impl Drop for AtOnce {
    fn drop(&mut self) {
        give_way();
        *ASK.lock().expect(UNPOISONED) = self.ask.take();
        *UNDONE.lock().expect(UNPOISONED) = self.undone.take();
    }
}

/// All is in order.
pub fn in_order() {
    *UNDONE.lock().expect(UNPOISONED) = None;
}

/// The first signal that came.
pub fn first() -> Option<i32> {
    Some(FIRST.load(SeqCst)).filter(|&signal| signal != 0)
}

/// Is set when a signal comes.
pub fn flag() -> Arc<AtomicBool> {
    Arc::clone(&CAME)
}

/// Leaves the end to a signal that is about to end the process: what fails now may fail because of it.
pub fn give_way() {
    while ENDING.load(SeqCst) {
        thread::park();
    }
}

fn end_if_stalled(signal: i32) {
    while !stall::has_lasted(PATIENCE) {
        thread::sleep(PERIOD);
    }
    end(signal);
}

/// Ends the process. A terminal that is stopped does not keep it.
fn end(signal: i32) {
    if ENDING.swap(true, SeqCst) {
        return;
    }
    let (told, end_of_words) = bounded::<()>(0);
    let last_words = move || {
        bar::end();
        if let Some(undone) = UNDONE.lock().expect(UNPOISONED).take() {
            tell(&undone.to_string());
        }
        drop(told);
    };
    if spawn(last_words).is_ok() {
        let _ = end_of_words.recv_timeout(PATIENCE);
    }
    temp_files::remove_all();
    process::exit(exit_code(signal).into());
}

/// The signals that are ignored from the start, a bit for each; Linux alone tells.
fn ignored() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

fn spawn(work: impl FnOnce() + Send + 'static) -> Result<(), Error> {
    thread::Builder::new().spawn(work).map(drop).map_err(|source| Error::Thread { source })
}
