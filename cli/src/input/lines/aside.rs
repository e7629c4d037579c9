//! Lines without a key, and the reasons.

use crate::key::fault::Fault;
use crate::values::OnError;

/// The reason why a line has no key.
pub(super) enum Aside {
    /// A blank line, which is skipped.
    Blank,
    Fault(Fault),
    /// A null in the key, and the treatment of its row.
    Null(OnError),
    /// A text without anything to compare, and whether its line is kept.
    Empty(bool),
}

impl Aside {
    pub(super) fn fault(&self) -> Option<&Fault> {
        match self {
            Self::Blank | Self::Empty(_) => None,
            Self::Fault(fault) => Some(fault),
            Self::Null(_) => Some(&Fault::Null),
        }
    }

    /// Returns the treatment of the line if bad input is treated as `on_error`; `None` if the line is skipped in any case.
    pub(super) fn treated(&self, on_error: OnError) -> Option<OnError> {
        match self {
            Self::Blank | Self::Empty(_) => None,
            Self::Fault(_) => Some(on_error),
            Self::Null(nulls) => Some(*nulls),
        }
    }

    /// Returns the code of the reason for groups, if bad input is treated as `on_error`.
    pub(super) fn code(&self, on_error: OnError) -> u8 {
        match (self, self.treated(on_error)) {
            (Self::Empty(stays), _) => 3 + u8::from(*stays),
            (_, None) => 0,
            (_, Some(treated)) => 1 + u8::from(treated == OnError::Keep),
        }
    }

    /// Returns a reason with this code.
    pub(super) fn of(code: u8) -> Self {
        match code {
            0 => Self::Blank,
            1 => Self::Null(OnError::Skip),
            2 => Self::Null(OnError::Keep),
            code => Self::Empty(code > 3),
        }
    }
}
