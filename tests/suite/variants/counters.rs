//! Filters of counters: a multiset, from which keys can be removed.

use bloomline::variants::CountingBloomFilter;
use proptest::prelude::*;

const KEYS: u16 = 300;

#[derive(Clone, Debug)]
enum Step {
    Insert(u16, u8),
    Remove(u16),
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Small filters with many keys, so that counters are shared, reach 15, and there are false positives.
    #[test]
    fn counters_hold_a_multiset(
        steps in prop::collection::vec(prop_oneof![
            (0..KEYS, 1..20u8).prop_map(|(key, times)| Step::Insert(key, if times < 17 { 1 } else { times })),
            (0..KEYS).prop_map(Step::Remove),
        ], 1..800),
        groups in 1..20usize,
        probes in prop::sample::select(vec![4, 8, 16]),
    ) {
        let mut filter = CountingBloomFilter::builder().memory(128 * groups).probes(probes).build().unwrap();
        let empty = filter.clone();
        let mut counts = [0u32; KEYS as usize];
        let mut stuck = false;
        for (i, step) in steps.iter().enumerate() {
            let (Step::Insert(touched, _) | Step::Remove(touched)) = *step;
            match *step {
                Step::Insert(key, times) => for _ in 0..times {
                    prop_assert_eq!(filter.contains(&key), !filter.clone().insert(&key));
                    filter.insert(&key);
                    counts[usize::from(key)] += 1;
                },
                Step::Remove(key) => match &mut counts[usize::from(key)] {
                    count @ 1.. => {
                        *count -= 1;
                        prop_assert!(filter.remove(&key));
                    }
                    _ if filter.contains(&key) => {} // a false positive: not to be removed
                    _ => {
                        let before = filter.clone();
                        prop_assert!(!filter.remove(&key));
                        prop_assert!(filter == before);
                    }
                },
            }
            // The other keys are checked less often, because there are many.
            let checked = if i % 10 == 0 || i == steps.len() - 1 { 0..KEYS } else { touched..touched + 1 };
            for (key, &count) in checked.clone().zip(&counts[usize::from(checked.start)..]) {
                let bound = filter.count_upper_bound(&key);
                stuck |= bound == 15;
                prop_assert!(u32::from(bound) >= count.min(15));
                prop_assert!(filter.contains(&key) == (bound > 0) && (bound > 0 || count == 0));
            }
        }
        // One counter of a key may be stuck at 15 although the least of its counters is below 15.
        for (key, count) in (0..KEYS).zip(counts) {
            stuck |= count >= 15;
            (0..count).for_each(|_| assert!(filter.remove(&key)));
        }
        prop_assert!(stuck || groups < 15 || filter == empty);
    }
}

#[test]
fn counters_stay_at_fifteen() {
    let mut filter = CountingBloomFilter::builder().memory(1 << 16).probes(8).build().unwrap();
    (0..14).for_each(|_| _ = filter.insert("a"));
    assert_eq!(filter.count_upper_bound("a"), 14);
    (0..14).for_each(|_| assert!(filter.remove("a")));
    assert_eq!((filter.count_upper_bound("a"), filter.fill_ratio()), (0, 0.0));
    (0..40).for_each(|_| _ = filter.insert("a"));
    assert_eq!(filter.count_upper_bound("a"), 15);
    (0..40).for_each(|_| assert!(filter.remove("a")));
    assert_eq!(filter.count_upper_bound("a"), 15);
    // Sums stop at fifteen too.
    let [mut ours, mut theirs] =
        [(); 2].map(|()| CountingBloomFilter::builder().memory(1 << 16).probes(8).build().unwrap());
    (0..7).for_each(|_| _ = ours.insert("a"));
    (0..8).for_each(|_| _ = theirs.insert("a"));
    ours.union(&theirs).unwrap();
    assert_eq!(ours.count_upper_bound("a"), 15);
    ours.union(&theirs).unwrap();
    assert!(ours.count_upper_bound("a") == 15 && ours.count_upper_bound("b") == 0);
}
