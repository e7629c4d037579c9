//! The kind of compression of an output, as it is requested or as a name implies.

use crate::read::coding::{COMPRESSED, Coding, CodingFormat, WHOLE};
use crate::system::error::Error;
use std::fmt;
use std::path::Path;
use std::str::FromStr;

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
        Self { coding, level: coding.format().default_level, long: None }
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
        self.coding.format().endings.first().copied().unwrap_or_default()
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
        let CodingFormat { first_level, pieces, .. } = self.coding.format();
        pieces[(self.level - first_level) as usize]
    }
}

/// Writes the form that [`Compression::from_str`] reads.
impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CodingFormat { name, pieces, .. } = self.coding.format();
        f.write_str(name)?;
        if pieces.len() > 1 {
            write!(f, ":{}", self.level)?;
        }
        match self.long {
            Some(long) => write!(f, ":long={long}"),
            None => Ok(()),
        }
    }
}

/// `none`, `gzip`, `zstd:19` or `zstd:19:long=27`.
impl FromStr for Compression {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.split(':').peekable();
        let kind = parts.next().unwrap_or_default();
        let coding = if kind == "none" { Some(Coding::Plain) } else { Coding::from_ending(kind) };
        let coding = coding.ok_or_else(|| format!("not a kind of compression: give none, {COMPRESSED}"))?;
        let mut compression = Self::new(coding);
        if let Some(level) = parts.next_if(|part| !part.starts_with("long")) {
            let CodingFormat { first_level, pieces, .. } = coding.format();
            if pieces.len() == 1 {
                return Err(format!("{kind} has no level"));
            }
            let levels = *first_level..=first_level + pieces.len() as i32 - 1;
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
