//! Lines without a key, and the reasons.

use crate::groups::decisions;
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

    /// Converts the reason for groups, if bad input is treated as `on_error`.
    pub(super) fn told(&self, on_error: OnError) -> decisions::Aside {
        match (self, self.treated(on_error)) {
            (Self::Empty(true), _) => decisions::Aside::EmptyStays,
            (Self::Empty(false), _) => decisions::Aside::EmptyGoes,
            (_, None) => decisions::Aside::Blank,
            (_, Some(OnError::Keep)) => decisions::Aside::FaultStays,
            (_, Some(_)) => decisions::Aside::FaultGoes,
        }
    }

    /// Converts a reason back from groups.
    pub(super) fn of(told: decisions::Aside) -> Self {
        match told {
            decisions::Aside::Blank => Self::Blank,
            decisions::Aside::FaultGoes => Self::Null(OnError::Skip),
            decisions::Aside::FaultStays => Self::Null(OnError::Keep),
            decisions::Aside::EmptyGoes => Self::Empty(false),
            decisions::Aside::EmptyStays => Self::Empty(true),
        }
    }
}
