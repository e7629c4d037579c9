//! The classes of the figures of a filter on a server.

use bloomline_redis::{RedisFilterMetrics as Metrics, RedisFilterStats as Stats};
use pyo3::prelude::*;

/// The fill of a filter on a server: RedisBloomFilter.stats().
#[pyclass(module = "bloomline", frozen, get_all)]
pub(crate) struct RedisFilterStats {
    /// The number of stages: 1, unless the filter grows or forgets.
    stages: usize,
    /// The size of all bits in bytes.
    memory_bytes: u64,
    /// The fraction of bits that are set, 0 to 1.
    fill_ratio: f64,
    /// The number of distinct keys, estimated from the fraction of bits set. Infinite if all bits are set.
    estimated_keys: f64,
    /// The expected false-positive rate with that number of keys.
    expected_fpr: f64,
    /// The bytes that the servers hold for the filter.
    stored_bytes: u64,
}

impl From<Stats> for RedisFilterStats {
    fn from(stats: Stats) -> Self {
        let Stats { stages, memory_bytes, fill_ratio, estimated_keys, expected_fpr, stored_bytes, .. } = stats;
        Self { stages, memory_bytes, fill_ratio, estimated_keys, expected_fpr, stored_bytes }
    }
}

#[pymethods]
impl RedisFilterStats {
    fn __repr__(&self) -> String {
        let Self { stages, memory_bytes, fill_ratio, estimated_keys, expected_fpr, stored_bytes } = self;
        format!(
            "RedisFilterStats(stages={stages}, memory_bytes={memory_bytes}, fill_ratio={fill_ratio:?}, estimated_keys={estimated_keys:?}, \
             expected_fpr={expected_fpr:?}, stored_bytes={stored_bytes})"
        )
    }
}

/// The events of a client of a filter on a server: RedisBloomFilter.metrics().
#[pyclass(module = "bloomline", frozen, get_all)]
pub(crate) struct RedisFilterMetrics {
    /// Keys that were reported as new although another process may have got the same answer.
    uncertain: u64,
    /// Keys that were reported as new although too few replicas had them in time.
    unconfirmed: u64,
    /// Commands that were sent again.
    sent_again: u64,
    /// The fraction of bits that were set at the last call of stats, or None.
    fill_ratio: Option<f64>,
    /// Portions of up to 4096 keys that were sent to the servers since the last call of metrics.
    batches: u64,
    /// The mean time of a portion, in seconds, or None if there was none.
    mean_batch_seconds: Option<f64>,
    /// The longest time of a portion, in seconds.
    slowest_batch_seconds: f64,
}

impl From<Metrics> for RedisFilterMetrics {
    fn from(metrics: Metrics) -> Self {
        let Metrics { uncertain, unconfirmed, sent_again, fill_ratio, batches, slowest_batch, .. } = metrics;
        let mean_batch_seconds = metrics.mean_batch_time().map(|time| time.as_secs_f64());
        let slowest_batch_seconds = slowest_batch.as_secs_f64();
        Self { uncertain, unconfirmed, sent_again, fill_ratio, batches, mean_batch_seconds, slowest_batch_seconds }
    }
}

#[pymethods]
impl RedisFilterMetrics {
    fn __repr__(&self) -> String {
        let Self { uncertain, unconfirmed, sent_again, batches, slowest_batch_seconds, .. } = self;
        format!(
            "RedisFilterMetrics(uncertain={uncertain}, unconfirmed={unconfirmed}, sent_again={sent_again}, batches={batches}, \
             slowest_batch_seconds={slowest_batch_seconds:?})"
        )
    }
}
