//! `bloomline info`: what a filter is, and how full.

use crate::LAYOUT;
use crate::cli::Info;
use crate::error::Error;
use crate::figures::{Figures, estimated, readable, readable_size};
use crate::input::Origin;
use crate::output::Output;
use crate::seen::Seen;
use bloomline::BloomFilter;
use serde_json::json;
use std::process::ExitCode;

/// The rates at which people ask how many keys still fit.
const RATES: [(f64, &str); 4] =
    [(1e-2, "room at 1e-2"), (1e-3, "room at 1e-3"), (1e-4, "room at 1e-4"), (1e-6, "room at 1e-6")];

/// Runs the command.
pub fn run(options: &Info) -> Result<ExitCode, Error> {
    // Loading verifies the checksums.
    let seen = Seen::load(&options.filter)?;
    let (memory, fill, rate, keys) = (seen.memory_bytes(), seen.fill_ratio(), seen.current_fpr(), seen.keys());
    let stages = seen.stages();
    let blocks: usize = stages.iter().map(BloomFilter::block_count).sum();
    let probes: Vec<u32> = stages.iter().map(BloomFilter::probes).collect();
    let bits_per_key = if keys.is_finite() { memory as f64 * 8.0 / keys } else { f64::NAN };

    let mut figures = Figures::default();
    figures.field("file", options.filter.to_string_lossy().into_owned());
    figures.both("layout", LAYOUT, "layout", LAYOUT);
    figures.both("memory", format!("{memory} bytes ({})", readable_size(memory)), "memory_bytes", memory);
    figures.both("blocks", blocks, "blocks", blocks);
    match &seen {
        Seen::Sized(_) => figures.both("probes (k)", probes[0], "probes", probes[0]),
        Seen::Growing(_) => figures.both("probes (k)", format!("{probes:?}"), "probes", probes),
    }
    figures.both("seed", stages[0].seed(), "seed", stages[0].seed());
    match &seen {
        Seen::Sized(_) => figures.row("keys", estimated(keys, 0)),
        Seen::Growing(_) => figures.row("keys", keys),
    }
    figures.field("estimated_keys", keys);
    figures.both("bits per key", estimated(bits_per_key, 2), "bits_per_key", bits_per_key);
    figures.both("fill", format!("{:.2} %", 100.0 * fill), "fill", fill);
    figures.both("rate now", readable(rate), "fpr", rate);
    match &seen {
        Seen::Sized(filter) => capacities(&mut figures, filter, keys),
        Seen::Growing(filter) => {
            figures.both("filters", stages.len(), "filters", stages.len());
            let most = filter.false_positive_rate();
            figures.both("rate at most", readable(most), "max_fpr", most);
        }
    }
    figures.both("checksum", "right", "checksum", "right");

    let mut output = Output::create(None, [&Origin::of(&options.filter)])?;
    output.write_line(&if options.json { figures.json() } else { figures.text() })?;
    Ok(ExitCode::SUCCESS)
}

/// How many more keys fit.
fn capacities(figures: &mut Figures, filter: &BloomFilter, keys: f64) {
    let mut capacities = Vec::new();
    for (rate, label) in RATES {
        let capacity = filter.capacity(rate);
        let room = (capacity as f64 - keys).max(0.0) as u64;
        figures.row(label, format!("{room} more keys, {capacity} in all"));
        capacities.push(json!({ "fpr": rate, "keys": capacity, "keys_left": room }));
    }
    figures.field("capacity", capacities);
}
