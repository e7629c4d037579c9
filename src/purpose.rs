//! What a filter is made for.

use alloc::string::String;

/// What a filter is made for. Its file tells it, and it decides no bit.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Purpose {
    /// Distinct keys, at least 1.
    pub(crate) keys: Option<u64>,
    /// The false-positive rate with these keys, between 0 and 1.
    pub(crate) rate: Option<f64>,
    /// A name for the kind of keys; empty if there is none.
    pub(crate) key_name: String,
}

/// The most bytes of a name.
pub(crate) const KEY_NAME_BYTES: usize = 1024;

/// Whether a name fits a file: not too long, and one line of text.
pub(crate) fn is_key_name(name: &str) -> bool {
    name.len() <= KEY_NAME_BYTES && !name.chars().any(char::is_control)
}
