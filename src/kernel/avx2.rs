//! AVX2: the four lanes of a key in one 256-bit register.
//!
//! The 16 bits of each lane are widened to 64 with their sign, so that the choice of the word (bit 15) fills the upper
//! bits of its lane and steers a blend of the block's two halves.

use super::{Isa, Task};
use crate::block::{Block, Pattern};
use core::arch::x86_64::*;

/// Proof that the CPU has AVX2 and BMI2: made only in [`run`].
#[derive(Clone, Copy)]
pub(crate) struct Avx2(());

/// Runs the task compiled for AVX2.
///
/// # Safety
/// - The CPU must have AVX2 and BMI2.
#[target_feature(enable = "avx2,bmi2")]
pub(crate) unsafe fn run<T: Task, const B: usize>(task: T) -> T::Output {
    task.run::<Avx2, B>(Avx2(()))
}

/// The lanes of `first`, sign-extended, and the bits of the pattern in each lane.
#[inline]
#[target_feature(enable = "avx2")]
fn lanes_and_masks<const B: usize>(pattern: Pattern) -> (__m256i, __m256i) {
    let one = _mm256_set1_epi64x(1);
    let low6 = _mm256_set1_epi64x(63);
    let first = _mm256_cvtepi16_epi64(_mm_cvtsi64_si128(pattern.first as i64));
    let mut masks = _mm256_sllv_epi64(one, _mm256_and_si256(first, low6));
    if B >= 2 {
        let position = _mm256_and_si256(_mm256_srli_epi64::<6>(first), low6);
        masks = _mm256_or_si256(masks, _mm256_sllv_epi64(one, position));
    }
    if B >= 3 {
        let second = _mm256_cvtepi16_epi64(_mm_cvtsi64_si128(pattern.second as i64));
        masks = _mm256_or_si256(masks, _mm256_sllv_epi64(one, _mm256_and_si256(second, low6)));
        if B >= 4 {
            let position = _mm256_and_si256(_mm256_srli_epi64::<6>(second), low6);
            masks = _mm256_or_si256(masks, _mm256_sllv_epi64(one, position));
        }
    }
    (first, masks)
}

#[inline]
#[target_feature(enable = "avx2")]
fn contains<const B: usize>(block: &Block, pattern: Pattern) -> bool {
    let (lanes, masks) = lanes_and_masks::<B>(pattern);
    let halves: *const __m256i = block.0.as_ptr().cast();
    // SAFETY: a block is 64 bytes aligned to 64, so both halves are in bounds and aligned to 32.
    let (lower, upper) = unsafe { (_mm256_load_si256(halves), _mm256_load_si256(halves.add(1))) };
    let words = _mm256_blendv_pd(_mm256_castsi256_pd(lower), _mm256_castsi256_pd(upper), _mm256_castsi256_pd(lanes));
    _mm256_testc_si256(_mm256_castpd_si256(words), masks) == 1
}

#[inline]
#[target_feature(enable = "avx2")]
fn insert<const B: usize>(block: &mut Block, pattern: Pattern) -> bool {
    let (lanes, masks) = lanes_and_masks::<B>(pattern);
    let in_upper = _mm256_cmpgt_epi64(_mm256_setzero_si256(), lanes);
    let lower_masks = _mm256_andnot_si256(in_upper, masks);
    let upper_masks = _mm256_and_si256(in_upper, masks);
    let halves: *mut __m256i = block.0.as_mut_ptr().cast();
    // SAFETY: a block is 64 bytes aligned to 64, so both halves are in bounds and aligned to 32.
    let (lower, upper) = unsafe { (_mm256_load_si256(halves), _mm256_load_si256(halves.add(1))) };
    let lacking = _mm256_or_si256(_mm256_andnot_si256(lower, lower_masks), _mm256_andnot_si256(upper, upper_masks));
    if _mm256_testz_si256(lacking, lacking) == 1 {
        return false;
    }
    // SAFETY: as for the loads; the block is borrowed exclusively.
    unsafe {
        _mm256_store_si256(halves, _mm256_or_si256(lower, lower_masks));
        _mm256_store_si256(halves.add(1), _mm256_or_si256(upper, upper_masks));
    }
    true
}

impl Isa for Avx2 {
    #[inline(always)]
    fn contains<const B: usize>(self, block: &Block, pattern: Pattern) -> bool {
        // SAFETY: `self` exists, so the CPU has AVX2: see `run`.
        unsafe { contains::<B>(block, pattern) }
    }

    #[inline(always)]
    fn insert<const B: usize>(self, block: &mut Block, pattern: Pattern) -> bool {
        // SAFETY: `self` exists, so the CPU has AVX2: see `run`.
        unsafe { insert::<B>(block, pattern) }
    }
}
