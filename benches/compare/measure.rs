//! Speeds: the contenders of one size take turns, so that a noisy machine is noisy for all.

use super::contender::{BoxedContender, Contender};
use super::kinds::Kind;
use super::loads::{LoadKind, on_threads};
use super::machine;
use super::result::{LeftOut, LoadRow, OnThreads, Row, Time};
use bloomline_benches::HITS;
use bloomline_benches::hashes::{PRESENT, probe_keys, range};
use bloomline_benches::turns::{Round, Side, interleave, per_key, timed};
use indicatif::{HumanBytes, ProgressBar};
use rayon::ThreadPool;
use std::cell::RefCell;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// The method of measurement.
pub struct Method {
    pub bits_per_key: f64,
    /// Distinct keys in a round.
    pub round_keys: u64,
    pub rounds: u32,
    /// Of one thread, and of more and more.
    pub pools: Vec<ThreadPool>,
    /// Counts the keys that passed.
    pub progress: ProgressBar,
}

impl Method {
    /// The keys that a filter is filled with.
    pub fn keys(&self, bytes: usize) -> u64 {
        ((bytes as f64 * 8.0 / self.bits_per_key) as u64).max(1)
    }

    /// Returns the number of times that a round fills a small filter, to insert as many keys as other rounds do.
    fn fills(&self, bytes: usize) -> u64 {
        self.round_keys.div_ceil(self.keys(bytes))
    }

    /// The parts that a filter is filled in. A large one has one to touch its memory first, and one for each round.
    fn parts(&self, bytes: usize) -> u64 {
        let keys = self.keys(bytes);
        if keys < self.round_keys { 1 } else { keys.div_ceil(self.round_keys).max(u64::from(self.rounds) + 1) }
    }

    /// The keys of a part, from 0 on.
    fn part(&self, bytes: usize, part: u64) -> Vec<u64> {
        let (keys, parts) = (self.keys(bytes), self.parts(bytes));
        let start = |part: u64| (u128::from(keys) * u128::from(part) / u128::from(parts)) as u64;
        range(PRESENT, start(part)..start(part + 1))
    }

    /// The keys that pass through one contender and one load.
    pub fn work(&self, bytes: usize) -> (u64, u64) {
        let (keys, rounds, pools) = (self.keys(bytes), u64::from(self.rounds), self.pools.len() as u64);
        let filled = if keys < self.round_keys { keys + rounds * self.fills(bytes) * keys } else { keys };
        let queried = rounds * self.round_keys * (HITS.len() as u64 + pools - 1);
        (filled + queried, rounds * pools * self.round_keys)
    }

    /// Shows what is measured next.
    fn show(&self, bytes: usize, name: &str) {
        self.progress.set_message(format!("{}, {name}", HumanBytes(bytes as u64)));
    }

    /// Inserts keys; how long that took.
    fn insert(
        &self,
        bytes: usize,
        kind: &Kind,
        filter: &mut dyn Contender,
        hashes: &[u64],
        new: &mut [bool],
    ) -> Duration {
        self.show(bytes, &format!("insert, {}", kind.name));
        let round = timed(|| filter.insert(hashes, new));
        self.progress.inc(hashes.len() as u64);
        round.time
    }

    /// Plays all rounds.
    fn interleave(&self, bytes: usize, sides: &mut [Side]) {
        interleave(sides, self.rounds, |side| {
            self.show(bytes, &side.name);
            side.run_round();
            self.progress.inc(side.keys as u64);
        });
    }

    /// The times on all numbers of threads.
    fn on_threads(&self, times: impl IntoIterator<Item = Time>) -> Vec<OnThreads> {
        let on = |(pool, time): (&ThreadPool, Time)| OnThreads { threads: pool.current_num_threads(), time };
        self.pools.iter().zip(times).map(on).collect()
    }
}

/// The property that the filters of a table have in common, beside their keys.
#[derive(Clone, Copy)]
pub enum Equal {
    Memory,
    Rate(f64),
}

impl Equal {
    fn make(self, kind: &Kind, bytes: usize, keys: u64) -> BoxedContender {
        match (self, kind.for_rate) {
            (Self::Memory, _) => (kind.for_memory)(bytes, keys),
            (Self::Rate(rate), Some(for_rate)) => for_rate(keys, rate),
            (Self::Rate(_), None) => Err("it cannot be asked for a rate".to_owned()),
        }
    }
}

/// The memory that a size needs: to take turns, all its filters are in memory at once.
pub fn memory_needed(bytes: usize, filters: usize) -> u64 {
    /// Keys, answers, and the room that a bulk load takes.
    const BUFFERS: u64 = 256 << 20;
    (bytes as u64).saturating_mul(filters as u64).saturating_add(BUFFERS)
}

/// A contender at its planned load.
struct Filled<'a> {
    kind: &'a Kind,
    filter: Box<dyn Contender>,
    resident: Option<u64>,
    /// Nanoseconds a key, of each timed insert.
    inserts: Vec<f64>,
}

/// A row for each contender at one size, but for those that are left out.
pub fn speeds(method: &Method, kinds: &[&Kind], bytes: usize, equal: Equal, left_out: &mut Vec<LeftOut>) -> Vec<Row> {
    /// The place of half hits in [`HITS`].
    const HALF: usize = 1;
    let filled = fill(method, kinds, bytes, equal, left_out);
    let (keys, count) = (method.keys(bytes), method.round_keys);
    let probes = HITS.map(|(percent, _)| probe_keys(count as usize, keys.min(count), percent));
    let found = RefCell::new(vec![false; count as usize]);
    let mut sides = Vec::new();
    for (probes, (_, hits)) in probes.iter().zip(HITS) {
        sides.extend(filled.iter().map(|Filled { kind, filter, .. }| {
            let round = |_| timed(|| filter.contains(probes, &mut found.borrow_mut()));
            Side::new(format!("query, {hits}, {}", kind.name), probes.len(), round)
        }));
    }
    for pool in &method.pools[1..] {
        let (probes, found) = (&probes[HALF], &found);
        sides.extend(filled.iter().map(|Filled { kind, filter, .. }| {
            let round = move |_| {
                let run = |hashes: &[u64], found: &mut [bool]| _ = black_box(filter.contains(hashes, found));
                timed(|| {
                    on_threads(probes, &mut found.borrow_mut(), pool, run);
                    0 // the threads do not add up what they found
                })
            };
            Side::new(format!("query on {} threads, {}", pool.current_num_threads(), kind.name), probes.len(), round)
        }));
    }
    method.interleave(bytes, &mut sides);

    let row = |(i, Filled { kind, filter, resident, inserts }): (usize, &Filled)| {
        let side = |turn: usize| &sides[turn * filled.len() + i];
        let query = |turn| Time::from_rounds(&side(turn).times);
        Row {
            contender: kind.name.to_owned(),
            size_bytes: bytes,
            memory_bytes: filter.memory_bytes(),
            resident_bytes: *resident,
            keys,
            bits_per_key: filter.memory_bytes() as f64 * 8.0 / keys as f64,
            probes: filter.probes(),
            modelled_fpr: filter.modelled_fpr(keys),
            measured_fpr: side(0).trues,
            insert: Time::from_rounds(inserts),
            query_0: query(0),
            query_50: query(HALF),
            query_100: query(2),
            query_threads: method.on_threads([HALF].into_iter().chain(HITS.len()..).map(query)),
        }
    };
    filled.iter().enumerate().map(row).collect()
}

/// Contenders at their planned load, and the times that it took.
fn fill<'a>(
    method: &Method,
    kinds: &[&'a Kind],
    bytes: usize,
    equal: Equal,
    left_out: &mut Vec<LeftOut>,
) -> Vec<Filled<'a>> {
    let mut filled = fill_first_part(method, kinds, bytes, equal, left_out);
    match method.parts(bytes) {
        1 => fill_again(method, bytes, equal, &mut filled),
        parts => (1..parts).for_each(|part| insert_part(method, bytes, part, &mut filled)),
    }
    filled
}

/// Contenders with the first part of their keys, and static ones with all.
fn fill_first_part<'a>(
    method: &Method,
    kinds: &[&'a Kind],
    bytes: usize,
    equal: Equal,
    left_out: &mut Vec<LeftOut>,
) -> Vec<Filled<'a>> {
    let (keys, hashes) = (method.keys(bytes), method.part(bytes, 0));
    // Written before, so that its pages do not count as those of the first filter.
    let mut new = vec![true; hashes.len()];
    let available = machine::available_bytes().unwrap_or(u64::MAX);
    let mut filled = Vec::new();
    for &kind in kinds {
        // A static filter is built of all keys at once: they, their answers and what the build takes are in memory too.
        let large = kind.build_bytes.filter(|_| method.parts(bytes) > 1);
        let build = large.map(|build_bytes| build_bytes(keys) + 9 * keys);
        let fits = |build: u64| memory_needed(bytes, kinds.len()).saturating_add(build) <= available;
        let mut all = build.filter(|&build| fits(build)).map(|_| (range(PRESENT, 0..keys), vec![true; keys as usize]));
        // Before the filter is made, because some write all of their memory then.
        let before = machine::resident_bytes();
        let made = match build {
            Some(build) if all.is_none() => Err(format!("its build takes {} more memory", HumanBytes(build))),
            _ => equal.make(kind, bytes, keys),
        };
        let mut filter = match made {
            Ok(filter) => filter,
            Err(reason) => {
                let at = match equal {
                    Equal::Memory => HumanBytes(bytes as u64).to_string(),
                    Equal::Rate(rate) => format!("a rate of {rate} for {keys} keys"),
                };
                left_out.push(LeftOut { contender: kind.name.to_owned(), at, reason });
                continue;
            }
        };
        let mut inserts = Vec::new();
        match &mut all {
            Some((hashes, new)) => {
                let time = method.insert(bytes, kind, &mut *filter, hashes, new);
                inserts.push(per_key(time, hashes.len()));
            }
            None => _ = method.insert(bytes, kind, &mut *filter, &hashes, &mut new),
        }
        let resident = machine::resident_bytes().zip(before).map(|(after, before)| after.saturating_sub(before));
        filled.push(Filled { kind, filter, resident, inserts });
    }
    filled
}

/// Fills small filters anew in each round.
fn fill_again(method: &Method, bytes: usize, equal: Equal, filled: &mut [Filled]) {
    let (keys, fills, hashes) = (method.keys(bytes), method.fills(bytes), method.part(bytes, 0));
    let mut new = vec![true; hashes.len()];
    for _ in 0..method.rounds {
        for Filled { kind, filter, inserts, .. } in &mut *filled {
            let mut time = Duration::ZERO;
            for _ in 0..fills {
                if let Ok(empty) = equal.make(kind, bytes, keys) {
                    *filter = empty;
                }
                time += method.insert(bytes, kind, filter.as_mut(), &hashes, &mut new);
            }
            inserts.push(per_key(time, (fills * keys) as usize));
        }
    }
}

/// Inserts a part of the keys into large filters.
fn insert_part(method: &Method, bytes: usize, part: u64, filled: &mut [Filled]) {
    let hashes = method.part(bytes, part);
    let mut new = vec![true; hashes.len()];
    for Filled { kind, filter, inserts, .. } in filled.iter_mut().filter(|filled| filled.kind.build_bytes.is_none()) {
        let time = method.insert(bytes, kind, filter.as_mut(), &hashes, &mut new);
        inserts.push(per_key(time, hashes.len()));
    }
}

/// A row for each load at one size: keys go into an empty filter, up to its planned load, then into an empty one again.
pub fn loads(method: &Method, kinds: &[&LoadKind], bytes: usize) -> Result<Vec<LoadRow>, String> {
    let (keys, fills) = (method.keys(bytes), method.fills(bytes));
    let part = keys.min(method.round_keys);
    let empty = |kind: &&LoadKind| {
        let mut load = (kind.make)(bytes, keys).map_err(|error| format!("{}: {error}", kind.interface))?;
        // Touches the memory.
        load.clear();
        // With the number of its keys.
        Ok(RefCell::new((load, 0)))
    };
    let filled = kinds.iter().map(empty).collect::<Result<Vec<_>, String>>()?;
    let mut sides = Vec::new();
    for pool in &method.pools {
        sides.extend(kinds.iter().zip(&filled).map(|(kind, filled)| {
            let round = move |_| {
                let (load, held) = &mut *filled.borrow_mut();
                let mut time = Duration::ZERO;
                for _ in 0..fills {
                    if *held + part > keys {
                        load.clear();
                        *held = 0;
                    }
                    let hashes = range(PRESENT, *held..*held + part);
                    *held += part;
                    let start = Instant::now();
                    load.load(&hashes, pool);
                    time += start.elapsed();
                }
                Round { time, trues: 0 } // a bulk load does not tell how many were new
            };
            let name = format!("{} on {} threads, {}", kind.operation, pool.current_num_threads(), kind.contender);
            Side::new(name, (part * fills) as usize, round)
        }));
    }
    method.interleave(bytes, &mut sides);
    let row = |(i, kind): (usize, &&LoadKind)| LoadRow {
        contender: kind.contender.to_owned(),
        operation: kind.operation.to_owned(),
        interface: kind.interface.to_owned(),
        size_bytes: bytes,
        threads: method
            .on_threads(sides.iter().skip(i).step_by(kinds.len()).map(|side| Time::from_rounds(&side.times))),
    };
    Ok(kinds.iter().enumerate().map(row).collect())
}
