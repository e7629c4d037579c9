//! The ids of lines by ordinal, on disk.

use crate::key::json::Pointer;
use crate::system::positioned::read_exact_at;
use std::fs::File;
use std::io::{self, BufWriter, Write};

/// The number of ids in a block, which is read at once. Memory holds the start of each block.
const BLOCK: u64 = 32;

/// The number of bytes that are written at once.
const BUFFER: usize = 1 << 17;

/// A temporary file with one id on each line.
pub struct Ids {
    texts: BufWriter<File>,
    starts: Vec<u64>,
    length: u64,
    count: u64,
    /// True if a line has an id, so that not all are `null`.
    any: bool,
}

impl Ids {
    pub fn new() -> io::Result<Self> {
        let texts = BufWriter::with_capacity(BUFFER, tempfile::tempfile()?);
        Ok(Self { texts, starts: Vec::new(), length: 0, count: 0, any: false })
    }

    /// Appends the id, on one line, of the line at the next ordinal.
    pub fn push(&mut self, id: &str) -> io::Result<()> {
        if self.count.is_multiple_of(BLOCK) {
            self.starts.push(self.length);
        }
        self.count += 1;
        self.any |= id != "null";
        self.length += id.len() as u64 + 1;
        self.texts.write_all(id.as_bytes())?;
        self.texts.write_all(b"\n")
    }

    /// Returns true if a line has an id, or if there are no lines.
    pub fn any(&self) -> bool {
        self.any || self.count == 0
    }

    /// Returns `N` readers, each with a block of its own in memory.
    pub fn read<const N: usize>(&mut self) -> io::Result<[IdReader<'_>; N]> {
        self.texts.flush()?;
        let Self { texts, starts, length, .. } = self;
        let file = texts.get_ref();
        let starts = &starts[..];
        let length = *length;
        Ok([(); N].map(|()| IdReader { file, starts, length, block: None, bytes: Vec::new() }))
    }
}

/// A reader of ids, block by block.
pub struct IdReader<'a> {
    file: &'a File,
    starts: &'a [u64],
    length: u64,
    /// The block in memory.
    block: Option<usize>,
    bytes: Vec<u8>,
}

impl IdReader<'_> {
    /// Returns the id of the line at an ordinal.
    pub fn get(&mut self, ordinal: u64) -> io::Result<&str> {
        let block = (ordinal / BLOCK) as usize;
        if self.block != Some(block) {
            let start = self.starts[block];
            let end = self.starts.get(block + 1).copied().unwrap_or(self.length);
            self.bytes.resize((end - start) as usize, 0);
            read_exact_at(self.file, &mut self.bytes, start)?;
            self.block = Some(block);
        }
        let id = self.bytes.split(|&byte| byte == b'\n').nth((ordinal % BLOCK) as usize).unwrap_or_default();
        std::str::from_utf8(id).map_err(io::Error::other)
    }
}

/// Returns the warning that no line in a report has an id.
pub fn warning(pointer: &Pointer) -> String {
    format!("no line has a value at {:?}, so all ids are null; check the value that --id names", pointer.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

        #[test]
        fn ids_are_read_in_any_order(
            lengths in prop::collection::vec(0..20usize, 1..200),
            asked in prop::collection::vec(any::<prop::sample::Index>(), 0..50),
        ) {
            let mut ids = Ids::new().unwrap();
            let id = |i: usize| format!("{i}é").repeat(lengths[i]);
            (0..lengths.len()).for_each(|i| ids.push(&id(i)).unwrap());
            let [mut ahead, mut apart] = ids.read().unwrap();
            for i in 0..lengths.len() {
                prop_assert_eq!(ahead.get(i as u64).unwrap(), id(i));
            }
            for i in asked.iter().map(|asked| asked.index(lengths.len())) {
                prop_assert_eq!(apart.get(i as u64).unwrap(), id(i));
            }
        }
    }
}
