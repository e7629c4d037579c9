//! The operations of a kernel, and the code that is compiled for each kernel.

use super::block::{Block, Pattern};

/// The operations of a kernel, for `b` probes in each lane: a constant in a batch, which selects its instructions when it is
/// compiled. The specification is [`Pattern::words_and_masks`].
pub(crate) trait KernelOps: Copy {
    /// Returns true if all bits of the pattern are set.
    fn contains(self, block: &Block, pattern: Pattern, b: usize) -> bool;
    /// Sets the bits of the pattern, and returns true if one of them was clear. It writes without a branch: in a mix of new and
    /// seen keys, a misprediction costs as much as several inserts. docs/DESIGN.md has the measurement.
    fn insert(self, block: &mut Block, pattern: Pattern, b: usize) -> bool;
}

/// Work on many keys, to be compiled once for each kernel and number of probes.
///
/// `run` and what it calls in its loop are `#[inline(always)]`: only code that is inlined into the kernel's own function gets
/// its instruction set.
pub(crate) trait BatchOp {
    type Output;
    fn run<I: KernelOps, const B: usize>(self, isa: I) -> Self::Output;
}

/// An operation on a key, such as a query. It is compiled once for each kernel and number of probes: as a function of its own for
/// single keys ([`KernelFn`]), and into the loop of a batch (batch/op.rs). In loops of other crates ([`Isa`]) the number of probes
/// is a variable.
pub(crate) trait KeyOp {
    /// True if it writes to the target.
    const WRITES: bool;
    /// The memory that the operation reads and writes. A pair of references is passed in registers, so single keys have no
    /// more.
    type Target<'a>;
    /// Returns the number of probes of a key, which selects the function: 4, 8, 12 or 16.
    fn probes(target: &Self::Target<'_>) -> u32;
    /// Prefetches the cache lines of a hash.
    fn prefetch(target: &Self::Target<'_>, hash: u64);
    /// Runs the operation for a hash, with `b` probes in each lane. See [`BatchOp::run`].
    fn run<I: KernelOps>(isa: I, target: &mut Self::Target<'_>, hash: u64, b: usize) -> bool;
}
