//! Batches: many keys at once.

pub(crate) mod collect;
mod hashed;
mod op;
mod pending;
pub(crate) mod selection;

pub(crate) use hashed::{FEW, PORTION, check_lengths, hashed, try_hashed};
#[cfg(test)]
pub(crate) use op::CACHED_BYTES;
pub(crate) use op::{Answer, Batch};
pub(crate) use pending::{PENDING, Pending};
