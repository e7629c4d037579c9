//! The choice of the input that a thread reads from next.

use crate::run::shard::Shard;
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
            let chosen = if self.has_order() { self.next_in_order() } else { self.next_shard(last) };
            if chosen.is_some() {
                return chosen;
            }
            thread::sleep(MOMENT);
        }
        None
    }

    /// True if inputs are read one after another, as far as possible.
    fn has_order(&self) -> bool {
        self.claims.is_some() || self.sinks.len() < self.shards.len()
    }

    /// Returns the first input that is not read, or a later one while another thread reads that.
    fn next_in_order(&self) -> Option<usize> {
        let mut first = self.first.load(Relaxed);
        while self.shards.get(first)?.is_read() {
            first += 1;
            self.first.fetch_max(first, Relaxed);
        }
        if !self.has_room(first) {
            return None;
        }
        // Only these may have been read ahead.
        let shards = self.shards[first..].iter().take(self.max_in_flight());
        let in_flight: usize = shards.clone().map(Shard::in_flight).sum();
        let may_wait = |shard: &&Shard| {
            let is_pipe = self.shards[first].size.is_none();
            let max = match shard.is_compressed {
                // Its header is compared with the pipe's header.
                true if is_pipe && self.config.format.header => 0,
                true => self.config.ahead,
                // A reader that waits for a pipe does not need later inputs.
                false if is_pipe => 0,
                false => self.max_in_flight(),
            };
            !shard.is_read() && in_flight < max
        };
        let free = |shard: &&Shard| shard.is_free();
        let chosen = shards.filter(|shard| shard.number == first || may_wait(shard)).find(free);
        Some(chosen.map_or(first, |shard| shard.number))
    }

    /// Returns the input that this thread stays with, or the largest one that is not begun, or one on which it can help.
    fn next_shard(&self, last: Option<usize>) -> Option<usize> {
        let continues = |&shard: &usize| !self.shards[shard].is_read() && self.has_room(shard);
        let count = self.shards.len();
        let after = last.map_or(0, |last| last + 1);
        last.filter(continues)
            .or_else(|| locked(&self.fresh).pop())
            .or_else(|| (0..count).map(|i| (after + i) % count).find(continues))
    }

    /// The maximum number of chunks and pieces of one input in progress.
    fn max_in_flight(&self) -> usize {
        2 * self.config.threads + 2
    }

    fn has_room(&self, shard: usize) -> bool {
        self.shards[shard].in_flight() + self.sink(shard).compressing_pieces() < self.max_in_flight()
    }
}
