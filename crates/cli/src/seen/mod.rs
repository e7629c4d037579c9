//! The keys seen so far: a set, and an exact check of the keys that the set reports as seen.
//!
//! One thread at a time inserts. A batch of a single writer takes a third of the time for each key that many writers
//! take, so with few threads the wait is shorter than the work saved.

pub mod counts;
pub mod exact;
pub mod forecast;
pub mod forecast_filter;
pub mod hash_table;
pub mod local_set;
#[cfg_attr(not(feature = "redis"), path = "no_remote_set.rs")]
pub mod remote_set;
#[cfg(feature = "redis")]
mod remote_stats;
pub mod run_stats;
pub mod set;

use crate::seen::counts::UnitCounts;
use crate::seen::exact::Exact;
use crate::seen::set::KeySet;
use crate::system::error::Error;
use crate::system::unpoisoned::{reading, writing};
use bloomline::BloomFilter;
use bloomline_keys::{KeyKinds, KindConflict, Kinds};
use std::env;
use std::io;
use std::mem;
use std::sync::{Arc, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// The keys seen so far.
pub struct SeenKeys {
    pub set: KeySet,
    /// The exact check of keys that the set reports as seen.
    pub exact: Option<Exact>,
    /// New keys that still fit, if the run stops at the next one.
    remaining_keys: Option<u64>,
    /// The kinds of all keys; of those, the ones that were found in values; the ones that these are compared with; and
    /// of those, the ones of tables.
    admitted: KeyKinds,
    brought: KeyKinds,
    expected: KeyKinds,
    of_tables: KeyKinds,
}

/// The result of inserting the keys of some lines, or of a search for them.
#[derive(Debug, Default)]
pub struct Claimed {
    /// Keys that were new to the filter.
    pub inserted: u64,
    /// Lines that are kept: their keys were new, or a part of their documents was. For a search, the lines that are selected.
    pub unique: u64,
    /// Counts of the units of documents.
    pub units: UnitCounts,
    /// The reason why no later line may be claimed.
    pub halt: Option<Halt>,
}

/// The reason why a run ends after some lines.
#[derive(Debug)]
pub enum Halt {
    /// The next line is new, and the filter has no room for it.
    Full,
    /// The server failed. The answers to the lines before are known.
    Failed(Error),
    /// No more lines are wanted.
    Enough,
}

impl SeenKeys {
    /// Starts with the keys of the set and without an exact check.
    pub fn new(set: KeySet) -> Self {
        let (expected, none) = (set.kinds().clone(), KeyKinds::default);
        Self { set, exact: None, remaining_keys: None, admitted: none(), brought: none(), expected, of_tables: none() }
    }

    /// Takes the set out, for another `SeenKeys`.
    pub fn take_set(&mut self) -> Result<KeySet, Error> {
        let none = KeySet::Local(BloomFilter::new(1, 0.5)?.into());
        Ok(mem::replace(&mut self.set, none))
    }

    /// Adds an exact check, with fingerprints in temporary files.
    pub fn with_exact(self) -> Result<Self, Error> {
        let exact = Exact::new(&env::temp_dir()).map_err(exact_check_error)?;
        Ok(Self { exact: Some(exact), ..self })
    }

    /// Adds the kinds of keys. Refuses those that were found in values if none of the keys so far can be equal to one of before.
    fn admit(&mut self, kinds: &KeyKinds, found: &KeyKinds) -> Result<(), Error> {
        // Nothing is recorded of kinds that are refused, so that another thread's keys of these kinds are refused too.
        let mut brought = self.brought.clone();
        brought.unite(found);
        let mut next = brought.clone();
        next.unite(kinds);
        if self.set.settle_kinds(&next)? {
            self.expected = self.set.kinds().clone();
            self.expected.unite(&self.of_tables);
        }
        if let Some(conflict) = brought.conflict(&self.expected) {
            return Err(kind_conflict("", conflict));
        }
        self.set.add_kinds(kinds)?;
        self.brought = brought;
        self.admitted.unite(kinds);
        Ok(())
    }

    /// Compares the kinds of the next keys with those of all keys so far, and with these of the tables among the next inputs.
    pub fn expect_kinds(&mut self, of_tables: &KeyKinds) {
        self.brought = KeyKinds::default();
        self.expected = self.set.kinds().clone();
        self.expected.unite(of_tables);
        self.of_tables = of_tables.clone();
    }

    /// Limits the number of new keys: the one after `remaining_keys` is refused.
    pub fn limit(&mut self, remaining_keys: u64) {
        self.remaining_keys = Some(remaining_keys);
    }

    /// Inserts hashes in order; `new[i]` is `true` if hash i was new, or if the exact check of its fingerprint says so.
    /// Returns the number of hashes that are done, and the result. After a halt only their elements of `new` are valid.
    pub fn insert(
        &mut self,
        hashes: &[u64],
        fingerprints: &[u128],
        new: &mut [bool],
    ) -> Result<(usize, Claimed), Error> {
        let Self { set, exact, remaining_keys, .. } = self;
        let (mut done, mut claimed) = (0, Claimed::default());
        while done < hashes.len() && claimed.halt.is_none() {
            if *remaining_keys == Some(0) {
                // Duplicates need no room.
                set.contains_hashes(&hashes[done..], &mut new[done..])?;
                let absent = new[done..].iter().position(|found| !found);
                let end = absent.map_or(hashes.len(), |absent| done + absent);
                new[done..end].fill(false);
                done = end;
                claimed.halt = absent.map(|_| Halt::Full);
                break;
            }
            let fits = remaining_keys
                .map_or(usize::MAX, |remaining_keys| usize::try_from(remaining_keys).unwrap_or(usize::MAX));
            let end = hashes.len().min(done.saturating_add(fits));
            let inserted = match set.insert_hashes(&hashes[done..end], &mut new[done..end]) {
                Ok(inserted) => inserted as u64,
                Err(error @ Error::Shared(_)) => {
                    claimed.halt = Some(Halt::Failed(error));
                    new.iter().filter(|new| **new).count() as u64
                }
                Err(error) => return Err(error),
            };
            claimed.inserted += inserted;
            *remaining_keys = remaining_keys.map(|remaining_keys| remaining_keys - inserted);
            done = end;
        }
        if let Some(exact) = exact {
            let corrected = exact.correct(&fingerprints[..done], &mut new[..done]);
            claimed.unique = corrected.map_err(exact_check_error)? as u64;
        }
        claimed.unique += claimed.inserted;
        Ok((done, claimed))
    }
}

/// Returns the error for keys that can never be equal to those of before. `input` names what brings them.
pub fn kind_conflict(input: &str, conflict: KindConflict) -> Error {
    let remedy = match conflict {
        KindConflict::Kinds { brought, recorded, .. } => {
            let earlier = || {
                remedy(recorded, brought).map(|option| format!("give {option} where the earlier keys are made, or "))
            };
            remedy(brought, recorded).map(|option| format!("give {option}, or ")).or_else(earlier)
        }
        KindConflict::Parts { .. } => None,
    };
    let remedy = remedy.unwrap_or_default();
    let of = if input.is_empty() { String::new() } else { format!(" of {input}") };
    Error::new(format!(
        "the keys{of} can never be equal to those of before: {conflict}; {remedy}use another filter, or files of one type"
    ))
}

/// Returns the option that reads texts as another kind, or byte strings as texts.
fn remedy(texts: Kinds, others: Kinds) -> Option<&'static str> {
    let times = Kinds::DATE | Kinds::TIME | Kinds::TIMESTAMP | Kinds::INSTANT;
    match () {
        () if !texts.meets(Kinds::TEXT) => None,
        () if others.meets(Kinds::NUMBER) => Some("--normalize number"),
        () if others.meets(times) => Some("--normalize time"),
        () if others.meets(Kinds::BYTES) => Some("--normalize text"),
        () => None,
    }
}

/// Wraps a failure of the exact check.
fn exact_check_error(source: io::Error) -> Error {
    Error::temporary("the hashes of --exact", &source)
}

/// The keys seen so far, for many threads: any number may read, or one inserts.
#[derive(Clone)]
pub struct SharedSeenKeys(Arc<RwLock<SeenKeys>>);

impl SharedSeenKeys {
    pub fn new(seen: SeenKeys) -> Self {
        Self(Arc::new(RwLock::new(seen)))
    }

    /// Adds the kinds of keys. Those that were found in values must have one in common with the keys of before.
    pub fn admit(&self, kinds: &KeyKinds, found: &KeyKinds) -> Result<(), Error> {
        let seen = self.read();
        if seen.brought.includes(found) && seen.admitted.includes(kinds) {
            return Ok(());
        }
        drop(seen);
        self.write().admit(kinds, found)
    }

    /// Sets `found[i]` to `true` if hash i is in the set and its fingerprint passes the exact check.
    pub fn find(&self, hashes: &[u64], fingerprints: &[u128], found: &mut [bool]) -> Result<(), Error> {
        let seen = self.read();
        seen.set.contains_hashes(hashes, found)?;
        let Some(exact) = &seen.exact else { return Ok(()) };
        exact.confirm(fingerprints, found).map_err(exact_check_error)?;
        if exact.needs_preparation() {
            drop(seen);
            self.write().exact.iter_mut().try_for_each(Exact::prepare_lookups).map_err(exact_check_error)?;
        }
        Ok(())
    }

    pub fn read(&self) -> RwLockReadGuard<'_, SeenKeys> {
        reading(&self.0)
    }

    /// Returns `None` if a thread is inserting.
    pub fn try_read(&self) -> Option<RwLockReadGuard<'_, SeenKeys>> {
        self.0.try_read().ok()
    }

    pub fn write(&self) -> RwLockWriteGuard<'_, SeenKeys> {
        writing(&self.0)
    }
}
