//! The size of a filter: by keys and rate, by bytes and keys, or by bytes and probes.

use super::shape::Shape;
use crate::block::BLOCK_BYTES;
use crate::error::{BuildError, MergeError};
use crate::file::Layout;
use crate::fpr;
use crate::kernel::Selected;
use crate::params::Params;
use crate::storage::MAX_BLOCKS;

/// A size in units of a layout, and the probes: what tells which bits are a hash's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) units: u64,
    pub(crate) probes: u32,
}

impl Size {
    /// The least that keeps a rate, over all numbers of probes.
    pub(crate) fn for_rate<S: Shape>(keys: u64, target: f64) -> Result<Self, BuildError> {
        check_keys(keys)?;
        if !(target > 0.0 && target < 1.0) {
            return Err(BuildError::Rate { value: target });
        }
        let floor = fpr::collision_floor(keys);
        if target <= floor {
            return Err(BuildError::RateUnreachable { value: target, floor });
        }
        let bits = S::LAYOUT.unit_bits;
        // Search past what memory there is, to say how much would be needed.
        let limit = S::LAYOUT.most_units.min(u64::MAX / bits);
        let least = |&probes: &u32| {
            let fits = |units| S::expected_fpr(Self { units, probes }, keys) <= target;
            Some(Self { units: fpr::least(keys.saturating_mul(8) / bits, limit, fits)?, probes })
        };
        let best = S::LAYOUT.probes.iter().filter_map(least).min_by_key(|size| size.units);
        let blocks = best.map_or(u64::MAX, |size| S::LAYOUT.blocks(size.units));
        best.filter(|_| blocks <= most_blocks::<S>())
            .ok_or(BuildError::TooLarge { bytes: fpr::bytes(blocks), limit: fpr::bytes(most_blocks::<S>()) })
    }

    /// The whole blocks in so many bytes, with the probes of the lowest rate.
    pub(crate) fn for_memory<S: Shape>(bytes: usize, keys: u64) -> Result<Self, BuildError> {
        check_keys(keys)?;
        let units = units::<S>(bytes)?;
        let rate = |&probes: &u32| S::expected_fpr(Self { units, probes }, keys);
        let best = S::LAYOUT.probes.iter().copied().min_by(|a, b| rate(a).total_cmp(&rate(b)));
        Ok(Self { units, probes: best.unwrap_or(S::LAYOUT.probes[0]) })
    }

    /// The whole blocks in so many bytes.
    pub(crate) fn with_probes<S: Shape>(bytes: usize, probes: u32) -> Result<Self, BuildError> {
        Self::exact::<S>(units::<S>(bytes)?, probes)
    }

    /// So many units, at least 1.
    pub(crate) fn exact<S: Shape>(units: u64, value: u32) -> Result<Self, BuildError> {
        if !S::LAYOUT.probes.contains(&value) {
            return Err(BuildError::LayoutProbes { layout: S::LAYOUT.name, value, allowed: S::LAYOUT.allowed });
        }
        let (blocks, limit) = (S::LAYOUT.blocks(units), most_blocks::<S>());
        match units {
            0 => Err(BuildError::Memory { bytes: 0 }),
            _ if blocks > limit => Err(BuildError::TooLarge { bytes: fpr::bytes(blocks), limit: fpr::bytes(limit) }),
            _ => Ok(Self { units, probes: value }),
        }
    }

    /// The geometry of its blocks, as files and merges have it.
    pub(crate) fn params(self, layout: &Layout) -> Params {
        // At most MAX_BLOCKS, which is a usize.
        let blocks = layout.blocks(self.units) as usize;
        Params { blocks, probes: self.probes, seed: 0, kernel: Selected::detect() }
    }

    /// The size of the bits in bytes.
    pub(crate) fn bytes(self, layout: &Layout) -> usize {
        // At most those of MAX_BLOCKS blocks, which are a usize.
        (u128::from(self.units) * u128::from(layout.unit_bits)).div_ceil(8) as usize
    }

    /// The share of all bits.
    pub(crate) fn share(self, layout: &Layout, ones: u64) -> f64 {
        ones as f64 / (self.units as f64 * layout.unit_bits as f64)
    }

    pub(crate) fn check_same(self, other: Self) -> Result<(), MergeError> {
        if self.units == other.units {
            return Ok(());
        }
        Err(MergeError::Units { ours: self.units, theirs: other.units })
    }
}

fn check_keys(keys: u64) -> Result<(), BuildError> {
    if keys == 0 { Err(BuildError::NoKeys) } else { Ok(()) }
}

fn most_blocks<S: Shape>() -> u64 {
    S::LAYOUT.blocks(S::LAYOUT.most_units).min(MAX_BLOCKS as u64)
}

/// The whole units in the whole blocks of so many bytes.
fn units<S: Shape>(bytes: usize) -> Result<u64, BuildError> {
    let (blocks, limit) = ((bytes / BLOCK_BYTES) as u64, most_blocks::<S>());
    if blocks > limit {
        return Err(BuildError::TooLarge { bytes: bytes as u64, limit: fpr::bytes(limit) });
    }
    // Below 2^58 blocks.
    match (u128::from(blocks) * 512 / u128::from(S::LAYOUT.unit_bits)) as u64 {
        0 => Err(BuildError::Memory { bytes }),
        units => Ok(units),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::variants::{
        ClassicBloomFilter, CountingBloomFilter, RegisterBloomFilter, SplitBlockBloomFilter, TwoBlockBloomFilter,
    };

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

    fn check<S: Shape>(layout: &str) {
        // As many that Binomial and Poisson loads agree.
        let keys = 1_000_000_000;
        for (probes, bits_per_key, expected) in rows("fpr_at_bits", layout) {
            let units = (keys as f64 * bits_per_key / S::LAYOUT.unit_bits as f64) as u64;
            let got = S::rate(Size { units, probes }, keys);
            assert!(
                (got / expected - 1.0).abs() < 1e-5,
                "{layout} {probes} {bits_per_key}: {got:e}, model {expected:e}"
            );
        }
        for (probes, bits_per_key, target) in rows("best_for_target", layout) {
            let Size { units, probes: best } = Size::for_rate::<S>(100_000_000, target).unwrap();
            let bits = units as f64 * S::LAYOUT.unit_bits as f64 / 1e8;
            assert!(best == probes, "{layout}, {target}: {best} probes, model {probes}");
            assert!((bits / bits_per_key - 1.0).abs() < 1e-4, "{layout}, {target}: {bits} bits, model {bits_per_key}");
        }
    }

    #[test]
    fn rates_and_sizes_match_the_independent_model() {
        check::<ClassicBloomFilter>("classic");
        check::<SplitBlockBloomFilter>("split256");
        check::<RegisterBloomFilter>("word1");
        check::<TwoBlockBloomFilter>("words4x2");
        check::<CountingBloomFilter>("counting");
    }

    fn is_least<S: Shape>() {
        for keys in [1, 100, 12_345, 1_000_000] {
            for target in [0.5, 0.01, 1e-4, 1e-6] {
                let Size { units, probes } = Size::for_rate::<S>(keys, target).unwrap();
                let rate = |units| S::expected_fpr(Size { units, probes }, keys);
                assert!(rate(units) <= target, "{keys} {target}");
                assert!(units == 1 || rate(units - 1) > target, "{keys} {target}: {units} units, {probes} probes");
            }
        }
    }

    #[test]
    fn a_size_is_the_least() {
        is_least::<ClassicBloomFilter>();
        is_least::<SplitBlockBloomFilter>();
        is_least::<RegisterBloomFilter>();
        is_least::<TwoBlockBloomFilter>();
        is_least::<CountingBloomFilter>();
    }

    #[test]
    fn bad_values_are_named() {
        type S = CountingBloomFilter;
        assert_eq!(Size::for_rate::<S>(0, 0.1), Err(BuildError::NoKeys));
        assert_eq!(Size::for_rate::<S>(1, 1.0), Err(BuildError::Rate { value: 1.0 }));
        assert!(matches!(Size::for_rate::<S>(1 << 60, 1e-3), Err(BuildError::RateUnreachable { .. })));
        assert!(matches!(Size::for_rate::<S>(1 << 60, 0.1), Err(BuildError::TooLarge { .. })));
        assert_eq!(Size::for_memory::<S>(1000, 0), Err(BuildError::NoKeys));
        assert_eq!(Size::for_memory::<S>(127, 1), Err(BuildError::Memory { bytes: 127 }));
        assert!(matches!(Size::for_memory::<S>(usize::MAX, 1), Err(BuildError::TooLarge { .. })));
        let probes = BuildError::LayoutProbes { layout: "counting", value: 5, allowed: "4, 8 or 16" };
        assert_eq!(Size::with_probes::<S>(128, 5), Err(probes));
        assert!(matches!(Size::exact::<SplitBlockBloomFilter>(1 << 33, 8), Err(BuildError::TooLarge { .. })));
    }

    /// A filter of one unit holds all keys in it: no mixture.
    #[test]
    fn one_key_in_one_unit() {
        let rate = |got: f64, expected: f64| assert!((got / expected - 1.0).abs() < 1e-12, "{got} {expected}");
        rate(SplitBlockBloomFilter::rate(Size { units: 1, probes: 8 }, 1), 32f64.powi(-8));
        rate(CountingBloomFilter::rate(Size { units: 1, probes: 16 }, 1), 16f64.powi(-16));
        // The probes fall on the key's two bits, or its one.
        let two = (2.0 / 64f64).powi(2) * 63.0 / 64.0 + 64f64.powi(-3);
        rate(RegisterBloomFilter::rate(Size { units: 1, probes: 2 }, 1), two);
        rate(RegisterBloomFilter::rate(Size { units: 1 << 40, probes: 2 }, 1), two * 2f64.powi(-40));
        assert_eq!(RegisterBloomFilter::rate(Size { units: 1, probes: 10 }, 0), 0.0);
        assert_eq!(ClassicBloomFilter::rate(Size { units: 1, probes: 1 }, 1), 1.0);
        assert_eq!(ClassicBloomFilter::rate(Size { units: 100, probes: 3 }, 0), 0.0);
    }
}
