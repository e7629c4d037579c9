//! What was seen: a set of keys, and the second look at what it takes for seen.
//!
//! One thread at a time inserts. A batch of one writer takes a third of the time that many writers take for each key, so with few
//! threads they wait less than they would work.

pub mod exact;
pub mod local;
pub mod meter;
pub mod repeats;
pub mod shared;
pub mod sizing;
pub mod spool;
pub mod tally;

use crate::against::Against;
use crate::documents::UnitCounts;
use crate::error::Error;
use crate::figures::readable;
use crate::groups::decisions::Decided;
use crate::groups::near::involved::Collecting;
use crate::groups::records::Records;
use crate::input::inputs::Stamp;
use crate::seen::exact::Exact;
use crate::seen::local::Local;
use crate::seen::repeats::Repeats;
use crate::seen::shared::Shared;
use crate::seen::spool::Spool;
use bloomline::{BloomFilter, KeyHasher, Plan};
use bloomline_text::Set;
use std::env;
use std::mem;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// A set of keys.
// There is one of it.
#[expect(clippy::large_enum_variant)]
pub enum KeySet {
    /// In this process alone.
    Local(Local),
    /// On a server, for many processes.
    Shared(Box<Shared>),
}

impl KeySet {
    /// Loads the filter of a command whose keys have this name. A filter without a name takes all.
    pub fn load_for(path: &Path, keys: &str) -> Result<Self, Error> {
        let set = Self::Local(Local::load(path)?);
        match set.key_name() {
            "" => Ok(set),
            name if name == keys => Ok(set),
            name => Err(Error::OtherKeys { filter: path.into(), has: name.to_owned(), asked: keys.to_owned() }),
        }
    }

    /// The set, unless it is on a server.
    pub fn local(&self) -> Option<&Local> {
        match self {
            Self::Local(set) => Some(set),
            Self::Shared(_) => None,
        }
    }

    /// The set, if it is on a server.
    pub fn shared(&self) -> Option<&Shared> {
        match self {
            Self::Local(_) => None,
            Self::Shared(set) => Some(set),
        }
    }

    /// Saves it: the file is the old or the new one at every moment. A server keeps its own.
    pub fn save(&self, path: &Path) -> Result<(), Error> {
        self.local().map_or(Ok(()), |set| set.save(path))
    }

    /// Inserts hashes in order. `new[i]` is `true` if hash i was new. Returns how many were. After an error of a server, `new`
    /// tells which are claimed, and nobody else will be told.
    pub fn insert_hashes(&mut self, hashes: &[u64], new: &mut [bool]) -> Result<usize, Error> {
        match self {
            Self::Local(set) => Ok(set.insert_hashes(hashes, new)?),
            Self::Shared(set) => set.insert_hashes(hashes, new),
        }
    }

    /// `found[i]` is `true` if hash i is in the set. Returns how many are.
    pub fn contains_hashes(&self, hashes: &[u64], found: &mut [bool]) -> Result<usize, Error> {
        match self {
            Self::Local(set) => Ok(set.contains_hashes(hashes, found)),
            Self::Shared(set) => set.contains_hashes(hashes, found),
        }
    }

    /// The filters that make it up: each of its own size, all with one seed. None of them is here if the set is on a server.
    pub fn stages(&self) -> impl Iterator<Item = &BloomFilter> {
        self.local().into_iter().flat_map(Local::stages)
    }

    /// How many filters make it up, on a server those when it was last asked.
    pub fn filters(&self) -> usize {
        match self {
            Self::Local(_) => self.stages().count(),
            Self::Shared(set) => set.stats.map_or(1, |stats| stats.stages),
        }
    }

    /// The name of the keys; empty if there is none.
    pub fn key_name(&self) -> &str {
        self.local().map_or("", Local::key_name)
    }

    /// The size and the rates to expect, unless the set grows.
    pub fn plan(&self) -> Option<Plan> {
        match self {
            Self::Local(set) => set.fixed().map(|filter| {
                let builder = BloomFilter::builder().memory(filter.memory_bytes()).probes(filter.probes());
                builder.plan().expect("a filter of this size is there")
            }),
            Self::Shared(set) => set.plan(),
        }
    }

    /// The keys and the rate that a filter of a fixed size is made for, if its file tells. Where it tells one of them, the
    /// other follows from the size.
    pub fn made_for(&self) -> Option<(u64, f64)> {
        let filter = self.local()?.fixed()?;
        let rate = filter.false_positive_rate();
        let keys = filter.expected_keys().or_else(|| rate.map(|rate| filter.capacity(rate)))?;
        Some((keys, rate.unwrap_or_else(|| filter.expected_fpr(keys))))
    }

    /// What a user should know about a set that surely has more keys than planned.
    pub fn excess(&self, planned: u64) -> Option<String> {
        let (keys, planned_keys) = (self.keys(), planned as f64);
        // Up to a rate of 0.2 the standard deviation of the estimate is below half the root of the keys.
        (keys > planned_keys + 2.0 * planned_keys.sqrt()).then(|| {
            let keys =
                if keys.is_finite() { format!("about {keys:.0} keys") } else { "too many keys to count".to_owned() };
            let rate = readable(self.current_fpr());
            format!("the filter has {keys} and is made for {planned}: its false-positive rate is {rate}")
        })
    }

    /// Keeps the hashes of all keys that come, to build another set of them.
    pub fn spool(&mut self) -> Result<(), Error> {
        if let Self::Local(set) = self {
            set.spool = Some(Spool::new()?);
        }
        Ok(())
    }

    /// The hashes that were kept.
    pub fn take_spool(&mut self) -> Option<Spool> {
        match self {
            Self::Local(set) => set.spool.take(),
            Self::Shared(_) => None,
        }
    }

    /// Inserts all of these hashes.
    pub fn insert_spool(&mut self, spool: Spool) -> Result<(), Error> {
        let mut new = Vec::new();
        spool.read(|hashes| {
            new.resize(hashes.len(), false);
            self.insert_hashes(hashes, &mut new).map(drop)
        })
    }

    /// Whether more keys came than were expected.
    pub fn is_outgrown(&self) -> bool {
        self.local().is_some_and(Local::is_outgrown)
    }

    /// Lets it grow no more: an estimate that was not too low is a fixed size.
    pub fn fix(&mut self) {
        if let Self::Local(set) = self {
            set.fix();
        }
    }

    /// Puts the few keys of a set that was begun for many into a small one, at the end.
    pub fn settle(&mut self) -> Result<(), Error> {
        match self {
            Self::Local(set) => Ok(set.settle()?),
            Self::Shared(_) => Ok(()),
        }
    }

    /// Puts it into the smallest size that keeps the rate it is made for.
    pub fn shrink(&mut self) -> Result<(), Error> {
        match self {
            Self::Local(set) => Ok(set.shrink()?),
            Self::Shared(_) => Ok(()),
        }
    }

    /// The hasher of the keys.
    pub fn hasher(&self) -> &KeyHasher {
        match self {
            Self::Local(set) => set.hasher(),
            Self::Shared(set) => &set.hasher,
        }
    }

    /// The size of the bits in bytes.
    pub fn memory_bytes(&self) -> usize {
        match self {
            Self::Local(set) => set.stages().map(BloomFilter::memory_bytes).sum(),
            Self::Shared(set) => set.memory_bytes(),
        }
    }

    /// The number of bits that are set. Reads the whole filter, but none on a server.
    pub fn ones(&self) -> u64 {
        // The share is a quotient of integers below 2^53, so the product is off by less than a half.
        let ones = |filter: &BloomFilter| (filter.fill_ratio() * filter.memory_bytes() as f64 * 8.0).round() as u64;
        self.stages().map(ones).sum()
    }

    /// The share of bits that are set. Reads the whole filter. For a server that was not asked, this, the number of keys and
    /// the rate are NaN.
    pub fn fill_ratio(&self) -> f64 {
        match self {
            Self::Local(_) => self.ones() as f64 / (self.memory_bytes() as f64 * 8.0),
            Self::Shared(set) => set.stats.map_or(f64::NAN, |stats| stats.fill_ratio),
        }
    }

    /// The number of keys: known if the set grows, else estimated.
    pub fn keys(&self) -> f64 {
        match self {
            Self::Local(set) => set.keys(),
            Self::Shared(set) => set.stats.map_or(f64::NAN, |stats| stats.estimated_keys),
        }
    }

    /// The false-positive rate of the bits as they are. Reads the whole filter.
    pub fn current_fpr(&self) -> f64 {
        match self {
            Self::Local(set) => set.current_fpr(),
            Self::Shared(set) => set.stats.map_or(f64::NAN, |stats| stats.expected_fpr),
        }
    }

    /// The false-positive rate to expect with so many keys. A set that grows tells that of the keys that it has.
    pub fn expected_fpr(&self, keys: f64) -> f64 {
        match self {
            Self::Local(set) => set.expected_fpr(keys),
            Self::Shared(set) => set.expected_fpr(keys),
        }
    }

    /// Asks a server how full the filter is; the others know.
    pub fn refresh(&mut self) -> Result<(), Error> {
        match self {
            Self::Local(_) => Ok(()),
            Self::Shared(set) => set.refresh(),
        }
    }
}

/// What was seen.
pub struct Seen {
    pub set: KeySet,
    /// The second look at keys that the set takes for seen.
    pub exact: Option<Exact>,
    /// How often keys repeat, if that is counted.
    pub repeats: Option<Repeats>,
    /// What is kept of lines to find groups of them, and what was decided of these.
    pub records: Option<Records>,
    pub decided: Option<Decided>,
    /// The sets of grams of documents that may be alike.
    pub collecting: Option<Collecting>,
    /// Groups of two or more.
    pub groups: u64,
    /// The inputs that were read for them.
    pub stamps: Vec<Stamp>,
    /// The tests that lines are searched for.
    pub against: Option<Against>,
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
}

impl Seen {
    /// Nothing but what the set has.
    pub fn new(set: KeySet) -> Self {
        Self {
            set,
            exact: None,
            repeats: None,
            records: None,
            decided: None,
            collecting: None,
            groups: 0,
            stamps: Vec::new(),
            against: None,
            room: None,
        }
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

    /// Whether an input that was read twice was another one the second time. Of lines that are known by their places, their number and
    /// the time of the last change tell.
    pub fn has_changed(&self) -> bool {
        let is_other = |decided: &Decided| !decided.is_done() || self.stamps.iter().any(Stamp::is_old);
        self.repeats.as_ref().is_some_and(|repeats| !repeats.is_balanced())
            || self.decided.as_ref().is_some_and(is_other)
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
        let Self { set, exact, repeats, room, .. } = self;
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
        if let Some(repeats) = repeats {
            repeats.count(&fingerprints[..done], &new[..done])?;
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

    // A thread that panics ends the run, and nothing of it is saved.
    pub fn look(&self) -> RwLockReadGuard<'_, Seen> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Unless somebody inserts.
    pub fn glance(&self) -> Option<RwLockReadGuard<'_, Seen>> {
        self.0.try_read().ok()
    }

    pub fn write(&self) -> RwLockWriteGuard<'_, Seen> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The set as documents are decided by it. What goes in is counted.
pub struct Deciding<'a> {
    pub seen: &'a SharedSeen,
    pub inserted: u64,
}

impl Set for Deciding<'_> {
    type Error = Error;

    fn contains_hashes(&mut self, hashes: &[u64], found: &mut [bool]) -> Result<usize, Error> {
        let seen = self.seen.look();
        let count = seen.set.contains_hashes(hashes, found)?;
        match &seen.against {
            Some(against) if count > 0 && against.searches() => Ok(against.confirm(hashes, found)),
            _ => Ok(count),
        }
    }

    fn insert_hashes(&mut self, hashes: &[u64], new: &mut [bool]) -> Result<usize, Error> {
        let count = self.seen.write().set.insert_hashes(hashes, new)?;
        self.inserted += count as u64;
        Ok(count)
    }
}
