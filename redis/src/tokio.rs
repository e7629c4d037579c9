//! `Tokio`: connections that tasks share.

use crate::exchange::{Failure, IDLE, Outcome, Parcel};
use crate::nodes::Transport;
use crate::packed::Packed;
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
pub(crate) struct Tokio {
    server: RedisServer,
    readonly: bool,
    /// Shared by all clones. The lock is never held across an `await`.
    open: Arc<Mutex<HashMap<Node, Open>>>,
}

#[derive(Clone)]
struct Open {
    connection: SharedWire,
    used: Instant,
}

impl Transport for Tokio {
    type Sink = Packed;

    fn new(server: &RedisServer, readonly: bool) -> Self {
        Self { server: server.clone(), readonly, open: Arc::default() }
    }

    async fn exchange(&mut self, parcels: &mut [Parcel<Packed>]) -> Vec<Outcome> {
        // All nodes get their commands before the first answer is awaited.
        let mut sent = Vec::with_capacity(parcels.len());
        for parcel in &mut *parcels {
            let commands = mem::take(&mut parcel.commands);
            let connection = self.connection(&parcel.node).await;
            sent.push(connection.map(|connection| connection.send(commands.0, parcel.answers)));
        }
        let mut outcomes = Vec::with_capacity(parcels.len());
        for (sent, parcel) in sent.into_iter().zip(&*parcels) {
            let outcome = match sent {
                Ok(answering) => answering.outcome().await,
                Err(error) => Outcome { answers: Vec::new(), failure: Some(Failure { error, sent: false }) },
            };
            if outcome.failure.is_some() {
                self.open().remove(&parcel.node);
            }
            outcomes.push(outcome);
        }
        outcomes
    }

    async fn ask(&mut self, node: &Node, command: &Cmd) -> RedisResult<Value> {
        let answer = async { self.connection(node).await?.ask(command).await }.await;
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

    async fn connection(&self, node: &Node) -> RedisResult<SharedWire> {
        let open = self.open().get(node).cloned().filter(|open| !open.connection.is_closed());
        let connection = match open {
            Some(Open { connection, used }) if used.elapsed() <= IDLE => connection,
            // It may have been closed since.
            Some(Open { connection, .. }) if connection.ask(&cmd("PING")).await.is_ok() => connection,
            _ => SharedWire::connect(&self.server, node, self.readonly).await?,
        };
        self.open().insert(node.clone(), Open { connection: connection.clone(), used: Instant::now() });
        Ok(connection)
    }
}
