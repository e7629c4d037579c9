//! Keys in place of hashes, for the variants that hash as the rest of the crate does.

/// For a filter with the methods on hashes; `mut` if inserting needs it, and what its answer means.
macro_rules! key_methods {
    ($filter:ident, [$($mut:ident)?], $answer:literal) => {
        impl $filter {
            /// The same filter with another seed of the hash, empty: keys that are in would not be found again. The seed
            /// is 0 at first. Only filters with the same seed can be merged. O(memory).
            pub fn with_seed(mut self, seed: u64) -> Self {
                self.clear();
                self.params.seed = seed;
                self.hasher = $crate::hash::KeyHasher::new(seed);
                self
            }

            /// The seed of the hash.
            pub fn seed(&self) -> u64 {
                self.params.seed
            }

            /// The hasher in use, to hash keys once for several calls.
            pub fn hasher(&self) -> &$crate::hash::KeyHasher {
                &self.hasher
            }

            #[doc = concat!("Inserts a key; ", $answer, ". O(length of the key).")]
            ///
            /// # Examples
            /// ```
            #[doc = concat!("use bloomline::variants::", stringify!($filter), ";")]
            #[doc = concat!("let ", $(stringify!($mut), " ",)? "seen = ", stringify!($filter), "::new(1000, 0.001)?;")]
            /// assert!(seen.insert("a"));
            /// assert!(!seen.insert("a"));
            /// assert!(seen.contains("a"));
            /// # Ok::<(), bloomline::BuildError>(())
            /// ```
            #[inline]
            pub fn insert<K: $crate::key::Key + ?Sized>(&$($mut)? self, key: &K) -> bool {
                self.insert_hash(key.hash(&self.hasher))
            }

            /// Whether a key may have been inserted: always `true` if it was, and `true` at the false-positive rate if it
            /// was not. O(length of the key).
            #[inline]
            pub fn contains<K: $crate::key::Key + ?Sized>(&self, key: &K) -> bool {
                self.contains_hash(key.hash(&self.hasher))
            }

            #[doc = concat!("Inserts many keys in order. Of each `new` says: ", $answer, ". Returns for how many.")]
            ///
            /// # Panics
            /// If `new` is not as long as `keys`.
            #[track_caller]
            pub fn insert_batch<K: $crate::key::Key>(&$($mut)? self, keys: &[K], new: &mut [bool]) -> usize {
                $crate::batch::check_lengths(keys.len(), new.len());
                let hasher = self.hasher.clone();
                $crate::batch::hashed(&hasher, keys, new, |hashes, new| self.insert_hashes(hashes, new))
            }

            /// Queries many keys: `found[i]` is what [`contains`](Self::contains) says of `keys[i]`. Returns how many
            /// were found.
            ///
            /// # Panics
            /// If `found` is not as long as `keys`.
            #[track_caller]
            pub fn contains_batch<K: $crate::key::Key>(&self, keys: &[K], found: &mut [bool]) -> usize {
                $crate::batch::check_lengths(keys.len(), found.len());
                $crate::batch::hashed(&self.hasher, keys, found, |hashes, found| self.contains_hashes(hashes, found))
            }
        }
    };
}

/// `fill_ratio`, `clear` and `union` for [`Blocks`](crate::storage::Blocks) whose filters merge bit by bit.
macro_rules! bit_methods {
    ($filter:ident) => {
        impl $filter {
            /// The share of bits that are set, 0 to 1. O(memory).
            pub fn fill_ratio(&self) -> f64 {
                <Self as $crate::variants::shape::Shape>::fill(self.size, &self.blocks)
            }

            /// Removes all keys. O(memory).
            pub fn clear(&mut self) {
                self.blocks.as_mut_slice().fill($crate::block::Block::default());
            }

            /// Makes this filter hold the keys of both: bit by bit the filter that both sets of keys would have made.
            /// O(memory).
            ///
            /// # Errors
            /// [`MergeError`](crate::MergeError) if the filters differ in size, probes or seed; nothing is changed then.
            pub fn union(&mut self, other: &Self) -> Result<(), $crate::error::MergeError> {
                self.check_same(other)?;
                for (ours, theirs) in self.blocks.as_mut_slice().iter_mut().zip(other.words()) {
                    ours.0.iter_mut().zip(theirs).for_each(|(ours, theirs)| *ours |= theirs);
                }
                Ok(())
            }
        }
    };
}

pub(crate) use {bit_methods, key_methods};
