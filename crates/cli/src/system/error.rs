//! Failures of the command, and reasons to stop. Every message fits one line and names the input or output concerned.

use crate::system::platform;
use bloomline::BuildError;
use std::{env, fmt, io};

/// A failure of the command. Inputs and outputs are named as they are shown to the user.
#[derive(Debug)]
pub enum Error {
    /// A failure with its sentence, which only ends the command.
    Message(String),
    /// A failure of the server of a shared filter. The answers before it are known.
    Shared(String),
    /// The reader of standard output has enough, like `head`.
    ReaderGone,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Message(sentence) | Self::Shared(sentence) => f.write_str(sentence),
            Self::ReaderGone => f.write_str("cannot write to standard output: its reader is gone"),
        }
    }
}

impl std::error::Error for Error {}

impl Error {
    /// Creates a failure with its sentence, which names the problem and the remedy.
    pub fn new(sentence: impl Into<String>) -> Self {
        Self::Message(sentence.into())
    }

    /// Wraps a failure of a temporary file for `what`.
    pub fn temporary(what: &str, source: &io::Error) -> Self {
        let remedy = temporary_remedy(source);
        Self::new(format!("cannot keep {what} in a temporary file: {source}; {remedy}"))
    }

    /// Wraps a failure of the temporary files of groups.
    pub fn groups(source: io::Error) -> Self {
        Self::temporary("what repeats", &source)
    }
}

/// Returns the remedy of a failure of temporary files, which names their folder.
pub fn temporary_remedy(source: &io::Error) -> String {
    remedy(source, &format!("set {} to a folder other than {:?}", platform::TEMP_VARIABLE, env::temp_dir())).to_owned()
}

/// The remedy if there is no memory.
pub const MORE_MEMORY: &str = "allow more memory, or ask for fewer threads with -j";

/// Returns the remedy of a failure: `most` for most causes, and others if the limit of open files or of memory is reached.
pub fn remedy<'a>(source: &io::Error, most: &'a str) -> &'a str {
    match source.raw_os_error() {
        Some(error) if platform::TOO_MANY_FILES.contains(&error) => "allow more open files with `ulimit -n`",
        _ if lacks_memory(source) => MORE_MEMORY,
        _ => most,
    }
}

/// True if there is no memory. xz and zstd have no kind for that.
pub fn lacks_memory(source: &io::Error) -> bool {
    let text = source.to_string();
    let ends = ["can't allocate memory", "not enough memory"];
    source.kind() == io::ErrorKind::OutOfMemory || ends.iter().any(|end| text.ends_with(end))
}

impl From<BuildError> for Error {
    fn from(error: BuildError) -> Self {
        Self::Message(match error {
            BuildError::OutOfMemory { bytes } => format!(
                "the system does not have {bytes} bytes of memory for the filter; choose a larger rate -p, or a smaller -n or --memory; \
                 corpus takes less with --sample"
            ),
            error => error.to_string(),
        })
    }
}

/// The reason why the work stops before its inputs end.
#[derive(Debug)]
pub enum Stop {
    /// Nothing is left to do; with the exit code.
    Done(u8),
    /// No more lines are wanted.
    Enough,
    /// The signal with this number asked to stop.
    Signal(i32),
    /// An error. All lines before it are done and worth saving.
    After(Error),
    /// An error in the middle of the work.
    Failed(Error),
}

impl Stop {
    /// Returns the exit code, or the error.
    pub fn end(self) -> Result<u8, Error> {
        match self {
            Self::Done(code) => Ok(code),
            Self::Enough => Ok(SUCCESS),
            Self::Signal(signal) => Ok(exit_code(signal)),
            Self::After(error) | Self::Failed(error) => Err(error),
        }
    }
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// The exit code of a run that is complete.
pub const SUCCESS: u8 = 0;

/// The exit code of a run that is complete except for an input that it skipped in whole or in part.
pub const INCOMPLETE: u8 = 1;

/// The exit code of a run that an error ended.
pub const FAILED: u8 = 2;

/// Returns the exit code for a process that a signal ended, as shells report it.
pub fn exit_code(signal: i32) -> u8 {
    128 + signal as u8
}
