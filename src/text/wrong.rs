//! How many units are cut by mistake.

use super::Rules;
use super::decide::passes;

/// Below this chance a unit is not counted.
const NEGLIGIBLE: f64 = 1e-12;

/// The chance that a unit of `grams` grams, of which a filter with the false-positive rate `fpr` found `found`, is one that the
/// filter's errors cut. Summed over all units, that is the number of wrong removals to expect.
///
/// So many of the grams found were in the set, rounded: t = (found − grams · fpr) / (1 − fpr), and at least 0. Where t
/// is enough by itself, the chance is 0. Else it is the chance that t + Binomial(grams − t, fpr) is enough. A chance below 1e-12
/// is 0.
///
/// # Examples
/// ```
/// use bloomline::text::{Rules, wrong_removal};
/// let exact = Rules { ngram: 0, ..Rules::default() };
/// assert_eq!(wrong_removal(&exact, 1, 0, 0.01), 0.01); // a new paragraph
/// assert_eq!(wrong_removal(&exact, 1, 1, 0.01), 0.0); // a seen one
/// let rules = Rules::default();
/// assert!(wrong_removal(&rules, 3, 0, 0.01) < 2e-6); // all three by mistake
/// ```
pub fn wrong_removal(rules: &Rules, grams: usize, found: usize, fpr: f64) -> f64 {
    if grams == 0 || fpr <= 0.0 {
        return 0.0;
    }
    let enough = |found| if rules.ngram == 0 { found > 0 } else { passes(rules, grams, found) };
    if !enough(grams) {
        return 0.0;
    }
    if fpr >= 1.0 {
        return 1.0;
    }
    let least = least(grams, rules, &enough);
    let n = grams as f64;
    let truly = libm::round((found as f64 - n * fpr) / (1.0 - fpr)).clamp(0.0, n) as usize;
    if truly >= least {
        return 0.0;
    }
    tail(grams - truly, least - truly, fpr)
}

/// The least number of found grams that is enough, of at most `grams`, which are.
fn least(grams: usize, rules: &Rules, enough: &impl Fn(usize) -> bool) -> usize {
    let mut least = ((grams as f64 * rules.threshold) as usize).min(grams);
    while least > 0 && enough(least - 1) {
        least -= 1;
    }
    while !enough(least) {
        least += 1;
    }
    least
}

/// P(Binomial(n, p) ≥ k) for k from 1 to n.
fn tail(n: usize, k: usize, p: f64) -> f64 {
    let (count, least) = (n as f64, k as f64);
    let odds = p / (1.0 - p);
    // Chernoff's bound, where k is above the mean.
    let share = least / count;
    if share > p {
        let rest = if k < n { (1.0 - share) * libm::log((1.0 - share) / (1.0 - p)) } else { 0.0 };
        if -count * (share * libm::log(share / p) + rest) < libm::log(NEGLIGIBLE) {
            return 0.0;
        }
    }
    let log_choose = libm::lgamma(count + 1.0) - libm::lgamma(least + 1.0) - libm::lgamma(count - least + 1.0);
    let mut term = libm::exp(log_choose + least * libm::log(p) + (count - least) * libm::log1p(-p));
    if n == 1 {
        return p;
    }
    let mut sum = 0.0;
    for i in k..=n {
        sum += term;
        term *= (n - i) as f64 / (i + 1) as f64 * odds;
        if term < sum * 1e-17 && i as f64 > count * p {
            break;
        }
    }
    if sum < NEGLIGIBLE { 0.0 } else { sum.min(1.0) }
}
