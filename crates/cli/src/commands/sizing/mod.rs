//! The choice of the set that a command uses: its size, and whether it grows.

use crate::options::{BuildOptions, GrowthOptions, ReadOptions, SizeOptions, WhenFull};
use crate::read::estimate::{self, Estimate, LineUnit, SampleUnit};
use crate::read::inputs::Input;
use crate::read::skip::OnError;
use crate::seen::forecast_filter::ForecastFilter;
use crate::seen::local_set::LocalSet;
use crate::seen::run_stats::FullLimit;
use crate::seen::set::KeySet;
use crate::system::error::Error;
use crate::terminal::figures::{readable, readable_size};
use crate::terminal::messages::print_message;
use bloomline::{BloomFilter, Builder, Plan, ScalableBloomFilter};
use bloomline_keys::KeyKinds;
use std::path::Path;

/// Keys of the first filter if their number is unknown.
const FIRST: u64 = 1 << 20;

/// The tolerance for the rate of a set, which is combined from those of its filters.
const ROUNDING: f64 = 1e-9;

/// A set in memory that is not built yet.
#[derive(Debug, PartialEq)]
pub enum SizePlan {
    /// One filter of this size, the keys and the rate that it was chosen for, and the limit at which it is full.
    Sized { plan: Plan, keys: Option<u64>, fpr: f64, limit: FullLimit },
    /// A filter for this number of keys, with this plan, and more filters if more keys arrive. Together they keep the rate.
    Estimated { plan: Plan, keys: u64, fpr: f64 },
    /// A filter that is sized by a forecast, with the estimate of the keys unless their number is unknown.
    Forecast { estimate: Option<Estimate>, fpr: f64 },
    /// Filters that together keep a false-positive rate, the first sized for this number of keys. `None` if the number
    /// is unknown: the first is then sized for many.
    Scalable { keys: Option<u64>, fpr: f64 },
}

/// Returns the set of `build`: the existing one, or a new one for the keys that the user gives or the inputs suggest;
/// its limit; and whether the number of keys is unknown. A set that may grow is built a second time in the right size.
/// If the inputs cannot be read again, it records the hashes.
pub fn set_for_build(
    options: &BuildOptions,
    key_name: &str,
    kinds: &KeyKinds,
    inputs: &[Input],
) -> Result<(KeySet, Option<FullLimit>, bool), Error> {
    let BuildOptions { size, reading, .. } = options;
    if options.append {
        if matches!(options.output.try_exists(), Ok(false)) {
            let output = &options.output;
            return Err(Error::new(format!("there is no filter {output:?} to add to: leave out --append to build it")));
        }
        let set = KeySet::load_for(&options.output, key_name, kinds)?;
        let limit = set.made_for().map(|(keys, fpr)| FullLimit::from_loaded(&set, keys, fpr, false));
        return Ok((set, limit, false));
    }
    let keys = match size.expected_keys {
        Some(keys) => Ok(keys),
        None => estimate::estimate_inputs(inputs, reading.line_end(), &LineUnit, reading.on_error != OnError::Fail)?
            .map(|estimate| estimate.lines),
    };
    if let Some(when) = options.when_full.filter(|when| *when != WhenFull::Grow) {
        let (set, limit) = for_keys(size, keys, when == WhenFull::Stop)?.build(size.seed(), key_name)?;
        return Ok((set, limit, false));
    }
    let unknown = keys.is_err();
    let choice = for_estimate(size, keys.unwrap_or(FIRST), size.expected_keys.is_some())?;
    let (mut set, limit) = choice.build(size.seed(), key_name)?;
    if unknown || inputs.iter().any(|input| input.size.is_none()) {
        set.spool()?;
    }
    Ok((set, limit, unknown))
}

/// Returns the set of `build` for keys that were counted. It has room for all of them, so it has no limit.
pub fn set_for_count(options: &BuildOptions, key_name: &str, keys: u64) -> Result<KeySet, Error> {
    let counted = for_keys(&options.size, Ok(keys), false)?;
    counted.build(options.size.seed(), key_name).map(|(set, _)| set)
}

/// The options for a set that is to be built.
pub struct NewSet<'a> {
    pub size: &'a SizeOptions,
    pub growth: &'a GrowthOptions,
    /// True if it outlives the run.
    pub keep: bool,
    /// True if false positives are checked exactly.
    pub exact: bool,
    pub key_name: &'a str,
    /// The plural noun for its keys in messages.
    pub keys: &'a str,
    pub quiet: bool,
}

impl NewSet<'_> {
    /// Builds it for the keys of these inputs. Returns the limit at which it is full, if it has one.
    pub fn for_inputs(
        &self,
        inputs: &[Input],
        reading: &ReadOptions,
        sampled: &dyn SampleUnit,
    ) -> Result<(KeySet, Option<FullLimit>), Error> {
        let Self { size, growth, keep, exact, .. } = *self;
        // The inputs are sampled only if the choice depends on them.
        let limits_memory = growth.memory.is_some() && !keep && !exact && size.fpr.is_none();
        let limits_memory = limits_memory && matches!(growth.when_full, None | Some(WhenFull::Warn));
        let asked = size.expected_keys.is_none() && (growth.memory.is_none() || limits_memory);
        let go_on = reading.on_error != OnError::Fail;
        let keys = if asked {
            estimate::estimate_inputs(inputs, reading.line_end(), sampled, go_on)?
        } else {
            Err(String::new())
        };
        let choice = choose(size, growth, keep, &keys)?;
        if let (Some(memory), Ok(Estimate { lines, .. })) = (growth.memory, keys) {
            self.check_room(memory, &choice, lines)?;
        }
        let (keys, fpr) = choice.start_size();
        let (set, limit) = choice.build(size.seed(), self.key_name)?;
        if growth.memory.is_some() && !self.quiet {
            let (size, rate) = (readable_size(set.memory_bytes()), readable(fpr));
            let more = if limit.is_none() { "; more take more memory" } else { "" };
            print_message(&format!(
                "a filter of {size}: up to {keys} distinct {} at a false-positive rate of {rate}{more}",
                self.keys
            ));
        }
        Ok((set, limit))
    }

    /// Returns the keys for which its first filter has room, and its rate, if the options give its memory.
    pub fn room(&self) -> Result<Option<(u64, f64)>, Error> {
        let given = self.growth.memory.map(|_| choose(self.size, self.growth, self.keep, &Err(String::new())));
        Ok(given.transpose()?.map(|choice| choice.start_size()))
    }

    /// Refuses a memory that has no room for this many keys at the default rate.
    fn check_room(&self, memory: usize, choice: &SizePlan, keys: u64) -> Result<(), Error> {
        let (room, fpr) = choice.start_size();
        if keys <= room {
            return Ok(());
        }
        let best = BloomFilter::builder().memory(memory).expected_keys(keys).plan()?;
        let enough = LocalSet::plan_estimated(keys, fpr)?;
        Err(Error::new(format!(
            "a filter of {} is too small for the {keys} {} of the inputs: its false-positive rate would be {}, not {}; give \
             -m {}K or more, a rate with -p, or --when-full grow for a filter that takes more memory when it is full; if few of \
             them are distinct, give their number with -n instead of -m",
            readable_size(memory),
            self.keys,
            readable(best.expected_fpr(keys)),
            readable(fpr),
            enough.memory_bytes().div_ceil(1024),
        )))
    }
}

/// Chooses by the options, and by the number of keys in the inputs, or the name of an input whose number is unknown.
/// `keep` is true if the set outlives the run.
fn choose(
    size: &SizeOptions,
    growth: &GrowthOptions,
    keep: bool,
    found: &Result<Estimate, String>,
) -> Result<SizePlan, Error> {
    let GrowthOptions { memory, when_full } = growth;
    let stop = *when_full == Some(WhenFull::Stop);
    // A number of keys or of bytes is an estimate, even if the user gives it.
    let grows = when_full.is_none_or(|when| when == WhenFull::Grow);
    let keys = size.expected_keys.map_or_else(|| found.clone().map(|estimate| estimate.lines), Ok);
    let fpr = size.fpr();
    match (*memory, grows) {
        (None, false) => for_keys(size, keys, stop),
        // A state outlives the known inputs, and is a file of one kind from its start.
        (None, true) if keep => Ok(SizePlan::Scalable { keys: keys.ok(), fpr }),
        (None, true) => match (size.expected_keys, keys) {
            (Some(keys), _) => for_estimate(size, keys, false),
            (None, keys) if ForecastFilter::check(keys.clone().ok(), fpr).is_ok() => {
                Ok(SizePlan::Forecast { estimate: found.clone().ok(), fpr })
            }
            // A rate near the lowest that 64-bit hashes can keep leaves no share for growth.
            (None, Ok(keys)) => for_keys(size, Ok(keys), true),
            (None, Err(_)) => Ok(SizePlan::Scalable { keys: None, fpr }),
        },
        (Some(bytes), true) if keep => Ok(SizePlan::Scalable { keys: Some(first_keys(bytes, fpr)?), fpr }),
        (Some(bytes), true) => {
            // Later filters need a share of the rate.
            let first = LocalSet::SHARE * fpr;
            let plan = BloomFilter::builder().memory(bytes).false_positive_rate(first).plan()?;
            Ok(SizePlan::Estimated { plan, keys: plan.capacity(first).max(1), fpr })
        }
        (Some(bytes), false) => {
            let plan = BloomFilter::builder().memory(bytes).false_positive_rate(fpr).plan()?;
            Ok(SizePlan::Sized { plan, keys: None, fpr, limit: FullLimit::new(plan.capacity(fpr), fpr, stop) })
        }
    }
}

/// Returns the keys of the first filter of a set that grows from this size and keeps this rate.
fn first_keys(bytes: usize, fpr: f64) -> Result<u64, Error> {
    let first = LocalSet::SCALABLE_SHARE * fpr;
    let plan = BloomFilter::builder().memory(bytes).false_positive_rate(first).plan()?;
    Ok(plan.capacity(first).max(1))
}

/// Chooses a filter for a number of keys that may be wrong. With `exact` it has the size of a filter that does not
/// grow, which files need for a merge; if it does grow, it is not saved.
fn for_estimate(size: &SizeOptions, keys: u64, exact: bool) -> Result<SizePlan, Error> {
    let exact = exact.then(|| BloomFilter::builder().expected_keys(keys).false_positive_rate(size.fpr()).plan());
    match LocalSet::plan_estimated(keys, size.fpr()).and_then(|plan| exact.unwrap_or(Ok(plan))) {
        Ok(plan) => Ok(SizePlan::Estimated { plan, keys, fpr: size.fpr() }),
        // A rate near the lowest that 64-bit hashes can keep leaves no share for growth.
        Err(_) => for_keys(size, Ok(keys), true),
    }
}

/// Chooses a filter for a number of keys, with which it is full.
fn for_keys(size: &SizeOptions, keys: Result<u64, String>, stop: bool) -> Result<SizePlan, Error> {
    let unknown = |input| {
        Error::new(format!(
            "cannot estimate how many lines {input} has, because it is not a file; give the number of distinct lines with -n"
        ))
    };
    let keys = keys.map_err(unknown)?;
    let plan = BloomFilter::builder().expected_keys(keys).false_positive_rate(size.fpr()).plan()?;
    let limit = FullLimit::new(keys, size.fpr(), stop);
    Ok(SizePlan::Sized { plan, keys: Some(keys), fpr: size.fpr(), limit })
}

impl SizePlan {
    /// Returns the keys that its first filter is for, and the rate of the whole.
    pub fn start_size(&self) -> (u64, f64) {
        match self {
            Self::Sized { limit, .. } => (limit.keys, limit.fpr),
            Self::Estimated { keys, fpr, .. } => (*keys, *fpr),
            Self::Forecast { estimate, fpr } => (estimate.as_ref().map_or(FIRST, |estimate| estimate.lines), *fpr),
            Self::Scalable { keys, fpr } => (keys.unwrap_or(FIRST), *fpr),
        }
    }

    /// Builds the set.
    pub fn build(self, seed: u64, key_name: &str) -> Result<(KeySet, Option<FullLimit>), Error> {
        let of_plan = |plan: &Plan| BloomFilter::builder().memory(plan.memory_bytes()).probes(plan.probes());
        let (set, limit) = match self {
            Self::Sized { plan, keys, fpr, limit } => {
                let builder = keys.into_iter().fold(of_plan(&plan), Builder::expected_keys);
                let builder = builder.false_positive_rate(fpr).seed(seed).key_name(key_name);
                (LocalSet::from(builder.build()?), Some(limit))
            }
            Self::Estimated { plan, keys, fpr } => {
                let builder = of_plan(&plan).expected_keys(keys).false_positive_rate(fpr);
                (LocalSet::estimated(builder.seed(seed).key_name(key_name).build()?, keys, fpr), None)
            }
            Self::Forecast { estimate, fpr } => {
                let lines = estimate.as_ref().map(|estimate| estimate.lines);
                let sampled = estimate.and_then(|estimate| estimate.distinct);
                (ForecastFilter::new(lines, sampled, fpr, seed, key_name).into(), None)
            }
            Self::Scalable { keys, fpr } => {
                let builder =
                    ScalableBloomFilter::builder().expected_keys(keys.unwrap_or(FIRST)).false_positive_rate(fpr);
                let filter = builder.seed(seed).key_name(key_name).build()?;
                (if keys.is_some() { filter.into() } else { LocalSet::for_unknown(filter) }, None)
            }
        };
        Ok((KeySet::Local(set), limit))
    }
}

/// Returns the limit of a saved set. Refuses options that ask for another set than the one that was saved, or shrunk before.
pub fn limit_of_state(
    size: &SizeOptions,
    growth: &GrowthOptions,
    state: &Path,
    set: &KeySet,
) -> Result<Option<FullLimit>, Error> {
    let GrowthOptions { memory, when_full } = growth;
    let refused = |reason: String| {
        Err(Error::new(format!(
            "cannot use the state {state:?}: {reason}; leave out the option that differs, or choose another state"
        )))
    };
    let seed = set.hasher().seed();
    if let Some(asked) = size.seed.filter(|asked| *asked != seed) {
        return refused(format!("its seed is {seed}, not {asked}"));
    }
    if let Some(filter) = set.local().and_then(LocalSet::growing) {
        let rate = filter.false_positive_rate();
        let has = filter.expected_keys();
        if matches!(when_full, Some(WhenFull::Warn | WhenFull::Stop)) {
            return refused("it grows and is never full".to_owned());
        }
        if size.fpr.is_some_and(|wanted| rate.is_none_or(|rate| (rate / wanted - 1.0).abs() > ROUNDING)) {
            return refused(format!("it keeps a false-positive rate of {}", readable(rate.unwrap_or(f64::NAN))));
        }
        // A state that was shrunk has another size than the options asked for.
        if filter.stages()[0].expected_keys() != has {
            return Ok(None);
        }
        let asked = match memory {
            Some(bytes) => Some((first_keys(*bytes, rate.unwrap_or(size.fpr()))?, "--memory")),
            None => size.expected_keys.map(|keys| (keys, "-n")),
        };
        return match asked.filter(|(keys, _)| Some(*keys) != has) {
            Some((_, option)) => refused(format!(
                "it has its size, for {} keys at first, and {option} asks for another",
                has.unwrap_or_default()
            )),
            None => Ok(None),
        };
    }
    let Some(filter) = set.local().and_then(LocalSet::fixed) else { return Ok(None) };
    if *when_full == Some(WhenFull::Grow) {
        return refused("its size is fixed, so it cannot grow".to_owned());
    }
    let rate = filter.false_positive_rate();
    if let Some((has, asked)) = rate.zip(size.fpr).filter(|(has, asked)| has != asked) {
        return refused(format!("it is made for a false-positive rate of {has}, not {asked}"));
    }
    // A set that was shrunk records how many keys its size allows. The options ask for the size before.
    let is_shrunk = rate.is_some_and(|rate| filter.expected_keys() == Some(filter.capacity(rate)));
    let folded = |blocks: usize| {
        let folds = blocks / filter.block_count();
        is_shrunk && folds.is_power_of_two() && folds * filter.block_count() == blocks
    };
    let differs = |blocks: usize| blocks != filter.block_count() && !folded(blocks);
    if memory.is_some_and(|bytes| differs(bytes / 64)) {
        return refused(format!("it has {} bytes", filter.memory_bytes()));
    }
    if let Some(keys) = size.expected_keys {
        let plan = BloomFilter::builder().expected_keys(keys).false_positive_rate(size.fpr()).plan()?;
        if differs(plan.block_count()) || plan.probes() != filter.probes() {
            let (asked, has) = (plan.memory_bytes(), filter.memory_bytes());
            let options = if size.fpr.is_some() { "-n and -p ask" } else { "-n asks" };
            return refused(format!("{options} for {asked} bytes, but it has {has}"));
        }
    }
    // The options override the file. If neither has keys or a rate, options that ask for a limit use the default rate.
    let at_rate = |fpr| (filter.capacity(fpr), fpr);
    let limited = size.fpr.is_some() || memory.is_some() || when_full.is_some();
    let asked = size.expected_keys.filter(|_| !is_shrunk).map(|keys| (keys, size.fpr()));
    let full = asked.or(set.made_for());
    let full = full.or_else(|| limited.then(|| at_rate(size.fpr())));
    Ok(full.map(|(keys, fpr)| FullLimit::from_loaded(set, keys, fpr, *when_full == Some(WhenFull::Stop))))
}

#[cfg(test)]
mod tests;
