//! Codings: the compression formats of files, recognized by first bytes when read and by names when written.

use crate::system::error::Error;
use crate::system::positioned::read_at;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Seek};
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

/// The properties of a coding.
pub struct CodingFormat {
    coding: Coding,
    /// Its name, as options give it.
    pub name: &'static str,
    /// The extensions of its files, in lower case. Outputs get the first one.
    pub endings: &'static [&'static str],
    /// The bytes with which a file begins, and the index of a byte whose four low bits differ from file to file.
    magics: &'static [(&'static [u8], Option<usize>)],
    /// The default level of its own program.
    pub default_level: i32,
    /// The lowest level.
    pub first_level: i32,
    /// Base-2 logarithms of the sizes of the pieces in which outputs are compressed, by level.
    pub pieces: &'static [u32],
}

/// The size of a piece at levels whose window is larger than 8 MiB: the output is one stream.
pub const WHOLE: u32 = u32::MAX;

/// One stream would be at most 2 % smaller than pieces if no line repeats. A piece is as long as the match window at the quick levels
/// of zstd, and twice as long at the others.
const FORMATS: [CodingFormat; 6] = [
    CodingFormat {
        coding: Coding::Plain,
        name: "none",
        endings: &[],
        magics: &[],
        default_level: 0,
        first_level: 0,
        pieces: &[20],
    },
    CodingFormat {
        coding: Coding::Gzip,
        name: "gzip",
        endings: &["gz", "gzip"],
        magics: &[(b"\x1F\x8B", None)],
        default_level: 6,
        first_level: 1,
        pieces: &[20; 9],
    },
    CodingFormat {
        coding: Coding::Zstd,
        name: "zstd",
        endings: &["zst", "zstd"],
        // A frame, and a skippable frame.
        magics: &[(b"\x28\xB5\x2F\xFD", None), (b"\x50\x2A\x4D\x18", Some(0))],
        default_level: zstd::DEFAULT_COMPRESSION_LEVEL,
        first_level: 1,
        pieces: &[20, 20, 21, 21, 21, 22, 22, 22, 23, 23, 23, 23, 23, 23, 23, 23, 24, 24, 24, WHOLE, WHOLE, WHOLE],
    },
    CodingFormat {
        coding: Coding::Xz,
        name: "xz",
        endings: &["xz"],
        magics: &[(b"\xFD7zXZ\0", None)],
        default_level: 6,
        first_level: 0,
        pieces: &[20, 21, 22, 23, 23, 24, 24, WHOLE, WHOLE, WHOLE],
    },
    CodingFormat {
        coding: Coding::Bzip2,
        name: "bzip2",
        endings: &["bz2", "bzip2"],
        // The level, then the magic of the first block or of the end. The level alone could be text.
        magics: &[(b"BZh0\x31\x41\x59\x26\x53\x59", Some(3)), (b"BZh0\x17\x72\x45\x38\x50\x90", Some(3))],
        default_level: 9,
        first_level: 1,
        pieces: &[21; 9],
    },
    CodingFormat {
        coding: Coding::Lz4,
        name: "lz4",
        endings: &["lz4"],
        magics: &[(b"\x04\x22\x4D\x18", None)],
        // Its encoder has only one level.
        default_level: 1,
        first_level: 1,
        pieces: &[20],
    },
];

/// The names of the compression formats, for messages.
pub const COMPRESSED: &str = "gzip, zstd, xz, bzip2 or lz4";

/// Returns the magics of all codings.
fn magics() -> impl Iterator<Item = (Coding, &'static [u8], Option<usize>)> {
    FORMATS.iter().flat_map(|format| format.magics.iter().map(|&(magic, loose)| (format.coding, magic, loose)))
}

/// The length of the longest magic.
const HEAD: usize = 10;

/// The number of bytes that identify a file which ends inside its magic, and so is truncated.
const ENOUGH: usize = 4;

/// The extensions of other compressors and of compressed archives.
const FOREIGN: [&str; 15] =
    ["7z", "br", "bz", "lz", "lzma", "lzo", "rar", "snappy", "sz", "tbz2", "tgz", "txz", "tzst", "z", "zip"];

impl Coding {
    /// The properties of the coding.
    pub fn format(self) -> &'static CodingFormat {
        FORMATS.iter().find(|format| format.coding == self).expect("each coding has a format")
    }

    /// Returns the coding of a file with these first bytes: [`HEAD`] of them, or fewer if the file is shorter.
    pub fn from_head(head: &[u8]) -> Self {
        let head = &head[..head.len().min(HEAD)];
        Self::from_magic(head, ENOUGH)
    }

    /// True if a file with these first bytes may be compressed, and more bytes are needed to decide.
    pub fn needs_more(head: &[u8]) -> bool {
        magics().any(|(_, magic, loose)| head.len() < magic.len() && matches_magic(head, magic, loose))
    }

    /// Returns the coding of contents with these first bytes. The whole magic must match, because a short text may match in part.
    pub fn from_contents(head: &[u8]) -> Self {
        Self::from_magic(head, usize::MAX)
    }

    /// Returns the coding whose magic has these first bytes: at least `enough` of them, or all.
    fn from_magic(head: &[u8], enough: usize) -> Self {
        magics()
            .find(|(_, magic, loose)| head.len() >= magic.len().min(enough) && matches_magic(head, magic, *loose))
            .map_or(Self::Plain, |(coding, ..)| coding)
    }

    /// True for the first bytes of a file that ends inside a magic of this coding. They may be text, so the file's name
    /// must claim the coding.
    pub fn is_cut(self, head: &[u8]) -> bool {
        (1..ENOUGH).contains(&head.len())
            && magics().any(|(coding, magic, loose)| coding == self && matches_magic(head, magic, loose))
    }

    /// Returns the name of the format; `None` if plain.
    pub fn name(self) -> Option<&'static str> {
        (self != Self::Plain).then_some(self.format().name)
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
        FORMATS.iter().find(|format| format.endings.contains(&ending)).map(|format| format.coding)
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
    read_at(file, head, start)
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
        for (coding, magic, _) in magics() {
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
