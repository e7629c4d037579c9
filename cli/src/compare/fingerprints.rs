//! Filters that keep a fingerprint of each key instead of bits that keys share. Their rates come in steps of whole bits.

use super::contender::{Contender, Made, NotMade, made, one_by_one};
use super::prehashed::Prehashed;
use crate::figures::readable_size;
use cuckoofilter::CuckooFilter;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use xorf::{BinaryFuse8, BinaryFuse16, BinaryFuse32, Filter as _};

/// A binary fuse filter, which is built once of all its keys: a slot in three places for each key, whose XOR is its
/// fingerprint. (Graf and Lemire, "Binary Fuse Filters: Fast and Smaller Than Xor Filters", JEA 2022.)
enum Fuse {
    /// Fingerprints of so many bits, not yet built.
    Planned(u32),
    Bits8(BinaryFuse8),
    Bits16(BinaryFuse16),
    Bits32(BinaryFuse32),
}

/// The widths of fingerprints, in bits.
const FUSE_WIDTHS: [u32; 3] = [8, 16, 32];

/// The widest fingerprints that fit.
pub fn fuse_for_memory(bytes: usize, keys: u64) -> Made {
    let size = |width: u32| fuse_slots(keys) * u64::from(width / 8);
    let width = FUSE_WIDTHS.into_iter().rfind(|&width| size(width) <= bytes as u64);
    width.map_or_else(|| Err(too_large(size(FUSE_WIDTHS[0]))), |width| made(Fuse::Planned(width)))
}

/// The narrowest fingerprints that keep the rate.
pub fn fuse_for_rate(_: u64, rate: f64) -> Made {
    let width = FUSE_WIDTHS.into_iter().find(|&width| two_to_minus(width) <= rate);
    width.map_or_else(|| Err(too_rare()), |width| made(Fuse::Planned(width)))
}

/// The memory that the build takes beside the filter: the hashes, their order, and for each slot a hash and a count.
pub fn fuse_build_bytes(keys: u64) -> u64 {
    17 * keys + 13 * fuse_slots(keys)
}

/// The slots that the crate gives so many keys. It does not tell before it has built them.
fn fuse_slots(keys: u64) -> u64 {
    let logarithm = (keys as f64).ln();
    let segment = (2.0_f64.powf((logarithm / 3.33_f64.ln() + 2.25).floor()) as u64).min(1 << 18);
    let share = (0.875 + 0.25 * 1e6_f64.ln() / logarithm).max(1.125);
    let slots = if keys > 1 { (keys as f64 * share).round() as u64 } else { 0 };
    slots.div_ceil(segment).max(3) * segment
}

impl Contender for Fuse {
    fn insert(&mut self, hashes: &[u64], new: &mut [bool]) -> usize {
        const DISTINCT: &str = "a build fails only where keys are not distinct";
        *self = match self.probes() {
            8 => Self::Bits8(hashes.try_into().expect(DISTINCT)),
            16 => Self::Bits16(hashes.try_into().expect(DISTINCT)),
            _ => Self::Bits32(hashes.try_into().expect(DISTINCT)),
        };
        new.fill(true);
        hashes.len()
    }

    fn contains(&self, hashes: &[u64], found: &mut [bool]) -> usize {
        match self {
            Self::Planned(_) => one_by_one(hashes, found, |_| false),
            Self::Bits8(filter) => one_by_one(hashes, found, |hash| filter.contains(&hash)),
            Self::Bits16(filter) => one_by_one(hashes, found, |hash| filter.contains(&hash)),
            Self::Bits32(filter) => one_by_one(hashes, found, |hash| filter.contains(&hash)),
        }
    }

    fn memory_bytes(&self) -> usize {
        match self {
            Self::Planned(_) => 0,
            Self::Bits8(filter) => filter.len(),
            Self::Bits16(filter) => filter.len() * 2,
            Self::Bits32(filter) => filter.len() * 4,
        }
    }

    fn probes(&self) -> u32 {
        match self {
            Self::Planned(width) => *width,
            Self::Bits8(_) => 8,
            Self::Bits16(_) => 16,
            Self::Bits32(_) => 32,
        }
    }

    fn modelled_fpr(&self, _: u64) -> f64 {
        two_to_minus(self.probes())
    }
}

/// The most bits of a remainder that fit. Slots are a power of two, of which 95 % are used at most.
pub fn quotient_for_memory(bytes: usize, keys: u64) -> Made {
    let fits = |bits: &u32| quotient_size(keys, *bits).is_some_and(|size| size <= bytes);
    match (1..64).rev().find(fits) {
        Some(bits) => quotient(keys, bits),
        None => Err(quotient_size(keys, 1).map_or_else(too_rare, |size| too_large(size as u64))),
    }
}

/// The fewest bits of a remainder that keep the rate.
pub fn quotient_for_rate(keys: u64, rate: f64) -> Made {
    let slots = qfilter::filter_specs(keys, 0.5).map_or(u64::MAX, |specs| 1 << (specs.fingerprint_bits - 1));
    let keeps = |bits: &u32| quotient_rate(slots, *bits, keys) <= rate;
    (1..64).find(keeps).map_or_else(|| Err(too_rare()), |bits| quotient(keys, bits))
}

fn quotient_size(keys: u64, bits: u32) -> Option<usize> {
    qfilter::filter_specs(keys, two_to_minus(bits)).ok().map(|specs| specs.memory_bytes_max)
}

fn quotient(keys: u64, bits: u32) -> Made {
    // Without them, the crate panics.
    #[cfg(target_arch = "x86_64")]
    if !(std::arch::is_x86_feature_detected!("bmi2") && std::arch::is_x86_feature_detected!("popcnt")) {
        return Err(NotMade::LeftOut("it needs a CPU with BMI2".to_owned()));
    }
    qfilter::Filter::new(keys, two_to_minus(bits)).map_or_else(|_| Err(too_rare()), made)
}

/// The chance that one of the keys has the same slot and remainder.
fn quotient_rate(slots: u64, bits: u32, keys: u64) -> f64 {
    -(-(keys as f64) / slots as f64 * two_to_minus(bits)).exp_m1()
}

/// A quotient filter: a hash table of remainders, where the slot is the rest of the fingerprint.
impl Contender for qfilter::Filter {
    fn insert(&mut self, hashes: &[u64], new: &mut [bool]) -> usize {
        one_by_one(hashes, new, |hash| self.insert_fingerprint(false, hash).expect("it has room for the planned keys"))
    }

    fn contains(&self, hashes: &[u64], found: &mut [bool]) -> usize {
        one_by_one(hashes, found, |hash| self.contains_fingerprint(hash))
    }

    fn memory_bytes(&self) -> usize {
        self.memory_usage()
    }

    fn probes(&self) -> u32 {
        // The crate tells the whole fingerprint: the remainder and the number of the slot.
        self.max_error_ratio().log2().abs() as u32
    }

    fn modelled_fpr(&self, keys: u64) -> f64 {
        quotient_rate(1 << (u32::from(self.fingerprint_size()) - self.probes()), self.probes(), keys)
    }
}

/// Slots in a bucket, and the share of slots that they let be used. The fewer, the lower the rate.
const BUCKETS: [(usize, f64); 2] = [(2, 0.8), (4, 0.95)];

/// The smallest buckets that hold the keys. Fingerprints have a byte, and buckets are a power of two.
pub fn cuckoo_for_memory(bytes: usize, keys: u64) -> Made {
    for (slots, share) in BUCKETS {
        let buckets = (bytes / slots).checked_ilog2().map_or(0, |power| 1 << power);
        if keys as f64 <= (buckets * slots) as f64 * share {
            let rng = SmallRng::seed_from_u64(1);
            let filter = CuckooFilter::with_config_and_rng(buckets * slots, slots, cuckoofilter::MAX_REBUCKET, rng);
            return filter
                .map_or_else(|error| Err(NotMade::LeftOut(error.to_string())), |filter| made(Cuckoo(filter, slots)));
        }
    }
    Err(too_large((keys as f64 / BUCKETS[1].1) as u64))
}

/// A cuckoo filter, and the slots in each of its buckets.
struct Cuckoo(CuckooFilter<Prehashed, SmallRng>, usize);

impl Contender for Cuckoo {
    fn insert(&mut self, hashes: &[u64], new: &mut [bool]) -> usize {
        // Only one of a few slots may have no room for a key.
        one_by_one(hashes, new, |hash| self.0.test_and_add(&hash).unwrap_or(false))
    }

    fn contains(&self, hashes: &[u64], found: &mut [bool]) -> usize {
        one_by_one(hashes, found, |hash| self.0.contains(&hash))
    }

    fn memory_bytes(&self) -> usize {
        self.0.as_bytes().len()
    }

    fn probes(&self) -> u32 {
        8
    }

    /// A key is looked for in two buckets. One byte marks empty slots and is no fingerprint, so another one is twice as
    /// frequent: two keys share theirs with the chance q = (254 + 4) / 65536. If L keys have been kept, the rate is
    /// f = 1 - e^(-cL), where c = -2 b ln(1 - q) / slots. A key that is taken for seen is not kept: dL/dn = 1 - f. So
    /// f = cn / (1 + cn).
    fn modelled_fpr(&self, keys: u64) -> f64 {
        let each = -(-258.0_f64 / 65536.0).ln_1p() * 2.0 * self.1 as f64;
        let found = each * keys as f64 / self.memory_bytes() as f64;
        found / (1.0 + found)
    }
}

fn two_to_minus(bits: u32) -> f64 {
    0.5_f64.powi(bits as i32)
}

fn too_large(bytes: u64) -> NotMade {
    NotMade::LeftOut(format!("so many keys need at least {}", readable_size(bytes as usize)))
}

fn too_rare() -> NotMade {
    NotMade::LeftOut("its fingerprints have too few bits".to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::harness::hashes::{self, PRESENT};
    use super::*;

    #[test]
    fn the_slots_of_a_fuse_filter_are_foreseen() {
        for keys in [1, 2, 3, 10, 77, 1000, 12_345, 65_536, 200_000] {
            let filter = BinaryFuse8::try_from(hashes::range(PRESENT, 0..keys)).unwrap();
            assert_eq!(fuse_slots(keys), filter.len() as u64, "{keys} keys");
        }
    }
}
