//! The command line.

mod conflicts;
mod corpus;
mod dedup;
mod filter;
mod filter_commands;
mod groups;
mod help;
mod hints;
mod output;
mod reading;
mod redis;
mod sets;
mod value_conflicts;
pub mod values;

pub use corpus::{CorpusOptions, MAX_SAMPLE};
pub use dedup::{DedupOptions, RunOptions};
#[cfg(feature = "redis")]
pub use filter::ServerOptions;
pub use filter::{GrowthOptions, SharedOptions, SharedWriteOptions, SizeOptions, WhenFull};
pub use filter_commands::{BuildOptions, CheckOptions, InfoOptions, MergeOptions, PlanOptions};
pub use groups::GroupOptions;
pub use output::{OutputOptions, SelectOptions};
pub use reading::ReadOptions;
pub use redis::RedisOptions;
#[cfg(feature = "redis")]
pub use redis::{
    DeleteOptions, DownloadOptions, ImportOptions, ListOptions, RedisCommand, RedisInfoOptions, UploadOptions,
    WatchOptions,
};
pub use sets::{NotInOptions, SetOptions};

use crate::options::help::{CHECK_CODES, CODES, READING_CODES};
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;

/// Large sets of keys in little memory, with Bloom filters.
#[derive(Parser)]
#[command(
    name = "bloomline",
    bin_name = "bloomline",
    version,
    arg_required_else_help = true,
    after_help = "The --help of each command has examples and exit codes."
)]
pub struct Cli {
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

impl Cli {
    /// Returns the command line with the help of all commands.
    pub fn described() -> clap::Command {
        help::with_help(Self::command())
    }

    /// Parses the command line. Options that exclude or need others are checked here, not by clap.
    pub fn read(args: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        Self::read_by(&mut Self::described(), args)
    }

    fn read_by(command: &mut clap::Command, args: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        let args: Vec<OsString> = args.into_iter().collect();
        let name = args.get(1).and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        let matches = command.try_get_matches_from_mut(args);
        let matches = matches.map_err(|error| hints::with_hint(error, command, &name))?;
        conflicts::check(command, &matches)?;
        let mut cli = Self::from_arg_matches(&matches)?;
        value_conflicts::check(&cli.command)?;
        if let Command::Corpus(options) = &mut cli.command {
            options.resolve();
        }
        Ok(cli)
    }
}

/// The subcommands.
#[derive(Subcommand)]
pub enum Command {
    /// Print each distinct line once: its first occurrence, in order.
    ///
    /// A new line is dropped by mistake at the false-positive rate. A key that was seen is never taken for new. Each distinct line
    /// takes about 1.3 bytes of memory at -p 0.01 and 5.1 at -p 1e-6, and up to 4.6 times as much if the filter grows.
    #[command(after_long_help = READING_CODES)]
    Dedup(Box<DedupOptions>),
    /// Remove duplicate paragraphs or documents from lines of JSON.
    ///
    /// It finds exact duplicates, those that share most of their n-grams, and near duplicates. The first copy wins, so name
    /// better sources first. The bytes of a line are unchanged, except for what is cut. Each distinct gram takes about 1.3
    /// bytes of memory at -p 0.01. --stats prints the expected number of units that were removed by mistake.
    #[command(after_long_help = READING_CODES)]
    Corpus(Box<CorpusOptions>),
    /// Build a filter from lines, or add lines to one.
    ///
    /// The file is replaced atomically once all lines are inserted. It records the key options, the planned size and the rate.
    #[command(after_long_help = READING_CODES)]
    Build(BuildOptions),
    /// Print the lines that are in a filter, in input order.
    ///
    /// All lines that are in the filter are found. Other lines are found by mistake, at the filter's false-positive rate, which --verify
    /// measures. Give the key options that the filter was built with; others are refused. If a file cannot be opened, the others are
    /// still read.
    #[command(after_long_help = CHECK_CODES)]
    Check(CheckOptions),
    /// Print the lines of NEW that are in OLD, in input order.
    ///
    /// A line that occurs twice in NEW is printed twice. At the false-positive rate, another line is printed by mistake;
    /// --exact prints none. Each distinct line of OLD takes about 5.1 bytes of memory at -p 1e-6.
    #[command(after_long_help = CHECK_CODES)]
    In(Box<SetOptions>),
    /// Print the lines of NEW that are not in OLD, in input order.
    ///
    /// A line that occurs twice in NEW is printed twice, unless --distinct is given. At the false-positive rate, a line is left
    /// out by mistake; --exact leaves out none. Each distinct line of OLD takes about 5.1 bytes of memory at -p 1e-6.
    #[command(after_long_help = CHECK_CODES)]
    NotIn(Box<NotInOptions>),
    /// Describe a filter: its size, how full it is, and if it is intact.
    ///
    /// The whole file is read, and its checksums are verified.
    #[command(after_long_help = CODES)]
    Info(InfoOptions),
    /// Merge filters into one that holds the keys of all.
    ///
    /// The filters must have the same key options and seed. States that grew may have any sizes, and their rates add up: give the rate
    /// of the result with -p. Filters of a fixed size must have the same probes too. One size may be 2, 4, 8 or another power of 2
    /// times the other, and the result has the smallest size. So build each such filter with the same -p and --seed, with -n for the
    /// keys of all filters, and with --no-shrink.
    #[command(after_long_help = CODES)]
    Merge(MergeOptions),
    /// Compute memory, probes and rates of a filter before it is built.
    ///
    /// Give two of -n, -p and --memory. words4 is the layout of bloomline's filters, and its rates are those of its exact model.
    /// The classic filter, whose bits are spread over all of the memory, is shown for comparison.
    #[command(after_long_help = CODES)]
    Plan(PlanOptions),
    #[cfg_attr(feature = "redis", doc = "Manage filters that are shared through a Redis or Valkey server.")]
    #[cfg_attr(not(feature = "redis"), doc = "Manage filters on a Redis or Valkey server (not in this build).")]
    ///
    /// --redis, --name and the options for the connection are those of `dedup` and `check`.
    #[command(after_long_help = CODES)]
    Redis(RedisOptions),
    /// Print a script that completes the command line in a shell.
    #[command(after_long_help = CODES)]
    Completions(CompletionsOptions),
    /// Write the manual pages to a folder.
    #[command(after_long_help = CODES)]
    Manual(ManualOptions),
}

/// Options of `bloomline completions`.
#[derive(Args)]
pub struct CompletionsOptions {
    /// The shell
    pub shell: clap_complete::Shell,
}

/// Options of `bloomline manual`.
#[derive(Args)]
pub struct ManualOptions {
    /// The folder. It is created if it does not exist
    #[arg(value_name = "FOLDER")]
    pub folder: PathBuf,
}

/// Formats a usage error without the usage that follows it: the explanation of clap on one line, and each tip on its own line.
pub fn explanation(error: &clap::Error) -> String {
    let text = error.to_string();
    let lines = text.lines().map(str::trim).take_while(|line| !line.starts_with("Usage:"));
    let mut explanation = String::new();
    for line in lines.filter(|line| !line.is_empty() && !line.starts_with("For more information, try")) {
        explanation += if line.starts_with("tip: ") { "\n  " } else { " " };
        explanation += line;
    }
    explanation.trim_start().trim_start_matches("error: ").to_owned()
}

#[cfg(test)]
pub(crate) mod tests;
