//! Filters from iterators.

use crate::batch::SMALL_BATCH;
use crate::error::BuildError;
use crate::key::hash::KeyHasher;
use crate::key::single::Key;
use alloc::vec::Vec;

/// The false-positive rate of a filter that is collected from an iterator.
pub(crate) const DEFAULT_RATE: f64 = 0.01;

/// Keys of the first stage of a scalable filter that is collected, unless the iterator is known to yield more: 2 KiB.
pub(crate) const FIRST_STAGE_KEYS: usize = 1000;

/// Hashes that are inserted together: a few KiB, long enough for prefetches to run ahead, and on the stack.
const COLLECT_CHUNK: usize = 1024;

/// Gathers hashes for `insert`, in batches.
pub(crate) fn in_batches(hashes: impl IntoIterator<Item = u64>, mut insert: impl FnMut(&[u64])) {
    let mut hashes = hashes.into_iter();
    // For few keys little memory has to be cleared.
    if insert_next::<SMALL_BATCH>(&mut hashes, &mut insert) {
        while insert_next::<COLLECT_CHUNK>(&mut hashes, &mut insert) {}
    }
}

/// Inserts the next `N` hashes, or all that are left. Returns true if there were `N`.
fn insert_next<const N: usize>(hashes: &mut impl Iterator<Item = u64>, insert: &mut impl FnMut(&[u64])) -> bool {
    let mut gathered = [0; N];
    let mut filled = 0;
    for (slot, hash) in gathered.iter_mut().zip(hashes) {
        *slot = hash;
        filled += 1;
    }
    insert(&gathered[..filled]);
    filled == N
}

/// Returns the hashes of keys, with the seed 0.
pub(crate) fn hashes<K: Key>(keys: impl IntoIterator<Item = K>) -> Vec<u64> {
    let hasher = KeyHasher::new(0);
    keys.into_iter().map(|key| key.hash_with(&hasher)).collect()
}

#[track_caller]
pub(crate) fn or_panic<T>(result: Result<T, BuildError>) -> T {
    result.unwrap_or_else(|error| panic!("{error}"))
}
