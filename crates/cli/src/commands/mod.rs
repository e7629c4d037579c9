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
pub mod plan;
mod plan_samples;
mod prelude;
pub mod redis;
pub mod report;
pub mod run;
pub mod scan;
mod server;
pub mod sets;
mod sizing;
