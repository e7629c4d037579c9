//! Queries of keys: of one, in batches, of selected rows, and on all cores. All types have them but the rotating one,
//! which has some by hand.

use crate::batch;
#[cfg(feature = "rayon")]
use crate::bulk::par_contains;
use crate::filter::Filter;
use crate::key::Key;
use crate::operations::{Access, Keyed, Operations};
#[cfg(feature = "std")]
use crate::scalable::AtomicScalableBloomFilter;
use crate::scalable::ScalableBloomFilter;
use crate::selection::{prune_bitmap, prune_indices};
use alloc::vec::Vec;

/// Queries of keys. `Filter` is the type of the examples.
macro_rules! by_keys {
    ($Filter:ident) => {
        /// Returns whether a key may have been inserted: always `true` if it was, and `true` at the false-positive rate if it
        /// was not. O(length of the key), and O(stages) in a filter that grows.
        #[inline]
        pub fn contains<K: Key + ?Sized>(&self, key: &K) -> bool {
            self.contains_hash(key.hash_with(self.hasher()))
        }

        /// Queries many keys: `found[i]` is what [`contains`](Self::contains) says of `keys[i]`. Returns how many were
        /// found. See [`contains_hashes`](Self::contains_hashes) for the cost.
        ///
        /// # Panics
        /// If `found` is not as long as `keys`.
        ///
        /// # Examples
        /// ```
        #[doc = concat!("let filter: bloomline::", stringify!($Filter), " = [1u64].into_iter().collect();")]
        /// let mut found = [false; 3];
        /// assert_eq!(filter.contains_batch(&[0u64, 1, 2], &mut found), 1);
        /// assert_eq!(found, [false, true, false]);
        /// ```
        #[track_caller]
        pub fn contains_batch<K: Key>(&self, keys: &[K], found: &mut [bool]) -> usize {
            batch::check_lengths(keys.len(), found.len());
            batch::hashed(self.hasher(), keys, found, |hashes, found| self.contains_hashes(hashes, found))
        }

        /// Keeps the bits of a bitmap whose keys may have been inserted, and unsets the others: bit i stays if it is set and
        /// [`contains`](Self::contains) is `true` of `keys[i]`. Returns how many are left.
        ///
        /// Bit i is bit `i % 64`, counted from the lowest, of the word `i / 64`: on little-endian machines the order of Arrow's
        /// bitmaps. Begin with all bits set, or with a copy of a validity bitmap, so that nulls are not found. Bits beyond the
        /// last key are unset. See [`contains_hashes`](Self::contains_hashes) for the cost, which is that of the rows that are
        /// selected and little more.
        ///
        /// # Panics
        /// If `bitmap` has not as many words as `keys` need.
        ///
        /// # Examples
        /// ```
        #[doc = concat!("let filter: bloomline::", stringify!($Filter), " = [10u64, 30].into_iter().collect();")]
        /// let keys = [10u64, 20, 30];
        /// let mut all = [!0];
        /// assert_eq!(filter.prune_bitmap(&keys, &mut all), 2);
        /// assert_eq!(all, [0b101]);
        ///
        /// let mut valid = [0b110]; // the first is null
        /// assert_eq!(filter.prune_bitmap(&keys, &mut valid), 1);
        /// assert_eq!(valid, [0b100]);
        /// ```
        #[track_caller]
        pub fn prune_bitmap<K: Key>(&self, keys: &[K], bitmap: &mut [u64]) -> usize {
            let hash = |row: usize| keys[row].hash_with(self.hasher());
            prune_bitmap(keys.len(), bitmap, hash, |hashes, found| self.contains_hashes(hashes, found))
        }

        /// Keeps the indices whose keys may have been inserted, in their order, and drops the others: `i` stays if
        /// [`contains`](Self::contains) is `true` of `keys[i]`. Query engines call such indices a selection vector. See
        /// [`contains_hashes`](Self::contains_hashes) for the cost, which is that of the rows that are selected.
        ///
        /// # Panics
        /// If there is no key at an index. `indices` stay as they are then.
        ///
        /// # Examples
        /// ```
        #[doc = concat!("let filter: bloomline::", stringify!($Filter), " = [10u64, 30].into_iter().collect();")]
        /// let mut rows = vec![0, 1, 2];
        /// filter.prune_indices(&[10u64, 20, 30], &mut rows);
        /// assert_eq!(rows, [0, 2]);
        /// ```
        #[track_caller]
        pub fn prune_indices<K: Key>(&self, keys: &[K], indices: &mut Vec<u32>) {
            let hash = |row: usize| keys[row].hash_with(self.hasher());
            prune_indices(keys.len(), indices, hash, |hashes, found| self.contains_hashes(hashes, found));
        }

        /// Queries many keys on all cores of the current rayon pool: `found[i]` is what [`contains`](Self::contains) says of
        /// `keys[i]`. Returns how many were found. Allocates nothing for the hashes.
        ///
        /// # Panics
        /// If `found` is not as long as `keys`.
        ///
        /// # Examples
        /// ```
        #[doc = concat!("let filter: bloomline::", stringify!($Filter), " = [\"a\", \"b\"].into_iter().collect();")]
        /// let mut found = [false; 3];
        /// assert_eq!(filter.par_contains(&["a", "b", "c"], &mut found), 2);
        /// assert_eq!(found, [true, true, false]);
        /// ```
        #[cfg(feature = "rayon")]
        #[track_caller]
        pub fn par_contains<K: Key + Sync>(&self, keys: &[K], found: &mut [bool]) -> usize {
            par_contains(keys, found, |keys, found| self.contains_batch(keys, found))
        }
    };
}

/// The same with hashes in place of keys.
macro_rules! by_hashes {
    ($Filter:ident) => {
        /// [`prune_bitmap`](Self::prune_bitmap) of keys that were hashed elsewhere; see
        /// [`contains_hash`](Self::contains_hash).
        ///
        /// # Panics
        /// If `bitmap` has not as many words as `hashes` need.
        ///
        /// # Examples
        /// ```
        #[doc = concat!("let filter: bloomline::", stringify!($Filter), " = [\"a\"].into_iter().collect();")]
        /// let hashes = [b"a", b"b"].map(|key| filter.hasher().bytes(key));
        /// assert_eq!(filter.prune_bitmap_by_hashes(&hashes, &mut [!0]), 1);
        /// ```
        #[track_caller]
        pub fn prune_bitmap_by_hashes(&self, hashes: &[u64], bitmap: &mut [u64]) -> usize {
            let hash = |row: usize| hashes[row];
            prune_bitmap(hashes.len(), bitmap, hash, |hashes, found| self.contains_hashes(hashes, found))
        }

        /// [`prune_indices`](Self::prune_indices) of keys that were hashed elsewhere; see
        /// [`contains_hash`](Self::contains_hash).
        ///
        /// # Panics
        /// If there is no hash at an index. `indices` stay as they are then.
        ///
        /// # Examples
        /// ```
        #[doc = concat!("let filter: bloomline::", stringify!($Filter), " = [\"a\"].into_iter().collect();")]
        /// let hashes = [b"a", b"b"].map(|key| filter.hasher().bytes(key));
        /// let mut rows = vec![0, 1];
        /// filter.prune_indices_by_hashes(&hashes, &mut rows);
        /// assert_eq!(rows, [0]);
        /// ```
        #[track_caller]
        pub fn prune_indices_by_hashes(&self, hashes: &[u64], indices: &mut Vec<u32>) {
            let hash = |row: usize| hashes[row];
            prune_indices(hashes.len(), indices, hash, |hashes, found| self.contains_hashes(hashes, found));
        }

        /// [`par_contains`](Self::par_contains) of keys that were hashed elsewhere: `found[i]` is what
        /// [`contains_hash`](Self::contains_hash) says of `hashes[i]`. Returns how many were found.
        ///
        /// # Panics
        /// If `found` is not as long as `hashes`.
        ///
        /// # Examples
        /// ```
        #[doc = concat!("let filter: bloomline::", stringify!($Filter), " = (0..100u64).collect();")]
        /// let hashes: Vec<u64> = (0..100u64).map(|key| filter.hasher().bytes(&key.to_le_bytes())).collect();
        /// assert_eq!(filter.par_contains_hashes(&hashes, &mut [false; 100]), 100);
        /// ```
        #[cfg(feature = "rayon")]
        #[track_caller]
        pub fn par_contains_hashes(&self, hashes: &[u64], found: &mut [bool]) -> usize {
            par_contains(hashes, found, |hashes, found| self.contains_hashes(hashes, found))
        }
    };
}

/// Queries of keys: of one, in batches, of selected rows, and on all cores. A row that is not selected is not asked for: its key may be anything,
/// such as what stands in the place of a null.
impl<L: Operations<A> + Keyed, A: Access> Filter<L, A> {
    by_keys!(BloomFilter);
}

/// The same with hashes in place of keys.
impl<L: Operations<A>, A: Access> Filter<L, A> {
    by_hashes!(BloomFilter);
}

/// Queries of keys: of one, in batches, of selected rows, and on all cores.
impl ScalableBloomFilter {
    by_keys!(ScalableBloomFilter);
    by_hashes!(ScalableBloomFilter);
}

/// Queries of keys: of one, in batches, of selected rows, and on all cores, while other threads insert.
#[cfg(feature = "std")]
impl AtomicScalableBloomFilter {
    by_keys!(AtomicScalableBloomFilter);
    by_hashes!(AtomicScalableBloomFilter);
}
