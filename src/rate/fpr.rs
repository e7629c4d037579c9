//! The mathematics of the layout: the false-positive rate of a size, and the size for a rate.
//!
//! In the model, `n` keys fall into `B` blocks at random, so the load of the block that a query reads is Binomial(n,
//! 1/B) (Poisson(n/B) in the limit). A block with `i` keys answers a new key with "seen" at the rate g(i), and the
//! filter's rate is the mixture Σ P(load = i) · g(i). The classic formula assumes that every block has the average
//! load. Crowded blocks cost more than empty ones gain, so its rate is too low (Putze, Sanders and Singler, "Cache-,
//! Hash- and Space-Efficient Bloom Filters", JEA 2009, section 3).

use crate::kernel::block::{BLOCK_BYTES, LANES, PROBES};
use alloc::vec::Vec;

/// The highest number of bits that a key throws into one word, in all layouts.
const MAX_THROWS: usize = 10;

/// The load beyond which every bit is assumed to be set. In any layout a key sets a given bit with a chance of 1/128 or
/// more, so the bit is clear with a chance of at most (1 - 1/128)^10000 = 1e-34.
pub(crate) const SATURATED: u64 = 10_000;

/// A number for each r from 0 to the maximum of throws.
pub(crate) type Terms = [f64; MAX_THROWS + 1];

/// g(i) for i = 0, 1, 2, …: the false-positive rate of a block that holds `i` keys, cached.
///
/// In one word of w bits, let t throws have landed. The chance that b uniform probe positions are all set is
///
/// ```text
/// h(t) = Σ_d S(b, d) · w·(w-1)·…·(w-d+1) / w^b · Σ_r (-1)^r C(d, r) (1 - r/w)^t      (S: Stirling, second kind)
/// ```
///
/// where d is the number of distinct positions among the b, and the inner sum is the inclusion-exclusion over the positions that
/// are missed. Each of the i keys in the block uses a given word, of the c words of a lane, with chance 1/c, and throws b bits, so
/// t = b·j with j ~ Binomial(i, 1/c), which turns each (1 - r/w)^t into ((c - 1 + (1 - r/w)^b) / c)^i: one power per r.
/// The words of the lanes fill independently, hence g = (that sum)^lanes. The layout `words4` has 4 lanes of c = 2 words
/// of w = 64 bits; the variants have other numbers in the same formula.
pub(crate) struct BlockRates {
    lanes: u32,
    throws: usize,
    /// Factor of the r-th power in the sum.
    factors: Terms,
    /// ((c - 1 + (1 - r/w)^b) / c), and its powers at the end of the table.
    bases: Terms,
    powers: Terms,
    rates: Vec<f64>,
}

/// The positions of a key's bits in its block: `throws` bits in one of the `choices` words, of `bits` bits, of each lane.
#[derive(Clone, Copy)]
pub(crate) struct Lanes {
    pub(crate) lanes: u32,
    pub(crate) choices: u32,
    pub(crate) bits: u32,
    pub(crate) throws: u32,
}

impl Lanes {
    pub(crate) fn sectorized(probes: u32) -> Self {
        Self { lanes: LANES as u32, choices: 2, bits: 64, throws: probes / LANES as u32 }
    }

    /// Returns the chance that a key sets a given bit of its block.
    pub(crate) fn bit_probability(self) -> f64 {
        (1.0 - libm::pow(1.0 - 1.0 / f64::from(self.bits), f64::from(self.throws))) / f64::from(self.choices)
    }
}

impl BlockRates {
    pub(crate) fn new(Lanes { lanes, choices, bits, throws }: Lanes) -> Self {
        let (b, bits) = (throws as usize, f64::from(bits));
        let factors = hit_factors(b, bits);
        let base = |r| (f64::from(choices) - 1.0 + power(1.0 - r as f64 / bits, b)) / f64::from(choices);
        let bases: Terms = core::array::from_fn(base);
        // A block without keys has no false positives. Rounding would leave some, which matters if nearly all blocks
        // are empty.
        let mut rates = Vec::with_capacity(256);
        rates.push(0.0);
        Self { lanes, throws: b, factors, powers: bases, bases, rates }
    }

    pub(crate) fn get(&mut self, load: u64) -> f64 {
        let load = load as usize;
        while self.rates.len() <= load {
            let terms = self.factors.iter().zip(&mut self.powers).zip(&self.bases).take(self.throws + 1);
            let word: f64 = terms
                .map(|((factor, power), base)| {
                    let term = factor * *power;
                    *power *= base;
                    term
                })
                .sum();
            // Rounding leaves a few 1e-17 of either sign if the exact sum is 0.
            let word = word.clamp(0.0, 1.0);
            self.rates.push((0..self.lanes).fold(1.0, |product, _| product * word));
        }
        self.rates[load]
    }

    /// Returns the rate of `blocks` blocks that hold `keys` keys.
    pub(crate) fn mixture(&mut self, blocks: u64, keys: u64) -> f64 {
        if keys / blocks > SATURATED {
            return 1.0;
        }
        let (mut weights, mut rate) = (0.0, 0.0);
        for_each_load(blocks, keys, |load, weight| {
            weights += weight;
            rate += weight * self.get(load);
        });
        rate / weights
    }
}

/// Returns the factors of the powers (1 - r/w)^t in the chance h(t) that `b` positions in a word of `bits` bits are all
/// set.
pub(crate) fn hit_factors(b: usize, bits: f64) -> Terms {
    // Row by row: S(n, d) = d S(n-1, d) + S(n-1, d-1).
    let mut stirling = Terms::default();
    stirling[0] = 1.0;
    for _ in 0..b {
        for d in (1..=b).rev() {
            stirling[d] = d as f64 * stirling[d] + stirling[d - 1];
        }
        stirling[0] = 0.0;
    }
    let mut factors = Terms::default();
    for (d, ways) in stirling.iter().enumerate().take(b + 1).skip(1) {
        let falling: f64 = (0..d).map(|i| bits - i as f64).product();
        let distinct = ways * falling / power(bits, b);
        let mut choose = 1.0;
        for (r, factor) in factors.iter_mut().enumerate().take(d + 1) {
            *factor += distinct * power(-1.0, r) * choose;
            choose *= (d - r) as f64 / (r + 1) as f64;
        }
    }
    factors
}

pub(crate) fn power(x: f64, n: usize) -> f64 {
    (0..n).fold(1.0, |product, _| product * x)
}

/// Calls `each` with the possible loads of one of `blocks` blocks that hold `keys` keys, and the weight of each load.
/// The chance of a load is its weight divided by the sum of all weights.
///
/// The weights of the Binomial are computed from the mode in both directions by their ratios, without factorials and
/// without underflow for any number of blocks.
#[inline]
pub(crate) fn for_each_load(blocks: u64, keys: u64, mut each: impl FnMut(u64, f64)) {
    // The last weight, relative to the mode: below any requested rate.
    const NEGLIGIBLE: f64 = 1e-30;

    if blocks == 1 {
        return each(keys, 1.0);
    }
    let (n, odds) = (keys as f64, 1.0 / (blocks as f64 - 1.0));
    let mode = ((n + 1.0) / blocks as f64) as u64;
    each(mode, 1.0);

    let (mut i, mut weight) = (mode, 1.0);
    while i < keys && weight > NEGLIGIBLE {
        weight *= (n - i as f64) / (i + 1) as f64 * odds;
        i += 1;
        each(i, weight);
    }
    let (mut i, mut weight) = (mode, 1.0);
    while i > 0 && weight > NEGLIGIBLE {
        weight *= i as f64 / (n - i as f64 + 1.0) / odds;
        i -= 1;
        each(i, weight);
    }
}

/// Returns the chance that a new key shares its whole 64-bit hash with one of `keys` others.
pub(crate) fn collision_floor(keys: u64) -> f64 {
    keys as f64 / 18_446_744_073_709_551_616.0
}

/// Returns the false-positive rate of `blocks` blocks with `probes` probes a key that hold `keys` distinct keys.
pub(crate) fn rate(blocks: u64, probes: u32, keys: u64) -> f64 {
    (BlockRates::new(Lanes::sectorized(probes)).mixture(blocks, keys) + collision_floor(keys)).min(1.0)
}

/// Returns the false-positive rate of a filter to which `new` keys were new; keys that were reported as seen are not
/// counted. It is higher than the rate of as many distinct keys, because each new key has set a bit.
///
/// Of N distinct keys N - Σ f(i) are new, i from 0 to N - 1, where f(i) is the rate with i of them. So the rate is f(N), where N
/// is the solution of N = new + Σ f(i).
pub(crate) fn rate_of_new(blocks: u64, probes: u32, new: u64) -> f64 {
    /// Each round reduces the error to a fraction f(N) of it.
    const ROUNDS: u32 = 8;
    let mut rates = BlockRates::new(Lanes::sectorized(probes));
    // Interpolates between whole numbers of keys, which matters if there are few.
    let mut rate = |keys: f64| {
        let (whole_keys, fraction) = (keys as u64, keys - (keys as u64) as f64);
        (1.0 - fraction) * rates.mixture(blocks, whole_keys)
            + fraction * rates.mixture(blocks, whole_keys.saturating_add(1))
    };
    let mut keys = new as f64;
    for _ in 0..ROUNDS {
        // Simpson's rule over four parts; the first begins at a rate of 0.
        let sum = 4.0 * rate(0.25 * keys) + 2.0 * rate(0.5 * keys) + 4.0 * rate(0.75 * keys) + rate(keys);
        keys = new as f64 + keys / 12.0 * sum;
    }
    (rate(keys) + collision_floor(new)).min(1.0)
}

/// Returns the fewest blocks, up to `limit`, at which `keys` keys with `probes` probes stay at or below `target`; tries
/// `start` first.
fn blocks_from(start: u64, keys: u64, probes: u32, target: f64, limit: u64) -> Option<u64> {
    let mut rates = BlockRates::new(Lanes::sectorized(probes));
    find_min(start, limit, target - collision_floor(keys), |blocks| rates.mixture(blocks, keys))
}

/// Returns the fewest blocks, up to `limit`, at which `keys` keys with `probes` probes stay at or below `target`.
pub(crate) fn blocks_for(keys: u64, probes: u32, target: f64, limit: u64) -> Option<u64> {
    blocks_from((keys as f64 * likely_blocks(target)) as u64, keys, probes, target, limit)
}

/// Estimates the blocks per key that the best number of probes takes, fitted to its results at rates down to 1e-9.
fn likely_blocks(target: f64) -> f64 {
    let halvings = -libm::log2(target);
    halvings * (1.45 + 0.0015 * halvings * halvings) / 512.0
}

/// Returns the number of probes that takes the fewest blocks for a rate, and those blocks. Ties go to fewer probes.
pub(crate) fn best_for_rate(keys: u64, target: f64, limit: u64) -> Option<(u32, u64)> {
    // The likely best comes first. For each of the others, one check then shows that it is not better.
    let likely = (0.5 - libm::log2(target)) as u32;
    let mut order = PROBES;
    order.sort_by_key(|probes| probes.abs_diff(likely));
    let mut best = None;
    for probes in order {
        let (start, limit) = match best {
            None => ((keys as f64 * likely_blocks(target)) as u64, limit),
            Some((better, blocks)) => [blocks - u64::from(probes > better); 2].into(),
        };
        best = blocks_from(start, keys, probes, target, limit).map(|blocks| (probes, blocks)).or(best);
    }
    best
}

/// Returns the number of probes with the lowest rate for a size. Ties go to fewer probes.
pub(crate) fn best_for_size(blocks: u64, keys: u64) -> u32 {
    let rates = PROBES.map(|probes| (rate(blocks, probes, keys), probes));
    rates.into_iter().min_by(|a, b| a.0.total_cmp(&b.0)).map_or(PROBES[0], |(_, probes)| probes)
}

/// Returns the maximum number of keys in `blocks` blocks at which the rate is at most `target`; 0 if one key is too
/// many.
pub(crate) fn keys_for(blocks: u64, probes: u32, target: f64) -> u64 {
    if target >= 1.0 {
        return u64::MAX;
    }
    let mut rates = BlockRates::new(Lanes::sectorized(probes));
    find_max((blocks as f64 / likely_blocks(target)) as u64, target, |keys| {
        rates.mixture(blocks, keys) + collision_floor(keys)
    })
}

/// Returns the least number from 1 to `limit` whose rate is at most `target`, for a falling rate; tries `start` first.
pub(crate) fn find_min(start: u64, limit: u64, target: f64, rate: impl FnMut(u64) -> f64) -> Option<u64> {
    let end = limit.saturating_add(1);
    Some(find_first(start, end, true, target, rate)).filter(|&found| found < end)
}

/// Returns the greatest number whose rate is at most `target`, for a rising rate; 0 if there is no such number. Tries
/// `start` first.
pub(crate) fn find_max(start: u64, target: f64, rate: impl FnMut(u64) -> f64) -> u64 {
    find_first(start, u64::MAX, false, target, rate) - 1
}

/// Returns the first number from 1 on whose rate keeps the target if `keeps`, and otherwise exceeds it; `end` if no
/// number below `end` does.
///
/// Rates are nearly powers of such numbers, so the search uses the secant method on a log-log scale. Bisection takes
/// over if rounding makes that fail.
fn find_first(start: u64, end: u64, keeps: bool, target: f64, mut rate: impl FnMut(u64) -> f64) -> u64 {
    /// Steps of the secant method. Most searches take half a dozen.
    const TRIES: u32 = 20;
    let (mut low, mut high) = (0, end);
    let (mut next, mut last) = (start, None);
    for tries in 1.. {
        if high - low <= 1 {
            break;
        }
        let number = next.clamp(low + 1, high - 1);
        let rate = rate(number);
        let past = (rate <= target) == keeps;
        if past {
            high = number
        } else {
            low = number
        }
        let (x, y) = (libm::log(number as f64), libm::log(rate / target));
        let step = match last.replace((x, y)) {
            Some((x0, y0)) => y * (x0 - x) / (y - y0),
            // The exponent is often about 4.
            None => y.abs() / if past { -4.0 } else { 4.0 },
        };
        // At most to four times the number, or a quarter, because rates near 1 carry little information.
        let next_guess = libm::ceil(number as f64 * libm::exp(step.clamp(-1.4, 1.4))) as u64;
        next = if tries < TRIES { next_guess } else { low + (high - low) / 2 };
    }
    high
}

/// Returns the chance that a key sets a given bit of a filter.
///
/// A key leaves a given bit of its block alone with chance 1 - q, where q = (1 - (63/64)^b) / 2, and finds the bit's block
/// with chance 1/B.
pub(crate) fn bit_probability(blocks: u64, probes: u32) -> f64 {
    Lanes::sectorized(probes).bit_probability() / blocks as f64
}

/// Estimates the distinct keys inserted from the fraction of bits that are set, if a key sets a given bit of the whole filter
/// with chance `bit_probability`.
///
/// The expected share of zeros after n keys is exactly (1 - `bit_probability`)^n, which is solved for n. (The form of
/// Swamidass and Baldi, "Mathematical Correction for Fingerprint Similarity Measures", 2007, for these layouts.)
pub(crate) fn estimate_keys(fill_ratio: f64, bit_probability: f64) -> f64 {
    if fill_ratio == 1.0 {
        // The quotient is not a number if each key sets every bit, as in a filter of one bit.
        return f64::INFINITY;
    }
    libm::log1p(-fill_ratio) / libm::log1p(-bit_probability)
}

/// Returns the number of bytes in `blocks` blocks. Saturates.
pub(crate) fn block_bytes(blocks: u64) -> u64 {
    blocks.saturating_mul(BLOCK_BYTES as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::String;

    /// Rows of the independent model's table: tests/data/fpr.csv, made by exact summation in another language.
    fn rows(kind: &str) -> Vec<(u32, f64, f64)> {
        let table = include_str!("../../tests/data/fpr.csv");
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
            let computed = BlockRates::new(Lanes::sectorized(probes)).mixture(blocks, keys);
            assert!(
                (computed / expected - 1.0).abs() < 1e-5,
                "k {probes}, {bits_per_key} bits: {computed:e}, model {expected:e}"
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
    fn invalid_rates_have_capacities() {
        for probes in [4, 16] {
            assert_eq!([1.0, 7.0, f64::INFINITY].map(|rate| keys_for(3, probes, rate)), [u64::MAX; 3]);
            assert_eq!([0.0, -1.0, f64::NAN].map(|rate| keys_for(3, probes, rate)), [0; 3]);
        }
    }

    #[test]
    fn the_size_is_minimal_and_the_capacity_maximal() {
        for keys in [1, 2, 63, 1000, 12_345, 1_000_000] {
            for target in [0.5, 0.1, 0.01, 1e-4, 1e-6, 1e-9] {
                for probes in PROBES {
                    let blocks = blocks_for(keys, probes, target, 1 << 50).unwrap();
                    assert!(rate(blocks, probes, keys) <= target);
                    assert!(blocks == 1 || rate(blocks - 1, probes, keys) > target, "{keys} {target} {probes}");
                    let max = keys_for(blocks, probes, target);
                    assert!(max >= keys);
                    assert!(rate(blocks, probes, max + 1) > target);
                }
            }
        }
    }

    /// Bisection alone, for each number of probes, has the same results.
    #[test]
    fn the_search_agrees_with_bisection() {
        fn halved(end: u64, past: impl Fn(u64) -> bool) -> u64 {
            let (mut low, mut high) = (0, end);
            while high - low > 1 {
                let middle = low + (high - low) / 2;
                if past(middle) { high = middle } else { low = middle }
            }
            high
        }
        let limit = 1 << 50;
        let targets = [0.99, 0.7, 0.3, 0.1, 0.03, 0.016, 0.01, 1e-3, 5e-4, 1e-5, 7e-6, 1e-7, 1e-9];
        for keys in [1, 2, 3, 4, 7, 20, 63, 100, 1000, 12_345, 1_000_000, 1_000_000_000] {
            for target in targets {
                let rates = |blocks, probes| rate(blocks, probes, keys);
                let fewest = PROBES.map(|probes| (halved(limit, |blocks| rates(blocks, probes) <= target), probes));
                for (blocks, probes) in fewest {
                    assert_eq!(blocks_for(keys, probes, target, limit), Some(blocks), "{keys} {target} {probes}");
                    assert_eq!(blocks_for(keys, probes, target, blocks - 1), None, "{keys} {target} {probes}");
                    let keys = halved(1 << 60, |keys| rate(blocks, probes, keys) > target) - 1;
                    assert_eq!(keys_for(blocks, probes, target), keys, "{blocks} {target} {probes}");
                }
                let (blocks, probes) = fewest.into_iter().min().unwrap();
                assert_eq!(best_for_rate(keys, target, limit), Some((probes, blocks)), "{keys} {target}");
            }
        }
    }

    /// The model of a few blocks by brute force: the load of one block, by the definition of the Binomial.
    #[test]
    fn few_blocks_follow_the_binomial() {
        for (blocks, keys) in [(2u64, 30u64), (5, 100), (10, 400)] {
            for probes in PROBES {
                let mut rates = BlockRates::new(Lanes::sectorized(probes));
                let p = 1.0 / blocks as f64;
                let mut expected = 0.0;
                let mut choose = 1.0;
                for i in 0..=keys {
                    expected += choose * p.powi(i as i32) * (1.0 - p).powi((keys - i) as i32) * rates.get(i);
                    choose *= (keys - i) as f64 / (i + 1) as f64;
                }
                let computed = rates.mixture(blocks, keys);
                assert!((computed / expected - 1.0).abs() < 1e-9, "{blocks} {keys} {probes}: {computed} {expected}");
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
            let fill_ratio = (1.0 - (63.0f64 / 64.0).powi(b)) / 2.0;
            assert!((estimate_keys(fill_ratio, bit_probability(1, probes)) - 1.0).abs() < 1e-12);
        }
        assert_eq!(estimate_keys(0.0, bit_probability(10, 8)), 0.0);
        assert_eq!(
            [bit_probability(10, 8), 1.0].map(|probability| estimate_keys(1.0, probability)),
            [f64::INFINITY; 2]
        );
    }
}
