//! The validated geometry of a filter.

use crate::error::MergeError;
use crate::kernel::Selected;
use crate::layout::format::Format;
use crate::layout::storage::Pages;

/// A size in units of a layout, and the probes. Together they determine the bits of a hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) units: u64,
    pub(crate) probes: u32,
}

impl Size {
    /// The size of the bits in bytes.
    pub(crate) fn bytes(self, format: &Format) -> u64 {
        // At most the blocks that 64 bits can address.
        (u128::from(self.units) * u128::from(format.unit_bits)).div_ceil(8) as u64
    }

    /// The fraction `ones` of all bits.
    pub(crate) fn share(self, format: &Format, ones: u64) -> f64 {
        ones as f64 / (self.units as f64 * format.unit_bits as f64)
    }
}

/// The geometry of a filter. Filters of equal blocks, units, probes and seed put a key in the same bits.
#[derive(Clone, Copy)]
#[cfg_attr(test, derive(Debug))] // It has the seed, which no program is to print.
pub(crate) struct Params {
    pub(crate) blocks: usize,
    pub(crate) units: u64,
    pub(crate) probes: u32,
    pub(crate) seed: u64,
    pub(crate) kernel: Selected,
    pub(crate) pages: Pages,
}

impl Params {
    /// The geometry for a layout whose unit is the block.
    #[cfg(feature = "file")]
    pub(crate) fn new(blocks: usize, probes: u32, seed: u64, kernel: Selected) -> Self {
        Self { blocks, units: blocks as u64, probes, seed, kernel, pages: Pages::default() }
    }

    pub(crate) fn size(&self) -> Size {
        Size { units: self.units, probes: self.probes }
    }

    /// The same geometry in fewer blocks, for layouts whose unit is the block.
    pub(crate) fn folded(&self, times: u32) -> Self {
        let blocks = self.blocks >> times;
        Self { blocks, units: blocks as u64, ..*self }
    }

    /// Returns the number of folds of each filter until their geometries are equal: ours, theirs.
    pub(crate) fn folds_to_meet(&self, other: &Self) -> Result<(u32, u32), MergeError> {
        let times = |from: usize, to: usize| (from / to).checked_ilog2().unwrap_or(0);
        let (ours, theirs) = (times(self.blocks, other.blocks), times(other.blocks, self.blocks));
        if self.blocks << theirs != other.blocks << ours {
            return Err(MergeError::Blocks { ours: self.blocks, theirs: other.blocks });
        }
        self.folded(ours).check_same(&other.folded(theirs)).map(|()| (ours, theirs))
    }

    pub(crate) fn check_same(&self, other: &Self) -> Result<(), MergeError> {
        if self.blocks != other.blocks {
            return Err(MergeError::Blocks { ours: self.blocks, theirs: other.blocks });
        }
        if self.probes != other.probes {
            return Err(MergeError::Probes { ours: self.probes, theirs: other.probes });
        }
        if self.seed != other.seed {
            return Err(MergeError::Seed);
        }
        if self.units != other.units {
            return Err(MergeError::Units { ours: self.units, theirs: other.units });
        }
        Ok(())
    }
}
