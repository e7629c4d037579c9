//! The positions of a key's bits, and the memory that holds them.

pub(crate) mod access;
mod claim;
pub(crate) mod format;
pub(crate) mod operations;
pub(crate) mod params;
pub(crate) mod shape;
pub(crate) mod storage;
pub(crate) mod words4;
