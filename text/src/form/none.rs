//! The one form there is without the feature `forms`: a text as it is.

/// What of a text does not count where it is compared: nothing, since the crate is built without the feature `forms`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Form {}

impl Form {
    pub(crate) fn is_plain(&self) -> bool {
        true
    }

    pub(crate) fn for_words(self) -> Self {
        self
    }

    pub(crate) fn apply_into<'a>(&self, text: &'a [u8], _: &'a mut FormScratch) -> &'a [u8] {
        text
    }
}

/// Nothing is made of a text.
#[derive(Clone, Debug, Default)]
pub(crate) struct FormScratch {}
