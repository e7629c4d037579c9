//! A set in memory: a filter of a fixed size, one that grows, or one for an estimate, which grows when more keys come.

use crate::error::Error;
use crate::word_file::WordFile;
use bloomline::{BloomFilter, BuildError, FileErrorKind, KeyHasher, MergeError, Plan, ScalableBloomFilter};
use std::io;
use std::path::Path;

/// The second filter takes this part of the first one's keys: an estimate that is a little too low costs little memory.
const SECOND: u64 = 4;

/// The least keys of the second filter, so that a file that grows from a few lines to millions needs few filters.
const LEAST: u64 = 1 << 14;

/// A filter and those that go on after it, of which one at least is there. All together keep the rate.
pub struct Local {
    /// Takes all keys, or as many as were estimated.
    first: Option<First>,
    /// Takes the keys that the first has no room for.
    more: Option<ScalableBloomFilter>,
    /// The hashes of all keys, as long as they are few, of a set that was begun for many.
    few: Option<Vec<u64>>,
    /// The hashes of all keys, if they are to be kept, from which another set can be built if the inputs cannot be read again; or
    /// why they could not be written.
    pub spool: Option<io::Result<WordFile>>,
}

struct First {
    filter: BloomFilter,
    /// `None` if it has a fixed size: then it takes all keys.
    estimate: Option<Estimate>,
}

struct Estimate {
    /// The keys that the first filter is for.
    keys: u64,
    /// New keys that it still takes.
    room: u64,
    /// The rate of all.
    rate: f64,
}

impl From<BloomFilter> for Local {
    fn from(filter: BloomFilter) -> Self {
        Self { first: Some(First { filter, estimate: None }), more: None, few: None, spool: None }
    }
}

impl From<ScalableBloomFilter> for Local {
    fn from(filter: ScalableBloomFilter) -> Self {
        Self { first: None, more: Some(filter), few: None, spool: None }
    }
}

impl Local {
    /// The first filter's share of the rate. A filter that is sized for this share is about 1 % larger (4 % at a rate of 0.5), so a
    /// right estimate costs next to nothing, and the rest is enough for all filters after it.
    pub const SHARE: f64 = 0.95;

    /// The share of the first stage of a scalable filter.
    pub const SCALABLE_SHARE: f64 = 1.0 / 8.0;

    /// The size of the first filter for an estimate, where the rate leaves something to grow with.
    pub fn plan_estimated(keys: u64, rate: f64) -> Result<Plan, BuildError> {
        let (second, rest) = more(keys, rate);
        BloomFilter::builder().expected_keys(second).false_positive_rate(Self::SCALABLE_SHARE * rest).plan()?;
        BloomFilter::builder().expected_keys(keys).false_positive_rate(Self::SHARE * rate).plan()
    }

    /// From an empty filter of the size of [`plan_estimated`](Self::plan_estimated).
    pub fn estimated(filter: BloomFilter, keys: u64, rate: f64) -> Self {
        let first = First { filter, estimate: Some(Estimate { keys, room: keys, rate }) };
        Self { first: Some(first), more: None, few: None, spool: None }
    }

    /// From an empty filter that was begun for many keys, though nobody knows how many will come.
    pub fn of_unknown(filter: ScalableBloomFilter) -> Self {
        Self { few: Some(Vec::new()), ..filter.into() }
    }

    /// Loads what [`save`](Self::save) saved, or the library.
    pub fn load(path: &Path) -> Result<Self, Error> {
        match BloomFilter::load(path) {
            Ok(filter) => Ok(filter.into()),
            Err(error) if matches!(error.kind(), FileErrorKind::Scalable) => {
                ScalableBloomFilter::load(path).map(Self::from).map_err(|error| Error::Load { error })
            }
            Err(error) => Err(Error::Load { error }),
        }
    }

    /// Saves it: the file is the old or the new one at every moment. No file has the filters of an estimate that was too low.
    pub fn save(&self, path: &Path) -> Result<(), Error> {
        match (&self.first, &self.more) {
            (Some(first), None) => first.filter.save(path),
            (None, Some(more)) => more.save(path),
            _ => return Err(Error::Outgrown),
        }
        .map_err(|error| Error::Save { error })
    }

    /// Takes the keys of another set, unless one of them grows and the other does not.
    pub fn union(&mut self, other: &Self) -> Option<Result<(), MergeError>> {
        if let (Some(ours), Some(theirs)) = (&mut self.first, other.fixed()) {
            return Some(ours.filter.union(theirs));
        }
        self.more.as_mut().zip(other.growing()).map(|(ours, theirs)| ours.union(theirs))
    }

    /// The name of the keys; empty if there is none.
    pub fn key_name(&self) -> &str {
        // That of the last filter is that of the whole.
        self.stages().last().map_or("", BloomFilter::key_name)
    }

    /// The filter, if its size is fixed.
    pub fn fixed(&self) -> Option<&BloomFilter> {
        self.first.as_ref().filter(|first| first.estimate.is_none()).map(|first| &first.filter)
    }

    /// The filter that grows from its first key on.
    pub fn growing(&self) -> Option<&ScalableBloomFilter> {
        self.more.as_ref().filter(|_| self.first.is_none())
    }

    /// Whether more keys came than were estimated.
    pub fn is_outgrown(&self) -> bool {
        self.first.is_some() && self.more.is_some()
    }

    /// Lets it grow no more: an estimate that was not too low is a fixed size.
    pub fn fix(&mut self) {
        if let (Some(first), None) = (&mut self.first, &self.more) {
            first.estimate = None;
        }
    }

    /// Puts the few keys of a set that was begun for many into one that was begun for few, at the end.
    pub fn settle(&mut self) -> Result<(), BuildError> {
        let Some((few, begun)) = self.few.take().zip(self.growing()) else { return Ok(()) };
        let builder = ScalableBloomFilter::builder()
            .expected_keys(LEAST)
            .false_positive_rate(begun.false_positive_rate().expect("it is made for a rate"));
        let key_name = begun.key_name();
        let mut settled: ScalableBloomFilter = builder.seed(begun.hasher().seed()).key_name(key_name).build()?;
        settled.insert_hashes(&few, &mut vec![false; few.len()])?;
        self.more = Some(settled);
        Ok(())
    }

    /// Puts it into the smallest size that keeps the rate it is made for.
    pub fn shrink(&mut self) -> Result<(), BuildError> {
        match (&mut self.first, &mut self.more) {
            (Some(First { filter, estimate: None }), _) => filter.shrink_to_fit(),
            (None, Some(filter)) => filter.shrink_to_fit()?,
            _ => {}
        }
        Ok(())
    }

    /// Inserts hashes in order; `new[i]` is `true` if hash i was new. Returns how many were.
    pub fn insert_hashes(&mut self, hashes: &[u64], new: &mut [bool]) -> Result<usize, BuildError> {
        let inserted = self.insert(hashes, new);
        let came = || hashes.iter().zip(&*new).filter(|(_, new)| **new).map(|(hash, _)| *hash);
        if let Some(few) = &mut self.few {
            few.extend(came());
            self.few.take_if(|few| few.len() as u64 > LEAST);
        }
        if let Some(Ok(spool)) = &mut self.spool
            && let Err(error) = came().try_for_each(|hash| spool.push(hash))
        {
            // Reported when the hashes are read, which may never be.
            self.spool = Some(Err(error));
        }
        inserted
    }

    fn insert(&mut self, hashes: &[u64], new: &mut [bool]) -> Result<usize, BuildError> {
        let (mut done, mut inserted) = (0, 0);
        if let Some(First { filter, estimate }) = &mut self.first {
            let Some(Estimate { room, .. }) = estimate else { return Ok(filter.insert_hashes(hashes, new)) };
            while done < hashes.len() && *room > 0 {
                let end = hashes.len().min(done.saturating_add(usize::try_from(*room).unwrap_or(usize::MAX)));
                let portion = filter.insert_hashes(&hashes[done..end], &mut new[done..end]);
                *room -= portion as u64;
                inserted += portion;
                done = end;
            }
        }
        let (hashes, new) = (&hashes[done..], &mut new[done..]);
        let Some(First { filter, estimate: Some(Estimate { keys, rate, .. }) }) = &self.first else {
            return self.more.as_mut().map_or(Ok(0), |more| more.insert_hashes(hashes, new));
        };
        filter.contains_hashes(hashes, new);
        let absent = absent(hashes, new);
        if absent.is_empty() {
            new.fill(false);
            return Ok(inserted);
        }
        let more = match &mut self.more {
            Some(more) => more,
            none => {
                let (keys, rate) = more(*keys, *rate);
                let builder = ScalableBloomFilter::builder().expected_keys(keys).false_positive_rate(rate);
                none.insert(builder.seed(filter.seed()).build()?)
            }
        };
        let mut marks = vec![false; absent.len()];
        let result = more.insert_hashes(&absent, &mut marks);
        let mut marks = marks.into_iter();
        new.iter_mut().for_each(|new| *new = !*new && marks.next().expect("each that is absent has a mark"));
        Ok(inserted + result?)
    }

    /// `found[i]` is `true` if hash i is in one of the filters. Returns how many are.
    pub fn contains_hashes(&self, hashes: &[u64], found: &mut [bool]) -> usize {
        let (first, more) = match (&self.first, &self.more) {
            (Some(first), None) => return first.filter.contains_hashes(hashes, found),
            (None, more) => return more.as_ref().map_or(0, |more| more.contains_hashes(hashes, found)),
            (Some(first), Some(more)) => (&first.filter, more),
        };
        let count = first.contains_hashes(hashes, found);
        let absent = absent(hashes, found);
        let mut marks = vec![false; absent.len()];
        let others = more.contains_hashes(&absent, &mut marks);
        let mut marks = marks.into_iter();
        found
            .iter_mut()
            .filter(|found| !**found)
            .for_each(|found| *found = marks.next().expect("each that is absent has a mark"));
        count + others
    }

    /// The filters that make it up: each of its own size, all with one seed.
    pub fn stages(&self) -> impl Iterator<Item = &BloomFilter> {
        let more = self.more.as_ref().map_or(&[][..], ScalableBloomFilter::stages);
        self.first.iter().map(|first| &first.filter).chain(more)
    }

    /// The hasher of the keys.
    pub fn hasher(&self) -> &KeyHasher {
        self.stages().next().expect("there is a filter").hasher()
    }

    /// The number of keys: known if it grows, else estimated.
    pub fn keys(&self) -> f64 {
        let first = self.first.as_ref().map_or(0.0, |First { filter, estimate }| match estimate {
            Some(Estimate { keys, room, .. }) => (keys - room) as f64,
            None => filter.estimated_keys(),
        });
        first + self.more.as_ref().map_or(0, ScalableBloomFilter::keys) as f64
    }

    /// The false-positive rate to expect when it had so many keys, of those that it has: of filters that grow, at their end.
    pub fn expected_fpr(&self, keys: f64) -> f64 {
        let (mut in_first, mut first) = (0, 0.0);
        if let Some(First { filter, estimate }) = &self.first {
            in_first = estimate.as_ref().map_or(keys as u64, |estimate| estimate.keys - estimate.room);
            first = filter.expected_fpr(in_first.min(keys as u64));
        }
        let more = self.more.as_ref().filter(|_| keys > in_first as f64);
        first + (1.0 - first) * more.map_or(0.0, ScalableBloomFilter::estimated_fpr)
    }

    /// The false-positive rate of the bits as they are. Reads all filters.
    pub fn current_fpr(&self) -> f64 {
        let first = self.first.as_ref().map_or(0.0, |first| first.filter.current_fpr());
        first + (1.0 - first) * self.more.as_ref().map_or(0.0, ScalableBloomFilter::current_fpr)
    }
}

/// The keys of the second filter, and the rate of all after the first.
fn more(keys: u64, rate: f64) -> (u64, f64) {
    ((keys / SECOND).max(LEAST), (1.0 - Local::SHARE) * rate)
}

/// The hashes that were not found.
fn absent(hashes: &[u64], found: &[bool]) -> Vec<u64> {
    hashes.iter().zip(found).filter(|(_, found)| !**found).map(|(hash, _)| *hash).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    fn estimated(keys: u64, rate: f64) -> Local {
        let plan = Local::plan_estimated(keys, rate).unwrap();
        let first = BloomFilter::builder().memory(plan.memory_bytes()).probes(plan.probes()).build().unwrap();
        Local::estimated(first, keys, rate)
    }

    /// Hashes that look random.
    fn hash(i: u64) -> u64 {
        bloomline::KeyHasher::new(0).bytes(&i.to_le_bytes())
    }

    proptest! {
        #[test]
        fn it_is_a_set(keys in prop::collection::vec(0..400u64, 0..800), estimate in 1..500u64, portion in 1..100usize) {
            let (mut set, mut model) = (estimated(estimate, 1e-9), HashSet::new());
            for keys in keys.chunks(portion) {
                let hashes: Vec<u64> = keys.iter().map(|&key| hash(key)).collect();
                let mut new = vec![true; keys.len()];
                let expected: Vec<bool> = keys.iter().map(|&key| model.insert(key)).collect();
                let inserted = set.insert_hashes(&hashes, &mut new).unwrap();
                prop_assert_eq!(&new, &expected);
                prop_assert_eq!(inserted, new.iter().filter(|new| **new).count());
            }
            prop_assert_eq!(set.keys(), model.len() as f64);
            prop_assert_eq!(set.more.is_some(), model.len() as u64 > estimate);
            let all: Vec<u64> = (0..400).map(hash).collect();
            let mut found = vec![false; all.len()];
            prop_assert_eq!(set.contains_hashes(&all, &mut found), model.len());
            prop_assert!((0..400).all(|key| found[key as usize] == model.contains(&key)));
        }
    }

    /// However wrong the estimate is.
    #[test]
    fn the_rate_stays() {
        const KEYS: u64 = 50_000;
        for estimate in [1, KEYS / 100, KEYS / 2, KEYS - 1] {
            let mut set = estimated(estimate, 0.01);
            let hashes: Vec<u64> = (0..KEYS).map(hash).collect();
            let inserted = set.insert_hashes(&hashes, &mut vec![false; hashes.len()]).unwrap();
            let others: Vec<u64> = (KEYS..2 * KEYS).map(hash).collect();
            let found = set.contains_hashes(&others, &mut vec![false; others.len()]);
            // Four standard deviations of 500 false positives.
            assert!((found as f64) < 0.01 * KEYS as f64 + 90.0, "{estimate}: {found} of {KEYS}");
            assert!(set.current_fpr() <= 0.0101, "{estimate}: {}", set.current_fpr());
            // The rate was lower before the last key, so fewer are lost.
            assert!(inserted as f64 > 0.99 * KEYS as f64 - 90.0, "{estimate}: {inserted}");
        }
    }

    #[test]
    fn it_knows_the_rate_that_it_had_with_fewer_keys() {
        let mut set = estimated(1000, 0.01);
        let mut rates = Vec::new();
        for i in 0..2000 {
            set.insert_hashes(&[hash(i)], &mut [false]).unwrap();
            let keys = set.keys();
            rates.push((keys, set.expected_fpr(keys)));
        }
        assert!(set.more.is_some());
        let (before, after): (Vec<_>, Vec<_>) = rates.into_iter().partition(|(keys, _)| *keys <= 1000.0);
        assert!(before.iter().all(|(keys, rate)| set.expected_fpr(*keys) == *rate));
        // Of what grows it knows the end alone.
        let end = set.expected_fpr(set.keys());
        assert!(after.iter().all(|(keys, rate)| set.expected_fpr(*keys) == end && *rate <= end));
    }

    #[test]
    fn repeats_alone_begin_no_filter() {
        let mut set = estimated(100, 0.01);
        let hashes: Vec<u64> = (0..100).map(hash).collect();
        let mut new = vec![false; 100];
        let mut inserted = set.insert_hashes(&hashes, &mut new).unwrap();
        // What the filter took for seen leaves room.
        for i in 100.. {
            if inserted == 100 {
                break;
            }
            inserted += set.insert_hashes(&[hash(i)], &mut [false]).unwrap();
        }
        assert_eq!(set.insert_hashes(&hashes, &mut new).unwrap(), 0);
        assert!(set.more.is_none() && new.iter().all(|new| !new));
    }
}
