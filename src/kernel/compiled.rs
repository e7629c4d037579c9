//! `Isa`: the instruction sets that loops of other crates are compiled for.

use super::dispatch::KernelFn;
use super::isa::KeyOp;

#[cfg(target_arch = "x86_64")]
pub use super::{avx2::Avx2, avx512::Avx512};

/// An instruction set that [`dispatch!`](crate::dispatch!) compiles a loop for. No other crate can implement it.
pub trait Isa: RunKeyOp {}

/// Runs operations on single keys in a loop. Public for the compiler alone: no other crate can name it.
#[allow(private_bounds, private_interfaces)]
pub trait RunKeyOp: Copy {
    /// Runs the operation, inlined if the loop is compiled for this instruction set, else by `function`.
    fn run<O: KeyOp>(self, function: KernelFn<O>, target: O::Target<'_>, hash: u64) -> bool;
}

/// The instructions that are enabled for the whole program.
#[derive(Clone, Copy)]
pub struct Baseline;

impl Isa for Baseline {}

#[allow(private_bounds, private_interfaces)]
impl RunKeyOp for Baseline {
    #[inline(always)]
    fn run<O: KeyOp>(self, function: KernelFn<O>, target: O::Target<'_>, hash: u64) -> bool {
        function.run(target, hash)
    }
}

impl Isa for Avx2 {}

#[cfg(target_arch = "x86_64")]
#[allow(private_bounds, private_interfaces)]
impl RunKeyOp for Avx2 {
    #[inline(always)]
    fn run<O: KeyOp>(self, _: KernelFn<O>, target: O::Target<'_>, hash: u64) -> bool {
        self.run_key_op::<O>(target, hash)
    }
}

impl Isa for Avx512 {}

#[cfg(target_arch = "x86_64")]
#[allow(private_bounds, private_interfaces)]
impl RunKeyOp for Avx512 {
    #[inline(always)]
    fn run<O: KeyOp>(self, _: KernelFn<O>, target: O::Target<'_>, hash: u64) -> bool {
        self.run_key_op::<O>(target, hash)
    }
}

/// AVX2 does not exist here, so the copies of loops for it are removed.
#[cfg(not(target_arch = "x86_64"))]
#[derive(Clone, Copy)]
pub enum Avx2 {}

#[cfg(not(target_arch = "x86_64"))]
impl Avx2 {
    pub(crate) fn call<R>(self, _: impl FnOnce() -> R) -> R {
        match self {}
    }
}

#[cfg(not(target_arch = "x86_64"))]
#[allow(private_bounds, private_interfaces)]
impl RunKeyOp for Avx2 {
    fn run<O: KeyOp>(self, _: KernelFn<O>, _: O::Target<'_>, _: u64) -> bool {
        match self {}
    }
}
