//! Several filters on a stream: a header for all, and each of them as a whole filter.

use super::error::{FileErrorKind, check};
use super::header::{self, HEADER_BYTES, Magic, ROTATING_MAGIC, SCALABLE_MAGIC, u32_at, u64_at};
use super::stream::{self, BodyReader, DecodedFilter, RawParts};
use crate::kernel::block::WORDS;
use crate::layout::descriptor::SECTORIZED;
use crate::rate::fpr;
use crate::rate::growth::{GrowthPolicy, MAX_MERGED, MAX_STAGES};
use crate::rate::window;
use std::io::{self, Read, Write};

/// The tolerance for a part's rate: other ways to sum up the model's rate round differently.
const ROUNDING: f64 = 1e-9;

/// The fewest bytes of a part.
const PART_BYTES: u64 = 144;

/// The contents of the header of several filters.
#[derive(Clone, Copy)]
pub(crate) struct ChainSpec {
    /// The rate of all together.
    pub(crate) rate: f64,
    /// The keys of the first stage, or of the window.
    pub(crate) keys: u64,
    /// Keys in the last part.
    pub(crate) last_len: u64,
    /// The number of first parts, which a union brought. Each has its own keys and rate.
    pub(crate) merged: usize,
    /// True if a full generation rotates. A scalable filter has it set, because a full stage takes no more keys.
    pub(crate) rotate_when_full: bool,
}

impl ChainSpec {
    fn growth(&self) -> GrowthPolicy {
        GrowthPolicy { first_keys: self.keys, rate: self.rate, merged: self.merged }
    }
}

/// The kind of a chain: scalable or rotating.
pub(crate) trait ChainKind {
    const MAGIC: Magic;

    /// The names of the fields for the number of parts, and for their keys.
    const PARTS_FIELD: &'static str;
    const KEYS_FIELD: &'static str;

    /// True if all parts have the size and the fields of the first one.
    const EQUAL_PARTS: bool;

    /// Returns an error if a chain of `parts` parts cannot have these values.
    fn check(chain: &ChainSpec, parts: u32) -> Result<(), FileErrorKind>;

    /// Returns the keys of a part that is not merged, and its highest rate with them.
    fn part(chain: &ChainSpec, parts: usize, part: usize) -> (u64, f64);
}

/// The stages of a scalable filter.
pub(crate) struct Scalable;

impl ChainKind for Scalable {
    const MAGIC: Magic = SCALABLE_MAGIC;
    const PARTS_FIELD: &'static str = "stages";
    const KEYS_FIELD: &'static str = "first";
    const EQUAL_PARTS: bool = false;

    fn check(chain: &ChainSpec, parts: u32) -> Result<(), FileErrorKind> {
        let merged = chain.merged as u64;
        check("merged", merged, merged < MAX_MERGED as u64, "0 to 255")?;
        let own_parts =
            u64::from(parts).checked_sub(merged).filter(|own_parts| (1..=MAX_STAGES as u64).contains(own_parts));
        check(Self::PARTS_FIELD, parts.into(), own_parts.is_some(), "1 to 64 and those that are merged")?;
        // A stage is only begun for a key.
        let keys = u64::from(own_parts > Some(1))..=chain.growth().capacity(parts as usize - 1);
        let is_valid = keys.contains(&chain.last_len);
        check("last", chain.last_len, is_valid, "1 (0 in the first stage) to what the stage takes")?;
        check("reserved", (!chain.rotate_when_full).into(), chain.rotate_when_full, "0")
    }

    fn part(chain: &ChainSpec, _: usize, part: usize) -> (u64, f64) {
        (chain.growth().capacity(part), chain.growth().rate(part))
    }
}

/// The generations of a rotating filter.
pub(crate) struct Rotating;

impl ChainKind for Rotating {
    const MAGIC: Magic = ROTATING_MAGIC;
    const PARTS_FIELD: &'static str = "generations";
    const KEYS_FIELD: &'static str = "window";
    const EQUAL_PARTS: bool = true;

    fn check(chain: &ChainSpec, parts: u32) -> Result<(), FileErrorKind> {
        check(Self::PARTS_FIELD, parts.into(), (2..=window::MAX_GENERATIONS).contains(&parts), "2 to 64")?;
        let max = window::keys_per_generation(chain.keys, parts);
        check("last", chain.last_len, chain.last_len <= max, "0 to what a generation takes")?;
        check("reserved", chain.merged as u64, chain.merged == 0, "0")
    }

    fn part(chain: &ChainSpec, parts: usize, _: usize) -> (u64, f64) {
        let generations = parts as u32;
        (window::keys_per_generation(chain.keys, generations), window::rate_per_generation(chain.rate, generations))
    }
}

struct ChainHeader {
    parts: usize,
    chain: ChainSpec,
    /// Bytes of the whole file.
    length: u64,
}

impl ChainHeader {
    fn encode<K: ChainKind>(&self) -> [u8; HEADER_BYTES] {
        let ChainSpec { rate, keys, last_len, merged, rotate_when_full } = self.chain;
        let mut header = [0; HEADER_BYTES];
        // At most MAX_MERGED + MAX_STAGES.
        header[12..16].copy_from_slice(&(self.parts as u32).to_le_bytes());
        header[16..24].copy_from_slice(&rate.to_bits().to_le_bytes());
        header[24..32].copy_from_slice(&keys.to_le_bytes());
        header[32..40].copy_from_slice(&last_len.to_le_bytes());
        header[40..48].copy_from_slice(&self.length.to_le_bytes());
        header[48..52].copy_from_slice(&u32::from(!rotate_when_full).to_le_bytes());
        // At most MAX_MERGED.
        header[52..56].copy_from_slice(&(merged as u32).to_le_bytes());
        header::complete_header(header, K::MAGIC)
    }

    /// Decodes a header, which is shorter than [`HEADER_BYTES`] if the data are.
    fn decode<K: ChainKind>(header: &[u8]) -> Result<Self, FileErrorKind> {
        let header = header::verify_header(header, K::MAGIC)?;
        let (parts, when_full, merged) = (u32_at(header, 12), u32_at(header, 48), u32_at(header, 52));
        let [rate, keys, last_len, length] = [16, 24, 32, 40].map(|offset| u64_at(header, offset));
        check("when full", when_full.into(), when_full <= 1, "0 or 1")?;
        let merged = merged as usize;
        let chain = ChainSpec { rate: f64::from_bits(rate), keys, last_len, merged, rotate_when_full: when_full == 0 };
        check("rate", rate, chain.rate > 0.0 && chain.rate < 1.0, "the bits of a double between 0 and 1")?;
        check(K::KEYS_FIELD, keys, keys > 0, "at least 1")?;
        K::check(&chain, parts)?;
        let parts = parts as usize;
        let min_length = HEADER_BYTES as u64 + PART_BYTES * parts as u64;
        check("length", length, length >= min_length, "at least 64 and 144 for each part")?;
        Ok(Self { parts, chain, length })
    }
}

/// Returns the bytes of the file of a filter of these parts.
pub(crate) fn bytes<'a, W: 'a>(parts: impl Iterator<Item = RawParts<'a, W>>) -> u64 {
    HEADER_BYTES as u64 + parts.map(|part| part.file_bytes()).sum::<u64>()
}

/// Writes the parts and flushes the writer.
pub(crate) fn write<'a, K: ChainKind, W: Iterator<Item = [u64; WORDS]> + 'a>(
    chain: ChainSpec,
    parts: impl Iterator<Item = RawParts<'a, W>>,
    mut writer: impl Write,
) -> io::Result<()> {
    // Other threads may add kinds of keys meanwhile, but the fields of these parts are encoded.
    let parts: Vec<_> = parts.collect();
    let length = HEADER_BYTES as u64 + parts.iter().map(RawParts::file_bytes).sum::<u64>();
    writer.write_all(&ChainHeader { parts: parts.len(), chain, length }.encode::<K>())?;
    for part in parts {
        stream::write(&SECTORIZED, part, &mut writer)?;
    }
    Ok(())
}

/// Reads a header and its parts, of `length` bytes if that is known beforehand.
pub(crate) fn read<K: ChainKind>(
    mut reader: impl Read,
    length: Option<u64>,
) -> Result<(ChainSpec, Vec<DecodedFilter>), FileErrorKind> {
    let mut bytes = [0; HEADER_BYTES];
    let have = stream::read_full(&mut reader, &mut bytes)?;
    let header = ChainHeader::decode::<K>(&bytes[..have])?;
    if let Some(have) = length {
        stream::check_length(header.length, have)?;
    }
    let mut body = BodyReader { reader, have: HEADER_BYTES as u64, want: header.length };
    let mut parts: Vec<DecodedFilter> = Vec::new();
    for part in 0..header.parts {
        let decoded =
            read_part::<K>(&mut body, &header, part, parts.first(), length.is_some()).map_err(|kind| match kind {
                // These are about the whole file, or the system.
                FileErrorKind::Truncated { .. } | FileErrorKind::Io(_) | FileErrorKind::OutOfMemory { .. } => kind,
                kind => FileErrorKind::Stage { stage: part, kind: Box::new(kind) },
            })?;
        parts.push(decoded);
    }
    check("length", header.length, body.have == header.length, "that of the header and all parts")?;
    Ok((header.chain, parts))
}

/// Reads a part, whose geometry must keep the promises of the header. It may differ from the one that this build would choose:
/// the format does not depend on the search for a size.
fn read_part<K: ChainKind>(
    body: &mut BodyReader<impl Read>,
    header: &ChainHeader,
    part: usize,
    first: Option<&DecodedFilter>,
    len_verified: bool,
) -> Result<DecodedFilter, FileErrorKind> {
    let mut bytes = [0; HEADER_BYTES];
    body.fill(&mut bytes)?;
    let part_header = header::decode(&SECTORIZED, &bytes)?;
    let params = &part_header.params;
    let blocks = params.blocks as u64;
    let of_first = first.map_or(*params, |first| first.params);
    check("seed", params.seed, params.seed == of_first.seed, "that of the first part")?;
    let same = (params.blocks, params.geometry.probes) == (of_first.blocks, of_first.geometry.probes);
    check("blocks", blocks, same || !K::EQUAL_PARTS, "those of the first part, with as many probes")?;
    let after = part_header.file_bytes() - HEADER_BYTES as u64 + PART_BYTES * (header.parts - 1 - part) as u64;
    check("blocks", blocks, after <= body.want.saturating_sub(body.have), "as many as the length has room for")?;
    let probes = params.geometry.probes;
    let part_header = stream::read_fields(body, part_header)?;
    let same = first.is_none_or(|first| first.spec.is_same_but_kinds(&part_header.spec));
    check("fields", part_header.fields as u64, same || !K::EQUAL_PARTS, "those of the first part")?;
    let (keys, max) = match part.checked_sub(header.chain.merged) {
        Some(_) => K::part(&header.chain, header.parts, part),
        None => {
            let given = part_header.spec.keys.zip(part_header.spec.rate);
            check(
                "fields",
                given.is_some().into(),
                given.is_some(),
                "the keys and the rate of a part that was merged",
            )?;
            given.unwrap_or_default()
        }
    };
    let is_valid = fpr::rate(blocks, probes, keys) <= max * (1.0 + ROUNDING);
    check("blocks", blocks, is_valid, "as many as keep the rate of the part with its keys")?;
    stream::read_body(body, part_header, len_verified)
}
