//! The header: what a filter is, in 64 bytes.

use super::error::{FileErrorKind, check};
use super::fields;
use crate::builder::spec::FilterSpec;
use crate::kernel::AvailableKernel;
use crate::kernel::block::BLOCK_BYTES;
use crate::key::hash::KeyHasher;
use crate::layout::descriptor::{ALL, LayoutDescriptor, SPLIT_BLOCK};
use crate::layout::params::{FilterParams, Geometry};
use crate::layout::storage::MAX_BLOCKS;
use twox_hash::XxHash3_64;

/// The header's length: one block, so that the blocks after it are aligned in the file as they are in memory.
pub(crate) const HEADER_BYTES: usize = BLOCK_BYTES;

pub(crate) const TRAILER_BYTES: usize = 16;

/// The first bytes of a file. No text starts with the first byte, and a transfer that converts line ends spoils the last two.
pub(crate) type Magic = [u8; 8];
pub(super) const FILTER_MAGIC: Magic = *b"\x89BLOOM\r\n";
pub(super) const SCALABLE_MAGIC: Magic = *b"\x89BLSER\r\n";
pub(super) const ROTATING_MAGIC: Magic = *b"\x89BLROT\r\n";
const VERSION: u32 = 2;
/// Files are shorter than 2^63 bytes, as system calls count them.
const BLOCKS_LIMIT: u64 = 1 << 57;

/// Encodes the header of a filter, and the fields after it. [`decode`] repeats the positions.
pub(crate) fn encode(layout: &LayoutDescriptor, params: &FilterParams, hasher: &KeyHasher, fields: &[u8]) -> Vec<u8> {
    let mut header = [0; HEADER_BYTES];
    header[12..14].copy_from_slice(&layout.id.to_le_bytes());
    // At most 32.
    header[14..16].copy_from_slice(&(params.geometry.probes as u16).to_le_bytes());
    header[16..24].copy_from_slice(&(params.blocks as u64).to_le_bytes());
    header[24..32].copy_from_slice(&params.seed.to_le_bytes());
    header[32..40].copy_from_slice(&hasher.golden().to_le_bytes());
    let units = if layout.has_units { params.geometry.units } else { 0 };
    header[40..48].copy_from_slice(&units.to_le_bytes());
    // At most MAX_FIELD_BYTES.
    header[48..52].copy_from_slice(&(fields.len() as u32).to_le_bytes());
    [&complete_header(header, FILTER_MAGIC), fields].concat()
}

/// Adds the parts that every header has: magic, version and checksum.
pub(super) fn complete_header(mut header: [u8; HEADER_BYTES], magic: Magic) -> [u8; HEADER_BYTES] {
    header[..8].copy_from_slice(&magic);
    header[8..12].copy_from_slice(&VERSION.to_le_bytes());
    let checksum = XxHash3_64::oneshot(&header[..56]);
    header[56..].copy_from_slice(&checksum.to_le_bytes());
    header
}

/// Checks a header that [`complete_header`] made with this magic. `header` is shorter than [`HEADER_BYTES`] if the data are.
pub(super) fn verify_header(header: &[u8], expected: Magic) -> Result<&[u8; HEADER_BYTES], FileErrorKind> {
    let starts_with = |magic: &Magic| header.iter().zip(magic).all(|(byte, expected)| byte == expected);
    if !starts_with(&expected) {
        return Err(match [FILTER_MAGIC, SCALABLE_MAGIC, ROTATING_MAGIC].into_iter().find(starts_with) {
            Some(SCALABLE_MAGIC) => FileErrorKind::Scalable,
            Some(ROTATING_MAGIC) => FileErrorKind::Rotating,
            Some(_) if expected == ROTATING_MAGIC => FileErrorKind::NotRotating,
            Some(_) => FileErrorKind::NotScalable,
            None => FileErrorKind::NotBloomline,
        });
    }
    let Ok(header) = <&[u8; HEADER_BYTES]>::try_from(header) else {
        return Err(FileErrorKind::Truncated { have: header.len() as u64, want: HEADER_BYTES as u64 });
    };
    // The checksum is verified first: every version has it at this offset, so a damaged version number is not taken for
    // a newer version.
    if XxHash3_64::oneshot(&header[..56]) != u64_at(header, 56) {
        return Err(FileErrorKind::DamagedHeader);
    }
    let version = u32_at(header, 8);
    if version > VERSION {
        return Err(FileErrorKind::NewerVersion { found: version, newest: VERSION });
    }
    if version < VERSION {
        return Err(FileErrorKind::OlderVersion { found: version, oldest: VERSION });
    }
    Ok(header)
}

/// The contents of a header.
pub(crate) struct FilterHeader {
    pub(crate) params: FilterParams,
    pub(crate) hasher: KeyHasher,
    pub(crate) spec: FilterSpec,
    /// Bytes of the fields after the header.
    pub(crate) fields: usize,
}

impl FilterHeader {
    /// Returns the number of bytes in the file of the filter.
    pub(crate) fn file_bytes(&self) -> u64 {
        file_bytes(self.fields, &self.params)
    }
}

/// Returns the number of bytes in the file of a filter with `fields` bytes of fields.
pub(super) fn file_bytes(fields: usize, params: &FilterParams) -> u64 {
    (HEADER_BYTES + fields + TRAILER_BYTES) as u64 + params.blocks as u64 * BLOCK_BYTES as u64
}

/// Decodes the header of a filter of this layout, and checks that this machine and this build can read it. `header` is shorter
/// than [`HEADER_BYTES`] if the data are.
pub(crate) fn decode(layout: &'static LayoutDescriptor, header: &[u8]) -> Result<FilterHeader, FileErrorKind> {
    let header = verify_header(header, FILTER_MAGIC)?;
    let (layout_id, probes) = (u32_at(header, 12) & 0xFFFF, u32_at(header, 12) >> 16);
    let (blocks, seed) = (u64_at(header, 16), u64_at(header, 24));
    let (units, fields, reserved) = (u64_at(header, 40), u32_at(header, 48), u32_at(header, 52));
    if layout_id != u32::from(layout.id) {
        return Err(match ALL.iter().find(|known| u32::from(known.id) == layout_id) {
            Some(found) => FileErrorKind::OtherLayout { found: found.name, wanted: layout.name },
            None => FileErrorKind::Field { field: "layout", value: layout_id.into(), allowed: "1 to 6" },
        });
    }
    check("probes", probes.into(), layout.probes.contains(&probes), layout.allowed)?;
    check("blocks", blocks, (1..BLOCKS_LIMIT).contains(&blocks), "at least 1 and below 2^57")?;
    if layout.has_units {
        let is_valid = layout.blocks(units) == blocks && units <= layout.max_units;
        check("units", units, is_valid, "the number that fills the blocks, and at most 2^32 for a split block")?;
    } else {
        check("units", units, units == 0, "0")?;
    }
    let is_valid = fields as usize <= fields::MAX_FIELD_BYTES && (fields as usize).is_multiple_of(BLOCK_BYTES);
    check("fields", fields.into(), is_valid, "a multiple of 64, at most 65536")?;
    check("reserved", reserved.into(), reserved == 0, "0")?;
    check("seed", seed, seed == 0 || layout.id != SPLIT_BLOCK.id, "0 for a split block")?;
    let hasher = KeyHasher::new(seed);
    if hasher.golden() != u64_at(header, 32) {
        return Err(FileErrorKind::OtherHash);
    }
    let bytes = blocks * BLOCK_BYTES as u64;
    let units = if layout.has_units { units } else { blocks };
    let blocks = usize::try_from(blocks).ok().filter(|&blocks| blocks <= MAX_BLOCKS);
    let blocks = blocks.ok_or(FileErrorKind::OutOfMemory { bytes })?;
    let params = FilterParams::new(blocks, Geometry { units, probes }, seed, AvailableKernel::detect());
    Ok(FilterHeader { params, hasher, spec: FilterSpec::default(), fields: fields as usize })
}

pub(super) fn u32_at(header: &[u8; HEADER_BYTES], offset: usize) -> u32 {
    u32::from_le_bytes(core::array::from_fn(|i| header[offset + i]))
}

pub(super) fn u64_at(header: &[u8; HEADER_BYTES], offset: usize) -> u64 {
    u64::from_le_bytes(core::array::from_fn(|i| header[offset + i]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::descriptor::SECTORIZED;

    #[test]
    fn another_hash_is_reported() {
        let params = FilterParams::new(1, Geometry { units: 1, probes: 8 }, 1, AvailableKernel::detect());
        assert!(decode(&SECTORIZED, &encode(&SECTORIZED, &params, &KeyHasher::new(1), &[])).is_ok());
        // The header as a build with another hash writes it.
        let header = encode(&SECTORIZED, &params, &KeyHasher::new(2), &[]);
        assert!(matches!(decode(&SECTORIZED, &header), Err(FileErrorKind::OtherHash)));
    }
}
