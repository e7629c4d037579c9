//! Commands on their way: what to send to which node, what the answers mean, and what to send again. Knows nothing of
//! connections.
//!
//! The client crate's own cluster connection sends a command again by itself if its answer is lost. If the lost command
//! was a claim and was carried out, the second one finds the bits of the first and is answered "seen": the key is lost.
//! Here every command that may have been carried out without an answer is *doubted* from then on.

use crate::error::RedisFilterError;
use crate::packed::Sink;
use crate::server::{Confirmation, RedisServer};
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
    fn write(&self, i: usize, sink: &mut impl Sink);
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
    primary: bool,
    /// Which replicas are to have what it does.
    confirmation: Option<Confirmation>,
    /// Commands without an answer.
    open: Vec<Open>,
    /// When the last answer came, or the first command was sent.
    heard: Instant,
    /// Rounds without an answer.
    silent: u32,
    /// An error that sending again does not mend.
    fatal: Option<RedisFilterError>,
    /// The last thing that went wrong.
    failure: Option<(Node, String)>,
    round: Round,
}

/// What a round has shown.
#[derive(Default)]
struct Round {
    answered: bool,
    /// The slots may have moved.
    refresh: bool,
    /// Sending again helps only after a wait. Otherwise another node has the slot.
    wait: bool,
}

struct Open {
    command: usize,
    doubted: bool,
    /// The node to ask, once, while a slot moves to it.
    ask: Option<Node>,
}

/// Whether enough replicas have a command.
#[derive(Clone, Copy, PartialEq)]
enum Confirmed {
    Yes,
    No,
    /// The connection broke before the answer.
    Unknown,
}

/// Commands for one node.
pub(crate) struct Parcel<S> {
    pub(crate) node: Node,
    opens: Vec<Open>,
    /// An `ASKING` precedes each command.
    asking: bool,
    pub(crate) commands: S,
    /// How many answers to expect.
    pub(crate) answers: usize,
    /// The last command waits until replicas have the others.
    confirmation: Option<Confirmation>,
}

impl<S> Parcel<S> {
    /// The commands of the job in it.
    pub(crate) fn len(&self) -> usize {
        self.opens.len()
    }
}

/// What came of a parcel.
pub(crate) struct Outcome {
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
pub(crate) enum Next {
    Done,
    /// Wait, ask for the slots again if told to, and do the next round.
    Again {
        wait: Duration,
        refresh: bool,
    },
}

impl<'a, J: Job> Exchange<'a, J> {
    pub(crate) fn new(job: &'a mut J, server: &RedisServer, primary: bool) -> Self {
        let RedisServer { patience, replicas, .. } = *server;
        let open = (0..job.len()).map(|command| Open { command, doubted: false, ask: None }).collect();
        Self {
            confirmation: server.confirmation(),
            job,
            patience,
            replicas,
            primary,
            open,
            heard: Instant::now(),
            silent: 0,
            fatal: None,
            failure: None,
            round: Round::default(),
        }
    }

    /// The commands without an answer, by node.
    pub(crate) fn parcels<S: Sink>(&mut self, topology: &Topology) -> Vec<Parcel<S>> {
        self.round = Round::default();
        let mut opens = mem::take(&mut self.open);
        // In their order, so that of equal keys the first is claimed.
        opens.sort_by_key(|open| open.command);
        let mut parcels: Vec<Parcel<S>> = Vec::new();
        for mut open in opens {
            let slot = self.job.slot(open.command);
            let ask = open.ask.take();
            // If the replicas do not answer, the primary is asked.
            let turn =
                (self.replicas && self.silent == 0 && self.job.may_ask_replica(open.command)).then_some(slot.into());
            let Some(node) = ask.as_ref().or_else(|| topology.node(slot, turn)) else {
                self.round.refresh = true;
                self.round.wait = true;
                self.open.push(open);
                continue;
            };
            let asking = ask.is_some();
            let found = parcels.iter().position(|parcel| parcel.asking == asking && parcel.node == *node);
            let place = found.unwrap_or_else(|| {
                let (node, commands) = (node.clone(), S::default());
                parcels.push(Parcel { node, opens: Vec::new(), asking, commands, answers: 0, confirmation: None });
                parcels.len() - 1
            });
            let parcel = &mut parcels[place];
            if asking {
                parcel.commands.begin(1);
                parcel.commands.argument(b"ASKING");
            }
            self.job.write(open.command, &mut parcel.commands);
            if self.job.wants_replicas(open.command) {
                parcel.confirmation = self.confirmation;
            }
            parcel.answers += 1 + usize::from(asking);
            parcel.opens.push(open);
        }
        for Parcel { commands, answers, confirmation, .. } in &mut parcels {
            if let Some(Confirmation { replicas, timeout }) = confirmation {
                commands.command(redis::cmd("WAIT").arg(*replicas).arg(*timeout));
                *answers += 1;
            }
        }
        parcels
    }

    /// Takes what came of a parcel.
    pub(crate) fn take<S>(&mut self, parcel: Parcel<S>, outcome: Outcome) {
        let Parcel { node, opens, asking, answers: expected, confirmation, .. } = parcel;
        let Outcome { mut answers, failure } = outcome;
        let confirmed = match confirmation {
            Some(Confirmation { replicas, .. }) => {
                let answer = if answers.len() == expected { answers.pop() } else { None };
                self.confirmed(&node, replicas, answer)
            }
            None => Confirmed::Yes,
        };
        // The answer to each command comes after that to its `ASKING`.
        let (skip, step) = if asking { (1, 2) } else { (0, 1) };
        let mut answers = answers.into_iter().skip(skip).step_by(step);
        // If answers are missing without a failure, their commands may have been carried out.
        let sent = failure.as_ref().is_none_or(|failure| failure.sent);
        for mut open in opens {
            match answers.next() {
                Some(Value::ServerError(error)) => self.refuse(&node, open, &error),
                // Its node may have failed before any replica had it, and another one serves it.
                Some(answer) if confirmed == Confirmed::Unknown && !self.job.holds(open.command, &answer) => {
                    self.round.answered = true;
                    open.doubted = true;
                    self.open.push(open);
                }
                Some(answer) => {
                    if confirmed == Confirmed::No && !self.job.holds(open.command, &answer) {
                        self.job.unconfirmed(open.command);
                    }
                    self.answer(&node, open, answer);
                }
                None => {
                    open.doubted |= sent;
                    self.open.push(open);
                }
            }
        }
        if let Some(failure) = failure {
            self.fail(node, &failure.error);
        }
    }

    /// What the answer to `WAIT` says.
    fn confirmed(&mut self, node: &Node, replicas: u32, answer: Option<Value>) -> Confirmed {
        match answer {
            Some(Value::Int(reached)) if reached >= replicas.into() => Confirmed::Yes,
            // It cannot tell yet, or it became a replica of the node that serves its slots.
            Some(Value::ServerError(error))
                if matches!(error.code(), "UNBLOCKED" | "LOADING" | "BUSY" | "MASTERDOWN") || says_replica(&error) =>
            {
                self.round.refresh = true;
                self.round.wait = true;
                Confirmed::Unknown
            }
            Some(Value::ServerError(error)) => {
                self.fatal = Some(refusal(node, &error));
                Confirmed::No
            }
            Some(_) => Confirmed::No,
            None => Confirmed::Unknown,
        }
    }

    fn answer(&mut self, node: &Node, mut open: Open, answer: Value) {
        self.round.answered = true;
        if self.job.take(open.command, answer, open.doubted).is_none() {
            let message = "its answer makes no sense".to_owned();
            self.fatal = Some(RedisFilterError::Refused { node: node.to_string(), message });
            // The node may have carried it out.
            open.doubted = true;
            self.open.push(open);
        }
    }

    /// The node answered that it does not carry the command out.
    fn refuse(&mut self, node: &Node, mut open: Open, error: &ServerError) {
        use ServerErrorKind::{Ask, BusyLoading, ClusterDown, MasterDown, Moved, NoPerm, ReadOnly, TryAgain};
        let message = error.to_string();
        match (error.kind(), error.code()) {
            (Some(Moved), _) => self.round.refresh = true,
            (Some(Ask), _) => {
                let error = RedisError::from(error.clone());
                open.ask = error.redirect_node().and_then(|(address, _)| node.named(address));
            }
            // BUSY: a script runs, and nothing else is carried out meanwhile.
            (Some(TryAgain | ClusterDown | MasterDown | BusyLoading), _) | (None, "NOREPLICAS" | "BUSY") => {
                self.round.wait = true;
                self.round.refresh = true;
            }
            // It was the primary a moment ago.
            (Some(ReadOnly), _) if self.primary => {
                self.round.wait = true;
                self.round.refresh = true;
            }
            (Some(ReadOnly), _) => self.fatal = Some(RedisFilterError::ReadOnly { node: node.to_string() }),
            (None, "OOM") => self.fatal = Some(RedisFilterError::OutOfMemory { node: node.to_string() }),
            (None, "WRONGTYPE") => {
                let mut command = Cmd::new();
                self.job.write(open.command, &mut command);
                let key = key_of(&command);
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
        self.open.push(open);
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
        for open in self.open.drain(..) {
            self.job.abandon(open.command, open.doubted);
        }
    }

    /// What to do after all parcels of a round were taken.
    ///
    /// # Errors
    /// An error that sending again does not mend, or no answer in time. All commands without an answer are abandoned
    /// then.
    pub(crate) fn next(&mut self) -> Result<Next, RedisFilterError> {
        if self.round.answered {
            self.heard = Instant::now();
            self.silent = 0;
        } else {
            self.silent += 1;
        }
        if self.open.is_empty() && self.fatal.is_none() {
            return Ok(Next::Done);
        }
        let waited = self.heard.elapsed();
        // A process that was stopped for long has not tried for long.
        let left = self.patience.checked_sub(waited).filter(|left| !left.is_zero());
        let left = if self.silent == 1 { left.or(Some(SHORTEST_WAIT)) } else { left };
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
        let wait = self.round.wait || self.silent > 2;
        let wait = if wait { SHORTEST_WAIT * 2u32.pow(self.silent.min(7)) } else { Duration::ZERO };
        Ok(Next::Again { wait: wait.min(left.unwrap_or(wait)), refresh: self.round.refresh })
    }
}

/// A connection that was idle for longer is tested before commands go over it. If the server had closed it, all
/// commands would be in doubt although none has arrived.
pub(crate) const IDLE: Duration = Duration::from_secs(1);

/// After the first round without an answer the wait is twice this. It doubles with each such round, up to 128 times
/// this.
const SHORTEST_WAIT: Duration = Duration::from_millis(8);

/// Whether a node answers to `WAIT` that it is a replica.
fn says_replica(error: &ServerError) -> bool {
    error.code() == "ERR" && error.details().is_some_and(|details| details.contains("replica"))
}

/// The first of a command's keys.
fn key_of(command: &Cmd) -> String {
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
mod tests {
    use super::*;
    use crate::packed::Packed;
    use std::io;

    /// Commands that count how often they were carried out. The first holds only if replicas have it.
    struct Counting {
        slots: Vec<u16>,
        unconfirmed: Vec<usize>,
        answers: Vec<Option<(i64, bool)>>,
        abandoned: Vec<(usize, bool)>,
    }

    impl Counting {
        fn new(slots: &[u16]) -> Self {
            Self {
                slots: slots.to_vec(),
                unconfirmed: Vec::new(),
                answers: vec![None; slots.len()],
                abandoned: Vec::new(),
            }
        }
    }

    impl Job for Counting {
        fn len(&self) -> usize {
            self.slots.len()
        }
        fn slot(&self, i: usize) -> u16 {
            self.slots[i]
        }
        fn write(&self, i: usize, sink: &mut impl Sink) {
            sink.command(redis::cmd("INCRBY").arg("cbf:{f:0}").arg(i));
        }
        fn may_ask_replica(&self, _: usize) -> bool {
            true
        }
        fn take(&mut self, i: usize, answer: Value, doubted: bool) -> Option<()> {
            let Value::Int(answer) = answer else { return None };
            self.answers[i] = Some((answer, doubted));
            Some(())
        }
        fn wants_replicas(&self, _: usize) -> bool {
            true
        }
        fn holds(&self, i: usize, _: &Value) -> bool {
            i > 0
        }
        fn unconfirmed(&mut self, i: usize) {
            self.unconfirmed.push(i);
        }
        fn abandon(&mut self, i: usize, doubted: bool) {
            self.abandoned.push((i, doubted));
        }
    }

    fn server() -> RedisServer {
        RedisServer::new("redis://n:1").unwrap().patience(Duration::from_secs(60))
    }

    fn confirming() -> RedisServer {
        server().wait_for_replicas(2, Duration::from_millis(50))
    }

    fn server_error(line: &str) -> Value {
        redis::parse_redis_value(format!("-{line}\r\n").as_bytes()).unwrap()
    }

    fn broken(sent: bool) -> Option<Failure> {
        Some(Failure { error: io::Error::from(io::ErrorKind::ConnectionReset).into(), sent })
    }

    fn cluster() -> Topology {
        let node = |port| Value::Array(vec![Value::BulkString(b"n".to_vec()), Value::Int(port)]);
        let range =
            |first, port| Value::Array(vec![Value::Int(first), Value::Int(first + 99), node(port), node(port + 10)]);
        let answer = Value::Array(vec![range(0, 1), range(100, 2)]);
        Topology::parse(answer, &Node::new("n", 1)).unwrap()
    }

    fn answers(values: &[i64]) -> Outcome {
        Outcome { answers: values.iter().copied().map(Value::Int).collect(), failure: None }
    }

    fn send(exchange: &mut Exchange<Counting>, topology: &Topology) -> Vec<Parcel<Packed>> {
        exchange.parcels(topology)
    }

    fn ports(parcels: &[Parcel<Packed>]) -> Vec<u16> {
        parcels.iter().map(|parcel| parcel.node.port()).collect()
    }

    #[test]
    fn commands_go_to_their_nodes_and_answers_to_their_commands() {
        let mut job = Counting::new(&[0, 100, 1, 101]);
        let mut exchange = Exchange::new(&mut job, &server(), true);
        let parcels = send(&mut exchange, &cluster());
        assert_eq!(ports(&parcels), [1, 2]);
        let mut next = 10;
        for parcel in parcels {
            exchange.take(parcel, answers(&[next, next + 1]));
            next += 10;
        }
        assert_eq!(exchange.next(), Ok(Next::Done));
        assert_eq!(job.answers, [10, 20, 11, 21].map(|answer| Some((answer, false))));
    }

    #[test]
    fn what_may_have_been_carried_out_unheard_is_doubted() {
        let mut job = Counting::new(&[0, 0, 100]);
        let mut exchange = Exchange::new(&mut job, &server(), true);
        let mut parcels = send(&mut exchange, &cluster()).into_iter();
        let first = Outcome { answers: vec![Value::Int(1)], failure: broken(true) };
        exchange.take(parcels.next().unwrap(), first);
        // The other node was never reached.
        exchange.take(parcels.next().unwrap(), Outcome { answers: vec![], failure: broken(false) });
        assert!(matches!(exchange.next(), Ok(Next::Again { refresh: true, wait }) if !wait.is_zero()));
        for parcel in send(&mut exchange, &cluster()) {
            assert_eq!(parcel.answers, 1);
            exchange.take(parcel, answers(&[2]));
        }
        assert_eq!(exchange.next(), Ok(Next::Done));
        assert_eq!(job.answers, [Some((1, false)), Some((2, true)), Some((2, false))]);
    }

    #[test]
    fn replicas_have_what_holds_only_with_them() {
        // Both commands are answered, and `WAIT` with this.
        for (wait, unconfirmed) in [(2, &[][..]), (3, &[]), (1, &[0]), (0, &[0])] {
            let mut job = Counting::new(&[0, 1]);
            let mut exchange = Exchange::new(&mut job, &confirming(), true);
            let parcel = send(&mut exchange, &cluster()).remove(0);
            assert!(parcel.answers == 3 && parcel.commands.0.ends_with(b"*3\r\n$4\r\nWAIT\r\n$1\r\n2\r\n$2\r\n50\r\n"));
            exchange.take(parcel, answers(&[7, 8, wait]));
            assert_eq!(exchange.next(), Ok(Next::Done));
            assert_eq!(job.answers, [Some((7, false)), Some((8, false))]);
            assert_eq!(job.unconfirmed, unconfirmed);
        }
    }

    /// The node fails before it says whether replicas have the first command: that one is sent again, and doubted.
    #[test]
    fn what_replicas_may_lack_is_sent_again() {
        let lost = Outcome { answers: vec![Value::Int(7), Value::Int(8)], failure: broken(true) };
        let with = |answer| Outcome { answers: vec![Value::Int(7), Value::Int(8), answer], failure: None };
        let unblocked = with(server_error("UNBLOCKED force unblock from blocking operation"));
        let replica = with(server_error("ERR WAIT cannot be used with replica instances."));
        let loading = with(server_error("LOADING Redis is loading the dataset in memory"));
        let busy = with(server_error("BUSY Redis is busy running a script"));
        for outcome in [lost, unblocked, replica, loading, busy] {
            let mut job = Counting::new(&[0, 1]);
            let mut exchange = Exchange::new(&mut job, &confirming(), true);
            let parcel = send(&mut exchange, &cluster()).remove(0);
            exchange.take(parcel, outcome);
            assert!(matches!(exchange.next(), Ok(Next::Again { refresh: true, .. })));
            let parcel = send(&mut exchange, &cluster()).remove(0);
            assert_eq!(parcel.answers, 2);
            exchange.take(parcel, answers(&[9, 2]));
            assert_eq!(exchange.next(), Ok(Next::Done));
            assert_eq!(job.answers, [Some((9, true)), Some((8, false))]);
            assert_eq!(job.unconfirmed, []);
        }
    }

    #[test]
    fn a_user_without_the_right_to_wait_learns_it() {
        let mut job = Counting::new(&[0, 1]);
        let mut exchange = Exchange::new(&mut job, &confirming(), true);
        let parcel = send(&mut exchange, &cluster()).remove(0);
        let answers = vec![Value::Int(7), Value::Int(8), server_error("NOPERM this user has no permissions")];
        exchange.take(parcel, Outcome { answers, failure: None });
        assert!(matches!(exchange.next(), Err(RedisFilterError::Denied { .. })));
        assert_eq!((job.answers[0], job.unconfirmed), (Some((7, false)), vec![0]));
    }

    #[test]
    fn refusals_are_not_doubted_and_redirections_followed() {
        let mut job = Counting::new(&[0, 1]);
        let mut exchange = Exchange::new(&mut job, &server(), true);
        let parcel = send(&mut exchange, &cluster()).remove(0);
        let refusals = vec![server_error("ASK 0 n:7"), server_error("MOVED 1 n:2")];
        exchange.take(parcel, Outcome { answers: refusals, failure: None });
        assert_eq!(exchange.next(), Ok(Next::Again { wait: Duration::ZERO, refresh: true }));
        let mut parcels = send(&mut exchange, &cluster());
        assert_eq!(ports(&parcels), [7, 1]);
        assert_eq!(parcels[0].answers, 2);
        let asked = Outcome { answers: vec![Value::Okay, Value::Int(1)], failure: None };
        exchange.take(parcels.remove(0), asked);
        exchange.take(parcels.remove(0), answers(&[1]));
        assert_eq!(exchange.next(), Ok(Next::Done));
        assert_eq!(job.answers, [Some((1, false)); 2]);
    }

    #[test]
    fn a_replica_is_asked_once_and_then_the_primary() {
        let mut job = Counting::new(&[0]);
        let mut exchange = Exchange::new(&mut job, &server().read_from_replicas(), true);
        let mut parcels = send(&mut exchange, &cluster());
        assert_eq!(ports(&parcels), [11]);
        exchange.take(parcels.remove(0), Outcome { answers: vec![], failure: broken(true) });
        exchange.next().unwrap();
        assert_eq!(ports(&send(&mut exchange, &cluster())), [1]);
    }

    #[test]
    fn what_cannot_be_mended_ends_the_exchange() {
        let one = Topology::One(Node::new("n", 1));
        for (line, topology, expected) in [
            ("OOM command not allowed", &cluster(), RedisFilterError::OutOfMemory { node: "n:1".into() }),
            ("READONLY You can't write", &one, RedisFilterError::ReadOnly { node: "n:1".into() }),
        ] {
            let mut job = Counting::new(&[0, 0]);
            let mut exchange = Exchange::new(&mut job, &server(), false);
            let parcel = send(&mut exchange, topology).remove(0);
            exchange.take(parcel, Outcome { answers: vec![Value::Int(1), server_error(line)], failure: None });
            assert_eq!(exchange.next(), Err(expected));
            assert_eq!(job.abandoned, [(1, false)]);
        }
        for (line, name) in [
            ("NOAUTH first", "Denied"),
            ("NOPERM no", "Denied"),
            ("MISCONF disk", "Refused"),
            ("WRONGTYPE kind", "NotBloomline { key: \"cbf:{f:0}\" }"),
        ] {
            let mut job = Counting::new(&[0]);
            let mut exchange = Exchange::new(&mut job, &server(), true);
            let parcel = send(&mut exchange, &one).remove(0);
            exchange.take(parcel, Outcome { answers: vec![server_error(line)], failure: None });
            assert!(format!("{:?}", exchange.next().unwrap_err()).starts_with(name));
        }
    }

    #[test]
    fn an_answer_that_makes_no_sense_leaves_its_command_in_doubt() {
        let mut job = Counting::new(&[0, 0, 0]);
        let mut exchange = Exchange::new(&mut job, &server(), true);
        let parcel = send(&mut exchange, &cluster()).remove(0);
        let answers = vec![Value::Int(1), Value::Nil, server_error("LOADING")];
        exchange.take(parcel, Outcome { answers, failure: None });
        let message = "its answer makes no sense".into();
        assert_eq!(exchange.next(), Err(RedisFilterError::Refused { node: "n:1".into(), message }));
        assert_eq!(job.abandoned, [(1, true), (2, false)]);
    }

    #[test]
    fn waits_are_bounded_and_end() {
        let mut job = Counting::new(&[0, 5000]);
        let mut exchange = Exchange::new(&mut job, &server().patience(Duration::from_millis(100)), true);
        let started = Instant::now();
        let mut waits = Vec::new();
        let error = loop {
            for parcel in send(&mut exchange, &cluster()) {
                exchange.take(parcel, Outcome { answers: vec![server_error("CLUSTERDOWN")], failure: None });
            }
            match exchange.next() {
                Ok(Next::Again { wait, refresh: true }) => waits.push(wait),
                Ok(next) => panic!("{next:?}"),
                Err(error) => break error,
            }
            std::thread::sleep(*waits.last().unwrap());
        };
        let RedisFilterError::Unreachable { node, waited, message } = error else { panic!("{error}") };
        assert!(node == "n:1" && waited.as_millis() >= 100 && message == "ClusterDown", "{waited:?} {message}");
        assert_eq!(waits[..2], [16, 32].map(Duration::from_millis));
        // The last wait is what is left of the patience.
        assert!(waits.iter().sum::<Duration>() <= Duration::from_millis(100), "{waits:?}");
        assert!(started.elapsed() < Duration::from_secs(10));
        job.abandoned.sort();
        assert_eq!(job.abandoned, [(0, false), (1, false)]);
    }
}
