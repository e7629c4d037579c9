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
/// A key has k counters, k = 4, 8 or 16, one in each of k equal parts of a group of 256, so that they are never the same
/// one. A group is two cache lines side by side: in one line there is room for 128 counters only, whose load scatters so
/// much more that it takes 8 % more memory at a rate of 1 % and 23 % at 1e-4.
///
/// A counter that has reached 15 stays there: it no longer knows its number, and counting it down could lose other keys.
/// Of the distinct keys that a filter was sized for, at rates of 10 % and below, fewer than one counter in 10^13 gets there
/// (loads are Poisson, with a mean of at most 0.82); of repeats, any.
/// Keys with such counters may stay after their removal. (Fan, Cao, Almeida and Broder, "Summary Cache", IEEE/ACM
/// Transactions on Networking 8(3), 2000, which has the argument for 4 bits.)
///
/// **Remove only what is in.** A key that was never inserted is refused, unless it is a false positive: then its removal
/// takes other keys' counts, and they may be lost. No filter can tell the two apart.
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
        /// A filter for `expected_keys` distinct keys, empty, of the least size that keeps the rate by the layout's model.
    }
    methods::inserting!("bloomline::variants::CountingBloomFilter", one_writer);
    methods::asking!("bloomline::variants::CountingBloomFilter");
    methods::telling!();
    methods::sizing!();
    uniting! { "bloomline::variants::CountingBloomFilter", "mut ", [mut],
        /// Adds up the counters, to at most 15: the very filter that both sets of keys would have made. O(memory).
    }

    /// Takes back one insert of a key. `false` if the key is not in: nothing is changed then. See the type for what must
    /// not be removed. O(length of the key).
    pub fn remove<K: Key + ?Sized>(&mut self, key: &K) -> bool {
        self.remove_hash(key.hash_with(&self.0.hasher))
    }

    /// [`remove`](Self::remove) of a key that was hashed elsewhere.
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

    /// How often a key can have been inserted and not removed: never less than it was, but that 15 stands for 15 and more.
    /// More than it was, at about the false-positive rate. O(length of the key).
    pub fn count_at_most<K: Key + ?Sized>(&self, key: &K) -> u8 {
        self.count_hash_at_most(key.hash_with(&self.0.hasher))
    }

    /// [`count_at_most`](Self::count_at_most) of a key that was hashed elsewhere.
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
/// The number at which a counter stays.
const STUCK: u64 = 15;

/// Two cache lines.
type Group = [Block; 2];

fn lanes(probes: u32) -> Lanes {
    Lanes { lanes: probes, choices: 1, bits: COUNTERS / probes, throws: 1 }
}

/// Sixteen sums of 4 bits that stop at 15: every other one in a byte of its own, where bit 4 says that it is too much.
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

/// The place of a counter in a group.
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

/// A key's counters: of each part of the group the one that its share of the pattern's 64 bits says.
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
    // At most MAX_BLOCKS, which is a usize.
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
        // Words of a part, of whose counters a probe chooses one.
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

    /// So that `B` is k / 4, which makes it a constant.
    fn kernel_probes(size: Size) -> u32 {
        size.probes
    }
}

impl Operations<Exclusive> for Counting {
    const NAME: &'static str = "CountingBloomFilter";
    type Memory = Blocks;

    /// The share of counters that are not 0.
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
        // All of them, for a CPU cannot guess at which one a query ends.
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
