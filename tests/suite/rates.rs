//! The rate asked for is the rate delivered: measured ÷ requested within 0.9 to 1.1.
//!
//! Seeds are fixed, so a test passes always or never. The comments state how likely a sound build passes with other seeds. Two
//! things scatter a measured rate. Hits are counted, so their relative deviation is 1 / √hits: 1.6 % for [`HITS`]. And filters
//! differ, because crowded blocks cause most of the false positives: by the deviation of the blocks' rates (a quarter of their
//! mean at 10 %, three times their mean at 1e-5) ÷ √blocks. Each case averages over filters until that is at most 1.4 %.
//! Together they are at most 2.1 %, so the band's 10 % are 4.8 deviations; 4.4 downwards at 10,000 keys, where whole blocks
//! take up to 2 % off the rate.
//!
//! The tests marked `ignore` are long: `cargo test --test suite -- rates:: --ignored`.

use bloomline::{AtomicBloomFilter, BloomFilter, Kernel, Key, ScalableBloomFilter};
use std::ops::Range;

/// The expected false positives of a measurement.
const HITS: f64 = 4000.0;

/// Distinct and random: the mixer of SplitMix64, a bijection.
fn random(i: u64) -> u64 {
    let i = i.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let i = (i ^ i >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let i = (i ^ i >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    i ^ i >> 31
}

/// Real addresses, made distinct.
fn url(i: u64) -> String {
    thread_local! {
        static HOMEPAGES: Vec<&'static str> = include_str!("../data/homepages.txt").lines().collect();
    }
    HOMEPAGES.with(|pages| format!("{}?{i}", pages[i as usize % pages.len()]))
}

/// A key with 56 common bytes, and 8 that differ.
fn prefixed(i: u64) -> [u8; 64] {
    let mut key = [b'/'; 64];
    key[56..].copy_from_slice(&i.to_be_bytes());
    key
}

/// Calls `each` with the keys of a range in batches, and room for their answers.
fn in_batches<K>(range: Range<u64>, key: impl Fn(u64) -> K, mut each: impl FnMut(&[K], &mut [bool])) {
    let mut answers = [false; 8192];
    let mut keys = Vec::with_capacity(answers.len());
    for start in range.clone().step_by(answers.len()) {
        keys.clear();
        keys.extend((start..range.end.min(start + answers.len() as u64)).map(&key));
        each(&keys, &mut answers[..keys.len()]);
    }
}

/// A measurement: `filters` filters with seeds of their own, built for `keys` keys at `rate` and filled with them.
#[derive(Clone, Copy, Debug)]
struct Case {
    keys: u64,
    rate: f64,
    filters: u64,
}

/// Cases that take seconds in all.
const FAST: [Case; 7] = [
    Case { keys: 1000, rate: 1e-3, filters: 256 },
    Case { keys: 10_000, rate: 1e-1, filters: 128 },
    Case { keys: 10_000, rate: 1e-2, filters: 128 },
    Case { keys: 10_000, rate: 1e-3, filters: 128 },
    Case { keys: 1_000_000, rate: 1e-1, filters: 1 },
    Case { keys: 1_000_000, rate: 1e-2, filters: 1 },
    Case { keys: 1_000_000, rate: 1e-3, filters: 1 },
];

/// Cases whose tests are ignored, because they take long.
const LONG: [Case; 4] = [
    Case { keys: 10_000, rate: 1e-4, filters: 128 },
    Case { keys: 1_000_000, rate: 1e-4, filters: 1 },
    Case { keys: 10_000_000, rate: 1e-2, filters: 1 },
    Case { keys: 10_000_000, rate: 1e-4, filters: 1 },
];

/// Measures with keys of one kind, `key` of 0, 1, 2, …, for these kernels and both types side by side.
fn check<K: Key>(kernels: &[Kernel], case: Case, key: impl Fn(u64) -> K) {
    let Case { keys, rate, filters } = case;
    let probes = (HITS / rate / filters as f64) as u64;
    let mut blocks = 0;
    let mut found = vec![[0; 2]; kernels.len()];
    for seed in 0..filters {
        let build = |&kernel: &Kernel| {
            let exclusive = BloomFilter::builder().expected_keys(keys).false_positive_rate(rate);
            let atomic = AtomicBloomFilter::builder().expected_keys(keys).false_positive_rate(rate);
            let exclusive = exclusive.seed(seed).kernel(kernel).build().unwrap();
            (exclusive, atomic.seed(seed).kernel(kernel).build().unwrap())
        };
        let mut both: Vec<(BloomFilter, AtomicBloomFilter)> = kernels.iter().map(build).collect();
        blocks = both[0].0.block_count();
        in_batches(0..keys, &key, |keys, new| {
            for (exclusive, atomic) in &mut both {
                exclusive.insert_batch(keys, new);
                atomic.insert_batch(keys, new);
            }
        });
        in_batches(keys..keys + probes, &key, |keys, answers| {
            for ((exclusive, atomic), found) in both.iter().zip(&mut found) {
                found[0] += exclusive.contains_batch(keys, answers);
                found[1] += atomic.contains_batch(keys, answers);
            }
        });
    }
    // Below a hundred blocks whole blocks round the size up, by up to 0.51 bits a key in the one case here. By tests/data/fpr.csv
    // two bits more take half off the rate at 14 bits a key, so this takes off up to 17 %.
    let min = if blocks < 100 { 0.9 * 0.83 } else { 0.9 };
    for (kernel, found) in kernels.iter().zip(found) {
        for (found, filter) in found.into_iter().zip(["exclusive", "atomic"]) {
            let ratio = found as f64 / (probes * filters) as f64 / rate;
            assert!((min..=1.1).contains(&ratio), "{kernel}, {filter}: {ratio:.3} times the rate of {case:?}");
        }
    }
}

/// For hashes that look random the kernels agree, as `random_keys` and the independent model below show. So one kernel suffices
/// to test the hash with other keys, and low rates.
fn one_kernel() -> [Kernel; 1] {
    [Kernel::detect()]
}

#[test]
fn random_keys() {
    let kernels: Vec<Kernel> = Kernel::available().collect();
    FAST.into_iter().for_each(|case| check(&kernels, case, random));
}

#[test]
fn sequential_keys() {
    FAST.into_iter().for_each(|case| check(&one_kernel(), case, |i| i));
}

#[test]
fn url_like_keys() {
    FAST.into_iter().for_each(|case| check(&one_kernel(), case, url));
}

#[test]
fn prefix_sharing_keys() {
    FAST.into_iter().for_each(|case| check(&one_kernel(), case, prefixed));
}

#[test]
#[ignore = "long"]
fn random_keys_at_low_rates() {
    LONG.into_iter().for_each(|case| check(&one_kernel(), case, random));
    check(&one_kernel(), Case { keys: 1_000_000, rate: 1e-5, filters: 1 }, random);
}

#[test]
#[ignore = "long"]
fn sequential_keys_at_low_rates() {
    LONG.into_iter().for_each(|case| check(&one_kernel(), case, |i| i));
}

#[test]
#[ignore = "long"]
fn url_like_keys_at_low_rates() {
    LONG.into_iter().for_each(|case| check(&one_kernel(), case, url));
}

#[test]
#[ignore = "long"]
fn prefix_sharing_keys_at_low_rates() {
    LONG.into_iter().for_each(|case| check(&one_kernel(), case, prefixed));
}

/// Keys that a careless use of the hash merges: short strings, short arrays, tuples that differ in one field, and
/// strings that carry a public word of wyhash, 16 bytes before their end.
#[test]
fn keys_that_trap_hashes() {
    const CASE: Case = Case { keys: 10_000, rate: 1e-2, filters: 128 };
    const PUBLIC: u64 = 0xE703_7ED1_A0B4_28DB;
    check(&one_kernel(), CASE, |i| format!("{i:x}"));
    check(&one_kernel(), CASE, |i| [i as u8, (i >> 8) as u8, (i >> 16) as u8]);
    check(&one_kernel(), CASE, |i| (i as u32, 0u8));
    check(&one_kernel(), CASE, |i| (0u8, i as u32));
    check(&one_kernel(), CASE, |i| ("key", i as u32, [0u8; 3]));
    check(&one_kernel(), CASE, |i| {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&i.to_le_bytes());
        key[16..24].copy_from_slice(&PUBLIC.to_le_bytes());
        key
    });
}

/// Rows of tests/data/fpr.csv, the table of an independent model: probes, bits a key, rate.
fn model_rates() -> Vec<(u32, f64, f64)> {
    let mut rows = Vec::new();
    for line in include_str!("../data/fpr.csv").lines() {
        if let ["fpr_at_bits", "words4", probes @ ("4" | "8" | "12" | "16"), bits, rate] =
            line.split(',').collect::<Vec<_>>()[..]
        {
            rows.push((probes.parse().unwrap(), bits.parse().unwrap(), rate.parse().unwrap()));
        }
    }
    assert_eq!(rows.len(), 44, "4 numbers of probes, 11 sizes");
    rows
}

/// Measured ÷ model within 7 %: the hits' deviation is 1.6 %, and the blocks' rates deviate by at most 2.9 times their
/// mean in these rows, so a filter's by 1.1 %. Together that is at most 1.9 %, so 7 % are three and a half deviations.
fn check_against_the_model(kernels: &[Kernel], rows: impl Iterator<Item = (u32, f64, f64)>) {
    for (row, (probes, bits, rate)) in rows.enumerate() {
        // A power of two, which leaves zeros at the end of the pattern's input, and an odd number.
        let blocks = [65_536, 65_539][row % 2];
        let keys = (blocks as f64 * 512.0 / bits) as u64;
        let build = |&kernel: &Kernel| {
            let builder = BloomFilter::builder().memory(blocks * 64).probes(probes).expected_keys(keys);
            builder.kernel(kernel).build().unwrap()
        };
        let mut filters: Vec<BloomFilter> = kernels.iter().map(build).collect();
        let start = (row as u64) << 40;
        in_batches(start..start + keys, random, |hashes, new| {
            filters.iter_mut().for_each(|filter| _ = filter.insert_hashes(hashes, new));
        });
        let trials = (HITS / rate) as u64;
        let mut found = vec![0; filters.len()];
        in_batches(start + keys..start + keys + trials, random, |hashes, answers| {
            for (filter, found) in filters.iter().zip(&mut found) {
                *found += filter.contains_hashes(hashes, answers);
            }
        });
        for (filter, found) in filters.iter().zip(found) {
            let ratio = found as f64 / trials as f64 / rate;
            let kernel = filter.kernel();
            assert!(
                (0.93..=1.07).contains(&ratio),
                "{kernel}: {ratio:.3} times {rate:e}, k {probes}, {bits} bits a key"
            );
        }
    }
}

#[test]
fn kernels_follow_the_independent_model() {
    let kernels: Vec<Kernel> = Kernel::available().collect();
    check_against_the_model(&kernels, model_rates().into_iter().filter(|&(.., rate)| rate >= 1e-4));
}

#[test]
#[ignore = "long"]
fn the_independent_model_is_followed_at_low_rates() {
    check_against_the_model(
        &one_kernel(),
        model_rates().into_iter().filter(|&(.., rate)| (1e-5..1e-4).contains(&rate)),
    );
}

/// Queries a filter of the keys below `keys` for absent keys. With given bits only the hits vary: five deviations.
#[track_caller]
fn check_current(current: f64, keys: u64, mut contains: impl FnMut(&[u64], &mut [bool]) -> usize) {
    let trials = (HITS / current) as u64;
    let mut found = 0;
    in_batches(keys..keys + trials, |i| i, |keys, answers| found += contains(keys, answers));
    let expected = trials as f64 * current;
    let deviation = (expected * (1.0 - current)).sqrt();
    assert!((found as f64 - expected).abs() < 5.0 * deviation, "{keys} keys: {found} hits, not {expected:.0}");
}

/// The model's rate for the number of keys, the rate of the very bits, and the measured rate agree.
#[test]
fn expected_current_and_measured_rates_agree() {
    for probes in [4, 8, 12, 16] {
        let mut filter: BloomFilter = BloomFilter::builder().memory(131_073 * 64).probes(probes).build().unwrap();
        let mut keys = 0;
        for bits in [20, 12, 8] {
            let more = 131_073 * 512 / bits;
            in_batches(keys..more, |i| i, |keys, new| _ = filter.insert_batch(keys, new));
            keys = more;

            // The blocks' rates deviate by at most 2.2 times their mean at these sizes, so a filter's by 0.6 %: five
            // deviations.
            let current = filter.current_fpr();
            let ratio = current / filter.expected_fpr(keys);
            assert!((0.97..=1.03).contains(&ratio), "k {probes}, {bits} bits a key: {ratio}");
            check_current(current, keys, |keys, found| filter.contains_batch(keys, found));
        }
        let (current, estimate) = (filter.current_fpr(), filter.estimated_keys());
        let atomic = AtomicBloomFilter::from(filter);
        assert_eq!((atomic.current_fpr(), atomic.estimated_keys()), (current, estimate));
    }
}

/// The rate that a scalable filter reports for its bits is the measured rate.
#[test]
fn the_current_rate_of_a_scalable_filter_is_measured() {
    let mut filter = ScalableBloomFilter::new(10_000, 0.05).unwrap();
    let mut keys = 0;
    for more in [8_000, 25_000, 140_000] {
        in_batches(keys..more, |i| i, |keys, new| _ = filter.insert_batch(keys, new));
        keys = more;
        check_current(filter.current_fpr(), keys, |keys, found| filter.contains_batch(keys, found));
    }
    assert_eq!(filter.stages().len(), 4);
}

/// The documented deviation: below 0.2 % from a million keys on.
#[test]
fn estimated_keys_keep_their_deviation() {
    const KEYS: u64 = 1_000_000;
    const FILTERS: u64 = 16;
    for rate in [1e-1, 1e-2, 1e-4, 1e-6] {
        let mut squares = 0.0;
        for seed in 0..FILTERS {
            let builder = BloomFilter::builder().expected_keys(KEYS).false_positive_rate(rate);
            let mut filter: BloomFilter = builder.seed(seed).build().unwrap();
            in_batches(0..KEYS, |i| i, |keys, new| _ = filter.insert_batch(keys, new));
            squares += (filter.estimated_keys() / KEYS as f64 - 1.0).powi(2);
        }
        let deviation = (squares / FILTERS as f64).sqrt();
        assert!(deviation < 0.002, "{deviation} at {rate}");
    }
}

/// The deviation of a single filter's rate as a fraction of the rate, times the root of its blocks, is as in docs/FPR.md.
/// Differences among the loads of blocks cause most of it (the first figure, by the model); differences among blocks of one
/// load cause the rest.
#[test]
fn a_single_filter_varies_by_its_number_of_blocks() {
    println!("rate, blocks: mean ÷ asked, deviation × √blocks, least and greatest of 400 ÷ asked");
    for (rate, from_loads, whole) in [(0.1, 0.024, 0.16), (0.01, 0.233, 0.33), (1e-3, 0.528, 0.62), (1e-4, 1.543, 1.6)]
    {
        for keys in [1000, 10_000] {
            let rates: Vec<f64> = (0..400)
                .map(|seed| {
                    let sized = BloomFilter::builder().expected_keys(keys).false_positive_rate(rate);
                    let mut filter = sized.seed(seed).build().unwrap();
                    filter.extend(0..keys);
                    filter.current_fpr() / rate
                })
                .collect();
            let blocks = BloomFilter::new(keys, rate).unwrap().block_count() as f64;
            let mean = rates.iter().sum::<f64>() / 400.0;
            let variance = rates.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>() / 399.0;
            let scaled = variance.sqrt() / mean * blocks.sqrt();
            let (min, max) = rates.iter().fold((f64::MAX, 0f64), |(a, b), &rate| (a.min(rate), b.max(rate)));
            println!("{rate}, {blocks}: {mean:.3}, {scaled:.3}, {min:.3} to {max:.3}");
            // The deviation of a deviation of 400 is 3.5 %; five of them.
            assert!(scaled > from_loads * 0.825 && scaled < whole * 1.175, "{rate} {blocks}: {scaled}");
        }
    }
}
