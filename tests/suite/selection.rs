//! Queries of selected rows: exactly the selected rows that single calls find are left.

use bloomline::{
    AtomicBloomFilter, AtomicScalableBloomFilter, BloomFilter, Hashes, Kernel, Key, KeyHasher, ScalableBloomFilter,
};
use proptest::prelude::*;
use std::cell::RefCell;
use std::panic::{self, AssertUnwindSafe, catch_unwind};

/// Rows that are queried together.
const BATCH_CHUNK: usize = 512;

/// Compares the rows that a filter leaves in a bitmap, by keys and by hashes, with the answers of single calls.
macro_rules! check {
    ($filter:expr, $keys:expr, $bitmap:expr) => {{
        let (filter, keys) = (&$filter, &$keys[..]);
        let hashes: Vec<u64> = keys.iter().map(|key| key.hash_with(filter.hasher())).collect();
        let selected = |row: usize| $bitmap[row / 64] >> (row % 64) & 1 == 1;
        let mut expected = vec![0; keys.len().div_ceil(64)];
        let rows = (0..keys.len()).filter(|&row| selected(row) && filter.contains(&keys[row]));
        let count = rows.map(|row| expected[row / 64] |= 1 << (row % 64)).count();

        let mut bitmap = $bitmap.clone();
        assert_eq!(filter.prune_bitmap(keys, &mut bitmap), count);
        assert_eq!(bitmap, expected);
        let mut bitmap = $bitmap.clone();
        assert_eq!(filter.prune_bitmap(&Hashes::new(&hashes), &mut bitmap), count);
        assert_eq!(bitmap, expected);
    }};
}

/// Words with all bits, none, some, and few of them.
fn words() -> impl Strategy<Value = u64> {
    prop_oneof![
        3 => Just(!0),
        1 => Just(0),
        2 => any::<u64>(),
        1 => (0..64u32).prop_map(|bit| 1 << bit),
    ]
}

/// The rows of a batch, and a bitmap that selects some of them.
fn batches() -> impl Strategy<Value = (Vec<u64>, Vec<u64>)> {
    let rows = prop_oneof![8 => 0..300usize, 1 => BATCH_CHUNK - 1..=BATCH_CHUNK + 1, 1 => 2 * BATCH_CHUNK..2 * BATCH_CHUNK + 100];
    rows.prop_flat_map(|rows| {
        (prop::collection::vec(0..1000u64, rows), prop::collection::vec(words(), rows.div_ceil(64)))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn selected_rows_that_are_found_are_left(
        (keys, bitmap) in batches(),
        inserted in prop::collection::vec(0..1000u64, 0..700),
        // The last size is above those whose batches run without prefetches.
        blocks in prop::sample::select(vec![1usize, 10, 5001]),
    ) {
        for kernel in Kernel::available() {
            let builder = BloomFilter::builder().memory(64 * blocks).probes(8).kernel(kernel);
            let mut filter: BloomFilter = builder.build().unwrap();
            filter.extend(&inserted);
            check!(filter, keys, bitmap);
            check!(AtomicBloomFilter::from(filter), keys, bitmap);
        }
        // One stage and several.
        for first in [1000, 10] {
            let mut scalable = ScalableBloomFilter::new(first, 0.01).unwrap();
            inserted.iter().for_each(|key| _ = scalable.insert(key).unwrap());
            check!(scalable, keys, bitmap);
            check!(AtomicScalableBloomFilter::from(scalable), keys, bitmap);
        }
        #[cfg(feature = "variants")]
        {
            let mut classic = bloomline::variants::ClassicBloomFilter::new(500, 0.01).unwrap();
            inserted.iter().for_each(|key| _ = classic.insert(key));
            check!(classic, keys, bitmap);
        }
    }
}

/// A key that must not be hashed.
struct Null;

impl Key for Null {
    fn hash_with(&self, _: &KeyHasher) -> u64 {
        panic!("a row that is not selected was asked for")
    }
}

#[test]
fn rows_that_are_not_selected_are_not_hashed() {
    let mut filter = BloomFilter::new(1000, 0.01).unwrap();
    filter.extend(0..1000u64);
    let keys = [const { Null }; 100];
    let mut bitmap = [0, 0];
    assert_eq!(filter.prune_bitmap(&keys, &mut bitmap), 0);
    // Beyond the last row.
    let mut bitmap = [0, !0 << 36];
    assert_eq!(filter.prune_bitmap(&keys, &mut bitmap), 0);
    assert_eq!(bitmap, [0, 0]);
}

/// The message of a panic.
fn panics(call: impl FnOnce()) -> String {
    *catch_unwind(AssertUnwindSafe(call)).unwrap_err().downcast().unwrap()
}

#[test]
fn a_bitmap_may_be_longer_than_its_rows_need() {
    let mut filter = BloomFilter::new(1000, 1e-9).unwrap();
    filter.extend((0..1000u64).step_by(2));
    for rows in [0usize, 1, 63, 64, 65, 128, 1000] {
        let keys: Vec<u64> = (0..rows as u64).collect();
        for padding in [1, 2, 16, 40] {
            let mut bitmap = vec![!0; rows.div_ceil(64) + padding];
            assert_eq!(filter.prune_bitmap(&keys, &mut bitmap), rows.div_ceil(2));
            let set = |row: &usize| bitmap[row / 64] >> (row % 64) & 1 == 1;
            let left: Vec<usize> = (0..64 * bitmap.len()).filter(set).collect();
            assert_eq!(left, (0..rows).step_by(2).collect::<Vec<_>>());
        }
    }
}

#[test]
fn a_bitmap_that_is_too_short_panics() {
    let filter = BloomFilter::new(1000, 0.01).unwrap();
    let scalable = ScalableBloomFilter::new(1000, 0.01).unwrap();
    for (rows, words) in [(1, 0), (64, 0), (65, 1), (1000, 15)] {
        let keys = vec![7u64; rows];
        let message = format!("a batch of {rows} keys needs a bitmap of {} words, not {words}", rows.div_ceil(64));
        let mut bitmap = vec![!0; words];
        assert_eq!(panics(|| _ = filter.prune_bitmap(&keys, &mut bitmap)), message);
        assert_eq!(panics(|| _ = filter.prune_bitmap(&Hashes::new(&keys), &mut bitmap)), message);
        assert_eq!(panics(|| _ = scalable.prune_bitmap(&keys, &mut bitmap)), message);
        assert_eq!(panics(|| _ = scalable.prune_bitmap(&Hashes::new(&keys), &mut bitmap)), message);
        assert!(bitmap.iter().all(|&word| word == !0));
    }
}

/// A panic names the caller's line, not a line of the library.
#[test]
fn a_panic_names_the_caller() {
    thread_local!(static FILE: RefCell<String> = const { RefCell::new(String::new()) });
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        FILE.set(info.location().map(|location| location.file().to_owned()).unwrap_or_default());
        usual(info);
    }));
    let filter = BloomFilter::new(1000, 0.01).unwrap();
    let scalable = ScalableBloomFilter::new(1000, 0.01).unwrap();
    let calls: [&dyn Fn(); 2] =
        [&|| _ = filter.prune_bitmap(&[1u64], &mut []), &|| _ = scalable.prune_bitmap(&Hashes::new(&[1]), &mut [])];
    for call in calls {
        panics(call);
        assert_eq!(FILE.take(), file!());
    }
}
