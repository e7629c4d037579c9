//! `bloomline info`: what a filter is, and how full.

use crate::cli::Info;
use crate::error::Error;
use crate::figures::{Figures, estimated, readable, readable_size};
use crate::input::Origin;
use crate::output::Output;
use crate::{LAYOUT, filter_file};
use serde_json::json;
use std::process::ExitCode;

/// The rates at which people ask how many keys still fit.
const RATES: [(f64, &str); 4] =
    [(1e-2, "room at 1e-2"), (1e-3, "room at 1e-3"), (1e-4, "room at 1e-4"), (1e-6, "room at 1e-6")];

/// Runs the command.
pub fn run(options: &Info) -> Result<ExitCode, Error> {
    // Loading verifies the checksums.
    let filter = filter_file::load(&options.filter)?;
    let (memory, fill, rate) = (filter.memory_bytes(), filter.fill_ratio(), filter.current_fpr());
    let keys = filter.estimated_keys();
    let bits_per_key = if keys.is_finite() { memory as f64 * 8.0 / keys } else { f64::NAN };

    let mut figures = Figures::default();
    figures.field("file", options.filter.to_string_lossy().into_owned());
    figures.both("layout", LAYOUT, "layout", LAYOUT);
    figures.both("memory", format!("{memory} bytes ({})", readable_size(memory)), "memory_bytes", memory);
    figures.both("blocks", filter.block_count(), "blocks", filter.block_count());
    figures.both("probes (k)", filter.probes(), "probes", filter.probes());
    figures.both("seed", filter.seed(), "seed", filter.seed());
    figures.both("keys", estimated(keys, 0), "estimated_keys", keys);
    figures.both("bits per key", estimated(bits_per_key, 2), "bits_per_key", bits_per_key);
    figures.both("fill", format!("{:.2} %", 100.0 * fill), "fill", fill);
    figures.both("rate now", readable(rate), "fpr", rate);
    let mut capacities = Vec::new();
    for (rate, label) in RATES {
        let capacity = filter.capacity(rate);
        let room = (capacity as f64 - keys).max(0.0) as u64;
        figures.row(label, format!("{room} more keys, {capacity} in all"));
        capacities.push(json!({ "fpr": rate, "keys": capacity, "keys_left": room }));
    }
    figures.field("capacity", capacities);
    figures.both("checksum", "right", "checksum", "right");

    let mut output = Output::create(None, [&Origin::of(&options.filter)])?;
    output.write_line(&if options.json { figures.json() } else { figures.text() })?;
    Ok(ExitCode::SUCCESS)
}
