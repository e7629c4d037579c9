//! The metrics of a client: lost answers, repeated commands, and response times.

use std::time::Duration;

/// The counters of a client of a shared filter. Reading them takes no round trip.
///
/// # Examples
/// ```no_run
/// use bloomline_redis::{RedisBloomFilter, RedisServer};
///
/// let mut seen = RedisBloomFilter::open(&RedisServer::new("redis://127.0.0.1:6379")?, "crawl")?;
/// seen.insert("https://example.org/")?;
/// let metrics = seen.metrics();
/// println!("{} keys in doubt, {:?} a batch", metrics.uncertain, metrics.mean_batch_time());
/// # Ok::<(), bloomline_redis::RedisFilterError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct RedisFilterMetrics {
    /// [`RedisBloomFilter::uncertain`](crate::RedisBloomFilter::uncertain).
    pub uncertain: u64,
    /// [`RedisBloomFilter::unconfirmed`](crate::RedisBloomFilter::unconfirmed).
    pub unconfirmed: u64,
    /// The number of keys of dropped calls that a later call reported as new. 0 for a client that blocks.
    pub given_back: u64,
    /// The number of commands that were sent again: connections broke, slots moved, or a server was not able to carry
    /// them out.
    pub sent_again: u64,
    /// The share of bits that were set, 0 to 1, when this client last called [`stats`](crate::RedisBloomFilter::stats).
    pub fill_ratio: Option<f64>,
    /// Portions of up to 4096 keys for which the servers were asked since the last call of
    /// [`metrics`](crate::RedisBloomFilter::metrics).
    pub batches: u64,
    /// The time that all these portions took, from the first command to the last answer.
    pub batch_time: Duration,
    /// The longest time that a portion took.
    pub slowest_batch: Duration,
}

impl RedisFilterMetrics {
    /// Returns the mean time of a portion since the last call; `None` if there was none.
    pub fn mean_batch_time(&self) -> Option<Duration> {
        (self.batches > 0).then(|| self.batch_time.div_f64(self.batches as f64))
    }

    /// Counts a portion.
    pub(crate) fn record_batch(&mut self, time: Duration) {
        self.batches += 1;
        self.batch_time += time;
        self.slowest_batch = self.slowest_batch.max(time);
    }

    /// Returns the counters, and resets the counters of batches.
    pub(crate) fn take(&mut self) -> Self {
        let current = *self;
        (self.batches, self.batch_time, self.slowest_batch) = Default::default();
        current
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_of_batches_start_anew_at_each_call() {
        let mut metrics = RedisFilterMetrics { given_back: 3, ..Default::default() };
        assert_eq!(metrics.mean_batch_time(), None);
        [30, 10, 20].iter().for_each(|&time| metrics.record_batch(Duration::from_millis(time)));
        let taken = metrics.take();
        assert_eq!((taken.batches, taken.mean_batch_time()), (3, Some(Duration::from_millis(20))));
        assert_eq!((taken.slowest_batch, taken.given_back), (Duration::from_millis(30), 3));
        let taken = metrics.take();
        assert_eq!(
            (taken.batches, taken.batch_time, taken.slowest_batch, taken.given_back),
            (0, Duration::ZERO, Duration::ZERO, 3)
        );
    }
}
