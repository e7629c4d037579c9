//! The formula of the classic Bloom filter, whose bits are anywhere in its memory. It is the well-known reference.
//!
//! n keys with k probes in m bits have the rate (1 − e^(−k n/m))^k. Sizes are for the best whole number k.
//!
//! The library's `ClassicBloomFilter` has another model: its rate includes the scatter of the set bits and equal
//! hashes, which textbooks omit, and it needs the feature `variants`, which `plan` must not need.

/// No rate needs more probes, because the smallest `f64` is 2^-1074.
const MAX_PROBES: u32 = 1074;

/// The size of a classic filter.
#[derive(Clone, Copy)]
pub struct Classic {
    /// m.
    pub bits: f64,
    /// k.
    pub probes: u32,
}

impl Classic {
    /// Returns the smallest filter that keeps a rate.
    pub fn for_rate(keys: u64, rate: f64) -> Self {
        let filter = |probes| Self { bits: (keys as f64 / load(probes, rate)).ceil(), probes };
        min_cost(filter, |filter| filter.bits)
    }

    /// Returns the filter of this size with the lowest rate.
    pub fn for_size(bits: f64, keys: u64) -> Self {
        min_cost(|probes| Self { bits, probes }, |filter| filter.fpr(keys as f64))
    }

    /// Returns the filter of this size with the largest [`capacity`](Self::capacity).
    pub fn for_capacity(bits: f64, rate: f64) -> Self {
        min_cost(|probes| Self { bits, probes }, |filter| -filter.capacity(rate))
    }

    /// Returns the rate with this number of keys.
    pub fn fpr(&self, keys: f64) -> f64 {
        let set = -(-f64::from(self.probes) * keys / self.bits).exp_m1();
        set.powi(self.probes as i32)
    }

    /// Returns the number of keys at which the rate is reached.
    pub fn capacity(&self, rate: f64) -> f64 {
        (self.bits * load(self.probes, rate)).floor()
    }
}

/// Returns the n/m at which k probes reach a rate: the formula solved for n/m.
fn load(probes: u32, rate: f64) -> f64 {
    let probes = f64::from(probes);
    -(-rate.powf(1.0 / probes)).ln_1p() / probes
}

/// Returns the filter with the lowest cost over all numbers of probes. Ties go to fewer probes.
fn min_cost(filter: impl Fn(u32) -> Classic, cost: impl Fn(&Classic) -> f64) -> Classic {
    let cheaper = |best: Classic, other: Classic| if cost(&other) < cost(&best) { other } else { best };
    (2..=MAX_PROBES).map(&filter).fold(filter(1), cheaper)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_match_textbook_tables() {
        for (rate, probes, bits_per_key) in [(0.01, 7, 9.5851), (0.001, 10, 14.3776), (1e-6, 20, 28.7551)] {
            let filter = Classic::for_rate(1_000_000_000, rate);
            assert_eq!(filter.probes, probes);
            assert!((filter.bits / 1e9 - bits_per_key).abs() < 0.01, "{rate}: {}", filter.bits / 1e9);
            assert!((filter.fpr(1e9) / rate - 1.0).abs() < 1e-6);
            assert_eq!(Classic::for_size(filter.bits, 1_000_000_000).probes, probes);
            let back = Classic::for_capacity(filter.bits, rate);
            assert_eq!(back.probes, probes);
            assert!((back.capacity(rate) / 1e9 - 1.0).abs() < 1e-6);
        }
        // Published rates for these bits per key.
        for (bits, probes, rate) in [(8.0, 6, 0.0216), (10.0, 7, 0.00819), (16.0, 11, 0.000459), (32.0, 22, 2.11e-7)] {
            let filter = Classic::for_size(bits * 1e6, 1_000_000);
            assert_eq!(filter.probes, probes);
            assert!((filter.fpr(1e6) / rate - 1.0).abs() < 0.005, "{bits}: {}", filter.fpr(1e6));
        }
    }

    #[test]
    fn extreme_sizes_have_finite_rates() {
        for filter in
            [Classic::for_rate(1, 1e-300), Classic::for_rate(u64::MAX, 0.999), Classic::for_size(512.0, u64::MAX)]
        {
            assert!(filter.bits.is_finite() && filter.bits >= 1.0);
            assert!((0.0..=1.0).contains(&filter.fpr(1.0)));
        }
        assert_eq!(Classic::for_size(8e18, 1).fpr(1.0), 0.0);
    }
}
