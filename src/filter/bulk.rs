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

use crate::batch::{self, PORTION};
use crate::filter::fixed::Fixed;
use crate::kernel::block::{self, Block, Pattern};
use crate::kernel::{self, Isa, KeyOp};
use crate::key::hash::KeyHasher;
use crate::key::keys::Keys;
use crate::key::single::Key;
use crate::layout::access::{Exclusive, Shared};
use crate::layout::operations::{self, Operations};
use crate::layout::params::Params;
use crate::layout::storage::AtomicBlocks;
use crate::layout::words4::Words4;
use alloc::{vec, vec::Vec};
use rayon::prelude::*;
use std::sync::Mutex;

/// Keys that all threads hash before they insert them: 4 MiB of hashes, which stay in the cache that they share.
const ROUND: usize = 1 << 19;
/// Hashes that a thread checks before it inserts those of its range: enough for prefetches to run ahead.
const PICKED: usize = 1 << 12;
/// Fewer keys are inserted by one thread: waking the others may take as long.
const FEW: usize = 1 << 18;
/// Keys that a thread takes from a parallel iterator before it inserts them: 1 MiB of hashes.
const TAKEN: usize = 1 << 17;
/// The same, for threads that write to all of a filter.
pub(crate) const SHARED: usize = 1 << 12;
/// Hashes or keys that a thread queries together: enough for prefetches to run ahead of most probes, and few enough to balance
/// the cores.
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
    /// Inserts the hashes whose blocks are in this range.
    fn insert(&mut self, hashes: &[u64]) {
        let mut picked = vec![0; 2 * PICKED];
        let (least, most, mut len) = (self.least, self.most, 0);
        for hashes in hashes.chunks(PICKED) {
            len += kernel::pick(self.params.kernel, hashes, least, most, &mut picked[len..]);
            if len > PICKED {
                self.insert_picked(&picked[..len]);
                len = 0;
            }
        }
        self.insert_picked(&picked[..len]);
    }

    fn insert_picked(&mut self, hashes: &[u64]) {
        let Self { params, blocks, first, .. } = self;
        operations::many::<InsertInRange, _>(
            params,
            (params, *first, blocks),
            hashes,
            &mut operations::nothing(hashes.len()),
        );
    }
}

impl Fixed<Words4, Exclusive> {
    pub(crate) fn par_insert<K: Keys + Sync + ?Sized>(&mut self, keys: &K) {
        let hasher = self.hasher.clone();
        if alone(keys.len()) {
            return in_portions(&hasher, keys, 0..keys.len(), |hashes| self.set_hashes(hashes));
        }
        in_rounds(&hasher, keys, |hashes| {
            let count = rayon::current_num_threads();
            let mut ranges: Vec<Range> = ranges(&self.params, self.blocks.as_mut_slice(), count).collect();
            ranges.par_iter_mut().for_each(|range| range.insert(hashes));
        });
    }

    /// Each thread gathers 2^17 hashes (1 MiB a thread), then inserts them range by range. Ranges are locked one at a time, once
    /// for some thousand keys.
    pub(crate) fn par_extend<K: Key + Send>(&mut self, keys: impl IntoParallelIterator<Item = K>) {
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

impl<L: Operations<Shared, Memory = AtomicBlocks>> Fixed<L, Shared> {
    pub(crate) fn par_insert<K: Keys + Sync + ?Sized>(&self, keys: &K) {
        par_in_portions(&self.hasher, keys, |hashes| self.set_hashes(hashes));
    }

    pub(crate) fn par_extend<K: Key + Send>(&self, keys: impl IntoParallelIterator<Item = K>) {
        par_in_batches(&self.hasher, keys, SHARED, |hashes| self.set_hashes(hashes));
    }
}

/// Returns true if one thread inserts as fast as all.
pub(crate) fn alone(keys: usize) -> bool {
    keys < FEW || rayon::current_num_threads() == 1
}

/// Hashes the keys of a range, and passes them to `take` portion by portion.
pub(crate) fn in_portions<K: Keys + ?Sized>(
    hasher: &KeyHasher,
    keys: &K,
    range: std::ops::Range<usize>,
    mut take: impl FnMut(&[u64]),
) {
    if let Some(hashes) = keys.as_hashes() {
        return take(&hashes[range]);
    }
    let mut hashes = [0; PORTION];
    for first in range.clone().step_by(PORTION) {
        let hashes = &mut hashes[..PORTION.min(range.end - first)];
        keys.hash_from(first, hasher, hashes);
        take(hashes);
    }
}

/// Hashes keys on all cores, and passes each portion to `take` on the thread that hashed it.
pub(crate) fn par_in_portions<K: Keys + Sync + ?Sized>(hasher: &KeyHasher, keys: &K, take: impl Fn(&[u64]) + Sync) {
    let len = keys.len();
    if alone(len) {
        return in_portions(hasher, keys, 0..len, take);
    }
    let portions = (0..len.div_ceil(QUERIED)).into_par_iter();
    portions.for_each(|i| in_portions(hasher, keys, i * QUERIED..len.min((i + 1) * QUERIED), &take));
}

/// Hashes keys on all cores in rounds, and passes each round to `take`, which may use all cores.
pub(crate) fn in_rounds<K: Keys + Sync + ?Sized>(hasher: &KeyHasher, keys: &K, mut take: impl FnMut(&[u64])) {
    if let Some(hashes) = keys.as_hashes() {
        return take(hashes);
    }
    let mut hashes = vec![0; keys.len().min(ROUND)];
    for first in (0..keys.len()).step_by(ROUND) {
        let hashes = &mut hashes[..ROUND.min(keys.len() - first)];
        let portions = hashes.par_chunks_mut(PICKED).enumerate();
        portions.for_each(|(i, portion)| keys.hash_from(first + i * PICKED, hasher, portion));
        take(hashes);
    }
}

/// The hashes of keys, with the seed 0.
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
    let batches = found.par_chunks_mut(QUERIED).enumerate();
    let count = |(i, found): (usize, &mut [bool])| {
        let (range, mut count, mut done) = (i * QUERIED..i * QUERIED + found.len(), 0, 0);
        in_portions(hasher, keys, range, |hashes| {
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
    type Place<'a> = (&'a Params, usize, &'a mut [Block]);

    fn probes((params, ..): &Self::Place<'_>) -> u32 {
        params.probes
    }

    #[inline(always)]
    fn prefetch((params, first, blocks): &Self::Place<'_>, hash: u64) {
        let index = block::locate(hash, params.blocks);
        kernel::prefetch(&blocks[index - first], params.blocks);
    }

    #[inline(always)]
    fn run<I: Isa, const B: usize>(isa: I, (params, first, blocks): &mut Self::Place<'_>, hash: u64) -> bool {
        let index = block::locate(hash, params.blocks);
        isa.insert::<B>(&mut blocks[index - *first], Pattern::new(hash))
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
