//! `TwoBlockBloomFilter`: `words4` in each of two blocks.

use super::uniting;
use crate::filter::fixed::Fixed;
use crate::filter::methods;
use crate::kernel::Isa;
use crate::kernel::block::{Pattern, WORDS};
use crate::key::hash::KeyHasher;
use crate::layout::access::Exclusive;
use crate::layout::format::{Format, TWO_BLOCKS};
use crate::layout::operations::Operations;
use crate::layout::params::Size;
use crate::layout::shape::Shape;
use crate::layout::storage::Blocks;
use crate::rate::fpr::{BlockRates, Lanes};
use crate::rate::stats;

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
pub struct TwoBlockBloomFilter(pub(super) Fixed<TwoBlocks, Exclusive>);

impl TwoBlockBloomFilter {
    methods::building! { "bloomline::variants::TwoBlockBloomFilter",
        /// Creates an empty filter for `expected_keys` distinct keys, of the smallest size that keeps the rate by the layout's
        /// model.
    }
    methods::inserting!("bloomline::variants::TwoBlockBloomFilter", one_writer);
    methods::asking!("bloomline::variants::TwoBlockBloomFilter");
    methods::telling!();
    methods::sizing!();
    uniting! { "bloomline::variants::TwoBlockBloomFilter", "mut ", [mut],
        /// Adds the keys of another filter. The result is exactly the filter that both sets of keys would have made. O(memory).
    }
}

methods::filing!(TwoBlockBloomFilter, "bloomline::variants::TwoBlockBloomFilter");
methods::collecting!(TwoBlockBloomFilter, sized);
methods::as_filter!(TwoBlockBloomFilter, one_writer);

/// The layout of [`TwoBlockBloomFilter`].
pub(crate) struct TwoBlocks(());

/// The hash for the second block. The first block's index and pattern come from other products of the hash, so that neither
/// block reveals anything about the other.
#[inline(always)]
fn second(hash: u64) -> u64 {
    // The first 64 fractional bits of the square root of 5.
    KeyHasher::mix(hash, 0x3C6E_F372_FE94_F82B)
}

impl Shape for TwoBlocks {
    const FORMAT: &'static Format = &TWO_BLOCKS;

    /// Each key has two blocks, and each block holds half of its keys' probes, so that twice as many halves are spread.
    fn rate(size: Size, keys: u64) -> f64 {
        let rate = BlockRates::new(Lanes::words4(size.probes / 2)).mixture(size.units, keys.saturating_mul(2));
        rate * rate
    }

    fn current_fpr(size: Size, words: impl Iterator<Item = [u64; WORDS]>) -> f64 {
        let half = stats::current_rate(words, size.probes / 2);
        half * half
    }

    fn touched(size: Size) -> f64 {
        let half = Lanes::words4(size.probes / 2).touched() / size.units as f64;
        half * (2.0 - half)
    }

    fn kernel_probes(size: Size) -> u32 {
        size.probes / 2
    }
}

impl Operations<Exclusive> for TwoBlocks {
    const NAME: &'static str = "TwoBlockBloomFilter";
    type Memory = Blocks;

    #[inline(always)]
    fn prefetch(_: Size, memory: &Blocks, hash: u64) {
        memory.prefetch(hash);
        memory.prefetch(second(hash));
    }

    #[inline(always)]
    fn contains<I: Isa, const B: usize>(_: Size, isa: I, memory: &Blocks, hash: u64) -> bool {
        let half = |hash| isa.contains::<B>(memory.locate(hash), Pattern::new(hash));
        // Both, without a branch: with half of the keys found, mispredicting the first takes longer than the second.
        half(hash) & half(second(hash))
    }

    #[inline(always)]
    fn insert<I: Isa, const B: usize>(_: Size, isa: I, memory: &mut Blocks, hash: u64) -> bool {
        [hash, second(hash)]
            .into_iter()
            .fold(false, |new, hash| new | isa.insert::<B>(memory.locate_mut(hash), Pattern::new(hash)))
    }
}
