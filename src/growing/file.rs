//! A scalable filter as a file.

use super::shared_stages::SharedStages;
use super::stages::Stages;
use crate::file::{self, ChainSpec, FileError, FileErrorKind, Persist, Scalable};
use crate::filter::bloom::BloomFilter;
use crate::filter::raw::RawFilter;
use crate::rate::growth::GrowthPolicy;
use std::io::{self, Read, Write};

impl Persist for Stages {
    fn write_to(&self, writer: impl Write) -> io::Result<()> {
        let stages = self.stages.iter().map(|stage| stage.0.raw_parts());
        file::write_chain::<Scalable, _>(chain_spec(self.growth, self.last_len), stages, writer)
    }

    fn file_bytes(&self) -> usize {
        // Little more than the blocks, which are in memory.
        file::chain_bytes(self.stages.iter().map(|stage| stage.0.raw_parts())) as usize
    }

    fn read(reader: impl Read, length: Option<u64>) -> Result<Self, FileErrorKind> {
        let (ChainSpec { rate, keys, last_len, merged, .. }, stages) = file::read_chain::<Scalable>(reader, length)?;
        let growth = GrowthPolicy { first_keys: keys, rate, merged };
        Ok(Self { growth, last_len, stages: stages.into_iter().map(|stage| BloomFilter(stage.into())).collect() })
    }
}

fn chain_spec(GrowthPolicy { first_keys, rate, merged }: GrowthPolicy, last_len: u64) -> ChainSpec {
    ChainSpec { rate, keys: first_keys, last_len, merged, rotate_when_full: true }
}

/// Both types have one file format.
impl Persist for SharedStages {
    fn write_to(&self, writer: impl Write) -> io::Result<()> {
        let (mut stages, last, last_len) = self.snapshot();
        stages.push(&last);
        let stages = stages.into_iter().map(RawFilter::raw_parts);
        file::write_chain::<Scalable, _>(chain_spec(self.growth, last_len), stages, writer)
    }

    fn file_bytes(&self) -> usize {
        // Little more than the blocks, which are in memory.
        file::chain_bytes(self.newest_first().map(RawFilter::raw_parts)) as usize
    }

    fn read(reader: impl Read, length: Option<u64>) -> Result<Self, FileErrorKind> {
        Stages::read(reader, length).map(Self::from)
    }

    /// Writes a copy, because other threads may begin a stage meanwhile.
    fn write_to_slice(&self, slice: &mut [u8]) -> Result<usize, FileError> {
        Stages::from(self.clone()).write_to_slice(slice)
    }
}
