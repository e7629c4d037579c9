//! Bulk loads of a window on all cores.

use super::Generations;
use crate::filter::bulk::{self, SHARED_CHUNK};
use crate::key::keys::Keys;
use crate::key::single::Key;
use rayon::iter::IntoParallelIterator;

impl Generations {
    pub(in super::super) fn par_insert<K: Keys + Sync + ?Sized>(&self, keys: &K) {
        bulk::par_in_chunks(self.hasher(), keys, |hashes| self.set_hashes(hashes));
    }

    pub(in super::super) fn par_extend<K: Key + Send>(&self, keys: impl IntoParallelIterator<Item = K>) {
        bulk::par_in_batches(self.hasher(), keys, SHARED_CHUNK, |hashes| self.set_hashes(hashes));
    }
}
