//! The removal of a filter from its servers.

use crate::error::RedisFilterError;
use crate::kinds::FilterKind;
use crate::meta::StageMeta;
use crate::nodes::{Nodes, Transport, UNLINK_BATCH};
use crate::scan::Scan;
use crate::shards::{KINDS, Key, META, STAGES, owner, shard_count, stage_keys};
use crate::stage_chain;
use std::collections::BTreeMap;

type Result<T> = std::result::Result<T, RedisFilterError>;

/// Removes a filter, of this kind if it is known. Returns true if anything was removed.
///
/// The description is removed first: running clients then find the filter gone, and remove what they write from there
/// on. The list of stages is removed last, so that a removal that was interrupted can be repeated.
pub(crate) async fn remove<T: Transport>(nodes: &mut Nodes<T>, name: &str, kind: Option<FilterKind>) -> Result<bool> {
    // A missing right ends the removal before anything is removed.
    let is_listed = !listed_stages(nodes, name, kind).await?.is_empty();
    let mut remains = match kind {
        Some(FilterKind::Staged(_)) if is_listed => None,
        Some(FilterKind::Fixed(_)) => None,
        _ => first_remains(nodes, name, kind).await?,
    };
    let min_shards = if let Some(FilterKind::Fixed(plan)) = kind { shard_count(plan) } else { 0 };
    let mut found = nodes.unlink([Key::new(name, META)]).await?;
    // Other clients may have opened a stage meanwhile.
    for (number, StageMeta { plan, .. }) in listed_stages(nodes, name, kind).await? {
        found |= nodes.unlink(stage_keys(name, number, plan)).await?;
    }
    if let Some(FilterKind::Staged(stages)) = kind {
        let (mut number, mut missing) = (0, 0);
        // The stages of a filter that grows are numbered from 0, even if the list is lost.
        while let (0, Ok((plan, _)), 0..2) = (stages.window, stages.stage_plan(number), missing) {
            let removed = nodes.unlink(stage_keys(name, number, plan)).await?;
            (number, missing) = (number + 1, if removed { 0 } else { missing + 1 });
            found |= removed;
        }
    }
    while let Some((scan, keys)) = &mut remains {
        // The pattern of the scan also matches keys of filters with longer names.
        let own = keys.iter().filter(|key| owner(key).is_some_and(|(owner, _)| owner == name));
        let own = own.filter_map(|key| str::from_utf8(key).ok()).map(|key| Key::from_name(key.to_owned()));
        let own: Vec<Key> = own.filter(|key| *key != Key::new(name, STAGES)).collect();
        found |= nodes.unlink(own).await?;
        match scan.next(nodes).await? {
            Some(next) => *keys = next,
            None => break,
        }
    }
    let mut next = 0;
    loop {
        let keys = (next..next + UNLINK_BATCH).map(|shard| Key::new(name, shard));
        next += UNLINK_BATCH;
        let removed = nodes.unlink(keys).await?;
        found |= removed;
        if !removed && next >= min_shards {
            break;
        }
    }
    found |= nodes.unlink([Key::new(name, KINDS)]).await?;
    Ok(nodes.unlink([Key::new(name, STAGES)]).await? || found)
}

/// Returns the stages in the list of a filter, none if it is lost or damaged.
async fn listed_stages<T: Transport>(
    nodes: &mut Nodes<T>,
    name: &str,
    kind: Option<FilterKind>,
) -> Result<BTreeMap<u64, StageMeta>> {
    if let Some(FilterKind::Fixed(_)) = kind {
        return Ok(BTreeMap::new());
    }
    match stage_chain::read_list(nodes, name).await {
        Ok((list, answer)) => Ok(stage_chain::parse_stages(&list, &answer).unwrap_or_else(|_| {
            // The shards of a list that makes no sense are found by a scan.
            BTreeMap::new()
        })),
        // A user of filters of one size has no right to lists, and needs it only if there is a list.
        Err(denied @ RedisFilterError::Denied { .. }) if kind.is_none() => {
            match stage_chain::has_list(nodes, name).await? {
                true => Err(denied),
                false => Ok(BTreeMap::new()),
            }
        }
        Err(error) => Err(error),
    }
}

/// Begins a scan for what is left of a filter whose stages are unknown. Returns it with its first keys; `None` if the
/// user has no right to scan and the filter is known to have no other keys, or not to exist.
async fn first_remains<T: Transport>(
    nodes: &mut Nodes<T>,
    name: &str,
    kind: Option<FilterKind>,
) -> Result<Option<(Scan, Vec<Vec<u8>>)>> {
    let mut scan = Scan::for_filter(nodes, name);
    match scan.next(nodes).await {
        Ok(keys) => Ok(keys.map(|keys| (scan, keys))),
        // Without a description there are remains only if a server has lost it. The numbers of the stages of a filter
        // that grows are known.
        Err(RedisFilterError::Denied { .. }) if !matches!(kind, Some(FilterKind::Staged(stages)) if stages.window > 0) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}
