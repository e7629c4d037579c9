//! The `bloomline` command: parses, runs, and turns the result into an exit code.
#![forbid(unsafe_code)]

mod chunks;
mod cli;
mod dedup;
mod error;
mod estimate;
mod input;
mod lines;
mod output;
mod pipeline;
mod report;

use clap::Parser;
use cli::{Cli, Command};
use std::io::{self, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    let result = match Cli::try_parse() {
        Ok(cli) => match cli.command {
            Command::Dedup(options) => dedup::run(&options),
        },
        Err(error) if error.use_stderr() => return fail(&cli::one_line(&error)),
        Err(help) => {
            // Help that nobody reads to its end is no failure.
            let _ = help.print();
            return ExitCode::SUCCESS;
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever reads has enough, as `head` does.
        Err(error) if error.is_closed_pipe() => ExitCode::SUCCESS,
        Err(error) => fail(&error.to_string()),
    }
}

fn fail(message: &str) -> ExitCode {
    // Where even standard error is closed, the exit code alone must tell.
    let _ = writeln!(io::stderr(), "bloomline: {message}");
    ExitCode::from(2)
}
