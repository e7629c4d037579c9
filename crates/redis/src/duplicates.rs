//! `DuplicateTracker`: the decision to read the blocks of keys before they are claimed.
//!
//! A read costs a server a fraction of a claim, and a key that is found needs no claim. If the answer to a claim is lost, it is
//! uncertain whether the key was new; a read can be repeated. So reading first pays if many keys are duplicates.

/// The cost of a read as a fraction of a claim. crates/redis/DESIGN.md has the measurement.
const READ_COST: f64 = 0.2;

/// The minimum number of keys for a read: with fewer, claims cost less than another round trip.
const MIN_BATCH: usize = 256;

pub(crate) struct DuplicateTracker {
    /// The fraction of the last keys that were duplicates.
    duplicate_fraction: f64,
}

impl DuplicateTracker {
    /// Creates the tracker of a new client, which begins with a read.
    pub(crate) fn new() -> Self {
        Self { duplicate_fraction: READ_COST }
    }

    /// True if the blocks of this many keys are worth reading first.
    pub(crate) fn should_read_first(&self, keys: usize) -> bool {
        keys >= MIN_BATCH && self.duplicate_fraction >= READ_COST
    }

    /// Records the number of new keys in a batch.
    pub(crate) fn record(&mut self, keys: usize, new: usize) {
        if keys >= MIN_BATCH {
            // The newest keys weigh as much as all before them.
            self.duplicate_fraction = f64::midpoint(self.duplicate_fraction, 1.0 - new as f64 / keys as f64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_read_while_keys_repeat() {
        let mut tracker = DuplicateTracker::new();
        assert!(tracker.should_read_first(4096) && !tracker.should_read_first(MIN_BATCH - 1));
        tracker.record(1000, 1000);
        assert!(!tracker.should_read_first(4096));
        // A small batch does not count.
        (0..100).for_each(|_| tracker.record(1, 0));
        assert!(!tracker.should_read_first(4096));
        tracker.record(1000, 600);
        assert!(tracker.should_read_first(4096));
        tracker.record(1000, 1000);
        assert!(!tracker.should_read_first(4096));
    }
}
