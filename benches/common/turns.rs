//! The sides of a comparison take turns, so that a noisy machine is noisy for all.

use crate::smoke;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// The result of a side in one round.
pub struct Round {
    /// The duration of the round.
    pub time: Duration,
    /// The number of keys with the answer `true`: found, or new.
    pub trues: usize,
}

/// One side: its name, and what it does in a round.
pub struct Side<'a> {
    /// Its name in tables.
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

    /// A round passes all of `keys` and is timed as a whole.
    pub fn passing<K>(name: impl Into<String>, keys: &'a [K], pass: impl FnMut(&[K]) -> usize + 'a) -> Self {
        Self::prepared(name, keys, || (), pass)
    }

    /// The same after a preparation that is not timed.
    pub fn prepared<K>(
        name: impl Into<String>,
        keys: &'a [K],
        mut prepare: impl FnMut() + 'a,
        mut pass: impl FnMut(&[K]) -> usize + 'a,
    ) -> Self {
        Self::new(name, keys.len(), move |_| {
            prepare();
            timed(|| pass(keys))
        })
    }

    /// Plays the next round, and returns how long it took.
    pub fn run_round(&mut self) -> Duration {
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

/// The least nanoseconds that a round took, and what the last one made. There is at least one round.
pub fn best<T>(rounds: u32, mut round: impl FnMut() -> T) -> (f64, T) {
    let rounds = (0..rounds).map(|_| {
        let start = Instant::now();
        let made = black_box(round());
        (start.elapsed().as_nanos() as f64, made)
    });
    rounds.reduce(|(min, _), (time, made)| (time.min(min), made)).expect("at least one round")
}

/// Plays the rounds, each side once in each.
pub fn interleave(sides: &mut [Side], rounds: u32, mut run_round: impl FnMut(&mut Side)) {
    for _ in 0..rounds {
        sides.iter_mut().for_each(&mut run_round);
    }
}

/// The upper of the two in the middle, where their number is even.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Plays the rounds in turns and prints a line for each side: the median of its ns a key, the median ratio to the first
/// side, and the share of keys that its last round answered with `true`. Where all keys are absent, that share is the
/// measured false-positive rate.
pub fn duel(title: &str, mut sides: Vec<Side>) {
    let rounds = if smoke() { 1 } else { 7 };
    // The first round of these warms up.
    interleave(&mut sides, rounds + 1, |side| _ = side.run_round());
    println!("{title}");
    let times = |side: &Side| side.times[side.times.len() - rounds as usize..].to_vec();
    for side in &sides {
        let ratios = times(side).iter().zip(times(&sides[0])).map(|(own, first)| own / first).collect();
        let (time, ratio) = (median(times(side)), median(ratios));
        println!("  {:44} {time:8.2} ns   x{ratio:<6.2} {:7.3} % true", side.name, side.trues * 100.0);
    }
}
