//! The kinds of a filter's keys, and which methods may use them.
//!
//! Methods of keys (`add`, `in`, `add_many`) hash integers and tuples as the library does, and methods of rows (`add_rows`, `dedup`)
//! hash values. Texts alone have one hash. So a filter has a record of its kinds, and a method refuses keys that the filter cannot
//! have, instead of never finding them.

use crate::lock::Detached;
use crate::set::Set;
use bloomline_keys::{KeyKinds, KindConflict, Kinds};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use std::ops::BitOrAssign;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A set of forms of the keys that the methods of keys take.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct Forms(u8);

impl Forms {
    pub(crate) const NONE: Self = Self(0);
    /// Texts and byte strings, which are the keys of rows of one text.
    pub(crate) const TEXT: Self = Self(1);
    /// Integers, booleans and tuples, which the library hashes in its own way.
    pub(crate) const OTHER: Self = Self(1 << 1);

    fn has(self, form: Self) -> bool {
        self.0 & form.0 != 0
    }
}

impl BitOrAssign for Forms {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

/// The use of keys, as a number of bits by which [`KindGate::open`] is shifted.
#[derive(Clone, Copy, PartialEq)]
#[repr(u8)]
pub(crate) enum Access {
    Add = 0,
    LookUp = 2,
}

/// The contents of a filter, as far as they are known without reading it.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Contents {
    Empty,
    /// The filter was loaded or merged: its bits say whether it is empty.
    Unread,
    /// Keys were admitted, and are in the filter or about to be.
    Keys,
}

/// The kinds of keys that are brought as rows.
pub(crate) struct RowKinds {
    pub(crate) kinds: KeyKinds,
    /// The names of the columns, in the order of the kinds.
    pub(crate) names: Vec<String>,
}

/// Admits keys to a filter, or refuses keys of other kinds.
pub(crate) struct KindGate {
    /// The [`Forms`] of keys that are admitted without a check, for each [`Access`].
    open: AtomicU8,
    /// Locked while kinds are recorded.
    contents: Mutex<Contents>,
}

impl KindGate {
    pub(crate) fn new(recorded: &[u16], contents: Contents) -> Self {
        Self { open: AtomicU8::new(open_forms(recorded, contents)), contents: Mutex::new(contents) }
    }

    /// Returns true if keys of these forms are admitted. Otherwise [`admit`](Self::admit) decides.
    #[inline(always)]
    pub(crate) fn is_open(&self, forms: Forms, access: Access) -> bool {
        let wanted = forms.0 << access as u8;
        // Relaxed: the flags stand for themselves. If they are set, the record of the filter, which has a lock of its own, needs no
        // change. If a thread does not see them yet, `admit` decides again.
        self.open.load(Relaxed) & wanted == wanted
    }

    /// Admits keys of these forms, and records their kinds before they are added.
    #[cold]
    pub(crate) fn admit(&self, detached: Detached, set: &Set, forms: Forms, access: Access) -> PyResult<()> {
        let mut contents = self.begin(set, access)?;
        let recorded = set.key_kinds(detached);
        let fitting = fitting_forms(&recorded);
        let refused = (forms.has(Forms::TEXT) && !fitting.has(Forms::TEXT))
            || (forms.has(Forms::OTHER) && !fitting.has(Forms::OTHER));
        if refused {
            if !is_empty(*contents, detached, set) {
                return Err(refused_keys(forms, &KeyKinds::from_recorded(&recorded)));
            }
            if access == Access::Add {
                set.clear(detached)?;
            }
        }
        if access == Access::Add {
            self.record_forms(detached, set, forms, *contents);
            *contents = Contents::Keys;
            self.update(&set.key_kinds(detached), *contents);
        }
        Ok(())
    }

    fn record_forms(&self, detached: Detached, set: &Set, forms: Forms, contents: Contents) {
        let recorded = set.key_kinds(detached);
        let mut kinds = Kinds::NONE;
        if forms.has(Forms::OTHER) {
            kinds |= Kinds::LIBRARY;
        }
        // A filter without a record has texts.
        let has_texts = || recorded.is_empty() && !is_empty(contents, detached, set);
        if forms.has(Forms::TEXT) || forms.has(Forms::OTHER) && has_texts() {
            kinds |= Kinds::TEXT;
        }
        if !recorded.is_empty() || kinds.meets(Kinds::LIBRARY) {
            set.add_key_kinds(detached, &[kinds.into()]);
        }
    }

    /// Admits rows of these kinds, and records the kinds before they are added.
    pub(crate) fn admit_rows(&self, detached: Detached, set: &Set, rows: &RowKinds, access: Access) -> PyResult<()> {
        let mut contents = self.begin(set, access)?;
        let recorded = set.key_kinds(detached);
        let known = KeyKinds::from_recorded(&recorded);
        if let Some(conflict) = rows.kinds.conflict(&known) {
            if !is_empty(*contents, detached, set) {
                return Err(refused_rows(rows, conflict));
            }
            if access == Access::Add && !recorded.is_empty() {
                set.clear(detached)?;
            }
        }
        if access == Access::Add {
            // Without a record the keys are texts, and rows that fit are texts or nulls.
            let is_text = rows.kinds == KeyKinds::new(Kinds::TEXT);
            if !recorded.is_empty() || !is_text && is_empty(*contents, detached, set) {
                set.add_key_kinds(detached, &rows.kinds.to_bits());
            }
            *contents = Contents::Keys;
            self.update(&set.key_kinds(detached), *contents);
        }
        Ok(())
    }

    /// Runs a change of the whole filter, after which its contents are other ones.
    pub(crate) fn change<T>(
        &self,
        detached: Detached,
        set: &Set,
        contents: Contents,
        change: impl FnOnce() -> PyResult<T>,
    ) -> PyResult<T> {
        let mut ours = self.lock();
        let changed = change();
        if changed.is_ok() {
            *ours = contents;
        }
        self.update(&set.key_kinds(detached), *ours);
        changed
    }

    fn begin(&self, set: &Set, access: Access) -> PyResult<MutexGuard<'_, Contents>> {
        if access == Access::Add {
            set.check_writable()?;
        }
        Ok(self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Contents> {
        // The contents are one value, which is valid after a panic too.
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn update(&self, recorded: &[u16], contents: Contents) {
        // Relaxed: as in `is_open`. The mutex orders the stores.
        self.open.store(open_forms(recorded, contents), Relaxed);
    }
}

/// Returns true if the filter has no key. The bits are read unless the contents are known.
fn is_empty(contents: Contents, detached: Detached, set: &Set) -> bool {
    contents == Contents::Empty || contents == Contents::Unread && set.is_empty(detached)
}

/// Returns the kinds of values, in bits, without those that are not kinds of values.
fn values(kinds: Kinds) -> u16 {
    u16::from(kinds) & !u16::from(Kinds::LIBRARY | Kinds::IN_ROW)
}

/// Returns the forms of keys that a filter with these recorded kinds can have.
fn fitting_forms(recorded: &[u16]) -> Forms {
    let kinds = Kinds::from(recorded.first().copied().unwrap_or_default());
    let mut forms = Forms::NONE;
    if recorded.len() < 2 && !kinds.meets(Kinds::IN_ROW) {
        if values(kinds) == 0 || kinds.meets(Kinds::TEXT) {
            forms |= Forms::TEXT;
        }
        if values(kinds) & !u16::from(Kinds::TEXT) == 0 {
            forms |= Forms::OTHER;
        }
    }
    forms
}

/// Returns the flags of [`KindGate::open`].
fn open_forms(recorded: &[u16], contents: Contents) -> u8 {
    let fitting = fitting_forms(recorded);
    let kinds = Kinds::from(recorded.first().copied().unwrap_or_default());
    let mut added = Forms::NONE;
    // Of these, nothing is left to record.
    if contents == Contents::Keys {
        if fitting.has(Forms::TEXT) && (recorded.is_empty() || kinds.meets(Kinds::TEXT)) {
            added |= Forms::TEXT;
        }
        if fitting.has(Forms::OTHER) && kinds.meets(Kinds::LIBRARY) {
            added |= Forms::OTHER;
        }
    }
    fitting.0 << Access::LookUp as u8 | added.0 << Access::Add as u8
}

/// Returns the error about keys of `add`, `in`, `add_many` and the like.
fn refused_keys(forms: Forms, recorded: &KeyKinds) -> PyErr {
    let brought = if forms.has(Forms::OTHER) { Kinds::LIBRARY } else { Kinds::TEXT };
    let row = if recorded.parts().iter().any(|part| part.meets(Kinds::IN_ROW)) { "rows of " } else { "" };
    PyTypeError::new_err(format!(
        "the keys are {brought}, and the keys of the filter are {row}{recorded}, which are never equal to them: use add_rows, \
         contains_rows or dedup, or another filter"
    ))
}

/// Returns the error about rows.
fn refused_rows(rows: &RowKinds, conflict: KindConflict) -> PyErr {
    PyTypeError::new_err(match conflict {
        KindConflict::Kinds { recorded: Kinds::LIBRARY, .. } => format!(
            "the keys of the rows are {}, and the keys of the filter are {}, which are never equal to them: use add_many and \
             contains_many, or another filter",
            rows.kinds,
            Kinds::LIBRARY
        ),
        KindConflict::Kinds { part, brought, recorded } => {
            let name = rows.names.get(part.unwrap_or_default()).map_or("", String::as_str);
            let theirs = if part.is_some() { "the keys of the filter have" } else { "the keys of the filter are" };
            format!(
                "column {name:?} has {brought}, and {theirs} {recorded}: cast the column, such as by .astype(str) or .cast(...), \
                 or use another filter"
            )
        }
        KindConflict::Parts { .. } => {
            format!(
                "the rows cannot be keys of the filter: {conflict}; choose the columns of its keys, or use another filter"
            )
        }
    })
}
