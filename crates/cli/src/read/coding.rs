//! Codings: the compression formats of files, recognized by first bytes when read and by names when written.

use crate::system::error::Error;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Seek};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The compression format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding {
    Plain,
    Gzip,
    Zstd,
    Xz,
    Bzip2,
    Lz4,
}

/// The coding, its magic bytes, and the index of a byte whose four low bits differ from file to file.
type Magic = (Coding, &'static [u8], Option<usize>);

const MAGICS: [Magic; 7] = [
    (Coding::Gzip, b"\x1F\x8B", None),
    (Coding::Zstd, b"\x28\xB5\x2F\xFD", None),
    // A skippable frame.
    (Coding::Zstd, b"\x50\x2A\x4D\x18", Some(0)),
    (Coding::Xz, b"\xFD7zXZ\0", None),
    (Coding::Lz4, b"\x04\x22\x4D\x18", None),
    // The level, then the magic of the first block or of the end. The level alone could be text.
    (Coding::Bzip2, b"BZh0\x31\x41\x59\x26\x53\x59", Some(3)),
    (Coding::Bzip2, b"BZh0\x17\x72\x45\x38\x50\x90", Some(3)),
];

/// The length of the longest magic.
const HEAD: usize = 10;

/// The number of bytes that identify a file which ends inside its magic, and so is truncated.
const ENOUGH: usize = 4;

/// File name extensions, in lower case.
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

/// The extensions of other compressors and of compressed archives.
const FOREIGN: [&str; 15] =
    ["7z", "br", "bz", "lz", "lzma", "lzo", "rar", "snappy", "sz", "tbz2", "tgz", "txz", "tzst", "z", "zip"];

impl Coding {
    /// Returns the coding of a file with these first bytes: [`HEAD`] of them, or fewer if the file is shorter.
    pub fn from_head(head: &[u8]) -> Self {
        let head = &head[..head.len().min(HEAD)];
        let fits =
            |&&(_, magic, loose): &&Magic| head.len() >= magic.len().min(ENOUGH) && matches_magic(head, magic, loose);
        MAGICS.iter().find(fits).map_or(Self::Plain, |(coding, ..)| *coding)
    }

    /// True if a file with these first bytes may be compressed, and more bytes are needed to decide.
    pub fn needs_more(head: &[u8]) -> bool {
        MAGICS.iter().any(|(_, magic, loose)| head.len() < magic.len() && matches_magic(head, magic, *loose))
    }

    /// Returns the coding of contents with these first bytes. The whole magic must match, because a short text may match in part.
    pub fn from_contents(head: &[u8]) -> Self {
        let fits = |&&(_, magic, loose): &&Magic| head.len() >= magic.len() && matches_magic(head, magic, loose);
        MAGICS.iter().find(fits).map_or(Self::Plain, |(coding, ..)| *coding)
    }

    /// True for the first bytes of a file that ends inside a magic of this coding. They may be text, so the file's name
    /// must claim the coding.
    pub fn is_cut(self, head: &[u8]) -> bool {
        let starts = |(coding, magic, loose): &Magic| *coding == self && matches_magic(head, magic, *loose);
        (1..ENOUGH).contains(&head.len()) && MAGICS.iter().any(starts)
    }

    /// Returns the name of the format; `None` if plain.
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

    /// Returns the coding of a regular file from its current position on. The position is not changed.
    pub fn from_file(file: &File) -> io::Result<Self> {
        let mut head = [0; HEAD];
        let length = read_head(file, &mut head)?;
        Ok(Self::from_head(&head[..length]))
    }

    /// Returns the coding of a file to be written under this name.
    pub fn from_name(path: &Path) -> Result<Self, Error> {
        let ending = ending(path);
        if FOREIGN.contains(&&*ending) {
            return Err(Error::new(format!(
                "cannot write to {path:?}: the format of .{ending} is not supported; choose .gz, .zst, .xz, .bz2 or .lz4, or another \
                 ending for plain lines"
            )));
        }
        Ok(Self::from_ending(&ending).unwrap_or(Self::Plain))
    }

    /// Returns the coding for an extension in lower case.
    pub fn from_ending(ending: &str) -> Option<Self> {
        ENDINGS.iter().find(|(known, _)| *known == ending).map(|(_, coding)| *coding)
    }
}

/// Splits a name before the number that a rotation of logs appends to it: `access.log.gz` and 1.
pub fn split_number(path: &Path) -> (PathBuf, Option<&str>) {
    let is_number = |ending: &&str| !ending.is_empty() && ending.bytes().all(|byte| byte.is_ascii_digit());
    match path.extension().and_then(OsStr::to_str).filter(is_number) {
        Some(number) => (path.with_extension(""), Some(number)),
        None => (path.to_owned(), None),
    }
}

/// Returns the extension of a name in lower case, without its dot. It is before the number of a rotation.
pub fn ending(path: &Path) -> String {
    let (named, _) = split_number(path);
    named.extension().map_or_else(String::new, |ending| ending.to_string_lossy().to_ascii_lowercase())
}

fn matches_magic(head: &[u8], magic: &[u8], loose: Option<usize>) -> bool {
    let same = |(i, (a, b)): (usize, (&u8, &u8))| a == b || loose == Some(i) && a & 0xF0 == b & 0xF0;
    head.iter().zip(magic).enumerate().all(same)
}

/// Reads the first bytes of a regular file from its current position on. The position is not changed.
pub fn read_head(mut file: &File, head: &mut [u8]) -> io::Result<usize> {
    let start = file.stream_position()?;
    file.read_at(head, start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_bytes_determine_the_coding() {
        for (head, expected) in [
            (&b"\x1F\x8B\x08"[..], Coding::Gzip),
            (b"\x28\xB5\x2F\xFD\0", Coding::Zstd),
            (b"\x50\x2A\x4D\x18", Coding::Zstd),
            (b"\x5F\x2A\x4D\x18", Coding::Zstd),
            (b"\xFD7zXZ\0", Coding::Xz),
            (b"\x04\x22\x4D\x18\x60", Coding::Lz4),
            (b"BZh1\x31\x41\x59\x26\x53\x59", Coding::Bzip2),
            (b"BZh9\x17\x72\x45\x38\x50\x90", Coding::Bzip2),
            // A truncated magic number.
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
            assert!(Coding::from_head(head) == expected, "{head:?}");
        }
    }

    #[test]
    fn a_file_may_end_inside_its_magic_number() {
        for (coding, magic, _) in MAGICS {
            assert!((1..magic.len().min(ENOUGH)).all(|cut| coding.is_cut(&magic[..cut])), "{coding:?}");
            assert!(!coding.is_cut(b"") && !coding.is_cut(b"a") && !coding.is_cut(b"a\nb\n"), "{coding:?}");
        }
        assert!(!Coding::Gzip.is_cut(b"BZh") && !Coding::Plain.is_cut(b"BZh") && !Coding::Bzip2.is_cut(b"BZh\n"));
    }

    #[test]
    fn names_determine_the_coding() {
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
            // Rotated logs.
            ("a.log.gz.1", Coding::Gzip),
            ("a.zst.20261127", Coding::Zstd),
            ("a.log.1", Coding::Plain),
            ("a.gz.1.old", Coding::Plain),
            ("gz.1", Coding::Plain),
            (".gz.1", Coding::Plain),
        ] {
            assert!(Coding::from_name(Path::new(name)).is_ok_and(|coding| coding == expected), "{name}");
        }
        for name in ["a.zip", "a.Z", "a.tgz", "a.br", "a.lzma", "a.7z", "a.zip.1"] {
            let error = Coding::from_name(Path::new(name)).expect_err(name).to_string();
            assert!(error.contains("is not supported"), "{error}");
        }
    }
}
