//! The removal of a filter from its servers.

use crate::error::RedisFilterError;
use crate::kinds::FilterKind;
use crate::nodes::{Nodes, Transport};
use crate::scan;
use crate::shards::{KINDS, Key, META, Shards};
use crate::stage_chain;

/// The number of shards that are removed in one job.
const DELETE_BATCH: usize = 1024;

type Result<T> = std::result::Result<T, RedisFilterError>;

/// Removes a filter, of this kind if it is known: its stages and their list, its shards until no more are found, and
/// the kinds of its keys. The description is removed last, so that a filter that was removed in part can still be
/// opened and deleted. Returns true if anything was removed.
pub(crate) async fn remove<T: Transport>(nodes: &mut Nodes<T>, name: &str, kind: Option<FilterKind>) -> Result<bool> {
    let (mut next, mut found) = (0, false);
    let min_shards = match kind {
        Some(FilterKind::Fixed(plan)) => Shards::new(name, plan).keys.len(),
        _ => {
            let stages = match stage_chain::stage_keys(nodes, name).await {
                // A user without the right to list stages has made none.
                Err(RedisFilterError::Denied { .. }) => Vec::new(),
                stages => stages?,
            };
            let (mut number, mut missing, mut listed) = (0, 0, stages.len() > 1);
            // The stages of a filter that grows are numbered from 0, even if the list is lost.
            if let Some(FilterKind::Staged(stages)) =
                kind.filter(|kind| matches!(kind, FilterKind::Staged(stages) if stages.window == 0))
            {
                listed = true;
                while let (Ok((plan, _)), 0..2) = (stages.stage_plan(number), missing) {
                    let removed = nodes.unlink(Shards::for_stage(name, number, plan, None).keys).await?;
                    (number, missing) = (number + 1, if removed { 0 } else { missing + 1 });
                    found |= removed;
                }
            }
            found |= nodes.unlink(stages).await?;
            if !listed {
                // The numbers of its stages are unknown, if it has any.
                match scan::keys(nodes, name).await {
                    Err(RedisFilterError::Denied { .. }) => {}
                    keys => found |= nodes.unlink(keys?).await?,
                }
            }
            0
        }
    };
    loop {
        let keys = (next..next + DELETE_BATCH).map(|shard| Key::new(name, shard));
        next += DELETE_BATCH;
        let removed = nodes.unlink(keys).await?;
        found |= removed;
        if !removed && next >= min_shards {
            break;
        }
    }
    found |= nodes.unlink([Key::new(name, KINDS)]).await?;
    Ok(nodes.unlink([Key::new(name, META)]).await? || found)
}
