//! `ScalableBloomFilter`: a filter for an unknown number of keys.

use crate::error::{BuildError, MergeError};
use crate::filter::bloom::BloomFilter;
use crate::filter::methods;
use crate::growing::stages::Stages;
use alloc::string::String;

/// A filter that grows with its keys and keeps the false-positive rate, for any number of keys.
///
/// It consists of [`BloomFilter`]s, its *stages*. Each takes twice as many keys as the one before, at 7/8 of its rate,
/// so that all of them together stay below the requested rate. A key is new if no stage has it, and is inserted into
/// the last one. When that is full, the next new key begins another one. All use one hasher, so that a key is hashed
/// once.
///
/// Growing costs memory: at 1 %, it takes 1.5 to 1.8 times as much as one filter sized for the same keys. A query also reads a
/// cache line in each stage that it visits, instead of one. If a bound on the keys is known within some 50 %, [`BloomFilter`]
/// is the better choice. docs/DESIGN.md has the figures, and the source of the scheme: Almeida, Baquero, Preguiça and
/// Hutchison, "Scalable Bloom Filters", 2007.
///
/// A [`union`](Self::union) keeps the stages of both, and has the combined rate of both. If the keys of all filters to be
/// merged have a bound, [`BloomFilter`]s of that size are better. A file cannot be mapped, because the blocks of its later
/// stages are not aligned in it.
///
/// Filters are equal if their stages, keys and rates are.
///
/// # Examples
/// ```
/// use bloomline::ScalableBloomFilter;
///
/// let mut seen = ScalableBloomFilter::new(1000, 0.01)?; // keys of the first stage, and the rate of all
/// for page in 0..50_000u64 {
///     seen.insert(&page)?;
/// }
/// assert!((0..50_000u64).all(|page| seen.contains(&page)));
/// assert_eq!(seen.stages().len(), 6); // 1000 + 2000 + … + 32,000 keys
/// assert!(seen.estimated_fpr() < 0.01);
/// # Ok::<(), bloomline::BuildError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct ScalableBloomFilter(pub(super) Stages);

impl ScalableBloomFilter {
    methods::constructors! { "bloomline::ScalableBloomFilter",
        /// Creates an empty filter whose first stage is for `expected_keys` keys.
        ///
        /// A guess that is too small costs stages, one for each doubling, and one that is too large costs memory. The builder
        /// takes keys and rate, and refuses memory and probes ([`BuildError::NotKeysAndRate`]), which the stages choose
        /// themselves.
    }
    methods::insert_methods!("bloomline::ScalableBloomFilter", one_writer that grows);
    #[cfg(feature = "rayon")]
    methods::par_insert_method! { "bloomline::ScalableBloomFilter", "mut ", [mut], Result<(), BuildError>, "?",
        /// Inserts many [`Keys`](crate::Keys) on all cores of the current rayon pool. Needs 4 MiB beside the filter. O(keys × stages).
        ///
        /// Which key is inserted into which stage varies between runs, and so do the false positives. The rate is the same. The
        /// number of [`keys`](Self::keys) may be too high by up to 1024 for each thread and stage, as in an
        /// [`AtomicScalableBloomFilter`](crate::AtomicScalableBloomFilter::keys).
        ///
        /// # Errors
        /// As [`insert`](Self::insert). Some of the keys are inserted then.
    }
    methods::query_methods!("bloomline::ScalableBloomFilter");
    methods::info_methods!();

    /// Returns the exact number of keys that were new, without those reported as seen by mistake. After a
    /// [`union`](Self::union) it is an upper bound, because keys that both filters had count twice.
    pub fn keys(&self) -> u64 {
        self.0.keys()
    }

    /// Returns the false-positive rate with the present keys, by the model. Takes some tens of microseconds per stage;
    /// [`current_fpr`](Self::current_fpr) reads the filter. Both take the stages as independent, which is a little low at high
    /// rates: by 2 % at 0.5, and by less below.
    ///
    /// # Examples
    /// ```
    /// let mut seen = bloomline::ScalableBloomFilter::new(1000, 0.01)?;
    /// assert_eq!(seen.estimated_fpr(), 0.0);
    /// for key in 0..7000u64 {
    ///     seen.insert(&key)?;
    /// }
    /// assert!(seen.estimated_fpr() < 0.01 * (1.0 + 0.875 + 0.875 * 0.875) / 8.0); // three stages
    /// # Ok::<(), bloomline::BuildError>(())
    /// ```
    pub fn estimated_fpr(&self) -> f64 {
        self.0.estimated_fpr()
    }

    /// Changes the name for the kind of keys, when the filter gets keys of another kind. Stages from a [`union`](Self::union)
    /// keep theirs. O(stages).
    ///
    /// # Errors
    /// [`BuildError::KeyName`] for a name of more than 1024 bytes, or with control characters. The filter keeps its name then.
    ///
    /// # Examples
    /// ```
    /// let builder = bloomline::ScalableBloomFilter::builder().expected_keys(1000).false_positive_rate(0.01);
    /// let mut seen = builder.key_name("url").build()?;
    /// seen.set_key_name("url or title")?;
    /// assert_eq!(seen.key_name(), "url or title");
    /// # Ok::<(), bloomline::BuildError>(())
    /// ```
    pub fn set_key_name(&mut self, name: impl Into<String>) -> Result<(), BuildError> {
        self.0.set_key_name(&name.into())
    }

    /// Returns the stages, at least one. Only the last one takes keys. Stages from a [`union`](Self::union) come first,
    /// then the filter's own, oldest first.
    pub fn stages(&self) -> &[BloomFilter] {
        &self.0.stages
    }

    /// Adds the keys of another filter, and continues to grow. It copies the other filter's stages, so
    /// [`false_positive_rate`](Self::false_positive_rate) becomes the rate of both together: 2 % for two filters at 1
    /// %. A query visits all stages. O(memory of the other filter).
    ///
    /// # Errors
    /// [`MergeError`] if the filters differ in seed or in the name of their keys, or would have more than 256 stages. Nothing is
    /// changed then.
    ///
    /// # Examples
    /// ```
    /// use bloomline::ScalableBloomFilter;
    /// let (mut a, mut b) = (ScalableBloomFilter::new(1000, 0.01)?, ScalableBloomFilter::new(10, 0.01)?);
    /// a.extend(0..5000u64);
    /// b.extend(4000..9000u64);
    /// a.union(&b)?;
    /// assert!((0..9000u64).all(|key| a.contains(&key)));
    /// assert!(a.false_positive_rate().unwrap() < 0.02);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn union(&mut self, other: &Self) -> Result<(), MergeError> {
        self.0.union(&other.0)
    }

    /// Replaces the last stage, which may have much room, by the smallest one that keeps its rate, if this saves an eighth of the
    /// memory. That stage takes no more keys: new ones are inserted into a stage for an eighth of the present keys, and growth
    /// continues from there. O(memory of the last stage).
    ///
    /// It may be called any number of times, such as before each save. The rate of the filter stays as requested. Calls together
    /// take at most 63/64 of it: after that, and with 256 stages, nothing is changed.
    ///
    /// # Errors
    /// [`BuildError`] if the next stage cannot be built. Nothing is changed then.
    ///
    /// # Examples
    /// ```
    /// let mut seen = bloomline::ScalableBloomFilter::new(1_000_000, 0.01)?;
    /// seen.extend(0..1000u64);
    /// seen.shrink_to_fit()?;
    /// assert!(seen.memory_bytes() < 20_000 && (0..1000u64).all(|key| seen.contains(&key)));
    /// # Ok::<(), bloomline::BuildError>(())
    /// ```
    pub fn shrink_to_fit(&mut self) -> Result<(), BuildError> {
        self.0.shrink_to_fit()
    }
}

methods::file_methods!(ScalableBloomFilter, "bloomline::ScalableBloomFilter");
methods::collect_impls!(ScalableBloomFilter, grows);
#[cfg(feature = "rayon")]
methods::par_collect_impls!(ScalableBloomFilter, grows);
methods::trait_impls!(ScalableBloomFilter, one_writer that grows);
