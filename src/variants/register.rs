//! `RegisterBloomFilter`: all bits of a key in one word.

#[cfg(all(test, loom))]
mod models;

use super::uniting;
use crate::filter::fixed::Fixed;
use crate::filter::methods;
use crate::kernel::block::{self, Pattern, WORDS};
use crate::kernel::{Isa, prefetch};
use crate::layout::access::Shared;
use crate::layout::format::{Format, REGISTER};
use crate::layout::operations::Operations;
use crate::layout::params::Size;
use crate::layout::shape::Shape;
use crate::layout::storage::AtomicBlocks;
use crate::rate::fpr::{BlockRates, Lanes};
use crate::rate::stats;
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
pub struct RegisterBloomFilter(pub(super) Fixed<Register, Shared>);

impl RegisterBloomFilter {
    methods::building! { "bloomline::variants::RegisterBloomFilter",
        /// Creates an empty filter for `expected_keys` distinct keys, of the smallest size that keeps the rate by the layout's
        /// model.
    }
    methods::inserting!("bloomline::variants::RegisterBloomFilter", many_writers);
    #[cfg(feature = "rayon")]
    methods::par_inserting! { "bloomline::variants::RegisterBloomFilter", "", [], (), "",
        /// Inserts many [`Keys`](crate::Keys) on all cores of the current rayon pool, while other threads insert.
    }
    methods::asking!("bloomline::variants::RegisterBloomFilter");
    methods::telling!();
    methods::sizing!();
    uniting! { "bloomline::variants::RegisterBloomFilter", "", [],
        /// Adds the keys of another filter, while other threads insert into either. Keys whose insert into `other` had
        /// not returned before this call may be missing. O(memory).
    }
}

methods::filing!(RegisterBloomFilter, "bloomline::variants::RegisterBloomFilter");
methods::collecting!(RegisterBloomFilter, sized);
#[cfg(feature = "rayon")]
methods::par_collecting!(RegisterBloomFilter, sized);
methods::as_filter!(RegisterBloomFilter, many_writers);

/// The layout of [`RegisterBloomFilter`].
pub(crate) struct Register(());

fn lanes(probes: u32) -> Lanes {
    Lanes { lanes: 1, choices: 1, bits: 64, throws: probes }
}

/// The index of a hash's word, and the bits in it: 6 bits of the mixed hash for each.
#[inline(always)]
fn place(size: Size, hash: u64) -> (usize, u64) {
    // Below 8 × MAX_BLOCKS, which fits a usize.
    let index = block::locate(hash, size.units as usize);
    let pattern = Pattern::new(hash).first;
    // Always ten shifts; those beyond k shift 0. So there is no loop whose end a CPU must predict.
    let mask = (0..10).fold(0, |mask, i| mask | u64::from(i < size.probes) << (pattern >> (6 * i) & 63));
    (index, mask)
}

/// The word of a hash, and the bits in it.
#[inline(always)]
fn locate(size: Size, memory: &AtomicBlocks, hash: u64) -> (&AtomicU64, u64) {
    let (index, mask) = place(size, hash);
    (&memory.as_slice()[index / WORDS].0[index % WORDS], mask)
}

impl Shape for Register {
    const FORMAT: &'static Format = &REGISTER;

    fn rate(size: Size, keys: u64) -> f64 {
        BlockRates::new(lanes(size.probes)).mixture(size.units, keys)
    }

    fn current_fpr(size: Size, words: impl Iterator<Item = [u64; WORDS]>) -> f64 {
        let words = words.flatten().take(size.units as usize);
        stats::mean(words.map(|word| libm::pow(f64::from(word.count_ones()) / 64.0, f64::from(size.probes))))
    }

    fn touched(size: Size) -> f64 {
        lanes(size.probes).touched() / size.units as f64
    }
}

impl Operations<Shared> for Register {
    const NAME: &'static str = "RegisterBloomFilter";
    type Memory = AtomicBlocks;

    #[inline(always)]
    fn prefetch(size: Size, memory: &AtomicBlocks, hash: u64) {
        prefetch(locate(size, memory, hash).0, memory.as_slice().len());
    }

    #[inline(always)]
    fn contains<I: Isa, const B: usize>(size: Size, _: I, memory: &AtomicBlocks, hash: u64) -> bool {
        let (word, mask) = locate(size, memory, hash);
        // Acquire: a key that is seen has with it what its inserter did before.
        word.load(Ordering::Acquire) & mask == mask
    }

    #[inline(always)]
    fn insert<I: Isa, const B: usize>(size: Size, _: I, memory: &AtomicBlocks, hash: u64) -> bool {
        let (word, mask) = locate(size, memory, hash);
        // Reading first spares the line's owner a repeat. Bits are only ever set, so what is complete stays so.
        word.load(Ordering::Acquire) & mask != mask && word.fetch_or(mask, Ordering::AcqRel) & mask != mask
    }
}
