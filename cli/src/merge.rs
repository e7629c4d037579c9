//! `bloomline merge`: one filter with the keys of several.

use crate::cli::MergeOptions;
use crate::error::Error;
use crate::files::{self, Origin};
use crate::set::KeySet;
use std::path::PathBuf;
use std::process::ExitCode;

/// Runs the command.
pub fn run(options: &MergeOptions) -> Result<ExitCode, Error> {
    let (first, others) = options.filters.split_first().expect("clap asks for one");
    let origins: Vec<Origin> = options.filters.iter().map(|path| Origin::of(path)).collect();
    files::check_target(&options.output, &origins)?;

    let load = |path: &PathBuf| match KeySet::load(path)? {
        KeySet::Sized(filter) => Ok(filter),
        KeySet::Shared(_) => unreachable!("it was loaded from a file"),
        KeySet::Scalable(_) => Err(Error::MergeScalable { filter: path.clone() }),
    };
    let mut merged = load(first)?;
    for path in others {
        let filter = load(path)?;
        let differ = |source| Error::Merge { into: first.clone(), filter: path.clone(), source };
        merged.union(&filter).map_err(differ)?;
    }
    KeySet::Sized(merged).save(&options.output)?;
    Ok(ExitCode::SUCCESS)
}
