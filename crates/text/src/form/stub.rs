//! The stub of `Form` without the feature `forms`, which leaves texts unchanged.

use crate::pieces::Piece;

/// A normalization form. Without the feature `forms` it has no options.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Form {}

impl Form {
    pub(crate) fn is_plain(&self) -> bool {
        true
    }

    pub(crate) fn apply_traced<'a>(&self, _: &str, _: &'a mut FormScratch) -> (&'a str, &'a [Piece]) {
        unreachable!("a form without options is plain")
    }

    pub(crate) fn for_words(self) -> Self {
        self
    }

    pub(crate) fn apply_into<'a>(&self, text: &'a [u8], _: &'a mut FormScratch) -> &'a [u8] {
        text
    }
}

/// The scratch memory of a form, which the stub does not need.
#[derive(Clone, Debug, Default)]
pub(crate) struct FormScratch {}
