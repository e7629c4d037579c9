//! The public types: `RedisBloomFilter`, which blocks the thread, and `AsyncRedisBloomFilter`, which is awaited.

use crate::blocking::{BlockingTransport, block_on};
use crate::error::RedisFilterError;
use crate::kinds::Stages;
use crate::meta::FilterMeta;
use crate::metrics::RedisFilterMetrics;
use crate::remote_filter::RemoteFilter;
use crate::scan::{self, RedisServerStats};
use crate::server::RedisServer;
use crate::stats::RedisFilterStats;
#[cfg(feature = "tokio")]
use crate::tokio::TokioTransport;
use bloomline::{BloomFilter, BuildError, Builder, Key, KeyHasher, Plan};
use std::fmt;

/// A [`BloomFilter`] on a Redis or Valkey server, or spread over a cluster, that any number of clients share.
///
/// It needs no module on the server: version 6 and later will do. A filter of the same keys, rate and seed has the same
/// bits as a local filter, byte for byte. [`download`](Self::download) and [`upload`](Self::upload) copy between the
/// two.
///
/// # One claim for each key
/// All bits of a key are in one block, so a single `BITFIELD` command sets them together and returns their earlier
/// values. The key is new if one of them was 0. Of all clients that insert a key, exactly one gets the answer "new". A
/// key that no client inserted is reported as present, or as not new, at the false-positive rate.
///
/// # Answers that are lost
/// If a connection breaks or an answer takes too long, the command may have been carried out. It is sent again, and if
/// the bits are set by then, the first attempt or another client may have set them. The key is then reported as new and
/// counted in [`uncertain`](Self::uncertain): two clients may visit it, but it is never lost. For the same reason a
/// call that fails reports which keys it may have claimed. After an error, act on the keys that are marked new, and
/// insert the whole batch again.
///
/// Two events can still lose a claim or repeat one, and are not counted. A client may die after its claim and before it
/// acts on it. A server may lose acknowledged claims, for example when a replica takes over: see
/// [`wait_for_replicas`](RedisServer::wait_for_replicas). docs/SERVER.md has the remedies.
///
/// # Examples
/// ```no_run
/// use bloomline::BloomFilter;
/// use bloomline_redis::{RedisBloomFilter, RedisServer};
///
/// let server = RedisServer::new("redis://127.0.0.1:6379")?;
/// let size = BloomFilter::builder().expected_keys(100_000_000).false_positive_rate(0.001);
/// let mut seen = RedisBloomFilter::create(&server, "crawl", &size)?;
///
/// let urls = ["https://example.org/", "https://example.com/", "https://example.org/"];
/// let mut new = [false; 3];
/// seen.insert_batch(&urls, &mut new)?;
/// assert_eq!(new, [true, true, false]);
/// # Ok::<(), bloomline_redis::RedisFilterError>(())
/// ```
pub struct RedisBloomFilter(RemoteFilter<BlockingTransport>);

/// [`RedisBloomFilter`] for programs on tokio: the same methods, to be awaited. Its clones share connections.
///
/// If a call is dropped before it ends, by a time-out or in `select!`, its claims are not reported. They count as
/// [`uncertain`](Self::uncertain), and this client reports these keys as new when it inserts them again. Without that
/// they are lost, so let calls end: the time-outs of [`RedisServer`] end them. Connections belong to the runtime that
/// opened them, so open the filter again in another runtime. The response time-out of [`RedisServer`] is for all
/// answers to a batch of 4096 keys together.
///
/// # Panics
/// All methods that are awaited panic outside of a tokio runtime with I/O and time enabled.
///
/// # Examples
/// ```no_run
/// # async fn example() -> Result<(), bloomline_redis::RedisFilterError> {
/// use bloomline::BloomFilter;
/// use bloomline_redis::{AsyncRedisBloomFilter, RedisServer};
///
/// let server = RedisServer::new("redis://127.0.0.1:6379")?;
/// let size = BloomFilter::builder().expected_keys(100_000_000).false_positive_rate(0.001);
/// let mut seen = AsyncRedisBloomFilter::create(&server, "crawl", &size).await?;
/// if seen.insert("https://example.org/").await? {
///     println!("a page to visit");
/// }
/// # Ok(()) }
/// ```
#[cfg(feature = "tokio")]
pub struct AsyncRedisBloomFilter(RemoteFilter<TokioTransport>);

/// Writes these methods for both types, because no generic can make a method `async` in one type alone. In
/// `RedisBloomFilter` an `async` method becomes one that blocks. The logic is in [`RemoteFilter`].
macro_rules! methods {
    (
        { $($plain:tt)* }
        $(
            $(#[$doc:meta])*
            pub async fn $name:ident$(<$key:ident: Key $(+ ?$sized:ident)?>)?($($parameters:tt)*) -> $result:ty {
                $($body:tt)*
            }
        )*
    ) => {
        impl RedisBloomFilter {
            $($plain)*
            $(
                $(#[$doc])*
                pub fn $name$(<$key: Key $(+ ?$sized)?>)?($($parameters)*) -> $result {
                    block_on(async { $($body)* })
                }
            )*
        }

        #[cfg(feature = "tokio")]
        impl AsyncRedisBloomFilter {
            $($plain)*
            $(
                $(#[$doc])*
                pub async fn $name$(<$key: Key $(+ ?$sized)?>)?($($parameters)*) -> $result {
                    $($body)*
                }
            )*
        }
    };
}

methods! {
    {
        /// Keeps a filter of the same size in this process, the mirror, with the bits that the servers are known to
        /// have. Keys in the mirror are answered without a request. These answers are right because bits are never
        /// cleared, unless a client [deletes](Self::delete) the filter. The mirror takes memory as bits arrive, up to
        /// the size of the filter. Filters made from this one share it.
        ///
        /// # Errors
        /// [`BuildError::OutOfMemory`].
        pub fn with_mirror(self) -> Result<Self, BuildError> {
            self.0.with_mirror(usize::MAX).map(Self)
        }

        /// Keeps a [mirror](Self::with_mirror) if it takes at most this many bytes. In a filter that grows or forgets, stages
        /// that do not fit are queried on the servers.
        ///
        /// # Errors
        /// [`BuildError::OutOfMemory`].
        pub fn with_mirror_up_to(self, bytes: usize) -> Result<Self, BuildError> {
            self.0.with_mirror(bytes).map(Self)
        }

        /// Returns the name on the server.
        pub fn name(&self) -> &str {
            self.0.name()
        }

        /// Returns the size and the expected false-positive rates. For [`Stages`], both are of the stage that takes
        /// keys.
        pub fn plan(&self) -> Plan {
            self.0.plan()
        }

        /// Returns the parameters of a filter that grows or forgets.
        pub fn stages(&self) -> Option<Stages> {
            self.0.stages()
        }

        /// Returns the seed of the hash.
        pub fn seed(&self) -> u64 {
            self.0.hasher.seed()
        }

        /// Returns the hasher in use.
        pub fn hasher(&self) -> &KeyHasher {
            &self.0.hasher
        }

        /// Returns the number of keys that this client reported as new although another client may have reported them
        /// too, because answers were lost. See "Answers that are lost".
        pub fn uncertain(&self) -> u64 {
            self.0.uncertain()
        }

        /// Returns the number of keys that this client reported as new although too few replicas had them in time, so
        /// that a failover would lose them. 0 without [`wait_for_replicas`](RedisServer::wait_for_replicas).
        pub fn unconfirmed(&self) -> u64 {
            self.0.unconfirmed
        }

        /// Returns the counters of this client since it was created, and the servers' response times since the last
        /// call. Sends nothing.
        pub fn metrics(&mut self) -> RedisFilterMetrics {
            self.0.metrics()
        }
    }

    /// Creates a filter. If the name has a filter of the same size and seed, opens that one. Any number of clients may
    /// do so at the same time.
    ///
    /// This allocates nothing on the server. Each shard, of 16 MiB at most, is allocated when its first key is
    /// inserted.
    ///
    /// # Errors
    /// [`RedisFilterError`]: the size or the name is not valid, the server cannot be reached or denies access, or
    /// the name has a filter of another size ([`Differs`](RedisFilterError::Differs)) or seed ([`Seed`](RedisFilterError::Seed)).
    pub async fn create(
        server: &RedisServer,
        name: &str,
        size: &Builder<BloomFilter>,
    ) -> Result<Self, RedisFilterError> {
        RemoteFilter::open(server, name, Some(FilterMeta::new(size)?)).await.map(Self)
    }

    /// Creates a filter that grows with its keys, or that forgets them in time: see [`Stages`]. If the name has a
    /// filter with the same parameters, opens that one. Any number of clients may do so at the same time.
    ///
    /// All methods but [`download`](Self::download) and [`upload`](Self::upload) work as for a filter of one size. An
    /// insert takes another round trip for each stage but the last, with the keys that later stages do not have, and one
    /// for permits, which bound the keys of a stage; a client takes permits for single keys in advance. A query takes one
    /// for each stage. The user needs the rights to `HGETALL`, `HSETNX`, `HEXISTS`, `HDEL`, `EXPIREAT`, `EXPIRE`, `TIME`
    /// and `EVAL` too. The first insert fails without a claim if one of them is missing.
    ///
    /// # Errors
    /// The errors of [`create`](Self::create).
    pub async fn create_stages(server: &RedisServer, name: &str, stages: &Stages) -> Result<Self, RedisFilterError> {
        RemoteFilter::open(server, name, Some(FilterMeta::staged(*stages)?)).await.map(Self)
    }

    /// Opens the filter of this name with any size and seed.
    ///
    /// # Errors
    /// [`NotFound`](RedisFilterError::NotFound), and the errors of [`create`](Self::create) that are not about a size.
    pub async fn open(server: &RedisServer, name: &str) -> Result<Self, RedisFilterError> {
        RemoteFilter::open(server, name, None).await.map(Self)
    }

    /// Inserts a key. Returns `true` if this call claimed the key, as one of all clients does, or if it may have
    /// claimed the key and the answer was lost. Takes one round trip, and two more for the client's first key in a
    /// shard.
    ///
    /// # Errors
    /// [`RedisFilterError`]. The key is not inserted then.
    pub async fn insert<K: Key + ?Sized>(&mut self, key: &K) -> Result<bool, RedisFilterError> {
        self.0.insert(key).await
    }

    /// Returns true if a key may have been inserted. Takes one round trip.
    ///
    /// # Errors
    /// [`RedisFilterError`].
    pub async fn contains<K: Key + ?Sized>(&mut self, key: &K) -> Result<bool, RedisFilterError> {
        self.0.contains(key).await
    }

    /// Inserts many keys. `new[i]` is `true` if this call claimed `keys[i]`. Returns the number of claimed keys.
    ///
    /// Sends one command for each key, and takes one round trip for each portion of 4096 keys. Of equal keys in a
    /// portion only the first can be claimed. If a fifth of the last keys were duplicates, the call first reads the
    /// blocks of a portion of 256 keys or more, in another round trip, and claims only keys that it does not find. A
    /// portion with the client's first keys in some shards takes another round trip, and one for each 16 of these
    /// shards.
    ///
    /// # Errors
    /// [`RedisFilterError`]. Even then `new` marks the keys that this call has claimed or may have claimed. Act on
    /// them, because no other client will, and insert the whole batch again for the rest.
    ///
    /// # Panics
    /// If `new` is not as long as `keys`.
    pub async fn insert_batch<K: Key>(&mut self, keys: &[K], new: &mut [bool]) -> Result<usize, RedisFilterError> {
        self.0.insert_batch(keys, new).await
    }

    /// Looks up many keys. `found[i]` is the result of [`contains`](Self::contains) for `keys[i]`. Returns the number
    /// found. Sends one command for each key, and takes one round trip for each 4096 keys.
    ///
    /// # Errors
    /// [`RedisFilterError`]. The contents of `found` are then unspecified.
    ///
    /// # Panics
    /// If `found` is not as long as `keys`.
    pub async fn contains_batch<K: Key>(&mut self, keys: &[K], found: &mut [bool]) -> Result<usize, RedisFilterError> {
        self.0.contains_batch(keys, found).await
    }

    /// [`insert_batch`](Self::insert_batch) for keys that were hashed elsewhere; see [`BloomFilter::insert_hash`].
    ///
    /// # Errors
    /// The errors of `insert_batch`.
    ///
    /// # Panics
    /// If `new` is not as long as `hashes`.
    pub async fn insert_hashes(&mut self, hashes: &[u64], new: &mut [bool]) -> Result<usize, RedisFilterError> {
        self.0.insert_hashes(hashes, new).await
    }

    /// [`contains_batch`](Self::contains_batch) for keys that were hashed elsewhere; see [`BloomFilter::insert_hash`].
    ///
    /// # Errors
    /// The errors of `contains_batch`.
    ///
    /// # Panics
    /// If `found` is not as long as `hashes`.
    pub async fn contains_hashes(&mut self, hashes: &[u64], found: &mut [bool]) -> Result<usize, RedisFilterError> {
        self.0.contains_hashes(hashes, found).await
    }

    /// Returns the fill of the filter. The servers count all its bits, which takes some milliseconds for each shard of
    /// 16 MiB.
    ///
    /// # Errors
    /// [`RedisFilterError`].
    pub async fn stats(&mut self) -> Result<RedisFilterStats, RedisFilterError> {
        self.0.stats().await
    }

    /// Returns the kinds of values that keys were made of, as `BloomFilter::key_kinds` does; empty if no client
    /// recorded any, and `None` if the user has no right to `SMEMBERS`. Programs that hash values of columns record
    /// kinds, so that a filter of numbers is not queried for texts; inserts record nothing. A filter with keys and
    /// without recorded kinds has single texts.
    ///
    /// # Errors
    /// [`RedisFilterError`], except that a missing right is not an error.
    ///
    /// # Examples
    /// ```no_run
    /// use bloomline_redis::{RedisBloomFilter, RedisServer};
    ///
    /// let server = RedisServer::new("redis://127.0.0.1:6379")?;
    /// let mut seen = RedisBloomFilter::open(&server, "ids")?;
    /// seen.add_key_kinds(&[4])?; // before the first key of a number
    /// assert_eq!(seen.key_kinds()?, Some(vec![4]));
    /// # Ok::<(), bloomline_redis::RedisFilterError>(())
    /// ```
    pub async fn key_kinds(&mut self) -> Result<Option<Vec<u16>>, RedisFilterError> {
        self.0.key_kinds().await
    }

    /// Adds to [`key_kinds`](Self::key_kinds), with one set of bits for each part of a key. Call it before the first
    /// insert of a key of these kinds. If the filter has keys and no recorded kinds, add the kind of texts too. Does
    /// nothing if the user has no right to `SADD`. Takes a round trip.
    ///
    /// # Errors
    /// [`RedisFilterError`], except that a missing right is not an error.
    pub async fn add_key_kinds(&mut self, kinds: &[u16]) -> Result<(), RedisFilterError> {
        self.0.add_key_kinds(kinds).await
    }

    /// Copies the filter into a local one, without its [kinds of keys](Self::key_kinds). Others may insert meanwhile:
    /// the copy has all keys that were inserted before the call. Takes a round trip for each mebibyte.
    ///
    /// # Errors
    /// [`RedisFilterError`], which may hold [`BuildError::OutOfMemory`]. [`Stages`](RedisFilterError::Stages) if the
    /// filter has stages.
    pub async fn download(&mut self) -> Result<BloomFilter, RedisFilterError> {
        self.0.download().await
    }

    /// Adds the keys of a local filter, but not their [kinds](Self::add_key_kinds), while others insert. Puts a copy of
    /// each shard beside it, one mebibyte at a time, and merges the copy into the shard with one command. This keeps
    /// the server busy for some milliseconds and takes it up to 48 MiB more memory. If an error leaves a copy behind,
    /// the server removes it after ten minutes.
    ///
    /// # Errors
    /// [`RedisFilterError`]: [`Merge`](RedisFilterError::Merge) if the filters differ in size, probes or seed. Nothing
    /// is changed then. After another error some or all of the keys are in.
    pub async fn upload(&mut self, filter: &BloomFilter) -> Result<(), RedisFilterError> {
        self.0.upload(filter).await
    }

    /// Checks that the filter still exists, is the one that was opened, and has lost none of the shards that this
    /// client has used. Calls that ask a server check the shards that they used once a second, and after a connection
    /// broke. Takes one round trip, with a command for each shard.
    ///
    /// # Errors
    /// [`RedisFilterError`]: [`Gone`](RedisFilterError::Gone), [`Replaced`](RedisFilterError::Replaced) or
    /// [`LeftOver`](RedisFilterError::LeftOver). All later calls that ask a server fail with the same error then.
    pub async fn check(&mut self) -> Result<(), RedisFilterError> {
        self.0.check().await
    }

    /// Checks if a server may evict the filter when its memory is full. Returns the setting to change, such as
    /// `10.0.0.1:6379 has maxmemory-policy allkeys-lru`, or `None` if no server has such a setting or the user has no
    /// right to `INFO`.
    pub async fn may_evict(&mut self) -> Option<String> {
        self.0.may_evict().await
    }

    /// Returns the memory, evictions and replicas of each server that keeps the filter. Servers that do not answer, or give the
    /// user no right to `INFO`, are left out.
    pub async fn servers(&mut self) -> Vec<RedisServerStats> {
        self.0.servers().await
    }

    /// Removes the filter from the servers. End all other clients first. Within a second of use they stop with
    /// [`Gone`](RedisFilterError::Gone), and until then they insert into a filter that is gone. They then remove what
    /// they inserted, if their user has the right to `EVAL` and no filter of this name was created meanwhile.
    ///
    /// # Errors
    /// [`RedisFilterError`]. The filter can then be opened again and deleted.
    pub async fn delete(self) -> Result<(), RedisFilterError> {
        self.0.delete().await
    }
}

impl RedisBloomFilter {
    /// Removes all remains of a filter of this name, even if its description is lost, and no key of a filter of another
    /// name. Returns true if there were any. Without a description, or the list of stages that it refers to, it looks
    /// for shards until 1024 in a row are missing and, if the user has the right to `SCAN`, among all keys of the
    /// servers. End all clients of the filter first: see [`delete`](Self::delete).
    ///
    /// # Errors
    /// [`RedisFilterError`].
    pub fn remove(server: &RedisServer, name: &str) -> Result<bool, RedisFilterError> {
        block_on(RemoteFilter::<BlockingTransport>::remove(server, name))
    }

    /// Returns the sorted names of the filters on a server or cluster, including filters that have lost their
    /// description or a part. Filters that are created, removed or moved meanwhile may be missing. Scans all keys of
    /// each primary, a thousand at a time. The user needs the right to `SCAN`.
    ///
    /// # Errors
    /// [`RedisFilterError`].
    ///
    /// # Examples
    /// ```no_run
    /// use bloomline_redis::{RedisBloomFilter, RedisServer};
    ///
    /// let server = RedisServer::new("redis://127.0.0.1:6379")?;
    /// for name in RedisBloomFilter::list(&server)? {
    ///     println!("{name}: {:?}", RedisBloomFilter::open(&server, &name)?.stats()?);
    /// }
    /// # Ok::<(), bloomline_redis::RedisFilterError>(())
    /// ```
    pub fn list(server: &RedisServer) -> Result<Vec<String>, RedisFilterError> {
        block_on(scan::names::<BlockingTransport>(server))
    }

    /// Switches to another filter of the same servers, opened as by [`open`](Self::open) over the existing connections
    /// and without a mirror. After an error this is still the previous filter.
    ///
    /// # Errors
    /// The errors of `open`.
    pub fn switch_to(&mut self, name: &str) -> Result<(), RedisFilterError> {
        block_on(self.0.switch_to(name))
    }

    /// Returns a client of the same filter for another thread. It opens connections of its own when it is used, shares
    /// the mirror, and starts to count [`uncertain`](Self::uncertain) at 0.
    pub fn new_client(&self) -> Self {
        Self(self.0.new_client())
    }
}

#[cfg(feature = "tokio")]
impl AsyncRedisBloomFilter {
    /// See [`RedisBloomFilter::remove`].
    ///
    /// # Errors
    /// [`RedisFilterError`].
    pub async fn remove(server: &RedisServer, name: &str) -> Result<bool, RedisFilterError> {
        RemoteFilter::<TokioTransport>::remove(server, name).await
    }

    /// See [`RedisBloomFilter::list`].
    ///
    /// # Errors
    /// [`RedisFilterError`].
    pub async fn list(server: &RedisServer) -> Result<Vec<String>, RedisFilterError> {
        scan::names::<TokioTransport>(server).await
    }
}

/// Shares the connections and the mirror, and starts to count [`uncertain`](AsyncRedisBloomFilter::uncertain) at 0.
#[cfg(feature = "tokio")]
impl Clone for AsyncRedisBloomFilter {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

#[cfg(feature = "tokio")]
impl fmt::Debug for AsyncRedisBloomFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt("AsyncRedisBloomFilter", f)
    }
}

impl fmt::Debug for RedisBloomFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt("RedisBloomFilter", f)
    }
}
