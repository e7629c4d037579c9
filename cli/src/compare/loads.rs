//! Loads on several threads: atomic inserts, and the bulk load.

use super::peers::one_by_one;
use crate::error::Error;
use bloomline::variants::{AtomicClassicBloomFilter, RegisterBloomFilter};
use bloomline::{AtomicBloomFilter, BloomFilter};
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::collections::BTreeMap;
use std::thread;

/// A filter that several threads load.
pub trait Load {
    /// Inserts keys.
    fn load(&mut self, hashes: &[u64], threads: usize);

    /// Removes all keys.
    fn clear(&mut self);
}

type Made = Result<Box<dyn Load>, Error>;

/// A kind of load.
pub struct LoadKind {
    /// Whose it is, of the contenders.
    pub contender: &'static str,
    pub operation: &'static str,
    pub interface: &'static str,
    /// Of so many bytes, for so many keys, on each of these numbers of threads.
    pub make: fn(usize, u64, &[usize]) -> Made,
}

/// All kinds.
pub const LOADS: &[LoadKind] = &[
    LoadKind {
        contender: "words4",
        operation: "bulk load",
        interface: "BloomFilter::par_insert_hashes",
        make: |bytes, keys, threads| Ok(Box::new(Bulk::new(bytes, keys, threads)?)),
    },
    LoadKind {
        contender: "words4",
        operation: "atomic insert",
        interface: "AtomicBloomFilter::insert_hashes",
        make: |bytes, keys, _| {
            Ok(Box::new(Atomic {
                filter: AtomicBloomFilter::builder().memory(bytes).expected_keys(keys).build()?,
                insert: |filter, hashes, new| filter.insert_hashes(hashes, new),
                clear: AtomicBloomFilter::clear,
            }))
        },
    },
    LoadKind {
        contender: "classic",
        operation: "atomic insert",
        interface: "AtomicClassicBloomFilter::insert_hashes",
        make: |bytes, keys, _| {
            Ok(Box::new(Atomic {
                filter: AtomicClassicBloomFilter::with_memory(bytes, keys)?,
                insert: |filter, hashes, new| filter.insert_hashes(hashes, new),
                clear: AtomicClassicBloomFilter::clear,
            }))
        },
    },
    LoadKind {
        contender: "register",
        operation: "atomic insert",
        interface: "RegisterBloomFilter::insert_hashes",
        make: |bytes, keys, _| {
            Ok(Box::new(Atomic {
                filter: RegisterBloomFilter::with_memory(bytes, keys)?,
                insert: |filter, hashes, new| filter.insert_hashes(hashes, new),
                clear: RegisterBloomFilter::clear,
            }))
        },
    },
    LoadKind {
        contender: "fastbloom",
        operation: "atomic insert",
        interface: "AtomicBloomFilter::insert_hash",
        make: |bytes, keys, _| {
            Ok(Box::new(Atomic {
                filter: fastbloom::AtomicBloomFilter::with_num_bits(bytes * 8).expected_items(keys as usize),
                insert: |filter, hashes, new| one_by_one(hashes, new, |hash| !filter.insert_hash(hash)),
                clear: |filter| filter.clear(),
            }))
        },
    },
];

/// Runs on parts of the keys, as equal as can be, each on a thread of its own.
pub fn on_threads(hashes: &[u64], answers: &mut [bool], threads: usize, run: impl Fn(&[u64], &mut [bool]) + Sync) {
    let part = hashes.len().div_ceil(threads);
    if threads == 1 {
        return run(hashes, answers);
    }
    thread::scope(|scope| {
        for (hashes, answers) in hashes.chunks(part).zip(answers.chunks_mut(part)) {
            scope.spawn(|| run(hashes, answers));
        }
    });
}

/// A filter that is inserted into through a shared reference.
struct Atomic<F> {
    filter: F,
    insert: fn(&F, &[u64], &mut [bool]) -> usize,
    clear: fn(&mut F),
}

impl<F: Sync> Load for Atomic<F> {
    fn load(&mut self, hashes: &[u64], threads: usize) {
        let Self { filter, insert, .. } = self;
        on_threads(hashes, &mut vec![false; hashes.len()], threads, |hashes, new| _ = insert(filter, hashes, new));
    }

    fn clear(&mut self) {
        (self.clear)(&mut self.filter);
    }
}

/// A filter that is loaded by ranges of blocks.
struct Bulk {
    filter: BloomFilter,
    pools: BTreeMap<usize, ThreadPool>,
}

impl Bulk {
    fn new(bytes: usize, keys: u64, threads: &[usize]) -> Result<Self, Error> {
        let pool = |&threads: &usize| Ok((threads, ThreadPoolBuilder::new().num_threads(threads).build()?));
        let pools = threads.iter().map(pool).collect::<Result<_, rayon::ThreadPoolBuildError>>();
        let pools = pools.map_err(|error| Error::Thread { source: std::io::Error::other(error) })?;
        Ok(Self { filter: BloomFilter::builder().memory(bytes).expected_keys(keys).build()?, pools })
    }
}

impl Load for Bulk {
    fn load(&mut self, hashes: &[u64], threads: usize) {
        let Self { filter, pools } = self;
        pools[&threads].install(|| filter.par_insert_hashes(hashes));
    }

    fn clear(&mut self) {
        self.filter.clear();
    }
}
