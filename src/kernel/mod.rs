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
mod portable;

use crate::block::{Block, Pattern};
use core::fmt;

pub(crate) use portable::Portable;

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
    /// Any CPU; vectors of the compile target's baseline (SSE2, NEON, …).
    Portable,
    /// x86-64 with AVX2 and BMI2.
    Avx2,
    /// x86-64 with AVX-512 F, VL and DQ, and BMI2.
    Avx512,
}

impl Kernel {
    /// All kernels, fastest first.
    pub const ALL: &'static [Self] = &[Self::Avx512, Self::Avx2, Self::Portable];

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
        }
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Portable => "portable",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
        })
    }
}

/// What a kernel does, for `B` probes in each lane; the specification is [`Pattern::word_and_mask`].
pub(crate) trait Isa: Copy {
    /// Whether all bits of the pattern are set.
    fn contains<const B: usize>(self, block: &Block, pattern: Pattern) -> bool;
    /// Sets the bits of the pattern; whether one of them was lacking. A block that lacks none is not written to.
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

/// Work on one key, which is called instead of inlined: with the hash beside it, two words more fit the registers of a call.
pub(crate) trait Single {
    fn run<I: Isa, const B: usize>(self, isa: I, hash: u64) -> bool;
}

/// This CPU, or this build, lacks the kernel.
pub(crate) struct Unavailable;

/// A kernel that is known to be available.
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

    /// Runs a task for a single key on this kernel.
    #[inline(always)]
    pub(crate) fn run_single<T: Single>(self, probes: u32, task: T, hash: u64) -> bool {
        match probes {
            4 => self.run_lanes_single::<T, 1>(task, hash),
            8 => self.run_lanes_single::<T, 2>(task, hash),
            12 => self.run_lanes_single::<T, 3>(task, hash),
            _ => self.run_lanes_single::<T, 4>(task, hash),
        }
    }

    #[inline(always)]
    fn run_lanes_single<T: Single, const B: usize>(self, task: T, hash: u64) -> bool {
        match self.0 {
            Kernel::Portable => run_portable::<T, B>(task, hash),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `Selected::new` saw the CPU features of this kernel, or the compiler was told of them: `TOLD`.
            Kernel::Avx2 => unsafe { avx2::run_single::<T, B>(task, hash) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            Kernel::Avx512 => unsafe { avx512::run_single::<T, B>(task, hash) },
            #[cfg(not(target_arch = "x86_64"))]
            Kernel::Avx2 | Kernel::Avx512 => run_portable::<T, B>(task, hash),
        }
    }

    fn run_lanes<T: Task, const B: usize>(self, task: T) -> T::Output {
        match self.0 {
            Kernel::Portable => task.run::<Portable, B>(Portable),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `Selected::new` saw the CPU features of this kernel.
            Kernel::Avx2 => unsafe { avx2::run::<T, B>(task) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `Selected::new` saw the CPU features of this kernel.
            Kernel::Avx512 => unsafe { avx512::run::<T, B>(task) },
            #[cfg(not(target_arch = "x86_64"))]
            Kernel::Avx2 | Kernel::Avx512 => task.run::<Portable, B>(Portable),
        }
    }
}

/// Not inlined: its many registers would be saved for the other kernels as well.
#[inline(never)]
fn run_portable<T: Single, const B: usize>(task: T, hash: u64) -> bool {
    task.run::<Portable, B>(Portable, hash)
}

/// Runs a task for a single key, inlined into the caller: for operations that use no vectors.
#[inline(always)]
pub(crate) fn run_inline<T: Single>(probes: u32, task: T, hash: u64) -> bool {
    match probes {
        4 => task.run::<Portable, 1>(Portable, hash),
        8 => task.run::<Portable, 2>(Portable, hash),
        12 => task.run::<Portable, 3>(Portable, hash),
        _ => task.run::<Portable, 4>(Portable, hash),
    }
}
