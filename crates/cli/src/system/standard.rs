//! Standard input and output. A process may start with either of them closed.

use crate::system::platform;
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// True if the stream was closed at the start. Relaxed: both are set before there are threads.
static INPUT_CLOSED: AtomicBool = AtomicBool::new(false);
static OUTPUT_CLOSED: AtomicBool = AtomicBool::new(false);

/// Records which streams are closed.
pub fn check() {
    if platform::duplicate(io::stdin()).is_err() {
        INPUT_CLOSED.store(true, Relaxed);
    }
    if platform::duplicate(io::stdout()).is_err() {
        OUTPUT_CLOSED.store(true, Relaxed);
    }
}

/// Opens standard input, unless it is closed.
pub fn input() -> io::Result<File> {
    if INPUT_CLOSED.load(Relaxed) { Err(closed()) } else { platform::duplicate(io::stdin()) }
}

/// Opens standard output, unless it is closed.
pub fn output() -> io::Result<File> {
    if OUTPUT_CLOSED.load(Relaxed) { Err(closed()) } else { platform::duplicate(io::stdout()) }
}

fn closed() -> io::Error {
    io::Error::from_raw_os_error(platform::CLOSED)
}
