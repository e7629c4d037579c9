//! `Isa`: the instruction sets that loops of other crates are compiled for.

use super::dispatch::KernelFn;
use super::ops::KeyOp;
use core::marker::PhantomData;

#[cfg(not(target_arch = "x86_64"))]
pub use Absent as Avx2;
#[cfg(not(target_arch = "x86_64"))]
pub use Absent as Avx512;
#[cfg(target_arch = "x86_64")]
pub use {super::avx2::Avx2, super::avx512::Avx512};

/// An instruction set that [`dispatch!`](crate::dispatch!) compiles a loop for. Only this crate implements it.
pub trait Isa: Copy {
    /// Runs an operation on a key: inlined into the loop, else as a call. `function` is for the baseline.
    #[doc(hidden)]
    #[allow(private_bounds, private_interfaces)] // Other crates cannot call it.
    fn run<O: KeyOp>(self, function: KernelFn<O>, target: O::Target<'_>, hash: u64) -> bool;
}

/// An instruction set in the loop `L`, a type that each expansion of the macro defines. So each loop has its own instances of the
/// operations, and the compiler inlines even a large function if it is called once.
pub struct InLoop<I, L>(I, PhantomData<L>);

impl<I: Copy, L> Clone for InLoop<I, L> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<I: Copy, L> Copy for InLoop<I, L> {}

impl<I: RunKeyOp, L> InLoop<I, L> {
    /// Runs a loop, compiled for the instruction set as far as it is inlined.
    #[inline(always)]
    pub(crate) fn call<R>(isa: I, body: impl FnOnce(Self) -> R) -> R {
        isa.call(
            #[inline(always)]
            || body(Self(isa, PhantomData)),
        )
    }
}

impl<I: RunKeyOp, L> Isa for InLoop<I, L> {
    #[inline(always)]
    #[allow(private_bounds, private_interfaces)] // As in the trait.
    fn run<O: KeyOp>(self, function: KernelFn<O>, target: O::Target<'_>, hash: u64) -> bool {
        self.0.run::<O, L>(function, target, hash)
    }
}

/// Runs loops and, in them, operations on single keys. Other crates cannot name it.
#[allow(private_bounds, private_interfaces)] // Other crates cannot call its methods.
pub trait RunKeyOp: Copy {
    /// Runs a loop, compiled for the instruction set as far as it is inlined.
    fn call<R>(self, body: impl FnOnce() -> R) -> R;

    /// See [`Isa::run`].
    fn run<O: KeyOp, L>(self, function: KernelFn<O>, target: O::Target<'_>, hash: u64) -> bool;
}

/// The instruction set that a loop is run with.
#[derive(Clone, Copy)]
pub enum LoopIsa {
    /// AVX-512 F, VL and DQ, and BMI2.
    Avx512(Avx512),
    /// AVX2 and BMI2.
    Avx2(Avx2),
    /// The instructions that the whole program is compiled for.
    Baseline(Baseline),
}

/// The instructions that are enabled for the whole program.
#[derive(Clone, Copy)]
pub struct Baseline;

#[allow(private_bounds, private_interfaces)] // As in the trait.
impl RunKeyOp for Baseline {
    #[inline(always)]
    fn call<R>(self, body: impl FnOnce() -> R) -> R {
        body()
    }

    #[inline(always)]
    fn run<O: KeyOp, L>(self, function: KernelFn<O>, target: O::Target<'_>, hash: u64) -> bool {
        function.run(target, hash)
    }
}

/// An instruction set that this architecture lacks. It has no values, so the compiler removes the loops for it.
#[cfg(not(target_arch = "x86_64"))]
#[derive(Clone, Copy)]
pub enum Absent {}

#[cfg(not(target_arch = "x86_64"))]
#[allow(private_bounds, private_interfaces)] // As in the trait.
impl RunKeyOp for Absent {
    fn call<R>(self, _: impl FnOnce() -> R) -> R {
        match self {}
    }

    fn run<O: KeyOp, L>(self, _: KernelFn<O>, _: O::Target<'_>, _: u64) -> bool {
        match self {}
    }
}
