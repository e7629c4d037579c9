//! End-to-end tests of the command: the real binary, compared with simple models, a reference and itself.
#![cfg(unix)]

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
mod guide;
mod in_place;
mod inputs;
mod interrupted;
mod keys;
mod layers;
mod like;
mod lines;
mod migration;
mod near;
mod options;
mod outputs;
mod pages;
#[cfg(feature = "parquet")]
mod parquet;
#[cfg(feature = "parquet")]
mod parquet_damage;
mod plan;
mod purpose;
mod reference;
mod refusals;
mod repeats;
mod resume;
mod safety;
mod sampling;
mod sets;
mod shrink;
mod side_by_side;
mod signals;
mod sizing;
mod state;
mod statistics;
mod substrings;
mod tables;
mod terminal;
mod torn;
