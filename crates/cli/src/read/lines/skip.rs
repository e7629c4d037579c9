//! Lines without a key, and the reasons.

use crate::key::error::KeyError;
use crate::options::values::OnError;

/// The reason why a line has no key.
pub(super) enum SkipReason {
    /// A blank line, which is skipped.
    Blank,
    Invalid(KeyError),
    /// A null in the key, and the treatment of its row.
    Null(OnError),
    /// A text without anything to compare. True if its line is kept.
    Empty(bool),
}

impl SkipReason {
    pub(super) fn key_error(&self) -> Option<&KeyError> {
        match self {
            Self::Blank | Self::Empty(_) => None,
            Self::Invalid(key_error) => Some(key_error),
            Self::Null(_) => Some(&KeyError::Null),
        }
    }

    /// Returns the treatment of the line if bad input is treated as `on_error`; `None` if the line is skipped in any case.
    pub(super) fn policy(&self, on_error: OnError) -> Option<OnError> {
        match self {
            Self::Blank | Self::Empty(_) => None,
            Self::Invalid(_) => Some(on_error),
            Self::Null(nulls) => Some(*nulls),
        }
    }

    /// Returns the code of the reason in the records of groups, if bad input is treated as `on_error`.
    pub(super) fn code(&self, on_error: OnError) -> u8 {
        match (self, self.policy(on_error)) {
            (Self::Empty(is_kept), _) => 3 + u8::from(*is_kept),
            (_, None) => 0,
            (_, Some(policy)) => 1 + u8::from(policy == OnError::Keep),
        }
    }

    /// Returns a reason with this code.
    pub(super) fn from_code(code: u8) -> Self {
        match code {
            0 => Self::Blank,
            1 => Self::Null(OnError::Skip),
            2 => Self::Null(OnError::Keep),
            code => Self::Empty(code > 3),
        }
    }
}
