//! A warning if keys have two kinds of line ends.

use crate::read::chunks::Chunk;
use crate::terminal::messages::warn;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// The number of lines of a chunk that are examined, evenly spread, if keys are not examined one by one.
const SAMPLED: usize = 256;

/// A warning, given once, if some keys end with a carriage return and others do not.
#[derive(Default)]
pub struct LineEnds {
    /// The kinds so far. Relaxed: no other memory depends on it.
    seen: AtomicU8,
    is_reported: bool,
}

impl LineEnds {
    /// Creates a warning that is never given if `quiet`.
    pub fn new(quiet: bool) -> Self {
        Self { is_reported: !quiet, ..Self::default() }
    }

    /// Adds the kinds of some lines.
    pub(super) fn take(&self, LineEndKinds(kinds): LineEndKinds) {
        if !self.is_reported || self.seen.load(Relaxed) | kinds == self.seen.load(Relaxed) {
            return;
        }
        let before = self.seen.fetch_or(kinds, Relaxed);
        if before != LineEndKinds::BOTH && before | kinds == LineEndKinds::BOTH {
            warn(
                "some lines end with CR LF and others with LF, and lines that differ only in this count as different; give \
                 --eol keep to treat them as equal",
            );
        }
    }
}

/// The kinds of line ends that lines have.
#[derive(Clone, Copy, Default)]
pub(super) struct LineEndKinds(u8);

impl LineEndKinds {
    const BOTH: u8 = 3;

    /// Adds the kind of a key or a line without its end. An empty one has no kind.
    pub(super) fn add(&mut self, line: &[u8]) {
        self.0 |= line.last().map_or(0, |&last| if last == b'\r' { 2 } else { 1 });
    }

    /// Returns the kinds of a sample of the first `count` lines.
    pub(super) fn from_sample(chunk: &Chunk, count: usize) -> Self {
        let (mut kinds, step) = (Self::default(), count.div_ceil(SAMPLED).max(1));
        for line in (0..count).step_by(step) {
            kinds.add(&chunk.bytes()[chunk.start_of(line)..chunk.start_of(line + 1) - 1]);
        }
        kinds
    }
}
