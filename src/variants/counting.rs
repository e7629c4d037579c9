//! `CountingBloomFilter`: counters in place of bits, so that keys can be removed.

use super::union_method;
use crate::filter::methods;
use crate::filter::raw::RawFilter;
use crate::filter::view::view_impls;
use crate::kernel::block::{self, Block, Pattern, WORDS};
use crate::kernel::{KernelOps, prefetch};
use crate::key::single::Key;
use crate::layout::access::Exclusive;
use crate::layout::descriptor::{COUNTING, LayoutDescriptor};
use crate::layout::model::Layout;
use crate::layout::ops::LayoutOps;
use crate::layout::params::Geometry;
use crate::layout::storage::{BlockStore, Blocks};
use crate::rate::fpr::{BlockRates, Lanes};
use crate::rate::set_bits;

/// Counters of 4 bits in place of bits: keys can be inserted several times, counted, and removed again.
///
/// A key has k counters, k = 4, 8 or 16, one in each of k equal parts of a group of 256, so that they are all different. A
/// group is two adjacent cache lines: a single line has room for only 128 counters, and their load varies so much more that it
/// takes 8 % more memory at a rate of 1 % and 23 % at 1e-4.
///
/// A counter that has reached 15 keeps that value: its true number is unknown, and decrementing it could lose other keys. With
/// the distinct keys that a filter was sized for, at rates of 10 % and below, fewer than one counter in 10^13 reaches 15 (loads
/// are Poisson, with a mean of at most 0.82); repeats can bring any counter there. Keys with such counters may remain after
/// their removal. (Fan, Cao, Almeida and Broder, "Summary Cache", IEEE/ACM Transactions on Networking 8(3), 2000, which has the
/// argument for 4 bits.)
///
/// **Remove only keys that were inserted.** A key that was never inserted is refused, unless it is a false positive: then its
/// removal decrements other keys' counters, and they may be lost. No filter can distinguish the two cases.
///
/// # Examples
/// ```
/// use bloomline::variants::CountingBloomFilter;
/// let mut open = CountingBloomFilter::new(1000, 0.001)?;
/// open.insert("a");
/// open.insert("a");
/// assert_eq!(open.count_upper_bound("a"), 2);
/// assert!(open.remove("a") && open.contains("a"));
/// assert!(open.remove("a") && !open.contains("a"));
/// assert!(!open.remove("a")); // is not in: refused
/// # Ok::<(), bloomline::BuildError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct CountingBloomFilter(pub(super) RawFilter<Counting, Exclusive>);

impl CountingBloomFilter {
    methods::constructors! { "bloomline::variants::CountingBloomFilter",
        /// Creates an empty filter for `expected_keys` distinct keys, of the smallest size that keeps the rate by the layout's
        /// model.
    }
    methods::insert_methods!("bloomline::variants::CountingBloomFilter", one_writer);
    methods::query_methods!("bloomline::variants::CountingBloomFilter");
    methods::info_methods!();
    methods::capacity_methods!();
    union_method! { "bloomline::variants::CountingBloomFilter", "mut ", [mut],
        /// Adds up the counters, to at most 15. The result is exactly the filter that both sets of keys would have made.
        /// O(memory).
    }

    /// Undoes one insert of a key. Returns `false`, and changes nothing, if the key is not in. See the type for keys that must
    /// not be removed. O(length of the key).
    pub fn remove<K: Key + ?Sized>(&mut self, key: &K) -> bool {
        let hash = key.hash_with(&self.0.hasher);
        if !self.contains_hash(hash) {
            return false;
        }
        let Geometry { units, probes } = self.0.params.geometry;
        let group = group_mut(units, &mut self.0.blocks, hash);
        for counter in counters(probes, hash) {
            let decrement = u64::from(counter.get(group) < MAX_COUNT);
            *counter.word(group) -= decrement << counter.shift;
        }
        true
    }

    /// Returns an upper bound on the inserts of a key less its removals; 15 stands for 15 and more. It exceeds their number
    /// at about the false-positive rate. O(length of the key).
    pub fn count_upper_bound<K: Key + ?Sized>(&self, key: &K) -> u8 {
        let hash = key.hash_with(&self.0.hasher);
        let Geometry { units, probes } = self.0.params.geometry;
        let group = group(units, &self.0.blocks, hash);
        // At most 15.
        counters(probes, hash).map(|counter| counter.get(group)).min().unwrap_or(0) as u8
    }
}

methods::file_methods!(CountingBloomFilter, "bloomline::variants::CountingBloomFilter");
methods::collect_impls!(CountingBloomFilter, sized);
methods::trait_impls!(CountingBloomFilter, one_writer);
view_impls!(CountingBloomFilter, one_writer);

/// The layout of [`CountingBloomFilter`].
pub(crate) struct Counting(());

/// Counters in a group: 16 words of 16.
const COUNTERS: u32 = 256;
/// The value that a counter keeps once it has reached it.
const MAX_COUNT: u64 = 15;

/// Two cache lines.
type Group = [Block; 2];

fn lanes(probes: u32) -> Lanes {
    Lanes { lanes: probes, choices: 1, bits: COUNTERS / probes, throws: 1 }
}

/// Adds sixteen counters of 4 bits, saturating: every other one in a byte of its own, in which bit 4 is the carry.
fn add(a: u64, b: u64) -> u64 {
    const EVEN: u64 = 0x0F0F_0F0F_0F0F_0F0F;
    let sum = |a: u64, b: u64| {
        let sum = (a & EVEN) + (b & EVEN);
        let full = (sum >> 4 & EVEN) * MAX_COUNT;
        (sum | full) & EVEN
    };
    sum(a, b) | sum(a >> 4, b >> 4) << 4
}

/// Returns the number of counters of a word that are not 0.
fn nonzero_counters(word: u64) -> u32 {
    const LOW: u64 = 0x1111_1111_1111_1111;
    ((word | word >> 1 | word >> 2 | word >> 3) & LOW).count_ones()
}

/// The position of a counter in a group.
#[derive(Clone, Copy)]
struct Counter {
    word: usize,
    shift: u32,
}

impl Counter {
    #[inline(always)]
    fn get(self, group: &Group) -> u64 {
        group[self.word / 8].0[self.word % 8] >> self.shift & 15
    }

    #[inline(always)]
    fn word(self, group: &mut Group) -> &mut u64 {
        &mut group[self.word / 8].0[self.word % 8]
    }
}

/// Returns a key's counters: one in each part of the group, chosen by the part's share of the pattern's 64 bits.
#[inline(always)]
fn counters(probes: u32, hash: u64) -> impl Iterator<Item = Counter> {
    let pattern = Pattern::new(hash).first;
    let (part, bits) = (COUNTERS / probes, 64 / probes);
    (0..probes).map(move |i| {
        let counter = i * part + ((pattern >> (i * bits)) as u32 & (part - 1));
        Counter { word: (counter / 16) as usize, shift: counter % 16 * 4 }
    })
}

#[inline(always)]
fn group(units: u64, store: &Blocks, hash: u64) -> &Group {
    // At most MAX_BLOCKS, which fits a usize.
    &store.as_slice().as_chunks().0[block::locate(hash, units as usize)]
}

#[inline(always)]
fn group_mut(units: u64, store: &mut Blocks, hash: u64) -> &mut Group {
    &mut store.as_mut_slice().as_chunks_mut().0[block::locate(hash, units as usize)]
}

impl Layout for Counting {
    const DESCRIPTOR: &'static LayoutDescriptor = &COUNTING;

    fn rate(geometry: Geometry, keys: u64) -> f64 {
        BlockRates::new(lanes(geometry.probes)).mixture(geometry.units, keys)
    }

    fn current_fpr(geometry: Geometry, words: impl Iterator<Item = [u64; WORDS]>) -> f64 {
        let mut blocks = words;
        let groups = core::iter::from_fn(move || Some([blocks.next()?, blocks.next()?]));
        // The words of a part. A probe chooses one of their counters.
        let per_part = 16 / geometry.probes as usize;
        let rate = |group: [[u64; WORDS]; 2]| {
            let parts = group.as_flattened().chunks(per_part);
            parts
                .map(|part| {
                    part.iter().map(|&word| f64::from(nonzero_counters(word))).sum::<f64>() / (16.0 * part.len() as f64)
                })
                .product()
        };
        set_bits::mean(groups.map(rate))
    }

    fn bit_probability(geometry: Geometry) -> f64 {
        lanes(geometry.probes).bit_probability() / geometry.units as f64
    }

    fn merge_words(ours: u64, theirs: u64) -> u64 {
        add(ours, theirs)
    }

    /// Makes `B` the constant k / 4.
    fn dispatch_probes(geometry: Geometry) -> u32 {
        geometry.probes
    }
}

impl LayoutOps<Exclusive> for Counting {
    const NAME: &'static str = "CountingBloomFilter";
    type Store = Blocks;

    /// Returns the fraction of counters that are not 0.
    fn fill_ratio(geometry: Geometry, store: &Blocks) -> f64 {
        let nonzero: u64 = store.words().flatten().map(|word| u64::from(nonzero_counters(word))).sum();
        nonzero as f64 / (geometry.units as f64 * f64::from(COUNTERS))
    }

    #[inline(always)]
    fn prefetch(geometry: Geometry, store: &Blocks, hash: u64) {
        group(geometry.units, store, hash).iter().for_each(|block| prefetch(block, store.len()));
    }

    #[inline(always)]
    fn contains<I: KernelOps>(geometry: Geometry, _: I, store: &Blocks, hash: u64, b: usize) -> bool {
        let group = group(geometry.units, store, hash);
        // All of them, because a CPU cannot predict at which one a query ends.
        counters(4 * b as u32, hash).fold(true, |seen, counter| seen & (counter.get(group) != 0))
    }

    #[inline(always)]
    fn insert<I: KernelOps>(geometry: Geometry, _: I, store: &mut &mut Blocks, hash: u64, b: usize) -> bool {
        let group = group_mut(geometry.units, store, hash);
        counters(4 * b as u32, hash).fold(false, |new, counter| {
            let count = counter.get(group);
            *counter.word(group) += u64::from(count < MAX_COUNT) << counter.shift;
            new | (count == 0)
        })
    }
}
