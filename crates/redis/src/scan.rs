//! Scans of servers: the names of their filters, and their statistics.

use crate::error::RedisFilterError;
use crate::nodes::{Nodes, Transport};
use crate::server::RedisServer;
use crate::shards::{KEY_PREFIX, owner};
use crate::topology::Node;
use redis::{Value, cmd};
use std::collections::BTreeSet;

/// The number of keys that a server examines in one step.
const SCAN_COUNT: usize = 1000;

/// The maximum number of filters of a list: a server could report names without end.
const MAX_NAMES: usize = 1 << 20;

/// Returns the names of all filters that the servers have a part of.
pub(crate) async fn names<T: Transport>(server: &RedisServer) -> Result<Vec<String>, RedisFilterError> {
    let mut nodes = Nodes::<T>::connect(server).await?;
    let mut scan = Scan::new(&nodes, "*");
    let mut names = BTreeSet::new();
    while let Some(keys) = scan.next(&mut nodes).await? {
        let owners = keys.iter().filter_map(|key| owner(key));
        names.extend(owners.filter(|(_, is_copy)| !is_copy).map(|(name, _)| name.to_owned()));
        if names.len() > MAX_NAMES {
            let message = format!("it lists more than {MAX_NAMES} filters; open the filter by its name");
            return Err(RedisFilterError::Refused { node: "the server".to_owned(), message });
        }
    }
    Ok(names.into_iter().collect())
}

/// A scan of all primaries for keys of filters.
pub(crate) struct Scan {
    pattern: String,
    /// The nodes that are not scanned yet; the last one is next.
    nodes: Vec<Node>,
    cursor: String,
}

impl Scan {
    /// Begins a scan for keys whose hash tag matches a pattern.
    fn new<T: Transport>(nodes: &Nodes<T>, tag: &str) -> Self {
        let pattern = format!("{KEY_PREFIX}{{{tag}}}*");
        Self { pattern, nodes: nodes.primaries(), cursor: "0".to_owned() }
    }

    /// Begins a scan for the keys of a filter. Its portions also have keys of filters whose names begin with this name
    /// and a colon.
    pub(crate) fn for_filter<T: Transport>(nodes: &Nodes<T>, name: &str) -> Self {
        let escape = |c: char| if "*?[]\\".contains(c) { format!("\\{c}") } else { c.to_string() };
        Self::new(nodes, &format!("{}:*", name.chars().map(escape).collect::<String>()))
    }

    /// Returns the next portion of keys; `None` after the last one.
    pub(crate) async fn next<T: Transport>(
        &mut self,
        nodes: &mut Nodes<T>,
    ) -> Result<Option<Vec<Vec<u8>>>, RedisFilterError> {
        let Some(node) = self.nodes.last() else { return Ok(None) };
        let mut scan = cmd("SCAN");
        scan.arg(&self.cursor).arg("MATCH").arg(&self.pattern).arg("COUNT").arg(SCAN_COUNT);
        let invalid_answer = || RedisFilterError::Refused {
            node: node.to_string(),
            message: "its answer to SCAN makes no sense".to_owned(),
        };
        let (next, keys) = parse_scan(nodes.ask(node, &scan).await?).ok_or_else(invalid_answer)?;
        if next == "0" {
            self.nodes.pop();
        }
        self.cursor = next;
        Ok(Some(keys))
    }
}

/// Parses an answer to `SCAN` or `SSCAN`: the next cursor, and the keys or members.
pub(crate) fn parse_scan(answer: Value) -> Option<(String, Vec<Vec<u8>>)> {
    let Value::Array(parts) = answer else { return None };
    let [Value::BulkString(next), Value::Array(keys)] = <[Value; 2]>::try_from(parts).ok()? else { return None };
    let key = |key| if let Value::BulkString(key) = key { Some(key) } else { None };
    Some((String::from_utf8(next).ok()?, keys.into_iter().map(key).collect::<Option<_>>()?))
}

/// The statistics of a server that keeps a part of a filter. They cover the complete server with all its data.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RedisServerStats {
    /// Its address.
    pub node: String,
    /// The bytes of memory that it uses.
    pub used_bytes: u64,
    /// The bytes of memory that it may use (`maxmemory`); `None` if it has no bound.
    pub max_bytes: Option<u64>,
    /// The number of keys of any kind that the server evicted since its start.
    pub evicted_keys: u64,
    /// Claims that it carried out since its start, of all filters: its `BITFIELD` commands.
    pub claims: u64,
    /// The number of replicas that are connected to it.
    pub replicas: u64,
}

impl RedisServerStats {
    /// Parses the answer to `INFO`.
    pub(crate) fn from_info(node: &Node, answer: &Value) -> Option<Self> {
        let Value::BulkString(info) = answer else { return None };
        let info = String::from_utf8_lossy(info);
        let number = |name: &str| {
            let text = info.lines().find_map(|line| line.strip_prefix(name))?;
            text.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
        };
        Some(Self {
            node: node.to_string(),
            used_bytes: number("used_memory:")?,
            max_bytes: number("maxmemory:").filter(|&bytes| bytes > 0),
            evicted_keys: number("evicted_keys:").unwrap_or(0),
            claims: number("cmdstat_bitfield:calls=").unwrap_or(0),
            replicas: number("connected_slaves:").unwrap_or(0),
        })
    }
}

/// Returns the policy of a node that may evict keys without expiry, from its answer to `INFO`.
pub(crate) fn eviction_policy(node: &Node, answer: &Value) -> Option<String> {
    let Value::BulkString(info) = answer else { return None };
    let info = String::from_utf8_lossy(info);
    let policy = info.lines().find_map(|line| line.strip_prefix("maxmemory_policy:"))?.trim();
    policy.starts_with("allkeys-").then(|| format!("{node} has maxmemory-policy {}", policy.escape_debug()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_of_info_are_parsed() {
        let info =
            b"# Memory\r\nused_memory:1000\r\nmaxmemory:0\r\nevicted_keys:3\r\nconnected_slaves:2\r\ncmdstat_bitfield:calls=70,usec=9\r\n";
        let stats = RedisServerStats::from_info(&Node::new("n", 1), &Value::BulkString(info.to_vec())).unwrap();
        assert_eq!((&*stats.node, stats.used_bytes, stats.max_bytes), ("n:1", 1000, None));
        assert_eq!((stats.evicted_keys, stats.claims, stats.replicas), (3, 70, 2));
        assert_eq!(RedisServerStats::from_info(&Node::new("n", 1), &Value::Nil), None);
    }
}
