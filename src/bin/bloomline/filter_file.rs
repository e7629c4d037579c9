//! The files of filters: loaded, saved, and checked before the work that leads to saving.

use crate::error::Error;
use crate::input::{self, Origin};
use bloomline::BloomFilter;
use std::fs;
use std::io;
use std::path::Path;

/// Loads a filter.
pub fn load(path: &Path) -> Result<BloomFilter, Error> {
    BloomFilter::load(path).map_err(Error::Load)
}

/// Saves a filter: the file is the old or the new one at every moment.
pub fn save(filter: &BloomFilter, path: &Path) -> Result<(), Error> {
    filter.save(path).map_err(Error::Save)
}

/// Refuses a path that cannot be saved to, or that is one of the inputs, before hours of reading are spent on it.
pub fn check_target<'a>(path: &Path, inputs: impl IntoIterator<Item = &'a Origin>) -> Result<(), Error> {
    let output = format!("{path:?}");
    match fs::metadata(path) {
        Ok(metadata) if !metadata.is_file() => Err(Error::NotRegular { output }),
        Ok(metadata) => input::refuse_input(&output, &metadata, inputs),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let folder = path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
            match fs::metadata(folder) {
                Ok(_) => Ok(()),
                Err(source) => Err(Error::Create { output, source }),
            }
        }
        Err(source) => Err(Error::Create { output, source }),
    }
}
