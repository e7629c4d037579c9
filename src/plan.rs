//! `Plan`: what a filter would be, without its memory.

use crate::block::BLOCK_BYTES;
use crate::fpr;

/// The geometry of the filter that a [`Builder`](crate::Builder) would build, to know before there is memory for it:
/// see [`Builder::plan`](crate::Builder::plan).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    pub(crate) blocks: usize,
    pub(crate) probes: u32,
}

impl Plan {
    /// The number of blocks, 64 bytes each.
    pub fn block_count(&self) -> usize {
        self.blocks
    }

    /// The size of the bits in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.blocks * BLOCK_BYTES
    }

    /// Bits set for each key: 4, 8, 12 or 16.
    pub fn probes(&self) -> u32 {
        self.probes
    }

    /// The false-positive rate to expect once `keys` distinct keys are in: the model's, at any load.
    pub fn expected_fpr(&self, keys: u64) -> f64 {
        fpr::rate(self.blocks as u64, self.probes, keys)
    }

    /// The most distinct keys for which [`expected_fpr`](Self::expected_fpr) stays at or below
    /// `false_positive_rate`; 0 if one key is too many, and `u64::MAX` for a rate of 1 and more, which any number keeps.
    /// Takes microseconds.
    pub fn capacity(&self, false_positive_rate: f64) -> u64 {
        fpr::keys_for(self.blocks as u64, self.probes, false_positive_rate)
    }
}
