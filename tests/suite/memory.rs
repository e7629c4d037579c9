//! The memory that filters and loads take. Linux reports it per process, so each test has one.
#![cfg(target_os = "linux")]

use bloomline::{AtomicBloomFilter, AtomicScalableBloomFilter, BloomFilter, RotatingBloomFilter};
use std::process::Command;

/// Runs a part of a test in a process of its own.
fn alone(test: &str, part: impl FnOnce()) {
    const ALONE: &str = "BLOOMLINE_TEST_ALONE";
    if std::env::var_os(ALONE).is_some() {
        return part();
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    let output = command.args([test, "--exact", "--nocapture"]).env(ALONE, "1").output().unwrap();
    let output_text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    assert!(output.status.success() && output_text.contains(" 1 passed"), "{output_text}");
}

/// Returns the resident memory without the program's own pages, which become resident as its code first runs. The kernel counts
/// the pages for this file, whereas the counters in /proc/self/status are approximate.
fn resident() -> usize {
    let pages = std::fs::read_to_string("/proc/self/smaps_rollup").unwrap();
    let kibibytes = |line: &str| line.trim_matches(|c: char| !c.is_ascii_digit()).parse::<usize>().unwrap();
    let lines = pages.lines().filter(|line| ["Anonymous:", "Swap:"].iter().any(|name| line.starts_with(name)));
    lines.map(kibibytes).sum::<usize>() * 1024
}

/// A thousand keys in 256 MiB of small pages.
fn sparse() -> BloomFilter {
    let builder = BloomFilter::builder().memory(256 << 20).probes(8).huge_pages(false);
    let mut filter = builder.build().unwrap();
    filter.extend(0..1000u64);
    filter
}

/// Four gigabytes that were never written to are neither cleared nor resident.
#[cfg(target_pointer_width = "64")]
#[test]
fn a_large_filter_takes_no_memory_before_it_is_used() {
    alone("memory::a_large_filter_takes_no_memory_before_it_is_used", || {
        let before = resident();
        let mut filter: BloomFilter = BloomFilter::builder().memory(4 << 30).probes(8).build().unwrap();
        assert!(filter.insert("key") && filter.contains("key"));
        let atomic = AtomicBloomFilter::from(filter);
        assert!(atomic.contains("key"));
        // The page of the key may be a huge one.
        assert!(resident() < before + (8 << 20));
    });
}

#[test]
fn only_small_pages_that_were_written_are_resident() {
    alone("memory::only_small_pages_that_were_written_are_resident", || {
        let before = resident();
        let filter = sparse();
        let taken = resident() - before;
        // Few of 1000 keys in 65,536 pages share a page.
        assert!((3 << 20..6 << 20).contains(&taken), "{taken}");
        drop(filter);
        assert!(resident() < before + (1 << 20), "it is given back");
    });
}

// Four filters at a time need 1 GB of addresses.
#[cfg(target_pointer_width = "64")]
#[test]
fn copies_and_unions_of_sparse_filters_are_sparse() {
    alone("memory::copies_and_unions_of_sparse_filters_are_sparse", || {
        let mut filter = sparse();
        let before = resident();
        let mut copy = filter.clone();
        copy.union(&filter).unwrap();
        filter.intersect(&copy).unwrap();
        let (mut atomic, other) = (AtomicBloomFilter::from(filter.clone()), AtomicBloomFilter::from(copy.clone()));
        atomic.union(&other).unwrap();
        atomic.intersect(&other).unwrap();
        let taken = resident() - before;
        // Three copies of some 4 MB each, and none of 256 MiB.
        assert!(taken < 24 << 20, "{taken}");
        assert!(copy == filter);
    });
}

/// A crawler may have such a filter for each of many hosts: it takes at most two kilobytes beside its bits.
#[test]
fn small_filters_for_many_writers_take_little_memory() {
    alone("memory::small_filters_for_many_writers_take_little_memory", || {
        const FILTERS: usize = 5000;
        let per_filter = |taken: usize| taken / FILTERS;
        let before = resident();
        let grow: Vec<_> = (0..FILTERS).map(|_| AtomicScalableBloomFilter::new(10, 0.01).unwrap()).collect();
        let taken = per_filter(resident() - before);
        assert!(taken < 1500, "{taken} bytes each");
        // Four stages.
        grow.iter().for_each(|filter| (0..100u32).for_each(|key| _ = filter.insert(&key).unwrap()));
        let bits: usize = grow.iter().map(AtomicScalableBloomFilter::memory_bytes).sum();
        let taken = per_filter(resident() - before - bits);
        assert!(taken < 3500, "{taken} bytes each beside {bits} in all");
        let before = resident();
        let rotate: Vec<_> = (0..FILTERS).map(|_| RotatingBloomFilter::new(10, 0.01).unwrap()).collect();
        let taken = per_filter(resident() - before);
        assert!(taken < 2000, "{taken} bytes each");
        drop((grow, rotate));
    });
}

/// Pages that are zero in a file take no memory, whether the file's length is known beforehand or not.
#[test]
fn loads_of_sparse_filters_are_sparse() {
    alone("memory::loads_of_sparse_filters_are_sparse", || {
        let builder = BloomFilter::builder().memory(64 << 20).probes(8);
        let mut filter: BloomFilter = builder.build().unwrap();
        filter.extend(["a", "b", "c"]);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sparse");
        filter.save(&path).unwrap();
        let before = resident();
        let loaded = BloomFilter::load(&path).unwrap();
        let read = BloomFilter::read_from(std::fs::File::open(&path).unwrap()).unwrap();
        let taken = resident() - before;
        // Six pages, which may be huge ones, and none of 64 MiB.
        assert!(taken < 24 << 20, "{taken}");
        assert!(loaded == filter && read == filter);
    });
}

/// An allocator that reuses freed memory has to clear it, which takes milliseconds. Memory that is fresh from the system is zero.
#[test]
fn building_a_filter_writes_to_no_page_after_others_were_freed() {
    alone("memory::building_a_filter_writes_to_no_page_after_others_were_freed", || {
        for bytes in [2 << 20, 8 << 20, 30 << 20] {
            let build = || BloomFilter::builder().memory(bytes).probes(8).build().unwrap();
            for _ in 0..4 {
                let mut filter = build();
                filter.populate();
            }
            let before = resident();
            let filter = build();
            assert!(resident() < before + (1 << 20), "{bytes}");
            drop(filter);
        }
    });
}

/// The memory of the bulk loads is as documented.
#[cfg(feature = "rayon")]
mod bulk {
    use super::*;
    use bloomline::Hashes;
    use cap::Cap;
    use rayon::prelude::*;
    use std::alloc::System;
    use std::ops::RangeInclusive;

    const THREADS: usize = 2;

    fn build(blocks: usize) -> BloomFilter {
        BloomFilter::builder().memory(blocks * 64).probes(8).build().unwrap()
    }

    /// Counts what is allocated, which no other process changes.
    #[global_allocator]
    static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

    /// Checks by how much the peak of a load exceeds the memory that was allocated before, in bytes.
    fn check_peak(test: &str, documented: RangeInclusive<usize>, load: impl FnOnce(&mut BloomFilter, &[u64]) + Send) {
        alone(&format!("memory::bulk::{test}"), || {
            let mut filter = build(1 << 16);
            let hashes: Vec<u64> = (0..5u64 << 20).map(|i| i.wrapping_mul(0x9E37_79B9_7F4A_7C15)).collect();
            let pool = rayon::ThreadPoolBuilder::new().num_threads(THREADS).build().unwrap();
            // Starts all threads.
            pool.broadcast(|_| ());
            pool.install(|| {
                // Nothing as large was freed before.
                let before = ALLOCATOR.allocated();
                load(&mut filter, &hashes);
                let rose = ALLOCATOR.max_allocated() - before;
                assert!(documented.contains(&rose), "{rose} bytes, not {documented:?}");
            });
        });
    }

    /// Each thread has 64 KiB of hashes of its range, and all have these bytes for their queues.
    const PICKED: usize = (THREADS * 64) << 10;
    const QUEUES: usize = 16 << 10;

    #[test]
    fn the_peak_of_par_insert_of_hashes_is_as_documented() {
        let documented = 64 << 10..=PICKED + QUEUES;
        check_peak("the_peak_of_par_insert_of_hashes_is_as_documented", documented, |filter, hashes| {
            filter.par_insert(&Hashes::new(hashes));
        });
    }

    #[test]
    fn the_peak_of_par_insert_is_as_documented() {
        let hashes = 4 << 20;
        check_peak("the_peak_of_par_insert_is_as_documented", hashes..=hashes + PICKED + QUEUES, |filter, hashes| {
            filter.par_insert(hashes);
        });
    }

    #[test]
    fn the_peak_of_par_extend_is_as_documented() {
        let documented = 1 << 20..=(THREADS << 20) + PICKED + QUEUES;
        check_peak("the_peak_of_par_extend_is_as_documented", documented, |filter, hashes| {
            filter.par_extend(hashes.par_iter());
        });
    }

    #[test]
    fn populate_makes_all_of_a_filter_resident() {
        alone("memory::bulk::populate_makes_all_of_a_filter_resident", || {
            let mut filter = build(1 << 20);
            let before = resident();
            filter.populate();
            let rose = resident() - before;
            // Threads and their stacks take some.
            assert!((64 << 20..66 << 20).contains(&rose), "{rose}");
        });
    }
}
