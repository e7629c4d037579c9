//! What `--stats` prints.

use bloomline::BloomFilter;
use std::time::Duration;

/// The figures of a run.
pub struct Report {
    lines: u64,
    unique: u64,
    bytes: u64,
    wrongly_dropped: f64,
    fill: f64,
    fpr: f64,
    memory: usize,
    seconds: f64,
}

impl Report {
    /// Takes the filter's figures after `unique` of `lines` lines were new. Reads the whole filter.
    pub fn new(filter: &BloomFilter, lines: u64, unique: u64, bytes: u64, elapsed: Duration) -> Self {
        Self {
            lines,
            unique,
            bytes,
            wrongly_dropped: wrongly_dropped(filter, lines as f64, unique as f64),
            fill: filter.fill_ratio(),
            fpr: filter.current_fpr(),
            memory: filter.memory_bytes(),
            seconds: elapsed.as_secs_f64(),
        }
    }

    fn megabytes_per_second(&self) -> f64 {
        self.bytes as f64 / 1e6 / self.seconds
    }

    /// A line for each figure.
    pub fn text(&self) -> String {
        let Self { lines, unique, wrongly_dropped, seconds, .. } = self;
        let fpr = readable(self.fpr);
        let (dropped, fill, memory) = (lines - unique, 100.0 * self.fill, self.memory as f64 / 1e6);
        let speed = self.megabytes_per_second();
        format!(
            "lines read       {lines}\n\
             unique           {unique}\n\
             dropped          {dropped}\n\
             wrongly dropped  {wrongly_dropped:.3} expected\n\
             fill             {fill:.2} %\n\
             rate now         {fpr}\n\
             filter memory    {memory:.2} MB\n\
             time             {seconds:.3} s\n\
             speed            {speed:.1} MB/s"
        )
    }

    /// One JSON object on one line.
    pub fn json(&self) -> String {
        let Self { lines, unique, bytes, wrongly_dropped, fill, fpr, memory, seconds } = self;
        let (dropped, speed) = (lines - unique, self.megabytes_per_second());
        format!(
            r#"{{"lines":{lines},"unique":{unique},"dropped":{dropped},"expected_wrongly_dropped":{wrongly_dropped:?},"fill":{fill:?},"fpr":{fpr:?},"memory_bytes":{memory},"bytes":{bytes},"seconds":{seconds:?},"mb_per_second":{speed:?}}}"#
        )
    }
}

/// A rate for people to read.
pub fn readable(rate: f64) -> String {
    if rate < 0.001 { format!("{rate:.2e}") } else { format!("{rate:.4}") }
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
        let step = (unique - (keys - sum_of_rates(filter, keys))) / (1.0 - filter.expected_fpr(keys as u64));
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
