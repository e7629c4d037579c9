//! The options.

use super::kinds::KINDS;
use bloomline_benches::{BITS_PER_KEY, ROUND_KEYS};
use clap::builder::PossibleValuesParser;
use clap::{Parser, value_parser};
use parse_size::Config;
use std::path::PathBuf;

/// The end of the help.
const EXAMPLES: &str = "\
All filters get the same memory and the same pre-hashed keys in the same order. They take turns in each round, and are called \
through their fastest public interface. Read each speed beside the false-positive rate that was measured with it. Filters of \
fingerprints come in steps of whole bits, and take the most that fits. A static filter is built once of all its keys. The notes \
name what is left out, and why.

Examples:
  compare
  compare --sizes 1M,64M --only words4,fastbloom
  compare --full --json > result.json
  compare --from result.json --html result.html --svg plots";

/// Measure filter layouts and other crates' filters beside each other.
#[derive(Parser)]
#[command(name = "compare", version, after_help = EXAMPLES)]
pub struct Options {
    /// Measure filters up to 64 MiB in three rounds, which takes some three minutes [default]
    #[arg(long, conflicts_with = "full")]
    pub quick: bool,

    /// Measure filters up to 1 GiB in seven rounds and rates down to 1e-5, which takes about half an hour and 16 GiB of memory
    #[arg(long)]
    pub full: bool,

    /// Sizes of the filters: bytes, or numbers with K, M, G or T (or KB, KiB and so on) for powers of 1024
    /// [default: 256K,4M,64M; full: 256K,16M,256M,1G]
    #[arg(long, value_name = "SIZES", value_delimiter = ',', value_parser = size)]
    pub sizes: Vec<usize>,

    /// Compare only these contenders, by their names in the tables [default: all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = PossibleValuesParser::new(KINDS.iter().map(|kind| kind.name)))]
    pub only: Vec<String>,

    /// Bits of memory for each key that a filter is filled with
    #[arg(long, value_name = "BITS", default_value_t = BITS_PER_KEY.into(), value_parser = bits)]
    pub bits_per_key: f64,

    /// The largest number of threads [default: the available cores]
    #[arg(short = 'j', long, value_name = "THREADS", value_parser = value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,

    /// Print one JSON object on one line
    #[arg(long)]
    pub json: bool,

    /// Write an HTML page with tables and plots to FILE
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,

    /// Write the plots to FOLDER as SVG files on a light background
    #[arg(long, value_name = "FOLDER")]
    pub svg: Option<PathBuf>,

    /// Show an earlier result, the output of --json, instead of measuring
    #[arg(long, value_name = "FILE", conflicts_with_all = ["quick", "full", "sizes", "only", "bits_per_key", "threads"])]
    pub from: Option<PathBuf>,

    /// Rounds
    #[arg(long, value_name = "ROUNDS", hide = true, value_parser = value_parser!(u32).range(1..=1000))]
    pub rounds: Option<u32>,

    /// Distinct keys in a round
    #[arg(long, value_name = "KEYS", hide = true, default_value_t = ROUND_KEYS as u32, value_parser = value_parser!(u32).range(1 << 10..=1 << 30))]
    pub probes: u32,
}

fn bits(text: &str) -> Result<f64, String> {
    let bits = text.parse().map_err(|_| "not a number".to_owned())?;
    if (1.0..=256.0).contains(&bits) { Ok(bits) } else { Err("not from 1 to 256".to_owned()) }
}

/// A size from one block of a filter to what a process can address.
fn size(text: &str) -> Result<usize, String> {
    let bytes = Config::new().with_binary().parse_size(text).map_err(|error| error.to_string())?;
    let bytes = usize::try_from(bytes).ok().filter(|bytes| (64..=isize::MAX as usize).contains(bytes));
    bytes.ok_or_else(|| format!("not from 64 to {} bytes", isize::MAX))
}
