//! AVX-512 (F, VL, DQ): as AVX2, with rotates that need no masking of their counts, and the choice of the words in a
//! mask register, so that a blend is a masked load.

use super::{Isa, Task};
use crate::block::{Block, Pattern};
use core::arch::x86_64::*;

/// Proof that the CPU has AVX-512 F, VL and DQ, and BMI2: made only in [`run`].
#[derive(Clone, Copy)]
pub(crate) struct Avx512(());

/// Runs the task compiled for AVX-512.
///
/// # Safety
/// - The CPU must have AVX-512 F, VL and DQ, and BMI2.
#[target_feature(enable = "avx512f,avx512vl,avx512dq,bmi2")]
pub(crate) unsafe fn run<T: Task, const B: usize>(task: T) -> T::Output {
    task.run::<Avx512, B>(Avx512(()))
}

/// Which lanes use the upper word, and the bits of the pattern in each lane.
#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512dq")]
fn choice_and_masks<const B: usize>(pattern: Pattern) -> (__mmask8, __m256i) {
    let one = _mm256_set1_epi64x(1);
    let first = _mm256_cvtepi16_epi64(_mm_cvtsi64_si128(pattern.first as i64));
    // A rotate takes its count modulo 64.
    let mut masks = _mm256_rolv_epi64(one, first);
    if B >= 2 {
        masks = _mm256_or_si256(masks, _mm256_rolv_epi64(one, _mm256_srli_epi64::<6>(first)));
    }
    if B >= 3 {
        let second = _mm256_cvtepi16_epi64(_mm_cvtsi64_si128(pattern.second as i64));
        masks = _mm256_or_si256(masks, _mm256_rolv_epi64(one, second));
        if B >= 4 {
            masks = _mm256_or_si256(masks, _mm256_rolv_epi64(one, _mm256_srli_epi64::<6>(second)));
        }
    }
    (_mm256_movepi64_mask(first), masks)
}

/// The words that the choice picks, one a lane.
#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512dq")]
fn chosen_words(block: &Block, in_upper: __mmask8) -> __m256i {
    let words: *const i64 = block.0.as_ptr().cast();
    // SAFETY: a block is 64 bytes aligned to 64, so both halves are in bounds and aligned to 32.
    unsafe {
        let lower = _mm256_load_epi64(words);
        _mm256_mask_load_epi64(lower, in_upper, words.add(4))
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512dq")]
fn contains<const B: usize>(block: &Block, pattern: Pattern) -> bool {
    let (in_upper, masks) = choice_and_masks::<B>(pattern);
    _mm256_testc_si256(chosen_words(block, in_upper), masks) == 1
}

#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512dq")]
fn insert<const B: usize>(block: &mut Block, pattern: Pattern) -> bool {
    let (in_upper, masks) = choice_and_masks::<B>(pattern);
    let words = chosen_words(block, in_upper);
    if _mm256_testc_si256(words, masks) == 1 {
        return false;
    }
    let words = _mm256_or_si256(words, masks);
    let target: *mut i64 = block.0.as_mut_ptr().cast();
    // SAFETY: as in `chosen_words`; the block is borrowed exclusively.
    unsafe {
        _mm256_mask_store_epi64(target, !in_upper, words);
        _mm256_mask_store_epi64(target.add(4), in_upper, words);
    }
    true
}

impl Isa for Avx512 {
    #[inline(always)]
    fn contains<const B: usize>(self, block: &Block, pattern: Pattern) -> bool {
        // SAFETY: `self` exists, so the CPU has AVX-512: see `run`.
        unsafe { contains::<B>(block, pattern) }
    }

    #[inline(always)]
    fn insert<const B: usize>(self, block: &mut Block, pattern: Pattern) -> bool {
        // SAFETY: `self` exists, so the CPU has AVX-512: see `run`.
        unsafe { insert::<B>(block, pattern) }
    }
}
