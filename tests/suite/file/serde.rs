//! Filters as values of serde.

use super::*;
use base64::{Engine, engine::general_purpose::STANDARD};

#[test]
fn a_filter_serializes_to_the_bytes_of_its_file() {
    for filter in [&[filter(3, 8, 7, 20)][..], &specs()].concat() {
        serializes_to_the_bytes_of_its_file(&filter);
    }
}

fn serializes_to_the_bytes_of_its_file(filter: &BloomFilter) {
    let json = serde_json::to_string(filter).unwrap();
    assert_eq!(json, format!("\"{}\"", STANDARD.encode(bytes_of!(filter))));
    // Some formats have no byte strings.
    let numbers = serde_json::to_string(&bytes_of!(filter)).unwrap();
    assert!(serde_json::from_str::<BloomFilter>(&numbers).unwrap() == *filter);
    let back: BloomFilter = serde_json::from_str(&json).unwrap();
    assert!(back == *filter);
    assert_eq!(spec(&back), spec(filter));

    let atomic: AtomicBloomFilter = serde_json::from_str(&json).unwrap();
    assert_eq!(serde_json::to_string(&atomic).unwrap(), json);
    assert!(BloomFilter::from(atomic) == *filter);
}

#[test]
fn unsound_bytes_are_refused() {
    let good = bytes_of!(&filter(3, 8, 7, 20));
    let error = |bytes: &[u8]| {
        let json = serde_json::to_string(bytes).unwrap();
        serde_json::from_str::<BloomFilter>(&json).unwrap_err().to_string()
    };
    for offset in [0, 20, 100, good.len() - 1] {
        let mut bytes = good.clone();
        bytes[offset] ^= 1;
        assert!(error(&bytes).starts_with(&read(&bytes).unwrap_err().to_string()), "{}", error(&bytes));
    }
    assert!(error(&good[..100]).starts_with("truncated: 100 bytes of 272"), "{}", error(&good[..100]));
    let long = [&good[..], &[0]].concat();
    assert!(error(&long).starts_with("too long: 273 bytes instead of 272"), "{}", error(&long));
    let text = serde_json::from_str::<BloomFilter>("\"text\"").unwrap_err().to_string();
    assert!(text.starts_with("not a bloomline file"), "{text}");
}
