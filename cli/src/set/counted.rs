//! Sets that decide units: the one of a run in order, and the one that threads share. What goes in is counted.

use crate::error::Error;
use crate::set::KeySet;
use crate::set::claims::Claims;
use bloomline_text::Set;

/// A set, and how many of the keys that went in were new.
pub struct Counted<S> {
    pub set: S,
    pub inserted: u64,
}

impl<S> Counted<S> {
    /// Nothing went in.
    pub fn new(set: S) -> Self {
        Self { set, inserted: 0 }
    }
}

impl Set for Counted<&mut KeySet> {
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

impl Set for Counted<&Claims> {
    type Error = Error;

    fn contains_hashes(&mut self, hashes: &[u64], found: &mut [bool]) -> Result<usize, Error> {
        self.set.contains_hashes(hashes, found)
    }

    fn insert_hashes(&mut self, hashes: &[u64], new: &mut [bool]) -> Result<usize, Error> {
        let (count, _) = self.set.insert_hashes(hashes, &[], new)?;
        self.inserted += count as u64;
        Ok(count)
    }
}
