//! Formats without lines, recognized by their first bytes or, if the bytes are not text, by the file name.

use crate::read::brotli::is_brotli;
use crate::read::coding::{self, Coding};
use crate::read::utf16::is_utf16;
use flate2::{Decompress, FlushDecompress, Status};
use std::io;
use std::path::Path;

/// The number of bytes that are examined.
pub const HEAD: usize = 512;

/// The format of tables, which builds with the feature `parquet` read from files.
pub const TABLE: &str = "Parquet";

/// A format, an offset, the bytes there, and whether these may also be text. If so, a control byte must be near.
type Format = (&'static str, usize, &'static [u8], bool);

const FORMATS: [Format; 26] = [
    (TABLE, 0, b"PAR1", true),
    (TABLE, 0, b"PARE", true),
    ("Arrow", 0, b"ARROW1\0\0", false),
    // An Arrow stream.
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
    ("framed snappy", 0, b"\xFF\x06\0\0sNaPpY", false),
    ("lzip", 0, b"LZIP\x01", false),
    ("lzop", 0, b"\x89LZO\0\r\n\x1A\n", false),
    ("RAR", 0, b"Rar!\x1A\x07", false),
    ("a bloomline filter", 0, b"\x89BLOOM\r\n", false),
    ("a bloomline filter", 0, b"\x89BLSER\r\n", false),
    // Before UTF-16, because the first two bytes are the same.
    ("UTF-32", 0, b"\xFF\xFE\0\0", false),
    ("UTF-32", 0, b"\0\0\xFE\xFF", false),
    ("UTF-16", 0, b"\xFF\xFE", false),
    ("UTF-16", 0, b"\xFE\xFF", false),
];

/// Extensions of compressed files, in lower case. Not all of their formats have a magic.
const COMPRESSED: [(&str, &str); 11] = [
    ("br", "brotli"),
    ("bz", "bzip"),
    ("lz", "lzip"),
    ("lzma", "lzma"),
    ("lzo", "lzop"),
    ("rar", "RAR"),
    ("snappy", "snappy"),
    ("sz", "snappy"),
    ("z", "compress"),
    ("zlib", "zlib"),
    ("zz", "zlib"),
];

/// Other extensions, in lower case.
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

/// The first bytes of a state's checkpoints. They are JSON, so the name is checked, too.
const CHECKPOINTS: &[u8] = b"{\"job\":{\"inputs\":";

/// Returns the format, or the coding, of contents with these first bytes, unless they are lines that end with `end`.
pub fn detect(head: &[u8], end: u8) -> Option<&'static str> {
    let head = &head[..head.len().min(HEAD)];
    let fits = |&&(_, at, magic, text): &&Format| {
        head.get(at..).is_some_and(|rest| rest.starts_with(magic)) && (!text || is_binary(head, end))
    };
    let format = FORMATS.iter().find(fits).map(|(format, ..)| *format);
    let lzma = || is_lzma(head).then_some("lzma");
    let zlib = || is_zlib(head, end).then_some("zlib");
    let utf16 = || is_utf16(head, end).then_some("UTF-16");
    // Text in UTF-8 is never parsed as brotli.
    let has_controls = || head.iter().any(|&byte| is_control(byte) && byte != end);
    let brotli = || (has_controls() && !is_utf8(head) && is_brotli(head)).then_some("brotli");
    let magic = format.or_else(|| Coding::from_contents(head).name());
    magic.or_else(lzma).or_else(zlib).or_else(utf16).or_else(brotli)
}

/// True for the header that `xz --format=lzma` writes: the usual properties, the size of the dictionary, the size of the contents
/// if known, and the first byte of the range coder, which is 0.
fn is_lzma(head: &[u8]) -> bool {
    let Some((b"]", &[a, b, c, d, ref size @ .., 0])) = head.get(..14).and_then(|head| head.split_at_checked(1)) else {
        return false;
    };
    let dictionary = u32::from_le_bytes([a, b, c, d]);
    let is_size = size == [0xFF; 8] || size[5..] == [0; 3];
    let is_known = |size: u32| size.is_power_of_two() || size.is_multiple_of(3) && (size / 3).is_power_of_two();
    is_size && dictionary >= 1 << 12 && (dictionary == u32::MAX || is_known(dictionary))
}

/// True for a zlib stream. Its header may also be text (x^, or xÚ in Latin-1), so the examined bytes must inflate.
fn is_zlib(head: &[u8], end: u8) -> bool {
    let is_header = |method: u8, flags: u8| {
        method & 0x8F == 8 && flags & 0x20 == 0 && u16::from_be_bytes([method, flags]).is_multiple_of(31)
    };
    if !head.first_chunk().is_some_and(|&[method, flags]| is_header(method, flags)) {
        return false;
    }
    match Decompress::new(true).decompress(head, &mut [0; 1 << 12], FlushDecompress::None) {
        Ok(Status::StreamEnd) => true,
        Ok(_) => head.len() == HEAD && is_binary(head, end),
        Err(_) => false,
    }
}

/// Returns the format of a file, also by its name if the contents are not text.
pub fn detect_file(path: &Path, head: &[u8], end: u8) -> Option<&'static str> {
    let by_name = || {
        let ending = coding::ending(path);
        let find = |endings: &[(&str, &'static str)]| {
            endings.iter().find(|(known, _)| *known == ending).map(|(_, format)| *format)
        };
        if ending == "resume" && head.starts_with(CHECKPOINTS) {
            return Some("the checkpoints of a bloomline state");
        }
        let compressed = find(&COMPRESSED).filter(|_| head.iter().any(|&byte| is_control(byte) && byte != end));
        compressed.or_else(|| find(&ENDINGS).filter(|_| is_binary(head, end)))
    };
    detect(head, end).or_else(by_name)
}

/// Returns the error for an input in this format.
pub fn refused(format: &'static str) -> io::Error {
    let why = match format {
        "tar" => {
            "it is a tar archive, which contains files, not lines; unpack it, pipe its files in with `tar -xOf FILE |`, or"
        }
        TABLE if cfg!(feature = "parquet") => {
            "it is Parquet, which is read only from files that are not compressed as a whole; name such a file, or"
        }
        TABLE => {
            "it is Parquet, which this build does not read; build it with `cargo build --release -p bloomline-cli --features \
             parquet`, or"
        }
        _ if Coding::from_ending(format).is_some() => {
            &format!("it is compressed twice, first by {format}; decompress it once and pipe the result in, or")
        }
        _ => &format!(
            "it is in the format of {format}, which is not supported; convert it to lines, plain or compressed by {}, or",
            coding::COMPRESSED
        ),
    };
    io::Error::new(io::ErrorKind::Unsupported, format!("{why} give --binary to read its bytes as lines"))
}

/// True for control characters other than white space and escape, which starts a color.
pub fn is_control(byte: u8) -> bool {
    matches!(byte, 0..=8 | 14..=26 | 28..=31 | 127)
}

/// True if the bytes are UTF-8. The last character may be cut.
pub fn is_utf8(head: &[u8]) -> bool {
    str::from_utf8(head).map_or_else(|error| error.error_len().is_none(), |_| true)
}

/// True if a byte is found that does not occur in text.
fn is_binary(head: &[u8], end: u8) -> bool {
    head.iter().any(|&byte| byte <= 6 && byte != end)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the beginning of a tar header: a name, and zeros up to the magic.
    fn tar(magic: &[u8]) -> Vec<u8> {
        let mut head = b"a.txt".to_vec();
        head.resize(257, 0);
        [&head, magic].concat()
    }

    #[test]
    fn first_bytes_determine_the_format() {
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
            (b"\xFF\x06\0\0sNaPpY\x01", "framed snappy"),
            (b"LZIP\x01\x0C", "lzip"),
            (b"\x89LZO\0\r\n\x1A\n\x10", "lzop"),
            (b"Rar!\x1A\x07\x01\0", "RAR"),
            (b"\x1F\x8B\x08\0", "gzip"),
            (b"\x28\xB5\x2F\xFD\x04", "zstd"),
            (b"\xFD7zXZ\0\0\x04", "xz"),
            (b"BZh91AY&SY\x7E", "bzip2"),
            (b"\x04\x22\x4D\x18\x64", "lz4"),
            // `printf 'a\nb\n' | xz --format=lzma`
            (b"]\0\0\x80\0\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x000\x82\x88m4d%", "lzma"),
            // `python3 -c 'import zlib; print(zlib.compress(b"a\nb\n"))'`
            (b"x\x9CK\xE4J\xE2\x02\0\x02t\0\xD8", "zlib"),
            (&tar(b"ustar\0"), "tar"),
            (&tar(b"ustar  \0"), "tar"),
        ] {
            for end in [b'\n', 0] {
                assert_eq!(detect(head, end), Some(format), "{head:?}");
            }
        }
    }

    /// Text is accepted with any first bytes and any file name.
    #[test]
    fn text_is_not_taken_for_another_format() {
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
            b"]\n[\n",
            b"LZIP is\n",
            b"Rar!\n",
            b"BZh9\n",
            b"BZh9",
            b"x^2 + y^2\n",
            b"x\xDA\n",
            b"x\x9C\n",
        ] {
            for name in ["a", "a.parquet", "a.PDF", "a.tar", "a.br", "a.LZMA", "a.z"] {
                assert_eq!(detect_file(Path::new(name), head, b'\n'), None, "{head:?}");
            }
        }
        // Text that starts with a valid zlib header.
        for text in [&b"x^2+y"[..], b"x^", b"x\xDA"] {
            assert_eq!(detect(&[text, &[b' '; HEAD]].concat(), b'\n'), None);
            assert_eq!(detect(&[text, &b"the words of a line\n".repeat(30)[..]].concat(), b'\n'), None);
        }
        assert_eq!(detect(b"]\0\0\0", 0), None);
        // `printf 'a\nb\n' | brotli`
        let brotli = b"\x8B\x01\x80a\nb\n\x03";
        assert_eq!(detect_file(Path::new("a.br"), brotli, b'\n'), Some("brotli"));
        assert_eq!(detect_file(Path::new("a.br.1"), brotli, b'\n'), Some("brotli"));
        assert_eq!(detect_file(Path::new("a.txt"), brotli, b'\n'), None);
        // Lines that end with NUL.
        assert_eq!(detect(b"ORCHID\0PAR1\0", 0), None);
        assert_eq!(detect_file(Path::new("names.tar"), b"ORCHID\0PAR1\0", 0), None);
        assert_eq!(detect_file(Path::new("old.TAR"), &tar(b"\0"), b'\n'), Some("tar"));
        assert_eq!(detect_file(Path::new("old.txt"), &tar(b"\0"), b'\n'), None);
    }
}
