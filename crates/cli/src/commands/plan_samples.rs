//! `bloomline plan --text`: the grams of a corpus, and the samples of them that fit into memory.

use crate::commands::plan::format_rate;
use crate::commands::run::sampling::REPORTED_GRAMS;
use crate::options::{MAX_SAMPLE, PlanOptions};
use crate::seen::local_set::LocalSet;
use crate::steps::documents::rule::sampled_grams;
use crate::system::error::Error;
use crate::terminal::figures::{readable, readable_count, readable_size, table};
use bloomline_text::{Rules, new_unit_removal_rate};
use serde_json::{Value, json};

/// The default false-positive rate of a gram.
const RATE: f64 = 0.01;

/// The largest sample of a plan without a memory.
const MAX_SHOWN: u32 = 64;

/// A sample of the grams of a corpus.
struct PlannedSample {
    sample: u32,
    grams: u64,
    memory: usize,
    removal_rate: f64,
}

/// Returns the samples of the planned text, from all grams to the first sample that fits.
pub fn report(options: &PlanOptions) -> Result<String, Error> {
    let (bytes, fpr) = (options.text.unwrap_or_default(), options.fpr.unwrap_or(RATE));
    let mut samples = Vec::new();
    for exponent in 0..=MAX_SAMPLE.ilog2() {
        let mut rules = Rules::default();
        rules.sample = 1 << exponent;
        let grams = sampled_grams(rules.unit, 0, bytes, rules.sample).max(1);
        let memory = LocalSet::plan_estimated(grams, fpr)?.memory_bytes();
        let removal_rate = new_unit_removal_rate(&rules, REPORTED_GRAMS, fpr);
        samples.push(PlannedSample { sample: rules.sample, grams, memory, removal_rate });
        if options.memory.map_or(rules.sample >= MAX_SHOWN, |available| memory <= available) {
            break;
        }
    }
    let last = &samples[samples.len() - 1];
    if let Some(available) = options.memory.filter(|available| last.memory > *available) {
        return Err(Error::new(format!(
            "{} are too small for {} bytes of text: at a false-positive rate of {}, even one of {MAX_SAMPLE} grams, and at least two of \
             each paragraph, take {}; give more memory or a higher rate",
            readable_size(available),
            readable_count(bytes as f64),
            readable(fpr),
            readable_size(last.memory),
        )));
    }
    if options.json {
        return Ok(Value::from_iter(samples.iter().map(|sample| sample.json(fpr))).to_string());
    }
    let removed = format!("new units of {REPORTED_GRAMS} grams removed");
    let head = ["sample", "grams", "memory", &removed].map(str::to_owned).to_vec();
    let rows: Vec<_> = [head].into_iter().chain(samples.iter().map(PlannedSample::row)).collect();
    let mut text = table(&rows);
    if let Some(available) = options.memory {
        text += &format!(
            "\n{} bytes of text: {} grams; in {} at {}: one of {}",
            readable_count(bytes as f64),
            readable_count(samples[0].grams as f64),
            readable_size(available),
            readable(fpr),
            last.sample,
        );
    }
    Ok(text)
}

impl PlannedSample {
    fn row(&self) -> Vec<String> {
        let Self { sample, grams, memory, removal_rate } = self;
        let rate = format_rate(*removal_rate);
        vec![format!("1 of {sample}"), readable_count(*grams as f64), readable_size(*memory), rate]
    }

    fn json(&self, fpr: f64) -> Value {
        let Self { sample, grams, memory, removal_rate } = self;
        json!({ "sample": sample, "keys": grams, "memory_bytes": memory, "fpr": fpr, "new_unit_removal_rate": removal_rate })
    }
}
