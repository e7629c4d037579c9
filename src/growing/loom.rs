//! loom model of a filter that grows.

use super::atomic::AtomicScalableBloomFilter;
use loom::sync::Arc;
use loom::thread;

/// The real filter: the first stage has capacity for one key, and two threads insert the same one.
#[test]
fn one_of_two_threads_claims_a_key_while_the_filter_grows() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(|| {
        let filter = Arc::new(AtomicScalableBloomFilter::new(1, 1e-6).unwrap());
        let other = {
            let filter = Arc::clone(&filter);
            thread::spawn(move || [2u64, 1].map(|key| usize::from(filter.insert(&key).unwrap())))
        };
        let ours = usize::from(filter.insert(&1u64).unwrap());
        let [second, theirs] = other.join().unwrap();
        assert_eq!((second, ours + theirs), (1, 1));
        assert!(filter.contains(&1u64) && filter.contains(&2u64));
    });
}
