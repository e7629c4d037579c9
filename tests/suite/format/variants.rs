//! The other layouts.

use super::*;
use bloomline::variants::{
    ClassicBloomFilter, CountingBloomFilter, RegisterBloomFilter, SplitBlockBloomFilter, TwoBlockBloomFilter,
};

fn made(layout: &str, units: usize, probes: u32, seed: u64) -> Value {
    json!({ "layout": layout, "units": units, "probes": probes, "seed": seed })
}

/// Sets bits in a byte of a file without fields, and updates its trailer.
fn with_body(bytes: &[u8], offset: usize, bits: u8) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[offset] |= bits;
    let (trailer, end) = (bytes.len() - 16, bytes.len() - 8);
    let ones: u32 = bytes[64..trailer].iter().map(|byte| byte.count_ones()).sum();
    bytes[trailer..end].copy_from_slice(&u64::from(ones).to_le_bytes());
    let checksum = XxHash3_64::oneshot(&bytes[64..end]);
    bytes[end..].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

#[test]
fn both_implementations_write_the_same_other_layouts() {
    for (bits, probes) in [(1, 1), (3000, 7), (20_000, 32)] {
        let filter = ClassicBloomFilter::with_bits(bits, probes).unwrap();
        both_agree!(ClassicBloomFilter, filter, made("classic", bits as usize, probes, 0));
    }
    for (groups, probes) in [(1, 4), (5, 8), (40, 16)] {
        let filter = CountingBloomFilter::builder().memory(128 * groups).probes(probes).seed(5).build().unwrap();
        both_agree!(CountingBloomFilter, filter, made("counting", groups, probes, 5));
    }
    for (words, probes) in [(8, 2), (40, 5), (400, 10)] {
        let filter = RegisterBloomFilter::builder().memory(8 * words).probes(probes).seed(5).build().unwrap();
        both_agree!(RegisterBloomFilter, filter, made("register", words, probes, 5));
    }
    for (blocks, probes) in [(1, 8), (8, 16), (33, 24), (40, 32)] {
        let filter = TwoBlockBloomFilter::builder().memory(64 * blocks).probes(probes).seed(5).build().unwrap();
        both_agree!(TwoBlockBloomFilter, filter, made("words4x2", blocks, probes, 5));
    }
    for blocks in [1, 2, 33] {
        let filter = SplitBlockBloomFilter::with_bitset_bytes(32 * blocks).unwrap();
        both_agree!(SplitBlockBloomFilter, filter, made("split block", blocks, 8, 0));
    }
}

#[test]
fn both_implementations_refuse_invalid_units_and_seeds() {
    let mut classic = ClassicBloomFilter::with_bits(100, 3).unwrap();
    classic.insert("a");
    let classic = bytes_of!(classic);
    let split = bytes_of!(SplitBlockBloomFilter::with_bitset_bytes(32).unwrap());
    // The golden hash of seed 1.
    let seeded = bytes_of!(BloomFilter::builder().memory(64).probes(8).seed(1).build().unwrap());
    let (bit_100, bit_511) = (with_body(&classic, 64 + 12, 0x10), with_body(&classic, 64 + 63, 0x80));
    let cases = [
        ("units", with_header(&classic, 0, 40, &513u64.to_le_bytes())),
        ("units", with_header(&classic, 0, 40, &0u64.to_le_bytes())),
        ("units", bit_100),
        ("units", bit_511),
        ("units", with_body(&split, 64 + 32, 1)),
        ("seed", with_header(&split, 0, 24, &seeded[24..40])),
    ];
    let jobs: Vec<Value> = cases.iter().map(|(_, bytes)| json!({ "read": hex(bytes) })).collect();
    let Some(replies) = ask(&jobs) else { return };
    for (i, ((name, bytes), reply)) in cases.iter().zip(replies).enumerate() {
        let classic = ClassicBloomFilter::read_from(&bytes[..]).map(|_| ());
        let split = SplitBlockBloomFilter::read_from(&bytes[..]).map(|_| ());
        let error = if i < 4 { classic } else { split }.unwrap_err();
        assert!(matches!(error.kind(), FileErrorKind::Field { field, .. } if field == name), "{i}: {error}");
        let allowed = [format!("bad {name}"), "bad blocks".to_owned()];
        assert!(allowed.iter().any(|reason| reply["refused"] == json!(reason)), "{i}: {reply}");
    }
}
