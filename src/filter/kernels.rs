//! Filters with every kernel, against the specification of a block.

use crate::batch::CACHED_BYTES;
use crate::filter::atomic::AtomicBloomFilter;
use crate::filter::bloom::BloomFilter;
use crate::kernel::AvailableKernel;
use crate::kernel::block::{self, BLOCK_BYTES, Block, LANES, Pattern};
use crate::kernel::conformance::{for_each_kernel, specified_contains, specified_insert};
use std::{vec, vec::Vec};
use wyhash::final3::wyrng;

/// Returns the answer of a filter of the specification's blocks, for one hash.
fn specified_hash(blocks: &mut [Block], probes: u32, hash: u64, insert: bool) -> bool {
    let (block, pattern) = (&mut blocks[block::locate(hash, blocks.len())], Pattern::new(hash));
    let b = probes as usize / LANES;
    if insert { specified_insert(block, pattern, b) } else { specified_contains(block, pattern, b) }
}

/// Block counts whose batches run without prefetches, and one block more than that.
const BLOCK_COUNTS: [usize; 7] = [1, 2, 3, 7, 1000, CACHED_BYTES / BLOCK_BYTES, CACHED_BYTES / BLOCK_BYTES + 1];

/// Batches of every length from 0 to 200, so both shorter and longer than the prefetch distance, with repeats inside.
fn for_each_batch(check: impl Fn(AvailableKernel, u32, usize, &[u64])) {
    for_each_kernel(|kernel, probes| {
        for blocks in BLOCK_COUNTS {
            let mut state = blocks as u64;
            for length in 0..=200 {
                let mut hashes: Vec<u64> = Vec::with_capacity(length);
                for i in 0..length {
                    let random = wyrng(&mut state);
                    let repeat = i > 0 && random.is_multiple_of(4);
                    hashes.push(if repeat { hashes[(random >> 2) as usize % i] } else { wyrng(&mut state) });
                }
                check(kernel, probes, blocks, &hashes);
            }
        }
    });
}

fn build(kernel: AvailableKernel, probes: u32, blocks: usize) -> BloomFilter {
    BloomFilter::builder().memory(blocks * BLOCK_BYTES).probes(probes).kernel(kernel.kernel()).build().unwrap()
}

/// Returns the answers of a batch, and checks their count.
fn answers(length: usize, batch: impl FnOnce(&mut [bool]) -> usize) -> Vec<bool> {
    // Every answer must be written, regardless of its old value.
    let mut answers: Vec<bool> = (0..length).map(|i| i % 2 == 0).collect();
    let count = batch(&mut answers);
    assert_eq!(count, answers.iter().filter(|&&answer| answer).count());
    answers
}

#[test]
fn inserts_follow_the_specification() {
    for_each_batch(|kernel, probes, blocks, hashes| {
        let mut specified = vec![Block::default(); blocks];
        let expected: Vec<bool> =
            hashes.iter().map(|&hash| specified_hash(&mut specified, probes, hash, true)).collect();

        let mut filter = build(kernel, probes, blocks);
        assert_eq!(answers(hashes.len(), |new| filter.insert_hashes(hashes, new)), expected);
        assert!(filter.0.blocks.as_slice() == specified, "{kernel:?}, {probes} probes, {blocks} blocks");

        let mut filter = build(kernel, probes, blocks);
        let single: Vec<bool> = hashes.iter().map(|&hash| filter.insert_hash(hash)).collect();
        assert_eq!(single, expected);
        assert!(filter.0.blocks.as_slice() == specified, "{kernel:?}, {probes} probes, {blocks} blocks");

        let mut filter = build(kernel, probes, blocks);
        let in_loop: Vec<bool> =
            crate::dispatch!(&mut filter, |mut view| { hashes.iter().map(|&hash| view.insert_hash(hash)).collect() });
        assert_eq!(in_loop, expected);
        assert!(filter.0.blocks.as_slice() == specified, "{kernel:?}, {probes} probes, {blocks} blocks");

        let atomic = AtomicBloomFilter::from(build(kernel, probes, blocks));
        assert_eq!(answers(hashes.len(), |new| atomic.insert_hashes(hashes, new)), expected);
        let filter = BloomFilter::from(atomic);
        assert!(filter.0.blocks.as_slice() == specified, "{kernel:?}, {probes} probes, {blocks} blocks");

        let atomic = AtomicBloomFilter::from(build(kernel, probes, blocks));
        let in_loop: Vec<bool> =
            crate::dispatch!(&atomic, |view| { hashes.iter().map(|&hash| view.insert_hash(hash)).collect() });
        assert_eq!(in_loop, expected);
        assert!(
            BloomFilter::from(atomic).0.blocks.as_slice() == specified,
            "{kernel:?}, {probes} probes, {blocks} blocks"
        );
    });
}

#[test]
fn queries_follow_the_specification() {
    for_each_batch(|kernel, probes, blocks, hashes| {
        let mut specified = vec![Block::default(); blocks];
        let mut filter = build(kernel, probes, blocks);
        // Every other key is in.
        for &hash in hashes.iter().step_by(2) {
            specified_hash(&mut specified, probes, hash, true);
            filter.insert_hash(hash);
        }
        let expected: Vec<bool> =
            hashes.iter().map(|&hash| specified_hash(&mut specified, probes, hash, false)).collect();

        assert_eq!(answers(hashes.len(), |found| filter.contains_hashes(hashes, found)), expected);
        assert!(hashes.iter().map(|&hash| filter.contains_hash(hash)).eq(expected.iter().copied()));
        let expected = || expected.iter().copied();
        assert!(crate::dispatch!(&filter, |view| hashes.iter().map(|&hash| view.contains_hash(hash)).eq(expected())));
        let atomic = AtomicBloomFilter::from(filter);
        assert_eq!(answers(hashes.len(), |found| atomic.contains_hashes(hashes, found)), Vec::from_iter(expected()));
        assert!(hashes.iter().map(|&hash| atomic.contains_hash(hash)).eq(expected()));
        assert!(crate::dispatch!(&atomic, |view| hashes.iter().map(|&hash| view.contains_hash(hash)).eq(expected())));
    });
}
