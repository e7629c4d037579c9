//! Routing, retries and doubts, without connections.

use super::*;
use crate::packed::PackedCommands;
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
        Self { slots: slots.to_vec(), unconfirmed: Vec::new(), answers: vec![None; slots.len()], abandoned: Vec::new() }
    }
}

impl Job for Counting {
    fn len(&self) -> usize {
        self.slots.len()
    }
    fn slot(&self, i: usize) -> u16 {
        self.slots[i]
    }
    fn write(&self, i: usize, sink: &mut impl CommandSink) {
        sink.command(redis::cmd("INCRBY").arg("cbf:{f:0}").arg(i));
    }
    fn may_ask_replica(&self, _: usize) -> bool {
        true
    }
    fn process_answer(&mut self, i: usize, answer: Value, doubted: bool) -> Option<()> {
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
    RedisServer::new("redis://n:1").unwrap().retry_timeout(Duration::from_secs(60))
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

fn answers(values: &[i64]) -> NodeAnswers {
    NodeAnswers { answers: values.iter().copied().map(Value::Int).collect(), failure: None }
}

fn send(exchange: &mut Exchange<Counting>, topology: &Topology) -> Vec<NodeCommands<PackedCommands>> {
    exchange.batches(topology)
}

fn ports(batches: &[NodeCommands<PackedCommands>]) -> Vec<u16> {
    batches.iter().map(|batch| batch.node.port()).collect()
}

#[test]
fn commands_go_to_their_nodes_and_answers_to_their_commands() {
    let mut job = Counting::new(&[0, 100, 1, 101]);
    let mut exchange = Exchange::new(&mut job, &server(), true);
    let batches = send(&mut exchange, &cluster());
    assert_eq!(ports(&batches), [1, 2]);
    let mut next = 10;
    for batch in batches {
        exchange.process(batch, answers(&[next, next + 1]));
        next += 10;
    }
    assert_eq!(exchange.next_step(), Ok(NextStep::Done));
    assert_eq!(job.answers, [10, 20, 11, 21].map(|answer| Some((answer, false))));
}

#[test]
fn commands_whose_answers_were_lost_are_doubted() {
    let mut job = Counting::new(&[0, 0, 100]);
    let mut exchange = Exchange::new(&mut job, &server(), true);
    let mut batches = send(&mut exchange, &cluster()).into_iter();
    let first = NodeAnswers { answers: vec![Value::Int(1)], failure: broken(true) };
    exchange.process(batches.next().unwrap(), first);
    // The other node was never reached.
    exchange.process(batches.next().unwrap(), NodeAnswers { answers: vec![], failure: broken(false) });
    assert!(matches!(exchange.next_step(), Ok(NextStep::Again { refresh: true, wait }) if !wait.is_zero()));
    for batch in send(&mut exchange, &cluster()) {
        assert_eq!(batch.answers, 1);
        exchange.process(batch, answers(&[2]));
    }
    assert_eq!(exchange.next_step(), Ok(NextStep::Done));
    assert_eq!(job.answers, [Some((1, false)), Some((2, true)), Some((2, false))]);
}

#[test]
fn answers_that_too_few_replicas_have_are_unconfirmed() {
    // Both commands are answered, and `WAIT` is answered with this number.
    for (wait, unconfirmed) in [(2, &[][..]), (3, &[]), (1, &[0]), (0, &[0])] {
        let mut job = Counting::new(&[0, 1]);
        let mut exchange = Exchange::new(&mut job, &confirming(), true);
        let batch = send(&mut exchange, &cluster()).remove(0);
        assert!(batch.answers == 3 && batch.commands.0.ends_with(b"*3\r\n$4\r\nWAIT\r\n$1\r\n2\r\n$2\r\n50\r\n"));
        exchange.process(batch, answers(&[7, 8, wait]));
        assert_eq!(exchange.next_step(), Ok(NextStep::Done));
        assert_eq!(job.answers, [Some((7, false)), Some((8, false))]);
        assert_eq!(job.unconfirmed, unconfirmed);
    }
}

/// The node fails before it reports whether replicas have the first command, so that command is sent again and is doubted.
#[test]
fn commands_that_replicas_may_lack_are_sent_again() {
    let lost = NodeAnswers { answers: vec![Value::Int(7), Value::Int(8)], failure: broken(true) };
    let with = |answer| NodeAnswers { answers: vec![Value::Int(7), Value::Int(8), answer], failure: None };
    let unblocked = with(server_error("UNBLOCKED force unblock from blocking operation"));
    let replica = with(server_error("ERR WAIT cannot be used with replica instances."));
    let loading = with(server_error("LOADING Redis is loading the dataset in memory"));
    let busy = with(server_error("BUSY Redis is busy running a script"));
    for response in [lost, unblocked, replica, loading, busy] {
        let mut job = Counting::new(&[0, 1]);
        let mut exchange = Exchange::new(&mut job, &confirming(), true);
        let batch = send(&mut exchange, &cluster()).remove(0);
        exchange.process(batch, response);
        assert!(matches!(exchange.next_step(), Ok(NextStep::Again { refresh: true, .. })));
        let batch = send(&mut exchange, &cluster()).remove(0);
        assert_eq!(batch.answers, 2);
        exchange.process(batch, answers(&[9, 2]));
        assert_eq!(exchange.next_step(), Ok(NextStep::Done));
        assert_eq!(job.answers, [Some((9, true)), Some((8, false))]);
        assert_eq!(job.unconfirmed, []);
    }
}

#[test]
fn a_user_without_the_right_to_wait_is_denied() {
    let mut job = Counting::new(&[0, 1]);
    let mut exchange = Exchange::new(&mut job, &confirming(), true);
    let batch = send(&mut exchange, &cluster()).remove(0);
    let answers = vec![Value::Int(7), Value::Int(8), server_error("NOPERM this user has no permissions")];
    exchange.process(batch, NodeAnswers { answers, failure: None });
    assert!(matches!(exchange.next_step(), Err(RedisFilterError::Denied { .. })));
    assert_eq!((job.answers[0], job.unconfirmed), (Some((7, false)), vec![0]));
}

#[test]
fn refusals_are_not_doubted_and_redirections_followed() {
    let mut job = Counting::new(&[0, 1]);
    let mut exchange = Exchange::new(&mut job, &server(), true);
    let batch = send(&mut exchange, &cluster()).remove(0);
    let refusals = vec![server_error("ASK 0 n:7"), server_error("MOVED 1 n:2")];
    exchange.process(batch, NodeAnswers { answers: refusals, failure: None });
    assert_eq!(exchange.next_step(), Ok(NextStep::Again { wait: Duration::ZERO, refresh: true }));
    let mut batches = send(&mut exchange, &cluster());
    assert_eq!(ports(&batches), [7, 1]);
    assert_eq!(batches[0].answers, 2);
    let asked = NodeAnswers { answers: vec![Value::Okay, Value::Int(1)], failure: None };
    exchange.process(batches.remove(0), asked);
    exchange.process(batches.remove(0), answers(&[1]));
    assert_eq!(exchange.next_step(), Ok(NextStep::Done));
    assert_eq!(job.answers, [Some((1, false)); 2]);
}

#[test]
fn a_replica_is_asked_once_and_then_the_primary() {
    let mut job = Counting::new(&[0]);
    let mut exchange = Exchange::new(&mut job, &server().read_from_replicas(), true);
    let mut batches = send(&mut exchange, &cluster());
    assert_eq!(ports(&batches), [11]);
    exchange.process(batches.remove(0), NodeAnswers { answers: vec![], failure: broken(true) });
    exchange.next_step().unwrap();
    assert_eq!(ports(&send(&mut exchange, &cluster())), [1]);
}

#[test]
fn errors_that_no_retry_resolves_end_the_exchange() {
    let one = Topology::Single(Node::new("n", 1));
    for (line, topology, expected) in [
        ("OOM command not allowed", &cluster(), RedisFilterError::OutOfMemory { node: "n:1".into() }),
        ("READONLY You can't write", &one, RedisFilterError::ReadOnly { node: "n:1".into() }),
    ] {
        let mut job = Counting::new(&[0, 0]);
        let mut exchange = Exchange::new(&mut job, &server(), false);
        let batch = send(&mut exchange, topology).remove(0);
        exchange.process(batch, NodeAnswers { answers: vec![Value::Int(1), server_error(line)], failure: None });
        assert_eq!(exchange.next_step(), Err(expected));
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
        let batch = send(&mut exchange, &one).remove(0);
        exchange.process(batch, NodeAnswers { answers: vec![server_error(line)], failure: None });
        assert!(format!("{:?}", exchange.next_step().unwrap_err()).starts_with(name));
    }
}

#[test]
fn an_invalid_answer_leaves_its_command_doubted() {
    let mut job = Counting::new(&[0, 0, 0]);
    let mut exchange = Exchange::new(&mut job, &server(), true);
    let batch = send(&mut exchange, &cluster()).remove(0);
    let answers = vec![Value::Int(1), Value::Nil, server_error("LOADING")];
    exchange.process(batch, NodeAnswers { answers, failure: None });
    let message = "its answer makes no sense".into();
    assert_eq!(exchange.next_step(), Err(RedisFilterError::Refused { node: "n:1".into(), message }));
    assert_eq!(job.abandoned, [(1, true), (2, false)]);
}

/// Returns a round in which every command is refused.
fn refused_round(exchange: &mut Exchange<Counting>) -> Result<NextStep, RedisFilterError> {
    for batch in send(exchange, &cluster()) {
        exchange.process(batch, NodeAnswers { answers: vec![server_error("CLUSTERDOWN")], failure: None });
    }
    exchange.next_step()
}

#[test]
fn waits_double_up_to_a_bound() {
    let mut job = Counting::new(&[0, 5000]);
    // The test does not sleep, so the time-out for retries is not reached.
    let mut exchange = Exchange::new(&mut job, &server(), true);
    for rounds in [1, 2, 3, 4, 5, 6, 7, 7, 7] {
        let wait = MIN_WAIT * (1 << rounds);
        assert_eq!(refused_round(&mut exchange), Ok(NextStep::Again { wait, refresh: true }));
    }
}

#[test]
fn waits_end_at_the_retry_timeout() {
    let retry_timeout = Duration::from_millis(100);
    let mut job = Counting::new(&[0, 5000]);
    let mut exchange = Exchange::new(&mut job, &server().retry_timeout(retry_timeout), true);
    let mut waits = Vec::new();
    let error = loop {
        match refused_round(&mut exchange) {
            Ok(NextStep::Again { wait, .. }) => waits.push(wait),
            Ok(next) => panic!("{next:?}"),
            Err(error) => break error,
        }
        std::thread::sleep(*waits.last().unwrap());
    };
    let RedisFilterError::Unreachable { node, waited, message } = error else { panic!("{error}") };
    assert!(node == "n:1" && waited >= retry_timeout && message == "ClusterDown", "{waited:?} {message}");
    // The last wait ends at the time-out for retries.
    assert!(waits.iter().sum::<Duration>() <= retry_timeout, "{waits:?}");
    job.abandoned.sort();
    assert_eq!(job.abandoned, [(0, false), (1, false)]);
}
