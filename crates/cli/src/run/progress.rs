//! The progress of a command, on standard error.

use crate::read::inputs::Input;
use crate::seen::remote_set::RemoteStats;
use crate::seen::run_stats::RunStats;
use crate::terminal::bar;
use crate::terminal::figures::StatsFormat;
use crate::terminal::figures::readable_count;
use crate::terminal::messages::print;
use crate::terminal::phase::Reading;
use indicatif::{HumanBytes, HumanDuration, ProgressBar};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

/// Shows the progress if it can be seen.
pub struct Progress {
    bar: Option<ProgressBar>,
    pass: Reading,
    /// The number of inputs.
    files: usize,
    /// Bytes read. Relaxed: it is only shown.
    read: Arc<AtomicU64>,
    /// The bytes that were read in earlier passes.
    before: u64,
    started: Instant,
    drawn: Instant,
    /// Metrics of a shared set, and the format of their reports.
    remote: Option<Arc<RemoteStats>>,
    format: Option<StatsFormat>,
}

impl Progress {
    /// Starts the display of work on these inputs; `read` counts their bytes.
    pub fn new(inputs: &[Input], read: Arc<AtomicU64>, quiet: bool, to_stdout: bool) -> Self {
        let shown = !quiet && bar::is_seen(to_stdout);
        let bar = shown.then(|| bar::begin(inputs.iter().map(|input| input.size).sum()));
        let (pass, now) = (Reading::begin(shown), Instant::now());
        let before = read.load(Relaxed);
        Self { bar, pass, files: inputs.len(), read, before, started: now, drawn: now, remote: None, format: None }
    }

    /// Adds the metrics of a shared set, if it is one.
    pub fn for_shared(mut self, remote: Option<Arc<RemoteStats>>, format: Option<StatsFormat>) -> Self {
        (self.remote, self.format) = (remote, format);
        self
    }

    /// Shows the progress of the work, further parts, and the speed: as much as fits the terminal.
    fn show(&mut self, lines: u64, more: impl FnOnce() -> Vec<String>, last: impl FnOnce() -> Vec<String>) {
        let Some(bar) = self.bar.as_ref().filter(|_| self.drawn.elapsed() >= bar::PERIOD) else { return };
        self.drawn = Instant::now();
        let read = self.read.load(Relaxed) - self.before;
        let mut parts = match bar.length() {
            Some(bytes) => {
                let percent = 100 * read.min(bytes) / bytes.max(1);
                vec![format!("{percent} %"), self.pass.left(bar.eta(), bar.elapsed().saturating_add(bar.eta()))]
            }
            None => vec![HumanBytes(read).to_string(), format!("{:#}", HumanDuration(bar.elapsed()))],
        };
        let phase = if self.pass.is_last() { "writing" } else { "reading" };
        if let Some(label) = self.pass.label(phase) {
            parts.insert(1, label);
        }
        parts.extend(more());
        parts.push(format!("{} lines/s", readable_count(lines as f64 / self.started.elapsed().as_secs_f64())));
        parts.extend(last());
        parts.extend(bar.length().map(|bytes| format!("{} in all", HumanBytes(bytes))));
        bar::draw(read, &parts);
    }

    /// Shows the number of finished files, of found lines, and the fill of the set; `stages` is the number of its
    /// filters, unless a thread is inserting.
    pub fn show_tally(&mut self, stats: &RunStats, found: u64, stages: impl FnOnce() -> Option<usize>, files: usize) {
        if let (Some(remote), Some(format)) = (&self.remote, self.format)
            && let Some(figures) = remote.report(&stats.counts, self.started.elapsed())
        {
            print(&figures.format(format));
        }
        let (all, remote) = (self.files, self.remote.clone());
        let more = || {
            let files = (all > 1).then(|| format!("{files} of {all} files"));
            let found = format!("{} {}", readable_count(found as f64), stats.found);
            let full = match (&stats.limit, &remote) {
                (Some(limit), _) => Some(limit.used_share(&stats.counts)),
                (None, Some(remote)) => Some(remote.status()),
                (None, None) => stages().map(|stages| format!("filter {stages}")),
            };
            [files, Some(found), full].into_iter().flatten().collect()
        };
        self.show(stats.counts.lines, more, || remote.as_ref().map_or_else(Vec::new, |remote| remote.parts()));
    }

    /// Removes the bar from the screen.
    pub fn end(&mut self) {
        self.pass.end(self.started.elapsed());
        if self.bar.take().is_some() {
            bar::end();
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.end();
    }
}
