//! Insert and query, one hash and many: the one way from a filter's method to the operation of its layout.
//!
//! ```text
//! filter.rs       a method: Filter::contains_hashes
//! operations.rs   `many`: chooses the kernel once, and runs the prefetches of batch.rs ahead
//! words4.rs       the layout: finds the block of one hash …
//! kernel/         … and asks it with vectors
//! ```
//!
//! A layout implements [`Shape`] with its mathematics, [`Query`] for the memory of one writer, of many, or both, and
//! [`Insert`] or [`InsertShared`] beside it.

use crate::batch::{self, Probe};
use crate::block::BLOCK_BYTES;
use crate::error::BuildError;
use crate::format::Format;
use crate::fpr;
use crate::kernel::{self, Isa, Selected, Single, Task};
use crate::params::{Params, Size, Sizing};
use crate::storage::{AtomicBlocks, Memory, MemoryMut};

/// The access of filters with one writer: inserting takes `&mut self`.
pub struct Exclusive(());

/// The access of filters with many writers: inserting takes `&self`, from any thread.
pub struct Shared(());

/// What a layout is, whoever writes: its names, its sizes and its rates. Sizes count units, of which a key's bits are in
/// one. A block holds a whole number of units, or a unit a whole number of blocks.
pub(crate) trait Shape {
    /// As in files: number, name, probes, unit.
    const FORMAT: &'static Format;

    /// The geometry that a size asked for takes.
    fn params(sizing: Sizing) -> Result<Params, BuildError>;

    /// The model's rate, for hashes of any length.
    fn rate(size: Size, keys: u64) -> f64;

    /// The chance that a key sets a given bit of the whole filter.
    fn touched(size: Size) -> f64;

    /// The probes that a kernel is chosen by, where the operations have use for a kernel.
    fn kernel_probes(_: Size) -> u32 {
        4
    }

    /// Whether a key's bits are the same in half as many blocks, and its block half of the index: see fold.rs.
    const FOLDS: bool = false;

    /// The model's rate, with that of 64-bit hashes that are equal.
    fn expected_fpr(size: Size, keys: u64) -> f64 {
        (Self::rate(size, keys) + fpr::collision_floor(keys)).min(1.0)
    }
}

/// A layout that hashes keys as the crate does.
pub(crate) trait Keyed: Shape {}

/// A layout in the memory of an access: the queries.
pub(crate) trait Query<A>: Shape {
    /// The filter type's name.
    const NAME: &'static str;

    /// Where the bits are.
    type Memory: Memory;

    /// Asks for the cache lines of a hash.
    fn prefetch(size: Size, memory: &Self::Memory, hash: u64);

    /// Whether a hash is in.
    fn contains<I: Isa, const B: usize>(size: Size, isa: I, memory: &Self::Memory, hash: u64) -> bool;

    /// The share of bits that are set.
    fn fill(size: Size, memory: &Self::Memory) -> f64 {
        let ones = memory.words().flatten().map(|word| u64::from(word.count_ones())).sum();
        size.share(Self::FORMAT, ones)
    }

    /// [`contains_one`]; see [`contains_many`](Self::contains_many).
    fn contains_one(params: &Params, memory: &Self::Memory, hash: u64) -> bool
    where
        Self: Sized,
    {
        contains_one::<Self, A>(params, memory, hash)
    }

    /// [`contains_many`], for a layout to write out: then it is compiled here, with this crate's optimisations, and not in
    /// each crate that uses it.
    fn contains_many(params: &Params, memory: &Self::Memory, hashes: &[u64], found: &mut [bool]) -> usize
    where
        Self: Sized,
    {
        contains_many::<Self, A>(params, memory, hashes, found)
    }
}

/// Inserts by one writer.
pub(crate) trait Insert: Query<Exclusive, Memory: MemoryMut> {
    /// Inserts a hash; whether it was new.
    fn insert<I: Isa, const B: usize>(size: Size, isa: I, memory: &mut Self::Memory, hash: u64) -> bool;

    /// A word that holds what two filters have in it.
    fn united(ours: u64, theirs: u64) -> u64 {
        ours | theirs
    }

    /// [`insert_one`]; see [`Query::contains_many`].
    fn insert_one(params: &Params, memory: &mut Self::Memory, hash: u64) -> bool
    where
        Self: Sized,
    {
        insert_one::<Self>(params, memory, hash)
    }

    /// [`insert_many`]; see [`Query::contains_many`].
    fn insert_many(params: &Params, memory: &mut Self::Memory, hashes: &[u64], new: &mut [bool]) -> usize
    where
        Self: Sized,
    {
        insert_many::<Self>(params, memory, hashes, new)
    }
}

/// Inserts by many writers.
pub(crate) trait InsertShared: Query<Shared, Memory = AtomicBlocks> {
    /// Inserts a hash; whether this call made it seen.
    fn insert<const B: usize>(size: Size, memory: &Self::Memory, hash: u64) -> bool;

    /// [`insert_many_shared`]; see [`Query::contains_many`].
    fn insert_many(params: &Params, memory: &Self::Memory, hashes: &[u64], new: &mut [bool]) -> usize
    where
        Self: Sized,
    {
        insert_many_shared::<Self>(params, memory, hashes, new)
    }
}

/// One query: inlined into the caller where the compiler was told of the CPU, else a call of the filter's kernel.
#[inline(always)]
pub(crate) fn contains<L: Query<A>, A>(params: &Params, memory: &L::Memory, hash: u64) -> bool {
    match Selected::TOLD {
        Some(kernel) => {
            kernel.run_single(L::kernel_probes(params.size()), One(Querying::<L, A> { params, memory }), hash)
        }
        None => L::contains_one(params, memory, hash),
    }
}

/// One insert by one writer; see [`contains`].
#[inline(always)]
pub(crate) fn insert<L: Insert>(params: &Params, memory: &mut L::Memory, hash: u64) -> bool {
    match Selected::TOLD {
        Some(kernel) => {
            kernel.run_single(L::kernel_probes(params.size()), One(Inserting::<L> { params, memory }), hash)
        }
        None => L::insert_one(params, memory, hash),
    }
}

/// One insert by one of many writers, inlined into the caller: its atomic operations are the same for all kernels.
#[inline(always)]
pub(crate) fn insert_shared<L: InsertShared>(params: &Params, memory: &L::Memory, hash: u64) -> bool {
    kernel::run_inline(L::kernel_probes(params.size()), One(Sharing::<L> { params, memory }), hash)
}

/// One query on the filter's kernel.
#[inline(always)]
pub(crate) fn contains_one<L: Query<A>, A>(params: &Params, memory: &L::Memory, hash: u64) -> bool {
    params.kernel.run_single(L::kernel_probes(params.size()), One(Querying::<L, A> { params, memory }), hash)
}

/// One insert by one writer on the filter's kernel.
#[inline(always)]
pub(crate) fn insert_one<L: Insert>(params: &Params, memory: &mut L::Memory, hash: u64) -> bool {
    params.kernel.run_single(L::kernel_probes(params.size()), One(Inserting::<L> { params, memory }), hash)
}

/// Many queries: `found[i]` = whether `hashes[i]` is in. Returns how many are.
#[inline(always)]
pub(crate) fn contains_many<L: Query<A>, A>(
    params: &Params,
    memory: &L::Memory,
    hashes: &[u64],
    found: &mut [bool],
) -> usize {
    many(params, L::kernel_probes(params.size()), Querying::<L, A> { params, memory }, hashes, found)
}

/// Many inserts by one writer, in order: `new[i]` = whether `hashes[i]` was new. Returns how many were.
#[inline(always)]
pub(crate) fn insert_many<L: Insert>(
    params: &Params,
    memory: &mut L::Memory,
    hashes: &[u64],
    new: &mut [bool],
) -> usize {
    many(params, L::kernel_probes(params.size()), Inserting::<L> { params, memory }, hashes, new)
}

/// Many inserts by one of many writers, in order: `new[i]` = whether this call made `hashes[i]` seen. Returns how many it
/// made seen.
#[inline(always)]
pub(crate) fn insert_many_shared<L: InsertShared>(
    params: &Params,
    memory: &L::Memory,
    hashes: &[u64],
    new: &mut [bool],
) -> usize {
    many(params, L::kernel_probes(params.size()), Sharing::<L> { params, memory }, hashes, new)
}

/// Runs a batch on the filter's kernel: one dispatch for all of it.
#[inline(always)]
pub(crate) fn many<P: Probe>(
    params: &Params,
    kernel_probes: u32,
    probe: P,
    hashes: &[u64],
    answers: &mut [bool],
) -> usize {
    let memory_bytes = params.blocks * BLOCK_BYTES;
    params.kernel.run(kernel_probes, Many { probe, memory_bytes, hashes, answers })
}

struct One<P>(P);

impl<P: Probe> Single for One<P> {
    #[inline(always)]
    fn run<I: Isa, const B: usize>(mut self, isa: I, hash: u64) -> bool {
        self.0.probe::<I, B>(isa, hash)
    }
}

struct Many<'a, P> {
    probe: P,
    memory_bytes: usize,
    hashes: &'a [u64],
    answers: &'a mut [bool],
}

impl<P: Probe> Task for Many<'_, P> {
    type Output = usize;
    #[inline(always)]
    fn run<I: Isa, const B: usize>(self, isa: I) -> usize {
        batch::run::<I, B, P>(isa, self.probe, self.memory_bytes, self.hashes, self.answers)
    }
}

struct Querying<'a, L: Query<A>, A> {
    params: &'a Params,
    memory: &'a L::Memory,
}

impl<L: Query<A>, A> Probe for Querying<'_, L, A> {
    const WRITES: bool = false;

    #[inline(always)]
    fn prefetch(&self, hash: u64) {
        L::prefetch(self.params.size(), self.memory, hash);
    }

    #[inline(always)]
    fn probe<I: Isa, const B: usize>(&mut self, isa: I, hash: u64) -> bool {
        L::contains::<I, B>(self.params.size(), isa, self.memory, hash)
    }
}

struct Inserting<'a, L: Insert> {
    params: &'a Params,
    memory: &'a mut L::Memory,
}

impl<L: Insert> Probe for Inserting<'_, L> {
    const WRITES: bool = true;

    #[inline(always)]
    fn prefetch(&self, hash: u64) {
        L::prefetch(self.params.size(), self.memory, hash);
    }

    #[inline(always)]
    fn probe<I: Isa, const B: usize>(&mut self, isa: I, hash: u64) -> bool {
        L::insert::<I, B>(self.params.size(), isa, self.memory, hash)
    }
}

struct Sharing<'a, L: InsertShared> {
    params: &'a Params,
    memory: &'a L::Memory,
}

impl<L: InsertShared> Probe for Sharing<'_, L> {
    const WRITES: bool = true;

    #[inline(always)]
    fn prefetch(&self, hash: u64) {
        L::prefetch(self.params.size(), self.memory, hash);
    }

    #[inline(always)]
    fn probe<I: Isa, const B: usize>(&mut self, _: I, hash: u64) -> bool {
        L::insert::<B>(self.params.size(), self.memory, hash)
    }
}
