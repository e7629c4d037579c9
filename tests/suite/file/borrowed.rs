//! Filters in borrowed memory.

use super::*;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Filters of several sizes, and with all kinds of purposes.
pub fn filters() -> Vec<BloomFilter> {
    let sizes = [filter(1, 4, 0, 10), filter(1000, 8, 5, 3000), filter(40_001, 12, 5, 3000)];
    sizes.into_iter().chain(specs()).collect()
}

/// Checks that a filter that was borrowed from another's bytes answers like the other.
#[track_caller]
pub fn check_alike(borrowed: &BorrowedBloomFilter, filter: &BloomFilter) {
    borrowed.verify().unwrap();
    assert!(**borrowed == *filter);
    assert_eq!(spec(borrowed), spec(filter));
    assert_eq!(borrowed.fill_ratio(), filter.fill_ratio());
    assert_eq!(borrowed.estimated_keys(), filter.estimated_keys());
    let keys: Vec<u64> = (0..20_000).collect();
    let mut found = [vec![false; keys.len()], vec![true; keys.len()]];
    let [ours, theirs] = &mut found;
    assert_eq!(borrowed.contains_batch(&keys, ours), filter.contains_batch(&keys, theirs));
    assert_eq!(found[0], found[1]);
    assert!(keys.iter().zip(&found[0]).all(|(key, found)| borrowed.contains(key) == *found));
    assert_eq!(bytes_of!(borrowed), bytes_of!(filter));
    assert_eq!(bytes_of!(BloomFilter::clone(borrowed)), bytes_of!(filter));
    let shared: BorrowedBloomFilter = borrowed.clone();
    assert!(bytes_of!(shared) == bytes_of!(filter) && shared.saved_keys() == borrowed.saved_keys());
}

#[test]
fn a_borrowed_filter_answers_like_its_source() {
    for filter in filters() {
        // As in a stream, later bytes are ignored.
        let aligned = Aligned::new(&[&bytes_of!(filter), &b"rest"[..]].concat(), 0);
        check_alike(&BorrowedBloomFilter::new(aligned.as_ref()).unwrap(), &filter);
    }
}

/// Sets a flag when it is dropped.
struct Owner(Aligned, Arc<AtomicBool>);

impl AsRef<[u8]> for Owner {
    fn as_ref(&self) -> &[u8] {
        self.0.as_ref()
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.1.store(true, Ordering::Relaxed);
    }
}

#[test]
fn an_owner_lives_as_long_as_its_filter() {
    let filter = filter(1000, 8, 5, 3000);
    let dropped = Arc::new(AtomicBool::new(false));
    let owner = Owner(Aligned::new(&bytes_of!(&filter), 0), dropped.clone());
    let borrowed: BorrowedBloomFilter<'static> = BorrowedBloomFilter::new(owner).unwrap();
    // A borrowed filter can be moved to other threads, which query it.
    let (borrowed, copy) = std::thread::spawn(move || {
        let mut copy = BloomFilter::clone(&borrowed);
        assert!(copy.insert("key") && !borrowed.contains("key"));
        (Box::new(borrowed), copy)
    })
    .join()
    .unwrap();
    assert!(!dropped.load(Ordering::Relaxed));
    assert!((0..3000u64).all(|key| borrowed.contains(&key)));
    let shared = BorrowedBloomFilter::clone(&borrowed);
    drop(borrowed);
    assert!(!dropped.load(Ordering::Relaxed) && shared.contains(&7u64));
    drop(shared);
    assert!(dropped.load(Ordering::Relaxed));
    assert!(copy.contains("key") && copy.contains(&7u64));
    // A filter that is refused drops its owner.
    let dropped = Arc::new(AtomicBool::new(false));
    BorrowedBloomFilter::new(Owner(Aligned::new(b"#!", 0), dropped.clone())).unwrap_err();
    assert!(dropped.load(Ordering::Relaxed));
}

/// `saved_keys` depends on the trailer, which is not checked until `verify` does.
#[test]
fn a_count_above_the_number_of_bits_is_refused() {
    let mut bytes = bytes_of!(&filter(3, 8, 7, 20));
    let ones = bytes.len() - TRAILER;
    let mut borrow = |claim: u64| {
        bytes[ones..ones + 8].copy_from_slice(&claim.to_le_bytes());
        BorrowedBloomFilter::new(Aligned::new(&bytes, 0))
    };
    let all = borrow(3 * 512).unwrap();
    assert_eq!(all.saved_keys(), f64::INFINITY);
    assert!(matches!(all.verify().unwrap_err().kind(), FileErrorKind::DamagedBody));
    assert!(matches!(borrow(3 * 512 + 1).unwrap_err().kind(), FileErrorKind::DamagedBody));
}

#[test]
fn a_misaligned_address_is_refused() {
    for filter in specs() {
        let bytes = bytes_of!(&filter);
        for past in 0..64 {
            let aligned = Aligned::new(&bytes, past);
            let borrowed = BorrowedBloomFilter::new(aligned.as_ref());
            if past == 0 {
                assert!(*borrowed.unwrap() == filter);
                continue;
            }
            let error = borrowed.unwrap_err();
            let named =
                matches!(error.kind(), &FileErrorKind::Misaligned { remainder, alignment: 64 } if remainder == past);
            assert!(named, "{error:?}");
            assert_eq!(
                error.to_string(),
                format!(
                    "the filter begins {past} bytes past a multiple of 64 in memory: \
                     place its section at a multiple of 64, or load a copy with read_from"
                )
            );
            assert!(BloomFilter::read_from(aligned.as_ref()).unwrap() == filter);
        }
    }
}
