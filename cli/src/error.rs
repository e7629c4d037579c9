//! Why the command fails. Every message fits one line and names the input or output concerned.

use crate::key::Fault;
use bloomline::redis::RedisFilterError;
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
    Read { place: String, source: io::Error },
    /// A line has no key.
    Fault { line: String, fault: Fault },
    /// The filter is full and may not be filled further.
    Full { line: String, keys: u64, fpr: f64 },
    /// A filter of a given size is to grow.
    GrowInMemory,
    /// The state is not the one that the options ask for.
    State { path: PathBuf, reason: String },
    /// There is no checkpoint to go on from.
    Resume { path: PathBuf, reason: String },
    /// The output has lines that are in the state and would be lost.
    CutOff { output: String },
    /// Something else is where the checkpoints go.
    NotCheckpoints { path: PathBuf },
    /// An input or output that cannot be gone on with.
    ResumeStream,
    /// The output ends before the checkpoint.
    Shorter { output: String, have: u64, want: u64 },
    /// The hashes of the second look cannot be written or read.
    Exact { source: io::Error },
    /// The output is one of the inputs.
    Overwrite { input: String, output: String },
    /// The output cannot be opened.
    Create { output: String, source: io::Error },
    /// The output fails while it is written.
    Write { output: String, source: io::Error },
    /// Whoever reads standard output has enough.
    ReaderGone,
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
    /// A filter that grows is to be merged.
    MergeGrowing { filter: PathBuf },
    /// Too few values to plan by, or too many.
    PlanOfTwo,
    /// The filter cannot be built.
    Filter(BuildError),
    /// A thread cannot be started.
    Thread { source: io::Error },
    /// A filter on a server.
    Redis(RedisFilterError),
    /// No filter of this name is on the server, and no size is given for a new one.
    NoSharedFilter { name: String },
    /// A rate without keys does not make a size.
    SharedOfRate,
    /// The output has lines already.
    SharedOutput { output: String },
    /// Lines that are claimed were not printed.
    Unprinted { lines: usize, source: Box<Error> },
    /// The user does not want to remove it.
    NotReset,
    /// There is no terminal to ask on.
    NoTerminal { source: io::Error },
    /// No contender has this name.
    #[cfg(feature = "compare")]
    Contender { name: String, known: String },
    /// The filters of one size do not fit the memory together.
    #[cfg(feature = "compare")]
    ComparedMemory { size: String, need: String, have: String },
    /// The result of an earlier comparison cannot be read.
    #[cfg(feature = "compare")]
    Comparison { path: PathBuf, reason: String },
    /// A plot cannot be drawn.
    #[cfg(feature = "compare")]
    Plot { reason: String },
}

impl Error {
    /// Whether the reader of standard output went away.
    pub fn is_closed_pipe(&self) -> bool {
        matches!(self, Self::ReaderGone)
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
            Self::Read { place, source } => write!(f, "cannot read {place}: {source}; see --on-error"),
            Self::Fault { line, fault } => write!(f, "no key in {line}: {fault}; see --on-error"),
            Self::Full { line, keys, fpr } => write!(
                f,
                "stopped at {line}: the filter is full, with {keys} new lines at a false-positive rate of {fpr}; give it more \
                 room with -n or --memory, or let it grow with --when-full grow"
            ),
            Self::GrowInMemory => {
                write!(f, "a filter with --memory cannot grow; leave out --memory or take --when-full warn or stop")
            }
            Self::State { path, reason } => write!(
                f,
                "cannot go on with the state {path:?}: {reason}; leave out the option that differs, or choose another state"
            ),
            Self::Resume { path, reason } => {
                write!(
                    f,
                    "cannot resume from {path:?}: {reason}; to begin another run with the state, leave out --resume"
                )
            }
            Self::CutOff { output } => write!(
                f,
                "cannot begin anew in {output}: it has lines that the state has seen, of a run that was cut off; go on with \
                 --resume, or write to another file"
            ),
            Self::NotCheckpoints { path } => {
                write!(
                    f,
                    "cannot keep checkpoints in {path:?}: something else is there; move it, or choose another state"
                )
            }
            Self::ResumeStream => {
                write!(
                    f,
                    "only a run from files to files can be resumed; name the inputs, and the outputs with -o and --dupes"
                )
            }
            Self::Shorter { output, have, want } => write!(
                f,
                "cannot resume: {output} has {have} bytes and had {want} at the checkpoint; to begin anew, remove the state"
            ),
            Self::Exact { source } => {
                write!(f, "cannot keep hashes in a temporary file: {source}; TMPDIR names the folder for it")
            }
            Self::Overwrite { input, output } => {
                write!(
                    f,
                    "cannot write to {output}: it is also an input, or another output, of this run: {input}; choose another file"
                )
            }
            Self::Create { output, source } => write!(f, "cannot open {output} for writing: {source}"),
            Self::Write { output, source } => write!(f, "cannot write to {output}: {source}"),
            Self::ReaderGone => write!(f, "cannot write to standard output: its reader is gone"),
            Self::KeysUnknown { input } => {
                write!(
                    f,
                    "cannot tell how many lines {input} has: it is compressed or no file; give the number of distinct lines \
                     with -n"
                )
            }
            Self::NotRegular { output } => {
                write!(f, "cannot write to {output}: it is not a regular file; choose another output")
            }
            Self::Load(error) => write!(f, "cannot load the filter {}: {}", name(error), error.kind()),
            Self::Save(error) => write!(f, "cannot save the filter {}: {}", name(error), error.kind()),
            Self::Merge { into, filter, source } => write!(f, "cannot merge {filter:?} into {into:?}: {source}"),
            Self::MergeGrowing { filter } => {
                write!(
                    f,
                    "cannot merge {filter:?}: it grows, and only filters of a fixed size can be merged; build it with -n"
                )
            }
            Self::PlanOfTwo => {
                write!(f, "plan needs two of -n KEYS, -p RATE and --memory SIZE, and tells the third; or --table alone")
            }
            Self::Filter(error) => error.fmt(f),
            Self::Thread { source } => write!(f, "cannot start a thread: {source}; ask for fewer with -j"),
            Self::Redis(error) => error.fmt(f),
            Self::NoSharedFilter { name } => {
                write!(f, "the server has no filter {name:?}; give -n, and -p if it is not to be 1e-6, to create it")
            }
            Self::SharedOfRate => {
                write!(f, "-p alone gives a shared filter no size; give -n too, or neither for a filter that is there")
            }
            Self::SharedOutput { output } => write!(
                f,
                "cannot begin anew in {output}: it has lines, which nobody would be given again; write to another file, or append \
                 with >>"
            ),
            Self::Unprinted { lines, source } => {
                write!(f, "{source}; up to {lines} new lines are in the shared filter and were not printed")
            }
            Self::NotReset => write!(f, "the filter stays as it was, and nothing was done"),
            Self::NoTerminal { source } => {
                write!(f, "cannot ask before --reset, without a terminal: {source}; give --yes if you are sure")
            }
            #[cfg(feature = "compare")]
            Self::Contender { name, known } => write!(f, "no contender is called {name:?}; there are {known}"),
            #[cfg(feature = "compare")]
            Self::ComparedMemory { size, need, have } => write!(
                f,
                "filters of {size} take {need} together, and {have} can be had; choose with --sizes and --only"
            ),
            #[cfg(feature = "compare")]
            Self::Comparison { path, reason } => {
                write!(f, "cannot read {path:?}: {reason}; give the output of compare --json of this version")
            }
            #[cfg(feature = "compare")]
            Self::Plot { reason } => write!(f, "cannot draw a plot: {reason}"),
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

impl From<RedisFilterError> for Error {
    fn from(error: RedisFilterError) -> Self {
        Self::Redis(error)
    }
}
