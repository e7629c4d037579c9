//! `Nodes`: runs jobs on a server or on the nodes of a cluster, over any kind of connection.

use crate::error::RedisFilterError;
use crate::exchange::{Exchange, Job, Next, Outcome, Parcel, unanswered};
use crate::packed::Sink;
use crate::server::RedisServer;
use crate::topology::{Node, Topology};
use redis::{Cmd, RedisResult, Value, cmd};
use std::time::{Duration, Instant};

/// Connections to nodes. Each is opened when it is first needed.
///
/// The futures of a transport that blocks are ready when they are first polled.
pub(crate) trait Transport: Sized {
    /// What commands are written to.
    type Sink: Sink;

    /// No connections yet. With `readonly`, each begins with `READONLY`, so that replicas answer.
    fn new(server: &RedisServer, readonly: bool) -> Self;

    /// Sends each parcel to its node and then waits for all answers. Returns what came of each parcel, in their order.
    /// Takes the commands, if it needs to.
    async fn exchange(&mut self, parcels: &mut [Parcel<Self::Sink>]) -> Vec<Outcome>;

    /// Sends one command, and does not send it again.
    async fn ask(&mut self, node: &Node, command: &Cmd) -> RedisResult<Value>;

    async fn sleep(wait: Duration);

    /// A job failed. Connections over which answers could still come must not be used for the next job.
    fn abandon(&mut self) {}
}

/// How long to wait for a script before the server is asked again.
const BUSY_WAIT: Duration = Duration::from_millis(100);

/// The nodes that serve a filter.
#[derive(Clone)]
pub(crate) struct Nodes<T> {
    server: RedisServer,
    topology: Topology,
    /// How often the nodes were asked for the topology.
    refreshes: usize,
    transport: T,
}

impl<T: Transport> Nodes<T> {
    /// Asks the given nodes for the topology, one after the other, until one answers.
    pub(crate) async fn connect(server: &RedisServer) -> Result<Self, RedisFilterError> {
        let mut last = None;
        for node in server.seeds() {
            let mut transport = T::new(server, false);
            match ask_patiently(&mut transport, server, &node).await {
                Ok(topology) => {
                    let nodes = Self { server: server.clone(), topology, refreshes: 0, transport };
                    // If the node is a replica, its connection does not allow queries yet.
                    return Ok(if server.replicas { nodes.another() } else { nodes });
                }
                Err(error) => last = Some(error),
            }
        }
        Err(last.expect("a server has at least one address"))
    }

    /// The same nodes, with connections of its own.
    pub(crate) fn another(&self) -> Self {
        let readonly = self.server.replicas && matches!(self.topology, Topology::Cluster(_));
        let transport = T::new(&self.server, readonly);
        Self { server: self.server.clone(), topology: self.topology.clone(), refreshes: 0, transport }
    }

    /// Runs a job until every command has its answer, whatever breaks meanwhile. Returns whether nothing did.
    pub(crate) async fn run(&mut self, job: &mut impl Job) -> Result<bool, RedisFilterError> {
        let mut exchange = Exchange::new(job, &self.server);
        let mut smooth = true;
        loop {
            if self.server.ending.is_over() {
                self.transport.abandon();
                return Err(exchange.end());
            }
            let mut parcels = exchange.parcels(&self.topology);
            let outcomes = self.transport.exchange(&mut parcels).await;
            for (parcel, outcome) in parcels.into_iter().zip(outcomes) {
                exchange.take(parcel, outcome);
            }
            match exchange.next().inspect_err(|_| self.transport.abandon())? {
                Next::Done => return Ok(smooth),
                Next::Again { wait, refresh } => {
                    smooth = false;
                    T::sleep(wait).await;
                    if refresh && !self.server.ending.is_over() {
                        self.refresh().await;
                    }
                }
            }
        }
    }

    /// Asks each primary the same. Returns the answers of those that give one.
    pub(crate) async fn ask_each(&mut self, command: &Cmd) -> Vec<(Node, Value)> {
        let mut answers = Vec::new();
        for node in self.topology.primaries() {
            if let Ok(answer) = self.transport.ask(&node, command).await {
                answers.push((node, answer));
            }
        }
        answers
    }

    /// Asks the nodes for the topology, until one answers. If none does, the topology stays as it was.
    async fn refresh(&mut self) {
        for node in self.topology.to_ask(self.server.seeds(), &mut self.refreshes) {
            if let Ok(topology @ Topology::Cluster(_)) = ask_topology(&mut self.transport, &node).await {
                self.topology = topology;
                return;
            }
        }
    }
}

/// Waits for a server that answers that it is busy with a script.
async fn ask_patiently<T: Transport>(
    transport: &mut T,
    server: &RedisServer,
    node: &Node,
) -> Result<Topology, RedisFilterError> {
    let started = Instant::now();
    loop {
        let topology = ask_topology(transport, node).await;
        let busy = matches!(&topology, Err(RedisFilterError::Refused { message, .. }) if message.contains("BUSY"));
        if !busy || started.elapsed() >= server.patience || server.ending.is_over() {
            return topology;
        }
        T::sleep(BUSY_WAIT).await;
    }
}

async fn ask_topology(transport: &mut impl Transport, node: &Node) -> Result<Topology, RedisFilterError> {
    let asked = Instant::now();
    let answer = transport.ask(node, cmd("CLUSTER").arg("SLOTS")).await;
    Topology::parse(answer.map_err(|error| unanswered(node, asked, &error))?, node)
}
