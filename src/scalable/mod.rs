//! `ScalableBloomFilter`: for when nobody knows how many keys will come.

use crate::batch::{self, FEW, PENDING, Pending};
use crate::block::BLOCK_BYTES;
use crate::bloom::BloomFilter;
use crate::collect::or_panic;
use crate::error::{BuildError, MergeError};
use crate::fpr;
use crate::growth::{Growth, MAX_MERGED, combined};
use crate::methods;
use crate::params::{Builder, FromBuilder};
use crate::row;
use crate::words4::Words4;
use alloc::vec::Vec;
use core::fmt;

#[cfg(feature = "std")]
mod atomic;
#[cfg(feature = "file")]
mod file;
#[cfg(feature = "rayon")]
mod parallel;

#[cfg(feature = "std")]
pub use atomic::AtomicScalableBloomFilter;

/// A filter that grows with its keys and keeps the false-positive rate, however many come.
///
/// It consists of [`BloomFilter`]s, its *stages*. Each takes twice as many keys as the one before, at 7/8 of its
/// rate, so that all of them together stay below the rate asked for. A key is new if no stage has it, and goes to the
/// last one; when that is full, the next new key begins another one. All use one hasher, so that a key is hashed once.
///
/// Growing costs memory: at 1 %, it takes 1.5 to 1.8 times as much as one filter that was sized for the same keys. A query
/// also reads a cache line in each stage that it visits, instead of one. Where a bound on the keys is known
/// within some 50 %, [`BloomFilter`] is the better choice. docs/DESIGN.md has the figures, and the source of the
/// scheme: Almeida, Baquero, Preguiça and Hutchison, "Scalable Bloom Filters", 2007.
///
/// A [`union`](Self::union) keeps the stages of both, and has the rates of both together. Where the keys of all filters that are to be
/// merged have a bound, [`BloomFilter`]s of that size are better. A file cannot be mapped: the blocks of its later stages are not
/// aligned in it.
///
/// # Examples
/// ```
/// use bloomline::ScalableBloomFilter;
///
/// let mut seen = ScalableBloomFilter::new(1000, 0.01)?; // keys of the first stage, and the rate of all
/// for page in 0..50_000u64 {
///     seen.insert(&page)?;
/// }
/// assert!((0..50_000u64).all(|page| seen.contains(&page)));
/// assert_eq!(seen.stages().len(), 6); // 1000 + 2000 + … + 32,000 keys
/// assert!(seen.estimated_fpr() < 0.01);
/// # Ok::<(), bloomline::BuildError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct ScalableBloomFilter(Stages);

impl ScalableBloomFilter {
    methods::building! { "bloomline::ScalableBloomFilter",
        /// A filter whose first stage is for `expected_keys` keys, empty.
        ///
        /// Too small a guess costs stages, one for each doubling, and too large a guess memory. Its builder takes keys and rate, and
        /// refuses memory and probes ([`BuildError::NotKeysAndRate`]), which the stages find.
    }
    methods::inserting!("bloomline::ScalableBloomFilter", one_writer that grows);
    #[cfg(feature = "rayon")]
    methods::par_inserting! { "bloomline::ScalableBloomFilter", "mut ", [mut], Result<(), BuildError>, "?",
        /// Inserts many [`Keys`](crate::Keys) on all cores of the current rayon pool. Needs 4 MiB beside the filter. O(keys × stages).
        ///
        /// Which key goes to which stage is left to chance, and so are the false positives. The rate is the same. The number of
        /// [`keys`](Self::keys) may be too high by up to 1024 for each thread and stage, as in an
        /// [`AtomicScalableBloomFilter`](AtomicScalableBloomFilter::keys).
        ///
        /// # Errors
        /// As [`insert`](Self::insert). Some of the keys are inserted then.
    }
    methods::asking!("bloomline::ScalableBloomFilter");
    methods::telling!();

    /// How many keys were new, exactly. (Keys that were taken for seen by mistake are not among them.) After a
    /// [`union`](Self::union) it is a bound from above, for keys that both filters had count twice.
    pub fn keys(&self) -> u64 {
        self.0.keys()
    }

    /// The false-positive rate with the keys that are in, by the model: a few microseconds a stage, where
    /// [`current_fpr`](Self::current_fpr) reads the filter. At high rates it is a little low: by 3 % at 0.5, by less below.
    ///
    /// # Examples
    /// ```
    /// let mut seen = bloomline::ScalableBloomFilter::new(1000, 0.01)?;
    /// assert_eq!(seen.estimated_fpr(), 0.0);
    /// for key in 0..7000u64 {
    ///     seen.insert(&key)?;
    /// }
    /// assert!(seen.estimated_fpr() < 0.01 * (1.0 + 0.875 + 0.875 * 0.875) / 8.0); // three stages
    /// # Ok::<(), bloomline::BuildError>(())
    /// ```
    pub fn estimated_fpr(&self) -> f64 {
        self.0.estimated_fpr()
    }

    /// The stages: at least one, of which the last one takes keys. Those that a [`union`](Self::union) brought come first, and then
    /// its own, oldest first.
    pub fn stages(&self) -> &[BloomFilter] {
        &self.0.stages
    }

    /// Makes this filter hold the keys of both, and go on growing as before. It takes copies of the other one's stages, so
    /// [`false_positive_rate`](Self::false_positive_rate) becomes the rate of both together: 2 % of two filters at 1 %. A query visits
    /// all stages. O(memory of the other filter).
    ///
    /// # Errors
    /// [`MergeError`] if the filters differ in seed or in the name of their keys, or would have more than 256 stages. Nothing is
    /// changed then.
    ///
    /// # Examples
    /// ```
    /// use bloomline::ScalableBloomFilter;
    /// let (mut a, mut b) = (ScalableBloomFilter::new(1000, 0.01)?, ScalableBloomFilter::new(10, 0.01)?);
    /// a.extend(0..5000u64);
    /// b.extend(4000..9000u64);
    /// a.union(&b)?;
    /// assert!((0..9000u64).all(|key| a.contains(&key)));
    /// assert!(a.false_positive_rate().unwrap() < 0.02);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn union(&mut self, other: &Self) -> Result<(), MergeError> {
        self.0.union(&other.0)
    }

    /// Puts the last stage, which may have much room, into the smallest size that keeps its rate. It then takes no more keys: new ones
    /// go to a stage for a 64th of the keys that are in, and on from there. O(memory of the last stage).
    ///
    /// # Errors
    /// [`BuildError`] if the next stage cannot be built. Nothing is changed then.
    ///
    /// # Examples
    /// ```
    /// let mut seen = bloomline::ScalableBloomFilter::new(1_000_000, 0.01)?;
    /// seen.extend(0..1000u64);
    /// seen.shrink_to_fit()?;
    /// assert!(seen.memory_bytes() < 20_000 && (0..1000u64).all(|key| seen.contains(&key)));
    /// # Ok::<(), bloomline::BuildError>(())
    /// ```
    pub fn shrink_to_fit(&mut self) -> Result<(), BuildError> {
        self.0.shrink_to_fit()
    }
}

methods::filing!(ScalableBloomFilter, "bloomline::ScalableBloomFilter");
methods::collecting!(ScalableBloomFilter, grows);
#[cfg(feature = "rayon")]
methods::par_collecting!(ScalableBloomFilter, grows);
methods::as_filter!(ScalableBloomFilter, one_writer that grows);

/// What does the work of a [`ScalableBloomFilter`]. The kernel does not count where two are compared.
#[derive(Clone, PartialEq, Eq)]
struct Stages {
    growth: Growth,
    /// At least one of its own, after those that were merged. All but the last never change, and its own are full.
    stages: Vec<BloomFilter>,
    /// Keys in the last stage. Not 0, unless it is the only one of its own.
    in_last: u64,
}

impl Stages {
    fn insert_hash(&mut self, hash: u64) -> Result<bool, BuildError> {
        if self.contains_hash(hash) {
            return Ok(false);
        }
        if self.room() == 0 {
            self.grow()?;
        }
        let new = self.last_mut().insert_hash(hash);
        self.in_last += u64::from(new);
        Ok(new)
    }

    fn contains_hash(&self, hash: u64) -> bool {
        // Newest first: it has half of all keys.
        self.stages.iter().rev().any(|stage| stage.contains_hash(hash))
    }

    #[track_caller]
    fn insert_hashes(&mut self, hashes: &[u64], new: &mut [bool]) -> Result<usize, BuildError> {
        batch::check_lengths(hashes.len(), new.len());
        // A stage that is alone takes what it surely has room for straight from the slice.
        let direct = if self.stages.len() == 1 { self.room().min(hashes.len()) } else { 0 };
        let mut count = self.insert_in_last(&hashes[..direct], &mut new[..direct]);
        let (hashes, new) = (&hashes[direct..], &mut new[direct..]);
        if hashes.is_empty() {
            return Ok(count);
        }
        new.fill(false);
        if hashes.len() <= FEW {
            for (&hash, new) in hashes.iter().zip(new) {
                *new = self.insert_hash(hash)?;
                count += usize::from(*new);
            }
            return Ok(count);
        }
        let mut pending = Pending::new();
        for (hashes, new) in hashes.chunks(PENDING).zip(new.chunks_mut(PENDING)) {
            pending.take(hashes);
            count += self.insert_pending(&mut pending, new)?;
        }
        Ok(count)
    }

    /// Inserts hashes of which nobody asks whether they were new. The number of keys does.
    fn set_hashes(&mut self, hashes: &[u64]) {
        or_panic(self.try_set_hashes(hashes));
    }

    fn try_set_hashes(&mut self, hashes: &[u64]) -> Result<(), BuildError> {
        let mut new = [false; PENDING];
        hashes.chunks(PENDING).try_for_each(|hashes| self.insert_hashes(hashes, &mut new[..hashes.len()]).map(drop))
    }

    #[track_caller]
    fn contains_hashes(&self, hashes: &[u64], found: &mut [bool]) -> usize {
        batch::check_lengths(hashes.len(), found.len());
        row::contains_many(self.stages.iter().rev().map(|stage| &stage.0), hashes, found)
    }

    fn keys(&self) -> u64 {
        (0..self.stages.len()).map(|stage| self.keys_in(stage)).fold(0, u64::saturating_add)
    }

    fn expected_keys(&self) -> Option<u64> {
        Some(self.growth.first)
    }

    fn false_positive_rate(&self) -> Option<f64> {
        let merged = self.stages[..self.growth.merged].iter().filter_map(BloomFilter::false_positive_rate);
        Some(combined(merged.chain([self.growth.rate])))
    }

    fn estimated_fpr(&self) -> f64 {
        combined(self.stages.iter().enumerate().map(|(i, stage)| stage.expected_fpr(self.keys_in(i))))
    }

    /// The keys in a stage.
    fn keys_in(&self, stage: usize) -> u64 {
        match stage {
            _ if stage < self.growth.merged => self.stages[stage].expected_keys().unwrap_or(0),
            _ if stage == self.stages.len() - 1 => self.in_last,
            _ => self.growth.capacity(stage),
        }
    }

    fn union(&mut self, other: &Self) -> Result<(), MergeError> {
        let (ours, theirs) = (&self.last().0, &other.last().0);
        ours.purpose.check_same_keys(&theirs.purpose)?;
        if ours.params.seed != theirs.params.seed {
            return Err(MergeError::Seed);
        }
        let stages = self.stages.len() + other.stages.len();
        if stages > MAX_MERGED {
            return Err(MergeError::Stages { stages, most: MAX_MERGED });
        }
        // What a stage was made for counts no more, nor one without keys.
        let brought = other.stages.iter().enumerate().filter(|(i, _)| other.keys_in(*i) > 0).map(|(i, stage)| {
            let mut stage = stage.clone();
            let keys = other.keys_in(i);
            stage.0.purpose.keys = Some(keys);
            stage.0.purpose.rate = Some(stage.expected_fpr(keys));
            stage
        });
        let brought: Vec<BloomFilter> = brought.collect();
        self.growth.merged += brought.len();
        self.stages.splice(0..0, brought);
        Ok(())
    }

    fn shrink_to_fit(&mut self) -> Result<(), BuildError> {
        let (own, keys) = (self.stages.len() - 1, self.in_last);
        let growth = Growth {
            first: (self.keys() / 64).max(64),
            rate: self.growth.rest(self.stages.len()),
            merged: self.stages.len(),
        };
        let next = BloomFilter(self.last().0.like(growth.first, growth.rate(growth.merged))?);
        // By the model, as a stage is sized: its bits may be better than what it promises.
        let (rate, blocks, probes) = (self.growth.rate(own), self.last().block_count(), self.last().probes());
        let keeps = |times: &u32| fpr::rate((blocks >> times) as u64, probes, keys) <= rate;
        let times = (1..=blocks.trailing_zeros()).take_while(keeps).count() as u32;
        if keys == 0 || (blocks - (blocks >> times)) * BLOCK_BYTES <= next.memory_bytes() {
            return Ok(());
        }
        for stage in self.growth.merged..own {
            let purpose = (self.growth.capacity(stage), self.growth.rate(stage));
            let stage = &mut self.stages[stage].0.purpose;
            (stage.keys, stage.rate) = (Some(purpose.0), Some(purpose.1));
        }
        let last = self.last_mut();
        last.0.fold_times(times);
        last.0.purpose.keys = Some(keys);
        last.0.purpose.rate = Some(last.expected_fpr(keys));
        self.stages.push(next);
        (self.growth, self.in_last) = (growth, 0);
        Ok(())
    }

    fn memory_bytes(&self) -> usize {
        self.stages.iter().map(BloomFilter::memory_bytes).sum()
    }

    /// No key is in two stages.
    fn estimated_keys(&self) -> f64 {
        self.stages.iter().map(BloomFilter::estimated_keys).sum()
    }

    row::as_one!(self, any: self.last(), all: self.stages.iter());

    fn populate(&mut self) {
        self.last_mut().populate();
    }

    fn clear(&mut self) {
        self.stages.drain(..self.growth.merged);
        self.growth.merged = 0;
        self.stages.truncate(1);
        self.last_mut().clear();
        self.in_last = 0;
    }

    fn last(&self) -> &BloomFilter {
        &self.stages[self.stages.len() - 1]
    }

    fn last_mut(&mut self) -> &mut BloomFilter {
        let last = self.stages.len() - 1;
        &mut self.stages[last]
    }

    /// New keys that the last stage still takes, as far as they can be counted in a slice.
    fn room(&self) -> usize {
        usize::try_from(self.growth.capacity(self.stages.len() - 1) - self.in_last).unwrap_or(usize::MAX)
    }

    /// Begins the next stage.
    fn grow(&mut self) -> Result<(), BuildError> {
        let (keys, rate) = (self.growth.capacity(self.stages.len()), self.growth.rate(self.stages.len()));
        let stage = BloomFilter(self.last().0.like(keys, rate)?);
        self.stages.try_reserve(1).map_err(|_| BuildError::OutOfMemory { bytes: stage.memory_bytes() })?;
        self.stages.push(stage);
        self.in_last = 0;
        Ok(())
    }

    /// At most [`room`](Self::room) hashes.
    fn insert_in_last(&mut self, hashes: &[u64], new: &mut [bool]) -> usize {
        let count = self.last_mut().insert_hashes(hashes, new);
        self.in_last += count as u64;
        count
    }

    /// Inserts a portion, whose marks in `new` are `false` yet. Hashes that a stage has beforehand are dropped, all at
    /// once, for inserting others does not take them away; what is left is inserted in order.
    fn insert_pending(&mut self, pending: &mut Pending, new: &mut [bool]) -> Result<usize, BuildError> {
        for stage in self.stages.iter().rev() {
            pending.drop_seen(|hashes, seen| stage.contains_hashes(hashes, seen));
        }
        let mut count = 0;
        while !pending.hashes().is_empty() {
            if self.room() == 0 {
                self.grow()?;
            }
            count += pending.pass(self.room(), new, |hashes, new| self.insert_in_last(hashes, new));
            // Repeats of a key that went in just now neither take up room nor ask for the next stage.
            pending.drop_seen(|hashes, seen| self.last().contains_hashes(hashes, seen));
        }
        Ok(count)
    }
}

impl FromBuilder for Stages {
    fn from_builder<F>(builder: Builder<F>) -> Result<Self, BuildError> {
        let (first, rate) = builder.of_parts::<Words4>()?;
        let growth = Growth { first, rate, merged: 0 };
        let stage = builder.part(first, growth.rate(0)).build().map_err(|error: BuildError| error.of_whole(rate))?;
        Ok(Self { growth, stages: alloc::vec![stage], in_last: 0 })
    }
}

impl fmt::Debug for Stages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScalableBloomFilter")
            .field("stages", &self.stages)
            .field("keys", &self.keys())
            .field("false_positive_rate", &self.false_positive_rate())
            .finish()
    }
}
