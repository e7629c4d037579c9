//! A set of keys in a filter of any kind: of a fixed size, one that grows, or one on a server.

pub mod claims;
pub mod counted;
pub mod estimated;
pub mod exact;
pub mod inserter;
pub mod report;
pub mod shared;
pub mod sizing;

use crate::error::Error;
use crate::figures::readable;
use crate::set::estimated::Estimated;
use crate::set::shared::Shared;
use bloomline::{BloomFilter, FileErrorKind, KeyHasher, Plan, ScalableBloomFilter};
use std::path::Path;

/// The set of keys that were seen.
pub enum KeySet {
    /// For a number of keys known beforehand.
    Sized(BloomFilter),
    /// For a number of keys estimated beforehand, and for more.
    Estimated(Estimated),
    /// For any number.
    Scalable(ScalableBloomFilter),
    /// For many processes.
    Shared(Box<Shared>),
}

impl KeySet {
    /// Loads what `save` saved, or the library.
    pub fn load(path: &Path) -> Result<Self, Error> {
        match BloomFilter::load(path) {
            Ok(filter) => Ok(Self::Sized(filter)),
            Err(error) if matches!(error.kind(), FileErrorKind::Scalable) => {
                ScalableBloomFilter::load(path).map(Self::Scalable).map_err(|error| Error::Load { error })
            }
            Err(error) => Err(Error::Load { error }),
        }
    }

    /// Loads the filter of a command whose keys have this name. A filter without a name takes all.
    pub fn load_for(path: &Path, keys: String) -> Result<Self, Error> {
        let set = Self::load(path)?;
        match set.key_name() {
            "" => Ok(set),
            name if name == keys => Ok(set),
            name => Err(Error::OtherKeys { filter: path.into(), has: name.to_owned(), asked: keys }),
        }
    }

    /// Saves it: the file is the old or the new one at every moment.
    pub fn save(&self, path: &Path) -> Result<(), Error> {
        match self {
            Self::Sized(filter) => filter.save(path),
            Self::Scalable(filter) => filter.save(path),
            Self::Estimated(_) | Self::Shared(_) => unreachable!("no such set is saved to a file"),
        }
        .map_err(|error| Error::Save { error })
    }

    /// Inserts hashes in order. `new[i]` is `true` if hash i was new. Returns how many were. After an error of a server, `new`
    /// tells which are claimed, and nobody else will be told.
    pub fn insert_hashes(&mut self, hashes: &[u64], new: &mut [bool]) -> Result<usize, Error> {
        match self {
            Self::Sized(filter) => Ok(filter.insert_hashes(hashes, new)),
            Self::Estimated(filter) => Ok(filter.insert_hashes(hashes, new)?),
            Self::Scalable(filter) => Ok(filter.insert_hashes(hashes, new)?),
            Self::Shared(filter) => filter.insert_hashes(hashes, new),
        }
    }

    /// `found[i]` is `true` if hash i is in the set. Returns how many are.
    pub fn contains_hashes(&self, hashes: &[u64], found: &mut [bool]) -> Result<usize, Error> {
        match self {
            Self::Sized(filter) => Ok(filter.contains_hashes(hashes, found)),
            Self::Estimated(filter) => Ok(filter.contains_hashes(hashes, found)),
            Self::Scalable(filter) => Ok(filter.contains_hashes(hashes, found)),
            Self::Shared(filter) => filter.contains_hashes(hashes, found),
        }
    }

    /// The filters that make it up: each of its own size, all with one seed. None of them is here if the set is on a server.
    pub fn stages(&self) -> impl Iterator<Item = &BloomFilter> {
        let (first, more) = match self {
            Self::Sized(filter) => (Some(filter), None),
            Self::Estimated(filter) => (Some(&filter.first), filter.more.as_ref()),
            Self::Scalable(filter) => (None, Some(filter)),
            Self::Shared(_) => (None, None),
        };
        first.into_iter().chain(more.map_or(&[][..], ScalableBloomFilter::stages))
    }

    /// The name of the keys; empty if there is none.
    pub fn key_name(&self) -> &str {
        self.stages().next().map_or("", BloomFilter::key_name)
    }

    /// The size and the rates to expect, unless the set grows.
    pub fn plan(&self) -> Option<Plan> {
        match self {
            Self::Sized(filter) => {
                let builder = BloomFilter::builder().memory(filter.memory_bytes()).probes(filter.probes());
                Some(builder.plan().expect("a filter of this size is there"))
            }
            Self::Estimated(_) | Self::Scalable(_) => None,
            Self::Shared(filter) => Some(filter.plan),
        }
    }

    /// The keys and the rate that a filter of a fixed size is made for, if its file tells. Where it tells one of them, the
    /// other follows from the size.
    pub fn made_for(&self) -> Option<(u64, f64)> {
        let Self::Sized(filter) = self else { return None };
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

    /// Puts a filter of a fixed size into the smallest size that keeps the rate it is made for.
    pub fn shrink(&mut self) {
        if let Self::Sized(filter) = self {
            filter.shrink_to_fit();
        }
    }

    /// The hasher of the keys.
    pub fn hasher(&self) -> &KeyHasher {
        match self {
            Self::Shared(filter) => &filter.hasher,
            _ => self.stages().next().expect("there is a filter here").hasher(),
        }
    }

    /// The size of the bits in bytes.
    pub fn memory_bytes(&self) -> usize {
        match self {
            Self::Shared(filter) => filter.plan.memory_bytes(),
            _ => self.stages().map(BloomFilter::memory_bytes).sum(),
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
            Self::Shared(filter) => filter.stats.map_or(f64::NAN, |stats| stats.fill_ratio),
            _ => self.ones() as f64 / (self.memory_bytes() as f64 * 8.0),
        }
    }

    /// The number of keys: known if the set grows, else estimated.
    pub fn keys(&self) -> f64 {
        match self {
            Self::Sized(filter) => filter.estimated_keys(),
            Self::Estimated(filter) => filter.keys() as f64,
            Self::Scalable(filter) => filter.keys() as f64,
            Self::Shared(filter) => filter.stats.map_or(f64::NAN, |stats| stats.estimated_keys),
        }
    }

    /// The false-positive rate of the bits as they are. Reads the whole filter.
    pub fn current_fpr(&self) -> f64 {
        match self {
            Self::Sized(filter) => filter.current_fpr(),
            Self::Estimated(filter) => filter.current_fpr(),
            Self::Scalable(filter) => filter.current_fpr(),
            Self::Shared(filter) => filter.stats.map_or(f64::NAN, |stats| stats.expected_fpr),
        }
    }

    /// The false-positive rate to expect with so many keys. A set that grows tells that of the keys that it has.
    pub fn expected_fpr(&self, keys: f64) -> f64 {
        match self {
            Self::Sized(filter) => filter.expected_fpr(keys as u64),
            Self::Estimated(filter) => filter.expected_fpr(keys),
            Self::Scalable(filter) => filter.expected_fpr(),
            Self::Shared(filter) => filter.plan.expected_fpr(keys as u64),
        }
    }

    /// Asks a server how full the filter is; the others know.
    pub fn refresh(&mut self) -> Result<(), Error> {
        match self {
            Self::Shared(filter) => filter.refresh(),
            _ => Ok(()),
        }
    }

    /// Makes sure that a set on a server was not lost meanwhile. Returns whether it can be asked.
    pub fn check(&self) -> Result<bool, Error> {
        if let Self::Shared(filter) = self { filter.check() } else { Ok(true) }
    }

    /// Whether other processes write to it too.
    pub fn is_shared(&self) -> bool {
        matches!(self, Self::Shared(_))
    }
}
