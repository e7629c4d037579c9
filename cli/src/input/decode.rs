//! Compressed files: known by their first bytes where they are read, and by their names where they are written.

use crate::error::Error;
use crate::files;
use bzip2::bufread::MultiBzDecoder;
use flate2::bufread::GzDecoder;
use liblzma::bufread::XzDecoder;
use liblzma::stream::{CONCATENATED, Stream};
use lz4_flex::frame::FrameDecoder;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// How a file is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding {
    Plain,
    Gzip,
    Zstd,
    Xz,
    Bzip2,
    Lz4,
}

/// What a compressed file starts with: its coding; the bytes; and which of them has four low bits that differ from file to file.
type Magic = (Coding, &'static [u8], Option<usize>);

const MAGICS: [Magic; 7] = [
    (Coding::Gzip, b"\x1F\x8B", None),
    (Coding::Zstd, b"\x28\xB5\x2F\xFD", None),
    // A skippable frame.
    (Coding::Zstd, b"\x50\x2A\x4D\x18", Some(0)),
    (Coding::Xz, b"\xFD7zXZ\0", None),
    (Coding::Lz4, b"\x04\x22\x4D\x18", None),
    // The level, and a first block or the end. The level alone could be text.
    (Coding::Bzip2, b"BZh0\x31\x41\x59\x26\x53\x59", Some(3)),
    (Coding::Bzip2, b"BZh0\x17\x72\x45\x38\x50\x90", Some(3)),
];

/// The length of the longest of them.
const HEAD: usize = 10;

/// A file that ends inside of its magic is known by so many bytes, and is then truncated.
const ENOUGH: usize = 4;

/// Endings of names, in lower case.
const ENDINGS: [(&str, Coding); 8] = [
    ("gz", Coding::Gzip),
    ("gzip", Coding::Gzip),
    ("zst", Coding::Zstd),
    ("zstd", Coding::Zstd),
    ("xz", Coding::Xz),
    ("bz2", Coding::Bzip2),
    ("bzip2", Coding::Bzip2),
    ("lz4", Coding::Lz4),
];

/// Those of other compressors, and of compressed archives.
const FOREIGN: [&str; 15] =
    ["7z", "br", "bz", "lz", "lzma", "lzo", "rar", "snappy", "sz", "tbz2", "tgz", "txz", "tzst", "z", "zip"];

impl Coding {
    /// That of a file with these first bytes, [`HEAD`] of them if it has as many.
    pub fn of(head: &[u8]) -> Self {
        let head = &head[..head.len().min(HEAD)];
        let fits = |&&(_, magic, loose): &&Magic| head.len() >= magic.len().min(ENOUGH) && agree(head, magic, loose);
        MAGICS.iter().find(fits).map_or(Self::Plain, |(coding, ..)| *coding)
    }

    /// That of contents that begin so, with all of its magic: they may be text that ends soon.
    pub fn of_contents(head: &[u8]) -> Self {
        let fits = |&&(_, magic, loose): &&Magic| head.len() >= magic.len() && agree(head, magic, loose);
        MAGICS.iter().find(fits).map_or(Self::Plain, |(coding, ..)| *coding)
    }

    /// What its format is called; `None` if it is plain.
    pub fn name(self) -> Option<&'static str> {
        match self {
            Self::Plain => None,
            Self::Gzip => Some("gzip"),
            Self::Zstd => Some("zstd"),
            Self::Xz => Some("xz"),
            Self::Bzip2 => Some("bzip2"),
            Self::Lz4 => Some("lz4"),
        }
    }

    /// That of a regular file, from its position on, which stays where it is.
    pub fn of_file(file: &File) -> io::Result<Self> {
        let mut head = [0; HEAD];
        let length = read_head(file, &mut head)?;
        Ok(Self::of(&head[..length]))
    }

    /// That of a file that is written under this name.
    pub fn of_name(path: &Path) -> Result<Self, Error> {
        let ending = path.extension().map_or_else(String::new, |ending| ending.to_string_lossy().to_ascii_lowercase());
        if FOREIGN.contains(&&*ending) {
            return Err(Error::ForeignOutput { output: files::name(path), ending });
        }
        Ok(Self::of_ending(&ending).unwrap_or(Self::Plain))
    }

    /// That which an ending in lower case stands for.
    pub fn of_ending(ending: &str) -> Option<Self> {
        ENDINGS.iter().find(|(known, _)| *known == ending).map(|(_, coding)| *coding)
    }
}

fn agree(head: &[u8], magic: &[u8], loose: Option<usize>) -> bool {
    let same = |(i, (a, b)): (usize, (&u8, &u8))| a == b || loose == Some(i) && a & 0xF0 == b & 0xF0;
    head.iter().zip(magic).enumerate().all(same)
}

/// The first bytes of a regular file from its position on, which stays where it is.
pub fn read_head(mut file: &File, head: &mut [u8]) -> io::Result<usize> {
    let start = file.stream_position()?;
    file.read_at(head, start)
}

/// A file that is read.
pub struct Source {
    pub file: Arc<File>,
    /// Counts the bytes that are read.
    pub read: Arc<AtomicU64>,
    /// Gets these bytes too, if it is there.
    pub copy: Option<Arc<File>>,
}

impl Source {
    fn take_note(&mut self, bytes: &[u8]) -> io::Result<()> {
        // For a display that may lag behind.
        self.read.fetch_add(bytes.len() as u64, Relaxed);
        let copied = self.copy.as_mut().map_or(Ok(()), |copy| copy.write_all(bytes));
        copied.map_err(|source| io::Error::other(Error::Copy { source }))
    }
}

impl Read for Source {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.file.read(buffer)?;
        self.take_note(&buffer[..n])?;
        Ok(n)
    }
}

/// The contents of a file, decompressed, from the byte `start` on. It is read in pieces of `buffer` bytes where it is compressed.
///
/// A compressed file is decompressed up to `start`, and this part is thrown away.
pub fn contents(source: Source, start: u64, buffer: usize) -> io::Result<Box<dyn Read + Send>> {
    let mut file = source;
    let mut head = Vec::new();
    let open =
        |head: &[u8]| MAGICS.iter().any(|(_, magic, loose)| head.len() < magic.len() && agree(head, magic, *loose));
    // One byte after another, for the writer of a pipe may wait after any.
    while open(&head) && (&*file.file).take(1).read_to_end(&mut head)? > 0 {}
    let coding = Coding::of(&head);
    if start > 0 && coding == Coding::Plain {
        check_reach(file.file.metadata()?.len(), start)?;
        file.file.seek(SeekFrom::Start(start))?;
        // What is skipped counts as read.
        file.read.fetch_add(start, Relaxed);
        return Ok(Box::new(file));
    }
    file.take_note(&head)?;
    let whole = Cursor::new(head).chain(file);
    let buffered = |whole| BufReader::with_capacity(buffer, whole);
    let mut contents: Box<dyn Read + Send> = match coding {
        Coding::Plain => Box::new(whole),
        Coding::Gzip => Box::new(Members(Some(GzDecoder::new(buffered(whole))))),
        Coding::Zstd => {
            let mut decoder = zstd::Decoder::with_buffer(buffered(whole))?;
            // The longest window there is. A frame takes the memory that its own asks for.
            decoder.window_log_max(31)?;
            Box::new(decoder)
        }
        Coding::Xz => {
            let stream = Stream::new_stream_decoder(u64::MAX, CONCATENATED)?;
            Box::new(Streams { decoder: XzDecoder::new_stream(buffered(whole), stream), failure: None })
        }
        Coding::Bzip2 => Box::new(MultiBzDecoder::new(buffered(whole))),
        Coding::Lz4 => Box::new(Frames(FrameDecoder::new(buffered(whole)))),
    };
    check_reach(io::copy(&mut (&mut contents).take(start), &mut io::sink())?, start)?;
    Ok(contents)
}

/// Refuses a start behind the end of contents of `have` bytes, and of the end that their last line gets.
fn check_reach(have: u64, start: u64) -> io::Result<()> {
    if start > have.saturating_add(1) {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, Error::Short { have, want: start }));
    }
    Ok(())
}

/// The members of a gzip file, one after another; `None` at the end. Zeros may follow the last one, as gzip has it: they fill
/// the last block of a tape.
struct Members<R>(Option<GzDecoder<R>>);

impl<R: BufRead> Read for Members<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.0 {
            let n = member.read(buffer)?;
            if n > 0 {
                return Ok(n);
            }
            let rest = member.get_mut();
            let mut padded = false;
            while let zeros @ 1.. = rest.fill_buf()?.iter().take_while(|&&byte| byte == 0).count() {
                rest.consume(zeros);
                padded = true;
            }
            let ended = rest.fill_buf()?.is_empty();
            if padded && !ended {
                return Err(io::Error::new(io::ErrorKind::InvalidData, Error::Padding));
            }
            self.0 = self.0.take().filter(|_| !ended).map(|member| GzDecoder::new(member.into_inner()));
        }
        Ok(0)
    }
}

/// The frames of an lz4 file, one after another.
struct Frames<R: BufRead>(FrameDecoder<R>);

impl<R: BufRead> Read for Frames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let n = self.0.read(buffer)?;
            if n > 0 || buffer.is_empty() || self.0.get_mut().fill_buf()?.is_empty() {
                return Ok(n);
            }
        }
    }
}

/// The streams of an xz file. The decoder's own `read` takes what comes before an error with it.
struct Streams<R> {
    decoder: XzDecoder<R>,
    failure: Option<io::Error>,
}

impl<R: BufRead> Read for Streams<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some(error) = self.failure.take() {
            return Err(error);
        }
        let before = self.decoder.total_out();
        self.decoder.read(buffer).or_else(|error| match (self.decoder.total_out() - before) as usize {
            0 => Err(error),
            n => {
                self.failure = Some(error);
                Ok(n)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_bytes_tell_the_coding() {
        for (head, expected) in [
            (&b"\x1F\x8B\x08"[..], Coding::Gzip),
            (b"\x28\xB5\x2F\xFD\0", Coding::Zstd),
            (b"\x50\x2A\x4D\x18", Coding::Zstd),
            (b"\x5F\x2A\x4D\x18", Coding::Zstd),
            (b"\xFD7zXZ\0", Coding::Xz),
            (b"\x04\x22\x4D\x18\x60", Coding::Lz4),
            (b"BZh1\x31\x41\x59\x26\x53\x59", Coding::Bzip2),
            (b"BZh9\x17\x72\x45\x38\x50\x90", Coding::Bzip2),
            // Truncated.
            (b"\xFD7zX", Coding::Xz),
            (b"BZh9", Coding::Bzip2),
            (b"BZh9\x31\x41", Coding::Bzip2),
            (b"", Coding::Plain),
            (b"\x1F", Coding::Plain),
            (b"BZh", Coding::Plain),
            (b"BZh9\n", Coding::Plain),
            (b"BZh9 \x41\x59\x26\x53\x59", Coding::Plain),
            (b"PK\n", Coding::Plain),
            (b"7z is", Coding::Plain),
        ] {
            assert!(Coding::of(head) == expected, "{head:?}");
        }
    }

    #[test]
    fn names_tell_the_coding() {
        for (name, expected) in [
            ("a", Coding::Plain),
            ("gz", Coding::Plain),
            ("a.txt", Coding::Plain),
            ("a.gz.txt", Coding::Plain),
            ("a.gz", Coding::Gzip),
            ("a.GZ", Coding::Gzip),
            ("a.gzip", Coding::Gzip),
            ("a.Zst", Coding::Zstd),
            ("a.zstd", Coding::Zstd),
            ("a.XZ", Coding::Xz),
            ("a.bz2", Coding::Bzip2),
            ("a.LZ4", Coding::Lz4),
        ] {
            assert!(Coding::of_name(Path::new(name)).is_ok_and(|coding| coding == expected), "{name}");
        }
        for name in ["a.zip", "a.Z", "a.tgz", "a.br", "a.lzma", "a.7z"] {
            assert!(matches!(Coding::of_name(Path::new(name)), Err(Error::ForeignOutput { .. })), "{name}");
        }
    }

    /// Whether it is read from its start or from the middle.
    #[test]
    fn the_bytes_of_the_file_are_counted() {
        let lines: Vec<u8> = (0..100_000).flat_map(|i| format!("line {i}\n").into_bytes()).collect();
        let gzip = {
            let mut encoder = flate2::read::GzEncoder::new(&lines[..], flate2::Compression::fast());
            let mut bytes = Vec::new();
            encoder.read_to_end(&mut bytes).unwrap();
            bytes
        };
        let like_bzip2 = [b"BZh9\n", &lines[..]].concat();
        for (bytes, length) in [(&lines, lines.len()), (&gzip, lines.len()), (&like_bzip2, lines.len() + 5)] {
            for start in [0, 3, length as u64 / 2] {
                let mut file = Arc::new(tempfile::tempfile().unwrap());
                file.write_all(bytes).unwrap();
                file.rewind().unwrap();
                let read = Arc::default();
                let mut rest = Vec::new();
                let source = Source { file, read: Arc::clone(&read), copy: None };
                contents(source, start, 1 << 12).unwrap().read_to_end(&mut rest).unwrap();
                assert_eq!(rest.len() as u64, length as u64 - start);
                assert_eq!(read.load(Relaxed), bytes.len() as u64);
            }
        }
    }
}
