//! What both filter types say about themselves, written once.

/// Methods for a filter with the fields `params`, `hasher` and `blocks`, and a method `words` that walks its blocks.
macro_rules! common_methods {
    ($filter:ident) => {
        impl $filter {
            /// A filter for `expected_keys` distinct keys, empty.
            ///
            /// The size is the least that keeps the rate, found from the exact model of the layout, not from the
            /// classic formula. Use [`builder`](Self::builder) for a size in bytes, a number of probes or a seed.
            ///
            /// # Errors
            /// [`BuildError`](crate::BuildError): no keys, a rate not between 0 and 1, or a size that the system
            /// does not have.
            ///
            /// # Examples
            /// ```
            #[doc = concat!("let filter = bloomline::", stringify!($filter), "::new(1_000_000, 0.01)?;")]
            /// assert!(filter.expected_fpr(1_000_000) <= 0.01);
            /// assert!(filter.memory_bytes() < 1_270_000);
            /// # Ok::<(), bloomline::BuildError>(())
            /// ```
            pub fn new(expected_keys: u64, false_positive_rate: f64) -> Result<Self, $crate::error::BuildError> {
                Self::builder().expected_keys(expected_keys).false_positive_rate(false_positive_rate).build()
            }

            /// A [`Builder`](crate::Builder) for a filter of this type.
            pub fn builder() -> $crate::params::Builder<Self> {
                $crate::params::Builder::new()
            }

            /// The number of blocks, 64 bytes each.
            pub fn block_count(&self) -> usize {
                self.params.blocks
            }

            /// The size of the bits in bytes.
            pub fn memory_bytes(&self) -> usize {
                self.params.blocks * $crate::block::BLOCK_BYTES
            }

            /// Bits set for each key: 4, 8, 12 or 16.
            pub fn probes(&self) -> u32 {
                self.params.probes
            }

            /// The seed of the hash.
            pub fn seed(&self) -> u64 {
                self.params.seed
            }

            /// The kernel in use.
            pub fn kernel(&self) -> $crate::kernel::Kernel {
                self.params.kernel.kernel()
            }

            /// The hasher in use, to hash keys once for several calls of `insert_hash` and `contains_hash`.
            pub fn hasher(&self) -> &$crate::hash::KeyHasher {
                &self.hasher
            }

            /// The false-positive rate to expect once `keys` distinct keys are in: the model's, at any load.
            /// Takes microseconds.
            pub fn expected_fpr(&self, keys: u64) -> f64 {
                $crate::fpr::rate(self.params.blocks as u64, self.params.probes, keys)
            }

            /// The most distinct keys for which [`expected_fpr`](Self::expected_fpr) stays at or below
            /// `false_positive_rate`; 0 if one key is too many.
            pub fn capacity(&self, false_positive_rate: f64) -> u64 {
                $crate::fpr::keys_for(self.params.blocks as u64, self.params.probes, false_positive_rate)
            }

            /// The share of bits that are set, 0 to 1. Reads the whole filter: O(memory), as is all that rests on it.
            pub fn fill_ratio(&self) -> f64 {
                $crate::stats::fill_ratio(self.words())
            }

            /// The number of distinct keys that were inserted, estimated from the share of bits set; infinite when all
            /// are. Its standard deviation is below 0.2 % from a million keys on. O(memory).
            pub fn estimated_keys(&self) -> f64 {
                $crate::fpr::keys_from_fill(self.params.blocks, self.params.probes, self.fill_ratio())
            }

            /// The false-positive rate of the bits as they are: exact for keys with random hashes, whatever was
            /// inserted and however often. O(memory).
            pub fn current_fpr(&self) -> f64 {
                $crate::stats::current_rate(self.words(), self.params.probes)
            }
        }

        impl core::fmt::Debug for $filter {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.debug_struct(stringify!($filter))
                    .field("block_count", &self.block_count())
                    .field("probes", &self.probes())
                    .field("seed", &self.seed())
                    .field("kernel", &self.kernel())
                    .finish_non_exhaustive()
            }
        }
    };
}

pub(crate) use common_methods;
