//! `RedisBloomFilter`, and what it has in common with its asynchronous sister.

use super::blocking::Connections;
use super::error::RedisFilterError;
use super::jobs::{Claims, Commands, Download, PIECE, Queries, Upload};
use super::meta;
use super::server::RedisServer;
use super::shards::{Key, Shards, check_name, check_size};
use crate::atomic_filter::AtomicBloomFilter;
use crate::batch;
use crate::block::BLOCK_BYTES;
use crate::error::BuildError;
use crate::fpr;
use crate::hash::KeyHasher;
use crate::params::{Builder, FromParams, Params};
use crate::plan::Plan;
use crate::words4::BloomFilter;
use redis::{Value, cmd};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Hashes that go to the servers together. Each is some 300 bytes on the way, and the servers keep the answers until
/// they are fetched.
pub(super) const PORTION: usize = 4096;

/// A [`BloomFilter`] on a Redis or Valkey server, or spread over a cluster, that any number of clients share.
///
/// It needs no module: any server from version 6 on will do. Equal keys, rate and seed give the same bits as a local filter's,
/// byte for byte: [`download`](Self::download) and [`upload`](Self::upload) copy between the two.
///
/// # One claim for each key
/// A key's bits are all in one block, so a single `BITFIELD` command sets them at once and answers what they were. The key is
/// new if one of them was 0: of all clients that insert it, one is told so. A key that no client inserted is found, or not
/// new, at the false-positive rate.
///
/// # Answers that are lost
/// Where a connection breaks or an answer takes too long, the command may have been carried out or not. It is sent
/// again, and if the bits turn out to be set, nobody can tell whose claim it was. The key is then reported as new, and
/// counted in [`uncertain`](Self::uncertain): it may be visited twice, but is never lost. That is also why calls that fail tell
/// what they may have claimed: after an error, act on the keys that are marked new, and ask again for the whole batch.
///
/// Two things can still lose a claim or repeat one, and the count does not tell: a client that dies after its claim, before it acted
/// on it; and a server that forgets what it acknowledged, as a replica may that takes over. docs/GUIDE.md says what to do.
///
/// # Examples
/// ```no_run
/// use bloomline::BloomFilter;
/// use bloomline::redis::{RedisBloomFilter, RedisServer};
///
/// let server = RedisServer::new("redis://127.0.0.1:6379")?;
/// let size = BloomFilter::builder().expected_keys(100_000_000).false_positive_rate(0.001);
/// let mut seen = RedisBloomFilter::create(&server, "crawl", &size)?;
///
/// let urls = ["https://example.org/", "https://example.com/", "https://example.org/"];
/// let mut new = [false; 3];
/// seen.insert_batch(&urls, &mut new)?;
/// assert_eq!(new, [true, true, false]);
/// # Ok::<(), bloomline::redis::RedisFilterError>(())
/// ```
pub struct RedisBloomFilter {
    core: Core,
    servers: Connections,
}

/// What a filter is, apart from its connections.
pub(super) struct Core {
    pub(super) shards: Shards,
    pub(super) hasher: KeyHasher,
    pub(super) mirror: Option<Arc<AtomicBloomFilter>>,
    pub(super) uncertain: u64,
    /// Of each shard whether this client, or one that shares its connections or mirror, has seen to its length.
    pub(super) grown: Arc<[AtomicBool]>,
}

impl Core {
    fn new(name: &str, params: Params) -> Self {
        let (hasher, shards) = (KeyHasher::new(params.seed), Shards::new(name, params));
        let grown = shards.keys().iter().map(|_| AtomicBool::new(false)).collect();
        Self { grown, shards, hasher, mirror: None, uncertain: 0 }
    }

    /// The same filter, for another client.
    pub(super) fn another(&self) -> Self {
        let Self { shards, hasher, mirror, .. } = self;
        Self {
            shards: shards.clone(),
            hasher: hasher.clone(),
            mirror: mirror.clone(),
            uncertain: 0,
            grown: self.grown.clone(),
        }
    }

    pub(super) fn plan(&self) -> Plan {
        let Params { blocks, probes, .. } = *self.shards.params();
        Plan { blocks, probes }
    }

    pub(super) fn with_mirror(&mut self) -> Result<(), BuildError> {
        self.mirror = Some(Arc::new(AtomicBloomFilter::from_params(*self.shards.params())?));
        Ok(())
    }

    pub(super) fn fmt(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Params { blocks, probes, seed, .. } = self.shards.params();
        f.debug_struct(name)
            .field("name", &self.shards.name())
            .field("block_count", blocks)
            .field("probes", probes)
            .field("seed", seed)
            .field("mirror", &self.mirror.is_some())
            .field("uncertain", &self.uncertain)
            .finish_non_exhaustive()
    }
}

/// The line that tells what a filter is, written if there is none and wanted, and read.
pub(super) fn meta_job(name: &str, create: Option<&Params>) -> Result<(Key, Commands), RedisFilterError> {
    check_name(name)?;
    let key = Key::meta(name);
    let mut get = cmd("GET");
    get.arg(&key.name);
    let set = create.map(|params| {
        let mut set = cmd("SET");
        set.arg(&key.name).arg(meta::encode(params)).arg("NX");
        (key.slot, set)
    });
    let commands = Commands::new(set.into_iter().chain([(key.slot, get)]));
    Ok((key, commands))
}

/// The filter that the line tells of.
pub(super) fn meta_core(
    name: &str,
    key: &Key,
    commands: &Commands,
    wanted: Option<&Params>,
) -> Result<Core, RedisFilterError> {
    let params = match commands.answers.last() {
        Some(Value::BulkString(line)) => meta::decode(name, &key.name, line)?,
        _ => return Err(RedisFilterError::NotFound { name: name.to_owned() }),
    };
    if let Some(wanted) = wanted {
        meta::check_same(name, wanted, &params)?;
    }
    Ok(Core::new(name, params))
}

/// How full a filter on a server is.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct RedisFilterStats {
    /// The share of bits that are set, 0 to 1.
    pub fill_ratio: f64,
    /// The number of distinct keys that were inserted, estimated from it; infinite if all bits are set.
    pub estimated_keys: f64,
    /// The false-positive rate to expect with as many keys.
    pub expected_fpr: f64,
    /// The bytes that the servers hold so far: those of the shards that have keys.
    pub stored_bytes: u64,
}

impl RedisFilterStats {
    /// From the number of bits set and of bytes stored in each shard.
    pub(super) fn new(plan: Plan, figures: &[u64]) -> Self {
        let (ones, bytes) = figures.chunks(2).fold((0, 0), |(ones, bytes), pair| (ones + pair[0], bytes + pair[1]));
        let fill_ratio = ones as f64 / (plan.memory_bytes() as f64 * 8.0);
        let estimated_keys = fpr::keys_from_zeros(fill_ratio, fpr::touched(plan.block_count() as u64, plan.probes()));
        let expected_fpr = if estimated_keys.is_finite() { plan.expected_fpr(estimated_keys as u64) } else { 1.0 };
        Self { fill_ratio, estimated_keys, expected_fpr, stored_bytes: bytes }
    }
}

/// For all shards: how many bits are set, and how many bytes there are.
pub(super) fn stats_job(shards: &Shards) -> Commands {
    Commands::new(shards.keys().iter().flat_map(|key| {
        ["BITCOUNT", "STRLEN"].map(|name| {
            let mut command = cmd(name);
            command.arg(&key.name);
            (key.slot, command)
        })
    }))
}

/// For a node that answers what makes no sense.
pub(super) fn refused(key: &Key, message: &str) -> RedisFilterError {
    RedisFilterError::Refused { node: format!("the server of {}", key.name), message: message.to_owned() }
}

/// A command about one key.
pub(super) fn about(name: &str, key: &Key) -> (u16, redis::Cmd) {
    let mut command = cmd(name);
    command.arg(&key.name);
    (key.slot, command)
}

/// The methods of a filter of which only the connections differ: `$async` is `async` or nothing, `$await` is `.await` or
/// nothing.
macro_rules! shared_methods {
    ($filter:ident, $connections:ident, [$($async:tt)?], [$($await:tt)*]) => {
        impl $filter {
            /// Creates a filter, or opens the one that is there if it is the same: any number of clients may do so at once.
            ///
            /// Nothing is allocated yet: each shard, of 16 MiB at most, is when the first key comes into it.
            ///
            /// # Errors
            /// [`RedisFilterError`]: a size that cannot be, a name that cannot be, a server that cannot be reached or
            /// denies access, and [`Differs`](RedisFilterError::Differs) if the name is taken by another filter.
            pub $($async)? fn create(
                server: &RedisServer,
                name: &str,
                size: &Builder<BloomFilter>,
            ) -> Result<Self, RedisFilterError> {
                let params = size.params()?;
                check_size(&params)?;
                let (key, mut job) = meta_job(name, Some(&params))?;
                let mut servers = $connections::new(server)$($await)*?;
                servers.run(&mut job)$($await)*?;
                Ok(Self { core: meta_core(name, &key, &job, Some(&params))?, servers })
            }

            /// Opens the filter of this name as it is.
            ///
            /// # Errors
            /// [`RedisFilterError`]: [`NotFound`](RedisFilterError::NotFound), and all of [`create`](Self::create) but those of
            /// a size.
            pub $($async)? fn open(server: &RedisServer, name: &str) -> Result<Self, RedisFilterError> {
                let (key, mut job) = meta_job(name, None)?;
                let mut servers = $connections::new(server)$($await)*?;
                servers.run(&mut job)$($await)*?;
                Ok(Self { core: meta_core(name, &key, &job, None)?, servers })
            }

            /// Keeps a filter of the same size in this process, with the bits that it knows the servers to have: a key that
            /// it has is seen, without asking. Bits are never cleared, so it is right whenever it says so, as long as nobody
            /// [deletes](Self::delete) the filter. It takes memory as bits come in, up to the size of the filter. Clones share it.
            ///
            /// # Errors
            /// [`BuildError::OutOfMemory`].
            pub fn with_mirror(mut self) -> Result<Self, BuildError> {
                self.core.with_mirror()?;
                Ok(self)
            }

            /// The name on the server.
            pub fn name(&self) -> &str {
                self.core.shards.name()
            }

            /// Its size, and the rates to expect.
            pub fn plan(&self) -> Plan {
                self.core.plan()
            }

            /// The seed of the hash.
            pub fn seed(&self) -> u64 {
                self.core.hasher.seed()
            }

            /// The hasher in use.
            pub fn hasher(&self) -> &KeyHasher {
                &self.core.hasher
            }

            /// How many keys this client was told to be new although another one may have been told so too: their answers were
            /// lost. See "Answers that are lost".
            pub fn uncertain(&self) -> u64 {
                self.core.uncertain
            }

            /// Inserts a key; whether this call claimed it: `true` for one of all clients. One round trip, and one more for a
            /// client's first key in a shard. `true` too if it may have claimed it and no answer came.
            ///
            /// # Errors
            /// [`RedisFilterError`]; the key is not inserted then.
            pub $($async)? fn insert<K: crate::Key + ?Sized>(&mut self, key: &K) -> Result<bool, RedisFilterError> {
                let mut new = [false];
                let result = self.insert_hashes(&[key.hash(&self.core.hasher)], &mut new)$($await)*;
                if new[0] {
                    // The next call meets the error again, if it lasts.
                    return Ok(true);
                }
                result.map(|_| false)
            }

            /// Whether a key may have been inserted. One round trip.
            ///
            /// # Errors
            /// [`RedisFilterError`].
            pub $($async)? fn contains<K: crate::Key + ?Sized>(&mut self, key: &K) -> Result<bool, RedisFilterError> {
                let mut found = [false];
                self.contains_hashes(&[key.hash(&self.core.hasher)], &mut found)$($await)*?;
                Ok(found[0])
            }

            /// Inserts many keys: `new[i]` tells whether this call claimed `keys[i]`, which of several equal keys among 4096
            /// only the first can be. Returns how many were claimed. One command a key; one round trip for each 4096 keys, and
            /// one more for each 16 shards that this client comes into for the first time.
            ///
            /// # Errors
            /// [`RedisFilterError`]. Even then `new` tells which keys this call has claimed or may have claimed: act on these,
            /// as nobody else will, and insert the whole batch again for the rest.
            ///
            /// # Panics
            /// If `new` is not as long as `keys`.
            pub $($async)? fn insert_batch<K: crate::Key>(
                &mut self,
                keys: &[K],
                new: &mut [bool],
            ) -> Result<usize, RedisFilterError> {
                batch::check_lengths(keys.len(), new.len());
                let hashes: Vec<u64> = keys.iter().map(|key| key.hash(&self.core.hasher)).collect();
                self.insert_hashes(&hashes, new)$($await)*
            }

            /// Queries many keys: `found[i]` is what [`contains`](Self::contains) says of `keys[i]`. Returns how many were found.
            ///
            /// # Errors
            /// [`RedisFilterError`]; `found` is of no use then.
            ///
            /// # Panics
            /// If `found` is not as long as `keys`.
            pub $($async)? fn contains_batch<K: crate::Key>(
                &mut self,
                keys: &[K],
                found: &mut [bool],
            ) -> Result<usize, RedisFilterError> {
                batch::check_lengths(keys.len(), found.len());
                let hashes: Vec<u64> = keys.iter().map(|key| key.hash(&self.core.hasher)).collect();
                self.contains_hashes(&hashes, found)$($await)*
            }

            /// [`insert_batch`](Self::insert_batch) of keys that were hashed elsewhere; see [`BloomFilter::insert_hash`].
            ///
            /// # Errors
            /// As of `insert_batch`.
            ///
            /// # Panics
            /// If `new` is not as long as `hashes`.
            pub $($async)? fn insert_hashes(
                &mut self,
                hashes: &[u64],
                new: &mut [bool],
            ) -> Result<usize, RedisFilterError> {
                batch::check_lengths(hashes.len(), new.len());
                // What is not asked for after an error is not claimed.
                new.fill(false);
                for (hashes, new) in hashes.chunks(PORTION).zip(new.chunks_mut(PORTION)) {
                    let Core { shards, mirror, uncertain, grown, .. } = &mut self.core;
                    let mut job = Claims::new(shards, mirror.as_deref(), hashes, new);
                    for mut growth in job.growth(grown) {
                        self.servers.run(&mut growth)$($await)*?;
                    }
                    let result = self.servers.run(&mut job)$($await)*;
                    *uncertain += job.uncertain;
                    result?;
                }
                Ok(new.iter().filter(|new| **new).count())
            }

            /// [`contains_batch`](Self::contains_batch) of keys that were hashed elsewhere; see [`BloomFilter::insert_hash`].
            ///
            /// # Errors
            /// As of `contains_batch`.
            ///
            /// # Panics
            /// If `found` is not as long as `hashes`.
            pub $($async)? fn contains_hashes(
                &mut self,
                hashes: &[u64],
                found: &mut [bool],
            ) -> Result<usize, RedisFilterError> {
                batch::check_lengths(hashes.len(), found.len());
                let Core { shards, mirror, .. } = &self.core;
                for (hashes, found) in hashes.chunks(PORTION).zip(found.chunks_mut(PORTION)) {
                    let mut job = Queries::new(shards, mirror.as_deref(), hashes, found);
                    self.servers.run(&mut job)$($await)*?;
                }
                Ok(found.iter().filter(|found| **found).count())
            }

            /// How full it is. The servers count all their bits: some milliseconds for each shard of 16 MiB.
            ///
            /// # Errors
            /// [`RedisFilterError`].
            pub $($async)? fn stats(&mut self) -> Result<RedisFilterStats, RedisFilterError> {
                let mut job = stats_job(&self.core.shards);
                self.servers.run(&mut job)$($await)*?;
                let figures = job.integers();
                let figures = figures.ok_or_else(|| refused(&self.core.shards.keys()[0], "it cannot count bits"))?;
                Ok(RedisFilterStats::new(self.plan(), &figures))
            }

            /// A local filter with the same bits. Others may insert meanwhile: what was inserted before the call is in. A round trip
            /// for each mebibyte.
            ///
            /// # Errors
            /// [`RedisFilterError`], and [`BuildError::OutOfMemory`] within it.
            pub $($async)? fn download(&mut self) -> Result<BloomFilter, RedisFilterError> {
                let Core { shards, .. } = &self.core;
                let mut filter = BloomFilter::from_params(*shards.params())?;
                for (shard, key) in shards.keys().iter().enumerate() {
                    let blocks = &mut filter.blocks.as_mut_slice()[shards.blocks(shard)];
                    for (i, blocks) in blocks.chunks_mut(PIECE).enumerate() {
                        let offset = i * PIECE * BLOCK_BYTES;
                        self.servers.run(&mut Download { key, offset, blocks })$($await)*?;
                    }
                }
                Ok(filter)
            }

            /// Adds the keys of a local filter, while others insert. Shard by shard: a copy is put beside it, a mebibyte at a
            /// time, and merged into it at once, which keeps a server busy for some milliseconds and takes it up to 48 MiB more
            /// memory. A copy that is left over after an error is gone in ten minutes.
            ///
            /// # Errors
            /// [`RedisFilterError`]: [`Merge`](RedisFilterError::Merge) if the filters differ in size, probes or seed;
            /// nothing is changed then. After another error some keys are in and others are not.
            pub $($async)? fn upload(&mut self, filter: &BloomFilter) -> Result<(), RedisFilterError> {
                let Core { shards, .. } = &self.core;
                shards.params().check_same(&filter.params)?;
                let unique = unique();
                for (shard, key) in shards.keys().iter().enumerate() {
                    let blocks = &filter.blocks.as_slice()[shards.blocks(shard)];
                    let ones: u64 = blocks.iter().flat_map(|block| block.0).map(|word| u64::from(word.count_ones())).sum();
                    if ones == 0 {
                        continue;
                    }
                    let copy = shards.temporary(shard, unique);
                    let (slot, mut expire) = about("EXPIRE", &copy);
                    expire.arg(COPY_LIFE);
                    for (i, blocks) in blocks.chunks(PIECE).enumerate() {
                        let offset = i * PIECE * BLOCK_BYTES;
                        self.servers.run(&mut Upload { key: &copy, offset, blocks })$($await)*?;
                        // Each time: a copy that is begun anew, since the first was lost, must go too.
                        self.servers.run(&mut Commands::new([(slot, expire.clone())]))$($await)*?;
                    }
                    let mut job = Commands::new([about("BITCOUNT", &copy)]);
                    self.servers.run(&mut job)$($await)*?;
                    if job.integers().is_none_or(|counts| counts != [ones]) {
                        return Err(refused(key, "the copy to merge lost a part; upload again"));
                    }
                    let mut merge = cmd("BITOP");
                    merge.arg("OR").arg(&key.name).arg(&key.name).arg(&copy.name);
                    self.servers.run(&mut Commands::new([(slot, merge)]))$($await)*?;
                    self.servers.run(&mut Commands::new([about("UNLINK", &copy)]))$($await)*?;
                }
                Ok(())
            }

            /// Removes the filter from the servers. End all other clients first: they would go on to insert into what is gone, and their
            /// mirrors would know keys that nobody else does.
            ///
            /// # Errors
            /// [`RedisFilterError`]; the filter can be opened again and deleted then.
            pub $($async)? fn delete(mut self) -> Result<(), RedisFilterError> {
                let Core { shards, .. } = &self.core;
                let mut job = Commands::new(shards.keys().iter().map(|key| about("UNLINK", key)));
                self.servers.run(&mut job)$($await)*?;
                // Last, so that a filter that is gone in part can be opened and deleted.
                let mut job = Commands::new([about("UNLINK", &Key::meta(shards.name()))]);
                self.servers.run(&mut job)$($await)*
            }
        }

        impl fmt::Debug for $filter {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.core.fmt(stringify!($filter), f)
            }
        }
    };
}

/// How long the copy of a shard that is uploaded lives, in seconds, if its client dies.
pub(super) const COPY_LIFE: u64 = 600;

/// A number that no other client has.
pub(super) fn unique() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(0u64)
}

shared_methods!(RedisBloomFilter, Connections, [], []);

impl RedisBloomFilter {
    /// The same filter for another thread, with connections of its own; it shares the mirror, and counts what is uncertain
    /// anew. Connects when it is used.
    pub fn another(&self) -> Self {
        Self { core: self.core.another(), servers: self.servers.another() }
    }
}

#[cfg(feature = "redis-tokio")]
pub(super) use shared_methods;
