//! Scans of servers: the names of their filters, and their statistics.

use crate::error::RedisFilterError;
use crate::nodes::{Nodes, Transport};
use crate::server::RedisServer;
use crate::shards::{KEY_PREFIX, KINDS, Key, META, STAGES, check_name};
use crate::topology::Node;
use redis::{Value, cmd};
use std::collections::BTreeSet;

/// The number of keys that a server examines in one step.
const SCAN_COUNT: usize = 1000;

/// Returns the names of all filters that the servers have a part of.
pub(crate) async fn names<T: Transport>(server: &RedisServer) -> Result<Vec<String>, RedisFilterError> {
    let mut nodes = Nodes::<T>::connect(server).await?;
    let keys = scan(&mut nodes, &format!("{KEY_PREFIX}{{*}}")).await?;
    let names: BTreeSet<String> = keys.iter().filter_map(|key| filter_name(key)).collect();
    Ok(names.into_iter().collect())
}

/// Returns the keys of a filter: its description, its kinds, its shards and copies that are being uploaded.
pub(crate) async fn keys<T: Transport>(nodes: &mut Nodes<T>, name: &str) -> Result<Vec<Key>, RedisFilterError> {
    let escape = |c: char| if "*?[]\\".contains(c) { format!("\\{c}") } else { c.to_string() };
    let name: String = name.chars().map(escape).collect();
    let keys = scan(nodes, &format!("{KEY_PREFIX}{{{name}:*}}*")).await?;
    Ok(keys.into_iter().filter_map(|key| String::from_utf8(key).ok()).map(Key::from_name).collect())
}

/// Returns all keys that match a pattern.
async fn scan<T: Transport>(nodes: &mut Nodes<T>, pattern: &str) -> Result<Vec<Vec<u8>>, RedisFilterError> {
    let mut found = Vec::new();
    for node in nodes.primaries() {
        let mut cursor = "0".to_owned();
        loop {
            let mut scan = cmd("SCAN");
            scan.arg(&cursor).arg("MATCH").arg(pattern).arg("COUNT").arg(SCAN_COUNT);
            let invalid_answer = || RedisFilterError::Refused {
                node: node.to_string(),
                message: "its answer to SCAN makes no sense".to_owned(),
            };
            let (next, keys) = parse_scan(nodes.ask(&node, &scan).await?).ok_or_else(invalid_answer)?;
            found.extend(keys);
            if next == "0" {
                break;
            }
            cursor = next;
        }
    }
    Ok(found)
}

/// Parses an answer to `SCAN` or `SSCAN`: the next cursor, and the keys or members.
pub(crate) fn parse_scan(answer: Value) -> Option<(String, Vec<Vec<u8>>)> {
    let Value::Array(parts) = answer else { return None };
    let [Value::BulkString(next), Value::Array(keys)] = <[Value; 2]>::try_from(parts).ok()? else { return None };
    let key = |key| if let Value::BulkString(key) = key { Some(key) } else { None };
    Some((String::from_utf8(next).ok()?, keys.into_iter().map(key).collect::<Option<_>>()?))
}

/// Returns the name of the filter whose description, list of stages, kinds or shard a key is.
fn filter_name(key: &[u8]) -> Option<String> {
    let tag = str::from_utf8(key).ok()?.strip_prefix(KEY_PREFIX)?.strip_prefix('{')?.strip_suffix('}')?;
    let (name, part) = tag.rsplit_once(':')?;
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let (stage, shard) = part.split_once('.').unwrap_or(("0", part));
    let is_part = [META, STAGES, KINDS].contains(&part) || is_number(stage) && is_number(shard);
    (is_part && check_name(name).is_ok()).then(|| name.to_owned())
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
    fn the_names_of_filters_are_parsed_from_keys() {
        for (key, name) in [
            ("cbf:{urls:meta}", Some("urls")),
            ("cbf:{a:b:17}", Some("a:b")),
            ("cbf:{a:stages}", Some("a")),
            ("cbf:{a:kinds}", Some("a")),
            ("cbf:{a:12.0}", Some("a")),
            ("cbf:{a:12.}", None),
            ("cbf:{a:.0}", None),
            ("cbf:{a:1.2.3}", None),
            ("cbf:{kräne 7:0}", Some("kräne 7")),
            ("cbf:{urls:}", None),
            ("cbf:{urls:7x}", None),
            ("cbf:{:meta}", None),
            ("cbf:{meta}", None),
            ("cbf:{urls:0}:upload:00000000000000ab", None),
            ("cbf:{a\u{1b}[2J:meta}", None),
            ("cbf:urls:meta", None),
        ] {
            assert_eq!(filter_name(key.as_bytes()).as_deref(), name, "{key}");
        }
        assert_eq!(filter_name(b"cbf:{\xff:meta}"), None);
    }

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
