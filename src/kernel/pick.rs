//! Selects the hashes of a range from many: each thread of a bulk load finds its own in this way.
//!
//! It selects without a branch, which would be mispredicted often. AVX-512 moves the lanes of a mask to the front; AVX2 has a
//! table of permutations for that. Data written behind the picked hashes are overwritten by the next ones.

use super::AvailableKernel;
#[cfg(any(test, target_arch = "x86_64"))]
use super::Kernel;
#[cfg(target_arch = "x86_64")]
use core::arch::x86_64::*;

/// Copies the hashes from `min` to `max`, both included, to the start of `picked`, in order, and returns their number. The
/// contents of `picked` behind them are unspecified.
///
/// # Panics
/// If `picked` is shorter than `hashes`.
pub(crate) fn pick(kernel: AvailableKernel, hashes: &[u64], min: u64, max: u64, picked: &mut [u64]) -> usize {
    let picked = &mut picked[..hashes.len()];
    match kernel.kernel() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: an `AvailableKernel` exists only for a kernel that is available.
        Kernel::Avx2 => unsafe { avx2(hashes, min, max, picked) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: an `AvailableKernel` exists only for a kernel that is available.
        Kernel::Avx512 => unsafe { avx512(hashes, min, max, picked) },
        _ => portable(hashes, min, max, picked),
    }
}

fn portable(hashes: &[u64], min: u64, max: u64, picked: &mut [u64]) -> usize {
    let picked = &mut picked[..hashes.len()];
    let mut count = 0;
    let mut pick = |hash| {
        // SAFETY: at most as many were picked as hashes came before this one, and `picked` is as long as `hashes`.
        unsafe { *picked.get_unchecked_mut(count) = hash };
        count += usize::from((min..=max).contains(&hash));
    };
    // For a loop over single hashes, the loop's own instructions would be nearly half of all.
    let (fours, rest) = hashes.as_chunks::<4>();
    fours.iter().for_each(|&four| four.into_iter().for_each(&mut pick));
    rest.iter().for_each(|&hash| pick(hash));
    count
}

/// For each choice among four 64-bit lanes: the halves of the chosen lanes, in order.
#[cfg(target_arch = "x86_64")]
const HALVES: [[i32; 8]; 16] = {
    let mut halves = [[0; 8]; 16];
    let mut choice = 0;
    while choice < 16 {
        let (mut lane, mut to) = (0, 0);
        while lane < 4 {
            if choice >> lane & 1 == 1 {
                halves[choice][to] = 2 * lane;
                halves[choice][to + 1] = 2 * lane + 1;
                to += 2;
            }
            lane += 1;
        }
        choice += 1;
    }
    halves
};

/// Implements [`pick`] with AVX2. `picked` is as long as `hashes`.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn avx2(hashes: &[u64], min: u64, max: u64, picked: &mut [u64]) -> usize {
    // A hash is in the range if it is at most `max - min` above `min`. With the sign bit flipped, a signed comparison
    // orders as an unsigned one.
    const SIGN: u64 = 1 << 63;
    let start = _mm256_set1_epi64x((min ^ SIGN) as i64);
    let length = _mm256_set1_epi64x(((max - min) ^ SIGN) as i64);
    let (fours, rest) = hashes.as_chunks::<4>();
    let mut count = 0;
    for four in fours {
        // SAFETY: the four are 32 bytes; no alignment is required.
        let four = unsafe { _mm256_loadu_si256(four.as_ptr().cast()) };
        let elsewhere = _mm256_cmpgt_epi64(_mm256_sub_epi64(four, start), length);
        let here = (_mm256_movemask_pd(_mm256_castsi256_pd(elsewhere)) ^ 0b1111) as usize;
        // SAFETY: a row is 32 bytes; no alignment is required.
        let halves = unsafe { _mm256_loadu_si256(HALVES[here].as_ptr().cast()) };
        let chosen = _mm256_permutevar8x32_epi32(four, halves);
        // SAFETY: at most as many were picked as hashes came before these four, so `picked` has room for four.
        unsafe { _mm256_storeu_si256(picked.as_mut_ptr().add(count).cast(), chosen) };
        count += here.count_ones() as usize;
    }
    count + portable(rest, min, max, &mut picked[count..])
}

/// Implements [`pick`] with AVX-512. `picked` is as long as `hashes`.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn avx512(hashes: &[u64], min: u64, max: u64, picked: &mut [u64]) -> usize {
    let (start, end) = (_mm512_set1_epi64(min as i64), _mm512_set1_epi64(max as i64));
    let (eights, rest) = hashes.as_chunks::<8>();
    let mut count = 0;
    for eight in eights {
        // SAFETY: the eight are 64 bytes; no alignment is required.
        let eight = unsafe { _mm512_loadu_si512(eight.as_ptr().cast()) };
        let here = _mm512_mask_cmple_epu64_mask(_mm512_cmple_epu64_mask(start, eight), eight, end);
        // SAFETY: at most as many were picked as hashes came before these eight, so `picked` has room for eight.
        unsafe { _mm512_storeu_si512(picked.as_mut_ptr().add(count).cast(), _mm512_maskz_compress_epi64(here, eight)) };
        count += here.count_ones() as usize;
    }
    count + portable(rest, min, max, &mut picked[count..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{vec, vec::Vec};
    use wyhash::final3::wyrng;

    #[test]
    fn kernels_pick_the_hashes_of_the_range() {
        for kernel in Kernel::available() {
            let Ok(kernel) = AvailableKernel::new(kernel) else { panic!("{kernel} is available") };
            let mut state = 1;
            for length in (0..=40).chain([1000, 4096]) {
                let (first, second) = (wyrng(&mut state), wyrng(&mut state));
                let (min, max) = (first.min(second), first.max(second));
                for (min, max) in [(min, max), (0, max), (min, u64::MAX), (0, u64::MAX), (first, first), (0, 0)] {
                    check(kernel, length, min, max, &mut state);
                }
            }
        }
    }

    fn check(kernel: AvailableKernel, length: usize, min: u64, max: u64, state: &mut u64) {
        // Half of the hashes are at the ends of the range or beside them.
        let near = [min, min.wrapping_sub(1), max, max.wrapping_add(1)];
        let hash =
            |random: u64| if random.is_multiple_of(2) { random.rotate_left(32) } else { near[random as usize / 2 % 4] };
        let hashes: Vec<u64> = (0..length).map(|_| hash(wyrng(state))).collect();
        let expected: Vec<u64> = hashes.iter().copied().filter(|hash| (min..=max).contains(hash)).collect();
        // The most room that it needs, and a slot that it must not write to.
        let mut picked = vec![7; length + 1];
        let count = pick(kernel, &hashes, min, max, &mut picked);
        assert_eq!(picked[..count], expected, "{kernel:?}, {length} hashes, {min:x} to {max:x}");
        assert_eq!(picked[length], 7, "{kernel:?}, {length} hashes, {min:x} to {max:x}");
    }
}
