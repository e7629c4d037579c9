//! Paired timings against the peers: the sides take turns in one run, so that a noisy machine is noisy for all, and the
//! table quotes medians and ratios. docs/BENCHMARKS.md is made with it.
//!
//! ```text
//! cargo bench --bench duel                 all sizes (about six minutes, 10 GiB of memory)
//! cargo bench --bench duel -- 256K 16M     some sizes
//! ```
//!
//! All filters have the same memory, 12 bits a key, k = 8, and the load they are planned for. The peers' filters are
//! brought to that load with random bits of the same density (filling them key by key at 1 GiB takes minutes and
//! changes nothing that is timed), then with the keys of the hits, by their own insert.

mod common;

use bloomline::{AtomicBloomFilter, Kernel};
use common::*;
use std::hint::black_box;
use std::time::{Duration, Instant};

const ROUNDS: usize = 7;

/// One side: its name and a round, which reports the operations done and the time they took.
struct Side<'a> {
    name: String,
    round: Box<dyn FnMut(u64) -> (usize, Duration) + 'a>,
}

impl<'a> Side<'a> {
    /// A round that answers all of `hashes` and is timed as a whole.
    fn queries(name: impl Into<String>, hashes: &'a [u64], mut all: impl FnMut(&[u64]) -> usize + 'a) -> Self {
        Self::timed(name, move |_| {
            let start = Instant::now();
            black_box(all(black_box(hashes)));
            (hashes.len(), start.elapsed())
        })
    }

    fn timed(name: impl Into<String>, round: impl FnMut(u64) -> (usize, Duration) + 'a) -> Self {
        Self { name: name.into(), round: Box::new(round) }
    }
}

/// Plays the rounds in turns and prints a line a side: median ns a key, and the median ratio to the first side.
fn duel(title: &str, mut sides: Vec<Side>) {
    let mut times = vec![Vec::new(); sides.len()];
    for round in 0..=ROUNDS as u64 {
        for (side, times) in sides.iter_mut().zip(&mut times) {
            let (operations, time) = (side.round)(round);
            // The first round warms up.
            if round > 0 {
                times.push(time.as_secs_f64() * 1e9 / operations as f64);
            }
        }
    }
    println!("{title}");
    for (side, own) in sides.iter().zip(&times) {
        let ratios = own.iter().zip(&times[0]).map(|(own, first)| own / first).collect();
        println!("  {:28} {:8.2} ns   x{:<6.2}", side.name, median(own.clone()), median(ratios));
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The share of bits set at the planned load, 1 - e^(-8/12), in 256ths.
const DENSITY: u64 = 125;

fn random_words(bytes: usize) -> Vec<u64> {
    let word = |i: u64| {
        (0..8).fold(0, |word, bit| {
            let random = hash(4, i * 8 + bit);
            if DENSITY >> bit & 1 == 1 { word | random } else { word & random }
        })
    };
    (0..bytes as u64 / 8).map(word).collect()
}

fn fastbloom(bytes: usize, present: &[u64]) -> fastbloom::BloomFilter {
    let mut filter = fastbloom::BloomFilter::from_vec(random_words(bytes)).hashes(PROBES);
    present.iter().for_each(|&hash| {
        filter.insert_hash(hash);
    });
    filter
}

fn sbbf(bytes: usize, present: &[u64]) -> sbbf_rs_safe::Filter {
    let mut filter = sbbf_rs_safe::Filter::new(8, bytes);
    for (target, word) in filter.as_bytes_mut().chunks_exact_mut(8).zip(random_words(bytes)) {
        target.copy_from_slice(&word.to_le_bytes());
    }
    present.iter().for_each(|&hash| {
        filter.insert_hash(hash);
    });
    filter
}

/// Random 64-byte lines read through the same ring of prefetches, one word of each: what the memory gives.
struct RawLines {
    map: memmap2::MmapMut,
}

impl RawLines {
    fn new(bytes: usize) -> Self {
        let huge = 2 << 20;
        let mut map = memmap2::MmapMut::map_anon(bytes + huge).unwrap();
        let _ = map.advise(memmap2::Advice::HugePage);
        map.fill(1);
        Self { map }
    }

    #[allow(unsafe_code)]
    fn read(&self, hashes: &[u64]) -> usize {
        const AHEAD: usize = 64;
        let lines = (self.map.len() - (2 << 20)) / 64;
        let padding = self.map.as_ptr().align_offset(64);
        let place = |hash: u64| padding + ((u128::from(hash) * lines as u128) >> 64) as usize * 64;
        let prefetch = |place: usize| {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: a prefetch has no effect on memory.
            unsafe {
                use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
                _mm_prefetch::<_MM_HINT_T0>(self.map.as_ptr().wrapping_add(place).cast());
            }
        };
        let mut ring = [0; AHEAD];
        let (first, rest) = hashes.split_at(AHEAD);
        for (slot, &hash) in ring.iter_mut().zip(first) {
            *slot = place(hash);
            prefetch(*slot);
        }
        let mut sum = 0;
        for (i, &hash) in rest.iter().enumerate() {
            let next = place(hash);
            prefetch(next);
            sum += usize::from(self.map[std::mem::replace(&mut ring[i % AHEAD], next)]);
        }
        sum
    }
}

fn queries(name: &str, bytes: usize) {
    let planned = planned_keys(bytes);
    for (percent, kind) in [(0, "misses"), (50, "half hits"), (100, "hits")] {
        let hashes = probe_keys(planned, percent);
        let present: Vec<u64> = (0..BATCH as u64)
            .filter(|&i| hash(3, i) % 100 < percent)
            .map(|i| hash(PRESENT, (hash(3, i) >> 8) % planned))
            .collect();
        let mut found = vec![false; BATCH];
        let filters: Vec<_> = Kernel::available().map(|kernel| filled(bytes, kernel)).collect();
        let fast = fastbloom(bytes, &present);
        let split = sbbf(bytes, &present);
        let raw = RawLines::new(bytes);
        let rate = filters[0].contains_hashes(&hashes, &mut found) as f64 / BATCH as f64;
        let count = |contains: &dyn Fn(u64) -> bool| hashes.iter().filter(|&&hash| contains(hash)).count() as f64;
        println!(
            "{name}, {kind}: found {:.3} % (bloomline), {:.3} % (fastbloom), {:.3} % (sbbf-rs)",
            rate * 100.0,
            count(&|hash| fast.contains_hash(hash)) / BATCH as f64 * 100.0,
            count(&|hash| split.contains_hash(hash)) / BATCH as f64 * 100.0,
        );
        let mut sides = Vec::new();
        for filter in &filters {
            let mut found = vec![false; BATCH];
            sides.push(Side::queries(format!("contains_hashes {}", filter.kernel()), &hashes, move |hashes| {
                filter.contains_hashes(hashes, &mut found)
            }));
        }
        sides.push(Side::queries("contains_hash", &hashes, |hashes| {
            hashes.iter().map(|&hash| usize::from(filters[0].contains_hash(hash))).sum()
        }));
        sides.push(Side::queries("fastbloom contains_hash", &hashes, |hashes| {
            hashes.iter().map(|&hash| usize::from(fast.contains_hash(hash))).sum()
        }));
        sides.push(Side::queries("sbbf-rs contains_hash", &hashes, |hashes| {
            hashes.iter().map(|&hash| usize::from(split.contains_hash(hash))).sum()
        }));
        sides.push(Side::queries("raw lines", &hashes, |hashes| raw.read(hashes)));
        duel(&format!("{name}, query, {kind}"), sides);
    }
}

/// Inserts fresh keys, different ones each round: into an empty filter up to its planned load where that is less than
/// a batch (and again, until a batch is done), else into one at its planned load.
fn inserts(name: &str, bytes: usize) {
    let planned = planned_keys(bytes) as usize;
    let portion = planned.min(BATCH);
    let repeats = BATCH.div_ceil(portion);
    let from_empty = portion < BATCH;
    let fresh = move |round: u64| hashes(100 + round, portion * repeats);

    macro_rules! side {
        ($name:expr, $filter:ident, $clear:expr, $insert:expr) => {
            Side::timed($name, move |round| {
                let hashes = fresh(round);
                let mut time = Duration::ZERO;
                for portion in hashes.chunks(portion) {
                    if from_empty {
                        $clear(&mut $filter);
                    }
                    let start = Instant::now();
                    black_box($insert(&mut $filter, black_box(portion)));
                    time += start.elapsed();
                }
                (hashes.len(), time)
            })
        };
    }

    let mut sides = Vec::new();
    for kernel in Kernel::available() {
        let mut filter = if from_empty { empty(bytes, kernel) } else { filled(bytes, kernel) };
        let mut new = vec![false; portion];
        sides.push(side!(
            format!("insert_hashes {kernel}"),
            filter,
            |filter: &mut bloomline::BloomFilter| filter.clear(),
            |filter: &mut bloomline::BloomFilter, hashes: &[u64]| filter.insert_hashes(hashes, &mut new)
        ));
    }
    let mut single = filled(bytes, Kernel::detect());
    sides.push(side!(
        "insert_hash",
        single,
        |filter: &mut bloomline::BloomFilter| filter.clear(),
        |filter: &mut bloomline::BloomFilter, hashes: &[u64]| {
            hashes.iter().map(|&hash| usize::from(filter.insert_hash(hash))).sum::<usize>()
        }
    ));
    let mut fast = fastbloom(bytes, &[]);
    sides.push(side!(
        "fastbloom insert_hash",
        fast,
        |filter: &mut fastbloom::BloomFilter| filter.clear(),
        |filter: &mut fastbloom::BloomFilter, hashes: &[u64]| {
            hashes.iter().map(|&hash| usize::from(filter.insert_hash(hash))).sum::<usize>()
        }
    ));
    let mut split = sbbf(bytes, &[]);
    sides.push(side!(
        "sbbf-rs insert_hash",
        split,
        |filter: &mut sbbf_rs_safe::Filter| filter.reset(),
        |filter: &mut sbbf_rs_safe::Filter, hashes: &[u64]| {
            hashes.iter().map(|&hash| usize::from(filter.insert_hash(hash))).sum::<usize>()
        }
    ));
    duel(&format!("{name}, insert, fresh keys"), sides);

    let mut sides = Vec::new();
    let mut atomic = filled_atomic(bytes);
    let mut new = vec![false; portion];
    sides.push(side!(
        "atomic insert_hashes",
        atomic,
        |filter: &mut AtomicBloomFilter| filter.clear(),
        |filter: &mut AtomicBloomFilter, hashes: &[u64]| filter.insert_hashes(hashes, &mut new)
    ));
    let mut atomic = filled_atomic(bytes);
    sides.push(side!(
        "atomic insert_hash",
        atomic,
        |filter: &mut AtomicBloomFilter| filter.clear(),
        |filter: &mut AtomicBloomFilter, hashes: &[u64]| {
            hashes.iter().map(|&hash| usize::from(filter.insert_hash(hash))).sum::<usize>()
        }
    ));
    let words = random_words(bytes);
    let mut fast = fastbloom::AtomicBloomFilter::from_vec(words).hashes(PROBES);
    sides.push(side!(
        "fastbloom atomic insert_hash",
        fast,
        |filter: &mut fastbloom::AtomicBloomFilter| filter.clear(),
        |filter: &mut fastbloom::AtomicBloomFilter, hashes: &[u64]| {
            hashes.iter().map(|&hash| usize::from(filter.insert_hash(hash))).sum::<usize>()
        }
    ));
    duel(&format!("{name}, atomic insert, fresh keys, one thread"), sides);
}

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    for (name, bytes) in SIZES {
        let short = name.replace(" ", "").replace("iB", "");
        if wanted.is_empty() || wanted.contains(&short) {
            queries(name, bytes);
            inserts(name, bytes);
        }
    }
}
