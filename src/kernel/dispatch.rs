//! Dispatch: the only code that chooses a kernel, once for a batch, and beforehand for single keys.

use super::isa::{KeyOp, Task};
use super::kind::Kernel;
#[cfg(all(target_arch = "aarch64", target_endian = "little", target_feature = "neon"))]
use super::neon;
use super::portable::{self, Portable};
#[cfg(target_arch = "x86_64")]
use super::{avx2, avx512};

/// The error for a kernel that this CPU or this build lacks.
pub(crate) struct Unavailable;

/// A kernel that is known to be available: the CPU was checked, or its instructions were enabled at compile time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Selected(Kernel);

impl Selected {
    pub(crate) fn new(kernel: Kernel) -> Result<Self, Unavailable> {
        if kernel.is_available() { Ok(Self(kernel)) } else { Err(Unavailable) }
    }

    /// The fastest available kernel.
    #[cfg(feature = "file")]
    pub(crate) fn detect() -> Self {
        Self(Kernel::detect())
    }

    pub(crate) fn kernel(self) -> Kernel {
        self.0
    }

    /// The best kernel for the instructions enabled at compile time, if they exceed the baseline. The whole program may use
    /// them, so a single call needs no dispatch and is inlined.
    pub(crate) const TOLD: Option<Self> = if cfg!(all(
        target_arch = "x86_64",
        target_feature = "avx512f",
        target_feature = "avx512vl",
        target_feature = "avx512dq",
        target_feature = "bmi2"
    )) {
        Some(Self(Kernel::Avx512))
    } else if cfg!(all(target_arch = "x86_64", target_feature = "avx2", target_feature = "bmi2")) {
        Some(Self(Kernel::Avx2))
    } else {
        None
    };

    /// Runs a task on this kernel, with `probes` (4, 8, 12 or 16) per key. Dispatches once, with two jumps.
    #[inline]
    pub(crate) fn run<T: Task>(self, probes: u32, task: T) -> T::Output {
        match probes {
            4 => self.run_lanes::<T, 1>(task),
            8 => self.run_lanes::<T, 2>(task),
            12 => self.run_lanes::<T, 3>(task),
            _ => self.run_lanes::<T, 4>(task),
        }
    }

    fn run_lanes<T: Task, const B: usize>(self, task: T) -> T::Output {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: a `Selected` exists only for a kernel that is available.
            Kernel::Avx2 => unsafe { avx2::run::<T, B>(task) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: a `Selected` exists only for a kernel that is available.
            Kernel::Avx512 => unsafe { avx512::run::<T, B>(task) },
            #[cfg(all(target_arch = "aarch64", target_endian = "little", target_feature = "neon"))]
            // SAFETY: a `Selected` exists only for a kernel that is available.
            Kernel::Neon => unsafe { neon::run::<T, B>(task) },
            _ => task.run::<Portable, B>(Portable),
        }
    }
}

/// The address of the operation on one key, compiled for one kernel and number of probes: one call, without a branch.
pub(crate) struct Call<O: KeyOp>(Function<O>);

type Function<O> = for<'a> unsafe fn(<O as KeyOp>::Place<'a>, u64) -> bool;

impl<O: KeyOp> Call<O> {
    /// Selects the function for `probes` (4, 8, 12 or 16) per key.
    #[inline(always)]
    pub(crate) fn new(kernel: Selected, probes: u32) -> Self {
        match probes {
            4 => Self::of::<1>(kernel),
            8 => Self::of::<2>(kernel),
            12 => Self::of::<3>(kernel),
            _ => Self::of::<4>(kernel),
        }
    }

    #[inline(always)]
    fn of<const B: usize>(kernel: Selected) -> Self {
        let function: Function<O> = match kernel.0 {
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx2 => avx2::run_single::<O, B>,
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx512 => avx512::run_single::<O, B>,
            #[cfg(all(target_arch = "aarch64", target_endian = "little", target_feature = "neon"))]
            Kernel::Neon => neon::run_single::<O, B>,
            _ => portable::run_single::<O, B> as Function<O>,
        };
        Self(function)
    }

    /// Runs the operation: inlined into the caller if the kernel is known at compile time, else by the function's address.
    #[inline(always)]
    pub(crate) fn run(self, place: O::Place<'_>, hash: u64) -> bool {
        let call = |Self(function), place| {
            // SAFETY: the function is that of a `Selected`, which exists only for a kernel that is available.
            unsafe { function(place, hash) }
        };
        let Some(kernel) = Selected::TOLD else { return call(self, place) };
        // A branch for each function: a choice among their addresses would not be inlined.
        match O::probes(&place) {
            4 => call(Self::of::<1>(kernel), place),
            8 => call(Self::of::<2>(kernel), place),
            12 => call(Self::of::<3>(kernel), place),
            _ => call(Self::of::<4>(kernel), place),
        }
    }
}

impl<O: KeyOp> Clone for Call<O> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<O: KeyOp> Copy for Call<O> {}
