//! AVX-512 (F, VL, DQ).
//!
//! A pattern word is broadcast, each lane shifts its own 16 bits to the bottom, and a rotate of 1 makes the bit: a rotate takes
//! its count modulo 64, so the bits above a position need no masking. A query works on the four chosen words in 256 bits, which
//! three vector units share on Intel's cores. An insert works on the whole block in 512 bits, to write it with one store.

use super::isa::RunKeyOp;
use super::x86::x86_kernel;
use super::{BatchOp, KernelFn, KernelOps, KeyOp};
use crate::kernel::block::{Block, LANES, Pattern};
use core::arch::x86_64::*;

x86_kernel!(Avx512, "avx512f,avx512vl,avx512dq,bmi2", "AVX-512 F, VL and DQ, and BMI2");

/// The bits of the first pattern word that choose the lanes' words.
const CHOICE: [i64; 4] = [1 << 15, 1 << 31, 1 << 47, 1 << 63];
/// The offsets of the lanes' first and second probe in a pattern word.
const PROBE: [[i64; 4]; 2] = [[0, 16, 32, 48], [6, 22, 38, 54]];

#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512dq")]
fn contains(block: &Block, pattern: Pattern, b: usize) -> bool {
    let lanes = |[a, b, c, d]: [i64; 4]| _mm256_setr_epi64x(a, b, c, d);
    let bit = |word, start| _mm256_rolv_epi64(_mm256_set1_epi64x(1), _mm256_srlv_epi64(word, lanes(start)));
    let first = _mm256_set1_epi64x(pattern.first as i64);
    let mut masks = bit(first, PROBE[0]);
    if b >= 2 {
        masks = _mm256_or_si256(masks, bit(first, PROBE[1]));
    }
    if b >= 3 {
        let second = _mm256_set1_epi64x(pattern.second() as i64);
        masks = _mm256_or_si256(masks, bit(second, PROBE[0]));
        if b >= 4 {
            masks = _mm256_or_si256(masks, bit(second, PROBE[1]));
        }
    }
    let in_upper = _mm256_test_epi64_mask(first, lanes(CHOICE));
    let words: *const i64 = block.0.as_ptr().cast();
    // SAFETY: a block is 64 bytes aligned to 64, so both halves are in bounds and aligned to 32.
    let chosen = unsafe { _mm256_mask_load_epi64(_mm256_load_epi64(words), in_upper, words.add(4)) };
    _mm256_testc_si256(chosen, masks) == 1
}

#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512dq")]
fn insert(block: &mut Block, pattern: Pattern, b: usize) -> bool {
    let lanes = |[a, b, c, d]: [i64; 4]| _mm512_setr_epi64(a, b, c, d, a, b, c, d);
    let bit = |word, start| _mm512_rolv_epi64(_mm512_set1_epi64(1), _mm512_srlv_epi64(word, lanes(start)));
    let first = _mm512_set1_epi64(pattern.first as i64);
    let mut masks = bit(first, PROBE[0]);
    if b >= 2 {
        masks = _mm512_or_si512(masks, bit(first, PROBE[1]));
    }
    if b >= 3 {
        let second = _mm512_set1_epi64(pattern.second() as i64);
        masks = _mm512_or_si512(masks, bit(second, PROBE[0]));
        if b >= 4 {
            masks = _mm512_or_si512(masks, bit(second, PROBE[1]));
        }
    }
    // Both halves hold the choice: its bit is clear for the lower word, and set for the upper one.
    let [a, b, c, d] = CHOICE;
    let (choice, of_word) = (_mm512_and_si512(first, lanes(CHOICE)), _mm512_setr_epi64(0, 0, 0, 0, a, b, c, d));
    let masks = _mm512_maskz_mov_epi64(_mm512_cmpeq_epi64_mask(choice, of_word), masks);
    let words: *mut __m512i = block.0.as_mut_ptr().cast();
    // SAFETY: a block is 64 bytes aligned to 64.
    let before = unsafe { _mm512_load_si512(words) };
    let after = _mm512_or_si512(before, masks);
    // SAFETY: as for the load; the block is borrowed exclusively.
    unsafe { _mm512_store_si512(words, after) };
    _mm512_cmpneq_epi64_mask(before, after) != 0
}
