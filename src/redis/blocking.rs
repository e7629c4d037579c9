//! Connections that block the thread.

use super::error::RedisFilterError;
use super::exchange::{Exchange, Failure, IDLE, Job, Next, Outcome, Parcel, unanswered};
use super::server::RedisServer;
use super::topology::{Node, Topology};
use redis::{Connection, ConnectionLike, RedisResult, Value, cmd};
use std::collections::HashMap;
use std::thread;
use std::time::Instant;

/// One connection to each node that was needed so far.
pub(super) struct Connections {
    server: RedisServer,
    topology: Topology,
    /// How often it was asked for.
    refreshes: usize,
    open: HashMap<Node, Open>,
}

struct Open {
    connection: Connection,
    /// Since when; `None` while answers are on their way.
    idle: Option<Instant>,
}

impl Open {
    /// The connection, unless it broke while it was idle.
    fn alive(mut self) -> Option<Connection> {
        let long = self.idle.is_some_and(|since| since.elapsed() > IDLE);
        (!long || self.connection.req_command(&cmd("PING")).is_ok()).then_some(self.connection)
    }
}

impl Connections {
    /// Asks the first of the seeds that answers who serves what.
    pub(super) fn new(server: &RedisServer) -> Result<Self, RedisFilterError> {
        let mut last = RedisFilterError::Url { reason: "it is empty".to_owned() };
        for node in server.seeds() {
            let topology = Topology::One(node.clone());
            let mut connections = Self { server: server.clone(), topology, refreshes: 0, open: HashMap::new() };
            match connections.ask_topology(&node) {
                Ok(topology) => {
                    connections.topology = topology;
                    if server.replicas {
                        // If it is a replica, it has not been told yet that it shall answer.
                        connections.open.clear();
                    }
                    return Ok(connections);
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// The same server, with connections of its own.
    pub(super) fn another(&self) -> Self {
        Self { server: self.server.clone(), topology: self.topology.clone(), refreshes: 0, open: HashMap::new() }
    }

    /// Does a job, whatever breaks meanwhile.
    pub(super) fn run(&mut self, job: &mut impl Job) -> Result<(), RedisFilterError> {
        let mut exchange = Exchange::new(job, self.server.patience, self.server.replicas);
        loop {
            // All nodes get their commands before the first is listened to.
            let parcels = exchange.parcels(&self.topology);
            let sent: Vec<_> = parcels.into_iter().map(|parcel| (self.send(&parcel), parcel)).collect();
            for (result, parcel) in sent {
                let outcome = match result {
                    Ok(()) => self.receive(&parcel),
                    Err(failure) => Outcome { answers: Vec::new(), failure: Some(failure) },
                };
                exchange.take(parcel, outcome);
            }
            let next = exchange.next().inspect_err(|_| {
                // Answers that are still to come over them belong to nobody.
                self.open.clear();
            });
            match next? {
                Next::Done => return Ok(()),
                Next::Again { wait, refresh } => {
                    thread::sleep(wait);
                    if refresh {
                        self.refresh();
                    }
                }
            }
        }
    }

    fn send(&mut self, parcel: &Parcel) -> Result<(), Failure> {
        let connection = self.connection(&parcel.node).map_err(|error| Failure { error, sent: false })?;
        connection.send_packed_command(&parcel.pipeline.get_packed_pipeline()).map_err(|error| {
            self.open.remove(&parcel.node);
            // The first of the commands may have arrived.
            Failure { error, sent: true }
        })
    }

    fn receive(&mut self, parcel: &Parcel) -> Outcome {
        let mut answers = Vec::with_capacity(parcel.answers());
        let error = match self.open.get_mut(&parcel.node) {
            Some(Open { connection, idle }) => loop {
                if answers.len() == parcel.answers() {
                    *idle = Some(Instant::now());
                    return Outcome { answers, failure: None };
                }
                match connection.recv_response() {
                    // No answer to anything.
                    Ok(Value::Push { .. }) => {}
                    Ok(answer) => answers.push(answer),
                    Err(error) => break error,
                }
            },
            // It broke while another parcel's answers were read.
            None => std::io::Error::from(std::io::ErrorKind::ConnectionReset).into(),
        };
        // What else would come over it are answers to commands that are sent again.
        self.open.remove(&parcel.node);
        Outcome { answers, failure: Some(Failure { error, sent: true }) }
    }

    fn connection(&mut self, node: &Node) -> RedisResult<&mut Connection> {
        let connection = match self.open.remove(node).and_then(Open::alive) {
            Some(connection) => connection,
            None => self.connect(node)?,
        };
        let open = Open { connection, idle: None };
        Ok(&mut self.open.entry(node.clone()).insert_entry(open).into_mut().connection)
    }

    fn connect(&self, node: &Node) -> RedisResult<Connection> {
        let RedisServer { connect_timeout, response_timeout, replicas, .. } = self.server;
        let mut connection = self.server.client(node)?.get_connection_with_timeout(connect_timeout)?;
        connection.set_read_timeout(Some(response_timeout))?;
        connection.set_write_timeout(Some(response_timeout))?;
        if replicas && matches!(self.topology, Topology::Cluster(_)) {
            // A primary takes it for granted.
            cmd("READONLY").exec(&mut connection)?;
        }
        Ok(connection)
    }

    /// Asks around for who serves what. If nobody answers, all stays as it was.
    fn refresh(&mut self) {
        for node in self.topology.to_ask(self.server.seeds(), &mut self.refreshes) {
            if let Ok(topology @ Topology::Cluster(_)) = self.ask_topology(&node) {
                self.topology = topology;
                return;
            }
        }
    }

    fn ask_topology(&mut self, node: &Node) -> Result<Topology, RedisFilterError> {
        let asked = Instant::now();
        let answer = self.connection(node).and_then(|connection| connection.req_command(cmd("CLUSTER").arg("SLOTS")));
        match answer {
            Ok(answer) => {
                self.open.entry(node.clone()).and_modify(|open| open.idle = Some(Instant::now()));
                Topology::parse(answer, node)
            }
            Err(error) => {
                self.open.remove(node);
                Err(unanswered(node, asked, &error))
            }
        }
    }
}
