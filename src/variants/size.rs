//! The size of a filter: by keys and rate, by bytes and keys, or by bytes and probes.

use crate::block::BLOCK_BYTES;
use crate::error::BuildError;
use crate::fpr;
use crate::kernel::Selected;
use crate::operations::Shape;
use crate::params::{Params, Size, Sizing};
use crate::storage::MAX_BLOCKS;

/// The geometry of a layout that has the crate's sizes: the seed is 0.
pub(super) fn params<S: Shape>(sizing: Sizing) -> Result<Params, BuildError> {
    Ok(geometry::<S>(match sizing {
        Sizing::Rate { keys, rate } => for_rate::<S>(keys, rate),
        Sizing::Memory { bytes, keys } => for_memory::<S>(bytes, keys),
    }?))
}

/// The geometry of a size.
fn geometry<S: Shape>(size: Size) -> Params {
    // At most MAX_BLOCKS, which is a usize.
    let blocks = S::FORMAT.blocks(size.units) as usize;
    Params { blocks, units: size.units, probes: size.probes, seed: 0, kernel: Selected::detect() }
}

/// The least that keeps a rate, over all numbers of probes.
pub(super) fn for_rate<S: Shape>(keys: u64, target: f64) -> Result<Size, BuildError> {
    check_keys(keys)?;
    if !(target > 0.0 && target < 1.0) {
        return Err(BuildError::Rate { value: target });
    }
    let floor = fpr::collision_floor(keys);
    if target <= floor {
        return Err(BuildError::RateUnreachable { value: target, floor });
    }
    let bits = S::FORMAT.unit_bits;
    // Search past what memory there is, to say how much would be needed.
    let limit = S::FORMAT.most_units.min(u64::MAX / bits);
    let least = |&probes: &u32| {
        let rate = |units| S::expected_fpr(Size { units, probes }, keys);
        Some(Size { units: fpr::least(keys.saturating_mul(8) / bits, limit, target, rate)?, probes })
    };
    let best = S::FORMAT.probes.iter().filter_map(least).min_by_key(|size| size.units);
    let blocks = best.map_or(u64::MAX, |size| S::FORMAT.blocks(size.units));
    best.filter(|_| blocks <= most_blocks::<S>())
        .ok_or(BuildError::TooLarge { bytes: fpr::bytes(blocks), limit: fpr::bytes(most_blocks::<S>()) })
}

/// The whole blocks in so many bytes, with the probes of the lowest rate.
pub(super) fn for_memory<S: Shape>(bytes: usize, keys: u64) -> Result<Size, BuildError> {
    check_keys(keys)?;
    let units = units::<S>(bytes)?;
    let rate = |&probes: &u32| S::expected_fpr(Size { units, probes }, keys);
    let best = S::FORMAT.probes.iter().copied().min_by(|a, b| rate(a).total_cmp(&rate(b)));
    Ok(Size { units, probes: best.unwrap_or(S::FORMAT.probes[0]) })
}

/// The whole blocks in so many bytes.
pub(super) fn with_probes<S: Shape>(bytes: usize, probes: u32) -> Result<Params, BuildError> {
    exact::<S>(units::<S>(bytes)?, probes)
}

/// So many units, at least 1.
pub(super) fn exact<S: Shape>(units: u64, value: u32) -> Result<Params, BuildError> {
    if !S::FORMAT.probes.contains(&value) {
        return Err(BuildError::LayoutProbes { layout: S::FORMAT.name, value, allowed: S::FORMAT.allowed });
    }
    let (blocks, limit) = (S::FORMAT.blocks(units), most_blocks::<S>());
    match units {
        0 => Err(BuildError::Memory { bytes: 0 }),
        _ if blocks > limit => Err(BuildError::TooLarge { bytes: fpr::bytes(blocks), limit: fpr::bytes(limit) }),
        _ => Ok(geometry::<S>(Size { units, probes: value })),
    }
}

fn check_keys(keys: u64) -> Result<(), BuildError> {
    if keys == 0 { Err(BuildError::NoKeys) } else { Ok(()) }
}

fn most_blocks<S: Shape>() -> u64 {
    S::FORMAT.blocks(S::FORMAT.most_units).min(MAX_BLOCKS as u64)
}

/// The whole units in the whole blocks of so many bytes.
fn units<S: Shape>(bytes: usize) -> Result<u64, BuildError> {
    let (blocks, limit) = ((bytes / BLOCK_BYTES) as u64, most_blocks::<S>());
    if blocks > limit {
        return Err(BuildError::TooLarge { bytes: bytes as u64, limit: fpr::bytes(limit) });
    }
    // Below 2^58 blocks.
    match (u128::from(blocks) * 512 / u128::from(S::FORMAT.unit_bits)) as u64 {
        0 => Err(BuildError::Memory { bytes }),
        units => Ok(units),
    }
}
