//! Frames of lz4 files. The decoder takes the end of the file for the end of a frame, so the ends of frames are found
//! here.

use crate::read::foreign;
use crate::read::members::{MemberDecoder, incomplete};
use lz4_flex::frame::FrameDecoder;
use std::io::{self, BufRead, Read};
use std::mem;

/// The length of the magic number.
const MAGIC: usize = 4;

/// The magic number of a frame in the old format, which has no end mark: a cut between two of its blocks leaves no
/// trace.
const LEGACY: u32 = 0x184C_2102;

/// The bits of a frame's flags for checksums of the blocks, the size of the contents, a checksum of the contents, and
/// the number of a dictionary.
const BLOCK_CHECKSUMS: u8 = 1 << 4;
const CONTENT_SIZE: u8 = 1 << 3;
const CONTENT_CHECKSUM: u8 = 1 << 2;
const DICTIONARY: u8 = 1;

/// The bit of a block's size that marks a block which is not compressed.
const UNCOMPRESSED: u32 = 1 << 31;

/// The frames of an lz4 file, one at a time.
pub struct Lz4Frame<R: Read>(FrameDecoder<FrameParts<R>>);

impl<R: BufRead> Lz4Frame<R> {
    pub fn new(file: R) -> Self {
        Self(FrameDecoder::new(FrameParts { file, part: Part::Magic, left: MAGIC, value: 0, kind: [0; 2] }))
    }
}

impl<R: BufRead> Read for Lz4Frame<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.0.read(buffer);
            let n =
                read.map_err(|error| if error.kind() == io::ErrorKind::UnexpectedEof { incomplete() } else { error })?;
            if n > 0 || buffer.is_empty() || self.0.get_ref().is_between_frames() {
                return Ok(n);
            }
            // Either a block is empty, or the file ends inside the frame.
            if self.file().fill_buf()?.is_empty() {
                return Err(incomplete());
            }
        }
    }
}

impl<R: BufRead> MemberDecoder for Lz4Frame<R> {
    type File = R;

    fn file(&mut self) -> &mut R {
        &mut self.0.get_mut().file
    }

    /// The decoder keeps its memory if the next frame needs as much. Its debug assertions refuse other amounts.
    fn next(mut self) -> io::Result<Self> {
        let kind = self.0.get_ref().kind;
        let is_same = self.file().fill_buf()?.get(MAGIC..).is_some_and(|header| header.starts_with(&kind));
        Ok(if is_same { self } else { Self(FrameDecoder::new(self.0.into_inner())) })
    }
}

/// A part of a frame. Its length is known before its first byte.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    Magic,
    /// The flags and the size of blocks.
    Kind,
    /// The rest of the header.
    Header,
    /// The size of a block, or the end mark, which is 0.
    BlockSize,
    /// A block and its checksum.
    Block,
    /// The checksum of the contents.
    Checksum,
}

/// A file that follows the parts of the frames as they are read.
struct FrameParts<R> {
    file: R,
    part: Part,
    /// The number of bytes that the part still has, at least one.
    left: usize,
    /// The last four bytes of the part, as far as they are read. Those of a block are not needed.
    value: u32,
    /// The flags of the frame, and the byte with the size of its blocks.
    kind: [u8; 2],
}

impl<R> FrameParts<R> {
    /// True at the start of the file and after the end of each frame.
    fn is_between_frames(&self) -> bool {
        self.part == Part::Magic && self.left == MAGIC
    }

    /// Follows the bytes that were read.
    fn follow(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(self.left));
            if self.part != Part::Block {
                self.value = now.iter().fold(self.value, |value, &byte| value >> 8 | u32::from(byte) << 24);
            }
            self.left -= now.len();
            if self.left == 0 {
                (self.part, self.left) = self.next_part()?;
            }
            bytes = later;
        }
        Ok(())
    }

    /// Returns the part after this one, which is read, and its length.
    fn next_part(&mut self) -> io::Result<(Part, usize)> {
        let value = mem::take(&mut self.value);
        if self.part == Part::Kind {
            self.kind = [(value >> 16) as u8, (value >> 24) as u8];
        }
        let length_if = |flag: u8, length: usize| if self.kind[0] & flag == 0 { 0 } else { length };
        Ok(match self.part {
            Part::Magic if value == LEGACY => return Err(foreign::refused("legacy lz4")),
            Part::Magic => (Part::Kind, 2),
            Part::Kind => (Part::Header, 1 + length_if(CONTENT_SIZE, 8) + length_if(DICTIONARY, 4)),
            Part::BlockSize if value == 0 => match length_if(CONTENT_CHECKSUM, 4) {
                0 => (Part::Magic, MAGIC),
                length => (Part::Checksum, length),
            },
            Part::BlockSize => match (value & !UNCOMPRESSED) as usize + length_if(BLOCK_CHECKSUMS, 4) {
                0 => (Part::BlockSize, 4),
                length => (Part::Block, length),
            },
            Part::Header | Part::Block => (Part::BlockSize, 4),
            Part::Checksum => (Part::Magic, MAGIC),
        })
    }
}

impl<R: Read> Read for FrameParts<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.file.read(buffer)?;
        self.follow(&buffer[..n])?;
        Ok(n)
    }
}
