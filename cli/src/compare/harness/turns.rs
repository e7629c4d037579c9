//! The sides of a comparison take turns, so that a noisy machine is noisy for all.

use std::hint::black_box;
use std::time::{Duration, Instant};

/// What a side did in one round.
pub struct Round {
    pub time: Duration,
    /// How many keys were answered with `true`: found, or new.
    pub trues: usize,
}

/// One side: its name, and what it does in a round.
pub struct Side<'a> {
    pub name: String,
    /// The keys of a round.
    pub keys: usize,
    round: Box<dyn FnMut(u64) -> Round + 'a>,
    /// Nanoseconds a key, of each round so far.
    pub times: Vec<f64>,
    /// The share of its keys that the last round answered with `true`.
    pub trues: f64,
}

impl<'a> Side<'a> {
    /// `round` gets the number of the round, from 0.
    pub fn new(name: impl Into<String>, keys: usize, round: impl FnMut(u64) -> Round + 'a) -> Self {
        Self { name: name.into(), keys, round: Box::new(round), times: Vec::new(), trues: 0.0 }
    }

    /// Plays the next round, and returns how long it took.
    pub fn play(&mut self) -> Duration {
        let Round { time, trues } = (self.round)(self.times.len() as u64);
        self.times.push(per_key(time, self.keys));
        self.trues = trues as f64 / self.keys as f64;
        time
    }
}

/// Times `run`, which returns how many keys it answered with `true`.
pub fn timed(run: impl FnOnce() -> usize) -> Round {
    let start = Instant::now();
    let trues = black_box(run());
    Round { time: start.elapsed(), trues }
}

/// Nanoseconds a key.
pub fn per_key(time: Duration, keys: usize) -> f64 {
    time.as_secs_f64() * 1e9 / keys as f64
}

/// Plays the rounds, each side once in each.
pub fn take_turns(sides: &mut [Side], rounds: u32, mut play: impl FnMut(&mut Side)) {
    for _ in 0..rounds {
        sides.iter_mut().for_each(&mut play);
    }
}

/// The upper of the two in the middle, where their number is even.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
