//! `bloomline info`: describes a filter and its fill.

use crate::options::InfoOptions;
use crate::seen::local_set::LocalSet;
use crate::seen::set::KeySet;
use crate::system::error::{Error, SUCCESS};
use crate::system::files::NamedFile;
use crate::terminal::figures::{Figures, LAYOUT, estimated, readable, readable_size};
use crate::write::output::Output;
use bloomline::{BloomFilter, Plan};
use serde_json::json;

/// The rates for which the remaining capacity is shown.
const RATES: [(f64, &str); 4] =
    [(1e-2, "room at 1e-2"), (1e-3, "room at 1e-3"), (1e-4, "room at 1e-4"), (1e-6, "room at 1e-6")];

/// Runs the command.
pub fn run(options: &InfoOptions) -> Result<u8, Error> {
    let mut figures = Figures::default();
    let path = &options.filter;
    figures.field("file", path.to_string_lossy().into_owned());
    // Loading verifies the checksums.
    describe(&mut figures, &KeySet::Local(LocalSet::load(path)?));
    let output = Output::standard(&[NamedFile::from_path(path)])?;
    output.write_line(if options.json { figures.json() } else { figures.text() })?;
    Ok(SUCCESS)
}

/// Adds the description of a set.
pub fn describe(figures: &mut Figures, set: &KeySet) {
    let memory = set.memory_bytes();
    let keys = set.keys();
    let fill = set.fill_ratio();
    let rate = set.current_fpr();
    let seed = set.hasher().seed();
    let stages: Vec<&BloomFilter> = set.stages().collect();
    let blocks = memory / 64;
    let bytes = |bytes: usize| format!("{bytes} bytes ({})", readable_size(bytes));

    figures.figure("layout", "layout", LAYOUT);
    figures.row_and_field(
        if set.shared().is_some() { "size" } else { "memory" },
        bytes(memory),
        "memory_bytes",
        memory,
    );
    if let Some(filter) = set.shared() {
        let stored = filter.stored_bytes();
        figures.row_and_field("stored", bytes(stored as usize), "stored_bytes", stored);
    }
    figures.figure("blocks", "blocks", blocks);
    match set.plan() {
        Some(plan) => figures.figure("probes (k)", "probes", plan.probes()),
        // Each filter has its own, and the server's are not listed.
        None if set.shared().is_some() => {}
        None => {
            let probes: Vec<u32> = stages.iter().map(|filter| filter.probes()).collect();
            figures.row_and_field("probes (k)", format!("{probes:?}"), "probes", probes);
        }
    }
    figures.figure("seed", "seed", seed);
    if set.local().is_some() {
        let name = Some(set.key_name()).filter(|name| !name.is_empty());
        figures.row_and_field("key", name.unwrap_or("unknown"), "key_name", name);
        let kinds = Some(set.kinds().to_string()).filter(|kinds| !kinds.is_empty());
        figures.row_and_field("kinds", kinds.as_deref().unwrap_or("none"), "key_kinds", kinds.as_deref());
    }
    let growing = set.local().and_then(LocalSet::growing);
    match growing {
        Some(_) => figures.figure("keys", "estimated_keys", keys),
        None => figures.row_and_field("keys", estimated(keys, 0), "estimated_keys", keys),
    }
    if set.local().is_some_and(|set| set.fixed().is_some()) {
        purpose(figures, set.made_for(), keys);
    }
    if set.local().is_some() {
        let bits_per_key = if keys.is_finite() { memory as f64 * 8.0 / keys } else { f64::NAN };
        figures.row_and_field("bits per key", estimated(bits_per_key, 2), "bits_per_key", bits_per_key);
    }
    figures.row_and_field("fill", format!("{:.2} %", 100.0 * fill), "fill", fill);
    figures.row_and_field("rate now", readable(rate), "fpr", rate);
    match growing {
        Some(filter) => {
            figures.figure("filters", "filters", stages.len());
            let max_rate = filter.false_positive_rate().expect("filters that grow are made for a rate");
            figures.row_and_field("rate at most", readable(max_rate), "max_fpr", max_rate);
        }
        None => set.plan().iter().for_each(|plan| capacities(figures, plan, keys)),
    }
    if let Some((set, max_rate)) = set.shared().and_then(|set| Some((set, set.max_rate()?))) {
        figures.figure("filters", "filters", set.filters());
        figures.row_and_field("rate at most", readable(max_rate), "max_fpr", max_rate);
        if let Some(window) = set.forgets_after() {
            let mut text = String::new();
            for character in humantime::format_duration(window).to_string().chars() {
                if character.is_alphabetic() && text.ends_with(|last: char| last.is_ascii_digit()) {
                    text.push(' ');
                }
                text.push(character);
            }
            figures.row_and_field("forgets after", text, "forgets_after_seconds", window.as_secs());
        }
    }
    if set.local().is_some() {
        figures.figure("checksum", "checksum", "right");
    }
}

/// Adds the number of keys and the rate that a filter is made for, and the share of these keys that it has.
fn purpose(figures: &mut Figures, made_for: Option<(u64, f64)>, keys: f64) {
    let (planned, rate) = made_for.unzip();
    let share = planned.map_or(f64::NAN, |planned| keys / planned as f64);
    figures.field("expected_keys", planned);
    figures.field("false_positive_rate", rate);
    figures.field("share_of_expected_keys", share);
    let Some((planned, rate)) = made_for else { return figures.row("made for", "unknown") };
    figures.row("made for", format!("{planned} keys at a rate of {}", readable(rate)));
    figures.row(
        "full",
        if share.is_finite() { format!("{:.2} % of these keys", 100.0 * share) } else { "unknown".into() },
    );
}

/// Adds the number of keys that still fit at each rate.
fn capacities(figures: &mut Figures, plan: &Plan, keys: f64) {
    let mut capacities = Vec::new();
    for (rate, label) in RATES {
        let capacity = plan.capacity(rate);
        let room = (capacity as f64 - keys).max(0.0) as u64;
        figures.row(label, format!("{room} more keys, {capacity} in all"));
        capacities.push(json!({ "fpr": rate, "keys": capacity, "keys_left": room }));
    }
    figures.field("capacity", capacities);
}
