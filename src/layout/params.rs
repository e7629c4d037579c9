//! The validated parameters of a filter.

use crate::error::MergeError;
use crate::kernel::AvailableKernel;
use crate::layout::descriptor::LayoutDescriptor;
use crate::layout::storage::Pages;

/// A size in units of a layout, and the probes. Together they determine the bits of a hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Geometry {
    pub(crate) units: u64,
    pub(crate) probes: u32,
}

impl Geometry {
    /// Returns the size of the bits in bytes.
    pub(crate) fn bytes(self, layout: &LayoutDescriptor) -> u64 {
        // At most the blocks that 64 bits can address.
        (u128::from(self.units) * u128::from(layout.unit_bits)).div_ceil(8) as u64
    }

    /// Returns the fraction `ones` of all bits.
    pub(crate) fn fraction(self, layout: &LayoutDescriptor, ones: u64) -> f64 {
        ones as f64 / (self.units as f64 * layout.unit_bits as f64)
    }
}

/// The parameters of a filter. Filters of equal blocks, geometry and seed put a key in the same bits.
#[derive(Clone, Copy)]
#[cfg_attr(test, derive(Debug))] // It has the seed, which must not be printed.
pub(crate) struct FilterParams {
    pub(crate) blocks: usize,
    pub(crate) geometry: Geometry,
    pub(crate) seed: u64,
    pub(crate) kernel: AvailableKernel,
    pub(crate) pages: Pages,
}

impl FilterParams {
    /// Creates the parameters with pages of the default kind.
    pub(crate) fn new(blocks: usize, geometry: Geometry, seed: u64, kernel: AvailableKernel) -> Self {
        Self { blocks, geometry, seed, kernel, pages: Pages::default() }
    }

    /// Returns the same parameters with fewer blocks, for layouts whose unit is the block.
    pub(crate) fn folded(&self, levels: u32) -> Self {
        let blocks = self.blocks >> levels;
        Self { blocks, geometry: Geometry { units: blocks as u64, ..self.geometry }, ..*self }
    }

    /// Returns the number of folds of each filter until their parameters are equal: ours, theirs.
    pub(crate) fn folds_needed(&self, other: &Self) -> Result<(u32, u32), MergeError> {
        let levels = |from: usize, to: usize| (from / to).checked_ilog2().unwrap_or(0);
        let (ours, theirs) = (levels(self.blocks, other.blocks), levels(other.blocks, self.blocks));
        if self.blocks << theirs != other.blocks << ours {
            return Err(MergeError::Blocks { ours: self.blocks, theirs: other.blocks });
        }
        self.folded(ours).check_same(&other.folded(theirs)).map(|()| (ours, theirs))
    }

    pub(crate) fn check_same(&self, other: &Self) -> Result<(), MergeError> {
        if self.blocks != other.blocks {
            return Err(MergeError::Blocks { ours: self.blocks, theirs: other.blocks });
        }
        let (Geometry { units, probes }, theirs) = (self.geometry, other.geometry);
        if probes != theirs.probes {
            return Err(MergeError::Probes { ours: probes, theirs: theirs.probes });
        }
        if self.seed != other.seed {
            return Err(MergeError::Seed);
        }
        if units != theirs.units {
            return Err(MergeError::Units { ours: units, theirs: theirs.units });
        }
        Ok(())
    }
}
