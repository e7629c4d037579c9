//! `bloomline merge`: one filter with the keys of several.

use crate::cli::Merge;
use crate::error::Error;
use crate::files;
use crate::lines::input::Origin;
use crate::set::Seen;
use std::path::PathBuf;
use std::process::ExitCode;

/// Runs the command.
pub fn run(options: &Merge) -> Result<ExitCode, Error> {
    let (first, others) = options.filters.split_first().expect("clap asks for one");
    let origins: Vec<Origin> = options.filters.iter().map(|path| Origin::of(path)).collect();
    files::check_target(&options.output, &origins)?;

    let load = |path: &PathBuf| match Seen::load(path)? {
        Seen::Sized(filter) => Ok(filter),
        Seen::Shared(_) => unreachable!("it was loaded from a file"),
        Seen::Growing(_) => Err(Error::MergeGrowing { filter: path.clone() }),
    };
    let mut merged = load(first)?;
    for path in others {
        let filter = load(path)?;
        let differ = |source| Error::Merge { into: first.clone(), filter: path.clone(), source };
        merged.union(&filter).map_err(differ)?;
    }
    Seen::Sized(merged).save(&options.output)?;
    Ok(ExitCode::SUCCESS)
}
