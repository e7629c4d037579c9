//! Generic code over filters, batches of any `Keys`, and the state after a panic in a key's code.

use bloomline::{
    AtomicBloomFilter, AtomicScalableBloomFilter, BloomFilter, BorrowedBloomFilter, BuildError, Builder, FileError,
    FileErrorKind, Filter, Hashes, Kernel, Key, KeyHasher, Keys, MergeError, Plan, RotatingBloomFilter,
    ScalableBloomFilter, Selected, Slices, WithinBuild,
};
use proptest::prelude::*;
use std::borrow::Cow;
use std::collections::{HashSet, VecDeque};
use std::io;
use std::panic::{AssertUnwindSafe, RefUnwindSafe, UnwindSafe, catch_unwind};
use std::sync::Arc;

/// Checks every method of the trait against a set.
fn is_a_set(mut filter: impl Filter) {
    let (mut set, keys) = (HashSet::new(), (0..3000u64).map(|i| i * i % 1009).collect::<Vec<_>>());
    let mut new = vec![false; keys.len()];
    let (single, batch) = keys.split_at(100);
    for (key, new) in single.iter().zip(&mut new) {
        *new = filter.try_insert(key).unwrap();
    }
    let count = filter.try_insert_batch(batch, &mut new[100..]).unwrap();
    assert_eq!(count, new[100..].iter().filter(|new| **new).count());
    assert!(keys.iter().zip(new).all(|(key, new)| set.insert(*key) == new));
    // A prefetch changes nothing, whatever the block.
    keys.iter()
        .map(|key| key.hash_with(filter.hasher()))
        .chain([0, u64::MAX])
        .for_each(|hash| filter.prefetch_hash(hash));
    let all: Vec<u64> = (0..1009).collect();
    let mut found = vec![false; all.len()];
    filter.contains_batch(&all, &mut found);
    assert!(all.iter().zip(found).all(|(key, found)| found == set.contains(key) && found == filter.contains(key)));
    let hash = 7u64.hash_with(filter.hasher());
    assert_eq!((filter.try_insert_hash(hash).unwrap(), filter.contains_hash(hash)), (!set.contains(&7), true));
    assert!((filter.estimated_keys() / set.len() as f64 - 1.0).abs() < 0.1, "{}", filter.estimated_keys());
    assert_eq!((filter.expected_keys(), filter.false_positive_rate()), (Some(2000), Some(1e-9)));
    assert!(filter.key_name() == "squares" && filter.current_fpr() < 1e-9 && filter.memory_bytes() > 2000);
}

/// Builds a filter whose type is not named, as a generic program does. A builder can be cloned even if its filter cannot.
fn built<F: TryFrom<Builder<F>, Error = BuildError>>(builder: Builder<F>) -> F {
    builder.expected_keys(2000).false_positive_rate(1e-9).key_name("squares").clone().build().unwrap()
}

#[test]
fn generic_code_accepts_every_filter() {
    is_a_set(built(BloomFilter::builder()));
    is_a_set(built(AtomicBloomFilter::builder()));
    is_a_set(&built(AtomicBloomFilter::builder()));
    is_a_set(built(ScalableBloomFilter::builder()));
    is_a_set(&mut built(ScalableBloomFilter::builder()));
    let chosen: Box<dyn Filter + Send + Sync> = Box::new(built(ScalableBloomFilter::builder()));
    is_a_set(chosen);
    let chosen: &mut dyn Filter = &mut built(BloomFilter::builder());
    is_a_set(chosen);
    is_a_set(built(AtomicScalableBloomFilter::builder()));
    is_a_set(&built(AtomicScalableBloomFilter::builder()));
    is_a_set(built(RotatingBloomFilter::builder()));
    is_a_set(&built(RotatingBloomFilter::builder()));
    #[cfg(feature = "variants")]
    {
        use bloomline::variants::*;
        is_a_set(built(ClassicBloomFilter::builder()));
        is_a_set(&built(AtomicClassicBloomFilter::builder()));
        is_a_set(built(TwoBlockBloomFilter::builder()));
    }
}

/// Every public type can be sent, shared and used behind `catch_unwind`.
#[test]
fn public_types_are_send_sync_and_unwind_safe() {
    fn check_traits<T: Send + Sync + Unpin + UnwindSafe + RefUnwindSafe + 'static>() {}
    check_traits::<BloomFilter>();
    check_traits::<AtomicBloomFilter>();
    check_traits::<ScalableBloomFilter>();
    check_traits::<AtomicScalableBloomFilter>();
    check_traits::<RotatingBloomFilter>();
    check_traits::<BorrowedBloomFilter>();
    check_traits::<Builder<BloomFilter>>();
    check_traits::<Plan>();
    check_traits::<Kernel>();
    check_traits::<KeyHasher>();
    check_traits::<Hashes>();
    check_traits::<Slices<i32>>();
    check_traits::<Selected<&[u64], u32>>();
    check_traits::<WithinBuild<u64>>();
    check_traits::<BuildError>();
    check_traits::<MergeError>();
    #[cfg(feature = "frontier")]
    {
        check_traits::<bloomline::Frontier<String>>();
        check_traits::<bloomline::FrontierFull<String>>();
        check_traits::<bloomline::WhenFull>();
    }
    #[cfg(feature = "variants")]
    {
        use bloomline::variants::*;
        check_traits::<ClassicBloomFilter>();
        check_traits::<AtomicClassicBloomFilter>();
        check_traits::<TwoBlockBloomFilter>();
        check_traits::<RegisterBloomFilter>();
        check_traits::<SplitBlockBloomFilter>();
        check_traits::<CountingBloomFilter>();
    }
    // These may contain an `io::Error`, which is not `UnwindSafe`.
    fn check_sendable<T: Send + Sync + Unpin + 'static>() {}
    check_sendable::<FileError>();
    check_sendable::<FileErrorKind>();
}

/// Strings with repeats. They fill more than one chunk of a batch. Few are random, because random strings take longer to make
/// than to test.
fn texts() -> impl Strategy<Value = Vec<String>> {
    (prop::collection::vec(".{0,20}", 1..30), 0..1200usize).prop_map(|(random, count)| {
        let (whole, numbered) = (random.iter().cloned(), random.iter().cycle().zip(0..));
        whole.chain(numbered.map(|(text, i)| format!("{text}{}", i % 900))).take(count).collect()
    })
}

proptest! {
    /// Strings in one buffer, and hashes, are the same keys as the strings one by one.
    #[test]
    fn keys_in_buffers_and_hashes_equal_single_keys(texts in texts()) {
        let mut offsets = vec![0i32];
        let mut bytes = Vec::new();
        for text in &texts {
            bytes.extend(text.as_bytes());
            offsets.push(bytes.len() as i32);
        }
        let long: Vec<i64> = offsets.iter().map(|&offset| offset.into()).collect();
        let hasher = KeyHasher::new(0);
        let hashes: Vec<u64> = texts.iter().map(|text| text.hash_with(&hasher)).collect();
        let new = |keys: &dyn Fn(&mut BloomFilter, &mut [bool])| {
            let mut filter = BloomFilter::new(2000, 1e-9).unwrap();
            let mut new = vec![false; texts.len()];
            keys(&mut filter, &mut new);
            (filter, new)
        };
        let expected = new(&|filter, new| _ = filter.insert_batch(&texts, new));
        prop_assert!(new(&|filter, new| _ = filter.insert_batch(&Slices::new(&offsets, &bytes), new)) == expected);
        prop_assert!(new(&|filter, new| _ = filter.insert_batch(&Slices::new(&long, &bytes), new)) == expected);
        prop_assert!(new(&|filter, new| _ = filter.insert_batch(&Hashes::new(&hashes), new)) == expected);
        prop_assert!(new(&|filter, new| _ = filter.insert_batch(&&texts[..], new)) == expected);
        let shared: Arc<[String]> = texts.clone().into();
        prop_assert!(new(&|filter, new| _ = filter.insert_batch(&shared, new)) == expected);
        prop_assert!(new(&|filter, new| _ = filter.insert_batch(&Cow::Borrowed(&texts[..]), new)) == expected);
        let mut ring: VecDeque<&String> = texts.iter().collect();
        ring.rotate_left(texts.len() / 2);
        ring.rotate_right(texts.len() / 2);
        prop_assert!(new(&|filter, new| _ = filter.insert_batch(&ring, new)) == expected);
        let mut bitmap = vec![!0; texts.len().div_ceil(64)];
        prop_assert_eq!(expected.0.prune_bitmap(&Slices::new(&offsets, &bytes), &mut bitmap), texts.len());
    }
}

proptest! {
    /// Rows of several columns are tuples, and selected rows are the keys at their indices.
    #[test]
    fn columns_and_selected_rows_hash_like_their_rows(
        texts in texts(),
        numbers in prop::collection::vec(any::<(u16, [u8; 3])>(), 1..30),
        picks in prop::collection::vec(any::<u64>(), 1..30),
        pick_count in 0..1200usize,
    ) {
        let hasher = KeyHasher::new(7);
        let rows: Vec<(&str, u16, [u8; 3])> = texts.iter().zip(numbers.iter().cycle()).map(|(t, n)| (&t[..], n.0, n.1)).collect();
        let texts: Vec<&str> = rows.iter().map(|row| row.0).collect();
        let numbers: Vec<u16> = rows.iter().map(|row| row.1).collect();
        let bytes: Vec<u8> = rows.iter().flat_map(|row| row.2).collect();
        let offsets: Vec<u32> = (0..=rows.len() as u32).map(|row| 3 * row).collect();
        let columns = (&texts, &numbers[..], Slices::new(&offsets, &bytes));
        let hashes = |keys: &dyn Keys| {
            let mut hashes = vec![0; keys.len()];
            keys.hash_from(0, &hasher, &mut hashes);
            assert!(hashes.iter().enumerate().all(|(i, &hash)| hash == keys.hash_at(i, &hasher)));
            hashes
        };
        let wanted: Vec<u64> = rows.iter().map(|row| row.hash_with(&hasher)).collect();
        prop_assert_eq!(hashes(&columns), &wanted[..]);
        let picks = picks.iter().cycle().zip(0..).take(if rows.is_empty() { 0 } else { pick_count });
        let picks: Vec<i64> = picks.map(|(pick, i)| (pick.wrapping_mul(2 * i + 1) % rows.len() as u64) as i64).collect();
        let picked: Vec<u64> = picks.iter().map(|&pick| wanted[pick as usize]).collect();
        prop_assert_eq!(hashes(&Selected::new(&columns, &picks)), picked);
    }
}

#[test]
fn columns_of_two_lengths_and_rows_without_a_key_panic() {
    let filter = BloomFilter::new(10, 0.1).unwrap();
    let panics = |keys: &(dyn Keys + std::panic::RefUnwindSafe), rows: usize| {
        catch_unwind(|| filter.contains_batch(keys, &mut vec![false; rows])).is_err()
    };
    assert!(!panics(&([1u8; 3], ["a"; 3], [true; 3]), 3));
    assert!(panics(&([1u8; 3], ["a"; 3], [true; 2]), 3) && panics(&([1u8; 2], ["a"; 3]), 2));
    assert!(!panics(&Selected::new([1u8, 2], &[1, 0, 1]), 3));
    assert!(panics(&Selected::new([1u8, 2], &[2]), 1) && panics(&Selected::new([1u8, 2], &[-1]), 1));
}

#[test]
fn empty_offsets_hold_no_keys_and_wrong_offsets_panic() {
    let none: Slices<i32> = Slices::new(&[], b"");
    assert!(none.is_empty() && Slices::new(&[0i32], b"").is_empty());
    for offsets in [[0, 5], [2, 1], [-1, 1]] {
        let keys = Slices::new(&offsets, b"abc");
        assert!(catch_unwind(|| keys.get(0)).is_err(), "{offsets:?}");
    }
}

#[test]
fn the_body_of_dispatch_names_items_of_its_caller() {
    struct Loop(u64);
    let seen = BloomFilter::from_iter([7u64]);
    assert!(bloomline::dispatch!(&seen, |view| view.contains(&Loop(7).0)));
}

/// Keys. One of them panics as it is hashed.
struct Trap(usize);

impl Keys for Trap {
    fn len(&self) -> usize {
        self.0
    }

    fn hash_at(&self, index: usize, hasher: &KeyHasher) -> u64 {
        assert!(index < self.0 / 2, "a key's own panic");
        (index as u64).hash_with(hasher)
    }
}

#[test]
#[cfg(feature = "rayon")]
fn a_panic_in_a_key_leaves_a_usable_filter() {
    for keys in [10, 1 << 19] {
        let mut seen = ScalableBloomFilter::new(1000, 1e-6).unwrap();
        seen.insert("before").unwrap();
        let panicked = catch_unwind(AssertUnwindSafe(|| seen.par_insert(&Trap(keys)).unwrap()));
        assert!(panicked.is_err() && seen.contains("before"));
        assert!(seen.insert("after").unwrap() && seen.stages()[0].contains("before"));
    }
}

#[test]
fn filters_with_two_key_names_do_not_merge() {
    let named = |name: &str| {
        let builder = BloomFilter::builder().memory(640).probes(8).key_name(name);
        builder.build().unwrap()
    };
    let error = MergeError::KeyName { ours: "url".into(), theirs: "e-mail".into() };
    assert_eq!(named("url").union(&named("e-mail")), Err(error.clone()));
    assert_eq!(named("url").intersect(&named("e-mail")), Err(error));
    // A filter without a key name matches any.
    assert_eq!(named("url").union(&named("")), Ok(()));
    assert_eq!(named("").union(&named("url")), Ok(()));
}

#[test]
fn file_errors_convert_to_io_errors() {
    fn load(path: &str) -> io::Result<BloomFilter> {
        Ok(BloomFilter::load(path)?)
    }
    assert_eq!(load("/no/such/file").unwrap_err().kind(), io::ErrorKind::NotFound);
    let error = load("Cargo.toml").unwrap_err();
    assert_eq!(
        (error.kind(), error.to_string().as_str()),
        (io::ErrorKind::InvalidData, "Cargo.toml: not a bloomline file")
    );
    let inner = error.get_ref().and_then(|error| error.downcast_ref::<bloomline::FileError>()).unwrap();
    assert!(matches!(inner.kind(), FileErrorKind::NotBloomline));
    let short = BloomFilter::new(10, 0.1).unwrap().write_to_slice(&mut [0; 64]).unwrap_err();
    assert_eq!(io::Error::from(short).kind(), io::ErrorKind::InvalidInput);
}
