//! The Python that runs the programs in tests/data, by their path from the package.

use std::env;
use std::io::{self, Write};
use std::process::Command;

/// A Python that has the module `xxhash`, which `server.py` does not need: the first one, or that of the system. `None` without
/// one, and `BLOOMLINE_REQUIRE_PYTHON=1` does not require one. The test is then skipped.
pub fn python(program: &str) -> Option<Command> {
    let module = if program.ends_with("server.py") { "socket" } else { "xxhash" };
    let has_module = |python: &&str| {
        let output = Command::new(python).args(["-c", &format!("import {module}")]).output();
        output.is_ok_and(|output| output.status.success())
    };
    let Some(found) = ["python3", "/usr/bin/python3"].into_iter().find(has_module) else {
        assert!(env::var_os("BLOOMLINE_REQUIRE_PYTHON").is_none_or(|value| value != "1"), "no Python with {module}");
        // The harness keeps what `eprintln!` says of a test that passes.
        _ = writeln!(io::stderr(), "skipped, and counted as passed: no Python with {module}");
        return None;
    };
    let mut python = Command::new(found);
    // No compiled modules in the source tree.
    python.arg("-B").arg(format!("{}/{program}", env!("CARGO_MANIFEST_DIR")));
    Some(python)
}
