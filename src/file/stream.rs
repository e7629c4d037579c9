//! A filter on a stream: the header, the blocks, the trailer.

use super::error::{FileErrorKind, check};
use super::fields;
use super::header::{self, FilterHeader, HEADER_BYTES, TRAILER_BYTES};
use crate::builder::spec::FilterSpec;
use crate::kernel::AvailableKernel;
use crate::kernel::block::{BLOCK_BYTES, WORDS};
use crate::key::hash::KeyHasher;
use crate::layout::descriptor::LayoutDescriptor;
use crate::layout::params::FilterParams;
use crate::layout::storage::{Blocks, Pages};
use crate::rate::set_bits::CountOnes;
use std::cmp::Ordering;
use std::hash::Hasher;
use std::io::{self, Read, Write};
use twox_hash::XxHash3_64;

/// Blocks that are read or written at a time: 1 MiB, which makes system calls cheap and stays in a cache.
const CHUNK_BLOCKS: usize = (1 << 20) / BLOCK_BYTES;

/// The contents of a file to write.
#[derive(Clone)]
pub(crate) struct RawParts<'a, W> {
    pub(crate) params: &'a FilterParams,
    pub(crate) hasher: &'a KeyHasher,
    /// The encoded fields. Other threads may add kinds of keys meanwhile.
    pub(crate) fields: Vec<u8>,
    /// The blocks.
    pub(crate) words: W,
}

impl<W> RawParts<'_, W> {
    /// Returns the number of bytes in the file.
    pub(crate) fn file_bytes(&self) -> u64 {
        header::file_bytes(self.fields.len(), self.params)
    }
}

/// The contents of a file that was read.
pub(crate) struct DecodedFilter {
    pub(crate) params: FilterParams,
    pub(crate) hasher: KeyHasher,
    pub(crate) spec: FilterSpec,
    pub(crate) blocks: Blocks,
}

/// The trailer after the blocks: the number of bits set in them, and the checksum of the blocks and that number.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Trailer {
    pub(crate) ones: u64,
    checksum: u64,
}

impl Trailer {
    pub(crate) fn from_bytes(bytes: [u8; TRAILER_BYTES]) -> Self {
        // Two numbers, little-endian, are one of twice the length.
        let both = u128::from_le_bytes(bytes);
        Self { ones: both as u64, checksum: (both >> 64) as u64 }
    }

    fn to_bytes(self) -> [u8; TRAILER_BYTES] {
        (u128::from(self.checksum) << 64 | u128::from(self.ones)).to_le_bytes()
    }
}

/// Computes the trailer as blocks are written or read.
struct TrailerBuilder {
    kernel: AvailableKernel,
    ones: u64,
    hasher: XxHash3_64,
}

impl TrailerBuilder {
    fn new(kernel: AvailableKernel) -> Self {
        Self { kernel, ones: 0, hasher: XxHash3_64::new() }
    }

    /// Adds blocks, in the byte order of the file.
    fn add(&mut self, blocks: &[u8]) {
        // The number of probes makes no difference.
        self.ones += self.kernel.run(4, CountOnes(blocks.as_chunks().0));
        self.hasher.write(blocks);
    }

    fn finish(mut self) -> Trailer {
        self.hasher.write(&self.ones.to_le_bytes());
        Trailer { ones: self.ones, checksum: self.hasher.finish() }
    }
}

/// Writes a filter and flushes the writer.
pub(crate) fn write(
    layout: &LayoutDescriptor,
    RawParts { params, hasher, fields, words }: RawParts<impl Iterator<Item = [u64; WORDS]>>,
    mut writer: impl Write,
) -> io::Result<()> {
    writer.write_all(&header::encode(layout, params, hasher, &fields))?;
    let trailer = copy_body(params.kernel, words, &mut writer)?;
    writer.write_all(&trailer.to_bytes())?;
    writer.flush()
}

/// Writes the blocks and returns the trailer that belongs to them.
///
/// Each word is read from the filter once, and the trailer is computed from the copy, so that it fits the blocks even
/// while other threads insert.
pub(crate) fn copy_body(
    kernel: AvailableKernel,
    mut blocks: impl Iterator<Item = [u64; WORDS]>,
    mut writer: impl Write,
) -> io::Result<Trailer> {
    let mut builder = TrailerBuilder::new(kernel);
    let mut chunk = vec![[[0; 8]; WORDS]; CHUNK_BLOCKS];
    loop {
        let mut filled = 0;
        // The chunk comes first in the zip: at its end no block is taken from the other side and lost.
        for (bytes, block) in chunk.iter_mut().zip(&mut blocks) {
            *bytes = block.map(u64::to_le_bytes);
            filled += 1;
        }
        let bytes = chunk[..filled].as_flattened().as_flattened();
        builder.add(bytes);
        writer.write_all(bytes)?;
        if filled < CHUNK_BLOCKS {
            return Ok(builder.finish());
        }
    }
}

/// Reads a filter of this layout, of `length` bytes with its header and trailer if that is known beforehand.
pub(crate) fn read(
    layout: &'static LayoutDescriptor,
    mut reader: impl Read,
    length: Option<u64>,
) -> Result<DecodedFilter, FileErrorKind> {
    let (header, have) = read_header(layout, &mut reader, length)?;
    let mut body = BodyReader { reader, have, want: header.file_bytes() };
    let decoded = read_body(&mut body, header, length.is_some())?;
    let units = decoded.params.geometry.units;
    let is_valid = ends_with_units(layout, units, &decoded.blocks);
    check("units", units, is_valid, "as many as reach to the last bit that is set")?;
    Ok(decoded)
}

/// True if each bit of the last block that belongs to no unit is 0.
fn ends_with_units(layout: &LayoutDescriptor, units: u64, blocks: &Blocks) -> bool {
    // Bits of the last block; 0 if the units fill it.
    let used = units % (512 / layout.unit_bits).max(1) * layout.unit_bits;
    let unused = |i: usize| u64::MAX.checked_shl(used.saturating_sub(64 * i as u64) as u32).unwrap_or(0);
    let last = blocks.as_slice().last();
    used == 0 || last.is_none_or(|block| block.0.iter().enumerate().all(|(i, word)| word & unused(i) == 0))
}

/// Reads the blocks and the trailer. `len_verified`: all of the data are known to exist.
pub(super) fn read_body(
    body: &mut BodyReader<impl Read>,
    FilterHeader { params, hasher, spec, .. }: FilterHeader,
    len_verified: bool,
) -> Result<DecodedFilter, FileErrorKind> {
    let capacity = |filled| if len_verified { params.blocks } else { next_capacity(params.blocks, filled) };
    let mut builder = TrailerBuilder::new(params.kernel);
    let mut chunk = vec![[[0; 8]; WORDS]; CHUNK_BLOCKS.min(params.blocks)];
    let out_of_memory = |_| FileErrorKind::OutOfMemory { bytes: params.blocks as u64 * BLOCK_BYTES as u64 };
    let mut blocks = Blocks::zeroed(capacity(0), Pages::default()).map_err(out_of_memory)?;
    let mut filled = 0;
    loop {
        while filled < blocks.len() {
            let next = (blocks.len() - filled).min(CHUNK_BLOCKS);
            let chunk = &mut chunk[..next];
            body.fill(chunk.as_flattened_mut().as_flattened_mut())?;
            builder.add(chunk.as_flattened().as_flattened());
            blocks.read_from_bytes(filled, chunk);
            filled += next;
        }
        if filled == params.blocks {
            break;
        }
        blocks = blocks.grown(capacity(filled)).map_err(out_of_memory)?;
    }
    let mut trailer = [0; TRAILER_BYTES];
    body.fill(&mut trailer)?;
    if Trailer::from_bytes(trailer) != builder.finish() {
        return Err(FileErrorKind::DamagedBody);
    }
    Ok(DecodedFilter { params, hasher, spec, blocks })
}

/// Reads a header and the fields after it, of a file of `length` bytes if that is known beforehand, and returns their bytes.
pub(crate) fn read_header(
    layout: &'static LayoutDescriptor,
    mut reader: impl Read,
    length: Option<u64>,
) -> Result<(FilterHeader, u64), FileErrorKind> {
    let mut bytes = [0; HEADER_BYTES];
    let have = read_full(&mut reader, &mut bytes)?;
    let header = header::decode(layout, &bytes[..have])?;
    if let Some(have) = length {
        check_length(header.file_bytes(), have)?;
    }
    let mut body = BodyReader { reader, have: HEADER_BYTES as u64, want: header.file_bytes() };
    let header = read_fields(&mut body, header)?;
    Ok((header, body.have))
}

/// Reads the fields after a header.
pub(super) fn read_fields(
    body: &mut BodyReader<impl Read>,
    header: FilterHeader,
) -> Result<FilterHeader, FileErrorKind> {
    let mut bytes = vec![0; header.fields];
    body.fill(&mut bytes)?;
    Ok(FilterHeader { spec: fields::decode(&bytes)?, ..header })
}

/// Returns an error unless a file is as long as it should be.
pub(super) fn check_length(want: u64, have: u64) -> Result<(), FileErrorKind> {
    match have.cmp(&want) {
        Ordering::Less => Err(FileErrorKind::Truncated { have, want }),
        Ordering::Equal => Ok(()),
        Ordering::Greater => Err(FileErrorKind::TooLong { have, want }),
    }
}

/// Returns how many of `blocks` blocks to allocate when `filled` have arrived: at most one chunk more than twice as many, and
/// halves of the whole, so that the last step, which doubles, ends at the filter's size.
fn next_capacity(blocks: usize, filled: usize) -> usize {
    let mut capacity = blocks;
    while capacity > CHUNK_BLOCKS + 2 * filled {
        capacity = capacity.div_ceil(2);
    }
    capacity
}

/// The data after the header.
pub(super) struct BodyReader<R> {
    pub(super) reader: R,
    /// Bytes of the file that have arrived.
    pub(super) have: u64,
    /// Bytes of the whole file.
    pub(super) want: u64,
}

impl<R: Read> BodyReader<R> {
    pub(super) fn fill(&mut self, bytes: &mut [u8]) -> Result<(), FileErrorKind> {
        let read = read_full(&mut self.reader, bytes)?;
        self.have += read as u64;
        if read < bytes.len() {
            return Err(FileErrorKind::Truncated { have: self.have, want: self.want });
        }
        Ok(())
    }
}

/// Reads until the buffer is full or the data end, and returns the number of bytes read.
pub(super) fn read_full(reader: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match reader.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capacity_grows_with_the_data_and_ends_at_the_filter() {
        for blocks in
            [1, 2, CHUNK_BLOCKS - 1, CHUNK_BLOCKS, CHUNK_BLOCKS + 1, 2 * CHUNK_BLOCKS + 1, 1_000_003, usize::MAX / 128]
        {
            let mut filled = 0;
            while filled < blocks {
                let capacity = next_capacity(blocks, filled);
                assert!(
                    capacity > filled && capacity <= blocks && capacity <= CHUNK_BLOCKS + 2 * filled,
                    "{blocks} {filled} {capacity}"
                );
                // The copy from the old to the new memory fills at most half of the new one.
                assert!(filled == 0 || 2 * filled <= capacity + 64, "{blocks} {filled} {capacity}");
                filled = capacity;
            }
        }
    }
}
