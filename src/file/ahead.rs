//! A file read from its start to its end, with the disk working ahead.

use std::fs::File;
use std::io::{self, Read};

/// How far the disk is asked to be ahead, and at most twice that. By itself the system stays ahead by a fraction of what
/// is read at a time, and the disk idles while a chunk is summed up and fresh memory is touched for it.
const AHEAD: u64 = 16 << 20;

pub(crate) struct Ahead<'a> {
    file: &'a File,
    place: u64,
    /// Where the part of the file ends that was asked for.
    asked: u64,
}

impl<'a> Ahead<'a> {
    /// The file must be at its start.
    pub(crate) fn new(file: &'a File) -> Self {
        Self { file, place: 0, asked: 0 }
    }
}

impl Read for Ahead<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.place + AHEAD >= self.asked {
            ask(self.file, self.asked, AHEAD);
            self.asked += AHEAD;
        }
        let read = self.file.read(buffer)?;
        self.place += read as u64;
        Ok(read)
    }
}

/// Advice: where the system does not take it, reading is slower and nothing else.
fn ask(file: &File, start: u64, bytes: u64) {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{Advice, fadvise};
        let _ = fadvise(file, start, std::num::NonZeroU64::new(bytes), Advice::WillNeed);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (file, start, bytes);
}
