//! The sample of a unit's grams that represents the unit.

use crate::Rules;
use alloc::vec::Vec;

const LEAST: usize = Rules::MIN_SAMPLE;

/// Keeps the sampled hashes from the index `start` on: one of `share` hashes on average, and at least
/// [`Rules::MIN_SAMPLE`].
///
/// The kept hashes are the first ones by [`rank`], so the sample of a larger share is part of the sample of a smaller one.
pub(crate) fn retain(hashes: &mut Vec<u64>, start: usize, share: u32) {
    let unit = &mut hashes[start..];
    if share <= 1 || unit.len() <= LEAST {
        return;
    }
    let max_rank = u64::MAX / u64::from(share);
    let count = unit.iter().filter(|hash| rank(**hash) <= max_rank).count();
    if count < LEAST {
        unit.select_nth_unstable_by_key(LEAST - 1, |hash| rank(*hash));
        hashes.truncate(start + LEAST);
        return;
    }
    let mut kept = 0;
    for i in 0..unit.len() {
        // No branch, because the CPU could not predict it.
        let hash = unit[i];
        unit[kept] = hash;
        kept += usize::from(rank(hash) <= max_rank);
    }
    hashes.truncate(start + count);
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
        /// The sample is that of a sort by rank, whatever stands before the unit, and a part of each finer sample.
        #[test]
        fn samples_are_nested(hashes in prop::collection::vec(any::<u64>(), 0..300), start in 0..4usize, share in 0..100u32, more in 0..100u32) {
            let start = start.min(hashes.len());
            let sample = |share| {
                let mut sample = hashes.clone();
                retain(&mut sample, start, share);
                prop_assert_eq!(&sample[..start], &hashes[..start]);
                let mut sample = sample.split_off(start);
                sample.sort_unstable_by_key(|hash| rank(*hash));
                Ok(sample)
            };
            let mut all = hashes[start..].to_vec();
            all.sort_unstable_by_key(|hash| rank(*hash));
            let (fine, coarse) = (sample(share)?, sample(share + more)?);
            let below = all.iter().filter(|hash| u128::from(rank(**hash)) * u128::from(share.max(1)) <= u128::from(u64::MAX)).count();
            prop_assert_eq!(&fine[..], &all[..below.max(LEAST).min(all.len())]);
            prop_assert_eq!(&coarse[..], &fine[..coarse.len()]);
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
