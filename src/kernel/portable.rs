//! The kernel for any CPU: plain arithmetic, in vectors of SSE2 where the words and masks are combined.
//!
//! The choice of the words and the shifts are scalar: no baseline vector unit has a gather, or a shift by a different count in
//! each lane.

use super::{KernelOps, KeyOp};
use crate::kernel::block::{Block, LANES, Pattern};

#[derive(Clone, Copy)]
pub(crate) struct Portable;

/// Runs the operation on one key.
#[inline]
pub(crate) fn run_single<O: KeyOp, const B: usize>(mut target: O::Target<'_>, hash: u64) -> bool {
    O::run(Portable, &mut target, hash, B)
}

/// Sets the bits of the masks in the words. Returns the words, and true if a bit was clear.
///
/// With the scalar form below, which has as many instructions, single calls beyond the caches take ×1.2 to ×1.4 of the time
/// (Intel Xeon).
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
#[inline(always)]
fn set(words: [u64; LANES], masks: [u64; LANES]) -> ([u64; LANES], bool) {
    use core::arch::x86_64::*;
    // SAFETY: the instructions are enabled at compile time, for the whole program. Two vectors are as large as four words.
    unsafe {
        let vectors = |lanes: [u64; LANES]| core::mem::transmute::<[u64; LANES], [__m128i; 2]>(lanes);
        let ([words, more_words], [masks, more_masks]) = (vectors(words), vectors(masks));
        let after = [_mm_or_si128(words, masks), _mm_or_si128(more_words, more_masks)];
        let clear = _mm_or_si128(_mm_andnot_si128(words, masks), _mm_andnot_si128(more_words, more_masks));
        let none = _mm_movemask_epi8(_mm_cmpeq_epi8(clear, _mm_setzero_si128())) == 0xFFFF;
        (core::mem::transmute::<[__m128i; 2], [u64; LANES]>(after), !none)
    }
}

#[cfg(not(all(target_arch = "x86_64", target_feature = "sse2")))]
#[inline(always)]
fn set(words: [u64; LANES], masks: [u64; LANES]) -> ([u64; LANES], bool) {
    let clear = words.into_iter().zip(masks).fold(0, |clear, (word, mask)| clear | mask & !word);
    (core::array::from_fn(|lane| words[lane] | masks[lane]), clear != 0)
}

impl KernelOps for Portable {
    #[inline(always)]
    fn contains(self, block: &Block, pattern: Pattern, b: usize) -> bool {
        let chosen = pattern.words_and_masks(b);
        !set(chosen.map(|(word, _)| block.0[word]), chosen.map(|(_, mask)| mask)).1
    }

    #[inline(always)]
    fn insert(self, block: &mut Block, pattern: Pattern, b: usize) -> bool {
        let chosen = pattern.words_and_masks(b);
        let (after, new) = set(chosen.map(|(word, _)| block.0[word]), chosen.map(|(_, mask)| mask));
        for ((word, _), after) in chosen.into_iter().zip(after) {
            block.0[word] = after;
        }
        new
    }
}
