//! A temporary file of 64-bit words, least significant byte first.

use crate::system::positioned::read_exact_at;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::sync::Arc;

/// The words that are written or read at once.
const BATCH: usize = 1 << 14;

/// Words in the order of insertion.
pub struct U64File {
    file: BufWriter<Arc<File>>,
    count: u64,
}

impl U64File {
    /// Creates an empty file in the folder for temporary files.
    pub fn new() -> io::Result<Self> {
        let file = BufWriter::with_capacity(8 * BATCH, Arc::new(tempfile::tempfile()?));
        Ok(Self { file, count: 0 })
    }

    /// Adds a word.
    pub fn push(&mut self, word: u64) -> io::Result<()> {
        self.count += 1;
        self.file.write_all(&word.to_le_bytes())
    }

    /// Returns the number of words.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns all words in order. No word may be added after that.
    pub fn read(&mut self) -> io::Result<U64Reader> {
        self.file.flush()?;
        let file = self.file.get_ref().clone();
        Ok(U64Reader { file, position: 0, left: self.count, bytes: Vec::new(), next: 0 })
    }

    /// Flushes the buffer, so that [`get`](Self::get) can read all words.
    pub fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }

    /// Appends `count` words from index `first` on. `bytes` is a buffer for them.
    pub fn get(&self, first: u64, count: usize, bytes: &mut Vec<u8>, into: &mut Vec<u64>) -> io::Result<()> {
        bytes.resize(8 * count, 0);
        read_exact_at(self.file.get_ref(), bytes, 8 * first)?;
        into.extend(bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)));
        Ok(())
    }
}

/// A reader of words, one after another.
pub struct U64Reader {
    file: Arc<File>,
    /// The offset of the bytes that are read next.
    position: u64,
    /// Words that are not yet read from disk.
    left: u64,
    bytes: Vec<u8>,
    /// The index of the next byte.
    next: usize,
}

impl U64Reader {
    fn fill(&mut self) -> io::Result<()> {
        let count = self.left.min(BATCH as u64);
        self.bytes.resize(8 * count as usize, 0);
        (self.left, self.next) = (self.left - count, 0);
        read_exact_at(&self.file, &mut self.bytes, self.position)?;
        self.position += self.bytes.len() as u64;
        Ok(())
    }

    /// Replaces the contents of `words` by the next words, up to `most`.
    pub fn next_into(&mut self, most: usize, words: &mut Vec<u64>) -> io::Result<()> {
        words.clear();
        self.by_ref().take(most).try_for_each(|word| {
            words.push(word?);
            Ok(())
        })
    }
}

impl Iterator for U64Reader {
    type Item = io::Result<u64>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.next == self.bytes.len()
            && let Err(error) = self.fill()
        {
            return Some(Err(error));
        }
        let word = self.bytes[self.next..].first_chunk()?;
        self.next += 8;
        Some(Ok(u64::from_le_bytes(*word)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_in_order() {
        for count in [0, 1, BATCH as u64, 3 * BATCH as u64 + 5] {
            let mut file = U64File::new().unwrap();
            (0..count).for_each(|i| file.push(!i).unwrap());
            assert_eq!(file.count(), count);
            assert!(file.read().unwrap().map(Result::unwrap).eq((0..count).map(|i| !i)), "{count}");
            let (last, mut words) = (count % 7, Vec::new());
            let mut reader = file.read().unwrap();
            (0..count / 7).for_each(|_| reader.next_into(7, &mut words).unwrap());
            reader.next_into(7, &mut words).unwrap();
            assert!(words.into_iter().eq((count - last..count).map(|i| !i)), "{count}");
            let (first, length) = (count / 3, (count / 2) as usize);
            let mut some = Vec::new();
            file.get(first, length, &mut Vec::new(), &mut some).unwrap();
            assert!(some.into_iter().eq((first..).map(|i| !i).take(length)), "{count}");
        }
    }

    #[test]
    fn a_truncated_file_is_an_error() {
        let mut file = U64File::new().unwrap();
        (0..100).for_each(|i| file.push(i).unwrap());
        let mut reader = file.read().unwrap();
        file.file.get_ref().set_len(792).unwrap();
        assert_eq!(reader.next().unwrap().unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}
