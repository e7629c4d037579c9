//! `SharedFilter`: a filter on servers, over any transport. [`RedisBloomFilter`](super::RedisBloomFilter) and
//! `AsyncRedisBloomFilter` document its methods.

use super::error::RedisFilterError;
use super::jobs::{self, Asked, Claims, Commands, PIECE, Queries};
use super::meta;
use super::nodes::{Nodes, Transport};
use super::server::RedisServer;
use super::shards::{Key, META, Shards, check_name, check_size};
use crate::atomic_filter::AtomicBloomFilter;
use crate::batch;
use crate::block::BLOCK_BYTES;
use crate::error::BuildError;
use crate::fpr;
use crate::hash::KeyHasher;
use crate::params::{Builder, FromParams, Params};
use crate::plan::Plan;
use crate::purpose::Purpose;
use crate::words4::BloomFilter;
use redis::Value;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Hashes that go to the servers together. Each is some 300 bytes on the way, and the servers keep the answers until
/// they are fetched.
const PORTION: usize = 4096;

/// How long the copy of a shard that is uploaded lives, in seconds, if its client dies.
const COPY_LIFE: u64 = 600;

type Result<T, E = RedisFilterError> = std::result::Result<T, E>;

pub(super) struct SharedFilter<T> {
    pub(super) shards: Shards,
    pub(super) hasher: KeyHasher,
    mirror: Option<Arc<AtomicBloomFilter>>,
    pub(super) uncertain: u64,
    /// For each shard, whether this client or one that was made from it has given the shard its whole length.
    grown: Arc<[AtomicBool]>,
    nodes: Nodes<T>,
}

impl<T: Transport> SharedFilter<T> {
    /// Opens a filter. If there is none and `size` is given, creates it.
    pub(super) async fn open(server: &RedisServer, name: &str, size: Option<&Builder<BloomFilter>>) -> Result<Self> {
        let wanted = size.map(Builder::params).transpose()?;
        wanted.as_ref().map_or(Ok(()), check_size)?;
        check_name(name)?;
        let key = Key::new(name, META);
        let set = wanted.as_ref().map(|params| key.command("SET").arg(meta::encode(params)).arg("NX").take());
        let commands = set.into_iter().chain([key.command("GET")]);
        let mut job = Commands::new(commands.map(|command| (key.slot, command)));
        let mut nodes = Nodes::connect(server).await?;
        nodes.run(&mut job).await?;
        let Some(Value::BulkString(line)) = job.answers.last() else {
            return Err(RedisFilterError::NotFound { name: name.to_owned() });
        };
        let params = meta::decode(name, &key.name, line)?;
        if let Some(wanted) = wanted {
            meta::check_same(name, &wanted, &params)?;
        }
        let (hasher, shards) = (KeyHasher::new(params.seed), Shards::new(name, params));
        let grown = shards.keys.iter().map(|_| AtomicBool::new(false)).collect();
        Ok(Self { shards, hasher, mirror: None, uncertain: 0, grown, nodes })
    }

    /// The same filter for another client. They share the mirror.
    fn with_nodes(&self, nodes: Nodes<T>) -> Self {
        let Self { shards, hasher, mirror, grown, .. } = self;
        let (shards, hasher, mirror, grown) = (shards.clone(), hasher.clone(), mirror.clone(), grown.clone());
        Self { shards, hasher, mirror, uncertain: 0, grown, nodes }
    }

    /// The same filter for another client with connections of its own.
    pub(super) fn another(&self) -> Self {
        self.with_nodes(self.nodes.another())
    }

    pub(super) fn with_mirror(mut self) -> Result<Self, BuildError> {
        self.mirror = Some(Arc::new(AtomicBloomFilter::from_params(self.shards.params, Purpose::default())?));
        Ok(self)
    }

    pub(super) fn plan(&self) -> Plan {
        let Params { blocks, probes, .. } = self.shards.params;
        Plan { blocks, probes }
    }

    pub(super) async fn insert<K: crate::Key + ?Sized>(&mut self, key: &K) -> Result<bool> {
        let mut new = [false];
        let result = self.insert_hashes(&[key.hash_with(&self.hasher)], &mut new).await;
        if new[0] {
            // The key is claimed whatever went wrong. If the error lasts, the next call meets it.
            return Ok(true);
        }
        result.map(|_| false)
    }

    pub(super) async fn contains<K: crate::Key + ?Sized>(&mut self, key: &K) -> Result<bool> {
        let mut found = [false];
        self.contains_hashes(&[key.hash_with(&self.hasher)], &mut found).await?;
        Ok(found[0])
    }

    pub(super) async fn insert_batch<K: crate::Key>(&mut self, keys: &[K], new: &mut [bool]) -> Result<usize> {
        let hashes: Vec<u64> = keys.iter().map(|key| key.hash_with(&self.hasher)).collect();
        self.insert_hashes(&hashes, new).await
    }

    pub(super) async fn contains_batch<K: crate::Key>(&mut self, keys: &[K], found: &mut [bool]) -> Result<usize> {
        let hashes: Vec<u64> = keys.iter().map(|key| key.hash_with(&self.hasher)).collect();
        self.contains_hashes(&hashes, found).await
    }

    pub(super) async fn insert_hashes(&mut self, hashes: &[u64], new: &mut [bool]) -> Result<usize> {
        batch::check_lengths(hashes.len(), new.len());
        // After an error, the portions that were not sent are not claimed.
        new.fill(false);
        for (hashes, new) in hashes.chunks(PORTION).zip(new.chunks_mut(PORTION)) {
            let mut job = Claims::new(Asked::new(&self.shards, self.mirror.as_deref(), hashes, new));
            for mut growth in job.growth(&self.grown) {
                self.nodes.run(&mut growth).await?;
            }
            let result = self.nodes.run(&mut job).await;
            self.uncertain += job.uncertain;
            result?;
        }
        Ok(new.iter().filter(|new| **new).count())
    }

    pub(super) async fn contains_hashes(&mut self, hashes: &[u64], found: &mut [bool]) -> Result<usize> {
        batch::check_lengths(hashes.len(), found.len());
        for (hashes, found) in hashes.chunks(PORTION).zip(found.chunks_mut(PORTION)) {
            let mut job = Queries(Asked::new(&self.shards, self.mirror.as_deref(), hashes, found));
            self.nodes.run(&mut job).await?;
        }
        Ok(found.iter().filter(|found| **found).count())
    }

    pub(super) async fn stats(&mut self) -> Result<RedisFilterStats> {
        let about = |key: &Key| ["BITCOUNT", "STRLEN"].map(|name| (key.slot, key.command(name)));
        let mut job = Commands::new(self.shards.keys.iter().flat_map(about));
        self.nodes.run(&mut job).await?;
        let figures = job.integers();
        let figures = figures.ok_or_else(|| failed(&self.shards.keys[0], "it cannot count bits"))?;
        Ok(RedisFilterStats::new(self.plan(), &figures))
    }

    pub(super) async fn download(&mut self) -> Result<BloomFilter> {
        let Self { shards, nodes, .. } = self;
        let mut filter = BloomFilter::from_params(shards.params, Purpose::default())?;
        for (shard, key) in shards.keys.iter().enumerate() {
            let blocks = &mut filter.blocks.as_mut_slice()[shards.blocks(shard)];
            for (i, blocks) in blocks.chunks_mut(PIECE).enumerate() {
                nodes.run(&mut jobs::download(key, i * PIECE * BLOCK_BYTES, blocks)).await?;
            }
        }
        Ok(filter)
    }

    pub(super) async fn upload(&mut self, filter: &BloomFilter) -> Result<()> {
        let Self { shards, nodes, .. } = self;
        shards.params.check_same(&filter.params)?;
        // No other client has this number.
        let unique = RandomState::new().hash_one(0u64);
        for (shard, key) in shards.keys.iter().enumerate() {
            let blocks = &filter.blocks.as_slice()[shards.blocks(shard)];
            let ones: u64 = blocks.iter().flat_map(|block| block.0).map(|word| u64::from(word.count_ones())).sum();
            if ones == 0 {
                continue;
            }
            let copy = shards.temporary(shard, unique);
            for (i, blocks) in blocks.chunks(PIECE).enumerate() {
                nodes.run(&mut jobs::upload(&copy, i * PIECE * BLOCK_BYTES, blocks)).await?;
                // After each piece: if the server lost the copy meanwhile, this piece began a copy without an end.
                let expire = copy.command("EXPIRE").arg(COPY_LIFE).take();
                nodes.run(&mut Commands::new([(copy.slot, expire)])).await?;
            }
            let mut job = Commands::new([(copy.slot, copy.command("BITCOUNT"))]);
            nodes.run(&mut job).await?;
            if job.integers().is_none_or(|counts| counts != [ones]) {
                return Err(failed(key, "the copy to merge lost a part; upload again"));
            }
            let merge = redis::cmd("BITOP").arg("OR").arg(&key.name).arg(&key.name).arg(&copy.name).take();
            nodes.run(&mut Commands::new([(copy.slot, merge)])).await?;
            nodes.run(&mut Commands::new([(copy.slot, copy.command("UNLINK"))])).await?;
        }
        Ok(())
    }

    pub(super) async fn delete(mut self) -> Result<()> {
        let unlink = |key: &Key| (key.slot, key.command("UNLINK"));
        self.nodes.run(&mut Commands::new(self.shards.keys.iter().map(unlink))).await?;
        // Last, so that a filter of which only a part was removed can still be opened and deleted.
        self.nodes.run(&mut Commands::new([unlink(&Key::new(&self.shards.name, META))])).await
    }

    /// Writes the filter as the public type of this name.
    pub(super) fn fmt(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Params { blocks, probes, .. } = self.shards.params;
        f.debug_struct(name)
            .field("name", &self.shards.name)
            .field("block_count", &blocks)
            .field("probes", &probes)
            .field("mirror", &self.mirror.is_some())
            .field("uncertain", &self.uncertain)
            .finish_non_exhaustive()
    }
}

/// Shares the connections too.
impl<T: Transport + Clone> Clone for SharedFilter<T> {
    fn clone(&self) -> Self {
        self.with_nodes(self.nodes.clone())
    }
}

/// For answers that make no sense.
fn failed(key: &Key, message: &str) -> RedisFilterError {
    RedisFilterError::Refused { node: format!("the server of {}", key.name), message: message.to_owned() }
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
    /// From the number of bits set and of bytes stored in each shard.
    fn new(plan: Plan, figures: &[u64]) -> Self {
        let (ones, bytes) = figures.chunks(2).fold((0, 0), |(ones, bytes), pair| (ones + pair[0], bytes + pair[1]));
        let fill_ratio = ones as f64 / (plan.memory_bytes() as f64 * 8.0);
        let estimated_keys = fpr::keys_from_zeros(fill_ratio, fpr::touched(plan.block_count() as u64, plan.probes()));
        let expected_fpr = if estimated_keys.is_finite() { plan.expected_fpr(estimated_keys as u64) } else { 1.0 };
        Self { fill_ratio, estimated_keys, expected_fpr, stored_bytes: bytes }
    }
}
