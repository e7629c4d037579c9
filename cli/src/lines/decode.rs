//! Compressed inputs, known by their first bytes and not by their names.

use flate2::read::MultiGzDecoder;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::path::Path;

/// What a gzip member starts with.
const GZIP: [u8; 2] = [0x1F, 0x8B];

/// What a Zstandard frame starts with.
const ZSTD: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];

/// A skippable frame starts with this, but for the low four bits of its first byte.
const ZSTD_SKIPPABLE: [u8; 4] = [0x50, 0x2A, 0x4D, 0x18];

/// How a file is compressed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Coding {
    Plain,
    Gzip,
    Zstd,
}

impl Coding {
    /// That of a file with these first bytes, four of them if it has as many.
    pub fn of(head: &[u8]) -> Self {
        let skippable = || head.len() == ZSTD.len() && [&[head[0] & 0xF0], &head[1..]].concat() == ZSTD_SKIPPABLE;
        if head.starts_with(&GZIP) {
            Self::Gzip
        } else if head == ZSTD || skippable() {
            Self::Zstd
        } else {
            Self::Plain
        }
    }

    /// Whether the first bytes leave it open.
    fn may_be_compressed(head: &[u8]) -> bool {
        let magics = [&GZIP[..], &ZSTD, &ZSTD_SKIPPABLE];
        let agree =
            |magic: &[u8]| head.iter().zip(magic).all(|(byte, of)| byte == of || byte & 0xF0 == 0x50 && *of == 0x50);
        magics.iter().any(|magic| head.len() < magic.len() && agree(magic))
    }

    /// That of a file that is written under this name.
    pub fn of_name(path: &Path) -> Self {
        match path.extension().and_then(OsStr::to_str) {
            Some("gz") => Self::Gzip,
            Some("zst") => Self::Zstd,
            _ => Self::Plain,
        }
    }
}

/// The contents of `file`, decompressed, from the byte `start` on. `raw` sees the bytes of the file as they are read.
///
/// A compressed file is decompressed up to `start`, and this part is thrown away.
pub fn contents<R: Read + Send + 'static>(
    mut file: File,
    start: u64,
    raw: impl FnOnce(File) -> R,
) -> io::Result<Box<dyn Read + Send>> {
    let mut head = Vec::new();
    // One byte after another, for the writer of a pipe may wait after any.
    while Coding::may_be_compressed(&head) && (&file).take(1).read_to_end(&mut head)? > 0 {}
    let coding = Coding::of(&head);
    if start > 0 && coding == Coding::Plain {
        file.seek(SeekFrom::Start(start))?;
        return Ok(Box::new(raw(file)));
    }
    let whole = Cursor::new(head).chain(raw(file));
    let mut contents: Box<dyn Read + Send> = match coding {
        Coding::Plain => Box::new(whole),
        Coding::Gzip => Box::new(MultiGzDecoder::new(whole)),
        Coding::Zstd => Box::new(zstd::Decoder::new(whole)?),
    };
    io::copy(&mut (&mut contents).take(start), &mut io::sink())?;
    Ok(contents)
}
