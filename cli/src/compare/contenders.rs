//! Who is compared: the layouts, and the peers.

use super::paint::Stroke;
use super::peers::{Bloomfilter, Fastbloom, Sbbf};
use bloomline::variants::{
    ClassicBloomFilter, CountingBloomFilter, Layout, RegisterBloomFilter, SplitBlockBloomFilter, TwoBlockBloomFilter,
};
use bloomline::{BloomFilter, BuildError};

/// A filter, as it is measured.
pub trait Contender: Send + Sync {
    /// Inserts keys, and tells of each whether it was new.
    fn insert(&mut self, hashes: &[u64], new: &mut [bool]);

    /// Tells of each key whether it is in, and returns how many are.
    fn contains(&self, hashes: &[u64], found: &mut [bool]) -> usize;

    /// The size of the bits in bytes.
    fn memory_bytes(&self) -> usize;

    /// Bits set for each key.
    fn probes(&self) -> u32;

    /// The false-positive rate to expect with so many keys.
    fn modelled_fpr(&self, keys: u64) -> f64;
}

type Made = Result<Box<dyn Contender>, BuildError>;

/// A kind of filter: its name, its interface, and how to make one.
pub struct Kind {
    pub name: &'static str,
    /// The crate it is from, where that is not this one.
    pub peer: Option<&'static str>,
    /// What was called: the fastest that is public.
    pub interface: &'static str,
    /// In plots: the hue is that of the layout, and ours are solid.
    pub stroke: Stroke,
    /// Of at most so many bytes, best for so many keys.
    pub for_memory: fn(usize, u64) -> Made,
    /// For so many keys at a rate, where it can be asked for one.
    pub for_rate: Option<fn(u64, f64) -> Made>,
}

impl Kind {
    const fn layout<L: Layout + 'static>(hue: usize) -> Self {
        Self {
            name: L::NAME,
            peer: None,
            interface: "insert_hashes, contains_hashes: batches",
            stroke: Stroke { hue, dash: 0 },
            for_memory: |bytes, keys| Ok(Box::new(Ours(L::for_memory(bytes, keys)?))),
            for_rate: Some(|keys, rate| Ok(Box::new(Ours(L::for_rate(keys, rate)?)))),
        }
    }
}

/// All kinds, in the order of the tables. Peers have the colour of the layout that they implement.
pub const KINDS: &[Kind] = &[
    Kind::layout::<BloomFilter>(0),
    Kind::layout::<TwoBlockBloomFilter>(4),
    Kind::layout::<ClassicBloomFilter>(1),
    Kind::layout::<SplitBlockBloomFilter>(2),
    Kind::layout::<RegisterBloomFilter>(3),
    Kind::layout::<CountingBloomFilter>(5),
    Kind {
        name: "fastbloom",
        peer: Some("fastbloom 0.17"),
        interface: "insert_hash, contains_hash",
        stroke: Stroke { hue: 1, dash: 1 },
        for_memory: |bytes, keys| Ok(Box::new(Fastbloom::for_memory(bytes, keys))),
        for_rate: Some(|keys, rate| Ok(Box::new(Fastbloom::for_rate(keys, rate)))),
    },
    Kind {
        name: "sbbf-rs",
        peer: Some("sbbf-rs-safe 0.3"),
        interface: "insert_hash, contains_hash; cannot be asked for a rate",
        stroke: Stroke { hue: 2, dash: 1 },
        for_memory: |bytes, _| Ok(Box::new(Sbbf::for_memory(bytes))),
        for_rate: None,
    },
    Kind {
        name: "bloomfilter",
        peer: Some("bloomfilter 3"),
        interface: "check_and_set, check; takes no hash, so its own SipHash of the u64 is in its times",
        stroke: Stroke { hue: 1, dash: 2 },
        for_memory: |bytes, keys| Ok(Box::new(Bloomfilter::for_memory(bytes, keys))),
        for_rate: Some(|keys, rate| Ok(Box::new(Bloomfilter::for_rate(keys, rate)))),
    },
];

/// A layout of this crate.
struct Ours<L>(L);

impl<L: Layout> Contender for Ours<L> {
    fn insert(&mut self, hashes: &[u64], new: &mut [bool]) {
        self.0.insert_hashes(hashes, new);
    }

    fn contains(&self, hashes: &[u64], found: &mut [bool]) -> usize {
        self.0.contains_hashes(hashes, found)
    }

    fn memory_bytes(&self) -> usize {
        self.0.memory_bytes()
    }

    fn probes(&self) -> u32 {
        self.0.probes()
    }

    fn modelled_fpr(&self, keys: u64) -> f64 {
        self.0.expected_fpr(keys)
    }
}
