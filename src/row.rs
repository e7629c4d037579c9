//! Several filters in a row, as one: what all of them say alike, and whether one of them has a hash.

use crate::batch::{FEW, PENDING, Pending};
use crate::filter::Filter;
use crate::operations::{Access, Operations};
use crate::words4::Words4;

/// What any of the filters says for all of them, and what those say together that are asked.
macro_rules! as_one {
    ($self:ident, any: $filter:expr, all: $filters:expr) => {
        /// The false-positive rate of the bits as they are, each word at some moment during the call; see
        /// [`BloomFilter::current_fpr`](crate::BloomFilter::current_fpr). O(memory).
        pub fn current_fpr(&$self) -> f64 {
            crate::growth::combined($filters.map(|filter| filter.current_fpr()))
        }

        /// The name for the kind of keys, as [`Builder::key_name`](crate::Builder::key_name) has it; empty if there is none.
        pub fn key_name(&$self) -> &str {
            $filter.key_name()
        }

        /// The seed of the hash.
        pub fn seed(&$self) -> u64 {
            $filter.seed()
        }

        /// The kernel in use.
        pub fn kernel(&$self) -> crate::Kernel {
            $filter.kernel()
        }

        /// The hasher in use, to hash keys once for several calls.
        pub fn hasher(&$self) -> &crate::KeyHasher {
            $filter.hasher()
        }
    };
}
pub(crate) use as_one;

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
