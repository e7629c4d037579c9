//! The hashes of all keys of a set, in a temporary file: from them another set can be built, where the inputs cannot be read again.

use crate::error::Error;
use crate::word_file::WordFile;
use std::io;

/// Hashes in the order in which they came.
pub struct Spool {
    hashes: WordFile,
    /// What failed first. The rest is not written.
    failure: Option<io::Error>,
}

/// Hashes that are read at once.
const BATCH: usize = 1 << 13;

impl Spool {
    /// Of no hashes.
    pub fn new() -> Result<Self, Error> {
        let hashes = WordFile::new().map_err(|source| Error::Spool { source })?;
        Ok(Self { hashes, failure: None })
    }

    /// Adds hashes. A failure is told when they are read.
    pub fn add(&mut self, hashes: impl Iterator<Item = u64>) {
        if self.failure.is_none() {
            self.failure = hashes.map(|hash| self.hashes.push(hash)).find_map(Result::err);
        }
    }

    /// Hands all hashes out, in batches.
    pub fn read(mut self, mut each: impl FnMut(&[u64]) -> Result<(), Error>) -> Result<(), Error> {
        let failed = |source| Error::Spool { source };
        self.failure.map_or(Ok(()), Err).map_err(failed)?;
        let (mut reader, mut hashes) = (self.hashes.read().map_err(failed)?, Vec::new());
        loop {
            reader.next_into(BATCH, &mut hashes).map_err(failed)?;
            if hashes.is_empty() {
                return Ok(());
            }
            each(&hashes)?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_come_back_in_order() {
        for count in [0, 1, BATCH as u64, 3 * BATCH as u64 + 5] {
            let mut spool = Spool::new().unwrap();
            (0..count).for_each(|hash| spool.add([hash, !hash].into_iter()));
            let mut back = Vec::new();
            let all = |hashes: &[u64]| {
                back.extend_from_slice(hashes);
                Ok(())
            };
            spool.read(all).unwrap();
            assert!(back.into_iter().eq((0..count).flat_map(|hash| [hash, !hash])), "{count}");
        }
    }
}
