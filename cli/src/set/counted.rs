//! A set whose inserts are counted while units are decided.

use crate::error::Error;
use crate::set::KeySet;
use crate::set::claims::Claims;
use bloomline::text::Set;

/// A set, and how many of the keys that went in were new.
pub struct Counted<S> {
    pub set: S,
    pub inserted: u64,
}

/// What looks up and inserts.
pub trait Keys {
    /// See [`KeySet::contains_hashes`].
    fn contains_hashes(&mut self, hashes: &[u64], found: &mut [bool]) -> Result<usize, Error>;
    /// See [`KeySet::insert_hashes`].
    fn insert_hashes(&mut self, hashes: &[u64], new: &mut [bool]) -> Result<usize, Error>;
}

impl Keys for &mut KeySet {
    fn contains_hashes(&mut self, hashes: &[u64], found: &mut [bool]) -> Result<usize, Error> {
        KeySet::contains_hashes(self, hashes, found)
    }

    fn insert_hashes(&mut self, hashes: &[u64], new: &mut [bool]) -> Result<usize, Error> {
        KeySet::insert_hashes(self, hashes, new)
    }
}

impl Keys for &Claims {
    fn contains_hashes(&mut self, hashes: &[u64], found: &mut [bool]) -> Result<usize, Error> {
        Claims::contains_hashes(self, hashes, found)
    }

    fn insert_hashes(&mut self, hashes: &[u64], new: &mut [bool]) -> Result<usize, Error> {
        Claims::insert_hashes(self, hashes, &[], new).map(|(inserted, _)| inserted)
    }
}

impl<S: Keys> Set for Counted<S> {
    type Error = Error;

    fn contains_hashes(&mut self, hashes: &[u64], found: &mut [bool]) -> Result<usize, Error> {
        self.set.contains_hashes(hashes, found)
    }

    fn insert_hashes(&mut self, hashes: &[u64], new: &mut [bool]) -> Result<usize, Error> {
        let count = self.set.insert_hashes(hashes, new)?;
        self.inserted += count as u64;
        Ok(count)
    }
}
