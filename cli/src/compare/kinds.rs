//! The kinds of filters that are compared: the layouts of the library, and the peers.

use super::contender::Contender;
use super::paint::Stroke;
use bloomfilter::Bloom;
use bloomline::variants::{
    ClassicBloomFilter, CountingBloomFilter, Layout, RegisterBloomFilter, SplitBlockBloomFilter, TwoBlockBloomFilter,
};
use bloomline::{BloomFilter, BuildError};
use fastbloom::BloomFilter as Fastbloom;

/// The seeds of peers are fixed, so that the same keys get the same bits in every run.
const FASTBLOOM_SEED: u128 = 1;
/// Two keys of SipHash, which must differ.
const BLOOMFILTER_SEED: [u8; 32] = *b"0123456789abcdef0011223344556677";

type Made = Result<Box<dyn Contender>, BuildError>;

/// A kind of filter: its name, its interface, and how to make one.
pub struct Kind {
    pub name: &'static str,
    /// The crate of a peer; `None` for the library's layouts.
    pub peer: Option<&'static str>,
    /// What is called, the fastest that is public.
    pub interface: &'static str,
    /// How plots draw it. The hue is that of the layout; the library's lines are solid.
    pub stroke: Stroke,
    /// Makes one of at most `bytes` bytes, with the number of probes that is best for `keys` keys.
    pub for_memory: fn(bytes: usize, keys: u64) -> Made,
    /// Makes one for a number of keys and a rate; `None` if the peer cannot be asked for a rate.
    pub for_rate: Option<fn(keys: u64, rate: f64) -> Made>,
}

impl Kind {
    const fn layout<L: Layout + 'static>(hue: usize) -> Self {
        Self {
            name: L::NAME,
            peer: None,
            interface: "insert_hashes, contains_hashes: batches",
            stroke: Stroke { hue, dash: 0 },
            for_memory: |bytes, keys| made(Ours(L::for_memory(bytes, keys)?)),
            for_rate: Some(|keys, rate| made(Ours(L::for_rate(keys, rate)?))),
        }
    }
}

/// All kinds, in the order of the tables. A peer has the hue of the layout that it implements.
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
        for_memory: |bytes, keys| {
            made(Fastbloom::with_num_bits(bytes * 8).seed(&FASTBLOOM_SEED).expected_items(keys as usize))
        },
        for_rate: Some(|keys, rate| {
            made(Fastbloom::with_false_pos(rate).seed(&FASTBLOOM_SEED).expected_items(keys as usize))
        }),
    },
    Kind {
        name: "sbbf-rs",
        peer: Some("sbbf-rs-safe 0.3"),
        interface: "insert_hash, contains_hash; cannot be asked for a rate",
        stroke: Stroke { hue: 2, dash: 1 },
        // It takes bits a key and keys: 8 bits for each of as many keys as there are bytes.
        for_memory: |bytes, _| made(sbbf_rs_safe::Filter::new(8, bytes)),
        for_rate: None,
    },
    Kind {
        name: "bloomfilter",
        peer: Some("bloomfilter 3"),
        interface: "check_and_set, check; takes no hash, so its own SipHash of the u64 is in its times",
        stroke: Stroke { hue: 1, dash: 2 },
        for_memory: |bytes, keys| {
            made(Bloom::new_with_seed(bytes, keys as usize, &BLOOMFILTER_SEED).expect("only random seeds can fail"))
        },
        for_rate: Some(|keys, rate| {
            let filter = Bloom::new_for_fp_rate_with_seed(keys as usize, rate, &BLOOMFILTER_SEED);
            made(filter.expect("only random seeds can fail"))
        }),
    },
];

fn made(contender: impl Contender + 'static) -> Made {
    Ok(Box::new(contender))
}

/// A layout of the library. The wrapper lets peers implement [`Contender`] themselves.
struct Ours<L>(L);

impl<L: Layout> Contender for Ours<L> {
    fn insert(&mut self, hashes: &[u64], new: &mut [bool]) -> usize {
        self.0.insert_hashes(hashes, new)
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
