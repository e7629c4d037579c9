//! The choice of the set that a command uses: its size, and whether it grows.

use crate::options::values::OnError;
use crate::options::{BuildOptions, GrowthOptions, ReadOptions, SharedWriteOptions, SizeOptions, WhenFull};
use crate::read::estimate::{self, SampleUnit};
use crate::read::inputs::Input;
use crate::seen::local_set::LocalSet;
use crate::seen::remote_set::{Address, RemoteSet};
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

/// A set in memory that is not built yet.
#[derive(Debug, PartialEq)]
pub enum SizePlan {
    /// One filter of this size, the keys and the rate that it was chosen for, and the limit at which it is full.
    Sized { plan: Plan, keys: Option<u64>, fpr: Option<f64>, limit: FullLimit },
    /// A filter for this number of keys, with this plan, and more filters if more keys arrive. Together they keep the rate.
    Estimated { plan: Plan, keys: u64, fpr: f64 },
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
        let set = KeySet::load_for(&options.output, key_name, kinds)?;
        let limit = set.made_for().map(|(keys, fpr)| FullLimit::from_loaded(&set, keys, fpr, false));
        return Ok((set, limit, false));
    }
    let keys = match size.expected_keys {
        Some(keys) => Ok(keys),
        None => {
            estimate::estimate_inputs(inputs, reading.end(), &SampleUnit::Lines, reading.on_error != OnError::Fail)?
        }
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
        sampled: &SampleUnit,
    ) -> Result<(KeySet, Option<FullLimit>), Error> {
        let Self { size, growth, keep, .. } = *self;
        // The inputs are sampled only if the choice depends on them.
        let asked = size.expected_keys.is_none() && (growth.memory.is_none() || !keep);
        let go_on = reading.on_error != OnError::Fail;
        let keys =
            if asked { estimate::estimate_inputs(inputs, reading.end(), sampled, go_on)? } else { Err(String::new()) };
        let choice = choose(size, growth, keep, keys)?;
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
}

/// Chooses by the options, and by the number of keys in the inputs, or the name of an input that does not tell it.
/// `keep` is true if the set outlives the run.
fn choose(
    size: &SizeOptions,
    growth: &GrowthOptions,
    keep: bool,
    found: Result<u64, String>,
) -> Result<SizePlan, Error> {
    let GrowthOptions { memory, when_full } = growth;
    let stop = *when_full == Some(WhenFull::Stop);
    // A number of keys or of bytes is an estimate, even if the user gives it.
    let grows = when_full.is_none_or(|when| when == WhenFull::Grow);
    let keys = size.expected_keys.map_or(found, Ok);
    match (*memory, grows) {
        (None, false) => for_keys(size, keys, stop),
        // A state outlives the known inputs, and is a file of one kind from its start.
        (None, true) => match keys {
            Ok(keys) if !keep => for_estimate(size, keys, false),
            keys => Ok(SizePlan::Scalable { keys: keys.ok(), fpr: size.fpr() }),
        },
        (Some(bytes), true) if keep => {
            Ok(SizePlan::Scalable { keys: Some(first_keys(bytes, size.fpr())?), fpr: size.fpr() })
        }
        (Some(bytes), grows) => {
            // The best rate for the keys, if they are known and no rate is given, or else as many keys as the rate allows.
            let builder = BloomFilter::builder().memory(bytes);
            // Later filters need a share of the rate.
            let share = if grows { LocalSet::SHARE } else { 1.0 };
            let (plan, keys, fpr) = match keys {
                Ok(keys) if !keep && size.fpr.is_none() => (builder.expected_keys(keys).plan()?, Some(keys), None),
                _ => (builder.false_positive_rate(share * size.fpr()).plan()?, None, Some(size.fpr())),
            };
            if grows {
                let keys = keys.unwrap_or_else(|| plan.capacity(share * size.fpr()).max(1));
                let fpr = fpr.unwrap_or(plan.expected_fpr(keys) / share);
                // No rate would be left for the filters after the first.
                return if fpr < 1.0 {
                    Ok(SizePlan::Estimated { plan, keys, fpr })
                } else {
                    Err(Error::new(format!(
                        "{bytes} bytes are too few for a filter of {keys} keys; give more with --memory, or give a rate with -p, \
                         so that a full filter takes more memory"
                    )))
                };
            }
            let full = fpr.or(keys.map(|keys| plan.expected_fpr(keys))).unwrap_or(size.fpr());
            Ok(SizePlan::Sized { plan, keys, fpr, limit: FullLimit::new(plan.capacity(full), full, stop) })
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
    Ok(SizePlan::Sized { plan, keys: Some(keys), fpr: Some(size.fpr()), limit })
}

impl SizePlan {
    /// Returns the keys that its first filter is for, and the rate of the whole.
    pub fn start_size(&self) -> (u64, f64) {
        match self {
            Self::Sized { limit, .. } => (limit.keys, limit.fpr),
            Self::Estimated { keys, fpr, .. } => (*keys, *fpr),
            Self::Scalable { keys, fpr } => (keys.unwrap_or(FIRST), *fpr),
        }
    }

    /// Builds the set.
    pub fn build(self, seed: u64, key_name: &str) -> Result<(KeySet, Option<FullLimit>), Error> {
        let of_plan = |plan: &Plan| BloomFilter::builder().memory(plan.memory_bytes()).probes(plan.probes());
        let (set, limit) = match self {
            Self::Sized { plan, keys, fpr, limit } => {
                let builder = keys.into_iter().fold(of_plan(&plan), Builder::expected_keys);
                let builder = fpr.into_iter().fold(builder, Builder::false_positive_rate);
                (LocalSet::from(builder.seed(seed).key_name(key_name).build()?), Some(limit))
            }
            Self::Estimated { plan, keys, fpr } => {
                let builder = of_plan(&plan).expected_keys(keys).false_positive_rate(fpr);
                (LocalSet::estimated(builder.seed(seed).key_name(key_name).build()?, keys, fpr), None)
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

/// Returns the set on a server: with -n a filter of this size, otherwise the existing one, or one that grows. Queries
/// its statistics if `stats`. Refuses keys whose kinds differ from those of the set.
pub fn set_on_server(
    options: &SizeOptions,
    writing: &SharedWriteOptions,
    stats: bool,
    address: &Address,
    kinds: &KeyKinds,
) -> Result<KeySet, Error> {
    let mut shared = RemoteSet::for_writer(address, writing, options)?;
    shared.check_kinds(address.name, kinds)?;
    if stats {
        shared.refresh()?;
    }
    Ok(KeySet::Shared(shared.into()))
}

/// Returns the limit of a saved set. Refuses options that ask for another set, unless the run that shrank it is resumed.
pub fn limit_of_state(
    size: &SizeOptions,
    growth: &GrowthOptions,
    resume: bool,
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
        let (rate, has) = (filter.false_positive_rate(), filter.expected_keys());
        if matches!(when_full, Some(WhenFull::Warn | WhenFull::Stop)) {
            return refused("it grows and is never full".to_owned());
        }
        // A run that shrank its state is at its end. Resuming it does nothing.
        if resume && filter.stages()[0].expected_keys() != has {
            return Ok(None);
        }
        if size.fpr.is_some_and(|wanted| Some(wanted) != rate) {
            return refused(format!("it keeps a false-positive rate of {}", readable(rate.unwrap_or(f64::NAN))));
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
    let folded = |blocks: usize| {
        let folds = blocks / filter.block_count();
        resume && folds.is_power_of_two() && folds * filter.block_count() == blocks
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
    let full = size.expected_keys.map(|keys| (keys, size.fpr())).or(set.made_for());
    let full = full.or_else(|| limited.then(|| at_rate(size.fpr())));
    Ok(full.map(|(keys, fpr)| FullLimit::from_loaded(set, keys, fpr, *when_full == Some(WhenFull::Stop))))
}

#[cfg(test)]
mod tests;
