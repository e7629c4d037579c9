//! The paired harness: the sides take turns, so that a noisy machine is noisy for all.

use std::hint::black_box;
use std::time::{Duration, Instant};

/// What one round of a side did.
pub struct Round {
    pub time: Duration,
    /// How many keys were answered with `true`: found, or new.
    pub trues: usize,
}

/// One side: its name, the keys of a round, the round, and how many of them it has played.
pub struct Side<'a> {
    pub name: String,
    pub keys: usize,
    round: Box<dyn FnMut(u64) -> Round + 'a>,
    pub played: u64,
}

impl<'a> Side<'a> {
    pub fn new(name: impl Into<String>, keys: usize, round: impl FnMut(u64) -> Round + 'a) -> Self {
        Self { name: name.into(), keys, round: Box::new(round), played: 0 }
    }

    /// A round that passes all of `keys` and is timed as a whole.
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

    /// The next round.
    pub fn play(&mut self) -> Round {
        self.played += 1;
        (self.round)(self.played - 1)
    }
}

pub fn timed(run: impl FnOnce() -> usize) -> Round {
    let start = Instant::now();
    let trues = black_box(run());
    Round { time: start.elapsed(), trues }
}

/// Plays the rounds in turns and prints a line a side: median ns a key, the median ratio to the first side, and the
/// share of keys that the last round answered with `true`, which is the measured rate where all keys are absent.
pub fn duel(title: &str, mut sides: Vec<Side>) {
    let rounds = if super::smoke() { 1 } else { 7 };
    let mut times = vec![Vec::new(); sides.len()];
    let mut trues = vec![0.0; sides.len()];
    for round in 0..=rounds {
        for (i, side) in sides.iter_mut().enumerate() {
            let Round { time, trues: count } = side.play();
            trues[i] = count as f64 / side.keys as f64;
            // The first round warms up.
            if round > 0 {
                times[i].push(time.as_secs_f64() * 1e9 / side.keys as f64);
            }
        }
    }
    println!("{title}");
    for ((side, own), trues) in sides.iter().zip(&times).zip(&trues) {
        let ratios = own.iter().zip(&times[0]).map(|(own, first)| own / first).collect();
        let (time, ratio) = (median(own.clone()), median(ratios));
        println!("  {:44} {time:8.2} ns   x{ratio:<6.2} {:7.3} % true", side.name, trues * 100.0);
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
