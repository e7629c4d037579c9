//! Reads of a file by position, which threads can share.

use crate::system::platform;
use std::fs::File;
use std::io;

/// Reads into the buffer from a position on until it is full or the file ends. The position of the file is not changed.
pub fn read_at(file: &File, buffer: &mut [u8], position: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match platform::read_at(file, &mut buffer[filled..], position + filled as u64) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// Fills the buffer from a position on. Fails if the file ends first.
pub fn read_exact_at(file: &File, buffer: &mut [u8], position: u64) -> io::Result<()> {
    if read_at(file, buffer, position)? < buffer.len() {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "failed to fill whole buffer"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Seek, Write};

    #[test]
    fn a_read_by_position_does_not_move_the_position_of_the_file() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"0123456789").unwrap();
        file.seek(io::SeekFrom::Start(4)).unwrap();
        let mut bytes = [0; 6];
        assert_eq!((read_at(&file, &mut bytes, 7).unwrap(), &bytes[..3]), (3, &b"789"[..]));
        read_exact_at(&file, &mut bytes, 1).unwrap();
        assert_eq!(&bytes, b"123456");
        assert_eq!(read_exact_at(&file, &mut bytes, 5).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        let mut rest = String::new();
        file.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "456789");
    }
}
