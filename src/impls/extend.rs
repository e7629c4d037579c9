//! Filters from iterators.

use crate::batch::FEW;
use crate::hash::KeyHasher;
use crate::key::Key;
use crate::params::Builder;
use crate::words4::BloomFilter;
use alloc::vec::Vec;

/// The false-positive rate of a filter that is collected from an iterator.
const COLLECTED_RATE: f64 = 0.01;

/// Inserts the keys of an iterator, in batches.
///
/// # Examples
/// ```
/// let mut filter = bloomline::BloomFilter::new(1000, 0.01)?;
/// filter.extend(["a", "b"]);
/// assert!(filter.contains("a"));
/// # Ok::<(), bloomline::BuildError>(())
/// ```
impl<K: Key> Extend<K> for BloomFilter {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        let mut keys = keys.into_iter();
        // For few keys little memory has to be cleared. Then a few KiB: long enough for prefetches to run ahead, and on the stack.
        if extend_by::<K, FEW>(self, &mut keys) {
            while extend_by::<K, 1024>(self, &mut keys) {}
        }
    }
}

/// Inserts the next `BATCH` keys; whether there were as many.
fn extend_by<K: Key, const BATCH: usize>(filter: &mut BloomFilter, keys: &mut impl Iterator<Item = K>) -> bool {
    let (mut hashes, mut new) = ([0; BATCH], [false; BATCH]);
    let mut filled = 0;
    for (slot, key) in hashes.iter_mut().zip(keys) {
        *slot = key.hash_with(filter.hasher());
        filled += 1;
    }
    filter.insert_hashes(&hashes[..filled], &mut new[..filled]);
    filled == BATCH
}

/// A filter of the iterator's keys, sized for as many keys as it yields at a false-positive rate of 1 %, with seed 0.
///
/// The hashes wait in memory until their number is known, 8 bytes a key; where it is known beforehand,
/// [`new`](Self::new) and [`extend`](Extend::extend) take none.
///
/// # Panics
/// If the system does not have the memory.
///
/// # Examples
/// ```
/// let filter: bloomline::BloomFilter = ["a", "b"].into_iter().collect();
/// assert!(filter.contains("a"));
/// ```
impl<K: Key> FromIterator<K> for BloomFilter {
    fn from_iter<I: IntoIterator<Item = K>>(keys: I) -> Self {
        let hasher = KeyHasher::new(0);
        let hashes: Vec<u64> = keys.into_iter().map(|key| key.hash_with(&hasher)).collect();
        let mut filter = sized_for(hashes.len());
        for hashes in hashes.chunks(1 << 16) {
            filter.insert_hashes(hashes, &mut alloc::vec![false; hashes.len()]);
        }
        filter
    }
}

/// As [`FromIterator`], on all cores of the current rayon pool.
///
/// # Panics
/// If the system does not have the memory.
#[cfg(feature = "rayon")]
impl<K: Key + Send> rayon::iter::FromParallelIterator<K> for BloomFilter {
    fn from_par_iter<I: rayon::iter::IntoParallelIterator<Item = K>>(keys: I) -> Self {
        use rayon::iter::ParallelIterator;
        let hasher = KeyHasher::new(0);
        let hashes: Vec<u64> = keys.into_par_iter().map(|key| key.hash_with(&hasher)).collect();
        let mut filter = sized_for(hashes.len());
        filter.par_insert_hashes(&hashes);
        filter
    }
}

fn sized_for(keys: usize) -> BloomFilter {
    let builder: Builder<BloomFilter> = BloomFilter::builder();
    match builder.expected_keys(keys.max(1) as u64).false_positive_rate(COLLECTED_RATE).build() {
        Ok(filter) => filter,
        Err(error) => panic!("{error}"),
    }
}
