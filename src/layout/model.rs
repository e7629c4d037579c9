//! The mathematics of a layout, for any access: its names, its sizes and its rates.

use crate::kernel::block::WORDS;
use crate::layout::descriptor::LayoutDescriptor;
use crate::layout::params::Geometry;
use crate::rate::fpr;

/// The mathematics of a layout, for any access: its names, its sizes and its rates. Sizes count units, and a key's bits are in
/// one unit. A block holds a whole number of units, or a unit a whole number of blocks.
pub(crate) trait Layout {
    /// As in files: number, name, probes, unit.
    const DESCRIPTOR: &'static LayoutDescriptor;

    /// Returns the model's rate, for hashes of any length.
    fn rate(geometry: Geometry, keys: u64) -> f64;

    /// Returns the rate of the present bits, for keys with random hashes.
    fn current_fpr(geometry: Geometry, words: impl Iterator<Item = [u64; WORDS]>) -> f64;

    /// Returns the chance that a key sets a given bit of the whole filter.
    fn bit_probability(geometry: Geometry) -> f64;

    /// Returns the number of probes by which a kernel is chosen, for operations that use a kernel.
    fn dispatch_probes(_: Geometry) -> u32 {
        4
    }

    /// Merges a word of two filters.
    fn merge_words(ours: u64, theirs: u64) -> u64 {
        ours | theirs
    }

    /// True if a key's bits are the same in half as many blocks, and its block index is halved: see fold.rs.
    const FOLDS: bool = false;

    /// Returns the model's rate, with the rate of equal 64-bit hashes.
    fn expected_fpr(geometry: Geometry, keys: u64) -> f64 {
        (Self::rate(geometry, keys) + fpr::collision_floor(keys)).min(1.0)
    }

    /// Returns the geometry with the fewest units, at most `limit`, that keeps a rate: with the given probes, or with
    /// the best.
    fn min_geometry(keys: u64, rate: f64, given: Option<u32>, limit: u64) -> Option<Geometry> {
        let start = keys.saturating_mul(8) / Self::DESCRIPTOR.unit_bits;
        let with_probes = |probes| {
            let rate_with = |units| Self::expected_fpr(Geometry { units, probes }, keys);
            Some(Geometry { units: fpr::find_min(start, limit, rate, rate_with)?, probes })
        };
        Self::DESCRIPTOR.candidates(given).filter_map(with_probes).min_by_key(|geometry| geometry.units)
    }

    /// Returns the number of probes with the lowest rate for a size. Ties go to fewer probes.
    fn best_probes(units: u64, keys: u64) -> u32 {
        let rate = |&probes: &u32| Self::expected_fpr(Geometry { units, probes }, keys);
        let best = Self::DESCRIPTOR.candidates(None).min_by(|a, b| rate(a).total_cmp(&rate(b)));
        best.expect("a layout offers probes")
    }

    /// Returns the maximum number of keys that keeps a rate.
    fn capacity(geometry: Geometry, rate: f64) -> u64 {
        fpr::find_max(geometry.units, rate, |keys| Self::expected_fpr(geometry, keys))
    }
}
