//! `TwoBlockBloomFilter`: `words4` in each of two blocks.

use super::union_method;
use crate::filter::methods;
use crate::filter::raw::RawFilter;
use crate::filter::view::view_impls;
use crate::kernel::KernelOps;
use crate::kernel::block::{Pattern, WORDS};
use crate::key::hash::KeyHasher;
use crate::layout::access::Exclusive;
use crate::layout::descriptor::{LayoutDescriptor, TWO_BLOCKS};
use crate::layout::model::Layout;
use crate::layout::ops::LayoutOps;
use crate::layout::params::Geometry;
use crate::layout::storage::Blocks;
use crate::rate::fpr::{BlockRates, Lanes};
use crate::rate::set_bits;

/// Half of a key's probes in one cache line and half in another, chosen independently of the first: the layout for rates below
/// 1e-4.
///
/// Crowded blocks cause most of the false positives of a blocked filter. Here both blocks of a key must be crowded, which is
/// rare: at a rate of 1e-6 it takes 31.6 bits per key, [`BloomFilter`](crate::BloomFilter) takes 41.1, and the classic filter
/// 28.8. Each half is a key of `BloomFilter`'s layout with k/2 probes, by the same kernels. k is 8, 16, 24 or 32. (This is the
/// "multi-blocking" of Putze, Sanders and Singler, "Cache-, Hash- and Space-Efficient Bloom Filters", JEA 2009.)
///
/// # Examples
/// ```
/// use bloomline::BloomFilter;
/// use bloomline::variants::TwoBlockBloomFilter;
/// let two = TwoBlockBloomFilter::new(1_000_000, 1e-6)?;
/// let one = BloomFilter::new(1_000_000, 1e-6)?;
/// assert!(two.memory_bytes() * 10 < one.memory_bytes() * 8);
/// # Ok::<(), bloomline::BuildError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct TwoBlockBloomFilter(pub(super) RawFilter<TwoBlocks, Exclusive>);

impl TwoBlockBloomFilter {
    methods::constructors! { "bloomline::variants::TwoBlockBloomFilter",
        /// Creates an empty filter for `expected_keys` distinct keys, of the smallest size that keeps the rate by the layout's
        /// model.
    }
    methods::insert_methods!("bloomline::variants::TwoBlockBloomFilter", one_writer);
    methods::query_methods!("bloomline::variants::TwoBlockBloomFilter");
    methods::info_methods!();
    methods::capacity_methods!();
    union_method! { "bloomline::variants::TwoBlockBloomFilter", "mut ", [mut],
        /// Adds the keys of another filter. The result is exactly the filter that both sets of keys would have made. O(memory).
    }
}

methods::file_methods!(TwoBlockBloomFilter, "bloomline::variants::TwoBlockBloomFilter");
methods::collect_impls!(TwoBlockBloomFilter, sized);
methods::trait_impls!(TwoBlockBloomFilter, one_writer);
view_impls!(TwoBlockBloomFilter, one_writer);

/// The layout of [`TwoBlockBloomFilter`].
pub(crate) struct TwoBlocks(());

/// Returns the hash for the second block. The first block's index and pattern come from other products of the hash, so that
/// neither block reveals anything about the other.
#[inline(always)]
fn second_hash(hash: u64) -> u64 {
    // The first 64 fractional bits of the square root of 5.
    KeyHasher::mix(hash, 0x3C6E_F372_FE94_F82B)
}

impl Layout for TwoBlocks {
    const DESCRIPTOR: &'static LayoutDescriptor = &TWO_BLOCKS;

    /// Squares the rate of one half. The blocks hold two halves of each key, so twice as many halves are spread.
    fn rate(geometry: Geometry, keys: u64) -> f64 {
        let rate =
            BlockRates::new(Lanes::sectorized(geometry.probes / 2)).mixture(geometry.units, keys.saturating_mul(2));
        rate * rate
    }

    fn current_fpr(geometry: Geometry, words: impl Iterator<Item = [u64; WORDS]>) -> f64 {
        let half = set_bits::current_fpr(words, geometry.probes / 2);
        half * half
    }

    fn bit_probability(geometry: Geometry) -> f64 {
        let half = Lanes::sectorized(geometry.probes / 2).bit_probability() / geometry.units as f64;
        half * (2.0 - half)
    }

    fn dispatch_probes(geometry: Geometry) -> u32 {
        geometry.probes / 2
    }
}

impl LayoutOps<Exclusive> for TwoBlocks {
    const NAME: &'static str = "TwoBlockBloomFilter";
    type Store = Blocks;

    #[inline(always)]
    fn prefetch(_: Geometry, store: &Blocks, hash: u64) {
        store.prefetch(hash);
        store.prefetch(second_hash(hash));
    }

    #[inline(always)]
    fn contains<I: KernelOps>(_: Geometry, isa: I, store: &Blocks, hash: u64, b: usize) -> bool {
        let half = |hash| isa.contains(store.locate(hash), Pattern::new(hash), b);
        // Both, without a branch: with half of the keys found, mispredicting the first takes longer than the second.
        half(hash) & half(second_hash(hash))
    }

    #[inline(always)]
    fn insert<I: KernelOps>(_: Geometry, isa: I, store: &mut &mut Blocks, hash: u64, b: usize) -> bool {
        let second_hash = second_hash(hash);
        let is_new = isa.insert(store.locate_mut(hash), Pattern::new(hash), b);
        is_new | isa.insert(store.locate_mut(second_hash), Pattern::new(second_hash), b)
    }
}
