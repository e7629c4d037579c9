//! The result of a comparison, which `--json` prints and `--from` reads.

use super::machine::Machine;
use bloomline_benches::turns::median;
use serde::{Deserialize, Serialize};

/// The whole result.
#[derive(Serialize, Deserialize)]
pub struct Comparison {
    pub version: String,
    pub date: String,
    pub command: String,
    pub machine: Machine,
    /// Bits of memory for each key.
    pub bits_per_key: f64,
    /// Distinct keys in a round.
    pub round_keys: u64,
    pub rounds: u32,
    /// The duration of the comparison.
    pub seconds: f64,
    pub contenders: Vec<Entry>,
    /// Rows that are missing.
    pub left_out: Vec<LeftOut>,
    /// Of filters with equal memory.
    pub rows: Vec<Row>,
    /// The rate of filters with equal rates.
    pub equal_rate: f64,
    /// Of filters with equal rates, for as many keys as one size of `rows` has.
    pub equal_rate_rows: Vec<Row>,
    pub loads: Vec<LoadRow>,
    pub rates: Vec<RateRow>,
    pub models: Vec<Model>,
}

impl Comparison {
    /// Returns a contender by its name.
    pub fn entry(&self, name: &str) -> Option<&Entry> {
        self.contenders.iter().find(|entry| entry.name == name)
    }

    /// A contender's name for people.
    pub fn label(&self, name: &str) -> String {
        if self.entry(name).is_some_and(|entry| entry.fixed) { format!("{name}, static") } else { name.to_owned() }
    }
}

/// A contender.
#[derive(Serialize, Deserialize)]
pub struct Entry {
    pub name: String,
    /// Built once of all keys. None can be inserted later.
    #[serde(rename = "static")]
    pub fixed: bool,
    /// The crate of a peer.
    pub peer: Option<String>,
    pub interface: String,
    /// The interface takes many keys in a call.
    pub batch: bool,
    /// Keys can be removed.
    pub removes: bool,
}

/// A measurement that a contender is missing from, and the reason.
#[derive(Serialize, Deserialize)]
pub struct LeftOut {
    pub contender: String,
    /// The size or the rate.
    pub at: String,
    pub reason: String,
}

/// The measurements of a contender at one size, at its planned load.
#[derive(Serialize, Deserialize)]
pub struct Row {
    pub contender: String,
    /// The size whose keys the filter has: all the memory that it may take, if filters have equal memory.
    pub size_bytes: usize,
    /// The size of the bits.
    pub memory_bytes: usize,
    /// By how much the process's resident memory grew. `None` where the system does not tell.
    pub resident_bytes: Option<u64>,
    pub keys: u64,
    pub bits_per_key: f64,
    pub probes: u32,
    pub modelled_fpr: f64,
    pub measured_fpr: f64,
    pub insert: Time,
    pub query_0: Time,
    pub query_50: Time,
    pub query_100: Time,
    /// Queries of half hits on each number of threads.
    pub query_threads: Vec<OnThreads>,
}

/// Nanoseconds a key: the median and the quartiles of the rounds.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub struct Time {
    pub lower_quartile: f64,
    pub median: f64,
    pub upper_quartile: f64,
}

impl Time {
    /// Returns the time of rounds, at least one. A quartile has a quarter of the rounds, rounded down, beyond it.
    pub fn from_rounds(rounds: &[f64]) -> Self {
        let mut sorted = rounds.to_vec();
        sorted.sort_by(f64::total_cmp);
        let quarter = sorted.len() / 4;
        Self {
            lower_quartile: sorted[quarter],
            median: median(sorted.clone()),
            upper_quartile: sorted[sorted.len() - 1 - quarter],
        }
    }
}

/// Wall-clock time on a number of threads.
#[derive(Serialize, Deserialize)]
pub struct OnThreads {
    pub threads: usize,
    pub time: Time,
}

/// The measurements of a load at one size.
#[derive(Serialize, Deserialize)]
pub struct LoadRow {
    pub contender: String,
    pub operation: String,
    pub interface: String,
    pub size_bytes: usize,
    pub threads: Vec<OnThreads>,
}

/// A requested rate, and the filter that was made for it.
#[derive(Serialize, Deserialize)]
pub struct RateRow {
    pub contender: String,
    pub keys: u64,
    pub requested_fpr: f64,
    pub probes: u32,
    pub bits_per_key: f64,
    pub modelled_fpr: f64,
    pub measured_fpr: f64,
    /// The number of absent keys that were looked up.
    pub absent_keys: u64,
}

/// The model of a layout.
#[derive(Serialize, Deserialize)]
pub struct Model {
    pub contender: String,
    pub points: Vec<ModelPoint>,
    pub space: Vec<ModelPoint>,
}

/// A size and its rate. In `points` the size was given, in `space` the rate.
#[derive(Serialize, Deserialize)]
pub struct ModelPoint {
    pub bits_per_key: f64,
    pub fpr: f64,
}
