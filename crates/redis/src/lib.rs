//! One Bloom filter for many machines, on Redis or Valkey.
//!
//! ```no_run
//! use bloomline::BloomFilter;
//! use bloomline_redis::{RedisBloomFilter, RedisServer};
//!
//! let server = RedisServer::new("redis://127.0.0.1:6379")?;
//! let size = BloomFilter::builder().expected_keys(100_000_000).false_positive_rate(0.001);
//! let mut seen = RedisBloomFilter::create(&server, "crawl", &size)?; // or opens the one that is there
//! if seen.insert("https://example.org/")? {
//!     println!("no other client has it"); // any number of them may ask
//! }
//! # Ok::<(), bloomline_redis::RedisFilterError>(())
//! ```
//!
//! [`RedisBloomFilter`] blocks the thread, and `AsyncRedisBloomFilter` (feature `tokio`) is awaited. Their
//! documentation has the guarantees when answers are lost, and [`RedisServer`] has addresses, time-outs, TLS and
//! replicas. A local [`BloomFilter`](bloomline::BloomFilter) has the same bits, which can be copied in both directions.
#![cfg_attr(docsrs, feature(doc_cfg))]

// A call becomes commands in three steps:
//
// 1. `RedisBloomFilter::insert_batch` (filter.rs) calls `RemoteFilter::insert_batch` (remote_filter.rs), which makes jobs of the
//    keys: `Claims` (jobs.rs).
// 2. `Watch::run` (watch.rs) gives each job to `Nodes::run` (nodes.rs), with a check of the filter if one is due.
//    `Exchange` (exchange.rs) routes commands to nodes, and decides which to send again.
// 3. `Nodes::run` gives the commands to `Transport::exchange` of `BlockingTransport` (blocking.rs), which sends them.
//
// `AsyncRedisBloomFilter` differs only in the last step: its transport is `TokioTransport` (tokio.rs).
//
// Further down, `wire` is a connection that blocks, and `shared_wire` one that tasks share. For both, `handshake` has
// the first commands, `packed` writes commands and `answers` parses answers. `duplicates` decides if blocks are read
// before they are claimed. `stage_chain` has the stages of a filter, and `kinds` their parameters. `shards` locates a
// block on a server, `meta` is the description of a filter on its server, and `watch` checks that it is still the same
// filter. `server` has the addresses, `sentinel` asks for the primary, and `topology` maps slots to nodes. `scan` finds
// the filters of servers, `set_members` reads a set of Redis, `delete` removes a filter, `scripts` removes parts of it,
// `stats` has its fill, and `metrics` the counters of a client.
mod answers;
mod blocking;
mod delete;
mod duplicates;
mod error;
mod exchange;
mod filter;
mod handshake;
mod jobs;
mod kinds;
mod meta;
mod metrics;
#[cfg(test)]
mod models;
mod nodes;
mod packed;
mod remote_filter;
mod scan;
mod scripts;
mod sentinel;
mod server;
mod set_members;
mod shards;
#[cfg(feature = "tokio")]
mod shared_wire;
mod stage_chain;
mod stats;
#[cfg(feature = "tokio")]
mod tokio;
mod topology;
mod watch;
mod wire;

pub use error::RedisFilterError;
#[cfg(feature = "tokio")]
pub use filter::AsyncRedisBloomFilter;
pub use filter::RedisBloomFilter;
pub use kinds::Stages;
pub use metrics::RedisFilterMetrics;
pub use scan::RedisServerStats;
pub use server::RedisServer;
pub use set_members::SetMembers;
pub use stats::RedisFilterStats;

/// The code of the README, for the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
