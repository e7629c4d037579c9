//! The hashes of all keys of a set, in a temporary file: from them another set can be built, where the inputs cannot be read again.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};

/// Hashes in the order in which they came.
pub struct Spool {
    file: BufWriter<File>,
    /// What failed first. The rest is not written.
    failure: Option<io::Error>,
}

/// Hashes that are read at once.
const BATCH: usize = 1 << 13;

impl Spool {
    /// Of no hashes, in the folder for temporary files.
    pub fn new() -> io::Result<Self> {
        Ok(Self { file: BufWriter::with_capacity(8 * BATCH, tempfile::tempfile()?), failure: None })
    }

    /// Adds hashes. A failure is told when they are read.
    pub fn add(&mut self, hashes: impl Iterator<Item = u64>) {
        if self.failure.is_none() {
            self.failure = hashes.map(|hash| self.file.write_all(&hash.to_le_bytes())).find_map(Result::err);
        }
    }

    /// Hands all hashes out, in batches.
    pub fn read<E>(mut self, mut each: impl FnMut(&[u64]) -> Result<(), E>) -> Result<Result<(), E>, io::Error> {
        self.failure.map_or(Ok(()), Err)?;
        self.file.flush()?;
        let mut file = self.file.get_ref();
        file.rewind()?;
        let mut left = file.metadata()?.len() as usize / 8;
        let mut reader = BufReader::with_capacity(8 * BATCH, file);
        let (mut bytes, mut hashes) = (vec![0; 8 * BATCH], Vec::new());
        while left > 0 {
            let count = left.min(BATCH);
            reader.read_exact(&mut bytes[..8 * count])?;
            let (words, _) = bytes[..8 * count].as_chunks::<8>();
            hashes.clear();
            hashes.extend(words.iter().map(|word| u64::from_le_bytes(*word)));
            if let Err(error) = each(&hashes) {
                return Ok(Err(error));
            }
            left -= count;
        }
        Ok(Ok(()))
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
            let read = spool.read(|hashes| {
                back.extend_from_slice(hashes);
                Ok::<(), ()>(())
            });
            assert!(matches!(read, Ok(Ok(()))));
            assert!(back.into_iter().eq((0..count).flat_map(|hash| [hash, !hash])), "{count}");
        }
    }
}
