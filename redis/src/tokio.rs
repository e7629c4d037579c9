//! `Tokio`: connections that tasks share.

use crate::exchange::{Failure, IDLE, Outcome, Parcel};
use crate::nodes::Transport;
use crate::server::RedisServer;
use crate::topology::Node;
use redis::aio::{ConnectionLike, MultiplexedConnection};
use redis::{AsyncConnectionConfig, Cmd, Pipeline, RedisResult, Value, cmd};
use std::collections::HashMap;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// At most one connection to each node.
#[derive(Clone)]
pub(crate) struct Tokio {
    server: RedisServer,
    readonly: bool,
    /// Shared by all clones. The lock is never held across an `await`.
    open: Arc<Mutex<HashMap<Node, Open>>>,
}

#[derive(Clone)]
struct Open {
    connection: MultiplexedConnection,
    used: Instant,
}

impl Transport for Tokio {
    type Sink = Pipeline;

    fn new(server: &RedisServer, readonly: bool) -> Self {
        Self { server: server.clone(), readonly, open: Arc::default() }
    }

    async fn exchange(&mut self, parcels: &mut [Parcel<Pipeline>]) -> Vec<Outcome> {
        // A task that the end of the runtime cancels leaves this outcome: its commands are in doubt.
        let mut outcomes: Vec<_> = parcels.iter().map(|_| Outcome { answers: Vec::new(), failure: None }).collect();
        let mut answering = JoinSet::new();
        for (i, parcel) in parcels.iter_mut().enumerate() {
            let (expected, pipeline) = (parcel.answers, mem::take(&mut parcel.commands));
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
        outcomes
    }

    async fn ask(&mut self, node: &Node, command: &Cmd) -> RedisResult<Value> {
        let answer = async { self.connection(node).await?.req_packed_command(command).await }.await;
        if answer.is_err() {
            self.open().remove(node);
        }
        answer
    }

    async fn sleep(wait: Duration) {
        tokio::time::sleep(wait).await;
    }

    fn forget(&mut self, node: &Node) {
        self.open().remove(node);
    }
}

impl Tokio {
    fn open(&self) -> MutexGuard<'_, HashMap<Node, Open>> {
        self.open.lock().expect("no task panics while it holds the lock")
    }

    async fn connection(&self, node: &Node) -> RedisResult<MultiplexedConnection> {
        let open = self.open().get(node).cloned();
        if let Some(Open { mut connection, used }) = open {
            if used.elapsed() <= IDLE || connection.req_packed_command(&cmd("PING")).await.is_ok() {
                return Ok(self.keep(node, connection));
            }
            self.open().remove(node);
        }
        Ok(self.keep(node, self.connect(node).await?))
    }

    fn keep(&self, node: &Node, connection: MultiplexedConnection) -> MultiplexedConnection {
        self.open().insert(node.clone(), Open { connection: connection.clone(), used: Instant::now() });
        connection
    }

    async fn connect(&self, node: &Node) -> RedisResult<MultiplexedConnection> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.server.connect_timeout))
            .set_response_timeout(Some(self.server.response_timeout));
        let client = self.server.client(node)?;
        let mut connection = client.get_multiplexed_async_connection_with_config(&config).await?;
        if self.readonly {
            // Primaries accept it too.
            cmd("READONLY").exec_async(&mut connection).await?;
        }
        // Without the password the server would hang up in the middle of the claims, and leave them in doubt.
        match cmd("PING").exec_async(&mut connection).await {
            Err(error) if error.is_io_error() || error.code() == Some("NOAUTH") => Err(error),
            _ => Ok(connection),
        }
    }
}
