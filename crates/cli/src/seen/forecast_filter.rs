//! A filter for keys whose number is not known. A forecast of the distinct ones determines its size, and corrects it while they
//! arrive.
//!
//! At first the hashes are kept as they are. Once enough keys are known, a filter for the forecast takes their place; it is there from
//! the start if nearly all keys of a sample are distinct. If more keys arrive, filters are added to it; each key is then looked up in
//! all, and inserted into the last. If there are fewer, the filter is folded. A filter is rebuilt only from all hashes that were
//! offered: the keys that it reports as seen by mistake would be lost to those that look them up.

use crate::seen::forecast::Forecast;
use crate::seen::hash_table::HashTable;
use bloomline::{BloomFilter, BuildError, KeyHasher, Plan};

/// The keys whose hashes are kept until the first filter is sized.
const KEPT: u64 = 140_000;

/// The least share of distinct keys, in a sample, for which a large first filter is sized at once: it cannot be far too large.
const NEARLY_ALL: f64 = 0.75;

/// The keys up to which the first filter of a pipe is replaced by a larger one. A pipe has no end before it ends, and each filter that
/// was too small costs a look-up for each later key.
const REPLACED: u64 = 3 << 19;

/// The keys of the first filter of a pipe, and of each later one, as a multiple of the keys before it. At 1e-6, a key then takes at most
/// 130 bits, just after a filter is built. Memory is cleared before it is used, so an empty filter also costs time.
const PIPE_FIRST: f64 = 2.9;
const PIPE_NEXT: f64 = 1.2;

/// The room for a forecast that is a little too low.
const MARGIN: f64 = 1.03;

/// A later filter takes at most this share of the keys before it, unless the sample has more: a forecast of many new keys may be
/// wrong, and a filter that stays empty costs more than another one.
const MAX_NEXT: f64 = 0.6;

/// The least keys of a later filter.
const MIN_NEXT: u64 = 1 << 14;

/// The shares of the rate that is left: of the first filter and of later ones, if the number of lines is known and if it is not.
const FIRST_SHARE: f64 = 0.85;
const NEXT_SHARE: f64 = 1.0 / 3.0;
const PIPE_FIRST_SHARE: f64 = 0.6;
const PIPE_NEXT_SHARE: f64 = 0.2;

/// The hashes that are inserted at once into a filter that takes the place of hashes.
const BATCH: usize = 1 << 12;

/// The hashes that are looked up at once in several stages. If none is found, as in most batches of a few, none is copied.
const FEW: usize = 1 << 9;

/// The steps in which losses are added up.
const STEPS: u32 = 64;

/// Filters that take keys one after another. Together they keep a rate.
pub struct ForecastFilter {
    hasher: KeyHasher,
    key_name: String,
    /// The part of the rate that no stage has.
    rate_left: f64,
    /// The keys, while their hashes are kept, and the number up to which they are. Then there is no stage.
    few: Option<HashTable>,
    kept: u64,
    /// The keys of the only stage of a pipe, as long as a larger one may replace it.
    offered: Option<Offered>,
    /// All but the last are full.
    stages: Vec<BloomFilter>,
    /// The keys in the full stages and in the last one, and those that the last one takes.
    full: u64,
    len: u64,
    capacity: u64,
    forecast: Forecast,
    /// The sizes that the set had, as the basis of the expected losses.
    history: Vec<Period>,
    /// The keys of the last stage when it got its size: those that were new to it, and all that were offered to it.
    since: u64,
    offered_before: f64,
    /// The rate of the full stages together.
    full_rate: f64,
}

/// All hashes that were offered to a stage: those that were new to it, and the others, as it may have reported them as seen by mistake.
struct Offered {
    new: Vec<u64>,
    seen: HashTable,
    /// The number of times that a hash was not new.
    repeats: usize,
}

impl Offered {
    /// Adds hashes; `new[i]` is `true` if hash i was new.
    fn add(&mut self, hashes: &[u64], new: &[bool]) {
        self.new.extend(hashes.iter().zip(new).filter(|(_, new)| **new).map(|(hash, _)| *hash));
        let seen = absent(hashes, new);
        self.seen.insert(&seen, &mut vec![false; seen.len()], usize::MAX);
        self.repeats += seen.len();
    }
}

/// A period in which new keys were inserted into one filter of one size.
#[derive(Clone, Copy)]
struct Period {
    /// The keys of the set before the period, and the keys of the filter before and after it.
    before: u64,
    from: u64,
    to: u64,
    /// The keys that were offered to the filter before the period: those that it has, and those that it lost.
    offered: f64,
    plan: Plan,
    /// The rate of the filters before this one.
    earlier: f64,
}

impl ForecastFilter {
    /// Creates an empty set that keeps this rate, for so many lines, `sampled` of them distinct by a sample, as far as they are known.
    pub fn new(lines: Option<u64>, sampled: Option<u64>, rate: f64, seed: u64, key_name: &str) -> Self {
        let is_sure = |(sampled, lines): (u64, u64)| sampled > 2 * KEPT && sampled as f64 >= NEARLY_ALL * lines as f64;
        Self {
            hasher: KeyHasher::new(seed),
            key_name: key_name.to_owned(),
            rate_left: rate,
            few: Some(HashTable::new()),
            kept: if sampled.zip(lines).is_some_and(is_sure) { 0 } else { KEPT },
            offered: None,
            stages: Vec::new(),
            full: 0,
            len: 0,
            capacity: 0,
            forecast: Forecast::new(lines, sampled),
            history: Vec::new(),
            since: 0,
            offered_before: 0.0,
            full_rate: 0.0,
        }
    }

    /// Returns an error if the rate is too low to be divided among the filters for this number of keys.
    pub fn check(lines: Option<u64>, rate: f64) -> Result<(), BuildError> {
        let (first, next) =
            if lines.is_some() { (FIRST_SHARE, NEXT_SHARE) } else { (PIPE_FIRST_SHARE, PIPE_NEXT_SHARE) };
        let keys = lines.unwrap_or(REPLACED).max(1);
        for rate in [first * rate, next * (1.0 - first) * rate] {
            BloomFilter::builder().expected_keys(keys).false_positive_rate(rate).plan()?;
        }
        Ok(())
    }

    fn build(&self, keys: u64, rate: f64) -> Result<BloomFilter, BuildError> {
        let builder = BloomFilter::builder().expected_keys(keys.max(1)).false_positive_rate(rate);
        builder.seed(self.hasher.seed()).key_name(&*self.key_name).build()
    }

    /// Returns the share of the rate that is left for the first stage, or a later one.
    fn share(&self, is_first: bool) -> f64 {
        match (self.forecast.has_end(), is_first) {
            (true, true) => FIRST_SHARE,
            (true, false) => NEXT_SHARE,
            (false, true) => PIPE_FIRST_SHARE,
            (false, false) => PIPE_NEXT_SHARE,
        }
    }

    pub fn stages(&self) -> &[BloomFilter] {
        &self.stages
    }

    pub fn hasher(&self) -> &KeyHasher {
        &self.hasher
    }

    pub fn keys(&self) -> u64 {
        self.full + self.len + self.few.as_ref().map_or(0, HashTable::len) as u64
    }

    fn last(&mut self) -> &mut BloomFilter {
        let last = self.stages.len() - 1;
        &mut self.stages[last]
    }

    /// Inserts hashes in order, and sets `new[i]` to `true` if hash i was new. Returns the number of new ones.
    pub fn insert_hashes(&mut self, hashes: &[u64], new: &mut [bool]) -> Result<usize, BuildError> {
        let (mut done, mut count) = (0, 0);
        while done < hashes.len() {
            if let Some(few) = &mut self.few {
                let before = few.len();
                let kept = few.insert(&hashes[done..], &mut new[done..], self.kept as usize);
                count += few.len() - before;
                done += kept;
                self.forecast.add(kept, self.keys());
                if done < hashes.len() {
                    self.start()?;
                }
                continue;
            }
            if self.len >= self.capacity {
                // Repeats need no room.
                self.contains_hashes(&hashes[done..], &mut new[done..]);
                let absent = new[done..].iter().position(|found| !found);
                let end = absent.map_or(hashes.len(), |absent| done + absent);
                new[done..end].fill(false);
                self.keep(&hashes[done..end], &new[done..end]);
                self.forecast.add(end - done, self.keys());
                done = end;
                if absent.is_none() {
                    break;
                }
                self.grow()?;
            }
            let room = usize::try_from(self.capacity - self.len).unwrap_or(usize::MAX);
            let end = hashes.len().min(done.saturating_add(room));
            let inserted = self.insert_fitting(&hashes[done..end], &mut new[done..end]);
            self.keep(&hashes[done..end], &new[done..end]);
            self.len += inserted as u64;
            count += inserted;
            self.forecast.add(end - done, self.keys());
            done = end;
        }
        Ok(count)
    }

    /// Keeps hashes for a larger first stage. If most lines are repeats, it keeps none, because each repeat costs a look-up in a table.
    fn keep(&mut self, hashes: &[u64], new: &[bool]) {
        if let Some(offered) = &mut self.offered {
            offered.add(hashes, new);
        }
        self.offered.take_if(|offered| offered.repeats > offered.new.len());
    }

    /// Inserts hashes for which the last stage has room.
    fn insert_fitting(&mut self, hashes: &[u64], new: &mut [bool]) -> usize {
        let Some((last, full)) = self.stages.split_last_mut() else { return 0 };
        if full.is_empty() {
            return last.insert_hashes(hashes, new);
        }
        let batches = hashes.chunks(FEW).zip(new.chunks_mut(FEW));
        batches.map(|(hashes, new)| insert_absent(full, last, hashes, new)).sum()
    }

    /// Sets `found[i]` to `true` if hash i is in the set. Returns the number that were found.
    pub fn contains_hashes(&self, hashes: &[u64], found: &mut [bool]) -> usize {
        if let Some(few) = &self.few {
            return few.find(hashes, found);
        }
        find(&self.stages, hashes, found)
    }

    /// Replaces the hashes by a filter for the forecast.
    fn start(&mut self) -> Result<(), BuildError> {
        let keys = self.keys();
        let capacity = match self.forecast.total(keys) {
            Some(total) => {
                let total = self.forecast.sampled().map_or(total, |sampled| total.min(sampled));
                let lines = self.forecast.lines().unwrap_or(u64::MAX);
                ((total as f64 * MARGIN) as u64).min(lines).max(keys + keys / 4)
            }
            None => (keys as f64 * PIPE_FIRST) as u64,
        };
        self.start_with(capacity)
    }

    /// Replaces the hashes by a filter of this capacity.
    fn start_with(&mut self, capacity: u64) -> Result<(), BuildError> {
        let rate = self.share(true) * self.rate_left;
        let mut stage = self.build(capacity, rate)?;
        if let Some(few) = self.few.take() {
            let hashes: Vec<u64> = few.hashes().collect();
            insert_all(&mut stage, &hashes);
            // Nothing is lost before a filter is there.
            self.len = hashes.len() as u64;
            (self.since, self.offered_before) = (self.len, self.len as f64);
            let offered = Offered { new: hashes, seen: HashTable::new(), repeats: 0 };
            self.offered = (!self.forecast.has_end()).then_some(offered);
        }
        self.stages.push(stage);
        self.capacity = self.period().capacity(capacity);
        self.rate_left -= rate;
        Ok(())
    }

    /// Replaces the only stage by a larger one, which gets all hashes that were offered to it.
    fn replace(&mut self, offered: Offered) -> Result<(), BuildError> {
        let rate = self.stages[0].false_positive_rate().expect("it was built for a rate");
        let capacity = (self.keys() as f64 * PIPE_FIRST) as u64;
        let mut stage = self.build(capacity, rate)?;
        insert_all(&mut stage, &offered.new);
        insert_all(&mut stage, &offered.seen.hashes().collect::<Vec<_>>());
        self.close_period();
        self.stages = vec![stage];
        self.capacity = self.period().capacity(capacity);
        self.offered = (capacity <= REPLACED).then_some(offered);
        Ok(())
    }

    /// Makes room for the next new key.
    fn grow(&mut self) -> Result<(), BuildError> {
        if let Some(offered) = self.offered.take() {
            return self.replace(offered);
        }
        let (capacity, rate) = (self.next_capacity(), self.share(false) * self.rate_left);
        let stage = self.build(capacity, rate)?;
        self.close_period();
        self.full_rate = self.expected_fpr(self.keys() as f64);
        self.stages.push(stage);
        (self.full, self.len, self.since, self.offered_before) = (self.keys(), 0, 0, 0.0);
        self.capacity = self.period().capacity(capacity);
        self.rate_left -= rate;
        Ok(())
    }

    /// Returns the keys of the next stage.
    fn next_capacity(&self) -> u64 {
        let keys = self.keys();
        let share = |share: f64| (keys as f64 * share) as u64;
        match self.forecast.total(keys) {
            Some(total) => {
                let sampled = self.forecast.sampled().unwrap_or(0).saturating_sub(keys);
                let wanted = ((total - keys) as f64 * MARGIN) as u64;
                wanted.min(sampled.max(share(MAX_NEXT))).max(keys / 16).max(MIN_NEXT)
            }
            None => share(PIPE_NEXT).max(MIN_NEXT),
        }
    }

    /// Makes the set as small as its keys allow. It still grows. The later filters of a pipe were sized for no end, and stay.
    pub fn fit(&mut self) -> Result<(), BuildError> {
        if self.few.is_some() {
            return self.start_with(self.keys().max(1));
        }
        while (self.forecast.has_end() || self.offered.is_some()) && self.len.saturating_mul(2) <= self.capacity {
            self.close_period();
            if !self.last().fold() {
                break;
            }
            self.capacity /= 2;
        }
        Ok(())
    }

    /// Ends a period of the history: the last stage will have another size, or another one will be the last.
    fn close_period(&mut self) {
        let period = self.period();
        (self.since, self.offered_before) = (self.len, period.offered(self.len as f64));
        self.history.push(period);
    }

    /// Returns the current period. There is a stage.
    fn period(&self) -> Period {
        let last = &self.stages[self.stages.len() - 1];
        let builder = BloomFilter::builder().memory(last.memory_bytes()).probes(last.probes());
        Period {
            before: self.full + self.since,
            from: self.since,
            to: self.len,
            offered: self.offered_before,
            plan: builder.plan().expect("a filter of this size is there"),
            earlier: self.full_rate,
        }
    }

    /// The expected false-positive rate when the set had its first `keys` keys. Full stages count as they are now.
    pub fn expected_fpr(&self, keys: f64) -> f64 {
        let Some(last) = self.stages.last() else { return 0.0 };
        let offered = self.period().offered((keys - self.full as f64).clamp(0.0, self.len as f64));
        self.full_rate + (1.0 - self.full_rate) * last.expected_fpr(offered as u64)
    }

    /// The expected number of keys that were reported as seen by mistake since the set had `before` keys.
    pub fn expected_losses(&self, before: f64) -> f64 {
        let current = (!self.stages.is_empty()).then(|| self.period());
        let periods = self.history.iter().copied().chain(current);
        periods.map(|period| period.losses(before)).sum()
    }

    /// The false-positive rate of the bits that are set now. Reads all stages.
    pub fn current_fpr(&self) -> f64 {
        1.0 - self.stages.iter().map(|stage| 1.0 - stage.current_fpr()).product::<f64>()
    }
}

impl Period {
    /// Returns the keys that were offered to the filter when it had so many.
    ///
    /// A key that is lost had all its bits set, so the bits are those of all keys that were offered.
    fn offered(&self, keys: f64) -> f64 {
        let step = (keys - self.from as f64) / f64::from(STEPS);
        if step < 0.0 {
            return self.offered.min(keys);
        }
        let mut offered = self.offered;
        for _ in 0..STEPS {
            let start = self.plan.expected_fpr(offered as u64);
            let middle = self.plan.expected_fpr((offered + step / (1.0 - start).max(f64::EPSILON) / 2.0) as u64);
            offered += step / (1.0 - middle).max(f64::EPSILON);
        }
        offered
    }

    /// Returns the keys that the filter has when `keys` were offered to it, for which it is sized. With four standard deviations more,
    /// the last of so many keys start no other filter.
    fn capacity(&self, keys: u64) -> u64 {
        let step = (keys as f64 - self.offered) / f64::from(STEPS);
        let rate = |i: u32| self.plan.expected_fpr((self.offered + (f64::from(i) + 0.5) * step) as u64);
        let lost: f64 = (0..STEPS).map(|i| step * rate(i)).sum();
        let kept = self.from as f64 + keys as f64 - self.offered - lost;
        (kept + 4.0 * lost.max(0.0).sqrt()).ceil().min(keys as f64) as u64
    }

    /// Returns the expected losses in the period while the set had `before` keys or more.
    fn losses(&self, before: f64) -> f64 {
        let to = self.to as f64;
        let from = (self.from as f64 + (before - self.before as f64).max(0.0)).min(to);
        (self.offered(to) - self.offered(from)) / (1.0 - self.earlier).max(f64::EPSILON) - (to - from)
    }
}

/// Inserts the hashes that are not in the full stages into the last one; `new[i]` is `true` if hash i was new. Returns the number of
/// new ones.
fn insert_absent(full: &[BloomFilter], last: &mut BloomFilter, hashes: &[u64], new: &mut [bool]) -> usize {
    if find(full, hashes, new) == 0 {
        return last.insert_hashes(hashes, new);
    }
    let absent = absent(hashes, new);
    let mut marks = vec![false; absent.len()];
    let inserted = last.insert_hashes(&absent, &mut marks);
    let mut marks = marks.into_iter();
    new.iter_mut().for_each(|new| *new = !*new && marks.next().expect("each that is absent has a mark"));
    inserted
}

/// Inserts hashes, new or not.
fn insert_all(stage: &mut BloomFilter, hashes: &[u64]) {
    let mut new = [false; BATCH];
    hashes.chunks(BATCH).for_each(|hashes| _ = stage.insert_hashes(hashes, &mut new[..hashes.len()]));
}

/// Sets `found[i]` to `true` if hash i is in one of the stages, the newest first. Returns the number that were found.
fn find(stages: &[BloomFilter], hashes: &[u64], found: &mut [bool]) -> usize {
    let Some((last, others)) = stages.split_last() else {
        found.fill(false);
        return 0;
    };
    let mut count = last.contains_hashes(hashes, found);
    for stage in others.iter().rev() {
        if count == 0 {
            count = stage.contains_hashes(hashes, found);
            continue;
        }
        let absent = absent(hashes, found);
        let mut marks = vec![false; absent.len()];
        count += stage.contains_hashes(&absent, &mut marks);
        found.iter_mut().filter(|found| !**found).zip(marks).for_each(|(found, mark)| *found = mark);
    }
    count
}

/// Returns the hashes that were not found.
pub fn absent(hashes: &[u64], found: &[bool]) -> Vec<u64> {
    let mut absent = Vec::with_capacity(hashes.len());
    absent.extend(hashes.iter().zip(found).filter(|(_, found)| !**found).map(|(hash, _)| *hash));
    absent
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a pseudorandom hash, as splitmix64 does.
    fn hash(i: u64) -> u64 {
        let mut z = (i + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Inserts keys in batches, some of them twice, and returns the set and the number of keys that were new.
    fn filled(lines: Option<u64>, sampled: Option<u64>, keys: u64, rate: f64) -> (ForecastFilter, u64) {
        let mut set = ForecastFilter::new(lines, sampled, rate, 0, "");
        let mut inserted = 0;
        for start in (0..keys).step_by(1000) {
            let hashes: Vec<u64> = (start..keys.min(start + 1000)).map(hash).collect();
            let mut new = vec![false; hashes.len()];
            inserted += set.insert_hashes(&hashes, &mut new).unwrap();
            if start % 16_000 == 0 {
                assert_eq!(set.insert_hashes(&hashes, &mut new).unwrap(), 0);
                assert!(new.iter().all(|new| !new));
            }
            let memory: usize = set.stages().iter().map(BloomFilter::memory_bytes).sum();
            assert!(lines.is_some() || rate > 1e-6 || 8 * memory as u64 <= 130 * set.keys(), "{memory} at {start}");
        }
        assert_eq!(set.keys(), inserted as u64);
        (set, inserted as u64)
    }

    /// Whatever the forecast was, the set has the rate, and counts what it lost.
    #[test]
    fn wrong_forecasts_keep_the_rate() {
        // The first filter of a pipe is replaced by a larger one.
        const KEYS: u64 = 3 * KEPT;
        let forecasts = [
            (None, None),
            (Some(1), Some(1)),
            (Some(KEYS / 10), None),
            // These are sized at once.
            (Some(KEYS), Some(KEYS)),
            (Some(KEYS - KEYS / 4), Some(KEYS - KEYS / 4)),
            (Some(2 * KEYS), Some(KEYS / 3)),
            (Some(2 * KEYS), Some(KEYS)),
            (Some(100 * KEYS), Some(50 * KEYS)),
        ];
        let cases = forecasts.into_iter().flat_map(|forecast| [(0.01, forecast), (0.3, forecast)]);
        for (rate, (lines, sampled)) in cases {
            let (mut set, inserted) = filled(lines, sampled, KEYS, rate);
            for _ in 0..2 {
                // Each key is found, also those that were reported as seen by mistake.
                let keys: Vec<u64> = (0..KEYS).map(hash).collect();
                assert_eq!(set.contains_hashes(&keys, &mut vec![false; keys.len()]) as u64, KEYS);
                let others: Vec<u64> = (KEYS..2 * KEYS).map(hash).collect();
                let found = set.contains_hashes(&others, &mut vec![false; others.len()]) as f64;
                // Six standard deviations.
                let bound = |rate: f64| rate * KEYS as f64 + 6.0 * (rate * KEYS as f64).sqrt();
                assert!(found <= bound(rate), "{rate} {lines:?} {sampled:?}: {found}");
                assert!(found <= bound(set.expected_fpr(set.keys() as f64)), "{rate} {lines:?} {sampled:?}: {found}");
                let (lost, losses) = ((KEYS - inserted) as f64, set.expected_losses(0.0));
                assert!((lost - losses).abs() <= 6.0 * losses.sqrt(), "{rate} {lines:?} {sampled:?}: {lost} {losses}");
                set.fit().unwrap();
            }
        }
    }

    #[test]
    fn a_pipe_takes_few_filters() {
        // Each takes at most 130 bits a key, as `filled` compares.
        const KEYS: u64 = 10 * KEPT;
        let (mut set, inserted) = filled(None, None, KEYS, 1e-6);
        // More is lost with a probability below 1e-9.
        assert!(set.stages().len() == 1 && set.offered.is_none() && KEYS - inserted < 4, "{inserted}");
        for _ in 0..4 {
            set.len = set.capacity;
            set.grow().unwrap();
            let memory: usize = set.stages().iter().map(BloomFilter::memory_bytes).sum();
            assert!(8 * memory as u64 <= 130 * set.keys(), "{memory}");
        }
    }

    #[test]
    fn the_hashes_of_a_pipe_are_not_kept_for_many_repeats() {
        let (mut set, _) = filled(None, None, 2 * KEPT, 0.01);
        assert!(set.offered.is_some());
        let keys: Vec<u64> = (0..2 * KEPT).map(hash).collect();
        assert_eq!(set.insert_hashes(&keys, &mut vec![false; keys.len()]).unwrap(), 0);
        assert!(set.offered.is_none());
        let more: Vec<u64> = (2 * KEPT..4 * KEPT).map(hash).collect();
        set.insert_hashes(&more, &mut vec![false; more.len()]).unwrap();
        assert_eq!(set.stages().len(), 2);
        assert_eq!(set.contains_hashes(&keys, &mut vec![false; keys.len()]), keys.len());
        assert_eq!(set.contains_hashes(&more, &mut vec![false; more.len()]), more.len());
    }

    #[test]
    fn few_keys_take_little_memory() {
        for keys in [1, 1000, 100_000] {
            let (mut set, _) = filled(Some(10_000_000), None, keys, 1e-6);
            set.fit().unwrap();
            assert!(8 * set.stages()[0].memory_bytes() as u64 <= 45 * keys.max(20), "{keys}");
            // It still grows.
            let hashes: Vec<u64> = (keys..2 * keys).map(hash).collect();
            assert_eq!(set.insert_hashes(&hashes, &mut vec![false; hashes.len()]).unwrap() as u64, keys);
        }
    }
}
