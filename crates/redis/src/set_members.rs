//! `SetMembers`: a set of Redis, read a portion at a time, to add its members to a filter.

use crate::blocking::{BlockingTransport, block_on};
use crate::error::RedisFilterError;
use crate::jobs::Commands;
use crate::nodes::Nodes;
use crate::scan::parse_scan;
use crate::server::RedisServer;
use crate::shards::{Key, key_slot};
use redis::Value;

/// The number of members that a server is asked for at once. It may answer with more.
const SSCAN_COUNT: usize = 4096;

/// The members of a set on a Redis or Valkey server or cluster, some thousands at a time.
///
/// An iterator over portions. Every member that is in the set all the time is in one of them, and may be in several. The order is the
/// server's. The user needs the rights to `SSCAN` and `SCARD`.
///
/// If another server takes over meanwhile, members may be missing: the portions then have fewer than
/// [`cardinality`](Self::cardinality).
///
/// # Examples
/// ```no_run
/// use bloomline_redis::{RedisBloomFilter, RedisServer, SetMembers};
///
/// let server = RedisServer::new("redis://127.0.0.1:6379")?;
/// let mut seen = RedisBloomFilter::open(&server, "crawl")?;
/// for members in SetMembers::new(&server, "visited")? {
///     let members = members?;
///     seen.insert_batch(&members, &mut vec![false; members.len()])?;
/// }
/// # Ok::<(), bloomline_redis::RedisFilterError>(())
/// ```
pub struct SetMembers {
    nodes: Nodes<BlockingTransport>,
    key: Key,
    /// The cursor of the next portion; `None` after the last one.
    cursor: Option<String>,
}

impl SetMembers {
    /// Connects to the server that has the set `key`. A set that does not exist has no members.
    ///
    /// # Errors
    /// [`RedisFilterError`]: the server cannot be reached or denies access.
    pub fn new(server: &RedisServer, key: &str) -> Result<Self, RedisFilterError> {
        let nodes = block_on(Nodes::connect(server))?;
        Ok(Self { nodes, key: Key { name: key.to_owned(), slot: key_slot(key) }, cursor: Some("0".to_owned()) })
    }

    /// Returns the number of members at the moment. Takes a round trip.
    ///
    /// # Errors
    /// [`RedisFilterError`]: among others [`Refused`](RedisFilterError::Refused) if the key has a value of another type.
    pub fn cardinality(&mut self) -> Result<u64, RedisFilterError> {
        match self.ask("SCARD", &[])? {
            Value::Int(count) => Ok(count.unsigned_abs()),
            _ => Err(self.key.refused("its answer to SCARD makes no sense")),
        }
    }

    fn ask(&mut self, command: &str, arguments: &[&str]) -> Result<Value, RedisFilterError> {
        let mut job = Commands::new([(self.key.slot, self.key.command(command).arg(arguments).take())]);
        match block_on(self.nodes.run(&mut job)) {
            // The server's answer where a key has a value of another type.
            Err(RedisFilterError::NotBloomline { .. }) => Err(self.key.refused("the key does not hold a set")),
            result => result.map(|_| job.answers.remove(0)),
        }
    }

    fn next_members(&mut self, cursor: &str) -> Result<Vec<Vec<u8>>, RedisFilterError> {
        let answer = self.ask("SSCAN", &[cursor, "COUNT", &SSCAN_COUNT.to_string()])?;
        let (next, members) =
            parse_scan(answer).ok_or_else(|| self.key.refused("its answer to SSCAN makes no sense"))?;
        self.cursor = Some(next).filter(|next| next != "0");
        Ok(members)
    }
}

impl Iterator for SetMembers {
    type Item = Result<Vec<Vec<u8>>, RedisFilterError>;

    fn next(&mut self) -> Option<Self::Item> {
        // After an error there is no more.
        let cursor = self.cursor.take()?;
        Some(self.next_members(&cursor))
    }
}
