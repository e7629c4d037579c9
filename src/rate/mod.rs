//! The mathematics of the false-positive rate.

pub(crate) mod fpr;
pub(crate) mod growth;
pub(crate) mod set_bits;
#[cfg(feature = "std")]
pub(crate) mod window;
