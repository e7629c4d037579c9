//! Kernels: the same two operations on one block, once for each instruction set; and the one place that chooses.
//!
//! A kernel file holds a token type that implements [`Isa`], and (where the instruction set is not the baseline) a
//! function `run` compiled for it. A whole batch is a [`Task`]: [`Selected::run`] dispatches once, and everything
//! below is inlined into code for that instruction set. A token exists only where the CPU was asked first, so holding
//! one is the proof that its instructions may run.
#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(test)]
mod conformance;
// The other AArch64 targets have no NEON, or number its lanes from the other end.
#[cfg(all(target_arch = "aarch64", target_endian = "little", target_feature = "neon"))]
mod neon;
#[cfg(feature = "rayon")]
mod pick;
mod portable;
mod prefetch;

use crate::block::{Block, Pattern};
use core::fmt;

#[cfg(feature = "rayon")]
pub(crate) use pick::pick;
pub(crate) use portable::Portable;
pub(crate) use prefetch::prefetch;

/// An instruction set that filters are probed with. All set the same bits and give the same answers.
///
/// A filter uses [`Kernel::detect`] unless its builder is told otherwise, which tests and benchmarks do.
///
/// # Examples
/// ```
/// use bloomline::{BloomFilter, Kernel};
/// for kernel in Kernel::available() {
///     let filter: BloomFilter = BloomFilter::builder()
///         .expected_keys(1000)
///         .false_positive_rate(0.01)
///         .kernel(kernel)
///         .build()?;
///     assert_eq!(filter.kernel(), kernel);
/// }
/// # Ok::<(), bloomline::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kernel {
    /// Any CPU; vectors of the compile target's baseline (SSE2, …).
    Portable,
    /// x86-64 with AVX2 and BMI2.
    Avx2,
    /// x86-64 with AVX-512 F, VL and DQ, and BMI2.
    Avx512,
    /// AArch64 with NEON, which nearly all of them have.
    Neon,
}

impl Kernel {
    /// All kernels, fastest first.
    pub const ALL: &'static [Self] = &[Self::Avx512, Self::Avx2, Self::Neon, Self::Portable];

    /// The fastest kernel that this CPU runs.
    ///
    /// With the feature `std` the CPU is asked at run time; without it, the features that the compiler was told of count.
    pub fn detect() -> Self {
        Self::available().next().unwrap_or(Self::Portable)
    }

    /// The kernels that this CPU runs, fastest first; [`Kernel::Portable`] is always among them.
    pub fn available() -> impl Iterator<Item = Self> {
        Self::ALL.iter().copied().filter(|kernel| kernel.is_available())
    }

    /// Whether this CPU runs it.
    pub fn is_available(self) -> bool {
        #[cfg(all(target_arch = "x86_64", feature = "std"))]
        macro_rules! has {
            ($($feature:tt),*) => { $(std::arch::is_x86_feature_detected!($feature))&&* };
        }
        #[cfg(all(target_arch = "x86_64", not(feature = "std")))]
        macro_rules! has {
            ($($feature:tt),*) => { $(cfg!(target_feature = $feature))&&* };
        }
        match self {
            Self::Portable => true,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => has!("avx2", "bmi2"),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => has!("avx512f", "avx512vl", "avx512dq", "bmi2"),
            #[cfg(not(target_arch = "x86_64"))]
            Self::Avx2 | Self::Avx512 => false,
            Self::Neon => cfg!(all(target_arch = "aarch64", target_endian = "little", target_feature = "neon")),
        }
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Portable => "portable",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
            Self::Neon => "neon",
        })
    }
}

/// What a kernel does, for `B` probes in each lane; the specification is [`Pattern::word_and_mask`].
pub(crate) trait Isa: Copy {
    /// Whether all bits of the pattern are set.
    fn contains<const B: usize>(self, block: &Block, pattern: Pattern) -> bool;
    /// Sets the bits of the pattern; whether one of them was lacking. It writes without a branch: in a mix of new and seen keys, a
    /// wrong guess costs as much as several inserts. docs/DESIGN.md has the measurement.
    fn insert<const B: usize>(self, block: &mut Block, pattern: Pattern) -> bool;
}

/// Work on many keys, to be compiled once for each kernel and number of probes.
///
/// `run` and what it calls in its loop are `#[inline(always)]`: only inlined into the kernel's own function does
/// the code get its instruction set.
pub(crate) trait Task {
    type Output;
    fn run<I: Isa, const B: usize>(self, isa: I) -> Self::Output;
}

/// An operation on a key, such as a query. It is compiled once for each kernel and number of probes: as a function of its own for
/// single keys ([`Call`]), and into the loop of a batch (batch.rs).
pub(crate) trait KeyOp {
    /// True if it writes to the place.
    const WRITES: bool;
    /// What the operation reads and writes. A pair of references is passed in registers, so single keys have no more.
    type Place<'a>;
    /// The probes of a key, for which the function is chosen: 4, 8, 12 or 16.
    fn probes(place: &Self::Place<'_>) -> u32;
    /// Asks for the cache lines of a hash.
    fn prefetch(place: &Self::Place<'_>, hash: u64);
    /// Runs the operation for a hash. See [`Task::run`].
    fn run<I: Isa, const B: usize>(isa: I, place: &mut Self::Place<'_>, hash: u64) -> bool;
}

/// This CPU, or this build, lacks the kernel.
pub(crate) struct Unavailable;

/// A kernel that is known to be available: the CPU was asked, or the compiler was told of its instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Selected(Kernel);

impl Selected {
    pub(crate) fn new(kernel: Kernel) -> Result<Self, Unavailable> {
        if kernel.is_available() { Ok(Self(kernel)) } else { Err(Unavailable) }
    }

    /// The fastest one.
    #[cfg(feature = "file")]
    pub(crate) fn detect() -> Self {
        Self(Kernel::detect())
    }

    pub(crate) fn kernel(self) -> Kernel {
        self.0
    }

    /// The best kernel of the instructions that the compiler was told of, if it was told of more than the baseline. The whole
    /// program may consist of them, so a single call needs no dispatch and is inlined.
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

    /// Runs a task on this kernel, with `probes` (4, 8, 12 or 16) a key. One dispatch, of two jumps.
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

/// The address of the operation on one key, compiled for one kernel and number of probes: one call, and nothing to decide.
pub(crate) struct Call<O: KeyOp>(Function<O>);

type Function<O> = for<'a> unsafe fn(<O as KeyOp>::Place<'a>, u64) -> bool;

impl<O: KeyOp> Call<O> {
    /// For `probes` (4, 8, 12 or 16) a key.
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

    /// Runs the operation: inlined into the caller where the compiler was told of the CPU, else by the function's address.
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
