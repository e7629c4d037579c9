//! The `bloomline` command.

use signal_hook::consts::SIGABRT;
use signal_hook::low_level;
use std::env;
use std::fs::File;
use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    if let Ok(stderr) = bloomline_cli::standard_error() {
        advise_at_abort(stderr);
    }
    bloomline_cli::run_command_line(env::args_os()).into()
}

/// Prints a remedy below Rust's report of an allocation that failed, which ends in an abort. The command then sets the exit code.
#[expect(unsafe_code, reason = "only a signal handler runs between the report and the end of the process")]
fn advise_at_abort(stderr: File) {
    let advise = move || {
        let remedy =
            b"bloomline: the run ended early; if memory was lacking, allow more, or ask for fewer threads with -j\n";
        let _ = (&stderr).write_all(remedy);
    };
    // SAFETY: here. The handler may only call functions that are safe in signal handlers. It calls write(2), without locks and
    // allocations, and does not panic.
    let _ = unsafe { low_level::register(SIGABRT, advise) };
}

/// Rust's runtime opens `/dev/null` in place of a closed standard input or output. Only code that runs before it can detect that.
#[cfg(any(target_os = "linux", target_os = "macos"))]
#[expect(unsafe_code, reason = "the attribute is unsafe; these sections hold pointers to such functions")]
#[cfg_attr(target_os = "linux", unsafe(link_section = ".init_array"))]
#[cfg_attr(target_os = "macos", unsafe(link_section = "__DATA,__mod_init_func,mod_init_funcs"))]
#[used]
static BEFORE_START: extern "C" fn() = check_standard;

#[cfg(any(target_os = "linux", target_os = "macos"))]
extern "C" fn check_standard() {
    bloomline_cli::check_standard();
}
