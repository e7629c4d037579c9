//! Filters that forget: a window of the last keys.

pub(crate) mod filter;
mod generations;
#[cfg(all(test, loom))]
mod loom;
