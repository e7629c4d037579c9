//! Queries of several filters in a row: whether one of them has a hash.

use crate::batch::{FEW, PENDING, Pending};
use crate::filter::Filter;
use crate::operations::{Access, Operations};
use crate::words4::Words4;

/// `found[i]` = whether a filter has `hashes[i]`; the count of `true`. The filters, of one hasher, come in the order of the
/// search. Each gets a batch of the hashes that no filter before it has.
pub(crate) fn contains_many<'a, A: Access + 'a>(
    filters: impl Iterator<Item = &'a Filter<Words4, A>> + Clone,
    hashes: &[u64],
    found: &mut [bool],
) -> usize
where
    Words4: Operations<A>,
{
    let mut others = filters.clone();
    if let (Some(only), None) = (others.next(), others.next()) {
        return only.contains_hashes(hashes, found);
    }
    if hashes.len() <= FEW {
        let contains = |hash| filters.clone().any(|filter| filter.contains_hash(hash));
        hashes.iter().zip(&mut *found).for_each(|(&hash, found)| *found = contains(hash));
        return found.iter().filter(|found| **found).count();
    }
    let mut pending = Pending::new();
    let mut count = 0;
    for (hashes, found) in hashes.chunks(PENDING).zip(found.chunks_mut(PENDING)) {
        pending.take(hashes);
        for filter in filters.clone() {
            pending.drop_seen(|hashes, seen| filter.contains_hashes(hashes, seen));
        }
        found.fill(true);
        pending.places().for_each(|place| found[place] = false);
        count += hashes.len() - pending.hashes().len();
    }
    count
}
