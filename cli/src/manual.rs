//! `bloomline completions` and `bloomline manual`: made from the command line's own description.

use crate::cli::{Cli, CompletionsOptions, ManualOptions};
use crate::error::Error;
use crate::files::name;
use crate::output::Output;
use clap::CommandFactory;
use std::fs;
use std::process::ExitCode;

/// Prints the completions.
pub fn completions(options: &CompletionsOptions) -> Result<ExitCode, Error> {
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut Cli::command(), "bloomline", &mut script);
    let mut output = Output::create(None, [])?;
    output.write(&script)?;
    output.finish()?;
    Ok(ExitCode::SUCCESS)
}

/// Writes the manual pages.
pub fn manual(options: &ManualOptions) -> Result<ExitCode, Error> {
    let folder = &options.folder;
    let pages = || {
        fs::create_dir_all(folder)?;
        clap_mangen::generate_to(Cli::command(), folder)
    };
    pages().map_err(|source| Error::Create { output: name(folder), source })?;
    Ok(ExitCode::SUCCESS)
}
