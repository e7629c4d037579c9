//! A filter on a server, which other processes use too.

use crate::error::Error;
use bloomline::redis::{RedisBloomFilter, RedisFilterError, RedisFilterStats, RedisServer};
use bloomline::{BloomFilter, Builder, KeyHasher, Plan};
use clap::Args;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::sync::{Mutex, MutexGuard};

/// Which filter it is.
#[derive(Args)]
#[command(next_help_heading = "Shared set")]
pub struct Sharing {
    /// The set is on this Redis or Valkey server, or in the cluster of these nodes, shared with all processes that name it:
    /// redis://HOST:PORT, rediss://USER:PASSWORD@HOST:PORT for TLS, several separated by commas, or @FILE to read it from a file
    #[arg(long, value_name = "URL", requires = "name", value_parser = server)]
    pub redis: Option<RedisServer>,

    /// The name of the set on the server
    #[arg(long, value_name = "NAME", requires = "redis")]
    pub name: Option<String>,
}

impl Sharing {
    /// The server and the name, if both are given.
    pub fn set(&self) -> Option<(&RedisServer, &str)> {
        self.redis.as_ref().zip(self.name.as_deref())
    }
}

/// More about it, for those who write to it.
#[derive(Args)]
#[command(next_help_heading = "Shared set")]
pub struct Writing {
    /// Remove the set from the server first, after a question on the terminal: its keys are forgotten for all
    #[arg(long, requires = "redis")]
    pub reset: bool,

    /// Ask no question before --reset
    #[arg(long, requires = "reset")]
    pub yes: bool,

    /// Ask the server for every line. Without it, this process remembers the bits that it knows the server to have, in as
    /// much memory as the filter has at the most, and does not ask again for lines that it has seen
    #[arg(long, requires = "redis")]
    pub no_mirror: bool,
}

/// A server by its URL, or by a file that has it: so that a password need not be on the command line.
fn server(text: &str) -> Result<RedisServer, String> {
    let read = |path| fs::read_to_string(path).map_err(|error| format!("cannot read {path:?}: {error}"));
    let url = text.strip_prefix('@').map(read).transpose()?;
    RedisServer::new(url.as_deref().unwrap_or(text).trim()).map_err(|error| error.to_string())
}

/// A filter on a server, and how full it was when last asked.
pub struct Shared {
    filter: Mutex<RedisBloomFilter>,
    hasher: KeyHasher,
    plan: Plan,
    stats: RedisFilterStats,
}

impl Shared {
    /// Opens a filter that is there.
    pub fn open(server: &RedisServer, name: &str) -> Result<Self, Error> {
        Self::new(RedisBloomFilter::open(server, name)?)
    }

    /// Opens or creates the filter of a command that writes to it.
    pub fn of_writer(
        (server, name): (&RedisServer, &str),
        options: &Writing,
        size: Option<&Builder<BloomFilter>>,
        seed: u64,
    ) -> Result<Self, Error> {
        if options.reset {
            reset(server, name, options.yes)?;
        }
        let filter = match size {
            Some(size) => RedisBloomFilter::create(server, name, size)?,
            None => match RedisBloomFilter::open(server, name) {
                Err(RedisFilterError::NotFound { name }) => return Err(Error::NoSharedSet { name }),
                opened => opened?,
            },
        };
        if seed != 0 && seed != filter.seed() {
            let (name, theirs) = (filter.name().to_owned(), filter.seed());
            return Err(RedisFilterError::Differs { name, field: "seed", ours: seed, theirs }.into());
        }
        Self::new(if options.no_mirror { filter } else { filter.with_mirror()? })
    }

    fn new(mut filter: RedisBloomFilter) -> Result<Self, Error> {
        let (hasher, plan, stats) = (filter.hasher().clone(), filter.plan(), filter.stats()?);
        Ok(Self { filter: Mutex::new(filter), hasher, plan, stats })
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

    /// Asks the server how full the filter is.
    pub fn refresh(&mut self) -> Result<(), Error> {
        let stats = self.filter().stats()?;
        self.stats = stats;
        Ok(())
    }

    /// The hasher of the keys.
    pub fn hasher(&self) -> &KeyHasher {
        &self.hasher
    }

    /// The size, and the rates to expect.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// How full it was when last asked.
    pub fn stats(&self) -> &RedisFilterStats {
        &self.stats
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
        confirm(&format!("Remove the set {name:?} with about {keys:.0} keys from the server? [y/N] "))?;
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
