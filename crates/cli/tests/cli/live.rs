//! Commands that a test observes while they run, or ends.

use crate::common::signal;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

/// A timeout that is reached only if a test fails.
pub const PATIENCE: Duration = Duration::from_secs(300);

/// A command with a pipe as standard input. Dropping the value kills the command.
pub struct RunningCommand {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl RunningCommand {
    pub fn new(mut command: Command) -> Self {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take().unwrap());
        let (send, lines) = mpsc::channel();
        thread::spawn(move || {
            BufReader::new(stdout).lines().map_while(Result::ok).try_for_each(|line| send.send(line))
        });
        Self { child, stdin, lines }
    }

    /// Kills a command after it has printed this number of bytes, and returns everything that it printed.
    pub fn read_and_kill(mut command: Command, bytes: usize) -> Vec<u8> {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let (mut pipe, mut printed) = (child.stdout.take().unwrap(), Vec::new());
        pipe.by_ref().take(bytes as u64).read_to_end(&mut printed).unwrap();
        child.kill().unwrap();
        pipe.read_to_end(&mut printed).unwrap();
        child.wait().unwrap();
        printed
    }

    pub fn write_input(&mut self, bytes: &[u8]) {
        self.stdin.as_mut().unwrap().write_all(bytes).unwrap();
    }

    /// Closes standard input.
    pub fn close_input(&mut self) {
        self.stdin = None;
    }

    /// Returns the next line that the command prints.
    #[track_caller]
    pub fn line(&self) -> String {
        self.lines.recv_timeout(PATIENCE).expect("no line came")
    }

    /// Sends a signal and keeps standard input open.
    pub fn signal(&self, name: &str) {
        signal(&self.child, name);
    }

    /// Stops the command as soon as `happened` returns true or the command has ended. The shell that sends the signal is
    /// started in advance, because starting it takes too long.
    #[track_caller]
    pub fn stop_when(&mut self, happened: impl Fn() -> bool) {
        let script = format!("read line; kill -s STOP {}", self.child.id());
        let mut shell = Command::new("sh").args(["-c", &script]).stdin(Stdio::piped()).spawn().unwrap();
        let start = Instant::now();
        while !happened() && self.child.try_wait().unwrap().is_none() {
            assert!(start.elapsed() < PATIENCE, "it does not happen");
            thread::yield_now();
        }
        drop(shell.stdin.take());
        shell.wait().unwrap();
    }

    /// Waits until the command ends. Returns its exit code, its remaining output lines and standard error.
    #[track_caller]
    pub fn end(mut self) -> (Option<i32>, Vec<String>, String) {
        let start = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(start.elapsed() < PATIENCE, "it does not end");
            thread::sleep(Duration::from_millis(5));
        };
        let mut stderr = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        (status.code(), self.lines.iter().collect(), stderr)
    }
}

impl Drop for RunningCommand {
    fn drop(&mut self) {
        // The call fails if the process has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[track_caller]
pub fn wait_for(happened: impl Fn() -> bool) {
    let start = Instant::now();
    while !happened() {
        assert!(start.elapsed() < PATIENCE, "it does not happen");
        thread::sleep(Duration::from_millis(10));
    }
}
