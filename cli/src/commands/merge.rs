//! `bloomline merge`: combines several filters into one with the keys of all.

use crate::error::{Error, SUCCESS};
use crate::file_lock::FileLock;
use crate::files::{self, Origin};
use crate::messages::warn;
use crate::options::MergeOptions;
use crate::seen::local::Local;
use crate::seen::set::KeySet;
use bloomline::ScalableBloomFilter;
use std::mem;

/// Runs the command.
pub fn run(options: &MergeOptions) -> Result<u8, Error> {
    let (first, others) = options.filters.split_first().expect("clap asks for one");
    let origins: Vec<Origin> = options.filters.iter().map(|path| Origin::of(path)).collect();
    files::check_target(&options.output, &origins)?;
    let _lock = FileLock::beside(&options.output, options.wait)?;

    let mut merged = Local::load(first)?;
    for path in others {
        let mut other = Local::load(path)?;
        let (ours, theirs) = (merged.key_name(), other.key_name());
        if ours != theirs && !ours.is_empty() && !theirs.is_empty() {
            let (ours, theirs) = (ours.to_owned(), theirs.to_owned());
            return Err(Error::MergeKeys { into: first.clone(), filter: path.clone(), ours, theirs });
        }
        if ours.is_empty() && !theirs.is_empty() {
            // The merged filter keeps the name.
            mem::swap(&mut merged, &mut other);
        }
        let united =
            merged.union(&other).ok_or_else(|| Error::MergeKinds { into: first.clone(), filter: path.clone() })?;
        united.map_err(|source| Error::Merge { into: first.clone(), filter: path.clone(), source })?;
    }
    let grown = merged.growing().and_then(ScalableBloomFilter::false_positive_rate);
    let merged = KeySet::Local(merged);
    match (options.fpr, grown) {
        // The rate that the files promise, because they can grow further.
        (Some(asked), Some(rate)) if rate > asked => return Err(Error::MergeRate { rate, asked }),
        (Some(asked), None) if merged.current_fpr() > asked => {
            return Err(Error::MergeRate { rate: merged.current_fpr(), asked });
        }
        (None, Some(rate)) if !others.is_empty() => return Err(Error::MergeGrown { rate }),
        (None, None) => {
            if let Some(excess) = merged.made_for().and_then(|(keys, _)| merged.excess(keys)) {
                warn(&format!("{excess}; build the filters with -n for the keys of all, and with --no-shrink"));
            }
        }
        _ => {}
    }
    merged.save(&options.output)?;
    Ok(SUCCESS)
}
