//! What is measured of every filter, whoever wrote it.

use crate::error::Error;
use bloomline::BuildError;

/// A filter that takes part in the comparison.
pub trait Contender: Send + Sync {
    /// Inserts keys. `new[i]` becomes `true` if key i was new. Returns how many were. A static filter is built of these keys
    /// alone, and they count as new. So do those of a filter that does not tell.
    fn insert(&mut self, hashes: &[u64], new: &mut [bool]) -> usize;

    /// Looks keys up. `found[i]` becomes `true` if key i is in. Returns how many are.
    fn contains(&self, hashes: &[u64], found: &mut [bool]) -> usize;

    /// The size of the bits in bytes.
    fn memory_bytes(&self) -> usize;

    /// Bits set for each key, or the bits of a key's fingerprint.
    fn probes(&self) -> u32;

    /// The false-positive rate that the model of the layout gives with this number of keys.
    fn modelled_fpr(&self, keys: u64) -> f64;
}

/// Why there is no filter.
pub enum NotMade {
    /// The kind cannot be had so: the reason.
    LeftOut(String),
    Failed(BuildError),
}

impl From<BuildError> for NotMade {
    fn from(error: BuildError) -> Self {
        Self::Failed(error)
    }
}

/// A filter, or why there is none.
pub type Made = Result<Box<dyn Contender>, NotMade>;

/// The filter, or the reason why the kind is left out.
pub fn or_left_out(made: Made) -> Result<Result<Box<dyn Contender>, String>, Error> {
    match made {
        Ok(contender) => Ok(Ok(contender)),
        Err(NotMade::LeftOut(reason)) => Ok(Err(reason)),
        Err(NotMade::Failed(error)) => Err(error.into()),
    }
}

pub fn made(contender: impl Contender + 'static) -> Made {
    Ok(Box::new(contender))
}

/// Answers key by key, and returns how many answers were `true`.
pub fn one_by_one(hashes: &[u64], answers: &mut [bool], mut operation: impl FnMut(u64) -> bool) -> usize {
    let answer = |(answer, hash): (&mut bool, &u64)| {
        *answer = operation(*hash);
        usize::from(*answer)
    };
    answers.iter_mut().zip(hashes).map(answer).sum()
}
