//! Sizes and rates of all variants against the independent model.

use super::classic::Classic;
use super::counting::Counting;
use super::register::Register;
use super::split_block::SplitBlock;
use super::two_block::TwoBlocks;
use crate::builder::options::Builder;
use crate::builder::size::exact;
use crate::error::BuildError;
use crate::layout::params::Size;
use crate::layout::shape::Shape;

/// Rows of the independent model's table, tests/data/fpr.csv: k, bits a key, rate.
fn rows(kind: &str, layout: &str) -> Vec<(u32, f64, f64)> {
    let table = include_str!("../../tests/data/fpr.csv").lines().map(|line| line.split(',').collect::<Vec<_>>());
    let rows = table.filter(|fields| fields[..2] == [kind, layout]);
    let rows: Vec<_> = rows
        .map(|fields| (fields[2].parse().unwrap(), fields[3].parse().unwrap(), fields[4].parse().unwrap()))
        .collect();
    assert!(rows.len() >= 8, "no rows of {kind}, {layout}");
    rows
}

fn sized<S: Shape>(builder: Builder<()>) -> Result<Size, BuildError> {
    builder.params::<S>().map(|params| params.size())
}

fn for_rate<S: Shape>(keys: u64, rate: f64) -> Result<Size, BuildError> {
    sized::<S>(Builder::new().expected_keys(keys).false_positive_rate(rate))
}

fn for_memory<S: Shape>(bytes: usize, keys: u64) -> Result<Size, BuildError> {
    sized::<S>(Builder::new().memory(bytes).expected_keys(keys))
}

fn check<S: Shape>(layout: &str) {
    // So many that Binomial and Poisson loads agree.
    let keys = 1_000_000_000;
    for (probes, bits_per_key, expected) in rows("fpr_at_bits", layout) {
        let units = (keys as f64 * bits_per_key / S::FORMAT.unit_bits as f64) as u64;
        let got = S::rate(Size { units, probes }, keys);
        assert!((got / expected - 1.0).abs() < 1e-5, "{layout} {probes} {bits_per_key}: {got:e}, model {expected:e}");
    }
    for (probes, bits_per_key, target) in rows("best_for_target", layout) {
        if bits_per_key * 1e8 / 8.0 > isize::MAX as f64 {
            // A 32-bit machine cannot have such a filter, and names the limit.
            let refused = for_rate::<S>(100_000_000, target).unwrap_err();
            assert!(matches!(refused, BuildError::TooLarge { .. }), "{layout}, {target}: {refused}");
            continue;
        }
        let Size { units, probes: best } = for_rate::<S>(100_000_000, target).unwrap();
        let bits = units as f64 * S::FORMAT.unit_bits as f64 / 1e8;
        assert!(best == probes, "{layout}, {target}: {best} probes, model {probes}");
        assert!((bits / bits_per_key - 1.0).abs() < 1e-4, "{layout}, {target}: {bits} bits, model {bits_per_key}");
    }
}

#[test]
fn rates_and_sizes_match_the_independent_model() {
    check::<Classic>("classic");
    check::<SplitBlock>("split256");
    check::<Register>("word1");
    check::<TwoBlocks>("words4x2");
    check::<Counting>("counting");
}

fn is_least<S: Shape>() {
    for keys in [1, 100, 12_345, 1_000_000] {
        for target in [0.5, 0.01, 1e-4, 1e-6] {
            let Size { units, probes } = for_rate::<S>(keys, target).unwrap();
            let rate = |units| S::expected_fpr(Size { units, probes }, keys);
            assert!(rate(units) <= target, "{keys} {target}");
            assert!(units == 1 || rate(units - 1) > target, "{keys} {target}: {units} units, {probes} probes");
        }
    }
}

#[test]
fn a_size_is_the_least() {
    is_least::<Classic>();
    is_least::<SplitBlock>();
    is_least::<Register>();
    is_least::<TwoBlocks>();
    is_least::<Counting>();
}

#[test]
fn bad_values_are_named() {
    type S = Counting;
    assert_eq!(for_rate::<S>(0, 0.1), Err(BuildError::NoKeys));
    assert_eq!(for_rate::<S>(1, 1.0), Err(BuildError::Rate { value: 1.0 }));
    assert!(matches!(for_rate::<S>(1 << 60, 1e-3), Err(BuildError::RateUnreachable { .. })));
    assert!(matches!(for_rate::<S>(1 << 62, 0.3), Err(BuildError::TooLarge { .. })));
    assert_eq!(for_memory::<S>(1000, 0), Err(BuildError::NoKeys));
    assert_eq!(for_memory::<S>(127, 1), Err(BuildError::Memory { bytes: 127 }));
    assert!(matches!(for_memory::<S>(usize::MAX, 1), Err(BuildError::TooLarge { .. })));
    let probes = BuildError::LayoutProbes { layout: "counting", value: 5, allowed: "4, 8 or 16" };
    assert_eq!(sized::<S>(Builder::new().memory(128).probes(5)), Err(probes));
    assert!(matches!(exact::<SplitBlock>(1 << 33, 8), Err(BuildError::TooLarge { .. })));
}

/// A filter of one unit holds all keys in it: no mixture.
#[test]
fn one_key_in_one_unit() {
    let rate = |got: f64, expected: f64| assert!((got / expected - 1.0).abs() < 1e-12, "{got} {expected}");
    rate(SplitBlock::rate(Size { units: 1, probes: 8 }, 1), 32f64.powi(-8));
    rate(Counting::rate(Size { units: 1, probes: 16 }, 1), 16f64.powi(-16));
    // The probes fall on the key's two bits, or its one.
    let two = (2.0 / 64f64).powi(2) * 63.0 / 64.0 + 64f64.powi(-3);
    rate(Register::rate(Size { units: 1, probes: 2 }, 1), two);
    rate(Register::rate(Size { units: 1 << 40, probes: 2 }, 1), two * 2f64.powi(-40));
    assert_eq!(Register::rate(Size { units: 1, probes: 10 }, 0), 0.0);
    assert_eq!(Classic::rate(Size { units: 1, probes: 1 }, 1), 1.0);
    assert_eq!(Classic::rate(Size { units: 100, probes: 3 }, 0), 0.0);
}
