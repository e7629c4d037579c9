//! The bits of each layout, checked against docs/FORMAT.md.

use super::*;

/// The layouts of docs/FORMAT.md, written a second time: positions counted from the first bit of all blocks.
fn positions(layout: &str, hash: u64, units: u64, probes: u32) -> Vec<u64> {
    let wide = |a: u64, b: u64| u128::from(a) * u128::from(b);
    let high = |a, b| (wide(a, b) >> 64) as u64;
    let fold = |a, b| high(a, b) ^ wide(a, b) as u64;
    let mixed = |hash: u64| fold(hash, 0x6A09_E667_F3BC_C909);
    let probes = u64::from(probes);
    match layout {
        "classic" => (1..=probes)
            .map(|i| hash.wrapping_add(0xA076_1D64_78BD_642F_u64.wrapping_mul(i)))
            .map(|state| high(fold(state, state ^ 0xE703_7ED1_A0B4_28DB), units))
            .collect(),
        "counting" => (0..probes)
            .map(|i| 256 * high(hash, units) + i * 256 / probes + (mixed(hash) >> (i * 64 / probes)) % (256 / probes))
            .collect(),
        "split block" => {
            let block = ((hash >> 32) * units) >> 32;
            let salts = [
                0x47b6_137b,
                0x4497_4d91,
                0x8824_ad5b,
                0xa2b7_289d,
                0x7054_95c7,
                0x2df1_424b,
                0x9efc_4947,
                0x5c6b_fb31,
            ];
            let bit = |(i, salt): (u64, u32)| 256 * block + 32 * i + u64::from((hash as u32).wrapping_mul(salt) >> 27);
            (0..8).zip(salts).map(bit).collect()
        }
        "register" => (0..probes).map(|i| 64 * high(hash, units) + (mixed(hash) >> (6 * i)) % 64).collect(),
        "words4x2" => {
            let half = |hash: u64| {
                let first = mixed(hash);
                let second = fold(first, 0xBB67_AE85_84CA_A73B);
                (0..4).flat_map(move |lane| {
                    let (f, s) = (first >> (16 * lane), second >> (16 * lane));
                    let word = high(hash, units) * 8 + lane + 4 * (f >> 15 & 1);
                    let bits = [f, f >> 6, s, s >> 6];
                    (0..probes as usize / 8).map(move |i| 64 * word + bits[i] % 64)
                })
            };
            half(hash).chain(half(fold(hash, 0x3C6E_F372_FE94_F82B))).collect()
        }
        _ => unreachable!(),
    }
}

fn name<L: LayoutFilter>(_: &L) -> &'static str {
    L::NAME
}

#[test]
fn bits_match_the_specification() {
    macro_rules! check {
        ($filter:expr, $probes:expr) => {
            let mut filter = $filter.unwrap();
            let hashes = hashes(0..50);
            LayoutFilter::insert_hashes(&mut filter, &hashes, &mut [false; 50]);
            let file = bytes_of!(filter);
            let units = u64::from_le_bytes(*file[40..].first_chunk().unwrap());
            let layout = name(&filter);
            let mut expected = vec![0; file.len() - 80];
            for position in hashes.iter().flat_map(|&hash| positions(layout, hash, units, $probes)) {
                if layout == "counting" {
                    // No counter reaches 16 here, which would overflow into the next.
                    expected[position as usize / 2] += 1 << (position % 2 * 4);
                } else {
                    expected[position as usize / 8] |= 1u8 << (position % 8);
                }
            }
            assert!(file[64..file.len() - 16] == expected, "{layout}, {} probes", $probes);
        };
    }
    for probes in 1..=32 {
        check!(ClassicBloomFilter::with_bits(1001, probes), probes);
        check!(ClassicBloomFilter::with_bits(1001, probes).map(AtomicClassicBloomFilter::from), probes);
    }
    for probes in 2..=10 {
        check!(RegisterBloomFilter::builder().memory(640).probes(probes).build(), probes);
    }
    for probes in [8, 16, 24, 32] {
        check!(TwoBlockBloomFilter::builder().memory(640).probes(probes).build(), probes);
    }
    for probes in [4, 8, 16] {
        check!(CountingBloomFilter::builder().memory(640).probes(probes).build(), probes);
    }
    check!(SplitBlockBloomFilter::with_bitset_bytes(352), 8);
}
