//! Connections for tokio, and the filter on them.

use super::error::RedisFilterError;
use super::exchange::{Exchange, Failure, IDLE, Job, Next, Outcome, unanswered};
use super::filter::*;
use super::jobs::{Claims, Commands, Download, PIECE, Queries, Upload};
use super::server::RedisServer;
use super::shards::{Key, check_size};
use super::topology::{Node, Topology};
use crate::batch;
use crate::block::BLOCK_BYTES;
use crate::error::BuildError;
use crate::hash::KeyHasher;
use crate::params::{Builder, FromParams};
use crate::plan::Plan;
use crate::words4::BloomFilter;
use redis::aio::{ConnectionLike, MultiplexedConnection};
use redis::{AsyncConnectionConfig, RedisResult, cmd};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;
use std::{fmt, mem};
use tokio::task::JoinSet;

/// [`RedisBloomFilter`](super::RedisBloomFilter) for programs on tokio: the same methods, to be awaited, on connections that clones
/// share.
///
/// A call that is dropped before it has ended, by a time-out or in `select!`, may have claimed keys that nobody is told of: they
/// are lost. Let calls end; the time-outs of [`RedisServer`] end them. Connections belong to the runtime that made them: open the filter
/// anew in another one. The response time-out of [`RedisServer`] is for all answers to a portion of 4096 keys together.
///
/// # Panics
/// All methods that are awaited, outside of a tokio runtime with I/O and time enabled.
///
/// # Examples
/// ```no_run
/// # async fn example() -> Result<(), bloomline::redis::RedisFilterError> {
/// use bloomline::BloomFilter;
/// use bloomline::redis::{AsyncRedisBloomFilter, RedisServer};
///
/// let server = RedisServer::new("redis://127.0.0.1:6379")?;
/// let size = BloomFilter::builder().expected_keys(100_000_000).false_positive_rate(0.001);
/// let mut seen = AsyncRedisBloomFilter::create(&server, "crawl", &size).await?;
/// if seen.insert("https://example.org/").await? {
///     println!("a page to visit");
/// }
/// # Ok(()) }
/// ```
pub struct AsyncRedisBloomFilter {
    core: Core,
    servers: AsyncConnections,
}

shared_methods!(AsyncRedisBloomFilter, AsyncConnections, [async], [.await]);

/// Shares the connections and the mirror, and counts what is uncertain anew.
impl Clone for AsyncRedisBloomFilter {
    fn clone(&self) -> Self {
        Self { core: self.core.another(), servers: self.servers.clone() }
    }
}

/// One connection to each node that was needed so far.
#[derive(Clone)]
struct AsyncConnections {
    server: RedisServer,
    topology: Topology,
    /// How often it was asked for.
    refreshes: usize,
    /// Shared by all clones. No call waits while it holds the lock.
    open: Arc<Mutex<HashMap<Node, Open>>>,
}

#[derive(Clone)]
struct Open {
    connection: MultiplexedConnection,
    used: Instant,
}

impl AsyncConnections {
    /// Asks the first of the seeds that answers who serves what.
    async fn new(server: &RedisServer) -> Result<Self, RedisFilterError> {
        let mut last = RedisFilterError::Url { reason: "it is empty".to_owned() };
        for node in server.seeds() {
            let topology = Topology::One(node.clone());
            let mut connections = Self { server: server.clone(), topology, refreshes: 0, open: Arc::default() };
            match connections.ask_topology(&node).await {
                Ok(topology) => {
                    connections.topology = topology;
                    if server.replicas {
                        // If it is a replica, it has not been told yet that it shall answer.
                        connections.open().clear();
                    }
                    return Ok(connections);
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Does a job, whatever breaks meanwhile.
    async fn run(&mut self, job: &mut impl Job) -> Result<(), RedisFilterError> {
        let mut exchange = Exchange::new(job, self.server.patience, self.server.replicas);
        loop {
            let mut parcels = exchange.parcels(&self.topology);
            // A task that does not come back, at the runtime's end, leaves its commands in doubt.
            let mut outcomes: Vec<_> = parcels.iter().map(|_| Outcome { answers: Vec::new(), failure: None }).collect();
            let mut answering = JoinSet::new();
            for (i, parcel) in parcels.iter_mut().enumerate() {
                let (expected, pipeline) = (parcel.answers(), mem::take(&mut parcel.pipeline));
                match self.connection(&parcel.node).await {
                    Ok(mut connection) => {
                        _ = answering.spawn(async move {
                            // All answers or none: a failure leaves all commands in doubt.
                            (i, connection.req_packed_commands(&pipeline, 0, expected).await)
                        })
                    }
                    Err(error) => outcomes[i].failure = Some(Failure { error, sent: false }),
                }
            }
            while let Some(answered) = answering.join_next().await {
                match answered {
                    Ok((i, Ok(answers))) => outcomes[i].answers = answers,
                    Ok((i, Err(error))) => {
                        self.open().remove(&parcels[i].node);
                        outcomes[i].failure = Some(Failure { error, sent: true });
                    }
                    Err(_) => {}
                }
            }
            for (parcel, outcome) in parcels.into_iter().zip(outcomes) {
                exchange.take(parcel, outcome);
            }
            match exchange.next()? {
                Next::Done => return Ok(()),
                Next::Again { wait, refresh } => {
                    tokio::time::sleep(wait).await;
                    if refresh {
                        self.refresh().await;
                    }
                }
            }
        }
    }

    fn open(&self) -> MutexGuard<'_, HashMap<Node, Open>> {
        self.open.lock().expect("no task panics while it holds the lock")
    }

    async fn connection(&mut self, node: &Node) -> RedisResult<MultiplexedConnection> {
        let open = self.open().get(node).cloned();
        if let Some(Open { mut connection, used }) = open {
            if used.elapsed() <= IDLE || connection.req_packed_command(&cmd("PING")).await.is_ok() {
                self.keep(node, &connection);
                return Ok(connection);
            }
            self.open().remove(node);
        }
        let RedisServer { connect_timeout, response_timeout, replicas, .. } = self.server;
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(connect_timeout))
            .set_response_timeout(Some(response_timeout));
        let client = self.server.client(node)?;
        let mut connection = client.get_multiplexed_async_connection_with_config(&config).await?;
        if replicas && matches!(self.topology, Topology::Cluster(_)) {
            // A primary takes it for granted.
            cmd("READONLY").exec_async(&mut connection).await?;
        }
        self.keep(node, &connection);
        Ok(connection)
    }

    fn keep(&self, node: &Node, connection: &MultiplexedConnection) {
        self.open().insert(node.clone(), Open { connection: connection.clone(), used: Instant::now() });
    }

    /// Asks around for who serves what. If nobody answers, all stays as it was.
    async fn refresh(&mut self) {
        for node in self.topology.to_ask(self.server.seeds(), &mut self.refreshes) {
            if let Ok(topology @ Topology::Cluster(_)) = self.ask_topology(&node).await {
                self.topology = topology;
                return;
            }
        }
    }

    async fn ask_topology(&mut self, node: &Node) -> Result<Topology, RedisFilterError> {
        let asked = Instant::now();
        let answer = match self.connection(node).await {
            Ok(mut connection) => connection.req_packed_command(cmd("CLUSTER").arg("SLOTS")).await,
            Err(error) => Err(error),
        };
        match answer {
            Ok(answer) => Topology::parse(answer, node),
            Err(error) => {
                self.open().remove(node);
                Err(unanswered(node, asked, &error))
            }
        }
    }
}
