//! Lines without a key, and why.

use crate::groups::decisions;
use crate::key::fault::Fault;
use crate::values::OnError;

/// Why a line has no key.
pub(super) enum Aside {
    /// It is left out.
    Blank,
    Fault(Fault),
    /// A null, and what becomes of its row.
    Null(OnError),
    /// It has a text without anything to compare, and whether it stays.
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

    /// What becomes of the line, if it is not left out, where bad input is treated so.
    pub(super) fn treated(&self, on_error: OnError) -> Option<OnError> {
        match self {
            Self::Blank | Self::Empty(_) => None,
            Self::Fault(_) => Some(on_error),
            Self::Null(nulls) => Some(*nulls),
        }
    }

    /// What groups are told of it, where bad input is treated so.
    pub(super) fn told(&self, on_error: OnError) -> decisions::Aside {
        match (self, self.treated(on_error)) {
            (Self::Empty(true), _) => decisions::Aside::EmptyStays,
            (Self::Empty(false), _) => decisions::Aside::EmptyGoes,
            (_, None) => decisions::Aside::Blank,
            (_, Some(OnError::Keep)) => decisions::Aside::FaultStays,
            (_, Some(_)) => decisions::Aside::FaultGoes,
        }
    }

    /// What it was that groups were told.
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
