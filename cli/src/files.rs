//! Where filters are saved to: checked before the work that leads to saving.

use crate::error::Error;
use crate::lines::input::{self, Origin};
use std::fs;
use std::io;
use std::path::Path;

/// Refuses a path that cannot be saved to, or that is one of the inputs, before hours of reading are spent on it.
pub fn check_target<'a>(path: &Path, inputs: impl IntoIterator<Item = &'a Origin>) -> Result<(), Error> {
    let output = format!("{path:?}");
    match fs::metadata(path) {
        Ok(metadata) if !metadata.is_file() => Err(Error::NotRegular { output: output.clone() }),
        Ok(metadata) => input::refuse_input(&output, &metadata, inputs),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(source) => Err(Error::Create { output: output.clone(), source }),
    }?;
    // Saving goes through a temporary file there.
    tempfile::tempfile_in(folder(path)).map(drop).map_err(|source| Error::Create { output, source })
}

/// The folder that a file is in.
pub fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."))
}
