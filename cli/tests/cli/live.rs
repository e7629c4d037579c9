//! Commands that run while the test watches them, or ends them.

use crate::common::signal;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

/// More than anything here takes on any machine. It is waited for only where something is wrong.
pub const PATIENCE: Duration = Duration::from_secs(300);

/// A command that waits for more on standard input. It is killed at the end, if it is still there.
pub struct Live {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl Live {
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

    /// Kills a command once it printed so many bytes, and returns all that it printed.
    pub fn read_and_kill(mut command: Command, bytes: usize) -> Vec<u8> {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let (mut pipe, mut printed) = (child.stdout.take().unwrap(), Vec::new());
        pipe.by_ref().take(bytes as u64).read_to_end(&mut printed).unwrap();
        child.kill().unwrap();
        pipe.read_to_end(&mut printed).unwrap();
        child.wait().unwrap();
        printed
    }

    pub fn say(&mut self, bytes: &[u8]) {
        self.stdin.as_mut().unwrap().write_all(bytes).unwrap();
    }

    /// Ends its input.
    pub fn hang_up(&mut self) {
        self.stdin = None;
    }

    /// The next line it prints.
    #[track_caller]
    pub fn line(&self) -> String {
        self.lines.recv_timeout(PATIENCE).expect("no line came")
    }

    /// Sends a signal while standard input stays silent.
    pub fn signal(&self, name: &str) {
        signal(&self.child, name);
    }

    /// Stops the command as soon as something happened, or it ended. The shell that does so is there before, for the moment would be
    /// over before one began.
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

    /// Its exit code, once it ended by itself, the other lines it printed, and what it said.
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
        let mut said = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        (status.code(), self.lines.iter().collect(), said)
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        // Fails if it is gone.
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
