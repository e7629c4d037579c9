//! The geometry of a filter: computed from the values given to a builder, in any layout.

use crate::builder::options::Builder;
use crate::builder::spec::{self, FilterSpec};
use crate::error::BuildError;
use crate::kernel::block::BLOCK_BYTES;
use crate::kernel::{AvailableKernel, Kernel};
use crate::layout::descriptor::SECTORIZED;
use crate::layout::model::Layout;
use crate::layout::params::{FilterParams, Geometry};
use crate::layout::storage::MAX_BLOCKS;
use crate::rate::fpr;

impl<F> Builder<F> {
    /// Returns the parameters for the values in a layout.
    pub(crate) fn params<L: Layout>(&self) -> Result<FilterParams, BuildError> {
        let &FilterSpec { keys, rate, ref key_name, .. } = &self.spec;
        if !spec::is_key_name(key_name) {
            return Err(BuildError::KeyName { bytes: key_name.len() });
        }
        let kernel = self.kernel.unwrap_or_else(Kernel::detect);
        let kernel = AvailableKernel::new(kernel).map_err(|_| BuildError::KernelUnavailable { kernel })?;
        let memory = self.memory.map(|bytes| bytes as u64);
        let geometry = SizeRequest { keys, rate, memory, probes: self.probes }.geometry::<L>(MAX_BLOCKS as u64)?;
        Ok(FilterParams { pages: self.pages, ..params_for::<L>(geometry, self.seed, kernel) })
    }

    /// Returns the keys and the rate of a filter of several parts, which alone determine its sizes.
    pub(crate) fn keys_and_rate<L: Layout>(&self) -> Result<(u64, f64), BuildError> {
        match (self.spec.keys, self.spec.rate, self.memory, self.probes) {
            // Reports errors in the values as given, before they are divided among the parts.
            (Some(keys), Some(rate), None, None) => self.params::<L>().map(|_| (keys, rate)),
            _ => Err(BuildError::NotKeysAndRate),
        }
    }
}

/// The values that determine a geometry.
#[derive(Clone, Copy)]
pub(crate) struct SizeRequest {
    pub(crate) keys: Option<u64>,
    pub(crate) rate: Option<f64>,
    /// Bytes.
    pub(crate) memory: Option<u64>,
    pub(crate) probes: Option<u32>,
}

impl SizeRequest {
    /// Returns the geometry for the values in a layout, if memory has room for `memory_blocks` blocks.
    pub(crate) fn geometry<L: Layout>(self, memory_blocks: u64) -> Result<Geometry, BuildError> {
        let Self { keys, rate, memory, probes } = self;
        if keys == Some(0) {
            return Err(BuildError::NoKeys);
        }
        if let Some(value) = rate
            && !(value > 0.0 && value < 1.0)
        {
            return Err(BuildError::Rate { value });
        }
        probes.map_or(Ok(()), check_probes::<L>)?;
        let max = max_blocks::<L>(memory_blocks);
        let units = memory.map(|bytes| units::<L>(bytes, max)).transpose()?;
        Ok(match (keys, rate, units, probes) {
            (_, _, Some(units), Some(probes)) => Geometry { units, probes },
            (None, Some(rate), Some(units), None) => {
                let capacity = |probes| (L::capacity(Geometry { units, probes }, rate), probes);
                match L::DESCRIPTOR.candidates(None).map(capacity).max() {
                    Some((1.., probes)) => Geometry { units, probes },
                    _ => min_geometry::<L>(1, rate, None, L::DESCRIPTOR.blocks(units))?,
                }
            }
            (Some(keys), Some(rate), ..) => {
                min_geometry::<L>(keys, rate, probes, units.map_or(max, |units| L::DESCRIPTOR.blocks(units)))?
            }
            (Some(keys), None, Some(units), None) => Geometry { units, probes: L::best_probes(units, keys) },
            _ => return Err(BuildError::Underspecified),
        })
    }
}

/// Returns the smallest geometry of at most `limit` blocks that keeps a rate, rounded up to fold if the layout does.
fn min_geometry<L: Layout>(keys: u64, rate: f64, probes: Option<u32>, limit: u64) -> Result<Geometry, BuildError> {
    let floor = fpr::collision_floor(keys);
    if rate <= floor {
        return Err(BuildError::RateUnreachable { value: rate, floor });
    }
    // Searches past the limit, to report how much would be needed.
    let unlimited = u64::MAX / (L::DESCRIPTOR.unit_bits / 8).max(1);
    let geometry = L::min_geometry(keys, rate, probes, unlimited);
    let blocks = geometry.map_or(u64::MAX, |geometry| L::DESCRIPTOR.blocks(geometry.units));
    let geometry = geometry.filter(|_| blocks <= limit).ok_or(too_large(blocks, limit))?;
    // If the layout folds, a unit is a block.
    Ok(if L::FOLDS { Geometry { units: foldable(geometry.units).min(limit), ..geometry } } else { geometry })
}

/// Returns the parameters of `units` units, at least 1, with the seed 0.
#[cfg(feature = "variants")]
pub(crate) fn exact_params<L: Layout>(units: u64, probes: u32) -> Result<FilterParams, BuildError> {
    check_probes::<L>(probes)?;
    let (blocks, limit) = (L::DESCRIPTOR.blocks(units), max_blocks::<L>(MAX_BLOCKS as u64));
    match units {
        0 => Err(BuildError::Memory { bytes: 0 }),
        _ if blocks > limit => Err(too_large(blocks, limit)),
        _ => Ok(params_for::<L>(Geometry { units, probes }, 0, AvailableKernel::detect())),
    }
}

fn params_for<L: Layout>(geometry: Geometry, seed: u64, kernel: AvailableKernel) -> FilterParams {
    // At most MAX_BLOCKS, which fits a usize.
    FilterParams::new(L::DESCRIPTOR.blocks(geometry.units) as usize, geometry, seed, kernel)
}

fn check_probes<L: Layout>(value: u32) -> Result<(), BuildError> {
    let layout = L::DESCRIPTOR;
    match layout.probes.contains(&value) {
        true => Ok(()),
        false if layout.id == SECTORIZED.id => Err(BuildError::Probes { value }),
        false => Err(BuildError::LayoutProbes { layout: layout.name, value, allowed: layout.allowed }),
    }
}

/// Returns the number of units that fit into the whole blocks of `bytes` bytes, at most `limit` blocks.
fn units<L: Layout>(bytes: u64, limit: u64) -> Result<u64, BuildError> {
    let blocks = bytes / BLOCK_BYTES as u64;
    if blocks > limit {
        return Err(BuildError::TooLarge { bytes, limit: fpr::block_bytes(limit) });
    }
    // Below 2^58 blocks.
    match (u128::from(blocks) * 512 / u128::from(L::DESCRIPTOR.unit_bits)) as u64 {
        // Less than one unit.
        0 => Err(BuildError::Memory { bytes: bytes as usize }),
        units => Ok(units),
    }
}

fn max_blocks<L: Layout>(memory_blocks: u64) -> u64 {
    L::DESCRIPTOR.blocks(L::DESCRIPTOR.max_units).min(memory_blocks)
}

fn too_large(blocks: u64, limit: u64) -> BuildError {
    BuildError::TooLarge { bytes: fpr::block_bytes(blocks), limit: fpr::block_bytes(limit) }
}

/// Rounds a number of blocks up so that it folds to between 128 and 256 blocks: adds at most 1/128.
fn foldable(blocks: u64) -> u64 {
    blocks.next_multiple_of(1 << (blocks / 128).max(1).ilog2())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::sectorized::Sectorized;

    fn builder() -> Builder<()> {
        Builder::new()
    }

    fn geometry(builder: Builder<()>) -> (usize, u32) {
        let params = builder.params::<Sectorized>().unwrap();
        (params.blocks, params.geometry.probes)
    }

    #[test]
    fn every_pair_of_values_gives_a_geometry() {
        // 10.1138 bits a key by the independent model's table.
        let (blocks, probes) = geometry(builder().expected_keys(10_000_000).false_positive_rate(0.01));
        assert_eq!(probes, 8);
        // The minimum, rounded up so that it folds ten times.
        let min = 10.1138 * 1e7 / 512.0;
        assert!(blocks % 1024 == 0 && (blocks as f64) > 0.9999 * min && (blocks as f64) < min + 1024.0, "{blocks}");

        let memory = blocks * 64;
        assert_eq!(geometry(builder().memory(memory).false_positive_rate(0.01)), (blocks, 8));
        assert_eq!(geometry(builder().memory(memory + 63).expected_keys(10_000_000)), (blocks, 8));
        assert_eq!(geometry(builder().memory(memory).probes(12)), (blocks, 12));
        // Four bits a key are best served by 4 probes, sixty by 16.
        assert_eq!(geometry(builder().memory(memory).expected_keys(25_000_000)).1, 4);
        assert_eq!(geometry(builder().memory(memory).expected_keys(1_600_000)).1, 16);
        assert_eq!(geometry(builder().memory(64).probes(4)), (1, 4));
        // The specification has no effect on a given size, be it too large or too small.
        assert_eq!(geometry(builder().memory(64).probes(4).false_positive_rate(1e-9)), (1, 4));
        for keys in [1, 10_000_000, 1_000_000_000] {
            let sized = builder().memory(memory).probes(12).expected_keys(keys);
            assert_eq!(geometry(sized.clone()), (blocks, 12));
            assert_eq!(geometry(sized.false_positive_rate(1e-6)), (blocks, 12));
        }
    }

    #[test]
    fn bad_values_are_named() {
        let error = |builder: Builder<()>| builder.params::<Sectorized>().unwrap_err();
        assert_eq!(error(builder()), BuildError::Underspecified);
        assert_eq!(error(builder().expected_keys(1)), BuildError::Underspecified);
        assert_eq!(error(builder().false_positive_rate(0.5)), BuildError::Underspecified);
        assert_eq!(error(builder().memory(64)), BuildError::Underspecified);
        assert_eq!(error(builder().expected_keys(0).false_positive_rate(0.5)), BuildError::NoKeys);
        for value in [0.0, -0.0, -1.0, 1.0, 1.5, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(error(builder().expected_keys(1).false_positive_rate(value)), BuildError::Rate { value });
        }
        let nan = error(builder().expected_keys(1).false_positive_rate(f64::NAN));
        assert!(matches!(nan, BuildError::Rate { value } if value.is_nan()));
        for value in [0, 1, 5, 20, u32::MAX] {
            assert_eq!(error(builder().memory(64).probes(value)), BuildError::Probes { value });
        }
        for bytes in [0, 63] {
            assert_eq!(error(builder().memory(bytes).expected_keys(1)), BuildError::Memory { bytes });
        }
        assert!(matches!(error(builder().memory(usize::MAX).probes(8)), BuildError::TooLarge { .. }));
        assert_eq!(
            error(builder().expected_keys(1 << 60).false_positive_rate(1e-3)),
            BuildError::RateUnreachable { value: 1e-3, floor: 0.0625 }
        );
        assert!(matches!(
            error(builder().expected_keys(1 << 62).false_positive_rate(0.25 + 1e-10)),
            BuildError::TooLarge { limit, .. } if limit == fpr::block_bytes(MAX_BLOCKS as u64)
        ));
    }

    #[test]
    fn a_memory_limit_below_the_need_reports_the_need() {
        let sized = builder().expected_keys(1000).false_positive_rate(0.01);
        let needed = sized.params::<Sectorized>().unwrap().blocks * 64;
        assert!(sized.clone().memory(needed).params::<Sectorized>().is_ok());
        let limit = needed as u64 - 64;
        assert_eq!(
            sized.memory(limit as usize).params::<Sectorized>().unwrap_err(),
            BuildError::TooLarge { bytes: needed as u64, limit }
        );
        assert!(matches!(
            builder().memory(64).false_positive_rate(1e-30).params::<Sectorized>(),
            Err(BuildError::RateUnreachable { .. })
        ));
    }
}
