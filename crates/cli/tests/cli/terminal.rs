//! The screen of a terminal in tmux. The tests are skipped if tmux is missing, unless BLOOMLINE_REQUIRE_TERMINAL is 1.

use crate::common::{Bench, bloomline, report_skipped, url_lines, with_default_signals};
use crate::corpus::gzip;
use crate::live::{PATIENCE, wait_for};
use std::env;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A terminal that runs a shell command and prints its exit code at the end. Dropping the value closes the terminal.
struct Terminal<'a> {
    bench: &'a Bench,
    socket: String,
}

impl<'a> Terminal<'a> {
    /// Opens a terminal, or returns `None` if tmux is missing.
    fn open(bench: &'a Bench, columns: u16, line: &str) -> Option<Self> {
        if let Err(error) = Command::new("tmux").arg("-V").output() {
            assert!(env::var_os("BLOOMLINE_REQUIRE_TERMINAL").is_none_or(|value| value != "1"), "tmux: {error}");
            report_skipped(&format!("tmux cannot be run: {error}"));
            return None;
        }
        static TERMINALS: AtomicU32 = AtomicU32::new(0);
        let terminal = Self { bench, socket: format!("tmux{}", TERMINALS.fetch_add(1, Relaxed)) };
        // ^C does not end the shell.
        let script = format!(
            "trap : INT; bloomline() {{ {:?} \"$@\"; }}; {line}; echo ended $?; exec cat",
            bloomline().get_program()
        );
        let columns = columns.to_string();
        let output = terminal.tmux(&["-f", "/dev/null", "new-session", "-d", "-x", &columns, "-y", "24", &script]);
        assert!(output.status.success(), "{output:?}");
        Some(terminal)
    }

    fn tmux(&self, arguments: &[&str]) -> Output {
        // ^C must have an effect even if the test process ignores it.
        let mut tmux = with_default_signals("INT");
        tmux.args(["tmux", "-S", &self.socket]).args(arguments);
        tmux.env_remove("TMUX").env("SHELL", "/bin/sh").env("LC_ALL", "C.UTF-8");
        tmux.current_dir(self.bench.0.path()).output().unwrap()
    }

    /// Returns the lines on the screen. With `-J`, lines that the terminal wrapped are joined.
    fn capture(&self, option: &str) -> Vec<String> {
        let output = self.tmux(&["capture-pane", "-p", option]);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().trim_end().lines().map(|line| line.trim_end().to_owned()).collect()
    }

    /// Waits until the command ends with this exit code, and returns the lines that it printed, unwrapped.
    #[track_caller]
    fn expect_exit_code(&self, code: i32) -> Vec<String> {
        wait_for(|| self.capture("-J").iter().any(|line| line.contains("ended ") && !line.contains("bloomline")));
        let mut lines = self.capture("-J");
        let end = lines.pop().unwrap();
        // The echo of ^C may precede the line.
        assert_eq!(end.trim_start_matches("^C"), format!("ended {code}"), "{lines:?}");
        lines
    }

    /// Reads the output of the command slowly, until `seen` returns true for the screen.
    #[track_caller]
    fn read_until(&self, pipe: &mut File, seen: impl Fn(&[String]) -> bool) {
        let start = Instant::now();
        while !seen(&self.capture("-J")) {
            assert!(start.elapsed() < PATIENCE, "it is not seen: {:?}", self.capture("-J"));
            assert!(
                pipe.read(&mut [0; 1 << 16]).unwrap() > 0,
                "it is not seen before the end: {:?}",
                self.capture("-J")
            );
            sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Terminal<'_> {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

fn is_bar(line: &str) -> bool {
    line.starts_with(['#', '>', '-']) && line.contains('%')
}

/// Returns a folder with lines, and two pipes to block a command.
fn bench() -> Bench {
    let bench = Bench::new(&[("lines", &url_lines(0..300_000))]);
    bench.fifo("in");
    bench.fifo("out");
    bench
}

#[test]
fn the_bar_fits_and_is_removed() {
    for columns in [80, 40, 20] {
        let bench = bench();
        let Some(terminal) = Terminal::open(&bench, columns, "bloomline dedup lines > out") else { return };
        let mut out = File::open(bench.path("out")).unwrap();
        terminal.read_until(&mut out, |lines| lines.iter().any(|line| is_bar(line)));
        let bar = terminal.capture("-N");
        assert_eq!(bar.len(), 1, "{bar:?}");
        // The bar shows the parts that fit, and leaves space for input of the user.
        // In 40 columns, the parts depend on the expected duration of the run.
        assert!(columns == 40 || bar[0].contains("unique") == (columns == 80), "{bar:?}");
        assert!(bar[0].chars().count() <= usize::from(columns) - 3, "{bar:?}");
        io::copy(&mut out, &mut io::sink()).unwrap();
        assert_eq!(terminal.expect_exit_code(0), [""; 0]);
    }
}

/// If only files of OLD are named, NEW is the terminal.
#[test]
fn waiting_comparisons_show_a_message() {
    let bench = Bench::new(&[("a", b"a\n"), ("b", b"b\n")]);
    let Some(terminal) = Terminal::open(&bench, 200, "bloomline not-in a b") else { return };
    let hint = "waiting for lines of NEW from the terminal";
    wait_for(|| terminal.capture("-J").iter().any(|line| line.contains(hint) && line.contains("\"a\" -- \"b\"")));
    terminal.tmux(&["send-keys", "c", "Enter", "b", "Enter", "C-d"]);
    let lines = terminal.expect_exit_code(0);
    // One of the two lines is the echo of the input.
    assert_eq!(lines.iter().filter(|line| *line == "c").count(), 2, "{lines:?}");
    assert_eq!(lines.iter().filter(|line| *line == "b").count(), 1, "{lines:?}");
}

#[test]
fn the_bar_counts_files() {
    let bench = bench();
    bench.write("few", b"few\n");
    let Some(terminal) = Terminal::open(&bench, 120, "bloomline dedup few lines few > out") else { return };
    let mut out = File::open(bench.path("out")).unwrap();
    terminal.read_until(&mut out, |lines| lines.iter().any(|line| is_bar(line) && line.contains("1 of 3 files")));
    io::copy(&mut out, &mut io::sink()).unwrap();
    assert_eq!(terminal.expect_exit_code(0), [""; 0]);
}

#[test]
fn the_bar_shows_the_pass_and_progress() {
    let bench = bench();
    bench.write("texts", b"{\"text\":\"one text\"}\n".repeat(30_000).as_slice());
    bench.fifo("report");
    // The pipe is open for reading and writing, so that opening it does not block.
    let report = || OpenOptions::new().read(true).write(true).open(bench.path("report")).unwrap();
    let sees = |expected: &'static str| move |lines: &[String]| lines.iter().any(|line| line.contains(expected));
    let line = "bloomline corpus --near 0.8 --pairs report -o kept texts in";
    let mut pairs = report();
    let Some(terminal) = Terminal::open(&bench, 80, line) else { return };
    let input = OpenOptions::new().write(true).open(bench.path("in")).unwrap();
    wait_for(|| sees("pass 1 of 3: reading")(&terminal.capture("-J")));
    drop(input);
    terminal.read_until(&mut pairs, sees("%  pass 2 of 3: writing reports  "));
    terminal.tmux(&["send-keys", "C-c"]);
    assert_eq!(terminal.expect_exit_code(130), [""; 0]);
    drop(terminal);

    let terminal = Terminal::open(&bench, 80, "bloomline dedup --keep last lines > out").unwrap();
    let mut out = File::open(bench.path("out")).unwrap();
    terminal.read_until(&mut out, sees("%  pass 2 of 2: writing  "));
    io::copy(&mut out, &mut io::sink()).unwrap();
    assert_eq!(terminal.expect_exit_code(0), [""; 0]);
}

#[test]
fn messages_are_printed_above_the_bar() {
    for columns in [80, 40] {
        let bench = bench();
        let line = "bloomline dedup -n 200000 --when-full warn lines > out";
        let Some(terminal) = Terminal::open(&bench, columns, line) else { return };
        let mut out = File::open(bench.path("out")).unwrap();
        terminal.read_until(&mut out, |lines| lines.iter().any(|line| is_bar(line)));
        assert_eq!(terminal.capture("-J").len(), 1, "the warning came too soon");
        let warned = |line: &String| {
            line.starts_with("bloomline: warning: the filter has more than the 200000")
                && line.ends_with("-n or --memory")
        };
        terminal.read_until(&mut out, |lines| lines.iter().any(warned));
        let lines = terminal.capture("-J");
        assert!(lines.len() == 2 && warned(&lines[0]) && is_bar(&lines[1]), "{lines:?}");
        io::copy(&mut out, &mut io::sink()).unwrap();
        let lines = terminal.expect_exit_code(0);
        assert!(lines.len() == 1 && warned(&lines[0]), "{lines:?}");
    }
}

#[test]
fn errors_and_signals_remove_the_bar() {
    for columns in [80, 40] {
        let bench = bench();
        let whole = gzip(&url_lines(300_000..600_000));
        bench.write("cut.gz", &whole[..whole.len() / 2]);
        let Some(terminal) = Terminal::open(&bench, columns, "bloomline dedup lines cut.gz > out") else { return };
        let mut out = File::open(bench.path("out")).unwrap();
        terminal.read_until(&mut out, |lines| lines.iter().any(|line| is_bar(line)));
        io::copy(&mut out, &mut io::sink()).unwrap();
        let lines = terminal.expect_exit_code(2);
        assert!(lines.len() == 1 && lines[0].starts_with("bloomline: cannot read \"cut.gz\""), "{lines:?}");
        drop(terminal);

        // Nobody reads the output, so the command cannot end normally. The terminal echoes the input.
        let terminal = Terminal::open(&bench, columns, "bloomline dedup --state s lines > out").unwrap();
        let mut out = File::open(bench.path("out")).unwrap();
        terminal.read_until(&mut out, |lines| lines.iter().any(|line| is_bar(line)));
        terminal.tmux(&["send-keys", "C-c"]);
        let lines = terminal.expect_exit_code(130);
        assert!(lines.len() == 1 && lines[0].starts_with("bloomline: the run ended before the state"), "{lines:?}");
        drop(terminal);

        let terminal = Terminal::open(&bench, columns, "bloomline build -n 10 -q -o f in").unwrap();
        let mut input = OpenOptions::new().write(true).open(bench.path("in")).unwrap();
        input.write_all(&url_lines(0..1000)).unwrap();
        terminal.tmux(&["send-keys", "C-c"]);
        assert_eq!(terminal.expect_exit_code(130), [""; 0]);
    }
}

#[test]
fn commands_that_read_lines_have_a_bar_unless_quiet() {
    let bench = bench();
    bench.run_ok("build -o f lines");
    for (line, shown, printed) in [
        ("bloomline build -n 1000000 -o new in", true, 0),
        ("bloomline build -q -n 1000000 -o new in", false, 0),
        ("bloomline check -s f in > found", true, 0),
        ("bloomline check --total -s f in", true, 1),
        ("bloomline dedup --total in", true, 1),
        ("bloomline dedup -q in > found", false, 0),
        // Lines printed to the terminal would interfere with a bar.
        ("bloomline dedup in", false, 1),
    ] {
        let Some(terminal) = Terminal::open(&bench, 80, line) else { return };
        let mut input = OpenOptions::new().write(true).open(bench.path("in")).unwrap();
        let (mut seen, start) = (false, Instant::now());
        while !seen && start.elapsed() < if shown { PATIENCE } else { Duration::from_millis(500) } {
            input.write_all(b"https://example.org/0\n").unwrap();
            sleep(Duration::from_millis(5));
            seen = terminal.capture("-J").iter().any(|line| line.contains("lines/s"));
        }
        assert_eq!(seen, shown, "{line}: {:?}", terminal.capture("-J"));
        drop(input);
        let lines = terminal.expect_exit_code(0);
        assert!(lines.len() == printed && !lines.iter().any(|line| line.contains("lines/s")), "{line}: {lines:?}");
    }
}

#[test]
fn a_terminal_without_commands_has_no_bar() {
    let bench = bench();
    let line = "export TERM=dumb; bloomline dedup lines > out";
    let Some(terminal) = Terminal::open(&bench, 80, line) else { return };
    let mut out = File::open(bench.path("out")).unwrap();
    let started = Instant::now();
    // A bar would appear within this time.
    while started.elapsed() < Duration::from_millis(500) {
        assert!(out.read(&mut [0; 1 << 16]).unwrap() > 0);
        sleep(Duration::from_millis(25));
        assert_eq!(terminal.capture("-J"), [""; 0]);
    }
    io::copy(&mut out, &mut io::sink()).unwrap();
    assert_eq!(terminal.expect_exit_code(0), [""; 0]);
}
