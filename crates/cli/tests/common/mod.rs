//! Helpers of the tests of the command.
// No test program uses all helpers.
#![allow(dead_code)]

#[cfg(not(unix))]
pub mod elsewhere;
pub mod pages;
pub mod random;

use serde_json::Value;
use std::env;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use tempfile::TempDir;

/// The variable that names the folder of temporary files.
pub const TEMP_VARIABLE: &str = if cfg!(windows) { "TMP" } else { "TMPDIR" };

/// Returns the command, with empty standard input and pipes for its outputs.
pub fn bloomline() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bloomline"));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Returns the command with a limit of `ulimit`, which measures files in units of 512 bytes. SIGXFSZ is ignored.
pub fn with_ulimit(limit: &str, command: &Command) -> Command {
    let script = format!("ulimit {limit}; trap '' XFSZ; exec \"$0\" \"$@\"");
    let mut shell = Command::new("sh");
    shell.args(["-c", &script]).arg(command.get_program()).args(command.get_args());
    shell.current_dir(command.get_current_dir().expect("that of a bench"));
    shell
}

/// Returns a command whose arguments are another one, for which these signals are reset where `env` can do that.
pub fn with_default_signals(signals: &str) -> Command {
    let mut command = Command::new("env");
    if cfg!(target_os = "linux") {
        command.arg(format!("--default-signal={signals}"));
    }
    command
}

/// Sends a signal to a process that has not been waited for.
pub fn signal(child: &Child, name: &str) {
    assert!(Command::new("kill").args(["-s", name, &child.id().to_string()]).status().unwrap().success());
}

/// Runs a command with these bytes in a pipe as standard input.
pub fn run_with_stdin(mut command: Command, input: &[u8]) -> Output {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    thread::scope(|scope| {
        // The write may fail, because the pipe is not read after a usage error.
        scope.spawn(move || stdin.write_all(input).err());
        child.wait_with_output().unwrap()
    })
}

#[track_caller]
fn expect_silent_exit(output: Output, code: i32) -> Vec<u8> {
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(output.status.code(), Some(code));
    output.stdout
}

/// Returns the output of a run that must succeed and print nothing on standard error.
#[track_caller]
pub fn expect_success(output: Output) -> Vec<u8> {
    expect_silent_exit(output, 0)
}

/// Returns the output of a run that must end with this code and print nothing on standard error.
#[track_caller]
pub fn expect_exit_code(output: Output, code: i32) -> String {
    String::from_utf8(expect_silent_exit(output, code)).unwrap()
}

/// Returns the error message of a run that must fail before it prints anything.
#[track_caller]
pub fn expect_refusal(output: Output) -> String {
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
    expect_failure(&output)
}

/// Returns the error message of a run that must fail. It has one line, which may be followed by lines with tips.
#[track_caller]
pub fn expect_failure(output: &Output) -> String {
    let message = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(message.lines().skip(1).all(|line| line.starts_with("  tip: ")), "{message:?}");
    assert!(message.starts_with("bloomline: ") && !message.lines().next().unwrap().contains("tip: "), "{message:?}");
    assert!(message.ends_with('\n'), "{message:?}");
    message
}

/// A folder in which the command runs, so that paths are short.
pub struct Bench(pub TempDir);

impl Bench {
    pub fn new(files: &[(&str, &[u8])]) -> Self {
        let bench = Self(tempfile::tempdir().unwrap());
        files.iter().for_each(|(name, bytes)| bench.write(name, bytes));
        bench
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.path(name), bytes).unwrap();
    }

    /// Writes to a file and keeps its modification time, so that a resumed run treats it as unchanged.
    pub fn rewrite(&self, name: &str, bytes: &[u8]) {
        let time = self.path(name).metadata().unwrap().modified().unwrap();
        self.write(name, bytes);
        File::options().write(true).open(self.path(name)).unwrap().set_modified(time).unwrap();
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    /// True if the checkpoints beside a state are those of an incomplete run, which can be resumed.
    pub fn is_resumable(&self, state: &str) -> bool {
        let checkpoints = fs::read_to_string(self.path(&format!("{state}.resume")));
        checkpoints.is_ok_and(|checkpoints| !checkpoints.contains("\"finished\":true,\"whole\":true"))
    }

    /// Creates a named pipe.
    pub fn fifo(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        path
    }

    pub fn command(&self, line: &str) -> Command {
        let mut command = bloomline();
        command.args(line.split(' ')).current_dir(self.0.path());
        command
    }

    pub fn run(&self, line: &str) -> Output {
        self.command(line).output().unwrap()
    }

    /// Returns a bash script whose search path contains the command.
    pub fn bash(&self, script: &str) -> Command {
        let folder = Path::new(env!("CARGO_BIN_EXE_bloomline")).parent().unwrap();
        let path = format!("{}:{}", folder.display(), env::var("PATH").unwrap());
        let mut bash = Command::new("bash");
        bash.args(["-c", script]).current_dir(self.0.path()).env("PATH", path);
        bash
    }

    /// Runs with a file as standard input.
    pub fn run_with(&self, line: &str, input: &str) -> Output {
        self.command(line).stdin(File::open(self.path(input)).unwrap()).output().unwrap()
    }

    /// Returns the output of a run that must succeed and print nothing on standard error.
    #[track_caller]
    pub fn run_ok(&self, line: &str) -> String {
        expect_exit_code(self.run(line), 0)
    }

    /// Returns the error message of a run that must fail before it prints anything.
    #[track_caller]
    pub fn run_err(&self, line: &str) -> String {
        expect_refusal(self.run(line))
    }

    #[track_caller]
    pub fn json(&self, line: &str) -> Value {
        let text = self.run_ok(line);
        assert_eq!(text.matches('\n').count(), 1);
        serde_json::from_str(&text).unwrap()
    }
}

/// Returns a text with the separators of Unix.
pub fn with_slashes(text: &str) -> String {
    if cfg!(windows) { text.replace('\\', "/") } else { text.to_owned() }
}

/// Replaces the separators and the system's errors of Windows, and of Wine, in a message.
#[cfg(windows)]
fn as_on_unix(message: &str) -> String {
    let errors = [
        "The system cannot find the file specified",
        "The system cannot find the path specified",
        "File not found",
        "Path not found",
    ];
    errors.iter().fold(with_slashes(message), |message, error| message.replace(error, "No such file"))
}

/// Asserts that a message contains all these parts.
#[track_caller]
pub fn assert_contains_all(message: &str, parts: &[&str]) {
    #[cfg(windows)]
    let message = &format!("{message}{}", as_on_unix(message));
    for part in parts {
        assert!(message.contains(part), "{part:?} is not in {message:?}");
    }
}

#[track_caller]
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Parses JSON lines.
#[track_caller]
pub fn json_values(lines: &[u8]) -> Vec<Value> {
    text(lines).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Returns the object that `--stats=json` prints after any warnings.
#[track_caller]
pub fn stats(output: &Output) -> Value {
    let text = text(&output.stderr);
    let line = text.lines().find(|line| line.starts_with('{'));
    serde_json::from_str(line.unwrap_or_else(|| panic!("no statistics: {text}"))).unwrap()
}

#[track_caller]
pub fn number(object: &Value, name: &str) -> f64 {
    object[name].as_f64().unwrap_or_else(|| panic!("{name} is missing: {object}"))
}

/// Returns the blocks of a filter's file, which are between its fields and its trailer.
#[track_caller]
pub fn blocks(file: &[u8]) -> &[u8] {
    let fields = u32::from_le_bytes(file[48..52].try_into().unwrap());
    &file[64 + fields as usize..file.len() - 16]
}

/// Returns the number of bits set in the blocks of a filter's file.
#[track_caller]
pub fn count_set_bits(file: &[u8]) -> u32 {
    blocks(file).iter().map(|byte| byte.count_ones()).sum()
}

/// Reports why a test is skipped. The harness hides the output of `eprintln!` if a test passes.
pub fn report_skipped(why: &str) {
    _ = writeln!(io::stderr(), "skipped, and counted as passed: {why}");
}

/// Returns distinct lines, each a URL with one of these numbers.
pub fn url_lines(range: std::ops::Range<u32>) -> Vec<u8> {
    range.flat_map(|i| format!("https://example.org/{i}\n").into_bytes()).collect()
}
