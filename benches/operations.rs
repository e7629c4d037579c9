//! Every operation by size, share of hits and kernel, beside the peers and the raw limit of the memory.
//!
//! ```text
//! cargo bench --bench operations -- --quick                         256 KiB, 16 MiB and 256 MiB (two minutes, 4 GiB)
//! BLOOMLINE_SIZES="1G 4G" cargo bench --bench operations            other sizes
//! BLOOMLINE_SIZES=all cargo bench --bench operations                all sizes (about ten minutes, 17 GiB)
//! BLOOMLINE_SIZES=16M cargo bench --bench operations -- contains    the operations of that name
//! ```
//!
//! The line "true" after a time is the share of keys that the operation answered with `true` in its last round: found,
//! or new. For queries of misses it is the measured false-positive rate.
//!
//! The operations are timed one after another. For ratios on a machine that others use too, see duel.rs.

mod common;

use bloomline::{AtomicBloomFilter, Key};
use common::by_criterion::{chosen_sizes, criterion, measure};
use common::filters::{fastbloom, fastbloom_atomic, held, holding};
use common::paired::Side;
use common::rivals::{Rivals, atomic_inserts, each};
use common::*;
use criterion::Criterion;

fn main() {
    let mut criterion = criterion();
    for (name, bytes) in chosen_sizes() {
        let rivals = Rivals::new(bytes);
        for (percent, kind) in HITS {
            let hashes = probe_keys(ROUND_KEYS, held(bytes), percent);
            measure(&mut criterion, &format!("{name}, query, {kind}"), &mut rivals.queries(&hashes));
        }
        measure(&mut criterion, &format!("{name}, insert, fresh"), &mut rivals.inserts(0));
        hashed_queries(&mut criterion, name, bytes);
        measure(&mut criterion, &format!("{name}, atomic insert, fresh"), &mut atomic_inserts(bytes));
        atomic_on_load(&mut criterion, name, bytes);
    }
    criterion.final_summary();
}

/// Batches that hash their keys: integers, and strings like URLs.
fn hashed_queries(criterion: &mut Criterion, name: &str, bytes: usize) {
    let urls = |keys: &[u64]| -> Vec<String> {
        keys.iter().map(|key| format!("https://www.example.org/articles/{key}.html?page={}", key % 10)).collect()
    };
    let present = hashes(PRESENT, held(bytes) as usize);
    let holding_integers = holding(bytes, &present);
    let holding_urls = holding(bytes, &urls(&present));
    for (percent, kind) in HITS {
        let integers = probe_keys(ROUND_KEYS, held(bytes), percent);
        let urls = urls(&integers);
        let mut sides = vec![
            batch("contains_batch of u64", &holding_integers, &integers),
            batch("contains_batch of URLs", &holding_urls, &urls),
        ];
        measure(criterion, &format!("{name}, query with hashing, {kind}"), &mut sides);
    }
}

fn batch<'a, K: Key>(name: &str, filter: &'a bloomline::BloomFilter, keys: &'a [K]) -> Side<'a> {
    let mut found = vec![false; keys.len()];
    Side::passing(name, keys, move |keys| filter.contains_batch(keys, &mut found))
}

/// What leaves a shared filter at its planned load as it is: queries, and inserts of keys that it holds.
fn atomic_on_load(criterion: &mut Criterion, name: &str, bytes: usize) {
    let filter = AtomicBloomFilter::from(holding::<u64>(bytes, &[]));
    let fastbloom = fastbloom_atomic(fastbloom(bytes));
    for (percent, kind) in HITS {
        let hashes = probe_keys(ROUND_KEYS, held(bytes), percent);
        let mut found = vec![false; ROUND_KEYS];
        let mut sides = vec![
            Side::passing("atomic contains_hashes", &hashes, |hashes| filter.contains_hashes(hashes, &mut found)),
            Side::passing("atomic contains_hash", &hashes, |hashes| each(hashes, |hash| filter.contains_hash(hash))),
            Side::passing("fastbloom atomic contains_hash", &hashes, |hashes| {
                each(hashes, |hash| fastbloom.contains_hash(hash))
            }),
        ];
        measure(criterion, &format!("{name}, atomic query, {kind}"), &mut sides);
    }
    let hashes = probe_keys(ROUND_KEYS, held(bytes), 100);
    let mut new = vec![false; ROUND_KEYS];
    let mut sides = vec![
        Side::passing("atomic insert_hashes", &hashes, |hashes| filter.insert_hashes(hashes, &mut new)),
        Side::passing("atomic insert_hash", &hashes, |hashes| each(hashes, |hash| filter.insert_hash(hash))),
        Side::passing("fastbloom atomic insert_hash", &hashes, |hashes| {
            each(hashes, |hash| !fastbloom.insert_hash(hash))
        }),
    ];
    measure(criterion, &format!("{name}, atomic insert, repeated"), &mut sides);
}
