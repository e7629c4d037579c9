//! A batch: a chunk of lines, and what is found out about each.

use crate::chunks::{Chunk, Chunks};
use crate::error::Error;
use crate::lines::newlines;
use bloomline::KeyHasher;

/// Lines, their hashes, and a mark for each. Its memory is used again and again.
#[derive(Default)]
pub struct Batch {
    chunk: Chunk,
    /// Where each line ends, past its newline.
    ends: Vec<usize>,
    hashes: Vec<u64>,
    marks: Vec<bool>,
}

impl Batch {
    /// Takes the next lines; `false` if there are none.
    pub fn fill(&mut self, chunks: &mut Chunks) -> Result<bool, Error> {
        chunks.fill(&mut self.chunk)
    }

    /// Splits the lines and hashes each, without its newline.
    pub fn hash(&mut self, hasher: &KeyHasher) {
        self.ends.clear();
        self.hashes.clear();
        let bytes = self.chunk.bytes();
        newlines(bytes, |newline| self.ends.push(newline + 1));
        let mut start = 0;
        self.hashes.extend(self.ends.iter().map(|&end| {
            let line = &bytes[start..end - 1];
            start = end;
            hasher.bytes(line)
        }));
    }

    /// Lets `mark` set the mark of each hash. Returns what it returns.
    pub fn mark(&mut self, mark: impl FnOnce(&[u64], &mut [bool]) -> usize) -> usize {
        self.marks.resize(self.hashes.len(), false);
        mark(&self.hashes, &mut self.marks)
    }

    /// The number of lines.
    pub fn lines(&self) -> usize {
        self.ends.len()
    }

    /// The length of the lines with their newlines.
    pub fn bytes(&self) -> usize {
        self.chunk.bytes().len()
    }

    /// How many lines have the mark.
    pub fn count(&self, mark: bool) -> usize {
        self.marks.iter().filter(|&&other| other == mark).count()
    }

    /// The lines that have the mark, each with its newline; neighbours are one piece.
    pub fn pieces(&self, mark: bool) -> impl Iterator<Item = &[u8]> {
        let (mut lines, mut start) = (0, 0);
        self.marks.chunk_by(|a, b| a == b).filter_map(move |run| {
            lines += run.len();
            let piece = &self.chunk.bytes()[start..self.ends[lines - 1]];
            start = self.ends[lines - 1];
            (run[0] == mark).then_some(piece)
        })
    }
}
