//! The command line.

use clap::{Args, Parser, Subcommand, ValueEnum, value_parser};
use std::path::PathBuf;

/// Large sets of keys in little memory, with Bloom filters.
#[derive(Parser)]
#[command(name = "bloomline", version, arg_required_else_help = false)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands.
#[derive(Subcommand)]
pub enum Command {
    /// Print each distinct line once: its first occurrence, in input order.
    #[command(after_help = DEDUP_EXAMPLES)]
    Dedup(Dedup),
}

const DEDUP_EXAMPLES: &str = "\
A new line is dropped wrongly at the false-positive rate; no line is ever printed twice. Memory is about 1.3 bytes a \
distinct line at -p 0.01, 5.1 at -p 1e-6.

Examples:
  bloomline dedup urls.txt > distinct.txt
  zcat logs.gz | bloomline dedup -n 50000000 -p 1e-4 --stats -o distinct.txt";

/// Options of `bloomline dedup`.
#[derive(Args)]
pub struct Dedup {
    /// Files to read one after another; standard input where there is none, and for "-"
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// How many distinct lines to plan for [default: the lines of the files, estimated from samples]
    #[arg(short = 'n', long, value_name = "KEYS", value_parser = value_parser!(u64).range(1..))]
    pub expected_keys: Option<u64>,

    /// The false-positive rate once the expected keys are in: the chance that a new line is dropped
    #[arg(short = 'p', long, value_name = "RATE", default_value = "1e-6", value_parser = rate)]
    pub fpr: f64,

    /// Threads that read and hash; one more filters and writes [default: the available cores]
    #[arg(short = 'j', long, value_name = "THREADS", value_parser = value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,

    /// Write to FILE instead of standard output; it must not be an input
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Seed of the hash; another seed errs on other lines
    #[arg(long, default_value_t = 0)]
    pub seed: u64,

    /// Print counts, the state of the filter and the speed to standard error at the end
    #[arg(long, value_name = "FORMAT", num_args = 0..=1, require_equals = true, default_missing_value = "text")]
    pub stats: Option<StatsFormat>,

    /// Bytes read at once
    #[arg(long, value_name = "BYTES", hide = true, default_value_t = 1 << 19, value_parser = value_parser!(u32).range(1..=1 << 30))]
    pub chunk_size: u32,
}

/// How to print statistics.
#[derive(Clone, Copy, ValueEnum)]
pub enum StatsFormat {
    /// A line for each figure.
    Text,
    /// One JSON object on one line.
    Json,
}

fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse().map_err(|_| "not a number".to_owned())?;
    if rate > 0.0 && rate < 1.0 { Ok(rate) } else { Err("not between 0 and 1 (both excluded)".to_owned()) }
}

/// A usage error on one line: clap's explanation and tips, without the usage that follows them.
pub fn one_line(error: &clap::Error) -> String {
    let text = error.to_string();
    let explanation = text.lines().map(str::trim).take_while(|line| !line.starts_with("Usage:"));
    let parts: Vec<&str> = explanation.filter(|line| !line.is_empty()).collect();
    parts
        .join(" ")
        .trim_start_matches("error: ")
        .trim_end_matches("For more information, try '--help'.")
        .trim()
        .to_owned()
}
