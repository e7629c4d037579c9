//! `bloomline merge`: combines several filters into one with the keys of all.

use crate::options::MergeOptions;
use crate::seen::local_set::LocalSet;
use crate::seen::set::KeySet;
use crate::system::error::{Error, SUCCESS};
use crate::system::file_lock::FileLock;
use crate::system::files::{self, NamedFile};
use crate::terminal::messages::warn;
use bloomline::ScalableBloomFilter;
use std::mem;

/// Runs the command.
pub fn run(options: &MergeOptions) -> Result<u8, Error> {
    let (first, others) = options.filters.split_first().expect("clap asks for one");
    let origins: Vec<NamedFile> = options.filters.iter().map(|path| NamedFile::from_path(path)).collect();
    files::check_target(&options.output, &origins)?;
    let mut merged = LocalSet::load(first)?;
    for path in others {
        let mut other = LocalSet::load(path)?;
        let (ours, theirs) = (merged.key_name(), other.key_name());
        if ours != theirs && !ours.is_empty() && !theirs.is_empty() {
            return Err(Error::new(format!(
                "cannot merge {path:?} into {first:?}: their keys are \"{theirs}\" and \"{ours}\"; merge only filters that were made \
                 with the same key options"
            )));
        }
        if ours.is_empty() && !theirs.is_empty() {
            // The merged filter keeps the name.
            mem::swap(&mut merged, &mut other);
        }
        let kinds = "one of them grows, and the other has a fixed size; merge filters of one kind";
        let united = merged.union(&other).map_or(Err(kinds.to_owned()), |united| united.map_err(|why| why.to_string()));
        united.map_err(|why| Error::new(format!("cannot merge {path:?} into {first:?}: {why}")))?;
    }
    let grown = merged.growing().and_then(ScalableBloomFilter::false_positive_rate);
    let merged = KeySet::Local(merged);
    match (options.fpr, grown) {
        // The rate that the files promise, because they can grow further.
        (Some(asked), Some(rate)) if rate > asked => return Err(rate_too_low(rate, asked)),
        (Some(asked), None) if merged.current_fpr() > asked => {
            return Err(rate_too_low(merged.current_fpr(), asked));
        }
        (None, Some(rate)) if !others.is_empty() => {
            return Err(Error::new(format!(
                "the merged filter has a false-positive rate of {rate:.2e}, for filters that grew keep the rates of all; give -p {:.2e} \
                 to accept that",
                rate * 1.005
            )));
        }
        (None, None) => {
            if let Some(overfull_warning) = merged.made_for().and_then(|(keys, _)| merged.overfull_warning(keys)) {
                warn(&format!(
                    "{overfull_warning}; build the filters with -n for the keys of all, and with --no-shrink"
                ));
            }
        }
        _ => {}
    }
    let _lock = FileLock::beside(&options.output, options.wait)?;
    merged.save(&options.output)?;
    Ok(SUCCESS)
}

/// Returns the error for a rate above the one that is asked for.
fn rate_too_low(rate: f64, asked: f64) -> Error {
    Error::new(format!(
        "the merged filter has a false-positive rate of {rate:.2e}, and -p asks for {asked} at most; merge fewer filters, or give a \
         higher -p"
    ))
}
