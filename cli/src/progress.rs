//! How far a command is, on standard error.

use crate::bar;
use crate::figures::readable_count;
use crate::input::inputs::Input;
use crate::locked::locked;
use crate::messages::print;
use crate::seen::meter::Meter;
use crate::seen::tally::Tally;
use crate::values::StatsFormat;
use indicatif::{HumanBytes, HumanDuration, ProgressBar, ProgressStyle};
use std::env;
use std::io::{self, IsTerminal};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How often it is drawn.
const PERIOD: Duration = Duration::from_millis(100);

/// The columns of the bar and the space after it.
const BAR: usize = 11;

/// The steps of a phase after which the clock is looked at.
const LOOK: u64 = 1 << 10;

/// A reading of the inputs, of those that a run makes.
#[derive(Clone, Copy)]
struct Pass {
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
    /// Which of several it is, and what is done in it.
    fn told(self, phase: &str) -> Option<String> {
        (self.of > 1).then(|| format!("pass {} of {}: {phase}", self.number, self.of))
    }

    /// The time left for the run, if that of this pass is `left`, and passes to come take as long as this one in all. Phases to come are
    /// not known.
    fn left(self, left: Duration, all: Duration) -> String {
        format!("{:#} left", HumanDuration(left + all * self.of.saturating_sub(self.number)))
    }
}

/// Shows the progress if standard error is a terminal, and lines do not go to one.
pub struct Progress {
    bar: Option<ProgressBar>,
    pass: Pass,
    /// How many inputs there are.
    files: usize,
    /// Relaxed, for it is only shown.
    read: Arc<AtomicU64>,
    /// What was read before.
    before: u64,
    started: Instant,
    drawn: Instant,
    /// Of a shared set, and how it is reported.
    meter: Option<Arc<Meter>>,
    format: Option<StatsFormat>,
}

impl Progress {
    /// Of the work on these inputs; `read` counts their bytes.
    pub fn new(inputs: &[Input], read: Arc<AtomicU64>, quiet: bool, to_stdout: bool) -> Self {
        let shown = !quiet && io::stderr().is_terminal() && !(to_stdout && io::stdout().is_terminal());
        // Nor could it be removed from one that has no commands.
        let shown = shown && env::var_os("TERM").is_none_or(|terminal| terminal != "dumb");
        // A bar that is wider than the screen could not be removed from it.
        let shown = shown && usize::from(bar::columns()) >= BAR;
        let bar = shown.then(|| begin(inputs.iter().map(|input| input.size).sum()));
        let mut pass = locked(&PASS);
        (pass.number, pass.shown) = (pass.number + 1, shown);
        let (pass, now) = (*pass, Instant::now());
        let before = read.load(Relaxed);
        Self { bar, pass, files: inputs.len(), read, before, started: now, drawn: now, meter: None, format: None }
    }

    /// With what there is to tell of a shared set, if it is one.
    pub fn of_shared(mut self, meter: Option<Arc<Meter>>, format: Option<StatsFormat>) -> Self {
        (self.meter, self.format) = (meter, format);
        self
    }

    /// Shows how far the work is, what else there is to tell, and how fast lines are read: as much as fits the terminal.
    fn show(&mut self, lines: u64, more: impl FnOnce() -> Vec<String>, last: impl FnOnce() -> Vec<String>) {
        let Some(bar) = self.bar.as_ref().filter(|_| self.drawn.elapsed() >= PERIOD) else { return };
        self.drawn = Instant::now();
        let read = self.read.load(Relaxed) - self.before;
        let mut parts = match bar.length() {
            Some(bytes) => {
                let percent = 100 * read.min(bytes) / bytes.max(1);
                vec![format!("{percent} %"), self.pass.left(bar.eta(), bar.elapsed() + bar.eta())]
            }
            None => vec![HumanBytes(read).to_string(), format!("{:#}", HumanDuration(bar.elapsed()))],
        };
        let phase = if self.pass.number == self.pass.of { "writing" } else { "reading" };
        self.pass.told(phase).into_iter().for_each(|told| parts.insert(1, told));
        parts.extend(more());
        parts.push(format!("{} lines/s", readable_count(lines as f64 / self.started.elapsed().as_secs_f64())));
        parts.extend(last());
        parts.extend(bar.length().map(|bytes| format!("{} in all", HumanBytes(bytes))));
        let text = fitting(&parts, usize::from(bar::columns()).saturating_sub(BAR));
        bar::draw(read, text);
    }

    /// Shows how many of several files are done, how many lines were found, and how full the set is; `stages` is the number of its
    /// filters, if somebody can tell.
    pub fn show_tally(&mut self, tally: &Tally, found: u64, stages: impl FnOnce() -> Option<usize>, files: usize) {
        if let (Some(meter), Some(format)) = (&self.meter, self.format)
            && let Some(figures) = meter.report(&tally.counts, self.started.elapsed())
        {
            print(&figures.format(format));
        }
        let (all, meter) = (self.files, self.meter.clone());
        let more = || {
            let files = (all > 1).then(|| format!("{files} of {all} files"));
            let found = format!("{} {}", readable_count(found as f64), tally.found);
            let full = match (&tally.limit, &meter) {
                (Some(limit), _) => Some(limit.full(&tally.counts)),
                (None, Some(meter)) => Some(meter.word()),
                (None, None) => stages().map(|stages| format!("filter {stages}")),
            };
            [files, Some(found), full].into_iter().flatten().collect()
        };
        self.show(tally.counts.lines, more, || meter.as_ref().map_or_else(Vec::new, |meter| meter.parts()));
    }

    /// Removes it from the screen.
    pub fn end(&mut self) {
        locked(&PASS).took = self.started.elapsed();
        if self.bar.take().is_some() {
            bar::end();
        }
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
        Self { bar: shown.then(|| begin(Some(steps))), name, pass, steps, done: 0, drawn: Instant::now() }
    }

    /// Shows how far it is after so many more steps.
    pub fn advance(&mut self, steps: u64) {
        let looked = self.done / LOOK;
        self.done += steps;
        let Some(bar) = self.bar.as_ref().filter(|_| self.done / LOOK > looked && self.drawn.elapsed() >= PERIOD)
        else {
            return;
        };
        self.drawn = Instant::now();
        let percent = format!("{} %", 100 * self.done.min(self.steps) / self.steps.max(1));
        let left = self.pass.left(bar.eta(), self.pass.took);
        let parts: Vec<String> = [Some(percent), self.pass.told(self.name), Some(left)].into_iter().flatten().collect();
        bar::draw(self.done, fitting(&parts, usize::from(bar::columns()).saturating_sub(BAR)));
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

/// Shows a bar of so many bytes or steps, if they are known.
fn begin(total: Option<u64>) -> ProgressBar {
    // The message is cut where the screen ends.
    let (bar, style) = match total {
        Some(total) => (ProgressBar::new(total), "{bar:10} {wide_msg}"),
        None => (ProgressBar::new_spinner(), "{spinner} {wide_msg}"),
    };
    // Every terminal has these signs.
    let style = ProgressStyle::with_template(style).expect("the template is right");
    let bar = bar.with_style(style.progress_chars("#>-").tick_chars("-\\|/ "));
    bar::begin(&bar);
    bar
}

/// The first parts that fit into so many columns, two spaces apart.
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

impl Drop for Progress {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_shown_whole_or_not_at_all() {
        let parts = ["50 %", "1m left", "of 3 MiB"].map(str::to_owned);
        for (columns, expected) in
            [(0, ""), (3, ""), (4, "50 %"), (12, "50 %"), (13, "50 %  1m left"), (99, "50 %  1m left  of 3 MiB")]
        {
            assert_eq!(fitting(&parts, columns), expected, "{columns}");
        }
    }
}
