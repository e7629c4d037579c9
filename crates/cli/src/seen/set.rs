//! A set of keys, in memory or on a server.

use crate::seen::kind_conflict;
use crate::seen::local_set::LocalSet;
use crate::seen::remote_set::RemoteSet;
use crate::system::error::Error;
use crate::system::u64_file::U64File;
use crate::terminal::figures::readable;
use bloomline::{BloomFilter, KeyHasher, Plan};
use bloomline_keys::{KeyKinds, current_name};
use std::io;
use std::path::Path;

/// The hashes of a spool that are read at once.
const SPOOL_BATCH: usize = 1 << 13;

/// A set of keys.
// There is only one of it.
#[expect(clippy::large_enum_variant)]
pub enum KeySet {
    /// In this process alone.
    Local(LocalSet),
    /// On a server, for many processes.
    Shared(Box<RemoteSet>),
}

impl KeySet {
    /// Loads the filter of a command whose keys have this name and these kinds, as far as they are known. A filter without a name fits
    /// every command.
    pub fn load_for(path: &Path, keys: &str, kinds: &KeyKinds) -> Result<Self, Error> {
        Self::load_for_part(path, keys, kinds, |name| name)
    }

    /// Loads a filter. `part` returns the part of its name that must be `keys`.
    pub fn load_for_part(
        path: &Path,
        keys: &str,
        kinds: &KeyKinds,
        part: impl Fn(&str) -> &str,
    ) -> Result<Self, Error> {
        let set = Self::Local(LocalSet::load(path)?);
        match set.key_name() {
            name if name.is_empty() || current_name(part(name)) == keys => match kinds.conflict(set.kinds()) {
                Some(conflict) => Err(kind_conflict(&format!("these inputs for the filter {path:?}"), conflict)),
                None => Ok(set),
            },
            name => Err(Error::new(format!(
                "cannot use the filter {path:?}: its keys are \"{name}\", but these options ask for \"{keys}\"; give the key \
                 options that it was made with, or choose another filter"
            ))),
        }
    }

    /// Returns the set, unless it is on a server.
    pub fn local(&self) -> Option<&LocalSet> {
        match self {
            Self::Local(set) => Some(set),
            Self::Shared(_) => None,
        }
    }

    /// Returns the set, to be changed, unless it is on a server.
    pub fn local_mut(&mut self) -> Option<&mut LocalSet> {
        match self {
            Self::Local(set) => Some(set),
            Self::Shared(_) => None,
        }
    }

    /// Returns the set, if it is on a server.
    pub fn shared(&self) -> Option<&RemoteSet> {
        match self {
            Self::Local(_) => None,
            Self::Shared(set) => Some(set),
        }
    }

    /// Saves the set atomically. A server keeps its own.
    pub fn save(&self, path: &Path) -> Result<(), Error> {
        match self {
            Self::Local(set) => set.save(path),
            Self::Shared(_) => Ok(()),
        }
    }

    /// Inserts hashes in order. `new[i]` is `true` if hash i was new. Returns the number of new ones. After a server's
    /// error, `new` marks the keys that are claimed, which no other client will get.
    pub fn insert_hashes(&mut self, hashes: &[u64], new: &mut [bool]) -> Result<usize, Error> {
        match self {
            Self::Local(set) => Ok(set.insert_hashes(hashes, new)?),
            Self::Shared(set) => set.insert_hashes(hashes, new),
        }
    }

    /// Sets `found[i]` to `true` if hash i is in the set. Returns the number that were found.
    pub fn contains_hashes(&self, hashes: &[u64], found: &mut [bool]) -> Result<usize, Error> {
        match self {
            Self::Local(set) => Ok(set.contains_hashes(hashes, found)),
            Self::Shared(set) => set.contains_hashes(hashes, found),
        }
    }

    /// Returns the filters of the set, each of its own size, all with one seed. Empty if the set is on a server.
    pub fn stages(&self) -> impl Iterator<Item = &BloomFilter> {
        self.local().into_iter().flat_map(LocalSet::stages)
    }

    /// Returns the number of filters of the set. For a server, the number at the last query.
    pub fn filters(&self) -> usize {
        match self {
            Self::Local(_) => self.stages().count(),
            Self::Shared(set) => set.filters(),
        }
    }

    /// Returns the kinds of the keys; empty if the set is known to be empty, or a server does not record them.
    pub fn kinds(&self) -> &KeyKinds {
        match self {
            Self::Local(set) => &set.kinds,
            Self::Shared(set) => set.kinds(),
        }
    }

    /// Prepares for a comparison of these kinds with those of the keys. Returns true if the latter turn out to be
    /// others, because they were assumed for a filter on a server.
    pub fn settle_kinds(&mut self, kinds: &KeyKinds) -> Result<bool, Error> {
        match self {
            Self::Local(_) => Ok(false),
            Self::Shared(set) => set.settle_kinds(kinds),
        }
    }

    /// Adds kinds of keys.
    pub fn add_kinds(&mut self, kinds: &KeyKinds) -> Result<(), Error> {
        match self {
            Self::Local(set) => set.kinds.unite(kinds),
            Self::Shared(set) => set.add_kinds(kinds)?,
        }
        Ok(())
    }

    /// Returns the name of the keys; empty if they have none.
    pub fn key_name(&self) -> &str {
        self.local().map_or("", LocalSet::key_name)
    }

    /// Returns the size and the rates to expect, unless the set grows.
    pub fn plan(&self) -> Option<Plan> {
        match self {
            Self::Local(set) => set.fixed().map(|filter| {
                let builder = BloomFilter::builder().memory(filter.memory_bytes()).probes(filter.probes());
                builder.plan().expect("a filter of this size is there")
            }),
            Self::Shared(set) => set.plan(),
        }
    }

    /// Returns the keys and the rate that a filter of a fixed size is made for, if its file has either. If it has only one, the
    /// other follows from the size.
    pub fn made_for(&self) -> Option<(u64, f64)> {
        let filter = self.local()?.fixed()?;
        let rate = filter.false_positive_rate();
        let keys = filter.expected_keys().or_else(|| rate.map(|rate| filter.capacity(rate)))?;
        Some((keys, rate.unwrap_or_else(|| filter.expected_fpr(keys))))
    }

    /// Returns a warning if the set surely has more keys than planned.
    pub fn overfull_warning(&self, planned: u64) -> Option<String> {
        let (keys, planned_keys) = (self.keys(), planned as f64);
        // Up to a rate of 0.2 the standard deviation of the estimate is below half the root of the keys.
        (keys > planned_keys + 2.0 * planned_keys.sqrt()).then(|| {
            let keys =
                if keys.is_finite() { format!("about {keys:.0} keys") } else { "too many keys to count".to_owned() };
            let rate = readable(self.current_fpr());
            format!("the filter has {keys} but is made for {planned}: its false-positive rate is {rate}")
        })
    }

    /// Starts to record the hashes of all keys, from which another set can be built.
    pub fn spool(&mut self) -> Result<(), Error> {
        if let Some(set) = self.local_mut() {
            set.spool = Some(Ok(U64File::new().map_err(spool_error)?));
        }
        Ok(())
    }

    /// Inserts all of the recorded hashes.
    pub fn insert_spool(&mut self, spool: io::Result<U64File>) -> Result<(), Error> {
        let (mut hashes, mut new) = (Vec::new(), Vec::new());
        let mut reader = spool.and_then(|mut spool| spool.read()).map_err(spool_error)?;
        loop {
            reader.next_into(SPOOL_BATCH, &mut hashes).map_err(spool_error)?;
            if hashes.is_empty() {
                return Ok(());
            }
            new.resize(hashes.len(), false);
            self.insert_hashes(&hashes, &mut new)?;
        }
    }

    /// Returns the hasher of the keys.
    pub fn hasher(&self) -> &KeyHasher {
        match self {
            Self::Local(set) => set.hasher(),
            Self::Shared(set) => set.hasher(),
        }
    }

    /// Returns the size of the bits in bytes.
    pub fn memory_bytes(&self) -> usize {
        match self {
            Self::Local(set) => set.stages().map(BloomFilter::memory_bytes).sum(),
            Self::Shared(set) => set.memory_bytes(),
        }
    }

    /// Returns the number of bits that are set. Reads the whole filter. 0 for a set on a server.
    pub fn ones(&self) -> u64 {
        // The share is a quotient of integers below 2^53, so the product is off by less than a half.
        let ones = |filter: &BloomFilter| (filter.fill_ratio() * filter.memory_bytes() as f64 * 8.0).round() as u64;
        self.stages().map(ones).sum()
    }

    /// Returns the share of bits that are set. Reads the whole filter. Before the first query of a server, this, the number of
    /// keys and the rate are NaN.
    pub fn fill_ratio(&self) -> f64 {
        match self {
            Self::Local(_) => self.ones() as f64 / (self.memory_bytes() as f64 * 8.0),
            Self::Shared(set) => set.fill_ratio(),
        }
    }

    /// Returns the number of keys: exact if the set grows, else estimated.
    pub fn keys(&self) -> f64 {
        match self {
            Self::Local(set) => set.keys(),
            Self::Shared(set) => set.keys(),
        }
    }

    /// Returns the false-positive rate of the bits that are set now. Reads the whole filter.
    pub fn current_fpr(&self) -> f64 {
        match self {
            Self::Local(set) => set.current_fpr(),
            Self::Shared(set) => set.current_fpr(),
        }
    }

    /// Returns the expected false-positive rate with this number of keys. A set that grows reports the rate of the keys that it has.
    pub fn expected_fpr(&self, keys: f64) -> f64 {
        match self {
            Self::Local(set) => set.expected_fpr(keys),
            Self::Shared(set) => set.expected_fpr(keys),
        }
    }

    /// Queries the server's statistics. Does nothing for a set in memory.
    pub fn refresh(&mut self) -> Result<(), Error> {
        match self {
            Self::Local(_) => Ok(()),
            Self::Shared(set) => set.refresh(),
        }
    }
}

/// Wraps a failure of the file of recorded hashes.
fn spool_error(source: io::Error) -> Error {
    let error = Error::temporary("the hashes of lines that cannot be read again", &source);
    Error::new(format!("{error}, or fix the size with -n and --when-full warn"))
}
