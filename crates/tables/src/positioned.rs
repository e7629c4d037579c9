//! Reads of a file by position. Windows moves the position of the file, which no reader of a table uses.

use std::fs::File;
use std::io;
#[cfg(unix)]
use std::os::unix::fs::FileExt;
#[cfg(windows)]
use std::os::windows::fs::FileExt;

/// Reads bytes from a position on.
pub fn read_at(file: &File, buffer: &mut [u8], position: u64) -> io::Result<usize> {
    #[cfg(unix)]
    return file.read_at(buffer, position);
    #[cfg(windows)]
    return file.seek_read(buffer, position);
}

/// Fills the buffer from a position on. Fails if the file ends first.
pub fn read_exact_at(file: &File, mut buffer: &mut [u8], mut position: u64) -> io::Result<()> {
    while !buffer.is_empty() {
        match read_at(file, buffer, position) {
            Ok(0) => return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "failed to fill whole buffer")),
            Ok(n) => (buffer, position) = (&mut buffer[n..], position + n as u64),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
