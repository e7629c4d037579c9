//! A set in memory: a filter of a fixed size, a filter that grows, or one sized by an estimate, which grows if more keys arrive.

use crate::seen::forecast_filter::{ForecastFilter, absent};
use crate::system::error::Error;
use crate::system::u64_file::U64File;
use bloomline::{BloomFilter, BuildError, FileError, FileErrorKind, KeyHasher, MergeError, Plan, ScalableBloomFilter};
use bloomline_keys::KeyKinds;
use std::io;
use std::path::Path;

/// The second filter is sized for this fraction of the first one's keys: a slightly low estimate costs little memory.
const SECOND_DIVISOR: u64 = 4;

/// The least keys of the second filter, so that a set that grows from a few lines to millions needs few filters.
const MIN_KEYS: u64 = 1 << 14;

/// A filter that is sized by a forecast; or a first filter and the filters after it, at least one of the two, which together keep the
/// rate.
pub struct LocalSet {
    forecast: Option<ForecastFilter>,
    /// The filter for all keys, or for as many as were estimated.
    first: Option<First>,
    /// The filter for the keys beyond the estimate, or for all keys if there is no first filter.
    more: Option<ScalableBloomFilter>,
    /// The hashes of all keys while they are few, so that an oversized filter can be rebuilt smaller.
    initial_hashes: Option<Vec<u64>>,
    /// The hashes of all keys, from which another set can be built if the inputs cannot be read again, or the error of
    /// writing them. `None` if they are not needed.
    pub spool: Option<io::Result<U64File>>,
    /// The kinds of the keys, which its file records. Empty if there are no keys, or they are of documents.
    pub kinds: KeyKinds,
}

struct First {
    filter: BloomFilter,
    /// `None` if the size is fixed: then the filter takes all keys.
    estimate: Option<Estimate>,
}

struct Estimate {
    /// The keys that the first filter is sized for.
    keys: u64,
    /// New keys that still fit.
    remaining_keys: u64,
    /// The rate of all filters together.
    rate: f64,
}

impl From<BloomFilter> for LocalSet {
    fn from(filter: BloomFilter) -> Self {
        Self {
            forecast: None,
            first: Some(First { filter, estimate: None }),
            more: None,
            initial_hashes: None,
            spool: None,
            kinds: KeyKinds::default(),
        }
    }
}

impl From<ScalableBloomFilter> for LocalSet {
    fn from(filter: ScalableBloomFilter) -> Self {
        let kinds = KeyKinds::default();
        Self { forecast: None, first: None, more: Some(filter), initial_hashes: None, spool: None, kinds }
    }
}

impl From<ForecastFilter> for LocalSet {
    fn from(filter: ForecastFilter) -> Self {
        let kinds = KeyKinds::default();
        Self { forecast: Some(filter), first: None, more: None, initial_hashes: None, spool: None, kinds }
    }
}

impl LocalSet {
    /// The first filter's share of the rate. A filter that is sized for this share is about 1 % larger (4 % at a rate
    /// of 0.5), so a right estimate costs next to nothing, and the rest of the rate is enough for all filters after it.
    pub const SHARE: f64 = 0.95;

    /// The share of the first stage of a scalable filter.
    pub const SCALABLE_SHARE: f64 = 1.0 / 8.0;

    /// Plans the first filter for an estimate. Fails if the rate is too low to leave a share for growth.
    pub fn plan_estimated(keys: u64, rate: f64) -> Result<Plan, BuildError> {
        let (second, rest) = growth_size(keys, rate);
        BloomFilter::builder().expected_keys(second).false_positive_rate(Self::SCALABLE_SHARE * rest).plan()?;
        BloomFilter::builder().expected_keys(keys).false_positive_rate(Self::SHARE * rate).plan()
    }

    /// Wraps an empty filter of the size of [`plan_estimated`](Self::plan_estimated).
    pub fn estimated(filter: BloomFilter, keys: u64, rate: f64) -> Self {
        let first = First { filter, estimate: Some(Estimate { keys, remaining_keys: keys, rate }) };
        let kinds = KeyKinds::default();
        Self { forecast: None, first: Some(first), more: None, initial_hashes: None, spool: None, kinds }
    }

    /// Wraps an empty filter that is sized for many keys because their number is unknown.
    pub fn for_unknown(filter: ScalableBloomFilter) -> Self {
        Self { initial_hashes: Some(Vec::new()), ..filter.into() }
    }

    /// Loads a file of [`save`](Self::save) or of the library.
    pub fn load(path: &Path) -> Result<Self, Error> {
        let mut set: Self = match BloomFilter::load(path) {
            Ok(filter) => Ok(filter.into()),
            Err(error) if matches!(error.kind(), FileErrorKind::Scalable) => {
                ScalableBloomFilter::load(path).map(Self::from)
            }
            Err(error) => Err(error),
        }
        .map_err(|error| Error::new(format!("cannot load the filter {}", describe(&error))))?;
        if set.keys() > 0.0 {
            let fixed = set.fixed().map(BloomFilter::key_kinds);
            let recorded = fixed.or(set.growing().map(ScalableBloomFilter::key_kinds));
            set.kinds = KeyKinds::from_recorded(&recorded.unwrap_or_default());
        }
        Ok(set)
    }

    /// Saves the set atomically. Fails if an estimate was too low, because no file format holds its filters.
    pub fn save(&self, path: &Path) -> Result<(), Error> {
        let kinds = self.kinds.to_bits();
        self.first.iter().for_each(|first| first.filter.add_key_kinds(&kinds));
        self.more.iter().for_each(|more| more.add_key_kinds(&kinds));
        match (&self.first, &self.more) {
            (Some(first), None) => first.filter.save(path),
            (None, Some(more)) => more.save(path),
            _ => {
                return Err(Error::new(
                    "cannot save the filter: the inputs have more lines than estimated, and a file cannot hold the several \
                     filters that they took; give the number of distinct lines with -n",
                ));
            }
        }
        .map_err(|error| Error::new(format!("cannot save the filter {}", describe(&error))))
    }

    /// Merges another set into this one. `None` if only one of them grows.
    pub fn union(&mut self, other: &Self) -> Option<Result<(), MergeError>> {
        self.kinds.unite(&other.kinds);
        if let (Some(ours), Some(theirs)) = (&mut self.first, other.fixed()) {
            return Some(ours.filter.union(theirs));
        }
        self.more.as_mut().zip(other.growing()).map(|(ours, theirs)| ours.union(theirs))
    }

    /// The name of the keys; empty if they have none.
    pub fn key_name(&self) -> &str {
        // The last filter has the name of the whole.
        self.stages().last().map_or("", BloomFilter::key_name)
    }

    /// Changes the name of the keys of a set that was loaded.
    pub fn set_key_name(&mut self, name: &str) -> Result<(), BuildError> {
        match (&mut self.first, &mut self.more) {
            (_, Some(more)) => more.set_key_name(name),
            (Some(first), None) => first.filter.set_key_name(name),
            (None, None) => unreachable!("a file has a filter"),
        }
    }

    /// The filter, if its size is fixed.
    pub fn fixed(&self) -> Option<&BloomFilter> {
        self.first.as_ref().filter(|first| first.estimate.is_none()).map(|first| &first.filter)
    }

    /// The filter that grows from its first key on.
    pub fn growing(&self) -> Option<&ScalableBloomFilter> {
        self.more.as_ref().filter(|_| self.first.is_none())
    }

    /// True if more keys arrived than were estimated.
    pub fn is_outgrown(&self) -> bool {
        self.first.is_some() && self.more.is_some()
    }

    /// Makes the size fixed if it was estimated and the estimate was not too low.
    pub fn fix(&mut self) {
        if let (Some(first), None) = (&mut self.first, &self.more) {
            first.estimate = None;
        }
    }

    /// Moves the keys of a set that was sized for many into one sized for few, if they stayed few. Called at the end.
    pub fn sync(&mut self) -> Result<(), BuildError> {
        let Some((initial_hashes, current)) = self.initial_hashes.take().zip(self.growing()) else { return Ok(()) };
        let builder = ScalableBloomFilter::builder()
            .expected_keys(MIN_KEYS)
            .false_positive_rate(current.false_positive_rate().expect("it is made for a rate"));
        let key_name = current.key_name();
        let mut smaller: ScalableBloomFilter = builder.seed(current.hasher().seed()).key_name(key_name).build()?;
        smaller.insert_hashes(&initial_hashes, &mut vec![false; initial_hashes.len()])?;
        self.more = Some(smaller);
        Ok(())
    }

    /// Makes a set that is sized by a forecast as small as its keys allow. Called when no more keys are expected.
    pub fn fit(&mut self) -> Result<(), BuildError> {
        self.forecast.as_mut().map_or(Ok(()), ForecastFilter::fit)
    }

    /// Shrinks the set to the smallest size that keeps its rate.
    pub fn shrink(&mut self) -> Result<(), BuildError> {
        match (&mut self.first, &mut self.more) {
            (Some(First { filter, estimate: None }), _) => filter.shrink_to_fit(),
            (None, Some(filter)) => filter.shrink_to_fit()?,
            _ => {}
        }
        Ok(())
    }

    /// Inserts hashes in order; `new[i]` is `true` if hash i was new. Returns the number of new ones.
    pub fn insert_hashes(&mut self, hashes: &[u64], new: &mut [bool]) -> Result<usize, BuildError> {
        let inserted = self.insert(hashes, new);
        let new_hashes = || hashes.iter().zip(&*new).filter(|(_, new)| **new).map(|(hash, _)| *hash);
        if let Some(initial_hashes) = &mut self.initial_hashes {
            initial_hashes.extend(new_hashes());
            self.initial_hashes.take_if(|initial_hashes| initial_hashes.len() as u64 > MIN_KEYS);
        }
        if let Some(Ok(spool)) = &mut self.spool
            && let Err(error) = new_hashes().try_for_each(|hash| spool.push(hash))
        {
            // Reported when the hashes are read, if ever.
            self.spool = Some(Err(error));
        }
        inserted
    }

    fn insert(&mut self, hashes: &[u64], new: &mut [bool]) -> Result<usize, BuildError> {
        if let Some(forecast) = &mut self.forecast {
            return forecast.insert_hashes(hashes, new);
        }
        let (mut done, mut inserted) = (0, 0);
        if let Some(First { filter, estimate }) = &mut self.first {
            let Some(Estimate { remaining_keys, .. }) = estimate else { return Ok(filter.insert_hashes(hashes, new)) };
            while done < hashes.len() && *remaining_keys > 0 {
                let end = hashes.len().min(done.saturating_add(usize::try_from(*remaining_keys).unwrap_or(usize::MAX)));
                let portion = filter.insert_hashes(&hashes[done..end], &mut new[done..end]);
                *remaining_keys -= portion as u64;
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
                let (keys, rate) = growth_size(*keys, *rate);
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

    /// Sets `found[i]` to `true` if hash i is in the set. Returns the number that were found.
    pub fn contains_hashes(&self, hashes: &[u64], found: &mut [bool]) -> usize {
        if let Some(forecast) = &self.forecast {
            return forecast.contains_hashes(hashes, found);
        }
        let (first, more) = match (&self.first, &self.more) {
            (Some(first), None) => return first.filter.contains_hashes(hashes, found),
            (None, more) => return more.as_ref().map_or(0, |more| more.contains_hashes(hashes, found)),
            (Some(first), Some(more)) => (&first.filter, more),
        };
        let count = first.contains_hashes(hashes, found);
        let absent = absent(hashes, found);
        let mut marks = vec![false; absent.len()];
        let others = more.contains_hashes(&absent, &mut marks);
        found.iter_mut().filter(|found| !**found).zip(marks).for_each(|(found, mark)| *found = mark);
        count + others
    }

    /// The filters of the set, each of its own size, all with one seed.
    pub fn stages(&self) -> impl Iterator<Item = &BloomFilter> {
        let more = self.more.as_ref().map_or(&[][..], ScalableBloomFilter::stages);
        let forecast = self.forecast.as_ref().map_or(&[][..], ForecastFilter::stages);
        self.first.iter().map(|first| &first.filter).chain(more).chain(forecast)
    }

    /// The hasher of the keys.
    pub fn hasher(&self) -> &KeyHasher {
        match &self.forecast {
            Some(forecast) => forecast.hasher(),
            None => self.stages().next().expect("there is a filter").hasher(),
        }
    }

    /// The number of keys: exact if the set grows, else estimated.
    pub fn keys(&self) -> f64 {
        let first = self.first.as_ref().map_or(0.0, |First { filter, estimate }| match estimate {
            Some(Estimate { keys, remaining_keys, .. }) => (keys - remaining_keys) as f64,
            None => filter.estimated_keys(),
        });
        let more = self.more.as_ref().map_or(0, ScalableBloomFilter::keys);
        first + (more + self.forecast.as_ref().map_or(0, ForecastFilter::keys)) as f64
    }

    /// The expected false-positive rate when the set had its first `keys` keys. Filters that grow count as they are now.
    pub fn expected_fpr(&self, keys: f64) -> f64 {
        if let Some(forecast) = &self.forecast {
            return forecast.expected_fpr(keys);
        }
        let (mut in_first, mut first) = (0, 0.0);
        if let Some(First { filter, estimate }) = &self.first {
            in_first = estimate.as_ref().map_or(keys as u64, |estimate| estimate.keys - estimate.remaining_keys);
            first = filter.expected_fpr(in_first.min(keys as u64));
        }
        let more = self.more.as_ref().filter(|_| keys > in_first as f64);
        first + (1.0 - first) * more.map_or(0.0, ScalableBloomFilter::estimated_fpr)
    }

    /// The expected number of keys that were lost since the set had `before` keys, if the set recorded its sizes.
    pub fn expected_losses(&self, before: f64) -> Option<f64> {
        self.forecast.as_ref().map(|forecast| forecast.expected_losses(before))
    }

    /// The false-positive rate of the bits that are set now. Reads all filters.
    pub fn current_fpr(&self) -> f64 {
        if let Some(forecast) = &self.forecast {
            return forecast.current_fpr();
        }
        let first = self.first.as_ref().map_or(0.0, |first| first.filter.current_fpr());
        first + (1.0 - first) * self.more.as_ref().map_or(0.0, ScalableBloomFilter::current_fpr)
    }
}

/// Returns the keys of the second filter, and the rate of all filters after the first.
fn growth_size(keys: u64, rate: f64) -> (u64, f64) {
    ((keys / SECOND_DIVISOR).max(MIN_KEYS), (1.0 - LocalSet::SHARE) * rate)
}

/// Formats an error of a file: its name, on one line even if it has line breaks, and what is wrong with it.
fn describe(error: &FileError) -> String {
    let name = error.path().map_or_else(String::new, |path| format!("{path:?}"));
    // Windows says that access is denied.
    let is_folder = error.path().is_some_and(Path::is_dir);
    if is_folder { format!("{name}: it is a directory") } else { format!("{name}: {}", error.kind()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    fn estimated(keys: u64, rate: f64) -> LocalSet {
        let plan = LocalSet::plan_estimated(keys, rate).unwrap();
        let first = BloomFilter::builder().memory(plan.memory_bytes()).probes(plan.probes()).build().unwrap();
        LocalSet::estimated(first, keys, rate)
    }

    /// Returns a pseudorandom hash.
    fn hash(i: u64) -> u64 {
        bloomline::KeyHasher::new(0).bytes(&i.to_le_bytes())
    }

    proptest! {
        #[test]
        fn local_sets_match_a_hash_set(keys in prop::collection::vec(0..400u64, 0..800), estimate in 1..500u64, portion in 1..100usize) {
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

    /// The rate holds even if the estimate is far too low.
    #[test]
    fn growing_keeps_the_rate() {
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
            // The rate was lower before the last key, so fewer than 1 % of the keys were lost.
            assert!(inserted as f64 > 0.99 * KEYS as f64 - 90.0, "{estimate}: {inserted}");
        }
    }

    #[test]
    fn expected_rates_with_fewer_keys_are_reported() {
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
        // Beyond the first filter, the set reports its final rate for every number of keys.
        let end = set.expected_fpr(set.keys());
        assert!(after.iter().all(|(keys, rate)| set.expected_fpr(*keys) == end && *rate <= end));
    }

    #[test]
    fn repeats_start_no_new_filter() {
        let mut set = estimated(100, 0.01);
        let hashes: Vec<u64> = (0..100).map(hash).collect();
        let mut new = vec![false; 100];
        let mut inserted = set.insert_hashes(&hashes, &mut new).unwrap();
        // False positives take no capacity, so other keys fill it.
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
