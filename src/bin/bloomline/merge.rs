//! `bloomline merge`: one filter with the keys of several.

use crate::cli::Merge;
use crate::error::Error;
use crate::filter_file;
use crate::input::Origin;
use std::process::ExitCode;

/// Runs the command.
pub fn run(options: &Merge) -> Result<ExitCode, Error> {
    let (first, others) = options.filters.split_first().expect("clap asks for one");
    let origins: Vec<Origin> = options.filters.iter().map(|path| Origin::of(path)).collect();
    filter_file::check_target(&options.output, &origins)?;

    let mut merged = filter_file::load(first)?;
    for path in others {
        let filter = filter_file::load(path)?;
        let differ = |source| Error::Merge { into: first.clone(), filter: path.clone(), source };
        merged.union(&filter).map_err(differ)?;
    }
    filter_file::save(&merged, &options.output)?;
    Ok(ExitCode::SUCCESS)
}
