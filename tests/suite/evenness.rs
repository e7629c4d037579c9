//! Properties that all filter types share: copies and equality, iterators of keys, serde.

use bloomline::{
    AtomicBloomFilter, AtomicScalableBloomFilter, BloomFilter, Hashes, RotatingBloomFilter, ScalableBloomFilter,
};

const KEYS: u64 = 5000;

#[test]
fn a_copy_of_a_shared_filter_equals_it_and_is_independent() {
    let filter = AtomicBloomFilter::new(KEYS, 1e-6).unwrap();
    (0..KEYS).for_each(|key| _ = filter.insert(&key));
    let copy = filter.clone();
    assert!(copy == filter);
    // Neither writes to the other.
    assert!(copy.insert(&KEYS) && !filter.contains(&KEYS));
    assert!(copy != filter);
    assert!(BloomFilter::from(filter.clone()) == BloomFilter::from(filter));
    let other = AtomicBloomFilter::builder().expected_keys(KEYS).false_positive_rate(1e-6).seed(1).build().unwrap();
    assert!(AtomicBloomFilter::new(KEYS, 1e-6).unwrap() != other);
}

#[test]
fn a_copy_has_every_key_whose_insert_returned() {
    let filter = AtomicBloomFilter::new(200_000, 1e-6).unwrap();
    let scalable = AtomicScalableBloomFilter::new(10, 1e-6).unwrap();
    std::thread::scope(|threads| {
        threads.spawn(|| {
            for key in 1_000_000..1_100_000u64 {
                filter.insert(&key);
                scalable.insert(&key).unwrap();
            }
        });
        for key in 0..50u64 {
            filter.insert(&key);
            scalable.insert(&key).unwrap();
            let (copy, copy_of_scalable) = (filter.clone(), scalable.clone());
            assert!((0..=key).all(|key| copy.contains(&key) && copy_of_scalable.contains(&key)));
        }
    });
}

/// A copy or a file counts every key that it has, including keys that raced with the call. Otherwise it would later take more
/// keys than it was sized for. In one of a thousand runs a key is a false positive, at a rate of 1e-9, and is not counted.
#[test]
fn a_copy_counts_every_key_that_it_has() {
    const KEYS: u64 = 600_000;
    let filter = AtomicScalableBloomFilter::new(1_000_000, 1e-9).unwrap();
    let done = std::sync::atomic::AtomicBool::new(false);
    let keys: Vec<u64> = (0..KEYS).collect();
    std::thread::scope(|threads| {
        threads.spawn(|| {
            keys.iter().for_each(|key| _ = filter.insert(key).unwrap());
            done.store(true, std::sync::atomic::Ordering::Release);
        });
        let mut found = vec![false; keys.len()];
        while !done.load(std::sync::atomic::Ordering::Acquire) {
            let copy = filter.clone();
            assert!(copy.contains_batch(&keys, &mut found) as u64 <= copy.keys(), "a copy");
            let bytes = bytes_of!(filter);
            let copy = ScalableBloomFilter::read_from(&bytes[..]).unwrap();
            assert!(copy.contains_batch(&keys, &mut found) as u64 <= copy.keys(), "a file");
        }
    });
}

#[test]
fn a_copy_of_a_shared_scalable_filter_equals_it_and_is_independent() {
    let filter = AtomicScalableBloomFilter::new(100, 1e-6).unwrap();
    (0..KEYS).for_each(|key| _ = filter.insert(&key).unwrap());
    let copy = filter.clone();
    assert!(copy == filter && copy.keys() == KEYS);
    assert!(copy.insert(&KEYS).unwrap() && !filter.contains(&KEYS));
    assert!(copy != filter);
    assert!(ScalableBloomFilter::from(filter.clone()) == ScalableBloomFilter::from(filter));
}

#[test]
fn iterators_set_the_bits_of_batches() {
    let keys: Vec<u64> = (0..KEYS).collect();
    let mut new = vec![false; keys.len()];

    let mut expected = BloomFilter::new(KEYS, 0.01).unwrap();
    expected.insert_batch(&keys, &mut new);
    let collected: AtomicBloomFilter = keys.iter().collect();
    assert!(BloomFilter::from(collected) == expected);
    let mut extended = AtomicBloomFilter::new(KEYS, 0.01).unwrap();
    extended.extend(&keys);
    assert!(BloomFilter::from(extended) == expected);

    let mut expected = ScalableBloomFilter::new(KEYS, 0.01).unwrap();
    expected.insert_batch(&keys, &mut new).unwrap();
    assert!(keys.iter().collect::<ScalableBloomFilter>() == expected);
    assert!(ScalableBloomFilter::from(keys.iter().collect::<AtomicScalableBloomFilter>()) == expected);
    // From an iterator of unknown length.
    let mut expected = ScalableBloomFilter::new(1000, 0.01).unwrap();
    expected.insert_batch(&keys, &mut new).unwrap();
    assert!(keys.iter().filter(|_| true).collect::<ScalableBloomFilter>() == expected);
    let (mut one, mut shared) =
        (ScalableBloomFilter::new(1000, 0.01).unwrap(), AtomicScalableBloomFilter::new(1000, 0.01).unwrap());
    one.extend(&keys);
    shared.extend(&keys);
    assert!(one == expected && ScalableBloomFilter::from(shared) == expected);

    let mut window = RotatingBloomFilter::new(1000, 1e-9).unwrap();
    window.extend(&keys);
    assert!(keys[4000..].iter().all(|key| window.contains(key)) && !window.contains(&0u64));
}

#[cfg(feature = "rayon")]
#[test]
fn parallel_iterators_insert_every_key() {
    use rayon::prelude::*;
    const KEYS: u64 = 300_000;
    let keys: Vec<u64> = (0..KEYS).collect();

    let collected: AtomicBloomFilter = keys.par_iter().collect();
    assert!(BloomFilter::from(collected) == keys.par_iter().collect::<BloomFilter>());
    let mut extended = AtomicBloomFilter::new(KEYS, 0.01).unwrap();
    extended.par_extend(&keys);
    assert!(BloomFilter::from(extended) == keys.iter().collect::<BloomFilter>());

    let mut by_slice = ScalableBloomFilter::new(100, 0.01).unwrap();
    by_slice.par_insert(&keys).unwrap();
    let mut by_iterator = ScalableBloomFilter::new(100, 0.01).unwrap();
    by_iterator.par_extend(&keys);
    let mut shared = AtomicScalableBloomFilter::new(100, 0.01).unwrap();
    shared.par_extend(&keys);
    let collected: ScalableBloomFilter = keys.par_iter().filter(|_| true).collect();
    for filter in [by_slice, by_iterator, shared.into(), collected, keys.par_iter().collect()] {
        assert!(keys.iter().all(|key| filter.contains(key)));
        assert!(filter.current_fpr() < 0.01 && filter.estimated_fpr() < 0.01);
        // Keys reported as seen at their first insert are not counted. Permits that a thread held when a stage became full are.
        let held = (rayon::current_num_threads() * 1024 * filter.stages().len()) as u64;
        assert!((KEYS * 98 / 100..=KEYS + held).contains(&filter.keys()), "{}", filter.keys());
    }
}

#[cfg(feature = "rayon")]
#[test]
fn parallel_queries_of_scalable_filters_answer_like_batches() {
    let mut filter = ScalableBloomFilter::new(100, 0.01).unwrap();
    filter.extend((0..100_000u64).step_by(3));
    let keys: Vec<u64> = (0..100_000).collect();
    let hashes: Vec<u64> = keys.iter().map(|key| filter.hasher().bytes(&key.to_le_bytes())).collect();
    let mut expected = vec![false; keys.len()];
    let count = filter.contains_batch(&keys, &mut expected);
    let shared = AtomicScalableBloomFilter::from(filter.clone());
    let check = |answer: &dyn Fn(&mut [bool]) -> usize| {
        let mut found = vec![false; keys.len()];
        assert_eq!((answer(&mut found), &found), (count, &expected));
    };
    check(&|found| filter.par_contains(&keys, found));
    check(&|found| filter.par_contains(&Hashes::new(&hashes), found));
    check(&|found| shared.par_contains(&keys, found));
    check(&|found| shared.par_contains(&Hashes::new(&hashes), found));
}

/// A scalable filter that can have only one stage: hashes of 64 bits cannot keep the rate of the next one.
#[cfg(feature = "rayon")]
#[test]
fn a_failed_parallel_insert_leaves_a_sound_filter() {
    let mut filter = ScalableBloomFilter::new(2000, 1.6e-15).unwrap();
    let keys: Vec<u64> = (0..100_000).collect();
    assert!(filter.par_insert(&keys).is_err());
    assert_eq!((filter.keys(), filter.stages().len()), (2000, 1));
    assert_eq!(keys.iter().filter(|key| filter.contains(*key)).count(), 2000);
}

#[test]
fn both_scalable_filters_write_the_same_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("seen.bloom");
    let shared = AtomicScalableBloomFilter::new(100, 0.01).unwrap();
    for keys in [0..0u64, 0..50, 0..KEYS] {
        keys.for_each(|key| _ = shared.insert(&key).unwrap());
        let bytes = bytes_of!(shared);
        let one = ScalableBloomFilter::read_from(&bytes[..]).unwrap();
        assert!(one == ScalableBloomFilter::from(shared.clone()));
        let again = bytes_of!(one);
        assert!(again == bytes);
        assert!(AtomicScalableBloomFilter::read_from(&bytes[..]).unwrap() == shared);
        shared.save(&path).unwrap();
        assert!(std::fs::read(&path).unwrap() == bytes && AtomicScalableBloomFilter::load(&path).unwrap() == shared);
    }
}

#[cfg(feature = "serde")]
mod serde {
    use super::*;
    use ::serde::{Serialize, de::DeserializeOwned};
    use base64::{Engine, engine::general_purpose::STANDARD};

    fn there_and_back<F: Serialize + DeserializeOwned + PartialEq>(filter: &F, bytes: Vec<u8>) {
        let json = serde_json::to_string(filter).unwrap();
        assert_eq!(json, format!("\"{}\"", STANDARD.encode(&bytes)));
        assert!(serde_json::from_str::<F>(&json).unwrap() == *filter);
        let long = serde_json::to_string(&[&bytes[..], &[0]].concat()).unwrap();
        let error = serde_json::from_str::<F>(&long).err().unwrap().to_string();
        assert!(error.starts_with("too long"), "{error}");
        let mut damaged = bytes;
        damaged[70] ^= 1;
        assert!(serde_json::from_str::<F>(&serde_json::to_string(&damaged).unwrap()).is_err());
    }

    #[test]
    fn scalable_filters_serialize_to_the_bytes_of_their_file() {
        let shared = AtomicScalableBloomFilter::new(100, 0.01).unwrap();
        (0..1000u64).for_each(|key| _ = shared.insert(&key).unwrap());
        let bytes = bytes_of!(shared);
        there_and_back(&shared, bytes.clone());
        there_and_back(&ScalableBloomFilter::from(shared), bytes);
    }

    #[cfg(feature = "variants")]
    #[test]
    fn variants_serialize_to_the_bytes_of_their_file() {
        use bloomline::variants::*;
        macro_rules! check {
            ($($filter:ident),*) => {$({
                #[allow(unused_mut)] // of filters that many threads write to
                let mut filter = $filter::new(1000, 0.01).unwrap();
                for hash in 1..1000u64 {
                    _ = filter.insert_hash(hash.wrapping_mul(0x9E37_79B9_7F4A_7C15));
                }
                let bytes = bytes_of!(filter);
                there_and_back(&filter, bytes);
                assert!(filter.clone() == filter);
            })*};
        }
        check!(ClassicBloomFilter, AtomicClassicBloomFilter, TwoBlockBloomFilter, RegisterBloomFilter);
        check!(SplitBlockBloomFilter, CountingBloomFilter);
    }
}
