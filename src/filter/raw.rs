//! `RawFilter`: a filter of one size, in any layout. Each public filter type of one size is a struct around it, with the methods of
//! methods.rs.

use crate::batch;
use crate::builder::options::{Builder, FromBuilder};
use crate::builder::spec::{FilterSpec, is_key_name};
use crate::error::{BuildError, MergeError};
use crate::kernel::{Isa, Kernel, KernelFn};
use crate::key::hash::KeyHasher;
use crate::layout::access::{Access, Exclusive, Shared};
use crate::layout::ops::{Insert, LayoutOps, Query};
use crate::layout::params::FilterParams;
use crate::layout::storage::{self, AtomicBlocks, BlockStore, BlockStoreMut, Blocks};
use crate::rate::fpr;
use alloc::string::String;
use core::fmt;

/// `L` is the layout, which determines the bits of a key. `A` is the access: one writer, which inserts with `&mut self`, or
/// many, which insert with `&self`.
pub(crate) struct RawFilter<L: LayoutOps<A>, A: Access> {
    pub(crate) params: FilterParams,
    pub(crate) hasher: KeyHasher,
    pub(crate) spec: FilterSpec,
    pub(crate) blocks: L::Store,
    query: KernelFn<Query<L, A>>,
    insert: KernelFn<Insert<L, A>>,
}

impl<L: LayoutOps<A>, A: Access> RawFilter<L, A> {
    /// Assembles a filter from its parts.
    pub(crate) fn new(params: FilterParams, hasher: KeyHasher, spec: FilterSpec, blocks: L::Store) -> Self {
        let (kernel, probes) = (params.kernel, L::dispatch_probes(params.geometry));
        let (query, insert) = (KernelFn::new(kernel, probes), KernelFn::new(kernel, probes));
        Self { params, hasher, spec, blocks, query, insert }
    }

    /// Creates an empty filter.
    pub(crate) fn from_params(params: FilterParams, spec: FilterSpec) -> Result<Self, BuildError> {
        let blocks = L::Store::empty(Blocks::zeroed(params.blocks, params.pages)?);
        Ok(Self::new(params, KeyHasher::new(params.seed), spec, blocks))
    }

    /// Creates an empty filter of another size, whose keys have the same hashes.
    pub(crate) fn empty_with_size(&self, keys: u64, rate: f64) -> Result<Self, BuildError> {
        let spec = FilterSpec { keys: Some(keys), rate: Some(rate), ..self.spec.clone() };
        let FilterParams { seed, kernel, pages, .. } = self.params;
        let builder = Builder::<()> { spec, seed, kernel: Some(kernel.kernel()), pages, ..Builder::new() };
        Self::from_builder(builder)
    }

    #[inline]
    pub(crate) fn contains_hash(&self, hash: u64) -> bool {
        self.query.run((&self.params, &self.blocks), hash)
    }

    /// [`contains_hash`](Self::contains_hash) in a loop that is compiled for an instruction set.
    #[inline(always)]
    pub(crate) fn contains_hash_with<I: Isa>(&self, isa: I, hash: u64) -> bool {
        isa.run(self.query, (&self.params, &self.blocks), hash)
    }

    #[track_caller]
    pub(crate) fn contains_hashes(&self, hashes: &[u64], found: &mut [bool]) -> usize {
        batch::check_lengths(hashes.len(), found.len());
        L::contains_hashes(&self.params, &self.blocks, hashes, found)
    }

    #[inline]
    pub(crate) fn prefetch_hash(&self, hash: u64) {
        L::prefetch(self.params.geometry, &self.blocks, hash);
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        // At most the bytes of MAX_BLOCKS blocks, which fit a usize.
        self.params.geometry.bytes(L::DESCRIPTOR) as usize
    }

    pub(crate) fn probes(&self) -> u32 {
        self.params.geometry.probes
    }

    pub(crate) fn expected_keys(&self) -> Option<u64> {
        self.spec.keys
    }

    pub(crate) fn false_positive_rate(&self) -> Option<f64> {
        self.spec.rate
    }

    pub(crate) fn key_name(&self) -> &str {
        &self.spec.key_name
    }

    pub(crate) fn set_key_name(&mut self, name: String) -> Result<(), BuildError> {
        if !is_key_name(&name) {
            return Err(BuildError::KeyName { bytes: name.len() });
        }
        self.spec.key_name = name;
        Ok(())
    }

    #[cfg(feature = "file")]
    pub(crate) fn key_kinds(&self) -> alloc::vec::Vec<u16> {
        self.spec.kinds.get()
    }

    #[cfg(feature = "file")]
    pub(crate) fn add_key_kinds(&self, kinds: &[u16]) {
        self.spec.kinds.unite(kinds);
    }

    /// Adds the kinds of another filter before its keys are merged into this one. Keys without recorded kinds are texts.
    fn unite_kinds(&self, other: &Self) {
        #[cfg(feature = "file")]
        {
            let [ours, theirs] = [self, other].map(Self::key_kinds);
            let unrecorded = if ours.is_empty() { self } else { other };
            if ours.is_empty() != theirs.is_empty() && unrecorded.has_keys() {
                self.add_key_kinds(&crate::builder::spec::KeyKinds::TEXT);
            }
            self.add_key_kinds(&theirs);
        }
        #[cfg(not(feature = "file"))]
        let _ = other;
    }

    /// Returns true if a bit is set.
    #[cfg(feature = "file")]
    pub(crate) fn has_keys(&self) -> bool {
        self.words().any(|block| block != [0; 8])
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
        L::expected_fpr(self.params.geometry, keys)
    }

    pub(crate) fn capacity(&self, false_positive_rate: f64) -> u64 {
        L::capacity(self.params.geometry, false_positive_rate)
    }

    pub(crate) fn current_fpr(&self) -> f64 {
        L::current_fpr(self.params.geometry, self.words())
    }

    pub(crate) fn fill_ratio(&self) -> f64 {
        L::fill_ratio(self.params.geometry, &self.blocks)
    }

    pub(crate) fn estimated_keys(&self) -> f64 {
        fpr::estimate_keys(self.fill_ratio(), L::bit_probability(self.params.geometry))
    }

    pub(crate) fn populate(&mut self) {
        self.blocks.populate();
    }

    pub(crate) fn clear(&mut self) {
        self.blocks.clear();
        self.spec.clear_kinds();
    }

    pub(crate) fn words(&self) -> impl Iterator<Item = [u64; 8]> + Clone {
        self.blocks.words()
    }

    /// Returns the number of folds of each filter until both have one size.
    fn folds_needed(&self, other: &Self) -> Result<(u32, u32), MergeError> {
        self.spec.check_same_keys(&other.spec)?;
        if L::FOLDS {
            return self.params.folds_needed(&other.params);
        }
        self.params.check_same(&other.params).map(|()| (0, 0))
    }

    /// Returns an error unless the filters have the same kind of keys in the same bits.
    pub(crate) fn check_same(&self, other: &Self) -> Result<(), MergeError> {
        self.spec.check_same_keys(&other.spec)?;
        self.params.check_same(&other.params)
    }
}

impl<L: LayoutOps<A>, A: Access> FromBuilder for RawFilter<L, A> {
    fn from_builder<F>(builder: Builder<F>) -> Result<Self, BuildError> {
        Self::from_params(builder.params::<L>()?, builder.spec)
    }
}

/// One writer.
impl<L: LayoutOps<Exclusive, Store: BlockStoreMut>> RawFilter<L, Exclusive> {
    #[inline]
    pub(crate) fn insert_hash(&mut self, hash: u64) -> bool {
        self.insert.run((&self.params, &mut self.blocks), hash)
    }

    /// [`insert_hash`](Self::insert_hash) in a loop that is compiled for an instruction set.
    #[inline(always)]
    pub(crate) fn insert_hash_with<I: Isa>(&mut self, isa: I, hash: u64) -> bool {
        isa.run(self.insert, (&self.params, &mut self.blocks), hash)
    }

    #[track_caller]
    pub(crate) fn insert_hashes(&mut self, hashes: &[u64], new: &mut [bool]) -> usize {
        batch::check_lengths(hashes.len(), new.len());
        L::insert_hashes(&self.params, &mut self.blocks, hashes, new)
    }

    /// Inserts hashes without answers.
    pub(crate) fn set_hashes(&mut self, hashes: &[u64]) {
        L::set_hashes(&self.params, &mut self.blocks, hashes);
    }

    pub(crate) fn union(&mut self, other: &Self) -> Result<(), MergeError> {
        let (ours, theirs) = self.folds_needed(other)?;
        self.fold_levels(ours);
        self.unite_kinds(other);
        self.blocks.merge(storage::folded(other.words(), theirs), L::merge_words);
        Ok(())
    }

    /// Folds the filter. Its layout must [fold](crate::layout::model::Layout::FOLDS), and its number of blocks be a
    /// multiple of 2^`levels`.
    pub(crate) fn fold_levels(&mut self, levels: u32) {
        if levels == 0 {
            return;
        }
        self.params = self.params.folded(levels);
        let words = storage::folded(self.words(), levels);
        self.blocks = Blocks::from_words(self.params.blocks, self.params.pages, words).into();
        let capacity = |rate| L::capacity(self.params.geometry, rate);
        self.spec.keys = self.spec.rate.map(capacity).filter(|&keys| keys > 0);
    }
}

/// Many writers.
impl<L: LayoutOps<Shared, Store = AtomicBlocks>> RawFilter<L, Shared> {
    #[inline]
    pub(crate) fn insert_hash(&self, hash: u64) -> bool {
        self.insert.run((&self.params, &self.blocks), hash)
    }

    /// [`insert_hash`](Self::insert_hash) in a loop that is compiled for an instruction set.
    #[inline(always)]
    pub(crate) fn insert_hash_with<I: Isa>(&self, isa: I, hash: u64) -> bool {
        isa.run(self.insert, (&self.params, &self.blocks), hash)
    }

    #[track_caller]
    pub(crate) fn insert_hashes(&self, hashes: &[u64], new: &mut [bool]) -> usize {
        batch::check_lengths(hashes.len(), new.len());
        L::insert_hashes(&self.params, &self.blocks, hashes, new)
    }

    /// Inserts hashes without answers.
    pub(crate) fn set_hashes(&self, hashes: &[u64]) {
        L::set_hashes(&self.params, &self.blocks, hashes);
    }

    pub(crate) fn union(&self, other: &Self) -> Result<(), MergeError> {
        let (0, theirs) = self.folds_needed(other)? else {
            return Err(MergeError::Order { ours: self.params.blocks, theirs: other.params.blocks });
        };
        // By coherence, these loads see each key whose insert into `other` happened before this call.
        self.unite_kinds(other);
        self.blocks.or_assign(storage::folded(other.words(), theirs));
        Ok(())
    }
}

impl<L: LayoutOps<A, Store: Clone>, A: Access> Clone for RawFilter<L, A> {
    fn clone(&self) -> Self {
        Self::new(self.params, self.hasher.clone(), self.spec.clone(), self.blocks.clone())
    }
}

/// Compares geometry, seed and bits, but not the kernel or the specification.
impl<L: LayoutOps<A, Store: PartialEq>, A: Access> PartialEq for RawFilter<L, A> {
    fn eq(&self, other: &Self) -> bool {
        self.params.check_same(&other.params).is_ok() && self.blocks == other.blocks
    }
}

impl<L: LayoutOps<A, Store: PartialEq>, A: Access> Eq for RawFilter<L, A> {}

impl<L> From<RawFilter<L, Exclusive>> for RawFilter<L, Shared>
where
    L: LayoutOps<Exclusive, Store: Into<Blocks>> + LayoutOps<Shared>,
{
    fn from(RawFilter { params, hasher, spec, blocks, .. }: RawFilter<L, Exclusive>) -> Self {
        let blocks: Blocks = blocks.into();
        Self::new(params, hasher, spec, blocks.into())
    }
}

impl<L> From<RawFilter<L, Shared>> for RawFilter<L, Exclusive>
where
    L: LayoutOps<Exclusive> + LayoutOps<Shared, Store: Into<Blocks>>,
{
    fn from(RawFilter { params, hasher, spec, blocks, .. }: RawFilter<L, Shared>) -> Self {
        let blocks: Blocks = blocks.into();
        Self::new(params, hasher, spec, blocks.into())
    }
}

/// Omits the seed, which may be a secret.
impl<L: LayoutOps<A>, A: Access> fmt::Debug for RawFilter<L, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FilterParams { blocks, geometry, kernel, .. } = self.params;
        f.debug_struct(L::NAME)
            .field("block_count", &blocks)
            .field("probes", &geometry.probes)
            .field("kernel", &kernel.kernel())
            .finish_non_exhaustive()
    }
}

/// The filter as a file.
#[cfg(feature = "file")]
mod as_file {
    use super::*;
    use crate::file::{self, DecodedFilter, FileErrorKind, Persist, RawParts};
    use crate::kernel::block::WORDS;
    use std::io::{self, Read, Write};

    impl<L: LayoutOps<A>, A: Access> Persist for RawFilter<L, A> {
        fn write_to(&self, writer: impl Write) -> io::Result<()> {
            file::write(L::DESCRIPTOR, self.raw_parts(), writer)
        }

        fn file_bytes(&self) -> usize {
            // Little more than the blocks, which are in memory.
            self.raw_parts().file_bytes() as usize
        }

        fn read(reader: impl Read, length: Option<u64>) -> Result<Self, FileErrorKind> {
            file::read(L::DESCRIPTOR, reader, length).map(Self::from)
        }
    }

    impl<L: LayoutOps<A>, A: Access> RawFilter<L, A> {
        pub(crate) fn raw_parts(&self) -> RawParts<'_, impl Iterator<Item = [u64; WORDS]> + Clone> {
            let fields = file::encode_fields(&self.spec);
            RawParts { params: &self.params, hasher: &self.hasher, fields, words: self.words() }
        }
    }

    impl<L: LayoutOps<A>, A: Access> From<DecodedFilter> for RawFilter<L, A> {
        fn from(DecodedFilter { params, hasher, spec, blocks }: DecodedFilter) -> Self {
            Self::new(params, hasher, spec, blocks.into())
        }
    }
}
