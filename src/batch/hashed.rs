//! The keys of a batch, hashed portion by portion.

use crate::key::hash::KeyHasher;
use crate::key::keys::Keys;
use core::convert::Infallible;

/// Keys that are hashed together, to be probed as one batch: 4 KiB of hashes.
pub(crate) const PORTION: usize = 512;

/// A call for so few keys takes less memory, because clearing the memory of a portion would cost more than the keys.
pub(crate) const FEW: usize = 16;

/// Hashes `keys` portion by portion for `run`, which answers the hashes, and returns the sum of its results.
#[track_caller]
pub(crate) fn hashed<K: Keys + ?Sized>(
    hasher: &KeyHasher,
    keys: &K,
    answers: &mut [bool],
    mut run: impl FnMut(&[u64], &mut [bool]) -> usize,
) -> usize {
    let Ok(count) = try_hashed(hasher, keys, answers, |hashes, answers| Ok::<_, Infallible>(run(hashes, answers)));
    count
}

/// As [`hashed`], but ends at the first error. The remaining answers are `false`.
#[track_caller]
pub(crate) fn try_hashed<K: Keys + ?Sized, E>(
    hasher: &KeyHasher,
    keys: &K,
    answers: &mut [bool],
    mut run: impl FnMut(&[u64], &mut [bool]) -> Result<usize, E>,
) -> Result<usize, E> {
    check_lengths(keys.len(), answers.len());
    match (keys.as_hashes(), keys.len()) {
        (Some(hashes), _) => run(hashes, answers),
        (None, 0..=FEW) => portions::<K, E, FEW>(hasher, keys, answers, run),
        (None, _) => portions::<K, E, PORTION>(hasher, keys, answers, run),
    }
}

/// As [`try_hashed`], with so many hashes at a time.
fn portions<K: Keys + ?Sized, E, const PORTION: usize>(
    hasher: &KeyHasher,
    keys: &K,
    answers: &mut [bool],
    mut run: impl FnMut(&[u64], &mut [bool]) -> Result<usize, E>,
) -> Result<usize, E> {
    let mut hashes = [0; PORTION];
    let mut count = 0;
    let mut portions = answers.chunks_mut(PORTION).zip((0..).step_by(PORTION));
    while let Some((answers, first)) = portions.next() {
        let hashes = &mut hashes[..answers.len()];
        keys.hash_from(first, hasher, hashes);
        count +=
            run(hashes, answers).inspect_err(|_| portions.by_ref().for_each(|(answers, _)| answers.fill(false)))?;
    }
    Ok(count)
}

/// The documented panic of every batch call.
#[track_caller]
pub(crate) fn check_lengths(keys: usize, answers: usize) {
    assert!(keys == answers, "a batch of {keys} keys needs as many answers, not {answers}");
}
