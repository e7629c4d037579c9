//! The layout `words4`: all bits of a key in one block.

use crate::kernel::Isa;
use crate::kernel::block::{Pattern, WORDS};
use crate::layout::access::{Exclusive, Shared};
use crate::layout::format::{Format, WORDS4};
use crate::layout::operations::{self, Insert, Operations, Query};
use crate::layout::params::{Params, Size};
use crate::layout::shape::Shape;
use crate::layout::storage::{AtomicBlocks, Blocks};
use crate::rate::fpr::{self, BlockRates, Lanes};
use crate::rate::stats;

/// The layout of [`BloomFilter`](crate::BloomFilter) and [`AtomicBloomFilter`](crate::AtomicBloomFilter).
pub(crate) struct Words4(());

impl Shape for Words4 {
    const FORMAT: &'static Format = &WORDS4;
    const FOLDS: bool = true;

    fn rate(size: Size, keys: u64) -> f64 {
        BlockRates::new(Lanes::words4(size.probes)).mixture(size.units, keys)
    }

    fn current_fpr(size: Size, words: impl Iterator<Item = [u64; WORDS]>) -> f64 {
        stats::current_rate(words, size.probes)
    }

    fn touched(size: Size) -> f64 {
        fpr::touched(size.units, size.probes)
    }

    fn kernel_probes(size: Size) -> u32 {
        size.probes
    }

    fn least(keys: u64, rate: f64, given: Option<u32>, limit: u64) -> Option<Size> {
        let (probes, units) = match given {
            Some(probes) => (probes, fpr::blocks_for(keys, probes, rate, limit)?),
            None => fpr::best_for_rate(keys, rate, limit)?,
        };
        Some(Size { units, probes })
    }

    fn best_probes(units: u64, keys: u64) -> u32 {
        fpr::best_for_size(units, keys)
    }

    fn capacity(size: Size, rate: f64) -> u64 {
        fpr::keys_for(size.units, size.probes, rate)
    }
}

impl Operations<Exclusive> for Words4 {
    const NAME: &'static str = "BloomFilter";
    type Memory = Blocks;

    #[inline(always)]
    fn prefetch(_: Size, blocks: &Blocks, hash: u64) {
        blocks.prefetch(hash);
    }

    #[inline(always)]
    fn contains<I: Isa, const B: usize>(_: Size, isa: I, blocks: &Blocks, hash: u64) -> bool {
        isa.contains::<B>(blocks.locate(hash), Pattern::new(hash))
    }

    fn contains_many(params: &Params, blocks: &Blocks, hashes: &[u64], found: &mut [bool]) -> usize {
        operations::many::<Query<Self, Exclusive>, _>(params, (params, blocks), hashes, found)
    }

    #[inline(always)]
    fn insert<I: Isa, const B: usize>(_: Size, isa: I, blocks: &mut Blocks, hash: u64) -> bool {
        isa.insert::<B>(blocks.locate_mut(hash), Pattern::new(hash))
    }

    fn insert_many<'a>(params: &'a Params, blocks: &'a mut Blocks, hashes: &[u64], new: &mut [bool]) -> usize {
        operations::many::<Insert<Self, Exclusive>, _>(params, (params, blocks), hashes, new)
    }

    fn set_many<'a>(params: &'a Params, blocks: &'a mut Blocks, hashes: &[u64]) {
        operations::many::<Insert<Self, Exclusive>, _>(
            params,
            (params, blocks),
            hashes,
            &mut operations::nothing(hashes.len()),
        );
    }
}

impl Operations<Shared> for Words4 {
    const NAME: &'static str = "AtomicBloomFilter";
    type Memory = AtomicBlocks;

    #[inline(always)]
    fn prefetch(_: Size, blocks: &AtomicBlocks, hash: u64) {
        blocks.prefetch(hash);
    }

    #[inline(always)]
    fn contains<I: Isa, const B: usize>(_: Size, _: I, blocks: &AtomicBlocks, hash: u64) -> bool {
        blocks.locate(hash).contains::<B>(Pattern::new(hash))
    }

    fn contains_many(params: &Params, blocks: &AtomicBlocks, hashes: &[u64], found: &mut [bool]) -> usize {
        operations::many::<Query<Self, Shared>, _>(params, (params, blocks), hashes, found)
    }

    #[inline(always)]
    fn insert<I: Isa, const B: usize>(_: Size, _: I, blocks: &AtomicBlocks, hash: u64) -> bool {
        blocks.locate(hash).insert::<B>(Pattern::new(hash))
    }

    fn insert_many<'a>(params: &'a Params, blocks: &'a AtomicBlocks, hashes: &[u64], new: &mut [bool]) -> usize {
        operations::many::<Insert<Self, Shared>, _>(params, (params, blocks), hashes, new)
    }

    fn set_many<'a>(params: &'a Params, blocks: &'a AtomicBlocks, hashes: &[u64]) {
        operations::many::<Insert<Self, Shared>, _>(
            params,
            (params, blocks),
            hashes,
            &mut operations::nothing(hashes.len()),
        );
    }
}
