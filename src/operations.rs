//! Insert and query, one hash and many: the one way from a filter's method to the operation of its layout.
//!
//! ```text
//! fixed.rs        a method: Fixed::contains_hashes
//! operations.rs   `many`: chooses the kernel once, and runs the prefetches of batch.rs ahead
//! words4.rs       the layout: finds the block of one hash …
//! kernel/         … and asks it with vectors
//! ```
//!
//! A layout implements [`Shape`] with its mathematics, and [`Operations`] for the memory of one writer, of many, or both.

use crate::batch::{Answer, Batch};
use crate::block::{BLOCK_BYTES, WORDS};
use crate::format::Format;
use crate::fpr;
use crate::kernel::{Isa, KeyOp};
use crate::params::{Params, Size};
use crate::stats;
use crate::storage::Memory;
use alloc::vec::Vec;
use core::marker::PhantomData;
use core::ops::Deref;

/// The access of filters with one writer: inserting takes `&mut self`.
pub(crate) struct Exclusive(());

/// The access of filters with many writers: inserting takes `&self`, from any thread.
pub(crate) struct Shared(());

/// Who writes, and so what an insert takes of the memory.
pub(crate) trait Access {
    /// `&mut M` or `&M`.
    type Place<'a, M: 'a>: Deref<Target = M>;

    /// The place for a shorter time, to give away.
    fn reborrow<'a, M>(place: &'a mut Self::Place<'_, M>) -> Self::Place<'a, M>;
}

impl Access for Exclusive {
    type Place<'a, M: 'a> = &'a mut M;

    #[inline(always)]
    fn reborrow<'a, M>(place: &'a mut &mut M) -> &'a mut M {
        place
    }
}

impl Access for Shared {
    type Place<'a, M: 'a> = &'a M;

    #[inline(always)]
    fn reborrow<'a, M>(place: &'a mut &M) -> &'a M {
        place
    }
}

/// What a layout is, whoever writes: its names, its sizes and its rates. Sizes count units, of which a key's bits are in
/// one. A block holds a whole number of units, or a unit a whole number of blocks.
pub(crate) trait Shape {
    /// As in files: number, name, probes, unit.
    const FORMAT: &'static Format;

    /// The model's rate, for hashes of any length.
    fn rate(size: Size, keys: u64) -> f64;

    /// The rate of the bits as they are, for keys with random hashes.
    fn current_fpr(size: Size, words: impl Iterator<Item = [u64; WORDS]>) -> f64;

    /// The chance that a key sets a given bit of the whole filter.
    fn touched(size: Size) -> f64;

    /// The probes that a kernel is chosen by, where the operations have use for a kernel.
    fn kernel_probes(_: Size) -> u32 {
        4
    }

    /// A word that holds what two filters have in it.
    fn united(ours: u64, theirs: u64) -> u64 {
        ours | theirs
    }

    /// Whether a key's bits are the same in half as many blocks, and its block half of the index: see fold.rs.
    const FOLDS: bool = false;

    /// The model's rate, with that of 64-bit hashes that are equal.
    fn expected_fpr(size: Size, keys: u64) -> f64 {
        (Self::rate(size, keys) + fpr::collision_floor(keys)).min(1.0)
    }

    /// The least of at most `limit` units that keeps a rate; with the probes that are given, or with those that take the fewest.
    fn least(keys: u64, rate: f64, given: Option<u32>, limit: u64) -> Option<Size> {
        let start = keys.saturating_mul(8) / Self::FORMAT.unit_bits;
        let least = |probes| {
            let rate_of = |units| Self::expected_fpr(Size { units, probes }, keys);
            Some(Size { units: fpr::least(start, limit, rate, rate_of)?, probes })
        };
        Self::FORMAT.candidates(given).filter_map(least).min_by_key(|size| size.units)
    }

    /// The number of probes with the lowest rate for a size; the fewer probes of equals.
    fn best_probes(units: u64, keys: u64) -> u32 {
        let rate = |&probes: &u32| Self::expected_fpr(Size { units, probes }, keys);
        let best = Self::FORMAT.candidates(None).min_by(|a, b| rate(a).total_cmp(&rate(b)));
        best.expect("a layout offers probes")
    }

    /// The most keys that keep a rate.
    fn capacity(size: Size, rate: f64) -> u64 {
        fpr::most(size.units, rate, |keys| Self::expected_fpr(size, keys))
    }
}

/// A layout in the memory of an access.
pub(crate) trait Operations<A: Access>: Shape {
    /// The filter type's name.
    const NAME: &'static str;

    /// Where the bits are.
    type Memory: Memory + Send + Sync;

    /// Asks for the cache lines of a hash.
    fn prefetch(size: Size, memory: &Self::Memory, hash: u64);

    /// Whether a hash is in.
    fn contains<I: Isa, const B: usize>(size: Size, isa: I, memory: &Self::Memory, hash: u64) -> bool;

    /// Inserts a hash. Whether this call made it seen.
    fn insert<I: Isa, const B: usize>(size: Size, isa: I, place: A::Place<'_, Self::Memory>, hash: u64) -> bool;

    /// The share of bits that are set.
    fn fill(size: Size, memory: &Self::Memory) -> f64 {
        size.share(Self::FORMAT, stats::ones(memory.words()))
    }

    /// Queries many hashes: `found[i]` is true if `hashes[i]` is in. Returns how many are.
    ///
    /// A layout may write out this method and the next two, as one call of [`many`] each: then they are compiled here, with this
    /// crate's optimisations, and not in each crate that uses it.
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

    /// Inserts many hashes of which nobody asks whether they were new.
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
