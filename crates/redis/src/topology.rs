//! `Topology`: the node that serves each slot.

use crate::error::RedisFilterError;
use redis::{ServerError, ServerErrorKind, Value};
use std::collections::HashSet;
use std::sync::Arc;
use std::{fmt, iter};

/// The address of a server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Node(Arc<(String, u16)>);

impl Node {
    pub(crate) fn new(host: &str, port: u16) -> Self {
        Self(Arc::new((host.to_owned(), port)))
    }

    pub(crate) fn host(&self) -> &str {
        &self.0.0
    }

    pub(crate) fn port(&self) -> u16 {
        self.0.1
    }

    /// Returns the node at an address that this node reported, `host:port`. An address without a host is on this node's
    /// host.
    pub(crate) fn resolve(&self, address: &str) -> Option<Self> {
        let (host, port) = address.rsplit_once(':')?;
        let host = if host.is_empty() { self.host() } else { host };
        Some(Self::new(host, port.parse().ok()?))
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (host, port) = &*self.0;
        if *port == 0 { f.write_str(host) } else { write!(f, "{host}:{port}") }
    }
}

/// The nodes that serve the slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Topology {
    /// One server serves all.
    Single(Node),
    /// The nodes of a cluster serve ranges of slots.
    Cluster(Vec<SlotRange>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SlotRange {
    slots: std::ops::RangeInclusive<u16>,
    primary: Node,
    replicas: Vec<Node>,
}

impl Topology {
    /// Reads a node's answer to `CLUSTER SLOTS`. A server that is in no cluster answers with an error.
    pub(crate) fn parse(answer: Value, answering: &Node) -> Result<Self, RedisFilterError> {
        match answer {
            Value::ServerError(error) if is_not_clustered(&error) => Ok(Self::Single(answering.clone())),
            Value::ServerError(error) => Err(refusal(answering, &error)),
            Value::Array(ranges) => {
                let ranges = ranges.into_iter().map(|range| parse_range(range, answering)).collect::<Option<Vec<_>>>();
                ranges.map(Self::Cluster).ok_or_else(|| refused(answering))
            }
            _ => Err(refused(answering)),
        }
    }

    /// Returns the node for a slot: its primary or, with `rotation`, one of its replicas. `None` if no node serves the
    /// slot.
    pub(crate) fn node(&self, slot: u16, rotation: Option<usize>) -> Option<&Node> {
        match self {
            Self::Single(node) => Some(node),
            Self::Cluster(ranges) => {
                let range = ranges.iter().find(|range| range.slots.contains(&slot))?;
                let replica = rotation.filter(|_| !range.replicas.is_empty());
                Some(replica.map_or(&range.primary, |rotation| &range.replicas[rotation % range.replicas.len()]))
            }
        }
    }

    /// Returns the nodes that take keys.
    pub(crate) fn primaries(&self) -> Vec<Node> {
        match self {
            Self::Single(node) => vec![node.clone()],
            Self::Cluster(ranges) => distinct(ranges.iter().map(|range| range.primary.clone())),
        }
    }

    /// Returns the nodes to ask for the topology. Another one is first each time, because a node that is cut off from
    /// the others gives an old answer.
    pub(crate) fn refresh_order(&self, seeds: impl Iterator<Item = Node>, rotation: usize) -> Vec<Node> {
        let known: Vec<&Node> = match self {
            // The server that takes its place is at one of the given addresses.
            Self::Single(_) => Vec::new(),
            Self::Cluster(ranges) => {
                ranges.iter().flat_map(|range| iter::once(&range.primary).chain(&range.replicas)).collect()
            }
        };
        let mut nodes = distinct(known.into_iter().cloned().chain(seeds));
        let first = rotation % nodes.len().max(1);
        nodes.rotate_left(first);
        nodes
    }
}

/// Removes repeated nodes.
fn distinct(nodes: impl Iterator<Item = Node>) -> Vec<Node> {
    let mut seen = HashSet::new();
    nodes.filter(|node| seen.insert(node.clone())).collect()
}

fn is_not_clustered(error: &ServerError) -> bool {
    error.details().is_some_and(|details| details.contains("cluster support disabled"))
}

/// Returns the error for a command that a node refused, if waiting does not help.
pub(crate) fn refusal(node: &Node, error: &ServerError) -> RedisFilterError {
    let (node, message) = (node.to_string(), error.to_string());
    match (error.kind(), error.code()) {
        (Some(ServerErrorKind::NoPerm), _) | (None, "NOAUTH" | "WRONGPASS") => {
            RedisFilterError::Denied { node, message }
        }
        _ if error.details().is_some_and(|details| details.contains("unknown command")) => {
            let message = format!("{message}; do not rename this command (rename-command): the filter needs it");
            RedisFilterError::Refused { node, message }
        }
        _ => RedisFilterError::Refused { node, message },
    }
}

fn refused(node: &Node) -> RedisFilterError {
    RedisFilterError::Refused {
        node: node.to_string(),
        message: "its answer to CLUSTER SLOTS makes no sense".to_owned(),
    }
}

/// Parses a range: its first slot, its last slot and its nodes, the primary first. A node is its host, its port, and
/// more.
fn parse_range(range: Value, answering: &Node) -> Option<SlotRange> {
    let Value::Array(range) = range else { return None };
    let [Value::Int(first), Value::Int(last), nodes @ ..] = &range[..] else { return None };
    let mut nodes = nodes.iter().filter_map(|node| {
        let Value::Array(node) = node else { return None };
        let [host, Value::Int(port), ..] = &node[..] else { return None };
        let host = match host {
            Value::BulkString(host) => str::from_utf8(host).ok()?,
            Value::SimpleString(host) => host,
            // A null is the host of the node that was asked.
            Value::Nil => "",
            _ => return None,
        };
        // The cluster has no address of the node "?".
        let host = if host.is_empty() { answering.host() } else { host };
        (host != "?").then(|| Some(Node::new(host, u16::try_from(*port).ok()?)))?
    });
    let primary = nodes.next()?;
    let slots = u16::try_from(*first).ok()?..=u16::try_from(*last).ok()?;
    Some(SlotRange { slots, primary, replicas: nodes.collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(host: &str, port: i64) -> Value {
        Value::Array(vec![Value::BulkString(host.into()), Value::Int(port), Value::BulkString(b"id".to_vec())])
    }

    #[test]
    fn slots_find_their_nodes() {
        let range =
            |first, last, nodes: Vec<Value>| Value::Array([vec![Value::Int(first), Value::Int(last)], nodes].concat());
        let asked = Node::new("asked", 1);
        let answer = Value::Array(vec![
            range(0, 99, vec![node("a", 7000), node("b", 7001), node("?", 0), node("c", 7002)]),
            range(100, 199, vec![node("", 7003)]),
        ]);
        let topology = Topology::parse(answer, &asked).unwrap();
        assert_eq!(topology.node(0, None), Some(&Node::new("a", 7000)));
        assert_eq!(topology.node(99, Some(0)), Some(&Node::new("b", 7001)));
        assert_eq!(topology.node(99, Some(3)), Some(&Node::new("c", 7002)));
        assert_eq!(topology.node(100, None), Some(&Node::new("asked", 7003)));
        assert_eq!(topology.node(100, Some(5)), Some(&Node::new("asked", 7003)));
        assert_eq!(topology.node(200, None), None);
        // All nodes are asked for the topology, and a seed that is not among them.
        let seeds = [asked.clone(), Node::new("c", 7002)];
        let order = |rotation| {
            topology.refresh_order(seeds.iter().cloned(), rotation).iter().map(Node::port).collect::<Vec<_>>()
        };
        assert_eq!([order(0), order(1)], [[7000, 7001, 7002, 7003, 1], [7001, 7002, 7003, 1, 7000]]);
        assert_eq!(topology.refresh_order([].into_iter(), 6)[0].port(), 7002);
        assert_eq!(Topology::Cluster(Vec::new()).refresh_order([].into_iter(), 1), []);
        assert_eq!(Topology::Single(Node::new("d", 1)).refresh_order(seeds.iter().cloned(), 2), seeds);
        for nonsense in [Value::Nil, Value::Array(vec![Value::Int(1)]), Value::Array(vec![range(0, 1, vec![])])] {
            let message = "its answer to CLUSTER SLOTS makes no sense".into();
            let refused = RedisFilterError::Refused { node: "asked:1".into(), message };
            assert_eq!(Topology::parse(nonsense, &asked), Err(refused));
        }
    }

    #[test]
    fn refusals_are_classified() {
        let parse = |line: &str| {
            let answer = redis::parse_redis_value(format!("-{line}\r\n").as_bytes()).unwrap();
            Topology::parse(answer, &Node::new("n", 1))
        };
        assert_eq!(parse("ERR This instance has cluster support disabled"), Ok(Topology::Single(Node::new("n", 1))));
        for line in ["NOAUTH Authentication required.", "WRONGPASS invalid password", "NOPERM no permissions"] {
            let Err(RedisFilterError::Denied { node, message }) = parse(line) else { panic!("{line}") };
            assert!(node == "n:1" && message.contains(line.split_once(' ').unwrap().1), "{node} {message}");
        }
        let Err(RedisFilterError::Refused { node, message }) = parse("ERR unknown command") else { panic!() };
        assert!(node == "n:1" && message.contains("unknown command"), "{node} {message}");
    }

    #[test]
    fn addresses_are_resolved_relative_to_a_node() {
        let node = Node::new("here", 7000);
        assert_eq!(node.resolve("there:7001"), Some(Node::new("there", 7001)));
        assert_eq!(node.resolve(":7001"), Some(Node::new("here", 7001)));
        assert_eq!(node.resolve("::1:7001"), Some(Node::new("::1", 7001)));
        assert_eq!(node.resolve("there"), None);
    }
}
