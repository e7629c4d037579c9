//! Failures of the command, and reasons to stop. Every message fits one line and names the input or output concerned.

use crate::key::fault::Fault;
use bloomline::{BuildError, FileError, MergeError};
use std::path::PathBuf;
use std::{fmt, io};

/// Defines each failure once: its name, its fields and its message.
macro_rules! errors {
    ($($(#[$condition:meta])? $name:ident $({ $($field:ident: $kind:ty),* })? => $($message:expr),+;)*) => {
        /// A failure of the command. Inputs and outputs are named as they are shown to the user.
        #[derive(Debug)]
        pub enum Error {
            $($(#[$condition])? $name $({ $($field: $kind),* })?,)*
        }

        impl fmt::Display for Error {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $($(#[$condition])? Self::$name $({ $($field),* })? => write!(f, $($message),+),)*
                }
            }
        }
    };
}

errors! {
    Open { input: String, source: io::Error } => "cannot open {input}: {source}";
    NoFile { folder: String } => "no file is found in the directory {folder}; see --glob, --hidden and --follow for what is left out; files that the run writes, and tests and OLD, are not inputs either";
    Loop { link: String, folder: String } => "cannot follow {link}: it leads back to {folder}, which it is in; remove the link, or leave out --follow";
    EmptyList { list: String } => "no input is named in {list}, the list of --files-from; name one on each line";
    ListWithNul { list: String } => "cannot read {list}, the list of --files-from: there are NULs in it; give --files0-from if they end names";
    StdinTwice => "standard input cannot be an input and the list of --files-from at once; name another file for one of them";
    OptionBehind { option: PathBuf } => "there is no file {option:?}: what follows \"--\" are the files of NEW, so give options before it";
    OldAndNew => "standard input cannot be read for OLD and for NEW at once; name a file for one of them, such as `OLD -- NEW`";
    ForeignInput { format: &'static str } => "it is in the format of {format}, which is not supported; make lines of it, plain or compressed by gzip, zstd, xz, bzip2 or lz4, or give --binary to take its bytes for lines";
    CompressedTwice { format: &'static str } => "what is compressed in it is compressed once more, by {format}; undo one of the two and give the rest by a pipe, or give --binary to take its bytes for lines";
    NoTables => "it is Parquet, which this build does not read; build it with `cargo build --release -p bloomline-cli --features parquet`, or give --binary to take its bytes for lines";
    PipedTable => "it is Parquet, which is read from files that are not compressed as a whole; name such a file, or give --binary to take its bytes for lines";
    TarInput => "it is an archive of tar, which has files and no lines; unpack it, or give its files on standard input by `tar -xOf FILE |`, or give --binary to take its bytes for lines";
    Padding => "after the zeros that end a gzip file comes something else";
    LongLine { bytes: usize } => "the next line has more than {bytes} bytes, and memory for more cannot be had";
    Estimate { input: String, source: io::Error } => "cannot estimate how many lines {input} has: {source}; {}", remedy(source, "choose with --on-error how to go on, or give the number of distinct lines with -n");
    KeysUnknown { input: String } => "cannot tell how many lines {input} has, because it is not a file; give the number of distinct lines with -n";
    Again { source: io::Error } => "the inputs have more lines than was estimated, and cannot be read again: {source}; give the number of distinct lines with -n";
    Outgrown => "cannot save the filter: the inputs have more lines than was estimated, and no file has several filters of an estimate; give the number of distinct lines with -n";
    Read { position: String, source: io::Error } => "cannot read {position}: {source}; {}", remedy(source, "choose with --on-error how to go on");
    Rows { input: String, source: io::Error } => "cannot read {input}: {source}; nothing more is written, so leave this file out";
    Kinds { lines: String, table: String } => "cannot write the lines of {lines} and the rows of {table} to one output; run the command for each kind, or give dedup and corpus --output-dir";
    WholeKinds { lines: String, table: String } => "a line of {lines} and a row of {table} are never equal as a whole; name the key with --column";
    OfLines { option: &'static str, table: String } => "{option} is for lines, and {table} is Parquet, which has rows; leave it out";
    OtherHeader { header: String, first: String, first_header: String, remedy: &'static str } => "its header is {header:?}, and that of {first} is {first_header:?}: make them the same, {remedy}";
    OfRows { option: &'static str, lines: String } => "{option} is for the rows of Parquet, and {lines} has lines; leave it out";
    Header { fault: Fault } => "{fault}";
    OpenQuote { lines: usize, fault: Fault } => "the rest, {lines} line{}, is one record: {fault}", if *lines == 1 { "" } else { "s" };
    NoKey { what: &'static str, line: String, fault: Fault } => "no {what} in {line}: {fault}; choose with --on-error how to go on";
    NullKey { line: String } => "the key has a null in {line}; choose with --nulls how to go on";

    NeverFull { max_fpr: f64 } => "--max-fpr {max_fpr} tells when a filter is full, and a filter that grows never is: it keeps the rate of -p; leave out --max-fpr, or fix the size by --when-full warn, and by -n for a pipe";
    MaxFprBelow { max_fpr: f64, fpr: f64 } => "--max-fpr {max_fpr} is below the rate of -p, {fpr}: the filter would be full before the lines are in that it is made for; give -p {max_fpr} or a lower rate";
    PlanOfTwo => "plan needs two of -n KEYS, -p RATE and --memory SIZE and computes the third; --table needs none of them";
    Build { error: BuildError } => "{error}";
    NoMemory { bytes: usize } => "the system has no {bytes} bytes of memory for the filter; choose a larger rate -p, or a smaller -n or --memory";
    TooSmall { bytes: usize, keys: u64 } => "{bytes} bytes are too few for a filter of {keys} keys; give more with --memory, or a rate with -p, for which a filter that is full takes more memory";
    Full { line: String, keys: u64, fpr: f64 } => "stopped at {line}: the filter is full with {keys} distinct lines, at a false-positive rate of {fpr}; make it larger with -n or --memory, or let it grow with --when-full grow; a state keeps its size, so begin another";
    Exact { source: io::Error } => "cannot keep the hashes of --exact in a temporary file: {source}; {}", remedy(source, "set TMPDIR to another folder");
    Groups { source: io::Error } => "cannot keep what repeats in a temporary file: {source}; {}", remedy(source, "set TMPDIR to another folder");
    Pairs { documents: u64 } => "cannot compare {documents} documents that share bands: 4294967295 are the most; compare parts of the inputs";
    Copy { source: io::Error } => "cannot keep a copy of a pipe in a temporary file, to read it twice: {source}; {}, or name a file in the place of the pipe", remedy(source, "set TMPDIR to another folder");
    Twice { source: io::Error } => "cannot read the inputs twice: {source}; {}", remedy(source, "what comes by a pipe is kept in a temporary file, so set TMPDIR to another folder");
    Changed => "an input changed between the two times that it was read, so what was printed may be wrong; copy the inputs first, or give them by a pipe";
    Spool { source: io::Error } => "cannot keep the hashes of lines that cannot be read again in a temporary file: {source}; {}, or fix the size with -n and --when-full warn", remedy(source, "set TMPDIR to another folder");
    Thread { source: io::Error } => "cannot start a thread: {source}; ask for fewer with -j";

    Load { error: FileError } => "cannot load the filter {}: {}", name(error), error.kind();
    Save { error: FileError } => "cannot save the filter {}: {}", name(error), error.kind();
    OtherKeys { filter: PathBuf, has: String, asked: String } => "cannot use the filter {filter:?}: its keys are \"{has}\", and these options ask for \"{asked}\"; give the key options that it was made with, or choose another filter";
    Merge { into: PathBuf, filter: PathBuf, source: MergeError } => "cannot merge {filter:?} into {into:?}: {source}";
    MergeKeys { into: PathBuf, filter: PathBuf, ours: String, theirs: String } => "cannot merge {filter:?} into {into:?}: their keys are \"{theirs}\" and \"{ours}\"; merge only filters that were made with the same key options";
    MergeKinds { into: PathBuf, filter: PathBuf } => "cannot merge {filter:?} into {into:?}: one of them grows, and the other has a fixed size; merge filters of one kind";
    MergeRate { rate: f64, asked: f64 } => "the merged filter has a false-positive rate of {rate:.2e}, and -p asks for {asked} at most; merge fewer filters, or give a higher -p";
    MergeGrown { rate: f64 } => "the merged filter has a false-positive rate of {rate:.2e}, for filters that grew keep the rates of all; give -p {:.2e} to accept that", rate * 1.005;

    Overwrite { input: String, output: String } => "cannot write to {output}: it is also an input, a test, a list, a filter or another output of this run: {input}; choose another file, or leave this one out, in a directory with --glob '!NAME'";
    Disturbed { file: String } => "cannot replace {file}: somebody wrote to it since this run began; it stays as it is, so run the command again";
    Broken { file: String } => "cannot replace {file}: its rest cannot be read; it stays as it is";
    Same { first: String, second: String } => "cannot replace {second}: it is the same file as {first}, and would lose its lines to itself; name each file once, or leave one out of a directory with --glob '!NAME'";
    Records { hint: String } => "nothing is replaced: {hint}, or write to another file with -o";
    Irreplaceable { input: String } => "cannot replace {input}: it is no regular file with a name; give --in-place files or directories";
    KnownAgain { output: String } => "cannot write to {output}: it is also an input, and with --state or --redis the next run would know all of its lines and empty it; write to another file";
    Locked { file: String } => "cannot write to {file}: another run is writing to it; wait until that ends, or choose another file";
    Busy { filter: PathBuf } => "cannot use {filter:?}: another run is writing to it; give --wait to wait until that ends, or choose another file";
    NotLock { filter: PathBuf, path: PathBuf } => "cannot use {filter:?}: its lock would be the file {path:?}, which holds something else; move that, or choose another file";
    NotAsLeft { outputs: String, state: PathBuf } => "cannot resume: this run is whole, and {outputs} is not as it left it; put it back from a copy, or begin anew with another state than {state:?}, which knows its lines";
    OtherState { state: PathBuf } => "cannot resume: this run is whole, and the state {state:?} is not the one that it or a later run left, so it may lack its lines; put that state back, or give --force to empty the outputs and run again with this state";
    WholeByForce { state: PathBuf } => "nothing is left to do: this run with the state {state:?} is whole already, and --force would lose its lines, which this state keeps from being printed again; leave out --force, or remove the state to start over";
    Existing { output: String, resume: &'static str } => "refusing to overwrite {output}: an earlier run wrote it; {resume}write to another folder, or give --force to lose it";
    Begun { output: String, resume: &'static str } => "refusing to overwrite {output}: it is there already, and no output that this run knows; {resume}move it, write to another folder, or give --force to lose it";
    Short { have: u64, want: u64 } => "its contents have {have} bytes, and the checkpoint is at {want}";
    StopSideBySide => "--when-full stop needs lines in order, and --output-dir reads many files at once; add --in-order, or let the filter grow with --when-full grow";
    Meeting { first: String, second: String, output: String } => "cannot write to {output}: it would be the output of both {first} and {second}; name inputs whose outputs have names of their own, or run them apart";
    Below { first: String, second: String, output: String } => "cannot write to {output}: it would be the output of {first}, and a folder for that of {second}; name inputs whose outputs have names of their own, or run them apart";
    Nameless { input: String } => "cannot write the lines of {input} to a folder: only regular files have outputs of their own; write to one file with -o";
    NotRegular { output: String } => "cannot write to {output}: it is not a regular file; choose another output";
    Dangling { output: String } => "cannot write to {output}: it is a link that leads to no file; remove it, or choose another output";
    ForeignOutput { output: String, ending: String } => "cannot write to {output}: the format of .{ending} is not supported; choose .gz, .zst, .xz, .bz2 or .lz4, or another ending for plain lines";
    OtherFormat { output: String, ending: String, written: String, remedy: &'static str } => "cannot write {written} to {output}: by .{ending} its name claims another format; {remedy}";
    OtherCoding { output: String, ending: &'static str, asked: String } => "cannot write to {output} with --compress {asked}: its name ends as that of a .{ending} file does; choose another name, or leave out --compress";
    Terminal { output: String } => "cannot write compressed lines to {output}: it is a terminal; name a file with -o, or leave out --compress";
    TableTerminal { output: String } => "cannot write Parquet to {output}: it is a terminal; name a file with -o";
    TableBehind { output: String } => "cannot write Parquet to {output}: something is in it already, and Parquet needs a file of its own; name one with -o";
    Worker => "a thread that reads and writes has ended";
    Create { output: String, source: io::Error } => "cannot open {output} for writing: {source}";
    Write { output: String, source: io::Error } => "cannot write to {output}: {source}";
    ReaderGone => "cannot write to standard output: its reader is gone";

    State { path: PathBuf, reason: String } => "cannot use the state {path:?}: {reason}; leave out the option that differs, or choose another state";
    Unsaved { state: PathBuf } => "ended before the state {state:?} was saved: it is that of the last checkpoint, so the next run may print lines twice, and loses none";
    Resume { path: PathBuf, reason: String } => "cannot resume from {path:?}: {reason}; to start another run with this state, leave out --resume and write to another file";
    Emptied { output: String, known: String, resume: &'static str } => "refusing to empty {output}: it holds lines, and a run with {known} empties no output that does; {resume}write to another file, append with >>, or give --force to lose these lines";
    NoState { state: PathBuf, output: String } => "cannot resume: there is no state {state:?}, and {output} holds lines that a run from the beginning would empty; check the name of the state, or give --force to lose these lines";
    Damaged { path: PathBuf, reason: String } => "cannot use the checkpoints in {path:?}: {reason}, so the file is damaged; remove it to start another run with this state, and write to another file";
    NotCheckpoints { path: PathBuf } => "cannot keep checkpoints in {path:?}: it holds something else; move it, or choose another state";
    ResumeStream => "only a run from files to files can be resumed; name the input files, and name the outputs with -o and --dupes, or with --output-dir";
    Shorter { output: String, have: u64, want: u64 } => "cannot resume: {output} has {have} bytes, and had {want} at the checkpoint; to start over, remove the state";

    Shared { error: Box<dyn std::error::Error + Send + Sync> } => "{error}";
    Unprinted { lines: usize, source: Box<Error> } => "{source}; up to {lines} new lines are in the shared filter and were not printed";
    UnprintedAtEnd => "ended before all was printed: lines that are in the shared filter may be missing in the output, and no run will print them";
    NoSet { set: String } => "the server has no set \"{set}\", or it is empty; give the key of a set with --set";
    SetCut { set: String, read: u64, count: u64 } => "only {read} of {count} members of the set \"{set}\" were read, because another server took over or the set shrank; run the command again";
    NotHex { key: String } => "\"{key}\" is not a key in hexadecimal digits; leave out --hex, or remove it from the input";
    NothingToDelete { name: String } => "the server has no filter {name:?}, and nothing was removed; bloomline redis list tells which there are";
    UploadGrown { filter: PathBuf } => "cannot upload {filter:?}: it grew, and a filter on a server has a fixed size; build it with -n and --when-full warn, or insert its lines by dedup --redis";
}

impl std::error::Error for Error {}

impl Error {
    /// Wraps a failure of the temporary files of groups.
    pub fn groups(source: io::Error) -> Self {
        Self::Groups { source }
    }
}

/// Returns the remedy of a failure: `most` for most causes, and another if the limit of open files is reached.
fn remedy<'a>(source: &io::Error, most: &'a str) -> &'a str {
    // ENFILE and EMFILE, which have these numbers on every Unix.
    if matches!(source.raw_os_error(), Some(23 | 24)) { "allow more open files with `ulimit -n`" } else { most }
}

/// The file's name as it is shown to the user: on one line, even if the name has line breaks.
fn name(error: &FileError) -> String {
    error.path().map_or_else(String::new, |path| format!("{path:?}"))
}

impl From<BuildError> for Error {
    fn from(error: BuildError) -> Self {
        match error {
            BuildError::OutOfMemory { bytes } => Self::NoMemory { bytes },
            error => Self::Build { error },
        }
    }
}

/// The reason why the work stops before its inputs end.
#[derive(Debug)]
pub enum Stop {
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

/// The exit code for a process that a signal ended, as shells report it.
pub fn exit_code(signal: i32) -> u8 {
    128 + signal as u8
}
