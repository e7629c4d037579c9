//! The `bloomline` command, as a function for the programs that hold it: its own, and the Python wheel's.
//!
//! Imports run from the lower of these rows to the upper ones:
//!
//! ```text
//! system/    errors, files, locks and threads
//! terminal/  messages, the progress bar, formatted figures and signals
//! key/       what a line's key is
//! read/      from names to numbered chunks of lines; table.rs is the interface of tables, whose rows take the place of lines
//! write/     outputs: files and standard output, compressed and in order
//! seen/      the keys seen so far: the set, the exact check, the statistics of a run
//! run/       the engine: from chunks of lines to outputs; step.rs is the interface of steps, work/ has the stages from read to write
//! steps/     what decides about the lines of a chunk: insert, look up, documents, groups, substrings, decontaminate
//! options/   the command line, a file for each group of commands
//! commands/  an entry point for each command; run/ for dedup and corpus; scan.rs is shared by build, check and sets
//! lib        the command as a function, which main.rs and the Python module call
//! ```
#![forbid(unsafe_code)]

mod commands;
mod key;
mod options;
mod read;
mod run;
mod seen;
mod steps;
mod system;
mod terminal;
mod write;

use clap::error::ErrorKind;
use commands::run::plan::Plan;
use commands::sets::SetJob;
use commands::{build, check, info, job, manual, merge, plan, redis};
use options::{Cli, Command, NotInOptions};
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::panic::{self, AssertUnwindSafe};
use system::error::{Error, FAILED, MORE_MEMORY, SUCCESS};
use system::{platform, standard};
use terminal::{bar, messages, signals};
use write::output::Output;

/// Runs the command line `args`, whose first element is the program, and returns the exit code.
///
/// The main thread of a process that does nothing else calls this function. It takes over SIGINT, SIGTERM, SIGHUP and SIGABRT.
/// The first signal asks a command to stop in good order, and the second ends the process.
pub fn run_command_line(args: impl IntoIterator<Item = OsString>) -> u8 {
    check_standard();
    let result = match Cli::read(args) {
        Ok(cli) => signals::receive().and_then(|()| {
            // Rust has reported a panic. Some compressors panic for lack of memory.
            let early = |_| Err(Error::new(format!("the run ended early; if memory was lacking, {MORE_MEMORY}")));
            panic::catch_unwind(AssertUnwindSafe(|| run_command(cli.command))).unwrap_or_else(early)
        }),
        Err(help) if help.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            // A missing command is an error: standard output stays empty, and a script stops.
            let _ = help.print();
            return FAILED;
        }
        Err(error) if error.use_stderr() => return fail(&options::explanation(&error)),
        Err(help) => {
            Output::standard([]).and_then(|output| output.write_text(help.to_string().as_bytes())).map(|()| SUCCESS)
        }
    };
    signals::defer_to_signal();
    match result {
        Ok(code) => code,
        // The reader has enough, like `head`.
        Err(Error::ReaderGone) => SUCCESS,
        Err(error) => fail(&error.to_string()),
    }
}

/// Makes the command write its progress to standard error as lines of JSON, for a program that draws it: an object "progress" with
/// "parts", the texts of a line, the most important first, and "share", from 0 to 1 or null, of the current pass or phase.
pub fn write_progress_as_json() {
    bar::write_json();
}

/// Records whether standard input and output are closed: input would be missing, and output would be lost, or written to the next
/// file that is opened.
pub fn check_standard() {
    standard::check();
}

/// Returns a file that writes to standard error without a lock.
///
/// # Errors
/// If standard error is closed.
pub fn standard_error() -> io::Result<File> {
    platform::duplicate(io::stderr())
}

fn run_command(command: Command) -> Result<u8, Error> {
    match command {
        Command::Dedup(options) => job::run(Plan::from_dedup(*options).check()),
        Command::Corpus(options) => job::run(Plan::from_corpus(*options).check()),
        Command::Build(options) => job::run(build::check(options)),
        Command::Check(options) => job::run(check::check(options)),
        Command::In(options) => job::run(SetJob { options: *options, wanted: true, distinct: false }.check()),
        Command::NotIn(options) => {
            let NotInOptions { sets, distinct } = *options;
            job::run(SetJob { options: sets, wanted: false, distinct }.check())
        }
        Command::Info(options) => info::run(&options),
        Command::Merge(options) => merge::run(&options),
        Command::Plan(options) => plan::run(&options),
        Command::Redis(options) => redis::run(&options),
        Command::Completions(options) => manual::completions(&options),
        Command::Manual(options) => manual::manual(&options),
    }
}

fn fail(message: &str) -> u8 {
    messages::print_message(message);
    FAILED
}
