//! Commands on their way: what to send to which node, what the answers mean, and what to send again. Knows nothing of
//! connections.
//!
//! The client crate's own cluster connection sends a command again by itself if its answer is lost. If the lost command
//! was a claim and was carried out, the second one finds the bits of the first and is answered "seen": the key is lost.
//! Here every command that may have been carried out without an answer is *doubted* from then on.

use crate::error::RedisFilterError;
use crate::packed::CommandSink;
use crate::server::{RedisServer, ReplicaWait};
use crate::shards::KEY_PREFIX;
use crate::topology::{Node, Topology, refusal};
use redis::{Arg, Cmd, ErrorKind, RedisError, ServerError, ServerErrorKind, Value};
use std::mem;
use std::time::{Duration, Instant};

/// Commands that may be sent together, to any nodes and in any order, and more than once.
pub(crate) trait Job {
    /// The number of commands.
    fn len(&self) -> usize;
    /// The slot of a command's key.
    fn slot(&self, i: usize) -> u16;
    /// Writes the command.
    fn write(&self, i: usize, sink: &mut impl CommandSink);
    /// Whether a replica may answer the command.
    fn may_ask_replica(&self, _i: usize) -> bool {
        false
    }
    /// Takes the answer. Returns `None` if it makes no sense. If `doubted`, the command may have been carried out
    /// before, and that answer was lost.
    fn take(&mut self, i: usize, answer: Value, doubted: bool) -> Option<()>;
    /// Whether replicas are to have what the command does.
    fn wants_replicas(&self, _i: usize) -> bool {
        false
    }
    /// Whether the answer holds even if the node forgets the command.
    fn holds(&self, _i: usize, _answer: &Value) -> bool {
        true
    }
    /// The command was answered, and too few replicas have it.
    fn unconfirmed(&mut self, _i: usize) {}
    /// No answer will come. If `doubted`, the command may have been carried out.
    fn abandon(&mut self, _i: usize, _doubted: bool) {}
}

/// A job that is under way.
pub(crate) struct Exchange<'a, J> {
    job: &'a mut J,
    patience: Duration,
    replicas: bool,
    /// What was found was no replica: if it says that it is one, another server takes over.
    is_primary: bool,
    /// Which replicas are to have what it does.
    confirmation: Option<ReplicaWait>,
    /// Commands without an answer.
    pending: Vec<PendingCommand>,
    /// When the last answer came, or the first command was sent.
    last_answer: Instant,
    /// Rounds without an answer.
    silent_rounds: u32,
    /// An error that sending again does not mend.
    fatal: Option<RedisFilterError>,
    /// The last thing that went wrong.
    failure: Option<(Node, String)>,
    round: RoundState,
}

/// What a round has shown.
#[derive(Default)]
struct RoundState {
    answered: bool,
    /// The slots may have moved.
    refresh: bool,
    /// Sending again helps only after a wait. Otherwise another node has the slot.
    wait: bool,
}

struct PendingCommand {
    command: usize,
    doubted: bool,
    /// The node to ask, once, while a slot moves to it.
    ask: Option<Node>,
}

/// Whether enough replicas have a command.
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
    /// An `ASKING` precedes each command.
    asking: bool,
    pub(crate) commands: S,
    /// How many answers to expect.
    pub(crate) answers: usize,
    /// The last command waits until replicas have the others.
    confirmation: Option<ReplicaWait>,
}

impl<S> NodeCommands<S> {
    /// The commands of the job in it.
    pub(crate) fn len(&self) -> usize {
        self.pending.len()
    }
}

/// What came of a batch.
pub(crate) struct NodeAnswers {
    /// The answers, in order, up to the failure.
    pub(crate) answers: Vec<Value>,
    pub(crate) failure: Option<Failure>,
}

/// Why there are no more answers.
pub(crate) struct Failure {
    pub(crate) error: RedisError,
    /// Whether the node may have got any of the commands.
    pub(crate) sent: bool,
}

/// What to do after a round.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NextStep {
    Done,
    /// Wait, ask for the slots again if told to, and do the next round.
    Again {
        wait: Duration,
        refresh: bool,
    },
}

impl<'a, J: Job> Exchange<'a, J> {
    pub(crate) fn new(job: &'a mut J, server: &RedisServer, is_primary: bool) -> Self {
        let RedisServer { patience, replicas, .. } = *server;
        let pending = (0..job.len()).map(|command| PendingCommand { command, doubted: false, ask: None }).collect();
        Self {
            confirmation: server.confirmation(),
            job,
            patience,
            replicas,
            is_primary,
            pending,
            last_answer: Instant::now(),
            silent_rounds: 0,
            fatal: None,
            failure: None,
            round: RoundState::default(),
        }
    }

    /// The commands without an answer, by node.
    pub(crate) fn batches<S: CommandSink>(&mut self, topology: &Topology) -> Vec<NodeCommands<S>> {
        self.round = RoundState::default();
        let mut pending = mem::take(&mut self.pending);
        // In their order, so that of equal keys the first is claimed.
        pending.sort_by_key(|open| open.command);
        let mut batches: Vec<NodeCommands<S>> = Vec::new();
        for mut open in pending {
            let slot = self.job.slot(open.command);
            let ask = open.ask.take();
            // If the replicas do not answer, the primary is asked.
            let turn = (self.replicas && self.silent_rounds == 0 && self.job.may_ask_replica(open.command))
                .then_some(slot.into());
            let Some(node) = ask.as_ref().or_else(|| topology.node(slot, turn)) else {
                self.round.refresh = true;
                self.round.wait = true;
                self.pending.push(open);
                continue;
            };
            let asking = ask.is_some();
            let found = batches.iter().position(|batch| batch.asking == asking && batch.node == *node);
            let place = found.unwrap_or_else(|| {
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
            let batch = &mut batches[place];
            if asking {
                batch.commands.begin(1);
                batch.commands.argument(b"ASKING");
            }
            self.job.write(open.command, &mut batch.commands);
            if self.job.wants_replicas(open.command) {
                batch.confirmation = self.confirmation;
            }
            batch.answers += 1 + usize::from(asking);
            batch.pending.push(open);
        }
        for NodeCommands { commands, answers, confirmation, .. } in &mut batches {
            if let Some(ReplicaWait { replicas, timeout }) = confirmation {
                commands.command(redis::cmd("WAIT").arg(*replicas).arg(*timeout));
                *answers += 1;
            }
        }
        batches
    }

    /// Takes what came of a batch.
    pub(crate) fn take<S>(&mut self, batch: NodeCommands<S>, outcome: NodeAnswers) {
        let NodeCommands { node, pending, asking, answers: expected, confirmation, .. } = batch;
        let NodeAnswers { mut answers, failure } = outcome;
        let confirmed = match confirmation {
            Some(ReplicaWait { replicas, .. }) => {
                let answer = if answers.len() == expected { answers.pop() } else { None };
                self.replica_status(&node, replicas, answer)
            }
            None => ReplicaStatus::Yes,
        };
        // The answer to each command comes after that to its `ASKING`.
        let (skip, step) = if asking { (1, 2) } else { (0, 1) };
        let mut answers = answers.into_iter().skip(skip).step_by(step);
        // If answers are missing without a failure, their commands may have been carried out.
        let sent = failure.as_ref().is_none_or(|failure| failure.sent);
        for mut open in pending {
            match answers.next() {
                Some(Value::ServerError(error)) => self.refuse(&node, open, &error),
                // Its node may have failed before any replica had it, and another one serves it.
                Some(answer) if confirmed == ReplicaStatus::Unknown && !self.job.holds(open.command, &answer) => {
                    self.round.answered = true;
                    open.doubted = true;
                    self.pending.push(open);
                }
                Some(answer) => {
                    if confirmed == ReplicaStatus::No && !self.job.holds(open.command, &answer) {
                        self.job.unconfirmed(open.command);
                    }
                    self.answer(&node, open, answer);
                }
                None => {
                    open.doubted |= sent;
                    self.pending.push(open);
                }
            }
        }
        if let Some(failure) = failure {
            self.fail(node, &failure.error);
        }
    }

    /// What the answer to `WAIT` says.
    fn replica_status(&mut self, node: &Node, replicas: u32, answer: Option<Value>) -> ReplicaStatus {
        match answer {
            Some(Value::Int(reached)) if reached >= replicas.into() => ReplicaStatus::Yes,
            // It cannot tell yet, or it became a replica of the node that serves its slots.
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

    fn answer(&mut self, node: &Node, mut open: PendingCommand, answer: Value) {
        self.round.answered = true;
        if self.job.take(open.command, answer, open.doubted).is_none() {
            let message = "its answer makes no sense".to_owned();
            self.fatal = Some(RedisFilterError::Refused { node: node.to_string(), message });
            // The node may have carried it out.
            open.doubted = true;
            self.pending.push(open);
        }
    }

    /// The node answered that it does not carry the command out.
    fn refuse(&mut self, node: &Node, mut open: PendingCommand, error: &ServerError) {
        use ServerErrorKind::{Ask, BusyLoading, ClusterDown, MasterDown, Moved, NoPerm, ReadOnly, TryAgain};
        let message = error.to_string();
        match (error.kind(), error.code()) {
            (Some(Moved), _) => self.round.refresh = true,
            (Some(Ask), _) => {
                let error = RedisError::from(error.clone());
                open.ask = error.redirect_node().and_then(|(address, _)| node.resolve(address));
            }
            // BUSY: a script runs, and nothing else is carried out meanwhile.
            (Some(TryAgain | ClusterDown | MasterDown | BusyLoading), _) | (None, "NOREPLICAS" | "BUSY") => {
                self.round.wait = true;
                self.round.refresh = true;
            }
            // It was the primary a moment ago.
            (Some(ReadOnly), _) if self.is_primary => {
                self.round.wait = true;
                self.round.refresh = true;
            }
            (Some(ReadOnly), _) => self.fatal = Some(RedisFilterError::ReadOnly { node: node.to_string() }),
            (None, "OOM") => self.fatal = Some(RedisFilterError::OutOfMemory { node: node.to_string() }),
            (None, "WRONGTYPE") => {
                let mut command = Cmd::new();
                self.job.write(open.command, &mut command);
                let key = first_key(&command);
                self.fatal = Some(RedisFilterError::NotBloomline { key });
            }
            (kind, code) => {
                self.fatal = Some(refusal(node, error));
                // These errors are the server's own, and it did nothing. Others may come from a proxy, after the server
                // did its work.
                open.doubted |= !(kind == Some(NoPerm) || matches!(code, "NOAUTH" | "WRONGPASS" | "MISCONF"));
            }
        }
        self.failure = Some((node.clone(), message));
        self.pending.push(open);
    }

    /// The connection to the node failed.
    fn fail(&mut self, node: Node, error: &RedisError) {
        self.round.wait = true;
        self.round.refresh = true;
        if let Some(fatal) = fatal(&node, error) {
            self.fatal = Some(fatal);
        }
        self.failure = Some((node, error.to_string()));
    }

    /// The caller wants an end: all commands without an answer are abandoned.
    pub(crate) fn end(&mut self) -> RedisFilterError {
        self.abandon();
        RedisFilterError::Ended
    }

    fn abandon(&mut self) {
        for open in self.pending.drain(..) {
            self.job.abandon(open.command, open.doubted);
        }
    }

    /// What to do after all batches of a round were taken.
    ///
    /// # Errors
    /// An error that sending again does not mend, or no answer in time. All commands without an answer are abandoned
    /// then.
    pub(crate) fn next(&mut self) -> Result<NextStep, RedisFilterError> {
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
        // A process that was stopped for long has not tried for long.
        let left = self.patience.checked_sub(waited).filter(|left| !left.is_zero());
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

/// A connection that was idle for longer is tested before commands go over it. If the server had closed it, all
/// commands would be in doubt although none has arrived.
pub(crate) const IDLE_LIMIT: Duration = Duration::from_secs(1);

/// After the first round without an answer the wait is twice this. It doubles with each such round, up to 128 times
/// this.
const MIN_WAIT: Duration = Duration::from_millis(8);

/// Whether a node answers to `WAIT` that it is a replica.
fn says_replica(error: &ServerError) -> bool {
    error.code() == "ERR" && error.details().is_some_and(|details| details.contains("replica"))
}

/// The first of a command's keys.
fn first_key(command: &Cmd) -> String {
    let arguments = command.args_iter().filter_map(|argument| match argument {
        Arg::Simple(argument) => Some(argument),
        _ => None,
    });
    // Only keys begin with this.
    let key = arguments.into_iter().find(|argument| argument.starts_with(KEY_PREFIX.as_bytes()));
    key.map_or_else(String::new, |key| String::from_utf8_lossy(key).into_owned())
}

/// The error for a command that is sent once and was not answered.
pub(crate) fn unanswered(node: &Node, asked: Instant, error: &RedisError) -> RedisFilterError {
    fatal(node, error).unwrap_or_else(|| RedisFilterError::Unreachable {
        node: node.to_string(),
        waited: asked.elapsed(),
        message: error.to_string(),
    })
}

/// The error for a failed connection, if sending again does not mend it.
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
        _ => None,
    }
}

#[cfg(test)]
mod tests;
