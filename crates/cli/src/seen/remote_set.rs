//! A filter on a server, shared with other processes. Only this module and `commands/{redis,server}.rs` use Redis.

use crate::seen::kind_conflict;
use crate::system::error::Error;
use crate::terminal::figures::readable;
use bloomline::{BloomFilter, KeyHasher, Plan};
use bloomline_keys::{KeyKinds, Kinds};
use bloomline_redis::{RedisBloomFilter, RedisFilterError, RedisFilterStats, RedisServer, RedisServerStats, Stages};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

pub use crate::seen::remote_stats::RemoteStats;

/// The location of a filter: a server or cluster, and a name on it.
pub struct Address<'a> {
    pub server: RedisServer,
    /// The name of the filter.
    pub name: &'a str,
}

impl Address<'_> {
    /// Opens the existing filter.
    pub fn open(&self) -> Result<RedisBloomFilter, RedisFilterError> {
        RedisBloomFilter::open(&self.server, self.name)
    }
}

impl From<RedisFilterError> for Error {
    fn from(error: RedisFilterError) -> Self {
        Self::Shared(error.to_string())
    }
}

/// A filter on a server, with its statistics.
pub struct RemoteSet {
    filter: Mutex<RedisBloomFilter>,
    hasher: KeyHasher,
    /// The size of the filter, or of its first stage when it was opened.
    size: Plan,
    /// The stages' parameters, if it grows or forgets.
    stages: Option<Stages>,
    /// The false-positive rate that it was made for, if known.
    planned: Option<f64>,
    /// The number of replicas that have a key before it is reported as new.
    pub awaited_replicas: u32,
    /// The statistics of the last query, if any.
    stats: Option<RedisFilterStats>,
    /// The kinds of the keys. Before [`settle_kinds`](Self::settle_kinds), a filter without recorded kinds is assumed
    /// to have texts.
    kinds: KeyKinds,
    /// The kinds that the server is known to have recorded. `None` if they were not read, or the user has no right to
    /// read them.
    recorded: Option<Vec<u16>>,
    /// True if the server was asked whether the filter has keys.
    is_settled: bool,
    /// Metrics of its servers.
    remote: Arc<RemoteStats>,
}

impl RemoteSet {
    /// Opens an existing filter.
    pub fn open(address: &Address) -> Result<Self, Error> {
        Ok(Self::new(address.open()?, None))
    }

    /// Wraps a filter that was made for this false-positive rate, if it is known.
    pub fn new(filter: RedisBloomFilter, planned: Option<f64>) -> Self {
        Self {
            hasher: filter.hasher().clone(),
            size: filter.plan(),
            stages: filter.stages(),
            filter: Mutex::new(filter),
            planned,
            awaited_replicas: 0,
            stats: None,
            kinds: KeyKinds::default(),
            recorded: None,
            is_settled: false,
            remote: Arc::default(),
        }
    }

    /// Returns the hasher of the keys.
    pub fn hasher(&self) -> &KeyHasher {
        &self.hasher
    }

    /// Returns the kinds of the keys.
    pub fn kinds(&self) -> &KeyKinds {
        &self.kinds
    }

    /// Reads the kinds of the keys.
    pub fn read_kinds(&mut self) -> Result<(), Error> {
        let recorded = self.filter().key_kinds()?;
        // Without the right to read them, nothing is refused.
        self.kinds = recorded.as_deref().map_or_else(KeyKinds::default, KeyKinds::from_recorded);
        self.recorded = recorded;
        Ok(())
    }

    /// Reads the kinds of the keys of the filter of this name. Refuses keys of other kinds, as far as these are known.
    pub fn check_kinds(&mut self, name: &str, kinds: &KeyKinds) -> Result<(), Error> {
        self.read_kinds()?;
        self.settle_kinds(kinds)?;
        match kinds.conflict(&self.kinds) {
            Some(conflict) => Err(kind_conflict(&format!("these inputs for the filter {name:?}"), conflict)),
            None => Ok(()),
        }
    }

    /// Asks the server once whether the filter has keys at all, if keys of these kinds would be refused, or would be
    /// the first whose kinds are recorded. Texts alone need no answer: they record nothing. Returns true if it was
    /// asked.
    pub fn settle_kinds(&mut self, kinds: &KeyKinds) -> Result<bool, Error> {
        let is_unrecorded = self.recorded.as_ref().is_some_and(Vec::is_empty);
        let is_first = is_unrecorded && !kinds.parts().is_empty() && *kinds != KeyKinds::new(Kinds::TEXT);
        if self.is_settled || !is_first && kinds.conflict(&self.kinds).is_none() {
            return Ok(false);
        }
        let keys = self.metered(RedisBloomFilter::stats)?.estimated_keys;
        // Read again, because a client that has inserted a key has recorded its kinds before.
        self.read_kinds()?;
        self.is_settled = true;
        if keys == 0.0 {
            self.kinds = KeyKinds::default();
        }
        Ok(true)
    }

    /// Adds kinds of keys, and records them before the keys are inserted.
    pub fn add_kinds(&mut self, kinds: &KeyKinds) -> Result<(), Error> {
        self.kinds.unite(kinds);
        let Some(recorded) = &self.recorded else { return Ok(()) };
        let bits = self.kinds.to_bits();
        if *recorded == bits || recorded.is_empty() && self.kinds == KeyKinds::new(Kinds::TEXT) {
            return Ok(());
        }
        self.metered(|filter| filter.add_key_kinds(&bits))?;
        self.recorded = Some(bits);
        Ok(())
    }

    /// Adds the keys of a filter in memory.
    pub fn upload(&self, filter: &BloomFilter) -> Result<(), Error> {
        Ok(self.filter().upload(filter)?)
    }

    /// Returns the size and the rates to expect, unless it grows or forgets.
    pub fn plan(&self) -> Option<Plan> {
        self.stages.is_none().then_some(self.size)
    }

    /// Returns the bytes of the bits at the last query, or else at opening.
    pub fn memory_bytes(&self) -> usize {
        self.stats.map_or(self.size.memory_bytes(), |stats| stats.memory_bytes as usize)
    }

    /// Returns the number of its filters at the last query.
    pub fn filters(&self) -> usize {
        self.stats.map_or(1, |stats| stats.stages)
    }

    /// Returns the share of bits that were set at the last query. Before it, this, the number of keys and the rate are NaN.
    pub fn fill_ratio(&self) -> f64 {
        self.stats.map_or(f64::NAN, |stats| stats.fill_ratio)
    }

    /// Returns the estimated number of keys at the last query.
    pub fn keys(&self) -> f64 {
        self.stats.map_or(f64::NAN, |stats| stats.estimated_keys)
    }

    /// Returns the false-positive rate of the bits that were set at the last query.
    pub fn current_fpr(&self) -> f64 {
        self.stats.map_or(f64::NAN, |stats| stats.expected_fpr)
    }

    /// Returns the rate that it stays below, if it grows or forgets.
    pub fn max_rate(&self) -> Option<f64> {
        self.stages.map(|stages| stages.false_positive_rate())
    }

    /// Returns the time after which it forgets a key, if it does.
    pub fn forgets_after(&self) -> Option<Duration> {
        self.stages.and_then(|stages| stages.forgets_after())
    }

    /// Returns the expected false-positive rate with this number of keys. A filter with stages reports the rate that it stays below.
    pub fn expected_fpr(&self, keys: f64) -> f64 {
        self.max_rate().unwrap_or_else(|| self.size.expected_fpr(keys as u64))
    }

    fn filter(&self) -> MutexGuard<'_, RedisBloomFilter> {
        self.filter.lock().expect("no thread panics while it asks the server")
    }

    /// Calls the servers, and records metrics.
    fn metered<T>(&self, call: impl FnOnce(&mut RedisBloomFilter) -> T) -> T {
        let mut filter = self.filter();
        self.remote.begin();
        let answer = call(&mut filter);
        self.remote.end(filter.metrics());
        answer
    }

    /// Returns the metrics of its servers. With an interval, the fill ratio is queried each time.
    pub fn remote(&self, every: Option<Duration>) -> Arc<RemoteStats> {
        if let Some(every) = every {
            self.remote.ask_every(every, self.filter().new_client());
        }
        Arc::clone(&self.remote)
    }

    /// Inserts hashes. After an error, `new` still marks the keys that are claimed.
    pub fn insert_hashes(&self, hashes: &[u64], new: &mut [bool]) -> Result<usize, Error> {
        Ok(self.metered(|filter| filter.insert_hashes(hashes, new))?)
    }

    /// Looks hashes up.
    pub fn contains_hashes(&self, hashes: &[u64], found: &mut [bool]) -> Result<usize, Error> {
        Ok(self.metered(|filter| filter.contains_hashes(hashes, found))?)
    }

    /// Queries the statistics: the server counts all bits.
    pub fn refresh(&mut self) -> Result<(), Error> {
        let stats = self.metered(RedisBloomFilter::stats)?;
        self.remote.set_fill(stats.fill_ratio);
        self.stats = Some(stats);
        Ok(())
    }

    /// Returns warnings for the start of the run: the server may evict the filter, or has more replicas than the run waits for.
    pub fn dangers(&self) -> Vec<String> {
        let (mut filter, awaited) = (self.filter(), u64::from(self.awaited_replicas));
        let evicts = filter.may_evict().map(|evicts| {
            format!("{evicts}: it may evict the shared filter, and lines would be printed again; set noeviction")
        });
        let servers = if awaited > 0 { filter.servers() } else { Vec::new() };
        let server = servers.into_iter().find(|server| server.replicas > awaited);
        let unawaited = server.map(|RedisServerStats { node, replicas, .. }| {
            format!(
                "{node} has {replicas} replicas, and --redis-wait {awaited} waits for fewer: if another one takes over, lines may be \
                 printed again; wait for all that may"
            )
        });
        evicts.into_iter().chain(unawaited).collect()
    }

    /// Checks, at the end of the run, that the filter existed all the time. All lines are done, so a server that is
    /// unreachable by now is not a failure. Returns whether it answered.
    pub fn check(&self) -> Result<bool, Error> {
        match self.filter().check() {
            Err(
                error @ (RedisFilterError::Gone { .. }
                | RedisFilterError::Replaced { .. }
                | RedisFilterError::LeftOver { .. }),
            ) => Err(error.into()),
            checked => Ok(checked.is_ok()),
        }
    }

    /// Warnings for the end of the run.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        let uncertain = self.uncertain();
        if uncertain > 0 {
            warnings.push(format!(
                "up to {uncertain} lines may have been printed by another process too, because the server's answers for them \
                 were lost"
            ));
        }
        let unconfirmed = self.unconfirmed();
        if unconfirmed > 0 {
            warnings.push(format!(
                "{unconfirmed} lines were printed before as many replicas had them as --redis-wait asks for: after a failover \
                 they may be printed again"
            ));
        }
        warnings
    }

    /// Returns a warning if the false-positive rate is above the planned one.
    pub fn overfull_warning(&self) -> Option<String> {
        // All lines are done, so a server that is unreachable by now is not a failure.
        let rate = self.filter().stats().map_or(0.0, |stats| stats.expected_fpr);
        self.planned.filter(|planned| rate > *planned).map(|_| match self.stages {
            // The filter grows with its lines, but only after it has counted them.
            Some(_) => format!(
                "the shared filter's false-positive rate is {}, above the one asked for: too many processes added lines at the \
                 same time",
                readable(rate)
            ),
            None => format!(
                "the shared filter has more keys than it was planned for: its false-positive rate is {} and rises with every new line; \
                 leave it as it is, and pass the output of `bloomline check -v` with this filter to a run with another --name",
                readable(rate)
            ),
        })
    }

    /// Returns the bytes that the server stored for it at the last query.
    pub fn stored_bytes(&self) -> u64 {
        self.stats.map_or(0, |stats| stats.stored_bytes)
    }

    /// Returns the number of keys reported as new here and perhaps to another process too.
    pub fn uncertain(&self) -> u64 {
        self.filter().uncertain()
    }

    /// Returns the number of commands that were sent again.
    pub fn sent_again(&self) -> u64 {
        self.filter().metrics().sent_again
    }

    /// Returns the number of keys reported as new that fewer replicas have than were asked for.
    pub fn unconfirmed(&self) -> u64 {
        self.filter().unconfirmed()
    }
}
