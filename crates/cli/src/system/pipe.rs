//! Pipes, whose reader takes what is there and never waits for more.

use crate::system::platform;
use std::fs::File;
use std::io::{self, Read};

/// The bytes that a pipe holds, if the system allows it. With the default of 64 KiB the writer waits more often than it writes, and
/// with 1 MiB the bytes leave the second cache before they are read.
const CAPACITY: usize = 1 << 18;

/// A read goes on only if so many bytes are there. So it ends after a few steps, however fast the writer is.
const WORTHWHILE: usize = 1 << 15;

/// Enlarges a pipe. Another file, or a limit of the system, is left as it is.
pub fn enlarge(file: &File) {
    platform::set_pipe_size(file, CAPACITY);
}

/// Reads like `read`, and then as much as is there without waiting, because one `read` of a pipe returns a few pages.
pub fn read_available(file: &File, buffer: &mut [u8]) -> io::Result<usize> {
    let mut reader = platform::reader(file);
    let mut filled = reader.read(buffer)?;
    while filled > 0 && buffer.len() - filled >= WORTHWHILE {
        // An error is returned by the next call, after the bytes before it.
        match platform::waiting_bytes(file) {
            Ok(there) if there >= WORTHWHILE as u64 => match reader.read(&mut buffer[filled..]) {
                Ok(more @ 1..) => filled += more,
                _ => break,
            },
            _ => break,
        }
    }
    Ok(filled)
}
