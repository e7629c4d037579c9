//! Many threads on one filter or frontier: no key is claimed twice, and the bits are the same as with one thread.
//!
//! Which keys are false positives depends on the order of the inserts, so these tests can fail by chance; each says
//! how rarely.

use crate::workers::on_threads;
use bloomline::{AtomicBloomFilter, BloomFilter};
use std::ops::Range;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::thread;

const THREADS: [u32; 3] = [2, 4, 8];

/// Keys between two barriers: few, so that all threads insert the same keys at the same time.
const STEP: usize = 500;

/// The overlap of the threads' streams. Keys are 0, 1, 2, …
#[derive(Clone, Copy, Debug)]
enum Streams {
    /// All threads have all keys in the same order.
    Equal,
    /// Each thread has three quarters of the keys and starts elsewhere.
    Shifted,
}

impl Streams {
    const ALL: [Self; 2] = [Self::Equal, Self::Shifted];

    fn for_thread(self, thread: u32, threads: u32, keys: u32) -> Vec<u32> {
        let (start, length) = match self {
            Self::Equal => (0, keys),
            Self::Shifted => (thread * (keys / threads), keys / 4 * 3),
        };
        (start..start + length).map(|i| i % keys).collect()
    }
}

/// Runs `body` with each thread's stream, a step at a time on all threads. `body` must not panic, because the other threads
/// would wait for ever.
fn in_step(threads: u32, streams: Streams, keys: u32, body: impl Fn(&[u32]) + Sync) {
    let meeting = Barrier::new(threads as usize);
    on_threads(threads, |thread| {
        for keys in streams.for_thread(thread, threads, keys).chunks(STEP) {
            meeting.wait();
            body(keys);
        }
    });
}

/// Inserts from many threads. Returns how often each key was claimed.
fn race(filter: &AtomicBloomFilter, threads: u32, keys: u32, streams: Streams, in_batches: bool) -> Vec<u32> {
    let claims: Vec<AtomicU32> = (0..keys).map(|_| AtomicU32::new(0)).collect();
    let [lost, miscounted] = [const { AtomicUsize::new(0) }; 2];
    in_step(threads, streams, keys, |keys| {
        let mut new = vec![false; keys.len()];
        if in_batches {
            let claimed = filter.insert_batch(keys, &mut new);
            let counted = new.iter().filter(|&&new| new).count();
            miscounted.fetch_add(claimed.abs_diff(counted), Ordering::Relaxed);
        } else {
            keys.iter().zip(&mut new).for_each(|(key, new)| *new = filter.insert(key));
        }
        for (key, _) in keys.iter().zip(&new).filter(|(_, new)| **new) {
            claims[*key as usize].fetch_add(1, Ordering::Relaxed);
        }
        let found = filter.contains_batch(keys, &mut new);
        lost.fetch_add(keys.len() - found, Ordering::Relaxed);
    });
    assert_eq!(lost.into_inner(), 0, "keys that were inserted are not found");
    assert_eq!(miscounted.into_inner(), 0, "the count of a batch is not that of its flags");
    claims.into_iter().map(AtomicU32::into_inner).collect()
}

/// Inserts the same keys with one thread. Returns the filter, and how many keys were new.
fn sequential(like: &AtomicBloomFilter, keys: Range<u32>) -> (BloomFilter, u32) {
    let builder = BloomFilter::builder().memory(like.memory_bytes()).probes(like.probes()).seed(like.seed());
    let mut filter: BloomFilter = builder.build().unwrap();
    let new = keys.map(|key| u32::from(filter.insert(&key))).sum();
    (filter, new)
}

/// Calls `check` for every number of threads, kind of streams, and way to insert.
fn in_every_way(mut check: impl FnMut(u32, Streams, bool)) {
    for threads in THREADS {
        for streams in Streams::ALL {
            for in_batches in [false, true] {
                check(threads, streams, in_batches);
            }
        }
    }
}

#[test]
fn claims_are_the_distinct_keys_less_the_false_positives() {
    const KEYS: u32 = 100_000;
    // 4 probes, and 8.
    for fpr in [0.05, 0.01] {
        let build = || AtomicBloomFilter::new(u64::from(KEYS), fpr).unwrap();
        let (expected, new) = sequential(&build(), 0..KEYS);
        in_every_way(|threads, streams, in_batches| {
            let filter = build();
            let claims = race(&filter, threads, KEYS, streams, in_batches);
            assert!(claims.iter().all(|&claims| claims <= 1), "a key was claimed twice");
            let claimed: u32 = claims.iter().sum();
            // False positives are many rare events, so their number varies like a Poisson variable's, and the
            // difference of two such numbers by √2 of that. Six deviations: once in five hundred million runs.
            let tolerance = 6.0 * (2.0 * f64::from(KEYS - new)).sqrt();
            let difference = f64::from(claimed) - f64::from(new);
            assert!(difference.abs() < tolerance, "{claimed} {new}: {threads} threads, {streams:?}, {in_batches}");
            assert!(BloomFilter::from(filter) == expected);
        });
    }
}

#[test]
fn without_false_positives_every_key_is_claimed_once() {
    const KEYS: u32 = 20_000;
    // 20,000 keys at less than 1e-12: a false positive in one of fifty million runs.
    let build = || AtomicBloomFilter::new(u64::from(KEYS), 1e-12).unwrap();
    let (expected, _) = sequential(&build(), 0..KEYS);
    in_every_way(|threads, streams, in_batches| {
        let filter = build();
        let claims = race(&filter, threads, KEYS, streams, in_batches);
        assert!(claims.iter().all(|&claims| claims == 1), "{threads} threads, {streams:?}, {in_batches}");
        assert!(BloomFilter::from(filter) == expected);
    });
}

/// All keys share the same few words. Nothing here is random.
#[test]
fn in_crowded_blocks_no_key_is_claimed_twice_and_no_bit_is_lost() {
    for probes in [4, 8, 12, 16] {
        for blocks in 1..=3 {
            in_every_way(|threads, streams, in_batches| {
                for seed in 0..4 {
                    let builder = AtomicBloomFilter::builder().memory(blocks * 64).probes(probes).seed(seed);
                    let filter = builder.build().unwrap();
                    let claims = race(&filter, threads, 60, streams, in_batches);
                    assert!(claims.iter().all(|&claims| claims <= 1), "{claims:?}");
                    let (expected, _) = sequential(&filter, 0..60);
                    assert!(BloomFilter::from(filter) == expected);
                }
            });
        }
    }
}

/// While a union adds keys, its keys are not claimed, no key is claimed twice, and no bit is lost.
#[test]
fn a_union_during_inserts_loses_no_bit() {
    const KEYS: u32 = 10_000;
    let build = || AtomicBloomFilter::new(2 * u64::from(KEYS), 0.01).unwrap();
    // Keys of both filters, and keys of this one alone.
    let other = build();
    (KEYS / 2..2 * KEYS).for_each(|key| _ = other.insert(&key));
    let (expected, _) = sequential(&other, 0..2 * KEYS);
    // One thread too, because other threads would insert lost bits again.
    for threads in [1, 2, 8] {
        for _ in 0..20 {
            let filter = build();
            let claims = thread::scope(|scope| {
                let union = scope.spawn(|| {
                    while !filter.contains(&0) {
                        std::hint::spin_loop();
                    }
                    filter.union(&other).unwrap();
                });
                let claims = race(&filter, threads, KEYS, Streams::Equal, false);
                union.join().unwrap();
                claims
            });
            assert!(claims.iter().all(|&claims| claims <= 1), "a key was claimed twice");
            assert!(BloomFilter::from(filter) == expected);
        }
    }
}

#[test]
fn a_thread_that_observes_an_insert_finds_the_key() {
    const KEYS: u64 = 200_000;
    let filter = AtomicBloomFilter::new(KEYS, 0.001).unwrap();
    let inserted = AtomicU64::new(0);
    on_threads(4, |thread| {
        if thread == 0 {
            for key in 0..KEYS {
                filter.insert(&key);
                // Release and Acquire let the readers observe the insert.
                inserted.store(key + 1, Ordering::Release);
            }
            return;
        }
        let mut end = 0;
        while end < KEYS {
            end = inserted.load(Ordering::Acquire);
            // The latest keys are the likeliest to be missed.
            for key in end.saturating_sub(50)..end {
                assert!(filter.contains(&key), "a key that was inserted is not found");
            }
        }
    });
}

#[cfg(feature = "frontier")]
mod frontier {
    use super::*;
    use bloomline::{Frontier, FrontierParts, WhenFull};
    use std::collections::HashSet;
    use std::sync::Mutex;
    use std::time::{Duration, Instant};

    /// The seed is fixed, so that only the order varies.
    fn frontier(keys: u32, fpr: f64, expected: u64) -> Frontier<u32> {
        let builder = AtomicBloomFilter::builder().expected_keys(u64::from(keys)).false_positive_rate(fpr);
        Frontier::with_filter(builder.build().unwrap(), expected)
    }

    fn drain(frontier: &Frontier<u32>) -> Vec<u32> {
        std::iter::from_fn(|| frontier.pop()).collect()
    }

    /// A crawl that is killed and resumes from its last save visits again the pages visited since, and misses none.
    #[test]
    fn a_killed_crawl_resumes_from_its_last_save() {
        const PAGES: u32 = 200;
        let links = |page: u32| [2 * page + 1, 2 * page + 2, page / 2].into_iter().filter(|&link| link < PAGES);
        for every in [1, 7, 30] {
            for killed_after in [1, 8, 50, 150] {
                let mut crawl = frontier(PAGES, 1e-12, u64::from(PAGES));
                crawl.push(0);
                let (mut before, mut unsaved) = (HashSet::new(), HashSet::new());
                let mut saved = None;
                for visits in 0..killed_after {
                    if visits % every == 0 {
                        let parts = crawl.into_parts();
                        let mut file = Vec::new();
                        parts.filter.write_to(&mut file).unwrap();
                        crawl = Frontier::from_parts(parts.clone());
                        saved = Some((file, parts));
                        before.extend(unsaved.drain());
                    }
                    let page = crawl.pop().unwrap();
                    links(page).for_each(|link| _ = crawl.push(link));
                    assert!(unsaved.insert(page) && !before.contains(&page));
                }
                let (file, parts) = saved.unwrap();
                let (seen, waiting) = (parts.seen, parts.waiting.len());
                assert_eq!(seen, (before.len() + waiting) as u64);
                let filter = AtomicBloomFilter::read_from(&file[..]).unwrap();
                let crawl = Frontier::from_parts(FrontierParts { filter, ..parts });
                assert_eq!((crawl.seen(), crawl.len()), (seen, waiting));
                let mut after = HashSet::new();
                while let Some(page) = crawl.pop() {
                    links(page).for_each(|link| _ = crawl.push(link));
                    assert!(after.insert(page), "{page} is visited twice by one run");
                }
                assert!(before.is_disjoint(&after) && unsaved.is_subset(&after));
                assert_eq!(before.len() + after.len(), PAGES as usize);
            }
        }
    }

    #[test]
    fn waiting_items_keep_their_order_and_failed_items_return() {
        let first = frontier(100, 1e-12, 100);
        (0..10).for_each(|item| assert!(first.push(item)));
        let failed = first.pop().unwrap();
        first.requeue(failed);
        assert_eq!((first.pop(), first.seen(), first.len()), (Some(1), 10, 9));
        let parts = first.into_parts();
        assert_eq!((parts.seen, &parts.waiting[..]), (10, &[2, 3, 4, 5, 6, 7, 8, 9, 0][..]));
        let waiting = parts.waiting.clone();
        let second = Frontier::from_parts(FrontierParts { capacity: 10, when_full: WhenFull::Refuse, ..parts });
        assert!((0..10).all(|item| second.try_push(item) == Ok(false)));
        assert!(second.try_push(10).is_err());
        assert_eq!(drain(&second), waiting);
        let parts = second.into_parts();
        assert_eq!((parts.seen, parts.capacity, parts.when_full), (10, 10, WhenFull::Refuse));
        // A filter that lacks the items gets them, and they are counted.
        let filter = AtomicBloomFilter::new(100, 1e-12).unwrap();
        let third = Frontier::from_parts(FrontierParts { filter, waiting: vec![5, 6], capacity: 13, ..parts });
        assert!(!third.push(5) && third.push(7) && third.try_push(8).is_err());
        assert_eq!(third.seen(), 13);
        assert_eq!(drain(&third), [5, 6, 7]);
    }

    #[test]
    fn racing_pushes_queue_each_item_once() {
        const KEYS: u32 = 20_000;
        for threads in THREADS {
            for streams in Streams::ALL {
                // In one of fifty million runs an item is a false positive, and is not queued.
                let frontier = frontier(KEYS, 1e-12, u64::from(KEYS));
                let queued = AtomicU64::new(0);
                let pops: Vec<AtomicU32> = (0..KEYS).map(|_| AtomicU32::new(0)).collect();
                let pop = || Some(pops[frontier.pop()? as usize].fetch_add(1, Ordering::Relaxed));
                in_step(threads, streams, KEYS, |keys| {
                    for &key in keys {
                        queued.fetch_add(u64::from(frontier.push(key)), Ordering::Relaxed);
                        pop();
                    }
                });
                assert_eq!(frontier.seen(), queued.into_inner());
                while pop().is_some() {}
                assert!(frontier.is_empty());
                assert!(pops.into_iter().all(|pops| pops.into_inner() == 1), "{threads} threads, {streams:?}");
                assert_eq!(frontier.capacity_left(), 0);
            }
        }
    }

    /// The last page fills the frontier. Both settings for a full frontier are tested.
    #[test]
    fn a_crawl_visits_every_page_once_and_ends() {
        const PAGES: u32 = 20_000;
        for threads in THREADS {
            for when_full in [WhenFull::Warn, WhenFull::Refuse] {
                // In one of fifty million crawls a page is a false positive, and is not visited.
                let frontier = frontier(PAGES, 1e-12, u64::from(PAGES)).when_full(when_full);
                let visits: Vec<AtomicU32> = (0..PAGES).map(|_| AtomicU32::new(0)).collect();
                let visited = AtomicU64::new(0);
                let start = Instant::now();
                frontier.push(0);
                on_threads(threads, |_| {
                    // Acquire and Release as in the documentation of `Frontier`.
                    while visited.load(Ordering::Acquire) != frontier.seen() {
                        let Some(page) = frontier.pop() else {
                            assert!(start.elapsed() < Duration::from_secs(60), "the crawl does not end");
                            thread::yield_now();
                            continue;
                        };
                        visits[page as usize].fetch_add(1, Ordering::Relaxed);
                        // Two links to new pages, one back, one across.
                        for link in [2 * page + 1, 2 * page + 2, page / 2, PAGES - 1 - page] {
                            // A refused push is retried: pushes of seen pages hold permits for a moment.
                            while link < PAGES && frontier.try_push(link).is_err() {
                                thread::yield_now();
                            }
                        }
                        visited.fetch_add(1, Ordering::Release);
                    }
                });
                assert!(visits.into_iter().all(|visits| visits.into_inner() == 1), "{threads} threads, {when_full:?}");
                assert!(frontier.is_empty());
            }
        }
    }

    #[test]
    fn a_full_frontier_refuses_items_and_does_not_record_them() {
        const KEYS: u32 = 20_000;
        const CAPACITY: u64 = 5000;
        for threads in THREADS {
            for streams in Streams::ALL {
                let frontier = frontier(KEYS, 1e-12, CAPACITY).when_full(WhenFull::Refuse);
                let [queued, refused, wrong, overfull] = [const { AtomicU64::new(0) }; 4];
                in_step(threads, streams, KEYS, |keys| {
                    for &key in keys {
                        match frontier.try_push(key) {
                            Ok(new) => _ = queued.fetch_add(u64::from(new), Ordering::Relaxed),
                            Err(full) => {
                                let right = (full.item, full.capacity) == (key, CAPACITY);
                                wrong.fetch_add(u64::from(!right), Ordering::Relaxed);
                                refused.fetch_add(1, Ordering::Relaxed);
                            }
                        }
                        overfull.fetch_add(u64::from(frontier.seen() > CAPACITY), Ordering::Relaxed);
                    }
                });
                assert_eq!((wrong.into_inner(), overfull.into_inner()), (0, 0));
                assert!(refused.into_inner() > 0);
                assert_eq!(frontier.seen(), queued.into_inner());
                assert_eq!(frontier.capacity_left(), CAPACITY - frontier.seen());

                // Permits that racing pushes of the same keys may have left over are available to one thread.
                (0..KEYS).for_each(|key| _ = frontier.try_push(key));
                assert_eq!((frontier.seen(), frontier.capacity_left()), (CAPACITY, 0));
                let queued = drain(&frontier);
                assert_eq!(queued.len() as u64, CAPACITY);
                assert_eq!(queued.iter().collect::<HashSet<_>>().len() as u64, CAPACITY);

                assert_eq!(frontier.try_push(queued[0]), Ok(false));
                let mut expected = sequential(frontier.filter(), 0..0).0;
                queued.iter().for_each(|key| _ = expected.insert(key));
                assert_eq!(frontier.current_fpr(), expected.current_fpr());
                let claimed = (0..KEYS).filter(|key| frontier.filter().contains(key)).count();
                assert_eq!(claimed, (0..KEYS).filter(|key| expected.contains(key)).count());
            }
        }
    }

    /// Pushes of distinct items return no permit, so no push is refused too early.
    #[test]
    fn distinct_items_fill_a_frontier_to_its_capacity() {
        for threads in THREADS {
            // In one of fifty million runs an item is a false positive, which holds a permit for a moment.
            let frontier = frontier(20_000, 1e-12, 10_000).when_full(WhenFull::Refuse);
            on_threads(threads, |thread| {
                let each = 20_000 / threads;
                (thread * each..(thread + 1) * each).for_each(|key| _ = frontier.try_push(key));
            });
            assert_eq!((frontier.seen(), frontier.len(), frontier.is_empty()), (10_000, 10_000, false));
        }
    }

    #[test]
    #[should_panic = "the frontier is full: it has seen the 2 items"]
    fn push_panics_if_it_would_lose_an_item() {
        let frontier = frontier(100, 1e-12, 2).when_full(WhenFull::Refuse);
        assert!(frontier.push(0) && frontier.push(1) && !frontier.push(0));
        frontier.push(2);
    }

    /// A logger that keeps its records.
    struct Log(Mutex<Vec<String>>);

    static LOG: Log = Log(Mutex::new(Vec::new()));

    impl log::Log for Log {
        fn enabled(&self, _: &log::Metadata) -> bool {
            true
        }

        fn log(&self, record: &log::Record) {
            self.0.lock().unwrap().push(format!("{}: {}", record.level(), record.args()));
        }

        fn flush(&self) {}
    }

    #[test]
    fn a_frontier_warns_once_beyond_its_capacity() {
        log::set_logger(&LOG).unwrap();
        log::set_max_level(log::LevelFilter::Trace);
        // Numbers that no other test here has, to identify the warnings.
        for (threads, capacity) in THREADS.into_iter().zip([5003u64, 5004, 5005]) {
            let frontier = frontier(5000, 1e-3, capacity);
            let prefix = format!(
                "WARN: the frontier has seen more than the {capacity} items that it was made for: the false-positive rate is "
            );
            let warnings = || -> Vec<String> {
                let log = LOG.0.lock().unwrap();
                log.iter().filter_map(|line| line.strip_prefix(&prefix)).map(String::from).collect()
            };
            let mut keys = 0..;
            while frontier.capacity_left() > 0 {
                frontier.push(keys.next().unwrap());
            }
            assert_eq!(warnings(), [""; 0]);

            let before = frontier.current_fpr();
            let start = Barrier::new(threads as usize);
            on_threads(threads, |thread| {
                start.wait();
                (0..1000).for_each(|i| _ = frontier.push(1_000_000 + i * threads + thread));
            });
            let after = frontier.current_fpr();
            let logged = warnings();
            assert_eq!(logged.len(), 1, "{logged:?}");
            let rate: f64 = logged[0].strip_suffix(" and rises").unwrap().parse().unwrap();
            // The rate at some moment, rounded to three digits.
            assert!(rate > before * 0.99 && rate < after * 1.01, "{before} {rate} {after}");
            assert!(frontier.seen() > capacity);
            assert_eq!(frontier.capacity_left(), 0);
            // A frontier that continues it says so at once, as does one that begins with more waiting items than expected.
            let parts = frontier.into_parts();
            drop(Frontier::from_parts(parts.clone()));
            let filter = AtomicBloomFilter::new(5000, 1e-3).unwrap();
            assert!(Frontier::from_parts(FrontierParts { filter, seen: 0, ..parts }).seen() > capacity);
            assert_eq!(warnings().len(), 3);
        }
    }
}
