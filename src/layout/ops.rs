//! Inserts and queries, of one hash and of many: the path from a filter's method to the operation of its layout.
//!
//! ```text
//! filter/raw.rs          a method: RawFilter::contains_hashes
//! layout/ops.rs          `run_batch`: chooses the kernel once, and runs the prefetches of batch/op.rs ahead
//! layout/sectorized.rs   the layout: finds the block of one hash …
//! kernel/                … and asks it with vectors
//! ```
//!
//! A layout implements [`Layout`] with its mathematics, and [`LayoutOps`] for the memory of one writer, of many, or both.

use crate::batch::{Answer, Batch};
use crate::kernel::block::BLOCK_BYTES;
use crate::kernel::{KernelOps, KeyOp};
use crate::layout::access::Access;
use crate::layout::model::Layout;
use crate::layout::params::{FilterParams, Geometry};
use crate::layout::storage::BlockStore;
use crate::rate::set_bits;
use alloc::vec::Vec;
use core::marker::PhantomData;

/// A layout in the memory of an access.
pub(crate) trait LayoutOps<A: Access>: Layout {
    /// The filter type's name.
    const NAME: &'static str;

    /// The memory of the bits.
    type Store: BlockStore + Send + Sync;

    /// Prefetches the cache lines of a hash.
    fn prefetch(geometry: Geometry, store: &Self::Store, hash: u64);

    /// Returns true if the filter has a hash.
    fn contains<I: KernelOps>(geometry: Geometry, isa: I, store: &Self::Store, hash: u64, b: usize) -> bool;

    /// Inserts a hash, and returns true if it was new to this call.
    fn insert<I: KernelOps>(
        geometry: Geometry,
        isa: I,
        store: &mut A::Ref<'_, Self::Store>,
        hash: u64,
        b: usize,
    ) -> bool;

    /// Returns the fraction of bits that are set.
    fn fill_ratio(geometry: Geometry, store: &Self::Store) -> f64 {
        geometry.fraction(Self::DESCRIPTOR, set_bits::count_ones(store.words()))
    }

    /// Queries many hashes: `found[i]` is true if the filter has `hashes[i]`. Returns the number found.
    ///
    /// A layout may write out this method and the next two, as one call of [`run_batch`] each. They are then compiled in this
    /// crate, with its optimisations, and not in each crate that uses it.
    fn contains_hashes(params: &FilterParams, store: &Self::Store, hashes: &[u64], found: &mut [bool]) -> usize
    where
        Self: Sized,
    {
        run_batch::<Query<Self, A>, _>(params, (params, store), hashes, found)
    }

    /// Inserts many hashes, in order: `new[i]` is true if `hashes[i]` was new to this call. Returns the number of new
    /// hashes.
    fn insert_hashes<'a>(
        params: &'a FilterParams,
        store: A::Ref<'a, Self::Store>,
        hashes: &[u64],
        new: &mut [bool],
    ) -> usize
    where
        Self: Sized,
    {
        run_batch::<Insert<Self, A>, _>(params, (params, store), hashes, new)
    }

    /// Inserts many hashes without answers.
    fn set_hashes<'a>(params: &'a FilterParams, store: A::Ref<'a, Self::Store>, hashes: &[u64])
    where
        Self: Sized,
    {
        run_batch::<Insert<Self, A>, _>(params, (params, store), hashes, &mut nothing(hashes.len()));
    }
}

/// The query of a layout, in the memory of an access.
pub(crate) struct Query<L, A>(PhantomData<(L, A)>);

impl<L: LayoutOps<A>, A: Access> KeyOp for Query<L, A> {
    const WRITES: bool = false;
    type Target<'a> = (&'a FilterParams, &'a L::Store);

    #[inline(always)]
    fn probes((params, _): &Self::Target<'_>) -> u32 {
        L::dispatch_probes(params.geometry)
    }

    #[inline(always)]
    fn prefetch((params, store): &Self::Target<'_>, hash: u64) {
        L::prefetch(params.geometry, store, hash);
    }

    #[inline(always)]
    fn run<I: KernelOps>(isa: I, (params, store): &mut Self::Target<'_>, hash: u64, b: usize) -> bool {
        L::contains(params.geometry, isa, store, hash, b)
    }
}

/// The insert of a layout, in the memory of an access.
pub(crate) struct Insert<L, A>(PhantomData<(L, A)>);

impl<L: LayoutOps<A>, A: Access> KeyOp for Insert<L, A> {
    const WRITES: bool = true;
    type Target<'a> = (&'a FilterParams, A::Ref<'a, L::Store>);

    #[inline(always)]
    fn probes((params, _): &Self::Target<'_>) -> u32 {
        L::dispatch_probes(params.geometry)
    }

    #[inline(always)]
    fn prefetch((params, store): &Self::Target<'_>, hash: u64) {
        L::prefetch(params.geometry, store, hash);
    }

    #[inline(always)]
    fn run<I: KernelOps>(isa: I, (params, store): &mut Self::Target<'_>, hash: u64, b: usize) -> bool {
        L::insert(params.geometry, isa, store, hash, b)
    }
}

/// Runs an operation on many hashes on the filter's kernel: one dispatch for all of them.
#[inline(always)]
pub(crate) fn run_batch<O: KeyOp, Out: Answer>(
    params: &FilterParams,
    target: O::Target<'_>,
    hashes: &[u64],
    answers: &mut [Out],
) -> usize {
    let memory_bytes = params.blocks * BLOCK_BYTES;
    params.kernel.run(O::probes(&target), Batch::<O, Out> { target, memory_bytes, hashes, answers })
}

/// Returns `len` answers that take no memory.
pub(crate) fn nothing(len: usize) -> Vec<()> {
    alloc::vec![(); len]
}
