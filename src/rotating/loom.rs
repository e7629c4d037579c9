//! loom models of a filter that rotates.

use super::filter::RotatingBloomFilter;
use loom::sync::Arc;
use loom::thread;

/// The real filter rotates between two inserts of a key. At most one claims the key, and the key is found.
#[test]
fn a_key_is_claimed_at_most_once_while_the_filter_rotates() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(|| {
        let filter = Arc::new(RotatingBloomFilter::new(1, 1e-6).unwrap());
        let other = {
            let filter = Arc::clone(&filter);
            thread::spawn(move || {
                filter.rotate();
                usize::from(filter.insert(&1u64))
            })
        };
        let ours = usize::from(filter.insert(&1u64));
        assert!(ours + other.join().unwrap() <= 1, "claims");
        assert!(filter.contains(&1u64));
    });
}

/// A key that moves from generation to generation is found at every moment, while its earlier generation is emptied.
#[test]
fn a_query_finds_a_key_that_stays_in_the_window() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(|| {
        let filter = Arc::new(RotatingBloomFilter::new(1, 1e-6).unwrap());
        filter.insert(&1u64);
        filter.rotate();
        let other = {
            let filter = Arc::clone(&filter);
            thread::spawn(move || {
                assert!(filter.contains(&1u64), "forgotten");
            })
        };
        filter.insert(&1u64);
        filter.rotate();
        other.join().unwrap();
    });
}
