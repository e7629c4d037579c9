//! The readings of the inputs that a run makes, and the work between them.

use crate::system::unpoisoned::locked;
use crate::terminal::bar;
use indicatif::{HumanDuration, ProgressBar};
use std::io::{self, IsTerminal};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// The steps of a phase between two readings of the clock.
const CHECK_STEPS: u64 = 1 << 10;

/// One of the readings of the inputs.
#[derive(Clone, Copy)]
pub struct Reading {
    number: u32,
    count: u32,
    /// The duration of the last pass that ended.
    took: Duration,
    /// True if it has a bar.
    shown: bool,
}

/// The pass that began last.
static PASS: Mutex<Reading> = Mutex::new(Reading { number: 0, count: 1, took: Duration::ZERO, shown: false });

/// Starts to count `count` passes.
pub fn begin_passes(count: u32) {
    *locked(&PASS) = Reading { number: 0, count, took: Duration::ZERO, shown: false };
}

/// Adds passes to those that were announced.
pub fn add_passes(count: u32) {
    let mut pass = locked(&PASS);
    pass.count = pass.count.saturating_add(count);
}

impl Reading {
    /// Begins the next pass.
    pub fn begin(shown: bool) -> Self {
        let mut pass = locked(&PASS);
        (pass.number, pass.shown) = (pass.number + 1, shown);
        *pass
    }

    /// Records the duration of the pass.
    pub fn end(self, took: Duration) {
        locked(&PASS).took = took;
    }

    /// True if no other pass follows.
    pub fn is_last(self) -> bool {
        self.number == self.count
    }

    /// Formats the number of the pass and the name of its phase, if there are several passes.
    pub fn label(self, phase: &str) -> Option<String> {
        (self.count > 1).then(|| format!("pass {} of {}: {phase}", self.number, self.count))
    }

    /// Formats the time left for the run: `left` for this pass, and `all`, the duration of this pass, for each later
    /// one. Later phases are not included.
    pub fn left(self, left: Duration, all: Duration) -> String {
        let later = all.saturating_mul(self.count.saturating_sub(self.number));
        format!("{:#} left", HumanDuration(left.saturating_add(later)))
    }
}

/// Work between two passes, counted in steps.
pub struct Phase {
    bar: Option<ProgressBar>,
    name: &'static str,
    pass: Reading,
    steps: u64,
    done: u64,
    drawn: Instant,
}

impl Phase {
    /// Begins a phase of `steps`, after a pass that had a bar. Shows nothing if the phase prints to a terminal.
    pub fn new(name: &'static str, steps: u64, to_stdout: bool) -> Self {
        let pass = *locked(&PASS);
        let shown = pass.shown && !(to_stdout && io::stdout().is_terminal());
        Self { bar: shown.then(|| bar::begin(Some(steps))), name, pass, steps, done: 0, drawn: Instant::now() }
    }

    /// Counts steps, and shows the progress.
    pub fn advance(&mut self, steps: u64) {
        let checks = self.done / CHECK_STEPS;
        self.done += steps;
        let Some(bar) =
            self.bar.as_ref().filter(|_| self.done / CHECK_STEPS > checks && self.drawn.elapsed() >= bar::PERIOD)
        else {
            return;
        };
        self.drawn = Instant::now();
        let percent = format!("{} %", 100 * self.done.min(self.steps) / self.steps.max(1));
        let left = self.pass.left(bar.eta(), self.pass.took);
        let parts: Vec<String> =
            [Some(percent), self.pass.label(self.name), Some(left)].into_iter().flatten().collect();
        bar::draw(self.done, &parts);
    }

    /// Counts each of these items as a step.
    pub fn count<T>(mut self, items: impl Iterator<Item = T>) -> impl Iterator<Item = T> {
        items.inspect(move |_| self.advance(1))
    }
}

impl Drop for Phase {
    fn drop(&mut self) {
        if self.bar.take().is_some() {
            bar::end();
        }
    }
}
