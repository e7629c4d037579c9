//! Coordination of threads that fill one filter after another.

pub(crate) mod epoch;
pub(crate) mod permits;
