//! The bytes of filters' files, how tests change them, and a stream that fails.

use std::io::{self, Read, Write};
use twox_hash::XxHash3_64;

macro_rules! bytes_of {
    ($filter:expr) => {{
        let mut bytes = Vec::new();
        $filter.write_to(&mut bytes).unwrap();
        bytes
    }};
}

/// Replaces bytes from `offset` on in the header that begins at `start`, and updates the header's checksum.
pub fn with_header(bytes: &[u8], start: usize, offset: usize, field: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[start + offset..start + offset + field.len()].copy_from_slice(field);
    let checksum = XxHash3_64::oneshot(&bytes[start..start + 56]);
    bytes[start + 56..start + 64].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

/// A stream that fails after this number of bytes.
pub struct Failing(pub usize);

impl Failing {
    fn pass(&mut self, bytes: usize) -> io::Result<usize> {
        if self.0 == 0 {
            return Err(io::Error::other("the line is dead"));
        }
        let passed = bytes.min(self.0);
        self.0 -= passed;
        Ok(passed)
    }
}

impl Write for Failing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.pass(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        self.pass(1).map(|_| ())
    }
}

impl Read for Failing {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.pass(buffer.len())
    }
}
