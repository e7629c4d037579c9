//! Which node has which slot.

use super::error::RedisFilterError;
use redis::{ServerError, ServerErrorKind, Value};
use std::fmt;
use std::sync::Arc;

/// A server, by its address.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Node(Arc<(String, u16)>);

impl Node {
    pub(super) fn new(host: &str, port: u16) -> Self {
        Self(Arc::new((host.to_owned(), port)))
    }

    pub(super) fn host(&self) -> &str {
        &self.0.0
    }

    pub(super) fn port(&self) -> u16 {
        self.0.1
    }

    /// The node that this one names, as `host:port`; without a host, its own.
    pub(super) fn named(&self, address: &str) -> Option<Self> {
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

/// Who serves what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Topology {
    /// One server, for all.
    One(Node),
    /// The ranges of slots of a cluster.
    Cluster(Vec<Range>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Range {
    slots: std::ops::RangeInclusive<u16>,
    primary: Node,
    replicas: Vec<Node>,
}

impl Topology {
    /// What a node's answer to `CLUSTER SLOTS` says. A server that is in no cluster refuses the question.
    pub(super) fn parse(answer: Value, answering: &Node) -> Result<Self, RedisFilterError> {
        match answer {
            Value::ServerError(error) if is_no_cluster(&error) => Ok(Self::One(answering.clone())),
            Value::ServerError(error) => Err(refusal(answering, &error)),
            Value::Array(ranges) => {
                let ranges = ranges.into_iter().map(|range| parse_range(range, answering)).collect::<Option<Vec<_>>>();
                ranges.map(Self::Cluster).ok_or_else(|| refused(answering))
            }
            _ => Err(refused(answering)),
        }
    }

    /// The node for a slot: its primary, or the replica whose turn it is. `None` if nobody serves it.
    pub(super) fn node(&self, slot: u16, turn: Option<usize>) -> Option<&Node> {
        match self {
            Self::One(node) => Some(node),
            Self::Cluster(ranges) => {
                let range = ranges.iter().find(|range| range.slots.contains(&slot))?;
                let replica = turn.filter(|_| !range.replicas.is_empty());
                Some(replica.map_or(&range.primary, |turn| &range.replicas[turn % range.replicas.len()]))
            }
        }
    }

    /// Whom to ask who serves what: the nodes that are known, another one first each time. Nobody where it is one server.
    pub(super) fn to_ask(&self, seeds: impl Iterator<Item = Node>, turns: &mut usize) -> Vec<Node> {
        if matches!(self, Self::One(_)) {
            return Vec::new();
        }
        let mut nodes = self.nodes();
        let others: Vec<Node> = seeds.filter(|seed| !nodes.contains(seed)).collect();
        nodes.extend(others);
        turn(&mut nodes, turns);
        nodes
    }

    /// All primaries and replicas.
    fn nodes(&self) -> Vec<Node> {
        match self {
            Self::One(node) => vec![node.clone()],
            Self::Cluster(ranges) => {
                let mut nodes: Vec<Node> = Vec::new();
                for node in ranges.iter().flat_map(|range| [&range.primary].into_iter().chain(&range.replicas)) {
                    if !nodes.contains(node) {
                        nodes.push(node.clone());
                    }
                }
                nodes
            }
        }
    }
}

/// Has another node asked first each time: one that is cut off from the others tells what was.
fn turn(nodes: &mut [Node], turns: &mut usize) {
    nodes.rotate_left(*turns % nodes.len().max(1));
    *turns += 1;
}

fn is_no_cluster(error: &ServerError) -> bool {
    error.details().is_some_and(|details| details.contains("cluster support disabled"))
}

/// Why a node does not carry a command out, if no waiting helps.
pub(super) fn refusal(node: &Node, error: &ServerError) -> RedisFilterError {
    let (node, message) = (node.to_string(), error.to_string());
    match (error.kind(), error.code()) {
        (Some(ServerErrorKind::NoPerm), _) | (None, "NOAUTH" | "WRONGPASS") => {
            RedisFilterError::Denied { node, message }
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

/// First slot, last slot, and the nodes, the primary first. A node is its host, its port, and more.
fn parse_range(range: Value, answering: &Node) -> Option<Range> {
    let Value::Array(range) = range else { return None };
    let [Value::Int(first), Value::Int(last), nodes @ ..] = &range[..] else { return None };
    let mut nodes = nodes.iter().filter_map(|node| {
        let Value::Array(node) = node else { return None };
        let [host, Value::Int(port), ..] = &node[..] else { return None };
        let host = match host {
            Value::BulkString(host) => str::from_utf8(host).ok()?,
            Value::SimpleString(host) => host,
            // Unknown to itself: the one that was asked.
            Value::Nil => "",
            _ => return None,
        };
        // "?" is a node whose address nobody knows.
        let host = if host.is_empty() { answering.host() } else { host };
        (host != "?").then(|| Some(Node::new(host, u16::try_from(*port).ok()?)))?
    });
    let primary = nodes.next()?;
    let slots = u16::try_from(*first).ok()?..=u16::try_from(*last).ok()?;
    Some(Range { slots, primary, replicas: nodes.collect() })
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
        assert_eq!(topology.nodes().len(), 4);
        for nonsense in [Value::Nil, Value::Array(vec![Value::Int(1)]), Value::Array(vec![range(0, 1, vec![])])] {
            assert!(matches!(Topology::parse(nonsense, &asked), Err(RedisFilterError::Refused { .. })));
        }
    }

    #[test]
    fn refusals_are_told_apart() {
        let parse = |line: &str| {
            let answer = redis::parse_redis_value(format!("-{line}\r\n").as_bytes()).unwrap();
            Topology::parse(answer, &Node::new("n", 1))
        };
        assert_eq!(parse("ERR This instance has cluster support disabled"), Ok(Topology::One(Node::new("n", 1))));
        for line in ["NOAUTH Authentication required.", "NOPERM User x has no permissions"] {
            assert!(matches!(parse(line), Err(RedisFilterError::Denied { .. })), "{line}");
        }
        assert!(matches!(parse("ERR unknown command"), Err(RedisFilterError::Refused { .. })));
    }

    #[test]
    fn all_nodes_have_their_turn() {
        let (mut first, mut turns) = (Vec::new(), 0);
        for _ in 0..4 {
            let mut nodes = [1, 2, 3].map(|port| Node::new("n", port));
            turn(&mut nodes, &mut turns);
            first.push(nodes[0].port());
        }
        assert_eq!(first, [1, 2, 3, 1]);
        turn(&mut [], &mut turns);
    }

    #[test]
    fn a_node_names_another() {
        let node = Node::new("here", 7000);
        assert_eq!(node.named("there:7001"), Some(Node::new("there", 7001)));
        assert_eq!(node.named(":7001"), Some(Node::new("here", 7001)));
        assert_eq!(node.named("::1:7001"), Some(Node::new("::1", 7001)));
        assert_eq!(node.named("there"), None);
    }
}
