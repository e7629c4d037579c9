//! The sample of grams that a run compares: of the options, of a filter, or the finest one that fits into the memory.

use crate::commands::run::plan::{KeySource, Keys, Plan};
use crate::commands::sizing::NewSet;
use crate::options::{MAX_SAMPLE, WhenFull};
use crate::read::estimate::estimate_inputs;
use crate::read::inputs::Input;
use crate::read::skip::OnError;
use crate::seen::set::KeySet;
use crate::steps::documents::rule::{DocumentRule, split_sample};
use crate::system::error::Error;
use crate::terminal::figures::{readable, readable_count, readable_size};
use crate::terminal::messages::print_message;
use bloomline_text::new_unit_removal_rate;
use std::path::Path;

/// The grams of the new unit whose removal rate is reported.
pub const REPORTED_GRAMS: usize = 20;

/// Loads the filter of a run. The run takes the sample of grams that the filter records, unless the options ask for a coarser one, which
/// the filter then records.
pub(super) fn load(path: &Path, keys: &mut Keys) -> Result<KeySet, Error> {
    let rule = match &mut keys.what {
        KeySource::Document(rule) if rule.has_grams() => rule,
        _ => return KeySet::load_for(path, &keys.name, &keys.kinds),
    };
    let mut set = KeySet::load_for_part(path, &rule.unsampled_name(), &keys.kinds, |name| split_sample(name).0)?;
    let (_, has) = split_sample(set.key_name());
    let sample = rule.asked_sample.unwrap_or(has);
    if sample < has {
        return Err(Error::new(format!(
            "cannot use the filter {path:?}: it has only one of {has} grams, and --sample {sample} compares more; leave out --sample, or \
             choose another filter"
        )));
    }
    rule.text.sample = sample;
    keys.name = rule.name();
    if sample > has
        && let Some(set) = set.local_mut()
    {
        set.set_key_name(&keys.name)?;
    }
    Ok(set)
}

impl Plan {
    /// Chooses the finest sample of the inputs' grams that fits into the memory, unless the options give one. If none fits, all grams are
    /// compared.
    pub(super) fn fit_sample(&mut self, inputs: &[Input]) -> Result<(), Error> {
        let is_state = self.state().is_some();
        let Self { keys, size, growth, reporting, reading, .. } = self;
        let KeySource::Document(rule) = &mut keys.what else { return Ok(()) };
        let grows = growth.when_full == Some(WhenFull::Grow);
        if !rule.has_grams() || rule.asked_sample.is_some() || grows {
            return Ok(());
        }
        let new_set = NewSet {
            size,
            growth,
            keep: is_state,
            exact: false,
            key_name: &keys.name,
            keys: keys.called,
            quiet: reporting.quiet,
        };
        let Some((room, fpr)) = new_set.room()? else { return Ok(()) };
        let go_on = reading.on_error != OnError::Fail;
        let estimate = |rule: &DocumentRule| {
            Ok::<_, Error>(estimate_inputs(inputs, reading.line_end(), rule, go_on)?.map(|estimate| estimate.lines))
        };
        rule.text.sample = 1;
        // The inputs of a pipe are unknown.
        let Ok(all) = estimate(rule)? else { return Ok(()) };
        let mut left = all;
        while left > room && rule.text.sample < MAX_SAMPLE {
            rule.text.sample *= 2;
            left = estimate(rule)?.unwrap_or(all);
        }
        if left > room {
            rule.text.sample = 1;
        }
        keys.name = rule.name();
        if rule.text.sample > 1 && !reporting.quiet {
            let unit = rule.units();
            print_message(&format!(
                "the inputs have about {} grams, and {} are enough for {} at a false-positive rate of {}: of each of the {unit}, one of {} \
                 grams is compared, and at least two; of new {unit} of {REPORTED_GRAMS} grams, a share of {} is removed by mistake, and some whose \
                 share of seen grams is near --threshold are decided otherwise; --sample 1 compares all grams",
                readable_count(all as f64),
                readable_size(growth.memory.unwrap_or_default()),
                readable_count(room as f64),
                readable(fpr),
                rule.text.sample,
                readable(new_unit_removal_rate(&rule.text, REPORTED_GRAMS, fpr)),
            ));
        }
        Ok(())
    }
}
