#![doc = include_str!("../README.md")]
#![cfg_attr(not(feature = "std"), no_std)]
#![cfg_attr(docsrs, feature(doc_cfg))]

extern crate alloc;
#[cfg(all(test, not(feature = "std")))]
extern crate std;

mod atomic_filter;
mod batch;
mod block;
#[cfg(feature = "rayon")]
mod bulk;
mod common;
mod error;
mod extend;
#[cfg(feature = "file")]
mod file;
mod filter;
mod fpr;
#[cfg(feature = "frontier")]
mod frontier;
mod hash;
mod kernel;
mod key;
#[cfg(feature = "mmap")]
mod mapped_filter;
#[cfg(all(test, loom))]
mod models;
mod params;
mod plan;
#[cfg(feature = "redis")]
pub mod redis;
#[cfg(feature = "file")]
mod scalable_file;
mod scalable_filter;
#[cfg(feature = "serde")]
mod serde;
mod series;
mod stats;
mod storage;
mod sync;
#[cfg(feature = "variants")]
pub mod variants;

pub use atomic_filter::AtomicBloomFilter;
#[cfg(feature = "frontier")]
pub use error::FrontierFull;
pub use error::{BuildError, MergeError};
#[cfg(feature = "file")]
pub use file::{FileError, FileErrorKind};
pub use filter::BloomFilter;
#[cfg(feature = "frontier")]
pub use frontier::{Frontier, WhenFull};
pub use hash::KeyHasher;
pub use kernel::Kernel;
pub use key::Key;
#[cfg(feature = "mmap")]
pub use mapped_filter::MappedBloomFilter;
pub use params::Builder;
pub use plan::Plan;
pub use scalable_filter::ScalableBloomFilter;

/// The code of the guide, for the tests.
#[cfg(doctest)]
#[doc = include_str!("../docs/GUIDE.md")]
mod guide {}
