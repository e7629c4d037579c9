//! Errors: each names the value, the bound, and what to do.

use crate::kernel::Kernel;
use alloc::string::String;
use core::fmt;

/// Defines the messages of an error type: a line for each of its kinds.
macro_rules! messages {
    ($Error:ident { $($kind:pat => $message:literal,)* }) => {
        impl fmt::Display for $Error {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $($kind => write!(f, $message),)*
                }
            }
        }
    };
}
#[cfg(feature = "file")]
pub(crate) use messages;

/// The reason that a filter cannot be built.
///
/// # Examples
/// ```
/// use bloomline::{BloomFilter, BuildError};
/// let error = BloomFilter::new(1000, 1.5).unwrap_err();
/// assert_eq!(error, BuildError::Rate { value: 1.5 });
/// assert_eq!(error.to_string(), "false-positive rate 1.5 is not between 0 and 1 (both excluded)");
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum BuildError {
    /// Zero expected keys.
    NoKeys,
    /// The false-positive rate is not between 0 and 1, or is not a number.
    Rate {
        /// The requested rate.
        value: f64,
    },
    /// A number of probes that the layout does not offer.
    Probes {
        /// The requested number.
        value: u32,
    },
    /// A number of probes that a layout of the module `variants` does not offer.
    LayoutProbes {
        /// The layout's name.
        layout: &'static str,
        /// The requested number.
        value: u32,
        /// The numbers that it offers.
        allowed: &'static str,
    },
    /// A bitset of a split block filter that is not one or more blocks of 32 bytes.
    Bitset {
        /// Its bytes.
        bytes: usize,
    },
    /// Less memory than one block.
    Memory {
        /// The requested bytes.
        bytes: usize,
    },
    /// Neither expected keys nor a rate to size by.
    Underspecified,
    /// A [`ScalableBloomFilter`](crate::ScalableBloomFilter), or another filter of several parts, without expected keys or
    /// without a rate, or with memory or probes.
    NotKeysAndRate,
    /// A number of generations that a `RotatingBloomFilter` does not offer.
    Generations {
        /// The requested number.
        value: u32,
    },
    /// The rate is lower than 64-bit hashes can keep at this number of keys.
    RateUnreachable {
        /// The requested rate.
        value: f64,
        /// The share of keys that collide in all 64 bits: `keys / 2^64`.
        floor: f64,
    },
    /// The filter that the rate needs does not fit the limit: the memory given, or the address space, which is below 2 GiB on
    /// 32-bit machines.
    TooLarge {
        /// The bytes needed (saturating).
        bytes: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// The system refused the memory.
    OutOfMemory {
        /// The requested bytes.
        bytes: usize,
    },
    /// A name for the keys that has a control character, or more than 1024 bytes.
    KeyName {
        /// Its bytes.
        bytes: usize,
    },
    /// The CPU (or this build) lacks the requested kernel.
    KernelUnavailable {
        /// The requested kernel.
        kernel: Kernel,
    },
}

impl BuildError {
    /// Converts an error about a part's rate to one about the `rate` of the whole filter.
    pub(crate) fn for_whole(self, rate: f64) -> Self {
        match self {
            Self::RateUnreachable { value, floor } => {
                Self::RateUnreachable { value: rate, floor: floor * (rate / value) }
            }
            error => error,
        }
    }
}

messages! { BuildError {
    Self::NoKeys => "0 expected keys: give at least 1",
    Self::Rate { value } => "false-positive rate {value} is not between 0 and 1 (both excluded)",
    Self::Probes { value } => "{value} probes: choose 4, 8, 12 or 16",
    Self::LayoutProbes { layout, value, allowed } => "{value} probes: the layout `{layout}` has {allowed}",
    Self::Bitset { bytes } => "a bitset of {bytes} bytes: give 32, one block, or a multiple",
    Self::Memory { bytes } => "{bytes} bytes of memory: give at least 64, one block (128 for counters)",
    Self::Underspecified => "nothing to size the filter by: give two of expected keys, false-positive rate and memory, or memory and probes",
    Self::NotKeysAndRate => "a scalable or rotating filter is sized by expected keys (of the first stage, or of the window) and a false-positive rate: give these two, without memory or probes",
    Self::Generations { value } => "{value} generations: choose 2 to 64",
    Self::RateUnreachable { value, floor } => "false-positive rate {value:e} cannot be kept: 64-bit hashes of this many keys already collide at a rate of {floor:.1e}; ask for a higher rate",
    Self::TooLarge { bytes, limit } => "the filter would take {bytes} bytes, above the limit of {limit}: ask for a higher false-positive rate, fewer keys or less memory",
    Self::OutOfMemory { bytes } => "the system does not have {bytes} bytes of memory for the filter: ask for a higher \
         false-positive rate or fewer keys",
    Self::KeyName { bytes } => "a name for the keys of {bytes} bytes: give at most 1024, without control characters",
    Self::KernelUnavailable { kernel } => "kernel {kernel} is not available here: choose one of Kernel::available()",
}}

impl core::error::Error for BuildError {}

/// The reason that two filters cannot be merged: they would put the same key in different bits.
///
/// # Examples
/// ```
/// use bloomline::{BloomFilter, MergeError};
/// let mut a = BloomFilter::builder().expected_keys(1000).false_positive_rate(0.01).seed(1).build()?;
/// let b: BloomFilter = BloomFilter::builder().expected_keys(1000).false_positive_rate(0.01).seed(2).build()?;
/// assert_eq!(a.union(&b), Err(MergeError::Seed));
/// # Ok::<(), bloomline::BuildError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MergeError {
    /// Another number of blocks.
    Blocks {
        /// Blocks of the filter merged into.
        ours: usize,
        /// Blocks of the other filter.
        theirs: usize,
    },
    /// The filter merged into is larger, and only a filter with one writer folds: merge it into the other one, to whose size
    /// it folds.
    Order {
        /// Blocks of the filter merged into.
        ours: usize,
        /// Blocks of the other filter.
        theirs: usize,
    },
    /// Another size within the same number of blocks. A classic filter counts bits, a split block filter blocks of 32 bytes.
    Units {
        /// Size of the filter merged into.
        ours: u64,
        /// Size of the other filter.
        theirs: u64,
    },
    /// Another number of probes.
    Probes {
        /// Probes of the filter merged into.
        ours: u32,
        /// Probes of the other filter.
        theirs: u32,
    },
    /// Another kind of keys, by [`Builder::key_name`](crate::Builder::key_name).
    KeyName {
        /// The name in the filter merged into.
        ours: String,
        /// The name in the other filter.
        theirs: String,
    },
    /// More stages than a scalable filter takes.
    Stages {
        /// Stages of both filters.
        stages: usize,
        /// The highest number that a filter takes.
        max: usize,
    },
    /// Another seed. The message names neither seed, because it may be a secret: see `seed()`.
    Seed,
}

messages! { MergeError {
    Self::Blocks { ours, theirs } => "filters differ in size: {ours} and {theirs} blocks; {BUILD_BOTH}",
    Self::Order { ours, theirs } => "a filter of {ours} blocks that other threads share does not fold to the {theirs} of the other: merge it into the other one, to whose size it folds",
    Self::Units { ours, theirs } => "filters differ in size: {ours} and {theirs}; {BUILD_BOTH}",
    Self::Probes { ours, theirs } => "filters differ in probes: {ours} and {theirs}; {BUILD_BOTH}",
    Self::KeyName { ours, theirs } => "filters have different kinds of keys: `{ours}` and `{theirs}`; build both from the same kind",
    Self::Stages { stages, max } => "the filters have {stages} stages together, and one takes {max}; build one filter for all keys",
    Self::Seed => "filters differ in seed; {BUILD_BOTH}",
}}

impl core::error::Error for MergeError {}

/// The end of the messages about size, probes and seed.
const BUILD_BOTH: &str = "build both with the same expected keys, rate and seed";
