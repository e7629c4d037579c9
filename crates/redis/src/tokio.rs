//! `TokioTransport`: connections that tasks share.

use crate::exchange::{Failure, IDLE_LIMIT, NodeAnswers, NodeCommands};
use crate::nodes::Transport;
use crate::packed::PackedCommands;
use crate::server::RedisServer;
use crate::shared_wire::SharedWire;
use crate::topology::Node;
use redis::{Cmd, RedisResult, Value, cmd};
use std::collections::HashMap;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// At most one connection to each node.
#[derive(Clone)]
pub(crate) struct TokioTransport {
    server: RedisServer,
    readonly: bool,
    /// Shared by all clones. The lock is never held across an `await`.
    connections: Arc<Mutex<HashMap<Node, OpenConnection>>>,
}

#[derive(Clone)]
struct OpenConnection {
    connection: SharedWire,
    used: Instant,
}

impl Transport for TokioTransport {
    type Sink = PackedCommands;

    fn new(server: &RedisServer, readonly: bool) -> Self {
        Self { server: server.clone(), readonly, connections: Arc::default() }
    }

    async fn exchange(&mut self, batches: &mut [NodeCommands<PackedCommands>]) -> Vec<NodeAnswers> {
        // All nodes get their commands before the first answer is awaited.
        let mut sent = Vec::with_capacity(batches.len());
        for batch in &mut *batches {
            let commands = mem::take(&mut batch.commands);
            let connection = self.connection(&batch.node).await;
            sent.push(connection.map(|connection| connection.send(commands.0, batch.answers)));
        }
        let mut responses = Vec::with_capacity(batches.len());
        for (sent, batch) in sent.into_iter().zip(&*batches) {
            let response = match sent {
                Ok(answering) => answering.receive().await,
                Err(error) => NodeAnswers { answers: Vec::new(), failure: Some(Failure { error, sent: false }) },
            };
            if response.failure.is_some() {
                self.connections().remove(&batch.node);
            }
            responses.push(response);
        }
        responses
    }

    async fn ask(&mut self, node: &Node, command: &Cmd) -> RedisResult<Value> {
        let answer = async { self.connection(node).await?.ask(command).await }.await;
        if answer.is_err() {
            self.connections().remove(node);
        }
        answer
    }

    async fn sleep(wait: Duration) {
        tokio::time::sleep(wait).await;
    }

    fn disconnect(&mut self, node: &Node) {
        self.connections().remove(node);
    }
}

impl TokioTransport {
    fn connections(&self) -> MutexGuard<'_, HashMap<Node, OpenConnection>> {
        self.connections.lock().expect("no task panics while it holds the lock")
    }

    async fn connection(&self, node: &Node) -> RedisResult<SharedWire> {
        let open = self.connections().get(node).cloned().filter(|open| !open.connection.is_closed());
        let connection = match open {
            Some(OpenConnection { connection, used }) if used.elapsed() <= IDLE_LIMIT => connection,
            // It may have been closed since.
            Some(OpenConnection { connection, .. }) if connection.ask(&cmd("PING")).await.is_ok() => connection,
            _ => SharedWire::connect(&self.server, node, self.readonly).await?,
        };
        self.connections()
            .insert(node.clone(), OpenConnection { connection: connection.clone(), used: Instant::now() });
        Ok(connection)
    }
}
