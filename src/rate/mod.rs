//! The mathematics of the false-positive rate.

pub(crate) mod fpr;
pub(crate) mod growth;
pub(crate) mod stats;
#[cfg(feature = "std")]
pub(crate) mod window;
