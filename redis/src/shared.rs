//! `SharedFilter`: a filter on servers, over any transport. [`RedisBloomFilter`](crate::RedisBloomFilter) and
//! `AsyncRedisBloomFilter` document its methods.

use crate::error::RedisFilterError;
use crate::jobs::{Asked, Claims, Commands, Queries};
use crate::meta::{self, Described};
use crate::nodes::{Nodes, Transport};
use crate::repeats::Repeats;
use crate::server::RedisServer;
use crate::shards::{BLOCK_BYTES, Key, META, Shards, check_name, word_of};
use crate::topology::Node;
use crate::watch::Watch;
use bloomline::{AtomicBloomFilter, BloomFilter, BuildError, Builder, KeyHasher, MergeError, Plan};
use redis::{Cmd, Value};
use std::collections::HashSet;
use std::sync::Arc;
use std::{array, fmt};

/// Hashes that go to the servers together. Each is some 300 bytes on the way, and the servers keep the answers until
/// they are fetched.
const ROUND_TRIP: usize = 4096;

/// How long the copy of a shard that is uploaded lives, in seconds, if its client dies.
const COPY_LIFE: u64 = 600;

/// Shards that are removed together.
const REMOVED: usize = 1024;

type Result<T, E = RedisFilterError> = std::result::Result<T, E>;

pub(crate) struct SharedFilter<T> {
    pub(crate) shards: Arc<Shards>,
    pub(crate) hasher: KeyHasher,
    mirror: Option<Arc<AtomicBloomFilter>>,
    pub(crate) uncertain: u64,
    pub(crate) unconfirmed: u64,
    /// The hashes that the call under way has claimed or may have. Those of a call that was dropped are left here.
    unanswered: Vec<u64>,
    /// Hashes that a dropped call may have claimed. Whoever inserts them through this client next is told that they are new.
    given_back: HashSet<u64>,
    repeats: Repeats,
    watch: Watch,
    nodes: Nodes<T>,
}

impl<T: Transport> SharedFilter<T> {
    /// Opens a filter. If there is none and `size` is given, creates it.
    pub(crate) async fn open(server: &RedisServer, name: &str, size: Option<&Builder<BloomFilter>>) -> Result<Self> {
        let wanted = size.map(Described::new).transpose()?;
        check_name(name)?;
        let mut nodes = Nodes::connect(server).await?;
        let key = Key::new(name, META);
        let first = Key::new(name, 0);
        // Reads only, for most clients open a filter that is there.
        let end = first.command("GETRANGE").arg(-8).arg(-1).take();
        let look = [(key.slot, key.command("GET")), (first.slot, first.command("STRLEN")), (first.slot, end)];
        let mut job = Commands::new(look);
        nodes.run(&mut job).await?;
        let [mut line, length, end] = <[Value; 3]>::try_from(job.answers).expect("an answer to each");
        if line == Value::Nil && meta::is_marked(&length, &end) {
            // Somebody may have made it in between.
            line = read(&mut nodes, &key, None).await?;
            if line == Value::Nil {
                return Err(RedisFilterError::Remains { name: name.to_owned() });
            }
        }
        if let (Value::Nil, Some(wanted)) = (&line, &wanted) {
            line = read(&mut nodes, &key, Some(meta::encode(wanted))).await?;
        }
        let Value::BulkString(line) = line else {
            return Err(RedisFilterError::NotFound { name: name.to_owned() });
        };
        let found = meta::decode(name, &key.name, &line)?;
        if let Some(wanted) = wanted {
            meta::check_same(name, &wanted, &found)?;
        }
        let Described { plan, hasher, made } = found;
        let shards = Arc::new(Shards::new(name, plan));
        let watch = Watch::new(&shards, &line, made);
        Ok(Self::with(nodes, shards, hasher, None, watch))
    }

    /// A client that has claimed nothing.
    fn with(
        nodes: Nodes<T>,
        shards: Arc<Shards>,
        hasher: KeyHasher,
        mirror: Option<Arc<AtomicBloomFilter>>,
        watch: Watch,
    ) -> Self {
        let (unanswered, given_back, repeats) = (Vec::new(), HashSet::new(), Repeats::new());
        Self { shards, hasher, mirror, uncertain: 0, unconfirmed: 0, unanswered, given_back, repeats, watch, nodes }
    }

    /// Removes whatever the servers have of a filter. Returns whether they had anything.
    pub(crate) async fn remove(server: &RedisServer, name: &str) -> Result<bool> {
        check_name(name)?;
        let mut nodes = Nodes::<T>::connect(server).await?;
        let key = Key::new(name, META);
        // The shards that the description tells of, if there is one that can be read.
        let shards = match read(&mut nodes, &key, None).await {
            Ok(Value::BulkString(line)) => {
                meta::decode(name, &key.name, &line).map_or(0, |filter| Shards::new(name, filter.plan).keys.len())
            }
            _ => 0,
        };
        remove(&mut nodes, name, shards).await
    }

    /// The same filter for another client. They share the mirror.
    fn with_nodes(&self, nodes: Nodes<T>) -> Self {
        let Self { shards, hasher, mirror, watch, .. } = self;
        Self::with(nodes, Arc::clone(shards), hasher.clone(), mirror.clone(), watch.another())
    }

    /// The same filter for another client with connections of its own.
    pub(crate) fn another(&self) -> Self {
        self.with_nodes(self.nodes.another())
    }

    pub(crate) fn with_mirror(mut self) -> Result<Self, BuildError> {
        self.mirror = Some(Arc::new(self.local()?.into()));
        Ok(self)
    }

    /// A local filter that has the same bits, empty.
    fn local(&self) -> Result<BloomFilter, BuildError> {
        let plan = self.shards.plan;
        meta::size(plan.memory_bytes(), plan.probes(), self.hasher.seed()).build()
    }

    pub(crate) async fn insert<K: bloomline::Key + ?Sized>(&mut self, key: &K) -> Result<bool> {
        let mut new = [false];
        let result = self.insert_hashes(&[key.hash_with(&self.hasher)], &mut new).await;
        if new[0] {
            // The key is claimed whatever went wrong. If the error lasts, the next call meets it.
            return Ok(true);
        }
        result.map(|_| false)
    }

    pub(crate) async fn contains<K: bloomline::Key + ?Sized>(&mut self, key: &K) -> Result<bool> {
        let mut found = [false];
        self.contains_hashes(&[key.hash_with(&self.hasher)], &mut found).await?;
        Ok(found[0])
    }

    pub(crate) async fn insert_batch<K: bloomline::Key>(&mut self, keys: &[K], new: &mut [bool]) -> Result<usize> {
        let hashes: Vec<u64> = keys.iter().map(|key| key.hash_with(&self.hasher)).collect();
        self.insert_hashes(&hashes, new).await
    }

    pub(crate) async fn contains_batch<K: bloomline::Key>(&mut self, keys: &[K], found: &mut [bool]) -> Result<usize> {
        let hashes: Vec<u64> = keys.iter().map(|key| key.hash_with(&self.hasher)).collect();
        self.contains_hashes(&hashes, found).await
    }

    /// The claims that are in doubt, those of a call that was dropped included.
    pub(crate) fn uncertain(&self) -> u64 {
        self.uncertain + self.unanswered.len() as u64
    }

    pub(crate) async fn insert_hashes(&mut self, hashes: &[u64], new: &mut [bool]) -> Result<usize> {
        check_lengths(hashes.len(), new.len());
        // After an error, the portions that were not sent are not claimed.
        new.fill(false);
        // The call before was dropped if it left any.
        self.uncertain = self.uncertain();
        self.given_back.extend(self.unanswered.drain(..));
        let inserted = self.claim(hashes, new).await;
        self.unanswered.clear();
        inserted
    }

    async fn claim(&mut self, hashes: &[u64], new: &mut [bool]) -> Result<usize> {
        let Self { shards, mirror, unanswered, given_back, repeats, watch, nodes, .. } = self;
        for (hashes, new) in hashes.chunks(ROUND_TRIP).zip(new.chunks_mut(ROUND_TRIP)) {
            let mut seen = vec![false; hashes.len()];
            let mut asked = Asked::new(shards, mirror.as_deref(), hashes, &mut seen).without_equals();
            let keys = asked.len();
            if repeats.are_worth_a_read(keys) {
                let used = asked.used();
                let mut job = Queries { asked, replicas: false };
                watch.run(nodes, &mut job, &used).await?;
                asked = job.asked;
            }
            let mut job = Claims::new(asked, new);
            let used = job.asked.used();
            watch.mark(nodes, &used).await?;
            let answered = unanswered.len();
            unanswered.extend(job.asked.hashes());
            let result = watch.run(nodes, &mut job, &used).await;
            self.uncertain += job.uncertain;
            self.unconfirmed += job.unconfirmed;
            unanswered.truncate(answered);
            if !given_back.is_empty() {
                hashes.iter().zip(&mut *new).for_each(|(hash, new)| *new |= given_back.remove(hash));
            }
            unanswered.extend(hashes.iter().zip(&*new).filter(|(_, new)| **new).map(|(hash, _)| hash));
            result?;
            repeats.take(keys, new.iter().filter(|new| **new).count());
        }
        Ok(new.iter().filter(|new| **new).count())
    }

    pub(crate) async fn contains_hashes(&mut self, hashes: &[u64], found: &mut [bool]) -> Result<usize> {
        check_lengths(hashes.len(), found.len());
        let Self { shards, mirror, watch, nodes, .. } = self;
        for (hashes, found) in hashes.chunks(ROUND_TRIP).zip(found.chunks_mut(ROUND_TRIP)) {
            let asked = Asked::new(shards, mirror.as_deref(), hashes, found);
            let used = asked.used();
            watch.run(nodes, &mut Queries { asked, replicas: true }, &used).await?;
        }
        Ok(found.iter().filter(|found| **found).count())
    }

    pub(crate) async fn check(&mut self) -> Result<()> {
        self.watch.look_at_all(&mut self.nodes, false).await
    }

    pub(crate) async fn evicts(&mut self) -> Option<String> {
        let answers = self.nodes.ask_each(redis::cmd("INFO").arg("memory")).await;
        answers.into_iter().find_map(|(node, answer)| evicting(&node, &answer))
    }

    pub(crate) async fn stats(&mut self) -> Result<RedisFilterStats> {
        self.watch.check()?;
        // The blocks, without the mark.
        let about = |(shard, key): (usize, &Key)| {
            let count = key.command("BITCOUNT").arg(0).arg(self.shards.bytes(shard) - 1).take();
            [count, key.command("STRLEN")].map(|command| (key.slot, command))
        };
        let mut job = Commands::new(self.shards.keys.iter().enumerate().flat_map(about));
        self.nodes.run(&mut job).await?;
        let (mut ones, mut stored_bytes) = (0, 0);
        for (shard, figures) in job.answers.chunks(2).enumerate() {
            let [Value::Int(count @ 0..), Value::Int(length @ 0..)] = figures else {
                return Err(self.shards.keys[shard].refused("it cannot count bits"));
            };
            ones += count.cast_unsigned();
            stored_bytes += length.cast_unsigned().min(self.shards.bytes(shard) as u64);
        }
        // A filter that is lost looks empty. What another filter left does not.
        self.watch.look_at_all(&mut self.nodes, true).await?;
        Ok(RedisFilterStats::new(self.shards.plan, ones, stored_bytes))
    }

    pub(crate) async fn download(&mut self) -> Result<BloomFilter> {
        self.watch.check()?;
        let mut filter = self.local()?;
        for (shard, key) in self.shards.keys.iter().enumerate() {
            for (offset, blocks) in self.shards.pieces(shard) {
                let length = blocks.len() * BLOCK_BYTES;
                let command = key.command("GETRANGE").arg(offset).arg(offset + length - 1).take();
                let bytes = match run(&mut self.nodes, key, command).await? {
                    // A server that sends more than it was asked for did not understand the command.
                    Value::BulkString(bytes) if bytes.len() <= length => bytes,
                    _ => return Err(key.refused("its answer makes no sense")),
                };
                let mut words = bytes.chunks(8).map(word_of);
                for block in blocks {
                    filter.set_block_words(block, array::from_fn(|_| words.next().unwrap_or(0)));
                }
            }
        }
        // A filter that is lost looks empty.
        self.check().await?;
        Ok(filter)
    }

    pub(crate) async fn upload(&mut self, filter: &BloomFilter) -> Result<()> {
        let Self { shards, hasher, watch, nodes, .. } = self;
        check_same(shards.plan, hasher, filter)?;
        let unique = meta::unique();
        for (shard, key) in shards.keys.iter().enumerate() {
            let words = shards.blocks(shard).flat_map(|block| filter.block_words(block));
            let ones: i64 = words.map(|word| i64::from(word.count_ones())).sum();
            if ones == 0 {
                continue;
            }
            watch.mark(nodes, &[shard]).await?;
            let copy = shards.temporary(shard, unique);
            for (offset, blocks) in shards.pieces(shard) {
                let bytes: Vec<u8> =
                    blocks.flat_map(|block| filter.block_words(block)).flat_map(u64::to_le_bytes).collect();
                run(nodes, &copy, copy.command("SETRANGE").arg(offset).arg(bytes).take()).await?;
                // After each piece: if the server lost the copy meanwhile, this piece began a copy without an end.
                run(nodes, &copy, copy.command("EXPIRE").arg(COPY_LIFE).take()).await?;
            }
            if run(nodes, &copy, copy.command("BITCOUNT")).await? != Value::Int(ones) {
                return Err(key.refused("the copy to merge lost a part; upload again"));
            }
            let merge = redis::cmd("BITOP").arg("OR").arg(&key.name).arg(&key.name).arg(&copy.name).take();
            run(nodes, key, merge).await?;
            run(nodes, &copy, copy.command("UNLINK")).await?;
        }
        Ok(())
    }

    pub(crate) async fn delete(mut self) -> Result<()> {
        remove(&mut self.nodes, &self.shards.name, self.shards.keys.len()).await.map(drop)
    }

    /// Writes the filter as the public type of this name.
    pub(crate) fn fmt(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plan = self.shards.plan;
        f.debug_struct(name)
            .field("name", &self.shards.name)
            .field("block_count", &plan.block_count())
            .field("probes", &plan.probes())
            .field("mirror", &self.mirror.is_some())
            .field("uncertain", &self.uncertain)
            .field("unconfirmed", &self.unconfirmed)
            .finish_non_exhaustive()
    }
}

/// The documented panic of every batch call.
fn check_lengths(keys: usize, answers: usize) {
    assert!(keys == answers, "a batch of {keys} keys needs as many answers, not {answers}");
}

/// Refuses a local filter that has other bits.
fn check_same(plan: Plan, hasher: &KeyHasher, filter: &BloomFilter) -> Result<(), MergeError> {
    let (blocks, probes) = (plan.block_count(), plan.probes());
    if blocks != filter.block_count() {
        return Err(MergeError::Blocks { ours: blocks, theirs: filter.block_count() });
    }
    if probes != filter.probes() {
        return Err(MergeError::Probes { ours: probes, theirs: filter.probes() });
    }
    if hasher.seed() != filter.seed() { Err(MergeError::Seed) } else { Ok(()) }
}

/// Shares the connections too.
impl<T: Transport + Clone> Clone for SharedFilter<T> {
    fn clone(&self) -> Self {
        self.with_nodes(self.nodes.clone())
    }
}

/// The line of a filter, which is set first if there is none.
async fn read<T: Transport>(nodes: &mut Nodes<T>, key: &Key, line: Option<String>) -> Result<Value> {
    let set = line.map(|line| key.command("SET").arg(line).arg("NX").take());
    let commands = set.into_iter().chain([key.command("GET")]);
    let mut job = Commands::new(commands.map(|command| (key.slot, command)));
    nodes.run(&mut job).await?;
    Ok(job.answers.pop().expect("it was asked for"))
}

/// Runs one command about a key. Returns its answer.
async fn run<T: Transport>(nodes: &mut Nodes<T>, key: &Key, command: Cmd) -> Result<Value> {
    let mut job = Commands::new([(key.slot, command)]);
    nodes.run(&mut job).await?;
    Ok(job.answers.remove(0))
}

/// Removes shards, at least so many and as long as there are more, and then the description: a filter of which only a
/// part was removed can still be opened and deleted. Returns whether there was anything.
async fn remove<T: Transport>(nodes: &mut Nodes<T>, name: &str, least: usize) -> Result<bool> {
    let (mut next, mut found) = (0, false);
    loop {
        let keys = (next..next + REMOVED).map(|shard| Key::new(name, shard));
        next += REMOVED;
        let removed = unlink(nodes, keys).await?;
        found |= removed;
        if !removed && next >= least {
            break;
        }
    }
    Ok(unlink(nodes, [Key::new(name, META)]).await? || found)
}

/// Removes keys. Returns whether any was there.
async fn unlink<T: Transport>(nodes: &mut Nodes<T>, keys: impl IntoIterator<Item = Key>) -> Result<bool> {
    let mut job = Commands::new(keys.into_iter().map(|key| (key.slot, key.command("UNLINK"))));
    nodes.run(&mut job).await?;
    Ok(job.answers.contains(&Value::Int(1)))
}

/// The policy of a node that may evict keys which do not expire, from its answer to `INFO`.
fn evicting(node: &Node, answer: &Value) -> Option<String> {
    let Value::BulkString(info) = answer else { return None };
    let info = String::from_utf8_lossy(info);
    let policy = info.lines().find_map(|line| line.strip_prefix("maxmemory_policy:"))?.trim();
    policy.starts_with("allkeys-").then(|| format!("{node} has maxmemory-policy {}", policy.escape_debug()))
}

/// How full a filter on a server is.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct RedisFilterStats {
    /// The share of bits that are set, 0 to 1.
    pub fill_ratio: f64,
    /// The number of distinct keys that were inserted, estimated from the share of bits. It is infinite if all bits are
    /// set.
    pub estimated_keys: f64,
    /// The false-positive rate to expect with that number of keys.
    pub expected_fpr: f64,
    /// The bytes that the servers hold for the filter. Shards without keys take none.
    pub stored_bytes: u64,
}

impl RedisFilterStats {
    /// From the number of bits that are set.
    fn new(plan: Plan, ones: u64, stored_bytes: u64) -> Self {
        let fill_ratio = ones as f64 / (plan.memory_bytes() as f64 * 8.0);
        let estimated_keys = plan.estimated_keys(fill_ratio);
        let expected_fpr = if estimated_keys.is_finite() { plan.expected_fpr(estimated_keys as u64) } else { 1.0 };
        Self { fill_ratio, estimated_keys, expected_fpr, stored_bytes }
    }
}
