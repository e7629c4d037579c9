//! Counts and rates of the bits that are set.

use crate::kernel::block::{LANES, WORDS};
#[cfg(feature = "file")]
use crate::kernel::{BatchOp, KernelOps};

/// Returns the mean of rates.
pub(crate) fn mean(rates: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = rates.fold((0.0, 0u64), |(sum, count), rate| (sum + rate, count + 1));
    sum / count as f64
}

/// Returns the exact chance that all bits of a random hash are set in these blocks: the mean over the blocks of the product over
/// the lanes of the mean over the two words of (set / 64)^b.
pub(crate) fn current_fpr(blocks: impl Iterator<Item = [u64; WORDS]>, probes: u32) -> f64 {
    let b = probes as usize / LANES;
    // (set / 64)^b / 2 for every count of set bits.
    let half_rate: [f64; 65] = core::array::from_fn(|set| (0..b).fold(0.5, |product, _| product * set as f64 / 64.0));
    let rate = |word: u64| half_rate[word.count_ones() as usize];
    mean(blocks.map(|words| (0..LANES).map(|lane| rate(words[lane]) + rate(words[lane + LANES])).product()))
}

/// Returns the number of bits set.
pub(crate) fn count_ones(blocks: impl Iterator<Item = [u64; WORDS]>) -> u64 {
    blocks.flatten().map(|word| u64::from(word.count_ones())).sum()
}

/// Counts the bits set in the bytes of a file. It is a [`BatchOp`] because most CPUs count far faster than the baseline of
/// x86-64 can.
#[cfg(feature = "file")]
pub(crate) struct CountOnes<'a>(pub(crate) &'a [[u8; 8]]);

#[cfg(feature = "file")]
impl BatchOp for CountOnes<'_> {
    type Output = u64;
    #[inline(always)]
    fn run<I: KernelOps, const B: usize>(self, _: I) -> u64 {
        self.0.iter().map(|word| u64::from(u64::from_ne_bytes(*word).count_ones())).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::block::Pattern;

    #[test]
    fn the_current_rate_is_the_hit_rate_of_random_patterns() {
        // A block with words of very different fill, probed by the specification with a million patterns.
        let words: [u64; WORDS] =
            core::array::from_fn(|i| if i == 3 { u64::MAX } else { (1u64 << (8 * i)) - 1 } | 0xFFFF_FF00);
        let mut state = 1u64;
        let (mut hits, trials) = (0, 1_000_000);
        for _ in 0..trials {
            let pattern = Pattern::new(wyhash::final3::wyrng(&mut state));
            let set = |(word, mask): (usize, u64)| words[word] & mask == mask;
            hits += u32::from(pattern.words_and_masks(2).into_iter().all(set));
        }
        let rate = current_fpr([words].into_iter(), 8);
        let sigma = (rate * (1.0 - rate) / f64::from(trials)).sqrt();
        let measured = f64::from(hits) / f64::from(trials);
        // Five sigma: a sound build fails once in two million seeds, and the seed is fixed.
        assert!((measured - rate).abs() < 5.0 * sigma, "{measured} {rate}");
        assert!(rate > 0.01 && rate < 0.5, "{rate}");
    }
}
