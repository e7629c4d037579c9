//! The division of a window of keys among generations that take turns.

/// The highest number of generations.
pub(crate) const MOST: u32 = 64;

/// The keys of each of `asked` generations.
pub(crate) fn keys_of_one(window: u64, asked: u32) -> u64 {
    window.div_ceil(u64::from(asked - 1))
}

/// The rate of each of `asked` generations.
pub(crate) fn rate_of_one(rate: f64, asked: u32) -> f64 {
    // 1 - (1 - p')^g = p, in a form that does not lose small rates beside 1.
    let all_keep = -libm::expm1(libm::log1p(-rate) / f64::from(asked));
    // A key that an earlier generation reports as seen, at its rate f, takes no place there, but sets bits. That raises f to
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
            for asked in [2, 3, 11, MOST] {
                let of_one = rate_of_one(rate, asked);
                let together = combined((0..asked).map(|_| of_one * (1.0 + of_one)));
                // At the smallest rates they differ by rounding alone.
                assert!(
                    together <= rate * (1.0 + 4.0 * f64::EPSILON) && together > 0.75 * rate,
                    "{rate} {asked} {together}"
                );
            }
        }
    }

    #[test]
    fn all_but_one_hold_the_window() {
        for (window, asked) in [(1, 2), (1, 64), (1000, 3), (1001, 3), (u64::MAX, 5)] {
            assert!(u128::from(keys_of_one(window, asked)) * u128::from(asked - 1) >= u128::from(window));
        }
    }
}
