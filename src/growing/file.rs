//! A scalable filter as a file.

use super::shared_stages::SharedStages;
use super::stages::Stages;
use crate::file::{self, FileError, FileErrorKind, Scalable, Series, Stored};
use crate::filter::bloom::BloomFilter;
use crate::filter::fixed::Fixed;
use crate::rate::growth::Growth;
use std::io::{self, Read, Write};

impl Stored for Stages {
    fn write_to(&self, writer: impl Write) -> io::Result<()> {
        let stages = self.stages.iter().map(|stage| stage.0.parts());
        file::write_series::<Scalable, _>(series(self.growth, self.in_last), stages, writer)
    }

    fn file_bytes(&self) -> usize {
        // Little more than the blocks, which are in memory.
        file::series_bytes(self.stages.iter().map(|stage| stage.0.parts())) as usize
    }

    fn read(reader: impl Read, length: Option<u64>) -> Result<Self, FileErrorKind> {
        let (Series { rate, keys, in_last, merged, .. }, stages) = file::read_series::<Scalable>(reader, length)?;
        let growth = Growth { first: keys, rate, merged };
        Ok(Self { growth, in_last, stages: stages.into_iter().map(|stage| BloomFilter(stage.into())).collect() })
    }
}

fn series(Growth { first, rate, merged }: Growth, in_last: u64) -> Series {
    Series { rate, keys: first, in_last, merged, stays_when_full: false }
}

/// The same files, of one format.
impl Stored for SharedStages {
    fn write_to(&self, writer: impl Write) -> io::Result<()> {
        let (mut stages, last, in_last) = self.snapshot();
        stages.push(&last);
        let stages = stages.into_iter().map(Fixed::parts);
        file::write_series::<Scalable, _>(series(self.growth, in_last), stages, writer)
    }

    fn file_bytes(&self) -> usize {
        // Little more than the blocks, which are in memory.
        file::series_bytes(self.all().map(Fixed::parts)) as usize
    }

    fn read(reader: impl Read, length: Option<u64>) -> Result<Self, FileErrorKind> {
        Stages::read(reader, length).map(Self::from)
    }

    /// Writes a copy, because other threads may begin a stage meanwhile.
    fn write_to_slice(&self, slice: &mut [u8]) -> Result<usize, FileError> {
        Stages::from(self.clone()).write_to_slice(slice)
    }
}
