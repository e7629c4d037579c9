//! `RedisFilterStats`: the fill of a filter.

use crate::error::RedisFilterError;
use crate::jobs::Commands;
use crate::nodes::{Nodes, Transport};
use crate::shards::Key;
use crate::stage_chain::KnownStage;
use bloomline::Plan;
use redis::Value;
use std::sync::Arc;

/// The number of shards that are counted in one job.
const COUNT_BATCH: usize = 1024;

/// The fill of a filter on a server.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct RedisFilterStats {
    /// The number of stages: 1, unless the filter is one of [`Stages`](crate::Stages).
    pub stages: usize,
    /// The bytes of all blocks of the filter.
    pub memory_bytes: u64,
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

/// The fill of a stage.
pub(crate) struct StageStats {
    plan: Plan,
    /// The number of set bits.
    ones: u64,
    stored_bytes: u64,
}

impl RedisFilterStats {
    /// Computes the statistics of the filter from the statistics of each stage.
    pub(crate) fn from_stages(stages: &[StageStats]) -> Self {
        let (mut sum, mut ones) = (Self { stages: stages.len(), ..Self::default() }, 0);
        for &StageStats { plan, ones: stage_ones, stored_bytes } in stages {
            let keys = plan.estimated_keys(stage_ones as f64 / (plan.memory_bytes() as f64 * 8.0));
            let rate = if keys.is_finite() { plan.expected_fpr(keys as u64) } else { 1.0 };
            ones += stage_ones;
            sum.memory_bytes += plan.memory_bytes() as u64;
            sum.estimated_keys += keys;
            sum.expected_fpr += rate * (1.0 - sum.expected_fpr);
            sum.stored_bytes += stored_bytes;
        }
        // All stages may have been forgotten while they were counted.
        sum.fill_ratio = ones as f64 / (sum.memory_bytes.max(1) as f64 * 8.0);
        sum
    }
}

/// Counts the set bits and the stored bytes of a stage.
pub(crate) async fn count<T: Transport>(
    stage: &mut KnownStage,
    nodes: &mut Nodes<T>,
) -> Result<StageStats, RedisFilterError> {
    stage.watch.ensure_valid()?;
    let shards = Arc::clone(&stage.shards);
    let (mut ones, mut stored_bytes) = (0, 0);
    for start in (0..shards.keys.len()).step_by(COUNT_BATCH) {
        let batch = start..shards.keys.len().min(start + COUNT_BATCH);
        // The blocks, without the mark.
        let commands = |shard| {
            let key: &Key = &shards.keys[shard];
            [shards.count_ones(shard, 0..shards.blocks(shard).len()), (key.slot, key.command("STRLEN"))]
        };
        let mut job = Commands::new(batch.clone().flat_map(commands));
        nodes.run(&mut job).await?;
        for (shard, figures) in batch.clone().zip(job.answers.chunks(2)) {
            let [Value::Int(count @ 0..), Value::Int(length @ 0..)] = figures else {
                return Err(shards.keys[shard].refused("it cannot count bits"));
            };
            ones += count.cast_unsigned();
            stored_bytes += length.cast_unsigned().min(shards.bytes(shard) as u64);
        }
        // A lost filter looks empty; remains of another filter do not.
        stage.watch.check_shards(nodes, batch).await?;
    }
    Ok(StageStats { plan: shards.plan, ones, stored_bytes })
}
