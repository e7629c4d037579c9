//! `Fixed`: a filter of one size, in any layout. Each public filter type of one size is a struct around it, with the methods of
//! methods.rs.

use crate::batch;
use crate::builder::options::{Builder, FromBuilder};
use crate::builder::purpose::Purpose;
use crate::error::{BuildError, MergeError};
use crate::kernel::{Call, Kernel};
use crate::key::hash::KeyHasher;
use crate::layout::access::{Access, Exclusive, Shared};
use crate::layout::operations::{Insert, Operations, Query};
use crate::layout::params::Params;
use crate::layout::storage::{self, AtomicBlocks, Blocks, Memory, MemoryMut};
use crate::rate::fpr;
use core::fmt;

/// `L` is the layout, which determines the bits of a key. `A` is the access: one writer, which inserts with `&mut self`, or
/// many, which insert with `&self`.
pub(crate) struct Fixed<L: Operations<A>, A: Access> {
    pub(crate) params: Params,
    pub(crate) hasher: KeyHasher,
    pub(crate) purpose: Purpose,
    pub(crate) blocks: L::Memory,
    query: Call<Query<L, A>>,
    insert: Call<Insert<L, A>>,
}

impl<L: Operations<A>, A: Access> Fixed<L, A> {
    /// Assembles a filter from its parts.
    pub(crate) fn of(params: Params, hasher: KeyHasher, purpose: Purpose, blocks: L::Memory) -> Self {
        let (kernel, probes) = (params.kernel, L::kernel_probes(params.size()));
        let (query, insert) = (Call::new(kernel, probes), Call::new(kernel, probes));
        Self { params, hasher, purpose, blocks, query, insert }
    }

    /// Creates an empty filter.
    pub(crate) fn from_params(params: Params, purpose: Purpose) -> Result<Self, BuildError> {
        let blocks = L::Memory::empty(Blocks::zeroed(params.blocks, params.pages)?);
        Ok(Self::of(params, KeyHasher::new(params.seed), purpose, blocks))
    }

    /// Creates an empty filter of another size, whose keys have the same hashes.
    pub(crate) fn like(&self, keys: u64, rate: f64) -> Result<Self, BuildError> {
        let purpose = Purpose { keys: Some(keys), rate: Some(rate), ..self.purpose.clone() };
        let Params { seed, kernel, pages, .. } = self.params;
        let builder = Builder::<()> { purpose, seed, kernel: Some(kernel.kernel()), pages, ..Builder::new() };
        Self::from_builder(builder)
    }

    #[inline]
    pub(crate) fn contains_hash(&self, hash: u64) -> bool {
        self.query.run((&self.params, &self.blocks), hash)
    }

    #[track_caller]
    pub(crate) fn contains_hashes(&self, hashes: &[u64], found: &mut [bool]) -> usize {
        batch::check_lengths(hashes.len(), found.len());
        L::contains_many(&self.params, &self.blocks, hashes, found)
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        // At most the bytes of MAX_BLOCKS blocks, which fit a usize.
        self.params.size().bytes(L::FORMAT) as usize
    }

    pub(crate) fn probes(&self) -> u32 {
        self.params.probes
    }

    pub(crate) fn expected_keys(&self) -> Option<u64> {
        self.purpose.keys
    }

    pub(crate) fn false_positive_rate(&self) -> Option<f64> {
        self.purpose.rate
    }

    pub(crate) fn key_name(&self) -> &str {
        &self.purpose.key_name
    }

    pub(crate) fn seed(&self) -> u64 {
        self.params.seed
    }

    pub(crate) fn hasher(&self) -> &KeyHasher {
        &self.hasher
    }

    pub(crate) fn kernel(&self) -> Kernel {
        self.params.kernel.kernel()
    }

    pub(crate) fn expected_fpr(&self, keys: u64) -> f64 {
        L::expected_fpr(self.params.size(), keys)
    }

    pub(crate) fn capacity(&self, false_positive_rate: f64) -> u64 {
        L::capacity(self.params.size(), false_positive_rate)
    }

    pub(crate) fn current_fpr(&self) -> f64 {
        L::current_fpr(self.params.size(), self.words())
    }

    pub(crate) fn fill_ratio(&self) -> f64 {
        L::fill(self.params.size(), &self.blocks)
    }

    pub(crate) fn estimated_keys(&self) -> f64 {
        fpr::keys_from_zeros(self.fill_ratio(), L::touched(self.params.size()))
    }

    pub(crate) fn populate(&mut self) {
        self.blocks.populate();
    }

    pub(crate) fn clear(&mut self) {
        self.blocks.clear();
    }

    pub(crate) fn words(&self) -> impl Iterator<Item = [u64; 8]> + Clone {
        self.blocks.words()
    }

    /// Returns the number of folds of each filter until both have one size.
    fn folds_to_meet(&self, other: &Self) -> Result<(u32, u32), MergeError> {
        self.purpose.check_same_keys(&other.purpose)?;
        if L::FOLDS {
            return self.params.folds_to_meet(&other.params);
        }
        self.params.check_same(&other.params).map(|()| (0, 0))
    }

    /// Returns an error unless the filters have the same kind of keys in the same bits.
    pub(crate) fn check_same(&self, other: &Self) -> Result<(), MergeError> {
        self.purpose.check_same_keys(&other.purpose)?;
        self.params.check_same(&other.params)
    }
}

impl<L: Operations<A>, A: Access> FromBuilder for Fixed<L, A> {
    fn from_builder<F>(builder: Builder<F>) -> Result<Self, BuildError> {
        Self::from_params(builder.params::<L>()?, builder.purpose)
    }
}

/// One writer.
impl<L: Operations<Exclusive, Memory: MemoryMut>> Fixed<L, Exclusive> {
    #[inline]
    pub(crate) fn insert_hash(&mut self, hash: u64) -> bool {
        self.insert.run((&self.params, &mut self.blocks), hash)
    }

    #[track_caller]
    pub(crate) fn insert_hashes(&mut self, hashes: &[u64], new: &mut [bool]) -> usize {
        batch::check_lengths(hashes.len(), new.len());
        L::insert_many(&self.params, &mut self.blocks, hashes, new)
    }

    /// Inserts hashes without answers.
    pub(crate) fn set_hashes(&mut self, hashes: &[u64]) {
        L::set_many(&self.params, &mut self.blocks, hashes);
    }

    pub(crate) fn union(&mut self, other: &Self) -> Result<(), MergeError> {
        let (ours, theirs) = self.folds_to_meet(other)?;
        self.fold_times(ours);
        self.blocks.merge(storage::folded(other.words(), theirs), L::united);
        Ok(())
    }

    /// Folds the filter. For a layout that [folds](crate::layout::shape::Shape::FOLDS), and a number of blocks that does.
    pub(crate) fn fold_times(&mut self, times: u32) {
        if times == 0 {
            return;
        }
        self.params = self.params.folded(times);
        let words = storage::folded(self.words(), times);
        self.blocks = Blocks::from_words(self.params.blocks, self.params.pages, words).into();
        let capacity = |rate| L::capacity(self.params.size(), rate);
        self.purpose.keys = self.purpose.rate.map(capacity).filter(|&keys| keys > 0);
    }
}

/// Many writers.
impl<L: Operations<Shared, Memory = AtomicBlocks>> Fixed<L, Shared> {
    #[inline]
    pub(crate) fn insert_hash(&self, hash: u64) -> bool {
        self.insert.run((&self.params, &self.blocks), hash)
    }

    #[track_caller]
    pub(crate) fn insert_hashes(&self, hashes: &[u64], new: &mut [bool]) -> usize {
        batch::check_lengths(hashes.len(), new.len());
        L::insert_many(&self.params, &self.blocks, hashes, new)
    }

    /// Inserts hashes without answers.
    pub(crate) fn set_hashes(&self, hashes: &[u64]) {
        L::set_many(&self.params, &self.blocks, hashes);
    }

    pub(crate) fn union(&self, other: &Self) -> Result<(), MergeError> {
        let (0, theirs) = self.folds_to_meet(other)? else {
            return Err(MergeError::Blocks { ours: self.params.blocks, theirs: other.params.blocks });
        };
        // What the caller knows to be in `other` it sees by coherence.
        self.blocks.unite(storage::folded(other.words(), theirs));
        Ok(())
    }
}

impl<L: Operations<A, Memory: Clone>, A: Access> Clone for Fixed<L, A> {
    fn clone(&self) -> Self {
        Self::of(self.params, self.hasher.clone(), self.purpose.clone(), self.blocks.clone())
    }
}

/// Compares geometry, seed and bits, but not the kernel or the purpose.
impl<L: Operations<A, Memory: PartialEq>, A: Access> PartialEq for Fixed<L, A> {
    fn eq(&self, other: &Self) -> bool {
        self.params.check_same(&other.params).is_ok() && self.blocks == other.blocks
    }
}

impl<L: Operations<A, Memory: PartialEq>, A: Access> Eq for Fixed<L, A> {}

impl<L> From<Fixed<L, Exclusive>> for Fixed<L, Shared>
where
    L: Operations<Exclusive, Memory: Into<Blocks>> + Operations<Shared>,
{
    fn from(Fixed { params, hasher, purpose, blocks, .. }: Fixed<L, Exclusive>) -> Self {
        let blocks: Blocks = blocks.into();
        Self::of(params, hasher, purpose, blocks.into())
    }
}

impl<L> From<Fixed<L, Shared>> for Fixed<L, Exclusive>
where
    L: Operations<Exclusive> + Operations<Shared, Memory: Into<Blocks>>,
{
    fn from(Fixed { params, hasher, purpose, blocks, .. }: Fixed<L, Shared>) -> Self {
        let blocks: Blocks = blocks.into();
        Self::of(params, hasher, purpose, blocks.into())
    }
}

/// Omits the seed, which may be a secret.
impl<L: Operations<A>, A: Access> fmt::Debug for Fixed<L, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Params { blocks, probes, kernel, .. } = self.params;
        f.debug_struct(L::NAME)
            .field("block_count", &blocks)
            .field("probes", &probes)
            .field("kernel", &kernel.kernel())
            .finish_non_exhaustive()
    }
}

/// The filter as a file.
#[cfg(feature = "file")]
mod as_file {
    use super::*;
    use crate::file::{self, FileErrorKind, Loaded, Parts, Stored};
    use crate::kernel::block::WORDS;
    use std::io::{self, Read, Write};

    impl<L: Operations<A>, A: Access> Stored for Fixed<L, A> {
        fn write_to(&self, writer: impl Write) -> io::Result<()> {
            file::write(L::FORMAT, self.parts(), writer)
        }

        fn file_bytes(&self) -> usize {
            // Little more than the blocks, which are in memory.
            self.parts().file_bytes() as usize
        }

        fn read(reader: impl Read, length: Option<u64>) -> Result<Self, FileErrorKind> {
            file::read(L::FORMAT, reader, length).map(Self::from)
        }
    }

    impl<L: Operations<A>, A: Access> Fixed<L, A> {
        pub(crate) fn parts(&self) -> Parts<'_, impl Iterator<Item = [u64; WORDS]> + Clone> {
            Parts { params: &self.params, hasher: &self.hasher, purpose: &self.purpose, words: self.words() }
        }
    }

    impl<L: Operations<A>, A: Access> From<Loaded> for Fixed<L, A> {
        fn from(Loaded { params, hasher, purpose, blocks }: Loaded) -> Self {
            Self::of(params, hasher, purpose, blocks.into())
        }
    }
}
