//! `Blocking`: connections that block the thread.

use crate::exchange::{Failure, IDLE, Outcome, Parcel};
use crate::nodes::Transport;
use crate::packed::Packed;
use crate::server::RedisServer;
use crate::topology::Node;
use crate::wire::Wire;
use redis::{Cmd, RedisResult, Value, cmd};
use std::collections::HashMap;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

/// Runs a future over [`Blocking`] to its end. No runtime is needed, and one poll is enough: a future can only pend
/// where it awaits one that does, and those of `Blocking` do all their work, waits included, when they are polled.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => unreachable!("a blocking transport has no future that pends"),
    }
}

/// At most one connection to each node.
pub(crate) struct Blocking {
    server: RedisServer,
    readonly: bool,
    open: HashMap<Node, Open>,
}

struct Open {
    connection: Wire,
    /// When the last answer came; `None` while answers are on their way.
    idle: Option<Instant>,
}

impl Open {
    /// The connection, unless it broke while it was idle.
    fn alive(mut self) -> Option<Wire> {
        let long = self.idle.is_some_and(|since| since.elapsed() > IDLE);
        (!long || self.connection.ask(&cmd("PING")).is_ok()).then_some(self.connection)
    }
}

impl Transport for Blocking {
    type Sink = Packed;

    fn new(server: &RedisServer, readonly: bool) -> Self {
        Self { server: server.clone(), readonly, open: HashMap::new() }
    }

    async fn exchange(&mut self, parcels: &mut [Parcel<Packed>]) -> Vec<Outcome> {
        // All nodes get their commands before the first answer is read.
        let sent: Vec<_> = parcels.iter().map(|parcel| self.send(parcel)).collect();
        let receive = |(sent, parcel): (Result<(), Failure>, _)| match sent {
            Ok(()) => self.receive(parcel),
            Err(failure) => Outcome { answers: Vec::new(), failure: Some(failure) },
        };
        sent.into_iter().zip(&*parcels).map(receive).collect()
    }

    async fn ask(&mut self, node: &Node, command: &Cmd) -> RedisResult<Value> {
        let answer = self.connection(node)?.ask(command);
        if answer.is_err() {
            self.open.remove(node);
        } else if let Some(open) = self.open.get_mut(node) {
            open.idle = Some(Instant::now());
        }
        answer
    }

    async fn sleep(wait: Duration) {
        thread::sleep(wait);
    }

    fn forget(&mut self, node: &Node) {
        self.open.remove(node);
    }

    fn abandon(&mut self) {
        self.open.clear();
    }
}

impl Blocking {
    fn send(&mut self, parcel: &Parcel<Packed>) -> Result<(), Failure> {
        let connection = self.connection(&parcel.node).map_err(|error| Failure { error, sent: false })?;
        connection.send(&parcel.commands.0).map_err(|error| {
            self.open.remove(&parcel.node);
            // The first of the commands may have arrived.
            Failure { error, sent: true }
        })
    }

    fn receive(&mut self, parcel: &Parcel<Packed>) -> Outcome {
        let mut answers = Vec::with_capacity(parcel.answers);
        let error = match self.open.get_mut(&parcel.node) {
            Some(Open { connection, idle }) => loop {
                if answers.len() == parcel.answers {
                    *idle = Some(Instant::now());
                    return Outcome { answers, failure: None };
                }
                match connection.receive() {
                    Ok(answer) => answers.push(answer),
                    Err(error) => break error,
                }
            },
            // The connection broke at another parcel for the same node.
            None => std::io::Error::from(std::io::ErrorKind::ConnectionReset).into(),
        };
        // The commands without an answer are sent again, so their answers must not come over this connection.
        self.open.remove(&parcel.node);
        Outcome { answers, failure: Some(Failure { error, sent: true }) }
    }

    /// The connection to a node, which has answers on their way from here on.
    fn connection(&mut self, node: &Node) -> RedisResult<&mut Wire> {
        let connection = match self.open.remove(node).and_then(Open::alive) {
            Some(connection) => connection,
            None => Wire::connect(&self.server, node, self.readonly)?,
        };
        let open = Open { connection, idle: None };
        Ok(&mut self.open.entry(node.clone()).insert_entry(open).into_mut().connection)
    }
}
