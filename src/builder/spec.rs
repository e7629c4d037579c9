//! The specification of a filter: its keys, its rate and the name of its keys.

use crate::error::MergeError;
use alloc::string::String;
#[cfg(feature = "file")]
use alloc::vec::Vec;
#[cfg(feature = "file")]
use std::sync::{PoisonError, RwLock};

/// The specification of a filter: what it is made for. Its file keeps it, and no bit depends on it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct FilterSpec {
    /// Distinct keys, at least 1.
    pub(crate) keys: Option<u64>,
    /// The false-positive rate with these keys, between 0 and 1.
    pub(crate) rate: Option<f64>,
    /// A name for the kind of keys; empty if it has no name.
    pub(crate) key_name: String,
    /// True for a stage that its filter closed itself, by shrinking. Such stages have a share of the filter's own rate.
    pub(crate) is_closed: bool,
    /// The age of the last generation of a rotating filter; only in the file of one that rotates by time.
    #[cfg(feature = "file")]
    pub(crate) age: Option<SavedAge>,
    /// The kinds of the values in keys. Only files have a use for them.
    #[cfg(feature = "file")]
    pub(crate) kinds: KeyKinds,
}

/// The age of a generation when it was saved.
#[cfg(feature = "file")]
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SavedAge {
    /// Nanoseconds since its beginning.
    pub(crate) nanos: u64,
    /// The moment of saving, in nanoseconds since 1970.
    pub(crate) saved: u64,
}

/// The kinds of the values in keys: a set of bits for each part of a key. Writers of an atomic filter share it.
#[cfg(feature = "file")]
#[derive(Debug, Default)]
pub(crate) struct KeyKinds(RwLock<Vec<u16>>);

#[cfg(feature = "file")]
impl KeyKinds {
    /// The maximum number of parts. The kinds of later parts are united with the kinds of the last one.
    pub(crate) const MAX_PARTS: usize = 1024;

    /// The kinds of keys that are single texts. A filter with keys and without recorded kinds has such keys.
    pub(crate) const TEXT: [u16; 1] = [1];

    pub(crate) fn get(&self) -> Vec<u16> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the kinds that a file stores: none for single texts, which are the keys of a file without kinds.
    pub(crate) fn written(&self) -> Vec<u16> {
        let kinds = self.get();
        if kinds == Self::TEXT { Vec::new() } else { kinds }
    }

    /// Adds the kinds of each part.
    pub(crate) fn unite(&self, kinds: &[u16]) {
        if kinds.is_empty() {
            return;
        }
        let mut ours = self.0.write().unwrap_or_else(PoisonError::into_inner);
        for (part, kinds) in kinds.iter().enumerate() {
            let part = part.min(Self::MAX_PARTS - 1);
            if ours.len() <= part {
                ours.push(0);
            }
            ours[part] |= kinds;
        }
    }
}

#[cfg(feature = "file")]
impl From<Vec<u16>> for KeyKinds {
    fn from(kinds: Vec<u16>) -> Self {
        Self(RwLock::new(kinds))
    }
}

#[cfg(feature = "file")]
impl Clone for KeyKinds {
    fn clone(&self) -> Self {
        self.get().into()
    }
}

#[cfg(feature = "file")]
impl PartialEq for KeyKinds {
    fn eq(&self, other: &Self) -> bool {
        self.written() == other.written()
    }
}

impl FilterSpec {
    /// Returns true if at most the kinds differ, because each part of a rotating filter records its own.
    #[cfg(feature = "file")]
    pub(crate) fn is_same_but_kinds(&self, other: &Self) -> bool {
        (self.keys, self.rate, &self.key_name) == (other.keys, other.rate, &other.key_name)
    }

    /// Forgets the kinds of keys that were removed.
    pub(crate) fn clear_kinds(&mut self) {
        #[cfg(feature = "file")]
        {
            self.kinds = KeyKinds::default();
        }
    }

    /// Returns an error if the keys of two filters cannot be in one. A filter that does not name its kind of keys matches any.
    pub(crate) fn check_same_keys(&self, other: &Self) -> Result<(), MergeError> {
        let (ours, theirs) = (&self.key_name, &other.key_name);
        if ours == theirs || ours.is_empty() || theirs.is_empty() {
            return Ok(());
        }
        Err(MergeError::KeyName { ours: ours.clone(), theirs: theirs.clone() })
    }
}

/// The highest number of bytes of a name.
pub(crate) const MAX_KEY_NAME_BYTES: usize = 1024;

/// Returns true if a name fits a file: not too long, and one line of text.
pub(crate) fn is_key_name(name: &str) -> bool {
    name.len() <= MAX_KEY_NAME_BYTES && !name.chars().any(char::is_control)
}
