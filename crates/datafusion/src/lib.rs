//! Hash joins of [DataFusion](datafusion) that drop rows of the probe side early, by a Bloom filter of the build side's keys.
//!
//! | module | content |
//! |---|---|
//! | `shared` | the filter of a join, from its first key to the last row that it drops |
//! | `expr` | a predicate that queries the filter |
//! | `exec` | an operator that inserts the build side's keys, or drops rows of the probe side |
//! | `rule` | the optimizer rule, which puts them into plans |
//!
//! Imports run from the lower rows to the upper ones.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod exec;
mod expr;
mod rule;
mod shared;

pub use exec::BloomFilterExec;
pub use expr::BloomFilterExpr;
pub use rule::BloomFilterJoins;

/// The examples of the README, which are tested.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
