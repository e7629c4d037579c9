//! Batches: many keys at once.

pub(crate) mod collect;
mod hash_chunks;
mod op;
pub(crate) mod selection;
mod unresolved;

pub(crate) use hash_chunks::{BATCH_CHUNK, SMALL_BATCH, check_lengths, hash_in_chunks, try_hash_in_chunks};
#[cfg(test)]
pub(crate) use op::CACHED_BYTES;
pub(crate) use op::{Answer, Batch};
pub(crate) use unresolved::{MAX_UNRESOLVED, Unresolved};
