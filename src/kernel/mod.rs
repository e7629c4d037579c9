//! Kernels: the two operations on a block, once for each instruction set, and the only code that chooses among them.
//!
//! A kernel file holds a token type that implements [`KernelOps`], and (if the instruction set is not the baseline) a function `run`
//! compiled for it. A whole batch is a [`BatchOp`]: [`AvailableKernel::run`] dispatches once, and everything below is inlined
//! into code for that instruction set. A token exists only after the CPU was checked, so holding one is the proof that its
//! instructions may run.
#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
pub(crate) mod block;
mod compiled;
#[cfg(test)]
pub(crate) mod conformance;
mod dispatch;
mod isa;
mod kind;
// The other AArch64 targets have no NEON, or number its lanes from the other end.
#[cfg(all(target_arch = "aarch64", target_endian = "little", target_feature = "neon"))]
mod neon;
#[cfg(feature = "rayon")]
mod pick;
mod portable;
mod prefetch;

pub use compiled::Isa;
pub(crate) use compiled::{Avx2, Avx512, Baseline};
pub(crate) use dispatch::{AvailableKernel, KernelFn};
pub(crate) use isa::{BatchOp, KernelOps, KeyOp};
pub use kind::Kernel;
#[cfg(feature = "rayon")]
pub(crate) use pick::pick;
#[cfg(all(test, loom))]
pub(crate) use portable::Portable;
pub(crate) use prefetch::prefetch;
