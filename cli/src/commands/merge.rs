//! `bloomline merge`: one filter with the keys of several.

use crate::error::{Error, SUCCESS};
use crate::files::{self, Origin};
use crate::lock::Lock;
use crate::messages::warn;
use crate::options::MergeOptions;
use crate::seen::KeySet;
use crate::seen::local::Local;
use std::mem;
use std::path::PathBuf;

/// Runs the command.
pub fn run(options: &MergeOptions) -> Result<u8, Error> {
    let (first, others) = options.filters.split_first().expect("clap asks for one");
    let origins: Vec<Origin> = options.filters.iter().map(|path| Origin::of(path)).collect();
    files::check_target(&options.output, &origins)?;
    let _lock = Lock::of(&options.output, options.wait)?;

    let load =
        |path: &PathBuf| Local::load(path)?.into_fixed().ok_or_else(|| Error::MergeScalable { filter: path.clone() });
    let mut merged = load(first)?;
    for path in others {
        let mut filter = load(path)?;
        let (ours, theirs) = (merged.key_name(), filter.key_name());
        if ours.is_empty() && !theirs.is_empty() {
            // The name stays.
            mem::swap(&mut merged, &mut filter);
        } else if ours != theirs && !theirs.is_empty() {
            let (ours, theirs) = (ours.to_owned(), theirs.to_owned());
            return Err(Error::MergeKeys { into: first.clone(), filter: path.clone(), ours, theirs });
        }
        let differ = |source| Error::Merge { into: first.clone(), filter: path.clone(), source };
        merged.union(&filter).map_err(differ)?;
    }
    let merged = KeySet::Local(merged.into());
    if let Some(excess) = merged.made_for().and_then(|(keys, _)| merged.excess(keys)) {
        warn(&format!("{excess}; build the filters with -n for the keys of all, and with --no-shrink"));
    }
    merged.save(&options.output)?;
    Ok(SUCCESS)
}
