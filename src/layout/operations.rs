//! Insert and query, one hash and many: the one way from a filter's method to the operation of its layout.
//!
//! ```text
//! filter/fixed.rs        a method: Fixed::contains_hashes
//! layout/operations.rs   `many`: chooses the kernel once, and runs the prefetches of batch/op.rs ahead
//! layout/words4.rs       the layout: finds the block of one hash …
//! kernel/                … and asks it with vectors
//! ```
//!
//! A layout implements [`Shape`] with its mathematics, and [`Operations`] for the memory of one writer, of many, or both.

use crate::batch::{Answer, Batch};
use crate::kernel::block::BLOCK_BYTES;
use crate::kernel::{Isa, KeyOp};
use crate::layout::access::Access;
use crate::layout::params::{Params, Size};
use crate::layout::shape::Shape;
use crate::layout::storage::Memory;
use crate::rate::stats;
use alloc::vec::Vec;
use core::marker::PhantomData;

/// A layout in the memory of an access.
pub(crate) trait Operations<A: Access>: Shape {
    /// The filter type's name.
    const NAME: &'static str;

    /// The memory of the bits.
    type Memory: Memory + Send + Sync;

    /// Prefetches the cache lines of a hash.
    fn prefetch(size: Size, memory: &Self::Memory, hash: u64);

    /// Returns true if the filter has a hash.
    fn contains<I: Isa, const B: usize>(size: Size, isa: I, memory: &Self::Memory, hash: u64) -> bool;

    /// Inserts a hash, and returns true if this call made it seen.
    fn insert<I: Isa, const B: usize>(size: Size, isa: I, place: A::Place<'_, Self::Memory>, hash: u64) -> bool;

    /// The fraction of bits that are set.
    fn fill(size: Size, memory: &Self::Memory) -> f64 {
        size.share(Self::FORMAT, stats::ones(memory.words()))
    }

    /// Queries many hashes: `found[i]` is true if `hashes[i]` is in. Returns how many are.
    ///
    /// A layout may write out this method and the next two, as one call of [`many`] each. They are then compiled in this crate,
    /// with its optimisations, and not in each crate that uses it.
    fn contains_many(params: &Params, memory: &Self::Memory, hashes: &[u64], found: &mut [bool]) -> usize
    where
        Self: Sized,
    {
        many::<Query<Self, A>, _>(params, (params, memory), hashes, found)
    }

    /// Inserts many hashes, in order: `new[i]` is true if this call made `hashes[i]` seen. Returns how many it made seen.
    fn insert_many<'a>(params: &'a Params, place: A::Place<'a, Self::Memory>, hashes: &[u64], new: &mut [bool]) -> usize
    where
        Self: Sized,
    {
        many::<Insert<Self, A>, _>(params, (params, place), hashes, new)
    }

    /// Inserts many hashes without answers.
    fn set_many<'a>(params: &'a Params, place: A::Place<'a, Self::Memory>, hashes: &[u64])
    where
        Self: Sized,
    {
        many::<Insert<Self, A>, _>(params, (params, place), hashes, &mut nothing(hashes.len()));
    }
}

/// The query of a layout, in the memory of an access.
pub(crate) struct Query<L, A>(PhantomData<(L, A)>);

impl<L: Operations<A>, A: Access> KeyOp for Query<L, A> {
    const WRITES: bool = false;
    type Place<'a> = (&'a Params, &'a L::Memory);

    #[inline(always)]
    fn probes((params, _): &Self::Place<'_>) -> u32 {
        L::kernel_probes(params.size())
    }

    #[inline(always)]
    fn prefetch((params, memory): &Self::Place<'_>, hash: u64) {
        L::prefetch(params.size(), memory, hash);
    }

    #[inline(always)]
    fn run<I: Isa, const B: usize>(isa: I, (params, memory): &mut Self::Place<'_>, hash: u64) -> bool {
        L::contains::<I, B>(params.size(), isa, memory, hash)
    }
}

/// The insert of a layout, in the memory of an access.
pub(crate) struct Insert<L, A>(PhantomData<(L, A)>);

impl<L: Operations<A>, A: Access> KeyOp for Insert<L, A> {
    const WRITES: bool = true;
    type Place<'a> = (&'a Params, A::Place<'a, L::Memory>);

    #[inline(always)]
    fn probes((params, _): &Self::Place<'_>) -> u32 {
        L::kernel_probes(params.size())
    }

    #[inline(always)]
    fn prefetch((params, place): &Self::Place<'_>, hash: u64) {
        L::prefetch(params.size(), place, hash);
    }

    #[inline(always)]
    fn run<I: Isa, const B: usize>(isa: I, (params, place): &mut Self::Place<'_>, hash: u64) -> bool {
        L::insert::<I, B>(params.size(), isa, A::reborrow(place), hash)
    }
}

/// Runs an operation on many hashes on the filter's kernel: one dispatch for all of them.
#[inline(always)]
pub(crate) fn many<O: KeyOp, Out: Answer>(
    params: &Params,
    place: O::Place<'_>,
    hashes: &[u64],
    answers: &mut [Out],
) -> usize {
    let memory_bytes = params.blocks * BLOCK_BYTES;
    params.kernel.run(O::probes(&place), Batch::<O, Out> { place, memory_bytes, hashes, answers })
}

/// As many answers that take no memory.
pub(crate) fn nothing(len: usize) -> Vec<()> {
    alloc::vec![(); len]
}
