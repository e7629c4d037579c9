//! `Contender`: the operations that are measured for every filter, of this library and of others.

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

/// A filter, or the reason why it cannot be built.
pub type BoxedContender = Result<Box<dyn Contender>, String>;

pub fn boxed(contender: impl Contender + 'static) -> BoxedContender {
    Ok(Box::new(contender))
}

/// Answers key by key, and returns how many answers were `true`.
#[inline(always)] // into a loop of `dispatch!`
pub fn one_by_one(hashes: &[u64], answers: &mut [bool], mut operation: impl FnMut(u64) -> bool) -> usize {
    let answer = |(answer, hash): (&mut bool, &u64)| {
        *answer = operation(*hash);
        usize::from(*answer)
    };
    answers.iter_mut().zip(hashes).map(answer).sum()
}

/// Makes a contender of a type that takes keys one by one.
macro_rules! contender {
    ($type:ty, |$filter:ident, $hash:ident, $keys:ident| insert: $insert:expr, contains: $contains:expr,
     bytes: $bytes:expr, probes: $probes:expr, rate: $rate:expr) => {
        impl $crate::contender::Contender for $type {
            fn insert(&mut self, hashes: &[u64], new: &mut [bool]) -> usize {
                let $filter = self;
                $crate::contender::one_by_one(hashes, new, |$hash| $insert)
            }

            fn contains(&self, hashes: &[u64], found: &mut [bool]) -> usize {
                let $filter = self;
                $crate::contender::one_by_one(hashes, found, |$hash| $contains)
            }

            fn memory_bytes(&self) -> usize {
                let $filter = self;
                $bytes
            }

            #[allow(unused_variables)] // some have always the same number
            fn probes(&self) -> u32 {
                let $filter = self;
                $probes
            }

            fn modelled_fpr(&self, $keys: u64) -> f64 {
                let $filter = self;
                $rate
            }
        }
    };
}
pub(crate) use contender;
