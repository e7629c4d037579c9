//! Sets of grams on disk.

use crate::system::u64_file::U64File;
use std::collections::HashMap;
use std::io;

/// The sets that share one start.
const STRIDE: usize = 16;

/// The overhead of a cached set, in words.
const OVERHEAD: usize = 12;

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

    fn read(&self, document: u32, bytes: &mut Vec<u8>) -> io::Result<Vec<u64>> {
        let document = document as usize;
        let before = &self.sizes[document / STRIDE * STRIDE..document];
        let start = self.starts[document / STRIDE] + before.iter().map(|size| u64::from(*size)).sum::<u64>();
        self.grams.get(start, self.sizes[document] as usize, bytes)
    }
}

/// A reader that caches some sets.
pub struct SetReader {
    sets: Sets,
    known: HashMap<u32, Vec<u64>>,
    /// The bytes for cached sets, and the grams that still fit.
    memory: usize,
    room: usize,
    bytes: Vec<u8>,
}

impl SetReader {
    /// Reads sets that are complete.
    pub fn new(mut sets: Sets, memory: usize) -> io::Result<Self> {
        sets.grams.flush()?;
        Ok(Self { sets, known: HashMap::new(), memory, room: memory / 8, bytes: Vec::new() })
    }

    /// Appends the set of a document.
    pub fn read(&mut self, document: u32, into: &mut Vec<u64>) -> io::Result<()> {
        if let Some(grams) = self.known.get(&document) {
            into.extend_from_slice(grams);
            return Ok(());
        }
        let grams = self.sets.read(document, &mut self.bytes)?;
        into.extend_from_slice(&grams);
        let taken = grams.len() + OVERHEAD;
        if taken > self.room {
            self.known.clear();
            self.room = self.memory / 8;
        }
        if taken <= self.room {
            self.room -= taken;
            self.known.insert(document, grams);
        }
        Ok(())
    }
}
