//! The shared filter against real servers. The tests that lack the server's program are ignored, unless
//! `BLOOMLINE_REQUIRE_REDIS=1`.
//!
//! Which keys are false positives depends on the order of inserts, so where clients race the filters are so large that
//! one in 100,000 runs has any.

mod backup;
mod blocking;
mod client;
mod clusters;
mod errors;
mod failover;
mod harness;
mod key_kinds;
mod lost;
mod proxy;
#[path = "../../../../tests/python/mod.rs"]
mod python;
mod servers;
mod stages;
mod tasks;
mod tls;
mod versions;

use bloomline::BloomFilter;
use bloomline_redis::{RedisBloomFilter, RedisFilterError, RedisServer};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::thread;

fn main() -> ExitCode {
    let modules = [
        backup::tests,
        blocking::tests,
        client::tests,
        clusters::tests,
        errors::tests,
        failover::tests,
        key_kinds::tests,
        lost::tests,
        stages::tests,
        tasks::tests,
        tls::tests,
        versions::tests,
    ];
    harness::run(modules.iter().flat_map(|tests| tests()).collect())
}

/// The parameters of a filter.
type Size = bloomline::Builder<BloomFilter>;

/// A filter of three shards, large enough that tests have no false positives.
fn three_shard_size() -> Size {
    BloomFilter::builder().memory(40 << 20).probes(12).seed(5)
}

/// A filter of one shard.
fn one_shard_size() -> Size {
    BloomFilter::builder().memory(1 << 20).probes(8).seed(6)
}

/// The answers to all clients of a filter.
struct Tally {
    /// The number of times that each key was reported as new.
    claims: Vec<AtomicU32>,
    /// The number of uncertain claims that clients report, because of missing answers or replicas.
    uncertain: AtomicU64,
    /// The number of answered inserts.
    progress: AtomicU64,
    /// The number of inserts after which clients wait.
    limit: AtomicU64,
}

/// Lets clients continue when it is dropped.
struct Hold<'a>(&'a Tally);

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        self.0.limit.store(u64::MAX, Ordering::Relaxed);
    }
}

impl Tally {
    fn new(keys: u64) -> Self {
        let claims = (0..keys).map(|_| AtomicU32::new(0)).collect();
        Self { claims, uncertain: AtomicU64::new(0), progress: AtomicU64::new(0), limit: AtomicU64::new(u64::MAX) }
    }

    fn keys(&self) -> u64 {
        self.claims.len() as u64
    }

    /// Returns all keys in batches. Each client starts at another key, so that clients often insert the same keys at the same time.
    fn batches(&self, client: u64, size: usize) -> Vec<Vec<u64>> {
        let keys: Vec<u64> = (0..self.keys()).map(|i| (i + client * size as u64 / 2) % self.keys()).collect();
        keys.chunks(size).map(<[u64]>::to_vec).collect()
    }

    fn count(&self, keys: &[u64], new: &[bool]) {
        for (&key, _) in keys.iter().zip(new).filter(|(_, new)| **new) {
            self.claims[key as usize].fetch_add(1, Ordering::Relaxed);
        }
        self.progress.fetch_add(keys.len() as u64, Ordering::Relaxed);
    }

    /// Inserts all keys by one client.
    fn insert_all(&self, filter: &mut RedisBloomFilter, client: u64, size: usize) {
        for keys in self.batches(client, size) {
            servers::wait_until("clients may go on", || !self.is_held());
            self.insert(filter, &keys);
        }
        self.uncertain.fetch_add(filter.uncertain() + filter.unconfirmed(), Ordering::Relaxed);
    }

    fn insert(&self, filter: &mut RedisBloomFilter, keys: &[u64]) {
        let mut new = vec![false; keys.len()];
        filter.insert_batch(keys, &mut new).unwrap();
        self.count(keys, &new);
    }

    /// Inserts keys of all shards by one further client.
    fn insert_some(&self, filter: &mut RedisBloomFilter) {
        self.insert(filter, &(0..100).collect::<Vec<_>>());
    }

    /// Inserts all keys by several clients at once, and calls `meanwhile` during that.
    fn insert_concurrently(&self, filter: &RedisBloomFilter, clients: u64, size: usize, meanwhile: impl FnOnce()) {
        let filters = (0..clients).map(|_| filter.new_client()).collect();
        self.insert_with(filters, size, meanwhile);
    }

    /// Inserts all keys by these clients at once, and calls `meanwhile` during that.
    fn insert_with(&self, filters: Vec<RedisBloomFilter>, size: usize, meanwhile: impl FnOnce()) {
        let hold = self.hold_clients(filters.len() as u64);
        thread::scope(|scope| {
            for (client, mut filter) in (0..).zip(filters) {
                scope.spawn(move || self.insert_all(&mut filter, client, size));
            }
            let _hold = hold;
            meanwhile();
        });
    }

    /// Makes clients wait after nine tenths of all inserts, so that they are still at work while `meanwhile` runs.
    fn hold_clients(&self, clients: u64) -> Hold<'_> {
        self.limit.store(self.keys() * clients * 9 / 10, Ordering::Relaxed);
        Hold(self)
    }

    fn is_held(&self) -> bool {
        self.progress.load(Ordering::Relaxed) >= self.limit.load(Ordering::Relaxed)
    }

    /// Waits until this percentage of all inserts is answered.
    fn await_progress(&self, clients: u64, percent: u64) {
        let due = self.keys() * clients * percent / 100;
        servers::wait_until("inserts are answered", || self.progress.load(Ordering::Relaxed) >= due);
    }

    fn uncertain(&self) -> u64 {
        self.uncertain.load(Ordering::Relaxed)
    }

    #[track_caller]
    fn assert_once_each(&self) {
        for (key, claims) in self.claims.iter().enumerate() {
            assert_eq!(claims.load(Ordering::Relaxed), 1, "claims of {key}");
        }
        assert_eq!(self.uncertain(), 0);
    }

    /// Asserts that no key was lost, and that no more were claimed twice than the clients reported as uncertain.
    #[track_caller]
    fn assert_none_lost(&self) {
        let claims: Vec<u32> = self.claims.iter().map(|claims| claims.load(Ordering::Relaxed)).collect();
        let lost = claims.iter().filter(|&&claims| claims == 0).count();
        assert_eq!(lost, 0, "lost, of {}", claims.len());
        let surplus = claims.iter().map(|&claims| u64::from(claims)).sum::<u64>() - self.keys();
        assert!(surplus <= self.uncertain(), "{surplus} more claims than keys, {} uncertain", self.uncertain());
    }
}

#[track_caller]
fn create(server: &RedisServer, name: &str, size: &Size) -> RedisBloomFilter {
    RedisBloomFilter::create(server, name, size).unwrap()
}

/// Returns the error of a call that must fail. Its message must contain these parts.
#[track_caller]
fn expect_error<T>(result: Result<T, RedisFilterError>, parts: &[&str]) -> RedisFilterError {
    let error = result.err().expect("it must fail");
    let message = error.to_string();
    assert!(parts.iter().all(|parts| message.contains(parts)), "{message}");
    error
}
