//! The mathematics of the layout: the false-positive rate of a size, and the size for a rate.
//!
//! Everything follows from one model. `n` keys fall into `B` blocks at random, so the load of the block that a probe
//! looks at is Binomial(n, 1/B) (Poisson(n/B) in the limit). A block with `i` keys answers a new key with "seen" at
//! the rate g(i), and the filter's rate is the mixture Σ P(load = i) · g(i). The classic formula takes every block for
//! average; crowded blocks cost more than empty ones gain, so it promises too much (Putze, Sanders and Singler,
//! "Cache-, Hash- and Space-Efficient Bloom Filters", JEA 2009, section 3).

use crate::block::{BLOCK_BYTES, LANES, PROBES};
use alloc::{vec, vec::Vec};

/// g(i) for i = 0, 1, 2, …: the false-positive rate of a block that holds `i` keys, computed once and kept.
///
/// In one word of w bits, let t throws have landed. The chance that b uniform probe positions are all set is
///
/// ```text
/// h(t) = Σ_d S(b, d) · w·(w-1)·…·(w-d+1) / w^b · Σ_r (-1)^r C(d, r) (1 - r/w)^t      (S: Stirling, second kind)
/// ```
///
/// d being the number of distinct positions among the b, and the inner sum the inclusion-exclusion over which of them
/// are missed. Of the i keys in the block each uses a given word of a lane's c with chance 1/c and then throws b bits, so
/// t = b·j with j ~ Binomial(i, 1/c), which turns each (1 - r/w)^t into ((c - 1 + (1 - r/w)^b) / c)^i: one power per r.
/// The words of the lanes fill independently, hence g = (that sum)^lanes. The layout `words4` has 4 lanes of c = 2 words
/// of w = 64 bits; the variants have other numbers in the same formula.
pub(crate) struct BlockRates {
    lanes: u32,
    /// Factor of the r-th power in the sum.
    factors: Vec<f64>,
    /// ((c - 1 + (1 - r/w)^b) / c), and its powers at the end of the table.
    bases: Vec<f64>,
    powers: Vec<f64>,
    rates: Vec<f64>,
}

/// Where a key's bits lie in its block: `throws` bits in one of the `choices` words, of `bits` bits, of each lane.
#[derive(Clone, Copy)]
pub(crate) struct Lanes {
    pub(crate) lanes: u32,
    pub(crate) choices: u32,
    pub(crate) bits: u32,
    pub(crate) throws: u32,
}

impl Lanes {
    pub(crate) fn words4(probes: u32) -> Self {
        Self { lanes: LANES as u32, choices: 2, bits: 64, throws: probes / LANES as u32 }
    }

    /// The chance that a key sets a given bit of its block.
    pub(crate) fn touched(self) -> f64 {
        (1.0 - libm::pow(1.0 - 1.0 / f64::from(self.bits), f64::from(self.throws))) / f64::from(self.choices)
    }
}

impl BlockRates {
    pub(crate) fn new(Lanes { lanes, choices, bits, throws }: Lanes) -> Self {
        let (b, bits) = (throws as usize, f64::from(bits));
        let power = |x: f64, n: usize| (0..n).fold(1.0, |product, _| product * x);
        // Row by row: S(n, d) = d S(n-1, d) + S(n-1, d-1).
        let mut stirling = vec![0.0; b + 1];
        stirling[0] = 1.0;
        for _ in 0..b {
            for d in (1..=b).rev() {
                stirling[d] = d as f64 * stirling[d] + stirling[d - 1];
            }
            stirling[0] = 0.0;
        }
        let mut factors = vec![0.0; b + 1];
        for (d, ways) in stirling.iter().enumerate().skip(1) {
            let falling: f64 = (0..d).map(|i| bits - i as f64).product();
            let distinct = ways * falling / power(bits, b);
            let mut choose = 1.0;
            for (r, factor) in factors.iter_mut().enumerate().take(d + 1) {
                *factor += distinct * power(-1.0, r) * choose;
                choose *= (d - r) as f64 / (r + 1) as f64;
            }
        }
        let base = |r| (f64::from(choices) - 1.0 + power(1.0 - r as f64 / bits, b)) / f64::from(choices);
        let bases: Vec<f64> = (0..=b).map(base).collect();
        // No key, no false positive: rounding would leave some, which counts where nearly all blocks are empty.
        Self { lanes, factors, powers: bases.clone(), bases, rates: vec![0.0] }
    }

    fn get(&mut self, load: u64) -> f64 {
        let load = load as usize;
        while self.rates.len() <= load {
            let word: f64 = self.factors.iter().zip(&self.powers).map(|(f, p)| f * p).sum();
            // Rounding leaves a few 1e-17 of either sign where the exact sum is 0.
            let word = word.clamp(0.0, 1.0);
            self.rates.push((0..self.lanes).fold(1.0, |product, _| product * word));
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
    pub(crate) fn mixture(&mut self, blocks: u64, keys: u64) -> f64 {
        // The weight relative to the mode at which the walk ends: below any rate asked for.
        const NEGLIGIBLE: f64 = 1e-30;
        // Past this load every bit is set: (1 - 1/128)^10000 = 1e-34, and no layout has a cell that a key finds more rarely.
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
    (BlockRates::new(Lanes::words4(probes)).mixture(blocks, keys) + collision_floor(keys)).min(1.0)
}

/// The fewest blocks, up to `limit`, at which `keys` keys with `probes` probes stay at or below `target`.
pub(crate) fn blocks_for(keys: u64, probes: u32, target: f64, limit: u64) -> Option<u64> {
    let target = target - collision_floor(keys);
    let mut rates = BlockRates::new(Lanes::words4(probes));
    // A word of 64 bits for each key is above most answers.
    least(keys / 8, limit, |blocks| rates.mixture(blocks, keys) <= target)
}

/// The least number from 1 to `limit` that fits, where all above it do: doubles from `start`, then halves.
pub(crate) fn least(start: u64, limit: u64, mut fits: impl FnMut(u64) -> bool) -> Option<u64> {
    let mut high = start.clamp(1, limit);
    while !fits(high) {
        if high == limit {
            return None;
        }
        high = high.saturating_mul(2).min(limit);
    }
    let mut low = 0;
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if fits(middle) { high = middle } else { low = middle }
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
    if target >= 1.0 {
        return u64::MAX;
    }
    let mut rates = BlockRates::new(Lanes::words4(probes));
    most(blocks.saturating_mul(64), |keys| rates.mixture(blocks, keys) + collision_floor(keys) <= target)
}

/// The greatest number that fits, where all below it do: doubles from `start`, then halves; 0 if none does.
pub(crate) fn most(start: u64, mut fits: impl FnMut(u64) -> bool) -> u64 {
    let (mut low, mut high) = (0, start.max(1));
    while fits(high) && high < u64::MAX {
        (low, high) = (high, high.saturating_mul(2));
    }
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if fits(middle) { low = middle } else { high = middle }
    }
    low
}

/// The chance that a key sets a given bit of a filter.
///
/// A key leaves a given bit of its block alone with chance 1 - q, where q = (1 - (63/64)^b) / 2, and finds the bit's block
/// with chance 1/B.
pub(crate) fn touched(blocks: u64, probes: u32) -> f64 {
    Lanes::words4(probes).touched() / blocks as f64
}

/// Distinct keys inserted, estimated from the share of bits that are set, where a key sets a given bit of the whole
/// filter with chance `touched`.
///
/// The expected share of zeros after n keys is exactly (1 - touched)^n; solved for n. (The form of Swamidass and Baldi,
/// "Mathematical Correction for Fingerprint Similarity Measures", 2007, for these layouts.)
pub(crate) fn keys_from_zeros(fill: f64, touched: f64) -> f64 {
    libm::log1p(-fill) / libm::log1p(-touched)
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
            let got = BlockRates::new(Lanes::words4(probes)).mixture(blocks, keys);
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
    fn rates_that_are_none_have_capacities() {
        for probes in [4, 16] {
            assert_eq!([1.0, 7.0, f64::INFINITY].map(|rate| keys_for(3, probes, rate)), [u64::MAX; 3]);
            assert_eq!([0.0, -1.0, f64::NAN].map(|rate| keys_for(3, probes, rate)), [0; 3]);
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
                let mut rates = BlockRates::new(Lanes::words4(probes));
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
            assert!((keys_from_zeros(fill, touched(1, probes)) - 1.0).abs() < 1e-12);
        }
        assert_eq!(keys_from_zeros(0.0, touched(10, 8)), 0.0);
        assert_eq!(keys_from_zeros(1.0, touched(10, 8)), f64::INFINITY);
    }
}
