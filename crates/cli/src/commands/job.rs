//! The stages of a job: what can be refused is found before anything is written.
//!
//! ```text
//! check   finds the inputs, and checks them with the options, the set and the outputs; writes nothing
//! open    builds what the memory needs, then creates the outputs and empties those that exist; no other stage does that, except
//!         for outputs of one input, which are created with their first lines
//! run     works
//! ```

use crate::system::error::{Error, Stop};

/// A checked job: the stage that opens its outputs.
pub type Checked = Box<dyn FnOnce() -> Result<Opened, Stop>>;

/// A job whose outputs are open: the stage that works and returns the exit code.
pub type Opened = Box<dyn FnOnce() -> Result<u8, Error>>;

/// Runs the stages of a job after the check. Returns the exit code.
pub fn run(checked: Result<Checked, Stop>) -> Result<u8, Error> {
    match checked.and_then(|open| open()) {
        Ok(run) => run(),
        Err(stop) => stop.end(),
    }
}
