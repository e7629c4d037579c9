//! The positions of a key's bits, and the memory that holds them.

pub(crate) mod access;
mod claim;
pub(crate) mod descriptor;
pub(crate) mod model;
pub(crate) mod ops;
pub(crate) mod params;
pub(crate) mod sectorized;
pub(crate) mod storage;
