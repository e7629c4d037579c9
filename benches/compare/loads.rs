//! Loads on several threads: atomic inserts, and the bulk load.

use super::contender::one_by_one;
use bloomline::variants::{AtomicClassicBloomFilter, RegisterBloomFilter};
use bloomline::{AtomicBloomFilter, BloomFilter, BuildError, Hashes};
use rayon::ThreadPool;
use rayon::prelude::*;

/// A filter that several threads load.
pub trait Load {
    /// Inserts keys.
    fn load(&mut self, hashes: &[u64], pool: &ThreadPool);

    /// Removes all keys.
    fn clear(&mut self);
}

/// A kind of load.
pub struct LoadKind {
    /// The name of the contender that it belongs to.
    pub contender: &'static str,
    pub operation: &'static str,
    pub interface: &'static str,
    /// Makes a filter for a number of keys.
    pub make: fn(bytes: usize, keys: u64) -> Result<Box<dyn Load>, BuildError>,
}

/// All kinds.
pub const LOADS: &[LoadKind] = &[
    LoadKind {
        contender: "BloomFilter batch",
        operation: "bulk load",
        interface: "BloomFilter::par_insert of Hashes",
        make: |bytes, keys| Ok(Box::new(BloomFilter::builder().memory(bytes).expected_keys(keys).build()?)),
    },
    LoadKind {
        contender: "BloomFilter batch",
        operation: "atomic insert",
        interface: "AtomicBloomFilter::insert_hashes",
        make: |bytes, keys| Ok(Box::new(AtomicBloomFilter::builder().memory(bytes).expected_keys(keys).build()?)),
    },
    LoadKind {
        contender: "classic batch",
        operation: "atomic insert",
        interface: "AtomicClassicBloomFilter::insert_hashes",
        make: |bytes, keys| {
            Ok(Box::new(AtomicClassicBloomFilter::builder().memory(bytes).expected_keys(keys).build()?))
        },
    },
    LoadKind {
        contender: "register batch",
        operation: "atomic insert",
        interface: "RegisterBloomFilter::insert_hashes",
        make: |bytes, keys| Ok(Box::new(RegisterBloomFilter::builder().memory(bytes).expected_keys(keys).build()?)),
    },
    LoadKind {
        contender: "fastbloom",
        operation: "atomic insert",
        interface: "AtomicBloomFilter::insert_hash",
        make: |bytes, keys| {
            Ok(Box::new(fastbloom::AtomicBloomFilter::with_num_bits(bytes * 8).expected_items(keys as usize)))
        },
    },
];

/// Splits the keys into a part for each thread.
pub fn on_threads(hashes: &[u64], answers: &mut [bool], pool: &ThreadPool, run: impl Fn(&[u64], &mut [bool]) + Sync) {
    let part = hashes.len().div_ceil(pool.current_num_threads());
    let parts = hashes.par_chunks(part).zip(answers.par_chunks_mut(part));
    pool.install(|| parts.for_each(|(hashes, answers)| run(hashes, answers)));
}

/// Each thread loads a range of its blocks.
impl Load for BloomFilter {
    fn load(&mut self, hashes: &[u64], pool: &ThreadPool) {
        pool.install(|| self.par_insert(&Hashes::new(hashes)));
    }

    fn clear(&mut self) {
        self.clear();
    }
}

/// Filters that all threads insert into at once.
macro_rules! atomic {
    ($($type:ty: |$filter:ident, $hashes:ident, $new:ident| $insert:expr;)*) => {$(
        impl Load for $type {
            fn load(&mut self, hashes: &[u64], pool: &ThreadPool) {
                let $filter = &*self;
                on_threads(hashes, &mut vec![false; hashes.len()], pool, |$hashes, $new| _ = $insert);
            }

            fn clear(&mut self) {
                <$type>::clear(self);
            }
        }
    )*};
}

atomic! {
    AtomicBloomFilter: |filter, hashes, new| filter.insert_hashes(hashes, new);
    AtomicClassicBloomFilter: |filter, hashes, new| filter.insert_hashes(hashes, new);
    RegisterBloomFilter: |filter, hashes, new| filter.insert_hashes(hashes, new);
    fastbloom::AtomicBloomFilter: |filter, hashes, new| one_by_one(hashes, new, |hash| !filter.insert_hash(hash));
}
