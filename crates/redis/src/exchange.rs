//! `Exchange`: routes commands to nodes, interprets the answers, and decides which commands to send again. Independent
//! of connections.
//!
//! The client crate's cluster connection sends a command again if its answer is lost. If the lost command was a claim
//! that was carried out, the second one finds the bits of the first and is answered "seen": the key is lost. Here every
//! command that may have been carried out without an answer is *doubted* from then on.

use crate::error::RedisFilterError;
use crate::packed::CommandSink;
use crate::server::{RedisServer, ReplicaWait};
use crate::shards::KEY_PREFIX;
use crate::topology::{Node, Topology, refusal};
use redis::{Arg, Cmd, ErrorKind, RedisError, ServerError, ServerErrorKind, Value};
use std::mem;
use std::time::{Duration, Instant};

/// A set of commands that may be sent to any nodes, in any order, and more than once.
pub(crate) trait Job {
    /// Returns the number of commands.
    fn len(&self) -> usize;
    /// Returns the slot of a command's key.
    fn slot(&self, i: usize) -> u16;
    /// Writes a command to the sink.
    fn write(&self, i: usize, sink: &mut impl CommandSink);
    /// True if a replica may answer the command.
    fn may_ask_replica(&self, _i: usize) -> bool {
        false
    }
    /// Processes an answer. Returns `None` if the answer is invalid. If `doubted`, the command may have been carried
    /// out before with a lost answer.
    fn process_answer(&mut self, i: usize, answer: Value, doubted: bool) -> Option<()>;
    /// True if the command's effect has to reach replicas.
    fn wants_replicas(&self, _i: usize) -> bool {
        false
    }
    /// True if the answer holds even if the node forgets the command.
    fn holds(&self, _i: usize, _answer: &Value) -> bool {
        true
    }
    /// Records that a command was answered and too few replicas have it.
    fn unconfirmed(&mut self, _i: usize) {}
    /// Records that no answer will come. If `doubted`, the command may have been carried out.
    fn abandon(&mut self, _i: usize, _doubted: bool) {}
}

/// A job in progress.
pub(crate) struct Exchange<'a, J> {
    job: &'a mut J,
    retry_timeout: Duration,
    read_from_replicas: bool,
    /// True if the server was a primary when it was found: if it reports that it is a replica, another one takes over.
    is_primary: bool,
    /// The replicas to wait for.
    confirmation: Option<ReplicaWait>,
    /// Commands without an answer.
    pending: Vec<PendingCommand>,
    /// The time of the last answer, or of the first command.
    last_answer: Instant,
    /// The number of rounds without an answer.
    silent_rounds: u32,
    /// An error that a retry does not resolve.
    fatal: Option<RedisFilterError>,
    /// The last failure.
    failure: Option<(Node, String)>,
    round: RoundState,
}

/// The results of a round.
#[derive(Default)]
struct RoundState {
    answered: bool,
    /// True if slots may have moved.
    refresh: bool,
    /// True if a retry helps only after a wait. Otherwise another node has the slot.
    wait: bool,
}

struct PendingCommand {
    /// The index in the job.
    index: usize,
    doubted: bool,
    /// The node to ask once, while a slot moves to it.
    ask: Option<Node>,
}

/// The result of a wait for replicas.
#[derive(Clone, Copy, PartialEq)]
enum ReplicaStatus {
    Yes,
    No,
    /// The connection broke before the answer.
    Unknown,
}

/// Commands for one node.
pub(crate) struct NodeCommands<S> {
    pub(crate) node: Node,
    pending: Vec<PendingCommand>,
    /// True if an `ASKING` precedes each command.
    asking: bool,
    pub(crate) commands: S,
    /// The number of answers to expect.
    pub(crate) answers: usize,
    /// The replicas that the last command waits for.
    confirmation: Option<ReplicaWait>,
}

impl<S> NodeCommands<S> {
    /// Returns the number of the job's commands.
    pub(crate) fn len(&self) -> usize {
        self.pending.len()
    }
}

/// The answers to a batch, up to a failure.
pub(crate) struct NodeAnswers {
    /// The answers before the failure, in order.
    pub(crate) answers: Vec<Value>,
    pub(crate) failure: Option<Failure>,
}

/// The reason that answers are missing.
pub(crate) struct Failure {
    pub(crate) error: RedisError,
    /// True if the node may have received any of the commands.
    pub(crate) sent: bool,
}

/// The next step after a round.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NextStep {
    Done,
    /// Wait, read the slots again if `refresh` is set, and do the next round.
    Again {
        wait: Duration,
        refresh: bool,
    },
}

impl<'a, J: Job> Exchange<'a, J> {
    pub(crate) fn new(job: &'a mut J, server: &RedisServer, is_primary: bool) -> Self {
        let RedisServer { retry_timeout, read_from_replicas, .. } = *server;
        let pending = (0..job.len()).map(|index| PendingCommand { index, doubted: false, ask: None }).collect();
        Self {
            confirmation: server.confirmation(),
            job,
            retry_timeout,
            read_from_replicas,
            is_primary,
            pending,
            last_answer: Instant::now(),
            silent_rounds: 0,
            fatal: None,
            failure: None,
            round: RoundState::default(),
        }
    }

    /// Returns the commands without an answer, by node.
    pub(crate) fn batches<S: CommandSink>(&mut self, topology: &Topology) -> Vec<NodeCommands<S>> {
        self.round = RoundState::default();
        let mut pending = mem::take(&mut self.pending);
        // In order, so that the first of equal keys is claimed.
        pending.sort_by_key(|command| command.index);
        let mut batches: Vec<NodeCommands<S>> = Vec::new();
        for mut command in pending {
            let slot = self.job.slot(command.index);
            let ask = command.ask.take();
            // If the replicas do not answer, the primary is asked.
            let rotation =
                (self.read_from_replicas && self.silent_rounds == 0 && self.job.may_ask_replica(command.index))
                    .then_some(slot.into());
            let Some(node) = ask.as_ref().or_else(|| topology.node(slot, rotation)) else {
                self.round.refresh = true;
                self.round.wait = true;
                self.pending.push(command);
                continue;
            };
            let asking = ask.is_some();
            let existing = batches.iter().position(|batch| batch.asking == asking && batch.node == *node);
            let position = existing.unwrap_or_else(|| {
                let (node, commands) = (node.clone(), S::default());
                batches.push(NodeCommands {
                    node,
                    pending: Vec::new(),
                    asking,
                    commands,
                    answers: 0,
                    confirmation: None,
                });
                batches.len() - 1
            });
            let batch = &mut batches[position];
            if asking {
                batch.commands.begin(1);
                batch.commands.argument(b"ASKING");
            }
            self.job.write(command.index, &mut batch.commands);
            if self.job.wants_replicas(command.index) {
                batch.confirmation = self.confirmation;
            }
            batch.answers += 1 + usize::from(asking);
            batch.pending.push(command);
        }
        for NodeCommands { commands, answers, confirmation, .. } in &mut batches {
            if let Some(ReplicaWait { replicas, timeout }) = confirmation {
                commands.command(redis::cmd("WAIT").arg(*replicas).arg(*timeout));
                *answers += 1;
            }
        }
        batches
    }

    /// Processes the answers to a batch.
    pub(crate) fn process<S>(&mut self, batch: NodeCommands<S>, response: NodeAnswers) {
        let NodeCommands { node, pending, asking, answers: expected, confirmation, .. } = batch;
        let NodeAnswers { mut answers, failure } = response;
        let confirmed = match confirmation {
            Some(ReplicaWait { replicas, .. }) => {
                let answer = if answers.len() == expected { answers.pop() } else { None };
                self.replica_status(&node, replicas, answer)
            }
            None => ReplicaStatus::Yes,
        };
        // The answer to an `ASKING` precedes the answer to its command.
        let (skip, step) = if asking { (1, 2) } else { (0, 1) };
        let mut answers = answers.into_iter().skip(skip).step_by(step);
        // If answers are missing without a failure, their commands may have been carried out.
        let sent = failure.as_ref().is_none_or(|failure| failure.sent);
        for mut command in pending {
            match answers.next() {
                Some(Value::ServerError(error)) => self.refuse(&node, command, &error),
                // The node may have failed before any replica had the command, and another node serves its slot.
                Some(answer) if confirmed == ReplicaStatus::Unknown && !self.job.holds(command.index, &answer) => {
                    self.round.answered = true;
                    command.doubted = true;
                    self.pending.push(command);
                }
                Some(answer) => {
                    if confirmed == ReplicaStatus::No && !self.job.holds(command.index, &answer) {
                        self.job.unconfirmed(command.index);
                    }
                    self.answer(&node, command, answer);
                }
                None => {
                    command.doubted |= sent;
                    self.pending.push(command);
                }
            }
        }
        if let Some(failure) = failure {
            self.fail(node, &failure.error);
        }
    }

    /// Interprets the answer to `WAIT`.
    fn replica_status(&mut self, node: &Node, replicas: u32, answer: Option<Value>) -> ReplicaStatus {
        match answer {
            Some(Value::Int(reached)) if reached >= replicas.into() => ReplicaStatus::Yes,
            // The node cannot answer yet, or it became a replica of the node that serves its slots.
            Some(Value::ServerError(error))
                if matches!(error.code(), "UNBLOCKED" | "LOADING" | "BUSY" | "MASTERDOWN") || says_replica(&error) =>
            {
                self.round.refresh = true;
                self.round.wait = true;
                ReplicaStatus::Unknown
            }
            Some(Value::ServerError(error)) => {
                self.fatal = Some(refusal(node, &error));
                ReplicaStatus::No
            }
            Some(_) => ReplicaStatus::No,
            None => ReplicaStatus::Unknown,
        }
    }

    fn answer(&mut self, node: &Node, mut command: PendingCommand, answer: Value) {
        self.round.answered = true;
        if self.job.process_answer(command.index, answer, command.doubted).is_none() {
            let message = "its answer makes no sense".to_owned();
            self.fatal = Some(RedisFilterError::Refused { node: node.to_string(), message });
            // The node may have carried it out.
            command.doubted = true;
            self.pending.push(command);
        }
    }

    /// Handles an answer that refuses the command.
    fn refuse(&mut self, node: &Node, mut command: PendingCommand, error: &ServerError) {
        use ServerErrorKind::{Ask, BusyLoading, ClusterDown, MasterDown, Moved, NoPerm, ReadOnly, TryAgain};
        let message = error.to_string();
        match (error.kind(), error.code()) {
            (Some(Moved), _) => self.round.refresh = true,
            (Some(Ask), _) => {
                let error = RedisError::from(error.clone());
                command.ask = error.redirect_node().and_then(|(address, _)| node.resolve(address));
            }
            // BUSY: a script runs, and nothing else is carried out meanwhile.
            (Some(TryAgain | ClusterDown | MasterDown | BusyLoading), _) | (None, "NOREPLICAS" | "BUSY") => {
                self.round.wait = true;
                self.round.refresh = true;
            }
            // It was the primary when it was found.
            (Some(ReadOnly), _) if self.is_primary => {
                self.round.wait = true;
                self.round.refresh = true;
            }
            (Some(ReadOnly), _) => self.fatal = Some(RedisFilterError::ReadOnly { node: node.to_string() }),
            (None, "OOM") => self.fatal = Some(RedisFilterError::OutOfMemory { node: node.to_string() }),
            (None, "WRONGTYPE") => {
                let mut refused = Cmd::new();
                self.job.write(command.index, &mut refused);
                let key = first_key(&refused);
                self.fatal = Some(RedisFilterError::NotBloomline { key });
            }
            (kind, code) => {
                self.fatal = Some(refusal(node, error));
                // The server returns these errors before it executes a command. Others may be from a proxy, after the
                // server executed it.
                command.doubted |= !(kind == Some(NoPerm) || matches!(code, "NOAUTH" | "WRONGPASS" | "MISCONF"));
            }
        }
        self.failure = Some((node.clone(), message));
        self.pending.push(command);
    }

    /// Handles a failed connection to a node.
    fn fail(&mut self, node: Node, error: &RedisError) {
        self.round.wait = true;
        self.round.refresh = true;
        if let Some(fatal) = fatal(&node, error) {
            self.fatal = Some(fatal);
        }
        self.failure = Some((node, error.to_string()));
    }

    /// Ends the job on request of the caller, and abandons all commands without an answer.
    pub(crate) fn end(&mut self) -> RedisFilterError {
        self.abandon();
        RedisFilterError::Ended
    }

    fn abandon(&mut self) {
        for command in self.pending.drain(..) {
            self.job.abandon(command.index, command.doubted);
        }
    }

    /// Returns the next step after all batches of a round were processed.
    ///
    /// # Errors
    /// An error that a retry does not resolve, or no answer in time. All commands without an answer are abandoned.
    pub(crate) fn next_step(&mut self) -> Result<NextStep, RedisFilterError> {
        if self.round.answered {
            self.last_answer = Instant::now();
            self.silent_rounds = 0;
        } else {
            self.silent_rounds += 1;
        }
        if self.pending.is_empty() && self.fatal.is_none() {
            return Ok(NextStep::Done);
        }
        let waited = self.last_answer.elapsed();
        // A process that was stopped has not retried meanwhile.
        let left = self.retry_timeout.checked_sub(waited).filter(|left| !left.is_zero());
        let left = if self.silent_rounds == 1 { left.or(Some(MIN_WAIT)) } else { left };
        let error = self.fatal.take().or_else(|| {
            let unserved = || ("the cluster".to_owned(), "no node serves one of the slots".to_owned());
            let failure = self.failure.take().map(|(node, message)| (node.to_string(), message));
            let (node, message) = failure.unwrap_or_else(unserved);
            left.is_none().then_some(RedisFilterError::Unreachable { node, waited, message })
        });
        if let Some(error) = error {
            self.abandon();
            return Err(error);
        }
        // A redirection needs no wait, unless nodes redirect a command to each other.
        let wait = self.round.wait || self.silent_rounds > 2;
        let wait = if wait { MIN_WAIT * 2u32.pow(self.silent_rounds.min(7)) } else { Duration::ZERO };
        Ok(NextStep::Again { wait: wait.min(left.unwrap_or(wait)), refresh: self.round.refresh })
    }
}

/// The idle time after which a connection is tested before it is used. If the server had closed it, all commands would
/// be in doubt although none has arrived.
pub(crate) const IDLE_LIMIT: Duration = Duration::from_secs(1);

/// Half the wait after the first round without an answer. The wait doubles with each such round, up to 128 times this.
const MIN_WAIT: Duration = Duration::from_millis(8);

/// True if the error to `WAIT` says that the node is a replica.
fn says_replica(error: &ServerError) -> bool {
    error.code() == "ERR" && error.details().is_some_and(|details| details.contains("replica"))
}

/// Returns the first of a command's keys.
fn first_key(command: &Cmd) -> String {
    let arguments = command.args_iter().filter_map(|argument| match argument {
        Arg::Simple(argument) => Some(argument),
        _ => None,
    });
    // Only keys begin with this.
    let key = arguments.into_iter().find(|argument| argument.starts_with(KEY_PREFIX.as_bytes()));
    key.map_or_else(String::new, |key| String::from_utf8_lossy(key).into_owned())
}

/// Returns the error for a command that is sent once and was not answered.
pub(crate) fn unanswered(node: &Node, asked: Instant, error: &RedisError) -> RedisFilterError {
    fatal(node, error).unwrap_or_else(|| RedisFilterError::Unreachable {
        node: node.to_string(),
        waited: asked.elapsed(),
        message: error.to_string(),
    })
}

/// Parts of the answers to `SELECT` if the server lacks the database; a cluster has only one.
const NO_DATABASE: [&str; 2] = ["DB index is out of range", "SELECT is not allowed"];

/// Returns the error for a failed connection, if a retry does not resolve it.
fn fatal(node: &Node, error: &RedisError) -> Option<RedisFilterError> {
    let (node, message) = (node.to_string(), error.to_string());
    match error.kind() {
        ErrorKind::AuthenticationFailed | ErrorKind::Server(ServerErrorKind::NoPerm) => {
            Some(RedisFilterError::Denied { node, message })
        }
        ErrorKind::Extension if matches!(error.code(), Some("NOAUTH" | "WRONGPASS")) => {
            Some(RedisFilterError::Denied { node, message })
        }
        ErrorKind::InvalidClientConfig => Some(RedisFilterError::Refused { node, message }),
        _ if NO_DATABASE.iter().any(|fault| message.contains(fault)) => {
            let message = format!("{message}; give another /DATABASE in the URL, or none");
            Some(RedisFilterError::Refused { node, message })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
