//! Pipes, whose reader takes what is there and never waits for more.

use std::fs::File;
use std::io::{self, Read};

/// The bytes that a pipe holds, if the system allows it. With the default of 64 KiB the writer waits more often than it writes.
#[cfg(any(target_os = "linux", target_os = "android"))]
const CAPACITY: usize = 1 << 20;

/// A read goes on only if so many bytes are there. So it ends after a few steps, however fast the writer is.
const WORTHWHILE: usize = 1 << 15;

/// Enlarges a pipe. Another file, or a limit of the system, is left as it is.
pub fn enlarge(file: &File) {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let _ = rustix::pipe::fcntl_setpipe_size(file, CAPACITY);
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let _ = file;
}

/// Reads like `read`, and then as much as is there without waiting, because one `read` of a pipe returns a few pages.
pub fn read_available(mut file: &File, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = file.read(buffer)?;
    while filled > 0 && buffer.len() - filled >= WORTHWHILE {
        // An error is returned by the next call, after the bytes before it.
        match rustix::io::ioctl_fionread(file) {
            Ok(there) if there >= WORTHWHILE as u64 => match file.read(&mut buffer[filled..]) {
                Ok(more @ 1..) => filled += more,
                _ => break,
            },
            _ => break,
        }
    }
    Ok(filled)
}
