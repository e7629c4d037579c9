//! Lines without a key, and the reasons.

use crate::key::error::KeyError;
use crate::options::values::OnError;

/// The reason why a line has no key.
pub enum SkipReason {
    /// A blank line, which is skipped.
    Blank,
    Invalid(KeyError),
    /// A null in the key, and the treatment of its row.
    Null(OnError),
    /// A value without anything to compare. True if its line is kept.
    Empty(bool),
}

impl SkipReason {
    pub fn key_error(&self) -> Option<&KeyError> {
        match self {
            Self::Blank | Self::Empty(_) => None,
            Self::Invalid(key_error) => Some(key_error),
            Self::Null(_) => Some(&KeyError::Null),
        }
    }

    /// Returns the treatment of the line if bad input is treated as `on_error`; `None` if the line is skipped in any case.
    pub fn policy(&self, on_error: OnError) -> Option<OnError> {
        match self {
            Self::Blank | Self::Empty(_) => None,
            Self::Invalid(_) => Some(on_error),
            Self::Null(nulls) => Some(*nulls),
        }
    }
}
