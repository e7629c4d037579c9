//! `ScalableBloomFilter`: for when nobody knows how many keys will come.

use crate::batch::{self, FEW, PENDING, Pending};
use crate::error::BuildError;
use crate::growth::{Growth, combined};
use crate::kernel::Kernel;
use crate::key::Key;
use crate::params::{Builder, FromBuilder};
use crate::row;
use crate::words4::{BloomFilter, Words4};
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
/// There is no `union`: two full stages in one would have twice the keys that the stage keeps its rate with. Build filters that
/// are to be merged as [`BloomFilter`]s of the size that all keys need. Nor can a file be mapped: the blocks of its later stages are
/// not aligned in it.
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
/// assert!(seen.expected_fpr() < 0.01);
/// # Ok::<(), bloomline::BuildError>(())
/// ```
#[derive(Clone, PartialEq)]
pub struct ScalableBloomFilter {
    pub(crate) growth: Growth,
    /// At least one. All but the last are full, and never change.
    pub(crate) stages: Vec<BloomFilter>,
    /// Keys in the last stage. Not 0, unless it is the only one.
    pub(crate) in_last: u64,
}

impl ScalableBloomFilter {
    /// A filter whose first stage is for `expected_keys` keys, empty.
    ///
    /// Too small a guess costs stages, one for each doubling, and too large a guess memory.
    ///
    /// # Errors
    /// [`BuildError`], as from [`BloomFilter::new`].
    ///
    /// # Examples
    /// ```
    /// let filter = bloomline::ScalableBloomFilter::new(1_000_000, 0.01)?;
    /// assert_eq!((filter.keys(), filter.stages().len()), (0, 1));
    /// assert!(filter.stages()[0].capacity(0.01 / 8.0) >= 1_000_000);
    /// # Ok::<(), bloomline::BuildError>(())
    /// ```
    pub fn new(expected_keys: u64, false_positive_rate: f64) -> Result<Self, BuildError> {
        Self::builder().expected_keys(expected_keys).false_positive_rate(false_positive_rate).build()
    }

    /// A [`Builder`] for a filter of this type. It needs the expected keys of the first stage and the rate of all,
    /// takes a seed and a kernel, and refuses memory and probes ([`BuildError::NotKeysAndRate`]), which the stages
    /// find.
    ///
    /// # Examples
    /// ```
    /// use bloomline::ScalableBloomFilter;
    /// let filter: ScalableBloomFilter =
    ///     ScalableBloomFilter::builder().expected_keys(1000).false_positive_rate(0.01).random_seed().build()?;
    /// # Ok::<(), bloomline::BuildError>(())
    /// ```
    pub fn builder() -> Builder<Self> {
        Builder::new()
    }

    /// Inserts a key; whether it was new. O(length of the key + stages).
    ///
    /// # Errors
    /// [`BuildError`] if the key is new and needs a stage that cannot be built: the memory is at its end, or the
    /// stage's rate below what 64-bit hashes can keep. The key is not inserted then, and the filter stays as it is.
    ///
    /// # Examples
    /// ```
    /// let mut seen = bloomline::ScalableBloomFilter::new(1, 0.001)?;
    /// assert!(seen.insert("a")?);
    /// assert!(!seen.insert("a")?);
    /// assert!(seen.insert("b")?); // begins the second stage
    /// # Ok::<(), bloomline::BuildError>(())
    /// ```
    #[inline]
    pub fn insert<K: Key + ?Sized>(&mut self, key: &K) -> Result<bool, BuildError> {
        self.insert_hash(key.hash_with(self.hasher()))
    }

    /// [`insert`](Self::insert) of a key that was hashed elsewhere; see [`BloomFilter::insert_hash`]. O(stages).
    ///
    /// # Errors
    /// As [`insert`](Self::insert).
    pub fn insert_hash(&mut self, hash: u64) -> Result<bool, BuildError> {
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

    /// [`contains`](Self::contains) of a key that was hashed elsewhere; see [`BloomFilter::insert_hash`]. O(stages).
    pub fn contains_hash(&self, hash: u64) -> bool {
        // Newest first: it has half of all keys.
        self.stages.iter().rev().any(|stage| stage.contains_hash(hash))
    }

    /// Inserts many keys in order, as single calls would: `new[i]` tells whether `keys[i]` was new. Returns how many
    /// were new. Faster than single calls, as [`BloomFilter::insert_batch`] is. O(keys × stages).
    ///
    /// # Errors
    /// As [`insert`](Self::insert). The keys before the one that needs the next stage are inserted and marked. That key and
    /// those after it are not inserted, and are marked `false`.
    ///
    /// # Panics
    /// If `new` is not as long as `keys`.
    ///
    /// # Examples
    /// ```
    /// let mut seen = bloomline::ScalableBloomFilter::new(1, 0.001)?;
    /// let mut new = [false; 4];
    /// assert_eq!(seen.insert_batch(&["a", "b", "a", "c"], &mut new)?, 3);
    /// assert_eq!(new, [true, true, false, true]);
    /// # Ok::<(), bloomline::BuildError>(())
    /// ```
    #[track_caller]
    pub fn insert_batch<K: Key>(&mut self, keys: &[K], new: &mut [bool]) -> Result<usize, BuildError> {
        batch::check_lengths(keys.len(), new.len());
        // Those after an error are not come to.
        new.fill(false);
        let hasher = self.hasher().clone();
        batch::try_hashed(&hasher, keys, new, |hashes, new| self.insert_hashes(hashes, new))
    }

    /// [`insert_batch`](Self::insert_batch) of keys that were hashed elsewhere; see [`BloomFilter::insert_hash`].
    ///
    /// # Errors
    /// As [`insert_batch`](Self::insert_batch).
    ///
    /// # Panics
    /// If `new` is not as long as `hashes`.
    #[track_caller]
    pub fn insert_hashes(&mut self, hashes: &[u64], new: &mut [bool]) -> Result<usize, BuildError> {
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

    /// [`contains_batch`](Self::contains_batch) of keys that were hashed elsewhere; see [`BloomFilter::insert_hash`].
    /// O(hashes × stages).
    ///
    /// # Panics
    /// If `found` is not as long as `hashes`.
    #[track_caller]
    pub fn contains_hashes(&self, hashes: &[u64], found: &mut [bool]) -> usize {
        batch::check_lengths(hashes.len(), found.len());
        row::contains_many(self.stages.iter().rev(), hashes, found)
    }

    /// The stages, oldest first: at least one, and all full but the last.
    pub fn stages(&self) -> &[BloomFilter] {
        &self.stages
    }

    /// How many keys were new, exactly. (Keys that were taken for seen by mistake are not among them.)
    pub fn keys(&self) -> u64 {
        self.growth.keys(self.stages.len(), self.in_last)
    }

    /// The rate asked for, which all stages together never pass.
    pub fn false_positive_rate(&self) -> f64 {
        self.growth.rate
    }

    /// The false-positive rate to expect with the keys that are in, by the model. Takes microseconds a stage. (At high
    /// rates it is a little low: by 3 % at 0.5, by less below; [`current_fpr`](Self::current_fpr) is exact.)
    ///
    /// # Examples
    /// ```
    /// let mut seen = bloomline::ScalableBloomFilter::new(1000, 0.01)?;
    /// assert_eq!(seen.expected_fpr(), 0.0);
    /// for key in 0..7000u64 {
    ///     seen.insert(&key)?;
    /// }
    /// assert!(seen.expected_fpr() < 0.01 * (1.0 + 0.875 + 0.875 * 0.875) / 8.0); // three stages
    /// # Ok::<(), bloomline::BuildError>(())
    /// ```
    pub fn expected_fpr(&self) -> f64 {
        let last = self.stages.len() - 1;
        let keys = |stage| if stage == last { self.in_last } else { self.growth.capacity(stage) };
        combined(self.stages.iter().enumerate().map(|(i, stage)| stage.expected_fpr(keys(i))))
    }

    /// The size of the bits of all stages in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.stages.iter().map(BloomFilter::memory_bytes).sum()
    }

    row::as_one!(self, any: self.last(), all: self.stages.iter());

    /// Removes all keys, and all stages but the first. O(memory of the first).
    pub fn clear(&mut self) {
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
        let stage = stage(&self.growth, self.stages.len(), self.seed(), self.kernel(), self.key_name())?;
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

/// An empty stage.
fn stage(growth: &Growth, stage: usize, seed: u64, kernel: Kernel, key_name: &str) -> Result<BloomFilter, BuildError> {
    let builder = BloomFilter::builder().expected_keys(growth.capacity(stage)).false_positive_rate(growth.rate(stage));
    builder.seed(seed).kernel(kernel).key_name(key_name).build()
}

/// The filter of a builder for one writer, or for many.
fn build<F>(builder: &Builder<F>) -> Result<ScalableBloomFilter, BuildError> {
    let (first, rate) = builder.of_parts::<Words4>()?;
    let growth = Growth { first, rate };
    let first = builder.part(first, growth.rate(0)).build().map_err(|error: BuildError| error.of_whole(rate))?;
    Ok(ScalableBloomFilter { growth, stages: alloc::vec![first], in_last: 0 })
}

impl FromBuilder for ScalableBloomFilter {
    fn from_builder(builder: Builder<Self>) -> Result<Self, BuildError> {
        build(&builder)
    }
}

/// Equal stages, keys and rate; the kernel does not count.
impl Eq for ScalableBloomFilter {}

impl fmt::Debug for ScalableBloomFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScalableBloomFilter")
            .field("stages", &self.stages)
            .field("keys", &self.keys())
            .field("false_positive_rate", &self.growth.rate)
            .finish()
    }
}
