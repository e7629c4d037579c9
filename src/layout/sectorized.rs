//! The layout `words4` of files: all bits of a key in one block, one sector of it for each lane.

use crate::kernel::KernelOps;
use crate::kernel::block::{Pattern, WORDS};
use crate::layout::access::{Exclusive, Shared};
use crate::layout::descriptor::{LayoutDescriptor, SECTORIZED};
use crate::layout::model::Layout;
use crate::layout::ops::{self, Insert, LayoutOps, Query};
use crate::layout::params::{FilterParams, Geometry};
use crate::layout::storage::{AtomicBlocks, Blocks};
use crate::rate::fpr::{self, BlockRates, Lanes};
use crate::rate::set_bits;

/// The layout of [`BloomFilter`](crate::BloomFilter) and [`AtomicBloomFilter`](crate::AtomicBloomFilter): cache-sectorized blocks, as
/// Lang et al., "Performance-Optimal Filtering", VLDB 2019, call them. Its name in files is `words4`.
pub(crate) struct Sectorized(());

impl Layout for Sectorized {
    const DESCRIPTOR: &'static LayoutDescriptor = &SECTORIZED;
    const FOLDS: bool = true;

    fn rate(geometry: Geometry, keys: u64) -> f64 {
        BlockRates::new(Lanes::sectorized(geometry.probes)).mixture(geometry.units, keys)
    }

    fn current_fpr(geometry: Geometry, words: impl Iterator<Item = [u64; WORDS]>) -> f64 {
        set_bits::current_fpr(words, geometry.probes)
    }

    fn bit_probability(geometry: Geometry) -> f64 {
        fpr::bit_probability(geometry.units, geometry.probes)
    }

    fn dispatch_probes(geometry: Geometry) -> u32 {
        geometry.probes
    }

    fn min_geometry(keys: u64, rate: f64, given: Option<u32>, limit: u64) -> Option<Geometry> {
        let (probes, units) = match given {
            Some(probes) => (probes, fpr::blocks_for(keys, probes, rate, limit)?),
            None => fpr::best_for_rate(keys, rate, limit)?,
        };
        Some(Geometry { units, probes })
    }

    fn best_probes(units: u64, keys: u64) -> u32 {
        fpr::best_for_size(units, keys)
    }

    fn capacity(geometry: Geometry, rate: f64) -> u64 {
        fpr::keys_for(geometry.units, geometry.probes, rate)
    }
}

impl LayoutOps<Exclusive> for Sectorized {
    const NAME: &'static str = "BloomFilter";
    type Store = Blocks;

    #[inline(always)]
    fn prefetch(_: Geometry, blocks: &Blocks, hash: u64) {
        blocks.prefetch(hash);
    }

    #[inline(always)]
    fn contains<I: KernelOps>(_: Geometry, isa: I, blocks: &Blocks, hash: u64, b: usize) -> bool {
        isa.contains(blocks.locate(hash), Pattern::new(hash), b)
    }

    fn contains_hashes(params: &FilterParams, blocks: &Blocks, hashes: &[u64], found: &mut [bool]) -> usize {
        ops::run_batch::<Query<Self, Exclusive>, _>(params, (params, blocks), hashes, found)
    }

    #[inline(always)]
    fn insert<I: KernelOps>(_: Geometry, isa: I, blocks: &mut &mut Blocks, hash: u64, b: usize) -> bool {
        isa.insert(blocks.locate_mut(hash), Pattern::new(hash), b)
    }

    fn insert_hashes<'a>(params: &'a FilterParams, blocks: &'a mut Blocks, hashes: &[u64], new: &mut [bool]) -> usize {
        ops::run_batch::<Insert<Self, Exclusive>, _>(params, (params, blocks), hashes, new)
    }

    fn set_hashes<'a>(params: &'a FilterParams, blocks: &'a mut Blocks, hashes: &[u64]) {
        ops::run_batch::<Insert<Self, Exclusive>, _>(params, (params, blocks), hashes, &mut ops::nothing(hashes.len()));
    }
}

impl LayoutOps<Shared> for Sectorized {
    const NAME: &'static str = "AtomicBloomFilter";
    type Store = AtomicBlocks;

    #[inline(always)]
    fn prefetch(_: Geometry, blocks: &AtomicBlocks, hash: u64) {
        blocks.prefetch(hash);
    }

    #[inline(always)]
    fn contains<I: KernelOps>(_: Geometry, _: I, blocks: &AtomicBlocks, hash: u64, b: usize) -> bool {
        blocks.locate(hash).contains(Pattern::new(hash), b)
    }

    fn contains_hashes(params: &FilterParams, blocks: &AtomicBlocks, hashes: &[u64], found: &mut [bool]) -> usize {
        ops::run_batch::<Query<Self, Shared>, _>(params, (params, blocks), hashes, found)
    }

    #[inline(always)]
    fn insert<I: KernelOps>(_: Geometry, _: I, blocks: &mut &AtomicBlocks, hash: u64, b: usize) -> bool {
        blocks.locate(hash).insert(Pattern::new(hash), b)
    }

    fn insert_hashes<'a>(
        params: &'a FilterParams,
        blocks: &'a AtomicBlocks,
        hashes: &[u64],
        new: &mut [bool],
    ) -> usize {
        ops::run_batch::<Insert<Self, Shared>, _>(params, (params, blocks), hashes, new)
    }

    fn set_hashes<'a>(params: &'a FilterParams, blocks: &'a AtomicBlocks, hashes: &[u64]) {
        ops::run_batch::<Insert<Self, Shared>, _>(params, (params, blocks), hashes, &mut ops::nothing(hashes.len()));
    }
}
