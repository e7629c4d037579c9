//! The bytes of filters' files, and how tests change them.

use twox_hash::XxHash3_64;

macro_rules! bytes_of {
    ($filter:expr) => {{
        let mut bytes = Vec::new();
        $filter.write_to(&mut bytes).unwrap();
        bytes
    }};
}

/// A file with other bytes from `place` on of the header that begins at `start`, and the checksum that belongs to it.
pub fn with_header(bytes: &[u8], start: usize, place: usize, field: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[start + place..start + place + field.len()].copy_from_slice(field);
    let checksum = XxHash3_64::oneshot(&bytes[start..start + 56]);
    bytes[start + 56..start + 64].copy_from_slice(&checksum.to_le_bytes());
    bytes
}
