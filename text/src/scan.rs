//! From a text to the hashes of its tokens, and the places of its newlines.

use crate::token::TokenHasher;
use alloc::vec::Vec;

/// A newline of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Newline {
    /// The place of its byte.
    pub(crate) at: usize,
    /// How many tokens stand before it.
    pub(crate) tokens: usize,
}

/// A text whose tokens are found one after the other.
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

    /// All of the text: in blocks, and what follows rare rules by characters.
    pub(crate) fn run(mut self) {
        let mut at = 0;
        while let Some((boundary, place)) = self.scan_blocks(at) {
            at = self.scan_chars(boundary, place);
        }
    }

    /// A token in the text.
    #[inline(always)]
    pub(crate) fn push_token(&mut self, start: usize, end: usize) {
        self.tokens.push(self.hasher.hash_range(self.text.as_bytes(), start, end));
    }

    /// A newline, which comes after all tokens so far.
    pub(crate) fn push_newline(&mut self, at: usize) {
        self.push_newline_after(at, 0);
    }

    /// A newline, which comes after all tokens so far and some more.
    pub(crate) fn push_newline_after(&mut self, at: usize, more: usize) {
        self.newlines.push(Newline { at, tokens: self.tokens.len() + more });
    }
}
