//! Bulk loads of scalable filters on all cores.

use super::shared_stages::SharedStages;
use super::stages::Stages;
use crate::batch::collect::or_panic;
use crate::error::BuildError;
use crate::filter::bulk::{self, SHARED_CHUNK, par_in_batches};
use crate::key::keys::Keys;
use crate::key::single::Key;
use rayon::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

impl SharedStages {
    pub(super) fn par_insert<K: Keys + Sync + ?Sized>(&self, keys: &K) -> Result<(), BuildError> {
        let mut result = Ok(());
        bulk::in_rounds(self.hasher(), keys, |hashes| {
            if result.is_ok() {
                result = match bulk::single_threaded(hashes.len()) {
                    true => self.try_set_hashes(hashes),
                    false => hashes.par_chunks(SHARED_CHUNK).try_for_each(|hashes| self.try_set_hashes(hashes)),
                };
            }
        });
        result
    }

    pub(super) fn par_extend<K: Key + Send>(&self, keys: impl IntoParallelIterator<Item = K>) {
        par_in_batches(self.hasher(), keys, SHARED_CHUNK, |hashes| or_panic(self.try_set_hashes(hashes)));
    }
}

impl Stages {
    /// Runs inserts on the stages as a filter with many writers, for a while.
    fn shared<T>(&mut self, run: impl FnOnce(&SharedStages) -> T) -> T {
        let stages = std::mem::take(&mut self.stages);
        let shared = SharedStages::from(Self { stages, ..*self });
        // The stages are put back even if a key's code panics.
        let result = catch_unwind(AssertUnwindSafe(|| run(&shared)));
        *self = shared.into();
        result.unwrap_or_else(|panic| resume_unwind(panic))
    }

    pub(super) fn par_insert<K: Keys + Sync + ?Sized>(&mut self, keys: &K) -> Result<(), BuildError> {
        if !bulk::single_threaded(keys.len()) {
            return self.shared(|shared| shared.par_insert(keys));
        }
        let (hasher, mut result) = (self.hasher().clone(), Ok(()));
        bulk::in_chunks(&hasher, keys, 0..keys.len(), |hashes| {
            if result.is_ok() {
                result = self.try_set_hashes(hashes);
            }
        });
        result
    }

    pub(super) fn par_extend<K: Key + Send>(&mut self, keys: impl IntoParallelIterator<Item = K>) {
        self.shared(|shared| shared.par_extend(keys));
    }
}
