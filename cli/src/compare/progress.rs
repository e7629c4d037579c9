//! The progress bar: on standard error, if that is a terminal.

use crate::figures::readable_size;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::{self, IsTerminal};

/// How far the comparison is, in keys.
pub struct Progress(ProgressBar);

impl Progress {
    /// For so many keys.
    pub fn new(keys: u64) -> Self {
        let bar = if io::stderr().is_terminal() { ProgressBar::new(keys) } else { ProgressBar::hidden() };
        let style = ProgressStyle::with_template("{bar:24} {percent} %  {elapsed}  {wide_msg}");
        bar.set_style(style.expect("the template is right"));
        Self(bar)
    }

    /// Shows what is measured next.
    pub fn show(&self, bytes: usize, operation: &str, contender: &str) {
        if !self.0.is_hidden() {
            self.0.set_message(format!("{}, {operation}, {contender}", readable_size(bytes)));
        }
    }

    /// So many keys more are done.
    pub fn done(&self, keys: u64) {
        self.0.inc(keys);
    }

    /// Removes it.
    pub fn end(&self) {
        self.0.finish_and_clear();
    }
}
