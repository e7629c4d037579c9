//! `bloomline completions` and `bloomline manual`: made from the command line's own description.

use crate::error::{Error, SUCCESS};
use crate::files::name;
use crate::options::{Cli, CompletionsOptions, ManualOptions};
use crate::output::Output;
use clap::CommandFactory;
use std::fs;

/// Prints the completions.
pub fn completions(options: &CompletionsOptions) -> Result<u8, Error> {
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut Cli::command(), "bloomline", &mut script);
    let output = Output::create(None, [])?;
    output.write_text(&script)?;
    Ok(SUCCESS)
}

/// Writes the manual pages.
pub fn manual(options: &ManualOptions) -> Result<u8, Error> {
    let folder = &options.folder;
    let pages = || {
        fs::create_dir_all(folder)?;
        clap_mangen::generate_to(Cli::command(), folder)
    };
    pages().map_err(|source| Error::Create { output: name(folder), source })?;
    Ok(SUCCESS)
}
