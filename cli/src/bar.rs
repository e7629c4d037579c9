//! The progress bar: the last line on the screen, on standard error.

use crate::stall::SCREEN;
use console::Term;
use indicatif::{ProgressBar, ProgressDrawTarget, TermLike};
use std::io;
use std::sync::{Mutex, MutexGuard};

/// How often it is drawn at the most, in a second.
const RATE: u8 = 20;

/// The bar on the screen. Whatever else goes to the screen goes through here, so that neither gets into the other's way.
static BAR: Mutex<Option<ProgressBar>> = Mutex::new(None);

fn bar() -> MutexGuard<'static, Option<ProgressBar>> {
    BAR.lock().expect("no thread panics while it draws")
}

/// Shows a bar on the screen.
pub fn begin(new: &ProgressBar) {
    new.set_draw_target(ProgressDrawTarget::term_like_with_hz(Box::new(Screen(Term::buffered_stderr())), RATE));
    *bar() = Some(new.clone());
}

/// Draws it with this text, and that far.
pub fn draw(position: u64, text: String) {
    if let Some(bar) = &*bar() {
        SCREEN.watch(|| {
            bar.set_position(position);
            bar.set_message(text);
        });
    }
}

/// Does something without the bar on the screen.
pub fn without<T>(act: impl FnOnce() -> T) -> T {
    let bar = bar();
    SCREEN.watch(|| match &*bar {
        Some(bar) => bar.suspend(act),
        None => act(),
    })
}

/// Removes it from the screen.
pub fn end() {
    if let Some(bar) = bar().take() {
        bar.finish_and_clear();
    }
}

/// The columns that a bar may take.
pub fn columns() -> u16 {
    Screen(Term::stderr()).width()
}

/// The terminal, but for three columns at the right: when the user types ^C, that is put there, and not on another line, where
/// it would keep the bar from being found again.
#[derive(Debug)]
struct Screen(Term);

impl TermLike for Screen {
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
