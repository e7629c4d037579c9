//! A filter on a server, which other processes use too.

use crate::error::Error;
use crate::figures::readable;
use bloomline::redis::{RedisBloomFilter, RedisFilterError, RedisFilterStats, RedisServer};
use bloomline::{BloomFilter, Builder, KeyHasher, Plan};
use clap::Args;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::sync::{Mutex, MutexGuard};

/// Which filter it is.
#[derive(Args)]
#[command(next_help_heading = "Shared filter")]
pub struct Sharing {
    /// The filter is on this Redis or Valkey server, or in the cluster of these nodes, shared with all processes that name it:
    /// redis://HOST:PORT, rediss://USER:PASSWORD@HOST:PORT for TLS, several separated by commas, or @FILE to read it from a file
    #[arg(long, value_name = "URL", requires = "name")]
    pub redis: Option<String>,

    /// The name of the filter on the server
    #[arg(long, value_name = "NAME", requires = "redis")]
    pub name: Option<String>,
}

impl Sharing {
    /// The server and the name, if both are given.
    pub fn filter(&self) -> Result<Option<(RedisServer, &str)>, Error> {
        let Some((url, name)) = self.redis.as_deref().zip(self.name.as_deref()) else { return Ok(None) };
        Ok(Some((server(url)?, name)))
    }
}

/// More about it, for those who write to it.
#[derive(Args)]
#[command(next_help_heading = "Shared filter")]
pub struct Writing {
    /// Remove the filter from the server first, after a question on the terminal: its keys are forgotten for all. End the other
    /// processes before
    #[arg(long, requires = "expected_keys")]
    pub reset: bool,

    /// Ask no question before --reset
    #[arg(long, requires = "reset")]
    pub yes: bool,

    /// Ask the server for every line. Without it, this process remembers the bits that it knows the server to have, and does
    /// not ask again for lines that it has seen; never where the filter has more than 1 GiB
    #[arg(long, requires = "redis")]
    pub no_mirror: bool,
}

/// A server by its URL, or by a file that has it: so that a password need not be on the command line. Not read by the parser
/// of the command line, whose errors repeat the text.
fn server(text: &str) -> Result<RedisServer, Error> {
    let read =
        |path: &str| fs::read_to_string(path).map_err(|source| Error::Open { input: format!("{path:?}"), source });
    let url = text.strip_prefix('@').map(read).transpose()?;
    Ok(RedisServer::new(url.as_deref().unwrap_or(text).trim())?)
}

/// The largest filter that is mirrored: it may come to take as much memory in each process.
const MIRRORED: usize = 1 << 30;

/// A filter on a server, and how full it was when last asked.
pub struct Shared {
    filter: Mutex<RedisBloomFilter>,
    hasher: KeyHasher,
    plan: Plan,
    /// The false-positive rate that it was made for, if that is known.
    planned: Option<f64>,
    stats: Option<RedisFilterStats>,
}

impl Shared {
    /// Opens a filter that is there.
    pub fn open(server: &RedisServer, name: &str) -> Result<Self, Error> {
        Ok(Self::new(RedisBloomFilter::open(server, name)?, None))
    }

    /// Opens or creates the filter of a command that writes to it.
    pub fn of_writer(
        (server, name): (&RedisServer, &str),
        options: &Writing,
        size: Option<(&Builder<BloomFilter>, f64)>,
        seed: u64,
    ) -> Result<Self, Error> {
        if let Some((size, _)) = size {
            // Before anything is removed for it.
            size.plan()?;
        }
        if options.reset {
            reset(server, name, options.yes)?;
        }
        let filter = match size {
            Some((size, _)) => RedisBloomFilter::create(server, name, size)?,
            None => match RedisBloomFilter::open(server, name) {
                Err(RedisFilterError::NotFound { name }) => return Err(Error::NoSharedFilter { name }),
                opened => opened?,
            },
        };
        if seed != 0 && seed != filter.seed() {
            let (name, theirs) = (filter.name().to_owned(), filter.seed());
            return Err(RedisFilterError::Differs { name, field: "seed", ours: seed, theirs }.into());
        }
        let mirrored = !options.no_mirror && filter.plan().memory_bytes() <= MIRRORED;
        Ok(Self::new(if mirrored { filter.with_mirror()? } else { filter }, size.map(|(_, rate)| rate)))
    }

    fn new(filter: RedisBloomFilter, planned: Option<f64>) -> Self {
        let (hasher, plan) = (filter.hasher().clone(), filter.plan());
        Self { filter: Mutex::new(filter), hasher, plan, planned, stats: None }
    }

    fn filter(&self) -> MutexGuard<'_, RedisBloomFilter> {
        self.filter.lock().expect("no thread panics while it asks the server")
    }

    /// Inserts hashes. After an error `new` still tells which are claimed.
    pub fn insert_hashes(&self, hashes: &[u64], new: &mut [bool]) -> Result<usize, Error> {
        Ok(self.filter().insert_hashes(hashes, new)?)
    }

    /// Looks hashes up.
    pub fn contains_hashes(&self, hashes: &[u64], found: &mut [bool]) -> Result<usize, Error> {
        Ok(self.filter().contains_hashes(hashes, found)?)
    }

    /// Asks the server how full the filter is: it counts all bits.
    pub fn refresh(&mut self) -> Result<&RedisFilterStats, Error> {
        let stats = self.filter().stats()?;
        Ok(self.stats.insert(stats))
    }

    /// What users should know at the end; `alive` if the server can be asked.
    pub fn warnings(&mut self, alive: bool) -> Vec<String> {
        let mut warnings = Vec::new();
        let uncertain = self.uncertain();
        if uncertain > 0 {
            warnings.push(format!(
                "up to {uncertain} lines may have been printed by another process too: the answers to them were lost"
            ));
        }
        if let Some(planned) = self.planned.filter(|_| alive) {
            // All lines are done: a server that is gone by now is no failure.
            let rate = self.refresh().map_or(0.0, |stats| stats.expected_fpr);
            if rate > planned {
                warnings.push(format!(
                    "the shared filter has more keys than it was planned for: its false-positive rate is {} and rises with every \
                     new line",
                    readable(rate)
                ));
            }
        }
        warnings
    }

    /// The hasher of the keys.
    pub fn hasher(&self) -> &KeyHasher {
        &self.hasher
    }

    /// The size, and the rates to expect.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// How full it was when last asked, if it was.
    pub fn stats(&self) -> Option<&RedisFilterStats> {
        self.stats.as_ref()
    }

    /// How many keys were reported as new that another process may have too.
    pub fn uncertain(&self) -> u64 {
        self.filter().uncertain()
    }
}

/// Removes a filter, if there is one.
fn reset(server: &RedisServer, name: &str, yes: bool) -> Result<(), Error> {
    let mut filter = match RedisBloomFilter::open(server, name) {
        Err(RedisFilterError::NotFound { .. }) => return Ok(()),
        opened => opened?,
    };
    if !yes {
        let keys = filter.stats()?.estimated_keys;
        confirm(&format!("Remove the filter {name:?} with about {keys:.0} keys from the server? [y/N] "))?;
    }
    Ok(filter.delete()?)
}

/// Asks on the terminal, since standard input may be the lines.
fn confirm(question: &str) -> Result<(), Error> {
    let ask = || {
        let terminal = File::options().read(true).write(true).open("/dev/tty")?;
        (&terminal).write_all(question.as_bytes())?;
        let mut answer = String::new();
        BufReader::new(terminal).read_line(&mut answer)?;
        Ok::<_, std::io::Error>(answer)
    };
    match ask() {
        Ok(answer) if matches!(answer.trim(), "y" | "Y" | "yes") => Ok(()),
        Ok(_) => Err(Error::NotReset),
        Err(source) => Err(Error::NoTerminal { source }),
    }
}
