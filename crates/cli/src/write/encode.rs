//! Compression of outputs.
//!
//! A file consists of pieces, each a member, a frame or a stream of its own, which every reader accepts. So several
//! threads can compress pieces at once, and the bytes of a file do not depend on the number of threads. If matches
//! reach back farther than a piece of reasonable size, the file is one [`Stream`].
//!
//! Strong compressors take many seconds for a piece. After a signal, what is not compressed becomes pieces that take no time.

use crate::read::coding::Coding;
use crate::read::compression::Compression;
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
use std::mem;

/// The bytes between two looks whether a signal came.
pub const SLICE: usize = 1 << 16;

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
