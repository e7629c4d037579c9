//! Bit masks of 64 bytes for each class of bytes, as in simdjson.

use wide::u8x16;

/// The number of bytes in a block.
pub(crate) const BLOCK: usize = 64;

/// A mask of the bytes of a block for each class of ASCII, with the first byte in the lowest bit.
pub(crate) struct Masks {
    pub(crate) letters: u64,
    pub(crate) digits: u64,
    /// Underscores.
    pub(crate) connectors: u64,
    /// Punctuation that joins two letters.
    pub(crate) letter_mids: u64,
    /// Punctuation that joins two digits.
    pub(crate) digit_mids: u64,
    pub(crate) white: u64,
    pub(crate) newlines: u64,
    pub(crate) not_ascii: u64,
}

impl Masks {
    #[inline(always)]
    pub(crate) fn new(block: &[u8; BLOCK]) -> Self {
        let is = |bytes: u8x16, byte| bytes.simd_eq(u8x16::splat(byte));
        let within = |bytes: u8x16, first: u8, last: u8| {
            let from_first = bytes - u8x16::splat(first);
            from_first.min(u8x16::splat(last - first)).simd_eq(from_first)
        };
        Self {
            letters: bits(block, |bytes| within(bytes | u8x16::splat(0x20), b'a', b'z')),
            digits: bits(block, |bytes| within(bytes, b'0', b'9')),
            connectors: bits(block, |bytes| is(bytes, b'_')),
            letter_mids: bits(block, |bytes| is(bytes, b'.') | is(bytes, b'\'') | is(bytes, b':')),
            digit_mids: bits(block, |bytes| is(bytes, b'.') | is(bytes, b'\'') | is(bytes, b',') | is(bytes, b';')),
            white: bits(block, |bytes| is(bytes, b' ') | within(bytes, b'\t', b'\r')),
            newlines: newlines(block),
            not_ascii: bits(block, |bytes| bytes),
        }
    }
}

/// Returns the mask of the continuation bytes of UTF-8.
#[inline(always)]
pub(crate) fn continuations(block: &[u8; BLOCK]) -> u64 {
    bits(block, |bytes| (bytes & u8x16::splat(0xC0)).simd_eq(u8x16::splat(0x80)))
}

#[inline(always)]
pub(crate) fn newlines(block: &[u8; BLOCK]) -> u64 {
    bits(block, |bytes| bytes.simd_eq(u8x16::splat(b'\n')))
}

/// Returns the highest bits of the bytes after `map`.
#[inline(always)]
pub(crate) fn bits(block: &[u8; BLOCK], map: impl Fn(u8x16) -> u8x16) -> u64 {
    let (quarters, _) = block.as_chunks::<16>();
    let bits = |i: usize| u64::from(map(u8x16::new(quarters[i])).to_bitmask()) << (16 * i);
    bits(0) | bits(1) | bits(2) | bits(3)
}
