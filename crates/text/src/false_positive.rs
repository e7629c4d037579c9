//! The expected number of units that are cut because of false positives.

use crate::{Rules, sample};
use alloc::vec;
use alloc::vec::Vec;

/// The probability below which a unit is not counted.
const NEGLIGIBLE: f64 = 1e-12;

/// The prior probability that a unit is completely new, and that it was completely seen. The rest is spread evenly over
/// all numbers of its grams.
const EXTREME_PRIOR: f64 = 0.25;

/// Returns the expected number of false removals for a unit, given that `found` of its `grams` grams were found in a
/// filter of the false-positive rate `fpr`, from 0 to 1. The sum over all units is the number of removals that are
/// expected to be wrong.
///
/// A unit is removed by mistake if too few of its grams were in the set. By Bayes' rule, the probability that t of them
/// were is proportional to the probability of `found` − t false positives among `grams` − t grams, times the prior
/// probability of t. The prior is a quarter each for none and all, and the rest is spread evenly over all numbers. The
/// result for a kept unit is 0. Units with one gram are counted by the kept ones instead: for each new unit that is
/// kept, `fpr` / (1 − `fpr`) others were removed.
///
/// The sum is accurate within some 10 % as long as units have ten grams or more, or one. O(`found`), and O(1) for most.
///
/// # Examples
/// ```
/// use bloomline_text::{Rules, expected_false_removals};
/// let mut exact = Rules::default();
/// exact.ngram = 0;
/// assert_eq!(expected_false_removals(&exact, 1, 0, 0.5), 1.0); // a new paragraph that is kept
/// assert_eq!(expected_false_removals(&exact, 1, 1, 0.5), 0.0); // one that is removed
/// let rules = Rules::default();
/// assert_eq!(expected_false_removals(&rules, 50, 50, 0.01), 0.0); // ten false positives would be needed
/// assert!(expected_false_removals(&rules, 50, 41, 0.01) > 0.05); // one is enough
/// ```
pub fn expected_false_removals(rules: &Rules, grams: usize, found: usize, fpr: f64) -> f64 {
    let is_cut = |found| rules.is_duplicate(grams, found);
    if grams == 0 || fpr <= 0.0 || !is_cut(grams) {
        return 0.0;
    }
    if grams == 1 {
        return if found == 0 { fpr / (1.0 - fpr).max(f64::EPSILON) } else { 0.0 };
    }
    if !is_cut(found) {
        return 0.0;
    }
    let gram_count = grams as f64;
    let other_prior = (1.0 - 2.0 * EXTREME_PRIOR) / (gram_count + 1.0);
    // From t = found down, each weight is computed from the one before it.
    let (mut weight, mut false_sum, mut sum) = (1.0, 0.0, 0.0);
    for t in (0..=found).rev() {
        if t < found {
            let factor = (grams - t) as f64 / (found - t) as f64 * fpr;
            weight *= factor;
            // The factors only decrease from here on.
            if factor < 1.0 && weight * gram_count < NEGLIGIBLE * sum {
                break;
            }
        }
        let prior = other_prior + if t == 0 || t == grams { EXTREME_PRIOR } else { 0.0 };
        sum += weight * prior;
        if !is_cut(t) {
            false_sum += weight * prior;
        }
        if sum > 1e200 {
            (weight, false_sum, sum) = (weight * 1e-200, false_sum * 1e-200, sum * 1e-200);
        }
    }
    let chance = false_sum / sum;
    if chance < NEGLIGIBLE { 0.0 } else { chance }
}

/// Returns the probability that a new unit, without any seen gram, is removed, given the number of its grams and the
/// false-positive rate of the set, from 0 to 1. More than [`Rules::threshold`] of the compared grams must be false
/// positives, whose number is binomial. If grams are [sampled](Rules::sample), the number of compared grams in each half of the
/// unit is binomial, too, and at least one. O(`grams`²), with sampling O(`grams`³).
///
/// # Examples
/// ```
/// use bloomline_text::{Rules, new_unit_removal_rate};
/// let mut rules = Rules::default();
/// assert!(new_unit_removal_rate(&rules, 20, 0.01) < 1e-30); // 17 false positives
/// rules.sample = 16;
/// assert!(new_unit_removal_rate(&rules, 20, 0.01) < 1e-4); // two, or more
/// assert!((new_unit_removal_rate(&rules, 1, 0.01) - 0.01).abs() < 1e-9);
/// ```
pub fn new_unit_removal_rate(rules: &Rules, grams: usize, fpr: f64) -> f64 {
    let removed = |compared: usize| -> f64 {
        let chances = binomial(compared, fpr);
        chances
            .iter()
            .enumerate()
            .filter(|(found, _)| rules.is_duplicate(compared, *found))
            .map(|(_, chance)| chance)
            .sum()
    };
    if rules.ngram == 0 || rules.sample <= 1 {
        return removed(grams);
    }
    let removed: Vec<f64> = (0..=grams).map(removed).collect();
    let [first, second] = sample::halves(grams).map(|half| binomial(half.len(), 1.0 / f64::from(rules.sample)));
    let mut sum = 0.0;
    for (i, first_chance) in first.iter().enumerate() {
        for (j, second_chance) in second.iter().enumerate() {
            let compared = i.max(1).min(first.len() - 1) + j.max(1).min(second.len() - 1);
            sum += first_chance * second_chance * removed[compared];
        }
    }
    sum
}

/// Returns the probability of each number of successes, from 0 to `count`, in `count` trials.
fn binomial(count: usize, chance: f64) -> Vec<f64> {
    let mut chances = vec![0.0; count + 1];
    chances[0] = 1.0;
    for trials in 1..=count {
        for successes in (0..=trials).rev() {
            let after_success = successes.checked_sub(1).map_or(0.0, |before| chances[before]);
            chances[successes] = chances[successes] * (1.0 - chance) + after_success * chance;
        }
    }
    chances
}

#[cfg(test)]
mod tests {
    use super::*;
    use bloomline::{Key, KeyHasher};
    use proptest::prelude::*;

    fn rules(threshold: f64) -> Rules {
        Rules { threshold, ..Rules::default() }
    }

    /// Returns the binomial coefficient as a float.
    fn choose(n: usize, k: usize) -> f64 {
        (0..k).map(|i| (n - i) as f64 / (i + 1) as f64).product()
    }

    proptest! {
        #[test]
        fn expected_removals_follow_the_rule_of_bayes(grams in 2..60usize, share in 0.0..1.0f64, threshold in 0.0..1.0f64, fpr in 0.001..0.99f64) {
            let found = (share * (grams + 1) as f64) as usize;
            let before = |t| 0.5 / (grams + 1) as f64 + if t == 0 || t == grams { 0.25 } else { 0.0 };
            let chance = |t: usize| {
                let by_mistake = found - t;
                let binomial = choose(grams - t, by_mistake) * fpr.powi(by_mistake as i32);
                binomial * (1.0 - fpr).powi((grams - found) as i32) * before(t)
            };
            let is_cut = |t| t as f64 / grams as f64 > threshold;
            let false_sum: f64 = (0..=found).filter(|t| !is_cut(*t)).map(chance).sum();
            let expected = if is_cut(found) { false_sum / (0..=found).map(chance).sum::<f64>() } else { 0.0 };
            let ours = expected_false_removals(&rules(threshold), grams, found, fpr);
            prop_assert!((ours - expected).abs() < 1e-9 * expected + 1e-11, "{} {}", ours, expected);
        }
    }

    /// Counts the false removals of simulated units, new, seen or seen in part, in a filter that becomes too full.
    #[test]
    fn the_expected_number_matches_a_simulation() {
        let hasher = KeyHasher::new(0);
        let mut count = 0u64;
        let mut random = || {
            count += 1;
            count.hash_with(&hasher) as f64 / 2f64.powi(64)
        };
        for (grams, threshold) in [(36, 0.3), (36, 0.8), (12, 0.5), (1, 0.8)] {
            for max_fpr in [0.05, 0.3, 0.6] {
                let rules = rules(threshold);
                let (mut expected, mut happened) = (0.0, 0);
                for i in 0..40_000 {
                    let fpr = max_fpr * f64::from(i) / 40_000.0;
                    let truly = match i % 3 {
                        0 => 0,
                        1 => grams,
                        _ => (random() * (grams + 1) as f64) as usize,
                    };
                    let found = truly + (truly..grams).filter(|_| random() < fpr).count();
                    happened += usize::from(rules.is_duplicate(grams, found) && !rules.is_duplicate(grams, truly));
                    expected += expected_false_removals(&rules, grams, found, fpr);
                }
                // A tenth of the count, and four standard deviations.
                let (happened, name) = (happened as f64, format!("{grams} {threshold} {max_fpr}"));
                let tolerance = 0.1 * happened + 4.0 * happened.sqrt();
                assert!((expected - happened).abs() < tolerance, "{name}: {expected} {happened}");
            }
        }
    }

    /// Counts the new units that are removed, sampled or not.
    #[test]
    fn new_units_are_removed_at_the_expected_rate() {
        let hasher = KeyHasher::new(0);
        let mut count = 0u64;
        let mut random = || {
            count += 1;
            count.hash_with(&hasher) as f64 / 2f64.powi(64)
        };
        for (grams, share, fpr) in
            [(1, 16, 0.05), (2, 16, 0.2), (13, 4, 0.3), (50, 16, 0.3), (200, 64, 0.4), (6, 1, 0.5)]
        {
            let rules = Rules { sample: share, ..rules(0.8) };
            let expected = 20_000.0 * new_unit_removal_rate(&rules, grams, fpr);
            let mut removed = 0;
            for _ in 0..20_000 {
                let mut compared = 0;
                for half in [grams / 2, grams - grams / 2] {
                    let sampled = (0..half).filter(|_| random() * f64::from(share) < 1.0).count();
                    compared += sampled.max(half.min(1));
                }
                let found = (0..compared).filter(|_| random() < fpr).count();
                removed += usize::from(rules.is_duplicate(compared, found));
            }
            // Seven standard deviations.
            let error = (removed as f64 - expected).abs();
            assert!(expected > 20.0 && error < 7.0 * expected.sqrt(), "{grams} {share} {fpr}: {removed}, {expected}");
        }
        // One found gram is enough with a threshold of 0, and none is found at a rate of 0.
        let any = Rules { sample: 1024, ..rules(0.0) };
        assert!(new_unit_removal_rate(&any, 500, 0.5) > 0.74 && new_unit_removal_rate(&any, 500, 0.0) == 0.0);
        let certain = new_unit_removal_rate(&any, 50, 1.0);
        assert!((certain - 1.0).abs() < 1e-9 && new_unit_removal_rate(&any, 0, 0.5) == 0.0);
    }

    #[test]
    fn extreme_values_have_a_result_between_0_and_1() {
        let huge = expected_false_removals(&rules(0.01), 1_000_000, 20_000, 0.9);
        assert!((0.0..=1.0).contains(&huge), "{huge}");
        assert_eq!(expected_false_removals(&rules(0.8), 0, 0, 0.5), 0.0);
        assert_eq!(expected_false_removals(&rules(1.0), 10, 10, 0.5), 0.0);
        assert_eq!(expected_false_removals(&rules(0.8), 10, 10, 0.0), 0.0);
    }
}
