//! Other layouts: each is a filter of its own, with the methods of all.
//!
//! Begin with [`BloomFilter`](crate::BloomFilter) (`words4`). The others are for other needs:
//!
//! | type | name | a key's bits | it is for |
//! |---|---|---|---|
//! | [`ClassicBloomFilter`] | `classic` | anywhere | the least memory at any rate, if speed counts less |
//! | [`AtomicClassicBloomFilter`] | `classic` | anywhere | the same from many threads |
//! | [`TwoBlockBloomFilter`] | `words4x2` | in two cache lines | rates below 1e-4 in a quarter less memory than `words4` |
//! | [`RegisterBloomFilter`] | `register` | in one word | inserts in one atomic step, high rates |
//! | [`SplitBlockBloomFilter`] | `split block` | in half a cache line | Parquet's filters, bit by bit |
//! | [`CountingBloomFilter`] | `counting` | counters in two lines | keys that are removed again |
//!
//! Bits per key for a rate, by each layout's model:
//!
//! | layout | 1 % | 0.1 % | 1e-4 | 1e-6 |
//! |---|---|---|---|---|
//! | `words4` | 10.1 | 15.8 | 22.6 | 41.1 |
//! | `classic` | 9.6 | 14.4 | 19.2 | 28.8 |
//! | `words4x2` | 9.8 | 14.8 | 20.2 | 31.6 |
//! | `register` | 12.1 | 24.0 | 45.5 | 174 |
//! | `split block` | 10.5 | 16.9 | 26.3 | 64.7 |
//! | `counting` | 42.1 | 67.6 | 105 | 205 |
//!
//! All use the crate's own hash, except Parquet's.
//!
//! # Examples
//! Code that works for every layout:
//! ```
//! use bloomline::variants::{ClassicBloomFilter, TwoBlockBloomFilter};
//! use bloomline::{BloomFilter, BuildError, Builder, Filter};
//!
//! fn bits_per_key<F>(builder: Builder<F>) -> Result<f64, BuildError>
//! where
//!     F: Filter + TryFrom<Builder<F>, Error = BuildError>,
//! {
//!     let filter = builder.expected_keys(1_000_000).false_positive_rate(1e-6).build()?;
//!     Ok(filter.memory_bytes() as f64 * 8.0 / 1e6)
//! }
//!
//! assert!(bits_per_key(BloomFilter::builder())? > 41.0);
//! assert!(bits_per_key(TwoBlockBloomFilter::builder())? < 31.8);
//! assert!(bits_per_key(ClassicBloomFilter::builder())? < 28.9);
//! # Ok::<(), bloomline::BuildError>(())
//! ```

#[cfg(any(calculator, test))]
mod calculator;
mod classic;
mod counting;
mod register;
mod split_block;
#[cfg(test)]
mod tests;
mod two_block;

pub use classic::{AtomicClassicBloomFilter, ClassicBloomFilter};
pub use counting::CountingBloomFilter;
pub use register::RegisterBloomFilter;
pub use split_block::SplitBlockBloomFilter;
pub use two_block::TwoBlockBloomFilter;

/// `union` for filters of one size.
macro_rules! union_method {
    ($path:literal, $mutable:literal, [$($mut:tt)?], $(#[$doc:meta])*) => {
        $(#[$doc])*
        ///
        /// # Errors
        /// [`MergeError`](crate::MergeError) if the filters differ in size, probes, seed or the name of their keys. Nothing is
        /// changed then.
        ///
        /// # Examples
        /// ```
        #[doc = concat!("let (", $mutable, "a, mut b) = (", $path, "::new(1000, 0.01)?, ", $path, "::new(1000, 0.01)?);")]
        /// b.insert("b");
        /// a.union(&b)?;
        /// assert!(a.contains("b"));
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        pub fn union(&$($mut)? self, other: &Self) -> Result<(), crate::error::MergeError> {
            self.0.union(&other.0)
        }
    };
}
use union_method;
