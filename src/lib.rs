//! Bloom filters: sets of keys in about ten bits a key. A new key is sometimes reported as seen (a false positive), at a rate
//! that you choose. A seen key is never reported as new.
//!
//! Each key keeps its bits in one cache line, so that a query costs one access to memory. Inserts from many threads take
//! no lock, and each key is claimed by one of them. Batches are answered with AVX-512, AVX2 or NEON where the CPU has them.
//!
//! ```
//! use bloomline::{AtomicBloomFilter, BloomFilter};
//!
//! let mut seen = BloomFilter::new(1_000_000, 0.01)?; // keys, false-positive rate: 1.27 MB
//! assert!(seen.insert("https://example.org/")); // new
//! assert!(!seen.insert("https://example.org/")); // seen
//! assert!(seen.contains("https://example.org/"));
//!
//! let keys: Vec<u64> = (0..10_000).collect();
//! let mut new = vec![false; keys.len()];
//! seen.insert_batch(&keys, &mut new); // beyond the cache, 1.5 to 5 times as fast as one by one
//!
//! // A loop of your own, compiled for AVX-512, AVX2 and any other CPU
//! let even = bloomline::dispatch!(&seen, |view| keys.iter().filter(|key| **key % 2 == 0 && view.contains(*key)).count());
//! assert_eq!(even, 5000);
//!
//! let shared = AtomicBloomFilter::new(1_000_000, 1e-6)?; // insert(&self), from any thread
//! std::thread::scope(|threads| {
//!     threads.spawn(|| shared.insert("claimed"));
//!     threads.spawn(|| shared.insert("claimed")); // one of the two gets `true`
//! });
//! # Ok::<(), bloomline::BuildError>(())
//! ```
//!
//! # Which type
//! | type | it is for | feature |
//! |---|---|---|
//! | [`BloomFilter`] | one writer, any number of readers | |
//! | [`AtomicBloomFilter`] | many writers and readers, one claim for each key | |
//! | [`ScalableBloomFilter`] | an unknown number of keys: it grows and keeps the rate | |
#![cfg_attr(feature = "std", doc = "| [`AtomicScalableBloomFilter`] | the same, filled by many threads | `std` |")]
#![cfg_attr(feature = "std", doc = "| [`RotatingBloomFilter`] | a window of the last keys, or of a time | `std` |")]
#![cfg_attr(
    feature = "file",
    doc = "| [`BorrowedBloomFilter`] | queries of a filter in a slice, in a section of a file, or in a file of its own | `file`, `mmap` |"
)]
#![cfg_attr(
    feature = "frontier",
    doc = "| [`Frontier`] | the queue of a crawler that visits nothing twice | `frontier` |"
)]
#![cfg_attr(
    feature = "variants",
    doc = "| [`variants`] | other layouts: classic, counting, two blocks a key, Parquet's split block | `variants` |"
)]
//!
//! The types have methods of the same names, and [`Filter`] is the trait for code that works with any of them. Any type that
//! implements [`Key`] is a key: text, byte strings, integers, addresses, paths, and tuples and sequences of these. Their hashes
//! are the same on every platform and in every version. [`impl_key!`] makes keys of your structs. Batches take [`Keys`]:
//! slices, Arrow's offsets and bytes ([`Slices`]), [`Hashes`], tuples of columns, or [`Selected`] rows of these. [`Builder`]
//! finds a size by keys and rate, by memory, or by a number of probes. [`dispatch!`] compiles a loop of single calls for the CPU
//! that it runs on.
//!
//! # Features
//! | feature | what it adds |
//! |---|---|
//! | `std`, `rayon`, `file` (default) | huge pages and CPU detection; bulk loads on all cores; saving and loading |
//! | `mmap`, `serde` | filters that stay in their file; `Serialize` and `Deserialize`, in JSON as base64 |
//! | `variants` | other layouts |
//! | `frontier` | `Frontier`, the queue of a crawler |
//!
//! Without default features the filters need only `alloc`. A release build takes 21 to 27 CPU seconds with default features, and
//! 12 to 16 with `std` alone (Intel Xeon, 2026-11-28).
//!
//! Other packages build on this one: [`bloomline-redis`](https://docs.rs/bloomline-redis) shares one filter among many machines,
//! and [`bloomline-text`](https://docs.rs/bloomline-text) finds duplicate paragraphs and documents.
//!
//! # More
//! The repository has [a guide](https://github.com/bloomline/bloomline/blob/main/docs/GUIDE.md), [the
//! design](https://github.com/bloomline/bloomline/blob/main/docs/DESIGN.md) with the proof of the claim, [the format of
//! files](https://github.com/bloomline/bloomline/blob/main/docs/FORMAT.md), and [benchmarks beside other
//! crates](https://github.com/bloomline/bloomline/blob/main/docs/BENCHMARKS.md).
#![cfg_attr(not(feature = "std"), no_std)]
#![cfg_attr(docsrs, feature(doc_cfg))]

extern crate alloc;
#[cfg(all(test, not(feature = "std")))]
extern crate std;

// Imports run from the lower of these rows to the upper ones:
//
//     sync         atomics and locks: the standard library's, or loom's
//     key/         the types of keys: hash single keys within_build
//     kernel/      the operations on a block, for each instruction set: block ops isa prefetch portable avx2 avx512 neon kind dispatch pick
//     error
//     rate/        the mathematics of the false-positive rate: fpr set_bits growth window
//     batch/       many keys at once: hash_chunks op unresolved selection collect
//     layout/      where the bits of a key are: descriptor storage params model access ops claim sectorized
//     builder/     from the values that a filter is built from to its geometry: spec options geometry plan
//     file/        the format of docs/FORMAT.md (feature file)
//     concurrent/  coordination of threads that fill one filter after another (std): epoch permits
//     filter/      the filters of one size: any raw view chain bulk methods bloom fold atomic borrowed
//     growing/     filters that grow: stages stage_list shared_stages file bulk scalable atomic
//     rotating/    filters that forget (std): generations filter
//     variants/    other layouts (feature variants); calculator/ has the figures of docs/calculator.html
//     frontier     Frontier, a crawler's queue (feature frontier)
//
// A public filter type is a struct around its implementation: `RawFilter<layout, access>`, or the stages or generations of a filter
// that grows or rotates. A layout implements `Layout` (its mathematics) and `LayoutOps` for the memory of one writer, of many,
// or of both. The macros of `filter/methods.rs` write the public methods with their documentation, so that a method has the
// same name, arguments and words on every type. `tests/suite/pages.rs` has the table of the methods of each type, and why the
// others lack them.
//
// The hot path, `BloomFilter::contains_hashes`, goes through `filter/methods.rs` (the public method), `filter/raw.rs` (lengths
// are checked), `layout/sectorized.rs` (a batch that is compiled in this crate, and what a probe is), `layout/ops.rs` (a
// `BatchOp` for the kernel), `kernel/dispatch.rs` (one dispatch, by CPU and number of probes) and `batch/op.rs` (the loop, with
// prefetches ahead). All below the dispatch is inlined into one function. A single key has a function of its own for each
// kernel, whose address the filter keeps. In a loop of `dispatch!` (`filter/view.rs`), which expands once for each instruction set,
// the operation on a single key is inlined. `layout/ops.rs` lets a layout write out `contains_hashes` and `insert_hashes`, which
// are then compiled in this crate and not in each crate that uses it.
mod batch;
mod builder;
#[cfg(feature = "std")]
mod concurrent;
mod error;
#[cfg(feature = "file")]
mod file;
mod filter;
#[cfg(feature = "frontier")]
mod frontier;
mod growing;
mod kernel;
mod key;
mod layout;
mod rate;
#[cfg(feature = "std")]
mod rotating;
mod sync;
#[cfg(feature = "variants")]
pub mod variants;

pub use builder::options::Builder;
pub use builder::plan::Plan;
pub use error::{BuildError, MergeError};
#[cfg(feature = "file")]
pub use file::{FileError, FileErrorKind, save_file, unfinished_saves};
pub use filter::any::Filter;
pub use filter::atomic::AtomicBloomFilter;
pub use filter::bloom::BloomFilter;
#[cfg(feature = "file")]
pub use filter::borrowed::BorrowedBloomFilter;
pub use filter::view::{View, WithView, dispatch};
#[cfg(feature = "frontier")]
pub use frontier::{Frontier, FrontierFull, FrontierParts, WhenFull};
#[cfg(feature = "std")]
pub use growing::atomic::AtomicScalableBloomFilter;
pub use growing::scalable::ScalableBloomFilter;
pub use kernel::{Isa, Kernel};
pub use key::hash::KeyHasher;
pub use key::keys::{Hashes, Keys, Selected, Slices};
pub use key::single::Key;
pub use key::within_build::WithinBuild;
#[cfg(feature = "std")]
pub use rotating::filter::RotatingBloomFilter;

/// The expansion of [`dispatch!`].
#[doc(hidden)]
pub mod __private {
    pub use crate::filter::view::{loop_isa, run};
    pub use crate::kernel::LoopIsa;
}

/// The code of the README, as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

/// The code of the guide, as tests.
#[cfg(doctest)]
#[doc = include_str!("../docs/GUIDE.md")]
mod guide {}
