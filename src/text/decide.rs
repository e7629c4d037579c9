//! Which share of found grams is enough.

use super::Rules;

/// Whether a unit, or a document, of `grams` grams is a duplicate if `found` of them were found. Never without grams.
pub(crate) fn passes(rules: &Rules, grams: usize, found: usize) -> bool {
    let share = found as f64 / grams as f64;
    share > rules.threshold || rules.at_least && share >= rules.threshold
}
