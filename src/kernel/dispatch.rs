//! Dispatch: the only code that chooses a kernel, once for a batch, and beforehand for single keys.

use super::isa::{Baseline, LoopIsa};
use super::kind::Kernel;
#[cfg(all(target_arch = "aarch64", target_endian = "little", target_feature = "neon"))]
use super::neon;
use super::ops::{BatchOp, KeyOp};
use super::portable::{self, Portable};
#[cfg(target_arch = "x86_64")]
use super::{avx2, avx512};

/// The error for a kernel that this CPU or this build lacks.
pub(crate) struct UnavailableError;

/// A kernel that is known to be available: the CPU was checked, or its instructions were enabled at compile time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AvailableKernel(Kernel);

impl AvailableKernel {
    pub(crate) fn new(kernel: Kernel) -> Result<Self, UnavailableError> {
        if kernel.is_available() { Ok(Self(kernel)) } else { Err(UnavailableError) }
    }

    /// Returns the fastest available kernel.
    #[cfg(feature = "file")]
    pub(crate) fn detect() -> Self {
        Self(Kernel::detect())
    }

    pub(crate) fn kernel(self) -> Kernel {
        self.0
    }

    /// The best kernel for the instructions enabled at compile time, unless it is the portable one. The whole program may use
    /// them, so a single call needs no dispatch and is inlined.
    pub(crate) const STATIC: Option<Self> = if cfg!(all(
        target_arch = "x86_64",
        target_feature = "avx512f",
        target_feature = "avx512vl",
        target_feature = "avx512dq",
        target_feature = "bmi2"
    )) {
        Some(Self(Kernel::Avx512))
    } else if cfg!(all(target_arch = "x86_64", target_feature = "avx2", target_feature = "bmi2")) {
        Some(Self(Kernel::Avx2))
    } else if cfg!(all(target_arch = "aarch64", target_endian = "little", target_feature = "neon")) {
        Some(Self(Kernel::Neon))
    } else {
        None
    };

    /// Selects the instruction set of a loop in another crate: the baseline if the whole program is compiled for more.
    #[inline]
    pub(crate) fn loop_isa(self) -> LoopIsa {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: an `AvailableKernel` exists only for a kernel that is available.
            Kernel::Avx512 if Self::STATIC.is_none() => LoopIsa::Avx512(unsafe { avx512::Avx512::new_unchecked() }),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: an `AvailableKernel` exists only for a kernel that is available.
            Kernel::Avx2 if Self::STATIC.is_none() => LoopIsa::Avx2(unsafe { avx2::Avx2::new_unchecked() }),
            _ => LoopIsa::Baseline(Baseline),
        }
    }

    /// Runs an operation on this kernel, with `probes` (4, 8, 12 or 16) per key. Dispatches once, with two jumps.
    #[inline]
    pub(crate) fn run<T: BatchOp>(self, probes: u32, op: T) -> T::Output {
        match probes {
            4 => self.run_lanes::<T, 1>(op),
            8 => self.run_lanes::<T, 2>(op),
            12 => self.run_lanes::<T, 3>(op),
            _ => self.run_lanes::<T, 4>(op),
        }
    }

    fn run_lanes<T: BatchOp, const B: usize>(self, op: T) -> T::Output {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: an `AvailableKernel` exists only for a kernel that is available.
            Kernel::Avx2 => unsafe { avx2::run::<T, B>(op) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: an `AvailableKernel` exists only for a kernel that is available.
            Kernel::Avx512 => unsafe { avx512::run::<T, B>(op) },
            #[cfg(all(target_arch = "aarch64", target_endian = "little", target_feature = "neon"))]
            // SAFETY: an `AvailableKernel` exists only for a kernel that is available.
            Kernel::Neon => unsafe { neon::run::<T, B>(op) },
            _ => op.run::<Portable, B>(Portable),
        }
    }
}

/// The address of the operation on one key, compiled for one kernel and number of probes: one call, without a branch.
pub(crate) struct KernelFn<O: KeyOp>(FnPtr<O>);

type FnPtr<O> = for<'a> unsafe fn(<O as KeyOp>::Target<'a>, u64) -> bool;

impl<O: KeyOp> KernelFn<O> {
    /// Selects the function for `probes` (4, 8, 12 or 16) per key.
    #[inline(always)]
    pub(crate) fn new(kernel: AvailableKernel, probes: u32) -> Self {
        match probes {
            4 => Self::for_lane_probes::<1>(kernel),
            8 => Self::for_lane_probes::<2>(kernel),
            12 => Self::for_lane_probes::<3>(kernel),
            _ => Self::for_lane_probes::<4>(kernel),
        }
    }

    #[inline(always)]
    fn for_lane_probes<const B: usize>(kernel: AvailableKernel) -> Self {
        let function: FnPtr<O> = match kernel.0 {
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx2 => avx2::run_single::<O, B>,
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx512 => avx512::run_single::<O, B>,
            #[cfg(all(target_arch = "aarch64", target_endian = "little", target_feature = "neon"))]
            Kernel::Neon => neon::run_single::<O, B>,
            _ => portable::run_single::<O, B> as FnPtr<O>,
        };
        Self(function)
    }

    /// Runs the operation: inlined into the caller if the kernel is known at compile time, else by the function's address.
    #[inline(always)]
    pub(crate) fn run(self, target: O::Target<'_>, hash: u64) -> bool {
        let call = |Self(function), target| {
            // SAFETY: an `AvailableKernel` supplied the function, and exists only for a kernel that is available.
            unsafe { function(target, hash) }
        };
        let Some(kernel) = AvailableKernel::STATIC else { return call(self, target) };
        // A branch for each function: a choice among their addresses would not be inlined.
        match O::probes(&target) {
            4 => call(Self::for_lane_probes::<1>(kernel), target),
            8 => call(Self::for_lane_probes::<2>(kernel), target),
            12 => call(Self::for_lane_probes::<3>(kernel), target),
            _ => call(Self::for_lane_probes::<4>(kernel), target),
        }
    }
}

impl<O: KeyOp> Clone for KernelFn<O> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<O: KeyOp> Copy for KernelFn<O> {}
