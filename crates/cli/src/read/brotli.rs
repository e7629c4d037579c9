//! Brotli, which has no magic number (RFC 7932). It is recognized by the prefix codes that its first block describes: other
//! bytes seldom describe complete codes.

/// The number of symbols for literals, for lengths, and for counts of blocks.
const LITERALS: usize = 256;
const LENGTHS: usize = 704;
const COUNTS: usize = 26;

/// The number of bits after each symbol for a count of blocks.
const COUNT_BITS: [u32; COUNTS] = [2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 6, 6, 7, 8, 9, 10, 11, 12, 13, 24];

/// The order of the lengths of codes, in the code for such lengths.
const ORDER: [usize; 18] = [1, 2, 3, 4, 0, 5, 17, 6, 16, 7, 8, 9, 10, 11, 12, 13, 14, 15];

/// The maximum length of a code.
const MAX: usize = 15;

/// True if these bytes start a brotli stream whose first block is compressed, and contain all codes of the block. Of
/// 4.4 million random heads of 512 bytes, 13 were taken for brotli.
pub fn is_brotli(head: &[u8]) -> bool {
    Header { head, position: 0, has_literals: false, has_lengths: false }.read().is_some()
}

/// The header of a stream and of its first block. Functions return `None` for bytes that are not brotli, and at the end of
/// the head.
struct Header<'a> {
    head: &'a [u8],
    /// The number of bits that were read.
    position: usize,
    /// True once a code for literals, or for lengths, was described by the lengths of its codes. A code of up to four
    /// symbols lists these instead, which almost any bytes do.
    has_literals: bool,
    has_lengths: bool,
}

impl Header<'_> {
    fn bits(&mut self, count: u32) -> Option<usize> {
        let bit = |i: usize| Some(usize::from(*self.head.get(i / 8)? >> (i % 8) & 1));
        let end = self.position + count as usize;
        let value = (self.position..end).rev().try_fold(0, |value, i| Some(value << 1 | bit(i)?));
        self.position = end;
        value
    }

    fn read(mut self) -> Option<()> {
        // The size of the window.
        if self.bits(1)? == 1 && self.bits(3)? == 0 && self.bits(3)? == 1 {
            return None;
        }
        // An empty last block has no codes.
        let is_last = self.bits(1)? == 1;
        if is_last && self.bits(1)? == 1 {
            return None;
        }
        // The size of the block: four to six digits of four bits, without zeros before them. No digits are for
        // metadata.
        let digits = self.bits(2)? as u32 + 4;
        let length = if digits < 7 { self.bits(4 * digits)? } else { return None };
        let has_zeros = digits > 4 && length >> (4 * digits - 4) == 0;
        // The last bit is for a block that is not compressed.
        if has_zeros || !is_last && self.bits(1)? == 1 {
            return None;
        }
        let mut types = [0; 3];
        for types in &mut types {
            *types = self.count()?;
            if *types > 1 {
                self.code(*types + 2)?;
                let counts = self.code(COUNTS)?;
                let symbol = counts.symbol(&mut self)?;
                self.bits(COUNT_BITS[symbol])?;
            }
        }
        let [literals, lengths, distances] = types;
        let postfix = self.bits(2)?;
        let direct = self.bits(4)? << postfix;
        for _ in 0..literals {
            self.bits(2)?;
        }
        let (literals, distances) = (self.context_map(64 * literals)?, self.context_map(4 * distances)?);
        for (count, symbols) in [(literals, LITERALS), (lengths, LENGTHS), (distances, 16 + direct + (48 << postfix))] {
            for _ in 0..count {
                self.code(symbols)?;
            }
        }
        (self.has_literals && self.has_lengths).then_some(())
    }

    /// Reads a number from 1 to 256.
    fn count(&mut self) -> Option<usize> {
        if self.bits(1)? == 0 {
            return Some(1);
        }
        let bits = self.bits(3)? as u32;
        Some((1 << bits) + 1 + self.bits(bits)?)
    }

    /// Reads a map of contexts to codes, and returns the number of codes.
    fn context_map(&mut self, size: usize) -> Option<usize> {
        let codes = self.count()?;
        if codes > 1 {
            let runs = if self.bits(1)? == 1 { self.bits(4)? + 1 } else { 0 };
            let code = self.code(codes + runs)?;
            let mut filled = 0;
            while filled < size {
                let symbol = code.symbol(self)?;
                let run = (1..=runs).contains(&symbol).then_some(symbol as u32);
                filled += run.map_or(Some(1), |run| Some((1 << run) + self.bits(run)?))?;
            }
            if filled > size {
                return None;
            }
            self.bits(1)?;
        }
        Some(codes)
    }

    /// Reads a code for this number of symbols.
    fn code(&mut self, symbols: usize) -> Option<Code> {
        let skipped = self.bits(2)?;
        if skipped == 1 {
            return self.simple_code(symbols);
        }
        let mut lengths = [0; 18];
        let mut left = 32;
        let mut used = 0;
        for &length in &ORDER[skipped..] {
            lengths[length] = match self.bits(2)? {
                0 => 0,
                1 => 4,
                2 => 3,
                _ if self.bits(1)? == 0 => 2,
                _ => 1 + 4 * self.bits(1)?,
            };
            if lengths[length] > 0 {
                left -= 32 >> lengths[length];
                used += 1;
            }
            if left <= 0 {
                break;
            }
        }
        if left != 0 && used != 1 {
            return None;
        }
        let of_lengths = Code::new(&lengths);
        let mut lengths = Vec::with_capacity(symbols);
        // The space that codes leave.
        let mut left = 1i32 << MAX;
        // The last length other than 0.
        let mut last = 8;
        // The last run: its length of codes, and its count.
        let mut run = (0, 0);
        while lengths.len() < symbols && left > 0 {
            let length = of_lengths.symbol(self)?;
            let (length, added) = if length <= MAX {
                run = (0, 0);
                (length, 1)
            } else {
                let (repeated, bits) = if length == 16 { (last, 2) } else { (0, 3) };
                let before = if run.0 == repeated { run.1 } else { 0 };
                let from = if before > 0 { (before - 2) << bits } else { 0 };
                run = (repeated, from + 3 + self.bits(bits)?);
                (repeated, run.1 - before)
            };
            if length > 0 {
                last = length;
                left = left.checked_sub(i32::try_from(added).ok()?.checked_mul(1 << (MAX - length))?)?;
            }
            if added > symbols - lengths.len() {
                return None;
            }
            lengths.resize(lengths.len() + added, length);
        }
        self.has_literals |= symbols == LITERALS;
        self.has_lengths |= symbols == LENGTHS;
        (left == 0).then(|| Code::new(&lengths))
    }

    /// Reads a code for one to four symbols, which are listed.
    fn simple_code(&mut self, symbols: usize) -> Option<Code> {
        let count = self.bits(2)? + 1;
        let bits = (symbols - 1).ilog2() + 1;
        let mut lengths = vec![0; symbols];
        let mut listed = [0; 4];
        for symbol in &mut listed[..count] {
            *symbol = self.bits(bits)?;
            *lengths.get_mut(*symbol).filter(|length| **length == 0)? = 1;
        }
        let is_deep = count == 4 && self.bits(1)? == 1;
        let of_count = [[1; 4], [1; 4], [1, 2, 2, 0], if is_deep { [1, 2, 3, 3] } else { [2; 4] }][count - 1];
        listed.iter().zip(of_count).take(count).for_each(|(&symbol, length)| lengths[symbol] = length);
        Some(Code::new(&lengths))
    }
}

/// A prefix code: the number of codes of each length, and the symbols in the order of their codes.
struct Code {
    counts: [usize; MAX + 1],
    symbols: Vec<usize>,
}

impl Code {
    /// Returns the code in which each symbol has this length. A symbol of length 0 has no code.
    fn new(lengths: &[usize]) -> Self {
        let mut counts = [0; MAX + 1];
        let mut symbols: Vec<usize> = (0..lengths.len()).filter(|&symbol| lengths[symbol] > 0).collect();
        symbols.sort_by_key(|&symbol| lengths[symbol]);
        symbols.iter().for_each(|&symbol| counts[lengths[symbol]] += 1);
        Self { counts, symbols }
    }

    /// Reads a symbol. A lone symbol takes no bits.
    fn symbol(&self, header: &mut Header) -> Option<usize> {
        let mut code = 0;
        let mut first = 0;
        let mut before = 0;
        if let [symbol] = self.symbols[..] {
            return Some(symbol);
        }
        for count in &self.counts[1..] {
            code = code << 1 | header.bits(1)?;
            first <<= 1;
            if code - first < *count {
                return self.symbols.get(before + code - first).copied();
            }
            (first, before) = (first + count, before + count);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::foreign::{HEAD, detect};

    /// Compression levels and the brotli streams of 100 lines, from `line 0` to `line 9801`, at these levels.
    #[rustfmt::skip]
    const STREAMS: [(u8, &[u8]); 3] = [
        (1, b"\x8B\xDC\x01\x00\x80\xAA\xAA\xAA\xEA\xFFn\x97\x93\x1D\x8E\xC2\x8B\xB0\x88\x1C\x0F~p\x00\x07\x07\xAB\xEE\
            \xF9\xEA\xB63\xC0\x1E\x0C>\xC1\x0F\x82\xE7\x9C\xEAq\x8F\x90\x1AU\xF6\xFB\xFB\xFE?o=\x9F\x7F\x02O\xE3yx!\
            \xDF/6\x9E\x9AM\xEF\xAC\x18\xCFeX(F\xE4\x14\xBD\xB6\x90w\x0BG4\xC9L\xEC)\xEE\xDE>\xD1x)\x5C\xD3\xECdcy\
            \xB1\x9AX=\x98\x01f\x8A\xB3\x87\xF3\x12\x97\x0B\x8F\x1D\xEF\x1E\xA1$\x10J\x15\x01B\x11\xDA/\xD0\x0EA\x0E\
            O\x9B>;\x873g\x08I\xEB\x9C\xFC\x08\x9B(\xE12&\x96\x0B\x22z\xB8X^\xF7Qe\x7F\x1F]\x89,\xF6\x1Db\xE6\xE7\
            \xEC\x9E\xFB\xFE<N\xD4\x9DK\xB8M\xA2\x1E\x924\x92\xAC\x1B\xE5\xE5\xD2\xF8#\xADg\xD2\xE5@\xAEl\xC8\xF4BV\
            \x86d\xE7JN\xD6\xE4\xC9\x1F]\xC9\xD5\xD5\x125\x8A\xA3V\x97\xD4\xAE\x97:w\xA8g~\xDE.\xA5\xDES\xC8Iq^\x94\
            \xBEM\x19=\x94\xD5HS\xBAq\xBC\x5C#\x7F|\xD3\xE9d\xCD\xE4@s\xD9\xE0\xFE\x0E\xD72CZ\xE7J\x9B\xACi7\x7F\xBC\
            N\xAEcOt\xEE\x8E\xFF.\xE5\xE7\xF7\xFD\x7F\xDE\xDB\xC23"),
        (5, b"\x1B\xB9\x03\x00\xC4)\x13\xFD\x8C\x9A\x90\xA5Ph\xA5\xB8x\xF2\x1C,\xDD\x84Yp\x13\xD2,a\xA8\xBF\x1A\xE8+\
            \x84\xC1\xE2T\xC5c\xCA1U\xBBj\xD9\x18`\xED\xFF\xF7\xFD\x7F\xDEz\xBE\x03C\xE3n\xF8s\xF7\x5C\xC5\xAB\xD4S\
            \x1E\xA9E\x10\x85\x98\xAE\x96\xDA\x84qsg\x1F{\xAA\xB5}\x0F{R\x9A\xDBF\x9F\xD2\xD4\xCE\xE999\x1CW\x93\xBE\
            d2\x8B\x95C\xCF\xED[\xAF\xA3}\xB7Y\x09\x10\x05\xDCE\xCBiP!\x12\xCD\xF8\x80\xAD\xC1n%\xFE\x89uT\x9C\xC7\
            \xEB\x15v\xDE\x81\x1C\x9E\xAE\xDE\xB7Y\xF3o\xAB0\xED\xD9\xD3\xED:\xE9e\xE7s\x98p\x8F\xC4n\xD9|$9J\xF1\
            \x86Zd\xF4\xC9\xD5,\xCF\x07U\xDE\x20\xBF\x14=T\xF2U\xD9\xEBV\xB2\xBE\x22q*\xA5\x1E\xC4\x0DO\x14/\xF3\xEB\
            I=\xD7\xABk^7&\xFEC\xE9\xD9\xAD\xC3G/GS\xBC\x89\x16C}f4\x9B\xF8`\xCE\x1B\xF6qp\xDB\xC3^=3\xB1\xD7\xEE\
            \xFA\xCFe\xE2uN\x9E\xB2\xF3\x9C\xE7w[x\x00"),
        (11, b"\x1B\xB9\x03\xC0\xC4\x1B\xFA\xEF\xBB\x90,\xFC\xF3u\xCF@\xB6h\xF7\xD3=\xF8\x80\xA4\xF1\xA4?\x8D\x07\x81\
            \x87,|\x82\x20k\xA2\xD7/|\xF0\xBC\xB8\xBCz3\xDCZ=f\xBB;\xDE\xC7/\xB1\xF5V\x8E}\xD2\xDD$\xED\xA5\xDD\xD7F\
            n\xC2\x0C\x5C\xF6>\xB7j\xFBS\xB4\xCF\xF4\xD5\xFE\xB93+p\x9A?!\xF7\xB9\xE2\x86\xB4\xD4\x98\x94m+\x0A\x20G\
            ?vn\x9D\x8C\xA0E\x86P\x033h\x01\x01}\xD8\xA1\x95\x99\x81\x16'\xE4\x9A\x98\x8F\x02\xF8\xA2\xB3k:FCZ\xB3\
            \xE1\xAB\xC8~X\x81Y\x98x6*\xFF\x88\xD6\xFF\xA9\xEA\x04g2\x19\xB0\xA1/w\xD7\xF9\xD8\x90\xD646\xF5\xED*\
            \xCE\x11\xA0#\xC7\xE2v\x93)\xB4\xC40*\xF0\xEF\xC0\x07"),
    ];

    #[test]
    fn brotli_is_recognized_without_a_name() {
        for (level, stream) in STREAMS {
            assert!(is_brotli(stream), "{level}");
            for end in [b'\n', 0] {
                assert_eq!(detect(stream, end), Some("brotli"), "{level}");
            }
            // The descriptions of the codes end between the first tenth and the middle of the stream.
            let described = (0..stream.len()).find(|&cut| is_brotli(&stream[..cut])).unwrap();
            assert!((stream.len() / 10..stream.len() / 2).contains(&described), "{level} {described}");
        }
    }

    #[test]
    fn other_bytes_are_not_brotli() {
        let mut state = 1u64;
        let mut random = |range: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % range
        };
        for length in [8, 64, HEAD] {
            for _ in 0..5_000 {
                let bytes: Vec<u8> = (0..length).map(|_| random(256) as u8).collect();
                // Text in Latin-1 with few control characters.
                let latin: Vec<u8> = (0..length)
                    .map(|_| match random(100) {
                        0 => random(32) as u8,
                        1..10 => 0xC0 + random(64) as u8,
                        _ => 32 + random(95) as u8,
                    })
                    .collect();
                assert!(!is_brotli(&bytes) && !is_brotli(&latin), "{bytes:?} {latin:?}");
            }
        }
        // Text after each possible first byte of a stream.
        for first in 0..=255 {
            for text in ["a\nb\n", "the words of a line\n"] {
                let head = [&[first][..], &text.repeat(40).as_bytes()[..80]].concat();
                assert!(!is_brotli(&head), "{first}");
            }
        }
    }
}
