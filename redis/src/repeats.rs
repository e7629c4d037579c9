//! `Repeats`: whether to read the blocks of keys before they are claimed.
//!
//! To read a block costs a server a part of what a claim does, and a key that is found needs no claim. A claim whose answer is
//! lost leaves a doubt, and a read does not. So it pays to read first where many keys are there already.

/// A read costs this share of a claim. redis/DESIGN.md has the measurement.
const COST: f64 = 0.2;

/// Fewer keys than these are claimed sooner than another round trip is made.
const FEW: usize = 256;

pub(crate) struct Repeats {
    /// Of the last keys, the share that was there.
    share: f64,
}

impl Repeats {
    /// Of a client that has seen no key: it begins with a read.
    pub(crate) fn new() -> Self {
        Self { share: COST }
    }

    /// Whether to read the blocks of so many keys first.
    pub(crate) fn are_worth_a_read(&self, keys: usize) -> bool {
        keys >= FEW && self.share >= COST
    }

    /// Takes how many of the keys were new.
    pub(crate) fn take(&mut self, keys: usize, new: usize) {
        if keys >= FEW {
            // The newest keys weigh as much as all before them.
            self.share = f64::midpoint(self.share, 1.0 - new as f64 / keys as f64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_read_while_keys_repeat() {
        let mut repeats = Repeats::new();
        assert!(repeats.are_worth_a_read(4096) && !repeats.are_worth_a_read(FEW - 1));
        repeats.take(1000, 1000);
        assert!(!repeats.are_worth_a_read(4096));
        // Few keys tell little.
        (0..100).for_each(|_| repeats.take(1, 0));
        assert!(!repeats.are_worth_a_read(4096));
        repeats.take(1000, 600);
        assert!(repeats.are_worth_a_read(4096));
        repeats.take(1000, 1000);
        assert!(!repeats.are_worth_a_read(4096));
    }
}
