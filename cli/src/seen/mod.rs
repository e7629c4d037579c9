//! What was seen: a set of keys, and the second look at what it takes for seen.
//!
//! One thread at a time inserts. A batch of one writer takes a third of the time that many writers take for each key, so with few
//! threads they wait less than they would work.

pub mod counts;
pub mod exact;
pub mod local;
pub mod meter;
pub mod set;
pub mod shared;
pub mod sizing;
pub mod tally;

use crate::documents::UnitCounts;
use crate::error::Error;
use crate::locked::{reading, writing};
use crate::seen::exact::Exact;
use crate::seen::set::KeySet;
use bloomline::BloomFilter;
use std::env;
use std::mem;
use std::sync::{Arc, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// What was seen.
pub struct Seen {
    pub set: KeySet,
    /// The second look at keys that the set takes for seen.
    pub exact: Option<Exact>,
    /// New keys that still fit, where the run stops at the next one.
    room: Option<u64>,
}

/// What a set said of some lines.
#[derive(Debug, Default)]
pub struct Claimed {
    /// Keys that were new to the filter.
    pub inserted: u64,
    /// Lines that stay: their keys were new, or something of their documents was. Of a search, those that are selected.
    pub unique: u64,
    /// Of the units of documents.
    pub units: UnitCounts,
    /// Why no later line may be claimed.
    pub halt: Option<Halt>,
}

/// Why a run ends after some lines.
#[derive(Debug)]
pub enum Halt {
    /// The next line is new, and the filter has no room for it.
    Full,
    /// The server failed. It is known of the lines before.
    Failed(Error),
    /// Nothing more is wanted.
    Enough,
}

impl Seen {
    /// Nothing but what the set has.
    pub fn new(set: KeySet) -> Self {
        Self { set, exact: None, room: None }
    }

    /// Its set, which others go on with.
    pub fn take_set(&mut self) -> Result<KeySet, Error> {
        let none = KeySet::Local(BloomFilter::new(1, 0.5)?.into());
        Ok(mem::replace(&mut self.set, none))
    }

    /// With a second look, for which fingerprints are kept in temporary files.
    pub fn with_exact(self) -> Result<Self, Error> {
        let exact = Exact::new(&env::temp_dir()).map_err(|source| Error::Exact { source })?;
        Ok(Self { exact: Some(exact), ..self })
    }

    /// Takes so many new keys, and refuses the next.
    pub fn limit(&mut self, room: u64) {
        self.room = Some(room);
    }

    /// Inserts hashes in order; `new[i]` is `true` if hash i was new, or if the second look says so of its fingerprint. Returns how
    /// many are done, and what came of them. After a halt `new` tells of those before.
    pub fn insert(
        &mut self,
        hashes: &[u64],
        fingerprints: &[u128],
        new: &mut [bool],
    ) -> Result<(usize, Claimed), Error> {
        let Self { set, exact, room } = self;
        let (mut done, mut claimed) = (0, Claimed::default());
        while done < hashes.len() && claimed.halt.is_none() {
            if *room == Some(0) {
                // Repeats need no room.
                set.contains_hashes(&hashes[done..], &mut new[done..])?;
                let absent = new[done..].iter().position(|found| !found);
                let end = absent.map_or(hashes.len(), |absent| done + absent);
                new[done..end].fill(false);
                done = end;
                claimed.halt = absent.map(|_| Halt::Full);
                break;
            }
            let fits = room.map_or(usize::MAX, |room| usize::try_from(room).unwrap_or(usize::MAX));
            let end = hashes.len().min(done.saturating_add(fits));
            let inserted = match set.insert_hashes(&hashes[done..end], &mut new[done..end]) {
                Ok(inserted) => inserted as u64,
                Err(error @ Error::Shared { .. }) => {
                    claimed.halt = Some(Halt::Failed(error));
                    new.iter().filter(|new| **new).count() as u64
                }
                Err(error) => return Err(error),
            };
            claimed.inserted += inserted;
            *room = room.map(|room| room - inserted);
            done = end;
        }
        if let Some(exact) = exact {
            let corrected = exact.correct(&fingerprints[..done], &mut new[..done]);
            claimed.unique = corrected.map_err(|source| Error::Exact { source })? as u64;
        }
        claimed.unique += claimed.inserted;
        Ok((done, claimed))
    }
}

/// What was seen, for many threads: any number may look, or one inserts.
#[derive(Clone)]
pub struct SharedSeen(Arc<RwLock<Seen>>);

impl SharedSeen {
    pub fn new(seen: Seen) -> Self {
        Self(Arc::new(RwLock::new(seen)))
    }

    /// `found[i]` is `true` if hash i is in the set, and if the second look says so of its fingerprint.
    pub fn find(&self, hashes: &[u64], fingerprints: &[u128], found: &mut [bool]) -> Result<(), Error> {
        let failed = |source| Error::Exact { source };
        let seen = self.look();
        seen.set.contains_hashes(hashes, found)?;
        let Some(exact) = &seen.exact else { return Ok(()) };
        exact.confirm(fingerprints, found).map_err(failed)?;
        if exact.is_untidy() {
            drop(seen);
            self.write().exact.iter_mut().try_for_each(Exact::tidy).map_err(failed)?;
        }
        Ok(())
    }

    pub fn look(&self) -> RwLockReadGuard<'_, Seen> {
        reading(&self.0)
    }

    /// Unless somebody inserts.
    pub fn glance(&self) -> Option<RwLockReadGuard<'_, Seen>> {
        self.0.try_read().ok()
    }

    pub fn write(&self) -> RwLockWriteGuard<'_, Seen> {
        writing(&self.0)
    }
}
