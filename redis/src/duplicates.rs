//! `DuplicateTracker`: whether to read the blocks of keys before they are claimed.
//!
//! To read a block costs a server a part of what a claim does, and a key that is found needs no claim. A claim whose answer is
//! lost leaves a doubt, and a read does not. So it pays to read first where many keys are there already.

/// A read costs this share of a claim. redis/DESIGN.md has the measurement.
const READ_COST: f64 = 0.2;

/// Fewer keys than these are claimed sooner than another round trip is made.
const MIN_BATCH: usize = 256;

pub(crate) struct DuplicateTracker {
    /// Of the last keys, the share that was there.
    duplicate_share: f64,
}

impl DuplicateTracker {
    /// Of a client that has seen no key: it begins with a read.
    pub(crate) fn new() -> Self {
        Self { duplicate_share: READ_COST }
    }

    /// Whether to read the blocks of so many keys first.
    pub(crate) fn should_read_first(&self, keys: usize) -> bool {
        keys >= MIN_BATCH && self.duplicate_share >= READ_COST
    }

    /// Takes how many of the keys were new.
    pub(crate) fn record(&mut self, keys: usize, new: usize) {
        if keys >= MIN_BATCH {
            // The newest keys weigh as much as all before them.
            self.duplicate_share = f64::midpoint(self.duplicate_share, 1.0 - new as f64 / keys as f64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_read_while_keys_repeat() {
        let mut repeats = DuplicateTracker::new();
        assert!(repeats.should_read_first(4096) && !repeats.should_read_first(MIN_BATCH - 1));
        repeats.record(1000, 1000);
        assert!(!repeats.should_read_first(4096));
        // Few keys tell little.
        (0..100).for_each(|_| repeats.record(1, 0));
        assert!(!repeats.should_read_first(4096));
        repeats.record(1000, 600);
        assert!(repeats.should_read_first(4096));
        repeats.record(1000, 1000);
        assert!(!repeats.should_read_first(4096));
    }
}
