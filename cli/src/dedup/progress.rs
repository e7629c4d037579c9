//! The progress bar.

use crate::figures::readable_count;
use crate::lines::input::Input;
use crate::set::inserter::Inserter;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// How often it is drawn.
const PERIOD: Duration = Duration::from_millis(100);

/// A bar on standard error, if that is a terminal and lines do not go to one.
pub struct Progress {
    bar: ProgressBar,
    read: Arc<AtomicU64>,
    started: Instant,
    drawn: Instant,
}

impl Progress {
    /// For these inputs; `read` counts their bytes.
    pub fn new(inputs: &[Input], read: Arc<AtomicU64>, quiet: bool, to_stdout: bool) -> Self {
        let shown = !quiet && io::stderr().is_terminal() && !(to_stdout && io::stdout().is_terminal());
        let total: Option<u64> = inputs.iter().map(|input| input.size).sum();
        let bar = match total {
            _ if !shown => ProgressBar::hidden(),
            Some(bytes) => ProgressBar::new(bytes),
            None => ProgressBar::new_spinner(),
        };
        let style = match total {
            Some(_) => "{bar:24} {percent} %  {bytes} of {total_bytes}  {msg}  {eta} left",
            None => "{spinner} {bytes}  {msg}  {elapsed}",
        };
        bar.set_style(ProgressStyle::with_template(style).expect("the template is right"));
        let now = Instant::now();
        Self { bar, read, started: now, drawn: now }
    }

    /// Shows how far the work is.
    pub fn show(&mut self, done: &Inserter) {
        if self.bar.is_hidden() || self.drawn.elapsed() < PERIOD {
            return;
        }
        self.drawn = Instant::now();
        let speed = done.counts.lines as f64 / self.started.elapsed().as_secs_f64();
        let unique = readable_count(done.counts.unique() as f64);
        let full = match &done.limit {
            Some(limit) => format!("{:.0} % full", 100.0 * done.counts.inserted as f64 / limit.keys.max(1) as f64),
            None => match done.set.stages().count() {
                0 => "shared".to_owned(),
                stages => format!("filter {stages}"),
            },
        };
        self.bar.set_message(format!("{} lines/s  {unique} unique  {full}", readable_count(speed)));
        self.bar.set_position(self.read.load(Relaxed));
    }

    /// Removes it.
    pub fn end(&self) {
        self.bar.finish_and_clear();
    }
}
