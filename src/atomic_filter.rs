//! `AtomicBloomFilter`: any number of writers and readers, and one claim for each key.

use crate::batch::{self, Probe};
use crate::block::{BLOCK_BYTES, LANES, Pattern, WORDS};
use crate::common::common_methods;
use crate::error::{BuildError, MergeError};
#[cfg(feature = "file")]
use crate::file::{Loaded, file_methods};
use crate::filter::BloomFilter;
use crate::hash::KeyHasher;
use crate::kernel::{self, Isa, Task};
use crate::key::Key;
use crate::params::{FromParams, Params};
use crate::storage::{AtomicBlock, AtomicBlocks};
use crate::sync::Ordering;

/// A [`BloomFilter`] that any number of threads insert into and query at once, without locks.
///
/// # Consistency
/// What racing callers may see:
///
/// - **No false negative.** Once `insert` has returned, `contains` is `true` in every thread that learned of it: by a
///   message, a lock, a join, or any other way that orders the two calls.
/// - **One claim for each key.** Of any number of threads that insert the same key, at most one gets `true`; exactly
///   one does, unless other keys set the last bits that the key lacks at that very moment, which reads like any false
///   positive. So `if filter.insert(url) { visit(url) }` never visits twice.
/// - A `contains` that races with an `insert` of the same key may say either. A key of which it once said `true` stays
///   `true`, for bits are only ever set.
/// - `insert` and `contains` are lock-free: at most four atomic loads and four `fetch_or`s, no loop that waits for others.
/// - [`union`](Self::union) may race with all of them: it only sets bits. [`fill_ratio`](Self::fill_ratio) and what
///   rests on it see each word at some moment during the call.
///
/// The claim in short: a key has one word in each of four lanes. `insert` reads all four; the one of the last lane that
/// lacks bits is the *decider*. It then completes the lacking words from the first lane up, the decider last, and the
/// key is new if this very `fetch_or` set a bit of the decider. Whoever sees a decider complete has all words before
/// it complete, so no second thread can win at an earlier one. docs/DESIGN.md has the proof.
///
/// The orderings: loads are Acquire and the writes of a claim are AcqRel, which makes "sees the decider complete"
/// imply "all words before it are complete". A query's loads are Relaxed: an insert that the caller learned of happened
/// before them, and coherence does the rest.
///
/// # Examples
/// ```
/// use bloomline::AtomicBloomFilter;
/// use std::sync::atomic::{AtomicUsize, Ordering};
///
/// let seen = AtomicBloomFilter::new(10_000, 1e-6)?;
/// let visits = AtomicUsize::new(0);
/// std::thread::scope(|scope| {
///     for _ in 0..4 {
///         scope.spawn(|| {
///             for page in 0..1000u32 {
///                 if seen.insert(&page) {
///                     visits.fetch_add(1, Ordering::Relaxed);
///                 }
///             }
///         });
///     }
/// });
/// assert_eq!(visits.into_inner(), 1000);
/// # Ok::<(), bloomline::BuildError>(())
/// ```
pub struct AtomicBloomFilter {
    pub(crate) params: Params,
    pub(crate) hasher: KeyHasher,
    pub(crate) blocks: AtomicBlocks,
}

common_methods!(AtomicBloomFilter);
#[cfg(feature = "file")]
file_methods!(
    AtomicBloomFilter,
    "bloomline::",
    "Other threads may insert meanwhile: a key whose insert this thread knows to have returned is in; of one that races \
     with the call all bits, some or none are, and the checksum is of what was written.",
    WORDS4,
    |_filter| 0
);

impl AtomicBloomFilter {
    /// Inserts a key; whether this call claimed it: `true` for at most one of all the threads that insert it.
    ///
    /// `false` means seen before, being inserted by another thread, or a false positive. O(length of the key).
    #[inline]
    pub fn insert<K: Key + ?Sized>(&self, key: &K) -> bool {
        self.insert_hash(key.hash(&self.hasher))
    }

    /// Whether a key may have been inserted: always `true` if it was, and `true` at the false-positive rate if it was
    /// not. O(length of the key).
    #[inline]
    pub fn contains<K: Key + ?Sized>(&self, key: &K) -> bool {
        self.contains_hash(key.hash(&self.hasher))
    }

    /// [`insert`](Self::insert) of a key that was hashed elsewhere; see [`BloomFilter::insert_hash`].
    #[inline]
    pub fn insert_hash(&self, hash: u64) -> bool {
        let (block, rest) = self.blocks.locate(hash);
        kernel::run_inline(self.params.probes, InsertOne { block, pattern: Pattern::new(rest) })
    }

    /// [`contains`](Self::contains) of a key that was hashed elsewhere; see [`BloomFilter::insert_hash`].
    #[inline]
    pub fn contains_hash(&self, hash: u64) -> bool {
        let (block, rest) = self.blocks.locate(hash);
        kernel::run_inline(self.params.probes, ContainsOne { block, pattern: Pattern::new(rest) })
    }

    /// Inserts many keys in order: `new[i]` tells whether this call claimed `keys[i]`, which of several equal keys in
    /// the batch can be the first alone. Returns how many were claimed. See [`BloomFilter::insert_batch`] for the cost.
    ///
    /// # Panics
    /// If `new` is not as long as `keys`.
    ///
    /// # Examples
    /// ```
    /// # let filter = bloomline::AtomicBloomFilter::new(1000, 0.0001)?;
    /// let mut new = [false; 4];
    /// assert_eq!(filter.insert_batch(&["a", "b", "a", "c"], &mut new), 3);
    /// assert_eq!(new, [true, true, false, true]);
    /// # Ok::<(), bloomline::BuildError>(())
    /// ```
    #[track_caller]
    pub fn insert_batch<K: Key>(&self, keys: &[K], new: &mut [bool]) -> usize {
        batch::check_lengths(keys.len(), new.len());
        batch::hashed(&self.hasher, keys, new, |hashes, new| self.insert_hashes(hashes, new))
    }

    /// Queries many keys: `found[i]` is what [`contains`](Self::contains) says of `keys[i]`. Returns how many were
    /// found.
    ///
    /// # Panics
    /// If `found` is not as long as `keys`.
    #[track_caller]
    pub fn contains_batch<K: Key>(&self, keys: &[K], found: &mut [bool]) -> usize {
        batch::check_lengths(keys.len(), found.len());
        batch::hashed(&self.hasher, keys, found, |hashes, found| self.contains_hashes(hashes, found))
    }

    /// [`insert_batch`](Self::insert_batch) of keys that were hashed elsewhere; see [`BloomFilter::insert_hash`].
    ///
    /// # Panics
    /// If `new` is not as long as `hashes`.
    #[track_caller]
    pub fn insert_hashes(&self, hashes: &[u64], new: &mut [bool]) -> usize {
        batch::check_lengths(hashes.len(), new.len());
        self.params.kernel.run(self.params.probes, InsertMany { blocks: &self.blocks, hashes, new })
    }

    /// [`contains_batch`](Self::contains_batch) of keys that were hashed elsewhere; see [`BloomFilter::insert_hash`].
    ///
    /// # Panics
    /// If `found` is not as long as `hashes`.
    #[track_caller]
    pub fn contains_hashes(&self, hashes: &[u64], found: &mut [bool]) -> usize {
        batch::check_lengths(hashes.len(), found.len());
        self.params.kernel.run(self.params.probes, ContainsMany { blocks: &self.blocks, hashes, found })
    }

    /// Adds the keys of another filter, while other threads insert into either. Keys whose insert into `other` had
    /// not returned before this call may or may not come along. O(memory).
    ///
    /// # Errors
    /// [`MergeError`] if the filters differ in size, probes or seed; nothing is changed then.
    pub fn union(&self, other: &Self) -> Result<(), MergeError> {
        self.params.check_same(&other.params)?;
        for (ours, theirs) in self.blocks.as_slice().iter().zip(other.blocks.as_slice()) {
            for (ours, theirs) in ours.0.iter().zip(&theirs.0) {
                // Relaxed: bits carry no other data; what the caller knows to be in `other` it sees by coherence.
                let theirs = theirs.load(Ordering::Relaxed);
                // Relaxed suffices to read: it only saves the write.
                if theirs & !ours.load(Ordering::Relaxed) != 0 {
                    // AcqRel, as in `insert`: must not break the chain that a decider's readers rely on. A
                    // read-modify-write of any ordering would continue it; this one also keeps the rule simple.
                    ours.fetch_or(theirs, Ordering::AcqRel);
                }
            }
        }
        Ok(())
    }

    /// Keeps the bits that both filters have; see [`BloomFilter::intersect`]. O(memory).
    ///
    /// Takes `&mut self`: bits that vanish would break every promise to racing callers.
    ///
    /// # Errors
    /// [`MergeError`] if the filters differ in size, probes or seed; nothing is changed then.
    pub fn intersect(&mut self, other: &Self) -> Result<(), MergeError> {
        self.params.check_same(&other.params)?;
        for (ours, theirs) in self.blocks.as_slice().iter().zip(other.blocks.as_slice()) {
            for (ours, theirs) in ours.0.iter().zip(&theirs.0) {
                // Relaxed: `&mut self` rules out racing callers.
                ours.fetch_and(theirs.load(Ordering::Relaxed), Ordering::Relaxed);
            }
        }
        Ok(())
    }

    /// Removes all keys. O(memory).
    pub fn clear(&mut self) {
        for word in self.blocks.as_slice().iter().flat_map(|block| &block.0) {
            // Relaxed: `&mut self` rules out racing callers.
            word.store(0, Ordering::Relaxed);
        }
    }

    pub(crate) fn words(&self) -> impl Iterator<Item = [u64; WORDS]> {
        self.blocks.words()
    }
}

#[cfg(feature = "file")]
impl From<Loaded> for AtomicBloomFilter {
    fn from(loaded: Loaded) -> Self {
        BloomFilter::from(loaded).into()
    }
}

impl FromParams for AtomicBloomFilter {
    fn from_params(params: Params) -> Result<Self, BuildError> {
        BloomFilter::from_params(params).map(Self::from)
    }
}

/// Shares a filter among writers, without copying.
impl From<BloomFilter> for AtomicBloomFilter {
    fn from(filter: BloomFilter) -> Self {
        Self { params: filter.params, hasher: filter.hasher, blocks: filter.blocks.into() }
    }
}

impl AtomicBlock {
    /// Sets the bits of the pattern; whether this call claimed the key. See "Consistency".
    #[inline(always)]
    pub(crate) fn insert<const B: usize>(&self, pattern: Pattern) -> bool {
        let chosen: [(usize, u64); LANES] = core::array::from_fn(|lane| pattern.word_and_mask::<B>(lane));
        // All loads come before the first write, in any order. Acquire: whoever reads a word as complete that another
        // thread's claim completed has that thread's earlier words complete before its own writes.
        let lacking = chosen.map(|(word, mask)| self.0[word].load(Ordering::Acquire) & mask != mask);
        let Some(decider) = lacking.iter().rposition(|&lacking| lacking) else {
            return false;
        };
        for lane in 0..decider {
            if lacking[lane] {
                let (word, mask) = chosen[lane];
                // Relaxed would do, as the decider's Release covers it; AcqRel costs the same on x86-64 and keeps this
                // word readable as "complete" by itself.
                self.0[word].fetch_or(mask, Ordering::AcqRel);
            }
        }
        let (word, mask) = chosen[decider];
        // Release: the words before it are complete for whoever reads this one. Acquire: who loses here has the
        // winner's words before its return.
        self.0[word].fetch_or(mask, Ordering::AcqRel) & mask != mask
    }

    /// Whether all bits of the pattern are set.
    #[inline(always)]
    fn contains<const B: usize>(&self, pattern: Pattern) -> bool {
        let lacking = (0..LANES).fold(0, |lacking, lane| {
            let (word, mask) = pattern.word_and_mask::<B>(lane);
            // Relaxed: an insert that the caller knows of happened before this load, so by coherence it is seen.
            lacking | mask & !self.0[word].load(Ordering::Relaxed)
        });
        lacking == 0
    }
}

struct InsertOne<'a> {
    block: &'a AtomicBlock,
    pattern: Pattern,
}

impl Task for InsertOne<'_> {
    type Output = bool;
    #[inline(always)]
    fn run<I: Isa, const B: usize>(self, _: I) -> bool {
        self.block.insert::<B>(self.pattern)
    }
}

struct ContainsOne<'a> {
    block: &'a AtomicBlock,
    pattern: Pattern,
}

impl Task for ContainsOne<'_> {
    type Output = bool;
    #[inline(always)]
    fn run<I: Isa, const B: usize>(self, _: I) -> bool {
        self.block.contains::<B>(self.pattern)
    }
}

struct InsertMany<'a> {
    blocks: &'a AtomicBlocks,
    hashes: &'a [u64],
    new: &'a mut [bool],
}

impl Task for InsertMany<'_> {
    type Output = usize;
    #[inline(always)]
    fn run<I: Isa, const B: usize>(self, _: I) -> usize {
        batch::run(Inserting::<B> { blocks: self.blocks }, self.hashes, self.new)
    }
}

struct ContainsMany<'a> {
    blocks: &'a AtomicBlocks,
    hashes: &'a [u64],
    found: &'a mut [bool],
}

impl Task for ContainsMany<'_> {
    type Output = usize;
    #[inline(always)]
    fn run<I: Isa, const B: usize>(self, _: I) -> usize {
        batch::run(Querying::<B> { blocks: self.blocks }, self.hashes, self.found)
    }
}

struct Inserting<'a, const B: usize> {
    blocks: &'a AtomicBlocks,
}

impl<const B: usize> Probe for Inserting<'_, B> {
    const WRITES: bool = true;

    #[inline(always)]
    fn memory_bytes(&self) -> usize {
        self.blocks.len() * BLOCK_BYTES
    }

    #[inline(always)]
    fn prefetch(&self, hash: u64) {
        self.blocks.prefetch(hash);
    }

    #[inline(always)]
    fn probe(&mut self, hash: u64) -> bool {
        let (block, rest) = self.blocks.locate(hash);
        block.insert::<B>(Pattern::new(rest))
    }
}

struct Querying<'a, const B: usize> {
    blocks: &'a AtomicBlocks,
}

impl<const B: usize> Probe for Querying<'_, B> {
    const WRITES: bool = false;

    #[inline(always)]
    fn memory_bytes(&self) -> usize {
        self.blocks.len() * BLOCK_BYTES
    }

    #[inline(always)]
    fn prefetch(&self, hash: u64) {
        self.blocks.prefetch(hash);
    }

    #[inline(always)]
    fn probe(&mut self, hash: u64) -> bool {
        let (block, rest) = self.blocks.locate(hash);
        block.contains::<B>(Pattern::new(rest))
    }
}
