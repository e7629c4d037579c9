//! AVX2: the four lanes of a key in one 256-bit register.
//!
//! A pattern word is broadcast, each lane shifts its own 16 bits to the bottom, and a shift of 1 makes the bit. The
//! choice of the words is shifted to the sign bits, which steer a blend of the block's two halves.

use super::isa::RunKeyOp;
use super::x86::x86_kernel;
use super::{BatchOp, KernelFn, KernelOps, KeyOp};
use crate::kernel::block::{Block, LANES, Pattern};
use core::arch::x86_64::*;

x86_kernel!(Avx2, "avx2,bmi2", "AVX2 and BMI2");

/// Returns the choice of the words in the sign bits of the lanes, and the bits of the pattern in each lane.
#[inline]
#[target_feature(enable = "avx2")]
fn choice_and_masks(pattern: Pattern, b: usize) -> (__m256i, __m256i) {
    let bit = |word, start: [i64; 4]| {
        let position = _mm256_srlv_epi64(word, _mm256_setr_epi64x(start[0], start[1], start[2], start[3]));
        _mm256_sllv_epi64(_mm256_set1_epi64x(1), _mm256_and_si256(position, _mm256_set1_epi64x(63)))
    };
    let first = _mm256_set1_epi64x(pattern.first as i64);
    let mut masks = bit(first, [0, 16, 32, 48]);
    if b >= 2 {
        masks = _mm256_or_si256(masks, bit(first, [6, 22, 38, 54]));
    }
    if b >= 3 {
        let second = _mm256_set1_epi64x(pattern.second() as i64);
        masks = _mm256_or_si256(masks, bit(second, [0, 16, 32, 48]));
        if b >= 4 {
            masks = _mm256_or_si256(masks, bit(second, [6, 22, 38, 54]));
        }
    }
    (_mm256_sllv_epi64(first, _mm256_setr_epi64x(48, 32, 16, 0)), masks)
}

#[inline]
#[target_feature(enable = "avx2")]
fn contains(block: &Block, pattern: Pattern, b: usize) -> bool {
    let (choice, masks) = choice_and_masks(pattern, b);
    let halves: *const f64 = block.0.as_ptr().cast();
    // SAFETY: a block is 64 bytes aligned to 64, so both halves are in bounds and aligned to 32.
    let (lower, upper) = unsafe { (_mm256_load_pd(halves), _mm256_load_pd(halves.add(4))) };
    let chosen = _mm256_blendv_pd(lower, upper, _mm256_castsi256_pd(choice));
    _mm256_testc_si256(_mm256_castpd_si256(chosen), masks) == 1
}

#[inline]
#[target_feature(enable = "avx2")]
fn insert(block: &mut Block, pattern: Pattern, b: usize) -> bool {
    let (choice, masks) = choice_and_masks(pattern, b);
    let in_upper = _mm256_cmpgt_epi64(_mm256_setzero_si256(), choice);
    let lower_masks = _mm256_andnot_si256(in_upper, masks);
    let upper_masks = _mm256_and_si256(in_upper, masks);
    let halves: *mut __m256i = block.0.as_mut_ptr().cast();
    // SAFETY: a block is 64 bytes aligned to 64, so both halves are in bounds and aligned to 32.
    let (lower, upper) = unsafe { (_mm256_load_si256(halves), _mm256_load_si256(halves.add(1))) };
    // SAFETY: as for the loads; the block is borrowed exclusively.
    unsafe {
        _mm256_store_si256(halves, _mm256_or_si256(lower, lower_masks));
        _mm256_store_si256(halves.add(1), _mm256_or_si256(upper, upper_masks));
    }
    let missing = _mm256_or_si256(_mm256_andnot_si256(lower, lower_masks), _mm256_andnot_si256(upper, upper_masks));
    _mm256_testz_si256(missing, missing) == 0
}
