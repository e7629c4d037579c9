//! The filters of one size.

pub(crate) mod any;
pub(crate) mod atomic;
pub(crate) mod bloom;
#[cfg(feature = "file")]
pub(crate) mod borrowed;
#[cfg(feature = "rayon")]
pub(crate) mod bulk;
pub(crate) mod chain;
mod fold;
#[cfg(test)]
mod kernels;
pub(crate) mod methods;
pub(crate) mod raw;
pub(crate) mod view;
