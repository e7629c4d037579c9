//! The xz format without compression: for the rest of an output that has to end at once.

use flate2::Crc;

/// The flags of a stream whose contents have a CRC32.
const STREAM_FLAGS: [u8; 2] = [0, 1];

/// The header of a block: its size, the number of filters less one, the filter LZMA2, and its dictionary of 64 KiB.
const BLOCK_HEADER: [u8; 8] = [2, 0, 0x21, 1, 8, 0, 0, 0];

/// The maximum length of a chunk of LZMA2 that is not compressed.
const CHUNK: usize = 1 << 16;

/// Returns an xz stream with these contents.
pub fn store(contents: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(contents.len() + contents.len() / 1024 + 128);
    out.extend(b"\xFD7zXZ\0");
    out.extend(STREAM_FLAGS);
    out.extend(crc(&STREAM_FLAGS));
    let block = out.len();
    out.extend(BLOCK_HEADER);
    out.extend(crc(&BLOCK_HEADER));
    for (i, chunk) in contents.chunks(CHUNK).enumerate() {
        // The first chunk resets the dictionary.
        out.push(if i == 0 { 1 } else { 2 });
        out.extend(((chunk.len() - 1) as u16).to_be_bytes());
        out.extend(chunk);
    }
    out.push(0);
    // The size of a block includes the checksum, and no padding.
    let block_size = out.len() - block + 4;
    pad(&mut out, block);
    out.extend(crc(contents));
    let index = out.len();
    // One block.
    out.extend([0, 1]);
    put_number(&mut out, block_size);
    put_number(&mut out, contents.len());
    pad(&mut out, index);
    let index_crc = crc(&out[index..]);
    out.extend(index_crc);
    let footer = [&(((out.len() - index) / 4 - 1) as u32).to_le_bytes()[..], &STREAM_FLAGS].concat();
    out.extend(crc(&footer));
    out.extend(footer);
    out.extend(b"YZ");
    out
}

fn crc(bytes: &[u8]) -> [u8; 4] {
    let mut crc = Crc::new();
    crc.update(bytes);
    crc.sum().to_le_bytes()
}

/// Appends zeros until the bytes from `start` on are a multiple of four.
fn pad(out: &mut Vec<u8>, start: usize) {
    out.resize(start + (out.len() - start).next_multiple_of(4), 0);
}

/// Appends a number, seven bits a byte, the lowest first.
fn put_number(out: &mut Vec<u8>, mut number: usize) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

#[cfg(test)]
mod tests {
    use super::*;
    use liblzma::read::XzDecoder;
    use proptest::prelude::*;
    use std::io::Read;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn stored_streams_are_read(
            lengths in prop::collection::vec(prop_oneof![0..300_usize, CHUNK - 2..CHUNK + 3, 2 * CHUNK..5 * CHUNK], 1..4),
            seed in any::<u64>(),
        ) {
            let contents = |length: usize| (0..length as u64).map(move |i| (i.wrapping_mul(seed | 1) >> 7) as u8);
            let streams: Vec<u8> = lengths.iter().flat_map(|&length| store(&contents(length).collect::<Vec<_>>())).collect();
            let mut read = Vec::new();
            XzDecoder::new_multi_decoder(&streams[..]).read_to_end(&mut read).unwrap();
            prop_assert!(read == lengths.iter().flat_map(|&length| contents(length)).collect::<Vec<_>>());
        }
    }
}
