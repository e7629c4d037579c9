//! Coordination of threads that fill one filter after another.

pub(crate) mod room;
pub(crate) mod turn;
