//! Filters that keep a fingerprint of each key instead of bits that keys share. Their rates come in steps of whole bits.

use super::contender::{BoxedContender, Contender, boxed, contender, one_by_one};
use super::prehashed::Prehashed;
use cuckoofilter::CuckooFilter;
use indicatif::HumanBytes;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use xorf::{BinaryFuse8, BinaryFuse16, BinaryFuse32, Filter};

/// A binary fuse filter, which is built once of all its keys: a slot in three places for each key, whose XOR is its
/// fingerprint. (Graf and Lemire, "Binary Fuse Filters: Fast and Smaller Than Xor Filters", JEA 2022.)
struct Fuse<F> {
    /// The width of a fingerprint in bits.
    width: u32,
    /// `None` before it is built.
    filter: Option<F>,
}

/// The widths of fingerprints, in bits.
const FUSE_WIDTHS: [u32; 3] = [8, 16, 32];

fn fuse(width: u32) -> BoxedContender {
    match width {
        8 => boxed(Fuse::<BinaryFuse8> { width, filter: None }),
        16 => boxed(Fuse::<BinaryFuse16> { width, filter: None }),
        _ => boxed(Fuse::<BinaryFuse32> { width, filter: None }),
    }
}

/// The widest fingerprints that fit.
pub fn fuse_for_memory(bytes: usize, keys: u64) -> BoxedContender {
    let size = |width: u32| fuse_slots(keys) * u64::from(width / 8);
    let width = FUSE_WIDTHS.into_iter().rfind(|&width| size(width) <= bytes as u64);
    fuse(width.ok_or_else(|| too_large(size(FUSE_WIDTHS[0])))?)
}

/// The narrowest fingerprints that keep the rate.
pub fn fuse_for_rate(_: u64, rate: f64) -> BoxedContender {
    fuse(FUSE_WIDTHS.into_iter().find(|&width| two_to_minus(width) <= rate).ok_or(TOO_FEW_BITS)?)
}

/// The memory that the build takes beside the filter: the hashes, their order, and for each slot a hash and a count.
pub fn fuse_build_bytes(keys: u64) -> u64 {
    17 * keys + 13 * fuse_slots(keys)
}

/// The slots that the crate gives so many keys. It reports the number only after the build.
fn fuse_slots(keys: u64) -> u64 {
    let logarithm = (keys as f64).ln();
    let segment = (2.0_f64.powf((logarithm / 3.33_f64.ln() + 2.25).floor()) as u64).min(1 << 18);
    let fraction = (0.875 + 0.25 * 1e6_f64.ln() / logarithm).max(1.125);
    let slots = if keys > 1 { (keys as f64 * fraction).round() as u64 } else { 0 };
    slots.div_ceil(segment).max(3) * segment
}

impl<F: Filter<u64> + for<'a> TryFrom<&'a [u64]> + Send + Sync> Contender for Fuse<F> {
    fn insert(&mut self, hashes: &[u64], new: &mut [bool]) -> usize {
        self.filter = hashes.try_into().ok();
        assert!(self.filter.is_some(), "a build fails only where keys are not distinct");
        new.fill(true);
        hashes.len()
    }

    fn contains(&self, hashes: &[u64], found: &mut [bool]) -> usize {
        self.filter.as_ref().map_or(0, |filter| one_by_one(hashes, found, |hash| filter.contains(&hash)))
    }

    fn memory_bytes(&self) -> usize {
        self.filter.as_ref().map_or(0, |filter| filter.len() * self.width as usize / 8)
    }

    fn probes(&self) -> u32 {
        self.width
    }

    fn modelled_fpr(&self, _: u64) -> f64 {
        two_to_minus(self.width)
    }
}

// A quotient filter: a hash table of remainders, where the slot is the rest of the fingerprint. The crate returns the complete
// fingerprint: the remainder and the number of the slot.
contender! { qfilter::Filter, |filter, hash, keys|
    insert: filter.insert_fingerprint(false, hash).expect("it has room for the planned keys"),
    contains: filter.contains_fingerprint(hash),
    bytes: filter.memory_usage(),
    probes: filter.max_error_ratio().log2().abs() as u32,
    rate: quotient_rate(1 << (u32::from(filter.fingerprint_size()) - filter.probes()), filter.probes(), keys)
}

/// The most bits of a remainder that fit. The number of slots is a power of two, and at most 95 % of them are used.
pub fn quotient_for_memory(bytes: usize, keys: u64) -> BoxedContender {
    let size = |bits| qfilter::filter_specs(keys, two_to_minus(bits)).ok().map(|specs| specs.memory_bytes_max);
    match (1..64).rev().find(|&bits| size(bits).is_some_and(|size| size <= bytes)) {
        Some(bits) => quotient(keys, bits),
        None => Err(size(1).map_or_else(|| TOO_FEW_BITS.to_owned(), |size| too_large(size as u64))),
    }
}

/// The fewest bits of a remainder that keep the rate.
pub fn quotient_for_rate(keys: u64, rate: f64) -> BoxedContender {
    let slots = qfilter::filter_specs(keys, 0.5).map_or(u64::MAX, |specs| 1 << (specs.fingerprint_bits - 1));
    quotient(keys, (1..64).find(|&bits| quotient_rate(slots, bits, keys) <= rate).ok_or(TOO_FEW_BITS)?)
}

fn quotient(keys: u64, bits: u32) -> BoxedContender {
    // Without them, the crate panics.
    #[cfg(target_arch = "x86_64")]
    if !(std::arch::is_x86_feature_detected!("bmi2") && std::arch::is_x86_feature_detected!("popcnt")) {
        return Err("it needs a CPU with BMI2".to_owned());
    }
    qfilter::Filter::new(keys, two_to_minus(bits)).map_or_else(|_| Err(TOO_FEW_BITS.to_owned()), boxed)
}

/// The chance that one of the keys has the same slot and remainder.
fn quotient_rate(slots: u64, bits: u32, keys: u64) -> f64 {
    -(-(keys as f64) / slots as f64 * two_to_minus(bits)).exp_m1()
}

/// Slots in a bucket, and the share of slots that they let be used. The fewer, the lower the rate.
const BUCKETS: [(usize, f64); 2] = [(2, 0.8), (4, 0.95)];

/// The smallest buckets that hold the keys. Fingerprints have a byte, and buckets are a power of two.
pub fn cuckoo_for_memory(bytes: usize, keys: u64) -> BoxedContender {
    for (slots, max_load) in BUCKETS {
        let buckets = (bytes / slots).checked_ilog2().map_or(0, |power| 1 << power);
        if keys as f64 <= (buckets * slots) as f64 * max_load {
            let rng = SmallRng::seed_from_u64(1);
            let filter = CuckooFilter::with_config_and_rng(buckets * slots, slots, cuckoofilter::MAX_REBUCKET, rng);
            return boxed(Cuckoo { filter: filter.map_err(|error| error.to_string())?, slots });
        }
    }
    Err(too_large((keys as f64 / BUCKETS[1].1) as u64))
}

struct Cuckoo {
    filter: CuckooFilter<Prehashed, SmallRng>,
    /// The slots of a bucket.
    slots: usize,
}

// The rate: a key is looked for in two buckets. One byte marks empty slots and is no fingerprint, so another one is twice as
// frequent: two keys share theirs with the chance q = (254 + 4) / 65536. If L keys have been kept, the rate is
// f = 1 - e^(-cL), where c = -2 b ln(1 - q) / slots. A key that is taken for seen is not kept: dL/dn = 1 - f. So
// f = cn / (1 + cn).
contender! { Cuckoo, |cuckoo, hash, keys|
    // Only one of a few slots may have no room for a key.
    insert: cuckoo.filter.test_and_add(&hash).unwrap_or(false),
    contains: cuckoo.filter.contains(&hash),
    bytes: cuckoo.filter.as_bytes().len(),
    probes: 8,
    rate: {
        let per_key = -(-258.0_f64 / 65536.0).ln_1p() * 2.0 * cuckoo.slots as f64;
        let found = per_key * keys as f64 / cuckoo.memory_bytes() as f64;
        found / (1.0 + found)
    }
}

fn two_to_minus(bits: u32) -> f64 {
    0.5_f64.powi(bits as i32)
}

fn too_large(bytes: u64) -> String {
    format!("so many keys need at least {}", HumanBytes(bytes))
}

const TOO_FEW_BITS: &str = "its fingerprints have too few bits";

#[cfg(test)]
mod tests {
    use super::*;
    use bloomline_benches::hashes::{PRESENT, range};

    #[test]
    fn the_slots_of_a_fuse_filter_are_foreseen() {
        for keys in [1, 2, 3, 10, 77, 1000, 12_345, 65_536, 200_000] {
            let filter = BinaryFuse8::try_from(range(PRESENT, 0..keys)).unwrap();
            assert_eq!(fuse_slots(keys), filter.len() as u64, "{keys} keys");
        }
    }
}
