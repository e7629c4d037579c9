//! The `bloomline` command, as a function for the programs that hold it: its own, and the Python wheel's.
//!
//! Imports run from the lower of these rows to the upper ones:
//!
//! ```text
//! locked stall bar phase places messages values figures
//! key/            what a line's key is
//! error word_file sort files temp_files file_lock turns signals
//! groups/         lines that are alike: records of the first reading, and what is decided of each by its place
//! documents/      what is looked up of a line that is a document, and what is cut out of it
//! input/          from names to numbered chunks of lines
//! encode
//! table/          files of Parquet: rows in the place of lines, which input/ takes from it; none.rs stands there without
//!                 the feature
//! options/        the command line, a file for each group of commands
//! against/        the tests of --against, and what was found of them
//! seen/           what was seen: the set, the exact second look, the tally
//! output/ replace progress
//! engine/         pass/ has what becomes of a chunk, work/ the stages from read to write
//! report classic
//! commands/       where each command begins; run/ for dedup and corpus: plan.rs resolves their options, destination/ opens their
//!                 outputs; groups.rs has what they do between two readings, scan.rs what build, check and sets share
//! lib             the command as a function, which main.rs and the Python module call
//! ```
#![forbid(unsafe_code)]
// Without tables, what is asked of them leads nowhere.
#![cfg_attr(not(feature = "parquet"), allow(dead_code, unreachable_code))]

#[cfg(not(unix))]
compile_error!("the command needs Unix: it reads files by descriptor and position");

mod against;
mod bar;
mod classic;
mod commands;
mod documents;
mod encode;
mod engine;
mod error;
mod figures;
mod file_lock;
mod files;
mod groups;
mod input;
mod key;
mod locked;
mod messages;
mod options;
mod output;
mod phase;
mod places;
mod progress;
mod replace;
mod report;
mod seen;
mod signals;
mod sort;
mod stall;
mod table;
mod temp_files;
mod turns;
mod values;
mod word_file;

use clap::error::ErrorKind;
use commands::run::plan::Plan;
use commands::{build, check, info, manual, merge, plan, redis, sets};
use error::{Error, FAILED, SUCCESS};
use options::{Cli, Command};
use std::ffi::OsString;

#[cfg(feature = "parquet")]
pub use table::hash_rows;

/// Runs the command line `args`, of which the first is the program, and returns the exit code.
///
/// It is for the main thread of a process that does nothing else. It takes over SIGINT, SIGTERM and SIGHUP. The first asks a
/// command to end in good order, and the second ends the process.
pub fn run_command_line(args: impl IntoIterator<Item = OsString>) -> u8 {
    look_at_standard_output();
    let result = match Cli::read(args) {
        Ok(cli) => signals::receive().and_then(|()| run_command(cli.command)),
        Err(help) if help.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            // Whoever gives no command has made a mistake: standard output stays empty, and a script stops.
            let _ = help.print();
            return FAILED;
        }
        Err(error) if error.use_stderr() => return fail(&options::explanation(&error)),
        Err(help) => {
            // Help that nobody reads to its end is no failure.
            let _ = help.print();
            return SUCCESS;
        }
    };
    signals::give_way();
    match result {
        Ok(code) => code,
        // The reader has enough, as `head` has.
        Err(Error::ReaderGone) => SUCCESS,
        Err(error) => fail(&error.to_string()),
    }
}

/// Makes the command write its progress to standard error as lines of JSON, for a program that draws it: an object "progress" with "parts", the
/// texts of a line, the most important one first, and "share", from 0 to 1 or null, of the pass or phase that is under way.
pub fn write_progress_as_json() {
    bar::write_json();
}

/// Takes note of a standard output that is closed: what is written there would be lost, or go to the next file that is opened.
pub fn look_at_standard_output() {
    output::target::look_at_standard();
}

fn run_command(command: Command) -> Result<u8, Error> {
    match command {
        Command::Dedup(options) => Plan::of_dedup(*options).run(),
        Command::Corpus(options) => Plan::of_corpus(*options).run(),
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
    messages::tell(message);
    FAILED
}
