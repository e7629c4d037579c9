//! The options of the commands that make a filter or use one on a server.

use crate::options::values::{count, duration, rate, seed, size};
use clap::{Args, ValueEnum};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Options of the commands that make a new filter.
#[derive(Args)]
#[command(next_help_heading = "Filter")]
pub struct SizeOptions {
    /// Distinct lines to plan for, such as 5M [default: estimated]
    ///
    /// It is a number such as 5000000, 5M or 5e6, where k, M, G and T are powers of 1000. By default it is
    /// estimated from samples of the files and from the lines so far. If the number is too low, the filter grows and keeps its rate, but a
    /// shared filter of a given number does not grow.
    #[arg(short = 'n', long, value_name = "KEYS", value_parser = count, allow_negative_numbers = true)]
    pub expected_keys: Option<u64>,

    /// False-positive rate once the expected lines are in [default: 1e-6]
    ///
    /// It is the chance that a new line is taken for one seen before. With --exact, where such a line costs only time, it is 1e-3.
    #[arg(short = 'p', long, value_name = "RATE", value_parser = rate, allow_negative_numbers = true)]
    pub fpr: Option<f64>,

    /// Seed of the hash [default: 0, or that of the existing filter]
    ///
    /// Another seed gives other false positives.
    #[arg(long, value_parser = seed, allow_negative_numbers = true)]
    pub seed: Option<u64>,

    /// The default rate of a command whose keys are not lines, or are verified.
    #[arg(skip)]
    pub default_fpr: Option<f64>,
}

impl SizeOptions {
    /// Returns the false-positive rate.
    pub fn fpr(&self) -> f64 {
        self.fpr.or(self.default_fpr).unwrap_or(1e-6)
    }

    /// Sets the default rate of a filter whose false positives are found: they cost less than the memory of a lower rate.
    pub fn verify(&mut self) {
        self.default_fpr = Some(1e-3);
    }

    /// Returns the seed of a new filter.
    pub fn seed(&self) -> u64 {
        self.seed.unwrap_or(0)
    }
}

/// The size of a filter in memory, and the reaction to a full one.
#[derive(Args)]
#[command(next_help_heading = "Filter")]
pub struct GrowthOptions {
    /// Memory for the filter, such as 16M or 1.5GiB, instead of -n.
    ///
    /// It is a number of bytes, or a number with K, M, G or T (or KB, KiB and so on) for powers of 1024. The rate is that of -p. A
    /// filter that is full takes more memory, unless --when-full says otherwise. A size that has no room for all keys of the files
    /// is refused, unless -p, --when-full stop or --when-full grow is given.
    #[arg(short, long, value_name = "SIZE", value_parser = size, allow_negative_numbers = true)]
    pub memory: Option<usize>,

    /// Reaction to a full filter, which has the rate of -p [default: grow]
    #[arg(long, value_name = "WHAT")]
    pub when_full: Option<WhenFull>,
}

/// The reaction to a full filter.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum WhenFull {
    /// Warn once and go on. The false-positive rate rises
    Warn,
    /// End with an error before the next line
    Stop,
    /// Add a larger filter. The rate stays, and the memory grows
    Grow,
}

/// The heading of the options of filters on servers.
const SHARED: &str = if cfg!(feature = "redis") { "Shared filter" } else { "Shared filter (not in this build)" };

/// The connection to a server.
#[derive(Args)]
#[command(next_help_heading = SHARED)]
pub struct ServerOptions {
    /// The Redis or Valkey server or cluster that has the filter.
    ///
    /// All processes that name the filter there share it. URL is redis://HOST:PORT, rediss://USER:PASSWORD@HOST:PORT for TLS,
    /// several of them separated by commas for the nodes of a cluster or for a primary with its replicas,
    /// redis+sentinel://HOST:PORT,HOST:PORT/NAME for the primary that Sentinels know by this name, or @FILE to read it from a file.
    #[arg(long, value_name = "URL")]
    pub redis: Option<String>,

    /// Trust only servers that an authority in this file certifies.
    ///
    /// It is for servers of rediss://. FILE has PEM certificates of authorities. By default they are the authorities that the
    /// system trusts.
    #[arg(long, value_name = "FILE")]
    pub redis_ca: Option<PathBuf>,

    /// Show the server the certificate in this file.
    ///
    /// It is for servers of rediss:// that accept only clients with a certificate, as they do by default. FILE has PEM
    /// certificates.
    #[arg(long, value_name = "FILE")]
    pub redis_cert: Option<PathBuf>,

    /// The key of --redis-cert, in a file
    #[arg(long, value_name = "FILE")]
    pub redis_key: Option<PathBuf>,
}

impl ServerOptions {
    /// Returns the files that are read to connect to the server.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        let url = self.redis.as_deref().and_then(|url| url.strip_prefix('@')).map(Path::new);
        let keys = [&self.redis_ca, &self.redis_cert, &self.redis_key].into_iter().flatten();
        url.into_iter().chain(keys.map(PathBuf::as_path))
    }
}

/// A filter on a server.
#[derive(Args)]
#[command(next_help_heading = SHARED)]
pub struct SharedOptions {
    #[command(flatten)]
    pub server: ServerOptions,

    /// Name of the filter on the server
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
}

/// Further options of a filter on a server, for the commands that write to it.
#[derive(Args)]
#[command(next_help_heading = SHARED)]
pub struct SharedWriteOptions {
    /// Forget a line this long after it was printed, such as 30d.
    ///
    /// It is printed again then, or up to a quarter of the time later. -n is the number of lines in this time.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub forget_after: Option<Duration>,

    /// Ask the server about every line.
    ///
    /// Without this option the process remembers which bits the server has, as long as that takes at most 1 GiB, and does not ask
    /// again about lines that it has seen.
    #[arg(long, hide = true)]
    pub no_mirror: bool,

    /// Print a line once this many replicas of its server have it.
    ///
    /// Give the number of all replicas that may take over: those that a line did not reach print it again. After a second the line
    /// is printed anyway. The user needs the right to WAIT.
    #[arg(long, value_name = "REPLICAS", default_value_t = 0, hide_default_value = true)]
    pub redis_wait: u32,
}
