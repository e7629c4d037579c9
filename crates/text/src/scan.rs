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

/// A token with its place in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PlacedToken {
    pub(crate) hash: u64,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// The form in which tokens are collected: their hashes alone, or with their places.
pub(crate) trait Token {
    fn new(hash: u64, start: usize, end: usize) -> Self;
}

impl Token for u64 {
    #[inline(always)]
    fn new(hash: u64, _: usize, _: usize) -> Self {
        hash
    }
}

impl Token for PlacedToken {
    #[inline(always)]
    fn new(hash: u64, start: usize, end: usize) -> Self {
        Self { hash, start, end }
    }
}

/// A scan of a text, with the tokens and newlines that it found.
pub(crate) struct Scan<'a, T> {
    pub(crate) text: &'a str,
    hasher: TokenHasher<'a>,
    tokens: &'a mut Vec<T>,
    newlines: &'a mut Vec<Newline>,
}

impl<'a, T: Token> Scan<'a, T> {
    pub(crate) fn new(
        text: &'a str,
        hasher: TokenHasher<'a>,
        tokens: &'a mut Vec<T>,
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
        self.tokens.push(T::new(self.hasher.hash_range(self.text.as_bytes(), start, end), start, end));
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
