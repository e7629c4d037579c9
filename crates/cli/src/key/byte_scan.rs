//! A search for the positions of some bytes, 64 bytes at a time: line ends, quotes, backslashes.
//!
//! They lie close together. A search that restarts for each of them, like memchr's, spends most of its time on restarts.

use std::array;
use wide::u8x16;

/// Calls `found` with the position of each of these bytes, in order.
#[inline(always)]
pub fn for_each_position<const N: usize>(bytes: &[u8], needles: [u8; N], mut found: impl FnMut(usize)) {
    let splats = needles.map(u8x16::splat);
    let (blocks, rest) = bytes.as_chunks::<64>();
    for (i, block) in blocks.iter().enumerate() {
        let (vectors, _) = block.as_chunks::<16>();
        let masks: [u64; 4] = array::from_fn(|j| {
            let vector = u8x16::new(vectors[j]);
            let mask = splats.iter().fold(0, |mask, splat| mask | vector.simd_eq(*splat).to_bitmask());
            u64::from(mask) << (16 * j)
        });
        let mut positions = masks[0] | masks[1] | masks[2] | masks[3];
        while positions != 0 {
            found(64 * i + positions.trailing_zeros() as usize);
            positions &= positions - 1;
        }
    }
    let start = bytes.len() - rest.len();
    rest.iter().enumerate().filter(|(_, byte)| needles.contains(byte)).for_each(|(i, _)| found(start + i));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_found_at_every_position() {
        // Every 7th byte matches, so that a match occurs at each position within a block.
        for length in 0..500 {
            let bytes: Vec<u8> = (0..length).map(|i| if (i + length) % 7 == 0 { b'\n' } else { 0x8A }).collect();
            let mut found = Vec::new();
            for_each_position(&bytes, [b'\n'], |position| found.push(position));
            assert_eq!(found, memchr::memchr_iter(b'\n', &bytes).collect::<Vec<_>>());
            let mut found = Vec::new();
            for_each_position(&bytes, [b'"', 0x8A], |position| found.push(position));
            assert_eq!(found, memchr::memchr_iter(0x8A, &bytes).collect::<Vec<_>>());
        }
    }
}
