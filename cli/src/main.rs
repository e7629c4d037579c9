//! The `bloomline` command.
#![forbid(unsafe_code)]

use std::env;
use std::process::ExitCode;

fn main() -> ExitCode {
    bloomline_cli::run_command_line(env::args_os()).into()
}
