//! Compression of outputs.
//!
//! A file consists of pieces, each a member, a frame or a stream of its own, which every reader accepts. So several
//! threads can compress pieces at once, and the bytes of a file do not depend on the number of threads. If matches
//! reach back farther than a piece of reasonable size, the file is one [`Stream`].
//!
//! Strong compressors take many seconds for a piece. After a signal, what is not compressed becomes pieces that take no time.

use crate::read::coding::Coding;
use crate::system::error::Error;
use crate::terminal::signals;
use crate::write::stored_xz;
use bzip2::write::BzEncoder;
use flate2::write::GzEncoder;
use liblzma::stream::{self, Check};
use liblzma::write::XzEncoder;
use lz4_flex::frame::{BlockSize, FrameEncoder, FrameInfo};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io::{self, Write};
use std::path::Path;
use std::str::FromStr;
use std::{fmt, mem};

/// Base-2 logarithms of the sizes of pieces, by the levels of zstd from 1 on and of xz from 0 on. One stream would be
/// at most 2 % smaller if no line repeats. A piece is as long as the match window at the quick levels of zstd, and
/// twice as long at the others. At the levels that are `WHOLE`, the window is larger than 8 MiB.
const GZIP_PIECE: u32 = 20;
const BZIP2_PIECE: u32 = 21;
const ZSTD_PIECES: [u32; 22] =
    [20, 20, 21, 21, 21, 22, 22, 22, 23, 23, 23, 23, 23, 23, 23, 23, 24, 24, 24, WHOLE, WHOLE, WHOLE];
const XZ_PIECES: [u32; 10] = [20, 21, 22, 23, 23, 24, 24, WHOLE, WHOLE, WHOLE];
const WHOLE: u32 = u32::MAX;

/// The level of zstd from which on a piece may take a second.
const SLOW_ZSTD: i32 = 13;

/// The bytes between two looks whether a signal came.
pub const SLICE: usize = 1 << 16;

/// The window of zstd's own `--long` without a value.
const LONG: u32 = 27;

/// The compression of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compression {
    pub coding: Coding,
    pub level: i32,
    /// The long window of zstd, as a power of two.
    pub long: Option<u32>,
}

impl Compression {
    /// The default level of this coding's own program.
    pub fn new(coding: Coding) -> Self {
        let level = match coding {
            Coding::Plain => 0,
            Coding::Gzip | Coding::Xz => 6,
            Coding::Zstd => zstd::DEFAULT_COMPRESSION_LEVEL,
            Coding::Bzip2 => 9,
            // Its encoder has only one level.
            Coding::Lz4 => 1,
        };
        Self { coding, level, long: None }
    }

    /// The compression of a file that is written under this name.
    pub fn from_name(path: &Path) -> Result<Self, Error> {
        Coding::from_name(path).map(Self::new)
    }

    /// Returns the requested compression for a file of this name, which must not imply another coding. Without a request, the name
    /// decides.
    pub fn for_output(path: Option<&Path>, asked: Option<Self>) -> Result<Self, Error> {
        let named = path.map_or(Ok(Self::new(Coding::Plain)), Self::from_name)?;
        match (path, asked) {
            (Some(path), Some(asked)) if ![Coding::Plain, asked.coding].contains(&named.coding) => {
                Err(Error::new(format!(
                    "cannot write to {path:?} with --compress {asked}: its name has the ending of a .{} file; \
                     choose another name, or leave out --compress",
                    named.ending()
                )))
            }
            (_, asked) => Ok(asked.unwrap_or(named)),
        }
    }

    /// The extension of the names of such files, without its dot. Empty for plain files.
    pub fn ending(self) -> &'static str {
        match self.coding {
            Coding::Plain => "",
            Coding::Gzip => "gz",
            Coding::Zstd => "zst",
            Coding::Xz => "xz",
            Coding::Bzip2 => "bz2",
            Coding::Lz4 => "lz4",
        }
    }

    /// The name of the format, as given in the option.
    fn kind(self) -> &'static str {
        match self.coding {
            Coding::Plain => "none",
            Coding::Gzip => "gzip",
            Coding::Zstd => "zstd",
            Coding::Xz => "xz",
            Coding::Bzip2 => "bzip2",
            Coding::Lz4 => "lz4",
        }
    }

    /// True if pieces would lose too much or take too much memory: then an output is one stream, compressed by one thread.
    pub fn is_stream(self) -> bool {
        self.long.is_some() || self.piece_log() == WHOLE
    }

    /// True if a piece may take a second or more.
    fn is_slow(self) -> bool {
        self.coding == Coding::Xz || self.coding == Coding::Zstd && self.level >= SLOW_ZSTD
    }

    /// True if the output is compressed, and not as one stream.
    pub fn is_in_pieces(self) -> bool {
        self.coding != Coding::Plain && !self.is_stream()
    }

    /// The size of a piece in bytes, unless the output is one stream.
    pub fn piece(self) -> usize {
        1 << self.piece_log()
    }

    fn piece_log(self) -> u32 {
        match self.coding {
            Coding::Zstd => ZSTD_PIECES[self.level as usize - 1],
            Coding::Xz => XZ_PIECES[self.level as usize],
            Coding::Plain | Coding::Gzip | Coding::Lz4 => GZIP_PIECE,
            Coding::Bzip2 => BZIP2_PIECE,
        }
    }
}

/// Writes the form that [`Compression::from_str`] reads.
impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.coding {
            Coding::Plain | Coding::Lz4 => f.write_str(self.kind())?,
            _ => write!(f, "{}:{}", self.kind(), self.level)?,
        }
        self.long.map_or(Ok(()), |long| write!(f, ":long={long}"))
    }
}

/// `none`, `gzip`, `zstd:19` or `zstd:19:long=27`.
impl FromStr for Compression {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.split(':').peekable();
        let kind = parts.next().unwrap_or_default();
        let coding = if kind == "none" { Some(Coding::Plain) } else { Coding::from_ending(kind) };
        let coding = coding.ok_or("not a kind of compression: give gzip, zstd, xz, bzip2, lz4 or none")?;
        let mut compression = Self::new(coding);
        if let Some(level) = parts.next_if(|part| !part.starts_with("long")) {
            let levels = match coding {
                Coding::Plain | Coding::Lz4 => return Err(format!("{kind} has no level")),
                Coding::Gzip | Coding::Bzip2 => 1..=9,
                Coding::Zstd => 1..=ZSTD_PIECES.len() as i32,
                Coding::Xz => 0..=9,
            };
            let fitting = level.parse().ok().filter(|level| levels.contains(level));
            let refused = || format!("{kind} has levels from {} to {}", levels.start(), levels.end());
            compression.level = fitting.ok_or_else(refused)?;
        }
        if let Some(long) = parts.next().map(|part| part.strip_prefix("long")) {
            let window = match long {
                Some("") => Some(LONG),
                Some(window) => window.strip_prefix('=').and_then(|window| window.parse().ok()),
                None => None,
            };
            // The range of zstd.
            let window = window.filter(|window| coding == Coding::Zstd && (10..=31).contains(window));
            compression.long = Some(window.ok_or(
                "only zstd takes more after the level: long, or long=N for a window of 2^N bytes, with N from 10 to 31",
            )?);
        }
        match parts.next() {
            Some(_) => Err("give a kind, a level and, for zstd, long or long=N, such as zstd:19:long=27".to_owned()),
            None => Ok(compression),
        }
    }
}

/// Compresses pieces, each by itself, and reuses its memory.
#[derive(Default)]
pub struct Encoder {
    /// A compressor for each level that was used.
    zstd: HashMap<i32, zstd::bulk::Compressor<'static>>,
}

impl Encoder {
    /// Compresses a piece, which may be empty.
    pub fn encode(&mut self, compression: Compression, piece: &[u8]) -> io::Result<Vec<u8>> {
        if signals::first().is_some() {
            return quick(compression, piece);
        }
        if compression.is_slow() {
            let mut stream = Stream::new(compression)?;
            if let Stream::Zstd(encoder) = &mut stream {
                encoder.set_pledged_src_size(Some(piece.len() as u64))?;
            }
            for slice in piece.chunks(SLICE) {
                if signals::first().is_some() {
                    return quick(compression, piece);
                }
                stream.write(slice)?;
            }
            return stream.finish();
        }
        if compression.coding != Coding::Zstd {
            let mut stream = Stream::new(compression)?;
            stream.write(piece)?;
            return stream.finish();
        }
        let compressor = match self.zstd.entry(compression.level) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(free) => free.insert(zstd::bulk::Compressor::new(compression.level)?),
        };
        compressor.compress(piece)
    }
}

/// Compresses a piece as well as it can be done in no time.
pub fn quick(compression: Compression, piece: &[u8]) -> io::Result<Vec<u8>> {
    match compression.coding {
        Coding::Xz => Ok(stored_xz::store(piece)),
        coding => {
            let level = if coding == Coding::Bzip2 { compression.level } else { 1 };
            let mut stream = Stream::new(Compression { coding, level, long: None })?;
            stream.write(piece)?;
            stream.finish()
        }
    }
}

/// Compresses bytes as they arrive, into memory.
pub enum Stream {
    Plain(Vec<u8>),
    Gzip(GzEncoder<Vec<u8>>),
    Zstd(zstd::Encoder<'static, Vec<u8>>),
    Xz(XzEncoder<Vec<u8>>),
    Bzip2(BzEncoder<Vec<u8>>),
    Lz4(Box<FrameEncoder<Vec<u8>>>),
}

impl Stream {
    /// Starts a stream with this compression.
    pub fn new(compression: Compression) -> io::Result<Self> {
        let (level, out) = (compression.level as u32, Vec::new());
        Ok(match compression.coding {
            Coding::Plain => Self::Plain(out),
            Coding::Gzip => Self::Gzip(GzEncoder::new(out, flate2::Compression::new(level))),
            Coding::Zstd => {
                let mut encoder = zstd::Encoder::new(out, compression.level)?;
                if let Some(window) = compression.long {
                    encoder.long_distance_matching(true)?;
                    encoder.window_log(window)?;
                }
                Self::Zstd(encoder)
            }
            Coding::Xz => Self::Xz(XzEncoder::new_stream(out, stream::Stream::new_easy_encoder(level, Check::Crc64)?)),
            Coding::Bzip2 => Self::Bzip2(BzEncoder::new(out, bzip2::Compression::new(level))),
            Coding::Lz4 => {
                // With a checksum and the largest blocks, like the program `lz4`.
                let info = FrameInfo::new().block_size(BlockSize::Max4MB).content_checksum(true);
                Self::Lz4(FrameEncoder::with_frame_info(info, out).into())
            }
        })
    }

    /// Compresses these bytes.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Plain(out) => out.write_all(bytes),
            Self::Gzip(encoder) => encoder.write_all(bytes),
            Self::Zstd(encoder) => encoder.write_all(bytes),
            Self::Xz(encoder) => encoder.write_all(bytes),
            Self::Bzip2(encoder) => encoder.write_all(bytes),
            Self::Lz4(encoder) => encoder.write_all(bytes),
        }
    }

    /// Takes the compressed bytes since the last call.
    pub fn take(&mut self) -> Vec<u8> {
        mem::take(match self {
            Self::Plain(out) => out,
            Self::Gzip(encoder) => encoder.get_mut(),
            Self::Zstd(encoder) => encoder.get_mut(),
            Self::Xz(encoder) => encoder.get_mut(),
            Self::Bzip2(encoder) => encoder.get_mut(),
            Self::Lz4(encoder) => encoder.get_mut(),
        })
    }

    /// Ends the stream. Returns the remaining compressed bytes.
    pub fn finish(self) -> io::Result<Vec<u8>> {
        match self {
            Self::Plain(out) => Ok(out),
            Self::Gzip(encoder) => encoder.finish(),
            Self::Zstd(encoder) => encoder.finish(),
            Self::Xz(encoder) => encoder.finish(),
            Self::Bzip2(encoder) => encoder.finish(),
            Self::Lz4(encoder) => encoder.finish().map_err(io::Error::from),
        }
    }
}
