//! Speeds: the contenders of one size take turns, so that a noisy machine is noisy for all.

use super::contender::{Contender, or_left_out};
use super::harness::HITS;
use super::harness::hashes::{self, PRESENT};
use super::harness::turns::{Side, per_key, take_turns, timed};
use super::kinds::Kind;
use super::loads::{LoadKind, on_threads};
use super::machine;
use super::progress::Progress;
use super::result::{LeftOut, LoadRow, OnThreads, Row, Time};
use crate::error::Error;
use crate::figures::readable_size;
use std::cell::RefCell;
use std::hint::black_box;
use std::time::Duration;

/// How to measure.
pub struct Method {
    pub bits_per_key: f64,
    /// Distinct keys in a round.
    pub round_keys: u64,
    pub rounds: u32,
    /// Numbers of threads, from 1 up.
    pub threads: Vec<usize>,
}

impl Method {
    /// The keys that a filter is filled with.
    pub fn keys(&self, bytes: usize) -> u64 {
        ((bytes as f64 * 8.0 / self.bits_per_key) as u64).max(1)
    }

    /// How often a round fills a small filter, to insert as many keys as other rounds do.
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
pub fn speeds(
    method: &Method,
    kinds: &[&Kind],
    bytes: usize,
    progress: &Progress,
    left_out: &mut Vec<LeftOut>,
) -> Result<Vec<Row>, Error> {
    /// The place of half hits in [`HITS`].
    const HALF: usize = 1;
    let filled = fill(method, kinds, bytes, progress, left_out)?;
    let probes = HITS.map(|(percent, _)| {
        let count = method.round_keys;
        hashes::probe_keys(count as usize, method.keys(bytes).min(count), percent)
    });
    let found = RefCell::new(vec![false; method.round_keys as usize]);
    let mut sides = Vec::new();
    for (probes, (_, hits)) in probes.iter().zip(HITS) {
        sides.extend(filled.iter().map(|Filled { kind, filter, .. }| {
            let round = |_| timed(|| filter.contains(probes, &mut found.borrow_mut()));
            Side::new(format!("query, {hits}, {}", kind.name), probes.len(), round)
        }));
    }
    for &threads in &method.threads[1..] {
        let (probes, found) = (&probes[HALF], &found);
        sides.extend(filled.iter().map(|Filled { kind, filter, .. }| {
            let round = move |_| {
                let run = |hashes: &[u64], found: &mut [bool]| _ = black_box(filter.contains(hashes, found));
                timed(|| {
                    on_threads(probes, &mut found.borrow_mut(), threads, run);
                    0 // the threads do not add up what they found
                })
            };
            Side::new(format!("query on {threads} threads, {}", kind.name), probes.len(), round)
        }));
    }
    take_turns(&mut sides, method.rounds, |side| progress.play(bytes, side));

    let keys = method.keys(bytes);
    let row = |(i, Filled { kind, filter, resident, inserts }): (usize, &Filled)| {
        let side = |turn: usize| &sides[turn * filled.len() + i];
        let query = |turn| Time::of(&side(turn).times);
        let on_threads = method.threads.iter().zip([HALF].into_iter().chain(HITS.len()..));
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
            insert: Time::of(inserts),
            query_0: query(0),
            query_50: query(HALF),
            query_100: query(2),
            query_threads: on_threads.map(|(&threads, turn)| OnThreads { threads, time: query(turn) }).collect(),
        }
    };
    Ok(filled.iter().enumerate().map(row).collect())
}

/// Contenders at their planned load, and the times that it took.
fn fill<'a>(
    method: &Method,
    kinds: &[&'a Kind],
    bytes: usize,
    progress: &Progress,
    left_out: &mut Vec<LeftOut>,
) -> Result<Vec<Filled<'a>>, Error> {
    let keys = method.keys(bytes);
    let small = keys < method.round_keys;
    let parts = if small { 1 } else { method.parts(bytes) };
    let start = |part: u64| (u128::from(keys) * u128::from(part) / u128::from(parts)) as u64;
    let part = |part| hashes::range(PRESENT, start(part)..start(part + 1));
    let show = |kind: &Kind| progress.show(bytes, &format!("insert, {}", kind.name));

    let mut hashes = part(0);
    // Written before, so that its pages do not count as those of the first filter. A later part may be longer by one key.
    let mut new = vec![true; hashes.len() + 1];
    let insert = |filter: &mut dyn Contender, hashes: &[u64], new: &mut [bool]| {
        let round = timed(|| filter.insert(hashes, &mut new[..hashes.len()]));
        progress.done(hashes.len() as u64);
        round.time
    };
    let room = machine::available_bytes().unwrap_or(u64::MAX);
    let mut filled = Vec::new();
    for &kind in kinds {
        show(kind);
        // A static filter is built of all keys at once: they, their answers and what the build takes are in memory too.
        let build = kind.build_bytes.filter(|_| !small).map(|build_bytes| build_bytes(keys) + 9 * keys);
        let made = match build {
            Some(build) if memory_needed(bytes, kinds.len()).saturating_add(build) > room => {
                Err(format!("its build takes {} more memory", readable_size(build as usize)))
            }
            _ => or_left_out((kind.for_memory)(bytes, keys))?,
        };
        let mut filter = match made {
            Ok(filter) => filter,
            Err(reason) => {
                left_out.push(LeftOut { contender: kind.name.to_owned(), at: readable_size(bytes), reason });
                continue;
            }
        };
        let all = build.map(|_| (hashes::range(PRESENT, 0..keys), vec![true; keys as usize]));
        let before = machine::resident_bytes();
        let mut inserts = Vec::new();
        match all {
            Some((hashes, mut new)) => inserts.push(per_key(insert(&mut *filter, &hashes, &mut new), hashes.len())),
            None => _ = insert(&mut *filter, &hashes, &mut new),
        }
        let grown = |after: u64| before.map(|before| after.saturating_sub(before));
        filled.push(Filled { kind, filter, resident: machine::resident_bytes().and_then(grown), inserts });
    }
    for i in 1..parts {
        hashes = part(i);
        for Filled { kind, filter, inserts, .. } in filled.iter_mut().filter(|filled| filled.kind.build_bytes.is_none())
        {
            show(kind);
            inserts.push(per_key(insert(&mut **filter, &hashes, &mut new), hashes.len()));
        }
    }
    if small {
        let fills = method.fills(bytes);
        for _ in 0..method.rounds {
            for Filled { kind, filter, inserts, .. } in &mut filled {
                show(kind);
                let mut time = Duration::ZERO;
                for _ in 0..fills {
                    if let Ok(empty) = or_left_out((kind.for_memory)(bytes, keys))? {
                        *filter = empty;
                    }
                    time += insert(&mut **filter, &hashes, &mut new);
                }
                inserts.push(per_key(time, (fills * keys) as usize));
            }
        }
    }
    Ok(filled)
}

/// A row for each load at one size: keys go into an empty filter, up to its planned load, then into an empty one again.
pub fn loads(method: &Method, kinds: &[&LoadKind], bytes: usize, progress: &Progress) -> Result<Vec<LoadRow>, Error> {
    let (keys, fills) = (method.keys(bytes), method.fills(bytes));
    let part = keys.min(method.round_keys);
    let mut sides = Vec::new();
    for kind in kinds {
        let mut load = (kind.make)(bytes, keys, &method.threads)?;
        // Touches the memory.
        load.clear();
        sides.push((kind, load, vec![Vec::new(); method.threads.len()]));
    }
    let mut at = 0;
    for _ in 0..method.rounds {
        for (i, &threads) in method.threads.iter().enumerate() {
            let mut times = vec![Duration::ZERO; kinds.len()];
            for _ in 0..fills {
                let full = at + part > keys;
                at = if full { 0 } else { at };
                let hashes = hashes::range(PRESENT, at..at + part);
                at += part;
                for ((kind, load, _), time) in sides.iter_mut().zip(&mut times) {
                    progress.show(bytes, &format!("{} on {threads} threads, {}", kind.operation, kind.contender));
                    if full {
                        load.clear();
                    }
                    *time += timed(|| {
                        load.load(&hashes, threads);
                        0 // a bulk load does not tell how many were new
                    })
                    .time;
                    progress.done(part);
                }
            }
            for ((_, _, rounds), time) in sides.iter_mut().zip(times) {
                rounds[i].push(per_key(time, (part * fills) as usize));
            }
        }
    }
    let row = |(kind, _, rounds): (&&LoadKind, _, Vec<Vec<f64>>)| LoadRow {
        contender: kind.contender.to_owned(),
        operation: kind.operation.to_owned(),
        interface: kind.interface.to_owned(),
        size_bytes: bytes,
        threads: (method.threads.iter().zip(rounds))
            .map(|(&threads, rounds)| OnThreads { threads, time: Time::of(&rounds) })
            .collect(),
    };
    Ok(sides.into_iter().map(row).collect())
}
