//! `Filter`: what all filter types do, written once.

use crate::batch;
use crate::error::{BuildError, MergeError};
use crate::fpr;
use crate::hash::KeyHasher;
use crate::key::Key;
use crate::operations::{Access, Calls, Exclusive, Keyed, Operations, Shared};
use crate::params::{Builder, FromBuilder, Params};
use crate::purpose::Purpose;
use crate::storage::{self, AtomicBlocks, Blocks, Memory, MemoryMut};
use core::fmt;

/// The methods of all filter types, which are aliases of this one: [`BloomFilter`](crate::BloomFilter) and
/// [`AtomicBloomFilter`](crate::AtomicBloomFilter), and those of the module `variants`.
///
/// `L` is the layout, which says where the bits of a key are. `A` is the access: one writer, who inserts with `&mut
/// self`, or many, who insert with `&self`.
pub struct Filter<L: Operations<A>, A: Access> {
    pub(crate) params: Params,
    pub(crate) hasher: KeyHasher,
    pub(crate) purpose: Purpose,
    pub(crate) blocks: L::Memory,
    calls: Calls<L, A>,
}

impl<L: Operations<A>, A: Access> Filter<L, A> {
    /// A filter of its parts.
    pub(crate) fn of(params: Params, hasher: KeyHasher, purpose: Purpose, blocks: L::Memory) -> Self {
        let calls = Calls::new(&params);
        Self { params, hasher, purpose, blocks, calls }
    }

    /// An empty filter.
    pub(crate) fn from_params(params: Params, purpose: Purpose) -> Result<Self, BuildError> {
        let blocks = L::Memory::empty(Blocks::zeroed(params.blocks)?);
        Ok(Self::of(params, KeyHasher::new(params.seed), purpose, blocks))
    }

    /// Inserts a hash, for whoever has the filter alone.
    #[cfg(feature = "variants")]
    #[inline]
    pub(crate) fn insert_alone(&mut self, hash: u64) -> bool {
        self.calls.insert(&self.params, A::place(&mut self.blocks), hash)
    }

    /// Inserts as many hashes as `new` has places, for whoever has the filter alone.
    pub(crate) fn insert_many_alone(&mut self, hashes: &[u64], new: &mut [bool]) -> usize {
        L::insert_many(&self.params, A::place(&mut self.blocks), hashes, new)
    }
}

/// Sizes, queries, and what a filter says about itself.
impl<L: Operations<A>, A: Access> Filter<L, A> {
    /// A filter for `expected_keys` distinct keys, empty.
    ///
    /// The size is the least that keeps the rate. It comes from the exact model of the layout, not from the classic
    /// formula. A [`BloomFilter`](crate::BloomFilter) takes up to 1/128 more, so that it [folds](crate::BloomFilter::fold).
    /// Takes microseconds; see [`Builder::build`](crate::Builder::build).
    ///
    /// # Errors
    /// [`BuildError`]: no keys, a rate that is not between 0 and 1 or that 64-bit hashes cannot keep, or a size that the
    /// system does not have.
    ///
    /// # Examples
    /// ```
    /// let filter = bloomline::BloomFilter::new(1_000_000, 0.01)?;
    /// assert!(filter.expected_fpr(1_000_000) <= 0.01);
    /// assert!(filter.memory_bytes() < 1_270_000);
    /// # Ok::<(), bloomline::BuildError>(())
    /// ```
    pub fn new(expected_keys: u64, false_positive_rate: f64) -> Result<Self, BuildError> {
        Builder::new().expected_keys(expected_keys).false_positive_rate(false_positive_rate).build()
    }

    /// Returns whether a hash may have been inserted: always `true` if it was, and `true` at the false-positive rate if it was
    /// not. All 64 bits of a hash must be well mixed, for the high ones choose the block.
    #[inline]
    pub fn contains_hash(&self, hash: u64) -> bool {
        self.calls.contains(&self.params, &self.blocks, hash)
    }

    /// Queries many hashes: `found[i]` is what [`contains_hash`](Self::contains_hash) says of `hashes[i]`. Returns how many
    /// were found.
    ///
    /// Beyond the caches one and a half to five times as fast as single calls, for lines are prefetched. Batches of some hundred
    /// hashes and more are best.
    ///
    /// # Panics
    /// If `found` is not as long as `hashes`.
    #[track_caller]
    pub fn contains_hashes(&self, hashes: &[u64], found: &mut [bool]) -> usize {
        batch::check_lengths(hashes.len(), found.len());
        L::contains_many(&self.params, &self.blocks, hashes, found)
    }

    /// The size of the bits in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.params.size().bytes(L::FORMAT)
    }

    /// Bits set for each key.
    pub fn probes(&self) -> u32 {
        self.params.probes
    }

    /// The number of distinct keys that the filter is made for, if it was made for a number. A file keeps it.
    pub fn expected_keys(&self) -> Option<u64> {
        self.purpose.keys
    }

    /// The false-positive rate that the filter is made for, if it was made for a rate. A file keeps it.
    pub fn false_positive_rate(&self) -> Option<f64> {
        self.purpose.rate
    }

    /// The name for the kind of keys, as [`Builder::key_name`](crate::Builder::key_name) has it; empty if there is none. A
    /// file keeps it.
    pub fn key_name(&self) -> &str {
        &self.purpose.key_name
    }

    /// The false-positive rate to expect once `keys` distinct keys are in: the model's, at any load.
    /// Takes microseconds.
    pub fn expected_fpr(&self, keys: u64) -> f64 {
        L::expected_fpr(self.params.size(), keys)
    }

    /// The share of bits that are set, 0 to 1; of a counting filter, the share of counters that are not 0. Reads the
    /// whole filter, O(memory), except in a classic filter with one writer, which counts its bits as they are set.
    pub fn fill_ratio(&self) -> f64 {
        L::fill(self.params.size(), &self.blocks)
    }

    /// The number of distinct keys that were inserted, estimated from [`fill_ratio`](Self::fill_ratio); infinite when
    /// all bits are set. In a `BloomFilter`, its standard deviation is below 0.2 % from a million keys on. As costly
    /// as `fill_ratio`.
    pub fn estimated_keys(&self) -> f64 {
        fpr::keys_from_zeros(self.fill_ratio(), L::touched(self.params.size()))
    }

    /// Makes the system provide all of the filter's memory at once, on all cores of the current rayon pool where the feature `rayon`
    /// is on. No bit changes. O(memory).
    ///
    /// A new filter takes memory as it is written to, so the first inserts pay for its pages. In a filter of 1 GiB they took 30 to 96 ns
    /// a key, and 20 to 26 later. After `populate`, which took 0.2 s, they took 19 to 23 from the first key on. Call it where the
    /// first keys must be as fast as the others, such as in a server. It gains nothing where far fewer keys come than the filter has
    /// pages.
    ///
    /// # Examples
    /// ```
    /// let mut filter = bloomline::BloomFilter::new(1_000_000, 0.01)?;
    /// filter.populate();
    /// assert!(filter.insert("a"));
    /// # Ok::<(), bloomline::BuildError>(())
    /// ```
    pub fn populate(&mut self) {
        self.blocks.populate();
    }

    /// Removes all keys. O(memory).
    pub fn clear(&mut self) {
        self.blocks.clear();
    }

    /// How often each filter folds until both are of one size.
    fn folds_to_meet(&self, other: &Self) -> Result<(u32, u32), MergeError> {
        if L::FOLDS {
            return self.params.folds_to_meet(&other.params);
        }
        self.params.check_same(&other.params).map(|()| (0, 0))
    }

    pub(crate) fn words(&self) -> impl Iterator<Item = [u64; 8]> + Clone {
        self.blocks.words()
    }
}

/// Keys in place of hashes.
impl<L: Operations<A> + Keyed, A: Access> Filter<L, A> {
    /// The seed of the hash.
    pub fn seed(&self) -> u64 {
        self.params.seed
    }

    /// The hasher in use, to hash keys once for several calls of `insert_hash` and `contains_hash`.
    pub fn hasher(&self) -> &KeyHasher {
        &self.hasher
    }
}

/// One writer.
impl<L: Operations<Exclusive, Memory: MemoryMut>> Filter<L, Exclusive> {
    /// Inserts a hash, made by [`hasher`](Self::hasher) or by a hash function of your own. Returns whether it was new, like
    /// `HashSet::insert`. All 64 bits of a hash must be well mixed, for the high ones choose the block.
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
        self.calls.insert(&self.params, &mut self.blocks, hash)
    }

    /// Inserts many hashes in order. `new[i]` is `true` if `hashes[i]` was new, also where hashes repeat within the batch.
    /// Returns how many were new. See [`contains_hashes`](Self::contains_hashes) for the cost.
    ///
    /// # Panics
    /// If `new` is not as long as `hashes`.
    #[track_caller]
    pub fn insert_hashes(&mut self, hashes: &[u64], new: &mut [bool]) -> usize {
        batch::check_lengths(hashes.len(), new.len());
        L::insert_many(&self.params, &mut self.blocks, hashes, new)
    }

    /// Makes this filter hold the keys of both: the very filter that both sets of keys would have made. (A counting filter
    /// adds up the counters, to at most 15.) O(memory).
    ///
    /// Two [`BloomFilter`](crate::BloomFilter)s may differ in size if one [folds](Self::fold) to the size of the other. The
    /// result has the smaller size.
    ///
    /// # Errors
    /// [`MergeError`] if the filters differ in probes or seed, or in size and neither folds to the other's. Nothing is
    /// changed then.
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
        let (ours, theirs) = self.folds_to_meet(other)?;
        self.fold_times(ours);
        self.blocks.merge(storage::folded(other.words(), theirs), L::united);
        Ok(())
    }

    /// For a layout that [folds](crate::operations::Shape::FOLDS), and a number of blocks that does.
    pub(crate) fn fold_times(&mut self, times: u32) {
        if times == 0 {
            return;
        }
        self.params = self.params.folded(times);
        self.blocks = Blocks::from_words(self.params.blocks, storage::folded(self.words(), times)).into();
        let capacity = |rate| L::capacity(self.params.size(), rate);
        self.purpose.keys = self.purpose.rate.map(capacity).filter(|&keys| keys > 0);
    }
}

/// One writer, and keys in place of hashes.
impl<L: Operations<Exclusive, Memory: MemoryMut> + Keyed> Filter<L, Exclusive> {
    /// Inserts a key. Returns whether it was new, like `HashSet::insert`.
    ///
    /// `false` means seen before, or a false positive: all bits of the key were set already. O(length of the key).
    #[inline]
    pub fn insert<K: Key + ?Sized>(&mut self, key: &K) -> bool {
        self.insert_hash(key.hash_with(&self.hasher))
    }

    /// Inserts many keys in order. `new[i]` is `true` if `keys[i]` was new, also where keys repeat within the batch.
    /// Returns how many were new. See [`contains_hashes`](Self::contains_hashes) for the cost.
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
        let Self { params, hasher, blocks, .. } = self;
        batch::hashed(hasher, keys, new, |hashes, new| L::insert_many(params, blocks, hashes, new))
    }
}

/// Many writers.
impl<L: Operations<Shared, Memory = AtomicBlocks>> Filter<L, Shared> {
    /// Inserts a hash. Returns whether this call made it seen. What racing callers are told is the type's promise:
    /// [`AtomicBloomFilter`](crate::AtomicBloomFilter) has one claim for each key. See
    /// [`contains_hash`](Self::contains_hash) for what hashes must be.
    #[inline]
    pub fn insert_hash(&self, hash: u64) -> bool {
        self.calls.insert(&self.params, &self.blocks, hash)
    }

    /// Inserts many hashes in order. `new[i]` is `true` if this call made `hashes[i]` seen. Of equal hashes in the batch only
    /// the first can be. Returns how many it made seen. See
    /// [`contains_hashes`](Self::contains_hashes) for the cost.
    ///
    /// # Panics
    /// If `new` is not as long as `hashes`.
    #[track_caller]
    pub fn insert_hashes(&self, hashes: &[u64], new: &mut [bool]) -> usize {
        batch::check_lengths(hashes.len(), new.len());
        L::insert_many(&self.params, &self.blocks, hashes, new)
    }

    /// Adds the keys of another filter, while other threads insert into either. Keys whose insert into `other` had
    /// not returned before this call may be missing. O(memory). The other filter may be larger if it folds to this one's
    /// size, as in [`BloomFilter::union`](crate::BloomFilter::union).
    ///
    /// # Errors
    /// [`MergeError`] if the filters differ in probes or seed, or in size and the other does not fold to this one's. Nothing
    /// is changed then.
    pub fn union(&self, other: &Self) -> Result<(), MergeError> {
        let (0, theirs) = self.folds_to_meet(other)? else {
            return Err(MergeError::Blocks { ours: self.params.blocks, theirs: other.params.blocks });
        };
        // What the caller knows to be in `other` it sees by coherence.
        self.blocks.unite(storage::folded(other.words(), theirs));
        Ok(())
    }
}

/// Many writers, and keys in place of hashes.
impl<L: Operations<Shared, Memory = AtomicBlocks> + Keyed> Filter<L, Shared> {
    /// Inserts a key. Returns whether this call made it seen. What racing callers are told is the type's promise: of all threads
    /// that insert a key into an [`AtomicBloomFilter`](crate::AtomicBloomFilter), at most one gets `true`.
    ///
    /// `false` means seen before, being inserted by another thread, or a false positive. O(length of the key).
    #[inline]
    pub fn insert<K: Key + ?Sized>(&self, key: &K) -> bool {
        self.insert_hash(key.hash_with(&self.hasher))
    }

    /// Inserts many keys in order. `new[i]` is `true` if this call made `keys[i]` seen. Of equal keys in the batch only the
    /// first can be. Returns how many it made seen. See [`contains_hashes`](Self::contains_hashes)
    /// for the cost.
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
}

impl<L: Operations<A>, A: Access> FromBuilder for Filter<L, A> {
    fn from_builder(builder: Builder<Self>) -> Result<Self, BuildError> {
        Self::from_params(builder.params::<L>()?, builder.purpose)
    }
}

/// Of a filter that other threads write to meanwhile, each word is copied at some moment during the call: a key whose insert this
/// thread knows to have returned is in the copy, and one that races with the call may be in it with all, some or none of its bits.
/// O(memory).
///
/// # Examples
/// ```
/// let seen = bloomline::AtomicBloomFilter::new(1000, 0.01)?;
/// seen.insert("a");
/// let copy = seen.clone();
/// assert!(copy == seen);
/// assert!(seen.insert("b") && !copy.contains("b") && copy != seen);
/// # Ok::<(), bloomline::BuildError>(())
/// ```
impl<L: Operations<A, Memory: Clone>, A: Access> Clone for Filter<L, A> {
    fn clone(&self) -> Self {
        Self::of(self.params, self.hasher.clone(), self.purpose.clone(), self.blocks.clone())
    }
}

/// Equal geometry, seed and bits. The kernel does not count, nor what the filter is made for. While other threads insert, each word is
/// compared at some moment during the call: so "equal" is certain only of filters that nobody writes to.
impl<L: Operations<A, Memory: PartialEq>, A: Access> PartialEq for Filter<L, A> {
    fn eq(&self, other: &Self) -> bool {
        self.params.check_same(&other.params).is_ok() && self.blocks == other.blocks
    }
}

impl<L: Operations<A, Memory: PartialEq>, A: Access> Eq for Filter<L, A> {}

/// Shares a filter among writers, without copying.
impl<L> From<Filter<L, Exclusive>> for Filter<L, Shared>
where
    L: Operations<Exclusive, Memory: Into<Blocks>> + Operations<Shared>,
{
    fn from(Filter { params, hasher, purpose, blocks, .. }: Filter<L, Exclusive>) -> Self {
        let blocks: Blocks = blocks.into();
        Self::of(params, hasher, purpose, blocks.into())
    }
}

/// Freezes a shared filter without copying. Owning it proves that every insert has finished. A classic filter has its bits
/// counted, O(memory).
impl<L> From<Filter<L, Shared>> for Filter<L, Exclusive>
where
    L: Operations<Exclusive> + Operations<Shared, Memory: Into<Blocks>>,
{
    fn from(Filter { params, hasher, purpose, blocks, .. }: Filter<L, Shared>) -> Self {
        let blocks: Blocks = blocks.into();
        Self::of(params, hasher, purpose, blocks.into())
    }
}

/// Without the seed, which may be a secret.
impl<L: Operations<A>, A: Access> fmt::Debug for Filter<L, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Params { blocks, probes, kernel, .. } = self.params;
        f.debug_struct(L::NAME)
            .field("block_count", &blocks)
            .field("probes", &probes)
            .field("kernel", &kernel.kernel())
            .finish_non_exhaustive()
    }
}
