//! The interface of a step: it decides about the lines of the inputs, chunk by chunk. The engine depends on no step.

use crate::options::values::OnError;
use crate::read::lines::Lines;
use crate::read::lines::keys::HashOptions;
use crate::run::sink::PrintOptions;
use crate::seen::Claimed;
use crate::system::error::Error;

/// The parameters of reading, hashing, marking and printing, independent of the pass.
pub struct RunConfig {
    pub threads: usize,
    pub hashing: HashOptions,
    pub on_error: OnError,
    pub print: PrintOptions,
    /// Chunks of compressed inputs that may wait for the inputs before them.
    pub ahead: usize,
}

/// A pass over the inputs.
pub trait Pass: Send + Sync {
    /// True if chunks are claimed in the order of the inputs.
    fn is_in_order(&self) -> bool {
        true
    }

    /// Splits a chunk into lines and hashes their keys or documents. Called by many threads at once.
    fn hash(&self, lines: &mut Lines, hashing: &HashOptions) {
        lines.hash(hashing);
    }

    /// Marks the lines of the input with this number. If there is an order, called by one thread at a time.
    fn claim(&self, task: &RunConfig, input: usize, lines: &mut Lines) -> Result<Claimed, Error>;

    /// Prepares claimed lines for [`emitted`](Self::emitted). Called by many threads at once.
    fn prepare(&self, _lines: &mut Lines, _hashing: &HashOptions) {}

    /// Receives printed lines, in the order of their input; `before` is the number of lines before them.
    fn emitted(&self, _input: usize, _before: u64, _lines: &Lines) -> Result<(), Error> {
        Ok(())
    }

    /// Fails if the inputs were not the ones that the pass is for. Called after all of them are read.
    fn finish(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Returns the number of groups of two or more, if the pass knows it.
    fn repeated(&self) -> Option<u64> {
        None
    }
}
