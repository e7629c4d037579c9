//! False-positive rates, requested, modelled and measured, and the curves of the models.

use super::contender::{Contender, NotMade, or_left_out};
use super::harness::hashes::{self, ABSENT, PRESENT};
use super::kinds::Kind;
use super::result::{LeftOut, Model, ModelPoint, RateRow};
use crate::error::Error;
use bloomline::BuildError;

/// Keys in the filters of the curves: enough to load blocks as in any large filter.
const CURVE_KEYS: u64 = 1 << 18;

/// Makes a filter of each kind for each rate, fills it with `keys` keys, and looks up at least `probes` absent ones.
pub fn measured(
    kinds: &[&Kind],
    rates: &[f64],
    keys: u64,
    probes: u64,
    left_out: &mut Vec<LeftOut>,
) -> Result<Vec<RateRow>, Error> {
    /// False positives to count. The standard deviation of their number is a twentieth.
    const COUNTED: f64 = 400.0;
    let hashes = hashes::range(PRESENT, 0..keys);
    let mut new = vec![false; hashes.len()];
    let mut rows = Vec::new();
    for &rate in rates {
        for (kind, for_rate) in kinds.iter().filter_map(|kind| Some((kind, kind.for_rate?))) {
            let mut filter = match or_left_out(for_rate(keys, rate))? {
                Ok(filter) => filter,
                Err(reason) => {
                    left_out.push(LeftOut { contender: kind.name.to_owned(), at: format!("a rate of {rate}"), reason });
                    continue;
                }
            };
            filter.insert(&hashes, &mut new);
            let absent_keys = probes.max((COUNTED / rate) as u64);
            rows.push(RateRow {
                contender: kind.name.to_owned(),
                keys,
                requested_fpr: rate,
                probes: filter.probes(),
                bits_per_key: filter.memory_bytes() as f64 * 8.0 / keys as f64,
                modelled_fpr: filter.modelled_fpr(keys),
                measured_fpr: false_positive_rate(filter.as_ref(), absent_keys),
                absent_keys,
            });
        }
    }
    Ok(rows)
}

/// The curves of the layouts. Peers have none, because they implement one of the layouts.
pub fn models(kinds: &[&Kind]) -> Result<Vec<Model>, Error> {
    kinds.iter().filter(|kind| kind.peer.is_none()).map(|kind| model(kind)).collect()
}

fn model(kind: &Kind) -> Result<Model, Error> {
    let mut points = Vec::new();
    for bits in 4..=36 {
        if let Ok(filter) = or_left_out((kind.for_memory)(bits * CURVE_KEYS as usize / 8, CURVE_KEYS))? {
            points.push(point(filter.memory_bytes(), filter.modelled_fpr(CURVE_KEYS)));
        }
    }
    let mut space = Vec::new();
    let for_rate = kind.for_rate.iter();
    for (for_rate, quarters) in for_rate.flat_map(|for_rate| (4..=24).map(move |quarters| (for_rate, quarters))) {
        let rate = 10.0_f64.powf(f64::from(quarters) / -4.0);
        match for_rate(CURVE_KEYS, rate) {
            Ok(filter) => space.push(point(filter.memory_bytes(), rate)),
            // The curve ends where the layout does.
            Err(NotMade::LeftOut(_)) => break,
            Err(NotMade::Failed(BuildError::RateUnreachable { .. } | BuildError::TooLarge { .. })) => break,
            Err(NotMade::Failed(error)) => return Err(error.into()),
        }
    }
    Ok(Model { contender: kind.name.to_owned(), points, space })
}

fn point(bytes: usize, fpr: f64) -> ModelPoint {
    ModelPoint { bits_per_key: bytes as f64 * 8.0 / CURVE_KEYS as f64, fpr }
}

/// The share of `count` absent keys that pass.
fn false_positive_rate(filter: &dyn Contender, count: u64) -> f64 {
    const PORTION: u64 = 1 << 20;
    let mut found = vec![false; PORTION as usize];
    let mut passed = 0;
    for from in (0..count).step_by(PORTION as usize) {
        let hashes = hashes::range(ABSENT, from..count.min(from + PORTION));
        passed += filter.contains(&hashes, &mut found[..hashes.len()]);
    }
    passed as f64 / count as f64
}
