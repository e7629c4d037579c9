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

/// A line of /proc/self/status, in bytes.
fn status(name: &str) -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.trim_matches([':', '\t', ' ', 'k', 'B']).parse::<usize>().unwrap() * 1024
}

/// The resident memory without the program's own pages, which become resident as its code first runs.
fn resident() -> usize {
    status("RssAnon")
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
        let atomic = AtomicBloomFilter::from(filter.clone());
        atomic.union(&AtomicBloomFilter::from(copy.clone())).unwrap();
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
    use rayon::prelude::*;

    const THREADS: usize = 2;

    fn build(blocks: usize) -> BloomFilter {
        BloomFilter::builder().memory(blocks * 64).probes(8).build().unwrap()
    }

    /// Checks by how many MiB the peak of a load exceeds the memory that was resident before.
    fn check_peak(test: &str, documented: f64, load: impl FnOnce(&mut BloomFilter, &[u64]) + Send) {
        alone(&format!("memory::bulk::{test}"), || {
            let mut filter = build(1 << 16);
            let hashes: Vec<u64> = (0..5u64 << 20).map(|i| i.wrapping_mul(0x9E37_79B9_7F4A_7C15)).collect();
            // Touches every page, so that the load's own writes add none.
            filter.insert_hashes(&hashes[..1 << 20], &mut vec![false; 1 << 20]);
            let pool = rayon::ThreadPoolBuilder::new().num_threads(THREADS).build().unwrap();
            pool.install(|| {
                let before = status("VmRSS");
                load(&mut filter, &hashes);
                let rose = (status("VmHWM") as f64 - before as f64) / f64::from(1 << 20);
                // Threads, stacks and the allocator take some.
                assert!((rose - documented).abs() < 2.0, "{rose} MiB, not {documented}");
            });
        });
    }

    #[test]
    fn the_peak_of_par_insert_of_hashes_is_as_documented() {
        check_peak("the_peak_of_par_insert_of_hashes_is_as_documented", 0.08 * THREADS as f64, |filter, hashes| {
            filter.par_insert(&Hashes::new(hashes));
        });
    }

    #[test]
    fn the_peak_of_par_insert_is_as_documented() {
        check_peak("the_peak_of_par_insert_is_as_documented", 4.0 + 0.08 * THREADS as f64, |filter, hashes| {
            filter.par_insert(hashes);
        });
    }

    #[test]
    fn the_peak_of_par_extend_is_as_documented() {
        check_peak("the_peak_of_par_extend_is_as_documented", 1.08 * THREADS as f64, |filter, hashes| {
            filter.par_extend(hashes.par_iter());
        });
    }

    #[test]
    fn the_peak_of_populate_is_as_documented() {
        // A newly built filter has no memory before.
        check_peak("the_peak_of_populate_is_as_documented", 64.0, |_, _| build(1 << 20).populate());
    }
}
