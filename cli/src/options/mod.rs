//! The command line.

pub mod corpus;
mod dedup;
mod filter;
mod others;
mod reading;

pub use dedup::{DedupOptions, RunOptions, WhenFull};
pub use filter::{SharedOptions, SharedWriteOptions, SizeOptions};
pub use others::{
    BuildOptions, CheckOptions, CompletionsOptions, InfoOptions, ManualOptions, MergeOptions, PlanOptions,
};
pub use reading::ReadOptions;

use crate::options::corpus::CorpusOptions;
use crate::values::Delimiter;
use clap::error::ErrorKind;
use clap::{Parser, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;

/// Large sets of keys in little memory, with Bloom filters.
#[derive(Parser)]
#[command(
    name = "bloomline",
    version,
    arg_required_else_help = true,
    after_help = "The --help of each command has examples and exit codes."
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

impl Cli {
    /// Reads the command line. What clap cannot tell of options that do not fit together is told here.
    pub fn read(args: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        let mut cli = Self::try_parse_from(args)?;
        check_format(&cli.command)?;
        let key = match &mut cli.command {
            Command::Corpus(options) => return options.resolve().map(|()| cli),
            Command::Dedup(options) => &options.key,
            Command::Build(options) => &options.key,
            Command::Check(options) => &options.key,
            _ => return Ok(cli),
        };
        match &key.delimiter {
            Some(Delimiter(bytes)) if key.csv && (bytes.len() > 1 || bytes[0] == b'"') => {
                let delimiter = String::from_utf8_lossy(bytes);
                let message =
                    format!("cannot use the --delimiter {delimiter:?} with --csv: give one byte that is no quote");
                Err(clap::Error::raw(ErrorKind::ArgumentConflict, message))
            }
            _ => Ok(cli),
        }
    }
}

/// Refuses the format of statistics in the place of an input.
fn check_format(command: &Command) -> Result<(), clap::Error> {
    let (stats, reading) = match command {
        Command::Dedup(options) => (options.run.stats, &options.reading),
        Command::Corpus(options) => (options.run.stats, &options.reading),
        Command::Build(options) => (options.stats, &options.reading),
        _ => return Ok(()),
    };
    let is_format =
        |path: &&PathBuf| ["json", "text"].iter().any(|format| path.as_os_str() == *format) && !path.exists();
    match reading.files.iter().find(is_format).filter(|_| stats.is_some()) {
        Some(path) => {
            let format = path.display();
            let message =
                format!("there is no input \"{format}\"; to choose the format of --stats, give --stats={format}");
            Err(clap::Error::raw(ErrorKind::ArgumentConflict, message))
        }
        None => Ok(()),
    }
}

/// The subcommands.
#[derive(Subcommand)]
pub enum Command {
    /// Print each distinct line once: its first occurrence, in input order.
    #[command(after_help = "Example: bloomline dedup urls.txt > distinct.txt")]
    #[command(after_long_help = format!("{DEDUP_EXAMPLES}\n\n{READING_CODES}"))]
    Dedup(Box<DedupOptions>),
    /// Cut duplicate paragraphs, or drop duplicate documents, of lines of JSON.
    ///
    /// It finds exact duplicates, those that share most of their n-grams, and near duplicates.
    #[command(after_help = "Example: bloomline corpus --stats crawl.jsonl.gz -o clean.jsonl.gz")]
    #[command(after_long_help = format!("{}\n\n{READING_CODES}", corpus::EXAMPLES))]
    Corpus(Box<CorpusOptions>),
    /// Build a filter from lines, or add lines to one.
    #[command(after_help = "Example: bloomline build -p 0.001 -o seen.bloom monday.txt")]
    #[command(after_long_help = format!("{BUILD_EXAMPLES}\n\n{READING_CODES}"))]
    Build(BuildOptions),
    /// Print the lines that are in a filter, in input order.
    #[command(after_help = "Example: bloomline check -f seen.bloom urls.txt > seen.txt")]
    #[command(after_long_help = format!("{CHECK_EXAMPLES}\n\n{CHECK_CODES}"))]
    Check(CheckOptions),
    /// Describe a filter: its size, how full it is, and whether its file is intact.
    #[command(after_help = format!("{INFO_EXAMPLES}\n\n{CODES}"))]
    Info(InfoOptions),
    /// Merge filters into one that holds the keys of all.
    #[command(after_help = format!("{MERGE_EXAMPLES}\n\n{CODES}"))]
    Merge(MergeOptions),
    /// Compute the memory, the number of probes and the rates of a filter before it is built.
    #[command(after_help = format!("{PLAN_EXAMPLES}\n\n{CODES}"))]
    Plan(PlanOptions),
    /// Print a script that completes the command line in a shell.
    #[command(after_help = CODES)]
    Completions(CompletionsOptions),
    /// Write the manual pages to a folder.
    #[command(after_help = CODES)]
    Manual(ManualOptions),
}

const CODES: &str = "\
Exit codes:
  0      done
  2      an error
  128+n  ended by the signal n, such as 130 by Ctrl-C";

const READING_CODES: &str = "\
Exit codes:
  0      done
  1      done, but an input or a part of one was left out by --on-error skip or keep
  2      an error
  128+n  ended by the signal n, such as 130 by Ctrl-C";

const CHECK_CODES: &str = "\
Exit codes:
  0      lines were selected
  1      no line was selected
  2      an error, or an input could not be read
  128+n  ended by the signal n, such as 130 by Ctrl-C";

const DEDUP_EXAMPLES: &str = "\
A new line is dropped by mistake at the false-positive rate. A key that was seen is never taken for new. Each distinct line takes about 1.3 bytes of \
memory at -p 0.01 and 5.1 at -p 1e-6, and up to 4.6 times as much if the filter grows.

Examples:
  bloomline dedup urls.txt > distinct.txt
  bloomline dedup --normalize url --stats crawl-*.gz -o distinct.zst
  bloomline dedup --json-pointer /text --dupes repeats.jsonl corpus.jsonl.zst > distinct.jsonl
  bloomline dedup --output-dir clean --glob '*.gz' --compress zstd crawl/
  bloomline dedup --state seen.bloom --checkpoint 1m today.txt -o new.txt    # after a crash, add --resume";

const BUILD_EXAMPLES: &str = "\
The file is replaced once all lines are in. At every moment it is the old file or the new one. It records the key options, the \
planned size and the rate.

Examples:
  bloomline build -p 0.001 -o seen.bloom monday.txt
  bloomline build -n 50000000 --no-shrink -o week.bloom monday.txt
  bloomline build --append -o week.bloom tuesday.txt
  zcat logs.gz | bloomline build --stats -o logs.bloom";

const CHECK_EXAMPLES: &str = "\
All lines that are in the filter are found. Other lines are found by mistake, at the filter's false-positive rate. Give the key \
options that the filter was built with; others are refused. If a file cannot be opened, the others are still read.

Examples:
  bloomline check -f seen.bloom urls.txt > seen.txt
  bloomline check -v -f seen.bloom urls.txt > new.txt
  if bloomline check -q -f seen.bloom urls.txt; then echo 'some were seen'; fi";

const INFO_EXAMPLES: &str = "\
The whole file is read, and its checksums are verified.

Examples:
  bloomline info seen.bloom
  bloomline info --json seen.bloom | jq .fpr";

const MERGE_EXAMPLES: &str = "\
The filters must have the same key options, probes and seed. One size may be 2, 4, 8 or another power of 2 times the other, and the \
result has the smallest size. So build each filter with the same -p and --seed, with -n for the keys of all filters, and with --no-shrink.

Examples:
  bloomline merge monday.bloom tuesday.bloom -o both.bloom";

const PLAN_EXAMPLES: &str = "\
Give two of -n, -p and --memory. words4 is the layout of bloomline's filters, and its rates are those of its exact model. The \
classic filter, whose bits lie all over the memory, stands beside it.

Examples:
  bloomline plan -n 1000000000 -p 0.001
  bloomline plan -n 1000000000 --memory 4G
  bloomline plan -p 0.001 --memory 4G --json
  bloomline plan --table";

/// A usage error on one line: clap's explanation and tips, without the usage that follows them.
pub fn one_line(error: &clap::Error) -> String {
    let text = error.to_string();
    let explanation = text.lines().map(str::trim).take_while(|line| !line.starts_with("Usage:"));
    let mut text = String::new();
    let mut tipped = false;
    for part in explanation.filter(|line| !line.is_empty()) {
        // One tip after another.
        text += if tipped && part.starts_with("tip: ") { "; " } else { " " };
        tipped |= part.starts_with("tip: ");
        text += part;
    }
    text.trim_start()
        .trim_start_matches("error: ")
        .trim_end_matches("For more information, try '--help'.")
        .trim()
        .to_owned()
}
