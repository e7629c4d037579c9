//! Permits: the right of a client to claim a number of keys in a stage. The server counts them in the stage's first shard, so that no
//! stage has more keys than it was sized for.

use super::{KnownStage, Result, StageChain};
use crate::error::RedisFilterError;
use crate::jobs::Commands;
use crate::meta;
use crate::nodes::{Nodes, Transport};
use crate::scripts;
use redis::Value;
use std::sync::Arc;

/// The maximum number of keys that a client claims before it checks the fill of the stage, and the maximum number of permits that it
/// takes in advance.
const CLAIMS_PER_CHECK: u64 = 1024;

/// A client takes at most one in this many of the permits that are left. If half as many clients insert at a time, few permits are in
/// use when none is left.
const PARTS: u64 = 64;

/// A part has at least one in this many keys of its stage. Smaller parts would take more round trips, and larger ones waste permits.
const MIN_PARTS: u64 = 512;

/// The minimum number of keys in a part, in a stage that has 16 times as many.
const MIN_PART: u64 = 16;

/// The permits of a client for claims in a stage.
pub(super) struct Permits {
    /// The number of permits that are not used.
    held: u64,
    /// The number of permits that all clients together had left when this one last took some.
    left: u64,
    /// The number of keys that the client has claimed in the stage.
    claimed: u64,
    /// The number of keys that it has claimed since it checked the fill.
    unchecked: u64,
}

impl Permits {
    /// Creates the permits of a new client. It begins with a check of the fill, because there may be many clients with few
    /// claims each.
    pub(super) fn new() -> Self {
        Self { held: 0, left: 0, claimed: 0, unchecked: CLAIMS_PER_CHECK }
    }
}

impl KnownStage {
    /// Returns the maximum number of keys that the client claims together.
    fn part(&self) -> u64 {
        let keys = self.meta.keys;
        (self.permits.left / PARTS).max(keys / MIN_PARTS).max(MIN_PART).min((keys / 16).max(1))
    }

    /// Returns the maximum number of permits that the client holds between calls: it has used as many, so at least half of a stage
    /// is used.
    fn reserve(&self) -> u64 {
        self.part().min(CLAIMS_PER_CHECK).min(self.permits.claimed)
    }
}

impl StageChain {
    /// Returns the maximum number of keys that the client claims together.
    pub(crate) fn part(&self) -> usize {
        let last = self.known_stages.last().expect("a filter has a stage");
        usize::try_from(last.part()).unwrap_or(usize::MAX)
    }

    /// Takes permits to claim this many keys in the last stage, whose first shard has a mark. Returns false, and opens the
    /// next stage, if the last one does not take them.
    ///
    /// No client claims without permits, so a stage never has more keys than it was sized for, for any number of
    /// clients. The fill is checked too, because the number of permits may be lost, and older clients take none. The first
    /// check fails if the user lacks a right that the growth needs, so that no key is claimed in a filter that cannot grow.
    pub(crate) async fn take_permits<T: Transport>(&mut self, nodes: &mut Nodes<T>, keys: usize) -> Result<bool> {
        let Some(stages) = self.staged() else { return Ok(true) };
        let (key, keys) = (self.key.clone(), keys as u64);
        let stage = self.last();
        if stage.permits.held < keys {
            let (number, shards, capacity) = (stage.number, Arc::clone(&stage.shards), stage.meta.keys);
            let line = meta::encode_stage(&stage.meta);
            let more = keys.max(stage.reserve()) - stage.permits.held;
            let sample = (stage.permits.unchecked >= CLAIMS_PER_CHECK.min(capacity / 16 + 1)).then(|| shards.sample());
            let take = shards.take_permits(i64::try_from(more).unwrap_or(i64::MAX));
            // If the stage has expired, the first command has recreated the shard.
            let mut commands = Vec::from_iter([take].into_iter().chain(shards.expire_recreated(0)));
            let sampled = commands.len();
            commands.extend(sample.clone().map(|(shard, sample)| shards.count_ones(shard, sample)));
            let checks_rights = sample.is_some() && !self.may_grow;
            if checks_rights {
                commands.extend(self.effectless_commands(number, &line));
            }
            let mut job = Commands::new(commands);
            nodes.run(&mut job).await?;
            if checks_rights && job.answers.last() == Some(&Value::Int(1)) {
                // The list was lost since it was read.
                nodes.run(&mut Commands::new([scripts::remove_line(&key, number, &line)])).await?;
                return Err(RedisFilterError::Gone { name: self.name.to_string(), key: key.name });
            }
            self.may_grow |= checks_rights;
            let Some((taken, is_sealed, mark)) = parse_permits(&job.answers[0]) else {
                return Err(shards.keys[0].refused("its answer makes no sense"));
            };
            let stage = self.last();
            if mark != stage.watch.mark_of(0) {
                let gone = RedisFilterError::Gone { name: shards.name.clone(), key: shards.keys[0].name.clone() };
                let checked = stage.watch.check_shards(nodes, 0..1).await.and(Err(gone));
                self.unless_forgotten(nodes, number, checked).await?;
                return Ok(false);
            }
            let mut is_full = is_sealed || taken > stages.permits(capacity);
            if let Some((_, sample)) = sample {
                let Value::Int(ones) = job.answers[sampled] else {
                    return Err(key.refused("it cannot count bits"));
                };
                is_full |= shards.plan.estimated_keys(ones as f64 / (512.0 * sample.len() as f64)) >= capacity as f64;
                stage.permits.unchecked = 0;
            }
            if is_full {
                self.advance(nodes, number).await?;
                return Ok(false);
            }
            stage.permits.held += more;
            stage.permits.left = stages.permits(capacity) - taken;
        }
        self.last().permits.held -= keys;
        Ok(true)
    }

    /// Records the keys that were claimed in a stage, and its permits that were not used because keys had been seen.
    pub(crate) fn record_claims(&mut self, number: u64, claimed: usize, unused: usize) {
        let Some(KnownStage { permits, .. }) = self.find(number) else { return };
        permits.claimed += claimed as u64;
        permits.unchecked += claimed as u64;
        permits.held += unused as u64;
    }

    /// Gives back permits of the last stage that the client does not keep for its next call.
    pub(crate) async fn give_permits_back<T: Transport>(&mut self, nodes: &mut Nodes<T>) -> Result<()> {
        let is_staged = self.staged().is_some();
        let stage = self.last();
        let surplus = stage.permits.held.saturating_sub(stage.reserve());
        if surplus == 0 || !is_staged {
            return Ok(());
        }
        stage.permits.held -= surplus;
        let give = stage.shards.take_permits(-i64::try_from(surplus).unwrap_or(0));
        let mut job = Commands::new([give].into_iter().chain(stage.shards.expire_recreated(0)));
        nodes.run(&mut job).await.map(drop)
    }
}

/// Returns the number of permits taken in an answer, true if the shard is sealed, and its mark.
fn parse_permits(answer: &Value) -> Option<(u64, bool, u64)> {
    let Value::Array(parts) = answer else { return None };
    let [Value::Int(taken), Value::Int(seal_and_mark)] = parts[..] else { return None };
    // The number is negative if it was lost before a client gave permits back.
    Some((u64::try_from(taken).unwrap_or(0), seal_and_mark < 0, seal_and_mark.cast_unsigned() & (u64::MAX >> 1)))
}
