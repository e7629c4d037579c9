//! The division of a window of keys among generations.

/// The highest number of generations.
pub(crate) const MAX_GENERATIONS: u32 = 64;

/// Returns the keys of each of `generations` generations.
pub(crate) fn keys_per_generation(window: u64, generations: u32) -> u64 {
    window.div_ceil(u64::from(generations - 1))
}

/// Returns the rate of each of `generations` generations.
pub(crate) fn rate_per_generation(rate: f64, generations: u32) -> f64 {
    // 1 - (1 - p')^g = p, in a form that does not lose small rates beside 1.
    let all_keep = -libm::expm1(libm::log1p(-rate) / f64::from(generations));
    // A key that an earlier generation reports as seen, at its rate f, takes no permit there, but sets bits. That raises f to
    // less than f + f², which is below p' for f = p' / (1 + p').
    all_keep / (1.0 + all_keep)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rate::growth::combined;

    #[test]
    fn all_generations_together_keep_the_rate() {
        for rate in [0.5, 0.01, 1e-6, 1e-12] {
            for generations in [2, 3, 11, MAX_GENERATIONS] {
                let each = rate_per_generation(rate, generations);
                let together = combined((0..generations).map(|_| each * (1.0 + each)));
                // At the smallest rates they differ by rounding alone.
                assert!(
                    together <= rate * (1.0 + 4.0 * f64::EPSILON) && together > 0.75 * rate,
                    "{rate} {generations} {together}"
                );
            }
        }
    }

    #[test]
    fn all_generations_but_one_hold_the_window() {
        for (window, generations) in [(1, 2), (1, 64), (1000, 3), (1001, 3), (u64::MAX, 5)] {
            assert!(
                u128::from(keys_per_generation(window, generations)) * u128::from(generations - 1)
                    >= u128::from(window)
            );
        }
    }
}
