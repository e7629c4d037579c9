//! Writes that may block: to a pipe, or to a terminal that is stopped.

use crate::system::platform;
use std::fs::File;
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, Weak};
use std::time::{Duration, Instant};

/// The most that is written at once, so that a slow reader is not mistaken for a stalled one.
const PIECE: usize = 1 << 16;

static START: LazyLock<Instant> = LazyLock::new(Instant::now);

/// The start of the write in progress, in milliseconds from `START`, or 0. One thread at a time writes. Relaxed: a time
/// orders nothing.
#[derive(Default)]
pub struct WriteWatchdog(AtomicU64);

/// Standard error, which the lock of the progress bar guards.
pub static SCREEN: WriteWatchdog = WriteWatchdog(AtomicU64::new(0));

/// One for each output that may block. Several are written at once, and one that progresses must not hide another that blocks.
static OUTPUTS: Mutex<Vec<Weak<WriteWatchdog>>> = Mutex::new(Vec::new());

fn outputs() -> MutexGuard<'static, Vec<Weak<WriteWatchdog>>> {
    OUTPUTS.lock().expect("no thread panics while it has this")
}

fn now() -> u64 {
    START.elapsed().as_millis() as u64 + 1
}

impl WriteWatchdog {
    /// Runs a write that may block.
    pub fn watch<T>(&self, write: impl FnOnce() -> T) -> T {
        self.0.store(now(), Relaxed);
        let done = write();
        self.0.store(0, Relaxed);
        done
    }

    fn has_lasted(&self, time: Duration) -> bool {
        let begun = self.0.load(Relaxed);
        begun > 0 && u128::from(now().saturating_sub(begun)) >= time.as_millis()
    }
}

/// True if a write has blocked for this time.
pub fn has_lasted(time: Duration) -> bool {
    SCREEN.has_lasted(time) || outputs().iter().filter_map(Weak::upgrade).any(|output| output.has_lasted(time))
}

/// A file, watched unless it is regular: a disk may be slow, but never waits for a reader.
pub struct WatchedFile {
    pub file: File,
    /// True for a regular file.
    pub regular: bool,
    watch: Arc<WriteWatchdog>,
}

impl WatchedFile {
    /// Starts to watch a file.
    pub fn new(file: File, regular: bool) -> Self {
        let watch = Arc::default();
        if !regular {
            let mut outputs = outputs();
            outputs.retain(|output| output.strong_count() > 0);
            outputs.push(Arc::downgrade(&watch));
        }
        Self { file, regular, watch }
    }
}

impl Write for WatchedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.regular {
            return self.file.write(bytes);
        }
        self.watch.watch(|| platform::write(&self.file, &bytes[..bytes.len().min(PIECE)]))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
