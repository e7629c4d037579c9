//! Where the bits of a key are, and the memory that has them.

pub(crate) mod access;
mod claim;
pub(crate) mod format;
pub(crate) mod operations;
pub(crate) mod params;
pub(crate) mod shape;
pub(crate) mod storage;
pub(crate) mod words4;
