//! Why the command fails. Every message fits one line and names the input or output concerned.

use bloomline::{BuildError, FileError, MergeError};
use std::path::PathBuf;
use std::{fmt, io};

/// A failure of the command. Inputs and outputs are named as they are shown to the user.
#[derive(Debug)]
pub enum Error {
    /// An input cannot be opened.
    Open { input: String, source: io::Error },
    /// An input is a directory.
    Directory { input: String },
    /// An input cannot be sampled.
    Estimate { input: String, source: io::Error },
    /// An input fails while it is read.
    Read { input: String, at: u64, source: io::Error },
    /// The output is one of the inputs.
    Overwrite { input: String, output: String },
    /// The output cannot be opened.
    Create { output: String, source: io::Error },
    /// The output fails while it is written.
    Write { output: String, source: io::Error },
    /// An input whose size cannot be known in advance.
    KeysUnknown { input: String },
    /// The output exists and cannot be replaced.
    NotRegular { output: String },
    /// A filter cannot be loaded.
    Load(FileError),
    /// The filter cannot be saved.
    Save(FileError),
    /// Filters that do not go together.
    Merge { into: PathBuf, filter: PathBuf, source: MergeError },
    /// Too few values to plan by, or too many.
    PlanOfTwo,
    /// The filter cannot be built.
    Filter(BuildError),
    /// A thread cannot be started.
    Thread { source: io::Error },
}

impl Error {
    /// Whether the reader of the output went away.
    pub fn is_closed_pipe(&self) -> bool {
        matches!(self, Self::Write { source, .. } if source.kind() == io::ErrorKind::BrokenPipe)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open { input, source } => write!(f, "cannot open {input}: {source}"),
            Self::Directory { input } => write!(f, "cannot read {input}: it is a directory; name the files in it"),
            Self::Estimate { input, source } => {
                write!(f, "cannot estimate the lines of {input}: {source}; give the number of distinct lines with -n")
            }
            Self::Read { input, at, source } => write!(f, "cannot read {input} at byte {at}: {source}"),
            Self::Overwrite { input, output } => {
                write!(f, "cannot write to {output}: it is also the input {input}; choose another output")
            }
            Self::Create { output, source } => write!(f, "cannot open {output} for writing: {source}"),
            Self::Write { output, source } => write!(f, "cannot write to {output}: {source}"),
            Self::KeysUnknown { input } => {
                write!(
                    f,
                    "cannot tell how many lines {input} has: it is not a regular file; give the number of distinct lines with -n"
                )
            }
            Self::NotRegular { output } => {
                write!(f, "cannot write to {output}: it is not a regular file; choose another output")
            }
            Self::Load(error) => write!(f, "cannot load the filter {}: {}", name(error), error.kind()),
            Self::Save(error) => write!(f, "cannot save the filter {}: {}", name(error), error.kind()),
            Self::Merge { into, filter, source } => write!(f, "cannot merge {filter:?} into {into:?}: {source}"),
            Self::PlanOfTwo => {
                write!(f, "plan needs two of -n KEYS, -p RATE and --memory SIZE, and tells the third; or --table alone")
            }
            Self::Filter(error) => error.fmt(f),
            Self::Thread { source } => write!(f, "cannot start a thread: {source}; ask for fewer with -j"),
        }
    }
}

impl std::error::Error for Error {}

/// The file's name as it is shown to the user: on one line, whatever is in it.
fn name(error: &FileError) -> String {
    error.path().map_or_else(String::new, |path| format!("{path:?}"))
}

impl From<BuildError> for Error {
    fn from(error: BuildError) -> Self {
        Self::Filter(error)
    }
}
