//! Several threads on one filter of 1 GiB: bulk loads, concurrent inserts of fresh and of skewed keys, queries, and a
//! crawler's queue; beside fastbloom's shared filter and exact sets. Sides take turns, as in duel.rs.
//!
//! ```text
//! cargo bench -p bloomline-benches --bench scaling              about 18 minutes, 6 GiB of memory
//! cargo bench -p bloomline-benches --bench scaling -- skewed    some of bulk, fresh, skewed, queries, queue
//! ```
//!
//! Times are wall-clock times a key. A round inserts its keys into an empty filter, so fresh keys set all of
//! their bits; emptying is not timed.

use bloomline::{AtomicBloomFilter, Frontier, Hashes, Kernel};
use bloomline_benches::filters::{empty, filled};
use bloomline_benches::hashes::{PRESENT, hash, probe_keys, range};
use bloomline_benches::rivals::each;
use bloomline_benches::turns::{Side, duel};
use bloomline_benches::{PROBES, planned_keys, smoke};
use dashmap::DashSet;
use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::cell::RefCell;
use std::collections::HashSet;
use std::sync::Mutex;

/// Keys that a thread takes at a time.
const CHUNK: usize = 1 << 14;

fn main() {
    let (bytes, keys) = if smoke() { (1 << 20, 1 << 16) } else { (1 << 30, 40_000_000) };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    // The most threads first: ratios are to them.
    let (threads, skipped): (Vec<usize>, Vec<usize>) = [8, 4, 2, 1].into_iter().partition(|&threads| threads <= cores);
    if !skipped.is_empty() {
        println!("left out, with {cores} cores: {skipped:?} threads");
    }
    let pools: Vec<_> =
        threads.iter().map(|&threads| ThreadPoolBuilder::new().num_threads(threads).build().unwrap()).collect();
    let fresh = range(PRESENT, 0..keys as u64);
    let skewed = zipf_keys(keys);
    let chosen: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let is_chosen = |group: &str| chosen.is_empty() || chosen.iter().any(|chosen| chosen == group);
    if is_chosen("bulk") {
        bulk_load(bytes, &pools, &fresh);
    }
    if is_chosen("fresh") {
        concurrent_inserts(bytes, &pools, None, &fresh, "fresh keys");
    }
    if is_chosen("skewed") {
        concurrent_inserts(bytes, &pools, Some(&fresh), &skewed, "skewed keys (Zipf 1.1)");
    }
    if is_chosen("queries") {
        queries(bytes, &pools, keys);
    }
    if is_chosen("queue") {
        for (kind, keys) in [("fresh", &fresh), ("skewed", &skewed)] {
            frontier(&pools, &keys[..keys.len() / 4], kind);
        }
    }
}

/// The stream that ranks are drawn from.
const RANKS: u64 = 5;

/// Keys of [`PRESENT`], drawn so that the key of rank r has the probability r^-1.1 / Σ i^-1.1 (Zipf).
///
/// Rejection-inversion (Hörmann and Derflinger, 1996): x is drawn under the curve x^-1.1 by inverting its integral,
/// and its nearest rank is taken unless x lies outside the bar of that rank.
fn zipf_keys(count: usize) -> Vec<u64> {
    const EXPONENT: f64 = 1.1;
    let integral = |x: f64| (x.powf(1.0 - EXPONENT) - 1.0) / (1.0 - EXPONENT);
    let inverse = |y: f64| (1.0 + y * (1.0 - EXPONENT)).powf(1.0 / (1.0 - EXPONENT));
    // The bar of rank 1 starts where the curve has the same area as the bar.
    let (low, high) = (integral(1.5) - 1.0, integral(count as f64 + 0.5));
    let mut uniform = (0..).map(|i| (hash(RANKS, i) >> 11) as f64 / (1u64 << 53) as f64);
    let ranks = std::iter::from_fn(|| {
        let y = low + uniform.next()? * (high - low);
        let rank = inverse(y).round().clamp(1.0, count as f64);
        Some((y >= integral(rank + 0.5) - rank.powf(-EXPONENT)).then_some(rank as u64))
    });
    ranks.flatten().take(count).map(|rank| hash(PRESENT, rank)).collect()
}

fn side_name(operation: &str, pool: &ThreadPool) -> String {
    let threads = pool.current_num_threads();
    format!("{operation}, {threads} thread{}", if threads == 1 { "" } else { "s" })
}

/// Deals the keys out to the threads of the pool. Returns the sum of what `take` returns.
fn deal(pool: &ThreadPool, keys: &[u64], take: impl Fn(&[u64]) -> usize + Sync + Send) -> usize {
    pool.install(|| keys.par_chunks(CHUNK).map(take).sum())
}

/// Inserts key by key.
fn singles<'a>(
    name: &str,
    pool: &'a ThreadPool,
    keys: &'a [u64],
    clear: impl FnMut() + 'a,
    insert: impl Fn(u64) -> bool + Sync + Send + 'a,
) -> Side<'a> {
    Side::prepared(side_name(name, pool), keys, clear, move |keys| deal(pool, keys, |chunk| each(chunk, &insert)))
}

/// Inserts in batches, and key by key.
fn atomic<'a>(filter: &'a RefCell<AtomicBloomFilter>, pool: &'a ThreadPool, keys: &'a [u64]) -> [Side<'a>; 2] {
    let clear = || filter.borrow_mut().clear();
    [
        Side::prepared(side_name("atomic insert_hashes", pool), keys, clear, |keys| {
            let filter = &*filter.borrow();
            deal(pool, keys, |chunk| filter.insert_hashes(chunk, &mut [false; CHUNK][..chunk.len()]))
        }),
        Side::prepared(side_name("atomic insert_hash", pool), keys, clear, |keys| {
            let filter = &*filter.borrow();
            deal(pool, keys, |chunk| each(chunk, |hash| filter.insert_hash(hash)))
        }),
    ]
}

fn bulk_load(bytes: usize, pools: &[ThreadPool], keys: &[u64]) {
    let filter = RefCell::new(empty(bytes, Kernel::detect()));
    let shared = RefCell::new(AtomicBloomFilter::from(empty(bytes, Kernel::detect())));
    let mut new = vec![false; keys.len()];
    let clear = || filter.borrow_mut().clear();
    let mut sides = Vec::new();
    for pool in pools {
        sides.push(Side::prepared(side_name("par_insert of hashes", pool), keys, clear, |keys| {
            let filter = &mut *filter.borrow_mut();
            pool.install(|| filter.par_insert(&Hashes::new(keys)));
            0 // it does not report which keys were new
        }));
    }
    sides.push(Side::prepared("insert_hashes", keys, clear, |keys| filter.borrow_mut().insert_hashes(keys, &mut new)));
    sides.extend(atomic(&shared, &pools[0], keys));
    duel("bulk load, fresh keys", sides);
}

/// With `fresh` keys, the first side inserts those for comparison.
fn concurrent_inserts(bytes: usize, pools: &[ThreadPool], fresh: Option<&[u64]>, keys: &[u64], kind: &str) {
    let filter = RefCell::new(AtomicBloomFilter::from(empty(bytes, Kernel::detect())));
    let fastbloom = fastbloom::AtomicBloomFilter::with_num_bits(bytes * 8).hashes(PROBES);
    // An exact set takes some hundred ns a key, so it gets a quarter of the keys.
    let quarter = &keys[..keys.len() / 4];
    let locked = Mutex::new(HashSet::with_capacity(quarter.len()));
    let sharded = DashSet::with_capacity(quarter.len());

    let mut sides = Vec::new();
    if let Some(fresh) = fresh {
        let [mut side, _] = atomic(&filter, &pools[0], fresh);
        side.name = side_name("atomic insert_hashes, fresh keys", &pools[0]);
        sides.push(side);
    }
    for pool in pools {
        sides.extend(atomic(&filter, pool, keys));
        sides.extend([
            singles(
                "fastbloom atomic insert_hash",
                pool,
                keys,
                || fastbloom.clear(),
                |hash| !fastbloom.insert_hash(hash),
            ),
            singles(
                "Mutex<HashSet<u64>>",
                pool,
                quarter,
                || locked.lock().unwrap().clear(),
                |hash| locked.lock().unwrap().insert(hash),
            ),
            singles("DashSet<u64>", pool, quarter, || sharded.clear(), |hash| sharded.insert(hash)),
        ]);
    }
    duel(&format!("concurrent inserts, {kind}"), sides);
}

fn queries(bytes: usize, pools: &[ThreadPool], keys: usize) {
    let filter = filled(bytes, Kernel::detect());
    let hashes = probe_keys(keys, planned_keys(bytes), 50);
    let found = RefCell::new(vec![false; keys]);
    let mut sides = Vec::new();
    for pool in pools {
        sides.push(Side::passing(side_name("par_contains of hashes", pool), &hashes, |hashes| {
            let found = &mut *found.borrow_mut();
            pool.install(|| filter.par_contains(&Hashes::new(hashes), found))
        }));
    }
    sides.push(Side::passing("contains_hashes", &hashes, |hashes| {
        filter.contains_hashes(hashes, &mut found.borrow_mut())
    }));
    duel("queries at the planned load, half hits", sides);
}

/// Every thread pushes its keys and takes out one for each that went in.
fn frontier(pools: &[ThreadPool], keys: &[u64], kind: &str) {
    let queue = RefCell::new(None);
    let mut sides = Vec::new();
    for pool in pools {
        let prepare = || _ = queue.replace(Some(Frontier::new(keys.len() as u64, 0.01).unwrap()));
        sides.push(Side::prepared(side_name("Frontier push and pop", pool), keys, prepare, |keys| {
            let queue = queue.borrow();
            let queue = queue.as_ref().unwrap();
            deal(pool, keys, |chunk| each(chunk, |key| queue.push(key) && queue.pop().is_some()))
        }));
    }
    duel(&format!("crawler's queue, {kind} keys"), sides);
}
