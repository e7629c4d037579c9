//! The stages of a job: all that can be refused is found before anything is written.

use crate::system::error::{Error, Stop};

/// A job of a command, as its options ask for it.
pub trait Job: Sized {
    /// A job whose inputs, set and outputs are checked.
    type Checked;
    /// A checked job whose outputs are open.
    type Opened;

    /// Finds the inputs, and checks them with the options, the set and the outputs. Writes nothing.
    fn check(self) -> Result<Self::Checked, Stop>;

    /// Builds what the memory needs, then creates the outputs and empties those that exist. No other stage does that, except for outputs
    /// of one input, which are created with their first lines.
    fn open(checked: Self::Checked) -> Result<Self::Opened, Stop>;

    /// Works. Returns the exit code.
    fn run(opened: Self::Opened) -> Result<u8, Error>;
}

/// Runs all stages of a job. Returns the exit code.
pub fn run<J: Job>(job: J) -> Result<u8, Error> {
    match job.check().and_then(J::open) {
        Ok(opened) => J::run(opened),
        Err(stop) => stop.end(),
    }
}
