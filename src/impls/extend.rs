//! Filters from iterators.

use crate::batch::FEW;
use crate::filter::Filter;
use crate::hash::KeyHasher;
use crate::key::Key;
use crate::operations::{Access, Keyed, Operations};
#[cfg(feature = "std")]
use crate::rotating::RotatingBloomFilter;
#[cfg(feature = "std")]
use crate::scalable::AtomicScalableBloomFilter;
use crate::scalable::ScalableBloomFilter;
use alloc::vec::Vec;

/// The false-positive rate of a filter that is collected from an iterator.
const COLLECTED_RATE: f64 = 0.01;

/// Keys of the first stage of a scalable filter that is collected, if the iterator does not know of more: 2 KiB.
const FIRST_STAGE: usize = 1000;

/// Inserts the keys of an iterator, in batches.
///
/// # Examples
/// ```
/// let mut filter = bloomline::BloomFilter::new(1000, 0.01)?;
/// filter.extend(["a", "b"]);
/// assert!(filter.contains("a"));
/// # Ok::<(), bloomline::BuildError>(())
/// ```
impl<L: Operations<A> + Keyed, A: Access, K: Key> Extend<K> for Filter<L, A> {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        let hasher = self.hasher().clone();
        in_batches(&hasher, keys, |hashes, new| _ = self.insert_many_alone(hashes, new));
    }
}

/// Inserts the keys of an iterator, in batches.
///
/// # Panics
/// If the system does not have the memory for the next stage. [`insert_batch`](Self::insert_batch) returns it as an error.
impl<K: Key> Extend<K> for ScalableBloomFilter {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        let hasher = self.hasher().clone();
        in_batches(&hasher, keys, |hashes, new| _ = or_panic(self.insert_hashes(hashes, new)));
    }
}

/// Inserts the keys of an iterator, in batches.
///
/// # Panics
/// If the system does not have the memory for the next stage. [`insert_batch`](Self::insert_batch) returns it as an error.
#[cfg(feature = "std")]
impl<K: Key> Extend<K> for AtomicScalableBloomFilter {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        in_batches(self.hasher(), keys, |hashes, new| _ = or_panic(self.insert_hashes(hashes, new)));
    }
}

/// Inserts the keys of an iterator, in batches.
#[cfg(feature = "std")]
impl<K: Key> Extend<K> for RotatingBloomFilter {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        in_batches(self.hasher(), keys, |hashes, new| _ = self.insert_hashes(hashes, new));
    }
}

fn in_batches<K: Key>(
    hasher: &KeyHasher,
    keys: impl IntoIterator<Item = K>,
    mut insert: impl FnMut(&[u64], &mut [bool]),
) {
    let mut keys = keys.into_iter();
    // For few keys little memory has to be cleared. Then a few KiB: long enough for prefetches to run ahead, and on the stack.
    if batch::<K, FEW>(hasher, &mut keys, &mut insert) {
        while batch::<K, 1024>(hasher, &mut keys, &mut insert) {}
    }
}

/// Inserts the next `BATCH` keys; whether there were as many.
fn batch<K: Key, const BATCH: usize>(
    hasher: &KeyHasher,
    keys: &mut impl Iterator<Item = K>,
    insert: &mut impl FnMut(&[u64], &mut [bool]),
) -> bool {
    let (mut hashes, mut new) = ([0; BATCH], [false; BATCH]);
    let mut filled = 0;
    for (slot, key) in hashes.iter_mut().zip(keys) {
        *slot = key.hash_with(hasher);
        filled += 1;
    }
    insert(&hashes[..filled], &mut new[..filled]);
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
/// use bloomline::{AtomicBloomFilter, BloomFilter};
/// let filter: BloomFilter = ["a", "b"].into_iter().collect();
/// assert!(filter.contains("a"));
/// let filter: AtomicBloomFilter = ["a", "b"].into_iter().collect();
/// assert!(filter.contains("a"));
/// ```
impl<L: Operations<A> + Keyed, A: Access, K: Key> FromIterator<K> for Filter<L, A> {
    fn from_iter<I: IntoIterator<Item = K>>(keys: I) -> Self {
        let hasher = KeyHasher::new(0);
        let hashes: Vec<u64> = keys.into_iter().map(|key| key.hash_with(&hasher)).collect();
        let mut filter: Self = sized_for(hashes.len());
        for hashes in hashes.chunks(1 << 16) {
            filter.insert_many_alone(hashes, &mut alloc::vec![false; hashes.len()]);
        }
        filter
    }
}

/// A filter of the iterator's keys at a false-positive rate of 1 %, with seed 0. It grows with the keys, so no hashes wait in memory
/// until their number is known.
///
/// # Panics
/// If the system does not have the memory.
///
/// # Examples
/// ```
/// let filter: bloomline::ScalableBloomFilter = (0..5000u32).collect();
/// assert!(filter.contains(&4999u32));
/// ```
impl<K: Key> FromIterator<K> for ScalableBloomFilter {
    fn from_iter<I: IntoIterator<Item = K>>(keys: I) -> Self {
        let keys = keys.into_iter();
        let first = keys.size_hint().0.max(FIRST_STAGE) as u64;
        let mut filter = or_panic(Self::new(first, COLLECTED_RATE));
        filter.extend(keys);
        filter
    }
}

/// As of a [`ScalableBloomFilter`].
#[cfg(feature = "std")]
impl<K: Key> FromIterator<K> for AtomicScalableBloomFilter {
    fn from_iter<I: IntoIterator<Item = K>>(keys: I) -> Self {
        ScalableBloomFilter::from_iter(keys).into()
    }
}

fn sized_for<L: Operations<A>, A: Access>(keys: usize) -> Filter<L, A> {
    or_panic(Filter::new(keys.max(1) as u64, COLLECTED_RATE))
}

fn or_panic<T>(result: Result<T, crate::error::BuildError>) -> T {
    result.unwrap_or_else(|error| panic!("{error}"))
}

/// On all cores of the current rayon pool.
#[cfg(feature = "rayon")]
mod parallel {
    use super::*;
    use crate::atomic_filter::AtomicBloomFilter;
    use crate::bulk::par_in_batches;
    use crate::operations::Shared;
    use crate::storage::AtomicBlocks;
    use crate::words4::BloomFilter;
    use alloc::vec;
    use rayon::iter::{FromParallelIterator, IntoParallelIterator, ParallelExtend, ParallelIterator};

    /// Keys that a thread takes from a parallel iterator before it inserts them.
    const TAKEN: usize = 1 << 12;

    /// As [`FromIterator`], on all cores of the current rayon pool.
    ///
    /// # Panics
    /// If the system does not have the memory.
    impl<K: Key + Send> FromParallelIterator<K> for BloomFilter {
        fn from_par_iter<I: IntoParallelIterator<Item = K>>(keys: I) -> Self {
            let hasher = KeyHasher::new(0);
            let hashes: Vec<u64> = keys.into_par_iter().map(|key| key.hash_with(&hasher)).collect();
            let mut filter: Self = sized_for(hashes.len());
            filter.par_insert_hashes(&hashes);
            filter
        }
    }

    /// As [`FromIterator`], on all cores of the current rayon pool.
    ///
    /// # Panics
    /// If the system does not have the memory.
    impl<K: Key + Send> FromParallelIterator<K> for AtomicBloomFilter {
        fn from_par_iter<I: IntoParallelIterator<Item = K>>(keys: I) -> Self {
            BloomFilter::from_par_iter(keys).into()
        }
    }

    /// As [`FromIterator`], on all cores of the current rayon pool. Which key goes to which stage is left to chance.
    ///
    /// # Panics
    /// If the system does not have the memory.
    impl<K: Key + Send> FromParallelIterator<K> for AtomicScalableBloomFilter {
        fn from_par_iter<I: IntoParallelIterator<Item = K>>(keys: I) -> Self {
            let keys = keys.into_par_iter();
            let first = keys.opt_len().unwrap_or(0).max(FIRST_STAGE) as u64;
            let mut filter = or_panic(Self::new(first, COLLECTED_RATE));
            filter.par_extend(keys);
            filter
        }
    }

    /// As of an [`AtomicScalableBloomFilter`].
    ///
    /// # Panics
    /// If the system does not have the memory.
    impl<K: Key + Send> FromParallelIterator<K> for ScalableBloomFilter {
        fn from_par_iter<I: IntoParallelIterator<Item = K>>(keys: I) -> Self {
            AtomicScalableBloomFilter::from_par_iter(keys).into()
        }
    }

    /// Inserts the keys of a parallel iterator.
    impl<L: Operations<Shared, Memory = AtomicBlocks> + Keyed, K: Key + Send> ParallelExtend<K> for Filter<L, Shared> {
        fn par_extend<I: IntoParallelIterator<Item = K>>(&mut self, keys: I) {
            let insert = |hashes: &[u64]| _ = self.insert_hashes(hashes, &mut vec![false; hashes.len()]);
            par_in_batches(self.hasher(), keys, TAKEN, insert);
        }
    }

    /// Inserts the keys of a parallel iterator. Which key goes to which stage is left to chance.
    ///
    /// # Panics
    /// If the system does not have the memory for the next stage.
    impl<K: Key + Send> ParallelExtend<K> for AtomicScalableBloomFilter {
        fn par_extend<I: IntoParallelIterator<Item = K>>(&mut self, keys: I) {
            let insert = |hashes: &[u64]| _ = or_panic(self.insert_hashes(hashes, &mut vec![false; hashes.len()]));
            par_in_batches(self.hasher(), keys, TAKEN, insert);
        }
    }
}
