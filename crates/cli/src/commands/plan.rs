//! `bloomline plan`: computes the size and the rates of a filter before it is built.

use crate::commands::classic::Classic;
use crate::commands::plan_samples;
use crate::options::PlanOptions;
use crate::system::error::{Error, SUCCESS};
use crate::terminal::figures::{LAYOUT, readable_size, table};
use crate::write::output::Output;
use bloomline::{BloomFilter, BuildError};
use serde_json::{Value, json};
use std::ops::RangeInclusive;

/// The loads for which rates are shown, as shares of the planned keys.
const LOADS: [f64; 4] = [0.5, 1.0, 2.0, 4.0];

/// Rows of the table of rates.
const BITS_PER_KEY: RangeInclusive<usize> = 4..=40;

/// Columns of the table of rates.
const PROBES: [u32; 4] = [4, 8, 12, 16];

/// Runs the command.
pub fn run(options: &PlanOptions) -> Result<u8, Error> {
    let text = match (options.table, options.json) {
        _ if options.text.is_some() => plan_samples::report(options)?,
        (true, false) => rates_text()?,
        (true, true) => rates_json()?,
        (false, false) => layouts_text(&layouts(options)?),
        (false, true) => Value::from_iter(layouts(options)?.iter().map(PlannedFilter::json)).to_string(),
    };
    let output = Output::standard([])?;
    output.write_line(&text)?;
    Ok(SUCCESS)
}

/// The size and the rates of a filter with one of the layouts.
struct PlannedFilter {
    name: &'static str,
    keys: u64,
    memory: usize,
    probes: u32,
    /// The rates at the [`LOADS`].
    rates: [f64; LOADS.len()],
}

/// Plans a filter of each layout with two of keys, rate and memory, and computes the third.
fn layouts(options: &PlanOptions) -> Result<[PlannedFilter; 2], Error> {
    let builder = BloomFilter::builder();
    let (plan, keys, classic, classic_keys) = match (options.expected_keys, options.fpr, options.memory) {
        (Some(keys), Some(rate), None) => {
            let plan = builder.expected_keys(keys).false_positive_rate(rate).plan()?;
            (plan, keys, Classic::for_rate(keys, rate), keys)
        }
        (Some(keys), None, Some(memory)) => {
            let plan = builder.expected_keys(keys).memory(memory).plan()?;
            (plan, keys, Classic::for_size(memory as f64 * 8.0, keys), keys)
        }
        (None, Some(rate), Some(memory)) => {
            let plan = builder.false_positive_rate(rate).memory(memory).plan()?;
            let classic = Classic::for_capacity(memory as f64 * 8.0, rate);
            (plan, plan.capacity(rate), classic, classic.capacity(rate) as u64)
        }
        _ => {
            return Err(Error::new(
                "plan needs two of -n KEYS, -p RATE and --memory SIZE and computes the third; --table needs none of them",
            ));
        }
    };
    Ok([
        PlannedFilter {
            name: LAYOUT,
            keys,
            memory: plan.memory_bytes(),
            probes: plan.probes(),
            rates: LOADS.map(|load| plan.expected_fpr((keys as f64 * load) as u64)),
        },
        PlannedFilter {
            name: "classic",
            keys: classic_keys,
            memory: (classic.bits / 8.0).ceil() as usize,
            probes: classic.probes,
            rates: LOADS.map(|load| classic.fpr(classic_keys as f64 * load)),
        },
    ])
}

impl PlannedFilter {
    fn bits_per_key(&self) -> f64 {
        self.memory as f64 * 8.0 / self.keys as f64
    }

    fn row(&self) -> Vec<String> {
        let Self { name, keys, memory, probes, rates } = self;
        let mut row = vec![
            (*name).to_owned(),
            keys.to_string(),
            readable_size(*memory),
            probes.to_string(),
            format!("{:.4}", self.bits_per_key()),
        ];
        row.extend(rates.map(format_rate));
        row
    }

    fn json(&self) -> Value {
        let Self { name, keys, memory, probes, rates } = self;
        let rates: Vec<Value> =
            LOADS.iter().zip(rates).map(|(load, rate)| json!({ "load": load, "fpr": rate })).collect();
        json!({
            "layout": name,
            "keys": keys,
            "memory_bytes": memory,
            "probes": probes,
            "bits_per_key": self.bits_per_key(),
            "rates": rates,
        })
    }
}

fn layouts_text(layouts: &[PlannedFilter]) -> String {
    let mut head: Vec<String> = ["layout", "keys", "memory", "k", "bits per key"].map(str::to_owned).to_vec();
    head.extend(LOADS.map(|load| format!("rate at ×{load}")));
    let rows: Vec<_> = [head].into_iter().chain(layouts.iter().map(PlannedFilter::row)).collect();
    table(&rows)
}

/// Returns the rates of the [`LAYOUT`] with this number of bits per key, one for each of the [`PROBES`].
fn rates(bits_per_key: usize) -> Result<[f64; PROBES.len()], BuildError> {
    // Enough keys for the block loads of any large filter, and few enough that no two are expected to have equal hashes.
    const KEYS: u64 = 1 << 26;
    let memory = KEYS as usize / 8 * bits_per_key;
    let mut rates = [0.0; PROBES.len()];
    for (rate, probes) in rates.iter_mut().zip(PROBES) {
        *rate = BloomFilter::builder().memory(memory).probes(probes).plan()?.expected_fpr(KEYS);
    }
    Ok(rates)
}

fn rates_text() -> Result<String, BuildError> {
    let mut head = vec!["bits per key".to_owned()];
    head.extend(PROBES.map(|probes| format!("k = {probes} ")));
    let mut rows = vec![head];
    for bits in BITS_PER_KEY {
        let rates = rates(bits)?;
        let min_rate = rates.iter().copied().fold(1.0, f64::min);
        let mut row = vec![format!("{bits:12}")];
        row.extend(rates.map(|rate| format_rate(rate) + if rate == min_rate { "*" } else { " " }));
        rows.push(row);
    }
    Ok(format!("{}\n{LAYOUT}; * is the best k", table(&rows)))
}

fn rates_json() -> Result<String, BuildError> {
    let mut cells = Vec::new();
    for bits in BITS_PER_KEY {
        for (rate, probes) in rates(bits)?.into_iter().zip(PROBES) {
            cells.push(json!({ "layout": LAYOUT, "bits_per_key": bits, "probes": probes, "fpr": rate }));
        }
    }
    Ok(Value::from(cells).to_string())
}

/// Formats a rate with enough digits to distinguish layouts.
pub fn format_rate(rate: f64) -> String {
    format!("{rate:.3e}")
}
