//! The output of `--stats`.

use crate::commands::run::plan::KeySource;
use crate::run::print::Prefix;
use crate::run::sink::PrintOptions;
use crate::seen::SeenKeys;
use crate::seen::counts::LineCounts;
use crate::seen::exact::Exact;
use crate::seen::run_stats::{Comparison, FirstReading, RunStats};
use crate::seen::set::KeySet;
use crate::steps::documents::rule::DocumentRule;
use crate::terminal::figures::{Figures, estimated, readable, readable_size};
use bloomline::Plan;
use std::path::Path;
use std::time::Duration;

/// Returns the figures of a run, with the number of groups of two or more if it is known.
pub fn run_figures(
    seen: &SeenKeys,
    stats: &RunStats,
    what: &KeySource,
    print: PrintOptions,
    repeated: Option<u64>,
) -> Figures {
    let mut figures = Figures::default();
    match what {
        KeySource::Key(..) => line_figures(&mut figures, seen, stats, print, repeated),
        KeySource::Document(rule) if rule.second_hasher.is_some() => {
            group_figures(&mut figures, stats, print, repeated)
        }
        KeySource::Document(rule) => unit_figures(&mut figures, stats, rule, print),
    }
    figures
}

fn line_figures(figures: &mut Figures, seen: &SeenKeys, stats: &RunStats, print: PrintOptions, repeated: Option<u64>) {
    let counts = &stats.counts;
    // The last reading has the numbers of printed lines, and the first the results.
    let (found, disk_bytes) = match &stats.first {
        Some(FirstReading { counts, disk_bytes, .. }) => (counts, Some(*disk_bytes)),
        None => (counts, seen.exact.as_ref().map(Exact::disk_bytes)),
    };
    figures.figure("lines read", "lines", counts.lines);
    figures.figure("unique", "unique", found.unique);
    let (printed, dropped) = print.numbers(counts);
    if let Some(repeated) = repeated {
        figures.figure("repeated", "repeated", repeated);
    }
    figures.field("printed", printed);
    // People see it only if it is not the number of unique lines.
    if repeated.is_some() || !print.selected_mark || print.prefix == Prefix::Mark || counts.kept > 0 {
        figures.row("printed", printed);
    }
    figures.figure("dropped", "dropped", dropped);
    figures.unless_zero("without a key", "without_key", counts.faults);
    figures.unless_zero("blank", "blank", counts.blank);
    figures.unless_zero("inputs left out", "inputs_left_out", counts.left_out);
    if let Some(bytes) = disk_bytes {
        let rescued = found.rescued();
        figures.row_and_field(
            "taken back",
            format!("{rescued} that the filter took for repeats"),
            "taken_back",
            rescued,
        );
        figures.row_and_field("hashes on disk", readable_size(bytes as usize), "disk_bytes", bytes);
    } else {
        let lost = wrongly_dropped(&seen.set, stats);
        // Each new line is lost independently with a small probability, so the sum is Poisson distributed.
        let sigma = lost.sqrt();
        figures.row_and_field(
            "wrongly dropped",
            format!("{lost:.3} ± {sigma:.3} expected"),
            "expected_wrongly_dropped",
            lost,
        );
        figures.field("expected_wrongly_dropped_sigma", sigma);
    }
}

/// Adds the figures of documents, with one further number by its name.
fn document_figures(figures: &mut Figures, stats: &RunStats, print: PrintOptions, name: &'static str, number: u64) {
    let counts = &stats.counts;
    let (printed, dropped) = print.numbers(counts);
    figures.figure("documents", "documents", counts.lines);
    figures.figure("kept", "kept", printed);
    figures.figure(name, name, number);
    figures.figure("dropped", "dropped", dropped);
    figures.unless_zero("without a text", "without_text", counts.faults);
    figures.unless_zero("inputs left out", "inputs_left_out", counts.left_out);
}

/// Adds the figures of documents that are kept or removed as a whole once all are known.
fn group_figures(figures: &mut Figures, stats: &RunStats, print: PrintOptions, repeated: Option<u64>) {
    document_figures(figures, stats, print, "repeated", repeated.unwrap_or(0));
    if let Some(FirstReading { disk_bytes, comparison, .. }) = stats.first {
        if let Some(Comparison { not_compared, uncompared }) = comparison {
            figures.figure("pairs not compared", "pairs_not_compared", not_compared);
            figures.unless_zero("removed without comparison", "removed_without_comparison", uncompared);
        }
        figures.row_and_field("records on disk", readable_size(disk_bytes as usize), "disk_bytes", disk_bytes);
    }
}

fn unit_figures(figures: &mut Figures, stats: &RunStats, rule: &DocumentRule, print: PrintOptions) {
    let units = &stats.counts.units;
    document_figures(figures, stats, print, "shortened", units.shortened);
    let share = |part: u64, all: u64, what: &str| {
        format!("{part} of {all}{what} ({:.2} %)", 100.0 * part as f64 / all.max(1) as f64)
    };
    figures.row(&format!("duplicate {}", rule.units()), share(units.duplicates, units.units, ""));
    figures.field("units", units.units);
    figures.field("duplicate_units", units.duplicates);
    figures.row("text removed", share(units.removed, units.bytes, " bytes"));
    figures.field("text_bytes", units.bytes);
    figures.field("removed_bytes", units.removed);
    // A document that may be a near duplicate is looked up as a whole.
    if rule.near.is_none() {
        figures.row(&format!("{} found", rule.keys()), share(units.found, units.grams, ""));
    }
    if rule.has_grams() {
        let sample = rule.text.sample;
        figures.field("sample", sample);
        if sample > 1 {
            figures.row("sample", format!("1 of {sample} grams"));
        }
    }
    figures.field("grams", units.grams);
    figures.field("found_grams", units.found);
    if rule.substrings.is_some() {
        return;
    }
    let (wrong, sigma) = units.wrong_in_all();
    let text = format!("{wrong:.3} ± {sigma:.3} {} expected", rule.units());
    figures.row_and_field("wrongly removed", text, "expected_wrongly_removed", wrong);
    figures.field("expected_wrongly_removed_sigma", sigma);
    if rule.near.is_some() {
        figures.field("expected_below_similarity", units.below);
    }
}

/// Returns the figures of a comparison: of OLD, whose lines were inserted, and of NEW, whose lines were looked up. `wanted` is true if
/// lines in OLD are selected, `distinct` if lines of NEW were inserted too. Lines without a key may also be selected.
pub fn set_figures(seen: &SeenKeys, old: &LineCounts, stats: &RunStats, wanted: bool, distinct: bool) -> Figures {
    let (mut figures, counts) = (Figures::default(), &stats.counts);
    figures.figure("lines of OLD", "old_lines", old.lines);
    figures.figure("distinct", "old_distinct", old.unique);
    figures.figure("lines of NEW", "new_lines", counts.lines);
    figures.figure("selected", "selected", counts.unique);
    figures.unless_zero("without a key", "without_key", old.faults + counts.faults);
    figures.unless_zero("blank", "blank", old.blank + counts.blank);
    figures.unless_zero("inputs left out", "inputs_left_out", old.left_out + counts.left_out);
    if let Some(exact) = &seen.exact {
        figures.row_and_field(
            "hashes on disk",
            readable_size(exact.disk_bytes() as usize),
            "disk_bytes",
            exact.disk_bytes(),
        );
    } else {
        // Of the lines that are not in OLD, these are lost at the false-positive rate.
        let selected = counts.unique - counts.kept;
        let absent = if wanted { counts.dropped() + counts.kept } else { selected } as f64;
        let rate = seen.set.current_fpr();
        let wrong = if distinct { wrongly_dropped(&seen.set, stats) } else { absent * rate / (1.0 - rate) };
        let label = if wanted { "wrongly selected" } else { "wrongly left out" };
        figures.row_and_field(label, format!("{wrong:.3} ± {:.3} expected", wrong.sqrt()), "expected_wrong", wrong);
    }
    figures
}

/// Returns the figures of `build`, which has saved the filter to a file. Reads the whole filter.
pub fn build_figures(set: &KeySet, stats: &RunStats, file: &Path, elapsed: Duration) -> Figures {
    let keys = set.keys();
    let mut figures = Figures::default();
    figures.figure("lines read", "lines", stats.counts.lines);
    figures.figure("new", "new", stats.counts.inserted);
    figures.unless_zero("blank", "blank", stats.counts.blank);
    figures.row_and_field("keys in all", estimated(keys, 0), "estimated_keys", keys);
    figures.unless_zero("inputs left out", "inputs_left_out", stats.counts.left_out);
    add_state(&mut figures, set, stats, Some(file));
    add_speed(&mut figures, stats, elapsed);
    figures
}

/// Adds the figures of the set. Reads the whole filter.
pub fn add_state(figures: &mut Figures, set: &KeySet, stats: &RunStats, file: Option<&Path>) {
    let (fill, fpr) = (set.fill_ratio(), set.current_fpr());
    let memory = stats.plan.map_or(set.memory_bytes(), |plan| plan.memory_bytes());
    figures.row_and_field("fill", format!("{:.2} %", 100.0 * fill), "fill", fill);
    figures.row_and_field("rate now", readable(fpr), "fpr", fpr);
    figures.row_and_field("filter memory", readable_size(memory), "memory_bytes", memory);
    if let Some(file) = file.and_then(|path| path.metadata().ok()) {
        figures.row_and_field("filter saved", readable_size(file.len() as usize), "saved_bytes", file.len());
    }
    if let Some(filter) = set.shared() {
        figures.figure("uncertain", "uncertain", filter.uncertain());
        figures.field("unconfirmed", filter.unconfirmed());
        figures.field("sent_again", filter.sent_again());
        let stored = filter.stored_bytes();
        figures.row_and_field("stored", readable_size(stored as usize), "stored_bytes", stored);
    }
    let filters = set.filters();
    if filters > 1 || set.local().is_some_and(|set| set.growing().is_some()) {
        figures.figure("filters", "filters", filters);
    }
}

/// Adds the figures of the time.
pub fn add_speed(figures: &mut Figures, stats: &RunStats, elapsed: Duration) {
    let seconds = elapsed.as_secs_f64();
    let speed = stats.counts.bytes as f64 / 1e6 / seconds;
    figures.field("bytes", stats.counts.bytes);
    figures.row_and_field("time", format!("{seconds:.3} s"), "seconds", seconds);
    figures.row_and_field("speed", format!("{speed:.1} MB/s"), "mb_per_second", speed);
}

/// Returns the expected number of distinct lines that were reported as seen.
fn wrongly_dropped(set: &KeySet, stats: &RunStats) -> f64 {
    let (before, inserted) = (stats.keys_before, stats.counts.inserted as f64);
    if let Some(losses) = set.local().and_then(|set| set.expected_losses(before)) {
        return losses;
    }
    match &stats.plan {
        Some(plan) if set.shared().is_some() => {
            // Others inserted meanwhile: the lines of this run are spread evenly over all rates between the two ends.
            let after = set.keys();
            if !after.is_finite() {
                // All bits are set: the last lines were all reported as seen.
                return stats.counts.lines as f64 - inserted;
            }
            let rate = |i: u64| plan.expected_fpr(i);
            let mean = match after - before {
                keys if keys >= 1.0 => integral(before, after, |i| rate(i) / (1.0 - rate(i))) / keys,
                _ => rate(before as u64),
            };
            inserted * mean
        }
        // The rate was never above this one.
        None if set.shared().is_some() => inserted * set.current_fpr(),
        Some(plan) => expected_losses(plan, before, inserted, stats.counts.lines as f64),
        None => {
            // The filters are filled one after another: each is met at the rates of the filters before it and at its own rising
            // rate. A filter's bits include all lines that pass the filters before it, also the ones that it reports as seen
            // itself.
            let mut start = 0.0;
            let mut kept = 1.0;
            let mut stayed = 0.0;
            let mut lost = 0.0;
            for filter in set.stages() {
                let keys = filter.estimated_keys();
                let from = (before - start).clamp(0.0, keys);
                let wrong = integral(from, keys, |i| filter.expected_fpr(i));
                stayed += keys - from - wrong;
                lost += (keys - from) * (1.0 / kept - 1.0) + wrong;
                kept *= 1.0 - filter.expected_fpr(keys as u64);
                start += keys;
            }
            // The filters estimate their numbers of keys; the number of inserted keys is exact.
            if stayed > 0.0 { lost * inserted / stayed } else { 0.0 }
        }
    }
}

/// Returns the expected number of distinct lines that a filter of a fixed size drops by mistake.
///
/// A line that is wrongly dropped had all its bits set, so the bits are those of all distinct lines, lost ones
/// included. Of `keys` distinct lines, the sum of the rates at each insertion is lost. The number of keys that leaves
/// `inserted` is found by Newton's method, which approaches from below and does not overshoot, because the rate only
/// rises. In a full filter there may be no solution: the number of lines is the limit.
fn expected_losses(plan: &Plan, before: f64, inserted: f64, lines: f64) -> f64 {
    if !before.is_finite() {
        // All bits were set: every line was reported as seen.
        return lines - inserted;
    }
    let mut keys = inserted;
    for _ in 0..32 {
        let left = keys - sum_of_rates(plan, before, before + keys);
        let step = (inserted - left) / (1.0 - plan.expected_fpr((before + keys) as u64)).max(f64::EPSILON);
        keys = (keys + step).clamp(inserted, lines);
        if step < 0.001 {
            break;
        }
    }
    sum_of_rates(plan, before, before + keys)
}

/// Returns the sum of `expected_fpr(i)` for i between two numbers of keys.
fn sum_of_rates(plan: &Plan, from: f64, to: f64) -> f64 {
    integral(from, to, |i| plan.expected_fpr(i))
}

/// Returns the integral of a rate over numbers of keys, by Simpson's rule. The rate is smooth and rises at most like
/// i^16: with this number of intervals the error is below 0.01 %.
fn integral(from: f64, to: f64, rate: impl Fn(u64) -> f64) -> f64 {
    const INTERVALS: u64 = 64;
    let term = |j| {
        let weight = if j == 0 || j == INTERVALS { 1 } else { 2 + 2 * (j % 2) };
        weight as f64 * rate((from + (to - from) * j as f64 / INTERVALS as f64) as u64)
    };
    (to - from) / (3 * INTERVALS) as f64 * (0..=INTERVALS).map(term).sum::<f64>()
}
