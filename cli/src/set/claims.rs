//! A set of which many threads claim keys at once: of all that insert a key, one is told that it is new.

use crate::error::Error;
use crate::set::KeySet;
use crate::set::exact::Exact;
use bloomline::{AtomicBloomFilter, AtomicScalableBloomFilter};
use std::mem;
use std::sync::Mutex;

/// The set while threads share it.
pub enum Claims {
    /// Of a fixed size.
    Sized(AtomicBloomFilter),
    /// One that grows.
    Scalable(AtomicScalableBloomFilter),
    /// One thread at a time: the second look remembers what the filter said of each line.
    Locked(Box<Mutex<(KeySet, Option<Exact>)>>),
    /// While [`with`](Self::with) has it.
    Taken,
}

impl Claims {
    /// Shares a set, and the second look at it.
    pub fn new(set: KeySet, exact: Option<Exact>) -> Self {
        match (set, exact) {
            (KeySet::Sized(filter), None) => Self::Sized(filter.into()),
            (KeySet::Scalable(filter), None) => Self::Scalable(filter.into()),
            both => Self::Locked(Box::new(Mutex::new(both))),
        }
    }

    /// What was shared.
    pub fn into_inner(self) -> (KeySet, Option<Exact>) {
        match self {
            Self::Sized(filter) => (KeySet::Sized(filter.into()), None),
            Self::Scalable(filter) => (KeySet::Scalable(filter.into()), None),
            Self::Locked(both) => both.into_inner().expect("no thread panics while it inserts"),
            Self::Taken => unreachable!("whoever took the set gave it back"),
        }
    }

    /// Lets the caller have the set for a while, since no other thread does.
    pub fn with<T>(&mut self, act: impl FnOnce(&mut KeySet) -> T) -> T {
        let (mut set, exact) = mem::replace(self, Self::Taken).into_inner();
        let done = act(&mut set);
        *self = Self::new(set, exact);
        done
    }

    /// Inserts hashes; `new[i]` is `true` if hash i was new and is the caller's. Returns how many the filter took for new, and how
    /// many more the second look did.
    pub fn insert_hashes(
        &self,
        hashes: &[u64],
        fingerprints: &[u128],
        new: &mut [bool],
    ) -> Result<(usize, usize), Error> {
        match self {
            Self::Sized(filter) => Ok((filter.insert_hashes(hashes, new), 0)),
            Self::Scalable(filter) => Ok((filter.insert_hashes(hashes, new)?, 0)),
            Self::Locked(both) => {
                let (set, exact) = &mut *both.lock().expect("no thread panics while it inserts");
                let inserted = set.insert_hashes(hashes, new)?;
                let correct = |exact: &mut Exact| exact.correct(fingerprints, new);
                let rescued = exact.as_mut().map_or(Ok(0), correct).map_err(|source| Error::Exact { source })?;
                Ok((inserted, rescued))
            }
            Self::Taken => unreachable!("whoever took the set gave it back"),
        }
    }

    /// `found[i]` is `true` if hash i is in the set. Returns how many are.
    pub fn contains_hashes(&self, hashes: &[u64], found: &mut [bool]) -> Result<usize, Error> {
        match self {
            Self::Sized(filter) => Ok(filter.contains_hashes(hashes, found)),
            Self::Scalable(filter) => Ok(filter.contains_hashes(hashes, found)),
            Self::Locked(both) => {
                both.lock().expect("no thread panics while it inserts").0.contains_hashes(hashes, found)
            }
            Self::Taken => unreachable!("whoever took the set gave it back"),
        }
    }

    /// The false-positive rate to expect with so many keys. A set that grows knows how many it has.
    pub fn expected_fpr(&self, keys: f64) -> f64 {
        match self {
            Self::Sized(filter) => filter.expected_fpr(keys as u64),
            Self::Scalable(filter) => filter.expected_fpr(),
            Self::Locked(both) => both.lock().expect("no thread panics while it inserts").0.expected_fpr(keys),
            Self::Taken => unreachable!("whoever took the set gave it back"),
        }
    }

    /// The false-positive rate of the bits as they are. Reads the whole filter.
    pub fn current_fpr(&self) -> f64 {
        match self {
            Self::Sized(filter) => filter.current_fpr(),
            Self::Scalable(filter) => filter.current_fpr(),
            Self::Locked(both) => both.lock().expect("no thread panics while it inserts").0.current_fpr(),
            Self::Taken => unreachable!("whoever took the set gave it back"),
        }
    }
}
