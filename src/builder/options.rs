//! `Builder`: the values that a filter is built from.

use crate::builder::spec::FilterSpec;
use crate::error::BuildError;
use crate::kernel::Kernel;
use crate::key::hash::KeyHasher;
use crate::layout::storage::Pages;
use alloc::string::String;
use core::fmt;
use core::marker::PhantomData;

/// Builds a filter of type `F`. Each type's `builder()` returns one.
///
/// Give two of [`expected_keys`](Self::expected_keys), [`false_positive_rate`](Self::false_positive_rate) and
/// [`memory`](Self::memory), or [`memory`](Self::memory) and [`probes`](Self::probes); the rest follows:
///
/// | given | size | probes, if not given |
/// |---|---|---|
/// | keys and rate | the smallest that keeps the rate, and up to 1/128 more so that the filter [folds](crate::BloomFilter::fold) | those with the smallest size |
/// | keys and memory | the memory | those with the lowest rate |
/// | rate and memory | the memory | those that take the most keys |
/// | memory and probes | the memory | |
///
/// With keys and rate, the memory is a limit. Memory and probes together determine the size, and keys and rate then
/// only describe the filter's purpose.
///
/// A filter of several parts, such as a [`ScalableBloomFilter`](crate::ScalableBloomFilter), takes keys and rate, and chooses
/// the rest by itself. Sizes of the module `variants` neither fold nor are rounded.
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
#[must_use = "a builder does nothing until `build` is called"]
pub struct Builder<F> {
    pub(crate) spec: FilterSpec,
    pub(crate) memory: Option<usize>,
    pub(crate) probes: Option<u32>,
    pub(crate) seed: u64,
    pub(crate) kernel: Option<Kernel>,
    pub(crate) pages: Pages,
    #[cfg(feature = "std")]
    pub(crate) generations: u32,
    #[cfg(feature = "std")]
    pub(crate) rotate_when_full: bool,
    pub(crate) filter: PhantomData<fn() -> F>,
}

impl<F> Builder<F> {
    pub(crate) fn new() -> Self {
        Self {
            spec: FilterSpec::default(),
            memory: None,
            probes: None,
            seed: 0,
            kernel: None,
            pages: Pages::default(),
            #[cfg(feature = "std")]
            generations: 2,
            #[cfg(feature = "std")]
            rotate_when_full: true,
            filter: PhantomData,
        }
    }

    /// Returns a builder for a part of the filter, with a size of its own.
    pub(crate) fn part<P>(&self, keys: u64, rate: f64) -> Builder<P> {
        let spec = FilterSpec { keys: Some(keys), rate: Some(rate), ..self.spec.clone() };
        Builder { spec, seed: self.seed, kernel: self.kernel, pages: self.pages, ..Builder::new() }
    }

    /// Sets the number of distinct keys to plan for, at least 1.
    pub fn expected_keys(mut self, keys: u64) -> Self {
        self.spec.keys = Some(keys);
        self
    }

    /// Sets the false-positive rate with the expected keys inserted, between 0 and 1, both excluded: 0.01 is 1 %.
    pub fn false_positive_rate(mut self, rate: f64) -> Self {
        self.spec.rate = Some(rate);
        self
    }

    /// Sets the size in bytes, rounded down to blocks of 64; at least 64.
    pub fn memory(mut self, bytes: usize) -> Self {
        self.memory = Some(bytes);
        self
    }

    /// Sets the number of probes (bits set) for each key: 4, 8, 12 or 16. Filters of the module `variants` have other numbers.
    pub fn probes(mut self, probes: u32) -> Self {
        self.probes = Some(probes);
        self
    }

    /// Sets the seed of the hash; 0 if not called. Only filters with the same seed can be merged.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Sets an unpredictable seed from the system's randomness: for keys that other parties choose, such as URLs, so that they
    /// cannot prepare keys that collide. A process and its forks get different seeds.
    ///
    /// # Panics
    /// If the system has neither processes nor a clock, as `wasm32-unknown-unknown`, which lacks randomness too.
    #[cfg(feature = "std")]
    pub fn random_seed(self) -> Self {
        use std::hash::{BuildHasher, RandomState};
        use std::time::SystemTime;
        // The standard library's random keys are the same in parent and child after a fork. Process and time are not.
        let moment = (std::process::id(), SystemTime::now());
        self.seed(RandomState::new().hash_one(moment))
    }

    /// Sets a name for the kind of keys, such as `url` or `field 2 of a CSV line`. The filter's file keeps it for
    /// readers of the file, who have to query keys of this kind. At most 1024 bytes, without control characters.
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
        self.spec.key_name = name.into();
        self
    }

    /// Sets the kernel to use instead of [`Kernel::detect`]. In a program that is compiled for its CPU (`-C target-cpu`),
    /// single calls use the kernel of that CPU regardless.
    pub fn kernel(mut self, kernel: Kernel) -> Self {
        self.kernel = Some(kernel);
        self
    }

    /// Sets whether a filter of 2 MiB and more asks Linux for pages of 2 MiB; `true` if not called. On other systems it has no
    /// effect.
    ///
    /// With huge pages, queries beyond the caches take fewer page walks. But memory is taken 2 MiB at a time: a thousand keys
    /// that are spread over a filter of 1.9 GB take 1.2 GB, and 4 MB with small pages. Choose `false` if there may be far fewer
    /// keys than the filter is made for.
    ///
    /// # Examples
    /// ```
    /// use bloomline::BloomFilter;
    /// let mut seen = BloomFilter::builder()
    ///     .expected_keys(1_000_000_000) // at most, and often far fewer
    ///     .false_positive_rate(0.01)
    ///     .huge_pages(false)
    ///     .build()?;
    /// assert!(seen.insert("a"));
    /// # Ok::<(), bloomline::BuildError>(())
    /// ```
    pub fn huge_pages(mut self, huge: bool) -> Self {
        self.pages = if huge { Pages::Huge } else { Pages::Small };
        self
    }

    /// Builds an empty filter.
    ///
    /// Takes microseconds regardless of the size: the system allocates memory as it is written. The search for a size
    /// takes 1 to 10 µs, and no time if memory and probes are given. A [`KeyHasher`](crate::KeyHasher::new) is created
    /// too. For many small filters of one size, build one and clone it while it is empty.
    ///
    /// # Errors
    /// [`BuildError`] for a value out of its range, for too few values, for a size that overflows, for memory that
    /// the system refuses, for a rate that 64-bit hashes cannot keep, and for a kernel that the CPU lacks.
    pub fn build(self) -> Result<F, BuildError>
    where
        F: TryFrom<Self, Error = BuildError>,
    {
        F::try_from(self)
    }

    /// Returns the hasher of the filter that [`build`](Self::build) would build, to hash keys for it beforehand, or for a
    /// filter on another machine. Takes the time of [`KeyHasher::new`].
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

    /// Returns the [`false_positive_rate`](Self::false_positive_rate) that was set, if any.
    ///
    /// ```
    /// use bloomline::BloomFilter;
    /// assert_eq!(BloomFilter::builder().expected_keys(1000).false_positive_rate(0.01).requested_rate(), Some(0.01));
    /// assert_eq!(BloomFilter::builder().memory(1 << 20).probes(8).requested_rate(), None);
    /// ```
    pub fn requested_rate(&self) -> Option<f64> {
        self.spec.rate
    }
}

/// Not derived, because a filter that rotates cannot be cloned, and its builder can.
impl<F> Clone for Builder<F> {
    fn clone(&self) -> Self {
        Self { spec: self.spec.clone(), ..*self }
    }
}

/// Omits the seed, which may be a secret.
impl<F> fmt::Debug for Builder<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("expected_keys", &self.spec.keys)
            .field("false_positive_rate", &self.spec.rate)
            .field("memory", &self.memory)
            .field("probes", &self.probes)
            .field("kernel", &self.kernel)
            .field("key_name", &self.spec.key_name)
            .finish_non_exhaustive()
    }
}

/// The construction of a filter's implementation from a [`Builder`].
pub(crate) trait FromBuilder: Sized {
    fn from_builder<F>(builder: Builder<F>) -> Result<Self, BuildError>;
}
