//! The interface of a step: it decides about the lines of the inputs, batch by batch. The engine depends on no step.

use crate::read::projection::Projection;
use crate::read::skip::OnError;
use crate::read::split::LineFormat;
use crate::run::lines::Lines;
use crate::run::sink::PrintOptions;
use crate::seen::Claimed;
use crate::system::error::Error;
use std::any::Any;

/// The parameters of reading, marking and printing, independent of the step.
pub struct RunConfig {
    pub threads: usize,
    pub format: LineFormat,
    /// The parts of a line that the step reads.
    pub projection: Projection,
    pub on_error: OnError,
    pub print: PrintOptions,
    /// Chunks of compressed inputs that may wait for the inputs before them.
    pub max_chunks_ahead: usize,
}

/// A step over the inputs.
pub trait Step: Send + Sync {
    /// True if batches are claimed in the order of the inputs.
    fn is_in_order(&self) -> bool {
        true
    }

    /// Returns an empty column for the step's own values of a batch.
    fn column(&self) -> Box<dyn Any + Send> {
        Box::new(())
    }

    /// Hashes the keys or documents of lines that are split. Called by many threads at once.
    fn hash(&self, _config: &RunConfig, _lines: &mut Lines) {}

    /// Marks the lines of the input with this number. If there is an order, called by one thread at a time.
    fn claim(&self, config: &RunConfig, input: usize, lines: &mut Lines) -> Result<Claimed, Error>;

    /// Prepares claimed lines for printing and for [`emitted`](Self::emitted). Called by many threads at once.
    fn prepare(&self, _lines: &mut Lines) {}

    /// Receives printed lines, in the order of their input; `before` is the number of lines before them.
    fn emitted(&self, _input: usize, _before: u64, _lines: &Lines) -> Result<(), Error> {
        Ok(())
    }

    /// Fails if the inputs were not the ones that the step is for. Called after all of them are read.
    fn finish(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Returns the number of groups of two or more, if the step knows it.
    fn repeated(&self) -> Option<u64> {
        None
    }
}
