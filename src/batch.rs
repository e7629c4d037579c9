//! Batches: the ring of prefetches around a probe.
//!
//! A query costs one cache line, and when that line comes from memory the CPU waits for it. So a batch asks for the
//! lines of the next [`AHEAD`] keys before it probes the first: their hashes wait in a ring.

/// How many keys the prefetch runs ahead of the probe; docs/BENCHMARKS.md has the measurement.
const AHEAD: usize = 64;

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

/// `answers[i]` = the probe's answer for `hash(i)`, in order; the count of `true`. Each hash is computed once.
#[inline(always)]
pub(crate) fn run<P: Probe>(mut probe: P, hash: impl Fn(usize) -> u64, answers: &mut [bool]) -> usize {
    let mut count = 0;
    if probe.memory_bytes() <= CACHED_BYTES {
        for (i, answer) in answers.iter_mut().enumerate() {
            *answer = probe.probe(hash(i));
            count += usize::from(*answer);
        }
        return count;
    }
    let mut ring = [0; AHEAD];
    let ahead = AHEAD.min(answers.len());
    for (i, waiting) in ring.iter_mut().enumerate().take(ahead) {
        *waiting = hash(i);
        probe.prefetch(*waiting);
    }
    let (steady, last) = answers.split_at_mut(answers.len() - ahead);
    for (i, answer) in steady.iter_mut().enumerate() {
        let next = hash(i + AHEAD);
        probe.prefetch(next);
        let due = core::mem::replace(&mut ring[i % AHEAD], next);
        *answer = probe.probe(due);
        count += usize::from(*answer);
    }
    for (i, answer) in (steady.len()..).zip(last) {
        *answer = probe.probe(ring[i % AHEAD]);
        count += usize::from(*answer);
    }
    count
}

/// The documented panic of every batch call.
#[track_caller]
pub(crate) fn check_lengths(keys: usize, answers: usize) {
    assert!(keys == answers, "a batch of {keys} keys needs as many answers, not {answers}");
}
