//! The kinds of filters on a server: one size, or a sequence of stages.

use crate::shards::{Expiry, SHARD_BYTES};
use bloomline::{BloomFilter, BuildError, KeyHasher, Plan};
use std::time::Duration;

/// The ratio of a stage's rate to the previous stage's rate. The first stage has 1 minus this of the total rate, so
/// that the sum over all stages is the total. [`ScalableBloomFilter`](bloomline::ScalableBloomFilter) has the same
/// ratio.
const TIGHTENING: f64 = 0.875;

/// The default number of generations in a window, besides the one that takes keys.
const GENERATIONS: u32 = 4;

/// The maximum number of generations. Each generation costs a read for each key.
pub(crate) const MAX_GENERATIONS: u32 = 64;

/// The minimum number of keys in a generation, so that many clients can share its permits.
const MIN_KEYS: u64 = 32 * 1024;

/// The minimum fraction of the total rate for a generation, so that its size stays finite.
const MIN_RATE_FRACTION: f64 = 1.0 / (1 << 20) as f64;

/// The number of seconds for which a generation may take keys after its time: clients check the clock once a second.
const ALLOWED_LATENESS: u64 = 2;

/// A filter of one size, or stages.
#[derive(Clone, Copy)]
pub(crate) enum FilterKind {
    Fixed(Plan),
    Staged(Stages),
}

/// The parameters of a filter on a server that grows with its keys, or forgets them in time, for
/// [`RedisBloomFilter::create_stages`](crate::RedisBloomFilter::create_stages).
///
/// Such a filter is a sequence of filters, the *stages*. A key is new if no stage has it, and is inserted into the last
/// one. When the last stage is full, or its time is over, a client seals it and opens the next, and all clients follow.
/// Each key is claimed by one client, also meanwhile. The false-positive rate of all stages together stays below the
/// requested one, for any number of keys at any time, and of clients. An insert fails if the next stage would be too large,
/// or if hashes of 64 bits cannot keep its rate.
///
/// - **It grows** ([`growing`](Self::growing)): each stage takes twice as many keys as the one before, at 7/8 of its rate, as in a
///   [`ScalableBloomFilter`](bloomline::ScalableBloomFilter).
/// - **It forgets** ([`window`](Self::window)): a generation takes keys for a part of the window, or until it is full,
///   and is queried for the complete window after that. The servers' clock counts. A key is remembered for at least the
///   window, and at most for a generation's time and some seconds more. The servers remove an unused generation after a
///   generation's time; the description is kept.
///
/// # Examples
/// ```no_run
/// use bloomline_redis::{RedisBloomFilter, RedisServer, Stages};
/// use std::time::Duration;
///
/// let server = RedisServer::new("redis://127.0.0.1:6379")?;
/// let mut seen = RedisBloomFilter::create_stages(&server, "crawl", &Stages::growing(0.001))?;
/// seen.insert("https://example.org/")?;
///
/// let month = Duration::from_secs(30 * 86_400);
/// let pages = Stages::window(month, 100_000_000, 0.001); // keys in 30 days, at most
/// let mut visited = RedisBloomFilter::create_stages(&server, "month", &pages)?;
/// if visited.insert("https://example.org/")? {
///     println!("a page to visit, or to visit again");
/// }
/// # Ok::<(), bloomline_redis::RedisFilterError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stages {
    /// The keys of the first stage, or of a window.
    pub(crate) keys: u64,
    /// The rate of all stages together.
    pub(crate) rate: f64,
    /// The number of seconds for which keys are remembered. 0 if the filter grows.
    pub(crate) window: u64,
    /// The number of generations that are queried besides the one that takes keys. 0 if the filter grows.
    pub(crate) generations: u32,
    pub(crate) seed: u64,
}

impl Stages {
    /// Creates the parameters of a filter that grows, with a false-positive rate below `rate`, between 0 and 1. By
    /// default the [first stage](Self::first_stage) has 16 MiB and takes as many keys as fit: some seven million at a
    /// rate of 0.001.
    pub fn growing(rate: f64) -> Self {
        let first = BloomFilter::builder().memory(SHARD_BYTES).probes(8).plan().expect("a valid size");
        let keys = first.capacity(rate * (1.0 - TIGHTENING)).max(1);
        Self { keys, rate, window: 0, generations: 0, seed: 0 }
    }

    /// Creates the parameters of a filter that forgets keys from before the window, and is planned for `keys` keys in a
    /// window. If more arrive, or all at once, it has more stages. Each stage takes memory and a read for each key.
    ///
    /// The time is rounded up to whole seconds for each [generation](Self::generations).
    pub fn window(window: Duration, keys: u64, rate: f64) -> Self {
        let seconds = window.as_secs().saturating_add(u64::from(window.subsec_nanos() > 0));
        Self { keys, rate, window: seconds.max(1), generations: GENERATIONS, seed: 0 }
    }

    /// Sets the number of keys in the first stage of a filter that grows. Too small a guess costs stages, one for each
    /// doubling, and too large a guess costs memory. Has no effect on a filter that forgets.
    pub fn first_stage(mut self, keys: u64) -> Self {
        if self.window == 0 {
            self.keys = keys;
        }
        self
    }

    /// Sets the number of generations of the window, from 1 to 64; the default is 4. More generations remember less
    /// beyond the window, and cost a read more for each key. Has no effect on a filter that grows.
    pub fn generations(mut self, generations: u32) -> Self {
        if self.window > 0 {
            self.generations = generations.clamp(1, MAX_GENERATIONS);
        }
        self
    }

    /// Sets the seed of the hash; the default is 0.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Returns the keys of the first stage, or within a window.
    pub fn expected_keys(&self) -> u64 {
        self.keys
    }

    /// Returns the maximum false-positive rate of all stages together.
    pub fn false_positive_rate(&self) -> f64 {
        self.rate
    }

    /// Returns the time for which keys are remembered, if they are forgotten.
    pub fn forgets_after(&self) -> Option<Duration> {
        (self.window > 0).then(|| Duration::from_secs(self.window))
    }

    pub(crate) fn hasher(&self) -> KeyHasher {
        KeyHasher::new(self.seed)
    }

    /// Returns the size of a stage and its keys. For a generation, these are of the first one.
    pub(crate) fn stage_plan(&self, number: u64) -> Result<(Plan, u64), BuildError> {
        if self.window > 0 {
            return self.generation_plan(0.0, 0);
        }
        let shift = u32::try_from(number).unwrap_or(u32::MAX);
        let keys = 1u64.checked_shl(shift).map_or(u64::MAX, |factor| self.keys.saturating_mul(factor));
        Ok((self.plan_for(keys, self.max_rate(number))?, keys))
    }

    /// Returns the maximum rate of a stage with the keys that it takes.
    fn max_rate(&self, number: u64) -> f64 {
        if self.window > 0 {
            return self.rate / (f64::from(self.generations) + 2.0);
        }
        // Multiplications alone, so that it is the same number on every platform.
        (0..number.min(u64::BITS.into())).fold(self.rate * (1.0 - TIGHTENING), |rate, _| rate * TIGHTENING)
    }

    /// Returns the size of a generation and its keys. A generation gets a part of the rate that the other queried
    /// generations leave. If more keys came than planned, so that generations with `early_full` keys were full before
    /// their time, it is larger.
    pub(crate) fn generation_plan(&self, rate_of_others: f64, early_full: u64) -> Result<(Plan, u64), BuildError> {
        let generations = u64::from(self.generations);
        let keys = self.keys.div_ceil(generations).max(early_full / generations);
        if keys == 0 {
            return Err(BuildError::NoKeys);
        }
        let keys = keys.max(MIN_KEYS);
        let rate =
            (self.rate - rate_of_others).max(self.rate * MIN_RATE_FRACTION) / (f64::from(self.generations) + 2.0);
        Ok((self.plan_for(keys_with_slack(keys), rate)?, keys))
    }

    /// Returns the number of permits of a stage of this many keys: the number of keys for which it is sized.
    pub(crate) fn permits(&self, keys: u64) -> u64 {
        if self.window > 0 { keys_with_slack(keys) } else { keys }
    }

    /// Returns the size for this many keys.
    fn plan_for(&self, keys: u64, rate: f64) -> Result<Plan, BuildError> {
        // A rate of 1 and more would be one below 1 here, and be taken.
        let rate = if self.rate > 0.0 && self.rate < 1.0 { rate } else { self.rate };
        let plan = BloomFilter::builder().expected_keys(keys).false_positive_rate(rate).plan()?;
        crate::shards::check_size(plan)?;
        Ok(plan)
    }

    /// True if the filter may have a stage of this size that takes this many keys: it keeps its part of the rate, and no
    /// line makes a client take more memory than the filter needs. Another platform may round a size in another way. A
    /// generation may take any number of keys, by its predecessors.
    pub(crate) fn fits(&self, number: u64, plan: Plan, keys: u64) -> bool {
        let largest = if self.window > 0 {
            self.plan_for(keys_with_slack(keys), self.max_rate(number) * MIN_RATE_FRACTION)
        } else {
            self.stage_plan(number).map(|(planned, _)| planned)
        };
        // The sizes of all filters have a limit of their own.
        let is_small = match largest {
            Ok(largest) => plan.block_count() <= largest.block_count() + largest.block_count() / 8 + 1,
            Err(_) => self.window > 0,
        };
        keys > 0 && is_small && plan.expected_fpr(keys) <= self.max_rate(number) * 1.125
    }

    /// Returns the time at which a stage that was opened at `opened` is `periods` periods old; `None` if the filter
    /// does not forget. A period is the time for which a generation takes keys.
    fn end_of_period(&self, opened: u64, periods: u64) -> Option<u64> {
        // There are no generations if it grows.
        let generations = u64::from(self.generations);
        (generations > 0).then(|| opened.saturating_add(self.window.div_ceil(generations).saturating_mul(periods)))
    }

    /// True if a stage that was opened at `opened` takes no more keys at `time`, regardless of its fill.
    pub(crate) fn is_over(&self, opened: u64, time: u64) -> bool {
        self.end_of_period(opened, 1).is_some_and(|end| time >= end)
    }

    /// True if a claim in a stage that was opened at `opened` may be so late that its key would be forgotten before the
    /// window ends. `after` is the time since the server last reported `time`.
    pub(crate) fn is_late(&self, opened: u64, time: u64, after: Duration) -> bool {
        self.end_of_period(opened, 1).is_some_and(|end| {
            let left = end.saturating_add(ALLOWED_LATENESS).saturating_sub(time);
            // The server's time has whole seconds.
            after.saturating_add(Duration::from_secs(1)) > Duration::from_secs(left)
        })
    }

    /// True if a stage that was opened at `opened` is queried at `time`.
    pub(crate) fn is_queried(&self, opened: u64, time: u64) -> bool {
        self.end_of_period(opened, u64::from(self.generations) + 1)
            .is_none_or(|end| time < end.saturating_add(ALLOWED_LATENESS))
    }

    /// Returns the time after which the servers remove a stage that was opened at `opened`, if they do.
    pub(crate) fn expiry(&self, opened: u64) -> Option<Expiry> {
        self.expires_at(opened).zip(self.expires_at(0)).map(|(at, after)| Expiry { at, after })
    }

    /// Returns the time at which the servers remove a stage that was opened at `opened`, if they do.
    pub(crate) fn expires_at(&self, opened: u64) -> Option<u64> {
        self.end_of_period(opened, u64::from(self.generations) + 2).map(|end| end.saturating_add(ALLOWED_LATENESS))
    }
}

/// Returns the number of keys for which a generation of this many keys is sized: some are in flight while a client finds it
/// full.
pub(crate) fn keys_with_slack(keys: u64) -> u64 {
    keys.saturating_add(keys / 16)
}

impl FilterKind {
    /// Returns the numbers in which two filters of one name must agree.
    pub(crate) fn parameters(&self) -> [u64; 6] {
        let (stages, window, generations, keys, plan) = match self {
            Self::Fixed(plan) => (0, 0, 0, 0, Some(*plan)),
            Self::Staged(stages) => {
                // Those of one that grows show in its blocks.
                let keys = if stages.window > 0 { stages.keys } else { 0 };
                (1, stages.window, stages.generations.into(), keys, stages.stage_plan(0).ok().map(|(plan, _)| plan))
            }
        };
        let (blocks, probes) = plan.map_or((0, 0), |plan| (plan.block_count() as u64, plan.probes().into()));
        [stages, window, generations, keys, blocks, probes]
    }

    /// Describes the size: if it is fixed, by the number of keys at a false-positive rate of `fixed_rate`.
    pub(crate) fn describe(&self, fixed_rate: f64) -> String {
        match self {
            Self::Fixed(plan) => {
                let (keys, bytes, probes) = (plan.capacity(fixed_rate), plan.memory_bytes(), plan.probes());
                format!("has room for {keys} keys at a rate of {fixed_rate:?} ({bytes} bytes, {probes} probes)")
            }
            Self::Staged(Stages { keys, rate, window: 0, .. }) => {
                format!("grows, from {keys} keys, at a rate below {rate:?}")
            }
            Self::Staged(Stages { keys, rate, window, generations, .. }) => format!(
                "forgets keys after {window} s ({generations} generations), for {keys} keys in this time at a rate below {rate:?}"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The client in Python computes the same table by the code of the page.
    #[test]
    fn the_page_has_the_sizes_of_filters() {
        let rates = [0.5, 0.01, 0.001, 1e-6, 1e-9];
        let heads: String = rates.iter().map(|rate| format!(" {rate:?} |")).collect();
        let mut table = format!("| keys |{heads}\n|---|{}\n", "---|".repeat(rates.len()));
        for keys in [1, 1000, 1_000_000, 1_000_000_000] {
            let size = |&rate| BloomFilter::builder().expected_keys(keys).false_positive_rate(rate).plan().unwrap();
            let cells = rates.iter().map(size).map(|plan| format!(" {} × {} |", plan.block_count(), plan.probes()));
            table += &format!("| {keys} |{}\n", cells.collect::<String>());
        }
        assert!(include_str!("../PROTOCOL.md").contains(&table), "{table}");
    }

    #[test]
    fn stages_that_clients_plan_fit_and_smaller_and_larger_ones_do_not() {
        let sized = |blocks: usize, probes| BloomFilter::builder().memory(64 * blocks).probes(probes).plan().unwrap();
        for rate in [1e-9, 1e-6, 0.001, 0.01, 0.3, 0.9] {
            for keys in [1, 7, 1000, 20_000, 1_000_000, 1 << 32] {
                let grows = Stages::growing(rate).first_stage(keys);
                let mut planned: Vec<_> =
                    (0..12).filter_map(|number| Some((grows, number, grows.stage_plan(number).ok()?))).collect();
                for generations in [1, 4, 64] {
                    let stages = Stages::window(Duration::from_secs(60), keys, rate).generations(generations);
                    for others in [0.0, 0.5, 0.999, 1.0, 2.0].map(|share| share * rate) {
                        for early_full in [0, keys / 2, keys * 3, keys * 1000] {
                            let plan = stages.generation_plan(others, early_full).ok();
                            planned.extend(plan.map(|plan| (stages, 3, plan)));
                        }
                    }
                }
                assert!(planned.len() >= 10, "{rate} {keys} {}", planned.len());
                for (stages, number, (plan, keys)) in planned {
                    assert!(stages.fits(number, plan, keys), "{stages:?} {number} {plan:?} {keys}");
                    let (blocks, probes) = (plan.block_count(), plan.probes());
                    assert!(!stages.fits(number, plan, 0) && !stages.fits(number, plan, u64::MAX));
                    if blocks > 8 && rate < 0.1 {
                        let smaller = sized(blocks / 2, probes);
                        assert!(stages.window > 0 || !stages.fits(number, smaller, keys), "{stages:?} {number} {keys}");
                        assert!(!stages.fits(number, sized(1, probes), keys), "{stages:?} {number} {keys}");
                        assert!(stages.window > 0 || !stages.fits(number, sized(2 * blocks, probes), keys));
                    }
                }
            }
        }
    }

    #[test]
    fn a_window_is_at_least_as_long_as_requested() {
        let endless = Stages::window(Duration::MAX, 1000, 0.01);
        assert_eq!(endless.forgets_after(), Some(Duration::from_secs(u64::MAX)));
        assert!(!endless.is_over(1, 1 << 40) && endless.is_queried(1, u64::MAX - 1));
        let rounded = Stages::window(Duration::from_millis(1001), 1000, 0.01);
        assert_eq!(rounded.forgets_after(), Some(Duration::from_secs(2)));
    }
}
