//! Batches: prefetches that run ahead of the probes.
//!
//! A query costs one cache line, and when that line comes from memory the CPU waits for it. So a batch asks for the
//! lines of the next [`AHEAD`] keys before it probes the first. It takes hashes from a slice, where the keys ahead can be
//! looked at without being copied anywhere: docs/BENCHMARKS.md has what a ring of copies costs.

use crate::hash::KeyHasher;
use crate::key::Key;

/// How many keys the prefetch runs ahead of the probe; docs/BENCHMARKS.md has the measurement.
const AHEAD: usize = 64;

/// Prefetches that are sent together, between as many probes; docs/BENCHMARKS.md has the measurement.
const BURST: usize = 4;

/// Keys that are hashed together, to be probed as one batch: 4 KiB of hashes.
const PORTION: usize = 512;

/// Filters up to this size are probed without prefetches: they stay in the cache that is a few cycles away, and the
/// prefetch costs more than it gains. docs/BENCHMARKS.md has the measurement.
pub(crate) const CACHED_BYTES: usize = 1 << 20;

/// One operation on the block of a hash.
pub(crate) trait Probe {
    /// Bytes that the probes wander over.
    fn memory_bytes(&self) -> usize;
    /// Asks for the cache line of a hash.
    fn prefetch(&self, hash: u64);
    /// The operation's answer for a hash.
    fn probe(&mut self, hash: u64) -> bool;
}

/// `answers[i]` = the probe's answer for `hashes[i]`, in order; the count of `true`.
#[inline(always)]
pub(crate) fn run<P: Probe>(mut probe: P, hashes: &[u64], answers: &mut [bool]) -> usize {
    let mut count = 0;
    let mut done = 0;
    if probe.memory_bytes() > CACHED_BYTES {
        let (first, rest) = hashes.split_at(AHEAD.min(hashes.len()));
        for &hash in first {
            probe.prefetch(hash);
        }
        let (bursts, _) = rest.as_chunks::<BURST>();
        let due = hashes.as_chunks::<BURST>().0.iter().zip(answers.as_chunks_mut::<BURST>().0);
        for (next, (hashes, answers)) in bursts.iter().zip(due) {
            for &hash in next {
                probe.prefetch(hash);
            }
            for (answer, &hash) in answers.iter_mut().zip(hashes) {
                *answer = probe.probe(hash);
                count += usize::from(*answer);
            }
        }
        done = BURST * bursts.len();
    }
    for (answer, &hash) in answers[done..].iter_mut().zip(&hashes[done..]) {
        *answer = probe.probe(hash);
        count += usize::from(*answer);
    }
    count
}

/// Hashes `keys` portion by portion for `run`, which answers the hashes; the sum of what it returns.
pub(crate) fn hashed<K: Key>(
    hasher: &KeyHasher,
    keys: &[K],
    answers: &mut [bool],
    mut run: impl FnMut(&[u64], &mut [bool]) -> usize,
) -> usize {
    let mut hashes = [0; PORTION];
    let mut count = 0;
    for (keys, answers) in keys.chunks(PORTION).zip(answers.chunks_mut(PORTION)) {
        for (hash, key) in hashes.iter_mut().zip(keys) {
            *hash = key.hash(hasher);
        }
        count += run(&hashes[..keys.len()], answers);
    }
    count
}

/// The documented panic of every batch call.
#[track_caller]
pub(crate) fn check_lengths(keys: usize, answers: usize) {
    assert!(keys == answers, "a batch of {keys} keys needs as many answers, not {answers}");
}
