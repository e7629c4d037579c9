//! Formats whose bytes are no lines: known by what files begin with, or by their names where the bytes are no text.

use crate::error::Error;
use std::io;
use std::path::Path;

/// As much of a file as is looked at.
pub const HEAD: usize = 512;

/// The format of tables, which some builds read from files.
pub const TABLE: &str = "Parquet";

/// A format, what its files have at this byte, and whether that may be text too. Then a byte that no text has must be near.
type Format = (&'static str, usize, &'static [u8], bool);

const FORMATS: [Format; 22] = [
    (TABLE, 0, b"PAR1", true),
    (TABLE, 0, b"PARE", true),
    ("Arrow", 0, b"ARROW1\0\0", false),
    // A stream of it.
    ("Arrow", 0, b"\xFF\xFF\xFF\xFF", false),
    ("Feather", 0, b"FEA1", true),
    ("Avro", 0, b"Obj\x01", false),
    ("ORC", 0, b"ORC", true),
    ("SQLite", 0, b"SQLite format 3\0", false),
    ("zip", 0, b"PK\x03\x04", false),
    ("zip", 0, b"PK\x05\x06", false),
    ("7z", 0, b"7z\xBC\xAF\x27\x1C", false),
    ("tar", 257, b"ustar\0", false),
    ("tar", 257, b"ustar  \0", false),
    ("PDF", 0, b"%PDF-", false),
    ("compress", 0, b"\x1F\x9D", false),
    ("legacy lz4", 0, b"\x02\x21\x4C\x18", false),
    ("a bloomline filter", 0, b"\x89BLOOM\r\n", false),
    ("a bloomline filter", 0, b"\x89BLSER\r\n", false),
    // Its first two bytes would be those of UTF-16.
    ("UTF-32", 0, b"\xFF\xFE\0\0", false),
    ("UTF-32", 0, b"\0\0\xFE\xFF", false),
    ("UTF-16", 0, b"\xFF\xFE", false),
    ("UTF-16", 0, b"\xFE\xFF", false),
];

/// Endings of names, in lower case.
const ENDINGS: [(&str, &str); 12] = [
    ("7z", "7z"),
    ("arrow", "Arrow"),
    ("arrows", "Arrow"),
    ("avro", "Avro"),
    ("feather", "Feather"),
    ("ipc", "Arrow"),
    ("orc", "ORC"),
    ("parquet", TABLE),
    ("pdf", "PDF"),
    ("sqlite", "SQLite"),
    ("tar", "tar"),
    ("zip", "zip"),
];

/// The format of what begins with this, if it is none of lines that end with `end`.
pub fn of_head(head: &[u8], end: u8) -> Option<&'static str> {
    let head = &head[..head.len().min(HEAD)];
    let fits = |&&(_, at, magic, text): &&Format| {
        head.get(at..).is_some_and(|rest| rest.starts_with(magic)) && (!text || is_binary(head, end))
    };
    FORMATS.iter().find(fits).map(|(format, ..)| *format)
}

/// The same of a file: by its name too, unless it begins as text.
pub fn of_file(path: &Path, head: &[u8], end: u8) -> Option<&'static str> {
    let by_name = || {
        let ending = path.extension()?.to_str()?.to_ascii_lowercase();
        ENDINGS.iter().find(|(known, _)| *known == ending).filter(|_| is_binary(head, end)).map(|(_, format)| *format)
    };
    of_head(head, end).or_else(by_name)
}

/// The failure of an input in this format.
pub fn refused(format: &'static str) -> io::Error {
    let error = match format {
        "tar" => Error::TarInput,
        TABLE if cfg!(feature = "parquet") => Error::PipedTable,
        TABLE => Error::NoTables,
        format => Error::ForeignInput { format },
    };
    io::Error::new(io::ErrorKind::Unsupported, error)
}

/// Whether there is a byte that stands in no text.
fn is_binary(head: &[u8], end: u8) -> bool {
    head.iter().any(|&byte| byte <= 6 && byte != end)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A header as `tar` writes it: the name, and zeros up to the magic.
    fn tar(magic: &[u8]) -> Vec<u8> {
        let mut head = b"a.txt".to_vec();
        head.resize(257, 0);
        [&head, magic].concat()
    }

    #[test]
    fn first_bytes_tell_the_format() {
        for (head, format) in [
            (&b"PAR1\x15\x04\x15"[..], "Parquet"),
            (b"ARROW1\0\0\xFF\xFF", "Arrow"),
            (b"\xFF\xFF\xFF\xFF\x70\0\0\0", "Arrow"),
            (b"Obj\x01\x04\x16avro", "Avro"),
            (b"ORC\x1D\0\0\x0A\x06", "ORC"),
            (b"SQLite format 3\0\x10", "SQLite"),
            (b"PK\x03\x04\x14", "zip"),
            (b"PK\x05\x06\0", "zip"),
            (b"7z\xBC\xAF\x27\x1C\0", "7z"),
            (b"%PDF-1.7\n", "PDF"),
            (b"\x1F\x9D\x90", "compress"),
            (b"\x02\x21\x4C\x18", "legacy lz4"),
            (b"\x89BLOOM\r\n\x02", "a bloomline filter"),
            (b"\xFF\xFEa\0", "UTF-16"),
            (b"\xFE\xFF\0a", "UTF-16"),
            (b"\xFF\xFE\0\0", "UTF-32"),
            (&tar(b"ustar\0"), "tar"),
            (&tar(b"ustar  \0"), "tar"),
        ] {
            for end in [b'\n', 0] {
                assert_eq!(of_head(head, end), Some(format), "{head:?}");
            }
        }
    }

    /// Lines are lines, whatever they begin with, and whatever the name of their file is.
    #[test]
    fn text_is_no_format() {
        for head in [
            &b""[..],
            b"PAR1",
            b"PAR1\nPAR2\n",
            b"ORC\nELF\n",
            b"ORCHID\n",
            b"FEA1 is a gene\n",
            b"Object\n",
            b"ARROW1\n",
            b"SQLite format 3\n",
            b"PK\n",
            b"7z is\n",
            b"%PDF\n",
            b"\xEF\xBB\xBFa\n",
            b"\xFF\xFF\n",
        ] {
            for name in ["a", "a.parquet", "a.PDF", "a.tar"] {
                assert_eq!(of_file(Path::new(name), head, b'\n'), None, "{head:?}");
            }
        }
        // NULs end lines.
        assert_eq!(of_head(b"ORCHID\0PAR1\0", 0), None);
        assert_eq!(of_file(Path::new("names.tar"), b"ORCHID\0PAR1\0", 0), None);
        assert_eq!(of_file(Path::new("old.TAR"), &tar(b"\0"), b'\n'), Some("tar"));
        assert_eq!(of_file(Path::new("old.txt"), &tar(b"\0"), b'\n'), None);
    }
}
