//! Metrics of a shared set's servers during a run, available without waiting for a call in progress.

use crate::seen::counts::LineCounts;
use crate::system::unpoisoned::locked;
use crate::terminal::figures::{Figures, readable_count};
use bloomline_redis::{RedisBloomFilter, RedisFilterMetrics};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// The duration from which a call in progress is reported.
const REPORTED_WAIT: Duration = Duration::from_secs(1);

/// Metrics of a set and its servers.
#[derive(Default)]
pub struct RemoteStats {
    stats: Mutex<RemoteCounts>,
    /// True if a report is due. Relaxed: the metrics are behind the lock.
    due: AtomicBool,
}

#[derive(Default)]
struct RemoteCounts {
    /// The client's counters at the end of the last call, and the times of its last batches.
    last: RedisFilterMetrics,
    /// Batches since the last report.
    batches: u64,
    batch_time: Duration,
    slowest_batch: Duration,
    /// The fill ratio that the servers last reported.
    fill: Option<f64>,
    /// The start of the call in progress.
    call_started: Option<Instant>,
}

impl RemoteStats {
    /// Records that a call begins.
    pub fn begin(&self) {
        locked(&self.stats).call_started = Some(Instant::now());
    }

    /// Records that the call ended, with the client's metrics. The times in them cover this call.
    pub fn end(&self, metrics: RedisFilterMetrics) {
        let mut stats = locked(&self.stats);
        stats.call_started = None;
        stats.batches += metrics.batches;
        stats.batch_time += metrics.batch_time;
        stats.slowest_batch = stats.slowest_batch.max(metrics.slowest_batch);
        // A call whose keys were all in the mirror sent no batch: the last times remain.
        let last = if metrics.batches > 0 { metrics } else { stats.last };
        let RedisFilterMetrics { batches, batch_time, .. } = last;
        stats.last = metrics;
        (stats.last.batches, stats.last.batch_time) = (batches, batch_time);
    }

    /// Records the fill ratio that the servers reported.
    pub fn set_fill(&self, fill: f64) {
        locked(&self.stats).fill = Some(fill);
    }

    /// Queries the fill ratio at this interval and makes a report due. Uses a client of its own, so that no line waits.
    /// Ends with the process.
    pub fn ask_every(self: &Arc<Self>, every: Duration, mut filter: RedisBloomFilter) {
        let remote = Arc::downgrade(self);
        let ask = move || {
            loop {
                thread::sleep(every);
                // The run encounters the same failure and reports it.
                let fill = filter.stats().ok().map(|stats| stats.fill_ratio);
                let Some(remote) = remote.upgrade() else { return };
                let mut stats = locked(&remote.stats);
                stats.fill = fill.or(stats.fill);
                remote.due.store(true, Relaxed);
            }
        };
        // Without the thread there are no reports, and no line is lost.
        _ = thread::Builder::new().spawn(ask);
    }

    /// Returns the metrics so far if a report is due.
    pub fn report(&self, counts: &LineCounts, elapsed: Duration) -> Option<Figures> {
        if !self.due.swap(false, Relaxed) {
            return None;
        }
        let mut stats = locked(&self.stats);
        let mut figures = Figures::default();
        figures.field("running", true);
        figures.figure("lines read", "lines", counts.lines);
        figures.figure("unique", "unique", counts.unique);
        figures.figure("dropped", "dropped", counts.dropped());
        let fill = stats.fill.map_or_else(|| "unknown".to_owned(), |fill| format!("{:.2} %", 100.0 * fill));
        figures.row_and_field("fill", fill, "fill", stats.fill);
        let RedisFilterMetrics { uncertain, unconfirmed, given_back, sent_again, .. } = stats.last;
        figures.figure("uncertain", "uncertain", uncertain);
        figures.unless_zero("unconfirmed", "unconfirmed", unconfirmed);
        figures.unless_zero("given back", "given_back", given_back);
        figures.figure("sent again", "sent_again", sent_again);
        let mean = mean(stats.batches, stats.batch_time);
        let text =
            mean.map_or_else(|| "none".to_owned(), |mean| format!("{mean:.1?}, {:.1?} at most", stats.slowest_batch));
        figures.row("a batch", text);
        figures.field("batches", stats.batches);
        figures.field("mean_batch_seconds", mean.map(|mean| mean.as_secs_f64()));
        figures.field("slowest_batch_seconds", mean.map(|_| stats.slowest_batch.as_secs_f64()));
        figures.row_and_field("time", format!("{:.3} s", elapsed.as_secs_f64()), "seconds", elapsed.as_secs_f64());
        (stats.batches, stats.batch_time, stats.slowest_batch) = Default::default();
        Some(figures)
    }

    /// Returns the state of the set in a few words, for the progress line.
    pub fn status(&self) -> String {
        let stats = locked(&self.stats);
        match (stats.call_started.map(|call_started| call_started.elapsed()), stats.fill) {
            (Some(waited), _) if waited >= REPORTED_WAIT => format!("waits {} s", waited.as_secs()),
            (_, Some(fill)) => format!("shared {:.1} % full", 100.0 * fill),
            _ => "shared".to_owned(),
        }
    }

    /// Returns further metrics for the progress line.
    pub fn parts(&self) -> Vec<String> {
        let stats = locked(&self.stats);
        let RedisFilterMetrics { uncertain, unconfirmed, sent_again, batches, batch_time, .. } = stats.last;
        let count = |count: u64, what: &str| (count > 0).then(|| format!("{} {what}", readable_count(count as f64)));
        let mean = mean(batches, batch_time).map(|mean| format!("{:.1} ms a batch", 1e3 * mean.as_secs_f64()));
        let counts = [(uncertain, "uncertain"), (unconfirmed, "unconfirmed"), (sent_again, "sent again")];
        mean.into_iter().chain(counts.into_iter().filter_map(|(figure, what)| count(figure, what))).collect()
    }
}

fn mean(batches: u64, time: Duration) -> Option<Duration> {
    (batches > 0).then(|| time.div_f64(batches as f64))
}
