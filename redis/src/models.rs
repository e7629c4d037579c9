//! Tries the interleavings of clients whose filter grows: the code of the filter itself, with a server in memory that carries out
//! one command after another, in every order that few switches between clients allow.

use crate::exchange::{Failure, Outcome, Parcel};
use crate::kinds::Stages;
use crate::meta::Described;
use crate::nodes::Transport;
use crate::packed::Sink;
use crate::server::RedisServer;
use crate::shared::SharedFilter;
use crate::topology::Node;
use redis::{Cmd, RedisResult, Value, parse_redis_value};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

type Words = Vec<Vec<u8>>;

/// A server.
#[derive(Default)]
struct World {
    strings: HashMap<Vec<u8>, Vec<u8>>,
    hashes: HashMap<Vec<u8>, BTreeMap<Vec<u8>, Vec<u8>>>,
    /// Whether it forgets seals, so that a model must fail.
    unsealed: bool,
}

thread_local! {
    static WORLD: RefCell<World> = RefCell::default();
    static CHOICES: RefCell<Choices> = RefCell::default();
    /// How many answers may be lost.
    static LOSSES: Cell<u32> = const { Cell::new(0) };
}

impl World {
    fn execute(&mut self, words: &[Vec<u8>]) -> Value {
        let text: Vec<&str> = words.iter().map(|word| str::from_utf8(word).unwrap()).collect();
        let key = || words[1].clone();
        let number = |i: usize| text[i].parse::<usize>().unwrap();
        let bulk = |text: &[u8]| Value::BulkString(text.to_vec());
        match text[0] {
            "CLUSTER" => parse_redis_value(b"-ERR This instance has cluster support disabled\r\n").unwrap(),
            "HELLO" => Value::Array(vec![bulk(b"role"), bulk(b"master")]),
            "TIME" => Value::Array(vec![bulk(b"1000"), bulk(b"0")]),
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
            "BITFIELD" => Value::Array(self.bitfield(&text)),
            "HGETALL" => {
                let fields = self.hashes.get(&words[1]).into_iter().flatten();
                Value::Array(fields.flat_map(|(field, value)| [bulk(field), bulk(value)]).collect())
            }
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

    /// The operations are on single bits and on marks.
    fn bitfield(&mut self, text: &[&str]) -> Vec<Value> {
        let value = self.strings.entry(text[1].as_bytes().to_vec()).or_default();
        let mut answers = Vec::new();
        let mut at = 2;
        while at < text.len() {
            let operation = text[at];
            if operation == "OVERFLOW" {
                at += 2;
                continue;
            }
            let (width, bit): (usize, usize) = (text[at + 1][1..].parse().unwrap(), text[at + 2].parse().unwrap());
            let mut bits: Vec<bool> = (bit..bit + width)
                .map(|bit| value.get(bit / 8).is_some_and(|byte| byte >> (7 - bit % 8) & 1 == 1))
                .collect();
            let old = bits.iter().fold(0u64, |number, bit| number << 1 | u64::from(*bit));
            let new = match operation {
                "GET" => None,
                "SET" if bit == 0 && self.unsealed => None,
                "SET" => Some(text[at + 3].parse().unwrap()),
                "INCRBY" => {
                    old.checked_add(text[at + 3].parse().unwrap()).filter(|sum| width == 64 || *sum >> width == 0)
                }
                other => panic!("the model does not know {other}"),
            };
            let signed = if text[at + 1].starts_with('i') { old.cast_signed() } else { old as i64 };
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
            at += if operation == "GET" { 3 } else { 4 };
        }
        answers
    }
}

/// Commands as they are written.
#[derive(Default)]
struct Written(Vec<Words>);

impl Sink for Written {
    fn begin(&mut self, _: usize) {
        self.0.push(Words::new());
    }

    fn argument(&mut self, bytes: &[u8]) {
        self.0.last_mut().expect("it was begun").push(bytes.to_vec());
    }
}

/// Waits until it is this client's turn, and has a command carried out. `None` if the answer is lost.
async fn step(words: &[Vec<u8>]) -> Option<Value> {
    let mut waited = false;
    poll_fn(|_| if std::mem::replace(&mut waited, true) { Poll::Ready(()) } else { Poll::Pending }).await;
    let answer = WORLD.with_borrow_mut(|world| world.execute(words));
    let lost = LOSSES.get() > 0 && choose(2) == 1;
    if lost {
        LOSSES.set(LOSSES.get() - 1);
    }
    (!lost).then_some(answer)
}

struct Simulated;

impl Transport for Simulated {
    type Sink = Written;

    fn new(_: &RedisServer, _: bool) -> Self {
        Self
    }

    async fn exchange(&mut self, parcels: &mut [Parcel<Written>]) -> Vec<Outcome> {
        let mut outcomes = Vec::new();
        for parcel in parcels {
            let mut outcome = Outcome { answers: Vec::new(), failure: None };
            for words in &parcel.commands.0 {
                let Some(answer) = step(words).await else {
                    let error = io::Error::from(io::ErrorKind::ConnectionReset).into();
                    outcome.failure = Some(Failure { error, sent: true });
                    break;
                };
                outcome.answers.push(answer);
            }
            outcomes.push(outcome);
        }
        outcomes
    }

    async fn ask(&mut self, _: &Node, command: &Cmd) -> RedisResult<Value> {
        let mut written = Written::default();
        written.command(command);
        step(&written.0[0]).await.ok_or_else(|| io::Error::from(io::ErrorKind::ConnectionReset).into())
    }

    async fn sleep(_: Duration) {}

    fn forget(&mut self, _: &Node) {}
}

/// The choices of an execution: which was taken, of how many. The next one differs in the last that has another.
#[derive(Default)]
struct Choices {
    made: Vec<(usize, usize)>,
    at: usize,
}

fn choose(options: usize) -> usize {
    CHOICES.with_borrow_mut(|choices| {
        if choices.at == choices.made.len() {
            choices.made.push((0, options));
        }
        let (choice, among) = choices.made[choices.at];
        assert_eq!(among, options, "an execution is the same as before up to its last choice");
        choices.at += 1;
        choice
    })
}

/// Goes on to the next execution, if there is one.
fn another() -> bool {
    CHOICES.with_borrow_mut(|choices| {
        choices.at = 0;
        while choices.made.last().is_some_and(|(choice, options)| choice + 1 == *options) {
            choices.made.pop();
        }
        choices.made.last_mut().map(|(choice, _)| *choice += 1).is_some()
    })
}

type Task<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// Runs clients to their end, with at most so many switches away from one that could go on.
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

/// Runs what has nobody beside it to its end.
fn alone<F: Future>(future: F) -> F::Output {
    let mut future = Box::pin(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
    }
}

type Client = SharedFilter<Simulated>;

/// Clients of a filter that grows, each a process of its own that has used the first shard.
fn clients(count: u64) -> Vec<Client> {
    let server = RedisServer::new("redis://model:1").unwrap();
    let open = |i| {
        alone(async {
            let wanted = Described::staged(Stages::growing(1e-6).first_stage(1000)).unwrap();
            let mut client = Client::open(&server, "f", Some(wanted)).await.unwrap();
            client.insert_hashes(&[hash(1000 + i)], &mut [false]).await.unwrap();
            client
        })
    };
    (0..count).map(open).collect()
}

/// Numbers that have no bit pattern in common.
fn hash(key: u64) -> u64 {
    key.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// What a client does.
#[derive(Clone, Copy)]
enum Act {
    Insert(&'static [u64]),
    /// It finds that the first stage is full.
    Grow,
    /// A key that was inserted before it begins must be found.
    Look(u64),
}

/// Tries clients that do this. Returns how many executions there were.
fn explore(acts: &[&[Act]], switches: usize, losses: u32, unsealed: bool) -> Result<usize, String> {
    CHOICES.set(Choices::default());
    let mut executions = 0;
    loop {
        executions += 1;
        LOSSES.set(0);
        WORLD.set(World { unsealed, ..World::default() });
        let mut clients = clients(acts.len() as u64);
        LOSSES.set(losses);
        let (claims, done, uncertain) =
            (RefCell::new(BTreeMap::<u64, u64>::new()), RefCell::new(Vec::new()), Cell::new(0));
        let missed = Cell::new(false);
        let tasks = clients.iter_mut().zip(acts).map(|(client, acts)| {
            let (claims, done, uncertain, missed) = (&claims, &done, &uncertain, &missed);
            let task = async move {
                for act in *acts {
                    match act {
                        Act::Insert(keys) => {
                            let hashes: Vec<u64> = keys.iter().map(|&key| hash(key)).collect();
                            let mut new = vec![false; keys.len()];
                            client.insert_hashes(&hashes, &mut new).await.unwrap();
                            for (&key, new) in keys.iter().zip(new) {
                                *claims.borrow_mut().entry(key).or_default() += u64::from(new);
                                done.borrow_mut().push(key);
                            }
                        }
                        Act::Grow => client.grow().await.unwrap(),
                        Act::Look(key) => {
                            let inserted = done.borrow().contains(key);
                            let mut found = [false];
                            client.contains_hashes(&[hash(*key)], &mut found).await.unwrap();
                            missed.set(missed.get() | (inserted && !found[0]));
                        }
                    }
                }
                uncertain.set(uncertain.get() + client.uncertain());
            };
            Box::pin(task) as Task
        });
        run(tasks.collect(), switches);
        let surplus = claims.borrow().values().sum::<u64>().saturating_sub(claims.borrow().len() as u64);
        if claims.borrow().values().any(|claims| *claims == 0) || surplus > uncertain.get() || missed.get() {
            return Err(format!("{:?}, {} uncertain, missed: {}", claims.borrow(), uncertain.get(), missed.get()));
        }
        if !another() {
            return Ok(executions);
        }
    }
}

const A: Act = Act::Insert(&[1, 2]);
const B: Act = Act::Insert(&[2, 1]);
const ONE: Act = Act::Insert(&[1]);

/// Switches between clients that are tried, or those of `BLOOMLINE_SWITCHES`.
fn switches() -> usize {
    std::env::var("BLOOMLINE_SWITCHES").map_or(2, |switches| switches.parse().expect("a number"))
}

#[test]
fn a_key_is_claimed_once_while_the_filter_grows() {
    let mut executions = Vec::new();
    for (acts, more) in [
        (&[&[ONE][..], &[ONE], &[Act::Grow]][..], 1),
        (&[&[A, Act::Grow], &[B, Act::Grow]], 1),
        (&[&[Act::Grow, A], &[Act::Grow, B], &[ONE]], 0),
        (&[&[ONE], &[Act::Grow, Act::Grow, ONE], &[ONE, ONE]], 0),
    ] {
        executions.push(explore(acts, switches() + more, 0, false).unwrap());
    }
    println!("{executions:?} executions");
    assert!(executions.iter().sum::<usize>() > 1000, "{executions:?}");
}

#[test]
fn a_key_is_found_once_it_was_inserted() {
    for acts in [&[&[Act::Grow, ONE][..], &[Act::Look(1), Act::Look(1)]][..], &[&[ONE], &[Act::Grow], &[Act::Look(1)]]]
    {
        explore(acts, switches() + 1, 0, false).unwrap();
    }
}

#[test]
fn lost_answers_lose_no_key_and_those_that_repeat_are_counted() {
    for acts in [&[&[ONE][..], &[ONE], &[Act::Grow]][..], &[&[A, Act::Grow], &[B]]] {
        explore(acts, switches(), 1, false).unwrap();
    }
}

/// The model finds what is wrong.
#[test]
fn without_seals_a_key_is_claimed_twice() {
    let error = explore(&[&[ONE], &[Act::Grow, ONE]], 2, 0, true).unwrap_err();
    assert!(error.contains("{1: 2}"), "{error}");
}
