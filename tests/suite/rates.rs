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

use bloomline::{AtomicBloomFilter, BloomFilter, Kernel, Key, KeyHasher, Keys, ScalableBloomFilter};
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
    HOMEPAGES.with(|pages| [pages[i as usize % pages.len()], "?", &i.to_string()].concat())
}

/// A key with 56 common bytes, and 8 that differ.
fn prefixed(i: u64) -> [u8; 64] {
    let mut key = [b'/'; 64];
    key[56..].copy_from_slice(&i.to_be_bytes());
    key
}

/// Keys that are generated, hashed and probed together.
const BATCH: usize = 8192;

/// A range in batches.
fn batches(range: Range<u64>) -> impl Iterator<Item = Range<u64>> {
    range.clone().step_by(BATCH).map(move |start| start..range.end.min(start + BATCH as u64))
}

/// The keys of a range. A plain loop, because the chain of an iterator's calls takes ten times as long without optimization.
fn keys_of<K>(range: Range<u64>, key: impl Fn(u64) -> K) -> Vec<K> {
    let mut keys = Vec::with_capacity((range.end - range.start) as usize);
    let mut i = range.start;
    while i < range.end {
        keys.push(key(i));
        i += 1;
    }
    keys
}

/// A measurement: `filters` filters with seeds of their own, built for `keys` keys at `rate` and filled with them.
#[derive(Clone, Copy, Debug)]
struct Case {
    keys: u64,
    rate: f64,
    filters: u64,
}

/// Cases that take seconds in all.
const FAST: [Case; 6] = [
    Case { keys: 1000, rate: 1e-3, filters: 256 },
    Case { keys: 10_000, rate: 1e-1, filters: 128 },
    Case { keys: 10_000, rate: 1e-2, filters: 128 },
    Case { keys: 10_000, rate: 1e-3, filters: 128 },
    Case { keys: 1_000_000, rate: 1e-1, filters: 1 },
    Case { keys: 1_000_000, rate: 1e-2, filters: 1 },
];

/// Cases whose tests are ignored, because they take long.
const LONG: [Case; 5] = [
    Case { keys: 10_000, rate: 1e-4, filters: 128 },
    Case { keys: 1_000_000, rate: 1e-3, filters: 1 },
    Case { keys: 1_000_000, rate: 1e-4, filters: 1 },
    Case { keys: 10_000_000, rate: 1e-2, filters: 1 },
    Case { keys: 10_000_000, rate: 1e-4, filters: 1 },
];

impl Case {
    fn probes(self) -> u64 {
        (HITS / self.rate / self.filters as f64) as u64
    }

    /// All keys of the case: first those in the filters, then the absent ones.
    fn range(self) -> Range<u64> {
        0..self.keys + self.probes()
    }
}

/// Measures with keys of one kind, `key` of 0, 1, 2, …, for these kernels and both types side by side. Filters with one seed
/// share the hashes of the keys.
fn check<K: Key>(kernels: &[Kernel], cases: &[Case], key: impl Fn(u64) -> K) {
    // Each case with each kernel, and the false positives of both types.
    let mut measured: Vec<(Case, Kernel, [usize; 2])> =
        cases.iter().flat_map(|&case| kernels.iter().map(move |&kernel| (case, kernel, [0; 2]))).collect();
    let build = |&(case, kernel, _): &(Case, Kernel, _), seed| {
        let exclusive = BloomFilter::builder().expected_keys(case.keys).false_positive_rate(case.rate);
        let atomic = AtomicBloomFilter::builder().expected_keys(case.keys).false_positive_rate(case.rate);
        let exclusive = exclusive.seed(seed).kernel(kernel).build().unwrap();
        let both = (exclusive, atomic.seed(seed).kernel(kernel).build().unwrap());
        (seed < case.filters).then_some(both)
    };
    let seeds = cases.iter().map(|case| case.filters).max().unwrap();
    // A row for each seed: the filters of all cases, except of those that have fewer seeds.
    let mut filters: Vec<Vec<Option<(BloomFilter, AtomicBloomFilter)>>> =
        (0..seeds).map(|seed| measured.iter().map(|case| build(case, seed)).collect()).collect();
    let (mut hashes, mut answers) = ([0; BATCH], [false; BATCH]);
    for batch in batches(0..cases.iter().map(|case| case.range().end).max().unwrap()) {
        let keys = keys_of(batch.clone(), &key);
        // The part of the batch in another range.
        let part = |range: Range<u64>| {
            let [start, end] =
                [range.start, range.end].map(|i| (i.clamp(batch.start, batch.end) - batch.start) as usize);
            start..end
        };
        for (filters, seed) in filters.iter_mut().zip(0..) {
            if cases.iter().all(|case| case.filters <= seed || part(case.range()).is_empty()) {
                continue;
            }
            let hashes = &mut hashes[..keys.len()];
            keys.hash_from(0, &KeyHasher::new(seed), hashes);
            for (filters, (case, _, found)) in filters.iter_mut().zip(&mut measured) {
                let Some((exclusive, atomic)) = filters else { continue };
                let (new, absent) = (&hashes[part(0..case.keys)], &hashes[part(case.keys..case.range().end)]);
                exclusive.insert_hashes(new, &mut answers[..new.len()]);
                atomic.insert_hashes(new, &mut answers[..new.len()]);
                found[0] += exclusive.contains_hashes(absent, &mut answers[..absent.len()]);
                found[1] += atomic.contains_hashes(absent, &mut answers[..absent.len()]);
            }
        }
    }
    for (case, kernel, found) in measured {
        let Case { keys, rate, filters } = case;
        // Below a hundred blocks whole blocks round the size up, by up to 0.51 bits a key in the one case here. By
        // tests/data/fpr.csv two bits more take half off the rate at 14 bits a key, so this takes off up to 17 %.
        let blocks = BloomFilter::new(keys, rate).unwrap().block_count();
        let min = if blocks < 100 { 0.9 * 0.83 } else { 0.9 };
        for (found, filter) in found.into_iter().zip(["exclusive", "atomic"]) {
            let ratio = found as f64 / (case.probes() * filters) as f64 / rate;
            assert!((min..=1.1).contains(&ratio), "{kernel}, {filter}: {ratio:.3} times the rate of {case:?}");
        }
    }
}

/// For hashes that look random the kernels agree, as `random_keys_keep_the_rate` and the independent model below show. So one
/// kernel suffices to test the hash with other keys, and low rates.
fn one_kernel() -> [Kernel; 1] {
    [Kernel::detect()]
}

#[test]
fn random_keys_keep_the_rate() {
    let kernels: Vec<Kernel> = Kernel::available().collect();
    check(&kernels, &FAST, random);
}

#[test]
fn sequential_keys_keep_the_rate() {
    check(&one_kernel(), &FAST, |i| i);
}

#[test]
fn url_like_keys_keep_the_rate() {
    check(&one_kernel(), &FAST, url);
}

#[test]
fn prefix_sharing_keys_keep_the_rate() {
    check(&one_kernel(), &FAST, prefixed);
}

#[test]
#[ignore = "long"]
fn random_keys_keep_low_rates() {
    check(&one_kernel(), &LONG, random);
    check(&one_kernel(), &[Case { keys: 1_000_000, rate: 1e-5, filters: 1 }], random);
}

#[test]
#[ignore = "long"]
fn sequential_keys_keep_low_rates() {
    check(&one_kernel(), &LONG, |i| i);
}

#[test]
#[ignore = "long"]
fn url_like_keys_keep_low_rates() {
    check(&one_kernel(), &LONG, url);
}

#[test]
#[ignore = "long"]
fn prefix_sharing_keys_keep_low_rates() {
    check(&one_kernel(), &LONG, prefixed);
}

/// Keys that a careless use of the hash merges: short strings, short arrays, tuples that differ in one field, and
/// strings that carry a public word of wyhash, 16 bytes before their end.
#[test]
fn keys_that_weak_hashes_merge_keep_the_rate() {
    const CASE: [Case; 1] = [Case { keys: 10_000, rate: 1e-2, filters: 128 }];
    const PUBLIC: u64 = 0xE703_7ED1_A0B4_28DB;
    check(&one_kernel(), &CASE, |i| format!("{i:x}"));
    check(&one_kernel(), &CASE, |i| [i as u8, (i >> 8) as u8, (i >> 16) as u8]);
    check(&one_kernel(), &CASE, |i| (i as u32, 0u8));
    check(&one_kernel(), &CASE, |i| (0u8, i as u32));
    check(&one_kernel(), &CASE, |i| ("key", i as u32, [0u8; 3]));
    check(&one_kernel(), &CASE, |i| {
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

/// Measured ÷ model within 7 %, for the rows with these rates. All filters share one stream of hashes. The hits' deviation is
/// 1.6 %. The blocks' rates deviate by at most 1.2 times their mean in the rows from 1e-3 on, and 2.9 times in the others, so a
/// filter's by 1.1 %. Together that is at most 1.9 %, so 7 % are three and a half deviations.
fn check_against_the_model(kernels: &[Kernel], rates: Range<f64>) {
    struct Row {
        name: String,
        rate: f64,
        filter: BloomFilter,
        keys: u64,
        trials: u64,
        found: usize,
    }
    let mut rows = Vec::new();
    for (row, (probes, bits, rate)) in model_rates().into_iter().enumerate().filter(|row| rates.contains(&row.1.2)) {
        // A power of two, which leaves zeros at the end of the pattern's input, and an odd number.
        let blocks = if rate >= 1e-3 { [16_384, 16_387] } else { [65_536, 65_539] }[row % 2];
        let keys = (blocks as f64 * 512.0 / bits) as u64;
        for &kernel in kernels {
            let builder = BloomFilter::builder().memory(blocks * 64).probes(probes).expected_keys(keys);
            let filter = builder.kernel(kernel).build().unwrap();
            let name = format!("{kernel}, k {probes}, {bits} bits a key");
            rows.push(Row { name, rate, filter, keys, trials: (HITS / rate) as u64, found: 0 });
        }
    }
    let mut answers = [false; BATCH];
    // The part of a batch below a row's end.
    let part = |batch: &Range<u64>, end: u64| (end.clamp(batch.start, batch.end) - batch.start) as usize;
    for batch in batches(0..rows.iter().map(|row| row.keys).max().unwrap()) {
        let hashes = keys_of(batch.clone(), random);
        for row in &mut rows {
            let hashes = &hashes[..part(&batch, row.keys)];
            row.filter.insert_hashes(hashes, &mut answers[..hashes.len()]);
        }
    }
    for batch in batches(0..rows.iter().map(|row| row.trials).max().unwrap()) {
        let hashes = keys_of(batch.start + (1 << 40)..batch.end + (1 << 40), random);
        for row in &mut rows {
            let hashes = &hashes[..part(&batch, row.trials)];
            row.found += row.filter.contains_hashes(hashes, &mut answers[..hashes.len()]);
        }
    }
    for Row { name, rate, trials, found, .. } in rows {
        let ratio = found as f64 / trials as f64 / rate;
        assert!((0.93..=1.07).contains(&ratio), "{name}: {ratio:.3} times {rate:e}");
    }
}

#[test]
fn kernels_follow_the_independent_model() {
    let kernels: Vec<Kernel> = Kernel::available().collect();
    check_against_the_model(&kernels, 1e-3..1.0);
    check_against_the_model(&one_kernel(), 1e-4..1e-3);
}

#[test]
#[ignore = "long"]
fn kernels_follow_the_independent_model_at_low_rates() {
    check_against_the_model(&one_kernel(), 1e-5..1e-4);
}

/// The hashes of a range of keys under seed 0, in batches.
fn hashes_in_batches(keys: Range<u64>, mut each: impl FnMut(&[u64], &mut [bool])) {
    let (hasher, mut hashes, mut answers) = (KeyHasher::new(0), [0; BATCH], [false; BATCH]);
    for batch in batches(keys) {
        let keys = keys_of(batch, |i| i);
        keys.hash_from(0, &hasher, &mut hashes[..keys.len()]);
        each(&hashes[..keys.len()], &mut answers[..keys.len()]);
    }
}

/// Queries filters of the keys below `keys` for absent keys. Each takes as many of the same absent keys as it needs. The bits are
/// fixed, so only the hits vary: five deviations.
#[track_caller]
fn check_current<F>(filters: &[F], keys: u64, current: fn(&F) -> f64, contains: fn(&F, &[u64], &mut [bool]) -> usize) {
    let trials: Vec<usize> = filters.iter().map(|filter| (HITS / current(filter)) as usize).collect();
    let (mut found, mut tried) = (vec![0; filters.len()], 0);
    hashes_in_batches(keys..keys + *trials.iter().max().unwrap() as u64, |hashes, answers| {
        for ((filter, found), trials) in filters.iter().zip(&mut found).zip(&trials) {
            let hashes = &hashes[..trials.saturating_sub(tried).min(hashes.len())];
            *found += contains(filter, hashes, &mut answers[..hashes.len()]);
        }
        tried += hashes.len();
    });
    for ((filter, found), trials) in filters.iter().zip(found).zip(trials) {
        let current = current(filter);
        let expected = trials as f64 * current;
        let deviation = (expected * (1.0 - current)).sqrt();
        assert!((found as f64 - expected).abs() < 5.0 * deviation, "{keys} keys: {found} hits, not {expected:.0}");
    }
}

/// The model's rate for the number of keys, the rate of the very bits, and the measured rate agree.
#[test]
fn expected_current_and_measured_rates_agree() {
    let build = |probes| BloomFilter::builder().memory(131_073 * 64).probes(probes).build().unwrap();
    let mut filters: [BloomFilter; 4] = [4, 8, 12, 16].map(build);
    let mut keys = 0;
    for bits in [20, 12, 8] {
        let more = 131_073 * 512 / bits;
        hashes_in_batches(keys..more, |hashes, new| {
            filters.iter_mut().for_each(|filter| _ = filter.insert_hashes(hashes, new));
        });
        keys = more;

        // The blocks' rates deviate by at most 2.2 times their mean at these sizes, so a filter's by 0.6 %: five
        // deviations.
        for filter in &filters {
            let ratio = filter.current_fpr() / filter.expected_fpr(keys);
            assert!((0.97..=1.03).contains(&ratio), "k {}, {bits} bits a key: {ratio}", filter.probes());
        }
        check_current(&filters, keys, BloomFilter::current_fpr, BloomFilter::contains_hashes);
    }
    for filter in filters {
        let (current, estimate) = (filter.current_fpr(), filter.estimated_keys());
        let atomic = AtomicBloomFilter::from(filter);
        assert_eq!((atomic.current_fpr(), atomic.estimated_keys()), (current, estimate));
    }
}

/// The rate that a scalable filter reports for its bits is the measured rate.
#[test]
fn the_current_rate_of_a_scalable_filter_matches_the_measured_rate() {
    let mut filters = [ScalableBloomFilter::new(10_000, 0.05).unwrap()];
    let mut keys = 0;
    for more in [8_000, 25_000, 140_000] {
        hashes_in_batches(keys..more, |hashes, new| _ = filters[0].insert_hashes(hashes, new));
        keys = more;
        check_current(&filters, keys, ScalableBloomFilter::current_fpr, ScalableBloomFilter::contains_hashes);
    }
    assert_eq!(filters[0].stages().len(), 4);
}

/// The documented deviation: below 0.2 % from a million keys on.
#[test]
fn estimated_keys_keep_their_deviation() {
    const KEYS: u64 = 1_000_000;
    const FILTERS: u64 = 16;
    let rates = [1e-1, 1e-2, 1e-4, 1e-6];
    let mut squares = [0.0; 4];
    for part in 0..FILTERS {
        let build = |rate| BloomFilter::builder().expected_keys(KEYS).false_positive_rate(rate).build().unwrap();
        let mut filters: [BloomFilter; 4] = rates.map(build);
        hashes_in_batches(part * KEYS..(part + 1) * KEYS, |hashes, new| {
            filters.iter_mut().for_each(|filter| _ = filter.insert_hashes(hashes, new));
        });
        for (squares, filter) in squares.iter_mut().zip(filters) {
            *squares += (filter.estimated_keys() / KEYS as f64 - 1.0).powi(2);
        }
    }
    for (rate, squares) in rates.into_iter().zip(squares) {
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
