//! What is measured of every filter, whoever wrote it.

/// A filter that takes part in the comparison.
pub trait Contender: Send + Sync {
    /// Inserts keys. `new[i]` becomes `true` if key i was new. Returns how many were.
    fn insert(&mut self, hashes: &[u64], new: &mut [bool]) -> usize;

    /// Looks keys up. `found[i]` becomes `true` if key i is in. Returns how many are.
    fn contains(&self, hashes: &[u64], found: &mut [bool]) -> usize;

    /// The size of the bits in bytes.
    fn memory_bytes(&self) -> usize;

    /// Bits set for each key.
    fn probes(&self) -> u32;

    /// The false-positive rate that the model of the layout gives with this number of keys.
    fn modelled_fpr(&self, keys: u64) -> f64;
}

/// Answers key by key, and returns how many answers were `true`.
pub fn one_by_one(hashes: &[u64], answers: &mut [bool], mut operation: impl FnMut(u64) -> bool) -> usize {
    let answer = |(answer, hash): (&mut bool, &u64)| {
        *answer = operation(*hash);
        usize::from(*answer)
    };
    answers.iter_mut().zip(hashes).map(answer).sum()
}
