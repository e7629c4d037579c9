//! End-to-end tests of the command: the real binary, compared with simple models, a reference and itself. Those with
//! shells, signals, permissions, links and limits need Unix.
// Some of the helpers and imports are those of tests that run only there.
#![cfg_attr(not(target_os = "linux"), allow(dead_code, unused_imports, unused_macros))]

#[path = "../../../../tests/browser/mod.rs"]
mod browser;
#[path = "../common/mod.rs"]
mod common;
mod corpus;
mod live;

mod against;
mod calculator;
mod claims;
mod compress;
mod documents;
mod files;
mod find;
mod groups;
#[cfg(unix)]
mod guide;
mod in_place;
mod inputs;
mod interrupted;
mod keys;
mod layers;
mod like;
mod lines;
#[cfg(unix)]
mod migration;
mod near;
mod options;
mod outputs;
#[cfg(unix)]
mod pages;
#[cfg(feature = "parquet")]
mod parquet;
#[cfg(all(feature = "parquet", target_os = "linux"))]
mod parquet_damage;
mod plan;
mod purpose;
mod reference;
#[cfg(unix)]
mod refusals;
mod repeats;
mod resume;
mod safety;
mod sampling;
mod sets;
mod shrink;
mod side_by_side;
#[cfg(unix)]
mod signals;
mod sizing;
mod state;
mod statistics;
mod substrings;
mod tables;
#[cfg(unix)]
mod terminal;
mod torn;
#[cfg(windows)]
mod windows;
