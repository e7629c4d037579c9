//! The specification of a filter: its keys, its rate and the name of its keys.

use crate::error::MergeError;
use alloc::string::String;

/// The specification of a filter: what it is made for. Its file keeps it, and no bit depends on it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct FilterSpec {
    /// Distinct keys, at least 1.
    pub(crate) keys: Option<u64>,
    /// The false-positive rate with these keys, between 0 and 1.
    pub(crate) rate: Option<f64>,
    /// A name for the kind of keys; empty if it has no name.
    pub(crate) key_name: String,
}

impl FilterSpec {
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
