//! Bulk loads on all cores: every thread writes a range of blocks of its own.
//!
//! ```text
//! the hashes                   shared by all threads, which read all of them
//! the filter, in ranges        each thread: picks the hashes of its range, inserts them in batches
//! ```
//!
//! So the blocks need no atomics, and the bits are the same as if the keys had been inserted one by one, because an insert only
//! sets bits. A load from a slice takes no locks; one from a parallel iterator locks a range once for some thousand keys.
//! Filters with many writers have atomics, and all of their threads write everywhere. A hash is in a range if it is between two
//! numbers, since the block's index rises with it. So a kernel skips the hashes of other ranges in a fraction of a nanosecond
//! each, and they need no sorting.

use crate::batch::{self, BATCH_CHUNK};
use crate::filter::raw::RawFilter;
use crate::kernel::block::{self, Block, Pattern};
use crate::kernel::{self, KernelOps, KeyOp};
use crate::key::hash::KeyHasher;
use crate::key::keys::Keys;
use crate::key::single::Key;
use crate::layout::access::{Exclusive, Shared};
use crate::layout::ops::{self, LayoutOps};
use crate::layout::params::FilterParams;
use crate::layout::sectorized::Sectorized;
use crate::layout::storage::AtomicBlocks;
use alloc::{vec, vec::Vec};
use rayon::prelude::*;
use std::sync::Mutex;

/// Keys that all threads hash before they insert them: 4 MiB of hashes, which stay in the cache that they share.
const ROUND_KEYS: usize = 1 << 19;
/// Hashes that a thread checks before it inserts the ones in its range: enough for prefetches to run ahead.
const PICK_CHUNK: usize = 1 << 12;
/// Fewer keys are inserted by one thread: waking the others may take as long.
const MIN_PARALLEL_KEYS: usize = 1 << 18;
/// Keys that a thread takes from a parallel iterator before it inserts them: 1 MiB of hashes.
const GATHER_CHUNK: usize = 1 << 17;
/// The same, for threads that write to all of a filter.
pub(crate) const SHARED_CHUNK: usize = 1 << 12;
/// Hashes or keys that a thread queries together: enough for prefetches to run ahead of most probes, and few enough to balance
/// the cores.
const QUERY_CHUNK: usize = 1 << 14;

/// A range of a filter's blocks, to be written by one thread.
struct BlockRange<'a> {
    params: FilterParams,
    blocks: &'a mut [Block],
    /// The number of blocks before it.
    first: usize,
    /// The lowest and the highest hash whose block is in it.
    min_hash: u64,
    max_hash: u64,
}

/// Divides the blocks of a filter into at most `count` ranges of equal length, the last one shorter.
fn ranges<'a>(params: &FilterParams, blocks: &'a mut [Block], count: usize) -> impl Iterator<Item = BlockRange<'a>> {
    let (params, all) = (*params, blocks.len());
    let len = all.div_ceil(count);
    blocks.chunks_mut(len).enumerate().map(move |(i, blocks)| {
        let (first, next) = (i * len, i * len + blocks.len());
        let min_hash = first_hash(first, all);
        // Below 2^64 at the end of the filter, too.
        let max_hash = if next == all { u64::MAX } else { first_hash(next, all) - 1 };
        BlockRange { params, blocks, first, min_hash, max_hash }
    })
}

/// Returns the lowest hash whose block is not before this one: the ceiling of `block × 2^64 / blocks`. See
/// [`block::locate`].
fn first_hash(block: usize, blocks: usize) -> u64 {
    // Below 2^64, since the block is one of the filter's.
    ((block as u128) << 64).div_ceil(blocks as u128) as u64
}

impl BlockRange<'_> {
    /// Inserts the hashes whose blocks are in this range.
    fn insert(&mut self, hashes: &[u64]) {
        let mut picked = vec![0; 2 * PICK_CHUNK];
        let (min_hash, max_hash, mut len) = (self.min_hash, self.max_hash, 0);
        for hashes in hashes.chunks(PICK_CHUNK) {
            len += kernel::pick(self.params.kernel, hashes, min_hash, max_hash, &mut picked[len..]);
            if len > PICK_CHUNK {
                self.insert_picked(&picked[..len]);
                len = 0;
            }
        }
        self.insert_picked(&picked[..len]);
    }

    fn insert_picked(&mut self, hashes: &[u64]) {
        let Self { params, blocks, first, .. } = self;
        ops::run_batch::<InsertInRange, _>(params, (params, *first, blocks), hashes, &mut ops::nothing(hashes.len()));
    }
}

impl RawFilter<Sectorized, Exclusive> {
    pub(crate) fn par_insert<K: Keys + Sync + ?Sized>(&mut self, keys: &K) {
        let hasher = self.hasher.clone();
        if single_threaded(keys.len()) {
            return in_chunks(&hasher, keys, 0..keys.len(), |hashes| self.set_hashes(hashes));
        }
        in_rounds(&hasher, keys, |hashes| {
            let count = rayon::current_num_threads();
            let mut ranges: Vec<BlockRange> = ranges(&self.params, self.blocks.as_mut_slice(), count).collect();
            ranges.par_iter_mut().for_each(|range| range.insert(hashes));
        });
    }

    /// Inserts keys. Each thread gathers 2^17 hashes (1 MiB a thread), then inserts them range by range. Ranges are
    /// locked one at a time, once for some thousand keys.
    pub(crate) fn par_extend<K: Key + Send>(&mut self, keys: impl IntoParallelIterator<Item = K>) {
        let hasher = &self.hasher;
        // Some are free while each thread writes to one.
        let count = 4 * rayon::current_num_threads();
        let ranges: Vec<Mutex<BlockRange>> =
            ranges(&self.params, self.blocks.as_mut_slice(), count).map(Mutex::new).collect();
        let insert = |hashes: &[u64]| {
            let start = rayon::current_thread_index().unwrap_or(0) * 4;
            for i in 0..ranges.len() {
                let range = &ranges[(start + i) % ranges.len()];
                // A poisoned lock: another thread panicked between two inserts, which leaves valid blocks.
                range.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).insert(hashes);
            }
        };
        par_in_batches(hasher, keys, GATHER_CHUNK, insert);
    }
}

impl<L: LayoutOps<Shared, Store = AtomicBlocks>> RawFilter<L, Shared> {
    pub(crate) fn par_insert<K: Keys + Sync + ?Sized>(&self, keys: &K) {
        par_in_chunks(&self.hasher, keys, |hashes| self.set_hashes(hashes));
    }

    pub(crate) fn par_extend<K: Key + Send>(&self, keys: impl IntoParallelIterator<Item = K>) {
        par_in_batches(&self.hasher, keys, SHARED_CHUNK, |hashes| self.set_hashes(hashes));
    }
}

/// Returns true if one thread inserts as fast as all.
pub(crate) fn single_threaded(keys: usize) -> bool {
    keys < MIN_PARALLEL_KEYS || rayon::current_num_threads() == 1
}

/// Hashes the keys of a range, and passes them to `take` chunk by chunk.
pub(crate) fn in_chunks<K: Keys + ?Sized>(
    hasher: &KeyHasher,
    keys: &K,
    range: std::ops::Range<usize>,
    mut take: impl FnMut(&[u64]),
) {
    if let Some(hashes) = keys.as_hashes() {
        return take(&hashes[range]);
    }
    let mut hashes = [0; BATCH_CHUNK];
    for first in range.clone().step_by(BATCH_CHUNK) {
        let hashes = &mut hashes[..BATCH_CHUNK.min(range.end - first)];
        keys.hash_from(first, hasher, hashes);
        take(hashes);
    }
}

/// Hashes keys on all cores, and passes each chunk to `take` on the thread that hashed it.
pub(crate) fn par_in_chunks<K: Keys + Sync + ?Sized>(hasher: &KeyHasher, keys: &K, take: impl Fn(&[u64]) + Sync) {
    let len = keys.len();
    if single_threaded(len) {
        return in_chunks(hasher, keys, 0..len, take);
    }
    let chunks = (0..len.div_ceil(QUERY_CHUNK)).into_par_iter();
    chunks.for_each(|i| in_chunks(hasher, keys, i * QUERY_CHUNK..len.min((i + 1) * QUERY_CHUNK), &take));
}

/// Hashes keys on all cores in rounds, and passes each round to `take`, which may use all cores.
pub(crate) fn in_rounds<K: Keys + Sync + ?Sized>(hasher: &KeyHasher, keys: &K, mut take: impl FnMut(&[u64])) {
    if let Some(hashes) = keys.as_hashes() {
        return take(hashes);
    }
    let mut hashes = vec![0; keys.len().min(ROUND_KEYS)];
    for first in (0..keys.len()).step_by(ROUND_KEYS) {
        let hashes = &mut hashes[..ROUND_KEYS.min(keys.len() - first)];
        let chunks = hashes.par_chunks_mut(PICK_CHUNK).enumerate();
        chunks.for_each(|(i, chunk)| keys.hash_from(first + i * PICK_CHUNK, hasher, chunk));
        take(hashes);
    }
}

/// Returns the hashes of keys, with the seed 0.
pub(crate) fn hashes<K: Key + Send>(keys: impl IntoParallelIterator<Item = K>) -> Vec<u64> {
    let hasher = KeyHasher::new(0);
    keys.into_par_iter().map(|key| key.hash_with(&hasher)).collect()
}

/// Queries batches of keys on all cores.
#[track_caller]
pub(crate) fn par_contains<K: Keys + Sync + ?Sized>(
    hasher: &KeyHasher,
    keys: &K,
    found: &mut [bool],
    contains: impl Fn(&[u64], &mut [bool]) -> usize + Sync,
) -> usize {
    batch::check_lengths(keys.len(), found.len());
    let batches = found.par_chunks_mut(QUERY_CHUNK).enumerate();
    let count = |(i, found): (usize, &mut [bool])| {
        let (range, mut count, mut done) = (i * QUERY_CHUNK..i * QUERY_CHUNK + found.len(), 0, 0);
        in_chunks(hasher, keys, range, |hashes| {
            count += contains(hashes, &mut found[done..][..hashes.len()]);
            done += hashes.len();
        });
        count
    };
    batches.map(count).sum()
}

/// The insert of a hash whose block is in a range. Its reference has the filter's geometry, the number of blocks before the
/// range, and the range's blocks. It prefetches as an insert into the whole filter does.
struct InsertInRange;

impl KeyOp for InsertInRange {
    const WRITES: bool = true;
    type Target<'a> = (&'a FilterParams, usize, &'a mut [Block]);

    fn probes((params, ..): &Self::Target<'_>) -> u32 {
        params.geometry.probes
    }

    #[inline(always)]
    fn prefetch((params, first, blocks): &Self::Target<'_>, hash: u64) {
        let index = block::locate(hash, params.blocks);
        kernel::prefetch(&blocks[index - first], params.blocks);
    }

    #[inline(always)]
    fn run<I: KernelOps>(isa: I, (params, first, blocks): &mut Self::Target<'_>, hash: u64, b: usize) -> bool {
        let index = block::locate(hash, params.blocks);
        isa.insert(&mut blocks[index - *first], Pattern::new(hash), b)
    }
}

/// Inserts the keys of a parallel iterator. Each thread takes `chunk` of them, and then inserts their hashes.
pub(crate) fn par_in_batches<K: Key + Send>(
    hasher: &KeyHasher,
    keys: impl IntoParallelIterator<Item = K>,
    chunk: usize,
    insert: impl Fn(&[u64]) + Sync,
) {
    keys.into_par_iter()
        .fold(Vec::new, |mut hashes, key| {
            hashes.push(key.hash_with(hasher));
            if hashes.len() == chunk {
                insert(&hashes);
                hashes.clear();
            }
            hashes
        })
        .for_each(|rest| insert(&rest));
}
