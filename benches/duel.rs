//! Paired timings of every operation against the peers and the raw limit of the memory: the sides take turns in one run, so
//! that a noisy machine is noisy for all, and the table quotes medians and ratios. docs/BENCHMARKS.md is made with it.
//!
//! ```text
//! cargo bench -p bloomline-benches --bench duel                 all sizes (about ten minutes, 17 GiB of memory)
//! cargo bench -p bloomline-benches --bench duel -- 256K 16M     some sizes (a minute)
//! cargo bench -p bloomline-benches --bench duel -- few          ten keys checked again and again (ten seconds)
//! ```
//!
//! All filters have the same memory, 12 bits a key, k = 8, and the load they are planned for. The last column is the share of
//! keys that an operation answered with `true` in its last round: found, or new. For queries of misses it is the measured
//! false-positive rate.

use bloomline::{AtomicBloomFilter, BloomFilter, Kernel, Key};
use bloomline_benches::filters::{fastbloom, fastbloom_atomic, filled, holding};
use bloomline_benches::hashes::{ABSENT, PRESENT, hash, probe_keys, range};
use bloomline_benches::rivals::{Rivals, atomic_inserts, each};
use bloomline_benches::turns::{Side, duel, timed};
use bloomline_benches::{HITS, ROUND_KEYS, held_keys, sizes, smoke};
use std::hint::black_box;

fn main() {
    let mut named: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let few = named.iter().position(|name| name == "few").map(|at| named.remove(at)).is_some();
    if few || smoke() {
        few_keys();
    }
    if few && named.is_empty() {
        return;
    }
    for (name, bytes) in sizes(&named.join(" ")) {
        let rivals = Rivals::new(bytes);
        for (percent, kind) in HITS {
            let hashes = probe_keys(ROUND_KEYS, held_keys(bytes), percent);
            duel(&format!("{name}, query, {kind}"), rivals.queries(&hashes));
        }
        duel(&format!("{name}, insert, fresh keys"), rivals.inserts(0));
        duel(&format!("{name}, insert, half of the keys seen"), Rivals::new(bytes).inserts(50));
        duel(&format!("{name}, atomic insert, fresh keys, one thread"), atomic_inserts(bytes));
        hashed_queries(name, bytes);
        atomic_on_load(name, bytes);
    }
}

/// Batches that hash their keys: integers, and strings like URLs.
fn hashed_queries(name: &str, bytes: usize) {
    let urls = |keys: &[u64]| -> Vec<String> {
        keys.iter().map(|key| format!("https://www.example.org/articles/{key}.html?page={}", key % 10)).collect()
    };
    let present = range(PRESENT, 0..held_keys(bytes));
    let holding_integers = holding(bytes, &present);
    let holding_urls = holding(bytes, &urls(&present));
    for (percent, kind) in HITS {
        let integers = probe_keys(ROUND_KEYS, held_keys(bytes), percent);
        let urls = urls(&integers);
        let sides = vec![
            batch("contains_batch of u64", &holding_integers, &integers),
            batch("contains_batch of URLs", &holding_urls, &urls),
        ];
        duel(&format!("{name}, query with hashing, {kind}"), sides);
    }
}

fn batch<'a, K: Key>(name: &str, filter: &'a BloomFilter, keys: &'a [K]) -> Side<'a> {
    let mut found = vec![false; keys.len()];
    Side::passing(name, keys, move |keys| filter.contains_batch(keys, &mut found))
}

/// Measures operations that leave a shared filter at its planned load unchanged: queries, and inserts of keys that it
/// holds.
fn atomic_on_load(name: &str, bytes: usize) {
    let filter = AtomicBloomFilter::from(filled(bytes, Kernel::detect()));
    let fastbloom = fastbloom_atomic(fastbloom(bytes));
    for (percent, kind) in HITS {
        let hashes = probe_keys(ROUND_KEYS, held_keys(bytes), percent);
        let mut found = vec![false; ROUND_KEYS];
        let sides = vec![
            Side::passing("atomic contains_hashes", &hashes, |hashes| filter.contains_hashes(hashes, &mut found)),
            Side::passing("atomic contains_hash", &hashes, |hashes| each(hashes, |hash| filter.contains_hash(hash))),
            Side::passing("atomic contains_hash, dispatch!", &hashes, |hashes| {
                bloomline::dispatch!(&filter, |view| each(hashes, |hash| view.contains_hash(hash)))
            }),
            Side::passing("fastbloom atomic contains_hash", &hashes, |hashes| {
                each(hashes, |hash| fastbloom.contains_hash(hash))
            }),
        ];
        duel(&format!("{name}, atomic query, {kind}, one thread"), sides);
    }
    let hashes = probe_keys(ROUND_KEYS, held_keys(bytes), 100);
    let mut new = vec![false; ROUND_KEYS];
    let sides = vec![
        Side::passing("atomic insert_hashes", &hashes, |hashes| filter.insert_hashes(hashes, &mut new)),
        Side::passing("atomic insert_hash", &hashes, |hashes| each(hashes, |hash| filter.insert_hash(hash))),
        Side::passing("fastbloom atomic insert_hash", &hashes, |hashes| {
            each(hashes, |hash| !fastbloom.insert_hash(hash))
        }),
    ];
    duel(&format!("{name}, atomic insert, repeated keys, one thread"), sides);
}

/// Checks ten keys again and again, as the public benchmark of fastbloom's author does
/// (<https://github.com/tomtomwombat/bench-bloom-filters>): filters of 64 KiB with 45,000 `u64` keys, which are hashed. Blocks
/// and branches are those of the check before, so that neither caches nor predictors are put to the test.
fn few_keys() {
    const BYTES: usize = 1 << 16;
    const KEYS: u64 = 45_000;
    let present: Vec<u64> = (0..KEYS).map(|i| hash(PRESENT, i)).collect();
    let absent: Vec<u64> = (0..10).map(|i| hash(ABSENT, i)).collect();
    let mut bloomline = BloomFilter::builder().memory(BYTES).expected_keys(KEYS).build().unwrap();
    bloomline.insert_batch(&present, &mut vec![false; present.len()]);
    let atomic = AtomicBloomFilter::from(bloomline.clone());
    let hasher = ahash::RandomState::new();
    let fastbloom = fastbloom::BloomFilter::with_num_bits(8 * BYTES).hasher(hasher.clone()).items(present.iter());
    let fastbloom_atomic = fastbloom::AtomicBloomFilter::with_num_bits(8 * BYTES).hasher(hasher).items(present.iter());
    let mut sbbf = sbbf_rs_safe::Filter::new(8, BYTES);
    let xxh3 = |key: &u64| xxhash_rust::xxh3::xxh3_64(&key.to_be_bytes());
    present.iter().for_each(|key| _ = sbbf.insert_hash(xxh3(key)));
    for (name, keys) in [("members", &present[..10]), ("non-members", &absent)] {
        let sides = vec![
            again("contains", keys, |key| bloomline.contains(key)),
            again("atomic contains", keys, |key| atomic.contains(key)),
            again_by("contains, dispatch!", keys, |times| {
                bloomline::dispatch!(&bloomline, |view| check(times, keys, |key| view.contains(key)))
            }),
            again_by("atomic contains, dispatch!", keys, |times| {
                bloomline::dispatch!(&atomic, |view| check(times, keys, |key| view.contains(key)))
            }),
            again("fastbloom contains", keys, |key| fastbloom.contains(key)),
            again("fastbloom atomic contains", keys, |key| fastbloom_atomic.contains(key)),
            again("sbbf-rs contains_hash", keys, |key| sbbf.contains_hash(xxh3(key))),
        ];
        duel(&format!("64 KiB, ten {name} again and again"), sides);
    }
}

/// Returns a side whose round checks the keys until it made as many checks as other rounds.
fn again<'a>(name: &str, keys: &'a [u64], contains: impl Fn(&u64) -> bool + 'a) -> Side<'a> {
    again_by(name, keys, move |times| check(times, keys, &contains))
}

/// As [`again`], with the loop in `check`, which gets the number of times.
fn again_by<'a>(name: &str, keys: &[u64], check: impl Fn(usize) -> usize + 'a) -> Side<'a> {
    let times = if smoke() { 1 } else { ROUND_KEYS / keys.len() };
    Side::new(name, times * keys.len(), move |_| timed(|| check(times)))
}

/// Checks the keys a number of times.
#[inline(always)]
fn check(times: usize, keys: &[u64], contains: impl Fn(&u64) -> bool) -> usize {
    (0..times).map(|_| keys.iter().filter(|key| black_box(contains(key))).count()).sum()
}
