//! A model checker for clients of a filter that grows or forgets: it runs the code of the filter against a server in
//! memory, in every order of commands that few switches between clients allow.

use crate::error::RedisFilterError;
use crate::exchange::{Failure, NodeAnswers, NodeCommands};
use crate::kinds::Stages;
use crate::meta::FilterMeta;
use crate::nodes::Transport;
use crate::packed::CommandSink;
use crate::remote_filter::RemoteFilter;
use crate::scripts;
use crate::server::RedisServer;
use crate::topology::Node;
use redis::{Cmd, RedisResult, Value, parse_redis_value};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

/// The time of the server at the beginning.
const EPOCH: u64 = 1000;

type Words = Vec<Vec<u8>>;

/// A server.
#[derive(Default)]
struct Server {
    strings: HashMap<Vec<u8>, Vec<u8>>,
    hashes: HashMap<Vec<u8>, BTreeMap<Vec<u8>, Vec<u8>>>,
    /// The expiry times of strings.
    expiries: HashMap<Vec<u8>, u64>,
    /// The time of the last claim.
    claimed: u64,
    /// The number of claims that set a bit, by shard.
    claims_that_set_bits: HashMap<Vec<u8>, u64>,
    mutant: Mutant,
}

/// A deliberate fault, with which a model must fail.
#[derive(Clone, Copy, Default, PartialEq)]
enum Mutant {
    #[default]
    Nothing,
    /// The server forgets seals.
    Unsealed,
    /// The server reports each stage as listed.
    Listed,
    /// The clock of clients stands still.
    Still,
    /// Scripts remove without a comparison.
    Uncompared,
}

thread_local! {
    static SERVER: RefCell<Server> = RefCell::default();
    static CHOICES: RefCell<Choices> = RefCell::default();
    /// The number of answers that may be lost.
    static LOSSES: Cell<u32> = const { Cell::new(0) };
    /// The number of claims that may be refused.
    static REFUSALS: Cell<u32> = const { Cell::new(0) };
    /// The time of the clients' clock at the beginning.
    static START: Instant = Instant::now();
    /// The seconds since the beginning.
    static TIME: Cell<u64> = const { Cell::new(0) };
}

impl Server {
    fn execute(&mut self, words: &[Vec<u8>]) -> Value {
        // Marks are no text.
        let text: Vec<&str> = words.iter().map(|word| str::from_utf8(word).unwrap_or("")).collect();
        let key = || words[1].clone();
        let number = |i: usize| text[i].parse::<usize>().unwrap();
        let bulk = |text: &[u8]| Value::BulkString(text.to_vec());
        let Self { strings, expiries, .. } = self;
        self.hashes.retain(|_, fields| !fields.is_empty());
        strings.retain(|key, _| expiries.get(key).is_none_or(|end| TIME.get() + EPOCH < *end));
        expiries.retain(|key, _| strings.contains_key(key));
        match text[0] {
            "CLUSTER" => parse_redis_value(b"-ERR This instance has cluster support disabled\r\n").unwrap(),
            "HELLO" => Value::Array(vec![bulk(b"role"), bulk(b"master")]),
            "TIME" => Value::Array(vec![bulk((EPOCH + TIME.get()).to_string().as_bytes()), bulk(b"0")]),
            "GET" => self.strings.get(&words[1]).map_or(Value::Nil, |value| bulk(value)),
            "SET" => {
                self.strings.entry(key()).or_insert_with(|| words[2].clone());
                Value::Okay
            }
            "STRLEN" => Value::Int(self.strings.get(&words[1]).map_or(0, |value| value.len() as i64)),
            "GETRANGE" => {
                let value = self.strings.get(&words[1]).map_or(&[][..], Vec::as_slice);
                let (Ok(start), Ok(end)) = (text[2].parse::<usize>(), text[3].parse::<usize>()) else {
                    return bulk(b"");
                };
                bulk(&value[start.min(value.len())..(end + 1).min(value.len())])
            }
            // A claim.
            "BITFIELD" if text[2] == "SET" && text.ends_with(&["GET", "i64", "0"]) => {
                if REFUSALS.get() > 0 && choose(2) == 1 {
                    REFUSALS.set(REFUSALS.get() - 1);
                    return parse_redis_value(b"-OOM command not allowed\r\n").unwrap();
                }
                self.claimed = TIME.get();
                let answers = self.bitfield(&text);
                if answers[..answers.len() - 1].contains(&Value::Int(0)) {
                    *self.claims_that_set_bits.entry(key()).or_default() += 1;
                }
                Value::Array(answers)
            }
            "BITFIELD" => Value::Array(self.bitfield(&text)),
            "EXPIRE" => {
                expiries.insert(key(), EPOCH + TIME.get() + number(2) as u64);
                Value::Int(1)
            }
            "EXPIREAT" => {
                expiries.insert(key(), text[2].parse().unwrap());
                Value::Int(1)
            }
            "UNLINK" => {
                let removed = strings.remove(&words[1]).is_some() | self.hashes.remove(&words[1]).is_some();
                Value::Int(removed.into())
            }
            "EVAL" if text[1] == scripts::REMOVE_SHARD => {
                let (key, start) = (&words[3], number(4));
                let string = strings.get(key).map_or(&[][..], Vec::as_slice);
                let mark = &string[start.min(string.len())..(start + 8).min(string.len())];
                let is_one =
                    |other: &Words| other.iter().any(|word| word == mark || word.len() == 4 && mark.starts_with(word));
                let removes = words.len() > 5 && self.mutant == Mutant::Uncompared || is_one(&words[5..].to_vec());
                Value::Int((removes && strings.remove(key).is_some()).into())
            }
            "EVAL" if text[1] == scripts::REMOVE_LINE => {
                let fields = self.hashes.entry(words[3].clone()).or_default();
                let removes = fields.get(&words[4]).is_some_and(|line| *line == words[5]);
                Value::Int((removes && fields.remove(&words[4]).is_some()).into())
            }
            "SCAN" => Value::Array(vec![bulk(b"0"), Value::Array(strings.keys().map(|key| bulk(key)).collect())]),
            "HDEL" => Value::Int(
                self.hashes.get_mut(&words[1]).is_some_and(|fields| fields.remove(&words[2]).is_some()).into(),
            ),
            "HGETALL" => {
                let fields = self.hashes.get(&words[1]).into_iter().flatten();
                Value::Array(fields.flat_map(|(field, value)| [bulk(field), bulk(value)]).collect())
            }
            "HEXISTS" if self.mutant == Mutant::Listed => Value::Int(1),
            "HEXISTS" => {
                Value::Int(self.hashes.get(&words[1]).is_some_and(|fields| fields.contains_key(&words[2])).into())
            }
            "HSETNX" => {
                let fields = self.hashes.entry(key()).or_default();
                let absent = !fields.contains_key(&words[2]);
                fields.entry(words[2].clone()).or_insert_with(|| words[3].clone());
                Value::Int(absent.into())
            }
            "BITCOUNT" => {
                let value = self.strings.get(&words[1]).map_or(&[][..], Vec::as_slice);
                let range = number(2).min(value.len())..(number(3) + 1).min(value.len());
                Value::Int(value[range].iter().map(|byte| i64::from(byte.count_ones())).sum())
            }
            other => panic!("the model does not know {other}"),
        }
    }

    /// Executes operations on single bits and on marks.
    fn bitfield(&mut self, text: &[&str]) -> Vec<Value> {
        let value = self.strings.entry(text[1].as_bytes().to_vec()).or_default();
        let mut answers = Vec::new();
        let mut index = 2;
        while index < text.len() {
            let operation = text[index];
            if operation == "OVERFLOW" {
                index += 2;
                continue;
            }
            let (width, bit): (usize, usize) =
                (text[index + 1][1..].parse().unwrap(), text[index + 2].parse().unwrap());
            let mut bits: Vec<bool> = (bit..bit + width)
                .map(|bit| value.get(bit / 8).is_some_and(|byte| byte >> (7 - bit % 8) & 1 == 1))
                .collect();
            let old = bits.iter().fold(0u64, |number, bit| number << 1 | u64::from(*bit));
            let new = match operation {
                "GET" => None,
                "SET" if bit == 0 && self.mutant == Mutant::Unsealed => None,
                "SET" => Some(text[index + 3].parse().unwrap()),
                "INCRBY" if width == 64 => Some(old.wrapping_add_signed(text[index + 3].parse().unwrap())),
                "INCRBY" => old.checked_add(text[index + 3].parse().unwrap()).filter(|sum| *sum >> width == 0),
                other => panic!("the model does not know {other}"),
            };
            let signed = if text[index + 1].starts_with('i') { old.cast_signed() } else { old as i64 };
            answers.push(match (operation, new) {
                ("INCRBY", None) => Value::Nil,
                ("INCRBY", Some(new)) => Value::Int(new as i64),
                _ => Value::Int(signed),
            });
            if let Some(new) = new {
                value.resize(value.len().max((bit + width).div_ceil(8)), 0);
                for (i, bit_is) in bits.iter_mut().enumerate() {
                    *bit_is = new >> (width - 1 - i) & 1 == 1;
                    let (byte, mask) = ((bit + i) / 8, 1 << (7 - (bit + i) % 8));
                    if *bit_is { value[byte] |= mask } else { value[byte] &= !mask }
                }
            }
            index += if operation == "GET" { 3 } else { 4 };
        }
        answers
    }
}

/// Commands, each as its arguments.
#[derive(Default)]
struct CommandList(Vec<Words>);

impl CommandSink for CommandList {
    fn begin(&mut self, _: usize) {
        self.0.push(Words::new());
    }

    fn argument(&mut self, bytes: &[u8]) {
        self.0.last_mut().expect("it was begun").push(bytes.to_vec());
    }
}

/// Waits until it is this client's turn.
async fn yield_turn() {
    let mut waited = false;
    poll_fn(|_| if std::mem::replace(&mut waited, true) { Poll::Ready(()) } else { Poll::Pending }).await;
}

/// Executes a command when it is this client's turn. `None` if the answer is lost.
async fn step(words: &[Vec<u8>]) -> Option<Value> {
    yield_turn().await;
    let answer = SERVER.with_borrow_mut(|server| server.execute(words));
    let lost = LOSSES.get() > 0 && choose(2) == 1;
    if lost {
        LOSSES.set(LOSSES.get() - 1);
    }
    (!lost).then_some(answer)
}

struct Simulated;

impl Transport for Simulated {
    type Sink = CommandList;

    fn new(_: &RedisServer, _: bool) -> Self {
        Self
    }

    async fn exchange(&mut self, batches: &mut [NodeCommands<CommandList>]) -> Vec<NodeAnswers> {
        let mut responses = Vec::new();
        for batch in batches {
            let mut response = NodeAnswers { answers: Vec::new(), failure: None };
            for words in &batch.commands.0 {
                let Some(answer) = step(words).await else {
                    let error = io::Error::from(io::ErrorKind::ConnectionReset).into();
                    response.failure = Some(Failure { error, sent: true });
                    break;
                };
                response.answers.push(answer);
            }
            responses.push(response);
        }
        responses
    }

    async fn ask(&mut self, _: &Node, command: &Cmd) -> RedisResult<Value> {
        let mut commands = CommandList::default();
        commands.command(command);
        step(&commands.0[0]).await.ok_or_else(|| io::Error::from(io::ErrorKind::ConnectionReset).into())
    }

    async fn sleep(_: Duration) {}

    fn now() -> Instant {
        let stands_still = SERVER.with_borrow(|server| server.mutant == Mutant::Still);
        // Not the time of the clock: an execution must not depend on how long it takes.
        START.with(|start| *start) + Duration::from_secs(if stands_still { 0 } else { TIME.get() })
    }

    fn disconnect(&mut self, _: &Node) {}
}

/// The choices of an execution: the index of the option taken, and the number of options. The next execution differs in the last
/// choice that has another option.
#[derive(Default)]
struct Choices {
    taken: Vec<(usize, usize)>,
    index: usize,
}

fn choose(options: usize) -> usize {
    CHOICES.with_borrow_mut(|choices| {
        if choices.index == choices.taken.len() {
            choices.taken.push((0, options));
        }
        let (choice, previous_options) = choices.taken[choices.index];
        assert_eq!(previous_options, options, "an execution is the same as before up to its last choice");
        choices.index += 1;
        choice
    })
}

/// Prepares the next execution. Returns true if there is one.
fn next_execution() -> bool {
    CHOICES.with_borrow_mut(|choices| {
        choices.index = 0;
        while choices.taken.last().is_some_and(|(choice, options)| choice + 1 == *options) {
            choices.taken.pop();
        }
        choices.taken.last_mut().map(|(choice, _)| *choice += 1).is_some()
    })
}

type Task<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// Runs clients to their end, with at most `switches` switches away from a client that could continue.
fn run(mut tasks: Vec<Task<'_>>, mut switches: usize) {
    let mut context = Context::from_waker(Waker::noop());
    let mut current = None;
    while !tasks.is_empty() {
        let next = match current {
            Some(current) if switches == 0 => current,
            Some(current) => match choose(tasks.len()) {
                0 => current,
                other => {
                    switches -= 1;
                    (current + other) % tasks.len()
                }
            },
            None => choose(tasks.len()),
        };
        current = Some(next);
        if tasks[next].as_mut().poll(&mut context).is_ready() {
            drop(tasks.remove(next));
            current = None;
        }
    }
}

/// Runs a future to its end while no client runs.
fn run_alone<F: Future>(future: F) -> F::Output {
    let mut future = Box::pin(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
    }
}

type Client = RemoteFilter<Simulated>;

/// Clients of a filter, each a process of its own that has used the first shard and holds permits for three keys.
fn clients(count: u64, stages: &Stages) -> Vec<Client> {
    let open = |i| {
        run_alone(async {
            let mut client = open(stages).await.unwrap();
            // The second call takes as many permits as the first has used.
            client.insert_hashes(&[0, 1, 2, 3].map(|j| hash(1000 + 5 * i + j)), &mut [false; 4]).await.unwrap();
            client.insert_hashes(&[hash(1004 + 5 * i)], &mut [false]).await.unwrap();
            client
        })
    };
    (0..count).map(open).collect()
}

async fn open(stages: &Stages) -> Result<Client, RedisFilterError> {
    let server = RedisServer::new("redis://model:1").unwrap();
    Client::open(&server, "f", Some(FilterMeta::staged(*stages).unwrap())).await
}

/// Returns the hash of a key. No two have a bit pattern in common.
fn hash(key: u64) -> u64 {
    key.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// An action of a client or of its environment.
#[derive(Clone, Copy)]
enum Action {
    /// After an error the client does nothing more.
    Insert(&'static [u64]),
    /// The client finds that the first stage is full.
    Grow,
    /// A key that was inserted before it begins must be found, unless it was forgotten meanwhile.
    Query(u64),
    /// Seconds pass.
    Pass(u64),
    /// The server loses this many of the last stages from their list, and the seals of the last that it keeps if `true`, as a
    /// replica does that takes over.
    Lose(usize, bool),
    /// Another process removes the filter. The client then does nothing more.
    Delete,
}

/// Clients of a filter, with the actions of each.
struct Model<'a> {
    actions: &'a [&'a [Action]],
    switches: usize,
    losses: u32,
    refusals: u32,
    stages: Stages,
    /// True if the server has a shard of the second stage of an earlier filter.
    leftover: bool,
    mutant: Mutant,
}

impl<'a> Model<'a> {
    /// Creates the model of a filter that grows, on a server without a fault.
    fn new(actions: &'a [&'a [Action]], switches: usize) -> Self {
        let stages = Stages::growing(1e-6).first_stage(1000);
        Self { actions, switches, losses: 0, refusals: 0, stages, leftover: false, mutant: Mutant::Nothing }
    }
}

/// Loses stages from the list.
fn lose(count: usize, seals: bool) {
    SERVER.with_borrow_mut(|server| {
        let Server { strings, hashes, .. } = server;
        let list = hashes.get_mut(&b"cbf:{f:stages}"[..]).unwrap();
        for _ in 0..count {
            list.pop_last();
        }
        if let Some((number, _)) = list.last_key_value().filter(|_| seals) {
            let number = str::from_utf8(number).unwrap();
            if let Some(string) = strings.get_mut(format!("cbf:{{f:{number}.0}}").as_bytes()) {
                string[0] &= 0x7f;
            }
        }
    });
}

/// Checks all executions of a model. At the end of each, another client inserts all keys once more. Returns the number
/// of executions.
fn explore(model: &Model) -> Result<usize, String> {
    CHOICES.set(Choices::default());
    let window = model.stages.forgets_after().map_or(u64::MAX, |window| window.as_secs());
    let any = |is: fn(&Action) -> bool| model.actions.iter().flat_map(|actions| *actions).any(is);
    let deletes = any(|action| matches!(action, Action::Delete));
    let loses = deletes || any(|action| matches!(action, Action::Lose(..)));
    let mut executions = 0;
    loop {
        executions += 1;
        LOSSES.set(0);
        REFUSALS.set(0);
        TIME.set(0);
        SERVER.set(Server { mutant: model.mutant, ..Server::default() });
        let mut clients = clients(model.actions.len() as u64, &model.stages);
        if model.leftover {
            let shard = [&(1u64 << 62).to_be_bytes()[..], &[0xff; 4096]].concat();
            SERVER.with_borrow_mut(|server| server.strings.insert(b"cbf:{f:1.0}".to_vec(), shard));
        }
        LOSSES.set(model.losses);
        REFUSALS.set(model.refusals);
        // The number of claims of each key, and the time at which the server received the first.
        let (claims, inserted_at, uncertain) =
            (RefCell::new(BTreeMap::<u64, u64>::new()), RefCell::new(BTreeMap::<u64, u64>::new()), Cell::new(0));
        let missed = Cell::new(false);
        let tasks = clients.iter_mut().zip(model.actions).map(|(client, actions)| {
            let (claims, inserted_at, uncertain, missed) = (&claims, &inserted_at, &uncertain, &missed);
            let task = async move {
                for action in *actions {
                    match action {
                        Action::Insert(keys) => {
                            let hashes: Vec<u64> = keys.iter().map(|&key| hash(key)).collect();
                            let mut new = vec![false; keys.len()];
                            let inserted = client.insert_hashes(&hashes, &mut new).await;
                            let time = SERVER.with_borrow(|server| server.claimed);
                            for (&key, new) in keys.iter().zip(new) {
                                *claims.borrow_mut().entry(key).or_default() += u64::from(new);
                                if inserted.is_ok() {
                                    inserted_at.borrow_mut().entry(key).or_insert(time);
                                }
                            }
                            if inserted.is_err() {
                                break;
                            }
                        }
                        Action::Grow => {
                            if client.grow().await.is_err() {
                                break;
                            }
                        }
                        Action::Query(key) => {
                            let inserted = inserted_at.borrow().get(key).copied();
                            let mut found = [false];
                            client.contains_hashes(&[hash(*key)], &mut found).await.unwrap();
                            let must_be_found = inserted.is_some_and(|time| TIME.get() - time < window);
                            missed.set(missed.get() | (must_be_found && !found[0]));
                        }
                        Action::Pass(seconds) => {
                            yield_turn().await;
                            TIME.set(TIME.get() + seconds);
                        }
                        Action::Lose(count, seals) => {
                            yield_turn().await;
                            lose(*count, *seals);
                        }
                        Action::Delete => {
                            let server = RedisServer::new("redis://model:1").unwrap();
                            assert_eq!(Client::remove(&server, "f").await, Ok(true));
                            break;
                        }
                    }
                }
                // Clients check at the end of a run.
                if loses && let Err(error) = client.check().await {
                    assert!(
                        matches!(error, RedisFilterError::Gone { .. } | RedisFilterError::Replaced { .. }),
                        "{error}"
                    );
                }
                uncertain.set(uncertain.get() + client.uncertain());
            };
            Box::pin(task) as Task
        });
        run(tasks.collect(), model.switches);
        LOSSES.set(0);
        REFUSALS.set(0);
        if deletes {
            SERVER.with_borrow(|Server { strings, hashes, .. }| {
                let keys =
                    strings.keys().chain(hashes.iter().filter(|(_, fields)| !fields.is_empty()).map(|(key, _)| key));
                let left: Vec<_> = keys.map(|key| String::from_utf8_lossy(key)).collect();
                if left.is_empty() { Ok(()) } else { Err(format!("{left:?} are left")) }
            })?;
            if next_execution() {
                continue;
            }
            return Ok(executions);
        }
        let keys: Vec<u64> = claims.borrow().keys().copied().collect();
        let mut new = vec![false; keys.len()];
        let reinserted = run_alone(async {
            let mut client = open(&model.stages).await?;
            client.insert_hashes(&keys.iter().map(|&key| hash(key)).collect::<Vec<_>>(), &mut new).await
        });
        reinserted.map_err(|error| error.to_string())?;
        for (key, new) in keys.iter().zip(new) {
            let forgotten = inserted_at.borrow().get(key).is_some_and(|time| TIME.get() - time >= window);
            *claims.borrow_mut().get_mut(key).unwrap() += u64::from(new && !forgotten);
        }
        let surplus = claims.borrow().values().sum::<u64>().saturating_sub(claims.borrow().len() as u64);
        if claims.borrow().values().any(|claims| *claims == 0) || surplus > uncertain.get() || missed.get() {
            return Err(format!("{:?}, {} uncertain, missed: {}", claims.borrow(), uncertain.get(), missed.get()));
        }
        if !next_execution() {
            return Ok(executions);
        }
    }
}

const INSERT_1_2: Action = Action::Insert(&[1, 2]);
const INSERT_2_1: Action = Action::Insert(&[2, 1]);
const INSERT_1: Action = Action::Insert(&[1]);
const INSERT_2: Action = Action::Insert(&[2]);

/// Returns the maximum number of switches between clients: `BLOOMLINE_SWITCHES`, or 2. Nightly runs have 3, which takes
/// minutes.
fn switches() -> usize {
    std::env::var("BLOOMLINE_SWITCHES").map_or(2, |switches| switches.parse().expect("a number"))
}

#[test]
fn a_key_is_claimed_once_while_the_filter_grows() {
    let mut executions = Vec::new();
    for actions in [
        &[&[INSERT_1][..], &[INSERT_1], &[Action::Grow]][..],
        &[&[INSERT_1_2, Action::Grow], &[INSERT_2_1, Action::Grow]],
        &[&[Action::Grow, INSERT_1_2], &[Action::Grow, INSERT_2_1], &[INSERT_1]],
        &[&[INSERT_1], &[Action::Grow, Action::Grow, INSERT_1], &[INSERT_1, INSERT_1]],
    ] {
        executions.push(explore(&Model::new(actions, switches())).unwrap());
    }
    println!("{executions:?} executions");
    assert!(executions.iter().sum::<usize>() > 1000, "{executions:?}");
}

#[test]
fn a_key_is_found_once_it_was_inserted() {
    for actions in [
        &[&[Action::Grow, INSERT_1][..], &[Action::Query(1), Action::Query(1)]][..],
        &[&[INSERT_1], &[Action::Grow], &[Action::Query(1)]],
    ] {
        explore(&Model::new(actions, switches())).unwrap();
    }
}

#[test]
fn lost_answers_lose_no_key_and_those_that_repeat_are_counted() {
    for actions in [&[&[INSERT_1][..], &[INSERT_1], &[Action::Grow]][..], &[&[INSERT_1_2, Action::Grow], &[INSERT_2_1]]]
    {
        explore(&Model { losses: 1, ..Model::new(actions, switches() - 1) }).unwrap();
    }
}

/// The model detects the fault.
#[test]
fn without_seals_a_key_is_claimed_twice() {
    let actions: &[&[Action]] = &[&[INSERT_1], &[Action::Grow, INSERT_1]];
    let error = explore(&Model { mutant: Mutant::Unsealed, ..Model::new(actions, 2) }).unwrap_err();
    assert!(error.contains("{1: 2}"), "{error}");
}

/// Some claims are late in one stage after another, and the server refuses others.
#[test]
fn a_key_that_is_late_and_then_refused_is_not_lost() {
    let actions: &[&[Action]] = &[&[INSERT_1_2], &[Action::Grow, Action::Grow]];
    let executions = explore(&Model { refusals: 1, ..Model::new(actions, switches()) }).unwrap();
    assert!(executions > 50, "{executions}");
}

/// A server loses the end of the list, or all of it, or the end and the seals of the stage before.
#[test]
fn keys_claimed_twice_after_a_lost_list_are_counted_as_uncertain() {
    let actions: &[&[Action]] = &[&[Action::Grow], &[INSERT_1], &[Action::Lose(1, false)]];
    explore(&Model::new(actions, switches())).unwrap();
    for lost in [1, 2] {
        let actions: &[&[Action]] =
            &[&[Action::Grow, INSERT_1, Action::Pass(1), INSERT_1], &[INSERT_1], &[Action::Lose(lost, false)]];
        explore(&Model::new(actions, switches() - 1)).unwrap_or_else(|error| panic!("{lost}: {error}"));
    }
    explore(&Model::new(LOST_LIST, switches() - 1)).unwrap();
}

/// A client inserts into a stage that is no longer listed, while another treats the previous stage as the last.
const LOST_LIST: &[&[Action]] =
    &[&[Action::Grow, INSERT_2, Action::Lose(1, true), INSERT_1, Action::Pass(1), INSERT_1], &[INSERT_1]];

#[test]
fn without_a_check_of_the_list_keys_are_claimed_twice_unnoticed() {
    let error = explore(&Model { mutant: Mutant::Listed, ..Model::new(LOST_LIST, 2) }).unwrap_err();
    assert!(error.contains("1: 2") && error.contains(" 0 uncertain"), "{error}");
}

/// Returns a window of 12 s, in generations of 3 s.
fn window() -> Stages {
    Stages::window(Duration::from_secs(12), 1000, 1e-6)
}

/// A client that is held between its look at a shard and the removal does not remove a shard that another client has
/// opened since.
#[test]
fn leftover_shards_are_removed_and_no_others() {
    let actions: &[&[Action]] = &[&[Action::Grow], &[Action::Grow, INSERT_1, INSERT_2_1]];
    for stages in [Model::new(actions, 0).stages, window()] {
        explore(&Model { leftover: true, stages, ..Model::new(actions, switches()) }).unwrap();
        let mutant = Mutant::Uncompared;
        let error = explore(&Model { leftover: true, stages, mutant, ..Model::new(actions, 2) }).unwrap_err();
        assert!(error.contains("1: 2"), "{error}");
    }
}

/// Clients insert, grow the filter and pause meanwhile, until each finds that the filter is gone.
#[test]
fn a_filter_that_is_removed_beneath_its_clients_leaves_nothing() {
    for actions in [
        &[&[INSERT_1, INSERT_2][..], &[Action::Delete]][..],
        &[&[Action::Grow, INSERT_1], &[Action::Delete]],
        &[&[INSERT_1, Action::Grow], &[INSERT_2], &[Action::Delete]],
    ] {
        let switches = switches() - usize::from(actions.len() > 2);
        explore(&Model::new(actions, switches)).unwrap();
        explore(&Model { stages: window(), ..Model::new(actions, switches - 1) }).unwrap();
    }
}

/// Clients stop anywhere, for less than the window and for more.
#[test]
fn a_key_is_found_for_the_window() {
    let actions: &[&[Action]] = &[&[INSERT_1], &[Action::Pass(9), Action::Pass(8), Action::Query(1)]];
    explore(&Model { stages: window(), ..Model::new(actions, switches()) }).unwrap();
    let error = explore(&Model { stages: window(), mutant: Mutant::Still, ..Model::new(actions, 2) }).unwrap_err();
    assert!(error.contains("{1: 2}, 0 uncertain"), "{error}");
}

#[test]
fn a_key_is_claimed_once_while_generations_pass() {
    for actions in [
        &[&[INSERT_1][..], &[INSERT_1], &[Action::Pass(5)]][..],
        &[&[INSERT_1_2, Action::Grow], &[Action::Pass(4), INSERT_2_1]],
    ] {
        explore(&Model { stages: window(), ..Model::new(actions, switches() - 1) }).unwrap();
    }
}

/// All clients have claims in flight while a stage becomes full.
#[test]
fn many_clients_do_not_overfill_a_stage() {
    const BATCH: u64 = 1536;
    for stages in [Stages::window(Duration::MAX, 1000, 0.01), Stages::growing(0.01).first_stage(1000)] {
        SERVER.set(Server::default());
        let mut clients: Vec<Client> = (0..32).map(|_| run_alone(open(&stages)).unwrap()).collect();
        let tasks = (0..).zip(&mut clients).map(|(i, client)| {
            let hashes: Vec<u64> = (i * BATCH..(i + 1) * BATCH).map(hash).collect();
            let insert = async move { _ = client.insert_hashes(&hashes, &mut [false; BATCH as usize]).await.unwrap() };
            Box::pin(insert) as Task
        });
        let mut tasks: Vec<Task> = tasks.collect();
        let mut context = Context::from_waker(Waker::noop());
        // In lockstep: one command of each at a time.
        while !tasks.is_empty() {
            tasks.retain_mut(|task| task.as_mut().poll(&mut context).is_pending());
        }
        SERVER.with_borrow(|server| {
            let lines = &server.hashes[&b"cbf:{f:stages}"[..]];
            for (number, line) in lines {
                let [number, line] = [number, line].map(|text| str::from_utf8(text).unwrap());
                let planned = line.split(' ').find_map(|field| field.strip_prefix("keys=")?.parse().ok()).unwrap();
                let claims = server.claims_that_set_bits[format!("cbf:{{f:{number}.0}}").as_bytes()];
                assert!(
                    claims <= stages.permits(planned),
                    "{claims} keys in stage {number}, which was sized for {planned}"
                );
            }
            assert!(lines.len() >= 2, "{lines:?}");
        });
    }
}

/// A client plans the second stage in the last second in which the first is queried, and another a second later.
#[test]
fn clients_that_plan_a_stage_differently_remove_no_shard_of_it() {
    let actions: &[&[Action]] = &[&[Action::Pass(16), Action::Grow, INSERT_1], &[Action::Pass(1), Action::Grow]];
    explore(&Model { stages: window(), ..Model::new(actions, switches()) }).unwrap();
}
