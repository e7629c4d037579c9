//! One filter for many machines, on Redis or Valkey: see [`RedisBloomFilter`].
//!
//! A call is three hops away from the commands that are sent:
//!
//! 1. `RedisBloomFilter::insert_batch` (filter.rs) calls `SharedFilter::insert_batch` (shared.rs), which makes jobs of
//!    the keys: `Claims` (jobs.rs).
//! 2. `SharedFilter` gives each job to `Nodes::run` (nodes.rs). `Exchange` (exchange.rs) tells it which commands go to
//!    which node, and which to send again.
//! 3. `Nodes::run` gives the commands to `Transport::exchange` of `Blocking` (blocking.rs), which sends them.
//!
//! `AsyncRedisBloomFilter` differs in the last hop alone: its transport is `Tokio` (tokio.rs).
//!
//! Further down, `wire` is a connection that blocks, for which `packed` writes commands and `answers` reads answers. `repeats`
//! tells whether blocks are read before they are claimed. `shards` knows where a block is on a server, `meta` describes a filter to its server, `watch` tells
//! whether it is still the same filter, `server` has the addresses, and `topology` knows which node serves a slot.

mod answers;
mod blocking;
mod error;
mod exchange;
mod filter;
mod jobs;
mod meta;
mod nodes;
mod packed;
mod repeats;
mod server;
mod shards;
mod shared;
#[cfg(feature = "redis-tokio")]
mod tokio;
mod topology;
mod watch;
mod wire;

pub use error::RedisFilterError;
#[cfg(feature = "redis-tokio")]
pub use filter::AsyncRedisBloomFilter;
pub use filter::RedisBloomFilter;
pub use server::RedisServer;
pub use shared::RedisFilterStats;
