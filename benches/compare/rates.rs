//! False-positive rates, requested, modelled and measured, and the curves of the models.

use super::contender::Contender;
use super::kinds::Kind;
use super::result::{LeftOut, Model, ModelPoint, RateRow};
use bloomline_benches::hashes::{ABSENT, PRESENT, range};

/// Keys in the filters of the curves: enough to load blocks as in any large filter.
const CURVE_KEYS: u64 = 1 << 18;

/// Makes a filter of each kind for each rate, fills it with `keys` keys, and looks up at least `probes` absent ones.
pub fn measured(kinds: &[&Kind], rates: &[f64], keys: u64, probes: u64, left_out: &mut Vec<LeftOut>) -> Vec<RateRow> {
    /// False positives to count. The standard deviation of their number is a twentieth.
    const COUNTED: f64 = 400.0;
    let hashes = range(PRESENT, 0..keys);
    let mut new = vec![false; hashes.len()];
    let mut rows = Vec::new();
    for &rate in rates {
        for (kind, for_rate) in kinds.iter().filter_map(|kind| Some((kind, kind.for_rate?))) {
            let mut filter = match for_rate(keys, rate) {
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
    rows
}

/// The curve of a layout, which ends where the layout does. Peers have none, because they implement one of the layouts.
pub fn model(kind: &Kind) -> Model {
    let point = |bytes: usize, fpr| ModelPoint { bits_per_key: bytes as f64 * 8.0 / CURVE_KEYS as f64, fpr };
    let by_memory = |bits| {
        let filter = (kind.for_memory)(bits * CURVE_KEYS as usize / 8, CURVE_KEYS).ok()?;
        Some(point(filter.memory_bytes(), filter.modelled_fpr(CURVE_KEYS)))
    };
    let by_rate = |quarters: i32| {
        let rate = 10.0_f64.powf(f64::from(quarters) / -4.0);
        Some(point(kind.for_rate?(CURVE_KEYS, rate).ok()?.memory_bytes(), rate))
    };
    Model {
        contender: kind.name.to_owned(),
        points: (4..=36).filter_map(by_memory).collect(),
        space: (4..=24).map_while(by_rate).collect(),
    }
}

/// The share of `count` absent keys that pass.
fn false_positive_rate(filter: &dyn Contender, count: u64) -> f64 {
    const CHUNK: u64 = 1 << 20;
    let mut found = vec![false; CHUNK as usize];
    let chunk = |from| {
        let hashes = range(ABSENT, from..count.min(from + CHUNK));
        filter.contains(&hashes, &mut found[..hashes.len()])
    };
    (0..count).step_by(CHUNK as usize).map(chunk).sum::<usize>() as f64 / count as f64
}
