//! Options of the commands that make a filter, or ask one on a server.

use crate::values::{count, rate, seed};
use clap::Args;
use std::path::PathBuf;

/// Options of the commands that make a new filter.
#[derive(Args)]
#[command(next_help_heading = "Filter")]
pub struct SizeOptions {
    /// Distinct lines to plan for, such as 5M [default: estimated]
    ///
    /// It is a number such as 5000000, 5M or 5e6, where k, M, G and T are powers of 1000. By default it is the number of lines in
    /// the files, estimated from samples. If the number is too low, the filter grows and keeps its rate.
    #[arg(short = 'n', long, value_name = "KEYS", value_parser = count, allow_negative_numbers = true)]
    pub expected_keys: Option<u64>,

    /// False-positive rate once the expected lines are in [default: 1e-6]
    ///
    /// It is the chance that a new line is taken for one seen before.
    #[arg(short = 'p', long, value_name = "RATE", value_parser = rate, allow_negative_numbers = true)]
    pub fpr: Option<f64>,

    /// Seed of the hash [default: 0, or that of the existing filter]
    ///
    /// Another seed gives other false positives.
    #[arg(long, value_parser = seed, allow_negative_numbers = true)]
    pub seed: Option<u64>,

    /// The rate where the user gives none, if it is another than that of lines.
    #[arg(skip)]
    pub default_fpr: Option<f64>,
}

impl SizeOptions {
    /// The false-positive rate.
    pub fn fpr(&self) -> f64 {
        self.fpr.or(self.default_fpr).unwrap_or(1e-6)
    }

    /// The seed of a new filter.
    pub fn seed(&self) -> u64 {
        self.seed.unwrap_or(0)
    }
}

/// Which filter on a server it is.
#[derive(Args)]
#[command(next_help_heading = "Shared filter")]
pub struct SharedOptions {
    /// Share the filter through this Redis or Valkey server or cluster.
    ///
    /// All processes that name the filter there share it. URL is redis://HOST:PORT, rediss://USER:PASSWORD@HOST:PORT for TLS,
    /// several of them separated by commas for the nodes of a cluster, or @FILE to read it from a file.
    #[arg(long, value_name = "URL", requires = "name")]
    pub redis: Option<String>,

    /// Name of the filter on the server
    #[arg(long, value_name = "NAME", requires = "redis")]
    pub name: Option<String>,

    /// Trust only servers that an authority in this file certifies.
    ///
    /// It is for servers of rediss://. FILE has PEM certificates of authorities. By default those count that the system trusts.
    #[arg(long, value_name = "FILE", requires = "redis")]
    pub redis_ca: Option<PathBuf>,
}

/// More about it, for those who write to it.
#[derive(Args)]
#[command(next_help_heading = "Shared filter")]
pub struct SharedWriteOptions {
    /// Remove the filter from the server first, after a question.
    ///
    /// The question is asked on the terminal. All processes lose the keys of the filter, so end the others before. They end by
    /// themselves within a second; lines that they take until then may be lost to the new filter.
    #[arg(long, requires = "expected_keys")]
    pub reset: bool,

    /// Do not ask before --reset
    #[arg(long, requires = "reset")]
    pub yes: bool,

    /// Ask the server about every line.
    ///
    /// Without this option the process remembers which bits the server has, unless the filter has more than 1 GiB, and does not ask
    /// again about lines that it has seen.
    #[arg(long, requires = "redis")]
    pub no_mirror: bool,

    /// Print a line once this many replicas of its server have it.
    ///
    /// After a second the line is printed anyway. A replica that takes over then knows the line, if there are no more replicas than
    /// these. The user needs the right to WAIT.
    #[arg(long, value_name = "REPLICAS", requires = "redis", default_value_t = 0, hide_default_value = true)]
    pub redis_wait: u32,
}
