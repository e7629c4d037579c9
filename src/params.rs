//! What a filter is made from: its validated geometry, and the builder that finds it.

use crate::block::{BLOCK_BYTES, PROBES};
use crate::error::{BuildError, MergeError};
use crate::format::Format;
use crate::fpr;
use crate::hash::KeyHasher;
use crate::kernel::{Kernel, Selected};
use crate::plan::Plan;
use crate::purpose::{self, Purpose};
use crate::storage::MAX_BLOCKS;
use alloc::string::String;
use core::fmt;
use core::marker::PhantomData;

/// A size in units of a layout, and the probes: what tells which bits are a hash's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) units: u64,
    pub(crate) probes: u32,
}

impl Size {
    /// The size of the bits in bytes.
    pub(crate) fn bytes(self, format: &Format) -> usize {
        // At most those of MAX_BLOCKS blocks, which are a usize.
        (u128::from(self.units) * u128::from(format.unit_bits)).div_ceil(8) as usize
    }

    /// The share of all bits.
    pub(crate) fn share(self, format: &Format, ones: u64) -> f64 {
        ones as f64 / (self.units as f64 * format.unit_bits as f64)
    }
}

/// What a size is asked for by.
#[derive(Clone, Copy)]
pub(crate) enum Sizing {
    /// The least that keeps the rate with so many keys.
    Rate { keys: u64, rate: f64 },
    /// The whole blocks in so many bytes, with the probes that are best for so many keys.
    #[cfg_attr(not(feature = "variants"), expect(dead_code))]
    Memory { bytes: usize, keys: u64 },
}

/// The geometry of a filter. Filters of equal blocks, units, probes and seed put a key in the same bits.
#[derive(Clone, Copy)]
#[cfg_attr(test, derive(Debug))] // It has the seed, which no program is to print.
pub(crate) struct Params {
    pub(crate) blocks: usize,
    pub(crate) units: u64,
    pub(crate) probes: u32,
    pub(crate) seed: u64,
    pub(crate) kernel: Selected,
}

impl Params {
    /// Of a layout whose unit is the block.
    pub(crate) fn new(blocks: usize, probes: u32, seed: u64, kernel: Selected) -> Self {
        Self { blocks, units: blocks as u64, probes, seed, kernel }
    }

    pub(crate) fn size(&self) -> Size {
        Size { units: self.units, probes: self.probes }
    }

    /// The same geometry in fewer blocks, where the unit is the block.
    pub(crate) fn folded(&self, times: u32) -> Self {
        Self::new(self.blocks >> times, self.probes, self.seed, self.kernel)
    }

    /// How often filters of these geometries fold until they are equal: ours, theirs.
    pub(crate) fn folds_to_meet(&self, other: &Self) -> Result<(u32, u32), MergeError> {
        let times = |from: usize, to: usize| (from / to).checked_ilog2().unwrap_or(0);
        let (ours, theirs) = (times(self.blocks, other.blocks), times(other.blocks, self.blocks));
        if self.blocks << theirs != other.blocks << ours {
            return Err(MergeError::Blocks { ours: self.blocks, theirs: other.blocks });
        }
        self.folded(ours).check_same(&other.folded(theirs)).map(|()| (ours, theirs))
    }

    pub(crate) fn check_same(&self, other: &Self) -> Result<(), MergeError> {
        if self.blocks != other.blocks {
            return Err(MergeError::Blocks { ours: self.blocks, theirs: other.blocks });
        }
        if self.probes != other.probes {
            return Err(MergeError::Probes { ours: self.probes, theirs: other.probes });
        }
        if self.seed != other.seed {
            return Err(MergeError::Seed);
        }
        if self.units != other.units {
            return Err(MergeError::Units { ours: self.units, theirs: other.units });
        }
        Ok(())
    }
}

/// Builds a [`BloomFilter`](crate::BloomFilter), an [`AtomicBloomFilter`](crate::AtomicBloomFilter) or, from keys and
/// rate alone, a [`ScalableBloomFilter`](crate::ScalableBloomFilter).
///
/// Give two of [`expected_keys`](Self::expected_keys), [`false_positive_rate`](Self::false_positive_rate) and
/// [`memory`](Self::memory), or [`memory`](Self::memory) and [`probes`](Self::probes); the rest follows:
///
/// | given | size | probes, where not given |
/// |---|---|---|
/// | keys and rate | the least that keeps the rate, and up to 1/128 more so that the filter [folds](crate::BloomFilter::fold) | those that need the least |
/// | keys and memory | the memory | those with the lowest rate |
/// | rate and memory | the memory | those that take the most keys |
/// | memory and probes | the memory | |
///
/// Keys, rate and memory together are keys and rate with a limit. With the probes too, memory and probes are the size, and keys
/// and rate only tell what the filter is for.
///
/// # Examples
/// ```
/// use bloomline::{AtomicBloomFilter, BloomFilter};
///
/// let by_rate: BloomFilter = BloomFilter::builder()
///     .expected_keys(1_000_000)
///     .false_positive_rate(0.01)
///     .build()?;
/// assert_eq!(by_rate.memory_bytes(), 1_269_760); // 10.16 bits a key
///
/// let by_memory: AtomicBloomFilter = AtomicBloomFilter::builder()
///     .memory(64 << 20)
///     .false_positive_rate(0.01)
///     .random_seed()
///     .build()?;
/// assert!(by_memory.capacity(0.01) > 53_000_000);
/// # Ok::<(), bloomline::BuildError>(())
/// ```
#[derive(Clone)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct Builder<F> {
    keys: Option<u64>,
    rate: Option<f64>,
    memory: Option<usize>,
    probes: Option<u32>,
    seed: u64,
    kernel: Option<Kernel>,
    key_name: String,
    filter: PhantomData<fn() -> F>,
}

impl<F> Builder<F> {
    pub(crate) fn new() -> Self {
        Self {
            keys: None,
            rate: None,
            memory: None,
            probes: None,
            seed: 0,
            kernel: None,
            key_name: String::new(),
            filter: PhantomData,
        }
    }

    /// The number of distinct keys to plan for, at least 1.
    pub fn expected_keys(mut self, keys: u64) -> Self {
        self.keys = Some(keys);
        self
    }

    /// The false-positive rate once the expected keys are in, between 0 and 1, both excluded: 0.01 is 1 %.
    pub fn false_positive_rate(mut self, rate: f64) -> Self {
        self.rate = Some(rate);
        self
    }

    /// The size in bytes, rounded down to blocks of 64; at least 64.
    pub fn memory(mut self, bytes: usize) -> Self {
        self.memory = Some(bytes);
        self
    }

    /// The number of probes (bits set) for each key: 4, 8, 12 or 16.
    pub fn probes(mut self, probes: u32) -> Self {
        self.probes = Some(probes);
        self
    }

    /// The seed of the hash; 0 if not given. Only filters with the same seed can be merged.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// A seed that nobody can foresee, from the system's randomness: for keys that others choose, such as URLs,
    /// so that nobody can prepare keys which collide.
    #[cfg(feature = "std")]
    pub fn random_seed(self) -> Self {
        use std::hash::{BuildHasher, RandomState};
        self.seed(RandomState::new().hash_one(0u64))
    }

    /// A name for the kind of keys, such as `url` or `field 2 of a CSV line`. The filter's file keeps it, so that whoever
    /// finds the file knows what to ask for. At most 1024 bytes, without control characters.
    ///
    /// # Examples
    /// ```
    /// let filter: bloomline::BloomFilter = bloomline::BloomFilter::builder()
    ///     .expected_keys(1000)
    ///     .false_positive_rate(0.01)
    ///     .key_name("url")
    ///     .build()?;
    /// assert_eq!((filter.key_name(), filter.expected_keys()), ("url", Some(1000)));
    /// # Ok::<(), bloomline::BuildError>(())
    /// ```
    pub fn key_name(mut self, name: impl Into<String>) -> Self {
        self.key_name = name.into();
        self
    }

    /// The kernel to use instead of [`Kernel::detect`]. In a program that is compiled for its CPU (`-C target-cpu`), single calls use
    /// the kernel of that CPU all the same.
    pub fn kernel(mut self, kernel: Kernel) -> Self {
        self.kernel = Some(kernel);
        self
    }

    /// Builds the filter, empty.
    ///
    /// Takes microseconds whatever the size: memory is claimed from the system as it is written. docs/DESIGN.md has the time that
    /// the search for a size takes. Memory and probes need none. A [`KeyHasher`](crate::KeyHasher::new) is made too. For many
    /// small filters of one size, build one and clone it while it is empty.
    ///
    /// # Errors
    /// [`BuildError`] for a value out of its range, for too few values, for a size that overflows, for memory that
    /// the system refuses, for a rate that 64-bit hashes cannot keep, and for a kernel that the CPU lacks.
    pub fn build(self) -> Result<F, BuildError>
    where
        F: FromBuilder,
    {
        F::from_builder(self)
    }

    /// Returns what [`build`](Self::build) would build, without allocating it. Use it for a filter on another machine, or to
    /// choose a size. It does not plan scalable filters.
    ///
    /// # Errors
    /// [`BuildError`], as from `build`, but never for memory that the system refuses.
    ///
    /// # Examples
    /// ```
    /// let builder = bloomline::BloomFilter::builder().expected_keys(1_000_000_000_000).false_positive_rate(0.001);
    /// let plan = builder.plan()?;
    /// assert_eq!((plan.probes(), plan.memory_bytes() / 1_000_000_000), (8, 1984)); // 15.87 bits a key
    /// assert!(plan.expected_fpr(2_000_000_000_000) > 0.03);
    /// # Ok::<(), bloomline::BuildError>(())
    /// ```
    pub fn plan(&self) -> Result<Plan, BuildError>
    where
        F: FromParams,
    {
        let Params { blocks, probes, .. } = self.params()?;
        Ok(Plan { blocks, probes })
    }

    /// The hasher of the filter that [`build`](Self::build) would build, to hash keys for it before there is one, or for a filter on
    /// another machine. Takes the time of [`KeyHasher::new`].
    ///
    /// ```
    /// use bloomline::{BloomFilter, Key};
    /// let builder = BloomFilter::builder().expected_keys(1000).false_positive_rate(0.01).seed(7);
    /// let hash = "key".hash_with(&builder.hasher());
    /// assert_eq!(hash, "key".hash_with(builder.build()?.hasher()));
    /// # Ok::<(), bloomline::BuildError>(())
    /// ```
    pub fn hasher(&self) -> KeyHasher {
        KeyHasher::new(self.seed)
    }

    /// The expected keys and the rate, if they and nothing else were given to size by.
    pub(crate) fn keys_and_rate(&self) -> Option<(u64, f64)> {
        match (self.keys, self.rate, self.memory, self.probes) {
            (Some(keys), Some(rate), None, None) => Some((keys, rate)),
            _ => None,
        }
    }

    pub(crate) fn purpose(&self) -> Purpose {
        Purpose { keys: self.keys, rate: self.rate, key_name: self.key_name.clone() }
    }

    pub(crate) fn params(&self) -> Result<Params, BuildError> {
        if !purpose::is_key_name(&self.key_name) {
            return Err(BuildError::KeyName { bytes: self.key_name.len() });
        }
        let kernel = self.kernel.unwrap_or_else(Kernel::detect);
        let kernel = Selected::new(kernel).map_err(|_| BuildError::KernelUnavailable { kernel })?;
        if self.keys == Some(0) {
            return Err(BuildError::NoKeys);
        }
        if let Some(value) = self.rate
            && !(value > 0.0 && value < 1.0)
        {
            return Err(BuildError::Rate { value });
        }
        if let Some(value) = self.probes
            && !PROBES.contains(&value)
        {
            return Err(BuildError::Probes { value });
        }
        let memory_blocks = match self.memory {
            Some(bytes) if bytes < BLOCK_BYTES => return Err(BuildError::Memory { bytes }),
            Some(bytes) if bytes / BLOCK_BYTES > MAX_BLOCKS => {
                return Err(BuildError::TooLarge { bytes: bytes as u64, limit: fpr::bytes(MAX_BLOCKS as u64) });
            }
            Some(bytes) => Some((bytes / BLOCK_BYTES) as u64),
            None => None,
        };
        let (blocks, probes) = match (self.keys, self.rate, memory_blocks, self.probes) {
            (Some(_), Some(_), Some(blocks), Some(probes)) => (blocks, probes),
            (Some(keys), Some(rate), limit, _) => self.size_for_rate(keys, rate, limit)?,
            (Some(keys), None, Some(blocks), probes) => {
                (blocks, probes.unwrap_or_else(|| fpr::best_for_size(blocks, keys)))
            }
            (None, Some(rate), Some(blocks), _) => {
                let capacity = |probes: u32| (fpr::keys_for(blocks, probes, rate), probes);
                let candidates = PROBES.into_iter().filter(|&probes| self.probes.is_none_or(|given| given == probes));
                match candidates.map(capacity).max() {
                    Some((1.., probes)) => (blocks, probes),
                    _ => self.size_for_rate(1, rate, Some(blocks))?,
                }
            }
            (None, None, Some(blocks), probes) => (blocks, probes.ok_or(BuildError::Underspecified)?),
            (_, _, None, _) => return Err(BuildError::Underspecified),
        };
        // At most MAX_BLOCKS, which is a usize.
        Ok(Params::new(blocks as usize, probes, self.seed, kernel))
    }

    fn size_for_rate(&self, keys: u64, rate: f64, limit: Option<u64>) -> Result<(u64, u32), BuildError> {
        let floor = fpr::collision_floor(keys);
        if rate <= floor {
            return Err(BuildError::RateUnreachable { value: rate, floor });
        }
        // Search past the limit, to say how much would be needed.
        let unlimited = u64::MAX / BLOCK_BYTES as u64;
        let size = match self.probes {
            Some(probes) => fpr::blocks_for(keys, probes, rate, unlimited).map(|blocks| (blocks, probes)),
            None => fpr::best_for_rate(keys, rate, unlimited).map(|(probes, blocks)| (blocks, probes)),
        };
        let limit = limit.unwrap_or(MAX_BLOCKS as u64);
        match size {
            Some((blocks, probes)) if blocks <= limit => Ok((foldable(blocks).min(limit), probes)),
            size => Err(BuildError::TooLarge {
                bytes: fpr::bytes(size.map_or(u64::MAX, |(blocks, _)| blocks)),
                limit: fpr::bytes(limit),
            }),
        }
    }
}

/// Without the seed, which may be a secret.
impl<F> fmt::Debug for Builder<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("expected_keys", &self.keys)
            .field("false_positive_rate", &self.rate)
            .field("memory", &self.memory)
            .field("probes", &self.probes)
            .field("kernel", &self.kernel)
            .field("key_name", &self.key_name)
            .finish_non_exhaustive()
    }
}

/// The blocks in which a size is counted that folds to between 128 and 256 blocks: at most 1/128 more than the least.
fn foldable(blocks: u64) -> u64 {
    blocks.next_multiple_of(1 << (blocks / 128).max(1).ilog2())
}

/// The filters that a [`Builder`] builds.
pub(crate) trait FromBuilder: Sized {
    fn from_builder(builder: Builder<Self>) -> Result<Self, BuildError>;
}

/// The filters that a geometry describes.
pub(crate) trait FromParams: Sized {
    fn from_params(params: Params, purpose: Purpose) -> Result<Self, BuildError>;
}

impl<F: FromParams> FromBuilder for F {
    fn from_builder(builder: Builder<Self>) -> Result<Self, BuildError> {
        Self::from_params(builder.params()?, builder.purpose())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn builder() -> Builder<()> {
        Builder::new()
    }

    fn geometry(builder: Builder<()>) -> (usize, u32) {
        let params = builder.params().unwrap();
        (params.blocks, params.probes)
    }

    #[test]
    fn every_pair_of_values_gives_a_geometry() {
        // 10.1138 bits a key by the independent model's table.
        let (blocks, probes) = geometry(builder().expected_keys(10_000_000).false_positive_rate(0.01));
        assert_eq!(probes, 8);
        // The least, rounded up so that it folds ten times.
        let least = 10.1138 * 1e7 / 512.0;
        assert!(blocks % 1024 == 0 && (blocks as f64) > 0.9999 * least && (blocks as f64) < least + 1024.0, "{blocks}");

        let memory = blocks * 64;
        assert_eq!(geometry(builder().memory(memory).false_positive_rate(0.01)), (blocks, 8));
        assert_eq!(geometry(builder().memory(memory + 63).expected_keys(10_000_000)), (blocks, 8));
        assert_eq!(geometry(builder().memory(memory).probes(12)), (blocks, 12));
        // Four bits a key are best served by 4 probes, sixty by 16.
        assert_eq!(geometry(builder().memory(memory).expected_keys(25_000_000)).1, 4);
        assert_eq!(geometry(builder().memory(memory).expected_keys(1_600_000)).1, 16);
        assert_eq!(geometry(builder().memory(64).probes(4)), (1, 4));
        // What the filter is for has no say in a size that is given, be it too large or too small.
        for keys in [1, 10_000_000, 1_000_000_000] {
            let of_size = builder().memory(memory).probes(12).expected_keys(keys);
            assert_eq!(geometry(of_size.clone()), (blocks, 12));
            assert_eq!(geometry(of_size.false_positive_rate(1e-6)), (blocks, 12));
        }
    }

    #[test]
    fn bad_values_are_named() {
        let error = |builder: Builder<()>| builder.params().unwrap_err();
        assert_eq!(error(builder()), BuildError::Underspecified);
        assert_eq!(error(builder().expected_keys(1)), BuildError::Underspecified);
        assert_eq!(error(builder().false_positive_rate(0.5)), BuildError::Underspecified);
        assert_eq!(error(builder().memory(64)), BuildError::Underspecified);
        assert_eq!(error(builder().expected_keys(0).false_positive_rate(0.5)), BuildError::NoKeys);
        for value in [0.0, -0.0, -1.0, 1.0, 1.5, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(error(builder().expected_keys(1).false_positive_rate(value)), BuildError::Rate { value });
        }
        let nan = error(builder().expected_keys(1).false_positive_rate(f64::NAN));
        assert!(matches!(nan, BuildError::Rate { value } if value.is_nan()));
        for value in [0, 1, 5, 20, u32::MAX] {
            assert_eq!(error(builder().memory(64).probes(value)), BuildError::Probes { value });
        }
        for bytes in [0, 63] {
            assert_eq!(error(builder().memory(bytes).expected_keys(1)), BuildError::Memory { bytes });
        }
        assert!(matches!(error(builder().memory(usize::MAX).probes(8)), BuildError::TooLarge { .. }));
        assert_eq!(
            error(builder().expected_keys(1 << 60).false_positive_rate(1e-3)),
            BuildError::RateUnreachable { value: 1e-3, floor: 0.0625 }
        );
        assert!(matches!(
            error(builder().expected_keys(1 << 62).false_positive_rate(0.25 + 1e-10)),
            BuildError::TooLarge { limit, .. } if limit == fpr::bytes(MAX_BLOCKS as u64)
        ));
    }

    #[test]
    fn a_memory_limit_says_what_would_be_needed() {
        let sized = builder().expected_keys(1000).false_positive_rate(0.01);
        let needed = sized.params().unwrap().blocks * 64;
        assert!(sized.clone().memory(needed).params().is_ok());
        let limit = needed as u64 - 64;
        assert_eq!(
            sized.memory(limit as usize).params().unwrap_err(),
            BuildError::TooLarge { bytes: needed as u64, limit }
        );
        assert!(matches!(
            builder().memory(64).false_positive_rate(1e-30).params(),
            Err(BuildError::RateUnreachable { .. })
        ));
        assert!(matches!(
            builder().memory(64).false_positive_rate(1e-12).probes(4).params(),
            Err(BuildError::TooLarge { limit: 64, .. })
        ));
    }
}
