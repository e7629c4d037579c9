//! What `--stats` prints.

use crate::figures::{Figures, estimated, readable, readable_size};
use crate::inserter::Inserter;
use bloomline::BloomFilter;
use std::time::Duration;

/// The figures of `dedup`. Reads the whole filter.
pub fn of_dedup(done: &Inserter, elapsed: Duration) -> Figures {
    let lost = wrongly_dropped(&done.filter, done.lines as f64, done.new as f64);
    let mut figures = Figures::default();
    figures.both("lines read", done.lines, "lines", done.lines);
    figures.both("unique", done.new, "unique", done.new);
    figures.both("dropped", done.lines - done.new, "dropped", done.lines - done.new);
    figures.both("wrongly dropped", format!("{lost:.3} expected"), "expected_wrongly_dropped", lost);
    state_and_speed(&mut figures, done, elapsed);
    figures
}

/// The figures of `build`. Reads the whole filter.
pub fn of_build(done: &Inserter, elapsed: Duration) -> Figures {
    let keys = done.filter.estimated_keys();
    let mut figures = Figures::default();
    figures.both("lines read", done.lines, "lines", done.lines);
    figures.both("new", done.new, "new", done.new);
    figures.both("keys in all", estimated(keys, 0), "estimated_keys", keys);
    state_and_speed(&mut figures, done, elapsed);
    figures
}

fn state_and_speed(figures: &mut Figures, done: &Inserter, elapsed: Duration) {
    let (fill, fpr, memory) = (done.filter.fill_ratio(), done.filter.current_fpr(), done.filter.memory_bytes());
    let seconds = elapsed.as_secs_f64();
    let speed = done.bytes as f64 / 1e6 / seconds;
    figures.both("fill", format!("{:.2} %", 100.0 * fill), "fill", fill);
    figures.both("rate now", readable(fpr), "fpr", fpr);
    figures.both("filter memory", readable_size(memory), "memory_bytes", memory);
    figures.field("bytes", done.bytes);
    figures.both("time", format!("{seconds:.3} s"), "seconds", seconds);
    figures.both("speed", format!("{speed:.1} MB/s"), "mb_per_second", speed);
}

/// The expected number of distinct lines that were taken for repeats.
///
/// A line that is dropped had all its bits set, so the filter is the one that all distinct lines would make, the lost
/// ones too. Of `keys` distinct lines the sum of the rates met by each is lost; the number of keys sought is the one
/// that leaves `unique`, found by Newton's method. It comes from below and does not overshoot, as the rate only rises. In a filter
/// that is full no number may fit: it is at most the number of lines.
fn wrongly_dropped(filter: &BloomFilter, lines: f64, unique: f64) -> f64 {
    let mut keys = unique;
    for _ in 0..32 {
        let step =
            (unique - (keys - sum_of_rates(filter, keys))) / (1.0 - filter.expected_fpr(keys as u64)).max(f64::EPSILON);
        keys = (keys + step).clamp(unique, lines);
        if step < 0.001 {
            break;
        }
    }
    sum_of_rates(filter, keys)
}

/// The sum of `expected_fpr(i)` for i from 0 to `keys`, by Simpson's rule. The rate is smooth in i, at the steepest
/// about i^16: with this many intervals the sum errs by less than 0.01 %.
fn sum_of_rates(filter: &BloomFilter, keys: f64) -> f64 {
    const INTERVALS: u64 = 64;
    let term = |j| {
        let weight = if j == 0 || j == INTERVALS { 1 } else { 2 + 2 * (j % 2) };
        weight as f64 * filter.expected_fpr((keys * j as f64 / INTERVALS as f64) as u64)
    };
    keys / (3 * INTERVALS) as f64 * (0..=INTERVALS).map(term).sum::<f64>()
}
