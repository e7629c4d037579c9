//! What can be a key, and its hash.

pub(crate) mod hash;
pub(crate) mod keys;
pub(crate) mod single;
pub(crate) mod within_build;
