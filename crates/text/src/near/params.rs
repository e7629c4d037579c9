//! The choice of the numbers of bands and rows for a similarity.

use alloc::vec::Vec;

/// The number of steps of each of the two integrals.
const STEPS: usize = 256;

/// Returns the numbers of bands b and rows r, with b·r up to `permutations`, that minimize the sum of two areas: false
/// positives, under the curve 1 - (1 - s^r)^b below the similarity, and false negatives, under (1 - s^r)^b above it.
/// datasketch uses the same rule.
///
/// Simpson's rule takes only products and sums, so the result is the same on every platform.
pub(super) fn optimal_params(similarity: f64, permutations: usize) -> (usize, usize) {
    let mut points = Vec::with_capacity(2 * STEPS + 2);
    for (from, to) in [(0.0, similarity), (similarity, 1.0)] {
        let step = (to - from) / STEPS as f64;
        points.extend((0..=STEPS).map(|i| Point {
            s: from + step * i as f64,
            weight: step / 3.0 * [2.0, 4.0, 1.0][if i % STEPS == 0 { 2 } else { i % 2 }],
            power: 1.0,
            missed: 1.0,
        }));
    }
    let (mut best, mut min_errors) = ((1, 1), f64::INFINITY);
    for rows in 1..=permutations {
        for point in &mut points {
            point.power *= point.s;
            point.missed = 1.0;
        }
        for bands in 1..=permutations / rows {
            let area = |points: &mut [Point]| -> f64 {
                let terms = points.iter_mut().map(|point| {
                    point.missed *= 1.0 - point.power;
                    point.weight * point.missed
                });
                terms.sum()
            };
            let (below, above) = points.split_at_mut(STEPS + 1);
            let errors = similarity - area(below) + area(above);
            if errors < min_errors {
                (best, min_errors) = ((bands, rows), errors);
            }
        }
    }
    best
}

/// A point of an integral.
struct Point {
    /// The similarity.
    s: f64,
    weight: f64,
    /// s^r.
    power: f64,
    /// (1 - s^r)^b.
    missed: f64,
}
