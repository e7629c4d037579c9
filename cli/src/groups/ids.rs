//! What lines are called, by their places: as much as memory need not hold.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::FileExt;

/// The bytes of a number in a file.
const NUMBER: u64 = 8;

/// Bytes that are read at once of what is looked up in order, and of what is not.
const AHEAD: usize = 1 << 16;
const APART: usize = 1 << 9;

/// Two temporary files: what lines are called, and where each of these ends.
pub struct Ids {
    texts: BufWriter<File>,
    ends: BufWriter<File>,
    length: u64,
}

impl Ids {
    /// Of no lines so far.
    pub fn new() -> io::Result<Self> {
        let file = || tempfile::tempfile().map(|file| BufWriter::with_capacity(AHEAD, file));
        Ok(Self { texts: file()?, ends: file()?, length: 0 })
    }

    /// Adds that of the line at the next place.
    pub fn push(&mut self, id: &str) -> io::Result<()> {
        self.length += id.len() as u64;
        self.ends.write_all(&self.length.to_le_bytes())?;
        self.texts.write_all(id.as_bytes())
    }

    /// All of them, for those who look up `ahead` of what they looked up before, and those who do not.
    pub fn read(&mut self, ahead: bool) -> io::Result<Reader> {
        let size = if ahead { AHEAD } else { APART };
        let window = |file: &mut BufWriter<File>| {
            file.flush()?;
            Ok::<_, io::Error>(Window { file: file.get_ref().try_clone()?, size, start: 0, bytes: Vec::new() })
        };
        Ok(Reader { texts: window(&mut self.texts)?, ends: window(&mut self.ends)? })
    }
}

/// Looks lines up.
pub struct Reader {
    texts: Window,
    ends: Window,
}

impl Reader {
    /// What the line at a place is called.
    pub fn get(&mut self, place: u64) -> io::Result<String> {
        let mut end = |place: u64| {
            let bytes = self.ends.read(place * NUMBER, NUMBER as usize)?;
            Ok::<_, io::Error>(u64::from_le_bytes(bytes.try_into().expect("it has so many bytes")))
        };
        let start = place.checked_sub(1).map_or(Ok(0), &mut end)?;
        let length = end(place)? - start;
        String::from_utf8(self.texts.read(start, length as usize)?.to_vec()).map_err(io::Error::other)
    }
}

/// A part of a file in memory.
struct Window {
    file: File,
    size: usize,
    start: u64,
    bytes: Vec<u8>,
}

impl Window {
    fn read(&mut self, at: u64, length: usize) -> io::Result<&[u8]> {
        if at < self.start || at + length as u64 > self.start + self.bytes.len() as u64 {
            self.bytes.resize(self.size.max(length), 0);
            let mut filled = 0;
            while filled < self.bytes.len() {
                match self.file.read_at(&mut self.bytes[filled..], at + filled as u64)? {
                    0 => break,
                    read => filled += read,
                }
            }
            self.start = at;
            self.bytes.truncate(filled);
        }
        let from = (at - self.start) as usize;
        self.bytes.get(from..from + length).ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

        #[test]
        fn each_is_found(lengths in prop::collection::vec(0..2000usize, 1..200), asked in prop::collection::vec(any::<prop::sample::Index>(), 0..50)) {
            let mut ids = Ids::new().unwrap();
            let id = |i: usize| format!("{i}").repeat(lengths[i]);
            (0..lengths.len()).for_each(|i| ids.push(&id(i)).unwrap());
            let (mut ahead, mut apart) = (ids.read(true).unwrap(), ids.read(false).unwrap());
            for i in 0..lengths.len() {
                prop_assert_eq!(ahead.get(i as u64).unwrap(), id(i));
            }
            for i in asked.iter().map(|asked| asked.index(lengths.len())) {
                prop_assert_eq!(apart.get(i as u64).unwrap(), id(i));
            }
        }
    }
}
