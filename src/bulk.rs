//! Bulk loads on all cores: every thread writes a range of blocks of its own.
//!
//! ```text
//! the hashes                   shared by all threads, which read all of them
//! the filter, in ranges        each thread: picks the hashes of its range, inserts them in batches
//! ```
//!
//! There are no atomics and no locks, and each bit ends up as if the keys had come one by one, because an insert only sets
//! bits. A hash is in a range if it is between two numbers, since the block's index rises with it. So a kernel passes by the hashes
//! of others in a fraction of a nanosecond each, and they need no sorting.

use crate::batch::{self, Probe};
use crate::block::{self, Block, Pattern};
use crate::hash::KeyHasher;
use crate::kernel::{self, Isa};
use crate::key::Key;
use crate::operations;
use crate::params::Params;
use crate::storage;
use crate::words4::BloomFilter;
use alloc::{vec, vec::Vec};
use rayon::prelude::*;
use std::sync::Mutex;

/// Keys that all threads hash before they insert them: 4 MiB of hashes, which stay in the cache that they share.
pub(crate) const ROUND: usize = 1 << 19;
/// Hashes that a thread looks at before it inserts those of its range: long enough for prefetches to run ahead.
const PICKED: usize = 1 << 12;
/// Fewer keys are inserted by one thread: to wake the others may take as long.
const FEW: usize = 1 << 18;
/// Keys that a thread takes from a parallel iterator before it inserts them: 1 MiB of hashes.
const TAKEN: usize = 1 << 17;
/// Hashes or keys that a thread queries together: so many that prefetches run ahead of most probes, and few enough to
/// balance the cores.
const QUERIED: usize = 1 << 14;

/// A range of a filter's blocks, to be written by one thread.
struct Range<'a> {
    params: Params,
    blocks: &'a mut [Block],
    /// The number of blocks before it.
    first: usize,
    /// The least and the greatest hash whose block is in it.
    least: u64,
    most: u64,
}

/// Divides the blocks of a filter into at most so many ranges of equal length, the last one shorter.
fn ranges<'a>(params: &Params, blocks: &'a mut [Block], count: usize) -> impl Iterator<Item = Range<'a>> {
    let (params, all) = (*params, blocks.len());
    let len = all.div_ceil(count);
    blocks.chunks_mut(len).enumerate().map(move |(i, blocks)| {
        let (first, next) = (i * len, i * len + blocks.len());
        let least = least_hash(first, all);
        // Below 2^64 at the end of the filter, too.
        let most = if next == all { u64::MAX } else { least_hash(next, all) - 1 };
        Range { params, blocks, first, least, most }
    })
}

/// The least hash whose block is not before this one: the ceiling of `block × 2^64 / blocks`. See [`block::locate`].
fn least_hash(block: usize, blocks: usize) -> u64 {
    // Below 2^64, since the block is one of the filter's.
    ((block as u128) << 64).div_ceil(blocks as u128) as u64
}

impl Range<'_> {
    /// Inserts those of the hashes whose blocks are here.
    fn insert(&mut self, hashes: &[u64]) {
        let mut picked = vec![0; 2 * PICKED];
        let mut new = vec![false; 2 * PICKED];
        let (least, most, mut len) = (self.least, self.most, 0);
        for hashes in hashes.chunks(PICKED) {
            len += kernel::pick(self.params.kernel, hashes, least, most, &mut picked[len..]);
            if len > PICKED {
                self.insert_picked(&picked[..len], &mut new[..len]);
                len = 0;
            }
        }
        self.insert_picked(&picked[..len], &mut new[..len]);
    }

    fn insert_picked(&mut self, hashes: &[u64], new: &mut [bool]) {
        let Self { params, blocks, first, .. } = self;
        let probe = InsertingInRange { total: params.blocks, blocks, first: *first };
        operations::many(params, params.probes, probe, hashes, new);
    }
}

impl BloomFilter {
    /// Inserts many keys on all cores of the current rayon pool. Bit by bit the same as inserting them one by one.
    ///
    /// Needs 4 MiB beside the filter for any number of keys. O(keys), and each thread passes over all of the hashes. Fewer than 2^18
    /// keys are inserted by one thread.
    ///
    /// # Examples
    /// ```
    /// # let mut filter = bloomline::BloomFilter::new(1000, 0.01)?;
    /// filter.par_insert(&["a", "b", "c"]);
    /// assert!(filter.contains("b"));
    /// # Ok::<(), bloomline::BuildError>(())
    /// ```
    pub fn par_insert<K: Key + Sync>(&mut self, keys: &[K]) {
        if alone(keys.len()) {
            let mut new = vec![false; keys.len().min(ROUND)];
            return keys.chunks(ROUND).for_each(|keys| _ = self.insert_batch(keys, &mut new[..keys.len()]));
        }
        let hasher = self.hasher.clone();
        let mut hashes = vec![0; keys.len().min(ROUND)];
        for keys in keys.chunks(ROUND) {
            let hashes = &mut hashes[..keys.len()];
            hashes.par_iter_mut().with_min_len(PICKED).zip(keys).for_each(|(hash, key)| *hash = key.hash_with(&hasher));
            self.par_insert_hashes(hashes);
        }
    }

    /// [`par_insert`](Self::par_insert) of keys that were hashed elsewhere; see [`insert_hash`](Self::insert_hash).
    /// It needs 80 KiB for each thread, or 512 KiB where one thread inserts.
    ///
    /// # Examples
    /// ```
    /// # let mut filter = bloomline::BloomFilter::new(1000, 0.01)?;
    /// let hash = filter.hasher().bytes(b"key");
    /// filter.par_insert_hashes(&[hash]);
    /// assert!(filter.contains("key"));
    /// # Ok::<(), bloomline::BuildError>(())
    /// ```
    pub fn par_insert_hashes(&mut self, hashes: &[u64]) {
        if alone(hashes.len()) {
            let mut new = vec![false; hashes.len().min(ROUND)];
            return hashes.chunks(ROUND).for_each(|hashes| _ = self.insert_hashes(hashes, &mut new[..hashes.len()]));
        }
        let mut ranges: Vec<Range> =
            ranges(&self.params, self.blocks.as_mut_slice(), rayon::current_num_threads()).collect();
        ranges.par_iter_mut().for_each(|range| range.insert(hashes));
    }
}

/// Whether one thread inserts as fast as all.
fn alone(keys: usize) -> bool {
    keys < FEW || rayon::current_num_threads() == 1
}

/// Queries batches of keys or hashes on all cores.
#[track_caller]
pub(crate) fn par_contains<T: Sync>(
    keys: &[T],
    found: &mut [bool],
    contains: impl Fn(&[T], &mut [bool]) -> usize + Sync,
) -> usize {
    batch::check_lengths(keys.len(), found.len());
    let batches = keys.par_chunks(QUERIED).zip(found.par_chunks_mut(QUERIED));
    batches.map(|(keys, found)| contains(keys, found)).sum()
}

struct InsertingInRange<'a> {
    total: usize,
    blocks: &'a mut [Block],
    first: usize,
}

/// Prefetches as in a batch on the whole filter.
impl Probe for InsertingInRange<'_> {
    const WRITES: bool = true;

    #[inline(always)]
    fn prefetch(&self, hash: u64) {
        let index = block::locate(hash, self.total);
        storage::prefetch(&self.blocks[index - self.first]);
    }

    #[inline(always)]
    fn probe<I: Isa, const B: usize>(&mut self, isa: I, hash: u64) -> bool {
        let index = block::locate(hash, self.total);
        isa.insert::<B>(&mut self.blocks[index - self.first], Pattern::new(hash));
        // Nobody asks.
        false
    }
}

/// Inserts the keys of a parallel iterator. Each thread gathers 2^17 hashes (1 MiB a thread), then inserts them range by range.
/// Ranges are locked one at a time, once for some thousand keys.
impl<K: Key + Send> ParallelExtend<K> for BloomFilter {
    fn par_extend<I: IntoParallelIterator<Item = K>>(&mut self, keys: I) {
        let hasher = &self.hasher;
        // Some are free while each thread writes to one.
        let count = 4 * rayon::current_num_threads();
        let ranges: Vec<Mutex<Range>> =
            ranges(&self.params, self.blocks.as_mut_slice(), count).map(Mutex::new).collect();
        let insert = |hashes: &[u64]| {
            let start = rayon::current_thread_index().unwrap_or(0) * 4;
            for i in 0..ranges.len() {
                let range = &ranges[(start + i) % ranges.len()];
                // A poisoned lock: another thread panicked between two inserts, which leaves valid blocks.
                range.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).insert(hashes);
            }
        };
        par_in_batches(hasher, keys, TAKEN, insert);
    }
}

/// Inserts the keys of a parallel iterator. Each thread takes `portion` of them, and then inserts their hashes.
pub(crate) fn par_in_batches<K: Key + Send>(
    hasher: &KeyHasher,
    keys: impl IntoParallelIterator<Item = K>,
    portion: usize,
    insert: impl Fn(&[u64]) + Sync,
) {
    keys.into_par_iter()
        .fold(Vec::new, |mut hashes, key| {
            hashes.push(key.hash_with(hasher));
            if hashes.len() == portion {
                insert(&hashes);
                hashes.clear();
            }
            hashes
        })
        .for_each(|rest| insert(&rest));
}
