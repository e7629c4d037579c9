//! `StageList`: stages at fixed addresses, so that one can be added while threads read the others.

use crate::rate::growth::{MAX_MERGED, MAX_STAGES};
use std::sync::OnceLock;

/// The number of buckets for the maximum number of stages of a filter.
const BUCKETS: usize = (MAX_MERGED + MAX_STAGES).ilog2() as usize + 1;

/// Stages in buckets of 1, 2, 4, … of them. A bucket is allocated for its first stage, so a filter that does not grow takes little
/// memory.
pub(super) struct StageList<S>([OnceLock<Box<[OnceLock<S>]>>; BUCKETS]);

impl<S> StageList<S> {
    /// Returns a stage, if there is one.
    #[inline]
    pub(super) fn get(&self, i: u64) -> Option<&S> {
        let (bucket, index) = Self::position(i);
        self.0.get(bucket)?.get()?.get(index)?.get()
    }

    /// Adds a stage, unless there is one. Fewer than [`MAX_MERGED`] + [`MAX_STAGES`] are before it.
    pub(super) fn set(&self, i: u64, stage: S) {
        let (bucket, index) = Self::position(i);
        let bucket = self.0[bucket].get_or_init(|| (0..1 << bucket).map(|_| OnceLock::new()).collect());
        bucket[index].get_or_init(|| stage);
    }

    #[inline]
    fn position(i: u64) -> (usize, usize) {
        let bucket = (i + 1).ilog2();
        (bucket as usize, (i + 1 - (1 << bucket)) as usize)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut S> {
        self.0.iter_mut().filter_map(OnceLock::get_mut).flatten().filter_map(OnceLock::get_mut)
    }

    pub(super) fn into_stages(self) -> impl Iterator<Item = S> {
        self.0.into_iter().filter_map(OnceLock::into_inner).flatten().filter_map(OnceLock::into_inner)
    }
}

impl<S> FromIterator<S> for StageList<S> {
    fn from_iter<I: IntoIterator<Item = S>>(stages: I) -> Self {
        let list = Self(core::array::from_fn(|_| OnceLock::new()));
        stages.into_iter().zip(0..).for_each(|(stage, i)| list.set(i, stage));
        list
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn stages_keep_their_order() {
        let max_stages = (MAX_MERGED + MAX_STAGES) as u64;
        let mut list: StageList<u64> = (0..max_stages).collect();
        list.set(3, 0); // ignored: stage 3 exists
        assert!((0..max_stages).all(|i| list.get(i) == Some(&i)));
        assert_eq!((list.get(max_stages), list.get(1 << 40)), (None, None));
        assert!(list.iter_mut().map(|stage| *stage).eq(0..max_stages));
        assert!(list.into_stages().eq(0..max_stages));
    }
}
