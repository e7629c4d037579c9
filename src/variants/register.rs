//! `RegisterBloomFilter`: all bits of a key in one word.

#[cfg(all(test, loom))]
mod loom;

use super::union_method;
use crate::filter::methods;
use crate::filter::raw::RawFilter;
use crate::filter::view::view_impls;
use crate::kernel::block::{self, Pattern, WORDS};
use crate::kernel::{KernelOps, prefetch};
use crate::layout::access::Shared;
use crate::layout::descriptor::{LayoutDescriptor, REGISTER};
use crate::layout::model::Layout;
use crate::layout::ops::LayoutOps;
use crate::layout::params::Geometry;
use crate::layout::storage::AtomicBlocks;
use crate::rate::fpr::{BlockRates, Lanes};
use crate::rate::set_bits;
use crate::sync::{AtomicU64, Ordering};

/// All k bits of a key in one 64-bit word, k = 2 to 10: any number of threads insert, each by a single atomic operation.
///
/// So an insert takes effect at one moment, and the filter behaves as if all calls had been made one after the other
/// (linearizable). Of racing inserts of a key **exactly one** gets `true`, unless other keys have set all its bits, which reads
/// like any false positive; [`AtomicBloomFilter`](crate::AtomicBloomFilter) promises at most one. The price is memory, because
/// words of 64 bits fill less evenly than blocks of 512: see the table in [`variants`](super). (Putze, Sanders and Singler,
/// "Cache-, Hash- and Space-Efficient Bloom Filters", JEA 2009; the register-blocked filter of Lang et al.,
/// "Performance-Optimal Filtering", VLDB 2019.)
///
/// # Examples
/// ```
/// use bloomline::variants::RegisterBloomFilter;
/// use std::sync::atomic::{AtomicUsize, Ordering};
///
/// let seen = RegisterBloomFilter::new(10_000, 1e-4)?;
/// let visits = AtomicUsize::new(0);
/// std::thread::scope(|scope| {
///     for _ in 0..4 {
///         scope.spawn(|| visits.fetch_add(usize::from(seen.insert("page")), Ordering::Relaxed));
///     }
/// });
/// assert_eq!(visits.into_inner(), 1);
/// # Ok::<(), bloomline::BuildError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct RegisterBloomFilter(pub(super) RawFilter<Register, Shared>);

impl RegisterBloomFilter {
    methods::constructors! { "bloomline::variants::RegisterBloomFilter",
        /// Creates an empty filter for `expected_keys` distinct keys, of the smallest size that keeps the rate by the layout's
        /// model.
    }
    methods::insert_methods!("bloomline::variants::RegisterBloomFilter", many_writers);
    #[cfg(feature = "rayon")]
    methods::par_insert_method! { "bloomline::variants::RegisterBloomFilter", "", [], (), "",
        /// Inserts many [`Keys`](crate::Keys) on all cores of the current rayon pool, while other threads insert.
    }
    methods::query_methods!("bloomline::variants::RegisterBloomFilter");
    methods::info_methods!();
    methods::capacity_methods!();
    union_method! { "bloomline::variants::RegisterBloomFilter", "", [],
        /// Adds the keys of another filter, while other threads insert into either. Keys whose insert into `other` had
        /// not returned before this call may be missing. O(memory).
    }
}

methods::file_methods!(RegisterBloomFilter, "bloomline::variants::RegisterBloomFilter");
methods::collect_impls!(RegisterBloomFilter, sized);
#[cfg(feature = "rayon")]
methods::par_collect_impls!(RegisterBloomFilter, sized);
methods::trait_impls!(RegisterBloomFilter, many_writers);
view_impls!(RegisterBloomFilter, many_writers);

/// The layout of [`RegisterBloomFilter`]: register-blocked.
pub(crate) struct Register(());

fn lanes(probes: u32) -> Lanes {
    Lanes { lanes: 1, choices: 1, bits: 64, throws: probes }
}

/// Returns the index of a hash's word, and the bits in it: 6 bits of the mixed hash for each.
#[inline(always)]
fn word_and_mask(geometry: Geometry, hash: u64) -> (usize, u64) {
    // Below 8 × MAX_BLOCKS, which fits a usize.
    let index = block::locate(hash, geometry.units as usize);
    let pattern = Pattern::new(hash).first;
    // Always ten shifts; those beyond k shift 0. So there is no loop whose end a CPU must predict.
    let mask = (0..10).fold(0, |mask, i| mask | u64::from(i < geometry.probes) << (pattern >> (6 * i) & 63));
    (index, mask)
}

/// Returns the word of a hash, and the bits in it.
#[inline(always)]
fn locate(geometry: Geometry, store: &AtomicBlocks, hash: u64) -> (&AtomicU64, u64) {
    let (index, mask) = word_and_mask(geometry, hash);
    (&store.as_slice()[index / WORDS].0[index % WORDS], mask)
}

impl Layout for Register {
    const DESCRIPTOR: &'static LayoutDescriptor = &REGISTER;

    fn rate(geometry: Geometry, keys: u64) -> f64 {
        BlockRates::new(lanes(geometry.probes)).mixture(geometry.units, keys)
    }

    fn current_fpr(geometry: Geometry, words: impl Iterator<Item = [u64; WORDS]>) -> f64 {
        let words = words.flatten().take(geometry.units as usize);
        set_bits::mean(words.map(|word| libm::pow(f64::from(word.count_ones()) / 64.0, f64::from(geometry.probes))))
    }

    fn bit_probability(geometry: Geometry) -> f64 {
        lanes(geometry.probes).bit_probability() / geometry.units as f64
    }
}

impl LayoutOps<Shared> for Register {
    const NAME: &'static str = "RegisterBloomFilter";
    type Store = AtomicBlocks;

    #[inline(always)]
    fn prefetch(geometry: Geometry, store: &AtomicBlocks, hash: u64) {
        prefetch(locate(geometry, store, hash).0, store.as_slice().len());
    }

    #[inline(always)]
    fn contains<I: KernelOps>(geometry: Geometry, _: I, store: &AtomicBlocks, hash: u64, _: usize) -> bool {
        let (word, mask) = locate(geometry, store, hash);
        // Acquire: a thread that sees a key also sees what its inserter did before.
        word.load(Ordering::Acquire) & mask == mask
    }

    #[inline(always)]
    fn insert<I: KernelOps>(geometry: Geometry, _: I, store: &mut &AtomicBlocks, hash: u64, _: usize) -> bool {
        let (word, mask) = locate(geometry, store, hash);
        // Reads first, so that a repeat does not take the cache line from its owner. Bits are only ever set.
        word.load(Ordering::Acquire) & mask != mask && word.fetch_or(mask, Ordering::AcqRel) & mask != mask
    }
}
