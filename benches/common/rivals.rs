//! The sides that more than one benchmark times: queries and fresh inserts, beside the peers.

use crate::filters::{RawLines, fastbloom, fastbloom_atomic, filled, kernels, sbbf};
use crate::hashes::{FRESH, mixed_keys};
use crate::turns::{Round, Side, timed};
use crate::{ROUND_KEYS, held_keys, planned_keys};
use bloomline::{AtomicBloomFilter, BloomFilter, Hashes, Kernel};
use std::convert::identity;
use std::time::Duration;

/// Runs an operation key by key. Returns how many answers were `true`.
#[inline(always)] // into a loop of `dispatch!`
pub fn each(hashes: &[u64], mut operation: impl FnMut(u64) -> bool) -> usize {
    hashes.iter().map(|&hash| usize::from(operation(hash))).sum()
}

/// As [`each`], in a loop that prefetches the line of a key some keys ahead.
#[inline(always)]
pub fn each_prefetched(hashes: &[u64], prefetch: impl Fn(u64), mut operation: impl FnMut(u64) -> bool) -> usize {
    const PREFETCH_DISTANCE: usize = 32;
    let mut count = 0;
    for (i, &hash) in hashes.iter().enumerate() {
        if let Some(&ahead) = hashes.get(i + PREFETCH_DISTANCE) {
            prefetch(ahead);
        }
        count += usize::from(operation(hash));
    }
    count
}

/// Filters of one size at their planned load, one of ours for each kernel, and the raw limit.
pub struct Rivals {
    bytes: usize,
    bloomline: Vec<BloomFilter>,
    fastbloom: fastbloom::BloomFilter,
    sbbf: sbbf_rs_safe::Filter,
    raw: RawLines,
}

impl Rivals {
    /// Makes and fills them.
    pub fn new(bytes: usize) -> Self {
        Self {
            bytes,
            bloomline: kernels(bytes).map(|kernel| filled(bytes, kernel)).collect(),
            fastbloom: fastbloom(bytes),
            sbbf: sbbf(bytes),
            raw: RawLines::new(bytes),
        }
    }

    /// Queries of these keys.
    pub fn queries<'a>(&'a self, hashes: &'a [u64]) -> Vec<Side<'a>> {
        let batch = |filter: &'a BloomFilter| {
            let mut found = vec![false; hashes.len()];
            let name = format!("contains_hashes {}", filter.kernel());
            Side::passing(name, hashes, move |hashes| filter.contains_hashes(hashes, &mut found))
        };
        let mut sides: Vec<_> = self.bloomline.iter().map(batch).collect();
        sides.extend([
            Side::passing("contains_hash", hashes, |hashes| each(hashes, |hash| self.bloomline[0].contains_hash(hash))),
            Side::passing("contains_hash, dispatch!", hashes, |hashes| {
                bloomline::dispatch!(&self.bloomline[0], |view| each(hashes, |hash| view.contains_hash(hash)))
            }),
            Side::passing("contains_hash, prefetch_hash", hashes, |hashes| {
                let filter = &self.bloomline[0];
                each_prefetched(hashes, |hash| filter.prefetch_hash(hash), |hash| filter.contains_hash(hash))
            }),
            Side::passing("contains_hash, prefetch_hash, dispatch!", hashes, |hashes| {
                bloomline::dispatch!(&self.bloomline[0], |view| {
                    each_prefetched(hashes, |hash| view.prefetch_hash(hash), |hash| view.contains_hash(hash))
                })
            }),
            Side::passing("fastbloom contains_hash", hashes, |hashes| {
                each(hashes, |hash| self.fastbloom.contains_hash(hash))
            }),
            Side::passing("sbbf-rs contains_hash", hashes, |hashes| each(hashes, |hash| self.sbbf.contains_hash(hash))),
            Side::passing("raw lines", hashes, |hashes| self.raw.read(hashes)),
        ]);
        sides
    }

    /// Inserts of keys; `seen` percent of them are present. Takes the filters, so that memory holds them once.
    pub fn inserts(self, seen: u64) -> Vec<Side<'static>> {
        let Self { bytes, bloomline, fastbloom, sbbf, raw } = self;
        drop(raw);
        let (single, inlined, unanswered) = (bloomline[0].clone(), bloomline[0].clone(), bloomline[0].clone());
        let batch = |filter: BloomFilter| {
            let mut new = vec![false; ROUND_KEYS];
            let name = format!("insert_hashes {}", filter.kernel());
            inserts(seen, name, bytes, filter, identity, move |filter, hashes| {
                filter.insert_hashes(hashes, &mut new[..hashes.len()])
            })
        };
        let mut sides: Vec<_> = bloomline.into_iter().map(batch).collect();
        sides.extend([
            // Nobody asks whether the keys were new. One thread inserts so few keys.
            inserts(seen, "par_insert of hashes, one thread", bytes, unanswered, identity, |filter, hashes| {
                hashes.chunks(1 << 17).for_each(|hashes| filter.par_insert(&Hashes::new(hashes)));
                0
            }),
            inserts(seen, "insert_hash", bytes, single, identity, |filter, hashes| {
                each(hashes, |hash| filter.insert_hash(hash))
            }),
            inserts(seen, "insert_hash, dispatch!", bytes, inlined, identity, |filter, hashes| {
                bloomline::dispatch!(filter, |mut view| each(hashes, |hash| view.insert_hash(hash)))
            }),
            // The peers answer whether the key was there.
            inserts(seen, "fastbloom insert_hash", bytes, fastbloom, identity, |filter, hashes| {
                each(hashes, |hash| !filter.insert_hash(hash))
            }),
            inserts(seen, "sbbf-rs insert_hash", bytes, sbbf, identity, |filter, hashes| {
                each(hashes, |hash| !filter.insert_hash(hash))
            }),
        ]);
        sides
    }
}

/// Inserts of fresh keys into filters that threads share, by one thread.
pub fn atomic_inserts(bytes: usize) -> Vec<Side<'static>> {
    let filter = filled(bytes, Kernel::detect());
    let inlined = filter.clone();
    let mut new = vec![false; ROUND_KEYS];
    vec![
        fresh("atomic insert_hashes", bytes, filter.clone(), AtomicBloomFilter::from, move |filter, hashes| {
            filter.insert_hashes(hashes, &mut new[..hashes.len()])
        }),
        fresh("atomic insert_hash", bytes, filter, AtomicBloomFilter::from, |filter, hashes| {
            each(hashes, |hash| filter.insert_hash(hash))
        }),
        fresh("atomic insert_hash, dispatch!", bytes, inlined, AtomicBloomFilter::from, |filter, hashes| {
            bloomline::dispatch!(&*filter, |view| each(hashes, |hash| view.insert_hash(hash)))
        }),
        fresh("fastbloom atomic insert_hash", bytes, fastbloom(bytes), fastbloom_atomic, |filter, hashes| {
            each(hashes, |hash| !filter.insert_hash(hash))
        }),
    ]
}

/// [`inserts`] of keys none of which is in.
pub fn fresh<S: Clone + 'static, F: 'static>(
    name: impl Into<String>,
    bytes: usize,
    loaded: S,
    make: impl Fn(S) -> F + 'static,
    insert: impl FnMut(&mut F, &[u64]) -> usize + 'static,
) -> Side<'static> {
    inserts(0, name, bytes, loaded, make, insert)
}

/// Inserts keys, `seen` percent present and the others fresh, different ones each round, into what `make` makes of a
/// filter at its planned load. Once they are an eighth of that load, they go into a new copy, so that the load stays near
/// the planned one.
pub fn inserts<S: Clone + 'static, F: 'static>(
    seen: u64,
    name: impl Into<String>,
    bytes: usize,
    loaded: S,
    make: impl Fn(S) -> F + 'static,
    mut insert: impl FnMut(&mut F, &[u64]) -> usize + 'static,
) -> Side<'static> {
    /// More rounds than a measurement has; a filter that takes them all needs no copy, which saves memory.
    const ROUNDS: usize = 21;
    let room = planned_keys(bytes) as usize / 8;
    let saved = (room < ROUNDS * ROUND_KEYS).then(|| loaded.clone());
    let mut filter = make(loaded);
    let mut added = 0;
    Side::new(name, ROUND_KEYS, move |round| {
        let mut total = Round { time: Duration::ZERO, trues: 0 };
        for hashes in mixed_keys(FRESH + round, ROUND_KEYS, held_keys(bytes), seen).chunks(room.min(ROUND_KEYS)) {
            if let Some(saved) = &saved
                && added + hashes.len() > room
            {
                filter = make(saved.clone());
                added = 0;
            }
            added += hashes.len();
            let Round { time, trues } = timed(|| insert(&mut filter, hashes));
            total.time += time;
            total.trues += trues;
        }
        total
    })
}
