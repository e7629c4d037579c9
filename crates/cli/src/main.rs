//! The `bloomline` command.

use std::env;
use std::process::ExitCode;

fn main() -> ExitCode {
    bloomline_cli::run_command_line(env::args_os()).into()
}

/// Rust's runtime opens `/dev/null` in place of a closed standard output. Only code that runs before it can detect that.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "the attribute is unsafe; this section holds pointers to such functions")]
#[unsafe(link_section = ".init_array")]
#[used]
static BEFORE_START: extern "C" fn() = check_standard_output;

#[cfg(target_os = "linux")]
extern "C" fn check_standard_output() {
    bloomline_cli::check_standard_output();
}
