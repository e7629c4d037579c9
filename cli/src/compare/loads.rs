//! Loads on several threads: atomic inserts, and the bulk load.

use super::contender::one_by_one;
use crate::error::Error;
use bloomline::variants::{AtomicClassicBloomFilter, RegisterBloomFilter};
use bloomline::{AtomicBloomFilter, BloomFilter};
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::collections::BTreeMap;
use std::{io, thread};

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
    /// The name of the contender that it belongs to.
    pub contender: &'static str,
    pub operation: &'static str,
    pub interface: &'static str,
    /// Makes a filter for `keys` keys, which each of these numbers of threads will load.
    pub make: fn(bytes: usize, keys: u64, threads: &[usize]) -> Made,
}

/// All kinds.
pub const LOADS: &[LoadKind] = &[
    LoadKind { contender: "words4", operation: "bulk load", interface: "BloomFilter::par_insert_hashes", make: bulk },
    LoadKind {
        contender: "words4",
        operation: "atomic insert",
        interface: "AtomicBloomFilter::insert_hashes",
        make: |bytes, keys, _| {
            let filter = AtomicBloomFilter::builder().memory(bytes).expected_keys(keys).build()?;
            atomic(filter, AtomicBloomFilter::insert_hashes, AtomicBloomFilter::clear)
        },
    },
    LoadKind {
        contender: "classic",
        operation: "atomic insert",
        interface: "AtomicClassicBloomFilter::insert_hashes",
        make: |bytes, keys, _| {
            let filter = AtomicClassicBloomFilter::with_memory(bytes, keys)?;
            atomic(filter, AtomicClassicBloomFilter::insert_hashes, AtomicClassicBloomFilter::clear)
        },
    },
    LoadKind {
        contender: "register",
        operation: "atomic insert",
        interface: "RegisterBloomFilter::insert_hashes",
        make: |bytes, keys, _| {
            let filter = RegisterBloomFilter::with_memory(bytes, keys)?;
            atomic(filter, RegisterBloomFilter::insert_hashes, RegisterBloomFilter::clear)
        },
    },
    LoadKind {
        contender: "fastbloom",
        operation: "atomic insert",
        interface: "AtomicBloomFilter::insert_hash",
        make: |bytes, keys, _| {
            let filter = fastbloom::AtomicBloomFilter::with_num_bits(bytes * 8).expected_items(keys as usize);
            atomic(
                filter,
                |filter, hashes, new| one_by_one(hashes, new, |hash| !filter.insert_hash(hash)),
                |filter| filter.clear(),
            )
        },
    },
];

/// Splits the keys into parts of equal length, and runs each part on a thread of its own.
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

/// A filter that all threads insert into at once.
struct Atomic<F> {
    filter: F,
    insert: fn(&F, &[u64], &mut [bool]) -> usize,
    clear: fn(&mut F),
}

fn atomic<F: Sync + 'static>(filter: F, insert: fn(&F, &[u64], &mut [bool]) -> usize, clear: fn(&mut F)) -> Made {
    Ok(Box::new(Atomic { filter, insert, clear }))
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

/// A filter whose threads each load a range of its blocks.
struct Bulk {
    filter: BloomFilter,
    pools: BTreeMap<usize, ThreadPool>,
}

fn bulk(bytes: usize, keys: u64, threads: &[usize]) -> Made {
    let pool = |&threads: &usize| match ThreadPoolBuilder::new().num_threads(threads).build() {
        Ok(pool) => Ok((threads, pool)),
        Err(error) => Err(Error::Thread { source: io::Error::other(error) }),
    };
    let pools = threads.iter().map(pool).collect::<Result<_, _>>()?;
    Ok(Box::new(Bulk { filter: BloomFilter::builder().memory(bytes).expected_keys(keys).build()?, pools }))
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
