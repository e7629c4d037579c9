//! Bulk loads on all cores: partitioned by ranges of blocks, so that every task writes blocks of its own.
//!
//! ```text
//! a portion of the keys, in chunks     each chunk: hash, count by range, sort by range      one task a chunk
//! the filter, in ranges of blocks      each range: gather its run of every chunk, insert    one task a range
//! ```
//!
//! There are no atomics and no locks, and each bit ends up as if the keys had come one by one, because an insert only sets
//! bits. It is the first half of a radix sort (one pass), and it pays twice: a range is small, so its
//! pages stay in the TLB and much of it in a cache.

use crate::batch::{self, Probe};
use crate::block::{self, Block, Pattern, WORDS};
use crate::filter::Filter;
use crate::kernel::Isa;
use crate::key::Key;
use crate::operations::{self, Query};
use crate::params::Params;
use crate::storage::{self, Blocks};
use crate::words4::{BloomFilter, Words4};
use alloc::{vec, vec::Vec};
use rayon::prelude::*;
use std::sync::Mutex;

/// Keys that one task partitions at a time: 1 MiB of hashes, to be read twice out of a cache.
const CHUNK: usize = 1 << 17;
/// Keys that wait partitioned for the second half: 32 MiB of hashes. More would not insert faster, and fresh memory takes
/// time to touch.
const PORTION: usize = 32 * CHUNK;
/// Keys of a range that are gathered before they are inserted as one batch: the runs of single chunks are too short for
/// prefetches to run ahead.
const GATHERED: usize = 1 << 16;
/// Keys that a thread takes from a parallel iterator before it inserts them: 8 MiB of hashes.
const TAKEN: usize = 1 << 20;
/// Most ranges: as many write streams as one pass of partitioning keeps fast.
const MAX_RANGES: usize = 512;

/// Equal ranges of a filter's blocks, the last one shorter.
#[derive(Clone, Copy)]
struct Ranges {
    blocks: usize,
    /// log2 of the blocks in a range.
    shift: u32,
}

impl Ranges {
    fn new(blocks: usize) -> Self {
        Self { blocks, shift: blocks.div_ceil(MAX_RANGES).next_power_of_two().trailing_zeros() }
    }

    fn count(self) -> usize {
        self.blocks.div_ceil(self.len())
    }

    /// Blocks in a range.
    fn len(self) -> usize {
        1 << self.shift
    }

    fn of(self, hash: u64) -> usize {
        block::locate(hash, self.blocks).0 >> self.shift
    }

    /// Sorts the hashes by range into `sorted`, of the same length.
    fn partition<'a>(self, hashes: &[u64], sorted: &'a mut [u64]) -> Partition<'a> {
        let mut ends = vec![0usize; self.count()];
        for &hash in hashes {
            ends[self.of(hash)] += 1;
        }
        let mut start = 0;
        for end in &mut ends {
            start += core::mem::replace(end, start);
        }
        // Each entry is where the range's next hash goes, and its end once all are placed.
        for &hash in hashes {
            let next = &mut ends[self.of(hash)];
            sorted[*next] = hash;
            *next += 1;
        }
        Partition { sorted, ends }
    }
}

/// Hashes sorted by range, and where each range ends.
struct Partition<'a> {
    sorted: &'a [u64],
    ends: Vec<usize>,
}

impl Partition<'_> {
    fn range(&self, range: usize) -> &[u64] {
        let start = if range == 0 { 0 } else { self.ends[range - 1] };
        &self.sorted[start..self.ends[range]]
    }
}

impl BloomFilter {
    /// Inserts many keys on all cores of the current rayon pool. Bit by bit the same as inserting them one by one.
    ///
    /// Needs 32 MiB beside the filter for any number of keys, and 2 MiB for each thread; less for fewer than four
    /// million keys. O(keys).
    ///
    /// # Examples
    /// ```
    /// # let mut filter = bloomline::BloomFilter::new(1000, 0.01)?;
    /// filter.par_insert(&["a", "b", "c"]);
    /// assert!(filter.contains("b"));
    /// # Ok::<(), bloomline::BuildError>(())
    /// ```
    pub fn par_insert<K: Key + Sync>(&mut self, keys: &[K]) {
        let hasher = self.hasher.clone();
        self.insert_portions(keys, |ranges, keys, sorted| {
            let hashes: Vec<u64> = keys.iter().map(|key| key.hash(&hasher)).collect();
            ranges.partition(&hashes, sorted)
        });
    }

    /// [`par_insert`](Self::par_insert) of keys that were hashed elsewhere; see [`insert_hash`](Self::insert_hash).
    /// It needs the 32 MiB, and 1 to 2 MiB for each thread.
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
        self.insert_portions(hashes, Ranges::partition);
    }

    fn insert_portions<T: Sync>(
        &mut self,
        items: &[T],
        partition: impl for<'a> Fn(Ranges, &[T], &'a mut [u64]) -> Partition<'a> + Sync,
    ) {
        let params = self.params;
        let ranges = Ranges::new(params.blocks);
        // Storage as a filter's own: in huge pages, for the scattered writes.
        let mut sorted = Blocks::zeroed_or_abort(items.len().min(PORTION).div_ceil(WORDS).max(1));
        let sorted = sorted.as_mut_words();
        for portion in items.chunks(PORTION) {
            let partitions: Vec<Partition> = portion
                .par_chunks(CHUNK)
                .zip(sorted.par_chunks_mut(CHUNK))
                .map(|(chunk, sorted)| partition(ranges, chunk, sorted))
                .collect();
            self.blocks.as_mut_slice().par_chunks_mut(ranges.len()).enumerate().for_each(|(range, blocks)| {
                let mut insert = |hashes: &mut Vec<u64>| {
                    insert_range(&params, blocks, range * ranges.len(), hashes);
                    hashes.clear();
                };
                let mut gathered = Vec::new();
                for partition in &partitions {
                    gathered.extend_from_slice(partition.range(range));
                    if gathered.len() >= GATHERED {
                        insert(&mut gathered);
                    }
                }
                insert(&mut gathered);
            });
        }
    }
}

impl<A> Filter<Words4, A>
where
    Words4: Query<A>,
    Self: Sync,
{
    /// Queries many keys on all cores of the current rayon pool: `found[i]` is what `contains_hash` says of `hashes[i]`.
    /// Returns how many were found.
    ///
    /// # Panics
    /// If `found` is not as long as `hashes`.
    ///
    /// # Examples
    /// ```
    /// # let mut filter = bloomline::BloomFilter::new(1000, 0.01)?;
    /// let hashes: Vec<u64> = (0..100u64).map(|key| filter.hasher().bytes(&key.to_le_bytes())).collect();
    /// filter.insert_hashes(&hashes, &mut [false; 100]);
    /// assert_eq!(filter.par_contains_hashes(&hashes, &mut [false; 100]), 100);
    /// # Ok::<(), bloomline::BuildError>(())
    /// ```
    #[track_caller]
    pub fn par_contains_hashes(&self, hashes: &[u64], found: &mut [bool]) -> usize {
        batch::check_lengths(hashes.len(), found.len());
        // Long enough that prefetches run ahead of most probes, short enough to balance the cores.
        const BATCH: usize = 1 << 14;
        hashes
            .par_chunks(BATCH)
            .zip(found.par_chunks_mut(BATCH))
            .map(|(hashes, found)| self.contains_hashes(hashes, found))
            .sum()
    }
}

/// Inserts hashes whose blocks are all among `blocks`, which start at the filter's block `first`.
fn insert_range(params: &Params, blocks: &mut [Block], first: usize, hashes: &[u64]) {
    let mut new = vec![false; hashes.len()];
    operations::many(params, params.probes, InsertingInRange { total: params.blocks, blocks, first }, hashes, &mut new);
}

struct InsertingInRange<'a> {
    total: usize,
    blocks: &'a mut [Block],
    first: usize,
}

/// Prefetches as in a batch on the whole filter: the range was last touched a portion ago.
impl Probe for InsertingInRange<'_> {
    const WRITES: bool = true;

    #[inline(always)]
    fn prefetch(&self, hash: u64) {
        let (index, _) = block::locate(hash, self.total);
        storage::prefetch(&self.blocks[index - self.first]);
    }

    #[inline(always)]
    fn probe<I: Isa, const B: usize>(&mut self, isa: I, hash: u64) -> bool {
        let (index, rest) = block::locate(hash, self.total);
        isa.insert::<B>(&mut self.blocks[index - self.first], Pattern::new(rest))
    }
}

/// Inserts the keys of a parallel iterator. Each thread gathers and partitions 2^20 hashes (16 MiB a thread), then
/// inserts range by range; ranges are locked one at a time, once for some thousand keys.
impl<K: Key + Send> ParallelExtend<K> for BloomFilter {
    fn par_extend<I: IntoParallelIterator<Item = K>>(&mut self, keys: I) {
        let params = self.params;
        let hasher = &self.hasher;
        let ranges = Ranges::new(params.blocks);
        let locked: Vec<Mutex<&mut [Block]>> =
            self.blocks.as_mut_slice().chunks_mut(ranges.len()).map(Mutex::new).collect();
        let insert = |hashes: &[u64]| {
            let mut sorted = vec![0; hashes.len()];
            let partition = ranges.partition(hashes, &mut sorted);
            for (range, blocks) in locked.iter().enumerate() {
                let hashes = partition.range(range);
                if !hashes.is_empty() {
                    // A poisoned lock: another thread panicked between two inserts, which leaves valid blocks.
                    let mut blocks = blocks.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                    insert_range(&params, &mut blocks, range * ranges.len(), hashes);
                }
            }
        };
        keys.into_par_iter()
            .fold(Vec::new, |mut hashes, key| {
                hashes.push(key.hash(hasher));
                if hashes.len() == TAKEN {
                    insert(&hashes);
                    hashes.clear();
                }
                hashes
            })
            .for_each(|rest| insert(&rest));
    }
}
