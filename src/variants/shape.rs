//! What a layout is to the code that all of them share: its rate and its operations, alone and in batches.

use super::size::Size;
use crate::batch::{self, Probe};
use crate::file::Layout;
use crate::fpr;
use crate::kernel::{self, Isa, Selected, Task};
use crate::storage::Blocks;

/// A layout; the filter types implement it. Its size counts units, of which a key's bits are in one, and a file's
/// blocks hold a whole number of units or a unit a whole number of blocks.
pub(crate) trait Shape {
    /// As in files: number, name, probes, unit.
    const LAYOUT: &'static Layout;
    /// Where the bits are.
    type Memory: From<Blocks>;

    /// Blocks that are known to be zero.
    fn empty(blocks: Blocks) -> Self::Memory {
        blocks.into()
    }

    /// The model's rate, for hashes of any length.
    fn rate(size: Size, keys: u64) -> f64;

    /// The chance that a key sets a given bit of the whole filter.
    fn touched(size: Size) -> f64;

    /// The share of bits that are set.
    fn fill(size: Size, memory: &Self::Memory) -> f64;

    /// Asks for the cache lines of a hash.
    fn prefetch(size: Size, memory: &Self::Memory, hash: u64);

    /// Whether a hash is in.
    fn contains<I: Isa, const B: usize>(size: Size, isa: I, memory: &Self::Memory, hash: u64) -> bool;

    /// The probes that a kernel is chosen by, where `contains` and `insert` have use for its operations.
    fn kernel_probes(_: Size) -> u32 {
        4
    }

    /// The model's rate, with that of 64-bit hashes that are equal.
    fn expected_fpr(size: Size, keys: u64) -> f64 {
        (Self::rate(size, keys) + fpr::collision_floor(keys)).min(1.0)
    }
}

/// A layout that one owner writes.
pub(crate) trait Exclusive: Shape {
    /// Inserts a hash; whether it was new.
    fn insert<I: Isa, const B: usize>(size: Size, isa: I, memory: &mut Self::Memory, hash: u64) -> bool;
}

/// A layout that many threads write.
pub(crate) trait Shared: Shape {
    /// Inserts a hash; whether this call set a bit for it.
    fn insert(size: Size, memory: &Self::Memory, hash: u64) -> bool;
}

/// The bits set in all blocks.
pub(crate) fn ones(blocks: impl Iterator<Item = [u64; 8]>) -> u64 {
    blocks.flatten().map(|word| u64::from(word.count_ones())).sum()
}

#[inline(always)]
pub(crate) fn contains<S: Shape>(size: Size, memory: &S::Memory, hash: u64) -> bool {
    kernel::run_inline(S::kernel_probes(size), ContainsOne::<S> { size, memory, hash })
}

#[inline(always)]
pub(crate) fn insert<S: Exclusive>(size: Size, memory: &mut S::Memory, hash: u64) -> bool {
    kernel::run_inline(S::kernel_probes(size), InsertOne::<S> { size, memory, hash })
}

pub(crate) fn contains_all<S: Shape>(
    kernel: Selected,
    size: Size,
    memory: &S::Memory,
    hashes: &[u64],
    found: &mut [bool],
) -> usize {
    kernel.run(S::kernel_probes(size), ContainsMany::<S> { size, memory, hashes, found })
}

pub(crate) fn insert_all<S: Exclusive>(
    kernel: Selected,
    size: Size,
    memory: &mut S::Memory,
    hashes: &[u64],
    new: &mut [bool],
) -> usize {
    kernel.run(S::kernel_probes(size), InsertMany::<S> { size, memory, hashes, new })
}

/// Without a kernel: atomic operations know no vectors.
pub(crate) fn insert_all_shared<S: Shared>(size: Size, memory: &S::Memory, hashes: &[u64], new: &mut [bool]) -> usize {
    batch::run(Sharing::<S> { size, memory }, hashes, new)
}

struct ContainsOne<'a, S: Shape> {
    size: Size,
    memory: &'a S::Memory,
    hash: u64,
}

impl<S: Shape> Task for ContainsOne<'_, S> {
    type Output = bool;
    #[inline(always)]
    fn run<I: Isa, const B: usize>(self, isa: I) -> bool {
        S::contains::<I, B>(self.size, isa, self.memory, self.hash)
    }
}

struct InsertOne<'a, S: Exclusive> {
    size: Size,
    memory: &'a mut S::Memory,
    hash: u64,
}

impl<S: Exclusive> Task for InsertOne<'_, S> {
    type Output = bool;
    #[inline(always)]
    fn run<I: Isa, const B: usize>(self, isa: I) -> bool {
        S::insert::<I, B>(self.size, isa, self.memory, self.hash)
    }
}

struct ContainsMany<'a, S: Shape> {
    size: Size,
    memory: &'a S::Memory,
    hashes: &'a [u64],
    found: &'a mut [bool],
}

impl<S: Shape> Task for ContainsMany<'_, S> {
    type Output = usize;
    #[inline(always)]
    fn run<I: Isa, const B: usize>(self, isa: I) -> usize {
        batch::run(Querying::<S, I, B> { isa, size: self.size, memory: self.memory }, self.hashes, self.found)
    }
}

struct InsertMany<'a, S: Exclusive> {
    size: Size,
    memory: &'a mut S::Memory,
    hashes: &'a [u64],
    new: &'a mut [bool],
}

impl<S: Exclusive> Task for InsertMany<'_, S> {
    type Output = usize;
    #[inline(always)]
    fn run<I: Isa, const B: usize>(self, isa: I) -> usize {
        batch::run(Inserting::<S, I, B> { isa, size: self.size, memory: self.memory }, self.hashes, self.new)
    }
}

struct Querying<'a, S: Shape, I, const B: usize> {
    isa: I,
    size: Size,
    memory: &'a S::Memory,
}

struct Inserting<'a, S: Shape, I, const B: usize> {
    isa: I,
    size: Size,
    memory: &'a mut S::Memory,
}

struct Sharing<'a, S: Shape> {
    size: Size,
    memory: &'a S::Memory,
}

/// What a batch asks of the tasks: the same of all, but for what each does with a hash.
macro_rules! probe {
    ([$($generics:tt)*] $task:ty, writes: $writes:literal, |$this:ident, $hash:ident| $probe:expr) => {
        impl<$($generics)*> Probe for $task {
            const WRITES: bool = $writes;

            #[inline(always)]
            fn memory_bytes(&self) -> usize {
                self.size.bytes(S::LAYOUT)
            }

            #[inline(always)]
            fn prefetch(&self, hash: u64) {
                S::prefetch(self.size, self.memory, hash);
            }

            #[inline(always)]
            fn probe(&mut self, $hash: u64) -> bool {
                let $this = self;
                $probe
            }
        }
    };
}

probe!([S: Shape, I: Isa, const B: usize] Querying<'_, S, I, B>, writes: false, |task, hash| {
    S::contains::<I, B>(task.size, task.isa, task.memory, hash)
});
probe!([S: Exclusive, I: Isa, const B: usize] Inserting<'_, S, I, B>, writes: true, |task, hash| {
    S::insert::<I, B>(task.size, task.isa, task.memory, hash)
});
probe!([S: Shared] Sharing<'_, S>, writes: true, |task, hash| S::insert(task.size, task.memory, hash));
