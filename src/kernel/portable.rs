//! The kernel for any CPU, on `wide`: SSE2 or NEON if that is the baseline, AVX2 if it is enabled at compile time.

use super::{KernelOps, KeyOp};
use crate::kernel::block::{Block, LANES, Pattern};
use wide::u64x4;

#[derive(Clone, Copy)]
pub(crate) struct Portable;

/// Runs the operation on one key.
#[inline]
pub(crate) fn run_single<O: KeyOp, const B: usize>(mut target: O::Target<'_>, hash: u64) -> bool {
    O::run(Portable, &mut target, hash, B)
}

/// Returns the words of the block that the pattern chooses, and its bits in them.
///
/// The choice and the shifts are scalar: no baseline vector unit has a gather, or a shift by a different count in each lane.
#[inline(always)]
fn words_and_masks(block: &Block, pattern: Pattern, b: usize) -> ([usize; LANES], u64x4, u64x4) {
    let chosen = pattern.words_and_masks(b);
    (
        chosen.map(|(word, _)| word),
        u64x4::new(chosen.map(|(word, _)| block.0[word])),
        u64x4::new(chosen.map(|(_, mask)| mask)),
    )
}

/// Returns true if a bit is set. A comparison of vectors may test one half and branch over the other, which is mispredicted
/// often.
#[inline(always)]
fn any(lanes: u64x4) -> bool {
    lanes.to_array().into_iter().fold(0, |any, lane| any | lane) != 0
}

impl KernelOps for Portable {
    #[inline(always)]
    fn contains(self, block: &Block, pattern: Pattern, b: usize) -> bool {
        let (_, words, masks) = words_and_masks(block, pattern, b);
        !any(masks & !words)
    }

    #[inline(always)]
    fn insert(self, block: &mut Block, pattern: Pattern, b: usize) -> bool {
        let (chosen, words, masks) = words_and_masks(block, pattern, b);
        let after = (words | masks).to_array();
        for lane in 0..LANES {
            block.0[chosen[lane]] = after[lane];
        }
        any(masks & !words)
    }
}
