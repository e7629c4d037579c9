//! `Debug` prints neither a seed nor anything derived from it, so that a log of a filter does not help strangers to make keys
//! that collide.

use bloomline::{
    AtomicBloomFilter, AtomicScalableBloomFilter, BloomFilter, Builder, KeyHasher, RotatingBloomFilter,
    ScalableBloomFilter,
};
use std::fmt::Debug;

/// No other figure has these digits.
const SEED: u64 = 9_876_543_210_123_456_789;

fn size<F>(builder: Builder<F>) -> Builder<F> {
    builder.expected_keys(1000).false_positive_rate(0.01).seed(SEED).key_name("url")
}

/// Checks that the text has these names, and not the secret.
fn debug(value: impl Debug, names: &[&str]) {
    let seed = [SEED, SEED + 1];
    let secrets = seed.into_iter().chain(seed.into_iter().flat_map(wyhash::final3::make_secret));
    let words: Vec<String> = secrets.flat_map(|word| [format!("{word}"), format!("{word:x}")]).collect();
    for text in
        [format!("{value:?}"), format!("{value:#?}"), format!("{value:x?}"), format!("{value:X?}").to_lowercase()]
    {
        for word in &words {
            assert!(!text.contains(word), "{text}");
        }
        assert!(names.iter().all(|name| text.to_lowercase().contains(&name.to_lowercase())), "{text}");
    }
}

#[test]
fn no_seed_is_printed() {
    let filter: BloomFilter = size(BloomFilter::builder()).build().unwrap();
    assert_eq!(filter.seed(), SEED);
    debug(filter.hasher(), &["KeyHasher"]);
    debug(KeyHasher::new(SEED), &["KeyHasher"]);
    debug(size(BloomFilter::builder()), &["Builder", "0.01", "url"]);
    debug(size(BloomFilter::builder()).plan().unwrap(), &["Plan", "blocks"]);
    debug(&filter, &["BloomFilter", "block_count", "probes", "kernel"]);
    bloomline::dispatch!(&filter, |view| debug(view, &["View", "BloomFilter"]));
    debug(size(AtomicBloomFilter::builder()).build().unwrap(), &["AtomicBloomFilter"]);
    let mut scalable: ScalableBloomFilter = size(ScalableBloomFilter::builder()).build().unwrap();
    for i in 0..10_000u64 {
        scalable.insert(&i).unwrap();
    }
    debug(&scalable, &["ScalableBloomFilter", "stages"]);
    debug(AtomicScalableBloomFilter::from(scalable), &["AtomicScalableBloomFilter", "keys"]);
    debug(size(RotatingBloomFilter::builder()).build().unwrap(), &["RotatingBloomFilter", "window"]);
}

#[test]
fn no_error_prints_a_seed() {
    let mut filter: BloomFilter = size(BloomFilter::builder()).build().unwrap();
    let other: BloomFilter = size(BloomFilter::builder()).seed(SEED + 1).build().unwrap();
    let error = filter.union(&other).unwrap_err();
    debug(&error, &["Seed"]);
    debug(format_args!("{error}"), &["seed"]);
}

#[cfg(all(feature = "mmap", target_endian = "little"))]
#[test]
fn no_mapped_filter_prints_its_seed() {
    let filter: BloomFilter = size(BloomFilter::builder()).build().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("filter.bloom");
    filter.save(&path).unwrap();
    #[allow(unsafe_code)]
    // SAFETY: nobody else knows the file.
    let mapped = unsafe { BloomFilter::map(&path) }.unwrap();
    debug(&mapped, &["BorrowedBloomFilter", "block_count"]);
}

#[cfg(feature = "frontier")]
#[test]
fn no_frontier_prints_its_seed() {
    let filter = size(AtomicBloomFilter::builder()).build().unwrap();
    debug(bloomline::Frontier::<u64>::with_filter(filter, 1000), &["Frontier", "AtomicBloomFilter"]);
}

#[cfg(feature = "variants")]
#[test]
fn no_variant_prints_its_seed() {
    debug(
        bloomline::variants::ClassicBloomFilter::builder().memory(64).probes(7).seed(SEED).build().unwrap(),
        &["ClassicBloomFilter"],
    );
}
