//! The progress bar: on standard error, if that is a terminal.

use super::harness::turns::Side;
use crate::bar;
use crate::figures::readable_size;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::{self, IsTerminal};

/// How far the comparison is, in keys.
pub struct Progress(ProgressBar);

impl Progress {
    /// `keys` keys pass in all.
    pub fn new(keys: u64) -> Self {
        let shown = io::stderr().is_terminal();
        let bar = if shown { ProgressBar::new(keys) } else { ProgressBar::hidden() };
        let style = ProgressStyle::with_template("{bar:10} {percent} %  {elapsed}  {wide_msg}");
        bar.set_style(style.expect("the template is right"));
        if shown {
            bar::begin(&bar);
        }
        Self(bar)
    }

    /// Shows what is measured next.
    pub fn show(&self, bytes: usize, name: &str) {
        if !self.0.is_hidden() {
            self.0.set_message(format!("{}, {name}", readable_size(bytes)));
        }
    }

    /// Adds keys that have passed.
    pub fn done(&self, keys: u64) {
        self.0.inc(keys);
    }

    /// Plays a round of a side, and shows its name meanwhile.
    pub fn play(&self, bytes: usize, side: &mut Side) {
        self.show(bytes, &side.name);
        side.play();
        self.done(side.keys as u64);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        bar::end();
    }
}
