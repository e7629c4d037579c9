//! Filters that grow with their keys.

#[cfg(feature = "std")]
pub(crate) mod atomic;
#[cfg(feature = "file")]
mod file;
#[cfg(all(test, loom))]
mod models;
#[cfg(feature = "rayon")]
mod parallel;
pub(crate) mod scalable;
#[cfg(feature = "std")]
mod shared_stages;
mod stages;
