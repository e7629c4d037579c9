//! The choice of the input that a thread reads from next.

use crate::run::input::RunInput;
use crate::run::work::Work;
use crate::system::unpoisoned::locked;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::Duration;

/// The time that an idle thread waits for others.
const MOMENT: Duration = Duration::from_millis(1);

impl Work {
    /// Returns the input to read from next. Waits while no input can be read and some are unfinished.
    pub(super) fn choose(&self, last: Option<usize>) -> Option<usize> {
        while !self.ending.load(Relaxed) && self.unread.load(Relaxed) > 0 {
            let chosen = if self.has_order() { self.next_in_order() } else { self.next_input(last) };
            if chosen.is_some() {
                return chosen;
            }
            thread::sleep(MOMENT);
        }
        None
    }

    /// True if inputs are read one after another, as far as possible.
    fn has_order(&self) -> bool {
        self.claims.is_some() || self.sinks.len() < self.inputs.len()
    }

    /// Returns the first input that is not read, or a later one while another thread reads that.
    fn next_in_order(&self) -> Option<usize> {
        let mut first = self.first.load(Relaxed);
        while self.inputs.get(first)?.is_read() {
            first += 1;
            self.first.fetch_max(first, Relaxed);
        }
        if !self.has_room(first) {
            return None;
        }
        // Only these may have been read ahead.
        let inputs = self.inputs[first..].iter().take(self.max_in_flight());
        let in_flight: usize = inputs.clone().map(RunInput::in_flight).sum();
        // Of inputs that are read, chunks wait only for one that another thread has. Small inputs would pile up behind it.
        if self.ungathered.load(Relaxed).saturating_sub(in_flight) >= self.max_in_flight() {
            return None;
        }
        let may_wait = |input: &&RunInput| {
            let is_pipe = self.inputs[first].size.is_none();
            let max = match input.is_compressed {
                // Its header is compared with the pipe's header.
                true if is_pipe && self.config.format.header => 0,
                true => self.config.max_chunks_ahead,
                // A reader that waits for a pipe does not need later inputs.
                false if is_pipe => 0,
                false => self.max_in_flight(),
            };
            !input.is_read() && in_flight < max
        };
        let free = |input: &&RunInput| input.is_free();
        let chosen = inputs.filter(|input| input.number == first || may_wait(input)).find(free);
        Some(chosen.map_or(first, |input| input.number))
    }

    /// Returns the input that this thread stays with, or the largest one that is not begun, or one on which it can help.
    fn next_input(&self, last: Option<usize>) -> Option<usize> {
        let continues = |&input: &usize| !self.inputs[input].is_read() && self.has_room(input);
        let count = self.inputs.len();
        let after = last.map_or(0, |last| last + 1);
        last.filter(continues)
            .or_else(|| locked(&self.fresh).pop())
            .or_else(|| (0..count).map(|i| (after + i) % count).find(continues))
    }

    /// Returns the maximum number of chunks and pieces of one input in progress.
    fn max_in_flight(&self) -> usize {
        2 * self.config.threads + 2
    }

    fn has_room(&self, input: usize) -> bool {
        self.inputs[input].in_flight() + self.sink(input).compressing_pieces() < self.max_in_flight()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::tests::LINE;
    use crate::read::chunks::ChunkConfig;
    use crate::read::ends::LineEnds;
    use crate::read::inputs::Inputs;
    use crate::read::keys::Hashing;
    use crate::read::projection::Projection;
    use crate::read::skip::OnError;
    use crate::read::split::LineFormat;
    use crate::run::input::run_inputs;
    use crate::run::lines::Lines;
    use crate::run::progress::Progress;
    use crate::run::sink::{PrintOptions, Sink};
    use crate::run::step::{RunConfig, Step};
    use crate::run::work::Persistence;
    use crate::seen::run_stats::RunStats;
    use crate::seen::set::KeySet;
    use crate::seen::{Claimed, SeenKeys, SharedSeenKeys};
    use crate::system::error::Error;
    use crate::write::encode::Encoder;
    use bloomline::{BloomFilter, KeyHasher};
    use crossbeam_channel::never;
    use std::fs;
    use std::path::PathBuf;
    use std::sync::atomic::AtomicUsize;
    use std::sync::{Arc, OnceLock, Weak};

    /// A step that inserts lines. Its first claim also reads inputs, as other threads would in that time.
    struct SlowClaim {
        hashing: Hashing,
        seen: SharedSeenKeys,
        work: OnceLock<Weak<Work>>,
        read_meanwhile: AtomicUsize,
    }

    impl Step for SlowClaim {
        fn hash(&self, _config: &RunConfig, lines: &mut Lines) {
            lines.batch.hash(&self.hashing, &mut lines.keys);
        }

        fn claim(&self, config: &RunConfig, input: usize, lines: &mut Lines) -> Result<Claimed, Error> {
            let work = self.work.get().and_then(Weak::upgrade).expect("the work is running");
            while let (0, Some(next)) = (input, work.next_in_order()) {
                let read = work.advance(&work.inputs[next], &mut Encoder::default(), &mut None);
                assert!(read.is_ok());
                self.read_meanwhile.fetch_add(1, Relaxed);
            }
            let mut claimed = Claimed::default();
            lines.mark(config.on_error, config.print.kept, |hashes, fingerprints, new| {
                let (done, inserted) = self.seen.write().insert(hashes, fingerprints, new)?;
                claimed = inserted;
                Ok(done)
            })?;
            Ok(claimed)
        }
    }

    #[test]
    fn small_inputs_do_not_pile_up_behind_a_late_chunk() {
        const FILES: usize = 500;
        let folder = tempfile::tempdir().unwrap();
        let paths: Vec<PathBuf> = (0..FILES).map(|i| folder.path().join(i.to_string())).collect();
        paths.iter().for_each(|path| fs::write(path, path.as_os_str().as_encoded_bytes()).unwrap());
        let inputs = Inputs::from_paths(&paths);
        let set = KeySet::Local(BloomFilter::new(FILES as u64, 1e-9).unwrap().into());
        let stats = RunStats::new(&set, None, "lines", "key", true);
        let format = LineFormat::plain(b'\n');
        let hashing = Hashing {
            format,
            rule: LINE,
            hasher: KeyHasher::new(0),
            second_hasher: None,
            nulls: OnError::Fail,
            ends: Arc::new(LineEnds::default()),
        };
        let seen = SharedSeenKeys::new(SeenKeys::new(set));
        let step = Arc::new(SlowClaim {
            hashing,
            seen: seen.clone(),
            work: OnceLock::new(),
            read_meanwhile: AtomicUsize::new(0),
        });
        let print = PrintOptions { selected_mark: true, ..PrintOptions::default() };
        let projection = Projection::whole();
        let config = RunConfig { threads: 1, format, projection, on_error: OnError::Fail, print, max_chunks_ahead: 0 };
        let progress = Progress::new(&inputs.found, inputs.read.clone(), true, false);
        let inputs = run_inputs(inputs, ChunkConfig { size: 100, format, keep: false }, None);
        let sinks = vec![Sink::new(0, None, None)];
        let work = Work::new(config, step.clone(), inputs, sinks, seen, stats, Persistence::default());
        step.work.set(Arc::downgrade(&work)).unwrap();
        assert!(work.run(&never(), progress).unwrap().is_none());
        let (read, chunks) = (step.read_meanwhile.load(Relaxed), work.max_in_flight());
        assert!((1..=3 * chunks).contains(&read), "{read} chunks beside {chunks}");
        assert_eq!(locked(&work.stats).counts.unique, FILES as u64);
    }
}
