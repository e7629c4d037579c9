//! The choice of the input that a thread reads from next.

use crate::engine::lane::Lane;
use crate::engine::work::Work;
use crate::locked::locked;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::Duration;

/// The time that an idle thread waits for others.
const MOMENT: Duration = Duration::from_millis(1);

impl Work {
    /// Returns the input to read from next. Waits while no input can be read and some are unfinished.
    pub(super) fn choose(&self, last: Option<usize>) -> Option<usize> {
        while !self.ending.load(Relaxed) && self.unread.load(Relaxed) > 0 {
            let chosen = if self.has_order() { self.choose_in_order() } else { self.choose_any(last) };
            if chosen.is_some() {
                return chosen;
            }
            thread::sleep(MOMENT);
        }
        None
    }

    /// True if inputs are read one after another, as far as possible.
    fn has_order(&self) -> bool {
        self.claims.is_some() || self.sinks.len() < self.lanes.len()
    }

    /// Returns the first input that is not read, or a later one while another thread reads that.
    fn choose_in_order(&self) -> Option<usize> {
        let mut first = self.first.load(Relaxed);
        while self.lanes.get(first)?.is_read() {
            first += 1;
            self.first.fetch_max(first, Relaxed);
        }
        if !self.has_room(first) {
            return None;
        }
        // Only these may have been read ahead.
        let lanes = self.lanes[first..].iter().take(self.most());
        let in_flight: usize = lanes.clone().map(Lane::in_flight).sum();
        let may_wait = |lane: &&Lane| {
            let is_pipe = self.lanes[first].size.is_none();
            let most = match lane.is_compressed {
                // Its header is compared with the pipe's header.
                true if is_pipe && self.task.hashing.format.header => 0,
                true => self.task.ahead,
                // A reader that waits for a pipe does not need later inputs.
                false if is_pipe => 0,
                false => self.most(),
            };
            !lane.is_read() && in_flight < most
        };
        let free = |lane: &&Lane| lane.is_free();
        let chosen = lanes.filter(|lane| lane.number == first || may_wait(lane)).find(free);
        Some(chosen.map_or(first, |lane| lane.number))
    }

    /// Returns the input that this thread stays with, or the largest one that is not begun, or one on which it can help.
    fn choose_any(&self, last: Option<usize>) -> Option<usize> {
        let goes_on = |&lane: &usize| !self.lanes[lane].is_read() && self.has_room(lane);
        let count = self.lanes.len();
        let after = last.map_or(0, |last| last + 1);
        last.filter(goes_on)
            .or_else(|| locked(&self.fresh).pop())
            .or_else(|| (0..count).map(|i| (after + i) % count).find(goes_on))
    }

    /// The maximum number of chunks and pieces of one input in progress.
    fn most(&self) -> usize {
        2 * self.task.threads + 2
    }

    fn has_room(&self, lane: usize) -> bool {
        self.lanes[lane].in_flight() + self.sink(lane).under_way() < self.most()
    }
}
