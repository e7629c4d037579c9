//! The deviation of single filters from the mean rate of all. docs/FPR.md derives it.

use crate::layout::params::Geometry;
use crate::rate::fpr::{BlockRates, Lanes, SATURATED, Terms, collision_floor, for_each_load, hit_factors, power};

/// Returns the standard deviation of the rate of one filter of the layout `words4`, as a fraction of the mean, which
/// includes the rate of equal hashes.
pub(super) fn relative_deviation(geometry: Geometry, keys: u64) -> f64 {
    if keys / geometry.units > SATURATED {
        return 0.0;
    }
    let mut rates = BlockRates::new(Lanes::sectorized(geometry.probes));
    let squared_rates = SquaredRates::new(geometry.probes);
    let (blocks, average) = (geometry.units as f64, keys as f64 / geometry.units as f64);
    let (mut weights, mut mean, mut squares, mut covariance) = (0.0, 0.0, 0.0, 0.0);
    for_each_load(geometry.units, keys, |load, weight| {
        let rate = rates.get(load);
        weights += weight;
        mean += weight * rate;
        squares += weight * squared_rates.get(load);
        covariance += weight * (load as f64 - average) * rate;
    });
    let (mean, squares, covariance) = (mean / weights, squares / weights, covariance / weights);
    // The loads have a fixed sum, so terms that are linear in them cancel out. One block has one load.
    let linear = if geometry.units == 1 { 0.0 } else { covariance * covariance / (average * (1.0 - 1.0 / blocks)) };
    let variance = (squares - mean * mean - linear) / blocks;
    libm::sqrt(variance.max(0.0)) / (mean + collision_floor(keys))
}

/// The mean of the squared rate of a block, for each number of keys in it.
///
/// The rate of a lane is (x^b + y^b) / 2, where x and y are the fractions of bits set in its two words. Its square needs the
/// mean of x^2b, the chance that 2b positions are hit, and the mean of x^b y^b.
struct SquaredRates {
    throws: usize,
    /// The factors of h for b positions.
    factors: Terms,
    /// The factors of h for 2b positions.
    factors_of_twice: Terms,
    /// (1 - r/64)^b: the chance that none of r bits is hit by a key in the word.
    missed: Terms,
}

impl SquaredRates {
    fn new(probes: u32) -> Self {
        let throws = Lanes::sectorized(probes).throws as usize;
        Self {
            throws,
            factors: hit_factors(throws, 64.0),
            factors_of_twice: hit_factors(2 * throws, 64.0),
            missed: core::array::from_fn(|r| power(1.0 - r as f64 / 64.0, throws)),
        }
    }

    fn get(&self, load: u64) -> f64 {
        if load == 0 {
            return 0.0;
        }
        let Self { throws, factors, factors_of_twice, missed } = self;
        // Each key is in one of the two words.
        let either = |a: f64, b: f64| libm::pow((a + b) / 2.0, load as f64);
        let square: f64 = (0..=2 * *throws).map(|r| factors_of_twice[r] * either(missed[r], 1.0)).sum();
        let pairs = (0..=*throws).flat_map(|r| (0..=*throws).map(move |s| (r, s)));
        let cross: f64 = pairs.map(|(r, s)| factors[r] * factors[s] * either(missed[r], missed[s])).sum();
        power(((square + cross) / 2.0).clamp(0.0, 1.0), 4)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BloomFilter;

    /// The filters that docs/FPR.md measures, and filters of other probes.
    #[test]
    fn filters_deviate_as_the_model_says() {
        for (rate, keys) in [(0.1, 1000u64), (0.01, 1000), (0.01, 5000), (1e-3, 1000), (1e-4, 2000), (1e-5, 2000)] {
            let sized = BloomFilter::builder().expected_keys(keys).false_positive_rate(rate);
            let plan = sized.plan().unwrap();
            let geometry = Geometry { units: plan.block_count() as u64, probes: plan.probes() };
            let rates: Vec<f64> = (0..400)
                .map(|seed| {
                    let mut filter = sized.clone().seed(seed).build().unwrap();
                    filter.extend(0..keys);
                    filter.current_fpr()
                })
                .collect();
            let mean = rates.iter().sum::<f64>() / 400.0;
            let measured = (rates.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>() / 399.0).sqrt() / mean;
            // The standard deviation of 400 samples has a standard deviation of 3.5 %. The tolerance is five of these.
            let model = relative_deviation(geometry, keys);
            assert!((measured / model - 1.0).abs() < 0.175, "{rate}, {keys} keys: {measured}, model {model}");
        }
    }

    /// One word of a lane has all b bits of its key, or fewer where they coincide; the other has none.
    #[test]
    fn one_key_in_one_block_always_has_the_same_rate() {
        let geometry = Geometry { units: 1, probes: 4 };
        // With one probe a lane the fill of a block is the same for all keys: 1/128 for each lane.
        assert!(relative_deviation(geometry, 1) < 1e-6, "{}", relative_deviation(geometry, 1));
        assert_eq!(relative_deviation(geometry, 1 << 40), 0.0);
        // In this much memory nearly all false positives are equal hashes, which every filter has.
        assert!(relative_deviation(Geometry { units: 1 << 34, probes: 16 }, 1000) < 1e-9);
    }
}
