//! The options of the commands that build, query, describe, merge and plan filters.

use crate::options::filter::{SharedOptions, SizeOptions, WhenFull};
use crate::options::output::SelectOptions;
use crate::options::reading::{KeyOptions, ReadOptions};
use crate::options::values::{Eol, count, only, rate, size};
use crate::terminal::figures::StatsFormat;
use clap::Args;
use std::path::PathBuf;

/// The help of --eol for a command that prints no lines.
const EOL_WITHOUT_OUTPUT: &str = "Lines end with LF or CR LF: the CR is no part of the key";

/// Options of `bloomline build`.
#[derive(Args)]
#[command(mut_arg("eol", |arg| arg.value_parser(only(&[Eol::Keep])).long_help(None).help(EOL_WITHOUT_OUTPUT)))]
pub struct BuildOptions {
    /// The filter's file. An existing file is replaced
    #[arg(short, long, value_name = "FILTER")]
    pub output: PathBuf,

    /// Add to the filter in the file.
    ///
    /// Its size, rate and seed stay the same.
    #[arg(long)]
    pub append: bool,

    /// Reaction to more lines than expected [default: grow].
    ///
    /// The file still has one filter, of the size that the lines need: files are read again, and the hashes of lines from a pipe
    /// are kept in a temporary file, with 8 bytes for each distinct line.
    #[arg(long, value_name = "WHAT")]
    pub when_full: Option<WhenFull>,

    /// Wait while another run writes to the filter
    #[arg(long)]
    pub wait: bool,

    /// Save the filter in its planned size.
    ///
    /// Without this option a filter with far fewer lines than expected is saved in the smallest size that keeps its rate, and has
    /// little room for --append and merge.
    #[arg(long)]
    pub no_shrink: bool,

    /// Print counts and the speed at the end.
    ///
    /// Counts, how full the filter is and the speed go to standard error, as text if no FORMAT is given.
    #[arg(long, value_name = "FORMAT", num_args = 0..=1, require_equals = true, default_missing_value = "text")]
    pub stats: Option<StatsFormat>,

    /// Print no progress bar and no warnings.
    ///
    /// Losses to a full filter are reported all the same.
    #[arg(short, long)]
    pub quiet: bool,

    #[command(flatten)]
    pub reading: ReadOptions,

    #[command(flatten)]
    pub key: KeyOptions,

    #[command(flatten)]
    pub size: SizeOptions,
}

/// Options of `bloomline check`.
#[derive(Args)]
pub struct CheckOptions {
    /// The filter's file, written by `build` or as a state
    #[arg(short, long, value_name = "FILTER")]
    #[arg(required_unless_present = "redis")]
    pub state: Option<PathBuf>,

    /// Select the lines that are not in the filter
    #[arg(short = 'v', long)]
    pub invert: bool,

    /// Measure the false-positive rate with SAMPLE keys, and read no lines.
    ///
    /// The keys are not in the filter. The rate is printed with its standard deviation, below the rate that is expected of the
    /// filter as it is.
    #[arg(long, value_name = "SAMPLE", value_parser = count, allow_negative_numbers = true)]
    pub verify: Option<u64>,

    #[command(flatten)]
    pub select: SelectOptions,

    #[command(flatten)]
    pub reading: ReadOptions,

    #[command(flatten)]
    pub key: KeyOptions,

    #[command(flatten)]
    pub shared: SharedOptions,
}

/// Options of `bloomline info`.
#[derive(Args)]
pub struct InfoOptions {
    /// The filter's file
    #[arg(value_name = "FILTER")]
    pub filter: PathBuf,

    /// Print one JSON object on one line
    #[arg(long)]
    pub json: bool,
}

/// Options of `bloomline merge`.
#[derive(Args)]
pub struct MergeOptions {
    /// The files of the filters to merge
    #[arg(value_name = "FILTER", required = true)]
    pub filters: Vec<PathBuf>,

    /// The file for the merged filter. It must not be an input
    #[arg(short, long, value_name = "FILTER")]
    pub output: PathBuf,

    /// Rate that the merged filter may have.
    ///
    /// A filter that grew keeps the rates of all its parts, so two of 1 % make one of nearly 2 %. If the result has a higher
    /// rate than this, nothing is written, and an error reports the rate.
    #[arg(short = 'p', long, value_name = "RATE", value_parser = rate, allow_negative_numbers = true)]
    pub fpr: Option<f64>,

    /// Wait while another run writes to the filter
    #[arg(long)]
    pub wait: bool,
}

/// Options of `bloomline plan`.
#[derive(Args)]
pub struct PlanOptions {
    /// Number of distinct keys to plan for, such as 5000000, 5M or 5e6.
    ///
    /// k, M, G and T are powers of 1000.
    #[arg(short = 'n', long, value_name = "KEYS", value_parser = count, allow_negative_numbers = true)]
    pub expected_keys: Option<u64>,

    /// False-positive rate once the expected keys are in
    #[arg(short = 'p', long, value_name = "RATE", value_parser = rate, allow_negative_numbers = true)]
    pub fpr: Option<f64>,

    /// Memory for the filter, such as 16M or 1.5GiB.
    ///
    /// It is a number of bytes, or a number with K, M, G or T (or KB, KiB and so on) for powers of 1024.
    #[arg(short, long, value_name = "SIZE", value_parser = size, allow_negative_numbers = true)]
    pub memory: Option<usize>,

    /// Bytes of text to plan for, such as 12T, for the grams that `corpus` compares.
    ///
    /// k, M, G and T are powers of 1000. A gram takes about 6 bytes of English. The output is the memory for all grams and for samples
    /// of them. With -m it ends with the smallest N of --sample that fits. -p is 0.01 unless it is given.
    #[arg(long, value_name = "BYTES", value_parser = count, allow_negative_numbers = true)]
    pub text: Option<u64>,

    /// Print a table of rates by bits per key and probes
    #[arg(long)]
    pub table: bool,

    /// Print one JSON value on one line
    #[arg(long)]
    pub json: bool,
}
