//! The commands, each in a file of its own.

pub mod build;
pub mod check;
pub mod classic;
pub mod groups;
mod headers;
pub mod info;
pub mod input_kinds;
pub mod job;
pub mod manual;
pub mod merge;
#[cfg(not(feature = "redis"))]
pub mod no_server;
pub mod plan;
mod plan_samples;
mod prelude;
#[cfg(feature = "redis")]
pub mod redis;
pub mod report;
pub mod run;
pub mod scan;
#[cfg(feature = "redis")]
mod server;
pub mod sets;
mod sizing;

#[cfg(not(feature = "redis"))]
pub use no_server::{self as redis, self as server};
