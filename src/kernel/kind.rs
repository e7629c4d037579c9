//! `Kernel`: the instruction sets by name, and which of them this CPU has.

use core::fmt;

/// An instruction set that filters are probed with. All set the same bits and give the same answers.
///
/// A filter uses [`Kernel::detect`] unless its builder names another, as tests and benchmarks do.
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

    /// Returns the fastest kernel that this CPU runs.
    ///
    /// With the feature `std` the CPU is checked at run time. Without it, the instructions enabled at compile time count.
    pub fn detect() -> Self {
        Self::available().next().unwrap_or(Self::Portable)
    }

    /// Returns the kernels that this CPU runs, fastest first; [`Kernel::Portable`] is always among them.
    pub fn available() -> impl Iterator<Item = Self> {
        Self::ALL.iter().copied().filter(|kernel| kernel.is_available())
    }

    /// Returns true if this CPU runs the kernel.
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
