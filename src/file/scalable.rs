//! A scalable filter on a stream: a header of its own, and every stage as a whole filter.

use super::error::{FileErrorKind, check};
use super::header::{self, HEADER_BYTES, SCALABLE, u32_at, u64_at};
use super::stream::{self, Loaded, Parts, Rest};
use crate::block::WORDS;
use crate::format::WORDS4;
use crate::fpr;
use crate::growth::{Growth, MAX_STAGES};
use std::io::{self, Read, Write};

/// How far a stage may pass its rate: other ways to sum up the model's rate round differently.
const ROUNDING: f64 = 1e-9;

/// The least bytes of a stage.
const STAGE_BYTES: u64 = 144;

/// What a file held.
pub(crate) struct LoadedScalable {
    pub(crate) growth: Growth,
    pub(crate) in_last: u64,
    pub(crate) stages: Vec<Loaded>,
}

/// What the header of a scalable filter says.
struct Header {
    stages: usize,
    growth: Growth,
    in_last: u64,
    /// Bytes of the whole file.
    length: u64,
}

impl Header {
    fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut header = [0; HEADER_BYTES];
        // At most MAX_STAGES.
        header[12..16].copy_from_slice(&(self.stages as u32).to_le_bytes());
        header[16..24].copy_from_slice(&self.growth.rate.to_bits().to_le_bytes());
        header[24..32].copy_from_slice(&self.growth.first.to_le_bytes());
        header[32..40].copy_from_slice(&self.in_last.to_le_bytes());
        header[40..48].copy_from_slice(&self.length.to_le_bytes());
        header::seal(header, SCALABLE)
    }

    /// `header` is shorter than [`HEADER_BYTES`] if the data are.
    fn decode(header: &[u8]) -> Result<Self, FileErrorKind> {
        let header = header::sealed(header, SCALABLE)?;
        let (stages, rate) = (u32_at(header, 12), u64_at(header, 16));
        let [first, in_last, length, reserved] = [24, 32, 40, 48].map(|place| u64_at(header, place));
        check("stages", stages.into(), (1..=MAX_STAGES as u32).contains(&stages), "1 to 64")?;
        let growth = Growth { first, rate: f64::from_bits(rate) };
        check("rate", rate, growth.rate > 0.0 && growth.rate < 1.0, "the bits of a double between 0 and 1")?;
        check("first", first, first > 0, "at least 1")?;
        let stages = stages as usize;
        // A stage is only begun for a key.
        let keys = u64::from(stages > 1)..=growth.capacity(stages - 1);
        check("last", in_last, keys.contains(&in_last), "1 (0 in the first stage) to what the stage takes")?;
        let least = HEADER_BYTES as u64 + STAGE_BYTES * stages as u64;
        check("length", length, length >= least, "at least 64 and 144 for each stage")?;
        check("reserved", reserved, reserved == 0, "0")?;
        Ok(Self { stages, growth, in_last, length })
    }
}

/// Bytes of the file of a filter of these stages.
pub(crate) fn file_bytes<'a, W: 'a>(stages: impl Iterator<Item = Parts<'a, W>>) -> u64 {
    HEADER_BYTES as u64 + stages.map(|stage| stage.file_bytes()).sum::<u64>()
}

/// Writes the filter and flushes the writer.
pub(crate) fn write<'a, W: Iterator<Item = [u64; WORDS]> + 'a>(
    growth: Growth,
    in_last: u64,
    stages: impl ExactSizeIterator<Item = Parts<'a, W>> + Clone,
    mut writer: impl Write,
) -> io::Result<()> {
    let length = file_bytes(stages.clone());
    writer.write_all(&Header { stages: stages.len(), growth, in_last, length }.encode())?;
    for stage in stages {
        stream::write(&WORDS4, stage, &mut writer)?;
    }
    Ok(())
}

/// Reads a filter, of `length` bytes where that is known beforehand.
pub(crate) fn read(mut reader: impl Read, length: Option<u64>) -> Result<LoadedScalable, FileErrorKind> {
    let mut bytes = [0; HEADER_BYTES];
    let have = stream::read_full(&mut reader, &mut bytes)?;
    let header = Header::decode(&bytes[..have])?;
    if let Some(have) = length {
        stream::check_length(header.length, have)?;
    }
    let mut rest = Rest { reader, have: HEADER_BYTES as u64, want: header.length };
    let mut stages: Vec<Loaded> = Vec::new();
    for stage in 0..header.stages {
        let seed = stages.first().map(|first| first.params.seed);
        let loaded = read_stage(&mut rest, &header, stage, seed, length.is_some()).map_err(|kind| match kind {
            // These are about the whole file.
            FileErrorKind::Truncated { .. } | FileErrorKind::Io(_) => kind,
            kind => FileErrorKind::Stage { stage, kind: Box::new(kind) },
        })?;
        stages.push(loaded);
    }
    check("length", header.length, rest.have == header.length, "that of the header and all stages")?;
    Ok(LoadedScalable { growth: header.growth, in_last: header.in_last, stages })
}

/// Reads a stage, whose geometry must keep what the header promises. It need not be the one that this build would
/// choose: the format does not depend on how a size is searched for.
fn read_stage(
    rest: &mut Rest<impl Read>,
    header: &Header,
    stage: usize,
    seed: Option<u64>,
    vouched: bool,
) -> Result<Loaded, FileErrorKind> {
    let mut bytes = [0; HEADER_BYTES];
    rest.fill(&mut bytes)?;
    let head = header::decode(&WORDS4, &bytes)?;
    let params = &head.params;
    check("seed", params.seed, seed.is_none_or(|seed| seed == params.seed), "that of the first stage")?;
    let blocks = params.blocks as u64;
    let after = head.file_bytes() - HEADER_BYTES as u64 + STAGE_BYTES * (header.stages - 1 - stage) as u64;
    check("blocks", blocks, after <= rest.want.saturating_sub(rest.have), "as many as the length has room for")?;
    let rate = fpr::rate(blocks, params.probes, header.growth.capacity(stage));
    let good = rate <= header.growth.rate(stage) * (1.0 + ROUNDING);
    check("blocks", blocks, good, "as many as keep the rate of the stage with its keys")?;
    let head = stream::read_fields(rest, head)?;
    stream::read_body(rest, head, vouched)
}
