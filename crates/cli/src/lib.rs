//! The `bloomline` command, as a function for the programs that hold it: its own, and the Python wheel's.
//!
//! Imports run from the lower of these rows to the upper ones:
//!
//! ```text
//! unpoisoned write_watchdog bar phase byte_scan messages values figures
//! key/            what a line's key is
//! error u64_file external_sort files temp_files file_lock reorder_buffer signals
//! coding encode
//! groups/         equal or similar lines: records of the first reading, and the decision on each line by its ordinal
//! documents/      the lookups of a document's text, and the cuts that follow
//! input/          from names to numbered chunks of lines; table.rs is the interface of tables, whose rows take the place of lines
//! options/        the command line, a file for each group of commands
//! decontaminate/  the tests of --against, and the overlaps found with them
//! seen/           the keys seen so far: the set, the exact check, the statistics of a run
//! output/ replace progress
//! engine/         pass/ has the decisions about a chunk, work/ the stages from read to write
//! report classic
//! commands/       an entry point for each command; run/ for dedup and corpus: plan.rs resolves their options, destination/
//!                 opens their outputs; groups.rs works between two readings, scan.rs is shared by build, check and sets
//! lib             the command as a function, which main.rs and the Python module call
//! ```
#![forbid(unsafe_code)]

#[cfg(not(unix))]
compile_error!("the command needs Unix: it reads files by descriptor and position");

mod bar;
mod byte_scan;
mod classic;
mod coding;
mod commands;
mod decontaminate;
mod documents;
mod encode;
mod engine;
mod error;
mod external_sort;
mod figures;
mod file_lock;
mod files;
mod groups;
mod input;
mod key;
mod messages;
mod options;
mod output;
mod phase;
mod progress;
mod reorder_buffer;
mod replace;
mod report;
mod seen;
mod signals;
mod temp_files;
mod u64_file;
mod unpoisoned;
mod values;
mod write_watchdog;

use clap::error::ErrorKind;
use commands::run::plan::Plan;
use commands::{build, check, info, manual, merge, plan, redis, sets};
use error::{Error, FAILED, SUCCESS};
use options::{Cli, Command};
use std::ffi::OsString;

/// Runs the command line `args`, whose first element is the program, and returns the exit code.
///
/// For the main thread of a process that does nothing else. It takes over SIGINT, SIGTERM and SIGHUP. The first signal
/// asks a command to stop in good order, and the second ends the process.
pub fn run_command_line(args: impl IntoIterator<Item = OsString>) -> u8 {
    check_standard_output();
    let result = match Cli::read(args) {
        Ok(cli) => signals::receive().and_then(|()| run_command(cli.command)),
        Err(help) if help.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            // A missing command is an error: standard output stays empty, and a script stops.
            let _ = help.print();
            return FAILED;
        }
        Err(error) if error.use_stderr() => return fail(&options::explanation(&error)),
        Err(help) => {
            // Help that is not read to its end is not a failure.
            let _ = help.print();
            return SUCCESS;
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

/// Records whether standard output is closed: output to it would be lost, or written to the next file that is opened.
pub fn check_standard_output() {
    output::target::check_standard();
}

fn run_command(command: Command) -> Result<u8, Error> {
    match command {
        Command::Dedup(options) => Plan::from_dedup(*options).run(),
        Command::Corpus(options) => Plan::from_corpus(*options).run(),
        Command::Build(options) => build::run(&options),
        Command::Check(options) => check::run(&options),
        Command::In(options) => sets::run(&options, true, false),
        Command::NotIn(options) => sets::run(&options.sets, false, options.distinct),
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
