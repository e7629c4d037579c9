//! Which filter a command takes: how large, and whether it grows.

use crate::cli::{Dedup, Sizing, WhenFull};
use crate::error::Error;
use crate::figures::{readable, readable_size};
use crate::lines::input::Input;
use crate::output::say;
use crate::set::Seen;
use crate::set::inserter::{Inserter, Limit};
use crate::set::shared::Shared;
use bloomline::redis::RedisServer;
use bloomline::{BloomFilter, Builder, ScalableBloomFilter};

/// Keys of the first filter where nothing tells how many there will be.
const FIRST: u64 = 1 << 20;

/// For the keys that the user or the inputs tell.
pub fn known(options: &Sizing, inputs: &[Input], end: u8) -> Result<Inserter, Error> {
    let keys = match options.expected_keys {
        Some(keys) => keys,
        None => estimate(inputs, end)?.map_err(|input| Error::KeysUnknown { input })?,
    };
    let filter = BloomFilter::builder().expected_keys(keys).false_positive_rate(options.fpr());
    let filter = filter.seed(options.seed).build()?;
    Ok(Inserter::new(Seen::Sized(filter), Some(Limit { planned: keys, keys, fpr: options.fpr(), stop: false })))
}

/// The filter of `dedup`: that of the state, or a new one.
pub fn of_dedup(options: &Dedup, inputs: &[Input]) -> Result<Inserter, Error> {
    if let Some(filter) = options.sharing.filter()? {
        return of_shared(options, filter);
    }
    if let Some(state) = options.state.as_deref().filter(|state| state.exists()) {
        return of_state(options, Seen::load(state)?);
    }
    let end = options.reading.end();
    let fpr = options.max_fpr.unwrap_or(options.sizing.fpr());
    if let Some(bytes) = options.memory {
        // A state outlives the inputs that are known.
        let keys = if options.state.is_some() { None } else { estimate(inputs, end)?.ok() };
        return of_memory(options, bytes, keys);
    }
    let keys = match options.sizing.expected_keys {
        Some(keys) => Ok(keys),
        None => estimate(inputs, end)?,
    };
    let known = options.sizing.expected_keys.is_some() || keys.is_ok() && options.state.is_none();
    let seed = options.sizing.seed;
    match options.when_full {
        Some(WhenFull::Grow) => {}
        None if !known => {}
        when => {
            let keys = keys.map_err(|input| Error::KeysUnknown { input })?;
            let builder = BloomFilter::builder().expected_keys(keys).false_positive_rate(options.sizing.fpr());
            let filter = builder.seed(seed).build()?;
            let keys = options.max_fpr.map_or(keys, |fpr| filter.capacity(fpr));
            let limit = Limit { planned: keys, keys, fpr, stop: when == Some(WhenFull::Stop) };
            return Ok(Inserter::new(Seen::Sized(filter), Some(limit)));
        }
    }
    let first: Builder<ScalableBloomFilter> = ScalableBloomFilter::builder();
    let first = first.expected_keys(keys.unwrap_or(FIRST)).false_positive_rate(fpr);
    Ok(Inserter::new(Seen::Growing(first.seed(seed).build()?), None))
}

/// The filter on a server: with -n the one of this size, and without the one that is there.
fn of_shared(options: &Dedup, (server, name): (RedisServer, &str)) -> Result<Inserter, Error> {
    let Sizing { expected_keys, fpr, seed } = options.sizing;
    if fpr.is_some() && expected_keys.is_none() {
        return Err(Error::SharedOfRate);
    }
    let fpr = options.sizing.fpr();
    let size = |keys| BloomFilter::builder().expected_keys(keys).false_positive_rate(fpr).seed(seed);
    let size = expected_keys.map(size);
    let size = size.as_ref().map(|size| (size, fpr));
    let mut shared = Shared::of_writer((&server, name), &options.writing, size, seed)?;
    if options.stats.is_some() {
        shared.refresh()?;
    }
    Ok(Inserter::new(Seen::Shared(shared.into()), None))
}

/// A filter of this size, with the rate that the number of keys allows, or for as many keys as the rate allows.
fn of_memory(options: &Dedup, bytes: usize, keys: Option<u64>) -> Result<Inserter, Error> {
    if options.when_full == Some(WhenFull::Grow) {
        return Err(Error::GrowInMemory);
    }
    let builder = BloomFilter::builder().memory(bytes).seed(options.sizing.seed);
    let keys = keys.filter(|_| options.sizing.fpr.is_none());
    let builder = match keys {
        Some(keys) => builder.expected_keys(keys),
        None => builder.false_positive_rate(options.sizing.fpr()),
    };
    let filter: BloomFilter = builder.build()?;
    let fpr = match keys {
        Some(keys) => filter.expected_fpr(keys),
        None => options.sizing.fpr(),
    };
    let fpr = options.max_fpr.unwrap_or(fpr);
    let keys = filter.capacity(fpr);
    if !options.quiet {
        let size = readable_size(filter.memory_bytes());
        say(&format!(
            "bloomline: a filter of {size}: up to {keys} distinct lines at a false-positive rate of {}",
            readable(fpr)
        ));
    }
    let limit = Limit { planned: keys, keys, fpr, stop: options.when_full == Some(WhenFull::Stop) };
    Ok(Inserter::new(Seen::Sized(filter), Some(limit)))
}

/// A filter that was saved. What the options say of another one is refused.
fn of_state(options: &Dedup, seen: Seen) -> Result<Inserter, Error> {
    let refused = |reason: String| Err(Error::State { path: options.state.clone().unwrap_or_default(), reason });
    let filter = &seen.stages()[0];
    if filter.seed() != options.sizing.seed {
        return refused(format!("its seed is {}, and not {}", filter.seed(), options.sizing.seed));
    }
    let fpr = match &seen {
        Seen::Growing(filter) => {
            if options.sizing.expected_keys.is_some() && options.when_full != Some(WhenFull::Grow)
                || options.memory.is_some()
            {
                return refused("it grows, and -n and --memory ask for a fixed size".to_owned());
            }
            if matches!(options.when_full, Some(WhenFull::Warn | WhenFull::Stop)) {
                return refused("it grows and is never full".to_owned());
            }
            let rate = filter.false_positive_rate();
            if options.max_fpr.or(options.sizing.fpr).is_some_and(|wanted| wanted != rate) {
                return refused(format!("it keeps a false-positive rate of {}", readable(rate)));
            }
            return Ok(Inserter::new(seen, None));
        }
        Seen::Shared(_) => unreachable!("a state is a file"),
        Seen::Sized(filter) => {
            if options.when_full == Some(WhenFull::Grow) {
                return refused("its size is fixed, so it cannot grow".to_owned());
            }
            if options.memory.is_some_and(|bytes| bytes / 64 != filter.block_count()) {
                return refused(format!("it has {} bytes", filter.memory_bytes()));
            }
            if let Some(keys) = options.sizing.expected_keys {
                let plan =
                    BloomFilter::builder().expected_keys(keys).false_positive_rate(options.sizing.fpr()).plan()?;
                if (plan.block_count(), plan.probes()) != (filter.block_count(), filter.probes()) {
                    return refused(format!(
                        "-n and -p ask for {} bytes, and it has {}",
                        plan.memory_bytes(),
                        filter.memory_bytes()
                    ));
                }
            }
            let sized =
                options.sizing.expected_keys.is_some() || options.memory.is_some() || options.when_full.is_some();
            options.max_fpr.or(options.sizing.fpr).or(sized.then(|| options.sizing.fpr()))
        }
    };
    // A file does not tell which rate its filter was made for.
    let keys_before = filter.estimated_keys();
    let planned = options.sizing.expected_keys.filter(|_| options.max_fpr.is_none());
    let limit = fpr.map(|fpr| {
        let planned = planned.unwrap_or_else(|| filter.capacity(fpr));
        let keys = (planned as f64 - keys_before).max(0.0) as u64;
        Limit { planned, keys, fpr, stop: options.when_full == Some(WhenFull::Stop) }
    });
    Ok(Inserter::new(seen, limit))
}

/// The lines of all inputs, or the name of one that does not tell.
fn estimate(inputs: &[Input], end: u8) -> Result<Result<u64, String>, Error> {
    let mut sum = 0;
    for input in inputs {
        match input.estimate_lines(end)? {
            Some(lines) => sum += lines,
            None => return Ok(Err(input.origin().name().to_owned())),
        }
    }
    Ok(Ok(sum.max(1)))
}
