//! Line ends, found 64 bytes at a time.

use wide::u8x16;

/// Calls `found` with the position of each `end` of a line, in order.
///
/// Lines are short. A search like memchr's, which starts again for each line, spends most of its time on starting.
#[inline(always)]
pub fn ends(bytes: &[u8], end: u8, mut found: impl FnMut(usize)) {
    let (blocks, rest) = bytes.as_chunks::<64>();
    for (i, block) in blocks.iter().enumerate() {
        let (vectors, _) = block.as_chunks::<16>();
        let mask = |j: usize| u64::from(u8x16::new(vectors[j]).simd_eq(u8x16::splat(end)).to_bitmask()) << (16 * j);
        let mut ends = mask(0) | mask(1) | mask(2) | mask(3);
        while ends != 0 {
            found(64 * i + ends.trailing_zeros() as usize);
            ends &= ends - 1;
        }
    }
    let start = bytes.len() - rest.len();
    rest.iter().enumerate().filter(|&(_, &byte)| byte == end).for_each(|(i, _)| found(start + i));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_found_wherever_they_are() {
        // Every 7th byte of each length, so that all places of a block are met.
        for length in 0..500 {
            let bytes: Vec<u8> = (0..length).map(|i| if (i + length) % 7 == 0 { b'\n' } else { 0x8A }).collect();
            let mut found = Vec::new();
            ends(&bytes, b'\n', |position| found.push(position));
            assert_eq!(found, memchr::memchr_iter(b'\n', &bytes).collect::<Vec<_>>());
        }
    }
}
