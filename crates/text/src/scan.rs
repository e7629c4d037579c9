//! `Scan`: from a text to the hashes of its tokens and the offsets of its newlines.

use crate::token::TokenHasher;
use alloc::vec::Vec;

/// A newline of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Newline {
    /// The offset in the text.
    pub(crate) offset: usize,
    /// The number of tokens before the newline.
    pub(crate) tokens: usize,
}

/// A scan of a text, with the tokens and newlines that it found.
pub(crate) struct Scan<'a> {
    pub(crate) text: &'a str,
    hasher: TokenHasher<'a>,
    tokens: &'a mut Vec<u64>,
    newlines: &'a mut Vec<Newline>,
}

impl<'a> Scan<'a> {
    pub(crate) fn new(
        text: &'a str,
        hasher: TokenHasher<'a>,
        tokens: &'a mut Vec<u64>,
        newlines: &'a mut Vec<Newline>,
    ) -> Self {
        Self { text, hasher, tokens, newlines }
    }

    /// Scans the complete text: in blocks, and character by character where rare rules apply.
    pub(crate) fn run(mut self) {
        let mut offset = 0;
        while let Some((boundary, rare_char)) = self.scan_blocks(offset) {
            offset = self.scan_chars(boundary, rare_char);
        }
    }

    /// Pushes the token at these offsets.
    #[inline(always)]
    pub(crate) fn push_token(&mut self, start: usize, end: usize) {
        self.tokens.push(self.hasher.hash_range(self.text.as_bytes(), start, end));
    }

    /// Pushes a newline after all tokens so far.
    pub(crate) fn push_newline(&mut self, offset: usize) {
        self.push_newline_after(offset, 0);
    }

    /// Pushes a newline after all tokens so far and `more`, which are not pushed yet.
    pub(crate) fn push_newline_after(&mut self, offset: usize, more: usize) {
        self.newlines.push(Newline { offset, tokens: self.tokens.len() + more });
    }
}
