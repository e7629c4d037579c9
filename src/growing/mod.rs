//! Filters that grow with their keys.

#[cfg(feature = "std")]
pub(crate) mod atomic;
#[cfg(feature = "rayon")]
mod bulk;
#[cfg(feature = "file")]
mod file;
#[cfg(all(test, loom))]
mod loom;
pub(crate) mod scalable;
#[cfg(feature = "std")]
mod shared_stages;
#[cfg(feature = "std")]
mod stage_list;
mod stages;
