//! A Bloom filter that keeps each key in one cache line.
#![cfg_attr(not(feature = "std"), no_std)]
#![cfg_attr(docsrs, feature(doc_cfg))]

extern crate alloc;
#[cfg(all(test, not(feature = "std")))]
extern crate std;

mod atomic_filter;
mod batch;
mod block;
mod common;
mod error;
mod filter;
mod fpr;
mod hash;
mod kernel;
mod key;
mod params;
mod stats;
mod storage;
mod sync;

pub use atomic_filter::AtomicBloomFilter;
pub use error::{BuildError, MergeError};
pub use filter::BloomFilter;
pub use hash::KeyHasher;
pub use kernel::Kernel;
pub use key::Key;
pub use params::Builder;
