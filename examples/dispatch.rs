//! Loops of one's own that are compiled for the CPU: `dispatch!`. Run with `cargo run --release --example dispatch`.
//!
//! The checks read the symbols of this program: no loop calls the operation of a kernel as a function.

use bloomline::{AtomicBloomFilter, BloomFilter, BuildError, dispatch};
use std::time::Instant;

const KEYS: u64 = 1 << 22;

/// Words that are new. The calls of the view stand between other work.
#[inline(never)]
fn new_words<'a>(seen: &mut BloomFilter, text: &'a str) -> Vec<&'a str> {
    dispatch!(seen, |mut view| {
        let mut new = Vec::new();
        for word in text.split(' ') {
            if view.insert(word) {
                new.push(word);
            }
        }
        new
    })
}

#[inline(never)]
fn insert(seen: &mut BloomFilter, keys: std::ops::Range<u64>) -> u64 {
    dispatch!(seen, |mut view| {
        let mut new = 0;
        for key in keys {
            new += u64::from(view.insert(&key));
        }
        new
    })
}

#[inline(never)]
fn claim(seen: &AtomicBloomFilter, keys: std::ops::Range<u64>) -> usize {
    dispatch!(seen, |view| keys.filter(|key| view.insert(key)).count())
}

#[inline(never)]
fn count(seen: &BloomFilter, keys: std::ops::Range<u64>) -> usize {
    dispatch!(seen, |view| keys.filter(|key| view.contains(key)).count())
}

/// With a prefetch, beyond the caches.
#[inline(never)]
fn count_hashes(seen: &BloomFilter, hashes: &[u64]) -> u64 {
    dispatch!(seen, |view| {
        let mut found = 0;
        for (i, &hash) in hashes.iter().enumerate() {
            if let Some(&ahead) = hashes.get(i + 32) {
                view.prefetch_hash(ahead);
            }
            found += u64::from(view.contains_hash(hash));
        }
        found
    })
}

/// The same by single calls.
#[inline(never)]
fn count_hashes_one_by_one(seen: &BloomFilter, hashes: &[u64]) -> usize {
    hashes.iter().filter(|hash| seen.contains_hash(**hash)).count()
}

fn main() -> Result<(), BuildError> {
    let mut seen = BloomFilter::new(KEYS, 0.01)?;
    println!("new words: {:?}", new_words(&mut seen, "to be or not to be"));
    println!("new keys: {}", insert(&mut seen, 0..KEYS));
    println!("claimed: {}", claim(&AtomicBloomFilter::new(KEYS, 0.01)?, 0..KEYS));
    println!("found: {}", count(&seen, 0..KEYS));
    let hashes: Vec<u64> = (0..KEYS).map(|key| seen.hasher().bytes(&key.to_le_bytes())).collect();
    for round in 0..2 {
        let start = Instant::now();
        let found = count_hashes(&seen, &hashes);
        let loops = start.elapsed();
        let start = Instant::now();
        assert_eq!(count_hashes_one_by_one(&seen, &hashes) as u64, found);
        let calls = start.elapsed();
        let nanoseconds = |time: std::time::Duration| time.as_secs_f64() * 1e9 / KEYS as f64;
        let [loops, calls] = [loops, calls].map(nanoseconds);
        println!("round {round}: {loops:.1} ns a query in a loop with prefetches, {calls:.1} ns one by one");
    }
    Ok(())
}
