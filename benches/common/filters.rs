//! The filters that are compared, at equal memory and at their planned load, and the raw limit of the memory.

use crate::hashes::hash;
use crate::{PROBES, chunks, held_keys, planned_keys};
use bloomline::{BloomFilter, Kernel, Key};

/// All kernels. For large filters only the fastest, because a filter for each would not fit in memory.
pub fn kernels(bytes: usize) -> impl Iterator<Item = Kernel> {
    Kernel::available().take(if bytes > 1 << 30 { 1 } else { Kernel::ALL.len() })
}

/// Without keys.
pub fn empty(bytes: usize, kernel: Kernel) -> BloomFilter {
    BloomFilter::builder().memory(bytes).probes(PROBES).kernel(kernel).build().unwrap()
}

/// Filled to the planned load with [`PRESENT`](crate::hashes::PRESENT).
pub fn filled(bytes: usize, kernel: Kernel) -> BloomFilter {
    let mut filter = empty(bytes, kernel);
    fill(&mut filter, 0, bytes);
    filter
}

/// Filled to the planned load: with `keys`, then with hashes of [`PRESENT`](crate::hashes::PRESENT).
pub fn holding<K: Key>(bytes: usize, keys: &[K]) -> BloomFilter {
    let mut filter = empty(bytes, Kernel::detect());
    filter.insert_batch(keys, &mut vec![false; keys.len()]);
    fill(&mut filter, keys.len() as u64, bytes);
    filter
}

fn fill(filter: &mut BloomFilter, from: u64, bytes: usize) {
    chunks(from, planned_keys(bytes), |hashes| {
        filter.insert_hashes(hashes, &mut vec![false; hashes.len()]);
    });
}

/// Holds the keys that probes hit. The rest of its load is random bits of the same density, from which the bits of a Bloom
/// filter without blocks do not differ. To insert all keys would take minutes for a gigabyte.
pub fn fastbloom(bytes: usize) -> fastbloom::BloomFilter {
    let rest = (planned_keys(bytes) - held_keys(bytes)) as f64;
    let density = 1.0 - (-f64::from(PROBES) * rest / (bytes as f64 * 8.0)).exp();
    let mut filter = fastbloom::BloomFilter::from_vec(random_words(bytes, density)).hashes(PROBES);
    chunks(0, held_keys(bytes), |hashes| hashes.iter().for_each(|&hash| _ = filter.insert_hash(hash)));
    filter
}

/// The stream of random words.
const NOISE: u64 = 4;

/// Words of random bits, set with the probability `density`.
fn random_words(bytes: usize, density: f64) -> Vec<u64> {
    const DIGITS: u64 = 16;
    let density = (density * f64::from(1 << DIGITS)) as u64;
    // From the lowest binary digit of the density up, 0 means AND and 1 means OR. Both halve the share that is set, and OR
    // adds a half.
    let word = |i| {
        (0..DIGITS).fold(0, |word, digit| {
            let random = hash(NOISE, i * DIGITS + digit);
            if density >> digit & 1 == 1 { word | random } else { word & random }
        })
    };
    (0..bytes as u64 / 8).map(word).collect()
}

/// The same for many writers.
pub fn fastbloom_atomic(filter: fastbloom::BloomFilter) -> fastbloom::AtomicBloomFilter {
    fastbloom::AtomicBloomFilter::from_vec(filter.iter().collect()).hashes(PROBES)
}

/// Filled to the planned load with [`PRESENT`](crate::hashes::PRESENT).
pub fn sbbf(bytes: usize) -> sbbf_rs_safe::Filter {
    let mut filter = sbbf_rs_safe::Filter::new(8, bytes);
    chunks(0, planned_keys(bytes), |hashes| hashes.iter().for_each(|&hash| _ = filter.insert_hash(hash)));
    filter
}

/// Reads one byte of random 64-byte lines, with the same prefetches as the filters' batches: the limit that the memory sets.
pub struct RawLines(memmap2::MmapMut);

impl RawLines {
    /// Of that many bytes, which are touched.
    pub fn new(bytes: usize) -> Self {
        let mut map = memmap2::MmapMut::map_anon(bytes).unwrap();
        #[cfg(target_os = "linux")]
        let _ = map.advise(memmap2::Advice::HugePage);
        map.fill(2);
        Self(map)
    }

    /// Counts the bytes that are 1: zero.
    #[allow(unsafe_code)]
    pub fn read(&self, hashes: &[u64]) -> usize {
        const PREFETCH_DISTANCE: usize = 64;
        const BURST: usize = 4;
        let lines = self.0.len() / 64;
        let start = |hash: u64| ((u128::from(hash) * lines as u128) >> 64) as usize * 64;
        let prefetch = |start: usize| {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: a prefetch has no effect on memory.
            unsafe {
                use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
                _mm_prefetch::<_MM_HINT_T1>(self.0.as_ptr().wrapping_add(start).cast());
            }
        };
        let read = |hash: u64| usize::from(self.0[start(hash)] == 1);
        let (first, rest) = hashes.split_at(PREFETCH_DISTANCE);
        first.iter().for_each(|&hash| prefetch(start(hash)));
        let mut count = 0;
        for (next, due) in rest.as_chunks::<BURST>().0.iter().zip(hashes.as_chunks::<BURST>().0) {
            next.iter().for_each(|&hash| prefetch(start(hash)));
            count += due.iter().map(|&hash| read(hash)).sum::<usize>();
        }
        count += hashes[rest.len() / BURST * BURST..].iter().map(|&hash| read(hash)).sum::<usize>();
        count
    }
}
