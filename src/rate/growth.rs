//! The growth of a scalable filter: the keys of each stage, and its rate.
//!
//! The rates are a geometric series: stage i has p (1 - r) r^i, and all stages together, of any number, have p. A key that was
//! not inserted is reported as seen if any stage reports it, so the rate of the whole stays below p.
//! (Almeida, Baquero, Preguiça and Hutchison, "Scalable Bloom Filters", Information Processing Letters 101(6), 2007,
//! section 3.)

/// r: the ratio of each stage's rate to the rate before it. docs/DESIGN.md has the cost of other ratios.
const TIGHTENING: f64 = 0.875;

/// More stages than any filter can have: from the 53rd on, 64-bit hashes cannot keep the stage's rate.
#[cfg(any(feature = "std", test))]
pub(crate) const MAX_STAGES: usize = 64;

/// The maximum number of merged stages, because a query visits all of them.
pub(crate) const MAX_MERGED: usize = 256;

/// The parameters of a scalable filter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct GrowthPolicy {
    /// Keys that the first stage of its own takes, at least 1.
    pub(crate) first_keys: u64,
    /// The rate of all stages of its own together, between 0 and 1.
    pub(crate) rate: f64,
    /// Stages before its own, which other filters brought. They take no keys, and each has its own keys and rate.
    pub(crate) merged: usize,
}

// A rate is a number.
impl Eq for GrowthPolicy {}

impl GrowthPolicy {
    /// Returns the keys that a stage of its own takes: each takes twice as many as the one before. Saturates.
    pub(crate) fn capacity(&self, stage: usize) -> u64 {
        u32::try_from(stage - self.merged)
            .ok()
            .and_then(|stage| 1u64.checked_shl(stage))
            .map_or(u64::MAX, |factor| self.first_keys.saturating_mul(factor))
    }

    /// Returns the rate of a stage of its own once it is full. Uses only multiplications, so it is the same number on every
    /// platform.
    pub(crate) fn rate(&self, stage: usize) -> f64 {
        (self.merged..stage).fold(self.rate * (1.0 - TIGHTENING), |rate, _| rate * TIGHTENING)
    }
}

/// Returns the rate of stages that have these rates and err independently: 1 - (1 - f0) (1 - f1) …, in a form that does not
/// lose small rates beside 1.
pub(crate) fn combined(rates: impl Iterator<Item = f64>) -> f64 {
    rates.fold(0.0, |all, rate| all + rate * (1.0 - all))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rate::fpr;

    #[test]
    fn all_stages_together_keep_the_rate() {
        for rate in [0.5, 0.01, 1e-6, 1e-12] {
            let growth = GrowthPolicy { first_keys: 1, rate, merged: 0 };
            let mut sum = 0.0;
            for stage in 0..MAX_STAGES {
                assert!(combined((0..=stage).map(|stage| growth.rate(stage))) < rate);
                sum += growth.rate(stage);
            }
            // The share of the stages that are never reached.
            let rest = rate * TIGHTENING.powi(MAX_STAGES as i32);
            assert!(((sum + rest) / rate - 1.0).abs() < 1e-12, "{sum:e} {rest:e}");
        }
    }

    #[test]
    fn capacities_double_and_saturate() {
        let growth = GrowthPolicy { first_keys: 3, rate: 0.01, merged: 0 };
        assert_eq!([0, 1, 2, 10].map(|stage| growth.capacity(stage)), [3, 6, 12, 3072]);
        assert_eq!([63, 64, usize::MAX].map(|stage| growth.capacity(stage)), [u64::MAX; 3]);
        // Merged stages do not change the capacities of its own stages.
        let merged = GrowthPolicy { merged: 4, ..growth };
        assert_eq!([4, 5, 6].map(|stage| merged.capacity(stage)), [3, 6, 12]);
        assert_eq!(merged.rate(5), growth.rate(1));
    }

    #[test]
    fn no_filter_reaches_the_maximum_of_stages() {
        let growth = GrowthPolicy { first_keys: 1, rate: 1.0, merged: 0 };
        assert!(fpr::collision_floor(growth.capacity(51)) < growth.rate(51));
        assert!(fpr::collision_floor(growth.capacity(52)) >= growth.rate(52));
    }

    #[test]
    fn small_rates_are_not_lost() {
        assert_eq!(combined([1e-30].into_iter()), 1e-30);
        assert_eq!(combined([0.5, 0.5].into_iter()), 0.75);
        assert_eq!(combined([].into_iter()), 0.0);
    }
}
