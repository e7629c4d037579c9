//! Sizes and rates of all variants against the independent model.

use super::classic::Classic;
use super::counting::Counting;
use super::register::Register;
use super::split_block::SplitBlock;
use super::two_block::TwoBlocks;
use crate::builder::geometry::exact_params;
use crate::builder::options::Builder;
use crate::error::BuildError;
use crate::layout::model::Layout;
use crate::layout::params::Geometry;

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

fn sized<L: Layout>(builder: Builder<()>) -> Result<Geometry, BuildError> {
    builder.params::<L>().map(|params| params.geometry)
}

fn for_rate<L: Layout>(keys: u64, rate: f64) -> Result<Geometry, BuildError> {
    sized::<L>(Builder::new().expected_keys(keys).false_positive_rate(rate))
}

fn for_memory<L: Layout>(bytes: usize, keys: u64) -> Result<Geometry, BuildError> {
    sized::<L>(Builder::new().memory(bytes).expected_keys(keys))
}

fn check<L: Layout>(layout: &str) {
    // Binomial and Poisson loads of this many keys agree.
    let keys = 1_000_000_000;
    for (probes, bits_per_key, expected) in rows("fpr_at_bits", layout) {
        let units = (keys as f64 * bits_per_key / L::DESCRIPTOR.unit_bits as f64) as u64;
        let computed = L::rate(Geometry { units, probes }, keys);
        assert!(
            (computed / expected - 1.0).abs() < 1e-5,
            "{layout} {probes} {bits_per_key}: {computed:e}, model {expected:e}"
        );
    }
    for (probes, bits_per_key, target) in rows("best_for_target", layout) {
        if bits_per_key * 1e8 / 8.0 > isize::MAX as f64 {
            // A 32-bit machine cannot have such a filter, and the error names the limit.
            let refused = for_rate::<L>(100_000_000, target).unwrap_err();
            assert!(matches!(refused, BuildError::TooLarge { .. }), "{layout}, {target}: {refused}");
            continue;
        }
        let Geometry { units, probes: best } = for_rate::<L>(100_000_000, target).unwrap();
        let bits = units as f64 * L::DESCRIPTOR.unit_bits as f64 / 1e8;
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

fn is_min<L: Layout>() {
    for keys in [1, 100, 12_345, 1_000_000] {
        for target in [0.5, 0.01, 1e-4, 1e-6] {
            let Geometry { units, probes } = for_rate::<L>(keys, target).unwrap();
            let rate = |units| L::expected_fpr(Geometry { units, probes }, keys);
            assert!(rate(units) <= target, "{keys} {target}");
            assert!(units == 1 || rate(units - 1) > target, "{keys} {target}: {units} units, {probes} probes");
        }
    }
}

#[test]
fn a_size_is_minimal() {
    is_min::<Classic>();
    is_min::<SplitBlock>();
    is_min::<Register>();
    is_min::<TwoBlocks>();
    is_min::<Counting>();
}

#[test]
fn bad_values_are_named() {
    type L = Counting;
    assert_eq!(for_rate::<L>(0, 0.1), Err(BuildError::NoKeys));
    assert_eq!(for_rate::<L>(1, 1.0), Err(BuildError::Rate { value: 1.0 }));
    assert!(matches!(for_rate::<L>(1 << 60, 1e-3), Err(BuildError::RateUnreachable { .. })));
    assert!(matches!(for_rate::<L>(1 << 62, 0.3), Err(BuildError::TooLarge { .. })));
    assert_eq!(for_memory::<L>(1000, 0), Err(BuildError::NoKeys));
    assert_eq!(for_memory::<L>(127, 1), Err(BuildError::Memory { bytes: 127 }));
    assert!(matches!(for_memory::<L>(usize::MAX, 1), Err(BuildError::TooLarge { .. })));
    let probes = BuildError::LayoutProbes { layout: "counting", value: 5, allowed: "4, 8 or 16" };
    assert_eq!(sized::<L>(Builder::new().memory(128).probes(5)), Err(probes));
    assert!(matches!(exact_params::<SplitBlock>(1 << 33, 8), Err(BuildError::TooLarge { .. })));
}

/// All keys are in the one unit, so the rate is not a mixture over loads.
#[test]
fn one_key_in_one_unit_has_the_exact_rate() {
    let rate =
        |computed: f64, expected: f64| assert!((computed / expected - 1.0).abs() < 1e-12, "{computed} {expected}");
    rate(SplitBlock::rate(Geometry { units: 1, probes: 8 }, 1), 32f64.powi(-8));
    rate(Counting::rate(Geometry { units: 1, probes: 16 }, 1), 16f64.powi(-16));
    // The probes fall on the key's two bits, or its one.
    let two_keys = (2.0 / 64f64).powi(2) * 63.0 / 64.0 + 64f64.powi(-3);
    rate(Register::rate(Geometry { units: 1, probes: 2 }, 1), two_keys);
    rate(Register::rate(Geometry { units: 1 << 40, probes: 2 }, 1), two_keys * 2f64.powi(-40));
    assert_eq!(Register::rate(Geometry { units: 1, probes: 10 }, 0), 0.0);
    assert_eq!(Classic::rate(Geometry { units: 1, probes: 1 }, 1), 1.0);
    assert_eq!(Classic::rate(Geometry { units: 100, probes: 3 }, 0), 0.0);
}
