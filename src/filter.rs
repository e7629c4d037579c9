//! `BloomFilter`: one writer, any number of readers.

use crate::atomic_filter::AtomicBloomFilter;
use crate::batch::{self, Probe};
use crate::block::{BLOCK_BYTES, Block, Pattern, WORDS};
use crate::common::common_methods;
use crate::error::{BuildError, MergeError};
#[cfg(feature = "file")]
use crate::file::{Loaded, file_methods};
use crate::hash::KeyHasher;
use crate::kernel::{self, Isa, Task};
use crate::key::Key;
use crate::params::{FromParams, Params};
use crate::storage::Blocks;

/// A set of keys that may say "seen" of a key it has not seen, at a known rate, and never the reverse.
///
/// Inserting needs `&mut self`; any number of threads may query a shared reference. For inserting from many threads at
/// once there is [`AtomicBloomFilter`]; they turn into each other with `From`, without copying. Every key sets 4, 8,
/// 12 or 16 bits in a single block of 64 bytes, so that a query or an insert touches one cache line.
///
/// # Examples
/// ```
/// use bloomline::BloomFilter;
///
/// let mut seen = BloomFilter::new(1_000_000, 0.001)?;
/// assert!(seen.insert("https://example.org/")); // new
/// assert!(!seen.insert("https://example.org/")); // seen
/// assert!(seen.contains("https://example.org/"));
/// # Ok::<(), bloomline::BuildError>(())
/// ```
#[derive(Clone)]
pub struct BloomFilter {
    pub(crate) params: Params,
    pub(crate) hasher: KeyHasher,
    pub(crate) blocks: Blocks,
}

common_methods!(BloomFilter);
#[cfg(feature = "file")]
file_methods!(BloomFilter, "bloomline::", "", WORDS4, |_filter| 0);

impl BloomFilter {
    /// Inserts a key; whether it was new, as `HashSet::insert` says it.
    ///
    /// `false` means seen before, or a false positive: all bits of the key were set already. O(length of the key).
    #[inline]
    pub fn insert<K: Key + ?Sized>(&mut self, key: &K) -> bool {
        self.insert_hash(key.hash(&self.hasher))
    }

    /// Whether a key may have been inserted: always `true` if it was, and `true` at the false-positive rate if it was
    /// not. O(length of the key).
    #[inline]
    pub fn contains<K: Key + ?Sized>(&self, key: &K) -> bool {
        self.contains_hash(key.hash(&self.hasher))
    }

    /// [`insert`](Self::insert) of a key that was hashed elsewhere, by [`hasher`](Self::hasher) or by a hash of your
    /// own: all 64 bits must be well mixed, for the high ones choose the block.
    ///
    /// # Examples
    /// ```
    /// # let mut filter = bloomline::BloomFilter::new(1000, 0.01)?;
    /// let hash = filter.hasher().bytes(b"key");
    /// assert!(filter.insert_hash(hash));
    /// assert!(filter.contains("key"));
    /// # Ok::<(), bloomline::BuildError>(())
    /// ```
    #[inline]
    pub fn insert_hash(&mut self, hash: u64) -> bool {
        let (block, rest) = self.blocks.locate_mut(hash);
        kernel::run_inline(self.params.probes, InsertOne { block, pattern: Pattern::new(rest) })
    }

    /// [`contains`](Self::contains) of a key that was hashed elsewhere; see [`insert_hash`](Self::insert_hash).
    #[inline]
    pub fn contains_hash(&self, hash: u64) -> bool {
        let (block, rest) = self.blocks.locate(hash);
        kernel::run_inline(self.params.probes, ContainsOne { block, pattern: Pattern::new(rest) })
    }

    /// Inserts many keys in order: `new[i]` tells whether `keys[i]` was new, right also for keys that repeat within the
    /// batch. Returns how many were new.
    ///
    /// Several times faster than single calls: lines are prefetched and the kernel is chosen once for the batch, so
    /// batches of some hundred keys and more are best.
    ///
    /// # Panics
    /// If `new` is not as long as `keys`.
    ///
    /// # Examples
    /// ```
    /// # let mut filter = bloomline::BloomFilter::new(1000, 0.0001)?;
    /// let mut new = [false; 4];
    /// assert_eq!(filter.insert_batch(&["a", "b", "a", "c"], &mut new), 3);
    /// assert_eq!(new, [true, true, false, true]);
    /// # Ok::<(), bloomline::BuildError>(())
    /// ```
    #[track_caller]
    pub fn insert_batch<K: Key>(&mut self, keys: &[K], new: &mut [bool]) -> usize {
        batch::check_lengths(keys.len(), new.len());
        let Self { params, hasher, blocks } = self;
        batch::hashed(hasher, keys, new, |hashes, new| {
            params.kernel.run(params.probes, InsertMany { blocks, hashes, new })
        })
    }

    /// Queries many keys: `found[i]` is what [`contains`](Self::contains) says of `keys[i]`. Returns how many were
    /// found. See [`insert_batch`](Self::insert_batch) for the cost.
    ///
    /// # Panics
    /// If `found` is not as long as `keys`.
    ///
    /// # Examples
    /// ```
    /// # let mut filter = bloomline::BloomFilter::new(1000, 0.0001)?;
    /// filter.insert(&1u64);
    /// let mut found = [false; 3];
    /// assert_eq!(filter.contains_batch(&[0u64, 1, 2], &mut found), 1);
    /// assert_eq!(found, [false, true, false]);
    /// # Ok::<(), bloomline::BuildError>(())
    /// ```
    #[track_caller]
    pub fn contains_batch<K: Key>(&self, keys: &[K], found: &mut [bool]) -> usize {
        batch::check_lengths(keys.len(), found.len());
        batch::hashed(&self.hasher, keys, found, |hashes, found| self.contains_hashes(hashes, found))
    }

    /// [`insert_batch`](Self::insert_batch) of keys that were hashed elsewhere; see [`insert_hash`](Self::insert_hash).
    ///
    /// # Panics
    /// If `new` is not as long as `hashes`.
    #[track_caller]
    pub fn insert_hashes(&mut self, hashes: &[u64], new: &mut [bool]) -> usize {
        batch::check_lengths(hashes.len(), new.len());
        self.params.kernel.run(self.params.probes, InsertMany { blocks: &mut self.blocks, hashes, new })
    }

    /// [`contains_batch`](Self::contains_batch) of keys that were hashed elsewhere; see
    /// [`insert_hash`](Self::insert_hash).
    ///
    /// # Panics
    /// If `found` is not as long as `hashes`.
    #[track_caller]
    pub fn contains_hashes(&self, hashes: &[u64], found: &mut [bool]) -> usize {
        batch::check_lengths(hashes.len(), found.len());
        self.params.kernel.run(self.params.probes, ContainsMany { blocks: &self.blocks, hashes, found })
    }

    /// Makes this filter hold the keys of both: bit by bit the filter that both sets of keys would have made. O(memory).
    ///
    /// # Errors
    /// [`MergeError`] if the filters differ in size, probes or seed; nothing is changed then.
    ///
    /// # Examples
    /// ```
    /// use bloomline::BloomFilter;
    /// let (mut a, mut b) = (BloomFilter::new(1000, 0.01)?, BloomFilter::new(1000, 0.01)?);
    /// a.insert("a");
    /// b.insert("b");
    /// a.union(&b)?;
    /// assert!(a.contains("a") && a.contains("b"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn union(&mut self, other: &Self) -> Result<(), MergeError> {
        self.merge(other, |ours, theirs| *ours |= theirs)
    }

    /// Keeps the bits that both filters have: no key of both is lost, but keys of one alone may stay, at a rate
    /// somewhat above that of a filter of the common keys. O(memory).
    ///
    /// # Errors
    /// [`MergeError`] if the filters differ in size, probes or seed; nothing is changed then.
    pub fn intersect(&mut self, other: &Self) -> Result<(), MergeError> {
        self.merge(other, |ours, theirs| *ours &= theirs)
    }

    fn merge(&mut self, other: &Self, word: impl Fn(&mut u64, u64)) -> Result<(), MergeError> {
        self.params.check_same(&other.params)?;
        for (ours, theirs) in self.blocks.as_mut_slice().iter_mut().zip(other.blocks.as_slice()) {
            ours.0.iter_mut().zip(theirs.0).for_each(|(ours, theirs)| word(ours, theirs));
        }
        Ok(())
    }

    /// Removes all keys. O(memory).
    pub fn clear(&mut self) {
        self.blocks.as_mut_slice().fill(Block::default());
    }

    pub(crate) fn words(&self) -> impl Iterator<Item = [u64; WORDS]> {
        self.blocks.words()
    }
}

#[cfg(feature = "file")]
impl From<Loaded> for BloomFilter {
    fn from(loaded: Loaded) -> Self {
        Self { params: loaded.params, hasher: loaded.hasher, blocks: loaded.blocks }
    }
}

impl FromParams for BloomFilter {
    fn from_params(params: Params) -> Result<Self, BuildError> {
        Ok(Self { hasher: KeyHasher::new(params.seed), blocks: Blocks::zeroed(params.blocks)?, params })
    }
}

/// Freezes a shared filter, without copying. By ownership every insert has happened before.
impl From<AtomicBloomFilter> for BloomFilter {
    fn from(filter: AtomicBloomFilter) -> Self {
        Self { params: filter.params, hasher: filter.hasher, blocks: filter.blocks.into() }
    }
}

/// Equal geometry, seed and bits; the kernel does not count.
impl PartialEq for BloomFilter {
    fn eq(&self, other: &Self) -> bool {
        self.params.check_same(&other.params).is_ok() && self.blocks.as_slice() == other.blocks.as_slice()
    }
}

impl Eq for BloomFilter {}

struct InsertOne<'a> {
    block: &'a mut Block,
    pattern: Pattern,
}

impl Task for InsertOne<'_> {
    type Output = bool;
    #[inline(always)]
    fn run<I: Isa, const B: usize>(self, isa: I) -> bool {
        isa.insert::<B>(self.block, self.pattern)
    }
}

struct ContainsOne<'a> {
    block: &'a Block,
    pattern: Pattern,
}

impl Task for ContainsOne<'_> {
    type Output = bool;
    #[inline(always)]
    fn run<I: Isa, const B: usize>(self, isa: I) -> bool {
        isa.contains::<B>(self.block, self.pattern)
    }
}

struct InsertMany<'a> {
    blocks: &'a mut Blocks,
    hashes: &'a [u64],
    new: &'a mut [bool],
}

impl Task for InsertMany<'_> {
    type Output = usize;
    #[inline(always)]
    fn run<I: Isa, const B: usize>(self, isa: I) -> usize {
        batch::run(Inserting::<I, B> { isa, blocks: self.blocks }, self.hashes, self.new)
    }
}

struct ContainsMany<'a> {
    blocks: &'a Blocks,
    hashes: &'a [u64],
    found: &'a mut [bool],
}

impl Task for ContainsMany<'_> {
    type Output = usize;
    #[inline(always)]
    fn run<I: Isa, const B: usize>(self, isa: I) -> usize {
        batch::run(Querying::<I, B> { isa, blocks: self.blocks }, self.hashes, self.found)
    }
}

struct Inserting<'a, I, const B: usize> {
    isa: I,
    blocks: &'a mut Blocks,
}

impl<I: Isa, const B: usize> Probe for Inserting<'_, I, B> {
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
        let (block, rest) = self.blocks.locate_mut(hash);
        self.isa.insert::<B>(block, Pattern::new(rest))
    }
}

struct Querying<'a, I, const B: usize> {
    isa: I,
    blocks: &'a Blocks,
}

impl<I: Isa, const B: usize> Probe for Querying<'_, I, B> {
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
        self.isa.contains::<B>(block, Pattern::new(rest))
    }
}
