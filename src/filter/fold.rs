//! Folding: a filter made smaller, bit by bit the filter that fewer blocks would have made.
//!
//! A key's pattern comes from its hash alone, and its block is the high half of `hash × blocks`. So with half as many blocks
//! the keys of the blocks 2i and 2i + 1 are in block i, with the same bits. Folding unites each such pair.

use crate::filter::bloom::BloomFilter;
use crate::layout::storage;
use crate::rate::set_bits;
use alloc::vec::Vec;

impl BloomFilter {
    /// Halves the filter: its bits become exactly those of a filter with half as many blocks and the same keys, and its
    /// false-positive rate rises accordingly. [`expected_keys`](Self::expected_keys) becomes the number of keys that the
    /// smaller filter takes at the rate that the filter was made for.
    ///
    /// Returns `false`, and changes nothing, if the number of blocks is odd. [`Builder`](crate::Builder) rounds the size for a
    /// rate up by at most 1/128, so that it folds until 128 to 255 blocks are left. O(memory), and half as much memory
    /// beside the filter.
    ///
    /// # Examples
    /// ```
    /// use bloomline::BloomFilter;
    /// let mut seen = BloomFilter::builder().memory(1 << 20).probes(8).build()?;
    /// seen.insert("a");
    /// assert!(seen.fold());
    /// assert_eq!(seen.memory_bytes(), 1 << 19);
    /// assert!(seen.contains("a"));
    /// # Ok::<(), bloomline::BuildError>(())
    /// ```
    #[must_use = "a filter with an odd number of blocks is unchanged"]
    pub fn fold(&mut self) -> bool {
        let even = self.block_count().is_multiple_of(2);
        if even {
            self.0.fold_levels(1);
        }
        even
    }

    /// [Folds](Self::fold) the filter as often as [`current_fpr`](Self::current_fpr), the rate of its present bits, stays at or
    /// below `false_positive_rate`, and returns how often. It reads the filter at most eight times, and needs at most half as
    /// much memory beside it.
    ///
    /// # Examples
    /// ```
    /// use bloomline::BloomFilter;
    /// let mut seen = BloomFilter::new(10_000_000, 0.01)?; // guessed high
    /// seen.extend(0..1_000_000u64);
    /// assert_eq!(seen.fold_to(0.01), 3);
    /// assert!(seen.current_fpr() <= 0.01 && seen.memory_bytes() < 1_600_000);
    /// # Ok::<(), bloomline::BuildError>(())
    /// ```
    pub fn fold_to(&mut self, false_positive_rate: f64) -> u32 {
        let fits = |levels: &u32| {
            let words = storage::folded(self.0.words(), *levels);
            set_bits::current_fpr(words, self.0.params.geometry.probes) <= false_positive_rate
        };
        // The rate rises with every fold.
        let candidates: Vec<u32> = (1..=self.block_count().trailing_zeros()).collect();
        let levels = candidates.partition_point(fits) as u32;
        self.0.fold_levels(levels);
        levels
    }

    /// [Folds](Self::fold_to) the filter to the smallest size that keeps the rate it was made for, with its present keys. A
    /// filter that was not made for a rate is unchanged.
    ///
    /// The filter then has little room for more keys: [`expected_keys`](Self::expected_keys) returns how many there may be.
    ///
    /// # Examples
    /// ```
    /// use bloomline::BloomFilter;
    /// let mut seen = BloomFilter::new(1_000_000, 0.001)?; // a guess
    /// seen.extend(0..1000u64);
    /// seen.shrink_to_fit();
    /// assert!(seen.memory_bytes() < 16_384 && seen.current_fpr() <= 0.001);
    /// # Ok::<(), bloomline::BuildError>(())
    /// ```
    ///
    /// The file is then small, but until then a filter that is far too large takes memory: keys that are spread over it
    /// take a page each, of 2 MiB unless [`huge_pages`](crate::Builder::huge_pages) is off. If the number of keys is
    /// not known, use a [`ScalableBloomFilter`](crate::ScalableBloomFilter).
    pub fn shrink_to_fit(&mut self) {
        self.false_positive_rate().map(|rate| self.fold_to(rate));
    }
}
