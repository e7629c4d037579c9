//! NEON, which AArch64 has as its baseline.
//!
//! A query checks bytes instead of words. One look-up in the block, as a table of 64 bytes, yields a byte for each probe, and
//! another in a table of the powers of two yields the bits. So a vector, which has room for only two words, need not hold a
//! word for each lane. Inserts use the portable code, which is as fast by the estimates of llvm-mca (benches/mca.py).

use super::portable::Portable;
use super::{BatchOp, KernelOps, KeyOp};
use crate::kernel::block::{Block, Pattern};
use core::arch::aarch64::*;

/// Proof that the CPU has NEON: made only in [`run`] and [`run_single`].
#[derive(Clone, Copy)]
pub(crate) struct Neon(());

/// Runs the operation compiled for NEON.
///
/// # Safety
/// - The CPU must have NEON.
#[target_feature(enable = "neon")]
pub(crate) unsafe fn run<T: BatchOp, const B: usize>(op: T) -> T::Output {
    op.run::<Neon, B>(Neon(()))
}

/// Runs the operation on one key, compiled for NEON.
///
/// # Safety
/// - The CPU must have NEON.
#[inline]
#[target_feature(enable = "neon")]
pub(crate) unsafe fn run_single<O: KeyOp, const B: usize>(mut target: O::Target<'_>, hash: u64) -> bool {
    O::run(Neon(()), &mut target, hash, B)
}

/// Returns a vector of constant bytes.
#[inline]
#[target_feature(enable = "neon")]
fn bytes(bytes: [u8; 16]) -> uint8x16_t {
    // SAFETY: the array is 16 bytes; no alignment is required.
    unsafe { vld1q_u8(bytes.as_ptr()) }
}

#[inline]
#[target_feature(enable = "neon")]
fn contains(block: &Block, pattern: Pattern, b: usize) -> bool {
    let first = vdupq_n_u64(pattern.first);
    // The positions of the probes, a byte each: two of lane 0, two of lane 1 and so on, and then the second pattern word's.
    let words = vreinterpretq_u16_u64(if b > 2 { vsetq_lane_u64::<1>(pattern.second(), first) } else { first });
    let both = vsliq_n_u16::<8>(words, vshrq_n_u16::<6>(words));
    let positions = vandq_u8(vreinterpretq_u8_u16(both), vdupq_n_u8(63));
    let powers = bytes([1, 2, 4, 8, 16, 32, 64, 128, 0, 0, 0, 0, 0, 0, 0, 0]);
    let bits = vqtbl1q_u8(powers, vandq_u8(positions, vdupq_n_u8(7)));
    // The offsets of the words in the block, and a byte further for each eight bits of the position.
    let in_upper = vreinterpretq_u8_u16(vcltzq_s16(vreinterpretq_s16_u64(first)));
    let lanes = bytes([0, 0, 8, 8, 16, 16, 24, 24, 0, 0, 8, 8, 16, 16, 24, 24]);
    let offsets = vorrq_u8(vandq_u8(in_upper, vdupq_n_u8(32)), lanes);
    let offsets = vsraq_n_u8::<3>(offsets, positions);
    // SAFETY: a block is 64 bytes.
    let block = unsafe { vld1q_u8_x4(block.0.as_ptr().cast()) };
    let missing = vreinterpretq_u64_u8(vbicq_u8(bits, vqtbl4q_u8(block, offsets)));
    let (first, second) = (vgetq_lane_u64::<0>(missing), vgetq_lane_u64::<1>(missing));
    const ONE_A_LANE: u64 = 0x00FF_00FF_00FF_00FF;
    0 == match b {
        1 => first & ONE_A_LANE,
        2 => first,
        3 => first | second & ONE_A_LANE,
        _ => first | second,
    }
}

impl KernelOps for Neon {
    #[inline(always)]
    fn contains(self, block: &Block, pattern: Pattern, b: usize) -> bool {
        // SAFETY: `self` exists, so the CPU has NEON: see `run`.
        unsafe { contains(block, pattern, b) }
    }

    #[inline(always)]
    fn insert(self, block: &mut Block, pattern: Pattern, b: usize) -> bool {
        Portable.insert(block, pattern, b)
    }
}
