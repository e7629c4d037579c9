//! The kind of compression of an output, as it is requested or as a name implies.

use crate::read::coding::Coding;
use crate::system::error::Error;
use std::fmt;
use std::path::Path;
use std::str::FromStr;

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
    /// Returns the default level of this coding's own program.
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

    /// Returns the compression of a file that is written under this name.
    pub fn from_name(path: &Path) -> Result<Self, Error> {
        Coding::from_name(path).map(Self::new)
    }

    /// Returns the requested compression for a file of this name, which must not imply another coding. Without a request, the name
    /// decides.
    pub fn for_output(path: Option<&Path>, requested: Option<Self>) -> Result<Self, Error> {
        let named = path.map_or(Ok(Self::new(Coding::Plain)), Self::from_name)?;
        match (path, requested) {
            (Some(path), Some(requested)) if ![Coding::Plain, requested.coding].contains(&named.coding) => {
                Err(Error::new(format!(
                    "cannot write to {path:?} with --compress {requested}: its name has the ending of a .{} file; \
                     choose another name, or leave out --compress",
                    named.ending()
                )))
            }
            (_, requested) => Ok(requested.unwrap_or(named)),
        }
    }

    /// Returns the extension of the names of such files, without its dot. Empty for plain files.
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

    /// Returns the name of the format, as given in the option.
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
    pub fn is_slow(self) -> bool {
        self.coding == Coding::Xz || self.coding == Coding::Zstd && self.level >= SLOW_ZSTD
    }

    /// True if the output is compressed, and not as one stream.
    pub fn is_in_pieces(self) -> bool {
        self.coding != Coding::Plain && !self.is_stream()
    }

    /// Returns the size of a piece in bytes, unless the output is one stream.
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
        if let Some(long) = self.long {
            write!(f, ":long={long}")?;
        }
        Ok(())
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
