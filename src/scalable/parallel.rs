//! Bulk loads of a scalable filter on all cores, as a shared filter for a while.

use super::{AtomicScalableBloomFilter, ScalableBloomFilter};
use crate::bulk::ROUND;
use crate::error::BuildError;
use crate::key::Key;
use alloc::{vec, vec::Vec};
use rayon::prelude::*;

/// Hashes that a thread inserts at a time.
const BATCH: usize = 1 << 12;

impl ScalableBloomFilter {
    /// Inserts many keys on all cores of the current rayon pool. Needs 4 MiB beside the filter. O(keys × stages).
    ///
    /// Which key goes to which stage is left to chance, and so are the false positives. The rate is the same. The number of
    /// [`keys`](Self::keys) may be too high by up to 1024 for each thread and stage, as in an
    /// [`AtomicScalableBloomFilter`](AtomicScalableBloomFilter::keys).
    ///
    /// # Errors
    /// As [`insert`](Self::insert). Some of the keys are inserted then.
    ///
    /// # Examples
    /// ```
    /// let mut seen = bloomline::ScalableBloomFilter::new(1000, 0.01)?;
    /// let keys: Vec<u64> = (0..50_000).collect();
    /// seen.par_insert(&keys)?;
    /// assert!(keys.iter().all(|key| seen.contains(key)));
    /// # Ok::<(), bloomline::BuildError>(())
    /// ```
    pub fn par_insert<K: Key + Sync>(&mut self, keys: &[K]) -> Result<(), BuildError> {
        let hasher = self.hasher().clone();
        keys.chunks(ROUND).try_for_each(|keys| {
            let hashes: Vec<u64> = keys.par_iter().with_min_len(BATCH).map(|key| key.hash_with(&hasher)).collect();
            self.par_insert_hashes(&hashes)
        })
    }

    /// [`par_insert`](Self::par_insert) of keys that were hashed elsewhere; see
    /// [`BloomFilter::insert_hash`](crate::BloomFilter::insert_hash). Needs 8 KiB beside the filter, and 4 KiB a thread.
    ///
    /// # Errors
    /// As [`par_insert`](Self::par_insert).
    pub fn par_insert_hashes(&mut self, hashes: &[u64]) -> Result<(), BuildError> {
        let Self { growth, stages, in_last } = self;
        // No call of a key's code, which might panic, comes before the stages are back.
        let stages = core::mem::take(stages);
        let shared = AtomicScalableBloomFilter::from(Self { growth: *growth, stages, in_last: *in_last });
        let insert = |hashes: &[u64]| shared.insert_hashes(hashes, &mut vec![false; hashes.len()]).map(drop);
        let result = hashes.par_chunks(BATCH).try_for_each(insert);
        *self = shared.into();
        result
    }
}

/// Inserts the keys of a parallel iterator, on all cores of the current rayon pool; see
/// [`par_insert`](ScalableBloomFilter::par_insert). The hashes wait in memory until all are there, 8 bytes a key.
///
/// # Panics
/// If the system does not have the memory for the next stage.
impl<K: Key + Send> ParallelExtend<K> for ScalableBloomFilter {
    fn par_extend<I: IntoParallelIterator<Item = K>>(&mut self, keys: I) {
        let hasher = self.hasher().clone();
        let hashes: Vec<u64> = keys.into_par_iter().map(|key| key.hash_with(&hasher)).collect();
        self.par_insert_hashes(&hashes).unwrap_or_else(|error| panic!("{error}"));
    }
}
