//! Which of several readings of the inputs is under way, and what is done between them.

use crate::bar;
use crate::locked::locked;
use indicatif::{HumanDuration, ProgressBar};
use std::io::{self, IsTerminal};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// The steps of a phase after which the clock is looked at.
const LOOK: u64 = 1 << 10;

/// A reading of the inputs, of those that a run makes.
#[derive(Clone, Copy)]
pub struct Pass {
    number: u32,
    of: u32,
    /// How long it took, once it is over.
    took: Duration,
    /// Whether it has a bar.
    shown: bool,
}

/// The last that began.
static PASS: Mutex<Pass> = Mutex::new(Pass { number: 0, of: 1, took: Duration::ZERO, shown: false });

/// The inputs are read so often from now on.
pub fn begin_passes(of: u32) {
    *locked(&PASS) = Pass { number: 0, of, took: Duration::ZERO, shown: false };
}

impl Pass {
    /// Begins the next one.
    pub fn begin(shown: bool) -> Self {
        let mut pass = locked(&PASS);
        (pass.number, pass.shown) = (pass.number + 1, shown);
        *pass
    }

    /// Takes note of how long it took.
    pub fn end(self, took: Duration) {
        locked(&PASS).took = took;
    }

    /// True if no other follows.
    pub fn is_last(self) -> bool {
        self.number == self.of
    }

    /// Which of several it is, and what is done in it.
    pub fn told(self, phase: &str) -> Option<String> {
        (self.of > 1).then(|| format!("pass {} of {}: {phase}", self.number, self.of))
    }

    /// The time left for the run, if that of this pass is `left`, and passes to come take as long as this one in all. Phases to come are
    /// not known.
    pub fn left(self, left: Duration, all: Duration) -> String {
        let later = all.saturating_mul(self.of.saturating_sub(self.number));
        format!("{:#} left", HumanDuration(left.saturating_add(later)))
    }
}

/// What is done between two readings, in steps.
pub struct Phase {
    bar: Option<ProgressBar>,
    name: &'static str,
    pass: Pass,
    steps: u64,
    done: u64,
    drawn: Instant,
}

impl Phase {
    /// Begins so many steps, after a reading that had a bar. Nothing is shown where they write to a terminal.
    pub fn new(name: &'static str, steps: u64, to_stdout: bool) -> Self {
        let pass = *locked(&PASS);
        let shown = pass.shown && !(to_stdout && io::stdout().is_terminal());
        Self { bar: shown.then(|| bar::begin(Some(steps))), name, pass, steps, done: 0, drawn: Instant::now() }
    }

    /// Shows how far it is after so many more steps.
    pub fn advance(&mut self, steps: u64) {
        let looked = self.done / LOOK;
        self.done += steps;
        let Some(bar) = self.bar.as_ref().filter(|_| self.done / LOOK > looked && self.drawn.elapsed() >= bar::PERIOD)
        else {
            return;
        };
        self.drawn = Instant::now();
        let percent = format!("{} %", 100 * self.done.min(self.steps) / self.steps.max(1));
        let left = self.pass.left(bar.eta(), self.pass.took);
        let parts: Vec<String> = [Some(percent), self.pass.told(self.name), Some(left)].into_iter().flatten().collect();
        bar::draw(self.done, &parts);
    }

    /// These items, each a step.
    pub fn of<T>(mut self, items: impl Iterator<Item = T>) -> impl Iterator<Item = T> {
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
