//! A set whose inserts are counted while units are decided, and checked if that is asked for.

use crate::error::Error;
use crate::set::KeySet;
use crate::set::claims::Claims;
use bloomline::text::{Rules, Set};
use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};

/// A set, and how many of the keys that went in were new.
pub struct Counted<'a, S> {
    pub set: S,
    pub inserted: u64,
    pub exact: Option<&'a mut ExactUnits>,
}

/// All keys of the set, to tell which units are taken for duplicates by mistake.
pub struct ExactUnits {
    rules: Rules,
    keys: HashSet<u64, BuildHasherDefault<Same>>,
    /// Those units.
    pub wrong: u64,
}

impl ExactUnits {
    /// Of a set without keys.
    pub fn new(rules: Rules) -> Self {
        Self { rules, keys: HashSet::default(), wrong: 0 }
    }

    /// A unit, and how many of its grams the filter found.
    fn check(&mut self, hashes: &[u64], found: usize) {
        let known = hashes.iter().filter(|hash| self.keys.contains(hash)).count();
        let grams = hashes.len();
        self.wrong += u64::from(self.rules.is_duplicate(grams, found) && !self.rules.is_duplicate(grams, known));
    }

    /// What goes in, and what the filter took for new. A unit of one key is looked up by this alone.
    fn insert(&mut self, hashes: &[u64], new: &[bool]) {
        for (&hash, &new) in hashes.iter().zip(new) {
            let known = !self.keys.insert(hash);
            self.wrong += u64::from(self.rules.ngram == 0 && !new && !known);
        }
    }
}

/// Keys are hashes already.
#[derive(Default)]
pub struct Same(u64);

impl Hasher for Same {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("keys are of 64 bits");
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
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

impl<S: Keys> Set for Counted<'_, S> {
    type Error = Error;

    fn contains_hashes(&mut self, hashes: &[u64], found: &mut [bool]) -> Result<usize, Error> {
        let count = self.set.contains_hashes(hashes, found)?;
        if let Some(exact) = &mut self.exact {
            exact.check(hashes, count);
        }
        Ok(count)
    }

    fn insert_hashes(&mut self, hashes: &[u64], new: &mut [bool]) -> Result<usize, Error> {
        let count = self.set.insert_hashes(hashes, new)?;
        self.inserted += count as u64;
        if let Some(exact) = &mut self.exact {
            exact.insert(hashes, new);
        }
        Ok(count)
    }
}
