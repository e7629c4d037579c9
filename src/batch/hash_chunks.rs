//! The keys of a batch, hashed chunk by chunk.

use crate::key::hash::KeyHasher;
use crate::key::keys::Keys;
use core::convert::Infallible;

/// Keys that are hashed together, to be probed as one batch: 4 KiB of hashes.
pub(crate) const BATCH_CHUNK: usize = 512;

/// A call for so few keys takes less memory, because clearing the memory of a chunk would cost more than the keys.
pub(crate) const SMALL_BATCH: usize = 16;

/// Hashes `keys` chunk by chunk, calls `run` with the hashes and the answers of each chunk, and returns the sum of its
/// results.
#[track_caller]
pub(crate) fn hash_in_chunks<K: Keys + ?Sized>(
    hasher: &KeyHasher,
    keys: &K,
    answers: &mut [bool],
    mut run: impl FnMut(&[u64], &mut [bool]) -> usize,
) -> usize {
    let Ok(count) =
        try_hash_in_chunks(hasher, keys, answers, |hashes, answers| Ok::<_, Infallible>(run(hashes, answers)));
    count
}

/// As [`hash_in_chunks`], but ends at the first error. The remaining answers are `false`.
#[track_caller]
pub(crate) fn try_hash_in_chunks<K: Keys + ?Sized, E>(
    hasher: &KeyHasher,
    keys: &K,
    answers: &mut [bool],
    mut run: impl FnMut(&[u64], &mut [bool]) -> Result<usize, E>,
) -> Result<usize, E> {
    check_lengths(keys.len(), answers.len());
    match (keys.as_hashes(), keys.len()) {
        (Some(hashes), _) => run(hashes, answers),
        (None, 0..=SMALL_BATCH) => chunks::<K, E, SMALL_BATCH>(hasher, keys, answers, run),
        (None, _) => chunks::<K, E, BATCH_CHUNK>(hasher, keys, answers, run),
    }
}

/// As [`try_hash_in_chunks`], with `N` hashes at a time.
fn chunks<K: Keys + ?Sized, E, const N: usize>(
    hasher: &KeyHasher,
    keys: &K,
    answers: &mut [bool],
    mut run: impl FnMut(&[u64], &mut [bool]) -> Result<usize, E>,
) -> Result<usize, E> {
    let mut hashes = [0; N];
    let mut count = 0;
    let mut chunks = answers.chunks_mut(N).zip((0..).step_by(N));
    while let Some((answers, first)) = chunks.next() {
        let hashes = &mut hashes[..answers.len()];
        keys.hash_from(first, hasher, hashes);
        count += run(hashes, answers).inspect_err(|_| chunks.by_ref().for_each(|(answers, _)| answers.fill(false)))?;
    }
    Ok(count)
}

/// Panics if the lengths differ, as every batch call documents.
#[track_caller]
pub(crate) fn check_lengths(keys: usize, answers: usize) {
    assert!(keys == answers, "a batch of {keys} keys needs as many answers, not {answers}");
}
