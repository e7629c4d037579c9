//! `Nodes`: runs jobs on a server or on the nodes of a cluster, over any kind of connection.

use crate::error::RedisFilterError;
use crate::exchange::{Exchange, Job, NextStep, NodeAnswers, NodeCommands, unanswered};
use crate::jobs::Commands;
use crate::packed::CommandSink;
use crate::sentinel::Sentinels;
use crate::server::{CancelToken, RedisServer};
use crate::shards::Key;
use crate::topology::{Node, Topology, refusal};
use redis::{Cmd, RedisResult, Value, cmd};
use std::time::{Duration, Instant};

/// Connections to nodes. Each is opened when it is first needed.
///
/// The futures of a transport that blocks are ready when they are first polled.
pub(crate) trait Transport: Sized {
    /// The type that commands are written to.
    type Sink: CommandSink;

    /// Creates a transport without connections. With `readonly`, each begins with `READONLY`, so that replicas answer.
    fn new(server: &RedisServer, readonly: bool) -> Self;

    /// Sends each batch to its node, and then waits for all answers. Returns the answers to each batch, in order. May
    /// take the commands out of the batches.
    async fn exchange(&mut self, batches: &mut [NodeCommands<Self::Sink>]) -> Vec<NodeAnswers>;

    /// Sends one command, and does not send it again.
    async fn ask(&mut self, node: &Node, command: &Cmd) -> RedisResult<Value>;

    async fn sleep(wait: Duration);

    /// Returns the time by which stages end and checks are due.
    fn now() -> Instant {
        Instant::now()
    }

    /// Drops the connection to a node. The next command for the node opens another one.
    fn disconnect(&mut self, node: &Node);

    /// Ends a failed job. Connections with outstanding answers must not be used for the next job.
    fn abandon(&mut self) {}
}

/// The wait before a server that runs a script is asked again.
const BUSY_WAIT: Duration = Duration::from_millis(100);

/// The number of keys that are removed in one job; few in models, which explore every order of all commands.
pub(crate) const UNLINK_BATCH: usize = if cfg!(test) { 1 } else { 1024 };

/// The longest sleep between two checks of the cancel token.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The nodes that serve a filter.
#[derive(Clone)]
pub(crate) struct Nodes<T> {
    server: RedisServer,
    topology: Topology,
    /// True if the server was a primary when it was found. If it reports later that it is a replica, another one has
    /// taken over.
    is_primary: bool,
    /// The number of times that the topology was read again.
    refreshes: usize,
    /// The number of commands that were sent again.
    pub(crate) sent_again: u64,
    transport: T,
}

impl<T: Transport> Nodes<T> {
    /// Asks the given nodes for the topology, or the primary that the given Sentinels name, one after the other, until one answers.
    pub(crate) async fn connect(server: &RedisServer) -> Result<Self, RedisFilterError> {
        let mut transport = T::new(server, false);
        let (topology, primary) =
            find_topology(&mut transport, server, server.seeds().collect(), server.retry_timeout).await?;
        let nodes =
            Self { server: server.clone(), topology, is_primary: primary, refreshes: 0, sent_again: 0, transport };
        // If the node is a replica, its connection does not allow queries yet.
        Ok(if server.read_from_replicas { nodes.with_new_connections() } else { nodes })
    }

    /// Returns a client of the same nodes with connections of its own.
    pub(crate) fn with_new_connections(&self) -> Self {
        let readonly = self.server.read_from_replicas && matches!(self.topology, Topology::Cluster(_));
        let transport = T::new(&self.server, readonly);
        let Self { server, topology, is_primary: primary, .. } = self;
        Self {
            server: server.clone(),
            topology: topology.clone(),
            is_primary: *primary,
            refreshes: 0,
            sent_again: 0,
            transport,
        }
    }

    /// Runs a job until every command has its answer. Returns true if nothing failed meanwhile.
    pub(crate) async fn run(&mut self, job: &mut impl Job) -> Result<bool, RedisFilterError> {
        let mut exchange = Exchange::new(job, &self.server, self.is_primary);
        let mut uninterrupted = true;
        loop {
            if self.server.cancel.is_cancelled() {
                self.transport.abandon();
                return Err(exchange.end());
            }
            let mut batches = exchange.batches(&self.topology);
            if !uninterrupted {
                self.sent_again += batches.iter().map(NodeCommands::len).sum::<usize>() as u64;
            }
            let responses = self.transport.exchange(&mut batches).await;
            for (batch, response) in batches.into_iter().zip(responses) {
                exchange.process(batch, response);
            }
            match exchange.next_step().inspect_err(|_| self.transport.abandon())? {
                NextStep::Done => return Ok(uninterrupted),
                NextStep::Again { wait, refresh } => {
                    uninterrupted = false;
                    sleep_unless_cancelled::<T>(wait, &self.server.cancel).await;
                    if refresh && !self.server.cancel.is_cancelled() {
                        self.refresh().await;
                    }
                }
            }
        }
    }

    /// Removes keys, some at a time. Returns true if one of them existed.
    pub(crate) async fn unlink(&mut self, keys: impl IntoIterator<Item = Key>) -> Result<bool, RedisFilterError> {
        let mut found = false;
        let mut commands = keys.into_iter().map(|key| (key.slot, key.command("UNLINK"))).peekable();
        while commands.peek().is_some() {
            let mut job = Commands::new(commands.by_ref().take(UNLINK_BATCH));
            self.run(&mut job).await?;
            found |= job.answers.contains(&Value::Int(1));
        }
        Ok(found)
    }

    /// Returns the nodes that take keys.
    pub(crate) fn primaries(&self) -> Vec<Node> {
        self.topology.primaries()
    }

    /// Asks a node once.
    pub(crate) async fn ask(&mut self, node: &Node, command: &Cmd) -> Result<Value, RedisFilterError> {
        let asked = Instant::now();
        match self.transport.ask(node, command).await {
            Ok(Value::ServerError(error)) => Err(refusal(node, &error)),
            answer => answer.map_err(|error| unanswered(node, asked, &error)),
        }
    }

    /// Sends a command to each primary. Returns the answers that arrive.
    pub(crate) async fn ask_each(&mut self, command: &Cmd) -> Vec<(Node, Value)> {
        let mut answers = Vec::new();
        for node in self.topology.primaries() {
            // The answers are figures, which a caller does without.
            if let Ok(answer) = self.transport.ask(&node, command).await {
                answers.push((node, answer));
            }
        }
        answers
    }

    /// Reads the topology again. If no node answers, it is kept.
    async fn refresh(&mut self) {
        let Self { server, topology, refreshes, transport, .. } = self;
        *refreshes += 1;
        if let Topology::Single(node) = topology {
            // Its name may resolve to another server by now, which an open connection would hide.
            transport.disconnect(node);
        }
        let nodes = topology.refresh_order(server.seeds(), *refreshes);
        if let Ok((found, true)) = find_topology(transport, server, nodes, Duration::ZERO).await {
            // A node that has left its cluster serves no part of the filter.
            if matches!((&*topology, &found), (Topology::Single(_), _) | (_, Topology::Cluster(_))) {
                *topology = found;
            }
        }
    }
}

/// Sleeps until the time is over or the caller cancels.
async fn sleep_unless_cancelled<T: Transport>(mut wait: Duration, cancel: &CancelToken) {
    while !wait.is_zero() && !cancel.is_cancelled() {
        let step = wait.min(POLL_INTERVAL);
        T::sleep(step).await;
        wait -= step;
    }
}

/// Asks nodes for the topology, or Sentinels for the primary and then the primary, until one answers. Returns the topology
/// with true if the node is not a replica. A replica is skipped if another server may be the primary.
async fn find_topology<T: Transport>(
    transport: &mut T,
    server: &RedisServer,
    nodes: Vec<Node>,
    retry_timeout: Duration,
) -> Result<(Topology, bool), RedisFilterError> {
    let (mut asked_nodes, mut last) = (Vec::new(), None);
    for node in nodes {
        let node = match &server.sentinels {
            None => Ok(node),
            Some(sentinels) => ask_sentinel(transport, sentinels, &node).await,
        };
        let found = match node {
            Ok(node) if asked_nodes.contains(&node) => continue,
            Ok(node) => {
                asked_nodes.push(node.clone());
                ask_until_ready(transport, server, &node, retry_timeout).await
            }
            Err(error) => Err(error),
        };
        match found {
            Ok((Topology::Single(node), false)) if server.has_others() => {
                last = Some(RedisFilterError::ReadOnly { node: node.to_string() });
            }
            Ok(found) => return Ok(found),
            Err(error) => last = Some(error),
        }
    }
    Err(last.expect("there is at least one address, and it failed"))
}

/// Waits for a server that answers that it is busy with a script.
async fn ask_until_ready<T: Transport>(
    transport: &mut T,
    server: &RedisServer,
    node: &Node,
    retry_timeout: Duration,
) -> Result<(Topology, bool), RedisFilterError> {
    let started = Instant::now();
    loop {
        let topology = ask_topology(transport, node).await;
        let busy = matches!(&topology, Err(RedisFilterError::Refused { message, .. }) if message.contains("BUSY"));
        if !busy || started.elapsed() >= retry_timeout || server.cancel.is_cancelled() {
            return topology;
        }
        T::sleep(BUSY_WAIT).await;
    }
}

async fn ask_topology(transport: &mut impl Transport, node: &Node) -> Result<(Topology, bool), RedisFilterError> {
    let asked = Instant::now();
    let failed = |error| unanswered(node, asked, &error);
    let slots = transport.ask(node, cmd("CLUSTER").arg("SLOTS")).await.map_err(failed)?;
    let topology = Topology::parse(slots, node)?;
    let primary = match topology {
        Topology::Cluster(_) => true,
        // Every user may send it, unlike `ROLE`. A server without the command is assumed to be a primary.
        Topology::Single(_) => !says_replica(&transport.ask(node, &cmd("HELLO")).await.map_err(failed)?),
    };
    Ok((topology, primary))
}

/// Asks a Sentinel for the primary.
async fn ask_sentinel(
    transport: &mut impl Transport,
    sentinels: &Sentinels,
    node: &Node,
) -> Result<Node, RedisFilterError> {
    let asked = Instant::now();
    let answer = transport.ask(node, &sentinels.question()).await.map_err(|error| unanswered(node, asked, &error))?;
    sentinels.primary(answer).map_err(|message| RedisFilterError::Refused { node: node.to_string(), message })
}

/// True if an answer to `HELLO`, a list of names and values, is from a replica.
fn says_replica(answer: &Value) -> bool {
    let Value::Array(list) = answer else { return false };
    let is = |value: &Value, text: &str| match value {
        Value::BulkString(value) => value == text.as_bytes(),
        Value::SimpleString(value) => value == text,
        _ => false,
    };
    list.chunks_exact(2).any(|pair| is(&pair[0], "role") && (is(&pair[1], "replica") || is(&pair[1], "slave")))
}
