//! One filter for many machines, on Redis or Valkey: see [`RedisBloomFilter`].
//!
//! A call is three hops away from the commands that are sent:
//!
//! 1. `RedisBloomFilter::insert_batch` (filter.rs) drives `SharedFilter::insert_batch` (shared.rs), which makes a job
//!    of the keys: `Claims` (jobs.rs).
//! 2. `SharedFilter` passes the job to `Nodes::run` (nodes.rs), which repeats what fails as `Exchange` (exchange.rs)
//!    decides.
//! 3. `Nodes::run` passes the commands of each round to `Transport::exchange`, which is `Blocking`'s (blocking.rs). It
//!    sends them.
//!
//! `AsyncRedisBloomFilter` (async_filter.rs) awaits the same `SharedFilter` on another transport, `Tokio` (tokio.rs).
//!
//! The files below these depend on nothing but one another: `jobs` builds commands and reads answers, `shards` knows
//! where a block is on a server, `meta` reads and writes the description of a filter, and `topology` knows which node
//! serves a slot.

mod blocking;
mod error;
mod exchange;
mod filter;
mod jobs;
mod meta;
mod nodes;
mod server;
mod shards;
mod shared;
#[cfg(feature = "redis-tokio")]
mod tokio;
mod topology;

pub use error::RedisFilterError;
#[cfg(feature = "redis-tokio")]
pub use filter::AsyncRedisBloomFilter;
pub use filter::RedisBloomFilter;
pub use server::RedisServer;
pub use shared::RedisFilterStats;
