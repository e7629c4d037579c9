//! The sample of a unit's grams that represents the unit.

use alloc::vec::Vec;
use core::ops::Range;

/// Keeps the sampled hashes from the index `start` on: one of `share` on average, and at least the one with the lowest
/// [`rank`] of each half.
///
/// Every hash whose rank is low enough is kept, so the sample of a larger share is part of the sample of a smaller one.
pub(crate) fn retain(hashes: &mut Vec<u64>, start: usize, share: u32) {
    if share <= 1 {
        return;
    }
    let max_rank = u64::MAX / u64::from(share);
    let unit = &mut hashes[start..];
    let mut kept = 0;
    for half in halves(unit.len()) {
        let min_rank = unit[half.clone()].iter().map(|hash| rank(*hash)).min();
        let max_rank = max_rank.max(min_rank.unwrap_or(0));
        for i in half {
            // No branch, because the CPU could not predict it.
            let hash = unit[i];
            unit[kept] = hash;
            kept += usize::from(rank(hash) <= max_rank);
        }
    }
    hashes.truncate(start + kept);
}

/// Returns the two halves of a unit's grams. The first half of one gram is empty.
pub(crate) fn halves(grams: usize) -> [Range<usize>; 2] {
    [0..grams / 2, grams / 2..grams]
}

/// Returns a hash's position in the order of sampling. It begins with the hash's low bytes, because a filter chooses a block
/// by the high ones: hashes that are sampled by these would fill few of its blocks.
fn rank(hash: u64) -> u64 {
    hash.swap_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Whatever stands before the unit, each half keeps its hashes of low rank, which are part of each finer sample.
        #[test]
        fn samples_are_nested(hashes in prop::collection::vec(any::<u64>(), 0..300), start in 0..4usize, share in 0..100u32, more in 0..100u32) {
            let start = start.min(hashes.len());
            let sample = |share| {
                let mut sample = hashes.clone();
                retain(&mut sample, start, share);
                prop_assert_eq!(&sample[..start], &hashes[..start]);
                Ok(sample.split_off(start))
            };
            let (fine, coarse) = (sample(share)?, sample(share + more)?);
            let (first, second) = hashes[start..].split_at((hashes.len() - start) / 2);
            let is_low = |hash: &&u64| u128::from(rank(**hash)) * u128::from(share.max(1)) <= u128::from(u64::MAX);
            let expected: Vec<u64> = [first, second].iter().flat_map(|half| {
                let lowest = half.iter().min_by_key(|hash| rank(**hash));
                half.iter().filter(move |hash| is_low(hash) || Some(*hash) == lowest).copied()
            }).collect();
            prop_assert_eq!(&fine, &expected);
            prop_assert!(coarse.iter().all(|hash| fine.contains(hash)) && coarse.len() >= hashes[start..].len().min(2));
        }
    }

    /// Sampled hashes are spread over a filter like all others: its rate is the one that the model expects.
    #[test]
    fn a_filter_of_sampled_hashes_keeps_its_rate() {
        use bloomline::{BloomFilter, Key};
        let keys = 20_000;
        for share in [16, 4096] {
            let mut filter = BloomFilter::new(keys, 0.01).unwrap();
            let hasher = filter.hasher().clone();
            // The low bytes of each hash are moved into the sample.
            let hashes = (0u64..2 * keys).map(|key| {
                let hash = key.hash_with(&hasher);
                (rank(hash) / share).swap_bytes()
            });
            let hashes: Vec<u64> = hashes.collect();
            let (inserted, others) = hashes.split_at(keys as usize);
            filter.insert_hashes(inserted, &mut vec![false; inserted.len()]);
            let found = filter.contains_hashes(others, &mut vec![false; others.len()]);
            // Seven standard deviations of 200 false positives.
            assert!(found < 300, "{share}: {found}");
        }
    }
}
