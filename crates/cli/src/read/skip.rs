//! Lines without a key, and the reasons.

use crate::key::error::KeyError;
use clap::ValueEnum;

/// The treatment of bad input.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OnError {
    /// End with an error; `dedup` and `check` first finish all lines before it, unless files are worked on side by side
    Fail,
    /// Leave out such a line. Leave out such an input, or the rest of it; the exit code is then 1, and 2 of `check`
    Skip,
    /// Select such a line as it is; for `dedup` it is the only one of its kind. Keep what can be read of such an input; the exit code is that of skip
    Keep,
}

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
