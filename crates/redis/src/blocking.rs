//! `BlockingTransport`: connections that block the thread.

use crate::exchange::{Failure, IDLE_LIMIT, NodeAnswers, NodeCommands};
use crate::nodes::Transport;
use crate::packed::PackedCommands;
use crate::server::RedisServer;
use crate::topology::Node;
use crate::wire::Wire;
use redis::{Cmd, RedisResult, Value, cmd};
use std::collections::HashMap;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

/// Runs a future over [`BlockingTransport`] to its end, without a runtime. One poll is enough: the futures of
/// `BlockingTransport` never pend, since they do all their work, waits included, when they are polled.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => unreachable!("a blocking transport has no future that pends"),
    }
}

/// A transport with at most one connection to each node, which blocks the thread.
pub(crate) struct BlockingTransport {
    server: RedisServer,
    readonly: bool,
    connections: HashMap<Node, OpenConnection>,
}

struct OpenConnection {
    connection: Wire,
    /// The time of the last answer; `None` while answers are outstanding.
    idle: Option<Instant>,
}

impl OpenConnection {
    /// Returns the connection, unless it broke while it was idle.
    fn tested(mut self) -> Option<Wire> {
        let is_idle = self.idle.is_some_and(|since| since.elapsed() > IDLE_LIMIT);
        (!is_idle || self.connection.ask(&cmd("PING")).is_ok()).then_some(self.connection)
    }
}

impl Transport for BlockingTransport {
    type Sink = PackedCommands;

    fn new(server: &RedisServer, readonly: bool) -> Self {
        Self { server: server.clone(), readonly, connections: HashMap::new() }
    }

    async fn exchange(&mut self, batches: &mut [NodeCommands<PackedCommands>]) -> Vec<NodeAnswers> {
        // All nodes get their commands before the first answer is read.
        let sent: Vec<_> = batches.iter().map(|batch| self.send(batch)).collect();
        let receive = |(sent, batch): (Result<(), Failure>, _)| match sent {
            Ok(()) => self.receive(batch),
            Err(failure) => NodeAnswers { answers: Vec::new(), failure: Some(failure) },
        };
        sent.into_iter().zip(&*batches).map(receive).collect()
    }

    async fn ask(&mut self, node: &Node, command: &Cmd) -> RedisResult<Value> {
        let answer = self.connection(node)?.ask(command);
        if answer.is_err() {
            self.connections.remove(node);
        } else if let Some(open) = self.connections.get_mut(node) {
            open.idle = Some(Instant::now());
        }
        answer
    }

    async fn sleep(wait: Duration) {
        thread::sleep(wait);
    }

    fn disconnect(&mut self, node: &Node) {
        self.connections.remove(node);
    }

    fn abandon(&mut self) {
        self.connections.clear();
    }
}

impl BlockingTransport {
    fn send(&mut self, batch: &NodeCommands<PackedCommands>) -> Result<(), Failure> {
        let connection = self.connection(&batch.node).map_err(|error| Failure { error, sent: false })?;
        connection.send(&batch.commands.0).map_err(|error| {
            self.connections.remove(&batch.node);
            // The first of the commands may have arrived.
            Failure { error, sent: true }
        })
    }

    fn receive(&mut self, batch: &NodeCommands<PackedCommands>) -> NodeAnswers {
        let mut answers = Vec::with_capacity(batch.answers);
        let error = match self.connections.get_mut(&batch.node) {
            Some(OpenConnection { connection, idle }) => loop {
                if answers.len() == batch.answers {
                    *idle = Some(Instant::now());
                    return NodeAnswers { answers, failure: None };
                }
                match connection.receive() {
                    Ok(answer) => answers.push(answer),
                    Err(error) => break error,
                }
            },
            // The connection broke at another batch for the same node.
            None => std::io::Error::from(std::io::ErrorKind::ConnectionReset).into(),
        };
        // The commands without an answer are sent again, so their answers must not come over this connection.
        self.connections.remove(&batch.node);
        NodeAnswers { answers, failure: Some(Failure { error, sent: true }) }
    }

    /// Returns the connection to a node, marked as having outstanding answers.
    fn connection(&mut self, node: &Node) -> RedisResult<&mut Wire> {
        let connection = match self.connections.remove(node).and_then(OpenConnection::tested) {
            Some(connection) => connection,
            None => Wire::connect(&self.server, node, self.readonly)?,
        };
        let open = OpenConnection { connection, idle: None };
        Ok(&mut self.connections.entry(node.clone()).insert_entry(open).into_mut().connection)
    }
}
