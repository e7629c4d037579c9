//! Recommendations: the best contender for each job, by the figures of the comparison.

use super::result::{Comparison, Entry, LoadRow, RateRow, Row};
use super::text::{percent, size};

/// The best contender for a job.
pub struct Recommendation {
    pub job: &'static str,
    /// A sentence with the contender and its figures.
    pub best: String,
}

/// Returns a recommendation for each job that the comparison has figures of.
pub fn recommendations(comparison: &Comparison) -> Vec<Recommendation> {
    let largest = comparison.rows.iter().map(|row| row.size_bytes).max();
    let rows: Vec<&Row> = comparison.rows.iter().filter(|row| Some(row.size_bytes) == largest).collect();
    let entry = |name: &str| comparison.entry(name);
    let layout = |name: &str| comparison.label(name).replace(" batch", "");
    let fastest = |job, suits: fn(&Entry) -> bool| {
        let suitable = rows.iter().copied().filter(|row| entry(&row.contender).is_some_and(suits));
        let (best, next) = least_two(suitable, |row| row.query_50.median)?;
        let (query, insert) = (best.query_50.median, best.insert.median);
        let next = next.map_or_else(String::new, |next| {
            format!("; {} follows with {:.1} ns a query", comparison.label(&next.contender), next.query_50.median)
        });
        let (name, size) = (comparison.label(&best.contender), size(best.size_bytes));
        let best =
            format!("{name}, with {query:.1} ns a query and {insert:.1} ns an insert in a filter of {size}{next}.");
        Some(Recommendation { job, best })
    };
    let smallest = |job, requested: f64, fixed: bool| {
        let suitable = comparison.rates.iter().filter(|row| {
            row.requested_fpr == requested && entry(&row.contender).is_some_and(|entry| fixed || !entry.fixed)
        });
        let (best, next): (&RateRow, _) = least_two(suitable, |row| row.bits_per_key)?;
        let next = next.map_or_else(String::new, |next| {
            format!("; {} follows with {:.1} bits", layout(&next.contender), next.bits_per_key)
        });
        let (name, bits, rate) = (layout(&best.contender), best.bits_per_key, percent(requested));
        Some(Recommendation { job, best: format!("{name}, with {bits:.1} bits a key at a rate of {rate}{next}.") })
    };
    let threads = || {
        let max_threads = comparison.loads.iter().flat_map(|load| &load.threads).map(|at| at.threads).max()?;
        let time = |load: &LoadRow| load.threads.iter().find(|at| at.threads == max_threads).map(|at| at.time.median);
        let atomic = comparison.loads.iter().filter(|load| Some(load.size_bytes) == largest);
        let atomic = atomic.filter(|load| load.operation == "atomic insert" && time(load).is_some());
        let (best, next) = least_two(atomic, |load| time(load).unwrap_or(f64::INFINITY))?;
        let sentence = |load: &LoadRow| format!("{:.1} ns a key", time(load).unwrap_or(f64::INFINITY));
        let next =
            next.map_or_else(String::new, |next| format!("; {} follows with {}", next.interface, sentence(next)));
        let best = format!("{}, with {} on {max_threads} threads{next}.", best.interface, sentence(best));
        Some(Recommendation { job: "Threads that insert at once", best })
    };
    // At equal memory, their rates differ too widely.
    let removable = || {
        let rows = comparison.equal_rate_rows.iter();
        let rows = rows.filter(|row| entry(&row.contender).is_some_and(|entry| entry.removes));
        let (best, next) = least_two(rows, |row| row.query_50.median)?;
        let figures = |row: &Row| {
            let name = comparison.label(&row.contender);
            format!("{name}, with {:.1} ns a query and {:.1} bits a key", row.query_50.median, row.bits_per_key)
        };
        let next = next.map_or_else(String::new, |next| format!("; then {}", figures(next)));
        let rate = percent(comparison.equal_rate);
        Some(Recommendation {
            job: "Keys that are removed again",
            best: format!("{} at a rate of {rate}{next}.", figures(best)),
        })
    };
    let low = comparison.rates.iter().map(|row| row.requested_fpr).fold(f64::INFINITY, f64::min);
    [
        fastest("Many keys at a time", |_| true),
        fastest("One key at a time", |entry| !entry.batch && !entry.fixed),
        threads(),
        removable(),
        smallest("Least memory, all keys known beforehand", comparison.equal_rate, true),
        smallest("Least memory, keys arrive over time", comparison.equal_rate, false),
        smallest("Least memory at a low rate", low, false),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Returns the two elements with the least figures.
fn least_two<'a, T>(
    elements: impl Iterator<Item = &'a T>,
    figure: impl Fn(&T) -> f64,
) -> Option<(&'a T, Option<&'a T>)> {
    let mut sorted: Vec<&T> = elements.collect();
    sorted.sort_by(|a, b| figure(a).total_cmp(&figure(b)));
    Some((*sorted.first()?, sorted.get(1).copied()))
}
