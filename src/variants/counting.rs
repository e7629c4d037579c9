//! `CountingBloomFilter`: counters in place of bits, so that keys can be removed.

use super::uniting;
use crate::filter::fixed::Fixed;
use crate::filter::methods;
use crate::kernel::block::{self, Block, Pattern, WORDS};
use crate::kernel::{Isa, prefetch};
use crate::key::single::Key;
use crate::layout::access::Exclusive;
use crate::layout::format::{COUNTING, Format};
use crate::layout::operations::Operations;
use crate::layout::params::Size;
use crate::layout::shape::Shape;
use crate::layout::storage::{Blocks, Memory};
use crate::rate::fpr::{BlockRates, Lanes};
use crate::rate::stats;

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
/// assert_eq!(open.count_at_most("a"), 2);
/// assert!(open.remove("a") && open.contains("a"));
/// assert!(open.remove("a") && !open.contains("a"));
/// assert!(!open.remove("a")); // is not in: refused
/// # Ok::<(), bloomline::BuildError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct CountingBloomFilter(pub(super) Fixed<Counting, Exclusive>);

impl CountingBloomFilter {
    methods::building! { "bloomline::variants::CountingBloomFilter",
        /// Creates an empty filter for `expected_keys` distinct keys, of the smallest size that keeps the rate by the layout's
        /// model.
    }
    methods::inserting!("bloomline::variants::CountingBloomFilter", one_writer);
    methods::asking!("bloomline::variants::CountingBloomFilter");
    methods::telling!();
    methods::sizing!();
    uniting! { "bloomline::variants::CountingBloomFilter", "mut ", [mut],
        /// Adds up the counters, to at most 15. The result is exactly the filter that both sets of keys would have made.
        /// O(memory).
    }

    /// Undoes one insert of a key. Returns `false`, and changes nothing, if the key is not in. See the type for keys that must
    /// not be removed. O(length of the key).
    pub fn remove<K: Key + ?Sized>(&mut self, key: &K) -> bool {
        self.remove_hash(key.hash_with(&self.0.hasher))
    }

    /// [`remove`](Self::remove) for a key that was hashed elsewhere.
    pub fn remove_hash(&mut self, hash: u64) -> bool {
        if !self.contains_hash(hash) {
            return false;
        }
        let Size { units, probes } = self.0.params.size();
        let group = group_mut(units, &mut self.0.blocks, hash);
        for counter in counters(probes, hash) {
            let one = u64::from(counter.of(group) < STUCK);
            *counter.word(group) -= one << counter.shift;
        }
        true
    }

    /// An upper bound on the inserts of a key less its removals; 15 stands for 15 and more. It exceeds their number at about
    /// the false-positive rate. O(length of the key).
    pub fn count_at_most<K: Key + ?Sized>(&self, key: &K) -> u8 {
        self.count_hash_at_most(key.hash_with(&self.0.hasher))
    }

    /// [`count_at_most`](Self::count_at_most) for a key that was hashed elsewhere.
    pub fn count_hash_at_most(&self, hash: u64) -> u8 {
        let Size { units, probes } = self.0.params.size();
        let group = group(units, &self.0.blocks, hash);
        // At most 15.
        counters(probes, hash).map(|counter| counter.of(group)).min().unwrap_or(0) as u8
    }
}

methods::filing!(CountingBloomFilter, "bloomline::variants::CountingBloomFilter");
methods::collecting!(CountingBloomFilter, sized);
methods::as_filter!(CountingBloomFilter, one_writer);

/// The layout of [`CountingBloomFilter`].
pub(crate) struct Counting(());

/// Counters in a group: 16 words of 16.
const COUNTERS: u32 = 256;
/// The value that a counter keeps once it has reached it.
const STUCK: u64 = 15;

/// Two cache lines.
type Group = [Block; 2];

fn lanes(probes: u32) -> Lanes {
    Lanes { lanes: probes, choices: 1, bits: COUNTERS / probes, throws: 1 }
}

/// Sixteen saturating sums of 4 bits: every other one in a byte of its own, in which bit 4 is the carry.
fn add(a: u64, b: u64) -> u64 {
    const EVEN: u64 = 0x0F0F_0F0F_0F0F_0F0F;
    let sum = |a: u64, b: u64| {
        let sum = (a & EVEN) + (b & EVEN);
        let full = (sum >> 4 & EVEN) * STUCK;
        (sum | full) & EVEN
    };
    sum(a, b) | sum(a >> 4, b >> 4) << 4
}

/// The counters of a word that are not 0.
fn used(word: u64) -> u32 {
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
    fn of(self, group: &Group) -> u64 {
        group[self.word / 8].0[self.word % 8] >> self.shift & 15
    }

    #[inline(always)]
    fn word(self, group: &mut Group) -> &mut u64 {
        &mut group[self.word / 8].0[self.word % 8]
    }
}

/// A key's counters: one in each part of the group, chosen by the part's share of the pattern's 64 bits.
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
fn group(units: u64, memory: &Blocks, hash: u64) -> &Group {
    // At most MAX_BLOCKS, which fits a usize.
    &memory.as_slice().as_chunks().0[block::locate(hash, units as usize)]
}

#[inline(always)]
fn group_mut(units: u64, memory: &mut Blocks, hash: u64) -> &mut Group {
    &mut memory.as_mut_slice().as_chunks_mut().0[block::locate(hash, units as usize)]
}

impl Shape for Counting {
    const FORMAT: &'static Format = &COUNTING;

    fn rate(size: Size, keys: u64) -> f64 {
        BlockRates::new(lanes(size.probes)).mixture(size.units, keys)
    }

    fn current_fpr(size: Size, words: impl Iterator<Item = [u64; WORDS]>) -> f64 {
        let mut blocks = words;
        let groups = core::iter::from_fn(move || Some([blocks.next()?, blocks.next()?]));
        // The words of a part. A probe chooses one of their counters.
        let per_part = 16 / size.probes as usize;
        let rate = |group: [[u64; WORDS]; 2]| {
            let parts = group.as_flattened().chunks(per_part);
            parts
                .map(|part| part.iter().map(|&word| f64::from(used(word))).sum::<f64>() / (16.0 * part.len() as f64))
                .product()
        };
        stats::mean(groups.map(rate))
    }

    fn touched(size: Size) -> f64 {
        lanes(size.probes).touched() / size.units as f64
    }

    fn united(ours: u64, theirs: u64) -> u64 {
        add(ours, theirs)
    }

    /// Makes `B` k / 4, so that it is a constant.
    fn kernel_probes(size: Size) -> u32 {
        size.probes
    }
}

impl Operations<Exclusive> for Counting {
    const NAME: &'static str = "CountingBloomFilter";
    type Memory = Blocks;

    /// The fraction of counters that are not 0.
    fn fill(size: Size, memory: &Blocks) -> f64 {
        let all: u64 = memory.words().flatten().map(|word| u64::from(used(word))).sum();
        all as f64 / (size.units as f64 * f64::from(COUNTERS))
    }

    #[inline(always)]
    fn prefetch(size: Size, memory: &Blocks, hash: u64) {
        group(size.units, memory, hash).iter().for_each(|block| prefetch(block, memory.len()));
    }

    #[inline(always)]
    fn contains<I: Isa, const B: usize>(size: Size, _: I, memory: &Blocks, hash: u64) -> bool {
        let group = group(size.units, memory, hash);
        // All of them, because a CPU cannot predict at which one a query ends.
        counters(4 * B as u32, hash).fold(true, |seen, counter| seen & (counter.of(group) != 0))
    }

    #[inline(always)]
    fn insert<I: Isa, const B: usize>(size: Size, _: I, memory: &mut Blocks, hash: u64) -> bool {
        let group = group_mut(size.units, memory, hash);
        counters(4 * B as u32, hash).fold(false, |new, counter| {
            let count = counter.of(group);
            *counter.word(group) += u64::from(count < STUCK) << counter.shift;
            new | (count == 0)
        })
    }
}
