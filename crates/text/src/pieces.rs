//! The pieces of a text in a normal form, and where they are in the original text.

use core::ops::Range;

/// A piece of a text in a normal form.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    /// The offset in the form.
    pub(crate) formed: usize,
    /// The bytes of the original text.
    pub(crate) original: Range<usize>,
    /// True if each byte of the form is one of the original text. Otherwise the piece is rewritten as a whole.
    pub(crate) bytewise: bool,
}

/// A reader that maps ranges of a form, in order, to the original text.
pub(crate) struct Origins<'a> {
    pieces: &'a [Piece],
}

impl<'a> Origins<'a> {
    pub(crate) fn new(pieces: &'a [Piece]) -> Self {
        Self { pieces }
    }

    /// Returns the original bytes of a range of the form. The range must not be empty, nor start before an earlier one.
    pub(crate) fn origin(&mut self, formed: Range<usize>) -> Range<usize> {
        let first = self.seek(formed.start);
        let start = first.original.start + if first.bytewise { formed.start - first.formed } else { 0 };
        let last = self.seek(formed.end - 1);
        let end = if last.bytewise { last.original.start + formed.end - last.formed } else { last.original.end };
        start..end
    }

    /// Skips to the piece with a byte of the form.
    fn seek(&mut self, byte: usize) -> &'a Piece {
        while self.pieces.get(1).is_some_and(|next| next.formed <= byte) {
            self.pieces = &self.pieces[1..];
        }
        &self.pieces[0]
    }
}
