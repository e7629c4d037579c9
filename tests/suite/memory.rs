//! The memory that sparse filters take: that of the pages they wrote to. Linux tells it of a process, so each test has one.
#![cfg(target_os = "linux")]

use bloomline::{AtomicBloomFilter, BloomFilter};
use std::process::Command;
use std::time::Instant;

/// Runs a part of a test in a process of its own.
fn alone(test: &str, part: impl FnOnce()) {
    const ALONE: &str = "BLOOMLINE_TEST_ALONE";
    if std::env::var_os(ALONE).is_some() {
        return part();
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    let output = command.args([test, "--exact", "--nocapture"]).env(ALONE, "1").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&[output.stdout, output.stderr].concat()));
}

/// Bytes that the process has in memory.
fn resident() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    pages.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

fn sparse(huge: bool) -> BloomFilter {
    let builder = BloomFilter::builder().memory(1 << 30).probes(8).huge_pages(huge);
    let mut filter = builder.build().unwrap();
    filter.extend(0..1000u64);
    filter
}

/// Four gigabytes that nobody wrote to are neither cleared nor resident.
#[cfg(target_pointer_width = "64")]
#[test]
fn a_large_filter_takes_no_memory_before_it_is_used() {
    alone("memory::a_large_filter_takes_no_memory_before_it_is_used", || {
        let before = resident();
        let mut filter: BloomFilter = BloomFilter::builder().memory(4 << 30).probes(8).build().unwrap();
        assert!(filter.insert("key") && filter.contains("key"));
        let atomic = AtomicBloomFilter::from(filter);
        assert!(atomic.contains("key"));
        // A page of the key, which may be a huge one.
        assert!(resident() < before + (8 << 20));
    });
}

#[test]
fn small_pages_are_taken_one_by_one() {
    alone("memory::small_pages_are_taken_one_by_one", || {
        let before = resident();
        let filter = sparse(false);
        let taken = resident() - before;
        // Of 1000 keys in 262,144 pages few share one.
        assert!((3 << 20..6 << 20).contains(&taken), "{taken}");
        drop(filter);
        assert!(resident() < before + (1 << 20), "it is given back");
    });
}

// There are three at a time, which takes 3 GB of addresses.
#[cfg(target_pointer_width = "64")]
#[test]
fn copies_and_unions_of_sparse_filters_are_sparse() {
    alone("memory::copies_and_unions_of_sparse_filters_are_sparse", || {
        let mut filter = sparse(false);
        let before = resident();
        let mut copy = filter.clone();
        copy.union(&filter).unwrap();
        filter.intersect(&copy).unwrap();
        let atomic = AtomicBloomFilter::from(filter.clone());
        atomic.union(&AtomicBloomFilter::from(copy.clone())).unwrap();
        let taken = resident() - before;
        // Three copies of some 4 MB each, and none of a gigabyte.
        assert!(taken < 24 << 20, "{taken}");
        assert!(copy == filter);
    });
}

/// An allocator that has freed as much clears by hand what it gives, which takes milliseconds; the system does not.
#[test]
fn a_filter_is_built_as_fast_after_others_were_freed() {
    alone("memory::a_filter_is_built_as_fast_after_others_were_freed", || {
        for bytes in [2 << 20, 8 << 20, 30 << 20] {
            let build = || BloomFilter::builder().memory(bytes).probes(8).build().unwrap();
            for _ in 0..4 {
                let mut filter = build();
                filter.populate();
            }
            let before = resident();
            let started = Instant::now();
            let filter = build();
            println!("{bytes} bytes: built in {:?}", started.elapsed());
            assert!(resident() < before + (1 << 20), "it was written to as it was built");
            drop(filter);
        }
    });
}
