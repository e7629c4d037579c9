//! `bloomline info`: what a filter is, and how full.

use crate::LAYOUT;
use crate::cli::Info;
use crate::error::Error;
use crate::figures::{Figures, estimated, readable, readable_size};
use crate::lines::input::Origin;
use crate::output::Output;
use crate::set::Seen;
use crate::set::shared::Shared;
use bloomline::BloomFilter;
use serde_json::json;
use std::path::Path;
use std::process::ExitCode;

/// The rates at which people ask how many keys still fit.
const RATES: [(f64, &str); 4] =
    [(1e-2, "room at 1e-2"), (1e-3, "room at 1e-3"), (1e-4, "room at 1e-4"), (1e-6, "room at 1e-6")];

/// Runs the command.
pub fn run(options: &Info) -> Result<ExitCode, Error> {
    if let Some((server, name)) = options.sharing.filter()? {
        return show(options, [], of_shared(name, Shared::open(&server, name)?)?);
    }
    let path = options.filter.as_deref().expect("it is required");
    show(options, [&Origin::of(path)], of_file(path)?)
}

/// Prints the figures.
fn show<'a>(options: &Info, inputs: impl IntoIterator<Item = &'a Origin>, figures: Figures) -> Result<ExitCode, Error> {
    let mut output = Output::create(None, inputs)?;
    output.write_line(&if options.json { figures.json() } else { figures.text() })?;
    Ok(ExitCode::SUCCESS)
}

/// The figures of a filter on a server.
fn of_shared(name: &str, mut shared: Shared) -> Result<Figures, Error> {
    let (plan, stats) = (*shared.plan(), *shared.refresh()?);
    let (memory, keys) = (plan.memory_bytes(), stats.estimated_keys);
    let mut figures = Figures::default();
    figures.both("name", name, "name", name);
    figures.both("layout", LAYOUT, "layout", LAYOUT);
    figures.both("size", format!("{memory} bytes ({})", readable_size(memory)), "memory_bytes", memory);
    let stored = stats.stored_bytes;
    figures.both("stored", format!("{stored} bytes ({})", readable_size(stored as usize)), "stored_bytes", stored);
    figures.both("blocks", plan.block_count(), "blocks", plan.block_count());
    figures.both("probes (k)", plan.probes(), "probes", plan.probes());
    figures.both("seed", shared.hasher().seed(), "seed", shared.hasher().seed());
    figures.both("keys", estimated(keys, 0), "estimated_keys", keys);
    figures.both("fill", format!("{:.2} %", 100.0 * stats.fill_ratio), "fill", stats.fill_ratio);
    figures.both("rate now", readable(stats.expected_fpr), "fpr", stats.expected_fpr);
    capacities(&mut figures, |rate| plan.capacity(rate), keys);
    Ok(figures)
}

/// The figures of a filter in a file.
fn of_file(path: &Path) -> Result<Figures, Error> {
    // Loading verifies the checksums.
    let seen = Seen::load(path)?;
    let (memory, fill, rate, keys) = (seen.memory_bytes(), seen.fill_ratio(), seen.current_fpr(), seen.keys());
    let stages = seen.stages();
    let blocks: usize = stages.iter().map(BloomFilter::block_count).sum();
    let probes: Vec<u32> = stages.iter().map(BloomFilter::probes).collect();
    let bits_per_key = if keys.is_finite() { memory as f64 * 8.0 / keys } else { f64::NAN };

    let mut figures = Figures::default();
    figures.field("file", path.to_string_lossy().into_owned());
    figures.both("layout", LAYOUT, "layout", LAYOUT);
    figures.both("memory", format!("{memory} bytes ({})", readable_size(memory)), "memory_bytes", memory);
    figures.both("blocks", blocks, "blocks", blocks);
    match &seen {
        Seen::Sized(_) => figures.both("probes (k)", probes[0], "probes", probes[0]),
        _ => figures.both("probes (k)", format!("{probes:?}"), "probes", probes),
    }
    figures.both("seed", stages[0].seed(), "seed", stages[0].seed());
    match &seen {
        Seen::Sized(_) => figures.row("keys", estimated(keys, 0)),
        _ => figures.row("keys", keys),
    }
    figures.field("estimated_keys", keys);
    figures.both("bits per key", estimated(bits_per_key, 2), "bits_per_key", bits_per_key);
    figures.both("fill", format!("{:.2} %", 100.0 * fill), "fill", fill);
    figures.both("rate now", readable(rate), "fpr", rate);
    match &seen {
        Seen::Sized(filter) => capacities(&mut figures, |rate| filter.capacity(rate), keys),
        Seen::Growing(filter) => {
            figures.both("filters", stages.len(), "filters", stages.len());
            let most = filter.false_positive_rate();
            figures.both("rate at most", readable(most), "max_fpr", most);
        }
        Seen::Shared(_) => unreachable!("it was loaded from a file"),
    }
    figures.both("checksum", "right", "checksum", "right");
    Ok(figures)
}

/// How many more keys fit.
fn capacities(figures: &mut Figures, capacity: impl Fn(f64) -> u64, keys: f64) {
    let mut capacities = Vec::new();
    for (rate, label) in RATES {
        let capacity = capacity(rate);
        let room = (capacity as f64 - keys).max(0.0) as u64;
        figures.row(label, format!("{room} more keys, {capacity} in all"));
        capacities.push(json!({ "fpr": rate, "keys": capacity, "keys_left": room }));
    }
    figures.field("capacity", capacities);
}
