//! The progress bar: the last line on the screen, on standard error; or lines of JSON there, for a program that draws it.

use crate::system::write_watchdog::SCREEN;
use console::Term;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle, TermLike};
use serde_json::json;
use std::env;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

/// The time between two drawings.
pub const PERIOD: Duration = Duration::from_millis(100);

/// The columns of the bar and the space after it.
const COLUMNS: usize = 11;

/// The maximum number of drawings per second.
const RATE: u8 = 20;

/// The bar on the screen. All other output to the screen is printed through this module, so that the two do not mix.
static BAR: Mutex<Option<ProgressBar>> = Mutex::new(None);

/// True if a program draws the bar. Relaxed: it is set before anything begins.
static AS_JSON: AtomicBool = AtomicBool::new(false);

/// Writes the progress as lines of JSON from this call on, even if standard error is not a terminal.
pub fn write_json() {
    AS_JSON.store(true, Relaxed);
}

/// True if a bar would be seen: a program draws it, or standard error is a terminal with cursor commands and enough columns, and
/// lines do not go to it.
pub fn is_seen(to_stdout: bool) -> bool {
    let on_terminal = || {
        io::stderr().is_terminal()
            && !(to_stdout && io::stdout().is_terminal())
            // A bar could not be removed from a terminal that has no commands or is too narrow.
            && env::var_os("TERM").is_none_or(|terminal| terminal != "dumb")
            && usize::from(columns()) >= COLUMNS
    };
    AS_JSON.load(Relaxed) || on_terminal()
}

fn bar() -> MutexGuard<'static, Option<ProgressBar>> {
    BAR.lock().expect("no thread panics while it draws")
}

/// Shows a bar of `total` bytes or steps, or a spinner if that is unknown.
pub fn begin(total: Option<u64>) -> ProgressBar {
    // The message is cut at the edge of the screen.
    let (bar, style) = match total {
        Some(total) => (ProgressBar::new(total), "{bar:10} {wide_msg}"),
        None => (ProgressBar::new_spinner(), "{spinner} {wide_msg}"),
    };
    // Every terminal has these characters.
    let style = ProgressStyle::with_template(style).expect("the template is right");
    let bar = bar.with_style(style.progress_chars("#>-").tick_chars("-\\|/ "));
    bar.set_draw_target(match AS_JSON.load(Relaxed) {
        true => ProgressDrawTarget::hidden(),
        false => ProgressDrawTarget::term_like_with_hz(Box::new(ProgressTerminal(Term::buffered_stderr())), RATE),
    });
    *self::bar() = Some(bar.clone());
    bar
}

/// Draws the bar at `position`, with as many of these parts as fit.
pub fn draw(position: u64, parts: &[String]) {
    let text = fitting(parts, usize::from(columns()).saturating_sub(COLUMNS));
    if let Some(bar) = &*bar() {
        SCREEN.watch(|| {
            bar.set_position(position);
            bar.set_message(text);
            if AS_JSON.load(Relaxed) {
                let share = bar.length().map(|total| position.min(total) as f64 / total.max(1) as f64);
                let line = json!({"progress": {"parts": parts, "share": share}});
                _ = writeln!(io::stderr(), "{line}");
            }
        });
    }
}

/// Runs `act` without the bar on the screen.
pub fn without<T>(act: impl FnOnce() -> T) -> T {
    let bar = bar();
    SCREEN.watch(|| match &*bar {
        Some(bar) => bar.suspend(act),
        None => act(),
    })
}

/// Removes the bar from the screen.
pub fn end() {
    if let Some(bar) = bar().take() {
        bar.finish_and_clear();
    }
}

/// Returns the columns that a bar may take.
fn columns() -> u16 {
    ProgressTerminal(Term::stderr()).width()
}

/// The terminal without its last three columns. The echo of ^C needs them: on another line, it would keep the bar from
/// being found again.
#[derive(Debug)]
struct ProgressTerminal(Term);

impl TermLike for ProgressTerminal {
    fn width(&self) -> u16 {
        self.0.width().saturating_sub(3)
    }

    fn height(&self) -> u16 {
        self.0.height()
    }

    fn move_cursor_up(&self, n: usize) -> io::Result<()> {
        self.0.move_cursor_up(n)
    }

    fn move_cursor_down(&self, n: usize) -> io::Result<()> {
        self.0.move_cursor_down(n)
    }

    fn move_cursor_right(&self, n: usize) -> io::Result<()> {
        self.0.move_cursor_right(n)
    }

    fn move_cursor_left(&self, n: usize) -> io::Result<()> {
        self.0.move_cursor_left(n)
    }

    fn write_line(&self, text: &str) -> io::Result<()> {
        self.0.write_line(text)
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        self.0.write_str(text)
    }

    fn clear_line(&self) -> io::Result<()> {
        self.0.clear_line()
    }

    fn flush(&self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Returns the first parts that fit into this number of columns, two spaces apart.
fn fitting(parts: &[String], columns: usize) -> String {
    let mut text = String::new();
    for part in parts {
        let space = if text.is_empty() { "" } else { "  " };
        if text.len() + space.len() + part.len() > columns {
            break;
        }
        text += &format!("{space}{part}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_never_truncated() {
        let parts = ["50 %", "1m left", "of 3 MiB"].map(str::to_owned);
        for (columns, expected) in
            [(0, ""), (3, ""), (4, "50 %"), (12, "50 %"), (13, "50 %  1m left"), (99, "50 %  1m left  of 3 MiB")]
        {
            assert_eq!(fitting(&parts, columns), expected, "{columns}");
        }
    }
}
