//! Sets of grams on disk.

use crate::system::u64_file::U64File;
use std::io;

/// The sets that share one start.
const STRIDE: usize = 16;

/// Sets of grams in a file, in the order of documents.
pub struct Sets {
    grams: U64File,
    /// The number of grams in each set.
    pub sizes: Vec<u32>,
    /// The number of grams before each [`STRIDE`] sets.
    starts: Vec<u64>,
}

impl Sets {
    pub fn new() -> io::Result<Self> {
        Ok(Self { grams: U64File::new()?, sizes: Vec::new(), starts: Vec::new() })
    }

    /// Appends the set of the next document.
    pub fn push(&mut self, grams: &[u64]) -> io::Result<()> {
        if self.sizes.len().is_multiple_of(STRIDE) {
            self.starts.push(self.grams.count());
        }
        self.sizes.push(grams.len().try_into().map_err(io::Error::other)?);
        grams.iter().try_for_each(|gram| self.grams.push(*gram))
    }

    /// Returns the number of grams in all sets.
    pub fn grams(&self) -> u64 {
        self.grams.count()
    }

    /// Writes the buffered sets, so that [`read`](Self::read) finds all of them.
    pub fn flush(&mut self) -> io::Result<()> {
        self.grams.flush()
    }

    /// Appends the set of a document. `bytes` is scratch memory.
    pub fn read(&self, document: u32, bytes: &mut Vec<u8>, into: &mut Vec<u64>) -> io::Result<()> {
        let document = document as usize;
        let before = &self.sizes[document / STRIDE * STRIDE..document];
        let start = self.starts[document / STRIDE] + before.iter().map(|size| u64::from(*size)).sum::<u64>();
        self.grams.get(start, self.sizes[document] as usize, bytes, into)
    }
}
