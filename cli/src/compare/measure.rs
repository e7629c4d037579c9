//! Speeds: the contenders of one size take turns, so that a noisy machine is noisy for all.

use super::contenders::{Contender, Kind};
use super::keys::{self, ABSENT, PRESENT};
use super::loads::{LoadKind, on_threads};
use super::machine;
use super::progress::Progress;
use super::result::{LoadRow, OnThreads, Row, Time};
use crate::error::Error;
use std::hint::black_box;
use std::time::Instant;

/// How to measure.
pub struct Plan {
    pub bits_per_key: f64,
    /// Distinct keys in a round.
    pub round_keys: u64,
    pub rounds: u32,
    /// Numbers of threads, from 1 up.
    pub threads: Vec<usize>,
}

/// The percentages of keys that a query finds.
const HITS: [u64; 3] = [0, 50, 100];

impl Plan {
    /// The keys that a filter is filled with.
    pub fn keys(&self, bytes: usize) -> u64 {
        ((bytes as f64 * 8.0 / self.bits_per_key) as u64).max(1)
    }

    /// How often a small filter is filled in a round, that as many keys are inserted as in other rounds.
    fn fills(&self, bytes: usize) -> u64 {
        self.round_keys.div_ceil(self.keys(bytes))
    }

    /// The parts that a large filter is filled in: one to touch its memory first, and one for each round.
    fn parts(&self, bytes: usize) -> u64 {
        self.keys(bytes).div_ceil(self.round_keys).max(u64::from(self.rounds) + 1)
    }

    /// The keys that pass through one contender and one load, for the progress bar.
    pub fn work(&self, bytes: usize) -> (u64, u64) {
        let (keys, rounds, threads) = (self.keys(bytes), u64::from(self.rounds), self.threads.len() as u64);
        let filled = if keys < self.round_keys { keys + rounds * self.fills(bytes) * keys } else { keys };
        let queried = rounds * self.round_keys * (HITS.len() as u64 + threads - 1);
        (filled + queried, rounds * threads * self.round_keys)
    }
}

/// A contender, and what was measured of it.
struct Entrant<'a> {
    kind: &'a Kind,
    filter: Box<dyn Contender>,
    resident: Option<u64>,
    insert: Vec<f64>,
    queries: [Vec<f64>; HITS.len()],
    passed: usize,
    threads: Vec<Vec<f64>>,
}

/// A row for each contender at one size.
pub fn speeds(plan: &Plan, kinds: &[&Kind], bytes: usize, progress: &Progress) -> Result<Vec<Row>, Error> {
    let mut entrants = fill(plan, kinds, bytes, progress)?;
    query(plan, &mut entrants, bytes, progress);
    Ok(entrants.into_iter().map(|entrant| entrant.row(plan, bytes)).collect())
}

/// Filters at their planned load, and the times it took.
fn fill<'a>(plan: &Plan, kinds: &[&'a Kind], bytes: usize, progress: &Progress) -> Result<Vec<Entrant<'a>>, Error> {
    let keys = plan.keys(bytes);
    let small = keys < plan.round_keys;
    let parts = if small { 1 } else { plan.parts(bytes) };
    let part = |i: u64| (u128::from(keys) * u128::from(i) / u128::from(parts)) as u64;
    let mut hashes = keys::hashes(PRESENT, 0, part(1));
    // `true`, so that its pages are there, and do not count as those of the first filter. A part may be longer by one.
    let mut new = vec![true; hashes.len() + 1];
    let mut entrants = Vec::new();
    for kind in kinds {
        progress.show(bytes, "insert", kind.name);
        let before = machine::resident_bytes();
        let mut filter = (kind.for_memory)(bytes, keys)?;
        filter.insert(&hashes, &mut new[..hashes.len()]);
        let grown = |after: u64| before.map(|before| after.saturating_sub(before));
        let resident = machine::resident_bytes().and_then(grown);
        progress.done(hashes.len() as u64);
        let threads = vec![Vec::new(); plan.threads.len() - 1];
        let (insert, queries) = (Vec::new(), Default::default());
        entrants.push(Entrant { kind, filter, resident, insert, queries, passed: 0, threads });
    }
    for i in 1..parts {
        hashes = keys::hashes(PRESENT, part(i), part(i + 1));
        for entrant in &mut entrants {
            progress.show(bytes, "insert", entrant.kind.name);
            let seconds = timed(|| entrant.filter.insert(&hashes, &mut new[..hashes.len()]));
            entrant.insert.push(seconds * 1e9 / hashes.len() as f64);
            progress.done(hashes.len() as u64);
        }
    }
    if small {
        let fills = plan.fills(bytes);
        for _ in 0..plan.rounds {
            for entrant in &mut entrants {
                progress.show(bytes, "insert", entrant.kind.name);
                let mut seconds = 0.0;
                for _ in 0..fills {
                    entrant.filter = (entrant.kind.for_memory)(bytes, keys)?;
                    seconds += timed(|| entrant.filter.insert(&hashes, &mut new[..hashes.len()]));
                }
                entrant.insert.push(seconds * 1e9 / (fills * keys) as f64);
                progress.done(fills * keys);
            }
        }
    }
    Ok(entrants)
}

fn query(plan: &Plan, entrants: &mut [Entrant], bytes: usize, progress: &Progress) {
    let count = plan.round_keys;
    let held = plan.keys(bytes).min(count);
    let probes = HITS.map(|percent| keys::mixed(count, held, percent));
    let mut found = vec![false; count as usize];
    for _ in 0..plan.rounds {
        for (i, (probes, percent)) in probes.iter().zip(HITS).enumerate() {
            for entrant in &mut *entrants {
                progress.show(bytes, &format!("query, {percent} % hits"), entrant.kind.name);
                let mut passed = 0;
                let seconds = timed(|| passed = entrant.filter.contains(probes, &mut found));
                entrant.queries[i].push(seconds * 1e9 / count as f64);
                if percent == 0 {
                    entrant.passed = passed;
                }
                progress.done(count);
            }
        }
        for (i, &threads) in plan.threads[1..].iter().enumerate() {
            for entrant in &mut *entrants {
                progress.show(bytes, &format!("query on {threads} threads"), entrant.kind.name);
                let filter = &entrant.filter;
                let run = |hashes: &[u64], found: &mut [bool]| _ = black_box(filter.contains(hashes, found));
                let seconds = timed(|| on_threads(&probes[1], &mut found, threads, run));
                entrant.threads[i].push(seconds * 1e9 / count as f64);
                progress.done(count);
            }
        }
    }
}

impl Entrant<'_> {
    fn row(self, plan: &Plan, bytes: usize) -> Row {
        let keys = plan.keys(bytes);
        let [query_0, query_50, query_100] = self.queries.map(Time::of);
        let first = OnThreads { threads: 1, time: query_50 };
        let others = plan.threads[1..].iter().zip(self.threads);
        let others = others.map(|(&threads, rounds)| OnThreads { threads, time: Time::of(rounds) });
        Row {
            contender: self.kind.name.to_owned(),
            size_bytes: bytes,
            memory_bytes: self.filter.memory_bytes(),
            resident_bytes: self.resident,
            keys,
            bits_per_key: self.filter.memory_bytes() as f64 * 8.0 / keys as f64,
            probes: self.filter.probes(),
            modelled_fpr: self.filter.modelled_fpr(keys),
            measured_fpr: self.passed as f64 / plan.round_keys as f64,
            insert: Time::of(self.insert),
            query_0,
            query_50,
            query_100,
            query_threads: [first].into_iter().chain(others).collect(),
        }
    }
}

/// A row for each load at one size: keys go into an empty filter, up to its planned load, then into an empty one again.
pub fn loads(plan: &Plan, kinds: &[&LoadKind], bytes: usize, progress: &Progress) -> Result<Vec<LoadRow>, Error> {
    let keys = plan.keys(bytes);
    let part = keys.min(plan.round_keys);
    let mut sides = Vec::new();
    for kind in kinds {
        let mut load = (kind.make)(bytes, keys, &plan.threads)?;
        // Touches the memory.
        load.clear();
        sides.push((kind, load, vec![Vec::new(); plan.threads.len()]));
    }
    let mut at = 0;
    for _ in 0..plan.rounds {
        for (i, &threads) in plan.threads.iter().enumerate() {
            let mut seconds = vec![0.0; kinds.len()];
            for _ in 0..plan.fills(bytes) {
                let full = at + part > keys;
                at = if full { 0 } else { at };
                let hashes = keys::hashes(PRESENT, at, at + part);
                at += part;
                for ((kind, load, _), seconds) in sides.iter_mut().zip(&mut seconds) {
                    progress.show(bytes, &format!("{} on {threads} threads", kind.operation), kind.contender);
                    if full {
                        load.clear();
                    }
                    *seconds += timed(|| load.load(&hashes, threads));
                    progress.done(part);
                }
            }
            for ((_, _, rounds), seconds) in sides.iter_mut().zip(seconds) {
                rounds[i].push(seconds * 1e9 / (part * plan.fills(bytes)) as f64);
            }
        }
    }
    let row = |(kind, _, rounds): (&&LoadKind, _, Vec<Vec<f64>>)| LoadRow {
        contender: kind.contender.to_owned(),
        operation: kind.operation.to_owned(),
        interface: kind.interface.to_owned(),
        size_bytes: bytes,
        threads: plan
            .threads
            .iter()
            .zip(rounds)
            .map(|(&threads, rounds)| OnThreads { threads, time: Time::of(rounds) })
            .collect(),
    };
    Ok(sides.into_iter().map(row).collect())
}

/// The share of absent keys that pass, of `count`.
pub fn false_positive_rate(filter: &dyn Contender, count: u64) -> f64 {
    const PORTION: u64 = 1 << 20;
    let mut found = vec![false; PORTION as usize];
    let mut passed = 0;
    for from in (0..count).step_by(PORTION as usize) {
        let hashes = keys::hashes(ABSENT, from, count.min(from + PORTION));
        passed += filter.contains(&hashes, &mut found[..hashes.len()]);
    }
    passed as f64 / count as f64
}

fn timed(run: impl FnOnce()) -> f64 {
    let start = Instant::now();
    run();
    start.elapsed().as_secs_f64()
}
