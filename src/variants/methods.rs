//! What all variants say about themselves, written once.

/// [`Layout`](super::Layout), by the methods of the same names.
macro_rules! implement_layout {
    ($filter:ident, $layout:expr, |$bytes:ident, $keys:ident| $for_memory:expr) => {
        impl $crate::variants::Layout for $filter {
            const NAME: &'static str = $layout.name;

            fn for_rate(expected_keys: u64, false_positive_rate: f64) -> Result<Self, $crate::error::BuildError> {
                Self::new(expected_keys, false_positive_rate)
            }

            fn for_memory($bytes: usize, $keys: u64) -> Result<Self, $crate::error::BuildError> {
                $for_memory
            }

            fn insert_hash(&mut self, hash: u64) -> bool {
                Self::insert_hash(self, hash)
            }

            fn contains_hash(&self, hash: u64) -> bool {
                Self::contains_hash(self, hash)
            }

            fn insert_hashes(&mut self, hashes: &[u64], new: &mut [bool]) -> usize {
                Self::insert_hashes(self, hashes, new)
            }

            fn contains_hashes(&self, hashes: &[u64], found: &mut [bool]) -> usize {
                Self::contains_hashes(self, hashes, found)
            }

            fn memory_bytes(&self) -> usize {
                Self::memory_bytes(self)
            }

            fn probes(&self) -> u32 {
                Self::probes(self)
            }

            fn expected_fpr(&self, keys: u64) -> f64 {
                Self::expected_fpr(self, keys)
            }
        }
    };
}

/// For a filter with the fields `params`, `size`, `hasher` and `blocks` that implements [`Shape`](super::shape::Shape).
macro_rules! layout_methods {
    ($filter:ident) => {
        impl $filter {
            /// A filter for `expected_keys` distinct keys, empty: the smallest that keeps the rate by the layout's model.
            /// Takes some milliseconds at most.
            ///
            /// # Errors
            /// [`BuildError`](crate::BuildError): no keys, a rate not between 0 and 1 or below what 64-bit hashes can
            /// keep, or a size that the system does not have.
            ///
            /// # Examples
            /// ```
            #[doc = concat!("use bloomline::variants::", stringify!($filter), ";")]
            #[doc = concat!("let filter = ", stringify!($filter), "::new(1_000_000, 0.01)?;")]
            /// assert!(filter.expected_fpr(1_000_000) <= 0.01);
            /// # Ok::<(), bloomline::BuildError>(())
            /// ```
            pub fn new(expected_keys: u64, false_positive_rate: f64) -> Result<Self, $crate::error::BuildError> {
                Self::build($crate::variants::size::Size::for_rate::<Self>(expected_keys, false_positive_rate)?)
            }

            /// A filter of at most `bytes` bytes, in whole blocks of 64, empty, with the number of probes that has the
            /// lowest rate for `expected_keys` distinct keys.
            ///
            /// # Errors
            /// [`BuildError`](crate::BuildError): less than a block, no keys, or a size that the system does not have.
            pub fn with_memory(bytes: usize, expected_keys: u64) -> Result<Self, $crate::error::BuildError> {
                Self::build($crate::variants::size::Size::for_memory::<Self>(bytes, expected_keys)?)
            }

            fn build(size: $crate::variants::size::Size) -> Result<Self, $crate::error::BuildError> {
                let params = size.params(<Self as $crate::variants::shape::Shape>::LAYOUT);
                let blocks = $crate::storage::Blocks::zeroed(params.blocks)?;
                let blocks = <Self as $crate::variants::shape::Shape>::empty(blocks);
                Ok(Self { params, size, hasher: $crate::hash::KeyHasher::new(0), blocks })
            }

            /// Whether a hash may have been inserted: always `true` if it was, and `true` at the false-positive rate if
            /// it was not. All 64 bits of a hash must be well mixed.
            #[inline]
            pub fn contains_hash(&self, hash: u64) -> bool {
                $crate::variants::shape::contains::<Self>(self.size, &self.blocks, hash)
            }

            /// Queries many hashes: `found[i]` is what [`contains_hash`](Self::contains_hash) says of `hashes[i]`.
            /// Returns how many were found. Several times faster than single calls on filters that no cache holds.
            ///
            /// # Panics
            /// If `found` is not as long as `hashes`.
            #[track_caller]
            pub fn contains_hashes(&self, hashes: &[u64], found: &mut [bool]) -> usize {
                $crate::batch::check_lengths(hashes.len(), found.len());
                let kernel = self.params.kernel;
                $crate::variants::shape::contains_all::<Self>(kernel, self.size, &self.blocks, hashes, found)
            }

            /// The size of the bits in bytes.
            pub fn memory_bytes(&self) -> usize {
                self.size.bytes(<Self as $crate::variants::shape::Shape>::LAYOUT)
            }

            /// Probes for each key.
            pub fn probes(&self) -> u32 {
                self.size.probes
            }

            /// The false-positive rate to expect once `keys` distinct keys are in: the model's, at any load.
            /// Takes microseconds.
            pub fn expected_fpr(&self, keys: u64) -> f64 {
                <Self as $crate::variants::shape::Shape>::expected_fpr(self.size, keys)
            }

            /// The number of distinct keys that are in, estimated from [`fill_ratio`](Self::fill_ratio); infinite when
            /// that is 1. As costly as that.
            pub fn estimated_keys(&self) -> f64 {
                let touched = <Self as $crate::variants::shape::Shape>::touched(self.size);
                $crate::fpr::keys_from_zeros(self.fill_ratio(), touched)
            }

            fn words(&self) -> impl Iterator<Item = [u64; 8]> {
                self.blocks.words()
            }

            fn check_same(&self, other: &Self) -> Result<(), $crate::error::MergeError> {
                self.params.check_same(&other.params)?;
                self.size.check_same(other.size)
            }
        }

        impl From<$crate::file::Loaded> for $filter {
            fn from(loaded: $crate::file::Loaded) -> Self {
                let size = $crate::variants::size::Size { units: loaded.units, probes: loaded.params.probes };
                Self { params: loaded.params, size, hasher: loaded.hasher, blocks: loaded.blocks.into() }
            }
        }

        impl core::fmt::Debug for $filter {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.debug_struct(stringify!($filter))
                    .field("memory_bytes", &self.memory_bytes())
                    .field("probes", &self.probes())
                    .field("seed", &self.params.seed)
                    .finish_non_exhaustive()
            }
        }

        $crate::variants::methods::implement_layout!(
            $filter,
            <Self as $crate::variants::shape::Shape>::LAYOUT,
            |bytes, keys| Self::with_memory(bytes, keys)
        );
    };
}

/// `insert_hash` and `insert_hashes` for a layout that is [`Exclusive`](super::shape::Exclusive), and equality.
macro_rules! exclusive_methods {
    ($filter:ident) => {
        impl $filter {
            /// Inserts a hash; whether it was new. See [`contains_hash`](Self::contains_hash).
            #[inline]
            pub fn insert_hash(&mut self, hash: u64) -> bool {
                $crate::variants::shape::insert::<Self>(self.size, &mut self.blocks, hash)
            }

            /// Inserts many hashes in order: `new[i]` tells whether `hashes[i]` was new, right also for hashes that
            /// repeat within the batch. Returns how many were new.
            ///
            /// # Panics
            /// If `new` is not as long as `hashes`.
            #[track_caller]
            pub fn insert_hashes(&mut self, hashes: &[u64], new: &mut [bool]) -> usize {
                $crate::batch::check_lengths(hashes.len(), new.len());
                let kernel = self.params.kernel;
                $crate::variants::shape::insert_all::<Self>(kernel, self.size, &mut self.blocks, hashes, new)
            }
        }

        /// Equal size, probes, seed and bits.
        impl PartialEq for $filter {
            fn eq(&self, other: &Self) -> bool {
                self.check_same(other).is_ok() && self.blocks.as_slice() == other.blocks.as_slice()
            }
        }

        impl Eq for $filter {}
    };
}

/// `insert_hash` and `insert_hashes` for a layout that is [`Shared`](super::shape::Shared); what their answer means.
macro_rules! shared_methods {
    ($filter:ident, $answer:literal) => {
        impl $filter {
            #[doc = concat!("Inserts a hash; ", $answer, ". See [`contains_hash`](Self::contains_hash).")]
            #[inline]
            pub fn insert_hash(&self, hash: u64) -> bool {
                <Self as $crate::variants::shape::Shared>::insert(self.size, &self.blocks, hash)
            }

            #[doc = concat!("Inserts many hashes in order. Of each `new` says: ", $answer, ". Returns for how many.")]
            ///
            /// # Panics
            /// If `new` is not as long as `hashes`.
            #[track_caller]
            pub fn insert_hashes(&self, hashes: &[u64], new: &mut [bool]) -> usize {
                $crate::batch::check_lengths(hashes.len(), new.len());
                $crate::variants::shape::insert_all_shared::<Self>(self.size, &self.blocks, hashes, new)
            }

            /// The share of bits that are set, 0 to 1. O(memory).
            pub fn fill_ratio(&self) -> f64 {
                <Self as $crate::variants::shape::Shape>::fill(self.size, &self.blocks)
            }

            /// Removes all keys. O(memory).
            pub fn clear(&mut self) {
                for word in self.blocks.as_slice().iter().flat_map(|block| &block.0) {
                    // Relaxed: `&mut self` rules out racing callers.
                    word.store(0, $crate::sync::Ordering::Relaxed);
                }
            }

            /// Adds the keys of another filter, while other threads insert into either. O(memory).
            ///
            /// # Errors
            /// [`MergeError`](crate::MergeError) if the filters differ in size, probes or seed; nothing is changed then.
            pub fn union(&self, other: &Self) -> Result<(), $crate::error::MergeError> {
                self.check_same(other)?;
                for (ours, theirs) in self.blocks.as_slice().iter().zip(other.words()) {
                    for (ours, theirs) in ours.0.iter().zip(theirs) {
                        // AcqRel, as in an insert.
                        ours.fetch_or(theirs, $crate::sync::Ordering::AcqRel);
                    }
                }
                Ok(())
            }
        }
    };
}

pub(crate) use {exclusive_methods, implement_layout, layout_methods, shared_methods};
