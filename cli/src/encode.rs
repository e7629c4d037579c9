//! Compressing what is written, a piece at a time.
//!
//! Each piece becomes a member, a frame or a stream of its own, and a file is these one after another: every reader takes that.
//! So pieces can be compressed by several threads at once, and the bytes of a file do not depend on how many there are.

use crate::lines::decode::Coding;
use bzip2::write::BzEncoder;
use flate2::write::GzEncoder;
use liblzma::stream::{Check, Stream};
use liblzma::write::XzEncoder;
use std::io::{self, Write};

/// How an output is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compression {
    pub coding: Coding,
    pub level: i32,
}

impl Compression {
    /// At the level that the programs of this coding have by default.
    pub fn of(coding: Coding) -> Self {
        let level = match coding {
            Coding::Plain => 0,
            Coding::Gzip | Coding::Xz => 6,
            Coding::Zstd => zstd::DEFAULT_COMPRESSION_LEVEL,
            Coding::Bzip2 => 9,
        };
        Self { coding, level }
    }

    /// What the names of such files end with, after a point.
    pub fn ending(self) -> &'static str {
        match self.coding {
            Coding::Plain => "",
            Coding::Gzip => "gz",
            Coding::Zstd => "zst",
            Coding::Xz => "xz",
            Coding::Bzip2 => "bz2",
        }
    }

    /// The bytes that are compressed together: so many that one stream of all pieces would be hardly smaller.
    pub fn piece(self) -> usize {
        match self.coding {
            // Written as they come.
            Coding::Plain => 1 << 16,
            Coding::Gzip => 1 << 20,
            Coding::Zstd => 1 << 22,
            Coding::Bzip2 => 9 * 100_000,
            Coding::Xz => 1 << 24,
        }
    }
}

/// Compresses pieces. Its memory is used again and again.
pub struct Encoder {
    compression: Compression,
    zstd: Option<zstd::bulk::Compressor<'static>>,
}

impl Encoder {
    /// For pieces of an output that is compressed like this.
    pub fn new(compression: Compression) -> io::Result<Self> {
        let zstd = (compression.coding == Coding::Zstd).then(|| zstd::bulk::Compressor::new(compression.level));
        Ok(Self { compression, zstd: zstd.transpose()? })
    }

    /// Compresses a piece, which may be empty. Plain ones stay as they are.
    pub fn encode(&mut self, piece: Vec<u8>) -> io::Result<Vec<u8>> {
        let level = self.compression.level as u32;
        let room = Vec::with_capacity(piece.len() / 4);
        match self.compression.coding {
            Coding::Plain => Ok(piece),
            Coding::Gzip => {
                let mut encoder = GzEncoder::new(room, flate2::Compression::new(level));
                encoder.write_all(&piece)?;
                encoder.finish()
            }
            Coding::Zstd => self.zstd.as_mut().expect("it was made for this coding").compress(&piece),
            Coding::Xz => {
                let mut encoder = XzEncoder::new_stream(room, Stream::new_easy_encoder(level, Check::Crc64)?);
                encoder.write_all(&piece)?;
                encoder.finish()
            }
            Coding::Bzip2 => {
                let mut encoder = BzEncoder::new(room, bzip2::Compression::new(level));
                encoder.write_all(&piece)?;
                encoder.finish()
            }
        }
    }
}
