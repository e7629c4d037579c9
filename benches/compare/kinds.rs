//! The kinds of filters that are compared: the layouts of the library, and the peers.

use super::contender::{BoxedContender, Contender, boxed, contender, one_by_one};
use super::fingerprints::{
    cuckoo_for_memory, fuse_build_bytes, fuse_for_memory, fuse_for_rate, quotient_for_memory, quotient_for_rate,
};
use super::paint::Stroke;
use super::peers::{bloomcraft_for_memory, bloomcraft_for_rate};
use bloomfilter::Bloom;
use bloomline::variants::{
    ClassicBloomFilter, CountingBloomFilter, RegisterBloomFilter, SplitBlockBloomFilter, TwoBlockBloomFilter,
};
use bloomline::{BloomFilter, BuildError, dispatch};
use bloomline_benches::layout::LayoutFilter;
use fastbloom::BloomFilter as Fastbloom;

/// The seeds of peers are fixed, so that the same keys get the same bits in every run.
const FASTBLOOM_SEED: u128 = 1;
/// Two keys of SipHash, which must differ.
const BLOOMFILTER_SEED: [u8; 32] = *b"0123456789abcdef0011223344556677";

/// A kind of filter: its name, its interface, and how to make one.
pub struct Kind {
    pub name: &'static str,
    /// The crate of a peer; `None` for the library's layouts.
    pub peer: Option<&'static str>,
    /// The public interface that is measured.
    pub interface: &'static str,
    /// True if the interface takes many keys in a call.
    pub batch: bool,
    /// True if keys can be removed.
    pub removes: bool,
    /// The stroke in plots. The hue is that of the layout; batches are solid.
    pub stroke: Stroke,
    /// Of a static kind, which is built once of all keys: the memory that the build takes beside the filter.
    pub build_bytes: Option<fn(keys: u64) -> u64>,
    /// Makes one of at most `bytes` bytes, with the number of probes that is best for `keys` keys.
    pub for_memory: fn(bytes: usize, keys: u64) -> BoxedContender,
    /// Makes one for a number of keys and a rate; `None` if the peer cannot be asked for a rate.
    pub for_rate: Option<fn(keys: u64, rate: f64) -> BoxedContender>,
}

impl Kind {
    const fn layout<L: LayoutFilter + 'static>(name: &'static str, hue: usize, removes: bool) -> Self {
        Self {
            name,
            peer: None,
            interface: "insert_hashes, contains_hashes: batches",
            batch: true,
            removes,
            stroke: Stroke { hue, dash: 0 },
            build_bytes: None,
            for_memory: |bytes, keys| made(L::for_memory(bytes, keys).map(Batches)),
            for_rate: Some(|keys, rate| made(L::for_rate(keys, rate).map(Batches))),
        }
    }
}

/// All kinds, in the order of the tables. A peer has the hue of the layout that it implements. Other Bloom filters are grey,
/// and filters of fingerprints have the colour of the text.
pub const KINDS: &[Kind] = &[
    Kind {
        name: "BloomFilter",
        peer: None,
        interface: "insert_hash, contains_hash: a call for each key",
        batch: false,
        removes: false,
        stroke: Stroke { hue: 0, dash: 1 },
        build_bytes: None,
        for_memory: |bytes, keys| made(BloomFilter::for_memory(bytes, keys).map(Calls)),
        for_rate: Some(|keys, rate| made(BloomFilter::new(keys, rate).map(Calls))),
    },
    Kind {
        name: "BloomFilter dispatch!",
        peer: None,
        interface: "insert_hash, contains_hash in a loop within dispatch!",
        batch: false,
        removes: false,
        stroke: Stroke { hue: 0, dash: 2 },
        build_bytes: None,
        for_memory: |bytes, keys| made(BloomFilter::for_memory(bytes, keys).map(Dispatched)),
        for_rate: Some(|keys, rate| made(BloomFilter::new(keys, rate).map(Dispatched))),
    },
    Kind::layout::<BloomFilter>("BloomFilter batch", 0, false),
    Kind::layout::<TwoBlockBloomFilter>("two-block batch", 4, false),
    Kind::layout::<ClassicBloomFilter>("classic batch", 1, false),
    Kind::layout::<SplitBlockBloomFilter>("split-block batch", 2, false),
    Kind::layout::<RegisterBloomFilter>("register batch", 3, false),
    Kind::layout::<CountingBloomFilter>("counting batch", 5, true),
    Kind {
        name: "fastbloom",
        peer: Some("fastbloom 0.17"),
        interface: "insert_hash, contains_hash",
        batch: false,
        removes: false,
        stroke: Stroke { hue: 1, dash: 1 },
        build_bytes: None,
        for_memory: |bytes, keys| {
            boxed(Fastbloom::with_num_bits(bytes * 8).seed(&FASTBLOOM_SEED).expected_items(keys as usize))
        },
        for_rate: Some(|keys, rate| {
            boxed(Fastbloom::with_false_pos(rate).seed(&FASTBLOOM_SEED).expected_items(keys as usize))
        }),
    },
    Kind {
        name: "sbbf-rs",
        peer: Some("sbbf-rs-safe 0.3"),
        interface: "insert_hash, contains_hash; cannot be asked for a rate",
        batch: false,
        removes: false,
        stroke: Stroke { hue: 2, dash: 1 },
        build_bytes: None,
        // It takes bits a key and keys: 8 bits for each of as many keys as there are bytes.
        for_memory: |bytes, _| boxed(sbbf_rs_safe::Filter::new(8, bytes)),
        for_rate: None,
    },
    Kind {
        name: "bloomfilter",
        peer: Some("bloomfilter 3"),
        interface: "check_and_set, check; takes no hash, so its own SipHash of the u64 is in its times",
        batch: false,
        removes: false,
        stroke: Stroke { hue: 1, dash: 2 },
        build_bytes: None,
        for_memory: |bytes, keys| {
            boxed(Bloom::new_with_seed(bytes, keys as usize, &BLOOMFILTER_SEED).expect("only random seeds can fail"))
        },
        for_rate: Some(|keys, rate| {
            let filter = Bloom::new_for_fp_rate_with_seed(keys as usize, rate, &BLOOMFILTER_SEED);
            boxed(filter.expect("only random seeds can fail"))
        }),
    },
    Kind {
        name: "bloomcraft",
        peer: Some("bloomcraft 0.1"),
        interface: "RegisterBlockedBloomFilter::insert, contains; blocks are a power of two; does not tell whether a key is new",
        batch: false,
        removes: false,
        stroke: Stroke { hue: 6, dash: 1 },
        build_bytes: None,
        for_memory: bloomcraft_for_memory,
        for_rate: Some(bloomcraft_for_rate),
    },
    Kind {
        name: "quotient",
        peer: Some("qfilter 0.3"),
        interface: "insert_fingerprint, contains_fingerprint; slots are a power of two",
        batch: false,
        removes: true,
        stroke: Stroke { hue: 7, dash: 1 },
        build_bytes: None,
        for_memory: quotient_for_memory,
        for_rate: Some(quotient_for_rate),
    },
    Kind {
        name: "cuckoo",
        peer: Some("valkey-cuckoo 0.2"),
        interface: "test_and_add, contains; fingerprints have 8 bits, so it cannot be asked for a rate; buckets are a power of two",
        batch: false,
        removes: true,
        stroke: Stroke { hue: 7, dash: 2 },
        build_bytes: None,
        for_memory: cuckoo_for_memory,
        for_rate: None,
    },
    Kind {
        name: "binary fuse",
        peer: Some("xorf 0.13"),
        interface: "BinaryFuse8, BinaryFuse16 or BinaryFuse32: try_from, contains",
        batch: false,
        removes: false,
        stroke: Stroke { hue: 7, dash: 3 },
        build_bytes: Some(fuse_build_bytes),
        for_memory: fuse_for_memory,
        for_rate: Some(fuse_for_rate),
    },
];

/// A layout of the library, by batches. The wrappers let peers implement [`Contender`] themselves.
struct Batches<L>(L);

/// A `BloomFilter`, by a call for each key.
struct Calls(BloomFilter);

/// A `BloomFilter`, by a loop that is compiled for this CPU.
struct Dispatched(BloomFilter);

fn made(filter: Result<impl Contender + 'static, BuildError>) -> BoxedContender {
    filter.map_or_else(|error| Err(error.to_string()), boxed)
}

/// The methods of a contender that do not depend on how its layout is called.
macro_rules! size_of_layout {
    () => {
        fn memory_bytes(&self) -> usize {
            self.0.memory_bytes()
        }

        fn probes(&self) -> u32 {
            self.0.probes()
        }

        fn modelled_fpr(&self, keys: u64) -> f64 {
            self.0.expected_fpr(keys)
        }
    };
}

impl<L: LayoutFilter> Contender for Batches<L> {
    fn insert(&mut self, hashes: &[u64], new: &mut [bool]) -> usize {
        self.0.insert_hashes(hashes, new)
    }

    fn contains(&self, hashes: &[u64], found: &mut [bool]) -> usize {
        self.0.contains_hashes(hashes, found)
    }

    size_of_layout!();
}

contender! { Calls, |filter, hash, keys|
    insert: filter.0.insert_hash(hash),
    contains: filter.0.contains_hash(hash),
    bytes: filter.0.memory_bytes(),
    probes: filter.0.probes(),
    rate: filter.0.expected_fpr(keys)
}

impl Contender for Dispatched {
    fn insert(&mut self, hashes: &[u64], new: &mut [bool]) -> usize {
        dispatch!(&mut self.0, |mut view| one_by_one(hashes, new, |hash| view.insert_hash(hash)))
    }

    fn contains(&self, hashes: &[u64], found: &mut [bool]) -> usize {
        dispatch!(&self.0, |view| one_by_one(hashes, found, |hash| view.contains_hash(hash)))
    }

    size_of_layout!();
}

#[cfg(test)]
mod tests {
    use super::*;
    use bloomline_benches::hashes::{ABSENT, PRESENT, range};

    /// At sizes that are powers of two and others, few bits a key and many.
    #[test]
    fn every_kind_holds_its_keys_in_the_memory_that_it_is_given() {
        for (bytes, keys) in [(4096, 2700), (65_536, 52_000), (100_000, 60_000), (1 << 20, 1 << 15), (300_032, 9)] {
            let held = range(PRESENT, 0..keys);
            let mut answers = vec![false; held.len()];
            for kind in KINDS {
                let Ok(mut filter) = (kind.for_memory)(bytes, keys) else { continue };
                let new = filter.insert(&held, &mut answers);
                assert!(new as f64 >= keys as f64 * 0.6, "{}: {new} of {keys} in {bytes} bytes", kind.name);
                assert_eq!(filter.contains(&held, &mut answers), held.len(), "{}: {keys} in {bytes} bytes", kind.name);
                assert!(filter.memory_bytes() <= bytes && filter.memory_bytes() > 0, "{}: {bytes} bytes", kind.name);
            }
        }
    }

    #[test]
    fn every_kind_that_can_be_asked_for_a_rate_keeps_it() {
        let (keys, absent) = (10_000, 200_000);
        let (held, others) = (range(PRESENT, 0..keys), range(ABSENT, 0..absent));
        for (kind, for_rate) in KINDS.iter().filter_map(|kind| Some((kind, kind.for_rate?))) {
            for rate in [0.3, 0.02, 0.004, 0.001] {
                let mut filter = for_rate(keys, rate).unwrap_or_else(|reason| panic!("{}: {reason}", kind.name));
                filter.insert(&held, &mut vec![false; held.len()]);
                let found = filter.contains(&others, &mut vec![false; others.len()]) as f64 / absent as f64;
                let sigma = (rate / absent as f64 + rate * rate / 100.0).sqrt();
                assert!(found < rate + 5.0 * sigma, "{}: {found} for {rate}", kind.name);
            }
        }
    }
}
