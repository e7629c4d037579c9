//! One filter for many machines, on Redis or Valkey: see [`RedisBloomFilter`].
//!
//! From the bottom up: `shards` knows where a block is on the server, `meta` what the server tells of a filter, `jobs` what is
//! asked; `topology` knows which node serves what, `exchange` what to send again; `blocking` and `tokio` have the connections.

mod blocking;
mod error;
mod exchange;
mod filter;
mod jobs;
mod meta;
mod server;
mod shards;
#[cfg(feature = "redis-tokio")]
mod tokio;
mod topology;

pub use error::RedisFilterError;
pub use filter::{RedisBloomFilter, RedisFilterStats};
pub use server::RedisServer;
#[cfg(feature = "redis-tokio")]
pub use tokio::AsyncRedisBloomFilter;
