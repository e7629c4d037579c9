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
    /// Make a filter of lines, or add lines to one.
    #[command(after_help = BUILD_EXAMPLES)]
    Build(Build),
    /// Print the lines that are in a filter, in input order.
    #[command(after_help = CHECK_EXAMPLES)]
    Check(Check),
    /// Tell what a filter is, how full it is, and whether its file is sound.
    #[command(after_help = INFO_EXAMPLES)]
    Info(Info),
    /// Make one filter of several: it holds the keys of all.
    #[command(after_help = MERGE_EXAMPLES)]
    Merge(Merge),
    /// Tell the memory, the number of probes and the rates of a filter before it is built.
    #[command(after_help = PLAN_EXAMPLES)]
    Plan(Plan),
}

const DEDUP_EXAMPLES: &str = "\
A new line is dropped wrongly at the false-positive rate; no line is ever printed twice. Memory is about 1.3 bytes a \
distinct line at -p 0.01, 5.1 at -p 1e-6.

Examples:
  bloomline dedup urls.txt > distinct.txt
  zcat logs.gz | bloomline dedup -n 50000000 -p 1e-4 --stats -o distinct.txt";

const BUILD_EXAMPLES: &str = "\
The file is replaced as a whole, once all lines are in: it is the old or the new one at every moment.

Examples:
  bloomline build -p 0.001 -o seen.bloom monday.txt
  bloomline build --append -o seen.bloom tuesday.txt
  zcat logs.gz | bloomline build -n 50000000 --stats -o logs.bloom";

const CHECK_EXAMPLES: &str = "\
All lines that are in the filter are found; of the others, a share passes for found: the filter's false-positive rate. \
The exit code is that of grep: 0 if lines were selected, 1 if none, 2 after an error.

Examples:
  bloomline check -f seen.bloom urls.txt > seen.txt
  bloomline check -v -f seen.bloom urls.txt > new.txt
  if bloomline check -q -f seen.bloom urls.txt; then echo 'some were seen'; fi";

const INFO_EXAMPLES: &str = "\
The whole file is read and its checksums are verified.

Examples:
  bloomline info seen.bloom
  bloomline info --json seen.bloom | jq .fpr";

const MERGE_EXAMPLES: &str = "\
Only filters of equal size, probes and seed can be merged: give -n, -p and --seed when you build them.

Examples:
  bloomline merge monday.bloom tuesday.bloom -o both.bloom";

const PLAN_EXAMPLES: &str = "\
Give two of -n, -p and --memory. The rates of words4, the layout of bloomline's filters, are those of its exact model; the \
classic filter, with its bits all over the memory, is there for comparison.

Examples:
  bloomline plan -n 1000000000 -p 0.001
  bloomline plan -n 1000000000 --memory 4G
  bloomline plan -p 0.001 --memory 4G --json
  bloomline plan --table";

/// Options of the commands that read lines.
#[derive(Args)]
pub struct Reading {
    /// Files to read one after another; standard input where there is none, and for "-"
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// Threads that read and hash; one more takes the results in order [default: the available cores]
    #[arg(short = 'j', long, value_name = "THREADS", value_parser = value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,

    /// Bytes read at once
    #[arg(long, value_name = "BYTES", hide = true, default_value_t = 1 << 19, value_parser = value_parser!(u32).range(1..=1 << 30))]
    pub chunk_size: u32,
}

/// Options of the commands that make a new filter.
#[derive(Args)]
pub struct Sizing {
    /// How many distinct lines to plan for [default: the lines of the files, estimated from samples]
    #[arg(short = 'n', long, value_name = "KEYS", value_parser = value_parser!(u64).range(1..))]
    pub expected_keys: Option<u64>,

    /// The false-positive rate once the expected keys are in: the chance that a new line passes for one seen before
    #[arg(short = 'p', long, value_name = "RATE", default_value = "1e-6", value_parser = rate)]
    pub fpr: f64,

    /// Seed of the hash; another seed errs on other lines
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
}

/// Options of `bloomline dedup`.
#[derive(Args)]
pub struct Dedup {
    #[command(flatten)]
    pub reading: Reading,

    #[command(flatten)]
    pub sizing: Sizing,

    /// Write to FILE instead of standard output; it must not be an input
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Print counts, the state of the filter and the speed to standard error at the end
    #[arg(long, value_name = "FORMAT", num_args = 0..=1, require_equals = true, default_missing_value = "text")]
    pub stats: Option<StatsFormat>,
}

/// Options of `bloomline build`.
#[derive(Args)]
pub struct Build {
    #[command(flatten)]
    pub reading: Reading,

    #[command(flatten)]
    pub sizing: Sizing,

    /// The filter's file; one that is there is replaced
    #[arg(short, long, value_name = "FILTER")]
    pub output: PathBuf,

    /// Add to the filter that is in the file; its size, rate and seed stay
    #[arg(long, conflicts_with_all = ["expected_keys", "fpr", "seed"])]
    pub append: bool,

    /// Print counts, the state of the filter and the speed to standard error at the end
    #[arg(long, value_name = "FORMAT", num_args = 0..=1, require_equals = true, default_missing_value = "text")]
    pub stats: Option<StatsFormat>,
}

/// Options of `bloomline check`.
#[derive(Args)]
pub struct Check {
    /// The filter's file
    #[arg(short, long, value_name = "FILTER")]
    pub filter: PathBuf,

    #[command(flatten)]
    pub reading: Reading,

    /// Select the lines that are not in the filter
    #[arg(short = 'v', long)]
    pub invert_match: bool,

    /// Print how many lines are selected instead of the lines; of several files, NAME:COUNT for each
    #[arg(short, long)]
    pub count: bool,

    /// Print nothing, and end at the first line that is selected: the exit code tells
    #[arg(short, long)]
    pub quiet: bool,
}

/// Options of `bloomline info`.
#[derive(Args)]
pub struct Info {
    /// The filter's file
    #[arg(value_name = "FILTER")]
    pub filter: PathBuf,

    /// Print one JSON object on one line
    #[arg(long)]
    pub json: bool,
}

/// Options of `bloomline merge`.
#[derive(Args)]
pub struct Merge {
    /// The files of the filters to merge
    #[arg(value_name = "FILTER", required = true)]
    pub filters: Vec<PathBuf>,

    /// The file of the filter with the keys of all; it must not be an input
    #[arg(short, long, value_name = "FILTER")]
    pub output: PathBuf,
}

/// Options of `bloomline plan`.
#[derive(Args)]
pub struct Plan {
    /// How many distinct keys the filter is for
    #[arg(short = 'n', long, value_name = "KEYS", value_parser = value_parser!(u64).range(1..))]
    pub expected_keys: Option<u64>,

    /// The false-positive rate once the expected keys are in
    #[arg(short = 'p', long, value_name = "RATE", value_parser = rate)]
    pub fpr: Option<f64>,

    /// Memory for the filter: bytes, or a number with K, M, G or T for powers of 1024
    #[arg(short, long, value_name = "SIZE", value_parser = size)]
    pub memory: Option<usize>,

    /// Print the rates by bits per key and probes
    #[arg(long, conflicts_with_all = ["expected_keys", "fpr", "memory"])]
    pub table: bool,

    /// Print one JSON value on one line
    #[arg(long)]
    pub json: bool,
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

/// A size from one block of a filter to what a process can address.
fn size(text: &str) -> Result<usize, String> {
    const LEAST: usize = 64;
    const MOST: usize = isize::MAX as usize;
    let units = ["K", "M", "G", "T"];
    let unit = units.into_iter().zip(1..).find_map(|(unit, power)| Some((text.strip_suffix(unit)?, power)));
    let (number, power) = unit.unwrap_or((text, 0));
    // Not `parse` alone, which takes a sign.
    let digits = number.bytes().all(|byte| byte.is_ascii_digit());
    let bytes = number.parse::<u64>().ok().and_then(|number| number.checked_mul(1 << (10 * power)));
    let bytes = bytes.and_then(|bytes| usize::try_from(bytes).ok());
    bytes.filter(|bytes| digits && (LEAST..=MOST).contains(bytes)).ok_or_else(|| {
        format!("not a size from {LEAST} to {MOST} bytes: give bytes, or a whole number with K, M, G or T, such as 16M")
    })
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
