//! Kernels: the two operations on a block, once for each instruction set, and the only code that chooses among them.
//!
//! A kernel file holds a token type that implements [`KernelOps`], and (if the instruction set is not the baseline) a function `run`
//! compiled for it. A whole batch is a [`BatchOp`]: [`AvailableKernel::run`] dispatches once, and everything below is inlined
//! into code for that instruction set. Loops of other crates are compiled for an [`Isa`]. A token exists only after the CPU was
//! checked, so holding one is the proof that its instructions may run.
#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
pub(crate) mod block;
#[cfg(test)]
pub(crate) mod conformance;
mod dispatch;
mod isa;
mod kind;
// The other AArch64 targets have no NEON, or number its lanes from the other end.
#[cfg(all(target_arch = "aarch64", target_endian = "little", target_feature = "neon"))]
mod neon;
mod ops;
#[cfg(feature = "rayon")]
mod pick;
mod portable;
mod prefetch;
#[cfg(target_arch = "x86_64")]
mod x86;

pub(crate) use dispatch::{AvailableKernel, KernelFn};
pub use isa::{InLoop, Isa, LoopIsa, RunKeyOp};
pub use kind::Kernel;
pub(crate) use ops::{BatchOp, KernelOps, KeyOp};
#[cfg(feature = "rayon")]
pub(crate) use pick::pick;
pub(crate) use prefetch::prefetch;
