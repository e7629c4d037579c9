//! The mathematics of the layout: the false-positive rate of a size, and the size for a rate.
//!
//! Everything follows from one model. `n` keys fall into `B` blocks at random, so the load of the block that a probe
//! looks at is Binomial(n, 1/B) (Poisson(n/B) in the limit). A block with `i` keys answers a new key with "seen" at
//! the rate g(i), and the filter's rate is the mixture Σ P(load = i) · g(i). The classic formula takes every block for
//! average; crowded blocks cost more than empty ones gain, so it promises too much (Putze, Sanders and Singler,
//! "Cache-, Hash- and Space-Efficient Bloom Filters", JEA 2009, section 3).

use crate::block::{BLOCK_BYTES, LANES, PROBES};
use alloc::vec::Vec;

/// g(i) for i = 0, 1, 2, …: the false-positive rate of a block that holds `i` keys, computed once and kept.
///
/// In one word of 64 bits, let t throws have landed. The chance that b uniform probe positions are all set is
///
/// ```text
/// h(t) = Σ_d S(b, d) · 64·63·…·(64-d+1) / 64^b · Σ_r (-1)^r C(d, r) (1 - r/64)^t      (S: Stirling, second kind)
/// ```
///
/// d being the number of distinct positions among the b, and the inner sum the inclusion-exclusion over which of them
/// are missed. Of the i keys in the block each uses a given word with chance 1/2 and then throws b bits, so t = b·j
/// with j ~ Binomial(i, 1/2), which turns each (1 - r/64)^t into ((1 + (1 - r/64)^b) / 2)^i: one power per r. The
/// words of the four lanes fill independently, hence g = (that sum)^4.
struct BlockRates {
    /// Factor of the r-th power in the sum.
    factors: [f64; 5],
    /// ((1 + (1 - r/64)^b) / 2), and its powers at the end of the table.
    bases: [f64; 5],
    powers: [f64; 5],
    rates: Vec<f64>,
}

impl BlockRates {
    fn new(probes: u32) -> Self {
        const STIRLING: [[f64; 5]; 5] = [
            [1.0, 0.0, 0.0, 0.0, 0.0],
            [0.0, 1.0, 0.0, 0.0, 0.0],
            [0.0, 1.0, 1.0, 0.0, 0.0],
            [0.0, 1.0, 3.0, 1.0, 0.0],
            [0.0, 1.0, 7.0, 6.0, 1.0],
        ];
        const CHOOSE: [[f64; 5]; 5] = [
            [1.0, 0.0, 0.0, 0.0, 0.0],
            [1.0, 1.0, 0.0, 0.0, 0.0],
            [1.0, 2.0, 1.0, 0.0, 0.0],
            [1.0, 3.0, 3.0, 1.0, 0.0],
            [1.0, 4.0, 6.0, 4.0, 1.0],
        ];
        let b = probes as usize / LANES;
        let power = |x: f64, n: usize| (0..n).fold(1.0, |product, _| product * x);
        let mut factors = [0.0; 5];
        for d in 1..=b {
            let falling: f64 = (0..d).map(|i| 64.0 - i as f64).product();
            let distinct = STIRLING[b][d] * falling / power(64.0, b);
            for (r, factor) in factors.iter_mut().enumerate().take(d + 1) {
                *factor += distinct * power(-1.0, r) * CHOOSE[d][r];
            }
        }
        let bases = [0, 1, 2, 3, 4].map(|r| (1.0 + power(1.0 - r as f64 / 64.0, b)) / 2.0);
        Self { factors, bases, powers: [1.0; 5], rates: Vec::new() }
    }

    fn get(&mut self, load: u64) -> f64 {
        let load = load as usize;
        while self.rates.len() <= load {
            let word: f64 = self.factors.iter().zip(&self.powers).map(|(f, p)| f * p).sum();
            // Rounding leaves a few 1e-17 of either sign where the exact sum is 0.
            let word = word.clamp(0.0, 1.0);
            self.rates.push(word * word * word * word);
            for (power, base) in self.powers.iter_mut().zip(&self.bases) {
                *power *= base;
            }
        }
        self.rates[load]
    }

    /// The rate of `blocks` blocks that hold `keys` keys.
    ///
    /// The Binomial weights are walked from the mode in both directions by their ratios and normalised by their sum:
    /// no factorials, no underflow, for one block and for a billion alike.
    fn mixture(&mut self, blocks: u64, keys: u64) -> f64 {
        // The weight relative to the mode at which the walk ends: below any rate asked for.
        const NEGLIGIBLE: f64 = 1e-30;
        // Past this load every bit is set: (1 - 1/128)^10000 = 1e-34.
        const SATURATED: u64 = 10_000;

        if keys / blocks > SATURATED {
            return 1.0;
        }
        if blocks == 1 {
            return self.get(keys);
        }
        let (n, odds) = (keys as f64, 1.0 / (blocks as f64 - 1.0));
        let mode = ((n + 1.0) / blocks as f64) as u64;
        let (mut weights, mut rate) = (1.0, self.get(mode));

        let (mut i, mut weight) = (mode, 1.0);
        while i < keys && weight > NEGLIGIBLE {
            weight *= (n - i as f64) / (i + 1) as f64 * odds;
            i += 1;
            weights += weight;
            rate += weight * self.get(i);
        }
        let (mut i, mut weight) = (mode, 1.0);
        while i > 0 && weight > NEGLIGIBLE {
            weight *= i as f64 / (n - i as f64 + 1.0) / odds;
            i -= 1;
            weights += weight;
            rate += weight * self.get(i);
        }
        rate / weights
    }
}

/// The chance that a new key shares its whole 64-bit hash with one of `keys` others.
pub(crate) fn collision_floor(keys: u64) -> f64 {
    keys as f64 / 18_446_744_073_709_551_616.0
}

/// The false-positive rate of `blocks` blocks with `probes` probes a key that hold `keys` distinct keys.
pub(crate) fn rate(blocks: u64, probes: u32, keys: u64) -> f64 {
    (BlockRates::new(probes).mixture(blocks, keys) + collision_floor(keys)).min(1.0)
}

/// The fewest blocks, up to `limit`, at which `keys` keys with `probes` probes stay at or below `target`.
pub(crate) fn blocks_for(keys: u64, probes: u32, target: f64, limit: u64) -> Option<u64> {
    let target = target - collision_floor(keys);
    let mut rates = BlockRates::new(probes);
    // A word of 64 bits for each key is above most answers; double from there.
    let mut high = (keys / 8).clamp(1, limit);
    while rates.mixture(high, keys) > target {
        if high == limit {
            return None;
        }
        high = high.saturating_mul(2).min(limit);
    }
    let mut low = 0;
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if rates.mixture(middle, keys) > target { low = middle } else { high = middle }
    }
    Some(high)
}

/// The number of probes that takes the fewest blocks for a rate, and those blocks; the fewer probes of equals.
pub(crate) fn best_for_rate(keys: u64, target: f64, limit: u64) -> Option<(u32, u64)> {
    PROBES
        .into_iter()
        .filter_map(|probes| Some((probes, blocks_for(keys, probes, target, limit)?)))
        .min_by_key(|&(_, blocks)| blocks)
}

/// The number of probes with the lowest rate for a size.
pub(crate) fn best_for_size(blocks: u64, keys: u64) -> u32 {
    let by_rate = |&a: &u32, &b: &u32| rate(blocks, a, keys).total_cmp(&rate(blocks, b, keys));
    PROBES.into_iter().min_by(by_rate).unwrap_or(PROBES[0])
}

/// The most keys that `blocks` blocks take before the rate passes `target`; 0 if one key is too many.
pub(crate) fn keys_for(blocks: u64, probes: u32, target: f64) -> u64 {
    let mut rates = BlockRates::new(probes);
    let mut fits = |keys: u64| rates.mixture(blocks, keys) + collision_floor(keys) <= target;
    let (mut low, mut high) = (0, blocks.saturating_mul(64));
    while fits(high) && high < u64::MAX {
        (low, high) = (high, high.saturating_mul(2));
    }
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if fits(middle) { low = middle } else { high = middle }
    }
    low
}

/// Distinct keys inserted, estimated from the share of bits that are set.
///
/// A key leaves a given bit of its block alone with chance 1 - q, where q = (1 - (63/64)^b) / 2, and finds the bit's
/// block with chance 1/B, so the expected share of zeros after n keys is exactly (1 - q/B)^n; solved for n.
/// (The form of Swamidass and Baldi, "Mathematical Correction for Fingerprint Similarity Measures", 2007, for this
/// layout.)
pub(crate) fn keys_from_fill(blocks: usize, probes: u32, fill: f64) -> f64 {
    let b = f64::from(probes) / LANES as f64;
    let touched = (1.0 - libm::pow(63.0 / 64.0, b)) / 2.0;
    libm::log1p(-fill) / libm::log1p(-touched / blocks as f64)
}

/// Bytes of so many blocks, saturating.
pub(crate) fn bytes(blocks: u64) -> u64 {
    blocks.saturating_mul(BLOCK_BYTES as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::String;

    /// Rows of the independent model's table: tests/data/fpr.csv, made by exact summation in another language.
    fn rows(kind: &str) -> Vec<(u32, f64, f64)> {
        let table = include_str!("../tests/data/fpr.csv");
        let mut rows = Vec::new();
        for line in table.lines() {
            let fields: Vec<&str> = line.split(',').collect();
            if fields[0] == kind && fields[1] == "words4" && fields[2] != "20" {
                rows.push((fields[2].parse().unwrap(), fields[3].parse().unwrap(), fields[4].parse().unwrap()));
            }
        }
        assert!(rows.len() >= 8, "no rows of {kind}");
        rows
    }

    #[test]
    fn rates_match_the_independent_model() {
        for (probes, bits_per_key, expected) in rows("fpr_at_bits") {
            // A billion keys: Binomial and Poisson agree to 1e-8.
            let keys = 1_000_000_000u64;
            let blocks = (keys as f64 * bits_per_key / 512.0) as u64;
            let got = BlockRates::new(probes).mixture(blocks, keys);
            assert!(
                (got / expected - 1.0).abs() < 1e-5,
                "k {probes}, {bits_per_key} bits: {got:e}, model {expected:e}"
            );
        }
    }

    #[test]
    fn sizes_and_probes_match_the_independent_model() {
        let keys = 100_000_000;
        for (probes, bits_per_key, target) in rows("best_for_target") {
            let (best, blocks) = best_for_rate(keys, target, u64::MAX / 64).unwrap();
            let bits = blocks as f64 * 512.0 / keys as f64;
            assert_eq!(best, probes, "k for {target}");
            assert!((bits / bits_per_key - 1.0).abs() < 1e-4, "{target}: {bits} bits a key, model {bits_per_key}");
        }
    }

    #[test]
    fn the_size_is_the_least_and_the_capacity_the_most() {
        for keys in [1, 2, 63, 1000, 12_345, 1_000_000] {
            for target in [0.5, 0.1, 0.01, 1e-4, 1e-6, 1e-9] {
                for probes in PROBES {
                    let blocks = blocks_for(keys, probes, target, 1 << 50).unwrap();
                    assert!(rate(blocks, probes, keys) <= target);
                    assert!(blocks == 1 || rate(blocks - 1, probes, keys) > target, "{keys} {target} {probes}");
                    let most = keys_for(blocks, probes, target);
                    assert!(most >= keys);
                    assert!(rate(blocks, probes, most + 1) > target);
                }
            }
        }
    }

    /// The model of a few blocks by brute force: the load of one block, by the definition of the Binomial.
    #[test]
    fn few_blocks_follow_the_binomial() {
        for (blocks, keys) in [(2u64, 30u64), (5, 100), (10, 400)] {
            for probes in PROBES {
                let mut rates = BlockRates::new(probes);
                let p = 1.0 / blocks as f64;
                let mut expected = 0.0;
                let mut choose = 1.0;
                for i in 0..=keys {
                    expected += choose * p.powi(i as i32) * (1.0 - p).powi((keys - i) as i32) * rates.get(i);
                    choose *= (keys - i) as f64 / (i + 1) as f64;
                }
                let got = rates.mixture(blocks, keys);
                assert!((got / expected - 1.0).abs() < 1e-9, "{blocks} {keys} {probes}: {got} {expected}");
            }
        }
    }

    #[test]
    fn extremes_stay_in_range() {
        let mut text = String::new();
        for (blocks, keys) in [(1, 0), (1, u64::MAX), (u64::MAX / 64, u64::MAX), (1 << 40, 1), (3, 10_000_000)] {
            for probes in PROBES {
                let rate = rate(blocks, probes, keys);
                assert!((0.0..=1.0).contains(&rate), "{text}");
                core::fmt::Write::write_fmt(&mut text, format_args!("{rate} ")).unwrap();
            }
        }
        assert_eq!(blocks_for(u64::MAX, 8, 0.01, 1 << 50), None);
    }

    #[test]
    fn estimate_inverts_the_expected_fill() {
        for probes in PROBES {
            // One key in one block: 4 words of 8, b throws in each.
            let b = probes as i32 / 4;
            let fill = (1.0 - (63.0f64 / 64.0).powi(b)) / 2.0;
            assert!((keys_from_fill(1, probes, fill) - 1.0).abs() < 1e-12);
        }
        assert_eq!(keys_from_fill(10, 8, 0.0), 0.0);
        assert_eq!(keys_from_fill(10, 8, 1.0), f64::INFINITY);
    }
}
