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
mod filter;
mod fpr;
mod hash;
mod kernel;
mod key;
#[cfg(all(test, loom))]
mod models;
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
